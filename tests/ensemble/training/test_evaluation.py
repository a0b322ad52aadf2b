"""Means over examples, whatever the batches."""

import numpy as np
import pytest

import stretto as st
from stretto import optim
from stretto.ensemble import Evaluator, Trainer

X = np.arange(7, dtype=np.float32)


def squares(member, x):
    return (member(x) ** 2).mean()


@pytest.mark.parametrize("batch_size", [2, 7, 100])
def test_the_mean_over_all_examples(batch_size):
    e = st.Ensemble(lambda p, x: p["w"] * x, [{"w": np.float32(i)} for i in range(3)])
    state = Trainer(squares, optim.sgd(0.1)).start(e, st.random.PRNGKey(0))
    first = lambda member, x: member(x).mean()
    found = Evaluator(squares, {"mean": first})(state, X, batch_size)
    np.testing.assert_allclose(found["loss"], np.arange(3) ** 2 * (X**2).mean(), rtol=1e-6)
    np.testing.assert_allclose(found["mean"], np.arange(3) * X.mean(), rtol=1e-6)
    # Members that do not train any more are not measured.
    stopped = state.packs[0].replace(active=st.numpy.array([True, False, True]))
    found = Evaluator(squares)(state.replace(packs=(stopped,)), X, batch_size)
    assert np.isnan(found["loss"]).tolist() == [False, True, False]
