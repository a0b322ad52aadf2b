"""Losses of numbers: each calls its function."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto import nn
from stretto.nn import functional as F

X = snp.array(np.sin(1.3 * np.arange(12)).reshape(3, 4).astype("f"))
Y = snp.array(np.cos(1.3 * np.arange(12)).reshape(3, 4).astype("f"))
SIGNS, ROWS = snp.where(Y > 0, 1, -1), snp.array([1, -1, 1])
CLASSES, FOUR = snp.array([0, 3, 1]), snp.array([0.5, 1.0, 2.0, 0.1])

LAYERS = [
    (nn.MSELoss(), (X, Y), F.mse_loss(X, Y)),
    (nn.MSELoss(reduction="none"), (X, Y), F.mse_loss(X, Y, reduction="none")),
    (nn.L1Loss("sum"), (X, Y), F.l1_loss(X, Y, reduction="sum")),
    (nn.SmoothL1Loss(beta=0.3), (X, Y), F.smooth_l1_loss(X, Y, beta=0.3)),
    (nn.HuberLoss(delta=0.3), (X, Y), F.huber_loss(X, Y, delta=0.3)),
    (nn.GaussianNLLLoss(full=True), (X, Y, Y**2), F.gaussian_nll_loss(X, Y, Y**2, True)),
    (nn.PoissonNLLLoss(full=True), (X, Y), F.poisson_nll_loss(X, Y, full=True)),
]
IDS = [f"{type(case[0]).__name__}-{i}" for i, case in enumerate(LAYERS)]


@pytest.mark.parametrize("layer, arguments, want", LAYERS, ids=IDS)
def test_calls_its_function(layer, arguments, want):
    np.testing.assert_array_equal(layer(*arguments), want)
    assert not list(layer.parameters())
