"""The inputs that all frameworks share, and the goals."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import workloads
from benchmarks.catalogue import QUICK, TABLES, WORKLOADS, matching, table_of
from benchmarks.run import FRAMEWORKS
from benchmarks.workloads_ensembles import KINK

OVERHEADS = {
    # What is asked of each: (peer, at most).
    "eager-add": {"jax": 0.15, "numpy": 3.0},
    "eager-product": {"jax": 0.3},
    "eager-affine": {"jax": 0.2},
    "jitted-affine": {"jax": 1.0},
    "trace-chain": {"jax": 0.15},
    "lower-chain": {"jax": 0.25},
    "compile-chain": {"jax": 0.25},
    "dead-chain": {"jax": 0.3},
    "eager-gradient": {"jax": 0.2},
    "import": {"jax": 0.4},
    "start-second": {"jax": 0.5},
    "lengths": {"jax": 0.02},
}
"""The overheads that are part of the task."""


def test_every_overhead_has_its_row_and_its_goals():
    for name, goals in OVERHEADS.items():
        assert {goal.peer: goal.at_most for goal in WORKLOADS[name].goals} == goals


def test_every_ensemble_is_held_to_the_fastest_column():
    for name, row in WORKLOADS.items():
        if row.shows_memory:
            assert [(goal.peer, goal.at_most) for goal in row.goals] == [("fastest", 1.05)], name


def test_the_quick_run_has_the_overheads_and_some_ensembles():
    rows = [WORKLOADS[name] for name in QUICK]
    left_out = {row.name for row in TABLES["Overheads"]} - set(QUICK)
    assert left_out == {"lengths", "start-first"}
    assert 2 <= sum(row.shows_memory for row in rows) <= 8


def test_goals_are_about_columns_of_the_table():
    peers = {goal.peer for row in WORKLOADS.values() for goal in row.goals}
    assert peers <= {*FRAMEWORKS, "fastest", "stretto full"}


def test_each_row_is_in_one_table():
    assert sum(map(len, TABLES.values())) == len(WORKLOADS)
    for title, rows in TABLES.items():
        assert rows and all(table_of(row) == title for row in rows)


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


def test_no_unit_of_the_gradient_s_mlp_is_at_the_kink():
    """Else rounding decides whether a unit is on, and the gradients may rightly differ."""
    layers, x, _ = workloads.mlp_inputs()
    hidden = x.astype(np.float64)
    for weights, bias in layers[:-1]:
        before = hidden @ weights.astype(np.float64) + bias
        assert np.abs(before).min() > KINK
        hidden = np.maximum(before, 0)


def test_lengths_are_many_and_within_bounds():
    lengths = [len(x) for x in workloads.lengths_inputs()]
    assert len(lengths) == 1000
    assert 1 <= min(lengths) < max(lengths) <= 1000
    assert len(set(lengths)) > 500
