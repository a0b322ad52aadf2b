"""Programs in files that run without Stretto, and without the user's code.

``onnx`` writes ONNX models; ``program`` makes artifacts of our own, which ``load`` reads;
``stablehlo`` writes StableHLO, in the files of ``jax.export``, which ``load_stablehlo`` reads.
Next, read ``onnx_model``, ``artifact`` and ``stablehlo_artifact``.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:
    from stretto.export import artifact, rules
    from stretto.export.artifact import Artifact as Artifact, load as load, program as program
    from stretto.export.onnx_model import onnx as onnx
    from stretto.export.stablehlo_artifact import StableHLO as StableHLO
    from stretto.export.stablehlo_artifact import load_stablehlo as load_stablehlo
    from stretto.export.stablehlo_artifact import stablehlo as stablehlo

exports(
    __name__,
    """
    .artifact: Artifact load program
    .onnx_model: onnx
    .stablehlo_artifact: StableHLO load_stablehlo stablehlo
    """,
)
