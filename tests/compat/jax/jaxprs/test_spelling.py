"""What tables are written with, for an operation of the tests' own."""

from typing import Any

import pytest

from stretto._engine.core.program import Equation
from stretto._engine.ops.layout import Reshape
from stretto.compat.jax.jaxprs import spelling
from stretto.compat.jax.jaxprs.primitive import named
from stretto.compat.jax.jaxprs.spelling import (
    NONE,
    Field,
    Fixed,
    spell,
    spell_as_it_is,
    spell_by_hand,
)


@pytest.fixture(autouse=True)
def spellings(monkeypatch):
    monkeypatch.setattr("stretto.compat.jax.jaxprs.primitive._KNOWN", {})
    monkeypatch.setattr(spelling, "SPELLINGS", dict(spelling.SPELLINGS))


def params_of(cls: Any, operation: Any) -> dict:
    return spelling.SPELLINGS[cls].params(operation, Equation(operation, (), ()))


def test_entries():
    entries = {"sizes": Field("shape", list, tuple), "sharding": NONE, "kept": Fixed(3)}
    spell(Reshape, "reshaped", entries)
    assert params_of(Reshape, Reshape((2, 3))) == {"sizes": [2, 3], "sharding": None, "kept": 3}
    p: Any = named("reshaped")
    assert p.build({"sizes": [6], "sharding": None}, ()) is Reshape((6,))
    assert p.bind(1.0, sizes=[1, 1]).shape == (1, 1)


def test_by_hand():
    build = lambda params, types: Reshape((params["n"],))
    spell_by_hand(Reshape, "flat", lambda p, e: {"n": p.shape[0]}, build)
    assert params_of(Reshape, Reshape((2,))) == {"n": 2}
    assert named("flat").bind(1.0, n=1).shape == (1,)


def test_as_it_is():
    spell_as_it_is(Reshape)
    assert params_of(Reshape, Reshape((2,))) == {"shape": (2,)}
    assert named("reshape").bind(1.0, shape=(1, 1)).shape == (1, 1)
