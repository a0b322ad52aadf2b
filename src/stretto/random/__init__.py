"""Random numbers from explicit keys.

Make a key with ``key(seed)``, ``split`` it for every further use, and hand each part to one draw.
Numbers are drawn in float32 at least: those of a narrower dtype are rounded last.
Read ``keys`` (and beneath it ``key_arrays``), ``distributions``, ``truncated``, ``discrete_draws``,
``parametric``, ``gamma_draws``, and ``streams`` for layers that are not handed a key.

>>> from stretto import random
>>> key, subkey = random.split(random.key(0))
>>> random.normal(subkey, (2, 3)).shape
(2, 3)
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports
from stretto.random import key_arrays as _key_arrays
from stretto.random.keys import (
    PRNGKey as PRNGKey, bits as bits, clone as clone, fold_in as fold_in, key as key,
    key_data as key_data, key_dtype as key_dtype, key_impl as key_impl, split as split,
    wrap_key_data as wrap_key_data,
)  # fmt: skip
from stretto.random.streams import keys as keys, manual_seed as manual_seed, next_key as next_key

PRNGKeyArray = _key_arrays.KeyArray

if TYPE_CHECKING:
    from stretto.random.discrete_draws import *
    from stretto.random.distributions import *
    from stretto.random.gamma_draws import *
    from stretto.random.parametric import *
    from stretto.random.truncated import *

exports(
    __name__,
    """
    .discrete_draws: bernoulli binomial categorical choice geometric multinomial permutation poisson
        rademacher randint
    .distributions: cauchy exponential gumbel laplace logistic maxwell normal uniform
    .gamma_draws: ball beta chisquare dirichlet f gamma generalized_normal loggamma t
    .parametric: double_sided_maxwell lognormal multivariate_normal orthogonal pareto rayleigh
        triangular wald weibull_min
    .truncated: truncated_normal
    """,
)
