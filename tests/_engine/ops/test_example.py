"""The mark of mapped values: the identity, whose axis follows that of the examples."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.ops.example import Example
from stretto.laws import bf16, c64, f32, f64, law

LAWS = [law(Example, Example(0), kind(2, 3)) for kind in (f32, f64, bf16, c64)]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


@pytest.mark.parametrize("own, axis, after", [(1, 0, 2), (1, 1, 2), (0, 1, 0), (0, 0, 1)])
def test_the_axis_moves_behind_a_new_one(own, axis, after):
    rule = lambda x: Example(own).vmap(2, [x], [axis])[0]
    assert f"example a [axis={after}]" in str(st.make_graph(rule)(snp.ones((2, 2, 2))))


def test_marks_are_left_only_while_debugging():
    graph = st.make_graph(st.vmap(snp.sin))
    assert "example" not in str(graph(snp.ones(2)))
    with st.config(debug_nans=True):
        assert "example b [axis=0]" in str(graph(snp.ones(2)))
