"""Segments: JAX's values, derivatives, and messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import laws
from stretto.laws import f32

X, IDS = np.arange(5, dtype=np.float32), np.array([0, 0, 2, -1, 7], np.int32)


def test_values():
    def every(x, ids):
        return [
            st.lax.segment_sum(x, ids, 3),
            st.lax.segment_prod(x, ids, 3),
            st.lax.segment_max(x, ids, 3),
            st.lax.segment_min(x.astype(int), ids, num_segments=3),
            st.lax.segment_sum(x, ids, 3, mode="clip"),
        ]

    want = [[1, 0, 2], [0, 1, 2], [1, -np.inf, 2], [0, 2**31 - 1, 2], [4, 0, 6]]
    for outs in (every(snp.array(X), snp.array(IDS)), st.jit(every)(X, IDS)):
        assert [out.tolist() for out in outs] == want
    assert st.lax.segment_sum(snp.array(X), snp.array([0, 0, 2, 1, 1])).tolist() == [1, 7, 2]
    rows = st.lax.segment_sum(snp.ones((2, 2, 3)), snp.array([[0, 1], [1, 1]]))
    assert rows.tolist() == [[1] * 3, [3] * 3]
    assert st.lax.segment_max(snp.array([True, False]), snp.array([0, 1]), 3).tolist() == [
        True,
        False,
        False,
    ]
    assert st.lax.segment_sum(snp.zeros((0, 2)), snp.zeros(0, int)).shape == (0, 2)


@pytest.mark.parametrize("name", ["segment_sum", "segment_prod", "segment_max"])
def test_derivatives(name):
    fun = lambda x, ids: getattr(st.lax, name)(x, ids, 3)
    laws.check(fun, [(f32(5, 2).within(0.5, 2), np.array([0, 2, 0, 5, 1], np.int32))])


BUCKETS = [
    ("segment_sum", [1, 11, 2], np.float32),
    ("segment_prod", [0, 30, 2], np.float16),
    ("segment_max", [1, 6, 2], np.int8),
    ("segment_min", [0, 5, 2], np.int32),
]


@pytest.mark.parametrize(("name", "want", "dtype"), BUCKETS)
def test_buckets_change_nothing_but_the_rounding(name, want, dtype):
    x = np.arange(7).astype(dtype)
    of = st.jit(getattr(st.lax, name), static_argnames=("num_segments", "bucket_size"))
    for ids in (np.array([0, 0, 2, -1, 7, 1, 1]), np.array([0, 0, 2, 255, 7, 1, 1], np.uint8)):
        for size in (1, 2, 3, 100):
            got = of(x, ids, num_segments=3, bucket_size=size)
            assert got.tolist() == want
            assert got.dtype == dtype
    far = np.array([0, 0, 2, 2**32 - 1, 7, 1, 1], np.uint32)
    clipped = st.lax.segment_max(snp.arange(7), far, 3, bucket_size=2, mode="clip")
    assert clipped.tolist() == [1, 6, 4]


def test_buckets_of_parts_with_axes():
    x, ids = snp.arange(12.0).reshape(2, 3, 2), snp.array([[0, 1, 1], [1, 0, 1]])
    want = st.lax.segment_sum(x, ids)
    assert st.lax.segment_sum(x, ids, bucket_size=2).tolist() == want.tolist()
    assert st.lax.segment_max(x > 3, ids, bucket_size=4).tolist() == [[True] * 2] * 2


def test_buckets_lose_fewer_digits():
    x = snp.full(30_000, 0.1)
    ids = snp.zeros(30_000, int)
    plain, apart = (float(st.lax.segment_sum(x, ids, 1, bucket_size=b)[0]) for b in (None, 200))
    assert abs(apart - 3000) < 0.01 < abs(plain - 3000)


def test_messages():
    x, ids = snp.array(X), snp.array(IDS)
    cases = [
        (lambda: st.lax.segment_sum(x, x), TypeError, "segment_ids must be integers"),
        (lambda: st.lax.segment_sum(x, ids[:2]), ValueError, "a segment for each part of data"),
        (lambda: st.lax.segment_sum(x, ids, -1), ValueError, "num_segments must not be negative"),
        (
            lambda: st.lax.segment_sum(x, ids, 3, bucket_size=0),
            ValueError,
            "must be positive, got 0",
        ),
        (lambda: st.lax.segment_min(x, ids, out_sharding=3), TypeError, "out_sharding must be a"),
        (lambda: st.lax.segment_sum(x > 1, ids), TypeError, "expected numbers, got bool"),
        (
            lambda: st.jit(st.lax.segment_sum)(x, ids),
            st.errors.TracedValueError,
            "Give num_segments=",
        ),
    ]
    for call, error, words in cases:
        with pytest.raises(error, match=words):
            call()


def test_refusals_name_the_function():
    ids = np.array([0, 1])
    with pytest.raises(ValueError, match=r"^segment_sum: mode must be"):
        st.lax.segment_sum(np.ones(2), ids, 2, mode="bad")
    with pytest.raises(
        TypeError, match=r"^segment_max: expected real numbers or booleans, got comp"
    ):
        st.lax.segment_max(np.ones(2, np.complex64), ids, 2)


def test_segments_and_buckets_there_are_at_least():
    x, ids = snp.array(X), snp.array([-1, -1, -1, -1, -1])
    assert st.lax.segment_sum(x, ids).shape == (0,)
    assert st.lax.segment_sum(x, ids, 0).shape == (0,)
    assert st.lax.segment_sum(x, ids + 1, bucket_size=1).tolist() == [10]
    with pytest.raises(ValueError, match="a segment for each part of data"):
        st.lax.segment_sum(x, snp.array(0), 1)
    for dtype in (np.complex64, np.bool_):
        ones = np.ones(2, dtype)
        assert st.lax.segment_prod(ones, np.array([0, 1]), 2).tolist() == [1, 1]
    assert st.lax.segment_sum(np.ones(2, np.complex64), np.array([0, 0]), 1).tolist() == [2]
    assert st.lax.segment_min(np.array([True, False]), np.array([0, 1]), 3)[2]


def test_ids_beyond_the_range_of_buckets_are_dropped():
    """Also those that 32 bits do not hold."""
    x = snp.arange(4.0)
    with st.enable_x64():
        ids = np.array([0, 2**32, -(2**32), 2**32 + 1])
        assert st.lax.segment_sum(x, ids, 2, bucket_size=2).tolist() == [0, 0]
        assert st.lax.segment_sum(x, ids, 2, bucket_size=2, mode="clip").tolist() == [2, 4]


@pytest.mark.parametrize("name", ["segment_sum", "segment_prod", "segment_max", "segment_min"])
def test_functions_of_one_making_have_names_and_pages_of_their_own(name):
    f = getattr(st.lax, name)
    assert f.__name__ == f.__qualname__ == name
    assert f"st.lax.{name}(" in f.__doc__


@pytest.mark.parametrize(
    ("size", "buckets"), [(1, 7), (2, 4), (3, 3), (6, 2), (7, None), (8, None)]
)
def test_buckets_hold_so_many_parts_each(size, buckets):
    """They are added up one by one, and then together; one alone is no bucket."""
    f = lambda x, ids: st.lax.segment_sum(x, ids, 4, bucket_size=size)
    graph = st.make_graph(f)(np.ones(7, np.float32), np.zeros(7, np.int32))
    (e,) = [e for e in graph.equations if e.primitive.name == "scatter_add"]
    assert e.outputs[0].type.shape == ((4,) if buckets is None else (buckets, 4))
