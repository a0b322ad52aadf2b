"""Entries of `image`, and of the small modules of `scipy`: clusters, integrals, interpolation."""

import numpy as np
import scipy.cluster.vq
import scipy.integrate
import scipy.ndimage

from tests.functions.table import call, entry, without_entry, x

entry(
    "scipy.integrate.trapezoid",
    scipy.integrate.trapezoid,
    [call(x(2, 5)), call(x(3, 2), x(3), axis=0), call(x(4), dx=0.5)],
    "f32 c64",
)

entry(
    "scipy.cluster.vq.vq",
    lambda obs, book: tuple(
        np.asarray(v) for v in scipy.cluster.vq.vq(obs.astype(float), book.astype(float))
    ),
    [call(x(5, 3), x(4, 3)), call(x(5), x(2)), call(x(3, 1), x(1, 1))],
    "f32 i32",
)

NAMES = {"constant": "grid-constant", "wrap": "grid-wrap"}


def mapped(x, points, order, mode="constant", cval=0.0):
    points = np.stack(np.broadcast_arrays(*points))
    return scipy.ndimage.map_coordinates(x, points, None, order, NAMES.get(mode, mode), cval)


entry(
    "scipy.ndimage.map_coordinates",
    mapped,
    [
        call(x(3, 4), [x(6, low=-6.3, high=9.7), x(6, low=-6.3, high=9.7)], order, mode, cval=0.5)
        for order, mode in [
            (0, "constant"),
            (0, "wrap"),
            *((1, m) for m in ("constant", "nearest", "wrap", "mirror", "reflect")),
        ]
    ]
    + [call(x(5), [x(2, 3)], order=1), call(x(1, 2), [x(), x(2)], order=1, mode="mirror")],
    "f32",
)

without_entry(
    "an object whose calls are tested in tests/scipy/test_interpolate.py",
    "scipy.interpolate.RegularGridInterpolator",
)
without_entry(
    "a search, which is tested in tests/scipy/test_optimize_minimizing.py",
    "scipy.optimize.minimize",
    "scipy.optimize.OptimizeResults",
)
without_entry(
    "objects whose methods are tested in tests/scipy/spatial/test_transform.py",
    "scipy.spatial.transform.Rotation",
    "scipy.spatial.transform.Slerp",
)

# JAX's values are in tests/test_image.py.
entry(
    "image.resize",
    None,
    [
        *(
            call(x(2, 4), (2, n), method)
            for n, method in ((3, "cubic"), (6, "area"), (3, "nearest"))
        ),
        call(x(4, 4), (3, 3), "cubic-pytorch", antialias=False),
    ],
    "f32 c64",
    unlike="NumPy and SciPy have no such function",
)
entry(
    "image.scale_and_translate",
    None,
    [
        call(x(4, 2), (5, 2), (0,), x(1, low=0.5, high=1.5), x(1, low=-1, high=1), method, widened)
        for method, widened in (("cubic", True), ("lanczos3", False), ("area", True))
    ],
    "f32",
    unlike="NumPy and SciPy have no such function",
)
without_entry("a list of names", "image.ResizeMethod")
