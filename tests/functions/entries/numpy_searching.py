"""Entries of `numpy/searching.py`: sorting, looking for elements, choosing among them."""

import numpy as np

from tests.functions.table import call, entry, given, x

KINDS = "f32 i8 bool f64"
EAGER = "without `size=` the shape of its result depends on values"
NANS = given([3.0, np.nan, -0.0, 1.0, -np.inf, 0.0], "f32")
COMPLEX = given([1 + 2j, 1 - 1j, 0.5 + 9j, complex(np.nan, 1)], "c64")
AXES = [call(x(2, 3)), call(x(2, 3), axis=0), call(x(2, 3), axis=None), call(x(0, 3)), call(x(1))]

entry(
    "numpy.sort",
    np.sort,
    [*AXES, call(NANS), call(COMPLEX)],
    KINDS,
    undifferentiated="NaN are among the values; tests/_engine/ops/test_sort.py",
)
entry(
    "numpy.argsort",
    lambda a, axis=-1: np.argsort(a, axis, stable=True),
    [*AXES, call(NANS), call(COMPLEX)],
    KINDS,
)
entry(
    "numpy.lexsort",
    np.lexsort,
    [call((x(4), x(4))), call([x(2, 4), x(2, 4)]), call(x(2, 4))],
    "i8 f32",
)
entry(
    "numpy.where",
    np.where,
    [call(x(2, 3, dtype="bool"), x(3), x(2, 1)), call(x(dtype="bool"), 1.0, x(2))],
    f"{KINDS} c64 f32+i8",
)
MASK = given([[True, False], [False, True]], "bool")
for name in ("nonzero", "flatnonzero", "argwhere"):
    entry(
        f"numpy.{name}",
        getattr(np, name),
        [call(MASK), call(x(2, 3)), call(x(0))],
        "i8 f32 bool",
        uncompiled=EAGER,
        unmapped=EAGER,
    )
entry("numpy.extract", np.extract, [call(MASK, x(2, 2))], KINDS, uncompiled=EAGER, unmapped=EAGER)
TABLE = given([-1.0, 0.0, 0.0, 2.0], "f32")
entry(
    "numpy.searchsorted",
    np.searchsorted,
    [
        call(TABLE, x(2, 3)),
        call(TABLE, x(), "right"),
        call(TABLE, TABLE, side="right"),
        call(given([2.0, -1.0, 0.0], "f32"), x(2), sorter=np.array([1, 2, 0])),
    ],
    "f32 f64",
)
entry(
    "numpy.take_along_axis",
    np.take_along_axis,
    [
        call(x(2, 3), given([[0], [2]], "i32"), 1),
        call(x(2, 3), given([[1, 0, 1]], "i32"), axis=0),
        call(x(2, 3), given([5, 0, -1], "i32"), axis=None),
    ],
    KINDS,
)
REPEATS = given([3, 1, 3, 2, 1], "i32")
entry(
    "numpy.unique",
    np.unique,
    [
        call(REPEATS),
        call(x(2, 3)),
        call(REPEATS, return_index=True, return_inverse=True, return_counts=True),
        call(given([[1, 2], [0, 5], [1, 2]], "i32"), axis=0),
        call(given([np.nan, 1.0, np.nan], "f32")),
    ],
    KINDS,
    uncompiled=EAGER,
    unmapped=EAGER,
    undifferentiated="the values come with places, and meet NaN",
)
for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values"):
    entry(
        f"numpy.{name}",
        lambda a, name=name: _sorted(name, getattr(np, name)(a)),
        [call(REPEATS), call(x(2, 3))],
        "i8 f32 f64",
        uncompiled=EAGER,
        unmapped=EAGER,
    )


def _sorted(name, out):
    # NumPy may give values in any order
    return np.sort(out) if name == "unique_values" else out
