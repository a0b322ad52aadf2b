"""The slots of an array, in C and in Python."""

import gc
import weakref

import numpy as np
import pytest

from stretto._engine.core.types import array_type
from stretto._engine.xla import holder
from stretto._engine.xla.array import Array

TYPE = array_type((2,), np.dtype(np.float32))


@pytest.fixture(params=["as built", "in Python"])
def kind(request):
    return holder.Holder if request.param == "as built" else holder._Holder


def test_the_three_slots(kind):
    host, buffer = np.ones(2, np.float32), object()
    one = kind(host, TYPE)
    assert one._host is host and one._buffer is None and one.type is TYPE
    other = kind(None, TYPE, buffer)
    assert other._host is None and other._buffer is buffer
    other._host, other._buffer = host, None
    assert other._host is host and other._buffer is None


def test_no_others(kind):
    with pytest.raises(AttributeError):
        kind(None, TYPE).other = 1
    with pytest.raises(TypeError):
        kind()


def test_what_is_held_is_let_go(kind):
    class Buffer:
        pass

    buffer = Buffer()
    alive = weakref.ref(buffer)
    held = kind(None, TYPE, buffer)
    del buffer
    assert alive() is not None
    held._buffer = None
    gc.collect()
    assert alive() is None


def test_a_cycle_through_it_is_collected(kind):
    class Child(kind):
        __slots__ = ("__weakref__",)

    one = Child(None, TYPE)
    one._buffer = [one]
    alive = weakref.ref(one)
    del one
    gc.collect()
    assert alive() is None


def test_arrays_are_holders():
    assert issubclass(Array, holder.Holder)


@pytest.mark.parametrize("name", ["_host", "_buffer", "type"])
def test_what_was_deleted_is_missing(kind, name):
    one = kind(np.ones(2, np.float32), TYPE, object())
    delattr(one, name)
    with pytest.raises(AttributeError, match=name):
        getattr(one, name)
    setattr(one, name, None)
    assert getattr(one, name) is None
