"""Products with what follows them, made by a pass for kernels that do it all at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.types import ArrayType
from stretto._engine.ops.arithmetic import add
from stretto._engine.ops.comparison import le, select, zeros_like
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.fused import Fused
from stretto._engine.ops.layout import transpose


class FusedProduct(Fused):
    """A product, with its axes in another order, plus an array, cut off at zero."""

    product: DotGeneral
    order: tuple[int, ...]
    """Which axis of the product each axis of the result is."""
    relu: bool
    """Whether what is not above zero becomes zero; NaN stays."""

    def infer(self, x: ArrayType, y: ArrayType, *added: ArrayType) -> ArrayType:
        """Return the product's type with its axes in order; what is added has that type."""
        out = self.product.infer(x, y)
        out = out.with_shape(tuple([out.shape[axis] for axis in self.order]))
        for type in added:
            if type.shape != out.shape or type.dtype != out.dtype:
                raise TypeError(f"fused_product: expected {out} to be added, got {type}")
        return out

    def reference(self, x: np.ndarray, y: np.ndarray, *added: np.ndarray) -> np.ndarray:
        """Use NumPy, step by step."""
        out = np.transpose(self.product.reference(x, y), self.order)
        for value in added:
            out = out + value
        return np.where(out <= 0, out.dtype.type(0), out) if self.relu else out

    def written_out(self, x: Any, y: Any, *added: Any) -> Any:
        """Return the same by the operations that it was made of."""
        out = self.product(x, y)
        if self.order != tuple(range(len(self.order))):
            out = transpose(out, self.order)
        for value in added:
            out = add(out, value)
        return select(le(out, zeros_like(out)), zeros_like(out), out) if self.relu else out

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        return self.product.work(types[:2], outs)

    def lower(self, b: Any, *operands: Any) -> Any:
        """Call a kernel, or write what this was made of."""
        product = self.product
        called = b.called_product(
            *operands[:2], product.summed, product.shared, self.order, operands[2:], self.relu
        )
        return called or b.inline(self.written_out, *operands, as_is=True)

    def onnx(self, b: Any, *operands: Any) -> Any:
        """Write what this was made of."""
        return b.inline(self.written_out, *operands)
