"""The rows by laplace-torch 0.3 and curvlinops, in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from curvlinops import GGNLinearOperator, KFACLinearOperator
from laplace import Laplace
from numpy.typing import NDArray
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.posteriors.table import (
    FEW,
    MEMBERS,
    POINTS,
    cnn_weights,
    images,
    labels,
    mlp_weights,
    vectors,
)
from benchmarks.worker import Case, Registry, serve

cases = Registry()
LOSS = nn.CrossEntropyLoss(reduction="sum")
BATCH = 256


def with_weights(module: nn.Module, weights: Sequence[tuple[Any, Any]]) -> nn.Module:
    """The module with these weights and biases, layer by layer."""
    layers = [m for m in module if isinstance(m, (nn.Linear, nn.Conv2d))]
    for layer, (w, b) in zip(layers, weights, strict=True):
        layer.weight.data, layer.bias.data = torch.from_numpy(w), torch.from_numpy(b)
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


def loader(inputs: NDArray[np.float32]) -> DataLoader[Any]:
    """The examples in batches."""
    data = TensorDataset(torch.from_numpy(inputs), torch.from_numpy(labels(len(inputs))))
    return DataLoader(data, batch_size=BATCH)


def factors(model: nn.Module, data: Any) -> dict[str, tuple[Any, Any]]:
    """The factors of each layer by curvlinops."""
    operator = KFACLinearOperator(
        model, LOSS, list(model.parameters()), data, fisher_type="type-2", check_deterministic=False
    )
    operator.compute_kronecker_factors()
    outputs, inputs = operator._gradient_covariances, operator._input_covariances
    return {name: (outputs[name], inputs[name]) for name in sorted(outputs)}


def diagonals(found: dict[str, tuple[Any, Any]]) -> list[NDArray[Any]]:
    """The diagonals of each weight's block."""
    return [torch.outer(b.diagonal(), a.diagonal()).numpy() for b, a in found.values()]


def of_laplace(fitted: Any) -> list[NDArray[Any]]:
    """The same of laplace-torch's factors, which are those of a weight and then of a bias."""
    pairs = [f for f in fitted.H_facs.kfacs if len(f) == 2]
    return [torch.outer(b.diagonal(), a.diagonal()).detach().numpy() for b, a in pairs]


def fitted(model: nn.Module, data: Any, structure: str = "kron", subset: str = "all") -> Any:
    """laplace-torch's fit."""
    made = Laplace(
        model, "classification", subset_of_weights=subset, hessian_structure=structure,
        prior_precision=1.0,
    )  # fmt: skip
    made.fit(data)
    return made


for name, (model_of, inputs_of, count) in MODELS.items():

    @cases.add(f"kron-fit-{name}", "curvlinops")
    def kron_fit(model_of: Any = model_of, inputs_of: Any = inputs_of, count: int = count) -> Case:
        """The factors by curvlinops."""
        model, inputs = model_of(), torch.from_numpy(inputs_of(count))
        targets = torch.from_numpy(labels(count))
        data = list(zip(inputs.split(BATCH), targets.split(BATCH), strict=True))
        return Case(lambda: factors(model, data), diagonals)

    @cases.add(f"kron-fit-{name}")
    def kron_laplace(
        model_of: Any = model_of, inputs_of: Any = inputs_of, count: int = count
    ) -> Case:
        """The factors by laplace-torch, as its users fit them."""
        model, data = model_of(), loader(inputs_of(count))
        return Case(lambda: fitted(model, data), of_laplace)

    @cases.add(f"kron-predictive-{name}")
    def kron_predictive(
        model_of: Any = model_of, inputs_of: Any = inputs_of, count: int = count
    ) -> Case:
        """The covariances of predictions."""
        made = fitted(model_of(), loader(inputs_of(count)))
        points = torch.from_numpy(inputs_of(POINTS))
        return Case(
            lambda: made._glm_predictive_distribution(points)[1], lambda v: [v.detach().numpy()]
        )


@cases.add("kron-fit-members", "loop")
def kron_members() -> Case:
    """The factors of each of ten, by curvlinops, one after the other."""
    models = [mlp(k) for k in range(MEMBERS)]
    inputs, targets = torch.from_numpy(vectors(1_000)), torch.from_numpy(labels(1_000))
    data = list(zip(inputs.split(BATCH), targets.split(BATCH), strict=True))

    def arrays(found: list[dict[str, tuple[Any, Any]]]) -> list[NDArray[Any]]:
        return [np.stack(each) for each in zip(*map(diagonals, found), strict=True)]

    return Case(lambda: [factors(model, data) for model in models], arrays)


@cases.add("ggn-product-mlp")
def ggn_product() -> Case:
    """A product with the GGN by curvlinops."""
    model = mlp()
    inputs, targets = torch.from_numpy(vectors(1_000)), torch.from_numpy(labels(1_000))
    params = list(model.parameters())
    operator = GGNLinearOperator(model, LOSS, params, [(inputs, targets)],
                                 check_deterministic=False)  # fmt: skip
    ones = torch.ones(sum(p.numel() for p in params)) / 100
    return Case(lambda: operator @ ones, lambda v: [v.detach().numpy()])


@cases.add("diagonal-fit-mlp")
def diagonal_fit() -> Case:
    """The diagonal by laplace-torch, which is BackPACK's."""
    model, data = mlp(), loader(vectors(FEW))
    return Case(lambda: fitted(model, data, "diag"), lambda f: [f.H.detach().numpy()])


@cases.add("last-layer-fit-mlp")
def last_layer_fit() -> Case:
    """The last layer's whole GGN by laplace-torch."""
    model, data = mlp(), loader(vectors(1_000))
    return Case(
        partial(fitted, model, data, "full", "last_layer"), lambda f: [f.H.detach().numpy()]
    )


if __name__ == "__main__":
    packages = ["torch", "laplace-torch", "curvlinops-for-pytorch", "numpy"]
    serve("torch", packages, "import torch", cases, threads=torch.get_num_threads())
