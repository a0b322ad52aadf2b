"""Loops with an unknown number of steps: the laws, frozen members, types, refusals."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import check
from stretto._engine.core.rewriting import restrict
from stretto._engine.higher_order import family
from stretto._engine.higher_order import while_loop as module
from stretto._engine.higher_order.while_loop import While, most_steps
from stretto.laws import f32, f64, law

while_loop = st.lax.while_loop


def power(n, x):
    """(x + n) * 1.5^n, and n."""
    step = lambda s: (s[0] + 1, s[1] * 1.5 + x)
    return while_loop(lambda s: s[0] < n, step, (0, x))[::-1]


def until(x, y):
    """Doubling until it exceeds y: the number of steps depends on what is differentiated."""
    return while_loop(
        lambda s: snp.sum(s[0]) < snp.sum(y), lambda s: (s[0] * 2.0, s[1] + s[0] * y), (x, x)
    )


def swap(x, y):
    """A carry that gets a tangent only after some steps."""
    z = snp.zeros_like(x)
    return while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, s[2], s[3], snp.sin(s[3])), (0, z, y, x)
    )[1:]


def mapped(n, x):
    return st.vmap(power, (0, None))(n, x)


LAWS = [
    law(While, power, np.array(4, np.int32), f32(3), reverse=False),
    law(While, power, np.array(0, np.int32), f64(2), reverse=False),
    law(While, until, f32(2).within(0.5, 1), f32(2).within(6, 7), reverse=False, mapped=False),
    law(While, until, f64(2).within(0.5, 1), f64(2).within(6, 7), reverse=False),
    law(While, swap, f32(2), f32(2), reverse=False),
    law(While, mapped, np.array([3, 0, 1], np.int32), f32(2), reverse=False),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


def test_finished_members_keep_their_carry():
    def reciprocals(n):
        """1/(n-1) + … + 1/1 by counting down; at 0 a further step would divide by zero."""
        return while_loop(lambda s: s[0] > 1, lambda s: (s[0] - 1, s[1] + 1 / (s[0] - 1)), (n, 0.0))

    n = np.array([5.0, 1.0, 2.0, 0.0], np.float32)
    want = [[1, 1, 1, 0], [25 / 12, 0, 1, 0]]
    for f in (st.vmap(reciprocals), st.jit(st.vmap(reciprocals)), st.vmap(st.jit(reciprocals))):
        np.testing.assert_allclose(f(n), want, rtol=1e-6)


def test_finished_members_keep_their_tangent():
    """Newton steps of a root: past the limit the step is 0/0."""

    def f(x, n):
        step = lambda s: (s[0] + 1, s[1] / (n - s[0]))
        return while_loop(lambda s: s[0] < n, step, (0.0, x))[1]

    n = np.array([3.0, 0.0, 1.0], np.float32)
    slope = lambda x, n: st.jvp(lambda x: f(x, n), (x,), (1.0,))[1]
    want = [1 / 6, 1.0, 1.0]
    np.testing.assert_allclose(st.vmap(slope, (None, 0))(2.0, n), want, rtol=1e-6)
    np.testing.assert_allclose(st.jit(st.vmap(slope, (None, 0)))(2.0, n), want, rtol=1e-6)
    whole = lambda x: st.vmap(f, (None, 0))(x, n)
    np.testing.assert_allclose(st.jvp(whole, (2.0,), (1.0,))[1], want, rtol=1e-6)
    np.testing.assert_allclose(st.jacfwd(whole)(2.0), want, rtol=1e-6)


def test_nested_vmap():
    f = lambda n, x: power(n, x)[0]
    n, x = np.array([0, 3, 1]), np.array([1.0, 2.0], np.float32)
    want = [[f(i, v) for v in x] for i in n]
    np.testing.assert_allclose(st.vmap(st.vmap(f, (None, 0)), (0, None))(n, x), want)
    np.testing.assert_allclose(
        np.transpose(st.jit(st.vmap(st.vmap(f, (0, None)), (None, 0)))(n, x)), want
    )


def test_condition_that_no_member_changes_stays_scalar():
    program = st.make_graph(st.vmap(power, (None, 0)))(3, snp.ones(4))
    (loop,) = [e.primitive for e in program.equations if isinstance(e.primitive, While)]
    assert loop.cond.out_types[0].shape == ()
    assert [t.shape for t in loop.body.out_types] == [(), (4,)]


def test_short_loops_are_interpreted_and_long_ones_go_on_compiled():
    f = lambda n: while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] + 2), (0, 0))
    assert [tuple(map(int, f(n))) for n in (0, 5, 20000)] == [(0, 0), (5, 10), (20000, 40000)]
    with st.config(disable_jit=True):
        assert tuple(map(int, f(1200))) == (1200, 2400)


def test_nested_loops_and_closures():
    def f(x, n):
        inner = lambda y: while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * x), (0, y))[1]
        return while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, inner(s[1])), (0, x))[1]

    n = np.array([0, 1, 3])
    np.testing.assert_allclose(st.vmap(f, (None, 0))(2.0, n), [2, 8, 128])
    slope = lambda x, n: st.jvp(lambda x: f(x, n), (x,), (1.0,))[1]
    np.testing.assert_allclose(st.jit(st.vmap(slope, (None, 0)))(2.0, n), [1, 12, 448])


def test_reverse_derivatives_are_refused_only_where_they_are_needed():
    f = lambda x: while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * x), (0, x))[1]
    with pytest.raises(st.errors.MissingRuleError, match=r"while.*lax.scan"):
        st.grad(f)(2.0)
    with pytest.raises(st.errors.MissingRuleError):
        st.jit(st.grad(st.jit(f)))(2.0)
    assert float(st.grad(lambda x: x * st.lax.stop_gradient(f(x)))(2.0)) == 16
    y, move = st.linearize(f, 2.0)
    assert (float(y), float(move(1.0))) == (16, 32)
    assert float(st.jacfwd(st.jacfwd(f))(2.0)) == 48
    steps = lambda x: while_loop(lambda i: i < 3, lambda i: i + 1, 0) * x
    assert float(st.grad(steps)(2.0)) == 3


def test_weak_types_settle():
    out = while_loop(lambda s: s[0] < 3, lambda s: (s[0] + snp.int32(1), s[1] + s[0] * 0.5), (0, 1))
    assert [(v.dtype.name, v.weak_type) for v in out] == [("int32", False), ("float32", True)]
    assert float(out[1]) == 2.5
    chain = while_loop(
        lambda s: s[0] < 2, lambda s: (s[0] + 1, s[2], s[3], snp.float32(7)), (0, 1, 2, 3)
    )
    assert [v.dtype.name for v in chain] == ["int32", "float32", "float32", "float32"]
    assert [float(v) for v in chain] == [2, 3, 7, 7]


@pytest.mark.parametrize(
    "body, init, message",
    [
        (
            lambda c: (c[0], snp.ones(2)),
            (1, 2.0),
            r"init_val\[1\] is float32\[\], but float32\[2\]",
        ),
        (
            lambda c: {"i": c["i"] + 0.5},
            {"i": snp.int32(1)},
            r"init_val\['i'\] is int32\[\].*astype",
        ),
        (lambda c: c.astype(snp.int32), snp.float32(1), r"init_val is float32\[\], but int32\[\]"),
        (lambda c: c.astype(snp.bfloat16), snp.float32(1), r"but bfloat16\[\]"),
        (lambda c: (c[0],), (1, 2.0), "part at carry: a tuple of length 2 and a tuple of length 1"),
        (lambda c: {"a": c["a"], "c": 1}, {"a": 1, "b": 2}, r"\['a', 'b'\].*\['a', 'c'\]"),
    ],
)
def test_a_carry_that_changes_is_named(body, init, message):
    with pytest.raises(TypeError, match=message):
        while_loop(lambda c: True, body, init)


def test_bad_conditions_are_refused():
    for bad in (lambda c: c, lambda c: (c > 1, c > 2), lambda c: snp.ones(2) > c):
        with pytest.raises(TypeError, match="cond_fun must return a boolean scalar"):
            while_loop(bad, lambda c: c, 1.0)


def test_traced_carry_used_as_a_number_is_named():
    with pytest.raises(st.errors.TracedValueError, match=r"the argument init_val\['n'\]"):
        while_loop(lambda c: True, lambda c: {"n": int(c["n"])}, {"n": 1.0})


def test_examples_with_effects_run_one_after_the_other():
    seen = []

    def body(c):
        st.debug.callback(lambda c: seen.append(c.tolist()), c, ordered=True)
        return c * 2

    f = lambda limit, x: while_loop(lambda c: c.sum() < limit, body, x)
    limits, x = snp.array([4.0, 8.0]), snp.ones(2)
    want = [[1, 1], [1, 1], [2, 2]]
    for run in (st.vmap(f, (0, None)), st.jit(st.vmap(f, (0, None)))):
        np.testing.assert_array_equal(run(limits, x), [[2, 2], [4, 4]])
        assert seen == want
        seen.clear()
    both = st.vmap(lambda limit, x: st.jvp(lambda x: f(limit, x), (x,), (x,)), (0, None))
    for run in (both, st.jit(both)):
        np.testing.assert_array_equal(run(limits, x), [[[2, 2], [4, 4]]] * 2)
        assert seen == want
        seen.clear()


def test_the_condition_is_no_tree():
    with pytest.raises(TypeError, match="cond_fun must return a boolean scalar, got a tree of"):
        st.lax.while_loop(lambda c: (c < 3,), lambda c: c + 1, 0)
    with pytest.raises(TypeError, match="cond_fun must return a boolean scalar, got"):
        st.lax.while_loop(lambda c: None, lambda c: c + 1, 0)


def steps_of(cond, body, *carry):
    graph = st.make_graph(lambda x: st.lax.while_loop(cond, body, (x, *carry)))(1.0)
    (equation,) = [e for e in graph.equations if isinstance(e.primitive, While)]
    loop = equation.primitive
    own = equation.inputs[loop.cond_consts + loop.body_consts :]
    return most_steps(loop.cond, loop.cond_consts, loop.body, loop.body_consts, own)


def halved(s):
    return s[0] / 2, s[1] + 1


@pytest.mark.parametrize(
    ("cond", "body", "first", "wanted"),
    [
        (lambda s: (s[0] > 1) & (s[1] < 100), halved, 0, 101),
        (lambda s: (s[1] <= 100) & (s[0] > 1), halved, 90, 11),
        (lambda s: (s[1] < 100) & (s[0] > 1), lambda s: (s[0], 1 + s[1]), 0, 101),
        (lambda s: s[1] <= 100, lambda s: (s[0], s[1] + 4), 0, 26),
        (lambda s: (s[0] > 1) & (s[1] < 3) & (s[1] < 9), halved, 0, 4),
        (lambda s: s[1] < 3, halved, 7, 1),
        (lambda s: (s[0] > 1) | (s[1] < 100), halved, 0, None),
        (lambda s: s[1] > 3, halved, 7, None),
        (lambda s: s[1] < 100, lambda s: (s[0], s[1] - 1), 0, None),
        (lambda s: s[1] < 100, lambda s: (s[0], s[1] * 2), 1, None),
        (lambda s: s[1] < s[0], halved, 0, None),
        (lambda s: s[0] < 100, halved, 0, None),
    ],
)
def test_bounds(cond, body, first, wanted):
    assert steps_of(cond, body, first) == wanted


@pytest.mark.parametrize(("steps", "compiled"), [(333, False), (334, True)])
def test_after_a_thousand_operations_the_rest_is_compiled(steps, compiled, monkeypatch):
    """Each step counts as the condition, the body and one more: three here."""
    rest, call = [], family.call
    monkeypatch.setattr(family, "call", lambda *args: rest.append(args) or call(*args))
    assert while_loop(lambda i: i < steps, lambda i: i + 1, 0) == steps
    assert bool(rest) is compiled


def test_it_is_supposed_to_take_ten_steps():
    (loop,) = st.make_graph(lambda n: while_loop(lambda i: i < n, lambda i: i + 1, 0))(5).equations[
        -1:
    ]
    each = loop.primitive.cond.work + loop.primitive.body.work
    types, outs = ([a.type for a in atoms] for atoms in (loop.inputs, loop.outputs))
    assert loop.primitive.work(types, outs) == 10 * each


@pytest.mark.parametrize(
    ("needed", "inputs", "outputs"),
    [((1, 1, 1), 4, 3), ((1, 0, 0), 2, 1), ((0, 1, 0), 4, 3), ((0, 0, 1), 3, 2)],
)
def test_only_what_a_needed_result_is_made_of_stays(needed, inputs, outputs):
    """And what the condition reads."""

    def f(a, b, c, most):
        step = lambda s: (s[0] + 1, s[1] * s[2], s[2])
        return st.lax.while_loop(lambda s: s[0] < most, step, (a, b, c))

    args = [snp.float32(v) for v in (1, 2, 3, 5)]
    program = st.make_graph(f)(*args)
    needed = tuple(map(bool, needed))
    new = restrict(program, needed)
    check(new)
    (equation,) = [e for e in new.equations if e.primitive.name == "while"]
    assert (len(equation.inputs), len(equation.outputs)) == (inputs, outputs)
    assert (equation is program.equations[-1]) is (outputs == 3)
    wanted = [o for o, n in zip(f(*args), needed, strict=True) if n]
    for got, want in zip(evaluate(new, args), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_loop_is_interpreted_at_first_and_may_never_end():
    program = st.make_graph(lambda x: st.lax.while_loop(lambda x: x < 9, lambda x: x * 2, x))(1.0)
    (loop,) = [e.primitive for e in program.equations if e.primitive.name == "while"]
    assert loop.compiled(program.in_types) is False and loop.open_loop is True
    assert loop.most_work(program.equations[-1].inputs) == np.inf


@pytest.mark.parametrize(("most", "steps"), [(8, 3), (9, 4), (11, 4), (12, 5), (30, 6)])
def test_so_many_operations_are_interpreted_and_the_rest_compiled(monkeypatch, most, steps):
    """Each step has three: those of condition and body, and one for the step itself."""
    interpreted, compiled = [], []
    evaluate, call = module.evaluate, module.family.call
    monkeypatch.setattr(module, "_INTERPRET_UP_TO", most)
    monkeypatch.setattr(
        module, "evaluate", lambda program, args: interpreted.append(1) or evaluate(program, args)
    )
    monkeypatch.setattr(module.family, "call", lambda *of: compiled.append(1) or call(*of))
    x = st.lax.while_loop(lambda x: x < 6, lambda x: x + 1, snp.int32(0))
    assert int(x) == 6
    assert (len(interpreted) // 2, len(compiled)) == (steps, steps < 6)
