"""Determinants and inverses: the laws, NumPy, and singular matrices."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.ops.linalg.lu import Determinant, LogDeterminant, LuSolve, det, inv, slogdet
from stretto.laws import c64, c128, f32, f64, law


def steep(x):
    return x + 3 * snp.eye(x.shape[-1], dtype=x.dtype)


LAWS = [
    *(law(Determinant, det, kind(4, 4)) for kind in (f32, f64, c64, c128)),
    *(law(LogDeterminant, lambda x: slogdet(steep(x)), kind(2, 3, 3))
      for kind in (f32, f64, c64, c128)),
    *(law(None, det, kind(n, n)) for n, kind in ((1, f32), (2, c64), (3, f32))),
    law(LuSolve, lambda x: inv(steep(x)), f32(3, 3)),
]  # fmt: skip


@pytest.mark.parametrize("case", LAWS, ids=lambda case: f"{LAWS.index(case)}-{case}")
def test_laws(case):
    case.check()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_equals_numpy(n, dtype):
    rng = np.random.default_rng(n)
    x = rng.normal(size=(2, n, n)) + 1j * rng.normal(size=(2, n, n))
    x = (x if dtype == "complex64" else x.real).astype(dtype)
    for f in (lambda g: g, st.jit):
        np.testing.assert_allclose(f(det)(x), np.linalg.det(x), rtol=1e-4)
        for got, want in zip(f(slogdet)(x), np.linalg.slogdet(x), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(f(inv)(x), np.linalg.inv(x), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_the_gradient_of_det_is_the_adjugate_also_of_a_singular_matrix(n):
    with st.enable_x64(True):
        x = np.random.default_rng(0).normal(size=(n, n))
        x[:, -1] = x[:, : n - 1].sum(1)
        u, s, vh = np.linalg.svd(x)
        others = [np.prod(np.delete(s, i)) for i in range(n)]
        adjugate = np.linalg.det(u) * np.linalg.det(vh) * (vh.T * others) @ u.T
        for f in (st.grad(det), st.jit(st.grad(det))):
            np.testing.assert_allclose(f(snp.array(x)), adjugate.T, atol=1e-12)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
@pytest.mark.parametrize("rounded", [False, True])
def test_the_gradient_of_det_is_finite_whatever_rank_is_left(rank, rounded):
    rng = np.random.default_rng(rank)
    draw = rng.normal if rounded else lambda size: rng.integers(-3, 4, size)
    x = draw(size=(4, rank)) @ draw(size=(rank, 4)) * 1.0
    minor = lambda i, j: np.linalg.det(np.delete(np.delete(x, i, 0), j, 1))
    want = [[(-1) ** (i + j) * minor(i, j) for j in range(4)] for i in range(4)]
    for f in (st.grad(det), st.jit(st.grad(det))):
        np.testing.assert_allclose(f(x.astype(np.float32)), want, atol=1e-6 * np.abs(x).sum() ** 3)


def test_of_size_three_and_less_every_derivative_exists():
    zero = snp.zeros((3, 3))
    np.testing.assert_array_equal(st.grad(det)(zero), np.zeros((3, 3)))
    third = st.jacfwd(st.jacfwd(st.jacfwd(det)))(zero)
    assert float(third[0, 0, 1, 1, 2, 2]) == 1
    assert float(third[0, 1, 1, 0, 2, 2]) == -1


def test_a_singular_matrix_has_sign_zero_and_logarithm_minus_infinity():
    for f in (slogdet, st.jit(slogdet)):
        sign, logarithm = f(snp.zeros((2, 2)))
        assert (float(sign), float(logarithm)) == (0, -np.inf)
    for f in (inv, st.jit(inv)):
        assert not np.isfinite(np.diag(f(snp.zeros((2, 2))))).any()


def test_stacks_of_singular_matrices():
    """Of each its own, also where a pivot that is zero lies elsewhere in each."""
    rng = np.random.default_rng(0)
    stack = rng.normal(size=(3, 4, 4)).astype(np.float32)
    stack[0, :, 1] = 0
    stack[1, 3] = stack[1, 2]
    gradient = st.grad(lambda x: det(x).sum())
    each = [gradient(snp.array(x)) for x in stack]
    np.testing.assert_allclose(gradient(snp.array(stack)), np.stack(each), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("f", [det, inv, slogdet])
def test_only_of_square_matrices(f):
    with pytest.raises(ValueError, match=rf"{f.__name__}: .*square"):
        f(snp.ones((2, 3)))


@pytest.mark.parametrize(("f", "solves"), [(det, 2), (lambda x: slogdet(x)[1], 0)])
def test_the_derivative_differentiates_no_factors(f, solves):
    """It is by the matrix, so the factors count as constant, which saves their own derivative."""
    x = snp.eye(4)
    program = st.make_graph(lambda x, dx: st.jvp(f, (x,), (dx,)))(x, x)
    names = [e.primitive.name for e in program.equations]
    assert names.count("triangular_solve") == solves
