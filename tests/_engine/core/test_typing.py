"""What type checkers are told of methods is what these are."""

import inspect

import pytest

import stretto.numpy as snp
from stretto._engine.core.typing import At, IndexUpdate

UPDATES = [name for name in vars(IndexUpdate) if not name.startswith("_")]


def told(function):
    """The names of arguments, how they may be given, and what they are if they are not."""
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters]


@pytest.mark.parametrize("name", UPDATES)
def test_methods_of_updates(name):
    real = type(snp.ones(2).at[0])
    assert told(getattr(IndexUpdate, name)) == told(getattr(real, name))


def test_all_updates_are_told_of():
    at = snp.ones(2).at
    public = {name for name in dir(at[0]) if not name.startswith("_")}
    assert {*UPDATES} == public and hasattr(type(at), "__getitem__") and hasattr(At, "__getitem__")
