"""Products of a loop's steps gathered into one: which are, and that the values stay."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import check
from stretto._engine.higher_order.scan import Scan
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.passes.hoist_products import hoist_products
from stretto._engine.passes.simplify import simplify

RNG = np.random.default_rng(7)
draw = lambda *shape: snp.asarray(RNG.normal(size=shape).astype(np.float32))
T, B, N, H = 5, 2, 8, 12
XS, START, OWN, INNER = draw(T, B, N), draw(B, H), draw(N, H), draw(H, H)


def program_of(f, *args):
    program = hoist_products(simplify(st.make_graph(f)(*args)))
    check(program)
    return program


def products(program):
    """How many products are outside of loops, and how many inside."""
    outside = sum(isinstance(e.primitive, DotGeneral) for e in program.equations)
    bodies = [e.primitive.body for e in program.equations if isinstance(e.primitive, Scan)]
    inside = sum(isinstance(e.primitive, DotGeneral) for b in bodies for e in b.equations)
    return outside, inside


def close(f, *args, **tolerances):
    """Gathered and not, the values are those of the loop as it was written."""
    program = program_of(f, *args)
    leaves = st.tree.leaves(args)
    expected = evaluate(st.make_graph(f)(*args), leaves)
    for one, other in zip(evaluate(program, leaves), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5, **tolerances)
    return program


def cell(own, inner, start, xs, **settings):
    """A recurrent network that stacks its states."""
    step = lambda h, x: (snp.tanh(x @ own + h @ inner),) * 2
    return lax.scan(step, start, xs, **settings)[1]


def test_products_with_an_input_go_in_front():
    assert products(close(cell, OWN, INNER, START, XS)) == (1, 1)


@pytest.mark.parametrize("from_the_left", [False, True])
@pytest.mark.parametrize("batched", [False, True])
def test_on_either_side_the_steps_come_first(from_the_left, batched):
    """Whichever axis of a product the steps have, they are the first of the stack."""
    own = OWN.T if from_the_left else OWN
    xs = draw(T, 2, 1, N) if batched else XS
    xs = snp.swapaxes(xs, -1, -2) if from_the_left else xs
    multiplied = lambda own, x: own @ x if from_the_left else x @ own
    loop = lambda own, start, xs: lax.scan(
        lambda h, x: (snp.tanh(multiplied(own, x) + h),) * 2, start, xs
    )
    start = snp.zeros(multiplied(own, xs[0]).shape)
    assert products(close(loop, own, start, xs)) == (1, 0)


def test_sums_of_products_go_behind():
    def slopes(own, inner, bias, start, xs):
        def loss(own, inner, bias):
            step = lambda h, x: (snp.tanh(x @ own + h @ inner + bias),) * 2
            return (lax.scan(step, start, xs)[1] ** 2).sum()

        return st.grad(loss, (0, 1, 2))(own, inner, bias)

    program = close(slopes, OWN, INNER, draw(H), START, XS)
    assert products(program) == (1 + 2, 1 + 1)  # each loop keeps what its carry depends on
    last = [e.primitive for e in program.equations if isinstance(e.primitive, Scan)][-1]
    assert last.carry == 1  # no total is carried


def test_products_of_outputs_go_behind():
    def outputs(own, inner, start, xs):
        step = lambda h, x: ((g := snp.tanh(h + x @ own)), (g @ inner).T)
        return lax.scan(step, start, xs)

    program = close(outputs, OWN, INNER, START, XS)
    assert products(program) == (2, 0)
    assert [v.type.shape for v in program.outputs] == [(B, H), (T, H, B)]


def test_the_layout_of_products_that_go_behind():
    def outputs(own, inner, start, xs):
        def step(h, x):
            g = snp.tanh(h + x @ own)
            return g, (g @ inner).T.reshape(2, H // 2, B).transpose(2, 0, 1)

        return lax.scan(step, start, xs)

    program = close(outputs, OWN, INNER, START, XS)
    assert products(program) == (2, 0)
    assert program.outputs[1].type.shape == (T, B, 2, H // 2)


@pytest.mark.parametrize("settings", [{"reverse": True}, {"unroll": 2}, {"unroll": True}])
def test_in_any_order_of_steps(settings):
    f = st.grad(lambda *args: (cell(*args, **settings) ** 2).sum(), (0, 1, 3))
    assert products(close(f, OWN, INNER, START, XS))[0] == 4


def test_terms_that_stay_are_carried_on():
    def total(own, xs):
        def step(carry, x):
            so_far, h = carry
            h = snp.tanh(h + x @ own)
            return (so_far + h.T @ h + snp.sin(h.T @ h) + x.T @ x @ own @ own.T, h), None

        return lax.scan(step, (snp.ones((N, N)), snp.ones((B, N))), xs)[0]

    program = close(total, draw(N, N), XS)
    (loop,) = [e.primitive for e in program.equations if isinstance(e.primitive, Scan)]
    assert loop.carry == 2


def test_terms_that_are_no_products_stay():
    """However much larger they are than what they are made of."""

    def total(own, xs):
        def step(carry, x):
            so_far, h = carry
            h = snp.tanh(h + x @ own)
            return (so_far + snp.broadcast_to(h[0], (N, N)), h), None

        return lax.scan(step, (snp.ones((N, N)), snp.ones((B, N))), xs)[0]

    program = close(total, draw(N, N), XS)
    (loop,) = [e.primitive for e in program.equations if isinstance(e.primitive, Scan)]
    assert loop.carry == 2


def test_of_several_terms_some_stay():
    def total(start, xs):
        def step(carry, x):
            so_far, h = carry
            stays = snp.broadcast_to(h[0], (N, N))
            return (so_far + x.T @ h + stays + snp.broadcast_to(x[1], (N, N)), snp.sin(h + x)), None

        return lax.scan(step, (start, snp.ones((B, N))), xs)[0][0]

    assert products(close(total, draw(N, N), XS)) == (1, 0)


def test_several_terms_of_one_total():
    def total(start, xs):
        def step(carry, x):
            so_far, h = carry
            return (so_far + x.T @ h + (h.T @ x).T, snp.sin(h + x)), None

        return lax.scan(step, (start, snp.ones((B, N))), xs)[0][0]

    assert products(close(total, draw(N, N), XS)) == (2, 0)


def test_what_is_used_in_the_loop_stays():
    def running(xs):
        step = lambda total, x: ((new := total + x.T @ x), new.sum())
        return lax.scan(step, snp.zeros((N, N)), xs)

    assert products(close(running, XS)) == (0, 1)

    def read_too(xs):
        return lax.scan(lambda t, x: (t + (y := x.T @ x), y.sum()), snp.zeros((N, N)), xs)

    assert products(close(read_too, XS)) == (0, 1)

    def fed_back(xs):
        step = lambda total, x: (total + (x + total.sum()).T @ x, None)
        return lax.scan(step, snp.zeros((N, N)), xs)

    assert products(close(fed_back, XS)) == (0, 1)

    def doubled(xs):
        return lax.scan(lambda t, x: (t + t + x.T @ x, None), snp.zeros((N, N)), xs)

    assert products(close(doubled, XS)) == (0, 1)


def test_what_steps_share_must_be_larger_than_their_own():
    for rows, apart in ((4, True), (5, False)):  # 8 x 12 of weights, and 8 + 12 in a row
        outside = products(close(cell, OWN, draw(H, 1), snp.ones((rows, H)), draw(T, rows, N)))
        assert outside == ((1, 1) if apart else (0, 2))
    for rows, apart in ((3, True), (4, False)):  # 12 x 6 of weights, and 12 + 6 in a row
        h = snp.ones((rows, 6))
        outside = products(close(cell, draw(12, 6), draw(6, 6), h, draw(T, rows, 12)))
        assert outside == ((1, 1) if apart else (0, 2))
    sums = lambda xs: lax.scan(lambda t, x: (t + x.T @ x, None), snp.zeros((N, N)), xs)
    assert products(close(sums, draw(T, 3, N))) == (1, 0)  # 64 in a total, and 2 x 24 in a step
    assert products(close(sums, draw(T, 4, N))) == (0, 1)


def test_where_stacks_would_be_too_large():
    wide = draw(N, 64 * N)

    def f(wide, xs):
        return lax.scan(lambda c, x: (c + snp.tanh(x @ wide).sum(), None), 0.0, xs)

    assert products(close(f, wide, XS)) == (0, 1)


def test_maps_stay():
    assert products(close(lambda own, xs: lax.map(lambda x: x @ own, xs), OWN, XS)) == (0, 1)


def test_single_steps_stay():
    assert products(close(cell, OWN, INNER, START, XS[:1])) == (0, 2)


def test_constants_and_carries_as_operands():
    def total(start, w, xs):
        def step(carry, x):
            a, b, c = carry
            return (a + w @ w.T, b + c.T @ x, snp.cos(c) + x), None

        return lax.scan(step, (start, start, snp.ones((B, N))), xs)[0]

    w = draw(N, 4)
    assert products(close(total, draw(N, N), w, XS)) == (2, 0)  # w @ w.T was in front before


def test_a_product_that_is_an_output_and_read():
    def f(own, start, xs):
        return lax.scan(lambda h, x: (snp.tanh(h + (y := x @ own)), y), start, xs)

    close(f, OWN, START, XS)


def test_one_value_as_two_outputs():
    def f(own, start, xs):
        return lax.scan(lambda h, x: (snp.tanh(h + 1), (y := h @ own, y)), start, xs)

    close(f, draw(H, N), START, XS)


def test_mapped_and_inside_of_others():
    weights, inner = draw(7, N, H), 0.1 * INNER  # rounding does not grow from step to step
    loss = lambda own, *rest: (cell(own, *rest) ** 2).sum()
    slopes = lambda w, *rest: lax.map(lambda own: st.grad(loss)(own, *rest), w)
    program = close(slopes, weights, inner, START, XS)
    (outer,) = program.equations
    assert products(outer.primitive.body) == (2, 2)
    slope = st.grad(lambda own: loss(own, inner, START, XS))
    np.testing.assert_allclose(
        st.jit(st.vmap(slope))(weights), st.vmap(slope)(weights), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("dtype", ["int32", "bfloat16", "float16", "complex64"])
def test_other_dtypes(dtype):
    xs = snp.asarray(RNG.integers(-3, 4, (T, B, N))).astype(dtype)
    total = lambda xs: lax.scan(lambda t, x: (t + x.T @ x, None), snp.zeros((N, N), dtype), xs)[0]
    assert products(program_of(total, xs)) == (1, 0)
    assert (np.asarray(st.jit(total)(xs)) == np.asarray(total(xs))).all()


def test_no_simpler_without_the_setting():
    f = st.jit(cell)
    outside = lambda: f.lower(OWN, INNER, START, XS).as_text().split("stablehlo.while")[0]
    assert "dot_general" in outside()
    with st.config(simplify=False):
        assert "dot_general" not in outside()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinities(value):
    xs = np.array(XS)
    xs[2, 1, 0] = value
    close(cell, OWN, INNER, START, snp.asarray(xs))
    total = lambda xs: lax.scan(lambda t, x: (t + x.T @ x, None), snp.zeros((N, N)), xs)[0]
    close(total, snp.asarray(xs))


MADE = {
    "product": lambda a, b: 0.5 * (a @ b),
    "turned": lambda a, b: 0.5 * (a.T @ b),
    "add": lambda a, b: a + b,
    "tanh": lambda a, b: snp.tanh(a),
    "sum": lambda a, b: a.sum(0, keepdims=True) + snp.zeros_like(a),
    "transpose": lambda a, b: a.T,
}


@some.composite
def bodies(some_draw):
    """Steps from (constants, carry, slice) to (carry, outputs) of products, sums and functions."""
    size = some_draw(some.integers(1, 3))
    plan = some_draw(
        some.lists(
            some.tuples(*[some.integers(0, 10**6)] * 2, some.sampled_from([*MADE])),
            min_size=3,
            max_size=12,
        )
    )
    ends = some_draw(some.lists(some.integers(0, 10**6), min_size=4, max_size=4))

    def step(consts, carry, x):
        values = [*consts, *carry, x]
        for left, right, kind in plan:
            a, b = values[left % len(values)], values[right % len(values)]
            values.append(MADE[kind](a, b))
        pick = lambda n: values[n % len(values)]
        return (carry[0] + pick(ends[0]), snp.tanh(pick(ends[1]))), (pick(ends[2]), pick(ends[3]))

    return size, step


@given(bodies(), some.integers(1, 4), some.booleans())
def test_any_body(body, length, reverse):
    size, step = body
    rng = np.random.default_rng(length)
    array = lambda *shape: snp.asarray(0.5 * rng.normal(size=(*shape, size, size)))

    def f(consts, carry, xs):
        return lax.scan(lambda c, x: step(consts, c, x), carry, xs, reverse=reverse)

    def slope(consts, carry, xs):
        total = lambda *args: sum([snp.tanh(leaf).sum() for leaf in st.tree.leaves(f(*args))])
        return st.grad(total, (0, 1, 2))(consts, carry, xs)

    args = (array(), array()), (array(), array()), array(length)
    with np.errstate(all="ignore"):
        close(f, *args)
        close(slope, *args)


@pytest.mark.parametrize(("columns", "hoisted"), [(4 * N, True), (4 * N + 1, False)])
def test_stacks_of_four_times_what_the_loop_reads_are_made(columns, hoisted):
    def f(wide, xs):
        return lax.scan(lambda c, x: (c + snp.tanh(x @ wide).sum(), None), 0.0, xs)[0]

    outside = products(close(f, draw(N, columns), XS))
    assert outside == ((1, 0) if hoisted else (0, 1))
