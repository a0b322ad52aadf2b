"""Containers whose classes compute what they give, seen and filled again as they are."""

import collections

import pytest

from stretto.torch.python_state.holdings import content_of, refill


class Made(collections.OrderedDict):
    """Gives a new object of a class that it holds."""

    def __getitem__(self, key):
        return super().__getitem__(key)()


class Louder(list):
    """Gives what it holds in capitals."""

    def __iter__(self):
        return (x.upper() for x in super().__iter__())

    def __getitem__(self, key):
        return super().__getitem__(key).upper()


class Counted(dict):
    """Refuses to be written to."""

    def __setitem__(self, key, value):
        raise AssertionError(key)


@pytest.mark.parametrize(
    ("x", "content"),
    [
        ({"a": 1}, {"a": 1}),
        (Made(a=list), {"a": list}),
        (Counted(a=1), {"a": 1}),
        (collections.UserDict(a=1), {"a": 1}),
        (["a", "b"], {0: "a", 1: "b"}),
        (Louder(["a"]), {0: "a"}),
        (collections.deque("ab"), {0: "a", 1: "b"}),
        ({"a"}, {"a": "a"}),
    ],
)
def test_content_and_back(x, content):
    assert content_of(x) == content
    refill(x, content)
    assert content_of(x) == content
    x.clear()
    refill(x, content)
    assert content_of(x) == content
    refill(x, {})
    assert len(x) == 0


def test_order_and_entries_that_are_left_alone():
    held = Made(a=list, b=dict)
    held.move_to_end("a")
    refill(held, {"a": list, "c": set}, {"a": list})
    assert list(held) == ["b", "a", "c"] and held["c"] == set()
