"""Shapes, ranks, sizes and kinds."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_what_it_is():
    x = snp.array(X)
    assert snp.shape(x) == (2, 3, 4)
    assert snp.ndim(x) == 3
    assert snp.size(x) == 24
    assert snp.size(x, -1) == 4
    assert snp.isscalar(1.0)
    assert snp.isscalar(snp.array(1.0))
    assert not snp.isscalar(x)
    assert snp.iscomplexobj(1j)
    assert snp.isrealobj(x)


def test_what_can_be_iterated_over():
    assert snp.iterable("ab")
    assert snp.iterable(snp.zeros(0))
    assert not snp.iterable(snp.ones(()))
    assert not snp.iterable(1)


def test_what_shape_says_of_lists_and_stand_ins():
    x, stand_in = np.ones((2, 3, 4)), st.ShapeDtypeStruct((2, 3, 4), np.complex64)
    for like in (x, snp.array(x), stand_in, x.tolist()):
        assert snp.shape(like) == (2, 3, 4)
        assert snp.ndim(like) == 3
        assert snp.size(like) == 24
        assert snp.size(like, (0, -1)) == 8
        assert snp.size(like, 1) == 3
        assert snp.size(like, ()) == 1
    assert snp.ndim(3) == snp.ndim([]) - 1 == 0
    assert snp.shape(None) == () and snp.ndim(None) == 0
    assert snp.iscomplexobj([1j])
    assert snp.iscomplexobj(stand_in)
    assert snp.isrealobj([[1.0]])
    with pytest.raises(ValueError, match="size: the sequences differ in length"):
        snp.size([[1], [2, 3]])
    with pytest.raises(ValueError, match="names an axis twice"):
        snp.size(x, (0, 0))
    with pytest.raises(TypeError, match="ndim: a must be an array or a number"):
        snp.ndim("text")


def test_shapes_of_numpys_arrays_of_anything():
    words = np.array([["a", "b"]])
    assert (snp.shape(words), snp.ndim(words), snp.size(words, 1)) == ((1, 2), 2, 2)
