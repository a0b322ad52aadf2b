"""Linear and bilinear maps.

Names, meanings and defaults are those of ``torch.nn.functional``.
"""

from __future__ import annotations

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import of_rank
from stretto._engine.ops.contract import dot_general, matmul, tensordot
from stretto._engine.ops.layout import expand_dims, squeeze

__all__ = ["bilinear", "linear"]


def linear(input: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None) -> Array:
    """Map the last axis by a matrix, and add a bias: ``input @ weight.T + bias``.

    Args:
        input: (..., inputs).
        weight: (outputs, inputs) or (inputs,).
        bias: (outputs,), or a scalar where ``weight`` has one axis.

    Returns:
        (..., outputs), or (...,) where ``weight`` has one axis.

    Raises:
        ValueError: the shapes do not fit.

    As PyTorch's ``nn.functional.linear``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.linear(snp.array([1.0, 2.0]), snp.array([[3.0, 4.0]]), snp.array([0.5]))
    Array([11.5], dtype=float32)
    """
    x, w = as_value(input, "linear", "input"), as_value(weight, "linear", "weight")
    if w.ndim not in (1, 2) or not x.ndim or x.shape[-1] != w.shape[-1]:
        raise ValueError(
            f"linear: expected input (..., inputs) and weight (outputs, inputs) or (inputs,), got "
            f"{x.type} and {w.type}"
        )
    last = w.ndim - 1
    out = dot_general(x, w, (((x.ndim - 1,), (last,)), ((), ())))
    return out if bias is None else out + of_rank(as_value(bias, "linear", "bias"), out.ndim)


def bilinear(
    input1: ArrayLike, input2: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None
) -> Array:
    """Map two inputs together: a product of both with a tensor, and a bias.

    Output k is the sum of ``input1[i] * weight[k, i, j] * input2[j]``, plus ``bias[k]``.

    Args:
        input1: (..., inputs1).
        input2: (..., inputs2), with the same leading axes.
        weight: (outputs, inputs1, inputs2).
        bias: (outputs,).

    Returns:
        (..., outputs).

    Raises:
        ValueError: the shapes do not fit.

    As PyTorch's ``nn.functional.bilinear``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> x, y = snp.array([1.0, 2.0]), snp.array([3.0])
    >>> F.bilinear(x, y, snp.array([[[10.0], [1.0]]]))
    Array([36.], dtype=float32)
    """
    x, y = as_value(input1, "bilinear", "input1"), as_value(input2, "bilinear", "input2")
    w = as_value(weight, "bilinear", "weight")
    if (
        w.ndim != 3
        or not x.ndim
        or x.shape[:-1] != y.shape[:-1]
        or (x.shape[-1], y.shape[-1]) != w.shape[1:]
    ):
        raise ValueError(
            f"bilinear: expected input1 (..., inputs1), input2 (..., inputs2) and weight (outputs, "
            f"inputs1, inputs2), got {x.type}, {y.type} and {w.type}"
        )
    middle = tensordot(x, w, ((x.ndim - 1,), (1,)))  # (..., outputs, inputs2)
    out = squeeze(matmul(middle, expand_dims(y, (y.ndim,))), (y.ndim,))
    return out if bias is None else out + of_rank(as_value(bias, "bilinear", "bias"), out.ndim)
