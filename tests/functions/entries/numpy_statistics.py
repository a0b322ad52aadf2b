"""Entries of `numpy/quantiles.py`, `numpy/without_nan.py` and `numpy/signals.py`."""

import numpy as np

from tests.functions.table import call, entry, given, x

SOME = given([[1.5, np.nan, -2.0, 4.0], [np.nan, 0.5, 3.0, -1.0]], "f32")
NONE = given([[1.5, np.nan], [2.0, np.nan]], "f32")
MASK = given([[True, False, True, True], [True, True, False, True]], "bool")
FRACTIONS = [0.0, 0.2, 0.35, 0.5, 0.9, 1.0]
WEIGHTS = given([[0.0, 1.0, 2.5, 0.5, 1.0], [1.0, 1.0, 0.0, 2.0, 3.0]])
METHODS = [
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
]
BESIDE_NAN = "there is no difference quotient beside NaN; the functions beneath have one"

for name, per in (("quantile", 1), ("nanquantile", 1), ("percentile", 100), ("nanpercentile", 100)):
    places = np.multiply(FRACTIONS, per)
    methods = METHODS if name == "quantile" else METHODS[:3]
    entry(
        f"numpy.{name}",
        getattr(np, name),
        [
            call(x(2, 5), 0.3 * per),
            call(x(2, 5), places.reshape(2, 3), axis=1, keepdims=True),
            call(x(5), given([0.1 * per, 0.7 * per])),
            *[call(x(3, 10), places, axis=1, method=method) for method in methods],
            call(x(2, 5), places, axis=1, method="inverted_cdf", weights=WEIGHTS),
            call(SOME, 0.25 * per, axis=1),
        ],
        undifferentiated="some methods jump, and some results are NaN",
    )
for name in ("median", "nanmedian"):
    entry(
        f"numpy.{name}",
        getattr(np, name),
        [call(x(5)), call(x(2, 4), axis=0), call(x(2, 3, 2), axis=(0, 2), keepdims=True)],
        "f32 i32",
    )
for name in ("sum", "prod", "mean", "var", "std"):
    entry(
        f"numpy.nan{name}",
        getattr(np, f"nan{name}"),
        [
            call(x(2, 3)),
            call(SOME),
            call(SOME, axis=1, keepdims=True),
            call(NONE, axis=0),
            call(SOME, axis=0, where=MASK),
            *([call(SOME, axis=1, ddof=1)] if name in ("var", "std") else []),
        ],
        "f32 c64",
        undifferentiated=BESIDE_NAN,
    )
for name in ("max", "min"):
    entry(
        f"numpy.nan{name}",
        getattr(np, f"nan{name}"),
        [
            call(SOME),
            call(SOME, axis=1, keepdims=True),
            call(NONE, axis=0),
            call(SOME, axis=0, where=MASK, initial=1.0),
            call(x(2, 3), axis=0),
        ],
        "f32 i32",
        undifferentiated=BESIDE_NAN,
    )
    entry(
        f"numpy.nanarg{name}",
        getattr(np, f"nanarg{name}"),
        [call(SOME), call(SOME, axis=1, keepdims=True), call(x(2, 3), axis=0)],
        "f32 i32",
    )
for name in ("cumsum", "cumprod"):
    entry(
        f"numpy.nan{name}",
        getattr(np, f"nan{name}"),
        [call(SOME), call(SOME, axis=1), call(x(2, 3), axis=0)],
        "f32 i32",
        undifferentiated=BESIDE_NAN,
    )
COUNTS = given([2, 0, 1, 3], "i32")
IMPORTANCE = x(4, low=0.5)
entry(
    "numpy.cov",
    np.cov,
    [
        call(x(3, 4)),
        call(x(4)),
        call(x(3, 4), x(2, 4), bias=True),
        call(x(4, 3), x(4, 2), rowvar=False),
        call(x(3, 4), ddof=2),
        call(x(3, 4), fweights=COUNTS),
        call(x(3, 4), aweights=IMPORTANCE),
        call(x(3, 4), fweights=COUNTS, aweights=given([1.0, 0.5, 2.0, 1.5]), ddof=0),
    ],
    "f32",
)
entry(
    "numpy.corrcoef",
    np.corrcoef,
    [call(x(3, 4)), call(x(4), x(4)), call(x(4, 3), rowvar=False)],
    "f32 i32 c64",
    undifferentiated="values at the ends of the range are cut off, and those on the diagonal are 1",
)
