"""Leaves that their node keeps out of training."""

import stretto as st
from stretto import nn
from stretto._engine.core import tree
from stretto._engine.core.tree import left_out


def found(x):
    leaves, structure = tree.flatten(x)
    return sorted(left_out(x, structure)), len(leaves)


def test_trees_without_such_nodes():
    assert found({"a": 1.0, "b": [2, None]}) == ([], 2)


def test_buffers_anywhere_in_a_tree():
    norm = nn.BatchNorm1d(2)
    assert found(norm) == ([2, 3, 4], 5)
    assert found((1.0, [norm, nn.Linear(2, 2)], norm)) == ([3, 4, 5, 10, 11, 12], 13)


def test_frozen_parts_of_ensembles():
    ensemble = st.Ensemble([nn.Linear(2, 1), nn.Linear(2, 1)], frozen="bias")
    assert found([ensemble, 1]) == ([1], 3)


def test_leaves_need_not_be_arrays():
    structure = tree.structure(nn.BatchNorm1d(2))
    hollow = tree.unflatten(structure, [None, (), 1, (), 2])
    assert found(hollow) == ([0, 1], 2)
    assert found(nn.BatchNorm1d(2)) == ([2, 3, 4], 5)
