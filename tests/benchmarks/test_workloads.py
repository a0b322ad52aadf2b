"""The inputs that all frameworks share, and the goals."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import workloads
from benchmarks.__main__ import FRAMEWORKS


def test_goals_are_about_columns_of_the_table():
    peers = {goal.peer for row in workloads.WORKLOADS.values() for goal in row.goals}
    assert peers <= {*FRAMEWORKS, "fastest"}


@pytest.mark.parametrize("batch", workloads.BATCHES)
def test_no_activation_of_the_ensemble_is_at_the_kink(batch):
    """Else rounding decides whether a unit is on, and the gradients may rightly differ."""
    params, x, target = workloads.ensemble_inputs(batch)
    hidden = x.astype(np.float64)
    for weights, bias in params[:-1]:
        before = hidden @ weights + bias[:, None]
        assert np.abs(before).min() > 1e-5
        hidden = np.maximum(before, 0)
    assert target.shape == (*x.shape[:-1], 10)
    assert x.shape == ((10, 64, 784) if batch == "own" else (64, 784))


def test_both_batches_come_with_the_same_parameters():
    same, own = (workloads.ensemble_inputs(batch)[0] for batch in workloads.BATCHES)
    for (a, b), (c, d) in zip(same, own, strict=True):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, d)


def test_the_chain_stays_within_ordinary_numbers():
    power = workloads.chain_input().astype(np.float64) ** (workloads.CHAIN_LENGTH + 1)
    assert power.min() > 1e-3
    assert power.max() < 1e3
