"""``stretto.nn.initializers``: how parameters begin, as ``jax.nn.initializers`` has it.

Each gives, or is, a function of a key, a shape and a dtype. An axis of the shape is the inputs of a
weight, another one the outputs; ``init`` has PyTorch's functions, whose shapes put the outputs
first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from stretto._engine.core.integers import sizes_of
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import is_complex, kind_of, real_dtype, scalar_dtype
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full
from stretto._engine.ops.complex_parts import complex_
from stretto._engine.ops.convert import convert
from stretto._engine.ops.exponential import log1p
from stretto._engine.ops.layout import canonical_axis, move_axis, reshape
from stretto._engine.ops.powers import sqrt
from stretto._engine.ops.sharding import refuse_sharding
from stretto._engine.ops.trigonometric import cos, sin
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.indexing import At
from stretto.random import distributions, matrices
from stretto.random.keys import split

__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]

Axes = int | Sequence[int]

# The standard deviation of the normal distribution cut off at ±2, and of the complex one at 2.
_CUT = 0.87962566103423978
_COMPLEX_CUT = 0.95311164380491208


class Initializer(Protocol):
    """A function of a key, a shape and a dtype, which gives an array."""

    def __call__(
        self,
        key: Key,
        shape: Sequence[int],
        dtype: DTypeLike | None = None,
        out_sharding: None = None,
    ) -> Array:
        """Make an array.

        Args:
            key: the key to draw from.
            shape: the shape of the array.
            dtype: the dtype; by default the one that the initialiser was made with.
            out_sharding: only None: the array lies whole on the one device.

        Returns:
            The array.
        """
        ...


def _dtype(dtype: Any, default: Any = None) -> np.dtype:
    wanted = default if dtype is None else dtype
    return scalar_dtype(float) if wanted is None else as_dtype(wanted)


def _inexact(caller: str, dtype: Any, default: Any) -> np.dtype:
    target = _dtype(dtype, default)
    if kind_of(target) not in ("float", "complex"):
        raise ValueError(f"{caller}: dtype must be floating or complex, got {target.name}")
    return target


# Without chance


def zeros(
    key: Key, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: None = None
) -> Array:
    """Make an array of zeros.

    Args:
        key: the key, which is not used.
        shape: the shape of the array.
        dtype: the dtype, by default the default float.
        out_sharding: only None: the array lies whole on the one device.

    Returns:
        The array.

    Raises:
        NotImplementedError: ``out_sharding`` is not None.

    As ``jax.nn.initializers.zeros``.

    >>> import stretto as st
    >>> st.nn.initializers.zeros(st.random.key(0), (2,))
    Array([0., 0.], dtype=float32)
    """
    refuse_sharding("initializers.zeros", out_sharding=out_sharding)
    return full(tuple(shape), 0, _dtype(dtype))


def ones(
    key: Key, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: None = None
) -> Array:
    """Make an array of ones.

    Args:
        key: the key, which is not used.
        shape: the shape of the array.
        dtype: the dtype, by default the default float.
        out_sharding: only None: the array lies whole on the one device.

    Returns:
        The array.

    Raises:
        NotImplementedError: ``out_sharding`` is not None.

    As ``jax.nn.initializers.ones``.

    >>> import stretto as st
    >>> st.nn.initializers.ones(st.random.key(0), (2,))
    Array([1., 1.], dtype=float32)
    """
    refuse_sharding("initializers.ones", out_sharding=out_sharding)
    return full(tuple(shape), 1, _dtype(dtype))


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """Give the same number everywhere, or an array broadcast.

    Args:
        value: the number, or an array that broadcasts to the shape.
        dtype: the dtype where a call gives none, by default the default float.

    Returns:
        A function of a key, a shape and a dtype.

    As ``jax.nn.initializers.constant``.

    >>> import stretto as st
    >>> st.nn.initializers.constant(0.5)(st.random.key(0), (2,))
    Array([0.5, 0.5], dtype=float32)
    """
    default = dtype

    def init(
        key: Key, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: None = None
    ) -> Array:
        refuse_sharding("initializers.constant", out_sharding=out_sharding)
        target = _dtype(dtype, default)
        return broadcast_to(convert(as_value(value, "constant", "value"), target), tuple(shape))

    return init


# Of one spread


def uniform(scale: float = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Draw numbers equally likely in [0, ``scale``).

    Args:
        scale: the bound above.
        dtype: the dtype where a call gives none, by default the default float.

    Returns:
        A function of a key, a shape and a dtype.

    Raises:
        ValueError: ``dtype`` is neither floating nor complex; on the call.

    As ``jax.nn.initializers.uniform``.

    >>> import stretto as st
    >>> st.nn.initializers.uniform(10.0)(st.random.key(0), (2, 3)).shape
    (2, 3)
    """
    default = dtype

    def init(
        key: Key, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: None = None
    ) -> Array:
        refuse_sharding("initializers.uniform", out_sharding=out_sharding)
        target = _inexact("uniform", dtype, default)
        return distributions.uniform(key, shape, target) * _number(scale, target)

    return init


def normal(stddev: float = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Draw numbers from the normal distribution.

    Args:
        stddev: the standard deviation.
        dtype: the dtype where a call gives none, by default the default float.

    Returns:
        A function of a key, a shape and a dtype.

    Raises:
        ValueError: ``dtype`` is neither floating nor complex; on the call.

    As ``jax.nn.initializers.normal``.

    >>> import stretto as st
    >>> st.nn.initializers.normal(5.0)(st.random.key(0), (2, 3)).shape
    (2, 3)
    """
    default = dtype

    def init(
        key: Key, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: None = None
    ) -> Array:
        refuse_sharding("initializers.normal", out_sharding=out_sharding)
        target = _inexact("normal", dtype, default)
        return distributions.normal(key, shape, target) * _number(stddev, target)

    return init


def truncated_normal(
    stddev: float = 1e-2, dtype: DTypeLike | None = None, lower: float = -2.0, upper: float = 2.0
) -> Initializer:
    """Draw numbers from the normal distribution cut off at two limits, times ``stddev``.

    Args:
        stddev: the standard deviation before the cut.
        dtype: the dtype where a call gives none, by default the default float.
        lower: the lower limit, in standard deviations.
        upper: the upper limit, in standard deviations.

    Returns:
        A function of a key, a shape and a dtype.

    Raises:
        ValueError: ``dtype`` is neither floating nor complex; on the call.

    As ``jax.nn.initializers.truncated_normal``.

    >>> import stretto as st
    >>> x = st.nn.initializers.truncated_normal(5.0)(st.random.key(0), (100,))
    >>> bool((abs(x) <= 10).all())
    True
    """
    default = dtype

    def init(
        key: Key, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: None = None
    ) -> Array:
        refuse_sharding("initializers.truncated_normal", out_sharding=out_sharding)
        target = _inexact("truncated_normal", dtype, default)
        draw = distributions.truncated_normal(key, lower, upper, shape, target)
        return draw * _number(stddev, target)

    return init


def _number(x: Any, dtype: np.dtype) -> Any:
    return convert(as_value(x), dtype)


# Of a spread that suits the shape


def _size(shape: tuple[int, ...], axes: Axes, caller: str) -> int:
    several = axes if isinstance(axes, (tuple, list)) else (axes,)
    return math.prod([shape[canonical_axis(a, len(shape), caller)] for a in several])


def _fans(
    shape: tuple[int, ...], in_axis: Axes, out_axis: Axes, batch_axis: Axes
) -> tuple[float, float]:
    """How many inputs an output has, and how many outputs an input."""
    caller = "variance_scaling"
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


def _complex_disk(key: Any, shape: tuple[int, ...], dtype: np.dtype, radius: Any) -> Any:
    """Complex numbers of any angle, whose distance from 0 is a function of a uniform number."""
    first, second = split(key)
    narrow = real_dtype(dtype)
    r = radius(distributions.uniform(first, shape, narrow))
    angle = distributions.uniform(second, shape, narrow) * (2 * math.pi)
    return complex_(r * cos(angle), r * sin(angle))


def _cut_radius(u: Any) -> Any:
    # P(distance < r) = 1 - exp(-r²) of the complex normal distribution, which is cut off at 2
    return sqrt(-log1p(u * -(1 - math.exp(-4))))


def _drawn(key: Any, shape: tuple[int, ...], dtype: np.dtype, kind: str, variance: Any) -> Any:
    spread = math.sqrt(variance)
    if kind == "normal":
        return distributions.normal(key, shape, dtype) * _number(spread, dtype)
    if kind == "uniform":
        if is_complex(dtype):
            # in the disk of radius 1 the variance is 1 / 2
            return _complex_disk(key, shape, dtype, sqrt) * _number(spread * math.sqrt(2), dtype)
        draw = distributions.uniform(key, shape, dtype, -1)
        return draw * _number(math.sqrt(3 * variance), dtype)
    if is_complex(dtype):
        draw = _complex_disk(key, shape, dtype, _cut_radius)
        return draw * _number(spread / _COMPLEX_CUT, dtype)
    draw = distributions.truncated_normal(key, -2, 2, shape, dtype)
    return draw * _number(spread / _CUT, dtype)


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

    Axes that are neither inputs, outputs nor batch are a receptive field, and count for both.

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
        ValueError: ``mode`` or ``distribution`` is another word; on the call, the shape has fewer
            than two axes, or the dtype is neither floating nor complex.

    As ``jax.nn.initializers.variance_scaling``.

    >>> import stretto as st
    >>> init = st.nn.initializers.variance_scaling(3.0, "fan_in", "uniform")
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
    default = dtype

    def init(
        key: Key, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: None = None
    ) -> Array:
        refuse_sharding("initializers.variance_scaling", out_sharding=out_sharding)
        target = _inexact("variance_scaling", dtype, default)
        sizes = sizes_of(shape, "initializers.variance_scaling")
        count = modes[mode](*_fans(sizes, in_axis, out_axis, batch_axis))
        return _drawn(key, sizes, target, distribution, scale / max(count, 1e-9))

    return init


def _named(
    name: str, scale: float, mode: str, distribution: str, doc: str, source: str
) -> Callable[..., Initializer]:
    def make(
        in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""Draw {doc}

    It is ``variance_scaling`` with scale {scale:g}, {mode!r} and {distribution!r}.

    Args:
        in_axis: the axes of the inputs.
        out_axis: the axes of the outputs.
        batch_axis: axes that are neither.
        dtype: the dtype where a call gives none, by default the default float.

    Returns:
        A function of a key, a shape and a dtype.

    Raises:
        ValueError: the shape has fewer than two axes, or the dtype is neither floating nor
            complex; on the call.

    As ``jax.nn.initializers.{name}``. Source: {source}

    >>> import stretto as st
    >>> st.nn.initializers.{name}()(st.random.key(0), (2, 3)).shape
    (2, 3)
    """
    return make


_CUT_OFF = "cut-off normal numbers of variance"
_GLOROT = "Glorot and Bengio, 2010."
_HE = "He et al., 2015."
_LECUN = "LeCun et al., 1998."
_BOTH = "2 / (inputs + outputs)."
glorot_uniform = _named(
    "glorot_uniform", 1, "fan_avg", "uniform", f"uniform numbers of variance {_BOTH}", _GLOROT
)
glorot_normal = _named(
    "glorot_normal", 1, "fan_avg", "truncated_normal", f"{_CUT_OFF} {_BOTH}", _GLOROT
)
he_uniform = _named(
    "he_uniform", 2, "fan_in", "uniform", "uniform numbers of variance 2 / inputs.", _HE
)
he_normal = _named("he_normal", 2, "fan_in", "truncated_normal", f"{_CUT_OFF} 2 / inputs.", _HE)
lecun_uniform = _named(
    "lecun_uniform", 1, "fan_in", "uniform", "uniform numbers of variance 1 / inputs.", _LECUN
)
lecun_normal = _named(
    "lecun_normal", 1, "fan_in", "truncated_normal", f"{_CUT_OFF} 1 / inputs.", _LECUN
)
xavier_uniform = glorot_uniform
xavier_normal = glorot_normal
kaiming_uniform = he_uniform
kaiming_normal = he_normal


# Orthogonal


def orthogonal(
    scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Draw orthonormal columns or rows, whichever are fewer, times ``scale``.

    Args:
        scale: the factor.
        column_axis: the axis of the columns; all others count as one.
        dtype: the dtype where a call gives none, by default the default float.

    Returns:
        A function of a key, a shape and a dtype.

    Raises:
        ValueError: the shape has fewer than two axes, or the dtype is neither floating nor complex;
            on the call.

    As ``jax.nn.initializers.orthogonal``. Source: Saxe et al., Exact Solutions to the Nonlinear
    Dynamics of Learning in Deep Linear Neural Networks, 2013.

    >>> import stretto as st
    >>> q = st.nn.initializers.orthogonal()(st.random.key(0), (2, 3))
    >>> abs((q @ q.T).round(5))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    default = dtype

    def init(
        key: Key, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: None = None
    ) -> Array:
        refuse_sharding("initializers.orthogonal", out_sharding=out_sharding)
        target = _inexact("orthogonal", dtype, default)
        sizes = sizes_of(shape, "initializers.orthogonal")
        if len(sizes) < 2:
            raise ValueError(f"orthogonal: expected a shape of two axes or more, got {sizes}")
        axis = canonical_axis(column_axis, len(sizes), "orthogonal")
        columns = sizes[axis]
        others = sizes[:axis] + sizes[axis + 1 :]
        q = matrices.orthogonal(key, math.prod(others), (), target, columns)
        return move_axis(reshape(q, (*others, columns)), len(others), axis) * _number(scale, target)

    return init


def delta_orthogonal(
    scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Draw a convolution's kernel that is an orthogonal matrix in the middle, and zero elsewhere.

    The shape has one to three spatial axes, then inputs and outputs; there may not be fewer
    outputs.

    Args:
        scale: the factor.
        column_axis: the axis of the matrix that is its columns.
        dtype: the dtype where a call gives none, by default the default float.

    Returns:
        A function of a key, a shape and a dtype.

    Raises:
        ValueError: the shape is another, or the dtype is neither floating nor complex; on the call.

    As ``jax.nn.initializers.delta_orthogonal``. Source: Xiao et al., Dynamical Isometry and a Mean
    Field Theory of CNNs, 2018.

    >>> import stretto as st
    >>> x = st.nn.initializers.delta_orthogonal()(st.random.key(0), (3, 2, 2))
    >>> abs(x[0]).max(), abs((x[1] @ x[1].T).round(5))
    (Array(0., dtype=float32), Array([[1., 0.],
           [0., 1.]], dtype=float32))
    """
    default = dtype

    def init(
        key: Key, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: None = None
    ) -> Array:
        refuse_sharding("initializers.delta_orthogonal", out_sharding=out_sharding)
        target = _inexact("delta_orthogonal", dtype, default)
        sizes = sizes_of(shape, "initializers.delta_orthogonal")
        if len(sizes) not in (3, 4, 5) or sizes[-1] < sizes[-2]:
            raise ValueError(
                f"delta_orthogonal: expected one to three spatial axes, inputs, and outputs no "
                f"fewer than these in shape; got {sizes}"
            )
        q = orthogonal(scale, column_axis, target)(key, sizes[-2:])
        middle = tuple((n - 1) // 2 for n in sizes[:-2])
        return At(full(sizes, 0, target))[middle].set(q)

    return init
