"""Random numbers from explicit keys.

Make a key with ``key(seed)``, ``split`` it for every further use, and hand each part to one draw.
Read ``keys`` (and beneath it ``implementations`` and ``key_arrays``), ``distributions``,
``discrete``, ``parametric``, ``gammas``, ``made_of_gammas``, ``counts``, ``matrices``, and
``streams`` for layers that are not handed a key.

>>> from stretto import random
>>> key, subkey = random.split(random.key(0))
>>> random.normal(subkey, (2, 3)).shape
(2, 3)
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import names_on_demand
from stretto.random.key_arrays import KeyArray as PRNGKeyArray
from stretto.random.keys import (
    PRNGKey,
    bits,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)
from stretto.random.streams import keys, manual_seed, next_key

if TYPE_CHECKING:
    from stretto.random.counts import binomial, geometric, multinomial, poisson
    from stretto.random.discrete import (
        bernoulli,
        categorical,
        choice,
        permutation,
        rademacher,
        randint,
    )
    from stretto.random.distributions import (
        cauchy,
        exponential,
        gumbel,
        laplace,
        logistic,
        maxwell,
        normal,
        truncated_normal,
        uniform,
    )
    from stretto.random.gammas import gamma, loggamma
    from stretto.random.made_of_gammas import (
        ball,
        beta,
        chisquare,
        dirichlet,
        f,
        generalized_normal,
        t,
    )
    from stretto.random.matrices import multivariate_normal, orthogonal
    from stretto.random.parametric import (
        double_sided_maxwell,
        lognormal,
        pareto,
        rayleigh,
        triangular,
        wald,
        weibull_min,
    )
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "stretto.random.counts": "binomial geometric multinomial poisson",
            "stretto.random.discrete": "bernoulli categorical choice permutation rademacher "
            "randint",
            "stretto.random.distributions": "cauchy exponential gumbel laplace logistic maxwell "
            "normal truncated_normal uniform",
            "stretto.random.gammas": "gamma loggamma",
            "stretto.random.made_of_gammas": "ball beta chisquare dirichlet f generalized_normal t",
            "stretto.random.matrices": "multivariate_normal orthogonal",
            "stretto.random.parametric": "double_sided_maxwell lognormal pareto rayleigh "
            "triangular wald weibull_min",
        },
    )

__all__ = [
    "PRNGKey",
    "PRNGKeyArray",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "dirichlet",
    "double_sided_maxwell",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "generalized_normal",
    "geometric",
    "gumbel",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "keys",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "manual_seed",
    "maxwell",
    "multinomial",
    "multivariate_normal",
    "next_key",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "wald",
    "weibull_min",
    "wrap_key_data",
]
