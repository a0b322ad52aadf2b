"""Losses of numbers: PyTorch's figures, corners, extremes, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.nn import functional as F
from tests.nn.figures import digests, names, same

# Arrays, settings, and PyTorch's shape and digests: see ``tests.nn.figures``.
CASES = [
    (
        "mse_loss",
        {"input": (3, 4), "target": (3, 4)},
        {"reduction": "none"},
        [(3, 4), -0.17124, -1.89627, 1.89627],
    ),
    (
        "l1_loss",
        {"input": (3, 4), "target": (3, 4)},
        {"reduction": "none"},
        [(3, 4), -0.24538, -0.08524, 0.08524],
    ),
    (
        "smooth_l1_loss",
        {"input": (3, 4), "target": (3, 4)},
        {"reduction": "none"},
        [(3, 4), -0.08562, -0.94814, 0.94814],
    ),
    (
        "smooth_l1_loss",
        {"input": (3, 4), "target": (3, 4)},
        {"reduction": "none", "beta": 0.3},
        [(3, 4), -0.18793, -0.19725, 0.19725],
    ),
    (
        "smooth_l1_loss",
        {"input": (3, 4), "target": (3, 4)},
        {"reduction": "none", "beta": 0.0},
        [(3, 4), -0.24538, -0.08524, 0.08524],
    ),
    (
        "huber_loss",
        {"input": (3, 4), "target": (3, 4)},
        {"reduction": "none", "delta": 0.4},
        [(3, 4), -0.06856, -0.19702, 0.19702],
    ),
    (
        "mse_loss",
        {"input": (3, 4), "target": (3, 4)},
        {"reduction": "mean"},
        [(), 0.45577, 0.21608, -0.21608],
    ),
    (
        "l1_loss",
        {"input": (3, 4), "target": (3, 4)},
        {"reduction": "mean"},
        [(), 0.61169, 0.15228, -0.15228],
    ),
    (
        "smooth_l1_loss",
        {"input": (3, 4), "target": (3, 4)},
        {"reduction": "mean"},
        [(), 0.22788, 0.10804, -0.10804],
    ),
    (
        "smooth_l1_loss",
        {"input": (3, 4), "target": (3, 4)},
        {"reduction": "mean", "beta": 0.3},
        [(), 0.46867, 0.14984, -0.14984],
    ),
    (
        "smooth_l1_loss",
        {"input": (3, 4), "target": (3, 4)},
        {"reduction": "mean", "beta": 0.0},
        [(), 0.61169, 0.15228, -0.15228],
    ),
    (
        "huber_loss",
        {"input": (3, 4), "target": (3, 4)},
        {"reduction": "mean", "delta": 0.4},
        [(), 0.17049, 0.06514, -0.06514],
    ),
    (
        "mse_loss",
        {"input": (3, 4), "target": (3, 4)},
        {"reduction": "sum"},
        [(), 5.46918, 2.59296, -2.59296],
    ),
    (
        "l1_loss",
        {"input": (3, 4), "target": (3, 4)},
        {"reduction": "sum"},
        [(), 7.34026, 1.82734, -1.82734],
    ),
    (
        "smooth_l1_loss",
        {"input": (3, 4), "target": (3, 4)},
        {"reduction": "sum"},
        [(), 2.73459, 1.29648, -1.29648],
    ),
    (
        "smooth_l1_loss",
        {"input": (3, 4), "target": (3, 4)},
        {"reduction": "sum", "beta": 0.3},
        [(), 5.62401, 1.79805, -1.79805],
    ),
    (
        "smooth_l1_loss",
        {"input": (3, 4), "target": (3, 4)},
        {"reduction": "sum", "beta": 0.0},
        [(), 7.34026, 1.82734, -1.82734],
    ),
    (
        "huber_loss",
        {"input": (3, 4), "target": (3, 4)},
        {"reduction": "sum", "delta": 0.4},
        [(), 2.04582, 0.78167, -0.78167],
    ),
    (
        "mse_loss",
        {
            "input": (3, 4),
            "target": (3, 4),
            "weight": [[0.5, 1.0, 2.0, 0.1], [0.5, 1.0, 2.0, 0.1], [0.5, 1.0, 2.0, 0.1]],
        },
        {},
        [(), 0.464, 0.2887, -0.2887],
    ),
    (
        "l1_loss",
        {
            "input": (3, 4),
            "target": (3, 4),
            "weight": [[0.5, 1.0, 2.0, 0.1], [0.5, 1.0, 2.0, 0.1], [0.5, 1.0, 2.0, 0.1]],
        },
        {},
        [(), 0.62682, 0.33934, -0.33934],
    ),
    (
        "huber_loss",
        {
            "input": (3, 4),
            "target": (3, 4),
            "weight": [[0.5, 1.0, 2.0, 0.1], [0.5, 1.0, 2.0, 0.1], [0.5, 1.0, 2.0, 0.1]],
        },
        {},
        [(), 0.2088, 0.12992, -0.12992],
    ),
    (
        "gaussian_nll_loss",
        {"input": (2, 3), "target": (2, 3), "var": [[0.5, 1.0, 2.0], [0.1, 0.0, 3.0]]},
        {"reduction": "mean", "full": False},
        [(), 53381.04347, 87191.48452, -87191.48452],
    ),
    (
        "gaussian_nll_loss",
        {"input": (2, 3), "target": (2, 3), "var": [[0.5], [1.0]]},
        {"reduction": "sum", "full": True},
        [(), 6.77224, -2.21852, 2.21852],
    ),
    (
        "gaussian_nll_loss",
        {"input": (2, 3), "target": (2, 3), "var": [0.5, 1.0]},
        {"reduction": "none", "full": False},
        [(2, 3), -0.21606, -1.33523, 1.33523],
    ),
    (
        "poisson_nll_loss",
        {"input": (2, 3), "target": [[0.0, 1.0, 2.0], [3.5, 0.5, 7.0]]},
        {"reduction": "mean", "full": False},
        [(), 1.13334, 0.56689],
    ),
    (
        "poisson_nll_loss",
        {"input": (2, 3), "target": [[0.0, 1.0, 2.0], [3.5, 0.5, 7.0]]},
        {"reduction": "none", "full": True},
        [(2, 3), -2.14937, -2.02126],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, arrays, settings, want = case
    for run in (lambda f: f, st.jit):
        same(digests(getattr(F, name), arrays, settings, run), want)


def test_derivative_at_no_difference_is_zero():
    for f in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss):
        assert st.grad(f)(snp.ones(2), snp.ones(2)).tolist() == [0, 0]
    # At the seam both parts have slope 1.
    for f in (F.smooth_l1_loss, F.huber_loss):
        assert st.grad(f)(snp.ones(1), snp.zeros(1)).tolist() == [1]


def test_huber_is_smooth_l1_by_delta():
    x, y = snp.linspace(-3, 3, 12), snp.zeros(12)
    np.testing.assert_allclose(
        F.huber_loss(x, y, delta=0.5), 0.5 * F.smooth_l1_loss(x, y, beta=0.5), rtol=1e-6
    )


def test_gaussian():
    x, y, v = snp.array([1.0]), snp.array([3.0]), snp.array([4.0])
    want = 0.5 * (np.log(4) + 1 + np.log(2 * np.pi))
    np.testing.assert_allclose(F.gaussian_nll_loss(x, y, v, full=True), want, rtol=1e-6)
    np.testing.assert_allclose(F.gaussian_nll_loss(x, y, 4.0, full=True), want, rtol=1e-6)
    # From PyTorch 2.13.0: below eps the slope by the variance is that at eps.
    slope = st.grad(F.gaussian_nll_loss, 2)(snp.ones(1), snp.zeros(1), snp.zeros(1))
    np.testing.assert_allclose(slope, -4.999995e11, rtol=1e-5)
    with pytest.raises(ValueError, match="var must not be negative"):
        F.gaussian_nll_loss(x, y, -v)
    with pytest.raises(ValueError, match=r"var must have the shape of input float32\[1\]"):
        F.gaussian_nll_loss(x, y, snp.ones((3, 3)))


def test_poisson_of_rates():
    rate, t = np.array([0.5, 2.0]), np.array([1.0, 3.0])
    got = F.poisson_nll_loss(snp.array(rate), snp.array(t), log_input=False, reduction="none")
    np.testing.assert_allclose(got, rate - t * np.log(rate), rtol=1e-5)
    zero = F.poisson_nll_loss(snp.zeros(1), snp.ones(1), log_input=False, reduction="none")
    np.testing.assert_allclose(zero, -np.log(1e-8), rtol=1e-5)


def test_each_member_its_loss():
    x = snp.arange(12.0).reshape(3, 4)
    got = st.jit(st.vmap(st.value_and_grad(F.mse_loss), in_axes=(0, None)))(x, snp.zeros(4))
    np.testing.assert_allclose(got[0], (np.asarray(x) ** 2).mean(1), rtol=1e-6)
    np.testing.assert_allclose(got[1], np.asarray(x) / 2, rtol=1e-6)


def test_messages():
    x = snp.ones((3, 1))
    with pytest.raises(ValueError, match=r"mse_loss: expected input and target of one shape, got"):
        F.mse_loss(x, snp.ones(3))
    with pytest.raises(ValueError, match=r"l1_loss: reduction must be .* got 'average'"):
        F.l1_loss(x, x, reduction="average")
    with pytest.raises(ValueError, match="smooth_l1_loss: beta must not be negative, got -1"):
        F.smooth_l1_loss(x, x, beta=-1)
    with pytest.raises(ValueError, match="huber_loss: delta must be positive, got 0"):
        F.huber_loss(x, x, delta=0)
    with pytest.raises(ValueError, match="mse_loss: expected input and weight of one shape"):
        F.mse_loss(x, x, weight=snp.ones(3))
    with pytest.raises(TypeError, match=r"mse_loss: a loss is real, got complex64\[3\]"):
        F.mse_loss(snp.ones(3, snp.complex64), snp.ones(3), reduction="none")
