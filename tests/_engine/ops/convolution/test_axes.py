"""Axes folded into others and out again, against loops over groups; and moved."""

import itertools

import numpy as np
import pytest

from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.convolution.axes import merge, merge_inside, order_of, relaid, split_axis

X = np.arange(2 * 3 * 4 * 6).reshape(2, 3, 4, 6)


def test_split():
    np.testing.assert_array_equal(split_axis(as_value(X), 3, 2), X.reshape(2, 3, 4, 2, 3))
    np.testing.assert_array_equal(split_axis(as_value(X), 0, 1), X[None])


@pytest.mark.parametrize("source", range(4))
@pytest.mark.parametrize("target", range(3))
def test_the_merged_axis_is_the_outer_one(source, target):
    got = np.asarray(merge(as_value(X), source, target))
    rows = list(np.moveaxis(X, source, 0))
    np.testing.assert_array_equal(got, np.concatenate(rows, target))


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_within_each_group(groups):
    got = np.asarray(merge_inside(as_value(X), 0, 2, groups))
    rows = list(X)  # the target axis has 6 elements
    parts = [np.split(row, groups, 2) for row in rows]
    want = np.concatenate([part[g] for g in range(groups) for part in parts], 2)
    np.testing.assert_array_equal(got, want)


def test_a_split_undoes_a_merge():
    merged = merge(as_value(X), 0, 1)
    np.testing.assert_array_equal(split_axis(merged, 1, 2), np.moveaxis(X, 0, 1))


@pytest.mark.parametrize("source", [(0, 1, 2, 3), (2, 0, 3, 1)])
def test_all_axes_moved(source):
    for target in itertools.permutations(range(4)):
        want = np.moveaxis(X, source, target)
        np.testing.assert_array_equal(relaid(as_value(X), source, target), want)
        assert tuple(X.shape[a] for a in order_of(source, target)) == want.shape
