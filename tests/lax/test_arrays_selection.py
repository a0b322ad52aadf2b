"""Searches that may be approximate, and are exact: NaN, ties, and what has no meaning."""

import numpy as np
import pytest

from stretto.lax.arrays import approx_max_k, approx_min_k

X = np.float32([1, 3, np.nan, 3, -np.inf, np.inf])


def test_nan_counts_as_greatest():
    values, places = approx_max_k(X, 3, recall_target=0.5, aggregate_to_topk=False)
    np.testing.assert_array_equal(values, np.float32([np.nan, np.inf, 3]))
    assert places.tolist() == [2, 5, 1]
    values, places = approx_min_k(X, 4, reduction_input_size_override=100)
    np.testing.assert_array_equal(values, np.float32([-np.inf, 1, 3, 3]))
    assert places.tolist() == [4, 0, 1, 3]


@pytest.mark.parametrize("find", [approx_max_k, approx_min_k], ids=["max", "min"])
def test_refusals(find):
    with pytest.raises(TypeError, match="operand must be of real floats"):
        find(np.arange(3), 1)
    with pytest.raises(ValueError, match="recall_target must be above 0"):
        find(X, 1, recall_target=0.0)
    with pytest.raises(ValueError, match="reduction_input_size_override must be -1 or at least"):
        find(X, 1, reduction_input_size_override=3)
    with pytest.raises(ValueError, match="k must be from 0 to the size"):
        find(X, 7)
