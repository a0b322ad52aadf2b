"""Entries of `searching`, `inserting`, `grids` and `floats` of `numpy`."""

import numpy as np

from tests.functions.table import call, entry, given, without_entry, x

NUMBERS = given([[0, 1, 2], [2, 0, 1]], "i32")
MASK = given([True, False, True], "bool")

entry(
    "numpy.choose",
    np.choose,
    [
        call(NUMBERS, [x(2, 3), x(3), x()], mode="clip"),
        call(given([4, -1, 0], "i32"), [x(3), x(3)], mode="wrap"),
    ],
    "f32 i32 f32+i32",
)
entry(
    "numpy.select",
    np.select,
    [call([MASK, given([True, True, False], "bool")], [x(3), x(2, 3)], 2), call([MASK], [x(3)], 0)],
    "f32 i32 bool",
)
entry(
    "numpy.compress",
    np.compress,
    [call(MASK, x(2, 3), axis=1), call(MASK, x(2, 3)), call(MASK, x(4))],
    "f32 i32",
    uncompiled="its size depends on values; tests/numpy/test_searching_choosing.py",
    unmapped="its size depends on values",
)
entry(
    "numpy.trim_zeros",
    np.trim_zeros,
    [call(given([0.0, 0, 1, 2, 0], "f32")), call(given([0.0, 0], "f32")), call(x(3), "f")],
    "f32 i32",
    uncompiled="its size depends on values",
    unmapped="its size depends on values",
)
without_entry("takes functions; tests/numpy/test_searching_choosing.py", "numpy.piecewise")


def changed(function):
    """NumPy's function on a copy of its first argument, which it changes."""

    def copied(a, *args, inplace, **kwargs):
        out = np.array(a)
        function(out, *args, **kwargs)
        return out

    return copied


entry(
    "numpy.put",
    changed(np.put),
    [
        call(x(2, 3), given([0, 5, -1], "i32"), x(2), inplace=False),
        call(x(2, 3), given([0, 9, -9], "i32"), 1, mode="clip", inplace=False),
        call(x(4), given([[1, 9], [-7, 2]], "i32"), x(3), mode="wrap", inplace=False),
    ],
    "f32 i32",
)
entry(
    "numpy.put_along_axis",
    changed(np.put_along_axis),
    [
        call(x(2, 3), given([[1, 0], [2, 2]], "i32"), 3, 1, inplace=False),
        call(x(2, 3), given([[1, 0, 1]], "i32"), x(1, 3), 0, inplace=False),
        call(x(2, 3), given([1, 5], "i32"), x(2), None, inplace=False),
    ],
    "f32 i32",
)
entry(
    "numpy.place",
    changed(np.place),
    [call(x(3), MASK, x(2), inplace=False), call(x(3), MASK, x(1), inplace=False)],
    "f32 i32",
)
entry(
    "numpy.putmask",
    changed(np.putmask),
    [call(x(3), MASK, x(3), inplace=False), call(x(3), MASK, x(2), inplace=False)],
    "f32 i32",
)
entry(
    "numpy.fill_diagonal",
    changed(np.fill_diagonal),
    [
        call(x(2, 3), x(2), inplace=False),
        call(x(7, 3), x(2), True, inplace=False),
        call(x(3, 3, 3), 1, inplace=False),
    ],
    "f32 i32",
)

# Indices

for name, calls in {
    "diag_indices": [call(3), call(2, 3)],
    "tril_indices": [call(3), call(3, -1, 4), call(2, 1)],
    "triu_indices": [call(3), call(3, 1, 4), call(2, -1)],
}.items():
    entry(f"numpy.{name}", getattr(np, name), calls, "i32")
for name, calls in {
    "diag_indices_from": [call(x(3, 3))],
    "tril_indices_from": [call(x(3, 2)), call(x(2, 3), 1)],
    "triu_indices_from": [call(x(3, 2)), call(x(2, 3), 1)],
}.items():
    entry(f"numpy.{name}", getattr(np, name), calls)
without_entry("takes a function; tests/numpy/test_grids_places.py", "numpy.mask_indices")
entry("numpy.ix_", np.ix_, [call(given([0, 2], "i32"), given([1], "i32")), call(x(2, dtype="i32"))])
entry(
    "numpy.ravel_multi_index",
    np.ravel_multi_index,
    [
        call((given([0, 1], "i32"), given([2, 0], "i32")), (2, 3), "clip"),
        call((given([0, 1], "i32"), given([2, 0], "i32")), (2, 3), "wrap", order="F"),
        call((given([5, -1], "i32"), given([-1, 7], "i32")), (2, 3), ("clip", "wrap")),
    ],
    "i32",
)
entry(
    "numpy.unravel_index",
    np.unravel_index,
    [call(given([5, 0, 3], "i32"), (2, 3)), call(given([[5], [1]], "i32"), (2, 3), "F")],
    "i32",
)

# Floats and bits

entry("numpy.frexp", np.frexp, [call(x(2, 3)), call(x())], "f32 f64 f16 i32")
entry(
    "numpy.ldexp",
    np.ldexp,
    [call(x(3), given([3, -140, 200], "i32")), call(x(2, 1), given([[1, 2]], "i32"))],
    "f32 f64",
)
entry("numpy.modf", np.modf, [call(x(2, 3)), call(x())], "f32 f64 f16 i32")
entry(
    "numpy.nextafter",
    np.nextafter,
    [call(x(3), x(3)), call(x(2, 1), 0.0)],
    "f32 f64",
    undifferentiated="a step to the neighbour has no derivative",
)
entry(
    "numpy.spacing",
    np.spacing,
    [call(x(2, 3)), call(x())],
    "f32 f64",
    undifferentiated="a step to the neighbour has no derivative",
)
entry(
    "numpy.packbits",
    np.packbits,
    [call(x(11)), call(x(2, 9), axis=1, bitorder="little"), call(x(2, 3))],
    "bool i32 u8",
)
entry(
    "numpy.unpackbits",
    np.unpackbits,
    [call(x(3, high=255)), call(x(2, 2, high=255), 1, -3, "little"), call(x(2), count=20)],
    "u8",
)
