"""The rows in Stretto."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import stretto as st
import stretto.numpy as snp
from benchmarks.posteriors.table import (
    CHAIN,
    FEW,
    MEMBERS,
    POINTS,
    cnn_weights,
    curve,
    images,
    labels,
    mlp_weights,
    start,
    summary,
    vectors,
)
from benchmarks.worker import Case, Registry, serve
from stretto import nn

cases = Registry()


def with_weights(module: nn.Module, weights: Sequence[tuple[Any, Any]]) -> nn.Module:
    """The module with these weights and biases, layer by layer."""
    names = [name for name, _ in module.named_parameters()]
    arrays = [snp.asarray(x) for pair in weights for x in pair]
    module.load_state_dict(dict(zip(names, arrays, strict=True)))
    return module


def mlp(member: int = 0) -> nn.Module:
    """The MLP."""
    made = nn.Sequential(
        nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
    )
    return with_weights(made, mlp_weights(member))


def cnn() -> nn.Module:
    """The CNN."""
    made = nn.Sequential(
        nn.Conv2d(1, 16, 3, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(), nn.Flatten(),
        nn.Linear(32 * 6 * 6, 10),
    )  # fmt: skip
    return with_weights(made, cnn_weights())


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], NDArray[np.float32]], int]] = {
    "mlp": (mlp, vectors, 1_000),
    "cnn": (cnn, images, 256),
}


def diagonals(kron: Any) -> list[NDArray[Any]]:
    """The diagonals of each weight's block."""
    found = kron.diagonal().items()
    return [np.asarray(x).reshape(len(x), -1) for name, x in found if name.endswith("weight")]


ready = st.block_until_ready

for name, (model_of, inputs_of, count) in MODELS.items():

    @cases.add(f"kron-fit-{name}")
    def kron_fit(model_of: Any = model_of, inputs_of: Any = inputs_of, count: int = count) -> Case:
        """The Kronecker factors."""
        model, x = model_of(), snp.asarray(inputs_of(count))
        return Case(lambda: ready(st.curvature.ggn(model, x).kron()), diagonals)

    @cases.add(f"kron-predictive-{name}")
    def kron_predictive(
        model_of: Any = model_of, inputs_of: Any = inputs_of, count: int = count
    ) -> Case:
        """The covariances of predictions."""
        data = snp.asarray(inputs_of(count)), snp.asarray(labels(count))
        laplace = st.ensemble.fit_laplace(model_of(), data)
        points = snp.asarray(inputs_of(POINTS))
        return Case(lambda: ready(laplace.predict(points).covariance))


@cases.add("kron-fit-members")
def kron_members() -> Case:
    """The factors of ten, as one program."""
    ensemble, x = st.Ensemble([mlp(k) for k in range(MEMBERS)]), snp.asarray(vectors(1_000))
    fit = st.jit(lambda e, x: e.vmap(lambda model: st.curvature.ggn(model, x).kron())())

    def arrays(kron: Any) -> list[NDArray[Any]]:
        found = st.vmap(lambda k: k.diagonal())(kron).items()
        weights = [np.asarray(x) for name, x in found if name.endswith("weight")]
        return [x.reshape(*x.shape[:2], -1) for x in weights]

    return Case(lambda: ready(fit(ensemble, x)), arrays)


@cases.add("ggn-product-mlp")
def ggn_product() -> Case:
    """A product with the GGN."""
    curvature = st.curvature.ggn(mlp(), snp.asarray(vectors(1_000)))
    ones = snp.ones(curvature.size) / 100
    return Case(lambda: ready(curvature @ ones))


@cases.add("diagonal-fit-mlp")
def diagonal_fit() -> Case:
    """The diagonal."""
    curvature = st.curvature.ggn(mlp(), snp.asarray(vectors(FEW)))
    return Case(
        lambda: ready(curvature.diagonal()),
        lambda found: [np.concatenate([np.ravel(x) for x in found.values()])],
    )


@cases.add("last-layer-fit-mlp")
def last_layer_fit() -> Case:
    """The last layer's whole GGN."""
    curvature = st.curvature.ggn(mlp(), snp.asarray(vectors(1_000)), weights="last")
    return Case(lambda: ready(curvature.dense()))


@cases.add("sghmc")
def sghmc() -> Case:
    """All chains, in one program."""
    x, y = map(snp.asarray, curve())

    def outputs(p: Any, x: Any) -> Any:
        return snp.tanh(x @ p["w"] + p["b"]) @ p["v"] + p["c"]

    def loss(p: Any) -> Any:
        return 0.5 * snp.mean((y - outputs(p, x)) ** 2) / CHAIN.noise**2

    def chain(params: Any, key: Any) -> Any:
        sampler = st.optim.sghmc(
            CHAIN.rate, data_size=CHAIN.examples, prior_precision=1.0, friction=CHAIN.friction,
            key=key,
        )  # fmt: skip

        def step(carry: Any, _: None) -> Any:
            params, state = carry
            updates, state = sampler.update(st.grad(loss)(params), state, params)
            params = st.optim.apply_updates(params, updates)
            return (params, state), outputs(params, x[::8])[:, 0]

        begun = params, sampler.init(params)
        return st.lax.scan(step, begun, None, length=CHAIN.steps)[1]

    run = st.jit(st.vmap(chain))
    starts = st.tree.map(snp.asarray, start())
    keys = st.random.split(st.random.key(0), CHAIN.chains)
    return Case(lambda: ready(run(starts, keys)), summary)


if __name__ == "__main__":
    serve("stretto", ["stretto", "jaxlib", "numpy"], "import stretto", cases)
