"""Streams: blocks of few lengths, whole rows, and the n-th largest of what does not fit."""

import numpy as np
import pytest

import stretto as st
from stretto.merge import streams
from stretto.merge.streams import LENGTHS, UNIT, Source, Stream, kth_largest
from tests.merge import models


def stream(tmp_path, arrays, most, **options):
    path = tmp_path / "model.safetensors"
    models.save_file(arrays, path)
    checkpoint = st.merge.Checkpoint(path)
    return Stream([Source(checkpoint, name) for name in arrays], most, **options)


@pytest.mark.parametrize("most", [0, 1 << 20, 1 << 23, 1 << 30])
@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 70_000, 1_200_000])
def test_blocks(tmp_path, size, most):
    rng = np.random.default_rng(0)
    arrays = {
        "a": rng.standard_normal(size).astype(np.float32),
        "b": np.arange(size, dtype=np.int16),
    }
    given = stream(tmp_path, arrays, most)
    for _ in range(2):  # as often as is asked
        place = 0
        for block in given:
            assert block.start == place
            for own, whole in zip(block.arrays, arrays.values(), strict=True):
                assert len(own) in LENGTHS
                assert len(own) % UNIT == 0
                np.testing.assert_array_equal(own[: block.size], whole[place : place + block.size])
                assert not own[block.size :].any()
                assert own.ctypes.data % 64 == 0
            place += block.size
        assert place == size
    longest = max(given.lengths)
    assert longest == LENGTHS[0] or longest * 12 <= most  # two sets of buffers, of 6 bytes each


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (3, LENGTHS[:1]),
        (UNIT + 1, [UNIT, UNIT]),  # rather than 15 runs of zeros
        (9 * UNIT, [LENGTHS[1]]),  # and rather zeros than 9 blocks
        (5 << 18, [1 << 19, 1 << 19, 1 << 19]),
        (9 << 17, [1 << 19, 1 << 19, 1 << 16, 1 << 16]),
        ((1 << 19) + 3 * UNIT, [1 << 19, UNIT, UNIT, UNIT]),
    ],
)
def test_blocks_are_half_full_or_more(tmp_path, size, expected):
    given = stream(tmp_path, {"a": np.ones(size, np.int8)}, 1 << 30)
    assert [block.arrays[0].size for block in given] == list(expected)


def test_blocks_of_rows(tmp_path):
    x = np.arange(7 * 100_000, dtype=np.int32).reshape(7, 100_000)
    blocks = [
        (b.start, b.size, b.arrays[0].copy()) for b in stream(tmp_path, {"x": x}, 1, rows=True)
    ]
    assert [b[2].shape for b in blocks] == [(2, 100_000)] * 4
    assert [b[0] for b in blocks] == [0, 200_000, 400_000, 600_000]
    found = np.concatenate([b[2] for b in blocks])
    np.testing.assert_array_equal(found[:7], x)
    assert not found[7:].any()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (0, 3), (5,)])
@pytest.mark.parametrize("rows", [False, True])
def test_odd_shapes(tmp_path, shape, rows):
    x = np.ones(shape, np.float32)
    blocks = list(stream(tmp_path, {"x": x}, 1 << 20, rows=rows))
    assert sum(b.size for b in blocks) == x.size


def test_every_kth_block(tmp_path):
    x = np.arange(5 * UNIT, dtype=np.float32)
    given = stream(tmp_path, {"x": x}, 0, every=2)
    assert [b.start for b in given] == [0, 2 * UNIT, 4 * UNIT]
    np.testing.assert_array_equal(
        np.concatenate([b.arrays[0] for b in given])[UNIT:],
        x[2 * UNIT :][:UNIT].tolist() + x[4 * UNIT :].tolist(),
    )


def in_pieces(x, count=64):
    return lambda every: iter(np.array_split(x, count)[::every])


def expected(x, counts):
    return [float(np.sort(x)[::-1][n - 1]) for n in counts]


@pytest.mark.parametrize("most", [0, 4000, 1 << 30])
@pytest.mark.parametrize("size", [1, 2, 10, 3000])
def test_the_nth_largest(size, most):
    rng = np.random.default_rng(size)
    x = abs(rng.standard_normal(size)).astype(np.float32)
    x[::3] = np.round(x[::3], 1)  # equal ones
    x[-1] = 0
    counts = sorted({1, size, max(1, size // 2), max(1, size // 5)})
    for order in (counts, counts[::-1]):
        assert kth_largest(in_pieces(x, 3), size, order, most) == expected(x, order)


def test_infinities_are_the_largest():
    x = np.array([1, np.inf, 0, 3e38, 1e-45], np.float32)
    for most in (0, 100):
        found = kth_largest(in_pieces(x, 1), 5, [1, 2, 3, 4, 5], most)
        assert found == sorted(x.tolist(), reverse=True)


SIZE = 100_000
ROOM = 4 * SIZE // 2  # bytes, in which half of them fit


def drawn():
    return abs(np.random.default_rng(0).standard_normal(SIZE)).astype(np.float32)


@pytest.mark.parametrize(
    "counts", [[1], [50_000], [SIZE], [1000, 80_000], [20_000, 20_001, 70_000]]
)
@pytest.mark.parametrize("kind", ["all differ", "rounded", "half are zero", "all equal"])
def test_a_sample_says_where_the_nth_largest_is(monkeypatch, kind, counts):
    monkeypatch.setattr(streams, "_counted", None)  # not called
    x = drawn()
    x = {
        "all differ": x, "rounded": np.round(x, 1), "half are zero": np.where(x < 0.67, 0, x),
        "all equal": np.ones_like(x),
    }[kind]  # fmt: skip
    assert kth_largest(in_pieces(x), SIZE, counts, ROOM) == expected(x, counts)


@pytest.mark.parametrize("up", [False, True])
def test_where_a_sample_misleads_the_numbers_are_counted(monkeypatch, up):
    asked = []
    count = streams._counted

    def counted(values, counts):
        asked.extend(counts)
        return count(values, counts)

    monkeypatch.setattr(streams, "_counted", counted)
    pieces = np.array_split(drawn(), 64)
    for k in range(0, 64, 16):  # of which the sample is
        pieces[k] = pieces[k] * 9 if up else pieces[k] / 9
    x = np.concatenate(pieces)
    counts = [10_000, 50_000]
    assert kth_largest(in_pieces(x), SIZE, counts, ROOM) == expected(x, counts)
    assert asked


def test_what_has_no_room_is_counted():
    x = drawn()
    x[:60_000] = 1 + x[:60_000] / 1000  # all between two numbers of the sample
    x = np.random.default_rng(1).permutation(x)
    for most in (0, 4, 400, 40_000):
        assert kth_largest(in_pieces(x), SIZE, [40_000], most) == expected(x, [40_000])
