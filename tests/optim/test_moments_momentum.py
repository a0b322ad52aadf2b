"""Running sums and means: values of optax, means of parameters."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto import optim
from tests.optim.running import assert_figures, assert_stable, flat, run, run_scan, slowly


@pytest.mark.parametrize(
    ("name", "tx"),
    [
        ("ema", optim.ema(0.8)),
        ("ema biased", optim.ema(0.8, debias=False)),
        ("trace", optim.trace(0.7, nesterov=True)),
    ],
)
def test_values_of_optax(name, tx):
    assert_figures(name, tx)


def test_mean_of_parameters():
    tx = optim.ema(0.9)
    values = [snp.array([1.0, 4.0]), snp.array([2.0, 0.0]), snp.array([5.0, -4.0])]
    state = tx.init(values[0])
    for value in values:
        mean, state = tx.update(value, state)
    # Weights 0.081, 0.09 and 0.1, over their sum.
    expected = np.average(np.array(values), axis=0, weights=[0.081, 0.09, 0.1])
    np.testing.assert_allclose(mean, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("mode", "sign"),
    [
        ("hard", np.sign),
        ("smooth", lambda x: np.tanh(3 * x)),
        ("refined", lambda x: np.clip(x, -1, 1)),
    ],
)
def test_modes_of_lion_by_definition(mode, sign):
    def step(t, g, p, m):
        return p + sign(0.5 * m + 0.5 * g), 0.8 * m + 0.2 * g

    tx = optim.scale_by_lion(0.5, 0.8, mode=mode, smooth_beta=3.0)
    expected = slowly(step, 1, np.float64)
    np.testing.assert_allclose(flat(run(tx)[0]), expected, rtol=0, atol=5e-6)
    np.testing.assert_allclose(flat(run_scan(tx)[0]), expected, rtol=0, atol=5e-6)
    assert_stable(tx)


def test_what_is_refused():
    with pytest.raises(ValueError, match="ema: decay must be at least 0 and below 1, got 1"):
        optim.ema(1.0)
    with pytest.raises(ValueError, match="trace: decay must be at least 0"):
        optim.trace(-0.1)
    with pytest.raises(
        ValueError, match=r"mode must be one of \['hard', 'smooth', 'refined'\], got"
    ):
        optim.scale_by_lion(mode="soft")
