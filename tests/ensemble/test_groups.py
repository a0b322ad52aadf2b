"""Groups and members: one member from its leaves, and back."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.ensemble.groups import Member, at_places, call_module, groups_of, with_fields


def scale(params, x, *, shift=0.0):
    return params["w"] * x + shift


def group_of(*members, **options):
    (group,), _ = groups_of(
        *members, *[None] * (2 - len(members)), options.get("shared"), options.get("frozen"), None
    )
    return group


def test_a_member_is_called_as_its_function():
    member = Member(scale, {"w": snp.float32(2.0)})
    assert float(member(3.0, shift=1.0)) == 7.0
    assert repr(member) == "Member(scale, {'w': Array(2., dtype=float32)})"


def test_a_member_is_a_tree():
    member = Member(scale, {"w": snp.float32(2.0)})
    doubled = st.tree.map(lambda x: 2 * x, member)
    assert float(doubled(1.0)) == 4.0
    path = st.tree.flatten_with_path(member)[0][0][0]
    assert st.tree.keystr(path, simple=True, separator=".") == "params.w"
    assert float(st.jit(lambda m, x: m(x))(member, 3.0)) == 6.0


@pytest.mark.parametrize("kind", ["modules", "trees"])
def test_leaves_make_a_member_and_come_back(kind):
    group = (
        group_of([nn.Linear(3, 2)] * 2)
        if kind == "modules"
        else group_of(scale, [{"w": snp.ones(2), "b": snp.ones(3)}] * 2)
    )
    leaves = [snp.full(3, float(i)) for i in range(2)]
    member = group.of(leaves)
    assert isinstance(member, nn.Linear if kind == "modules" else Member)
    assert all(a is b for a, b in zip(group.leaves_of(member), leaves, strict=True))
    assert st.tree.leaves(group.whole()) == [0, 1]


def test_what_a_group_says():
    group = group_of([nn.BatchNorm1d(2)] * 3, shared="weight", frozen="bias")
    assert group.size == 3
    assert group.function is call_module
    assert group.axes == [None, 0, 0, 0, 0]
    assert group.names == ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    assert group.trained == (True, False, False, False, False)


def test_groups_are_compared_by_value():
    one, other = group_of([nn.Linear(3, 2)] * 2), group_of([nn.Linear(3, 2)] * 2)
    assert one == other
    assert hash(one) == hash(other)
    assert at_places(one, [1, 2]) != one
    assert with_fields(one, trained=(False, True)).trained == (False, True)
    assert group_of([nn.Linear(2, 2)] * 2) != one


def test_a_number_is_a_tree_of_one_leaf():
    group = group_of(lambda p, x: p * x, [1.0, 2.0])
    assert group.names == ("value",)
    np.testing.assert_array_equal(st.Ensemble(lambda p, x: p * x, [1.0, 2.0])(3.0), [3.0, 6.0])
