"""One call made of Stretto and of array_api_strict, and what the two give compared.

array_api_strict is NumPy with nothing beyond the standard. Arguments are NumPy arrays, which each
side gets as its own arrays, and `Dtype`s.
"""

import contextlib
import functools

import array_api_strict as strict
import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as some
from hypothesis.extra import numpy as arrays

import stretto as st
import stretto.numpy as snp
from tests.conformance import standard

VERSION = "2024.12"
NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}
RELATIVE = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-12, "complex128": 1e-12}
WIDTHS = (32, 64)


class Dtype(str):
    """A dtype by name, which each side gets as its own."""


def examples(count):
    """So many examples, the same each time."""
    return settings(
        max_examples=count,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],  # other work on the machine is no failure
    )


@contextlib.contextmanager
def bits(width):
    """Stretto with 64-bit types or without, and the control at the standard's version."""
    with st.enable_x64(width == 64), strict.ArrayAPIStrictFlags(api_version=VERSION):
        yield


def there(dtypes, width):
    """Those of the dtypes that there are."""
    return [d for d in dtypes if width == 64 or d not in standard.WIDE]


def find(namespace, name):
    """What goes by a dotted name."""
    return functools.reduce(getattr, name.split("."), namespace)


def made(argument, namespace):
    """An argument as this side's own."""
    if isinstance(argument, np.ndarray):
        return namespace.asarray(argument)
    if isinstance(argument, Dtype):
        return getattr(namespace, argument)
    if type(argument) in (list, tuple):
        return type(argument)(made(a, namespace) for a in argument)
    return argument


def called(namespace, name, args, kwargs):
    """What a function gives."""
    named = {key: made(value, namespace) for key, value in kwargs.items()}
    return find(namespace, name)(*[made(a, namespace) for a in args], **named)


def agree(name, *args, **kwargs):
    """Assert that both give the same shapes, dtypes and values; what Stretto gives."""
    got = called(snp, name, args, kwargs)
    with np.errstate(all="ignore"):
        want = called(strict, name, args, kwargs)
    same(got, want, f"{name}(*{args}, **{kwargs})")
    return got


def name_of(dtype):
    """A dtype's name, on either side."""
    return str(getattr(dtype, "_np_dtype", dtype))


def expected_dtype(dtype):
    """The name of what stands for the control's dtype."""
    name = name_of(dtype)
    return name if st.config.enable_x64 else NARROW.get(name, name)


def same(got, want, what):
    """Assert that what Stretto gave is what the control gave."""
    if isinstance(want, (tuple, list)):
        assert isinstance(got, (tuple, list)), what
        assert len(got) == len(want), what
        assert getattr(got, "_fields", None) == getattr(want, "_fields", None), what
        for g, w in zip(got, want, strict=True):
            same(g, w, what)
        return
    if not isinstance(want, strict._array_object.Array):
        assert got == want, what
        return
    assert isinstance(got, snp.ndarray), what
    assert got.dtype.name == expected_dtype(want.dtype), f"{what}: {got.dtype}, not {want.dtype}"
    assert got.shape == want.shape, f"{what}: {got.shape}, not {want.shape}"
    close(np.asarray(got), np.from_dlpack(want), what)


def close(got, want, what):
    """Assert that numbers are equal; floats to some units in the last place of the greatest."""
    relative = RELATIVE.get(got.dtype.name)
    if relative is None or not want.size:
        assert np.array_equal(got, want), f"{what}: {got}, not {want}"
        return
    finite = np.abs(want[np.isfinite(want)])
    size = float(finite.max()) if finite.size else 0.0
    assert np.allclose(got, want, rtol=relative, atol=relative * size, equal_nan=True), (
        f"{what}: {got}, not {want}"
    )


# Arguments


def numbers(seed, dtype, shape, low=-4, high=4):
    """An array of numbers between bounds: whole ones, and quarters where there are any."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype in standard.UNSIGNED:
        low = max(low, 0)
    if dtype in standard.SIGNED + standard.UNSIGNED:
        return np.asarray(rng.integers(low, high, shape, endpoint=True)).astype(dtype)
    out = rng.integers(4 * low, 4 * high, shape, endpoint=True) / 4
    if dtype in standard.COMPLEX:
        out = out + 1j * (rng.integers(4 * low, 4 * high, shape, endpoint=True) / 4)
    return np.asarray(out).astype(dtype)


SEEDS = some.integers(0, 2**32 - 1)
SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
FULL_SHAPES = arrays.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)


@some.composite
def an_array(draw, dtypes, shapes=SHAPES, low=-4, high=4):
    """An array of one of these dtypes."""
    return numbers(draw(SEEDS), draw(some.sampled_from(list(dtypes))), draw(shapes), low, high)


@some.composite
def an_axis(draw, ndim, none=True):
    """An axis of so many, of either sign, or None."""
    axes = some.integers(-ndim, ndim - 1) if ndim else some.nothing()
    return draw(some.none() | axes if none else axes)


@some.composite
def some_axes(draw, ndim):
    """None, an axis, or several."""
    several = some.lists(some.integers(0, max(ndim - 1, 0)), unique=True, max_size=ndim).map(tuple)
    return draw(an_axis(ndim) | several if ndim else some.none())
