"""Dictionaries that are emptied when they are full."""

import sys

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core import caches
from stretto._engine.core.caches import CAPACITY, room


def test_there_is_room_for_one_more():
    table = {}
    for i in range(3 * CAPACITY):
        room(table)[i] = i
        assert len(table) <= CAPACITY
    assert table[3 * CAPACITY - 1] == 3 * CAPACITY - 1
    assert len(table) == CAPACITY == 4096


def test_the_table_itself_is_given():
    table = {1: 1, 2: 2}
    assert room(table, 3) is table
    assert table == {1: 1, 2: 2}
    assert room(table, 2) is table
    assert table == {}


@pytest.fixture
def small(monkeypatch):
    """Every table has room for three."""

    def room(table, capacity=3):
        return caches.room(table, min(capacity, 3))

    for name, module in list(sys.modules.items()):
        if name.startswith("stretto.") and getattr(module, "room", None) is caches.room:
            monkeypatch.setattr(module, "room", room)


def test_results_stay_when_tables_are_emptied(small):
    for n in range(1, 9):
        host = np.arange(n, dtype=np.float32)
        x = snp.asarray(host)
        np.testing.assert_array_equal(snp.sin(x) * x + n, np.sin(host) * host + n)
        np.testing.assert_array_equal(n - x, n - host)
        np.testing.assert_array_equal(st.jit(lambda x: x[::-1] + 1)(x), host[::-1] + 1)
        np.testing.assert_array_equal(snp.reshape(x, (1, n)), host.reshape(1, n))
