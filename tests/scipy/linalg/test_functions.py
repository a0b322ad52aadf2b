"""Functions of matrices: their laws, the exponential's range, roots that do not exist."""

import numpy as np
import pytest
import scipy.linalg

import stretto as st
import stretto.numpy as snp
from stretto.laws import c64, f32, f64, law
from stretto.scipy.linalg import expm, expm_frechet, funm, solve_sylvester, sqrtm

# Few squarings, for the laws compile each of them.
LAWS = [
    *(law(None, lambda x: expm(x, max_squarings=2), kind(3, 3)) for kind in (f32, f64, c64)),
    law(None, lambda x: sqrtm(x + 6 * snp.eye(3)), f64(3, 3)),
    law(None, lambda x: funm(x + snp.diag(snp.array([2.0, 6.0, 10.0])), snp.sin), c64(3, 3),
        factor=8),  # gaps of eigenvalues divide
    law(None, lambda a, b, c: solve_sylvester(a + 5 * snp.eye(2), b + 5, c), f64(2, 2), f64(1, 1),
        f64(2, 1)),
]  # fmt: skip


@pytest.mark.parametrize("case", LAWS, ids=lambda case: f"{LAWS.index(case)}-{case}")
def test_laws(case):
    case.check()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 10.0])
def test_equals_scipy(dtype, scale):
    with st.enable_x64(True):
        rng = np.random.default_rng(0)
        x = scale * (rng.normal(size=(2, 4, 4)) + 1j * rng.normal(size=(2, 4, 4)))
        x = (x if dtype == "complex128" else x.real).astype(dtype)
        want = scipy.linalg.expm(x)
        tolerance = 300 * np.finfo(dtype).eps
        for f in (expm, st.jit(expm)):
            got = np.asarray(f(x))
            assert got.dtype == x.dtype
            np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * np.abs(want).max())


def test_a_nilpotent_matrix_and_the_zero_matrix():
    x = snp.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(expm(x), [[1, 1, 0.5], [0, 1, 1], [0, 0, 1]], rtol=1e-6)
    np.testing.assert_array_equal(expm(snp.zeros((2, 2))), np.eye(2))
    g = st.grad(lambda x: snp.sum(expm(x)))(snp.zeros((2, 2)))
    np.testing.assert_allclose(g, np.ones((2, 2)), rtol=1e-6)
    assert expm(snp.zeros((0, 0))).shape == (0, 0)


def test_beyond_its_range_it_is_nan_for_that_matrix_alone():
    x = snp.array([[[1.0]], [[40.0]]])
    got = np.asarray(expm(x, max_squarings=2))
    np.testing.assert_allclose(got[0], [[np.e]], rtol=1e-6)
    assert np.isnan(got[1])


def test_of_upper_triangles():
    x = np.array([[1.0, 2.0], [5.0, 3.0]], np.float32)
    want = scipy.linalg.expm(np.triu(x))
    np.testing.assert_allclose(expm(x, upper_triangular=True), want, rtol=1e-5)


def test_roots_of_singular_matrices():
    for f in (sqrtm, st.jit(sqrtm)):
        np.testing.assert_array_equal(f(snp.zeros((2, 2))), np.zeros((2, 2)))
        assert np.isnan(f(snp.array([[0.0, 1.0], [0.0, 0.0]]))).any()  # has none
        np.testing.assert_allclose(f(snp.diag(snp.array([-4.0, 9.0]))), np.diag([2j, 3]), atol=1e-6)
    assert sqrtm(snp.zeros((0, 0))).shape == (0, 0)


def test_funm_of_equal_eigenvalues_and_its_error():
    out, error = funm(snp.eye(3) * 2, snp.exp, disp=False)
    np.testing.assert_allclose(out, np.eye(3) * np.exp(2), rtol=1e-6)
    assert float(error) < 1e-5
    _, error = funm(snp.array([[1.0, 1.0], [0.0, 1.0]]), snp.exp, disp=False)
    assert float(error) >= 1
    assert funm(snp.zeros((2, 0, 0)), snp.exp, disp=False)[1].shape == (2,)


def test_sylvester_of_opposite_eigenvalues_is_nan_alone():
    a = snp.array([[[1.0]], [[2.0]]])
    for f in (solve_sylvester, st.jit(solve_sylvester)):
        got = np.asarray(f(a, -snp.ones((1, 1)), snp.ones((1, 1))))
        assert np.isnan(got[0])
        np.testing.assert_allclose(got[1], [[1.0]], rtol=1e-6)
    assert solve_sylvester(snp.zeros((0, 0)), snp.eye(2), snp.zeros((0, 2))).shape == (0, 2)
    # of equal eigenvalues, where the forms have no derivative, the solution has one
    g = st.grad(lambda a: snp.sum(solve_sylvester(a, snp.eye(2), snp.eye(2))))(snp.eye(2))
    np.testing.assert_allclose(g, -np.eye(2) / 4 - (1 - np.eye(2)) / 4, rtol=1e-5)


def test_refusals():
    with pytest.raises(ValueError, match="expm_frechet: A and E must have the same shape"):
        expm_frechet(snp.eye(2), snp.eye(3))
    with pytest.raises(ValueError, match=r"solve_sylvester: C must have shape \[..., 2, 3\]"):
        solve_sylvester(snp.eye(2), snp.eye(3), snp.ones((3, 2)))
    with pytest.raises(ValueError, match="solve_sylvester: method must be 'schur' or 'eigen'"):
        solve_sylvester(snp.eye(2), snp.eye(2), snp.eye(2), method="direct")


def numbers(seed, *shape, dtype=float):
    random = np.random.default_rng(seed)
    x = random.normal(size=shape)
    return x + 1j * random.normal(size=shape) if dtype is complex else x


@pytest.mark.parametrize("dtype", [float, complex])
def test_scipys(dtype):
    a, b, c = (numbers(i, *s, dtype=dtype) for i, s in enumerate([(3, 3), (4, 4), (3, 4)]))
    with st.enable_x64():
        x = solve_sylvester(a, b, c)
        np.testing.assert_allclose(x, scipy.linalg.solve_sylvester(a, b, c), rtol=1e-9)
        assert x.dtype == np.result_type(a)


def test_batches_broadcast_and_singular_ones_are_nan():
    a, b, c = numbers(0, 2, 1, 2, 2), numbers(1, 3, 3), numbers(2, 4, 2, 3)
    with st.enable_x64():
        x = solve_sylvester(a, b, c)
        assert x.shape == (2, 4, 2, 3)
        np.testing.assert_allclose(a @ x + x @ b, np.broadcast_to(c, x.shape), atol=1e-10)
        both = np.stack([np.eye(2), 2 * np.eye(2)])
        x = np.asarray(solve_sylvester(both, -np.eye(2), np.ones((2, 2))))
        assert np.isnan(x[0]).all()
        np.testing.assert_allclose(x[1], 1)
    assert solve_sylvester(snp.zeros((0, 0)), snp.eye(2), snp.zeros((0, 2))).shape == (0, 2)


def test_slopes():
    """d x solves a dx + dx b = dc - da x - x db."""
    a, b, c = numbers(0, 2, 2), numbers(1, 3, 3), numbers(2, 2, 3)
    da, db, dc = numbers(3, 2, 2), numbers(4, 3, 3), numbers(5, 2, 3)
    with st.enable_x64():
        x, dx = st.jvp(solve_sylvester, (a, b, c), (da, db, dc))
        want = scipy.linalg.solve_sylvester(a, b, dc - da @ np.asarray(x) - np.asarray(x) @ db)
        np.testing.assert_allclose(dx, want, rtol=1e-8)
        ct = numbers(6, 2, 3)
        back = st.vjp(solve_sylvester, a, b, c)[1](ct)
        total = sum(np.vdot(u, v) for u, v in zip(back, (da, db, dc), strict=True))
        np.testing.assert_allclose(total, np.vdot(ct, dx), rtol=1e-8)


def test_refusals_of_sylvester():
    one, two = np.eye(1, dtype=np.float32), np.eye(2, dtype=np.float32)
    with pytest.raises(ValueError, match="solve_sylvester: method must be 'schur' or 'eigen'"):
        solve_sylvester(one, one, one, method="lu")
    with pytest.raises(ValueError, match=r"solve_sylvester: C must have shape \[..., 1, 2\]"):
        solve_sylvester(one, two, two)
    with pytest.raises(ValueError, match="solve_sylvester"):
        solve_sylvester(np.ones((1, 2), np.float32), two, one)
