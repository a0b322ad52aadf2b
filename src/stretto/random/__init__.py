"""Random numbers from explicit keys.

Make a key with ``key(seed)``, ``split`` it for every further use, and hand each part to one draw.
Numbers are drawn in float32 at least: those of a narrower dtype are rounded last.
Read ``keys`` (and beneath it ``implementations`` and ``key_arrays``), ``distributions``,
``truncated``, ``discrete``, ``parametric``, ``gammas``, ``made_of_gammas``, ``counts``,
``matrices``, and ``streams`` for layers that are not handed a key.

>>> from stretto import random
>>> key, subkey = random.split(random.key(0))
>>> random.normal(subkey, (2, 3)).shape
(2, 3)
"""

from stretto._engine.core.lazy import imports_on_demand
from stretto.random import key_arrays as _key_arrays
from stretto.random.keys import (
    PRNGKey as PRNGKey,
    bits as bits,
    clone as clone,
    fold_in as fold_in,
    key as key,
    key_data as key_data,
    key_dtype as key_dtype,
    key_impl as key_impl,
    split as split,
    wrap_key_data as wrap_key_data,
)
from stretto.random.streams import keys as keys, manual_seed as manual_seed, next_key as next_key

PRNGKeyArray = _key_arrays.KeyArray

with imports_on_demand(__name__):
    from stretto.random.counts import (
        binomial as binomial,
        geometric as geometric,
        multinomial as multinomial,
        poisson as poisson,
    )
    from stretto.random.discrete import (
        bernoulli as bernoulli,
        categorical as categorical,
        choice as choice,
        permutation as permutation,
        rademacher as rademacher,
        randint as randint,
    )
    from stretto.random.distributions import (
        cauchy as cauchy,
        exponential as exponential,
        gumbel as gumbel,
        laplace as laplace,
        logistic as logistic,
        maxwell as maxwell,
        normal as normal,
        uniform as uniform,
    )
    from stretto.random.gammas import gamma as gamma, loggamma as loggamma
    from stretto.random.made_of_gammas import (
        ball as ball,
        beta as beta,
        chisquare as chisquare,
        dirichlet as dirichlet,
        f as f,
        generalized_normal as generalized_normal,
        t as t,
    )
    from stretto.random.matrices import (
        multivariate_normal as multivariate_normal,
        orthogonal as orthogonal,
    )
    from stretto.random.parametric import (
        double_sided_maxwell as double_sided_maxwell,
        lognormal as lognormal,
        pareto as pareto,
        rayleigh as rayleigh,
        triangular as triangular,
        wald as wald,
        weibull_min as weibull_min,
    )
    from stretto.random.truncated import truncated_normal as truncated_normal
