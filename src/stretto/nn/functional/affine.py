"""Linear and bilinear maps, and rows of a table by number: embeddings, and bags of them.

Names, meanings and defaults are those of ``torch.nn.functional``, without the options that change
the table in place (``max_norm``) or its gradient's form (``sparse``).
"""

from __future__ import annotations

import math

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import ArrayType, kind_of
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.higher_order.stop_gradient import stop_gradient
from stretto._engine.ops.broadcast import of_rank
from stretto._engine.ops.comparison import full_like, ne, where, zeros_like
from stretto._engine.ops.contract import dot_general, matmul, tensordot
from stretto._engine.ops.convert import convert
from stretto._engine.ops.extrema import maximum
from stretto._engine.ops.layout import expand_dims, squeeze
from stretto.numpy.extrema import max as max_
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.taking import take


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


def _table(caller: str, input: ArrayLike, weight: ArrayLike) -> tuple[Array, Array]:
    ids, table = as_value(input, caller, "input"), as_value(weight, caller, "weight")
    if kind_of(ids.dtype) not in ("int", "uint"):
        raise TypeError(f"{caller}: input must be integers, the numbers of rows; got {ids.type}")
    if table.ndim != 2:
        raise ValueError(f"{caller}: weight must be (rows, features), got {table.type}")
    return ids, table


def _padding(caller: str, padding_idx: int, weight: ArrayType) -> int:
    rows = weight.shape[0]
    if not -rows <= padding_idx < rows:
        raise ValueError(f"{caller}: padding_idx must be within {rows} rows, got {padding_idx}")
    return padding_idx % rows


def embedding(input: ArrayLike, weight: ArrayLike, padding_idx: int | None = None) -> Array:
    """Look up rows of a table by number.

    Args:
        input: integers, of any shape; a number beyond the rows gives NaN, a negative one counts
            from the end.
        weight: the table (rows, features).
        padding_idx: a row that gets no gradient.

    Returns:
        The rows, of the shape of ``input`` and features.

    Raises:
        TypeError: ``input`` is not of integers.
        ValueError: ``weight`` does not have two axes, or ``padding_idx`` is not one of its rows.

    As PyTorch's ``nn.functional.embedding``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.embedding(snp.array([1, 0, 1]), snp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([[3., 4.],
           [1., 2.],
           [3., 4.]], dtype=float32)
    """
    ids, table = _table("embedding", input, weight)
    out = take(table, ids, 0, mode="fill")
    if padding_idx is None:
        return out
    trained = expand_dims(ne(ids, _padding("embedding", padding_idx, table.type)), (ids.ndim,))
    return where(trained, out, stop_gradient(out))


def embedding_bag(
    input: ArrayLike,
    weight: ArrayLike,
    *,
    mode: str = "mean",
    per_sample_weights: ArrayLike | None = None,
    padding_idx: int | None = None,
) -> Array:
    """Look up rows of a table, and take the mean, sum or maximum of those of each bag.

    PyTorch's ``offsets``, for bags of differing lengths, are not accepted, as shapes would depend
    on values. Fill up bags with ``padding_idx`` instead.

    Args:
        input: integers (bags, length).
        weight: the table (rows, features).
        mode: ``"mean"``, ``"sum"`` or ``"max"``.
        per_sample_weights: factors of the rows, of the shape of ``input``, in mode ``"sum"``.
        padding_idx: a row to leave out; a bag of nothing else gives zeros.

    Returns:
        (bags, features).

    Raises:
        TypeError: ``input`` is not of integers.
        ValueError: shapes do not fit, ``mode`` is unknown, or ``padding_idx`` is not a row.

    As PyTorch's ``nn.functional.embedding_bag``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.embedding_bag(snp.array([[0, 1], [1, 1]]), snp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([[2., 3.],
           [3., 4.]], dtype=float32)
    """
    caller = "embedding_bag"
    ids, table = _table(caller, input, weight)
    if mode not in ("mean", "sum", "max"):
        raise ValueError(f"{caller}: mode must be 'mean', 'sum' or 'max', got {mode!r}")
    if ids.ndim != 2:
        raise ValueError(f"{caller}: input must be (bags, length), got {ids.type}")
    if per_sample_weights is not None and mode != "sum":
        raise ValueError(f"{caller}: per_sample_weights are for mode 'sum', got mode {mode!r}")
    rows = take(table, ids, 0, mode="fill")
    if per_sample_weights is not None:
        factors = as_value(per_sample_weights, caller, "per_sample_weights")
        if factors.shape != ids.shape:
            raise ValueError(
                f"{caller}: per_sample_weights must have the shape of input {ids.type}, got "
                f"{factors.type}"
            )
        rows = rows * expand_dims(factors, (2,))
    counted, length = None, ids.shape[1]
    if padding_idx is not None:
        counted = expand_dims(ne(ids, _padding(caller, padding_idx, table.type)), (2,))
    if mode == "max":
        if counted is None:
            return max_(rows, 1) if length else sum_(rows, 1)
        out = max_(where(counted, rows, full_like(rows, -math.inf)), 1)
        return where(sum_(counted, 1) > 0, out, zeros_like(out))
    if counted is None:
        return sum_(rows, 1) / max(length, 1) if mode == "mean" else sum_(rows, 1)
    out = sum_(where(counted, rows, zeros_like(rows)), 1)
    count = convert(sum_(counted, 1), out.dtype)
    return out / maximum(count, full_like(count, 1)) if mode == "mean" else out
