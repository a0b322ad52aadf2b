"""Waiting for results."""

import numpy as np

import stretto as st
import stretto.numpy as snp


def test_gives_the_tree_back():
    f = st.jit(lambda x: {"a": x + 1, "b": [x, None]})
    out = f(snp.ones(1000))
    assert st.block_until_ready(out) is out
    np.testing.assert_array_equal(out["a"], 2)


def test_takes_any_leaves():
    tree = {"host": np.ones(2), "number": 3, "none": None, "array": snp.ones(2)}
    assert st.block_until_ready(tree) is tree
    x = snp.ones(2)
    assert x.block_until_ready() is x
    assert st.block_until_ready(()) == ()


def test_inside_a_trace():
    f = st.jit(lambda x: st.block_until_ready(x) + 1)
    assert float(f(1.0)) == 2
