"""The plan that ``fit`` makes of data: its own order, or batches as they come; and their types."""

import numpy as np
import pytest

from stretto.ensemble.training.fit_arguments import planned, types_of
from stretto.ensemble.training.training_data import Own

X = np.linspace(-1, 1, 10, dtype=np.float32)


def of(data, order=None, batch_size=None, members=2, drop_last=None, each=False):
    loss = lambda member, *batch: batch
    return planned(loss, data, order, batch_size, members, 1.0, drop_last, each, None)


def test_arrays_have_an_order_of_ours():
    plan, first, data = of((X, X), batch_size=4)
    assert plan is not None and plan.order == "own" and plan.steps == 2
    assert [x.shape for x in first] == [(4,), (4,)] and len(data) == 2
    assert of((X, X))[0].batch_size == 10  # 32, or all if there are fewer


def test_batches_have_their_own():
    plan, first, data = of(iter([X[:3], X[3:]]))
    assert plan is None and first.shape == (3,)
    assert [len(x) for x in data] == [3, 7]  # the one that was looked at is still there
    _, first, _ = of([np.stack([X, X])], order="own")
    assert first.shape == (10,)


def test_members_with_data_of_their_own():
    plan, first, data = of(np.stack([X, X]), each=True, batch_size=5)
    assert plan is not None and plan.each and first.shape == (5,)
    assert isinstance(data, Own) and data.counts == (10, 10)
    with pytest.raises(ValueError, match="each=True is for arrays with the members along axis 0"):
        of([X], each=True)


def test_types_of_a_batch():
    _, first, _ = of((X, X), batch_size=4)
    assert [x.shape for x in types_of(first, 3)] == [(3, 4), (3, 4)]
    assert [x.shape for x in types_of(first, None)] == [(4,), (4,)]
