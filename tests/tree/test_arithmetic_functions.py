"""Trees as lines of numbers: there and back, compiled and differentiated."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.tree import ravel


def test_there_and_back():
    tree = {"w": snp.ones((2, 2)), "n": 3, "z": snp.array([True])}
    flat, unravel = ravel(tree)
    assert flat.tolist() == [3, 1, 1, 1, 1, 1] and flat.dtype == snp.float32
    back = unravel(2 * flat)
    assert back["w"].tolist() == [[2, 2], [2, 2]] and back["n"].dtype == snp.int32
    assert back["z"].dtype == snp.bool_
    assert ravel([])[0].shape == (0,) and ravel([])[1](snp.zeros(0)) == []
    assert unravel == ravel(tree)[1] and hash(unravel) == hash(ravel(tree)[1])


def test_through_transformations():
    params = {"w": np.float32([1, 2]), "b": np.float32(3)}
    flat, unravel = ravel(params)
    loss = lambda v: (unravel(v)["w"] ** 2).sum() * unravel(v)["b"]
    assert st.jit(st.grad(loss))(flat).tolist() == [5, 6, 12]
    lines = st.vmap(lambda t: ravel(t)[0])({"a": np.ones((4, 2)), "b": np.zeros(4)})
    assert lines.shape == (4, 3)


def test_messages():
    unravel = ravel([snp.ones(2), 1])[1]
    with pytest.raises(ValueError, match=r"expected 3 numbers of rank 1, got float32\[4\]"):
        unravel(snp.ones(4))
    with pytest.raises(TypeError, match="expected float32, which the dtypes of the leaves"):
        unravel(snp.ones(3, int))
    assert ravel([snp.ones(2)])[1](snp.ones(2, int))[0].dtype == snp.int32
