"""Quotients rounded down and remainders, as NumPy's: eager, compiled, mapped; by zero too."""

from __future__ import annotations

import operator

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

F = np.array([[-2.5, -1.0, -0.0], [0.0, 1.5, 3.0]], np.float32)
G = np.array([[2.0, -3.0, 4.0], [-1.5, 0.5, 3.0]], np.float32)
WILD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e30], np.float32)
INTS = np.array([[-7, -3, 0], [1, 5, 100]], np.int32)
DIVISORS = np.array([[3, -2, 7], [-7, 2, 9]], np.int32)
NAMES = ["floor_divide", "mod", "remainder", "fmod"]


@pytest.mark.parametrize("name", NAMES)
def test_floats(agree, name):
    agree(name, F, G, dtype="float32")
    agree(name, F, 2.0, dtype="float32")
    agree(name, -3, G, dtype="float32")
    agree(name, F[0], G[:, :1], dtype="float32")


@pytest.mark.parametrize("name", NAMES)
def test_integers(agree, name):
    agree(name, INTS, DIVISORS, dtype="int32")
    agree(name, INTS, -4, dtype="int32")
    agree(name, 9, DIVISORS, dtype="int32")
    agree(name, np.abs(INTS).astype(np.uint8), np.uint8([2, 3, 4]), dtype="uint8")


@pytest.mark.parametrize("name", ["mod", "floor_divide", "fmod"])
@pytest.mark.parametrize("divisor", [0.0, -0.0, np.inf, -np.inf, np.nan, 3.0, -3.0])
def test_remainders_of_extremes_agree_eager_and_jitted(name, divisor):
    f = getattr(snp, name)
    x = snp.array(WILD)
    np.testing.assert_array_equal(f(x, divisor), st.jit(f)(x, divisor))
    if name != "floor_divide":  # of infinities and by zero it is NaN here, as in JAX
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(
                f(x, divisor), getattr(np, name)(WILD, np.float32(divisor))
            )


def test_divmod(agree):
    agree("divmod", F, G, dtype="float32")
    agree("divmod", INTS, DIVISORS, dtype="int32")


def edges(dtype):
    """All pairs of the integers at which something could go wrong."""
    bounds = ml_dtypes.iinfo(dtype)
    low, high = int(bounds.min), int(bounds.max)
    known = [v for v in (low, low + 1, -3, -1, 0, 1, 3, high - 1, high) if low <= v <= high]
    values = np.array(sorted(set(known)), dtype)
    return [v.reshape(-1) for v in np.meshgrid(values, values)]


def as_numpy(function, x, y):
    """What NumPy gives; integers of 4 bits go through 8."""
    with np.errstate(all="ignore"):
        if x.dtype.isbuiltin == 1:
            return function(x, y)
        return function(x.astype(np.int8), y.astype(np.int8)).astype(x.dtype)


NARROW = [ml_dtypes.int4, ml_dtypes.uint4]
WIDTHS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
OPERATIONS = {
    "//": (operator.floordiv, np.floor_divide),
    "%": (operator.mod, np.remainder),
    "floor_divide": (snp.floor_divide, np.floor_divide),
    "remainder": (snp.remainder, np.remainder),
    "fmod": (snp.fmod, np.fmod),
    "divmod quotient": (lambda x, y: divmod(x, y)[0], np.floor_divide),
    "divmod rest": (lambda x, y: snp.divmod(x, y)[1], np.remainder),
}


@pytest.mark.parametrize("dtype", [*WIDTHS, *NARROW], ids=lambda d: np.dtype(d).name)
def test_integers_of_all_widths_at_their_edges(dtype):
    """The least by -1 is itself, with no rest; by zero all is 0, as in NumPy."""
    with st.enable_x64():
        x, y = edges(dtype)
        a, b = snp.array(x), snp.array(y)
        jitted = st.jit(lambda x, y: {k: f(x, y) for k, (f, _) in OPERATIONS.items()})(a, b)
        for name, (function, in_numpy) in OPERATIONS.items():
            want = as_numpy(in_numpy, x, y)
            for found in (function(a, b), jitted[name], st.vmap(function)(a, b)):
                assert found.dtype == x.dtype
                np.testing.assert_array_equal(np.asarray(found), want, err_msg=name)


@pytest.mark.parametrize("name", OPERATIONS)
def test_numbers_and_constants_by_zero(name):
    function = OPERATIONS[name][0]
    x, zero = snp.array([5, -5, 0]), snp.zeros(3, int)
    many = snp.full((40, 1000), -5)
    for found in (
        function(x, 0),
        function(-5, zero),
        function(x[1], zero[1]),
        st.jit(lambda x: function(x, 0))(x),
        st.jit(lambda: function(x, zero))(),
        st.jit(lambda: function(snp.full(3, -5), 0))(),
        function(many, 0),
        st.jit(function)(many, snp.zeros_like(many)),
    ):
        np.testing.assert_array_equal(found, np.zeros(found.shape, np.int32))


def test_a_known_divisor_costs_no_look_for_zeros():
    graph = st.make_graph(lambda x: x % 3)
    assert " eq " not in str(graph(snp.arange(3)))
    assert str(st.make_graph(lambda x: x // 2)(snp.arange(3, dtype=snp.uint8))).count("=") == 1


def test_reductions_by_zero():
    x = np.array([-100, 7, 0, 3], np.int32)
    with np.errstate(all="ignore"):
        for name in ("floor_divide", "remainder", "fmod"):
            for method in ("reduce", "accumulate"):
                ours, theirs = (getattr(getattr(m, name), method) for m in (snp, np))
                np.testing.assert_array_equal(ours(snp.array(x)), theirs(x))
                np.testing.assert_array_equal(st.jit(ours)(snp.array(x)), theirs(x))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: snp.remainder(snp.ones(2) * 1j, 2),
            TypeError,
            r"remainder: expected real numbers, got complex64\[2\]",
        ),
        (
            lambda: snp.floor_divide(snp.ones(2) * 1j, 2),
            TypeError,
            r"floor_divide: expected real numbers, got complex64\[2\]",
        ),
        (
            lambda: snp.fmod(snp.ones(2) * 1j, 2),
            TypeError,
            r"fmod: expected real numbers, got complex64\[2\]",
        ),
        (
            lambda: snp.divmod(snp.ones(2) * 1j, 2),
            TypeError,
            r"divmod: expected real numbers, got complex64\[2\]",
        ),
        (lambda: snp.divmod(snp.ones(2), snp.ones(3)), ValueError, r"divmod: shapes"),
    ],
)
def test_messages_name_the_function_called(call, error, words):
    with pytest.raises(error, match="^" + words):
        call()
