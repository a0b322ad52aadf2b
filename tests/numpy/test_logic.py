from __future__ import annotations

import numpy as np
import pytest

F = np.array([[-2.5, 1.0, -0.0], [0.0, 1.5, np.nan]], np.float32)
INTS, OTHERS = np.array([6, -5, 0, 12], np.int32), np.array([3, 3, 7, -1], np.int32)
BOOLS, TRUTHS = np.array([True, True, False, False]), np.array([True, False, True, False])


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_logical(agree, name):
    agree(name, BOOLS, TRUTHS, dtype=bool)
    agree(name, INTS, TRUTHS, dtype=bool)
    agree(name, F, 1, dtype=bool)


def test_logical_not(agree):
    agree("logical_not", F, dtype=bool)
    agree("logical_not", INTS, dtype=bool)
