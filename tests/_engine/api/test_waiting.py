"""Waiting for results."""

import numpy as np
import pytest

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


def test_errors_are_raised_here():
    def fails(x):
        raise KeyError("no such thing")

    x = snp.ones(2)
    f = st.jit(lambda x: (x + 1, st.pure_callback(fails, x, x)))
    with pytest.raises(KeyError, match="no such thing"):
        st.block_until_ready(f(x))


def test_refuses_what_was_donated():
    x = snp.ones(2)
    x.delete()
    with pytest.raises(st.errors.DonatedArrayError, match="was deleted"):
        st.block_until_ready({"x": x, "y": snp.ones(2)})


def test_inside_a_trace():
    f = st.jit(lambda x: st.block_until_ready(x) + 1)
    assert float(f(1.0)) == 2
