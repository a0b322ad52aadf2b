"""Primitives across examples: the laws; derivatives taken within are those taken outside."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.primitive import NamedAxis
from stretto._engine.core.program import check
from stretto._engine.core.types import array_type
from stretto._engine.higher_order.custom_vmap import sequential_vmap
from stretto._engine.ops.collective.primitives import (
    AllGather,
    AllToAll,
    AxisIndex,
    PPermute,
    PSame,
    PSum,
    PSumSame,
    PSumScatter,
    PVary,
    TotalsTogether,
    take_rows,
)
from stretto.laws import b1, bf16, c64, f32, f64, i32, law, u32

SHIFT = [(0, 1), (1, 2), (3, 0)]
FUNCTIONS = {
    PSum: lambda x: lax.psum(x, "i"),
    AllGather: lambda x: lax.all_gather(x, "i", axis=1),
    PSumScatter: lambda x: lax.psum_scatter(x, "i", scatter_dimension=1),
    AllToAll: lambda x: lax.all_to_all(x, "i", 1, 0),
    PPermute: lambda x: lax.ppermute(x, "i", SHIFT),
    AxisIndex: lambda x: x * x * lax.axis_index("i"),
}
NUMBERS = (f32, f64, bf16, i32, u32, c64)
LAWS = [
    *(law(p, FUNCTIONS[p], t(4, 2, 4), along="i") for p in (PSum, PSumScatter) for t in NUMBERS),
    *(
        law(p, FUNCTIONS[p], t(4, 2, 4), along="i")
        for p in (AllGather, AllToAll, PPermute)
        for t in (f32, i32, b1, c64)
    ),
    law(AxisIndex, FUNCTIONS[AxisIndex], f32(4, 2), along="i"),
    law(AxisIndex, FUNCTIONS[AxisIndex], f64(4), along="i"),
]


RNG = np.random.default_rng(0)
X, T = (RNG.normal(size=(4, 2, 4)).astype(np.float32) for _ in range(2))


def bent(f):
    """With curvature before and after, so that second derivatives are not zero."""
    return lambda x: snp.sin(f(x * x))


def along(f):
    return st.vmap(f, axis_name="i")


def agree(one, other, *args):
    """Both give the same, eagerly and compiled."""
    for got, want in ((one, other), (st.jit(one), other), (one, st.jit(other))):
        for a, b in zip(st.tree.leaves(got(*args)), st.tree.leaves(want(*args)), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("primitive", FUNCTIONS, ids=lambda p: p.name)
def test_derivatives_within_are_those_outside(primitive):
    """J v and Jᵀ c of the function of all examples, each example computing its part."""
    f = bent(FUNCTIONS[primitive])
    whole = along(f)
    ct = RNG.normal(size=whole(X).shape).astype(np.float32)
    agree(along(lambda x, t: st.jvp(f, (x,), (t,))), lambda x, t: st.jvp(whole, (x,), (t,)), X, T)
    agree(along(lambda x, c: st.vjp(f, x)[1](c)), lambda x, c: st.vjp(whole, x)[1](c), X, ct)
    agree(
        along(lambda x, t: st.linearize(f, x)[1](t)),
        lambda x, t: st.linearize(whole, x)[1](t),
        X,
        T,
    )


@pytest.mark.parametrize("primitive", FUNCTIONS, ids=lambda p: p.name)
def test_second_derivatives_within_are_those_outside(primitive):
    f = bent(FUNCTIONS[primitive])
    whole = along(f)
    ct = RNG.normal(size=whole(X).shape).astype(np.float32)

    def forward(f):
        return lambda x, t, c: st.jvp(lambda x: st.vjp(f, x)[1](c)[0], (x,), (t,))[1]

    def backward(f):
        return lambda x, t, c: st.vjp(lambda x: st.vjp(f, x)[1](c)[0], x)[1](t)[0]

    for order in (forward, backward):
        agree(along(order(f)), order(whole), X, T, ct)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("primitive", FUNCTIONS, ids=lambda p: p.name)
def test_other_axes_are_stepped_over(primitive, axis):
    """A vmap within, over another axis, is the loop over that axis; so are its derivatives."""
    f = bent(FUNCTIONS[primitive])
    stack = RNG.normal(size=(3, 4, 2, 4)).astype(np.float32)  # other axis, named axis, example
    whole = np.moveaxis(stack, 0, axis + 1)
    within = along(st.vmap(f, axis))
    want = np.stack([along(f)(x) for x in stack], 1)
    for run in (within, st.jit(within), along(st.jit(st.vmap(f, axis)))):
        np.testing.assert_allclose(run(whole), want, rtol=2e-5, atol=2e-5)
    slope = st.grad(lambda x: f(x).sum())
    want = np.stack([along(slope)(x) for x in stack], 1)
    for run in (along(st.vmap(slope, axis)), st.jit(along(st.vmap(slope, axis)))):
        np.testing.assert_allclose(run(whole), want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("primitive", FUNCTIONS, ids=lambda p: p.name)
def test_what_all_examples_share(primitive):
    """An operand that is not mapped counts once for each example."""
    f, row = FUNCTIONS[primitive], X[0]
    shared = st.vmap(lambda n, x: f(x), (0, None), axis_name="i")
    counts = np.zeros(4)
    want = along(f)(np.stack([row] * 4))
    np.testing.assert_allclose(shared(counts, row), want, rtol=1e-6)
    np.testing.assert_allclose(st.jit(shared)(counts, row), want, rtol=1e-6)
    alone = st.vmap(f, None, axis_name="i", axis_size=4)
    np.testing.assert_allclose(alone(row), want, rtol=1e-6)


def test_of_what_all_examples_share_no_copies_are_made():
    program = st.make_graph(
        st.vmap(lambda x: lax.psum(x, "i"), None, None, axis_name="i", axis_size=1000)
    )(X)
    check(program)
    assert [e.primitive.name for e in program.equations] == ["mul"]
    # In int8 the number of examples wraps, as their sum does: 200 * 3 = 88 modulo 256.
    many = st.vmap(lambda x: lax.psum(x, "i"), None, None, axis_name="i", axis_size=200)
    assert int(many(np.int8(3))) == 88


@pytest.mark.parametrize("primitive", [PSum, AllGather], ids=lambda p: p.name)
def test_results_that_are_the_same_for_all_stay_unmapped(primitive):
    one = st.vmap(FUNCTIONS[primitive], 0, None, axis_name="i")
    np.testing.assert_allclose(one(X), along(FUNCTIONS[primitive])(X)[2], rtol=1e-6)
    seen = {}

    def f(x):
        seen["within"] = snp.sin(FUNCTIONS[primitive](x))
        return seen["within"]

    program = st.make_graph(along(f))(X)
    sines = [e for e in program.equations if e.primitive.name == "sin"]
    assert [e.outputs[0].type.shape for e in sines] == [seen["within"].shape]


def test_nothing_is_moved_where_nothing_must_be():
    names = lambda f: [e.primitive.name for e in st.make_graph(along(f))(X).equations]
    assert names(lambda x: snp.sin(lax.all_gather(x, "i"))) == ["sin", "broadcast_in_dim"]
    exchange = lambda x: lax.all_to_all(x, "i", 1, 1)
    assert set(names(lambda x: exchange(exchange(x)))) <= {"transpose"}


def test_no_value_without_the_axis():
    def loop(x):
        return lax.psum(x, "i")

    sequential = sequential_vmap(loop)
    with pytest.raises(st.errors.MissingRuleError, match=r"psum has no .* rule: it works across"):
        st.vmap(sequential, axis_name="i")(X)


def test_the_axis_that_was_bound():
    """A derivative that is run under another axis of the same name is refused by its size."""

    def f(x):
        pull = st.vjp(lambda x: lax.psum(x, "i"), x)[1]
        return st.vmap(lambda ct: pull(ct)[0], axis_name="i")(snp.ones(5))

    with pytest.raises(ValueError, match=r"'i' has size 4, but is run under .* size 5; give"):
        along(f)(np.ones(4, np.float32))


def test_types():
    assert PSum("i", 3) is PSum("i", 3)
    with pytest.raises(TypeError, match="psum: expected numbers, got bool"):
        PSum("i", 3)(snp.array([True]))
    for primitive in (AllToAll, PSumScatter):
        with pytest.raises(ValueError, match="axis 0 must have size 3, got float32"):
            primitive("i", 3)(snp.ones((2, 3)))


def test_rows():
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    got = take_rows(snp.array(x), np.array([[2, 0], [3, 1]], np.int32), -1)
    np.testing.assert_array_equal(got, [[[4, 5], [0, 1]], [[-1, -1], [2, 3]]])


BOTH = TotalsTogether((("i", 4),))


def sums(x):
    first, second = BOTH(x, x * x)
    return first * second


LAWS += [law(TotalsTogether, sums, t(4, 2), along="i") for t in (f32, f64, i32, c64)]


def test_types_and_effects():
    types = array_type((2,), np.dtype("f4")), array_type((), np.dtype("f4"))
    primitive = TotalsTogether((("x", 2), ("y", 3)))
    assert primitive.infer(*types) == types
    assert primitive.effects == {NamedAxis("x"), NamedAxis("y")}
    with pytest.raises(TypeError, match="one dtype"):
        primitive.infer(types[0], array_type((), np.dtype("i4")))


def test_along_two_axes():
    primitive = TotalsTogether((("x", 2), ("y", 3)))
    a = snp.arange(12.0).reshape(2, 3, 2)
    f = lambda row: primitive(row, row[0])
    inner = st.vmap(f, axis_name="y", out_axes=None)
    total, first = st.vmap(inner, axis_name="x", out_axes=None)(a)
    np.testing.assert_array_equal(total, a.sum((0, 1)))
    np.testing.assert_array_equal(first, a[..., 0].sum())


def test_what_all_share_is_a_multiple():
    f = st.vmap(BOTH, (0, None), axis_name="i", out_axes=None)
    total, multiple = f(snp.ones((4, 2)), snp.float32(3))
    np.testing.assert_array_equal(total, [4, 4])
    assert multiple == 12


def summed(x):
    return PVary("i", 4)(PSumSame("i", 4)(x))


def summed_and_taken(x):
    return PVary("i", 4)(PSame("i", 4)(PSum("i", 4)(x)))


LAWS += [
    *(law(PVary, summed, t(4, 2), along="i") for t in (f32, f64, i32, u32, c64)),
    *(law(PSumSame, summed, t(4, 2), along="i") for t in (f32, f64, bf16, i32, u32, c64)),
    *(law(PSame, summed_and_taken, t(4, 2), along="i") for t in (f32, f64, c64)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


def test_what_they_give():
    x = snp.arange(4.0)
    total = st.vmap(PSumSame("i", 4), axis_name="i", out_axes=None)(x)
    first = st.vmap(PSame("i", 4), axis_name="i", out_axes=None)
    assert (float(total), float(first(x + 3))) == (6, 3)
    rows = snp.arange(24.0).reshape(4, 2, 3)
    np.testing.assert_array_equal(first(rows), rows[0])
    last = st.vmap(PSame("i", 3), 2, axis_name="i", out_axes=None)
    np.testing.assert_array_equal(last(rows), rows[..., 0])
    assert first(x > 5).dtype == bool and not bool(first(x > 5))
    every = st.vmap(PVary("i", 4), axis_name="i", axis_size=4, in_axes=None)(snp.ones(2))
    np.testing.assert_array_equal(every, np.ones((4, 2)))


def test_sums_together_of_what_has_tangents():
    """A tangent or cotangent that is None stands for zero, and stays None."""

    def f(x):
        (out, (none, slope)) = BOTH.jvp((x, x * x), (None, x))
        back = BOTH.transpose((x, None))
        return out, slope, none is None and back[1] is None, back[0]

    x = snp.arange(4.0)
    (total, squares), slope, is_none, back = st.vmap(f, axis_name="i")(x)
    assert (total == 6).all() and (squares == 14).all() and (slope == 6).all()
    assert is_none.all() and (back == 6).all()


def test_the_cotangent_of_what_all_share_is_divided_among_them():
    (back,) = st.vmap(lambda ct: PSame("i", 4).transpose(ct, None), axis_name="i")(snp.ones(4))
    np.testing.assert_array_equal(back, [0.25] * 4)


@pytest.mark.parametrize("primitive", [PSum("i", 4), AllGather("i", 4)], ids=str)
def test_a_vmap_of_the_same_name_and_another_size(primitive):
    with pytest.raises(ValueError, match=rf"{primitive.name}: it was called under a vmap whose"):
        st.vmap(primitive, axis_name="i")(snp.ones(3))


def test_an_index_along_an_axis_of_another_size():
    with pytest.raises(ValueError, match="axis_index: it was called under a vmap whose axis 'i'"):
        st.vmap(lambda x: x + AxisIndex("i", 4)(), axis_name="i")(snp.ones(3))
