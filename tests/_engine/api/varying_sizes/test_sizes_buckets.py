"""The sizes that arrays are padded to."""

import math

import pytest

import stretto as st


def test_buckets_are_few_and_waste_little():
    buckets = st.Buckets()
    sizes = [buckets.size(n) for n in range(1, 1001)]
    assert all(size >= n for n, size in enumerate(sizes, 1)) and len(set(sizes)) <= 12
    waste = [size / n for n, size in enumerate(sizes[16:], 17)]
    assert max(waste) <= 1.5 and sum(waste) / len(waste) < 1.25
    assert [st.Buckets(10, 2).size(n) for n in (1, 10, 11, 30)] == [10, 10, 16, 32]
    assert repr(buckets) == "Buckets(start=16, growth=1.5)"


def test_sizes_that_are_given():
    buckets = st.Buckets(sizes=[100, 10, 10])
    assert [buckets.size(n) for n in (1, 10, 11, 100)] == [10, 10, 100, 100]
    assert repr(buckets) == "Buckets(sizes=[10, 100])"
    with pytest.raises(ValueError, match="a size of 101 is greater than the last bucket, 100"):
        buckets.size(101)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="growth must be greater than 1, got 1"):
        st.Buckets(growth=1)
    with pytest.raises(ValueError, match="start must be at least 1, got 0"):
        st.Buckets(0)
    with pytest.raises(ValueError, match="one size or more, got none"):
        st.Buckets(sizes=[])
    with pytest.raises(ValueError, match="most must be at least 3, got 2"):
        st.dynamic_size("n", 3, 2)
    with pytest.raises(ValueError, match="least"):
        st.dynamic_size("n", -1)
    assert st.dynamic_size("n", 0).bounds() == (0, math.inf)
    assert st.dynamic_size("n", 3, 3).bounds() == (3, 3)


def test_a_size_with_bounds():
    n = st.dynamic_size("n", least=3, most=100)
    assert n >= 3 and n <= 100 and str(2 * n - 1) == "2*n-1"
    assert 3 * st.dynamic_size("n") == 3 * st.dynamic_size("n")


def test_the_smallest_bucket_may_be_one():
    assert [st.Buckets(sizes=[4, 1]).size(n) for n in (1, 2, 4)] == [1, 4, 4]
    assert st.Buckets(start=1).size(1) == 1
    for how in ({"sizes": [0, 4]}, {"start": 0}):
        with pytest.raises(ValueError, match="must be at least 1, got 0"):
            st.Buckets(**how)
