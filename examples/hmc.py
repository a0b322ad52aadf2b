"""Hamiltonian Monte Carlo: one chain, written plainly; ``vmap`` makes it many.

A chain proposes by following the leapfrog integrator of H(q, p) = -log π(q) + p·p/2 and accepts by
the change of H. Source: Neal (2011), MCMC using Hamiltonian dynamics. Run it:
``python examples/hmc.py``.
"""

import stretto as st
import stretto.numpy as snp


def leapfrog(log_density, q, p, step, count):
    """``count`` steps of the leapfrog integrator."""
    slope = st.grad(log_density)

    def one(state, _):
        q, p, g = state
        p = p + 0.5 * step * g
        q = q + step * p
        g = slope(q)
        p = p + 0.5 * step * g
        return (q, p, g), None

    (q, p, _), _ = st.lax.scan(one, (q, p, slope(q)), length=count)
    return q, p


def sample_chain(key, log_density, start, samples, step=0.25, count=10):
    """Samples of one chain, (samples, dimension), and the share of proposals accepted."""

    def energy(q, p):
        return 0.5 * snp.dot(p, p) - log_density(q)

    def one(q, key):
        for_momentum, for_acceptance = st.random.split(key)
        p = st.random.normal(for_momentum, q.shape)
        proposed, after = leapfrog(log_density, q, p, step, count)
        gain = energy(q, p) - energy(proposed, after)
        accept = snp.log(st.random.uniform(for_acceptance)) < gain
        q = snp.where(accept, proposed, q)
        return q, (q, accept)

    _, (path, accepted) = st.lax.scan(one, start, st.random.split(key, samples))
    return path, snp.mean(accepted)


def banana(q):
    """The log density of a bent Gaussian: q₀ ~ N(0, 1), q₁ ~ N(q₀²/2, 1/4)."""
    return -0.5 * q[0] ** 2 - 2.0 * (q[1] - 0.5 * q[0] ** 2) ** 2


def main(chains=64, samples=400):
    """Many chains at once; means and variances over all of them, beside the true ones."""
    key = st.random.key(0)
    starts = st.random.normal(st.random.fold_in(key, 1), (chains, 2))
    run = st.jit(st.vmap(lambda k, q: sample_chain(k, banana, q, samples)))
    paths, accepted = run(st.random.split(key, chains), starts)
    kept = paths[:, samples // 4 :].reshape(-1, 2)
    mean, var = snp.mean(kept, 0), snp.var(kept, 0)
    print(f"{chains} chains of {samples}: {100 * float(snp.mean(accepted)):.0f} % accepted")
    print(f"mean {mean}, wanted [0 0.5]; variance {var}, wanted [1 0.75]")
    return mean, var, accepted


if __name__ == "__main__":
    main()
