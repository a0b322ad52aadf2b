"""A Bayesian logistic regression by NUTS: numpyro."""

from __future__ import annotations

from typing import Any

import jax
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

from benchmarks.ecosystem.tasks.data import regression
from benchmarks.ecosystem.tasks.serving import Steps, serve

EXAMPLES, FEATURES, CHAINS = 200, 8, 4
WARM_UP, DRAWS = 100, 100


def model(x: Any, y: Any) -> None:
    """Classes, given examples, under coefficients of a common width."""
    width = numpyro.sample("width", dist.HalfNormal(2.0))
    intercept = numpyro.sample("intercept", dist.Normal(0.0, 2.0))
    with numpyro.plate("features", FEATURES):
        coefficients = numpyro.sample("coefficients", dist.Normal(0.0, width))
    numpyro.sample("y", dist.Bernoulli(logits=x @ coefficients + intercept), obs=y)


def chains(count: int, number: int) -> Steps:
    """``number`` chains, ``count`` times from different keys."""
    x, y = regression(EXAMPLES, FEATURES)
    x, y = jax.numpy.asarray(x), jax.numpy.asarray(y)
    sampler = MCMC(
        NUTS(model),
        num_warmup=WARM_UP,
        num_samples=DRAWS,
        num_chains=number,
        chain_method="vectorized",
        progress_bar=False,
    )
    for i in range(count):
        sampler.run(jax.random.key(i), x, y)
        yield dict(sampler.get_samples(group_by_chain=True))
    likelihood = numpyro.infer.util.log_likelihood(model, sampler.get_samples(), x, y)
    return {"likelihood": likelihood["y"].sum(-1)}


def single(count: int) -> Steps:
    """One chain."""
    return chains(count, 1)


def ensemble(count: int) -> Steps:
    """Chains of their own keys, which numpyro maps over by `vmap`."""
    return chains(count, CHAINS)


if __name__ == "__main__":
    serve(single, ensemble)
