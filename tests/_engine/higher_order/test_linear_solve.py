"""Linear systems by a solver of the user's: laws, all derivatives, transposes, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.higher_order.implicit import CustomLinearSolve
from stretto.laws import c64, c128, f32, f64, law
from tests.any_size import holds

lax = st.lax
RUNS = pytest.mark.parametrize("run", [lambda f: f, st.jit], ids=["eager", "jit"])
RNG = np.random.default_rng(0)
MATRIX = RNG.normal(size=(3, 3)) + 4 * np.eye(3)


def eliminate(a, b):
    """The solution of a system whose matrix needs no pivots."""
    n = b.shape[0]
    both = snp.concatenate([a, b[:, None]], 1)
    for i in range(n):
        row = both[i] / both[i, i]
        away = both - both[:, i : i + 1] * row
        both = snp.where(snp.arange(n)[:, None] == i, row, away)
    return both[:, n]


def direct(a, b):
    """By elimination, of the matrix and of its transpose."""
    return lax.custom_linear_solve(
        lambda x: a @ x, b, lambda matvec, b: eliminate(a, b), lambda vecmat, b: eliminate(a.T, b)
    )


def conjugate_gradients(matvec, b):
    """A solver that has no reverse derivative of its own: its number of steps is unknown."""

    def step(state):
        x, r, p, square, n = state
        q = matvec(p)
        far = square / snp.sum(p * q)
        r = r - far * q
        new = snp.sum(r * r)
        return x + far * p, r, r + new / square * p, new, n + 1

    start = (snp.zeros_like(b), b, b, snp.sum(b * b), 0)
    out = lax.while_loop(lambda s: (s[3] > 1e-26) & (s[4] < 20), step, start)
    return out[0], {"steps": out[4], "left": out[3]}


def definite(a, b):
    """Of a @ a.T, which is symmetric and positive, with what the solver says."""
    return lax.custom_linear_solve(
        lambda x: a @ (a.T @ x), b, conjugate_gradients, symmetric=True, has_aux=True
    )


def of_tree(d, e, b):
    """A diagonal system of two unknowns that are a dictionary."""
    return lax.custom_linear_solve(
        lambda x: {"u": d * x["u"], "v": e * x["v"] + 0 * x["u"][0]},
        {"u": b, "v": b[0]},
        lambda matvec, b: {"u": b["u"] / d, "v": b["v"] / e},
        lambda vecmat, b: {"u": b["u"] / d, "v": b["v"] / e},
    )


NEAR = (3, 3)
LAWS = [
    law(CustomLinearSolve, lambda a, b: direct(a + 8 * snp.eye(3), b), f64(*NEAR), f64(3)),
    law(CustomLinearSolve, lambda a, b: direct(a + 8 * snp.eye(3), b), f32(*NEAR), f32(3)),
    law(CustomLinearSolve, lambda a, b: direct(a + 8 * snp.eye(3), b), c64(*NEAR), c64(3)),
    law(CustomLinearSolve, lambda a, b: definite(a + 8 * snp.eye(3), b)[0], f64(*NEAR), f64(3)),
    law(CustomLinearSolve, of_tree, f64(3).within(1, 2), f64().within(1, 2), f64(3)),
    law(CustomLinearSolve, lambda b: direct(snp.array(MATRIX), b), c128(3)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


@RUNS
@pytest.mark.parametrize("solve", [direct, lambda a, b: definite(a, b)[0]], ids=["direct", "cg"])
def test_derivatives_are_those_of_elimination(run, solve):
    plain = eliminate if solve is direct else lambda a, b: eliminate(a @ a.T, b)
    with st.config(enable_x64=True):
        a, b = snp.array(MATRIX), snp.array(RNG.normal(size=3))
        got, want = run(derivatives(solve))(a, b), derivatives(plain)(a, b)
        for g, w in zip(st.tree.leaves(got), st.tree.leaves(want), strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-7, atol=1e-10)


def derivatives(solve):
    """First and second ones, forward and reverse, of many and by many."""

    def f(a, b):
        return snp.sum(snp.sin(solve(a, b)))

    def every(a, b):
        two, other = snp.stack([b, 2 * b]), snp.stack([a, a.T])
        return [
            st.grad(f, (0, 1))(a, b),
            st.jacfwd(f, (0, 1))(a, b),
            st.hessian(f, 1)(a, b),
            st.jacrev(st.grad(f), 1)(a, b),
            st.vmap(st.grad(f, (0, 1)), (None, 0))(a, two),
            st.vmap(st.grad(f, (0, 1)), (0, None))(other, b),
            st.grad(lambda a: snp.sum(st.vmap(f, (None, 1))(a, two.T)))(a),
        ]

    return every


@RUNS
def test_in_a_loop(run):
    with st.config(enable_x64=True):
        a, b = snp.array(MATRIX), snp.array([1.0, -2.0, 0.5])
        step = lambda f: (
            lambda a, b: snp.sum(
                lax.scan(lambda c, _: (f(a, snp.sin(c)), None), b, None, length=3)[0]
            )
        )
        got = run(st.grad(step(direct), (0, 1)))(a, b)
        want = st.grad(step(eliminate), (0, 1))(a, b)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-8)


@RUNS
def test_the_matrix_by_a_derivative(run):
    """Newton's step for a function of a loop: the matrix is its Hessian, applied forward."""

    def loss(x):
        return snp.sum(lax.scan(lambda c, y: (c + snp.exp(x * y), None), x * 0, D)[0]) + x @ x

    def newton(x, transpose_solve):
        product = lambda v: st.jvp(st.grad(loss), (x,), (v,))[1]
        invert = lambda matvec, b: eliminate(st.jacfwd(matvec)(snp.zeros(3)), b)
        return lax.custom_linear_solve(product, st.grad(loss)(x), invert, transpose_solve)

    with st.config(enable_x64=True):
        D = snp.array([0.5, 1.0, -1.0])
        x = snp.array([0.1, 0.2, 0.3])
        by_vecmat = lambda vecmat, b: eliminate(st.jacfwd(vecmat)(snp.zeros(3)), b)
        total = lambda x: snp.sum(newton(x, by_vecmat) ** 2)
        plain = lambda x: snp.sum(eliminate(st.hessian(loss)(x), st.grad(loss)(x)) ** 2)
        np.testing.assert_allclose(run(total)(x), plain(x), rtol=1e-10)
        np.testing.assert_allclose(run(st.grad(total))(x), st.grad(plain)(x), rtol=1e-8)


@RUNS
def test_what_else_a_solver_gives(run):
    a, b = snp.array(MATRIX.astype(np.float32)), snp.array([1.0, -2.0, 0.5])
    x, aux = run(definite)(a, b)
    assert 1 <= int(aux["steps"]) <= 20
    np.testing.assert_allclose(a @ (a.T @ x), b, rtol=1e-4)
    left = lambda b: definite(a, b)[1]["left"]
    assert run(st.grad(left))(b).tolist() == [0, 0, 0]
    steps = run(st.vmap(lambda b: definite(a, b)[1]["steps"]))(snp.stack([b, b * 0]))
    assert steps.tolist() == [int(aux["steps"]), 0]


def test_what_only_the_solver_captures_has_no_derivative():
    def solved(scale):
        return lax.custom_linear_solve(
            lambda x: 2.0 * x, 3.0, lambda matvec, b: b / 2 + 0 * scale, symmetric=True
        )

    assert st.grad(solved)(5.0) == 0.0
    assert st.jvp(solved, (5.0,), (1.0,))[1] == 0.0


def test_forward_derivatives_need_no_transpose():
    solved = lambda b: lax.custom_linear_solve(lambda x: 4.0 * x, b, lambda matvec, b: b / 4)
    assert st.jvp(solved, (2.0,), (2.0,)) == (0.5, 0.5)
    with pytest.raises(
        st.errors.MissingRuleError, match=r"needs transpose_solve=\.\.\., or symmetric"
    ):
        st.grad(solved)(2.0)


def test_errors_name_what_is_unlike():
    b = snp.ones(3)
    same = lambda matvec, b: b
    with pytest.raises(TypeError, match="b must hold floating or complex numbers; b is int32"):
        lax.custom_linear_solve(lambda x: x, snp.arange(3), same)
    with pytest.raises(
        TypeError, match=r"matvec\(x\) must be like the unknowns; x is float32\[3\]"
    ):
        lax.custom_linear_solve(lambda x: x[:2], b, same)
    with pytest.raises(TypeError, match=r"solve\(matvec, b\) must have the structure of the unk"):
        lax.custom_linear_solve(lambda x: x, b, lambda matvec, b: (b, b))
    with pytest.raises(TypeError, match=r"with has_aux, solve\(matvec, b\) must be a pair"):
        lax.custom_linear_solve(lambda x: x, b, same, has_aux=True)
    with pytest.raises(TypeError, match=r"transpose_solve\(vecmat, b\) must be like the unknowns"):
        lax.custom_linear_solve(lambda x: x, b, same, lambda vecmat, b: b.astype(snp.float16))
    with pytest.raises(TypeError, match=r"the argument of vecmat must be like the unknowns"):
        lax.custom_linear_solve(lambda x: x, b, same, lambda vecmat, b: vecmat(b[:1]))


def test_unknowns_of_any_size():
    def solved(x, b):
        product = lambda v: x @ (x.T @ v) + v
        return st.scipy.sparse.linalg.cg(product, b, tol=1e-6)[0]

    x, b = (np.random.default_rng(0).normal(size=s).astype(np.float32) for s in ((4, 2), (4,)))
    holds(solved, [x / 2, b], {(0, 0): 0, (1, 0): 0}, tolerance=200)  # solved to 1e-6


def test_it_is_not_linear_in_the_matrix():
    solve = lambda _, b: b
    f = lambda a: lax.custom_linear_solve(lambda x: a * x, snp.ones(2), solve, solve)
    with pytest.raises(TypeError, match="custom_linear_solve is linear in b only"):
        st.linear_transpose(f, snp.ones(2))(snp.ones(2))


@RUNS
def test_each_program_is_mapped_along_what_it_captures(run):
    """The product takes one value, the solver two, the transposed one three; some are shared."""

    def solution(a, once, twice, b):
        return lax.custom_linear_solve(
            lambda x: a * x,
            b,
            lambda _, b: b / a * once,
            lambda _, b: b * twice / (a * twice) * once,
        )

    a, b = snp.array([[1.0, 2.0], [4.0, 5.0], [2.0, 8.0]]), snp.array([[3.0, 4.0]] * 3)
    once, twice = snp.ones(2), snp.ones(2)
    plain = lambda a, b, *_: ((b / a + snp.zeros((3, 2))) ** 2).sum()
    twofold = lambda f: lambda *args: (st.grad(f)(*args) ** 2).sum()
    for axes in ((0, None, None, 0), (0, None, None, None), (None, None, None, 0)):
        given = [x if axis == 0 else x[0] for x, axis in zip((a, b), axes[::3], strict=True)]
        many = st.vmap(solution, axes)
        loss = lambda a, b, once, twice, many=many: (many(a, once, twice, b) ** 2).sum()
        np.testing.assert_allclose(run(loss)(*given, once, twice), plain(*given), rtol=1e-6)
        for f, g in ((loss, plain), (twofold(loss), twofold(plain))):
            got = run(st.grad(f, (0, 1)))(*given, once, twice)
            for x, y in zip(got, st.grad(g, (0, 1))(*given), strict=True):
                np.testing.assert_allclose(x, y, rtol=2e-5)
