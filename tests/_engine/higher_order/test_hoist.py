"""What depends on constants alone is taken in front of a loop, and not kept for each step."""

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto._engine.higher_order.scan import Scan


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
