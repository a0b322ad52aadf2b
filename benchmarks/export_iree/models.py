"""What is exported: networks, ensembles, loops, gradients and a training step, with arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import stretto as st
import stretto.numpy as snp
from benchmarks.export.models import MODELS as NETWORKS
from stretto import nn, optim
from stretto.demo import training
from stretto.demo.data import digits


class Case(NamedTuple):
    """A function to export."""

    fun: Callable[..., Any]
    examples: tuple[Any, ...]
    dynamic_axes: Any = None


def _example(name: str, batch: int) -> np.ndarray:
    """Return an input of a network."""
    network, rng = NETWORKS[name], np.random.default_rng(0)
    shape = (batch, *network.shape)
    if network.tokens:
        return rng.integers(0, network.tokens, shape).astype(np.int32)
    return rng.standard_normal(shape).astype(np.float32)


def network(name: str, members: int = 1, axes: Any = None) -> Case:
    """Return a network of the benchmarks, or an ensemble of it."""
    made = [NETWORKS[name].make(nn).eval() for _ in range(members)]
    return Case(st.Ensemble(made) if members > 1 else made[0], (_example(name, 4),), axes)


def classifiers(dtype: str, axes: Any = None) -> Case:
    """Return the demo's ensemble of ten classifiers of digits, trained."""
    data = digits()
    recipe = data.recipe
    plan = training.Plan(10, recipe.draws, 5, recipe.batch, recipe.rates, seed=0)
    trained = training.train(data, plan, lambda done, losses: None)
    ensemble = st.Ensemble(training.probabilities, trained.members.params, stacked=True)

    def predict(images: Any) -> Any:
        members = ensemble(images)
        return {
            "mean": st.ensemble.mean(members),
            "disagreement": st.ensemble.mutual_information(members),
            "members": members,
        }

    return Case(predict, (data.test.images[:7].astype(dtype),), axes)


def lstm_by_scan(axes: Any = None) -> Case:
    """Return a cell in a loop over a sequence."""
    cell = nn.LSTMCell(8, 16)

    def states(xs: Any) -> Any:
        start = snp.zeros((2, 16)), snp.zeros((2, 16))

        def step(carry: Any, x: Any) -> Any:
            carry = cell(x, carry)
            return carry, carry[0]

        return st.lax.scan(step, start, xs)[1]

    xs = np.random.default_rng(0).standard_normal((11, 2, 8)).astype(np.float32)
    return Case(states, (xs,), axes)


def training_step() -> Case:
    """Return a step of Adam on a small network: gradients, moments, new weights."""
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))
    optimizer = optim.adam(0.05)

    def step(net: Any, state: Any, x: Any, y: Any) -> Any:
        loss = lambda net: nn.functional.cross_entropy(net(x), y)
        value, slopes = st.value_and_grad(loss)(net)
        updates, state = optimizer.update(slopes, state, net)
        return {"net": optim.apply_updates(net, updates), "state": state, "loss": value}

    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((6, 8)).astype(np.float32), np.arange(6, dtype=np.int32) % 3
    return Case(step, (net, optimizer.init(net), x, y))


def gradient_of_scan() -> Case:
    """Return the gradient through a loop, which runs it backwards."""
    forward = lstm_by_scan()
    return Case(st.grad(lambda xs: snp.sum(forward.fun(xs) ** 2)), forward.examples)


def counted() -> Case:
    """Return a loop whose steps depend on values, and a branch."""

    def fun(x: Any) -> Any:
        halved = st.lax.while_loop(lambda c: snp.sum(c) > 1, lambda c: c / 2, x)
        return st.lax.cond(x[0] > 0.5, snp.sin, snp.cos, halved)

    return Case(fun, (np.linspace(0.6, 5, 4).astype(np.float32),))


MODELS: dict[str, Callable[[], Case]] = {
    "classifiers": lambda: classifiers("uint8"),
    "classifiers-of-any-number": lambda: classifiers("float32", ({0: "images"},)),
    "classifiers-of-any-number-of-bytes": lambda: classifiers("uint8", ({0: "images"},)),
    "cnn": lambda: network("cnn"),
    "ensemble-of-cnns": lambda: network("cnn", 3),
    "resnet18": lambda: network("resnet18"),
    "transformer": lambda: network("transformer"),
    "ensemble-of-transformers": lambda: network("transformer", 3),
    "lstm": lambda: network("lstm"),
    "lstm-by-scan": lstm_by_scan,
    "lstm-by-scan-of-any-length": lambda: lstm_by_scan(({0: "steps"},)),
    "gradient-of-scan": gradient_of_scan,
    "training-step": training_step,
    "while-and-cond": counted,
    "mlp-of-any-number": lambda: network("mlp", 1, ({0: "rows"},)),
    "ensemble-of-mlps-of-any-number": lambda: network("mlp", 3, ({0: "rows"},)),
    "cnn-of-any-number": lambda: network("cnn", 1, ({0: "images"},)),
    "transformer-of-any-number": lambda: network("transformer", 1, ({0: "texts"},)),
}
