"""Iota: the laws, and NumPy."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.graph import make_graph
from stretto._engine.core.errors import MissingRuleError, SizeError
from stretto._engine.core.recorder import record
from stretto._engine.core.sizes import size_variable
from stretto._engine.core.types import array_type
from stretto._engine.higher_order.fixed_sizes import padded_program, variables_of
from stretto._engine.lowering.stablehlo import Builder
from stretto._engine.ops.iota import Constant, Held, Iota, SizeOf, broadcasted_iota, iota
from stretto.laws import f32, f64, law

LAWS = [
    law(Iota, lambda x: x * broadcasted_iota(np.float32, (2, 3), 1), f32(2, 3)),
    law(Iota, lambda x: x + broadcasted_iota(np.complex64, (2, 0), 0), f32(2, 0)),
]


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float32, ml_dtypes.bfloat16])
def test_counts(dtype):
    np.testing.assert_array_equal(iota(dtype, 5), np.arange(5).astype(dtype))
    assert iota(dtype, 5).dtype == dtype
    want = np.broadcast_to(np.arange(3).reshape(1, 3, 1), (2, 3, 4))
    np.testing.assert_array_equal(broadcasted_iota(dtype, (2, 3, 4), -2), want.astype(dtype))


def test_refuses():
    with pytest.raises(TypeError, match="got bool"):
        iota(bool, 2)
    with pytest.raises(ValueError, match="must not be negative"):
        iota(int, -1)
    with pytest.raises(ValueError, match="axis 1 is out of bounds"):
        broadcasted_iota(int, (2,), 1)


@pytest.mark.parametrize(
    ("call", "caller"),
    [(lambda t: iota(t, 2), "iota"), (lambda t: broadcasted_iota(t, (2,), 0), "broadcasted_iota")],
)
def test_a_bad_dtype_is_refused_under_the_name_of_the_function(call, caller):
    with pytest.raises(TypeError, match=f"^{caller}: expected a dtype of numbers, got bool"):
        call(bool)
    with pytest.raises(TypeError, match=f"^{caller}: dtype must be a dtype of numbers"):
        call("bad")


def held(array):
    return Constant(Held(array, array_type(array.shape, array.dtype)))


ROW = np.array([1.0, -2.0, 0.5], np.float32)
LAWS += [
    law(Constant, lambda x: x * held(ROW)(), f32(2, 3)),
    law(Constant, lambda x: x * held(ROW.astype(np.float64))(), f64(3)),
    law(Constant, lambda x: x + held(np.zeros((0, 3), np.float32))(), f32(0, 3)),
]


@pytest.mark.parametrize(
    "array",
    [
        np.array([[True, False]]),
        np.array([[1, -2], [3, 4]], np.int8),
        np.array([2**31], np.uint32),
        np.array([1 + 2j, np.nan], np.complex64),
        np.array([np.inf, -0.0, 1e-40], np.float32),
        np.array([1.5, np.nan], ml_dtypes.bfloat16),
        np.array(3.25, np.float16),
    ],
    ids=lambda array: str(array.dtype),
)
def test_every_element_is_written_exactly(array):
    compiled = np.asarray(st.jit(held(array))())
    assert compiled.dtype == array.dtype
    assert compiled.tobytes() == np.asarray(held(array)()).tobytes() == array.tobytes()


def test_a_rule_may_use_an_array_of_its_own():
    @st.custom_jvp
    def f(x):
        return snp.sin(x)

    slopes = np.array([1.0, 2.0, 3.0], np.float32)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * snp.array(slopes)))
    total = st.jit(lambda x: f(x).sum())
    np.testing.assert_array_equal(st.grad(total)(snp.ones(3)), slopes)
    each = st.jit(st.vmap(st.grad(total)))(snp.ones((2, 3)))
    np.testing.assert_array_equal(each, [slopes, slopes])


N = size_variable("n")
LAWS += [
    law(
        SizeOf,
        st.jit(lambda x: x * x.shape[0], dynamic_axes=({0: "n"},)),
        np.arange(1.0, 4.0, dtype=np.float32),
    )
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


X = st.ShapeDtypeStruct((N,), np.float32)


def test_a_size_is_a_weak_integer():
    program = make_graph(lambda x: x * x.shape[0] + st.vmap(lambda y: y + x.shape[0])(x))(X)
    assert str(program).count("size_of [size=n, dtype=int32]") >= 1
    assert program.out_types[0].dtype == np.float32
    assert st.vmap(lambda y: y, axis_size=2) is not None


def test_without_a_bucket_it_is_not_known():
    for rule, *given in (SizeOf(N).reference, None), (SizeOf(N).lower, Builder()):
        with pytest.raises(MissingRuleError, match="known only where the program is given a buck"):
            rule(*given)


def any_size(f, x):
    return st.jit(f, dynamic_axes=({0: "n"},))(x)


LONG, SHORT = np.ones(50_000, np.float32), np.ones(3_000, np.float32)


@pytest.mark.parametrize(
    ("f", "x", "want"),
    [
        (lambda x: x.sum() / (x.shape[0] * (x.shape[0] - 1)), LONG, 1 / 49_999),
        (lambda x: x.sum() / (x[:, None] * x[None, :]).size, LONG, 1 / 50_000),
        (lambda x: x[0] * x.shape[0] ** 4, SHORT[:300], 8.1e9),
        (lambda x: x[0] * (x.shape[0] ** 3 // 7), SHORT, 27e9 // 7),
        (lambda x: x[0] * (x.shape[0] ** 2 % 49_999), LONG, 1),
        (lambda x: x[0] * (5e9 - x.shape[0] ** 2), LONG, 2.5e9),
        (lambda x: snp.asarray(x.shape[0] ** 2, float), LONG, 2.5e9),
        (lambda x: st.lax.fori_loop(0, 3, lambda i, c: c + x.shape[0] ** 2, 0.0), LONG, 7.5e9),
        (lambda x: st.grad(lambda x: x.sum() / x.shape[0] ** 2)(x)[0], LONG, 4e-10),
        (lambda x: snp.ones(x.shape[0] ** 3 // 27_000_000).sum(), SHORT, 1_000),
        (lambda x: snp.asarray(x.shape[0] ** 2), SHORT, 9_000_000),
    ],
)
def test_products_of_sizes_are_exact(f, x, want):
    assert np.asarray(any_size(f, x)) == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: snp.asarray(x.shape[0] ** 2),
        lambda x: snp.arange(3) * x.shape[0] ** 2,
        lambda x: (x[0] * 0).astype(int) + x.shape[0] ** 2,
        lambda x: snp.arange(x.shape[0] ** 2)[-1],
        lambda x: st.lax.fori_loop(0, x.shape[0] ** 2, lambda i, c: c, 0.0),
    ],
)
def test_what_int32_may_not_hold_is_refused_with_its_bound(f):
    with pytest.raises(SizeError, match=r"may be as great as 41907\d+ .* up to 2147483647"):
        any_size(f, LONG)


def test_what_int64_may_not_hold_is_refused():
    with pytest.raises(SizeError, match="int64 has integers up to"):
        any_size(lambda x: x[0] * x.shape[0] ** 5, LONG)


def test_with_64_bits_sizes_are_int64():
    with st.enable_x64():
        square = any_size(lambda x: snp.asarray(x.shape[0] ** 2), LONG)
    assert square.dtype == np.int64 and int(square) == 2_500_000_000


def test_statistics_of_more_numbers_than_int32_counts():
    # Nothing of these sizes is made: the programs are only written.
    square = array_type((N, N), np.dtype(np.float32))
    for f in (snp.mean, snp.var, snp.nanmean, snp.nanvar, snp.average):
        program, _, _ = record(lambda x, f=f: ([f(x)], None), [square], (), "f")
        variables = variables_of(program)
        padded_program(program, variables, dict.fromkeys(variables, 60_000))
