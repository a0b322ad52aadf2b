"""What a training gives."""

import numpy as np

import stretto as st
from stretto import optim

X = np.linspace(-1, 1, 10, dtype=np.float32)


def fitted(count=2, **options):
    loss = lambda member, x, y: ((member(x) - y) ** 2).mean()
    e = st.Ensemble(lambda p, x: p["w"] * x, [{"w": np.float32(i)} for i in range(count)])
    usual = {"epochs": 3, "batch_size": 5, "key": st.random.key(0), "progress": False}
    return e.fit(loss, (X, 3 * X), optim.sgd(0.5), **usual | options)


def test_what_is_in_it():
    result = fitted()
    assert list(result.history) == ["step", "epoch", "loss"]
    assert result.stopped == {} and result.diverged == {}
    assert result.state.step == 6 and len(result.ensemble) == 2
