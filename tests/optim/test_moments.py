"""The scalings beneath Adam's family: values of optax where no optimizer shows them."""

import numpy as np

import stretto.numpy as snp
from stretto import optim
from tests.optim.running import assert_figures


def test_yogi_from_another_start():
    assert_figures("yogi start", optim.scale_by_yogi(eps_root=0.1, initial_accumulator_value=0.2))


def test_decays_may_be_arrays():
    # 1 − b2 of a float32 array is that of the nearest number to 0.999, and the corrections agree.
    arrays = optim.scale_by_adam(snp.array(0.9), snp.array(0.999), snp.array(1e-8))
    numbers = optim.scale_by_adam(0.9, 0.999, 1e-8)
    g = snp.array([0.5, -2.0])
    states = [tx.init(g) for tx in (arrays, numbers)]
    for _ in range(3):
        results = [tx.update(g, s)[0] for tx, s in zip((arrays, numbers), states)]
        np.testing.assert_allclose(*results, rtol=1e-6)
        states = [tx.update(g, s)[1] for tx, s in zip((arrays, numbers), states)]


def test_decay_zero_forgets_at_once():
    for tx in (optim.scale_by_adam(0.0, 0.0, 0.0), optim.scale_by_radam(0.0, 0.0, threshold=5.0)):
        g = snp.array([0.5, -2.0])
        updates, _ = tx.update(g, tx.init(g))
        assert np.isfinite(np.asarray(updates)).all()
    sign = optim.scale_by_adam(0.0, 0.0, 0.0)
    np.testing.assert_allclose(sign.update(g, sign.init(g))[0], [1, -1], rtol=1e-6)
