"""Entries of `numpy/sets.py` and `numpy/sorting.py`."""

import numpy as np

from tests.functions.table import call, entry, given, x

FIRST = given([3, 1, 4, 1, 5, 9], "i32")
SECOND = given([2, 7, 1, 3, 1], "i32")
NANS = (given([1.0, np.nan, np.nan, 2.0], "f32"), given([np.nan, 2.0, 2.0], "f32"))


def filled(function):
    """NumPy's function with `size` and `fill_value`."""

    def like(*args, size, fill_value, **settings):
        out = function(*args, **settings)
        return np.concatenate([out, np.full(size - out.size, fill_value, out.dtype)])

    return like


for name in ("intersect1d", "setdiff1d", "setxor1d", "union1d"):
    entry(
        f"numpy.{name}",
        filled(getattr(np, name)),
        [
            call(*pair, size=20, fill_value=7)
            for pair in ((FIRST, SECOND), (x(2, 3), x(3)), (x(0), x(2)), NANS)
        ],
        "f32 bool",
        undifferentiated="which elements are taken depends on values that are equal",
    )


def among(element, test_elements, invert=False, method="auto"):
    """NumPy's `isin`, whatever the method."""
    return np.isin(element, test_elements, invert=invert)


entry(
    "numpy.isin",
    among,
    [
        call(FIRST, SECOND),
        call(x(2, 3), x(30), invert=True),
        call(x(2, 3), x(30), method="compare_all"),
        call(x(30), x(3), method="binary_search"),
        call(x(2), x(0)),
        call(*NANS),
    ],
    "f32 c64",
)


def partitioned(a, kth, axis=-1):
    """The elements up to `kth` in rising order, the others in falling order."""
    front, back = np.split(np.sort(a, axis), [kth % a.shape[axis] + 1], axis)
    return np.concatenate([front, np.flip(back, axis)], axis)


def arguments(a, kth, axis=-1):
    """The places up to `kth` in the order of the elements, the others in their own."""
    front, back = np.split(np.argsort(a, axis, stable=True), [kth % a.shape[axis] + 1], axis)
    return np.concatenate([front, np.sort(back, axis)], axis)


for name, like in (("partition", partitioned), ("argpartition", arguments)):
    entry(
        f"numpy.{name}",
        like,
        [call(x(7), 3), call(x(3, 4), -2, axis=0), call(given([2.0, np.nan, 1.0], "f32"), 0)],
        "f32 i32 u8",
        undifferentiated="" if name == "partition" else "the results are places",
    )
entry(
    "numpy.sort_complex",
    lambda a: np.sort_complex(a).astype(np.complex64 if a.itemsize < 8 else None),
    [call(x(5)), call(x(2, 3))],
    "f32 i8 i32",
)
