"""Comparison and choice: the laws, special values, NumPy, and what is refused."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import grad, jit, vmap
from stretto._engine.api.graph import make_graph
from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.types import array_type
from stretto._engine.ops import comparison as ops
from stretto.laws import (
    b1,
    bf16,
    c64,
    c128,
    check_special,
    f16,
    f32,
    f64,
    i8,
    i32,
    law,
    special_pairs,
    u32,
)

ORDER = {ops.Lt: ops.lt, ops.Le: ops.le, ops.Gt: ops.gt, ops.Ge: ops.ge}
EQUALITY = {ops.Eq: ops.eq, ops.Ne: ops.ne}
NO = {"derivative": False}
# vmap treats all dtypes alike
ONCE = {t: {"mapped": False} for t in (bf16, f64, f16, u32, i8, b1, c64, c128)}

LAWS = [
    *(
        law(p, f, t(5), t(5), **NO, **ONCE.get(t, {}))
        for table, types in (
            (ORDER, (f32, bf16, i32, u32, b1)),
            (EQUALITY, (f64, i32, u32, b1, c64, c128)),
        )
        for p, f in table.items()
        for t in types
    ),
    *(
        law(ops.Select, ops.select, b1(2, 3), t(2, 3), t(2, 3), **ONCE.get(t, {}))
        for t in (f32, f64, bf16, f16, c64, i32, b1)
    ),
    law(ops.Select, ops.select, b1(), f32(2, 3), f32(2, 3)),
    law(ops.Select, ops.select, b1(), f32(), f32()),
    law(ops.Select, ops.select, b1(2, 0), f32(2, 0), f32(2, 0)),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


def by_name(*tables):
    return {f.__name__: f for table in tables for f in table.values()}


@pytest.mark.parametrize("name", ["float8_e4m3fn", "bfloat16", "float16", "float32", "float64"])
def test_special_floats(name):
    check_special(by_name(ORDER, EQUALITY), *special_pairs(name))


@pytest.mark.parametrize("name", ["int4", "uint4", "int8", "uint8", "int32", "uint64"])
def test_special_integers(name):
    check_special(by_name(ORDER, EQUALITY), *special_pairs(name))


def test_comparisons_give_strong_bools():
    out = ops.lt(1, 2)
    assert out.type is array_type((), np.dtype(bool))
    assert (ops.eq(np.nan, np.nan), ops.ne(np.nan, np.nan)) == (False, True)


def test_where_broadcasts_and_promotes():
    out = ops.where(np.array([[True], [False]]), 1, np.array([1.5, 2.5, 3.5], np.float32))
    np.testing.assert_array_equal(out, [[1, 1, 1], [1.5, 2.5, 3.5]])
    assert out.dtype == np.float32
    assert ops.where(3, 1, 2).weak_type  # any number is a condition


def test_where_keeps_nan_of_the_other_choice_out_of_derivatives():
    f = lambda x: ops.where(ops.gt(x, 0.0), x, 0.0 / x)
    assert float(grad(f)(2.0)) == 1.0
    assert float(jit(grad(f))(2.0)) == 1.0


def test_select_scalar_condition_stays_scalar_under_vmap():
    mapped = vmap(ops.select, in_axes=(None, 0, 0))
    x = np.ones((3, 2), np.float32)
    program = make_graph(mapped)(np.array(True), x, x)
    assert [e.primitive.name for e in program.equations] == ["select"]
    assert program.equations[0].inputs[0].type.ndim == 0


@pytest.mark.parametrize("axes", [(0, None, None), (0, 1, None), (0, None, 2), (0, 2, 0)])
def test_select_mapped_scalar_condition_with_larger_choices(axes):
    rng = np.random.default_rng(0)
    c = np.array([True, False, True])
    x, y = (
        rng.normal(size=(4, 5) if a is None else np.insert((4, 5), a, 3)).astype(np.float32)
        for a in axes[1:]
    )
    row = lambda v, a, i: v if a is None else np.take(v, i, a)
    want = np.stack([np.where(c[i], row(x, axes[1], i), row(y, axes[2], i)) for i in range(3)])
    np.testing.assert_array_equal(vmap(ops.select, in_axes=axes)(c, x, y), want)


def test_full_of_a_size_that_varies():
    f = jit(
        lambda x: (snp.full(2, x.shape[0]), snp.full_like(x, x.shape[0])), dynamic_axes=({0: "n"},)
    )
    for n in (1, 3):
        number, same = f(np.zeros(n, np.float32))
        assert number.tolist() == [n, n] and same.tolist() == [n] * n
        assert (number.dtype, same.dtype) == (np.int32, np.float32)
        assert number.weak_type and not same.weak_type
    assert not make_graph(lambda x: (x, snp.full(2, 3.0)))(1.0).equations


def test_full_is_a_view_of_one_element():
    x = ops.full((1000, 1000), 2, np.dtype(np.float32))
    assert not any(x.to_host().strides)
    y = ops.full_like(as_value(1), 2.5, np.dtype(np.float32))
    assert (y.dtype, y.weak_type) == (np.float32, False)
    assert ops.zeros_like(as_value(1)).weak_type


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: ops.lt(1j, 2j), "lt: expected an array of kind bool or float or int or uint"),
        (
            lambda: ops.select(as_value(1.0), as_value(1), as_value(2)),
            r"select: expected a boolean or integer condition, got float32\[\]",
        ),
        (
            lambda: ops.select(as_value(True), as_value(1), as_value(2.0)),
            r"select: the choices must be of one type .* got bool\[\], int32\[\] and float32\[\]",
        ),
        (lambda: ops.where([True], 1, 2), "where: condition must be an array or a number; got a l"),
    ],
)
def test_refused(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_select_takes_integers():
    a, b = snp.array([1.0, 2.0, 3.0]), snp.array([4.0, 5.0, 6.0])
    for dtype in (snp.int32, snp.uint8, snp.bool_):
        pred = snp.array([2, 0, 1]).astype(dtype)
        assert st.lax.select(pred, a, b).tolist() == [1.0, 5.0, 3.0]
        assert st.jit(st.grad(lambda x, p=pred: st.lax.select(p, x, b).sum()))(a).tolist() == [
            1,
            0,
            1,
        ]
    assert st.lax.select(snp.array(0), a, b).tolist() == b.tolist()
    assert st.lax.select_n(snp.array([1, 0, 1]), a, b).tolist() == [4.0, 2.0, 6.0]
    with pytest.raises(TypeError, match="expected a boolean or integer condition, got float32"):
        st.lax.select(a, a, b)


def test_select_is_transposed_choice_by_choice():
    """Each of two linear choices gets the cotangent where it was chosen, and zero elsewhere."""
    condition, x, ct = snp.array([True, False, True]), snp.zeros(3), snp.array([1.0, 2.0, 3.0])
    both = st.linear_transpose(lambda x, y: ops.select(condition, x, y), x, x)
    np.testing.assert_array_equal(both(ct), [[1, 0, 3], [0, 2, 0]])
    zero = snp.zeros(3)
    first = st.linear_transpose(lambda x: ops.select(condition, x, zero), x)
    second = st.linear_transpose(lambda x: ops.select(condition, zero, x), x)
    np.testing.assert_array_equal(first(ct)[0], [1, 0, 3])
    np.testing.assert_array_equal(second(ct)[0], [0, 2, 0])
    # Transposition goes by `picks`; this is the rule by itself.
    rule, choice = ops.Select().transpose, Linear(x.type)
    (_, one, none), (_, nothing, other) = (
        rule(ct, condition, choice, x),
        rule(ct, condition, x, choice),
    )
    assert none is None and nothing is None
    np.testing.assert_array_equal([one, other], [[1, 0, 3], [0, 2, 0]])


def test_a_choice_is_weak_where_both_are_and_goes_by_rows():
    weak, strong = (array_type((2,), np.dtype(np.float32), w) for w in (True, False))
    condition = array_type((2,), np.dtype(bool))
    select = ops.Select()
    for types in ((weak, weak), (weak, strong), (strong, weak), (strong, strong)):
        assert select.infer(condition, *types).weak_type is (strong not in types)
        assert select.by_rows((condition, *types), (strong,))


@pytest.mark.parametrize(
    ("condition", "x", "y"),
    [
        ((2,), ((2,), "float32"), ((3,), "float32")),
        ((2,), ((2,), "float32"), ((2,), "float64")),
        ((3,), ((2,), "float32"), ((2,), "float32")),
        ((1,), ((2,), "float32"), ((2,), "float32")),
    ],
)
def test_choices_that_differ_in_one_respect_are_refused(condition, x, y):
    types = [array_type(shape, np.dtype(dtype)) for shape, dtype in (x, y)]
    with pytest.raises(TypeError, match="select: the choices must be of one type and the condit"):
        ops.Select().infer(array_type(condition, np.dtype(bool)), *types)
    assert ops.Select().infer(array_type((), np.dtype(bool)), types[0], types[0]) is types[0]
