"""Roots by a search of the user's: laws, implicit derivatives of all orders, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.higher_order.implicit import CustomRoot
from stretto.laws import c64, f32, f64, law
from tests.any_size import holds

lax = st.lax
RUNS = pytest.mark.parametrize("run", [lambda f: f, st.jit], ids=["eager", "jit"])


def newton(f, x):
    """Steps until they are short: a search that has no reverse derivative of its own."""

    def step(state):
        x, _, n = state
        far = f(x) / st.jvp(f, (x,), (snp.ones_like(x),))[1]
        return x - far, snp.max(snp.abs(far)), n + 1

    out = lax.while_loop(lambda s: (s[1] > 1e-12) & (s[2] < 40), step, (x, 1.0, 0))
    return out[0]


def by_slope(g, y):
    return y / g(snp.ones_like(y))


def cube_root(a):
    return lax.custom_root(lambda x: x**3 - a, 1.0 + 0 * a, newton, by_slope)


def kepler(mean, eccentricity):
    """Kepler's equation for one or many: E - e sin E = M."""
    equation = lambda x: x - eccentricity * snp.sin(x) - mean
    return lax.custom_root(equation, mean, newton, by_slope)


def eliminate(a, b):
    """The solution of two equations."""
    (p, q), (r, s) = a
    u, v = b
    return snp.stack([s * u - q * v, p * v - r * u]) / (p * s - q * r)


def circle_and_line(p):
    """Where u² + v = p₀ and 3 v = p₁ u, of which u is positive; a dictionary of unknowns."""

    def equations(x):
        return {"u": x["u"] ** 2 + x["v"] - p[0], "v": 3 * x["v"] - p[1] * x["u"]}

    def dense(g):
        pack = lambda x: snp.stack([x["u"], x["v"]])
        return lambda z: pack(g({"u": z[0], "v": z[1]}))

    def search(f, x):
        def step(_, x):
            z = snp.stack([x["u"], x["v"]])
            z = z - eliminate(st.jacfwd(dense(f))(z), dense(f)(z))
            return {"u": z[0], "v": z[1]}

        return lax.fori_loop(0, 9, step, x)

    def tangent_solve(g, y):
        z = eliminate(st.jacfwd(dense(g))(snp.zeros(2)), snp.stack([y["u"], y["v"]]))
        return {"u": z[0], "v": z[1]}

    out = lax.custom_root(equations, {"u": 1.0, "v": 1.0}, search, tangent_solve)
    return snp.stack([out["u"], out["v"]])


def circle_and_line_exactly(p):
    u = (-p[1] / 3 + snp.sqrt(p[1] ** 2 / 9 + 4 * p[0])) / 2
    return snp.stack([u, u * p[1] / 3])


LAWS = [
    law(CustomRoot, cube_root, f64().within(1, 8)),
    law(CustomRoot, cube_root, f32(3).within(1, 8)),
    law(CustomRoot, kepler, f64(3).within(0.5, 2), f64().within(0.1, 0.5)),
    law(
        CustomRoot,
        lambda a: lax.custom_root(
            lambda x: x * x - a, snp.ones_like(a), lambda f, x: snp.sqrt(a), by_slope
        ),
        c64(2).within(1, 2),
    ),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


@RUNS
def test_derivatives_of_every_order(run):
    """Of a^(1/3): a^(-2/3)/3, -2 a^(-5/3)/9, 10 a^(-8/3)/27."""
    with st.config(enable_x64=True):
        first = st.grad(cube_root)
        assert run(cube_root)(8.0) == pytest.approx(2)
        assert run(first)(8.0) == pytest.approx(1 / 12)
        assert run(st.grad(first))(8.0) == pytest.approx(-2 / 9 / 32)
        assert run(st.grad(st.grad(first)))(8.0) == pytest.approx(10 / 27 / 256)
        assert run(lambda a: st.jvp(cube_root, (a,), (1.0,)))(8.0)[1] == pytest.approx(1 / 12)
        many = snp.array([1.0, 8.0, 27.0])
        np.testing.assert_allclose(run(st.vmap(first))(many), [1 / 3, 1 / 12, 1 / 27])
        summed = lambda a: snp.sum(st.vmap(cube_root)(a))
        np.testing.assert_allclose(run(st.grad(summed))(many), [1 / 3, 1 / 12, 1 / 27])


@RUNS
def test_in_a_loop_and_a_branch(run):
    """a^(1/27): the loop takes three roots, of which none is in the other branch."""

    def thrice(a):
        step = lambda c, _: (lax.cond(c > 0, cube_root, lambda c: c, c), None)
        return lax.scan(step, a, None, length=3)[0]

    with st.config(enable_x64=True):
        assert run(thrice)(2.0) == pytest.approx(2 ** (1 / 27))
        assert run(st.grad(thrice))(2.0) == pytest.approx(2 ** (1 / 27 - 1) / 27)
        assert run(st.grad(st.grad(thrice)))(2.0) == pytest.approx(
            2 ** (1 / 27 - 2) / 27 * (1 / 27 - 1)
        )
        assert run(st.grad(thrice))(-2.0) == 1.0


@RUNS
def test_systems_of_equations(run):
    with st.config(enable_x64=True):
        p = snp.array([2.0, 1.5])
        ours, exact = circle_and_line, circle_and_line_exactly
        np.testing.assert_allclose(run(ours)(p), exact(p), rtol=1e-12)
        for jacobian in (st.jacfwd, st.jacrev):
            np.testing.assert_allclose(run(jacobian(ours))(p), jacobian(exact)(p), rtol=1e-9)
        want = st.hessian(exact)(p)
        np.testing.assert_allclose(run(st.hessian(ours))(p), want, rtol=1e-8)
        np.testing.assert_allclose(run(st.jacrev(st.jacrev(ours)))(p), want, rtol=1e-8)
        both = run(st.vmap(st.jacrev(ours)))(snp.stack([p, p + 1]))
        np.testing.assert_allclose(both, [st.jacrev(exact)(q) for q in (p, p + 1)], rtol=1e-9)


@RUNS
def test_with_a_linear_solve_inside(run):
    """x with x + tanh(W x) = b, whose derivative is a system that bicubic steps could not undo."""

    def gradient_free(g, y):
        def steps(matvec, b):
            return lax.while_loop(
                lambda s: (snp.max(snp.abs(s[1])) > 1e-13) & (s[2] < 200),
                lambda s: (s[0] + s[1], b - matvec(s[0] + s[1]), s[2] + 1),
                (b * 0, b, 0),
            )[0]

        return lax.custom_linear_solve(g, y, steps, steps)

    def search(f, x):
        return lax.while_loop(
            lambda s: (snp.max(snp.abs(f(s[0]))) > 1e-13) & (s[1] < 200),
            lambda s: (s[0] - f(s[0]), s[1] + 1),
            (x, 0),
        )[0]

    def fixed(w, b):
        return lax.custom_root(lambda x: x + snp.tanh(w @ x) - b, b * 0, search, gradient_free)

    def unrolled(w, b):
        return lax.fori_loop(0, 60, lambda _, x: b - snp.tanh(w @ x), b * 0)

    with st.config(enable_x64=True):
        rng = np.random.default_rng(1)
        w, b = snp.array(0.2 * rng.normal(size=(3, 3))), snp.array(rng.normal(size=3))
        ours, theirs = (lambda w, b, f=f: snp.sum(f(w, b) ** 3) for f in (fixed, unrolled))
        for i in (0, 1):
            got, want = run(st.grad(ours, i))(w, b), st.grad(theirs, i)(w, b)
            np.testing.assert_allclose(got, want, rtol=1e-8)
        got, want = run(st.hessian(ours, 1))(w, b), st.hessian(theirs, 1)(w, b)
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9)


@RUNS
def test_the_guess_and_what_else_comes_have_no_derivative(run):
    def solved(a, guess):
        counted = lambda f, x: (newton(f, x), {"from": x})
        return lax.custom_root(lambda x: x * x - a, guess, counted, by_slope, has_aux=True)

    root, aux = run(solved)(4.0, 3.0)
    assert root == pytest.approx(2)
    assert aux["from"] == 3.0
    assert run(st.grad(lambda a, x: solved(a, x)[0], 1))(4.0, 3.0) == 0.0
    assert run(st.grad(lambda a, x: solved(a, x)[1]["from"], 1))(4.0, 3.0) == 0.0
    assert run(st.grad(lambda a, x: solved(a, x)[0]))(4.0, 3.0) == pytest.approx(0.25)


def test_an_equation_that_leaves_out_an_unknown():
    """Nothing is known of the derivative by it, and the solver is told so."""
    seen = []

    def tangent_solve(g, y):
        seen.append(g((1.0, 1.0)))
        return y

    out = lambda a: lax.custom_root(
        lambda x: (x[0] - a, 0.0 * a), (1.0, 1.0), lambda f, x: (a, 1.0), tangent_solve
    )[0]
    assert st.grad(out)(3.0) == 1.0
    assert len(seen[0]) == 2


def test_errors_name_what_is_unlike():
    find = lambda f, x: x
    with pytest.raises(TypeError, match="initial_guess must hold floating or complex numbers; ini"):
        lax.custom_root(lambda x: x, 1, find, by_slope)
    with pytest.raises(TypeError, match=r"f\(x\) must be like the unknowns; x is float32\[\], got"):
        lax.custom_root(lambda x: x * snp.ones(2), 1.0, find, by_slope)
    with pytest.raises(TypeError, match=r"solve\(f, initial_guess\) must have the structure"):
        lax.custom_root(lambda x: x, 1.0, lambda f, x: (x, x), by_slope)
    with pytest.raises(TypeError, match=r"tangent_solve\(g, y\) must be like the unknowns"):
        lax.custom_root(lambda x: x, 1.0, find, lambda g, y: snp.ones(3))
    with pytest.raises(TypeError, match="the argument of the derivative must be like"):
        lax.custom_root(lambda x: x, 1.0, find, lambda g, y: g(snp.ones(3)))


def test_unknowns_of_any_size():
    def root(x):
        newton = lambda f, y: st.lax.fori_loop(0, 30, lambda _, y: y - f(y) / (3 * y * y + 1), y)
        solve = lambda g, y: y / g(snp.ones_like(y))
        return st.lax.custom_root(lambda y: y**3 + y - x, snp.zeros_like(x), newton, solve)

    x = np.linspace(-1, 1, 5, dtype=np.float32)
    holds(root, [x], {(0, 0): 0}, tolerance=10)
    holds(st.vmap(lambda x: root(x[None])[0]), [x], {(0, 0): 0}, tolerance=10)


@pytest.mark.parametrize("run", [lambda f: f, st.jit], ids=["eager", "jit"])
def test_each_program_is_mapped_along_what_it_captures(run):
    """The equation x² = a takes one value, the solver two, the tangent's solver three."""

    def root(a, once, twice):
        return st.lax.custom_root(
            lambda x: x * x - a,
            snp.ones(2),
            lambda f, x: snp.sqrt(a) * once,
            lambda g, y: y / g(snp.ones(2)) * once * twice,
        )

    a, one = snp.array([[1.0, 4.0], [9.0, 16.0], [2.0, 3.0]]), snp.ones(2)
    many = st.vmap(root, (0, None, None))
    np.testing.assert_allclose(run(many)(a, one, one), np.sqrt(a), rtol=1e-6)
    slope = st.grad(lambda a: many(a, one, one).sum())
    np.testing.assert_allclose(run(slope)(a), 0.5 / np.sqrt(a), rtol=1e-6)
    shared = st.grad(lambda a: st.vmap(root, (None, 0, None))(a, snp.ones((3, 2)), one).sum())
    np.testing.assert_allclose(run(shared)(a[0]), 1.5 / np.sqrt(a[0]), rtol=1e-6)
