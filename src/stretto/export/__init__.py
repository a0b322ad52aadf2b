"""Programs in files that run without Stretto, and without the user's code.

``onnx`` writes ONNX models; ``program`` makes artifacts of our own, and ``load`` reads them. Next,
read ``onnx_model`` and ``artifact``.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:
    from stretto.export import artifact, rules
    from stretto.export.artifact import Artifact as Artifact, load as load, program as program
    from stretto.export.onnx_model import onnx as onnx

exports(
    __name__,
    """
    .artifact: Artifact load program
    .onnx_model: onnx
    """,
)
