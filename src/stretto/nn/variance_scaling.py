"""Initializers whose spread depends on the shape: ``variance_scaling``, and its named cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stretto._engine.core.integers import entries_of
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.types import is_complex, real_dtype
from stretto._engine.core.typing import Array, DTypeLike, Key
from stretto._engine.ops.complex_parts import complex_
from stretto._engine.ops.exponential import log1p
from stretto._engine.ops.layout import canonical_axis
from stretto._engine.ops.powers import sqrt
from stretto._engine.ops.trigonometric import cos, sin
from stretto.nn.initializer import Initializer, initializer, scaled
from stretto.random import distributions
from stretto.random.keys import split

if TYPE_CHECKING:  # loaded when numbers between bounds are first drawn
    from stretto.random import truncated
else:
    truncated = LazyModule("stretto.random.truncated")

__all__ = [
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
]

Axes = int | Sequence[int]

# The standard deviation of the normal distribution cut off at ±2, and of the complex one at 2.
_CUT = 0.87962566103423978
_COMPLEX_CUT = 0.95311164380491208


def _size(shape: tuple[int, ...], axes: Axes, caller: str) -> int:
    places = [canonical_axis(axis, len(shape), caller) for axis in entries_of(axes)]
    return math.prod([shape[place] for place in places])


def _fans(
    shape: tuple[int, ...], in_axis: Axes, out_axis: Axes, batch_axis: Axes
) -> tuple[float, float]:
    """How many inputs an output has, and how many outputs an input."""
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
    """Complex numbers of any angle, whose distance from 0 is a function of a uniform number."""
    first, second = split(key)
    narrow = real_dtype(dtype)
    r = radius(distributions.uniform(first, shape, narrow))
    angle = distributions.uniform(second, shape, narrow) * (2 * math.pi)
    return complex_(r * cos(angle), r * sin(angle))


def _cut_radius(u: Array) -> Array:
    # P(distance < r) = 1 - exp(-r²) of the complex normal distribution, which is cut off at 2
    return sqrt(-log1p(u * -(1 - math.exp(-4))))


def _draw(key: Key, shape: tuple[int, ...], dtype: np.dtype, kind: str, variance: float) -> Array:
    """Numbers of this distribution, with mean 0 and this variance."""
    spread = math.sqrt(variance)
    if kind == "normal":
        return scaled(distributions.normal(key, shape, dtype), spread)
    if kind == "uniform":
        if is_complex(dtype):
            # in the disk of radius 1 the variance is 1 / 2
            return scaled(_complex_disk(key, shape, dtype, sqrt), spread * math.sqrt(2))
        return scaled(distributions.uniform(key, shape, dtype, -1), math.sqrt(3 * variance))
    if is_complex(dtype):
        return scaled(_complex_disk(key, shape, dtype, _cut_radius), spread / _COMPLEX_CUT)
    return scaled(truncated.truncated_normal(key, -2, 2, shape, dtype), spread / _CUT)


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

    def draw(key: Key, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        count = modes[mode](*_fans(shape, in_axis, out_axis, batch_axis))
        return _draw(key, shape, dtype, distribution, scale / max(count, 1e-9))

    return initializer("variance_scaling", dtype, draw)


def _named(
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
