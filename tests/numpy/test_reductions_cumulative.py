"""Sums and products of the elements so far."""

from __future__ import annotations

import numpy as np
import pytest

import stretto.numpy as snp

F = np.array(
    [[[1.5, -2.0, 0.5], [3.0, 0.0, -1.0]], [[2.0, 2.5, -0.5], [1.0, -3.0, 4.0]]], np.float32
)


INTS = np.array([[3, -1, 4], [1, 5, -9]], np.int32)


BOOLS = np.array([[True, False, True], [True, True, True]])


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_running(agree, name, axis):
    agree(name, F, axis=axis, dtype="float32", rtol=1e-5)
    agree(name, INTS, axis=axis, dtype="int32")
    agree(name, BOOLS, axis=axis, dtype="int32")
    assert getattr(snp, name)(snp.array([1, 2], snp.int8)).dtype == snp.int8


def test_cumulative_sum_and_prod(agree):
    for name in ("cumulative_sum", "cumulative_prod"):
        agree(name, INTS, axis=1, include_initial=True, dtype="int32")
        agree(name, INTS, axis=0, dtype="int32")
        with pytest.raises(ValueError, match="axis must be given"):
            getattr(snp, name)(snp.array(INTS))
