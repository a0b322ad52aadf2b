"""Gather and scatter in NumPy, against loops over the index vectors."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from stretto._engine.core.types import array_type
from stretto._engine.ops.index.geometry import GatherDimensionNumbers, out_shape
from stretto._engine.ops.index.primitives import gather_reference, scatter_reference, starts_of

CASES = {  # operand, indices' shape, numbers, window sizes
    "rows": ((5, 4), (6, 1), GatherDimensionNumbers((1,), (0,), (0,)), (1, 4)),
    "parts of rows": ((5, 4), (2, 3, 2), GatherDimensionNumbers((2,), (0,), (0, 1)), (1, 2)),
    "windows in front": ((5, 4), (6, 2), GatherDimensionNumbers((0, 1), (), (1, 0)), (2, 3)),
    "elements": ((5, 4), (6, 2), GatherDimensionNumbers((), (0, 1), (0, 1)), (1, 1)),
    "one window": ((5, 4), (1, 2), GatherDimensionNumbers((0, 2), (), (0, 1)), (3, 2)),
    "in step": ((3, 5, 2), (3, 4, 1), GatherDimensionNumbers((2,), (1,), (1,), (0,), (0,)),
                (1, 1, 2)),
    "no component": ((3,), (2, 0), GatherDimensionNumbers((1,), (), ()), (3,)),
}  # fmt: skip


def places(operand, indices, numbers, sizes, mode):
    """For each element of the output, by a loop: its place, and that in the operand or None."""
    shape = out_shape("f", array_type(operand, np.dtype("f4")),
                      array_type(indices.shape, indices.dtype), numbers, sizes)  # fmt: skip
    left_out = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    window = [d for d in range(len(operand)) if d not in left_out]
    for out in itertools.product(*map(range, shape)):
        batch = [i for d, i in enumerate(out) if d not in numbers.offset_dims]
        start = [0] * len(operand)
        for d, i in zip(numbers.start_index_map, indices[tuple(batch)], strict=True):
            start[d] = int(i)
        if mode == "clip":
            start = [min(max(i, 0), n - s) for i, n, s in zip(start, operand, sizes, strict=True)]
        inside = all(0 <= i <= n - s for i, n, s in zip(start, operand, sizes, strict=True))
        pairs = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
        for d, axis in pairs:
            start[d] = batch[axis]
        for d, o in zip(window, numbers.offset_dims, strict=True):
            start[d] += out[o]
        yield out, tuple(start) if inside else None


def case(name, seed=0, low=-2, high=7):
    operand, shape, numbers, sizes = CASES[name]
    random = np.random.default_rng(seed)
    x = random.integers(-9, 10, operand).astype(np.float32)
    return x, random.integers(low, high, shape).astype(np.int32), numbers, sizes


@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize("name", CASES)
def test_gather(name, mode):
    for seed in range(3):
        x, indices, numbers, sizes = case(name, seed)
        elements = list(places(x.shape, indices, numbers, sizes, mode))
        shape = tuple(n + 1 for n in elements[-1][0])
        want = np.zeros(shape, np.float32)
        for out, at in elements:
            want[out] = 100 if at is None else x[at]
        fill = {"clip": None, "fill": np.float32(100)}[mode]
        got = gather_reference(x, indices, numbers, sizes, out_shape=shape, fill=fill)
        np.testing.assert_array_equal(got, want)


STEPS = {
    "set": lambda old, new: new,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


@pytest.mark.parametrize("update", STEPS)
@pytest.mark.parametrize("mode", ["clip", "drop"])
@pytest.mark.parametrize("name", CASES)
def test_scatter(name, mode, update):
    """Of updates of one element that of the last index vector is set."""
    x, indices, numbers, sizes = case(name)
    elements = list(places(x.shape, indices, numbers, sizes, mode))
    updates = np.random.default_rng(1).integers(-3, 4, [n + 1 for n in elements[-1][0]])
    windows = numbers.offset_dims
    elements.sort(key=lambda pair: [i for d, i in enumerate(pair[0]) if d not in windows])
    updates = updates.astype(np.float32)
    want = x.copy()
    for out, at in elements:
        if at is not None:
            want[at] = STEPS[update](want[at], updates[out])
    kept = x.copy()
    got = scatter_reference(update, x, indices, updates, numbers, sizes=sizes, clip=mode == "clip")
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(x, kept)
    assert not np.shares_memory(got, x)


def test_indices_beyond_64_bits_are_out_of_bounds():
    x, _, numbers, sizes = case("rows")
    far = np.array([[2**64 - 1], [1]], np.uint64)
    starts, inside = starts_of(x.shape, far, numbers, sizes, clip=False)
    assert inside.tolist() == [False, True] and starts.dtype == np.int64
    starts, inside = starts_of(x.shape, far, numbers, sizes, clip=True)
    assert inside is None and starts.ravel().tolist() == [4, 1]


def test_empty_windows_and_no_indices():
    x, _, numbers, _ = case("rows")
    none = np.zeros((0, 1), np.int32)
    assert gather_reference(x, none, numbers, (1, 4), out_shape=(0, 4)).shape == (0, 4)
    got = scatter_reference(
        "set", x, none, np.zeros((0, 4), np.float32), numbers, sizes=(1, 4), clip=False
    )
    np.testing.assert_array_equal(got, x)


def test_narrow_numbers_are_added_up_in_32_bits():
    numbers, indices = GatherDimensionNumbers((), (0,), (0,)), np.zeros((5000, 1), np.int32)
    for dtype in (np.float16, ml_dtypes.bfloat16):
        got = scatter_reference("add", np.zeros(1, dtype), indices, np.ones(5000, dtype), numbers,
                      sizes=(1,), clip=False)  # fmt: skip
        assert got.dtype == dtype and got[0] == dtype(5000)
    fours = np.array([3], ml_dtypes.int4)
    got = scatter_reference(
        "add", fours, indices[:2], np.repeat(fours, 2), numbers, sizes=(1,), clip=False
    )
    assert got.dtype == ml_dtypes.int4
