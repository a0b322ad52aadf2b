"""Random numbers from explicit keys.

Layer 7. Make a key with ``PRNGKey(seed)``, ``split`` it for every further use, and hand each part
to one draw. Read ``keys``, ``distributions``, ``discrete``, and ``streams`` for layers that are not
handed a key.

>>> from stretto import random
>>> key, subkey = random.split(random.PRNGKey(0))
>>> random.normal(subkey, (2, 3)).shape
(2, 3)
"""

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
    lognormal,
    maxwell,
    normal,
    pareto,
    rayleigh,
    truncated_normal,
    uniform,
    weibull_min,
)
from stretto.random.keys import PRNGKey, bits, fold_in, key, split
from stretto.random.streams import keys, manual_seed, next_key

__all__ = [
    "PRNGKey",
    "bernoulli",
    "bits",
    "categorical",
    "cauchy",
    "choice",
    "exponential",
    "fold_in",
    "gumbel",
    "key",
    "keys",
    "laplace",
    "logistic",
    "lognormal",
    "manual_seed",
    "maxwell",
    "next_key",
    "normal",
    "pareto",
    "permutation",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "truncated_normal",
    "uniform",
    "weibull_min",
]
