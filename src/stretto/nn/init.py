"""``stretto.nn.init``: initial values of parameters, under PyTorch's names.

Names, meanings and defaults are those of ``torch.nn.init`` without the underscore: arrays never
change, so each takes a shape and returns an array. Those that draw take a key first; None draws
from the ambient stream (``random.streams``). ``dtype`` is the default float unless given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stretto import random
from stretto._engine.core.functions import described, described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import exports
from stretto._engine.core.types import scalar_dtype
from stretto._engine.core.typing import Array, DTypeLike, Key
from stretto._engine.ops import extrema
from stretto._engine.ops.comparison import full, full_like, lt, where
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.reducing.reduce import widened
from stretto._engine.ops.sort import argsort
from stretto.numpy.dtypes import as_dtype
from stretto.random import distributions
from stretto.random.draw_arguments import round_draw, wide
from stretto.random.keys import split as split_key
from stretto.random.streams import next_key

__all__ = ["calculate_gain", "constant", "dirac", "eye", "kaiming_normal", "kaiming_uniform",
           "normal", "ones", "orthogonal", "sparse", "trunc_normal", "uniform", "xavier_normal",
           "xavier_uniform", "zeros"]  # fmt: skip

_initial = described(
    {
        "key": "the key to draw from; None for the ambient stream's next one.",
        "shape": "the shape of the array.",
        "dtype": "the dtype, by default the default float.",
    },
    "The array.",
)
"""Complete the docstring of a function of initial values."""


_GAINS = {
    "linear": 1.0,
    "conv1d": 1.0,
    "conv2d": 1.0,
    "conv3d": 1.0,
    "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0,
    "conv_transpose3d": 1.0,
    "sigmoid": 1.0,
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "selu": 3 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Give the factor that keeps the variance of what goes through a nonlinearity.

    Args:
        nonlinearity: its name, such as ``"relu"``, ``"tanh"`` or ``"leaky_relu"``.
        param: the negative slope of ``leaky_relu``, 0.01 by default.

    Returns:
        The factor.

    Raises:
        ValueError: the name is not known.

    As PyTorch's ``nn.init.calculate_gain``.

    >>> from stretto import nn
    >>> round(nn.init.calculate_gain("relu"), 4)
    1.4142
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else float(param)
        return math.sqrt(2 / (1 + slope * slope))
    if nonlinearity not in _GAINS:
        raise ValueError(
            f"calculate_gain: nonlinearity must be one of {', '.join(_GAINS)}, leaky_relu; got "
            f"{nonlinearity!r}"
        )
    return _GAINS[nonlinearity]


def fans_of(shape: Sequence[int], caller: str) -> tuple[int, int]:
    """Return how many inputs an output has and how many outputs an input, by a weight's shape."""
    if len(shape) < 2:
        raise ValueError(
            f"{caller}: shape must be (outputs, inputs, ...), two axes at least, got {tuple(shape)}"
        )
    receptive = math.prod(shape[2:])
    return shape[1] * receptive, shape[0] * receptive


def fan_of(shape: Sequence[int], mode: str, caller: str) -> int:
    """Return the fan that ``mode`` names."""
    fan_in, fan_out = fans_of(shape, caller)
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"{caller}: mode must be 'fan_in' or 'fan_out', got {mode!r}")
    return fan_in if mode == "fan_in" else fan_out


def _key(key: Key | None, caller: str) -> Array:
    return next_key(f"init.{caller}") if key is None else key


def _dtype(dtype: DTypeLike | None) -> np.dtype:
    return scalar_dtype(float) if dtype is None else as_dtype(dtype)


# Distributions


@_initial
def uniform(
    key: Key | None,
    shape: Sequence[int],
    a: float = 0.0,
    b: float = 1.0,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draw numbers equally likely in [a, b).

    Args:
        a: the least number.
        b: the bound above.

    As PyTorch's ``nn.init.uniform_``.

    >>> import stretto as st
    >>> st.nn.init.uniform(st.random.PRNGKey(0), (2, 3)).shape
    (2, 3)
    """
    return distributions.uniform(_key(key, "uniform"), shape, dtype, a, b)


@_initial
def normal(
    key: Key | None,
    shape: Sequence[int],
    mean: float = 0.0,
    std: float = 1.0,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draw numbers from the normal distribution.

    Args:
        mean: the mean.
        std: the standard deviation.

    As PyTorch's ``nn.init.normal_``.

    >>> import stretto as st
    >>> st.nn.init.normal(st.random.PRNGKey(0), (2, 3), std=0.02).shape
    (2, 3)
    """
    target = _dtype(dtype)
    draw = distributions.normal(_key(key, "normal"), shape, wide(target))
    return round_draw(draw * std + mean, target)


@_initial
def trunc_normal(
    key: Key | None,
    shape: Sequence[int],
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draw numbers from the normal distribution, given that they lie in [a, b].

    Args:
        mean: the mean before the cut.
        std: the standard deviation before the cut.
        a: the lower limit.
        b: the upper limit.

    As PyTorch's ``nn.init.trunc_normal_``.

    >>> import stretto as st
    >>> x = st.nn.init.trunc_normal(st.random.PRNGKey(0), (100,), std=5.0)
    >>> bool((abs(x) <= 2).all())
    True
    """
    low, high = (a - mean) / std, (b - mean) / std
    target = _dtype(dtype)
    draw = random.truncated_normal(_key(key, "trunc_normal"), low, high, shape, wide(target))
    # Rounding may exceed the limits, which belong to the interval.
    least, most = np.asarray(a).astype(target), np.asarray(b).astype(target)
    x = round_draw(draw * std + mean, target)
    return extrema.clamp(full_like(x, least), x, full_like(x, most))


@_initial
def kaiming_uniform(
    key: Key | None,
    shape: Sequence[int],
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    dtype: DTypeLike | None = None,
) -> Array:
    """Draw uniform numbers of variance gain² / fan: within ±gain √(3 / fan).

    Args:
        shape: the shape, (outputs, inputs, ...), of two axes or more.
        a: the negative slope of the rectifier after the layer, for ``"leaky_relu"``.
        mode: ``"fan_in"`` (inputs of an output) or ``"fan_out"`` (outputs of an input).
        nonlinearity: what follows the layer, as for ``calculate_gain``.

    Raises:
        ValueError: ``mode`` or ``nonlinearity`` is unknown, or ``shape`` has fewer than two
            axes.

    As PyTorch's ``nn.init.kaiming_uniform_``. Source: He et al., Delving Deep into Rectifiers,
    2015.

    >>> import stretto as st
    >>> x = st.nn.init.kaiming_uniform(st.random.PRNGKey(0), (4, 6))
    >>> bool((abs(x) <= 1).all())
    True
    """
    caller = "kaiming_uniform"
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3 / max(fan_of(shape, mode, caller), 1))
    return uniform(_key(key, caller), shape, -bound, bound, dtype)


@described_like(kaiming_uniform)
def kaiming_normal(
    key: Key | None,
    shape: Sequence[int],
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    dtype: DTypeLike | None = None,
) -> Array:
    """Draw normal numbers of variance gain² / fan.

    As PyTorch's ``nn.init.kaiming_normal_``. Source: He et al., Delving Deep into Rectifiers, 2015.

    >>> import stretto as st
    >>> st.nn.init.kaiming_normal(st.random.PRNGKey(0), (4, 6)).shape
    (4, 6)
    """
    caller = "kaiming_normal"
    std = calculate_gain(nonlinearity, a) / math.sqrt(max(fan_of(shape, mode, caller), 1))
    return normal(_key(key, caller), shape, 0.0, std, dtype)


@_initial
def xavier_uniform(
    key: Key | None, shape: Sequence[int], gain: float = 1.0, dtype: DTypeLike | None = None
) -> Array:
    """Draw uniform numbers of variance 2 gain² / (inputs + outputs).

    Args:
        shape: the shape, (outputs, inputs, ...), of two axes or more.
        gain: a factor, as ``calculate_gain`` gives.

    Raises:
        ValueError: ``shape`` has fewer than two axes.

    As PyTorch's ``nn.init.xavier_uniform_``. Source: Glorot and Bengio, Understanding the
    Difficulty of Training Deep Feedforward Neural Networks, 2010.

    >>> import stretto as st
    >>> x = st.nn.init.xavier_uniform(st.random.PRNGKey(0), (2, 4))
    >>> bool((abs(x) <= 1).all())
    True
    """
    bound = gain * math.sqrt(6 / max(sum(fans_of(shape, "xavier_uniform")), 1))
    return uniform(_key(key, "xavier_uniform"), shape, -bound, bound, dtype)


@described_like(xavier_uniform)
def xavier_normal(
    key: Key | None, shape: Sequence[int], gain: float = 1.0, dtype: DTypeLike | None = None
) -> Array:
    """Draw normal numbers of variance 2 gain² / (inputs + outputs).

    As PyTorch's ``nn.init.xavier_normal_``. Source: Glorot and Bengio, Understanding the Difficulty
    of Training Deep Feedforward Neural Networks, 2010.

    >>> import stretto as st
    >>> st.nn.init.xavier_normal(st.random.PRNGKey(0), (2, 4)).shape
    (2, 4)
    """
    std = gain * math.sqrt(2 / max(sum(fans_of(shape, "xavier_normal")), 1))
    return normal(_key(key, "xavier_normal"), shape, 0.0, std, dtype)


@_initial
def orthogonal(
    key: Key | None, shape: Sequence[int], gain: float = 1.0, dtype: DTypeLike | None = None
) -> Array:
    """Draw a matrix with orthonormal rows or columns, whichever are fewer, times ``gain``.

    It is uniform among such matrices. Axes after the first count as one.

    Args:
        shape: the shape, (outputs, inputs, ...), of two axes or more.
        gain: a factor.

    Raises:
        ValueError: ``shape`` has fewer than two axes.

    As PyTorch's ``nn.init.orthogonal_``. Source: Saxe et al., Exact Solutions to the Nonlinear
    Dynamics of Learning in Deep Linear Neural Networks, 2013.

    >>> import stretto as st
    >>> q = st.nn.init.orthogonal(st.random.PRNGKey(0), (2, 3))
    >>> abs((q @ q.T).round(5))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    fans_of(shape, "orthogonal")
    target = _dtype(dtype)
    rows, columns = shape[0], math.prod(shape[1:])
    draw = random.orthogonal(_key(key, "orthogonal"), rows, (), widened(target), columns)
    return convert(reshape(draw * gain, tuple(shape)), target)


@_initial
def sparse(
    key: Key | None,
    shape: Sequence[int],
    sparsity: float,
    std: float = 0.01,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draw a matrix of normal numbers, with a fraction of zeros in each column.

    Args:
        shape: the shape, (outputs, inputs).
        sparsity: the fraction of zeros.
        std: the standard deviation of the others.

    Raises:
        ValueError: ``shape`` does not have two axes.

    As PyTorch's ``nn.init.sparse_``. Source: Martens, Deep Learning via Hessian-Free Optimization,
    2010.

    >>> import stretto as st
    >>> x = st.nn.init.sparse(st.random.PRNGKey(0), (10, 3), sparsity=0.25)
    >>> (x == 0).sum(0)
    Array([3, 3, 3], dtype=int32)
    """
    _matrix("sparse", shape)
    order_key, value_key = split_key(_key(key, "sparse"))
    zeros = math.ceil(sparsity * shape[0])
    order = argsort(distributions.uniform(order_key, shape), 0)
    draw = normal(value_key, shape, 0.0, std, dtype)
    return where(lt(argsort(order, 0), zeros), full((), 0, draw.dtype), draw)


# Without chance


def _matrix(caller: str, shape: Sequence[int]) -> None:
    if len(shape) != 2:
        raise ValueError(f"{caller}: shape must be (outputs, inputs), got {tuple(shape)}")


@_initial
def constant(shape: Sequence[int], val: float, dtype: DTypeLike | None = None) -> Array:
    """Make an array of the same number everywhere.

    Args:
        val: the number.

    As PyTorch's ``nn.init.constant_``.

    >>> from stretto import nn
    >>> nn.init.constant((2,), 0.5)
    Array([0.5, 0.5], dtype=float32)
    """
    return full(tuple(shape), val, _dtype(dtype))


@_initial
def zeros(shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
    """Make an array of zeros.

    As PyTorch's ``nn.init.zeros_``.

    >>> from stretto import nn
    >>> nn.init.zeros((2,))
    Array([0., 0.], dtype=float32)
    """
    return constant(shape, 0, dtype)


@_initial
def ones(shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
    """Make an array of ones.

    As PyTorch's ``nn.init.ones_``.

    >>> from stretto import nn
    >>> nn.init.ones((2,))
    Array([1., 1.], dtype=float32)
    """
    return constant(shape, 1, dtype)


@described_like(sparse)
def eye(shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
    """Make a matrix with ones on the diagonal, which passes on as many inputs as it can.

    As PyTorch's ``nn.init.eye_``.

    >>> from stretto import nn
    >>> nn.init.eye((2, 3))
    Array([[1., 0., 0.],
           [0., 1., 0.]], dtype=float32)
    """
    _matrix("eye", shape)
    rows, columns = shape
    return as_value(np.eye(rows, columns).astype(_dtype(dtype)))


@_initial
def dirac(shape: Sequence[int], groups: int = 1, dtype: DTypeLike | None = None) -> Array:
    """Make a convolution's kernel that passes on as many input channels as it can, in each group.

    Args:
        shape: the shape, (outputs, inputs, and one to three spatial axes).
        groups: into how many groups the outputs are divided.

    Raises:
        ValueError: ``shape`` has another rank, or the groups do not divide the outputs.

    As PyTorch's ``nn.init.dirac_``.

    >>> from stretto import nn
    >>> nn.init.dirac((2, 2, 3))
    Array([[[0., 1., 0.],
            [0., 0., 0.]],
    <BLANKLINE>
           [[0., 0., 0.],
            [0., 1., 0.]]], dtype=float32)
    """
    if len(shape) not in (3, 4, 5) or shape[0] % groups:
        raise ValueError(
            f"dirac: shape must be (outputs, inputs, and 1 to 3 spatial axes), with outputs that "
            f"{groups} groups divide; got {tuple(shape)}"
        )
    out = np.zeros(tuple(shape))
    outputs, inputs, *spatial = shape
    middle = tuple(n // 2 for n in spatial)
    each = outputs // groups
    for g in range(groups):
        for i in range(min(each, inputs)):
            out[(g * each + i, i, *middle)] = 1
    return as_value(out.astype(_dtype(dtype)))


exports(__name__)


def __dir__() -> list[str]:
    return __all__
