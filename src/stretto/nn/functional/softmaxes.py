"""Softmax and its relatives.

Names and arguments are those of PyTorch's ``torch.nn.functional``; ``dim`` is required.
"""

from __future__ import annotations

import stretto.numpy as snp
from stretto import random
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key
from stretto._engine.higher_order.stop_gradient import stop_gradient
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import canonical_axis
from stretto.nn import functions
from stretto.nn.functional.arguments import as_float
from stretto.nn.functional.checks import key_or_next
from stretto.numpy.dtypes import as_dtype
from stretto.random.arguments import wide

__all__ = ["gumbel_softmax", "log_softmax", "softmax", "softmin"]


def _as(x: ArrayLike, dtype: DTypeLike | None, caller: str) -> Array:
    value = as_value(x, caller, "input")
    return value if dtype is None else convert(value, as_dtype(dtype))


def softmax(input: ArrayLike, dim: int, dtype: DTypeLike | None = None) -> Array:
    """Take ``exp(x) / sum(exp(x))`` along an axis, without overflow.

    Args:
        input: an array of any shape.
        dim: the axis.
        dtype: the dtype to convert to first; by default that of ``input``.

    Returns:
        The values, in the shape of ``input``.

    Raises:
        ValueError: ``dim`` is out of bounds.

    As PyTorch's ``nn.functional.softmax``.

    >>> import stretto as st
    >>> st.nn.functional.softmax(st.numpy.array([0.0, 1000.0]), dim=0)
    Array([0., 1.], dtype=float32)
    """
    return functions.softmax(_as(input, dtype, "softmax"), dim)


def softmin(input: ArrayLike, dim: int, dtype: DTypeLike | None = None) -> Array:
    """Take ``softmax(-x)`` along an axis.

    Args:
        input: an array of any shape.
        dim: the axis.
        dtype: the dtype to convert to first; by default that of ``input``.

    Returns:
        The values, in the shape of ``input``.

    Raises:
        ValueError: ``dim`` is out of bounds.

    As PyTorch's ``nn.functional.softmin``.

    >>> import stretto as st
    >>> st.nn.functional.softmin(st.numpy.array([0.0, 1000.0]), dim=0)
    Array([1., 0.], dtype=float32)
    """
    x = _as(input, dtype, "softmin")
    return functions.softmax(-x, canonical_axis(dim, x.ndim, "softmin"))


def log_softmax(input: ArrayLike, dim: int, dtype: DTypeLike | None = None) -> Array:
    """Take ``x - log(sum(exp(x)))`` along an axis, without overflow.

    Args:
        input: an array of any shape.
        dim: the axis.
        dtype: the dtype to convert to first; by default that of ``input``.

    Returns:
        The values, in the shape of ``input``.

    Raises:
        ValueError: ``dim`` is out of bounds.

    As PyTorch's ``nn.functional.log_softmax``.

    >>> import stretto as st
    >>> st.nn.functional.log_softmax(st.numpy.array([0.0, 0.0]), dim=0).round(3)
    Array([-0.693, -0.693], dtype=float32)
    """
    return functions.log_softmax(_as(input, dtype, "log_softmax"), dim)


def gumbel_softmax(
    logits: ArrayLike,
    tau: ArrayLike = 1.0,
    hard: bool = False,
    dim: int = -1,
    key: Key | None = None,
) -> Array:
    """Draw nearly one-hot vectors, differentiable with respect to the logits.

    Args:
        logits: an array of any shape.
        tau: the temperature: the smaller, the nearer.
        hard: whether the draw is one-hot; its derivative is that of the soft one.
        dim: the axis.
        key: the key to draw from; by default the ambient stream's next one.

    Returns:
        The vectors along ``dim``, in the shape of ``logits``.

    Raises:
        RuntimeError: there is no key to draw from.
        ValueError: ``dim`` is out of bounds.

    As PyTorch's ``nn.functional.gumbel_softmax``. Source: Jang et al., Categorical
    Reparameterization with Gumbel-Softmax, 2017.

    >>> import stretto as st
    >>> key = st.random.PRNGKey(0)
    >>> st.nn.functional.gumbel_softmax(st.numpy.array([0.0, 100.0]), hard=True, key=key)
    Array([0., 1.], dtype=float32)
    """
    x = as_float(logits, "gumbel_softmax", "logits")
    dim = canonical_axis(dim, x.ndim, "gumbel_softmax")
    noisy = x.astype(wide(x.dtype))
    noisy = noisy + random.gumbel(key_or_next(key, "gumbel_softmax"), x.shape, noisy.dtype)
    scores = noisy / tau
    soft = convert(functions.softmax(scores, dim), snp.result_type(x, tau))
    if not hard:
        return soft
    best = snp.argmax(scores, dim)
    one_hot = functions.one_hot(best, x.shape[dim], dtype=x.dtype, axis=dim)
    return one_hot + (soft - stop_gradient(soft))
