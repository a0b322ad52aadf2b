"""How near posterior approximations come to the truth: spreads of predictions beside NUTS's.

    python -m benchmarks.posteriors.nearness FOLDER

The folder has `reference.npz` (a network 1-8-1 with tanh at its MAP, and 20 points with a gap)
and `nuts.npz` (means and standard deviations of its predictions at 17 points, by 8 chains of NUTS).
Prints, for each approximation, its standard deviations over NUTS's, as geometric means over the
points among the data, in the gap, and outside. All in float64.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import stretto as st
import stretto.numpy as snp
from stretto import nn

__all__ = ["approximations", "main"]

NOISE, PRIOR = 0.2, 1.0
MAPS, FEW = 200, 20
STEPS = 20_000
REGIONS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "data": lambda x: ((abs(x) >= 0.5) & (x < 0)) & (x >= -1.5) | (x >= 1.0) & (x <= 1.5),
    "gap": lambda x: (x >= 0.0) & (x <= 0.5),
    "outside": lambda x: abs(x) >= 2.5,
}


def network(key: Any) -> nn.Module:
    """The network, with weights from the prior."""
    made = nn.Sequential(nn.Linear(1, 8, key=key), nn.Tanh(), nn.Linear(8, 1, key=key))
    names = [name for name, _ in made.named_parameters()]
    keys = st.random.split(key, len(names))
    made.load_state_dict(
        {n: st.random.normal(k, x.shape, x.dtype)
         for (n, x), k in zip(made.named_parameters(), keys, strict=True)}
    )  # fmt: skip
    return made


def error(member: Any, x: Any, y: Any) -> Any:
    """The mean negative log likelihood, up to a constant."""
    return ((member(x) - y) ** 2).mean() / (2 * NOISE**2)


def trained(loss: Any, size: int, data: Any, **options: Any) -> st.Ensemble[Any]:
    """Members trained to their minima."""
    count = len(data[0])
    rate = st.optim.cosine_decay_schedule(0.02, STEPS)
    ensemble = st.Ensemble.init(network, st.random.key(1), size)
    fitted = ensemble.fit(loss, data, st.optim.adam(rate), steps=STEPS, batch_size=count,
                          key=st.random.key(2), progress=False, **options)  # fmt: skip
    return fitted.ensemble


def at_map(reference: Any) -> nn.Module:
    """The network at its MAP."""
    made = network(st.random.key(0))
    made.load_state_dict({n: reference[f"reg.w.{n}"] for n, _ in made.named_parameters()})
    return made


def sghmc(model: nn.Module, x: Any, y: Any, points: Any, chains: int = 40) -> Any:
    """Predictions of chains that began near different maxima."""
    names = [n for n, _ in model.named_parameters()]

    def call(p: Any, x: Any) -> Any:
        return st.func.functional_call(model, p, x)

    def chain(key: Any) -> Any:
        first, noise = st.random.split(key)
        params = dict(network(first).named_parameters())
        sampler = st.optim.sghmc(
            0.01, data_size=len(x), prior_precision=PRIOR, friction=1.0, key=noise
        )

        def step(carry: Any, _: None) -> Any:
            params, state = carry
            gradient = st.grad(lambda p: ((call(p, x) - y) ** 2).mean() / (2 * NOISE**2))(params)
            updates, state = sampler.update(gradient, state, params)
            return (st.optim.apply_updates(params, updates), state), None

        def some(carry: Any, _: None) -> Any:
            carry, _ = st.lax.scan(step, carry, None, length=50)
            return carry, call(carry[0], points)[:, 0]

        begun = {n: params[n] for n in names}
        drawn = st.lax.scan(some, (begun, sampler.init(begun)), None, length=800)[1]
        return drawn[200:]

    return st.jit(st.vmap(chain))(st.random.split(st.random.key(5), chains))


def ivon(model: nn.Module, x: Any, y: Any, points: Any, size: int = FEW) -> Any:
    """Predictions of draws from members whose means began at different draws of the prior."""

    def call(p: Any, x: Any) -> Any:
        return st.func.functional_call(model, p, x)

    rate = st.optim.cosine_decay_schedule(0.02, STEPS)
    tx = st.optim.ivon(rate, data_size=len(x), prior_precision=PRIOR, b2=0.999)

    def member(key: Any) -> Any:
        first, noise, last = st.random.split(key, 3)
        params = dict(network(first).named_parameters())

        def step(carry: Any, key: Any) -> Any:
            params, state = carry
            draw = tx.sample(state, params, key)
            gradient = st.grad(lambda p: ((call(p, x) - y) ** 2).mean() / (2 * NOISE**2))(draw)
            updates, state = tx.update(gradient, state, params, at=draw)
            return (st.optim.apply_updates(params, updates), state), None

        begun = params, tx.init(params)
        params, state = st.lax.scan(step, begun, st.random.split(noise, STEPS))[0]
        drawn = st.vmap(lambda key: call(tx.sample(state, params, key), points)[:, 0])
        return drawn(st.random.split(last, 1_000))

    return st.jit(st.vmap(member))(st.random.split(st.random.key(6), size))


def approximations(reference: Any) -> dict[str, Callable[[], Any]]:
    """What gives each approximation's standard deviations at the points."""
    x, y, points = [snp.asarray(reference[f"reg.{n}"]) for n in ("x", "y", "xt")]
    model = at_map(reference)

    def laplace(model: Any = model, **options: Any) -> Any:
        return st.ensemble.fit_laplace(
            model, (x, y), likelihood="gaussian", noise=NOISE, prior_precision=PRIOR, **options
        )

    def linearised(**options: Any) -> Callable[[], Any]:
        return lambda: snp.sqrt(laplace(**options).predict(points).variance[:, 0])

    def sampled() -> Any:
        members = laplace(structure="full").sample(st.random.key(3), 2_000)
        return members(points)[..., 0].std(0)

    def maps(size: int) -> st.Ensemble[Any]:
        def loss(member: Any, x: Any, y: Any) -> Any:
            squares = sum((w**2).sum() for _, w in member.named_parameters())
            return error(member, x, y) + PRIOR * squares / (2 * len(x))

        return trained(loss, size, (x, y))

    def spread(ensemble: st.Ensemble[Any]) -> Any:
        return ensemble(points)[..., 0].std(0)

    def anchored(size: int, noise: float | None) -> Callable[[], Any]:
        def run() -> Any:
            loss, keys = st.ensemble.randomised_map(
                error, PRIOR**-0.5, noise, st.random.key(4), size, data_size=len(x)
            )
            return spread(trained(loss, size, (x, y, snp.arange(len(x))), per_member=keys))

        return run

    def mixture() -> Any:
        whole = laplace(maps(FEW), structure="full").predict(points).mixture()
        return snp.sqrt(whole.variance[:, 0])

    return {
        "full Laplace, linearised": linearised(structure="full"),
        "Kronecker": linearised(structure="kron"),
        "diagonal": linearised(structure="diagonal"),
        "last layer": linearised(structure="full", weights="last"),
        "full Laplace, weights sampled into the network": sampled,
        f"anchored, perturbed targets, {MAPS} members": anchored(MAPS, NOISE),
        f"anchored, perturbed targets, {FEW} members": anchored(FEW, NOISE),
        f"anchored alone, {MAPS}": anchored(MAPS, None),
        f"{MAPS} MAPs": lambda: spread(maps(MAPS)),
        f"mixture of {FEW} full Laplace": mixture,
        "IVON": lambda: ivon(model, x, y, points).std(1).mean(0),
        f"mixture of {FEW} IVON": lambda: ivon(model, x, y, points).reshape(-1, len(points)).std(0),
        "SGHMC": lambda: sghmc(model, x, y, points).reshape(-1, len(points)).std(0),
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.posteriors.nearness")
    parser.add_argument("folder", type=Path, help="with reference.npz and nuts.npz")
    parser.add_argument("--only", nargs="*", help="words of the names")
    options = parser.parse_args(arguments)
    reference = np.load(options.folder / "reference.npz")
    truth = np.load(options.folder / "nuts.npz")["sd"]
    table = Table("method", *REGIONS)
    with st.config(enable_x64=True):
        places = reference["reg.xt"][:, 0]
        for name, run in approximations(reference).items():
            if options.only and not any(word in name for word in options.only):
                continue
            ratios = np.asarray(run()) / truth
            means = [np.exp(np.log(ratios[of(places)]).mean()) for of in REGIONS.values()]
            table.add_row(name, *[f"{m:.2f}" for m in means])
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
