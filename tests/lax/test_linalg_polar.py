"""The polar decomposition by Halley's iteration: its laws, its end, refusals."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.laws import c64, f64, law
from stretto.lax.linalg import qdwh


def steep(x):
    return x + 4 * snp.eye(*x.shape[-2:], dtype=x.dtype)


LAWS = [
    # The iteration ends within some units of rounding.
    law(None, lambda x: qdwh(steep(x))[:2], f64(3, 3), mapped=False),
    law(None, lambda x: qdwh(steep(x))[:2], c64(4, 2), factor=4, mapped=False),
]


@pytest.mark.parametrize("case", LAWS, ids=lambda case: f"{LAWS.index(case)}-{case}")
def test_laws(case):
    case.check()


def test_many_matrices_of_all_conditions():
    rng = np.random.default_rng(0)
    u, _ = np.linalg.qr(rng.normal(size=(3, 4, 4)))
    v, _ = np.linalg.qr(rng.normal(size=(3, 4, 4)))
    s = np.array([[1, 1, 1, 1], [1e3, 1, 1e-2, 1e-3], [5, 4, 3, 0]])
    x = ((u * s[:, None]) @ v).astype(np.float32)
    q, h, steps, converged = map(np.asarray, st.jit(qdwh)(x))
    np.testing.assert_allclose(q @ h, x, atol=2e-3)
    np.testing.assert_allclose((q @ h)[0], x[0], atol=1e-5)
    np.testing.assert_allclose(q[:2].mT @ q[:2], np.stack([np.eye(4)] * 2), atol=1e-5)
    assert 1 < int(steps) <= 10
    assert converged[:2].all()
    one = qdwh(x[0], max_iterations=1)
    assert (int(one[2]), bool(one[3])) == (1, False)


def test_refusals():
    with pytest.raises(ValueError, match="qdwh: expected no fewer rows than columns"):
        qdwh(snp.ones((2, 3)))
    with pytest.raises(NotImplementedError, match="slice x instead of giving dynamic_shape"):
        qdwh(snp.eye(3), dynamic_shape=(2, 2))
