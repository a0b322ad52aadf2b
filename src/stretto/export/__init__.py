"""Programs in files that run without Stretto, and without the user's code.

``onnx`` writes ONNX models. Next, read ``onnx_model``.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:
    from stretto.export.onnx_model import onnx as onnx

exports(
    __name__,
    """
    .onnx_model: onnx
    """,
)
