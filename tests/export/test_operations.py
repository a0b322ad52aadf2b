"""The operations that files may name; that none is left out is tested with the programs of laws."""

import pytest

from stretto._engine.ops.index.primitives import Gather
from stretto.export.operations import HOMES, REFUSED, class_of, parameters_of


@pytest.mark.parametrize("name", sorted(HOMES))
def test_classes_by_name(name):
    found = class_of(name)
    assert (found.name, found.__module__) == (name, HOMES[name])


@pytest.mark.parametrize("name", ["os.system", "Add", "", "ops.arithmetic:", *sorted(REFUSED)])
def test_other_names_have_no_class(name):
    assert class_of(name) is None


def test_each_refusal_has_a_reason():
    assert not HOMES.keys() & REFUSED.keys()
    assert all(len(why) > 30 for why in REFUSED.values())


def test_parameters_are_those_of_the_dataclass():
    assert list(parameters_of(Gather)) == [
        "dimension_numbers", "slice_sizes", "mode", "fill", "indices_are_sorted", "unique_indices"
    ]  # fmt: skip
