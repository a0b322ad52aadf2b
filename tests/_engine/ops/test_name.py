"""Names for values: the identity, whatever the transformation."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.ops.name import Name
from stretto.laws import b1, bf16, c64, f32, f64, i32, law

named = lambda x: st.checkpoint_name(x, "x")

LAWS = [
    law(Name, lambda x: snp.sin(named(x * x)), f32(3)),
    *[law(Name, named, kind(2)) for kind in (f64, c64, bf16, i32, b1)],
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


def test_trees_and_graphs():
    out = st.checkpoint_name({"a": 1.0, "b": [snp.ones(2)]}, "pair")
    assert st.tree.structure(out) == st.tree.structure({"a": 0, "b": [0]})
    assert "name a [label=x]" in str(st.make_graph(named)(1.0))
    assert "name" not in st.jit(named).lower(1.0).as_text().split("return")[0].split("loc")[0]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: st.checkpoint_name(1.0, 3), "checkpoint_name: name must be a string, got int"),
        (lambda: st.checkpoint_name("text", "x"), "checkpoint_name: x must be an array"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(TypeError, match=message):
        call()
