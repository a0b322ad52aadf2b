"""Where windows lie, and the greatest element of each."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto.nn.functional.windows import greatest_and_places, table_of, window_of


@pytest.mark.parametrize(
    "n, k, stride, padding, dilation, ceil, starts",
    [
        (5, 2, 2, 0, 1, False, [0, 2]),
        (5, 2, 2, 0, 1, True, [0, 2, 4]),
        (5, 1, 3, 0, 1, True, [0, 3]),  # a third window would begin after the end
        (4, 2, 2, 1, 1, True, [-1, 1, 3]),
        (6, 2, 2, 0, 3, False, [0, 2]),
        (3, 4, 1, 0, 1, False, []),
    ],
)
def test_windows(n, k, stride, padding, dilation, ceil, starts):
    window = window_of(n, k, stride, padding, dilation, ceil)
    assert window.count(n) == len(starts)
    index, inside = table_of(n, window)
    true = np.array(starts).reshape(-1, 1) + np.arange(k) * dilation
    np.testing.assert_array_equal(inside, (true >= 0) & (true < n))
    np.testing.assert_array_equal(index[inside], true[inside])
    assert index.dtype == np.int32 and index.min(initial=0) >= 0 and index.max(initial=0) < n


def test_places_of_windows_of_padding_alone():
    index, inside = np.array([[0, 0], [1, 2]], np.int32), np.array([[False, True], [True, True]])
    values, places = greatest_and_places(snp.array([[[-np.inf, 1.0, 3.0]]]), [(index, inside)])
    assert values.tolist() == [[[-np.inf, 3.0]]]
    assert places.tolist() == [[[0, 2]]]
