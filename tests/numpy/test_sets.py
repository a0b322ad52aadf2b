"""Sets: what fills places that are missing, where elements come from, and messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

A, B = np.array([3, 1, 2, 3, 7], np.int32), np.array([3, 7, 9], np.int32)


def test_missing_places_as_in_jax():
    def sized(a, b):
        return (
            snp.intersect1d(a, b, return_indices=True, size=4),
            snp.intersect1d(a, b, size=4, fill_value=-5),
            snp.setdiff1d(a, b, size=4),
            snp.setdiff1d(a, b, assume_unique=True, size=4),
            snp.setxor1d(a, b, size=5),
            snp.setxor1d(a, a, size=2),
            snp.union1d(a, b, size=7),
            snp.intersect1d(a, b + 100, size=2, return_indices=True),
        )

    wanted = (
        ([3, 7, 3, 3], [0, 4, 5, 5], [0, 1, 3, 3]),
        [3, 7, -5, -5],
        [1, 2, 0, 0],
        [1, 2, 0, 0],
        [1, 2, 9, 1, 1],
        [0, 0],
        [1, 2, 3, 7, 9, 1, 1],
        ([0, 0], [5, 5], [3, 3]),
    )
    for out in (sized(snp.array(A), snp.array(B)), st.jit(sized)(A, B)):
        assert st.tree.map(lambda x: x.tolist(), out) == wanted


def test_without_a_size_as_in_numpy():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = (rng.integers(0, 8, rng.integers(0, 6)).astype(np.float32) for _ in range(2))
        for x in (a, b):
            x[rng.random(x.size) < 0.2] = np.nan
        for name in ("intersect1d", "setdiff1d", "setxor1d", "union1d"):
            got = getattr(snp, name)(snp.array(a), snp.array(b))
            np.testing.assert_array_equal(got, getattr(np, name)(a, b), err_msg=f"{name} {a} {b}")
        got = snp.intersect1d(snp.array(a), snp.array(b), return_indices=True)
        for g, w in zip(got, np.intersect1d(a, b, return_indices=True), strict=True):
            np.testing.assert_array_equal(g, w)
    assert snp.setdiff1d(snp.array([5, 1, 5, 2]), snp.array([1]), assume_unique=True).tolist() == [
        5,
        5,
        2,
    ]


def test_messages():
    with pytest.raises(st.errors.TracedValueError, match="size="):
        st.jit(snp.union1d)(A, B)
    with pytest.raises(ValueError, match="isin: method must be one of auto, compare_all"):
        snp.isin(A, B, method="fast")
    with pytest.raises(TypeError, match="array"):
        snp.isin([1], B)


@pytest.mark.parametrize("kind", [int, float])
def test_what_is_assumed_unique_and_is_not(kind):
    nan = [np.nan] if kind is float else []
    x, y = np.array([5, 1, 5, 4, *nan, *nan], kind), np.array([4, 4, 2, *nan], kind)
    for a, b in ((x, y), (y, x), (x, y[:0]), (x[:0], y)):
        want = np.setxor1d(a, b, assume_unique=True)
        found = snp.setxor1d(a, b, assume_unique=True)
        np.testing.assert_array_equal(found, want)
        sized = st.jit(lambda a, b: snp.setxor1d(a, b, True, size=10, fill_value=9))(a, b)
        np.testing.assert_array_equal(sized, [*want, *[9] * (10 - want.size)])
