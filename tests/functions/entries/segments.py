"""Entries of `ops`: sums, products and extremes of segments."""

import numpy as np

from tests.functions.table import call, entry, given, x


def segmented(ufunc, empty):
    """What reduces the parts of each segment one after another; parts of no segment drop out."""

    def like(data, ids, num_segments=None, mode=None):
        count = ids.max() + 1 if num_segments is None else num_segments
        out = np.full((count, *data.shape[1:]), empty(data.dtype), data.dtype)
        ids = ids.clip(0, count - 1) if mode == "clip" else ids
        kept = (ids >= 0) & (ids < count)
        ufunc.at(out, ids[kept], data[kept])
        return out

    return like


def least(dtype):
    """The least number of a dtype."""
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def greatest(dtype):
    """The greatest number of a dtype."""
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


IDS = given([2, 0, 2, -1, 5], "i32")
CALLS = [
    call(x(4), given([2, 0, 2, 0], "i32"), 3),
    call(x(5, 2), IDS, 4),
    call(x(5), IDS, 4, mode="clip"),
    call(x(0, 2), given([], "i32"), 2),
]
for name, ufunc, empty, dtypes in (
    ("sum", np.add, lambda _: 0, "f32 i32 c64"),
    ("prod", np.multiply, lambda _: 1, "f32 i32 c64"),
    ("max", np.maximum, least, "f32 i32"),
    ("min", np.minimum, greatest, "f32 i32"),
):
    entry(f"lax.segment_{name}", segmented(ufunc, empty), CALLS, dtypes)
