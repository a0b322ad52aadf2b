"""Objects found by key while others hold them."""

import gc
import sys
import weakref

import pytest

from stretto._engine.core.caches import WeakTable


class Thing:
    pass


def test_what_lives_is_found_and_what_is_dead_is_replaced():
    table, first = WeakTable(), Thing()
    assert table.get("a") is None
    assert table.keep("a", first) is first
    assert table.keep("a", Thing()) is first
    del first
    gc.collect()
    assert table.get("a") is None and table.values() == []
    second = Thing()
    assert table.keep("a", second) is second and table.values() == [second]


def test_dead_entries_are_let_go_of():
    table, alive = WeakTable(), [Thing() for _ in range(50)]
    for i, thing in enumerate(alive):
        table.keep(("alive", i), thing)
    for i in range(5000):
        table.keep(i, Thing())
    assert len(table._references) < 1000
    assert set(table.values()) == set(alive)
    small = WeakTable()
    for i in range(256):
        small.keep(i, Thing())
    assert len(small._references) == 256  # it is not looked through for so few
    small.keep(256, alive[0])
    assert len(small._references) == 1


@pytest.mark.parametrize("standard", [False, True], ids=["ours", "the standard library's"])
def test_no_code_runs_when_one_goes(standard):
    """In which what a signal handler raises would be lost, as the standard library's loses it."""
    table = weakref.WeakValueDictionary() if standard else WeakTable()
    keep = table.__setitem__ if standard else table.keep
    calls = []
    sys.setprofile(lambda frame, what, _: calls.append(what) if what == "call" else None)
    try:
        thing = Thing()
        keep("a", thing)
        del calls[:]
        del thing
        seen = len(calls)
    finally:
        sys.setprofile(None)
    assert bool(seen) is standard
