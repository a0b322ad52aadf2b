"""Operations on the bits of integers."""

from __future__ import annotations

import numpy as np
import pytest

import stretto.numpy as snp

F = np.array([[-2.5, 1.0, -0.0], [0.0, 1.5, np.nan]], np.float32)


INTS, OTHERS = np.array([6, -5, 0, 12], np.int32), np.array([3, 3, 7, -1], np.int32)


BOOLS, TRUTHS = np.array([True, True, False, False]), np.array([True, False, True, False])


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bitwise(agree, name):
    agree(name, INTS, OTHERS, dtype="int32")
    agree(name, INTS, 5, dtype="int32")
    agree(name, BOOLS, TRUTHS, dtype=bool)
    with pytest.raises(TypeError, match="kind"):
        getattr(snp, name)(snp.array(F), 1)


def test_shifts_and_counts(agree):
    agree("left_shift", INTS, 3, dtype="int32")
    agree("right_shift", INTS, 1, dtype="int32")
    agree("right_shift", INTS.astype(np.uint32), np.uint32([1, 2, 3, 4]), dtype="uint32")
    agree("invert", INTS, dtype="int32")
    agree("invert", BOOLS, dtype=bool)
    agree("bitwise_count", INTS, dtype="uint8")
