"""SciPy's factorizations: leading axes, shapes and options that the table leaves out."""

import numpy as np
import pytest
import scipy.linalg

import stretto as st
import stretto.numpy as snp
from stretto.scipy import linalg

RNG = np.random.default_rng(0)


def close(got, want, atol=1e-5):
    np.testing.assert_allclose(np.asarray(got), want, atol=atol, rtol=1e-4)


@pytest.mark.parametrize("shape", [(3, 5), (4, 4), (2, 5, 3)], ids=str)
def test_lu_equals_scipy(shape):
    x = RNG.normal(size=shape).astype(np.float32)
    for f in (linalg.lu, st.jit(linalg.lu)):
        p, lower, upper = f(x)
        close(p @ lower @ upper, x)
        matrices = x.reshape(-1, *shape[-2:])
        for row, one in zip(np.reshape(p, (-1, *p.shape[-2:])), matrices, strict=True):
            np.testing.assert_array_equal(row, scipy.linalg.lu(one)[0])
    first, second = linalg.lu(x, permute_l=True)
    close(first @ second, x)
    order, lower, upper = linalg.lu(x, p_indices=True)
    close(np.take_along_axis(np.asarray(lower), np.asarray(order)[..., None], -2) @ upper, x)


def test_only_one_triangle_is_read():
    x = np.array([[4, 2], [7, 5]], np.float32)
    close(linalg.cholesky(x), [[2, 1], [0, 2]])
    close(linalg.cholesky(x.T, lower=True), [[2, 0], [1, 2]])
    c, lower = linalg.cho_factor(x, overwrite_a=True, check_finite=False)
    close(c, [[2, 1], [0, 2]])
    assert lower is False
    assert np.isnan(linalg.cholesky(-x)[0, 0])


@pytest.mark.parametrize("shape", [(4, 3), (3, 4)], ids=str)
@pytest.mark.parametrize("mode", ["full", "economic", "r"])
@pytest.mark.parametrize("pivoting", [False, True])
def test_qr_has_the_shapes_of_scipys(shape, mode, pivoting):
    x = RNG.normal(size=shape).astype(np.float32)
    got = linalg.qr(x, mode=mode, pivoting=pivoting)
    want = scipy.linalg.qr(x, mode=mode, pivoting=pivoting)
    assert [v.shape for v in got] == [v.shape for v in want]
    r = 0 if mode == "r" else 1
    close(np.abs(got[r]), np.abs(want[r]))


def test_r_alone_has_a_gradient_where_q_has_none():
    f = st.grad(lambda x: snp.sum(linalg.qr(x, mode="r")[0] ** 2))
    for x in (np.ones((3, 2)), np.eye(3)[:, [0, 0]], RNG.normal(size=(3, 2))):
        np.testing.assert_allclose(f(snp.array(x)), 2 * x, rtol=1e-5, atol=1e-6)  # |r| = |x|


def test_polar_of_singular_and_of_empty_matrices():
    x = np.diag([2.0, 0.0]).astype(np.float32)
    for method in ("qdwh", "svd"):
        u, p = linalg.polar(x, method=method)
        close(u @ p, x)
        close(p, x)
        assert [v.shape for v in linalg.polar(snp.zeros((3, 0)), method=method)] == [(3, 0), (0, 0)]


def test_refusals():
    with pytest.raises(ValueError, match="qr: mode must be 'full', 'economic' or 'r'; got 'raw'"):
        linalg.qr(np.eye(2), mode="raw")
    with pytest.raises(ValueError, match="qr_multiply: c must have size 3 along axis -1"):
        linalg.qr_multiply(np.eye(3), np.ones((3, 2)))
    with pytest.raises(ValueError, match="qr_multiply: mode must be 'left' or 'right'"):
        linalg.qr_multiply(np.eye(3), np.ones(3), "both")
    with pytest.raises(ValueError, match="svd: lapack_driver must be 'gesdd' or 'gesvd'"):
        linalg.svd(np.eye(2), lapack_driver="gejsv")
    with pytest.raises(ValueError, match="polar: side must be 'left' or 'right'"):
        linalg.polar(np.eye(2), "top")
    with pytest.raises(ValueError, match="polar: method must be 'qdwh' or 'svd'"):
        linalg.polar(np.eye(2), method="newton")
