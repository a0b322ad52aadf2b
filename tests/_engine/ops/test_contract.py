"""Products that sum over axes: the laws, NumPy, refusals."""

import ml_dtypes
import numpy as np
import pytest

import stretto.numpy as snp
from stretto._engine.api.autodiff.derivatives import vjp
from stretto._engine.api.graph import make_graph
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.config import config, enable_x64
from stretto._engine.core.errors import ContractionError
from stretto._engine.core.sizes import size_variable
from stretto._engine.core.types import array_type
from stretto._engine.ops.contract import (
    DotGeneral,
    dot,
    dot_general,
    inner,
    matmul,
    outer,
    tensordot,
    vdot,
)
from stretto.laws import b1, bf16, c64, f16, f32, f64, i8, i32, law, u32


def crossed(x, y):
    """Two summed pairs in crossed order, one shared."""
    return dot_general(x, y, (((3, 1), (0, 2)), ((2,), (1,))))


def first_axes(x, y):
    """One summed pair, two shared in crossed order."""
    return dot_general(x, y, (((0,), (2,)), ((3, 1), (1, 0))))


def widened(x, y):
    wide = {"int8": np.int32, "bfloat16": np.float32}
    return matmul(x, y, preferred_element_type=wide.get(x.dtype.name))


LAWS = [
    law(DotGeneral, matmul, f32(2, 3), f32(3, 4)),
    law(DotGeneral, matmul, f32(3), f32(3)),
    law(DotGeneral, matmul, f64(3), f64(2, 3, 2)),
    law(DotGeneral, matmul, f32(5, 1, 2, 3), f32(4, 3, 2)),
    law(DotGeneral, matmul, c64(2, 3), c64(3, 2)),
    law(DotGeneral, matmul, i32(2, 3), i32(3, 2)),
    law(DotGeneral, matmul, u32(2, 3), u32(3)),
    law(DotGeneral, matmul, i8(2, 3), i8(3, 2)),
    law(DotGeneral, matmul, b1(2, 3), b1(3, 2)),
    law(DotGeneral, matmul, bf16(2, 3), bf16(3, 2)),
    law(DotGeneral, matmul, f16(2, 3), f16(3, 2)),
    law(DotGeneral, matmul, f32(0, 3), f32(3, 2)),
    law(DotGeneral, matmul, f32(2, 0), f32(0, 2)),
    law(DotGeneral, crossed, f32(2, 3, 4, 5), f32(5, 4, 3, 2)),
    law(DotGeneral, crossed, c64(2, 3, 2, 2), c64(2, 2, 3, 1)),
    law(DotGeneral, first_axes, f32(2, 3, 4, 5), f32(3, 5, 2)),
    law(DotGeneral, widened, i8(2, 3), i8(3, 2)),
    law(DotGeneral, widened, bf16(2, 3), bf16(3, 2)),
    law(DotGeneral, lambda x: matmul(x, x), f32(3, 3)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (1, 6, 3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 2)),
    ((1, 2, 3), (6, 3, 4)),
    ((6, 2, 3), (1, 3, 4)),
    ((1, 2, 3), (1, 3, 4)),
    ((4, 1, 2, 3), (6, 3, 2)),
    ((6, 2, 3), (4, 6, 3, 2)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
]


@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64", "bool"])
def test_matmul_is_numpys(left, right, dtype):
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, shape).astype(dtype) for shape in (left, right))
    got, want = matmul(x, y), np.matmul(x, y)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)  # whole numbers, so exact


def test_promotes():
    x, y = np.ones((2, 2), np.int8), np.ones((2, 2), np.float16)
    assert matmul(x, y).dtype == np.float16
    assert matmul(x, x, preferred_element_type=np.int32).dtype == np.int32


def test_integers_wrap():
    x = np.full((1, 3), 100, np.int8)
    want = (30000 + 128) % 256 - 128
    assert matmul(x, x.T).tolist() == jit(matmul)(x, x.T).tolist() == [[want]]
    assert widened(x, x.T).tolist() == jit(widened)(x, x.T).tolist() == [[30000]]


def test_narrow_floats_add_up_in_float32():
    x = np.full((1, 4096), 1, ml_dtypes.bfloat16)  # ones added up in bfloat16 would stop at 256
    for f in (matmul, jit(matmul)):
        assert f(x, x.T).item() == 4096
    with enable_x64():
        assert matmul(x, x.T).item() == 4096


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32"])
@pytest.mark.parametrize("shapes", [((40, 50), (50, 60)), ((6, 40, 30), (6, 30, 20))], ids=str)
def test_large_integer_products_are_exact(dtype, shapes):
    """Modulo the width, whether or not float64 holds the sums."""
    bounds = np.iinfo(dtype)
    random = np.random.default_rng(0)
    for low, high in ((0, 100), (bounds.min, bounds.max)):
        x, y = (random.integers(low, high, s, dtype, endpoint=True) for s in shapes)
        np.testing.assert_array_equal(matmul(x, y), x @ y)
    most = np.full(shapes[0], bounds.max, dtype)
    np.testing.assert_array_equal(matmul(most, most.mT), most @ most.mT)


def test_products_of_wide_integers_are_compiled_where_large():
    op, wide, narrow = DotGeneral(((1,), (0,))), np.dtype(np.int64), np.dtype(np.int32)
    of = lambda dtype, *shapes: tuple(array_type(shape, dtype) for shape in shapes)
    assert op.compiled(of(wide, (400, 400), (400, 400)))
    assert not op.compiled(of(wide, (100, 100), (100, 100)))
    assert not op.compiled(of(narrow, (400, 400), (400, 400)))
    assert not op.compiled(of(np.dtype(np.float32), (4000, 4000), (4000, 4000)))
    assert op.compiled(of(narrow, (4000, 4000), (4000,)))


def test_gradients_keep_the_operands_dtype():
    x, y = np.ones((2, 3), ml_dtypes.bfloat16), np.ones((3, 2), ml_dtypes.bfloat16)
    out, pull = vjp(widened, x, y)
    assert out.dtype == np.float32
    assert [g.dtype for g in pull(out)] == [x.dtype, y.dtype]


def test_vmap_adds_no_transposes():
    x, w = np.ones((4, 5, 3), np.float32), np.ones((4, 3, 2), np.float32)
    for args, axes in (((x, w), (0, 0)), ((x, w[0]), (0, None)), ((x[0], w), (None, 0))):
        graph = make_graph(vmap(matmul, in_axes=axes, out_axes=1 if axes[0] is None else 0))(*args)
        assert [e.primitive.name for e in graph.equations] == ["dot_general"]


def test_cotangents_of_vectors_keep_examples_first():
    w, x = np.ones((2, 3), np.float32), np.ones((4, 3), np.float32)
    ct = np.ones((4, 2), np.float32)
    pulled = vmap(lambda x, ct: vjp(lambda v: matmul(w, v), x)[1](ct)[0])
    assert [e.primitive.name for e in make_graph(pulled)(x, ct).equations] == ["dot_general"]
    np.testing.assert_array_equal(pulled(x, ct), np.full((4, 3), 2.0))


def test_precisions_stay_with_their_operands():
    w, v = np.ones((2, 3), np.float32), np.ones(3, np.float32)
    f = lambda v: matmul(w, v, precision=("highest", "default"))
    pulled = make_graph(lambda ct: vjp(f, v)[1](ct)[0])(np.ones(2, np.float32)).equations[-1]
    assert pulled.inputs[1].type.shape == w.shape
    assert pulled.primitive.precision == ("DEFAULT", "HIGHEST")


def test_matmul_repeats_nothing():
    x, w = np.ones((4, 1, 5, 3), np.float32), np.ones((6, 3, 2), np.float32)
    names = {e.primitive.name for e in make_graph(matmul)(x, w).equations}
    assert "broadcast_in_dim" not in names


def test_precision_is_lowered():
    x = np.ones((2, 2), np.float32)
    text = jit(lambda a: matmul(a, a, precision="highest")).lower(x).as_text()
    assert "precision HIGHEST" in text


def test_refuses():
    x = np.ones((2, 3), np.float32)
    differ = r"contracted sizes differ, 3 \(axis 1 of x: float32\[2,3\]\) and 4 \(axis 0 of y"
    with pytest.raises(ContractionError, match=f"matmul: {differ}"):
        matmul(x, np.ones((4, 5), np.float32))
    with pytest.raises(ContractionError, match=f"dot: {differ}"):
        dot(x, np.ones((4, 5), np.float32))
    with pytest.raises(ValueError, match=r"axis 2 of x: float32\[1,2,3\]\) and 4 \(axis 1 of y"):
        matmul(x[None], np.ones((2, 4, 5), np.float32))
    with pytest.raises(ValueError, match="rank 1 or more, got float32"):
        matmul(x, np.float32(1))
    with pytest.raises(ValueError, match="do not broadcast"):
        matmul(np.ones((2, 2, 3), np.float32), np.ones((3, 3, 3), np.float32))
    with pytest.raises(ValueError, match="name an axis twice"):
        dot_general(x, x, (((0,), (0,)), ((0,), (1,))))
    with pytest.raises(ValueError, match="come in pairs"):
        dot_general(x, x, (((0, 1), (0,)), ((), ())))
    with pytest.raises(TypeError, match="operands' kind and no narrower"):
        matmul(x.astype(np.int32), x.T.astype(np.int32), preferred_element_type=np.int8)
    with pytest.raises(ValueError, match="precision must be"):
        matmul(x, x.T, precision="fast")
    with pytest.raises(TypeError, match=r"stretto\.numpy\.array"):
        matmul([[1.0]], x)


@pytest.mark.parametrize("summed", [((0,), (0,)), ((1,), (1,)), ((0,), (1,)), ((1,), (0,))])
@pytest.mark.parametrize("shared", [False, True])
def test_products_of_matrices_by_every_axis(summed, shared):
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    y = x[::-1] + 1
    (a,), (b,) = summed
    both = ((1 - a,), (1 - b,)) if shared else ((), ())
    left, right = (x if a else x.T), (y if b else y.T)  # [free, summed]
    want = (left * right).sum(1) if shared else left @ right.T
    for f in (dot_general, jit(dot_general, static_argnums=2)):
        np.testing.assert_allclose(f(x, y, (summed, both)), want, rtol=1e-6)


@pytest.mark.parametrize("most", [1 << 10, 1 << 12, 1 << 20, 1 << 31])
@pytest.mark.parametrize("shape", [(300, 8, 8), (200, 200), (8, 40, 40)], ids=str)
def test_products_of_integers_are_exact(shape, most):
    """In float32, in float64, in halves, and as they are."""
    random = np.random.default_rng(0)
    x, y = random.integers(-most, most, (2, *shape)).astype(np.int32)
    x[..., 0, :] = y[..., :, 0] = most - 1
    want = np.matmul(x, y)
    np.testing.assert_array_equal(np.asarray(matmul(x, y)), want)
    np.testing.assert_array_equal(np.asarray(jit(matmul)(x, y)), want)
    small, other = x.astype(np.uint8), y.astype(np.uint8)
    np.testing.assert_array_equal(np.asarray(matmul(small, other)), np.matmul(small, other))


@pytest.mark.parametrize("numbers", [None, [1, 2], ((1,), (0,)), ((1, 0), ((), ()))])
def test_dimension_numbers_must_be_two_pairs_of_axes(numbers):
    with pytest.raises(TypeError, match=r"dot_general: dimension_numbers must be \(\(summed axes"):
        dot_general(np.ones((2, 2)), np.ones((2, 2)), numbers)


def test_a_preferred_dtype_that_is_none_is_named():
    x, plain = np.ones((2, 2), np.float32), (((1,), (0,)), ((), ()))
    for call, caller in (
        (lambda: matmul(x, x, preferred_element_type="bad"), "matmul"),
        (lambda: dot_general(x, x, plain, None, "bad"), "dot_general"),
        (lambda: dot_general(x, x, plain, "F32_F32_F32", "bad"), "dot_general"),
    ):
        with pytest.raises(TypeError, match=f"{caller}: preferred_element_type must be a dtype"):
            call()


def test_floats_of_8_bits_are_multiplied_in_the_preferred_dtype():
    x = np.array([[1.5, 2.0]], ml_dtypes.float8_e4m3fn)
    y = np.array([[4.0], [0.5]], ml_dtypes.float8_e5m2)
    numbers = (((1,), (0,)), ((), ()))
    out = dot_general(x, y, numbers, preferred_element_type=np.float32)
    assert (out.dtype, out.tolist()) == (np.float32, [[7.0]])
    with pytest.raises(TypeError, match="no implicit common type"):
        dot_general(x, y, numbers)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("x", "y"),
    [
        ((3, 1), (1,)),
        ((1,), (1, 3)),
        ((3, 1), (1, 1)),
        ((1, 1), (1, 3)),
        ((1,), (1,)),
        ((1, 1), (1,)),
    ],
)
def test_zero_times_what_is_not_finite_is_nan_where_a_factor_has_one_element(special, x, y):
    for first, second in ((special, 0.0), (0.0, special)):
        a, b = snp.full(x, first), snp.full(y, second)
        with config(interpret_small=False):
            compiled = jit(dot)(a, b)
        for out in (dot(a, b), a @ b, a @ b, compiled):  # the second time by the types that it met
            assert np.isnan(out).all()
    np.testing.assert_array_equal(
        snp.full(x, 2.0) @ snp.full(y, 3.0), np.full(x, 2) @ np.full(y, 3)
    )


@pytest.mark.parametrize(
    ("ours", "numpys", "left", "right"),
    [
        (dot, np.dot, (2, 3), (4, 3, 5)),
        (dot, np.dot, (3,), (3,)),
        (dot, np.dot, (), (3,)),
        (inner, np.inner, (2, 3), (4, 3)),
        (inner, np.inner, (2, 3), ()),
        (outer, np.outer, (2, 2), (3,)),
        (vdot, np.vdot, (2, 3), (3, 2)),
        (tensordot, np.tensordot, (2, 3, 4), (3, 4, 5)),
        (lambda x, y: tensordot(x, y, 0), lambda x, y: np.tensordot(x, y, 0), (2,), (3,)),
        (
            lambda x, y: tensordot(x, y, ((0, -1), (1, 0))),
            lambda x, y: np.tensordot(x, y, ((0, -1), (1, 0))),
            (2, 3, 4),
            (4, 2, 3),
        ),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int32"])
def test_products_are_numpys(ours, numpys, left, right, dtype):
    rng = np.random.default_rng(0)
    x, y = (np.asarray(rng.integers(-3, 4, shape)).astype(dtype) for shape in (left, right))
    if dtype == "complex64":
        x = x * np.complex64(1 - 2j)
    np.testing.assert_array_equal(ours(x, y), numpys(x, y))


def test_refuses_of_products():
    x = np.ones((2, 3), np.float32)
    differ = r"contracted sizes differ, 3 \(axis 1 of x: float32\[2,3\]\) and 4 \(axis 0 of y"
    with pytest.raises(ContractionError, match=f"tensordot: {differ}"):
        tensordot(x, np.ones((4, 5), np.float32), 1)
    with pytest.raises(ContractionError, match=r"sizes differ, 6 .* and 4"):
        vdot(x, np.ones(4, np.float32))
    with pytest.raises(ValueError, match="do not both have 3 axes"):
        tensordot(x, x, 3)
    with pytest.raises(ValueError, match="two lists of axes"):
        tensordot(x, x, (0, 1, 0))
    for one in ((1,), [1]):
        with pytest.raises(ValueError, match=r"tensordot: axes must be a number or two lists"):
            tensordot(x, x, one)


def test_axes_of_tensordot_may_be_an_array():
    x, y = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    assert tensordot(x, y, np.array([[1], [0]])).shape == (2, 4)
    assert tensordot(x, y, np.array(1)).shape == (2, 4)


@pytest.mark.parametrize(
    ("x", "y", "summed", "shared", "rows", "sums"),
    [
        ("n3", "34", ((1,), (0,)), ((), ()), True, False),
        ("n3", "n4", ((0,), (0,)), ((), ()), False, True),
        ("n3", "4n", ((0,), (1,)), ((), ()), False, False),
        ("n3", "n3", ((1,), (1,)), ((0,), (0,)), True, False),
        ("n3", "n3", ((), ()), ((1, 0), (1, 0)), False, False),
        ("n3", "n3", ((1,), (1,)), ((), ()), False, False),
        ("nn", "nn", ((1,), (0,)), ((0,), (1,)), False, False),
        ("nn", "nn", ((0,), (1,)), ((1,), (0,)), False, False),
        ("n3", "34", ((), ()), ((1,), (0,)), False, False),
        ("n3", "3n", ((0,), (1,)), ((), ()), False, False),
        ("3n", "n3", ((0,), (1,)), ((), ()), False, False),
        ("34", "n4", ((1,), (1,)), ((), ()), False, False),
    ],
)
def test_which_products_go_by_rows_or_sum_them(x, y, summed, shared, rows, sums):
    n, f32 = size_variable("n"), np.dtype(np.float32)
    types = [array_type(tuple([n if c == "n" else int(c) for c in s]), f32) for s in (x, y)]
    op = DotGeneral(summed, shared)
    assert op.by_rows(types, [op.infer(*types)]) is rows
    assert op.sums_rows(types) is sums


def test_a_product_is_weak_where_both_operands_are_and_no_dtype_was_asked_for():
    weak, strong = (array_type((2, 2), np.dtype(np.float32), w) for w in (True, False))
    product = DotGeneral(((1,), (0,)))
    assert product.infer(weak, weak).weak_type
    assert not product.infer(weak, strong).weak_type
    assert not product.infer(strong, weak).weak_type
    wide = DotGeneral(((1,), (0,)), preferred=np.dtype(np.float64))
    assert wide.infer(weak, weak) is array_type((2, 2), np.dtype(np.float64))


def test_the_work_of_a_product_is_its_multiply_adds():
    f32 = np.dtype(np.float32)
    types = array_type((2, 3, 5, 7), f32), array_type((2, 5, 7, 11), f32)
    op = DotGeneral(((2, 3), (1, 2)), ((0,), (0,)))
    assert op.work(types, op.out_types(types)) == 2 * 3 * 5 * 7 * 11


@pytest.mark.parametrize(
    ("dtype", "x", "y", "compiled"),
    [
        ("int64", (32847, 173), (173, 1), True),  # of 5,681,819 products
        ("int64", (32842, 173), (173, 1), False),
        ("int64", (128, 256), (256, 1000), True),  # of 32,768 elements
        ("int64", (127, 258), (258, 1000), False),
        ("uint64", (128, 256), (256, 1000), True),
        ("float64", (128, 256), (256, 1000), False),
        ("int32", (128, 256), (256, 1000), False),  # multiplied as floats
        ("int32", (1 << 23, 2), (2, 1), True),  # too few products to convert for
    ],
    ids=str,
)
def test_large_products_of_integers_are_compiled(dtype, x, y, compiled):
    types = tuple(array_type(shape, np.dtype(dtype)) for shape in (x, y))
    assert DotGeneral(((1,), (0,))).compiled(types) is compiled


@pytest.mark.parametrize(
    ("summed", "shared", "plain"),
    [
        (((1,), (0,)), ((), ()), 2),
        (((0,), (0,)), ((), ()), 1),
        (((2,), (0,)), ((), ()), -1),
        (((1,), (1,)), ((), ()), -1),
        (((0, 1), (0, 1)), ((), ()), -1),
        (((1,), (0,)), ((0,), (1,)), -1),
        (((), ()), ((), ()), -1),
    ],
)
def test_products_that_are_those_of_matrices_and_vectors(summed, shared, plain):
    assert DotGeneral(summed, shared).plain == plain


@pytest.mark.parametrize("a", [2897, 3001, 4095, 67108863, 94906265, 94906267, 134217727])
def test_sums_of_integers_at_the_last_bit_of_floats(a):
    """Two products of which one is odd: sums from 2^24 or 2^53 on are not in floats."""
    x = np.tile(np.array([[a, a - 1]], np.int32), (64, 1))
    y = np.tile(np.array([[a - 2], [a - 2]], np.int32), (1, 700))
    want = (a + a - 1) * (a - 2) % 2**32
    got = DotGeneral(((1,), (0,))).reference(x, y)
    assert got.dtype == np.int32
    assert {int(n) % 2**32 for n in got.ravel()} == {want}
