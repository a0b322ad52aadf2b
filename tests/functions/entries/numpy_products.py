"""Entries of products: of `numpy/products.py`, by `ops/contract.py` and `ops/contract.py`."""

import numpy as np

from tests.functions.table import call, entry, x

KINDS = "f32 f64 i32 c64 f32+i32"

entry(
    "numpy.dot",
    np.dot,
    [
        call(x(3), x(3)),
        call(x(2, 3), x(3, 2)),
        call(x(2, 3), x(3)),
        call(x(), x(2)),
        call(x(2, 3, 4), x(2, 4, 3)),
        call(x(2, 0), x(0, 3)),
    ],
    KINDS,
)
entry(
    "numpy.matmul",
    np.matmul,
    [
        call(x(3), x(3)),
        call(x(2, 3), x(3, 2)),
        call(x(2, 3), x(3)),
        call(x(4, 2, 3), x(3, 2)),
        call(x(4, 1, 2, 3), x(5, 3, 1)),
    ],
    f"{KINDS} bool",
)
entry("numpy.inner", np.inner, [call(x(3), x(3)), call(x(2, 3), x(4, 3)), call(x(), x(2))], KINDS)
entry("numpy.outer", np.outer, [call(x(3), x(2)), call(x(2, 2), x(3))], KINDS)
entry("numpy.vdot", np.vdot, [call(x(3), x(3)), call(x(2, 3), x(2, 3))], KINDS)
entry(
    "numpy.tensordot",
    np.tensordot,
    [
        call(x(2, 3), x(2, 3)),
        call(x(2, 3), x(3, 4), 1),
        call(x(2, 3), x(2), axes=((0,), (0,))),
        call(x(2), x(3), axes=0),
    ],
    KINDS,
)
entry("numpy.vecdot", np.vecdot, [call(x(2, 3), x(3)), call(x(3, 2), x(3, 1), axis=0)], KINDS)


def crossed(a, b, **axes):
    """NumPy's, which of vectors of 2 elements only warns: the third element of the result."""
    if a.shape[-1] == b.shape[-1] == 2:
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return np.cross(a, b, **axes)


entry(
    "numpy.cross",
    crossed,
    [
        call(x(3), x(3)),
        call(x(2, 3), x(3)),
        call(x(4, 2), x(2)),
        call(x(3, 4), x(4, 3), axisa=0, axisc=0),
    ],
    "f32 i32 c64",
)
