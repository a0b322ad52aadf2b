"""Branches: the laws, what an untaken branch computes stays out, branches stay branches."""

import itertools

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import check
from stretto._engine.core.rewriting import live, restrict
from stretto._engine.higher_order.cond import Cond
from stretto.laws import b1, f32, f64, i32, law

cond, switch = st.lax.cond, st.lax.switch

THREE = [
    lambda x, y: (snp.sin(x) * y, y),
    lambda x, y: (x, x * x * y),
    lambda x, y: (y * 3.0, x - y),
]


def two(p, x, y):
    return cond(p, lambda x, y: snp.sin(x) * y, lambda x, y: x + y * y, x, y)


def three(i, x, y):
    return switch(i, THREE, x, y)


def mapped(i, x, y):
    return st.vmap(three, (0, 0, None))(i, x, y)


def unlike(p, x, n):
    """One branch has no derivative by x; integers pass through."""
    return cond(p, lambda x, n: (x * x, n + 1), lambda x, n: (snp.ones_like(x), n), x, n)


def capturing(p, x):
    return cond(p, lambda: (x * 2.0, snp.sum(x)), lambda: (snp.cos(x), x[0]))


TRUE, FALSE = np.array(True), np.array(False)
LAWS = [
    law(Cond, two, TRUE, f32(3), f32(3)),
    law(Cond, two, FALSE, f64(3), f64(3)),
    law(Cond, two, b1(), f32(2, 2), f32(2, 2), mapped=False),
    law(Cond, three, np.array(2, np.int32), f32(2), f32(2)),
    law(Cond, mapped, np.array([2, 0, 1, -5], np.int32), f32(4, 2), f32(2)),
    law(Cond, mapped, np.array([1, 9], np.int32), f64(2, 2), f64(2)),
    law(Cond, unlike, TRUE, f32(2), i32(2)),
    law(Cond, capturing, FALSE, f64(3)),
    law(Cond, lambda x: switch(7, [lambda x: x * x], x), f32(2)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


# What an untaken branch computes, NaN among it, never leaks.


def guarded(x):
    """log(x) where that exists, else x: the other branch is NaN or infinite in value or slope."""
    return cond(x > 0, lambda x: snp.log(x) * snp.sqrt(x), lambda x: x, x)


X = np.array([2.0, -1.0, 0.0, 4.0], np.float32)
SAFE = np.where(X > 0, X, 1)
VALUE = np.where(X > 0, np.log(SAFE) * np.sqrt(SAFE), X)
SLOPE = np.where(X > 0, (np.log(SAFE) / 2 + 1) / np.sqrt(SAFE), 1)
CURVE = np.where(X > 0, -np.log(SAFE) / (4 * SAFE**1.5), 0)


def summed(f):
    return lambda x: f(x).sum()


FIRST = {
    "vmap(grad)": st.vmap(st.grad(guarded)),
    "grad(vmap)": st.grad(summed(st.vmap(guarded))),
    "jit(vmap(grad))": st.jit(st.vmap(st.grad(guarded))),
    "jit(grad(vmap))": st.jit(st.grad(summed(st.vmap(guarded)))),
    "vmap(jit(grad))": st.vmap(st.jit(st.grad(guarded))),
    "grad(jit(vmap(jit)))": st.grad(summed(st.jit(st.vmap(st.jit(guarded))))),
    "jvp(vmap)": lambda x: st.jvp(st.vmap(guarded), (x,), (snp.ones_like(x),))[1],
    "vmap(jvp)": st.vmap(lambda x: st.jvp(guarded, (x,), (1.0,))[1]),
    "vmap(jacfwd)": st.vmap(st.jacfwd(guarded)),
    "linearize(vmap)": lambda x: st.linearize(st.vmap(guarded), x)[1](snp.ones_like(x)),
}
SECOND = {
    "vmap(grad(grad))": st.vmap(st.grad(st.grad(guarded))),
    "grad(vmap(grad))": st.grad(summed(st.vmap(st.grad(guarded)))),
    "grad(grad(vmap)))": st.grad(summed(st.grad(summed(st.vmap(guarded))))),
    "vmap(hessian)": st.vmap(st.hessian(guarded)),
    "jit(vmap(jacrev(jacfwd)))": st.jit(st.vmap(st.jacrev(st.jacfwd(guarded)))),
    "jvp(grad(vmap))": lambda x: st.jvp(
        st.grad(summed(st.vmap(guarded))), (x,), (snp.ones_like(x),)
    )[1],
}


@pytest.mark.parametrize("order", FIRST)
def test_untaken_branch_stays_out_of_gradients(order):
    np.testing.assert_allclose(st.vmap(guarded)(X), VALUE, rtol=1e-6)
    np.testing.assert_allclose(FIRST[order](snp.array(X)), SLOPE, rtol=1e-6)


@pytest.mark.parametrize("order", SECOND)
def test_untaken_branch_stays_out_of_second_derivatives(order):
    np.testing.assert_allclose(SECOND[order](snp.array(X)), CURVE, rtol=1e-5, atol=1e-7)


def test_shared_operand_gets_finite_gradient():
    """The sum over examples of the cotangents of w must leave out those of untaken branches."""

    def f(w, x):
        return cond(x > 0, lambda: snp.log(x * w), lambda: w * 3.0)

    total = lambda w: st.vmap(f, (None, 0))(w, snp.array(X)).sum()
    for g in (st.grad(total), st.jit(st.grad(total)), st.grad(st.jit(total))):
        np.testing.assert_allclose(g(2.0), 2 / 2.0 + 2 * 3.0, rtol=1e-6)


def test_nested_vmap():
    f = lambda i, x: switch(i, [snp.log, lambda x: x, lambda x: 1 / x], x)
    indices = np.array([0, 1, 2])
    x = np.array([[1.0, -2.0], [3.0, 0.0]], np.float32)
    for outer, inner in itertools.permutations(["i", "x"]):
        axes = {"i": (0, None), "x": (None, 0)}
        g = st.vmap(st.vmap(f, axes[inner]), axes[outer])
        got = np.asarray(g(indices, x[:, 0]))
        want = np.array([[f(i, v) for v in x[:, 0]] for i in indices])
        np.testing.assert_allclose(got, want if outer == "i" else want.T, rtol=1e-6)
    both = st.vmap(st.vmap(f))(np.array([[0, 1], [2, 1]]), x)
    np.testing.assert_allclose(both, [[0, -2], [1 / 3, 0]], rtol=1e-6)
    slopes = st.vmap(st.vmap(st.grad(f, 1)))(np.array([[0, 1], [2, 1]]), x)
    np.testing.assert_allclose(slopes, [[1, 1], [-1 / 9, 1]], rtol=1e-6)
    hess = st.jit(st.vmap(st.vmap(st.grad(st.grad(f, 1), 1))))(np.array([[0, 1], [2, 1]]), x)
    np.testing.assert_allclose(hess, [[-1, 0], [2 / 27, 0]], rtol=1e-6)


def test_vmap_of_switch_with_jvp():
    f = lambda i, x, y: three(i, x, y)[1]
    indices = np.array([0, 1, 2, 5, -3])
    x, y = np.linspace(1, 2, 5, dtype="f4"), np.float32(3)
    move = lambda i, x: st.jvp(lambda x, y: f(i, x, y), (x, y), (1.0, 2.0))[1]
    want = [[2, 2 * v * y + v * v * 2, 1 - 2][min(max(i, 0), 2)] for i, v in zip(indices, x)]
    np.testing.assert_allclose(st.vmap(move)(indices, x), want, rtol=1e-6)
    np.testing.assert_allclose(st.jit(st.vmap(move))(indices, x), want, rtol=1e-6)


# What is a branch, and what is not.


def conds(program):
    return [e.primitive for e in program.equations if isinstance(e.primitive, Cond)]


def test_unmapped_predicate_stays_a_branch():
    program = st.make_graph(st.vmap(two, (None, 0, 0)))(True, snp.ones(4), snp.ones(4))
    (primitive,) = conds(program)
    assert primitive.size is None
    text = st.jit(st.vmap(two, (None, 0, 0))).lower(True, snp.ones(4), snp.ones(4)).as_text()
    assert text.count("stablehlo.case") == 1
    (primitive,) = conds(st.make_graph(st.vmap(two))(snp.ones(4) > 0, snp.ones(4), snp.ones(4)))
    assert primitive.size == 4


def test_unmapped_results_of_a_branch_stay_unmapped():
    f = lambda p, x, y: cond(p, lambda: (x, y * 2.0), lambda: (x * 3.0, y))
    program = st.make_graph(st.vmap(f, (None, 0, None)))(True, snp.ones(4), 1.0)
    (equation,) = [e for e in program.equations if isinstance(e.primitive, Cond)]
    assert [v.type.shape for v in equation.outputs] == [(4,), ()]


def test_only_the_branch_taken_runs():
    ran = []

    def loud(x):
        ran.append(1)
        return x

    assert float(cond(True, lambda x: x, loud, 1.0)) == 1.0
    assert len(ran) == 1  # traced, for its type
    forever = lambda x: st.lax.while_loop(lambda c: True, lambda c: c, x)
    assert float(cond(False, forever, lambda x: x + 1, 1.0)) == 2.0
    assert float(st.jit(lambda p: cond(p, forever, lambda x: x + 1, 1.0))(False)) == 2.0


def test_closures_over_tracers():
    def f(x, y):
        return cond(y > 1, lambda: x * y, lambda: cond(x > 0, lambda: x * x, lambda: y))

    loop = lambda g: np.array([g(*xy) for xy in zip(A, B)])
    A, B = np.array([1.0, -1.0, 3.0], np.float32), np.array([2.0, 0.5, 0.25], np.float32)
    grad = st.grad(f, (0, 1))
    want = loop(lambda x, y: np.array(grad(x, y)))
    np.testing.assert_allclose(np.stack(st.vmap(grad)(A, B), 1), want)
    np.testing.assert_allclose(np.stack(st.jit(st.vmap(grad))(A, B), 1), want)
    np.testing.assert_allclose(want, [[2, 1], [0, 1], [6, 0]])
    total = lambda x, y: st.vmap(st.jit(f))(x, y).sum()
    np.testing.assert_allclose(np.stack(st.grad(total, (0, 1))(A, B), 1), want)


def test_trees_and_weak_types():
    out = cond(
        True,
        lambda t: {"a": t["a"], "b": 1},
        lambda t: {"a": 0, "b": t["b"]},
        {"a": snp.arange(2.0).sum(), "b": 2.5},
    )
    assert (out["a"].dtype, out["b"].dtype) == (snp.float32, snp.float32)
    assert not out["a"].weak_type
    assert cond(True, lambda: None, lambda: None) is None
    assert float(cond(3, lambda: 1.0, lambda: 2.0)) == 1.0


def test_the_first_branch_says_whether_a_result_is_weak():
    strong, weak = (lambda: snp.float32(1)), (lambda: 1.0)
    assert (
        cond(True, strong, weak).weak_type and st.jit(lambda p: cond(p, strong, weak))(0).weak_type
    )
    assert not cond(True, weak, strong).weak_type
    assert switch(1, [weak, strong, strong]).weak_type
    assert not switch(1, [strong, weak, weak]).weak_type


def test_index_is_clamped():
    f = lambda i: switch(i, [lambda: 10, lambda: 20, lambda: 30])
    for g in (f, st.jit(f), lambda i: st.vmap(f)(snp.array([i]))[0]):
        assert [int(g(i)) for i in (-4, 0, 2, 3)] == [10, 10, 30, 30]
    assert int(switch(True, [lambda: 1, lambda: 2])) == 2


@pytest.mark.parametrize(
    "branches, message",
    [
        (
            (lambda x: (x, x), lambda x: x),
            r"one structure.*part at result: a leaf and a tuple of length 2",
        ),
        (
            (lambda x: {"a": x}, lambda x: {"b": x}),
            r"false_fun and true_fun part at result.*\['b'\].*\['a'\]",
        ),
        (
            (lambda x: {"a": [x, x]}, lambda x: {"a": [x, x[0]]}),
            r"result\['a'\]\[1\] is float32\[\] in false_fun, float32\[2\] in true",
        ),
        ((lambda x: x, lambda x: x.astype(snp.bfloat16)), r"equal types; result is.*bfloat16\[2\]"),
        ((lambda x: x, lambda x: "a"), r"must be an array or a number"),
    ],
)
def test_branches_of_different_types_are_refused(branches, message):
    with pytest.raises(TypeError, match=message):
        cond(True, *branches, snp.ones(2))


def test_bad_predicates_are_refused():
    with pytest.raises(TypeError, match=r"pred must be a scalar, got bool\[2\].*snp.where"):
        cond(snp.ones(2) > 0, lambda: 1, lambda: 2)
    with pytest.raises(TypeError, match=r"index must be an integer scalar, got float32\[\]"):
        switch(1.5, [lambda: 1])
    with pytest.raises(ValueError, match="at least one branch"):
        switch(0, [])


def test_traced_operand_in_a_branch_is_named():
    with pytest.raises(st.errors.TracedValueError, match=r"the argument operands\[0\]\['a'\]"):
        cond(True, lambda t: 1 if t["a"] > 0 else 2, lambda t: 3, {"a": 1.0})


def test_one_operand_by_name():
    double, halve = (lambda x: x * 2), (lambda x: x / 2)
    assert float(st.lax.cond(True, double, halve, operand=3.0)) == 6
    assert float(st.lax.switch(1, [double, halve], operand=3.0)) == 1.5
    assert float(st.lax.cond(False, lambda _: 1.0, lambda _: 2.0, operand=None)) == 2
    with pytest.raises(TypeError, match="cond: give operands by position or one as operand="):
        st.lax.cond(True, double, halve, 3.0, operand=3.0)


@pytest.mark.parametrize("wrap", [lambda f: f, st.jit, st.grad], ids=["eager", "jit", "grad"])
def test_an_operand_for_each_branch(wrap):
    f = lambda x: cond(x > 1, x, lambda own: own**2, {"a": 3 * x}, lambda own: own["a"])
    want = {1.0: 3.0, 2.0: 4.0}
    for x, y in want.items():
        assert float(wrap(f)(x)) == (3.0 if wrap is st.grad and x == 1.0 else y)
    np.testing.assert_array_equal(st.vmap(f)(snp.array([1.0, 2.0])), [3.0, 4.0])
    both = lambda x: cond(x > 1, lambda x, y: x + y, lambda x, y: x * y, x, 5.0)
    assert float(wrap(both)(3.0)) == (1.0 if wrap is st.grad else 8.0)


def test_what_all_branches_hand_on_is_the_operand():
    def f(p, x, y):
        return cond(p, lambda x, y: (x + 1, y), lambda x, y: (x - 1, y), x, y)

    y = snp.arange(3.0)
    out = st.vmap(f, (0, 0, None), (0, None))(snp.array([True, False]), snp.ones(2), y)
    np.testing.assert_array_equal(out[0], [2, 0])
    np.testing.assert_array_equal(out[1], y)
    program = st.make_graph(lambda p, x: cond(p, lambda x: x, lambda x: x, x))(True, y)
    assert str(program).splitlines()[-1] == "  return b }"
    assert not [e for e in live(program).equations if e.primitive.name == "cond"]
    printed = lambda x: (st.debug.callback(lambda: None), x)[1]
    seen = st.make_graph(lambda p, x: cond(p, printed, lambda x: x, x))(True, y)
    assert [e for e in live(seen).equations if e.primitive.name == "cond"]


def test_a_branch_given_twice_is_traced_once():
    seen = []

    def square(x):
        seen.append(x)
        return x * x

    f = st.jit(lambda i, x: st.lax.switch(i, [square, lambda x: -x, square], x))
    assert [float(f(i, 3.0)) for i in range(3)] == [9.0, -3.0, 9.0]
    assert float(st.grad(lambda x: st.lax.cond(True, square, square, x))(3.0)) == 6.0
    assert len(seen) == 2


@pytest.mark.parametrize("wrap", [lambda f: f, st.jit], ids=["eager", "jit"])
def test_the_result_is_that_of_the_branch_though_references_are_written(wrap):
    reference = st.new_ref(snp.zeros(2))

    def writing(x):
        reference[...] = x
        return x * 3.0

    f = wrap(lambda p: cond(p, writing, lambda x: x * 5.0, snp.ones(2)))
    assert f(False).tolist() == [5, 5] and reference[...].tolist() == [0, 0]
    assert f(True).tolist() == [3, 3] and reference[...].tolist() == [1, 1]


def test_operands_that_a_branch_reads_a_part_of():
    """Their cotangents are added to a sum so far, but not where examples take their own branch."""

    def f(p, x, i):
        part = lambda i, x: st.lax.dynamic_slice(x, (i,), (2,))
        return cond(p, part, lambda i, x: x[:2], i, x)

    (one,) = conds(st.make_graph(f)(True, snp.ones(5), 1))
    assert one.accumulates == (2,)
    many = st.make_graph(st.vmap(f))(snp.ones(3, bool), snp.ones((3, 5)), snp.ones(3, int))
    assert conds(many)[0].accumulates == ()


@pytest.mark.parametrize("wrap", [lambda f: f, st.jit], ids=["eager", "jit"])
def test_loops_in_branches_of_examples_of_examples(wrap):
    """A loop does not end for a 0, which must not be waited for where no example takes it."""
    loop = lambda x: st.lax.while_loop(lambda x: x < 10, lambda x: x * 2, x)
    inner = st.vmap(lambda p, x: cond(p, loop, lambda x: -x, x))
    outer = wrap(st.vmap(lambda q, x: cond(q, lambda x: inner(x > 2, x), lambda x: x, x)))
    x = snp.array([[1.0, 3.0, 4.0], [5.0, -1.0, 0.0], [0.0, 0.0, 0.0]])
    got = outer(snp.array([True, False, True]), x)
    np.testing.assert_array_equal(got, [[-1, 12, 16], [5, -1, 0], [0, 0, 0]])


@pytest.mark.parametrize(
    ("needed", "operands"), [((True, True), 3), ((True, False), 2), ((False, True), 3)]
)
def test_only_what_a_needed_result_is_made_of_stays(needed, operands):
    def f(p, x, y, z):
        return cond(p, lambda x, y, z: (x, x * y), lambda x, y, z: (y * 2, x * z), x, y, z)

    program = st.make_graph(f)(True, *[snp.ones(2)] * 3)
    new = restrict(program, needed)
    check(new)
    (equation,) = [e for e in new.equations if isinstance(e.primitive, Cond)]
    assert len(equation.inputs) == 1 + operands and len(equation.outputs) == sum(needed)
    assert (equation is program.equations[-1]) is all(needed)
    args = [snp.array(v) for v in (True, [2.0, 3], [5.0, 7], [11.0, 13])]
    for p in (True, False):
        outs = [o for o, n in zip(f(p, *args[1:]), needed, strict=True) if n]
        for got, want in zip(evaluate(new, [snp.array(p), *args[1:]]), outs, strict=True):
            np.testing.assert_array_equal(got, want)


def test_a_branch_is_interpreted_however_much_there_is():
    program = st.make_graph(lambda p, x: cond(p, snp.sin, snp.cos, x))(True, snp.ones(1 << 16))
    (primitive,) = conds(program)
    assert primitive.compiled(program.in_types) is False
