"""Programs in files that run without Stretto, and without the user's code.

``onnx`` writes ONNX models; ``program`` makes artifacts of our own; ``stablehlo`` writes StableHLO,
in the files of ``jax.export``. ``load`` reads artifacts and StableHLO. Next, read ``onnx_model``,
``artifact`` and ``stablehlo_artifact``.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:
    from stretto.export import artifact, container, rules, stablehlo_artifact
    from stretto.export.artifact import Artifact as Artifact, program as program
    from stretto.export.loading import load as load
    from stretto.export.onnx_model import onnx as onnx
    from stretto.export.stablehlo_artifact import StableHLO as StableHLO
    from stretto.export.stablehlo_artifact import stablehlo as stablehlo

exports(
    __name__,
    """
    .artifact: Artifact program
    .loading: load
    .onnx_model: onnx
    .stablehlo_artifact: StableHLO stablehlo
    """,
)
