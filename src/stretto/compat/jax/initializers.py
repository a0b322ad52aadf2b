"""``jax.nn.initializers``: initial values of parameters, under JAX's names.

Each returns, or is, a function of a key, a shape and a dtype. One axis of the shape is a weight's
inputs, another its outputs; ``stretto.nn.init`` has PyTorch's functions, whose shapes put the
outputs first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from stretto import random
from stretto._engine.core.integers import entries_of, sizes_of
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import exports
from stretto._engine.core.types import is_complex, kind_of, real_dtype, scalar_dtype
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, Shape, ShardingLike
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full
from stretto._engine.ops.complex_parts import complex_
from stretto._engine.ops.convert import convert
from stretto._engine.ops.exponential import log1p, sqrt
from stretto._engine.ops.layout import canonical_axis, laid_out, move_axis, reshape
from stretto._engine.ops.trigonometric import cos, sin
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.updating import At
from stretto.random import distributions, parametric
from stretto.random.draw_arguments import round_draw, wide
from stretto.random.keys import split

__all__ = ["Initializer", "constant", "delta_orthogonal", "glorot_normal",
           "glorot_uniform", "he_normal", "he_uniform", "kaiming_normal",
           "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones",
           "orthogonal", "truncated_normal", "uniform", "variance_scaling",
           "xavier_normal", "xavier_uniform", "zeros"]  # fmt: skip


class Initializer(Protocol):
    """A function of a key, a shape and a dtype, which gives an array."""

    def __call__(
        self,
        key: Key,
        shape: Sequence[int],
        dtype: DTypeLike | None = None,
        out_sharding: ShardingLike | None = None,
    ) -> Array:
        """Make an array.

        Args:
            key: the key to draw from.
            shape: the shape of the array.
            dtype: the dtype; by default the one that the initializer was made with.
            out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec``
                over the mesh in use.

        Returns:
            The array.
        """
        ...


def dtype_or(dtype: DTypeLike | None, default: DTypeLike | None = None) -> np.dtype:
    """Return the dtype of a call, or the initializer's; without either the default float."""
    choice = default if dtype is None else dtype
    return scalar_dtype(float) if choice is None else as_dtype(choice)


def initializer(
    name: str, default: DTypeLike | None, draw: Callable[[Key, Shape, np.dtype], Array]
) -> Initializer:
    """Return the initializer that draws floating or complex arrays, by default of this dtype."""
    caller = f"initializers.{name}"

    def init(
        key: Key,
        shape: Sequence[int],
        dtype: DTypeLike | None = None,
        out_sharding: ShardingLike | None = None,
    ) -> Array:
        if out_sharding is not None:
            return laid_out(init(key, shape, dtype), out_sharding, caller)
        target = dtype_or(dtype, default)
        if kind_of(target) not in ("float", "complex"):
            raise ValueError(f"{caller}: dtype must be floating or complex, got {target.name}")
        return round_draw(draw(key, sizes_of(shape, caller), wide(target)), target)

    return init


def multiply(x: Array, factor: float | Array) -> Array:
    """Return the product, in the dtype of ``x``."""
    return x * convert(as_value(factor), x.dtype)


# Without chance


def zeros(
    key: Key,
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Make an array of zeros."""
    if out_sharding is not None:
        return laid_out(zeros(key, shape, dtype), out_sharding, "initializers.zeros")
    return full(sizes_of(shape, "initializers.zeros"), 0, dtype_or(dtype))


def ones(
    key: Key,
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Make an array of ones."""
    if out_sharding is not None:
        return laid_out(ones(key, shape, dtype), out_sharding, "initializers.ones")
    return full(sizes_of(shape, "initializers.ones"), 1, dtype_or(dtype))


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """Give the same number everywhere, or a broadcast array."""
    default = dtype

    def init(
        key: Key,
        shape: Sequence[int],
        dtype: DTypeLike | None = None,
        out_sharding: ShardingLike | None = None,
    ) -> Array:
        if out_sharding is not None:
            return laid_out(init(key, shape, dtype), out_sharding, "initializers.constant")
        target = dtype_or(dtype, default)
        return broadcast_to(
            convert(as_value(value, "initializers.constant", "value"), target), tuple(shape)
        )

    return init


# Of a fixed spread


def uniform(scale: float = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Draw numbers equally likely in [0, ``scale``)."""

    def draw(key: Key, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        return multiply(distributions.uniform(key, shape, dtype), scale)

    return initializer("uniform", dtype, draw)


def normal(stddev: float = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Draw numbers from the normal distribution."""

    def draw(key: Key, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        return multiply(distributions.normal(key, shape, dtype), stddev)

    return initializer("normal", dtype, draw)


def truncated_normal(
    stddev: float = 1e-2, dtype: DTypeLike | None = None, lower: float = -2.0, upper: float = 2.0
) -> Initializer:
    """Draw numbers from the normal distribution cut off at two limits, times ``stddev``."""

    def draw(key: Key, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        return multiply(random.truncated_normal(key, lower, upper, shape, dtype), stddev)

    return initializer("truncated_normal", dtype, draw)


# Orthogonal


def orthogonal(
    scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Draw orthonormal columns or rows, whichever are fewer, times ``scale``.

    Source: Saxe et al., Exact Solutions to the Nonlinear
    Dynamics of Learning in Deep Linear Neural Networks, 2013.
    """

    def draw(key: Key, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        if len(shape) < 2:
            raise ValueError(
                f"initializers.orthogonal: expected a shape of two axes or more, got {shape}"
            )
        axis = canonical_axis(column_axis, len(shape), "initializers.orthogonal")
        columns = shape[axis]
        others = shape[:axis] + shape[axis + 1 :]
        q = parametric.orthogonal(key, math.prod(others), (), dtype, columns)
        return multiply(move_axis(reshape(q, (*others, columns)), len(others), axis), scale)

    return initializer("orthogonal", dtype, draw)


def delta_orthogonal(
    scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Draw a convolution's kernel that is an orthogonal matrix in the middle, and zero elsewhere.

    The shape has one to three spatial axes, then inputs and outputs, with at least as many outputs
    as inputs.

    Source: Xiao et al., Dynamical Isometry and a Mean
    Field Theory of CNNs, 2018.
    """

    def draw(key: Key, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        if len(shape) not in (3, 4, 5) or shape[-1] < shape[-2]:
            raise ValueError(
                f"initializers.delta_orthogonal: expected one to three spatial axes, inputs, and "
                f"outputs no fewer than these in shape; got {shape}"
            )
        q = orthogonal(scale, column_axis, dtype)(key, shape[-2:])
        middle = tuple((n - 1) // 2 for n in shape[:-2])
        return At(full(shape, 0, dtype))[middle].set(q)

    return initializer("delta_orthogonal", dtype, draw)


# Of a spread that depends on the shape

Axes = int | Sequence[int]

# The standard deviation of the normal distribution cut off at ±2, and of the complex one at 2.
_CUT = 0.87962566103423978
_COMPLEX_CUT = 0.95311164380491208


def _size(shape: tuple[int, ...], axes: Axes, caller: str) -> int:
    counted = [canonical_axis(axis, len(shape), caller) for axis in entries_of(axes)]
    return math.prod([shape[axis] for axis in counted])


def _fans(
    shape: tuple[int, ...], in_axis: Axes, out_axis: Axes, batch_axis: Axes
) -> tuple[float, float]:
    """Return how many inputs an output has, and how many outputs an input."""
    caller = "initializers.variance_scaling"
    if len(shape) <= 1:
        raise ValueError(
            f"{caller}: expected a shape of two axes or more, the inputs and the outputs; got "
            f"{shape}"
        )
    inputs, outputs, batch = (
        _size(shape, axes, caller) for axes in (in_axis, out_axis, batch_axis)
    )
    receptive = math.prod(shape) / max(inputs * outputs * batch, 1)
    return inputs * receptive, outputs * receptive


def _complex_disk(
    key: Key, shape: tuple[int, ...], dtype: np.dtype, radius: Callable[[Array], Array]
) -> Array:
    """Draw complex numbers of any angle, at a distance from 0 of a uniform number's radius."""
    first, second = split(key)
    narrow = real_dtype(dtype)
    r = radius(distributions.uniform(first, shape, narrow))
    angle = distributions.uniform(second, shape, narrow) * (2 * math.pi)
    return complex_(r * cos(angle), r * sin(angle))


def _cut_radius(u: Array) -> Array:
    # P(distance < r) = 1 - exp(-r²) of the complex normal distribution, which is cut off at 2
    return sqrt(-log1p(u * -(1 - math.exp(-4))))


def _draw(key: Key, shape: tuple[int, ...], dtype: np.dtype, kind: str, variance: float) -> Array:
    """Draw numbers of this distribution, with mean 0 and this variance."""
    spread = math.sqrt(variance)
    if kind == "normal":
        return multiply(distributions.normal(key, shape, dtype), spread)
    if kind == "uniform":
        if is_complex(dtype):
            # in the disk of radius 1 the variance is 1 / 2
            return multiply(_complex_disk(key, shape, dtype, sqrt), spread * math.sqrt(2))
        return multiply(distributions.uniform(key, shape, dtype, -1), math.sqrt(3 * variance))
    if is_complex(dtype):
        return multiply(_complex_disk(key, shape, dtype, _cut_radius), spread / _COMPLEX_CUT)
    return multiply(random.truncated_normal(key, -2, 2, shape, dtype), spread / _CUT)


def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Draw numbers of variance ``scale`` / n, where ``mode`` says what n is.

    Axes that are neither inputs, outputs nor batch form a receptive field, which counts for both.

    Args:
        scale: the factor of the variance.
        mode: ``"fan_in"`` (the inputs of an output), ``"fan_out"`` (the outputs of an input),
            ``"fan_avg"`` (their mean) or ``"fan_geo_avg"`` (their geometric mean).
        distribution: ``"truncated_normal"`` (cut off at twice its deviation), ``"normal"`` or
            ``"uniform"``.
        in_axis: the axes of the inputs.
        out_axis: the axes of the outputs.
        batch_axis: axes that are neither, along which weights do not share inputs or outputs.
        dtype: the dtype where a call gives none, by default the default float.

    Returns:
        A function of a key, a shape and a dtype.

    Raises:
        ValueError: ``mode`` or ``distribution`` is unknown; on the call, the shape has fewer
            than two axes, or the dtype is neither floating nor complex.

    As ``jax.nn.initializers.variance_scaling``.

    >>> import stretto as st
    >>> from stretto.compat.jax import initializers
    >>> init = initializers.variance_scaling(3.0, "fan_in", "uniform")
    >>> x = init(st.random.key(0), (4, 2))
    >>> bool((abs(x) <= 1.5).all())
    True
    """
    modes = {
        "fan_in": lambda i, o: i,
        "fan_out": lambda i, o: o,
        "fan_avg": lambda i, o: (i + o) / 2,
        "fan_geo_avg": lambda i, o: math.sqrt(i * o),
    }
    kinds = ("truncated_normal", "normal", "uniform")
    for name, got, known in (("mode", mode, modes), ("distribution", distribution, kinds)):
        if got not in known:
            raise ValueError(
                f"variance_scaling: {name} must be one of {', '.join(known)}; got {got!r}"
            )

    def draw(key: Key, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        count = modes[mode](*_fans(shape, in_axis, out_axis, batch_axis))
        return _draw(key, shape, dtype, distribution, scale / max(count, 1e-9))

    return initializer("variance_scaling", dtype, draw)


def _make_named(
    name: str, scale: float, mode: str, distribution: str, doc: str, source: str
) -> Callable[..., Initializer]:
    def make(
        in_axis: Axes = -2,
        out_axis: Axes = -1,
        batch_axis: Axes = (),
        dtype: DTypeLike | None = None,
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"Draw {doc}\n\nSource: {source}"
    return make


_CUT_OFF = "cut-off normal numbers of variance"
_GLOROT = "Glorot and Bengio, 2010."
_HE = "He et al., 2015."
_LECUN = "LeCun et al., 1998."
_BOTH = "2 / (inputs + outputs)."
glorot_uniform = _make_named(
    "glorot_uniform", 1, "fan_avg", "uniform", f"uniform numbers of variance {_BOTH}", _GLOROT
)
glorot_normal = _make_named(
    "glorot_normal", 1, "fan_avg", "truncated_normal", f"{_CUT_OFF} {_BOTH}", _GLOROT
)
he_uniform = _make_named(
    "he_uniform", 2, "fan_in", "uniform", "uniform numbers of variance 2 / inputs.", _HE
)
he_normal = _make_named(
    "he_normal", 2, "fan_in", "truncated_normal", f"{_CUT_OFF} 2 / inputs.", _HE
)
lecun_uniform = _make_named(
    "lecun_uniform", 1, "fan_in", "uniform", "uniform numbers of variance 1 / inputs.", _LECUN
)
lecun_normal = _make_named(
    "lecun_normal", 1, "fan_in", "truncated_normal", f"{_CUT_OFF} 1 / inputs.", _LECUN
)
xavier_uniform = glorot_uniform
xavier_normal = glorot_normal
kaiming_uniform = he_uniform
kaiming_normal = he_normal


def __dir__() -> list[str]:
    return __all__


exports(__name__)
