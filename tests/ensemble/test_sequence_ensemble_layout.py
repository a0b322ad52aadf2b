"""Layouts: equal by value, named, split, described, and copied."""

import copy
import pickle

import pytest

import stretto as st
from stretto import nn
from stretto.ensemble.groups import groups_of
from stretto.ensemble.sequence import Layout


def groups(*sizes):
    return groups_of([nn.Linear(n, 2) for n in sizes], None, None, None, None)[0]


def test_equal_by_value():
    one, other = Layout(groups(3, 3)), Layout(groups(3, 3))
    assert one == other
    assert hash(one) == hash(other)
    for different in (
        Layout(groups(3)),
        Layout(groups(3, 3), 2),
        Layout(groups(3, 3), None, (("plan", "wide"),)),
        "a layout",
    ):
        assert one != different


def test_names_and_parts():
    assert Layout(groups(3, 3)).names == ("weight", "bias")
    two = Layout(groups(3, 4))
    assert two.names == ("group0.weight", "group0.bias", "group1.weight", "group1.bias")
    assert two.split("abcd") == [["a", "b"], ["c", "d"]]


def test_layouts_of_one_ensemble_share_what_is_compiled():
    one = Layout(groups(3, 3), 2)
    other = one.of(groups(3))
    assert other.chunk_size == 2
    assert other.runner is not one.runner
    assert other.of(groups(3, 3)).runner is one.runner
    assert Layout(groups(3, 3), 2).runner is not one.runner


def test_copies():
    one = Layout(groups(3, 4), "auto")
    assert copy.deepcopy(one) is one
    assert pickle.loads(pickle.dumps(one)) == one


def test_differences_in_words():
    one = Layout(groups(3))
    words = "an Ensemble of 1 members with weight, bias, and an Ensemble of 1 members with"
    assert one.difference(Layout(groups(3, 4))).startswith(words)
    assert "settings" in one.difference(Layout(groups(3), 2))
    with pytest.raises(ValueError, match="tree: an Ensemble of 1 members"):
        st.tree.map(
            lambda x, y: x, st.Ensemble([nn.Linear(3, 2)]), st.Ensemble([nn.Linear(3, 2)] * 2)
        )
