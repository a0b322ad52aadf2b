"""Whether whole arrays are equal."""

from __future__ import annotations

import numpy as np
import pytest

import stretto.numpy as snp


def test_equality_of_arrays():
    x, y = snp.array([1.0, np.nan]), snp.array([1.0, np.nan])
    assert not bool(snp.array_equal(x, y))
    assert bool(snp.array_equal(x, y, equal_nan=True))
    assert not bool(snp.array_equal(x, snp.ones(3)))
    assert bool(snp.array_equiv(snp.ones((2, 3)), snp.ones(3)))
    assert not bool(snp.array_equiv(snp.ones(2), snp.ones(3)))
    assert bool(snp.allclose(x, y, equal_nan=True))
    assert not bool(snp.allclose(snp.ones(2), 1.1))


def test_equality_takes_lists():
    assert bool(snp.array_equal([1, 2], snp.array([1, 2])))
    assert not bool(snp.array_equal(snp.array([1, 2]), [1, 2, 3]))
    assert bool(snp.array_equiv([1, 2], [[1, 2], [1, 2]]))
    with pytest.raises(ValueError, match="array_equal: the sequences differ in length"):
        snp.array_equal([[1], [2, 3]], [1])
