"""Loops with a known number of steps: the laws, plain loops, types, refusals."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.jvp import jvp_flat
from stretto._engine.autodiff.linearize import linearize_flat
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.program import check
from stretto._engine.core.rewriting import restrict
from stretto._engine.higher_order.scan import Scan
from stretto._engine.kernels import WITHOUT
from stretto.laws import f32, f64, i32, law

scan = st.lax.scan


def rnn(w, h, xs):
    """Constants, a carry and inputs, all differentiated."""
    return scan(lambda h, x: (snp.tanh(w @ h + x), h * x), h, xs)


def backwards(w, h, xs):
    return scan(lambda h, x: (snp.sin(w * h) + x, (h, x * x)), h, xs, reverse=True)


def counted(x, n, xs, ms):
    """Integers in the carry and the inputs; a part of the carry that x does not change."""

    def step(carry, step_xs):
        (a, i, still), (x, m) = carry, step_xs
        return (a * x + i, i + m, still * 2.0), (a, i)

    return scan(step, (x, n, 1.0), (xs, ms))


def shifted(x, y):
    """A tangent that reaches the first part of the carry only after some steps."""
    z = snp.zeros_like(x)
    return scan(lambda c, _: ((c[1], c[2], snp.sin(c[2])), c[0]), (z, y, x), None, length=3)


def forgetful(x, xs):
    """The last carry depends on the last input alone; nothing is stacked."""
    return scan(lambda c, x: (x * x, None), x, xs)[0]


def nested(x, xs):
    inner = lambda c, x: scan(lambda d, y: (d * 0.5 + y * c, d), c, x)
    return scan(inner, x, xs)


def branching(x, xs):
    step = lambda c, x: (st.lax.cond(c > 0, lambda: c * x, lambda: c + x), c)
    return scan(step, x, xs)


def still(w, xs):
    """What the body computes of constants alone."""
    return scan(lambda c, x: (c + snp.exp(w) * x, snp.exp(w)), 0.0, xs)


def mapped(w, h, xs):
    return st.vmap(backwards, (None, 0, None))(w, h, xs)


LAWS = [
    law(Scan, rnn, f32(2, 2), f32(2), f32(3, 2)),
    law(Scan, rnn, f64(2, 2), f64(2), f64(3, 2)),
    law(Scan, backwards, f32(2), f32(2), f32(4, 2)),
    law(Scan, backwards, f64(), f64(), f64(3)),
    law(Scan, counted, f32(), i32(), f32(3), i32(3)),
    law(Scan, shifted, f64(2), f64(2)),
    law(Scan, forgetful, f64(), f64(3)),
    law(Scan, nested, f64(), f64(2, 3)),
    law(Scan, branching, f64(), f64(4)),
    law(Scan, still, f64(), f64(3)),
    law(Scan, mapped, f32(2), f32(2, 2), f32(3, 2)),
    law(Scan, rnn, f32(2, 2), f32(2), f32(0, 2)),
    law(Scan, backwards, f32(2), f32(2), f32(1, 2)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


def plain(f, init, xs, reverse):
    """The loop that scan stands for, in Python."""
    carry, ys = init, [None] * len(xs)
    for i in reversed(range(len(xs))) if reverse else range(len(xs)):
        carry, ys[i] = f(carry, xs[i])
    return carry, ys


@settings(max_examples=25)
@given(
    hs.lists(hs.integers(-4, 4), max_size=5),
    hs.booleans(),
    hs.sampled_from(["eager", "jit", "vmap", "grad", "jvp"]),
)
def test_is_the_plain_loop(numbers, reverse, how):
    xs = np.array(numbers, np.float32)
    step = lambda c, x: (c * 0.5 + x * x, c * x)
    f = lambda c, xs: scan(step, c, xs, reverse=reverse)
    loop = lambda c, xs: plain(step, c, xs, reverse)
    if how == "eager":
        (c, ys), (d, zs) = f(1.0, xs), loop(1.0, xs)
        assert float(c) == d
        np.testing.assert_array_equal(ys, np.array(zs, np.float32))
    elif how == "jit":
        np.testing.assert_allclose(st.jit(f)(1.0, xs)[0], loop(1.0, xs)[0], rtol=1e-6)
    elif how == "vmap":
        cs = np.array([1.0, -2.0], np.float32)
        (c, ys), want = st.vmap(f, (0, None))(cs, xs), [loop(c, xs) for c in cs]
        np.testing.assert_allclose(c, [w[0] for w in want])
        np.testing.assert_allclose(ys, np.array([w[1] for w in want]).reshape(2, -1))
    else:
        total = lambda g: lambda c, xs: g(c, xs)[0] + sum(list(g(c, xs)[1]), 0.0)
        if how == "grad":
            d = st.grad(total(f), (0, 1))(1.0, xs)
            want = st.grad(total(loop), (0, 1))(1.0, snp.array(xs))
            for a, b in zip(d, want, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5)
        else:
            args = ((1.0, snp.array(xs)), (2.0, snp.array(xs) + 1))
            got, want = (st.jvp(total(g), *args)[1] for g in (f, loop))
            np.testing.assert_allclose(got, want, rtol=1e-5)


def test_scalar_slices_are_arrays():
    last, ys = scan(lambda c, x: (x, c), snp.float32(0), snp.arange(3.0))
    assert np.asarray(last).shape == () and float(last) == 2
    np.testing.assert_array_equal(ys, [0, 0, 1])


@pytest.mark.parametrize("jit", [lambda f: f, st.jit])
@pytest.mark.parametrize("reverse", [False, True])
def test_no_steps_and_one(jit, reverse):
    f = jit(lambda xs: scan(lambda c, x: (c + x, {"y": c * x}), 3.0, xs, reverse=reverse))
    last, ys = f(snp.zeros((0,)))
    assert (float(last), ys["y"].shape, ys["y"].dtype) == (3.0, (0,), snp.float32)
    last, ys = f(snp.array([2.0]))
    assert float(last) == 5.0
    np.testing.assert_array_equal(ys["y"], [6.0])
    slope = st.grad(lambda xs: f(xs)[0] * 2.0)
    assert slope(snp.zeros((0,))).shape == (0,)
    np.testing.assert_array_equal(slope(snp.array([2.0])), [2.0])
    assert st.vmap(f, in_axes=1)(snp.zeros((0, 4)))[1]["y"].shape == (4, 0)


def test_body_is_traced_once_and_kept_once():
    traces = []

    def step(c, x):
        traces.append(1)
        return c * 1.001 + x, None

    program = st.make_graph(lambda c, xs: scan(step, c, xs))(snp.float32(1), snp.ones(1000))
    assert len(traces) == 1 and len(program.equations) == 1
    check(program)
    graph = st.make_graph(st.grad(lambda c: scan(step, c, snp.ones(1000))[0]))(snp.float32(1))
    check(graph)
    assert str(graph).count("=") < 60


def test_long_loops_are_compiled_and_agree():
    f = lambda n: scan(lambda c, _: (c + 1, c), 0, None, length=n)
    last, ys = f(9000)
    assert int(last) == 9000
    np.testing.assert_array_equal(ys, np.arange(9000))


def test_residuals_that_are_constants_are_not_stacked():
    w = snp.ones((8, 8))
    f = lambda h: scan(lambda h, _: (w @ h, None), h, None, length=5)[0].sum()
    program = st.make_graph(st.grad(f))(snp.ones(8))
    shapes = {v.type.shape for e in program.equations for v in e.outputs}
    assert (5, 8, 8) not in shapes


def test_unmapped_work_stays_unmapped():
    f = lambda x, n: scan(lambda c, _: ((c[0] * x, c[1] + 1), c[1]), (x, n), None, length=3)
    program = st.make_graph(st.vmap(f, (0, None)))(snp.ones(4), 0)
    (loop,) = [e for e in program.equations if isinstance(e.primitive, Scan)]
    assert [v.type.shape for v in loop.outputs] == [(4,), (), (3,)]


def test_closures_over_tracers():
    def f(w, x):
        return scan(lambda c, y: (c * w + y * x, None), x, snp.arange(3.0))[0]

    def loop(w, x):
        c = x
        for y in (0.0, 1.0, 2.0):
            c = c * w + y * x
        return c

    w, x = np.array([0.5, 2.0], np.float32), np.array([1.0, -3.0], np.float32)
    for order in (
        lambda f: st.vmap(st.grad(f)),
        lambda f: st.jit(st.vmap(st.jit(st.grad(f)))),
        lambda f: st.grad(lambda w, x: st.vmap(f)(w, x).sum()),
    ):
        np.testing.assert_allclose(order(f)(w, x), order(loop)(w, x), rtol=1e-6)
    third = lambda f: st.grad(st.grad(st.grad(f)))
    cube = lambda x: scan(lambda c, _: (c * x, None), x, None, length=3)[0]
    np.testing.assert_allclose(third(cube)(2.0), 48.0)
    np.testing.assert_allclose(st.vmap(third(cube))(w), 24 * w)
    np.testing.assert_allclose(st.jit(third(cube))(2.0), 48.0)


def test_weak_types_settle():
    last, _ = scan(lambda c, x: (c + x, None), 0, snp.arange(3.0))
    assert (last.dtype, last.weak_type, float(last)) == (snp.float32, False, 3.0)
    last, ys = scan(lambda c, x: (c * 2, c), 1, None, length=3)
    assert (last.dtype, last.weak_type, ys.dtype) == (snp.int32, True, snp.int32)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: scan(lambda c, x: (c, x), 0, snp.float32(1)),
            ValueError,
            "leading axis; xs is float32",
        ),
        (
            lambda: scan(lambda c, x: (c, x), 0, {"a": snp.ones(2), "b": snp.ones(3)}),
            ValueError,
            r"xs\['a'\] has 2, xs\['b'\] has 3",
        ),
        (
            lambda: scan(lambda c, x: (c, x), 0, snp.ones(2), length=3),
            ValueError,
            "xs has 2, length has 3",
        ),
        (lambda: scan(lambda c, x: (c, x), 0), ValueError, "give xs or length"),
        (lambda: scan(lambda c, x: (c, x), 0, length=-1), ValueError, "negative"),
        (lambda: scan(lambda c, x: (c, x), 0, length=2.5), TypeError, "integer"),
        (
            lambda: scan(lambda c, x: c, 0, snp.ones(2)),
            TypeError,
            r"pair \(carry, y\), got Tracer|Traced",
        ),
        (lambda: scan(lambda c, x: ((c, c), x), 0, snp.ones(2)), TypeError, "part at carry"),
        (
            lambda: scan(lambda c, x: ({"a": c["a"] + x}, x), {"a": 0.0}, snp.ones((2, 3))),
            TypeError,
            r"init\['a'\] is float32\[\], but float32\[3\] is returned",
        ),
        (
            lambda: scan(lambda c, x: (c + 0.5, x), snp.int32(0), snp.ones(2)),
            TypeError,
            "init is int32",
        ),
        (
            lambda: scan(lambda c, x: (c, x), 0, snp.ones(2), unroll=-1),
            ValueError,
            "unroll must not",
        ),
        (
            lambda: st.jit(lambda n: scan(lambda c, x: (c, x), 0, length=n))(3),
            TypeError,
            "the argument n.*static_argnums",
        ),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_unrolled_loops_are_written_out():
    f = lambda by: lambda xs: scan(lambda c, x: (c * x, c), 1.0, xs, unroll=by)
    text = lambda by, n: st.jit(f(by)).lower(snp.ones(n)).as_text()
    assert [text(by, 6).count("stablehlo.multiply") for by in (1, 2, 3, 4, 6, 9, True)] == [
        1,
        2,
        3,
        6,
        6,
        6,
        6,
    ]
    assert [text(by, 6).count("stablehlo.while") for by in (1, 2, 3, 4, 6, 9, True)] == [
        1,
        1,
        1,
        0,
        0,
        0,
        0,
    ]
    assert "while" not in text(1, 1)
    xs = np.arange(1.0, 8.0)
    for by in (1, 2, 3, 7, 100, True):
        last, ys = st.jit(f(by))(xs)
        assert float(last) == 5040
        np.testing.assert_array_equal(ys, [1, 1, 2, 6, 24, 120, 720])
    for by in (2, True):
        slope = st.jit(st.grad(lambda xs, by=by: f(by)(xs)[0]))
        np.testing.assert_allclose(slope(xs), 5040 / xs, rtol=1e-6)


def test_every_leaf_of_the_carry_that_changes_is_named():
    def body(c, _):
        return {"a": c["a"] * 1.5, "b": c["b"][None], "c": c["c"]}, None

    init = {"a": snp.arange(2), "b": snp.ones(3), "c": 1.0}
    words = (
        r"scan: the carry must keep its type; init\['a'\] is int32\[2\], but float32\[2\] is "
        r"returned for it; init\['b'\] is float32\[3\], but float32\[1,3\] is returned for it\."
    )
    with pytest.raises(TypeError, match=words):
        scan(body, init, length=2)


def test_the_setting_of_jax_for_transposes_changes_nothing():
    def loss(x, split):
        return st.lax.scan(lambda c, x: (c * x, c), 1.0, x, _split_transpose=split)[0]

    x = snp.array([2.0, 3.0])
    assert st.grad(loss)(x, True).tolist() == st.grad(loss)(x, False).tolist() == [3, 2]


def test_a_body_is_traced_again_only_for_another_dtype():
    traces = []

    def body(c, x):
        traces.append(c.dtype)
        return c + x, c

    last, ys = st.lax.scan(body, 1.0, snp.ones(3))
    assert (float(last), last.weak_type, ys.tolist(), len(traces)) == (4, False, [1, 2, 3], 1)
    last, _ = st.lax.scan(body, 1, snp.ones(3))
    assert (float(last), last.dtype, len(traces)) == (4, snp.float32, 3)
    st.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, body(c[1], 1)[0]), (0, snp.ones(2)))
    assert len(traces) == 4


def test_operations_stand_for_a_carry_that_is_no_longer_weak():
    half = snp.ones(3, snp.bfloat16)

    def body(c, x):
        c, weak = c
        doubled = st.lax.fori_loop(0, 2, lambda _, s: s + weak, weak)
        return (c + snp.float32(1), c), (c * x, doubled)

    f = lambda c: st.lax.scan(body, (c, c), half)
    graph = str(st.make_graph(f)(1.0))
    (last, before), (ys, doubled) = st.jit(f)(1.0)
    assert (float(last), float(before), doubled.tolist()) == (4, 3, [3, 3, 6])
    assert not last.weak_type and not before.weak_type
    # What was computed with a weak number keeps the dtype that the number gave way to.
    assert ys.dtype == snp.bfloat16 and ys.tolist() == [1, 2, 3]
    assert graph.count("convert_element_type") == 3  # the carry's two, and that of ``c`` to ``x``
    check(st.make_graph(f)(1.0))


def loops(program):
    return [e for e in program.equations if isinstance(e.primitive, Scan)]


def names(program):
    return [e.primitive.name for e in program.equations]


def step(w):
    def body(c, x):
        return c * snp.sin(w) + x, c

    return body


def f(w, c, xs):
    return st.lax.scan(step(w), c, xs)


W, C, XS = snp.ones(3), snp.ones(3), snp.ones((4, 3))


def test_work_on_constants_is_done_once():
    program = st.make_graph(f)(W, C, XS)
    (loop,) = loops(program)
    assert names(program) == ["sin", "scan"]
    assert names(loop.primitive.body) == ["mul", "add"]


def test_a_chain_of_work_on_constants_is_done_once():
    program = st.make_graph(
        lambda w, c, xs: st.lax.scan(lambda c, x: (c * x + snp.exp(2 * snp.sin(w)), None), c, xs)
    )(W, C, XS)
    (loop,) = loops(program)
    assert names(program) == ["sin", "mul", "exp", "scan"]
    assert names(loop.primitive.body) == ["mul", "add"]


def test_what_would_grow_stays_inside():
    def body(c, x):
        return c + snp.sum(snp.broadcast_to(w, (50, 3))) + x, None

    w = snp.ones(3)
    program = st.make_graph(lambda c, xs: st.lax.scan(body, c, xs)[0])(1.0, snp.ones(4))
    (loop,) = loops(program)
    assert "broadcast_in_dim" in names(loop.primitive.body)


def test_a_loop_of_no_steps_computes_nothing():
    program = st.make_graph(lambda w: st.lax.scan(step(w), snp.ones(3), snp.ones((0, 3))))(W)
    assert names(program) == ["scan"]


def test_residuals_from_constants_alone_are_not_stacked():
    def g(w):
        carry, _ = st.lax.scan(lambda c, x: (c * snp.exp(snp.sin(w) * x), None), 1.0, snp.ones(7))
        return carry

    program = st.make_graph(st.grad(g))(0.5)
    forward = loops(program)[0]
    stacked = [v.type.shape for v in forward.outputs if v.type.shape == (7,)]
    # exp(sin(w) x) and c are different in each step; sin(w) and cos(w) are not
    assert len(stacked) <= 3
    assert "cos" in names(program)
    assert "cos" not in names(forward.primitive.body)
    np.testing.assert_allclose(
        st.grad(g)(0.5), 7 * np.cos(0.5) * np.exp(7 * np.sin(0.5)), rtol=1e-5
    )


def test_a_residual_that_is_an_operand_of_constants_is_held():
    """The cosine of a constant is needed by each step backwards, and kept once."""

    def g(w, xs):
        return snp.sum(st.lax.scan(lambda c, x: (c + snp.sin(w) * x, None), snp.zeros(3), xs)[0])

    program = st.make_graph(st.grad(g))(W, XS)
    for loop in loops(program):
        assert not any(v.type.shape == (4, 3) for v in loop.outputs)
    np.testing.assert_allclose(st.grad(g)(W, XS), 4 * np.cos(np.ones(3)), rtol=1e-6)


def test_values_and_derivatives_are_those_of_the_written_out_loop():
    def plain(w, c, xs):
        ys = []
        for i in range(4):
            c, y = step(w)(c, xs[i])
            ys.append(y)
        return c, snp.stack(ys)

    rng = np.random.default_rng(0)
    w, c, xs = (snp.array(rng.normal(size=s).astype("f")) for s in [3, 3, (4, 3)])

    def total(f):
        return lambda *a: sum(snp.sum(x * x) for x in f(*a))

    for one, other in [(f, plain), (st.jit(f), plain)]:
        got, want = (st.grad(total(g), (0, 1, 2))(w, c, xs) for g in (one, other))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5)
        got, want = (st.hessian(total(g))(w, c, xs) for g in (one, other))
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize(("length", "compiled"), [(4000, False), (4001, True)])
def test_a_scan_of_so_many_operations_is_compiled(length, compiled):
    add = lambda xs: scan(lambda total, x: (total + x, None), np.float32(0), xs)[0]
    (equation,) = st.make_graph(add)(snp.zeros(length)).equations
    assert len(equation.primitive.body.equations) == 1
    assert equation.primitive.compiled(()) is compiled


@pytest.mark.parametrize(
    ("needed", "inputs", "outputs"),
    [
        ((1, 1, 1, 1), 4, 4),
        ((1, 0, 0, 0), 2, 1),
        ((0, 1, 0, 0), 4, 2),
        ((1, 0, 1, 0), 2, 2),
        ((0, 0, 0, 1), 4, 3),
        ((0, 0, 1, 0), 2, 2),
    ],
)
def test_only_what_a_needed_result_is_made_of_stays(needed, inputs, outputs):
    def two(a, b, xs, ys):
        """The second part of the carry depends on the first, which stands alone."""
        step = lambda c, v: ((c[0] * v[0], c[1] + c[0] * v[1]), (c[0], c[1]))
        (a, b), stacks = scan(step, (a, b), (xs, ys))
        return a, b, *stacks

    args = [snp.float32(2), snp.float32(3), snp.array([5.0, 7.0]), snp.array([11.0, 13.0])]
    program = st.make_graph(two)(*args)
    needed = tuple(map(bool, needed))
    new = restrict(program, needed)
    check(new)
    (equation,) = loops(new)
    assert (len(equation.inputs), len(equation.outputs)) == (inputs, outputs)
    assert (equation is program.equations[-1]) is all(needed)
    wanted = [o for o, n in zip(two(*args), needed, strict=True) if n]
    for got, want in zip(evaluate(new, args), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("length", "compiled"), [(2000, False), (2001, True)])
def test_four_thousand_operations_are_interpreted(length, compiled):
    program = st.make_graph(lambda c: scan(lambda c, _: (c * c + c, None), c, length=length))(1.0)
    (loop,) = [e.primitive for e in loops(program)]
    assert len(loop.body.equations) == 2
    assert loop.compiled((C.type,)) is compiled
    assert loop.work((), ()) == loop.most_work(()) == length * loop.body.work


def test_stacks_that_do_not_move_have_no_tangent():
    f = lambda c, xs: st.tree.leaves(scan(lambda c, x: (c * x, (snp.floor(x), c)), c, xs))
    args = [as_value(np.float32(2)), as_value(np.arange(1.5, 4, dtype=np.float32))]
    _, tangents = jvp_flat(f, args, args)
    assert [t is None for t in tangents] == [False, True, False]
    _, linear = linearize_flat(f, args, [True, True])
    assert linear.active_out == (True, False, True)


def test_without_jit_each_step_is_called():
    seen = []
    step = lambda c, x: (seen.append(float(x)) or c + x, c * x)
    with st.disable_jit():
        total, products = st.lax.scan(step, 1.0, snp.arange(4.0))
        assert seen == [0, 1, 2, 3] and float(total) == 7
        np.testing.assert_array_equal(products, [0, 1, 4, 12])
        backwards = st.lax.scan(step, 1.0, snp.arange(4.0), reverse=True)
        assert seen[4:] == [3, 2, 1, 0] and float(backwards[0]) == 7
        assert float(st.lax.scan(lambda c, _: (c * 2, None), 1.0, length=5)[0]) == 32
        assert st.lax.scan(lambda c, x: (c, x), 1.0, snp.ones((0, 2)))[1].shape == (0, 2)
    seen.clear()
    assert (
        float(st.lax.scan(lambda c, x: (seen.append(x) or c + x, c), 1.0, snp.arange(4.0))[0]) == 7
    )
    assert len(seen) < 4, "it is traced"


HELD = snp.array([True, False, True])
MASKED = {
    "in front": lambda xs: scan(lambda c, x: (c, snp.where(HELD, x, 0.0)), 0.0, snp.log(xs))[1],
    "in a step": lambda xs: scan(
        lambda c, x: (c + snp.where(HELD, snp.log(x), 0.0).sum(), None), 0.0, xs * 1.0
    )[0],
    "of its results": lambda xs: scan(
        lambda c, x: (c, snp.where(HELD, st.jit(snp.log)(x), 0.0)), 0.0, xs
    )[1],
    "behind": lambda xs: snp.where(
        HELD, scan(lambda c, x: (c, st.jit(snp.log)(x)), 0.0, xs)[1], 0.0
    ),
    "one for each step": lambda xs: scan(
        lambda c, x: (c, snp.where(x[1] > 0, x[0], 0.0)), 0.0, (snp.log(xs), MASKS)
    )[1],
}
MASKS = snp.array([[1, 0, 1], [1, 0, 1]], snp.int32)


@pytest.mark.parametrize("name", MASKED)
def test_slopes_of_what_is_not_chosen_in_a_step_are_zero(name):
    """Whether the condition is of the loop or of each step: that of log at 0 is infinite."""
    xs = snp.array([[1.0, 0.0, 2.0], [4.0, 0.0, 5.0]])
    loss = lambda xs: MASKED[name](xs).sum()
    known = [[1, 0, 0.5], [0.25, 0, 0.2]]
    np.testing.assert_allclose(st.grad(loss)(xs), known, rtol=1e-6)
    np.testing.assert_allclose(st.jit(st.grad(loss))(xs), known, rtol=1e-6)


@pytest.mark.skipif(bool(WITHOUT), reason=f"there are no kernels: {WITHOUT}")
def test_large_results_of_all_steps_are_not_filled_with_zeros_first():
    def run(x, xs):
        return scan(lambda h, x: (h + 1, (x * h, x - h)), x, xs)

    large, small = snp.ones((4, 1 << 16)), snp.ones((4, (1 << 16) - 1))
    for xs, count in ((large, 2), (small, 0)):
        text = st.jit(run).lower(1.0, xs).as_text()
        assert text.count("stretto_unwritten") == count
    with st.config(kernels=False):
        assert "stretto_unwritten" not in st.jit(run).lower(1.0, large).as_text()
    numbers = re.findall(
        r"stretto_unwritten.*numbers = (.*?>)", st.jit(run).lower(1.0, large).as_text()
    )
    assert len(set(numbers)) == 2  # two that are equal would be one, and be copied


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("unroll", [1, 2])
def test_all_of_large_results_is_written(reverse, length, unroll):
    xs = snp.arange(length * (1 << 18), dtype=snp.float32).reshape(length, 1 << 18)

    def run(h, xs):
        step = lambda h, x: (h + 1, (x + h, x.astype("int32") * 2, x > h))
        return scan(step, h, xs, reverse=reverse, unroll=unroll)

    inner = lambda x: scan(run, snp.float32(1), snp.stack([x, 2 * x]))
    for f in (lambda x: run(snp.float32(1), x), inner):
        got, want = st.jit(f)(xs), f(xs)
        for a, b in zip(st.tree.leaves(got), st.tree.leaves(want), strict=True):
            np.testing.assert_array_equal(a, b)
