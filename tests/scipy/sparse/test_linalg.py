"""Systems solved by products: trees, derivatives, preconditioners, the end without success."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.scipy.sparse.linalg import bicgstab, cg, gmres

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 5))
ANY = X + 6 * np.eye(5)
POSITIVE = X @ X.T + np.eye(5)
B = RNG.normal(size=5)
METHODS = {"cg": (cg, POSITIVE), "bicgstab": (bicgstab, ANY), "gmres": (gmres, ANY)}
COMPLEX = {"cg": POSITIVE + 1j * (X - X.T) * 0.2, "bicgstab": ANY + 1j * X, "gmres": ANY + 1j * X}


@pytest.fixture(autouse=True)
def wide():
    with st.enable_x64(True):
        yield


@pytest.mark.parametrize("name", METHODS)
def test_derivatives_are_those_of_the_solution(name):
    method, a = METHODS[name]
    symmetric = (lambda a: (a + a.T) / 2) if name == "cg" else (lambda a: a)
    ours = lambda a, b: snp.sum(snp.sin(method(symmetric(a), b, tol=1e-12)[0]))
    theirs = lambda a, b: snp.sum(snp.sin(snp.linalg.solve(symmetric(a), b)))
    got = st.jit(st.value_and_grad(ours, (0, 1)))(a, B)
    want = st.value_and_grad(theirs, (0, 1))(a, B)
    for x, y in zip(st.tree.leaves(got), st.tree.leaves(want), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-10)
    direction = (np.ones((5, 5)), np.ones(5))
    pushed = st.jvp(ours, (a, B), direction)[1]
    np.testing.assert_allclose(pushed, st.jvp(theirs, (a, B), direction)[1], rtol=1e-8)


class Scaled:
    """``scale * matrix``, multiplied by without being formed, and with no shape or dtype."""

    def __init__(self, matrix, scale):
        self.matrix, self.scale = matrix, scale

    def __matmul__(self, v):
        return self.scale * (self.matrix @ v)


class Typed(Scaled):
    shape, dtype = (5, 5), np.dtype(np.complex128)


@pytest.mark.parametrize("name", METHODS)
def test_objects_that_multiply(name):
    method, a = METHODS[name]
    solved = lambda scale: method(Scaled(snp.array(a), scale), B, M=Scaled(np.eye(5), 0.5))[0]
    want = np.linalg.solve(a, B) / 2
    for f in (solved, st.jit(solved)):
        np.testing.assert_allclose(f(2.0), want, rtol=1e-4)
    slope = st.jit(st.grad(lambda scale: snp.sum(solved(scale))))(2.0)
    np.testing.assert_allclose(slope, -np.sum(want) / 2, rtol=1e-4)
    x, info = method(Typed(COMPLEX[name], 1.0), B)
    np.testing.assert_allclose(x, np.linalg.solve(COMPLEX[name], B), rtol=1e-4, atol=1e-6)
    assert int(info) == 0
    Wrong = type("Wrong", (Typed,), {"shape": (5, 4)})
    with pytest.raises(ValueError, match=rf"{name}: A must be a square matrix, got shape \(5, 4\)"):
        method(Wrong(a, 1.0), B)


@pytest.mark.parametrize("name", METHODS)
def test_complex_systems_and_many_right_hand_sides(name):
    method, a = METHODS[name][0], COMPLEX[name]
    b = RNG.normal(size=(3, 5)) + 1j
    solve = lambda b: method(a, b, tol=1e-12)[0]
    want = np.linalg.solve(a, b.T).T
    np.testing.assert_allclose(st.vmap(solve)(b), want, rtol=1e-8)
    g = st.grad(lambda b: snp.real(snp.sum(solve(b))))(b[0])
    np.testing.assert_allclose(g, np.linalg.solve(a.T, np.ones(5)), rtol=1e-8)


@pytest.mark.parametrize("name", METHODS)
def test_trees_starts_and_preconditioners(name):
    method, a = METHODS[name]
    inverse = np.linalg.inv(a) + 1e-2 * np.diag(np.arange(5.0))
    b = {"x": B[:2].astype(np.float32), "y": B[2:].reshape(3, 1)}
    flat = lambda t: snp.concatenate([t["x"], t["y"][:, 0]])
    split = lambda v: {"x": v[:2].astype(np.float32), "y": v[2:, None]}
    by = lambda m: lambda t: split(m @ flat(t))
    start = split(np.linalg.solve(a, B))
    want = np.linalg.solve(a, flat(b))
    x, info = method(by(a), b, start, tol=1e-6, M=by(inverse))
    assert (x["x"].dtype, x["y"].shape, int(info)) == (np.float32, (3, 1), 0)
    np.testing.assert_allclose(flat(x), want, rtol=1e-4)
    few = method(a, B, tol=1e-3, maxiter=3, M=inverse)
    assert int(few[1]) == 0
    np.testing.assert_allclose(few[0], np.linalg.solve(a, B), rtol=2e-2, atol=1e-2)
    g = st.grad(lambda b: snp.sum(method(a, b, tol=1e-10, M=inverse)[0]))(B)
    np.testing.assert_allclose(g, np.linalg.solve(a.T, np.ones(5)), rtol=1e-7)


@pytest.mark.parametrize("name", METHODS)
def test_info_counts_steps_that_do_not_suffice(name):
    method, a = METHODS[name]
    options = {"restart": 1} if name == "gmres" else {}
    x, info = st.jit(lambda b: method(a, b, tol=1e-14, maxiter=2, **options))(B)
    assert int(info) == 2
    assert np.isfinite(x).all()
    x, info = method(a, np.zeros(5))
    assert int(info) == 0
    np.testing.assert_array_equal(x, np.zeros(5))
    assert int(method(np.full((2, 2), np.nan), np.ones(2))[1]) > 0
    assert method(np.zeros((0, 0)), np.zeros(0))[0].shape == (0,)


def test_a_space_that_ends_early_does_no_harm():
    b = np.array([1.0, 2, 0, 0])
    x, info = gmres(np.diag([2.0, 4, 5, 6]), b, restart=4)
    np.testing.assert_allclose(x, [0.5, 0.5, 0, 0], atol=1e-12)
    assert int(info) == 0


def test_refusals():
    with pytest.raises(ValueError, match=r"cg: A must be a square matrix, got shape \(2, 3\)"):
        cg(np.ones((2, 3)), np.ones(2))
    with pytest.raises(TypeError, match="cg: A must be a function, a square matrix"):
        cg([[1.0]], np.ones(1))
    with pytest.raises(ValueError, match="bicgstab: x0 must have the structure and shapes of b"):
        bicgstab(np.eye(2), np.ones(2), np.ones(3))
    with pytest.raises(TypeError, match="must be all real or all complex"):
        cg(lambda x: x, {"a": np.ones(2), "b": np.ones(2) * 1j})
    with pytest.raises(ValueError, match="gmres: solve_method must be 'batched' or 'incremental'"):
        gmres(np.eye(2), np.ones(2), solve_method="direct")
    with pytest.raises(ValueError, match="gmres: restart must be 1 or more, got 0"):
        gmres(np.eye(2), np.ones(2), restart=0)
    with pytest.raises(TypeError, match=r"matvec\(x\) must be like the unknowns"):
        cg(lambda x: x[:1], np.ones(2))
