"""Keys: how they compare, and how paths are written."""

from collections import OrderedDict, namedtuple

import pytest

from stretto._engine.core import tree
from stretto._engine.core.nodes import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey, keystr

Point = namedtuple("Point", ["x", "y"])


def test_keys_compare_and_hash_by_what_they_hold():
    assert DictKey("a") == DictKey("a") != GetAttrKey("a")
    assert len({SequenceKey(0), SequenceKey(0), FlattenedIndexKey(0)}) == 2
    assert (DictKey("a").key, SequenceKey(1).idx, GetAttrKey("x").name) == ("a", 1, "x")


@pytest.mark.parametrize(
    "node, full, simple",
    [
        ({"b": [1]}, "['b'][0]", "b/0"),
        (OrderedDict([(3, (1,))]), "[3][0]", "3/0"),
        ([Point(1, None)], "[0].x", "0/x"),
    ],
)
def test_paths(node, full, simple):
    ((path, _),) = tree.flatten_with_path(node)[0]
    assert keystr(path) == full and keystr(path, simple=True, separator="/") == simple
