"""Random vectors and matrices: JAX's numbers, moments, refusals."""

import numpy as np
import pytest

from stretto import random as R
from stretto._engine.api.autodiff.derivatives import grad
from tests.random.seeds import jaxs_key

I = np.eye(2, dtype=np.float32)  # noqa: E741


def A(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


# Each draw, and what JAX 0.10.2 gives for the same expression with R = jax.random,
# k = PRNGKey(0x123456789), and jax_threefry_partitionable off, then on; in row-major order.
DRAWS = {
    "multivariate_normal": (
        lambda k: R.multivariate_normal(k, A(2), A(2, 2) * A(2, 2)[::-1].T * 0.1 + 4 * I, (3,)),
        [-3.0676026, 4.2153215, -2.1927106, 3.103632, 1.9243336, 1.7542145],
        [-1.0458539, 0.105744004, 0.53069663, 2.788762, -2.131104, -0.70200324],
    ),
    "multivariate_normal_eigh": (
        lambda k: R.multivariate_normal(
            k, A(2), A(2, 2) * A(2, 2).T * 0.1 + 4 * I, (3,), method="eigh"
        ),
        [3.7536328, 3.989418, 2.6396434, 2.9321313, -1.7363064, 2.0386508],
        [0.83558375, -0.07378912, -0.12610428, 2.948618, 1.7294636, -1.0616422],
    ),
    "multivariate_normal_svd": (
        lambda k: R.multivariate_normal(
            k, A(2), A(2, 2) * A(2, 2).T * 0.1 + 4 * I, (3,), method="svd"
        ),
        [2.5339782, -3.02357, 1.6281112, -1.8371618, 1.0179068, 2.9706726],
        [-1.008955, 0.0256747, 1.7680938, 1.2278341, -1.9428229, -1.0093524],
    ),
    "orthogonal": (
        lambda k: R.orthogonal(k, 3),
        [
            -0.25297558,
            0.4373786,
            0.86296195,
            -0.96340215,
            -0.032148767,
            -0.26612547,
            0.0886544,
            0.89870274,
            -0.42950422,
        ],
        [
            -0.52514136,
            -0.8295957,
            0.1897305,
            0.8492196,
            -0.49636987,
            0.18011941,
            -0.055249773,
            0.25571102,
            0.96517324,
        ],
    ),
    "orthogonal_wide": (
        lambda k: R.orthogonal(k, 2, (2,), m=3),
        [
            -0.004879117,
            -0.4833775,
            -0.8753984,
            0.4295351,
            -0.79154897,
            0.43468344,
            -0.87456214,
            -0.1837901,
            -0.44873405,
            0.2828136,
            -0.94502753,
            -0.16413149,
        ],
        [
            -0.42995036,
            0.21816929,
            -0.8760965,
            0.06022917,
            0.975134,
            0.21327418,
            -0.18646121,
            0.45040113,
            -0.87313855,
            0.627287,
            -0.6294146,
            -0.4586372,
        ],
    ),
    "orthogonal_complex": (
        lambda k: R.orthogonal(k, 2, (), "complex64"),
        [
            complex(-0.449129, 0.35933554),
            complex(-0.2296025, 0.7851394),
            complex(0.39530712, 0.7161657),
            complex(-0.5166856, -0.252735),
        ],
        [
            complex(0.5279112, 0.8257266),
            complex(0.19861035, 0.0062678405),
            complex(0.15339011, -0.12632033),
            complex(0.086656764, 0.97621995),
        ],
    ),
}


def test_draws_are_jaxs(check):
    check(DRAWS, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_moments(method):
    cov = np.array([[2.0, 0.6], [0.6, 0.5]], np.float32)
    x = np.asarray(R.multivariate_normal(R.key(0), A(2), cov, (20000,), method=method))
    np.testing.assert_allclose(x.mean(0), A(2), atol=0.03)
    np.testing.assert_allclose(np.cov(x.T), cov, atol=0.05)


def test_shapes():
    key, mean, cov = R.key(0), A(5, 2), np.stack([I] * 5)
    assert R.multivariate_normal(key, mean, I).shape == (5, 2)
    assert R.multivariate_normal(key, A(2), cov, (3, 5)).shape == (3, 5, 2)
    assert R.orthogonal(key, 3, (4,), m=2).shape == (4, 3, 2)
    assert R.orthogonal(key, 2, (4,), m=3).shape == (4, 2, 3)


def test_orthogonal_matrices_are():
    for dtype in ("float32", "complex64"):
        q = np.asarray(R.orthogonal(R.key(1), 3, (4,), dtype))
        np.testing.assert_allclose(q @ q.conj().swapaxes(1, 2), [np.eye(3)] * 4, atol=1e-5)


def test_differentiates_as_jax_does():
    weights, mean = np.array([1.0, -2.0, 0.5], np.float32), np.array([0.5, 1, 2], np.float32)
    cov = np.eye(3, dtype=np.float32) + np.float32(0.3)
    key = jaxs_key()
    total = lambda a: (R.multivariate_normal(key, a * mean, cov * a) * weights).sum()
    np.testing.assert_allclose(grad(total)(1.5), -1.1302498, rtol=1e-5)


def test_refuses():
    key = R.key(0)
    with pytest.raises(ValueError, match="method must be 'cholesky', 'eigh' or 'svd', got 'lu'"):
        R.multivariate_normal(key, A(2), I, method="lu")
    with pytest.raises(ValueError, match=r"expected mean \[..., n\] and cov"):
        R.multivariate_normal(key, A(3), I)
    with pytest.raises(ValueError, match=r"do not broadcast to shape \(3,\)"):
        R.multivariate_normal(key, A(1, 2), np.stack([I] * 3)[:, None], (3,))
    with pytest.raises(TypeError, match="must be floating or complex, got int32"):
        R.orthogonal(key, 2, dtype="int32")
