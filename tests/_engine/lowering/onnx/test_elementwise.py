"""Operations of elements: at their edges, and by the formulas where there is no operator."""

import math

import numpy as np
import pytest
from scipy import special

import stretto as st
import stretto.numpy as snp
from stretto import enable_x64, lax
from stretto.errors import ExportError
from tests.export.running import agrees, exported, operators, run
from tests.onnx_graphs import written

UNARY = [
    "abs", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "ceil", "cos",
    "cosh", "exp", "expm1", "floor", "isfinite", "isinf", "isnan", "log", "log1p", "negative",
    "rint", "sign", "sin", "sinh", "sqrt", "tan", "tanh",
]  # fmt: skip
EDGES = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1e-8, -1e-8, 30.0, -30.0, 2.5, 3.5, math.inf, -math.inf,
         math.nan]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_edges(name, dtype):
    with enable_x64(dtype == "float64"), np.errstate(all="ignore"):
        x = np.array(EDGES, dtype)
        f = getattr(snp, name)
        want = np.asarray(f(snp.array(x)))
        (got,) = run(exported(f, x), [x])
    np.testing.assert_allclose(got, want, rtol=1e-13 if dtype == "float64" else 2e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_angles_go_by_the_signs_of_zeros(dtype):
    with enable_x64(dtype == "float64"):
        values = np.array([0.0, -0.0, 1.0, -2.0, math.inf, -math.inf, math.nan], dtype)
        y, x = np.repeat(values, 7), np.tile(values, 7)
        (got,) = run(exported(snp.arctan2, y, x), [y, x])
    np.testing.assert_allclose(got, np.arctan2(y, x), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint32"])
def test_division_by_zero_and_of_the_least_integer(dtype):
    info = np.iinfo(dtype)
    values = np.array([0, 1, 2, 3, info.max, info.min, info.max - 1], dtype)
    x, y = np.repeat(values, 7), np.tile(values, 7)
    f = st.jit(lambda x, y: (lax.div(x, y), lax.rem(x, y)))
    for got, want in zip(run(exported(f, x, y), [x, y]), f(x, y), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("dtype", "steps"), [("int8", 3), ("uint16", 4), ("int32", 5)])
def test_bits_are_counted_by_halves_of_what_there_is(dtype, steps):
    """What a shift by all bits gives depends on the processor."""
    x = np.array([0, 1, 77, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    model = exported(lax.population_count, x)
    assert operators(model)["BitShift"] == steps
    wanted = [(v & (1 << 8 * x.itemsize) - 1).bit_count() for v in x.tolist()]
    np.testing.assert_array_equal(run(model, [x])[0], wanted)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint32"])
def test_shifts_by_the_width_and_more(dtype):
    info = np.iinfo(dtype)
    x = np.array([1, info.max, info.min, 77], dtype).repeat(5)
    y = np.tile(np.array([0, 1, 7, info.bits, info.bits + 3], dtype), 4)
    f = lambda x, y: (
        lax.shift_left(x, y),
        lax.shift_right_logical(x, y),
        lax.shift_right_arithmetic(x, y),
        lax.population_count(x),
        lax.clz(x),
    )
    for got, want in zip(run(exported(f, x, y), [x, y]), f(x, y), strict=True):
        np.testing.assert_array_equal(got, want)


def test_error_functions():
    x = np.linspace(-6, 6, 101).astype("float32")
    p = np.linspace(-1, 1, 41).astype("float32")
    agrees(lambda x, p: (lax.erf(x), lax.erfc(x), lax.erf_inv(p)), x, p, rtol=3e-6)
    with enable_x64():
        x, p = x.astype("float64"), p.astype("float64")
        agrees(lambda x, p: (lax.erf(x), lax.erfc(x), lax.erf_inv(p * 0.99)), x, p, rtol=1e-13)


def test_the_next_number():
    x = np.array([0.0, -0.0, 1.0, -1.0, 1e-45, math.inf, math.nan, 5], "float32")
    y = np.array([1.0, -1.0, 2.0, 3.0, -1.0, 0.0, 1.0, 5], "float32")
    (got,) = run(exported(lax.nextafter, x, y), [x, y])
    np.testing.assert_array_equal(got, np.nextafter(x, y))


COMPLEX = ["arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cos", "cosh", "exp",
           "expm1", "log", "log1p", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "abs",
           "conj", "isfinite"]  # fmt: skip


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_functions(name):
    rng = np.random.default_rng(0)
    z = (rng.normal(size=40) + 1j * rng.normal(size=40)).astype("complex64")
    agrees(getattr(snp, name), z, rtol=3e-5)


def test_complex_numbers_are_finite_where_both_parts_are():
    parts = [0.0, 1.5, math.inf, -math.inf, math.nan]
    z = np.array([complex(a, b) for a in parts for b in parts], "complex64")
    agrees(lambda z: (snp.isfinite(z), snp.isinf(z), snp.isnan(z)), z)


def test_complex_arithmetic():
    rng = np.random.default_rng(0)
    z, w = (rng.normal(size=(2, 9)) + 1j * rng.normal(size=(2, 9))).astype("complex64")
    agrees(lambda z, w: (z + w, z * w, z / w, z**w, z == w, snp.where(z.real > 0, z, w)), z, w)


def test_coarse_tails_are_a_choice():
    x = np.array([-30.0, -18.5, 0.0, 3.0], "float32")
    want = np.asarray(lax.logistic(x))
    (got,) = run(exported(lax.logistic, x), [x])
    np.testing.assert_allclose(got, want, rtol=1e-6)
    (got,) = run(exported(lax.logistic, x, exact=False), [x])
    np.testing.assert_allclose(got, want, atol=1e-6)


FAR = [1e-300, 1e-30, 1e-9, 0.49999, 0.99999, 1.00001, 1.5, 19.0, 79.0, 81.0, 88.0, 699.0, 701.0,
       709.5, 1e10, 1e149, 1e151, 1e300]  # fmt: skip
SPREAD = [*FAR, *[-x for x in FAR], *np.linspace(-3, 3, 61).tolist()]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_far_and_near(name, dtype):
    with enable_x64(dtype == "float64"), np.errstate(all="ignore"):
        x = np.array(SPREAD).astype(dtype)
        if name in ("cos", "sin", "tan"):
            x = x[np.abs(x) < 1e3]
        x = x[(np.abs(x) > np.finfo(dtype).tiny) | (x == 0)]  # others may count as zeros
        f = getattr(snp, name)
        want = np.asarray(f(snp.array(x)))
        (got,) = run(exported(f, x), [x])
    if want.dtype.kind == "f":  # and so may such results
        got, want = [np.where(np.abs(v) < 4 * np.finfo(dtype).tiny, 0, v) for v in (got, want)]
    np.testing.assert_allclose(got, want, rtol=2e-13 if dtype == "float64" else 3e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exact", [True, False])
def test_error_functions_far_out(dtype, exact):
    with enable_x64(dtype == "float64"):
        x = np.array([*EDGES, *np.linspace(-29, 29, 233)]).astype(dtype)
        p = np.array([0.0, 1e-8, 0.5, 0.9, 0.9999, 1 - 6e-8, 1.0, 1.5, math.nan], dtype)
        p = np.concatenate([p, -p])
        f = lambda x, p: (lax.erf(x), lax.erfc(x), lax.erf_inv(p))
        got = run(exported(f, x, p, exact=exact), [x, p])
        wide = dtype == "float64"
        for g, w in zip(got, f(x, p), strict=True):
            tail = 0 if exact or wide else 1e-6
            np.testing.assert_allclose(g, w, rtol=1e-12 if wide else 8e-6, atol=tail + 1e-37)


def test_the_polynomial_of_the_error_function_is_as_good_as_its_coefficients():
    x = np.concatenate([np.geomspace(1e-6, 0.1, 40), np.linspace(0.1, 1, 40)]).astype("float32")
    (got,) = run(exported(lax.erfc, x), [x])
    np.testing.assert_allclose(got, special.erfc(x.astype("float64")), rtol=1.5e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_halves_round_away_from_zero_and_roots_keep_signs(dtype):
    x = np.array([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49, 7.51, 8.0, -27.0, 1000.0], dtype)
    f = lambda x: (lax.round(x), lax.cbrt(x), lax.sign(x), lax.rsqrt(abs(x) + 1), lax.logistic(x))
    with enable_x64():
        for got, want in zip(run(exported(f, x), [x]), f(x), strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-3 if dtype == "float16" else 1e-6)
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def of_integers(dtype):
    info = np.iinfo(dtype)
    values = [0, 1, 2, 3, 5, 7, 77, info.max, info.max - 1, info.max // 3, info.min, info.min + 1]
    return np.array(values, dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits_of_integers(dtype):
    x = of_integers(dtype)
    y = x[::-1].copy()
    f = lambda x, y: (
        lax.population_count(x), lax.clz(x), ~x, x & y, x | y, x ^ y, -x, lax.sign(x), abs(x),
        snp.maximum(x, y), snp.minimum(x, y), x + y, x - y, x * y, x < y, x >= y, x == y, x != y,
        snp.clip(x, 1, 7),
    )  # fmt: skip
    with enable_x64():
        agrees(f, x, y)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("by", [1, 2, 3, -1, 0])
def test_division_by_constants(dtype, by):
    x = of_integers(dtype)
    if by < 0 and dtype.startswith("u"):
        return
    mixed = np.full(len(x), 3, dtype)
    mixed[1] = by
    f = lambda x: (lax.div(x, x.dtype.type(by)), lax.rem(x, mixed), lax.div(x, mixed))
    with enable_x64(), np.errstate(all="ignore"):
        agrees(st.jit(f), x)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_by_constants(dtype):
    x, width = of_integers(dtype), np.iinfo(dtype).bits
    with enable_x64():
        amounts = [np.array([by] * 11 + [1], dtype) for by in (0, 1, width - 1, width, width + 1)]
        shifts = (lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic)
        agrees(lambda x: [shift(x, by) for shift in shifts for by in amounts], x)


def test_shifts_by_amounts_in_range_are_one_operator():
    x, by = np.array([1, 2, 3, 2**31], "uint32"), np.array([0, 1, 30, 31], "uint32")
    for shift in (lax.shift_left, lax.shift_right_logical):
        model = agrees(lambda x, shift=shift: shift(x, by), x)
        assert [n.op_type for n in model.graph.node] == ["BitShift"]


def test_truth():
    x, y = np.array([True, True, False, False]), np.array([True, False, True, False])
    f = lambda x, y: (
        x & y, x | y, x ^ y, ~x, snp.maximum(x, y), snp.minimum(x, y), x == y, x != y, x < y,
        x <= y, x > y, x >= y, snp.where(x, y, ~y), x.astype("int8"), x * 2.0, x + y, x * y,
    )  # fmt: skip
    agrees(f, x, y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_next_numbers(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    values = np.array([0.0, -0.0, 1.0, -1.0, tiny, -tiny, math.inf, -math.inf, math.nan, 5], dtype)
    x, y = np.repeat(values, 10), np.tile(values, 10)
    with enable_x64():
        (got,) = run(exported(lax.nextafter, x, y), [x, y])
    np.testing.assert_array_equal(got, np.nextafter(x, y))


PLANE = [r * np.exp(1j * a) for r in (1e-3, 0.3, 0.999, 1.0, 1.001, 3.0, 30.0)
         for a in np.linspace(-np.pi, np.pi, 16, endpoint=False) + 0.01]  # fmt: skip
AXES = [complex(a, b) for a in (-2.0, -0.5, 0.0, 0.5, 2.0) for b in (-2.0, -0.5, 0.0, 0.5, 2.0)]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", [*COMPLEX, "logistic", "rsqrt"])
def test_complex_functions_all_over_the_plane(name, dtype):
    f = getattr(snp, name, None) or getattr(lax, name)
    z = np.array(PLANE + AXES).astype(dtype)
    with enable_x64(dtype == "complex128"), np.errstate(all="ignore"):
        want = np.asarray(f(snp.array(z)))
        known = np.isfinite(want) & (np.abs(z) < (4 if name != "abs" else 99))
        z, want = z[known], want[known]
        model = exported(f, z)
        (got,) = run(model, [z])
    got = got[..., 0] + 1j * got[..., 1] if want.dtype.kind == "c" else got
    limit = {"complex64": 4e-5, "complex128": 1e-11}[dtype]
    np.testing.assert_allclose(got, want, rtol=limit, atol=limit * 1e-2)


def test_quotients_and_sizes_of_complex_numbers_at_their_edges():
    z = np.array([1 + 1j, 2 - 1j, 0, 3j, -4, 1e15 + 1e15j, 1e-15j], "complex64")
    x, y = np.repeat(z, 7), np.tile(z, 7)
    keep = y != 0
    agrees(lambda x, y: x / y, x[keep], y[keep])
    parts = np.array([0.0, 1.0, -3.0, 1e30, math.inf, -math.inf, math.nan])
    z = np.array([complex(a, b) for a in parts for b in parts], "complex64")
    f = lambda z: (abs(z), snp.isfinite(z), lax.is_finite(z), snp.isinf(z.real), z.real, z.imag)
    agrees(f, z)


def test_what_has_no_counterpart():
    z = np.ones(3, "complex64")
    with pytest.raises(ExportError, match="no formula for 'ceil' of complex numbers"):
        written(lambda b, z: b.emit("ceil", z, out=z.type), z)
    with pytest.raises(ExportError, match="there is no counterpart of 'floors'"):
        written(lambda b, x: b.emit("floors", x, out=x.type), z.real)
    real = lambda b, x: (b.emit("real", x, out=x.type), b.emit("imag", x, out=x.type))
    got = run(written(real, z.real), [z.real])
    np.testing.assert_array_equal(got, [z.real, z.imag])


def test_what_is_finite_and_within_bounds():
    f = lambda x: (lax.is_finite(x), snp.isinf(x), snp.isnan(x), lax.clamp(-1.0, x, 2.0))
    x = np.array(EDGES, "float32")
    for got, want in zip(run(exported(f, x), [x]), f(snp.array(x)), strict=True):
        np.testing.assert_array_equal(got, want)
