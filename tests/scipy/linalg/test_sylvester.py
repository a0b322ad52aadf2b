"""Sylvester's equation: residuals, batches, nearly singular systems, slopes, refusals."""

import numpy as np
import pytest
import scipy.linalg

import stretto as st
import stretto.numpy as snp
from stretto.scipy.linalg import solve_sylvester


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


def test_refusals():
    one, two = np.eye(1, dtype=np.float32), np.eye(2, dtype=np.float32)
    with pytest.raises(ValueError, match="solve_sylvester: method must be 'schur' or 'eigen'"):
        solve_sylvester(one, one, one, method="lu")
    with pytest.raises(ValueError, match=r"solve_sylvester: C must have shape \[..., 1, 2\]"):
        solve_sylvester(one, two, two)
    with pytest.raises(ValueError, match="solve_sylvester"):
        solve_sylvester(np.ones((1, 2), np.float32), two, one)
