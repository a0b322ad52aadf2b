"""Entries of `scipy/stats`: every method of each distribution, and statistics of samples."""

import numpy as np
from scipy import stats

from tests.functions.table import call, entry, given, x

REAL = "f32 f64"
PLACED = {"loc": 0.25, "scale": 1.5}


def distribution(name, arguments, methods, more=(), **options):
    """An entry for each method, with these arguments before location and scale."""
    integral = name in ("gamma", "chi2", "beta", "t", "gennorm", "truncnorm")
    for method in methods.split():
        like, less = getattr(getattr(stats, name), method), dict(options)
        if integral and method in ("logcdf", "sf", "logsf"):
            less["uncompiled"] = "its program is the cdf's, but for the last operations"
        if method in ("pdf", "pmf"):
            less["uncompiled"] = "its program is the logarithm's, and an exponential"
        costly = COSTLY if method in ("cdf", "logpmf") or integral else ""
        calls = [*arguments, *more]
        entry(f"scipy.stats.{name}.{method}", like, calls, REAL, costly=costly, **less)


DENSITY = "logpdf pdf"
CUMULATIVE = "cdf logcdf sf logsf"
COSTLY = "the incomplete gamma and beta functions take seconds to compile"
QUANTILES = "ppf isf"
EDGES = given([-np.inf, -1.0, 0.0, 1.0, 30.0, np.inf, np.nan], "f32")
FINITE = given([-1.0, 0.0, 1.0, 30.0, np.nan], "f32")
Q = x(2, 3, low=0.01, high=0.99)
A, B = x(3, low=0.5, high=3.0), x(low=0.5, high=3.0)
AT_EDGES = "not at the edges of its support"

for name in ("norm", "cauchy", "expon", "laplace", "logistic", "uniform", "gumbel_r", "gumbel_l"):
    everywhere = name in ("norm", "cauchy", "logistic")
    calls = [call(x(2, 3)), call(x(3), 0.5, 2.0), call(x(2, 1), x(3), x(low=0.5))]
    known = "" if everywhere else AT_EDGES
    # SciPy has NaN for Gumbel's and gamma's densities at infinity, which are 0
    edges = call(FINITE if name.startswith("gumbel") else EDGES)
    distribution(name, [*calls, edges], DENSITY, undifferentiated=known)
    distribution(name, [*calls, call(EDGES)], CUMULATIVE, undifferentiated=known)
    distribution(
        name,
        [call(Q), call(Q, x(3), x(low=0.5)), call(given([0, 1, 2, np.nan], "f32"))],
        QUANTILES,
        undifferentiated=AT_EDGES,
    )
distribution(
    "pareto",
    [call(x(2, 3, low=1.1, high=3), A), call(EDGES, B)],
    f"{DENSITY} {CUMULATIVE}",
    undifferentiated=AT_EDGES,
)
distribution("pareto", [call(Q, A), call(Q, B, **PLACED)], QUANTILES)
for name in ("gamma", "chi2"):
    calls = [call(x(2, 3, low=0.3, high=3), A), call(x(3, low=0.5), B, **PLACED)]
    distribution(name, [*calls, call(FINITE, 1.5)], DENSITY, undifferentiated=AT_EDGES)
    distribution(name, [*calls, call(EDGES, 1.5)], CUMULATIVE, undifferentiated=AT_EDGES)
distribution(
    "beta",
    [call(Q, A, B), call(x(3, low=0.3, high=1.5), B, A, **PLACED)],
    f"{DENSITY} {CUMULATIVE}",
    [call(EDGES, 1.5, 2.0)],
    undifferentiated="of its integral with respect to a and b",
)
distribution("t", [call(x(2, 3), A), call(x(3), B, **PLACED), call(EDGES, 3.0)], DENSITY)
distribution("t", [call(x(2, 3), 2.5), call(x(3), 4.0, **PLACED), call(EDGES, 3.0)], CUMULATIVE)
distribution("gennorm", [call(x(2, 3), A), call(x(3), B, **PLACED)], "logpdf pdf cdf")
distribution(
    "truncnorm",
    [
        call(x(2, 3), -1.5, x(3, low=0.5)),
        call(x(3), 0.5, 1.5, **PLACED),
        call(given([4.5, 5.0, 7.0], "f32"), 4.0, 6.0),
        call(EDGES, -1.0, 2.0),
    ],
    f"{DENSITY} {CUMULATIVE}",
    undifferentiated=AT_EDGES,
)
distribution("vonmises", [call(x(2, 3), A), call(x(3), B)], DENSITY)
distribution(
    "wrapcauchy",
    [call(x(2, 3, low=0.1, high=6), x(3, low=0.1, high=0.9)), call(EDGES, 0.5)],
    DENSITY,
    undifferentiated=AT_EDGES,
)

# on integers

K = given([[0, 1, 2], [3, 7, -1]], "i32")
P = x(3, low=0.1, high=0.9)
N = given([5, 3, 7], "i32")
for name, shapes, methods in (
    ("bernoulli", (P,), "logpmf pmf cdf"),
    ("binom", (N, P), "logpmf pmf cdf"),
    ("betabinom", (N, A, A), "logpmf pmf"),
    ("geom", (P,), "logpmf pmf cdf"),
    ("nbinom", (N, P), "logpmf pmf cdf"),
    ("poisson", (A,), "logpmf pmf cdf"),
):
    integral = "of its integral with respect to the parameters"
    for method in methods.split():
        distribution(
            name,
            [call(K, *shapes), call(K, *shapes, loc=1)],
            method,
            undifferentiated=integral if method == "cdf" else "",
        )
distribution(
    "bernoulli",
    [call(Q, P), call(given([0, 1, 2], "f32"), 0.5)],
    "ppf",
    undifferentiated="it is a step function",
)
distribution(
    "poisson", [call(x(3, low=0.1, high=9)), call(given([140.0, 160.0, 900.0], "f32"))], "entropy"
)

# of vectors


def simplex(v):
    return np.abs(v) / np.abs(v).sum(0, keepdims=True)


SIMPLEX = x(3, low=0.2, high=1, form=simplex)
ALPHA = x(3, low=0.5, high=3)
OFF = "off the simplex it is not defined"
for method in ("logpdf", "pdf"):
    entry(
        f"scipy.stats.dirichlet.{method}",
        lambda v, alpha, method=method: getattr(stats.dirichlet, method)(
            simplex(v.astype(float)), alpha
        ),
        [call(SIMPLEX, ALPHA)],
        REAL,
        undifferentiated=OFF,
    )
distribution(
    "multinomial",
    [
        call(given([1, 2, 2], "i32"), 5, SIMPLEX),
        call(given([[1, 2, 2], [1, 1, 1]], "i32"), 5, SIMPLEX),
    ],
    "logpmf pmf",
    undifferentiated="SciPy's p is of sum 1",
)


def positive(v):
    return v @ v.T + np.eye(len(v))


distribution(
    "multivariate_normal",
    [call(x(3), x(3), x(3, 3, form=positive)), call(x(4, 3), x(3), x(3, 3, form=positive))],
    DENSITY,
)

# of samples

TIES = given([[3, 1, 3, 2], [0, 0, 0, 5]], "f32")
NANS = given([[3, np.nan, 3], [0, 1, 0]], "f32")
entry(
    "scipy.stats.rankdata",
    lambda *args, **kwargs: stats.rankdata(*args, **kwargs).astype(float),
    [
        call(TIES),
        call(x(2, 3)),
        call(NANS, axis=1),
        *[call(TIES, m, axis=1) for m in ("average", "min", "max", "dense", "ordinal")],
    ],
    REAL,
    undifferentiated="ranks are steps",
)
entry(
    "scipy.stats.mode",
    stats.mode,
    [call(TIES), call(TIES, axis=1, keepdims=True), call(TIES, axis=None), call(NANS, axis=1)],
    REAL,
)
entry(
    "scipy.stats.sem",
    stats.sem,
    [
        call(x(4, 3)),
        call(x(4, 3), axis=1, ddof=0),
        call(x(4, 3), axis=None),
        call(NANS, axis=1, nan_policy="omit"),
    ],
    REAL,
    undifferentiated="NaN are among the values",
)
