"""``stretto.scipy.stats``: SciPy's distributions, and statistics of samples.

A distribution is an object with methods, such as ``norm.logpdf(x, loc, scale)``. Read
``distribution``, the form that they share, then ``continuous``, ``extremes``, ``positive``,
``circular``, ``discrete``, ``multivariate``; ``ranks`` and ``kde`` are of samples.

>>> from stretto.scipy import stats
>>> stats.norm.cdf(0.0)
Array(0.5, dtype=float32, weak_type=True)
"""

from stretto.scipy.stats.circular import vonmises, wrapcauchy
from stretto.scipy.stats.continuous import (
    cauchy,
    expon,
    laplace,
    logistic,
    norm,
    truncnorm,
    uniform,
)
from stretto.scipy.stats.discrete import bernoulli, betabinom, binom, geom, nbinom, poisson
from stretto.scipy.stats.extremes import gumbel_l, gumbel_r, pareto
from stretto.scipy.stats.kde import gaussian_kde
from stretto.scipy.stats.multivariate import dirichlet, multinomial, multivariate_normal
from stretto.scipy.stats.positive import beta, chi2, gamma, gennorm, t
from stretto.scipy.stats.ranks import mode, rankdata, sem

__all__ = [
    "bernoulli",
    "beta",
    "betabinom",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "gamma",
    "gaussian_kde",
    "gennorm",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "laplace",
    "logistic",
    "mode",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "rankdata",
    "sem",
    "t",
    "truncnorm",
    "uniform",
    "vonmises",
    "wrapcauchy",
]
