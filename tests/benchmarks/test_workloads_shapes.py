"""Shapes that change: the inputs, and that no more programs are compiled than there are buckets."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
from benchmarks import shapes_stretto, workloads_shapes
from benchmarks.catalogue import WORKLOADS
from benchmarks.measure import disagreement
from benchmarks.stretto_worker import cases
from benchmarks.worker import run_once
from stretto._engine.xla import cache
from tests.compilations import texts_compiled

SMALL = workloads_shapes.Batch("skewed", "log-normal", examples=3)


def test_calls_are_held_to_jax_and_batches_to_the_fastest():
    for row in workloads_shapes.SHAPE_ROWS:
        ((peer, at_most),) = [(goal.peer, goal.at_most) for goal in row.goals]
        if row.name.endswith("-first"):
            assert (peer, at_most) == ("jax", 0.02)
        elif row.name.endswith("-warm"):
            assert (peer, at_most) == ("stretto full", 1.3)
        else:
            assert (peer, at_most) == ("fastest", 1.1)


def test_each_row_has_its_cases():
    names = cases.names()
    for row in workloads_shapes.SHAPE_ROWS:
        assert (row.name, "") in names
    assert ("sizes-cube-warm", "full") in names
    assert ("ragged-block-skewed-gradient", "longest") in names


@pytest.mark.parametrize("batch", workloads_shapes.BATCHES, ids=lambda batch: batch.name)
def test_lengths_are_within_bounds_and_waste_is_told(batch):
    lengths = batch.lengths()
    assert len(lengths) == 32 and 1 <= min(lengths) < max(lengths) <= workloads_shapes.LONGEST
    assert len(set(lengths)) > 20
    rectangle = workloads_shapes.as_rectangle(workloads_shapes.parts(batch))
    elements = (rectangle != 0).any(-1)
    assert elements.mean() == pytest.approx(batch.valid)
    assert f"({batch.valid:.0%} valid)" in WORKLOADS[f"ragged-lstm-{batch.name}-forward"].title


def test_the_batches_differ_in_their_waste():
    uniform, skewed = workloads_shapes.BATCHES
    assert skewed.valid < 0.4 < uniform.valid < 0.6


def test_a_ragged_batch_holds_no_rectangle():
    for batch in workloads_shapes.BATCHES:
        arrays = workloads_shapes.parts(batch)
        r, elements = st.ragged(arrays), sum(x.nbytes for x in arrays)
        lengths = 4 * len(arrays)
        assert elements + lengths <= r.nbytes <= 9 / 8 * elements + lengths
        assert r.nbytes < workloads_shapes.as_rectangle(arrays).nbytes


@pytest.mark.parametrize(("n", "bucket"), [(1, 1), (2, 2), (3, 4), (256, 256), (257, 512)])
def test_powers_of_two(n, bucket):
    assert workloads_shapes.power_of_two(n) == bucket


def test_what_is_valid_of_a_rectangle():
    lengths = np.array([2, 1], np.int32)
    (valid,) = workloads_shapes.valid_of(np.arange(12.0).reshape(2, 3, 2), lengths)
    np.testing.assert_array_equal(valid, [[0, 1], [2, 3], [6, 7]])
    states = np.ones((2, 4))
    assert workloads_shapes.valid_of(states, lengths)[0] is states


@pytest.fixture
def compiled(monkeypatch):
    """The texts compiled, with nothing on disk."""
    with st.config(disk_cache=False):
        yield texts_compiled(monkeypatch, cache)


def test_a_thousand_lengths_are_twelve_programs(compiled):
    results = run_once(cases.make("sizes-cube-first", ""))
    assert len(compiled) == 12
    inputs = workloads_shapes.call_inputs("cube")
    for result, x in zip(results[:50], inputs, strict=False):
        np.testing.assert_allclose(result, x**3, rtol=1e-6)


def test_calls_at_the_buckets_sizes_are_of_the_same_function(monkeypatch):
    few = workloads_shapes.call_inputs("attend")[:3]
    monkeypatch.setattr(workloads_shapes, "call_inputs", lambda name: few)
    row = WORKLOADS["sizes-attend-warm"]
    one, full = (cases.make(row.name, formulation) for formulation in ("", "full"))
    expected, results = one.arrays(run_once(one)), full.arrays(run_once(full))
    assert disagreement(row, results, "stretto", expected) is None


@pytest.mark.parametrize("model", workloads_shapes.MODELS)
@pytest.mark.parametrize("kind", ["forward", "gradient"])
def test_ragged_batches_are_the_rectangles_with_masks(model, kind):
    task = workloads_shapes.RaggedTask(model, SMALL, kind)
    one, padded = shapes_stretto.ragged(task), shapes_stretto.padded(task)
    expected, results = padded.arrays(run_once(padded)), one.arrays(run_once(one))
    row = WORKLOADS[f"ragged-{model}-skewed-{kind}"]
    assert disagreement(row, results, "by hand", expected) is None
