from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

A = np.arange(1, 7, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("width", [0, 1, 5, (1, 2), ((0, 1), (2, 0))])
def test_modes(agree, mode, width):
    agree("pad", A, width, mode=mode)


def test_constant_values(agree):
    agree("pad", A, 1, constant_values=7)
    agree("pad", A, ((1, 1), (2, 2)), constant_values=((1, 2), (3, 4)))
    agree("pad", A.astype(np.int32), 1, constant_values=3, dtype="int32")
    assert snp.pad(snp.array(A), {-1: (1, 0)}).shape == (2, 4)


def test_derivative():
    slope = st.grad(lambda x: snp.pad(x, 2, mode="edge").sum())(snp.ones(3))
    assert slope.tolist() == [3, 1, 3]


def test_errors():
    x = snp.array(A)
    with pytest.raises(ValueError, match="negative"):
        snp.pad(x, -1)
    with pytest.raises(ValueError, match="for each of 2 axes"):
        snp.pad(x, ((1, 1), (1, 1), (1, 1)))
    with pytest.raises(NotImplementedError, match="mode must be"):
        snp.pad(x, 1, mode="median")
    with pytest.raises(ValueError, match="is empty"):
        snp.pad(snp.zeros(0), 1, mode="edge")
    with pytest.raises(TypeError, match="takes no"):
        snp.pad(x, 1, reflect_type="odd")
