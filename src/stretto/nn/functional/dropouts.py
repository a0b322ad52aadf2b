"""Dropout: elements, or whole channels, that are set to 0 at random.

Names and arguments are those of PyTorch's ``torch.nn.functional``, with ``key``: each function
draws from it, or else from the ambient stream.
"""

from __future__ import annotations

import math

import numpy as np

from stretto import random
from stretto._engine.core.functions import described, described_like
from stretto._engine.core.typing import Array, ArrayLike, Key
from stretto._engine.ops.broadcast import broadcast_in_dim
from stretto._engine.ops.comparison import full_like, ge, select, zeros_like
from stretto.nn.functional.checks import as_float, key_or_next, probability

_drop = described(
    {
        "p": "the probability, a Python number.",
        "training": "whether anything is dropped; otherwise the input is returned.",
        "inplace": "ignored, as arrays never change.",
        "key": "the key to draw from; by default the ambient stream's next one.",
    },
    "The input with parts dropped; integers become floats.",
    raises="RuntimeError: there is no key to draw from.\n"
    "    TypeError: ``p`` is not a number.\n"
    "    ValueError: ``p`` is not from 0 to 1, or ``input`` has another rank.",
)
"""Complete the docstring of a kind of dropout."""

# The limit of selu for large negative arguments.
_SELU_FLOOR = -1.0507009873554804934193349852946 * 1.6732632423543772848170429916717


def _draw_mask(key: Key, p: float, shape: tuple[int, ...]) -> Array:
    """Return truth values that are False with probability ``p``, to 2**-32."""
    bits = random.bits(key, shape, np.uint32)
    return ge(bits, full_like(bits, min(round(p * 2**32), 2**32 - 1)))


def _apply(x: Array, p: float, keep: Array) -> Array:
    # E[out] = (1 - p) x / (1 - p) = x
    return select(keep, x * (1 / (1 - p)), zeros_like(x))


def _channels(x: Array, axes: int, caller: str) -> tuple[int, ...]:
    """Return how many axes of ``x`` come before those of space: (N, C) or (C,) of them."""
    if x.ndim not in (axes + 1, axes + 2):
        names = ", ".join("DHW"[3 - axes :]) if axes > 1 else "L"
        raise ValueError(
            f"{caller}: expected an input (N, C, {names}) or (C, {names}), of rank {axes + 2} or "
            f"{axes + 1}; got {x.type}"
        )
    return x.shape[: x.ndim - axes]


def _dropout(
    caller: str,
    input: ArrayLike,
    p: float,
    training: bool,
    key: Key | None,
    axes: int | None = None,
) -> Array:
    """Drop elements, or channels that have this many ``axes`` of space."""
    x, p = as_float(input, caller), probability(p, caller)
    shape = x.shape if axes is None else _channels(x, axes, caller)
    if not training or p == 0:
        return x
    if p == 1:
        return zeros_like(x)
    keep = _draw_mask(key_or_next(key, caller), p, shape)
    return _apply(x, p, broadcast_in_dim(keep, x.shape, tuple(range(len(shape)))))


@_drop
def dropout(
    input: ArrayLike,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    key: Key | None = None,
) -> Array:
    """Set each element to 0 with probability ``p``, and divide the others by ``1 - p``.

    Args:
        input: an array of any shape.

    Raises:
        RuntimeError: there is no key to draw from.
        TypeError: ``p`` is not a number.
        ValueError: ``p`` is not from 0 to 1.

    As PyTorch's ``nn.functional.dropout``. Source: Srivastava et al., Dropout: A Simple Way to
    Prevent Neural Networks from Overfitting, 2014.

    >>> import stretto as st
    >>> st.nn.functional.dropout(st.numpy.ones(4), key=st.random.PRNGKey(1))
    Array([2., 0., 2., 0.], dtype=float32)
    """
    return _dropout("dropout", input, p, training, key)


@_drop
def dropout1d(
    input: ArrayLike,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    key: Key | None = None,
) -> Array:
    """Drop whole channels of signals.

    Args:
        input: (N, C, L) or (C, L).

    As PyTorch's ``nn.functional.dropout1d``. Source: Tompson et al., Efficient Object Localization
    Using Convolutional Networks, 2015.

    >>> import stretto as st
    >>> st.nn.functional.dropout1d(st.numpy.ones((4, 2)), key=st.random.PRNGKey(1))
    Array([[2., 2.],
           [0., 0.],
           [2., 2.],
           [0., 0.]], dtype=float32)
    """
    return _dropout("dropout1d", input, p, training, key, 1)


@_drop
def dropout2d(
    input: ArrayLike,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    key: Key | None = None,
) -> Array:
    """Drop whole channels of images.

    Args:
        input: (N, C, H, W) or (C, H, W).

    As PyTorch's ``nn.functional.dropout2d``.

    >>> import stretto as st
    >>> st.nn.functional.dropout2d(st.numpy.ones((2, 4, 4)), key=st.random.PRNGKey(0)).shape
    (2, 4, 4)
    """
    return _dropout("dropout2d", input, p, training, key, 2)


@_drop
def dropout3d(
    input: ArrayLike,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    key: Key | None = None,
) -> Array:
    """Drop whole channels of volumes.

    Args:
        input: (N, C, D, H, W) or (C, D, H, W).

    As PyTorch's ``nn.functional.dropout3d``.

    >>> import stretto as st
    >>> st.nn.functional.dropout3d(st.numpy.ones((2, 2, 2, 2)), key=st.random.PRNGKey(0)).shape
    (2, 2, 2, 2)
    """
    return _dropout("dropout3d", input, p, training, key, 3)


def _alpha(
    caller: str, input: ArrayLike, p: float, training: bool, key: Key | None, channels: bool
) -> Array:
    x, p = as_float(input, caller), probability(p, caller)
    if channels and x.ndim < 2:
        raise ValueError(
            f"{caller}: expected an input (N, C, ...), of rank 2 or more; got {x.type}"
        )
    if not training or p == 0:
        return x
    if p == 1:
        return zeros_like(x)
    shape = x.shape[:2] if channels else x.shape
    keep = broadcast_in_dim(
        _draw_mask(key_or_next(key, caller), p, shape), x.shape, tuple(range(len(shape)))
    )
    # With mean 0 and variance 1 again: a (x or floor) + b, a² (1 - p) (1 + p floor²) = 1.
    a = 1 / math.sqrt((1 - p) * (1 + p * _SELU_FLOOR**2))
    return select(keep, x, full_like(x, _SELU_FLOOR)) * a + (-a * p * _SELU_FLOOR)


@described_like(dropout)
def alpha_dropout(
    input: ArrayLike,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    key: Key | None = None,
) -> Array:
    """Set each element to ``selu``'s lower limit with probability ``p``; keep mean and variance.

    As PyTorch's ``nn.functional.alpha_dropout``. Source: Klambauer et al., Self-Normalizing Neural
    Networks, 2017.

    >>> import stretto as st
    >>> key, x_key = st.random.split(st.random.PRNGKey(0))
    >>> x = st.random.normal(x_key, (100_000,))
    >>> out = st.nn.functional.alpha_dropout(x, 0.3, training=True, key=key)
    >>> abs(float(out.mean())) < 0.02, abs(float(out.std()) - 1) < 0.02
    (True, True)
    """
    return _alpha("alpha_dropout", input, p, training, key, False)


@_drop
def feature_alpha_dropout(
    input: ArrayLike,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    key: Key | None = None,
) -> Array:
    """Apply ``alpha_dropout`` to whole channels.

    Args:
        input: (N, C, ...).

    As PyTorch's ``nn.functional.feature_alpha_dropout``.

    >>> import stretto as st
    >>> st.nn.functional.feature_alpha_dropout(st.numpy.ones((2, 3, 4))).shape
    (2, 3, 4)
    """
    return _alpha("feature_alpha_dropout", input, p, training, key, True)
