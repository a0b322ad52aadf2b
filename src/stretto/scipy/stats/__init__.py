"""``stretto.scipy.stats``: SciPy's distributions, and statistics of samples.

A distribution is an object with methods, such as ``norm.logpdf(x, loc, scale)``. Read
``distribution``, the form that they share, then ``continuous``, ``extremes``, ``positive``,
``circular``, ``discrete``, ``multivariate``; ``ranks`` and ``kde`` are about samples.

>>> from stretto.scipy import stats
>>> stats.norm.cdf(0.0)
Array(0.5, dtype=float32, weak_type=True)
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:
    from stretto.scipy.stats.circular import vonmises as vonmises, wrapcauchy as wrapcauchy
    from stretto.scipy.stats.continuous import (
        cauchy as cauchy,
        expon as expon,
        laplace as laplace,
        logistic as logistic,
        norm as norm,
        truncnorm as truncnorm,
        uniform as uniform,
    )
    from stretto.scipy.stats.discrete import (
        bernoulli as bernoulli,
        betabinom as betabinom,
        binom as binom,
        geom as geom,
        nbinom as nbinom,
        poisson as poisson,
    )
    from stretto.scipy.stats.extremes import (
        gumbel_l as gumbel_l,
        gumbel_r as gumbel_r,
        pareto as pareto,
    )
    from stretto.scipy.stats.kde import gaussian_kde as gaussian_kde
    from stretto.scipy.stats.multivariate import (
        dirichlet as dirichlet,
        multinomial as multinomial,
        multivariate_normal as multivariate_normal,
    )
    from stretto.scipy.stats.positive import (
        beta as beta,
        chi2 as chi2,
        gamma as gamma,
        gennorm as gennorm,
        t as t,
    )
    from stretto.scipy.stats.ranks import mode as mode, rankdata as rankdata, sem as sem

exports(
    __name__,
    """
    .circular: vonmises wrapcauchy
    .continuous: cauchy expon laplace logistic norm truncnorm uniform
    .discrete: bernoulli betabinom binom geom nbinom poisson
    .extremes: gumbel_l gumbel_r pareto
    .kde: gaussian_kde
    .multivariate: dirichlet multinomial multivariate_normal
    .positive: beta chi2 gamma gennorm t
    .ranks: mode rankdata sem
    """,
)
