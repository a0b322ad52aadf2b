"""Comparisons, element by element."""

from __future__ import annotations

import numpy as np
import pytest

import stretto.numpy as snp

F = np.array([[-2.5, 1.0, -0.0], [0.0, 1.5, np.nan]], np.float32)


G = np.array([1.0, 1.0, 0.0], np.float32)


INTS, OTHERS = np.array([6, -5, 0, 12], np.int32), np.array([3, 3, 7, -1], np.int32)


BOOLS, TRUTHS = np.array([True, True, False, False]), np.array([True, False, True, False])


COMPLEX = np.array([1 + 2j, 1 + 1j, 0.5], np.complex64)


@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater",
                                  "greater_equal"])  # fmt: skip
def test_comparison(agree, name):
    agree(name, F, G, dtype=bool)
    agree(name, F, 1.0, dtype=bool)
    agree(name, 0, INTS, dtype=bool)
    agree(name, INTS, OTHERS, dtype=bool)
    agree(name, BOOLS, TRUTHS, dtype=bool)
    agree(name, INTS, 1.5, dtype=bool)
    agree(name, COMPLEX, COMPLEX[::-1].copy(), dtype=bool)


def test_comparison_with_other_things():
    x = snp.array([1, 2])
    assert (x == None) is False  # noqa: E711
    assert (x != "a") is True
    with pytest.raises(TypeError, match="array"):
        x == [1, 2]  # noqa: B015
    with pytest.raises(TypeError, match="array"):
        snp.equal(x, [1, 2])
