"""What type checkers are told of arrays is what arrays have."""

import inspect

import pytest

from stretto._engine.core import array_methods, array_updates
from stretto._engine.core.interpreter import Value
from stretto._engine.core.migration import ARRAYS
from stretto.numpy.immutable import _MEMORY, _METHODS
from stretto.numpy.index_updates import At, IndexUpdate

OF_PYTHON = {"__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__slots__"}
OF_PYTHON |= {"__firstlineno__", "__static_attributes__"}  # from 3.13 on
OF_VALUE = {"type", "shape", "dtype", "ndim", "size", "weak_type"}
NOT_SHOWN = {"__array_priority__", "__setitem__", "__delitem__", "__dir__"}
NOT_SHOWN |= {*_MEMORY, *_METHODS, *ARRAYS}
"""What only says in words that arrays do not have it, or is for NumPy."""


def names(cls):
    return {name for name in vars(cls) if name not in OF_PYTHON | {"__init__", "__repr__"}}


def shape(parameters):
    """Kinds and defaults, with the names of those that can be passed by name."""
    return [
        (p.name if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD) else "", p.kind, p.default)
        for p in list(parameters.values())[1:]
    ]


def test_each_member_is_declared():
    assert names(array_methods.ArrayMethods) - {"__hash__"} == (names(Value) - OF_VALUE - NOT_SHOWN)


@pytest.mark.parametrize("name", sorted(names(array_methods.ArrayMethods) - {"__hash__"}))
def test_declared_as_it_is(name):
    declared, real = vars(array_methods.ArrayMethods)[name], vars(Value)[name]
    assert isinstance(declared, property) == isinstance(real, property)
    if not isinstance(real, property) and name != "__getitem__":  # which has more, for functions
        parameters = inspect.signature(declared).parameters
        assert shape(parameters) == shape(inspect.signature(real).parameters)


def test_updates():
    assert names(array_updates.At) == names(At) - {"_x"}
    assert names(array_updates.IndexUpdate) == names(IndexUpdate) - {"_x", "_index"}
    for name in names(array_updates.IndexUpdate):
        declared, real = getattr(array_updates.IndexUpdate, name), getattr(IndexUpdate, name)
        assert shape(inspect.signature(declared).parameters) == shape(
            inspect.signature(real).parameters
        )


def test_nothing_of_it_is_a_base_class_at_run_time():
    assert Value.__mro__ == (Value, object)
