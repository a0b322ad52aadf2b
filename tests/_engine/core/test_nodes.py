"""Registered classes: dataclasses as nodes, and what their fields must be."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest

from stretto import grad, jit
from stretto import numpy as snp
from stretto._engine.core import tree
from stretto._engine.core.nodes import APART, GetAttrKey, register_dataclass, tell


@register_dataclass
@dataclasses.dataclass
class Dense:
    weight: object
    bias: object
    name: str = dataclasses.field(default="dense", metadata={"static": True})


def test_registered_nodes_pass_through_transformations():
    layer = Dense(snp.ones(2), snp.zeros(2), "first")
    loss = lambda layer: snp.sum(layer.weight * 3 + layer.bias)
    for g in (grad(loss)(layer), jit(grad(loss))(layer)):
        assert type(g) is Dense and g.name == "first"
        np.testing.assert_array_equal(g.weight, [3, 3])
        np.testing.assert_array_equal(g.bias, [1, 1])


def test_calls_of_jitted_functions_take_nodes_apart_at_once():
    (weight, bias), *_ = APART[Dense](Dense(1, 2, "first"))
    assert (weight, bias) == (1, 2)


def test_fields_may_be_named():

    made = dataclasses.make_dataclass("Made", ["w", "size"])
    register_dataclass(made, data_fields=["w"], meta_fields=["size"])
    assert tree.leaves(made(1, 5)) == [1]
    assert tree.paths(made(1, 5), "made") == ["made.w"]


def test_every_field_must_be_named_and_exist():
    made = dataclasses.make_dataclass("Made", ["w", "size"])
    with pytest.raises(
        ValueError, match=r"Made has fields \['w', 'size'\]; unknown: \['v'\], left o"
    ):
        register_dataclass(made, data_fields=["v"], meta_fields=["size"])


def test_fields_not_set_by_init_stay_out():
    @register_dataclass
    @dataclasses.dataclass
    class Cached:
        value: int
        cache: dict = dataclasses.field(default_factory=dict, init=False)

    assert tree.leaves(Cached(1)) == [1]


def test_others_are_told_of_nodes_that_are_there_and_of_new_ones():
    told = []
    tell(told.append)
    before = {node.cls: node for node in told}
    assert before[Dense].to_children(Dense(1, 2))[0] == (1, 2)

    @register_dataclass
    @dataclasses.dataclass
    class Pair:
        one: object
        two: object

    assert told[-1].cls is Pair
    assert told[-1].from_children(*reversed(told[-1].to_children(Pair(3, 4))[:2])) == Pair(3, 4)
    later = []
    tell(later.append)
    assert later == told


class Record:
    """A node of named values, whose names are its static data."""

    asked = 0

    def __init__(self, **values):
        self.values = values

    def flatten(self):
        return iter(self.values.values()), tuple(self.values)

    def flatten_with_keys(self):
        Record.asked += 1
        return [(GetAttrKey(name), x) for name, x in self.values.items()], tuple(self.values)

    @classmethod
    def unflatten(cls, names, values):
        return cls(**dict(zip(names, values, strict=True)))


def test_keys_are_asked_for_once_for_equal_static_data():
    class Named(Record):
        pass

    tree.register_pytree_with_keys(Named, Named.flatten_with_keys, Named.unflatten, Named.flatten)
    Record.asked = 0
    for k in range(4):
        assert tree.leaves([Named(x=k, y=[k]), Named(z=k)]) == [k, k, k]
    assert Record.asked == 2
    assert tree.paths([Named(x=1, y=[2]), Named(z=3)], "t") == ["t[0].x", "t[0].y[0]", "t[1].z"]
    leaves, spec = tree.flatten(Named(x=1, y=2))
    assert tree.unflatten(spec, leaves).values == {"x": 1, "y": 2}


def test_keys_of_how_many_kinds_are_remembered():
    class Many(Record):
        pass

    tree.register_pytree_with_keys(Many, Many.flatten_with_keys, Many.unflatten, Many.flatten)
    kinds = [Many(**{f"x{k}": k}) for k in range(65)]
    Record.asked = 0
    for kind in [*kinds[:64], *kinds[:64]]:
        tree.leaves(kind)
    assert Record.asked == 64
    for kind in (kinds[64], kinds[0]):  # there is room for no more, and all are asked for anew
        tree.leaves(kind)
    assert Record.asked == 66


def test_keys_where_static_data_cannot_be_hashed():
    class Listed(Record):
        def flatten(self):
            children, names = super().flatten()
            return children, list(names)

        def flatten_with_keys(self):
            pairs, names = super().flatten_with_keys()
            return pairs, list(names)

    tree.register_pytree_with_keys(
        Listed, Listed.flatten_with_keys, Listed.unflatten, Listed.flatten
    )
    assert tree.paths(Listed(x=1, y=[2]), "t") == ["t.x", "t.y[0]"]
    assert tree.leaves(Listed(x=1, y=[2])) == [1, 2]


def test_a_named_tuple_may_be_another_kind_of_node():
    class Point(NamedTuple):
        x: object
        y: object

    tree.register_pytree_node(Point, lambda p: ((p.x,), p.y), lambda y, xs: Point(xs[0], y))
    assert tree.leaves(Point(1, 2)) == [1]
