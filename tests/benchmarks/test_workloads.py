"""The inputs that all frameworks share, and the goals."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import workloads
from benchmarks.catalogue import WORKLOADS, matching
from benchmarks.run import FRAMEWORKS


def test_goals_are_about_columns_of_the_table():
    peers = {goal.peer for row in WORKLOADS.values() for goal in row.goals}
    assert peers <= {*FRAMEWORKS, "fastest"}


def test_rows_are_chosen_by_name_and_by_pattern_in_the_order_of_the_table():
    known = ["import", "cnn-a", "mlp-a", "mlp-b"]
    assert matching(["mlp-*", "import"], known) == ["import", "mlp-a", "mlp-b"]
    assert matching(["*-a", "mlp-a"], known) == ["cnn-a", "mlp-a"]
    assert matching(["*"], known) == known


@pytest.mark.parametrize("patterns", [["mlp-*", "rnn-*"], []])
def test_a_pattern_that_matches_nothing_is_an_error(patterns):
    with pytest.raises(ValueError, match=r"got (rnn|none)"):
        matching(patterns, ["mlp-a"])


def test_the_chain_stays_within_ordinary_numbers():
    power = workloads.chain_input().astype(np.float64) ** (workloads.CHAIN_LENGTH + 1)
    assert power.min() > 1e-3
    assert power.max() < 1e3
