"""``stretto.scipy.stats``: SciPy's distributions, and statistics of samples.

A distribution is an object with methods, such as ``norm.logpdf(x, loc, scale)``. Read
``distribution``, the form that they share, then ``continuous``, ``discrete``, ``multivariate``;
``samples`` describes samples, and estimates densities from them.

>>> from stretto.scipy import stats
>>> stats.norm.cdf(0.0)
Array(0.5, dtype=float32, weak_type=True)
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:
    from stretto.scipy.stats.continuous import (
        beta as beta, cauchy as cauchy, chi2 as chi2, expon as expon, gamma as gamma,
        gennorm as gennorm, gumbel_l as gumbel_l, gumbel_r as gumbel_r, laplace as laplace,
        logistic as logistic, norm as norm, pareto as pareto, t as t, truncnorm as truncnorm,
        uniform as uniform, vonmises as vonmises, wrapcauchy as wrapcauchy,
    )  # fmt: skip
    from stretto.scipy.stats.discrete import (
        bernoulli as bernoulli, betabinom as betabinom, binom as binom, geom as geom,
        nbinom as nbinom, poisson as poisson,
    )  # fmt: skip
    from stretto.scipy.stats.multivariate import (
        dirichlet as dirichlet,
        multinomial as multinomial,
        multivariate_normal as multivariate_normal,
    )
    from stretto.scipy.stats.samples import (
        gaussian_kde as gaussian_kde, mode as mode, rankdata as rankdata, sem as sem,
    )  # fmt: skip

exports(
    __name__,
    """
    .continuous: beta cauchy chi2 expon gamma gennorm gumbel_l gumbel_r laplace logistic norm pareto
        t truncnorm uniform vonmises wrapcauchy
    .discrete: bernoulli betabinom binom geom nbinom poisson
    .multivariate: dirichlet multinomial multivariate_normal
    .samples: gaussian_kde mode rankdata sem
    """,
)
