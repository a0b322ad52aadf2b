"""The ensembles of the table: architectures, sizes, inputs, tolerances, and what is left out.

A row is one ensemble, one kind of work and one way of giving batches, such as
``mlp-n10-b64-gradient-own``. `models` holds the mathematics, once for each framework.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from benchmarks.workloads import QUICK_ROUNDS, Goal, Workload

__all__ = [
    "BATCHES",
    "ENSEMBLES",
    "ENSEMBLE_ROWS",
    "FEED_FORWARD",
    "GROWTH",
    "GROWTH_ROWS",
    "GROWTH_SIZES",
    "HEADS",
    "IMAGE",
    "KINK",
    "QUICK_TASKS",
    "SEQUENCE",
    "AdamW",
    "Batch",
    "Task",
    "Ensemble",
    "Kind",
    "all_tasks",
    "inputs",
    "optimizer_state",
]

Floats: TypeAlias = NDArray[np.float32]
Model: TypeAlias = Literal["mlp", "cnn", "cnn-nchw", "transformer"]
"""A CNN with channels last (NHWC, kernels HWIO), or with channels first (NCHW, OIHW)."""
Kind: TypeAlias = Literal["forward", "gradient", "step"]
"""The outputs; the gradients of the mean squared error; one update by AdamW, in place."""
Batch: TypeAlias = Literal["same", "own"]
"""Whether all members of an ensemble see the same batch, or each its own."""

BATCHES: tuple[Batch, ...] = get_args(Batch)

IMAGE = 32
"""Height and width of the images; the channels are the first of a CNN's sizes."""

SEQUENCE, HEADS, FEED_FORWARD = 32, 4, 128
"""Of the transformer block; its width is the only one of its sizes."""

QUICK_TASKS = ("mlp-n10-b64-gradient-own", "cnn-n8-b16-forward-own")
"""The rows that the quick run has."""

KINK = 1e-5
"""No unit of an MLP is this close to ReLU's kink, so that rounding cannot switch it on or off."""


@dataclass(frozen=True)
class AdamW:
    """The optimizer of the training step; the defaults are PyTorch's."""

    learning_rate: float = 1e-3
    decay_1: float = 0.9
    decay_2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 1e-2
    count: int = 10
    """Updates made before the one that is measured."""


@dataclass(frozen=True)
class Ensemble:
    """`members` networks of one architecture, and the batches they see.

    `sizes` are the widths of an MLP's layers, the channels of a CNN's images and convolutions and
    its number of classes, or the width of a transformer block. `left_out` maps contestants, such
    as "jax unroll", to the reason why they do not take part.
    """

    name: str
    title: str
    model: Model
    sizes: tuple[int, ...]
    members: int
    batch_size: int
    kinds: tuple[Kind, ...] = ("forward", "gradient")
    batches: tuple[Batch, ...] = BATCHES
    left_out: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def tasks(self) -> list[Task]:
        """The rows of this ensemble."""
        return [Task(self, kind, batch) for kind in self.kinds for batch in self.batches]

    def flops(self, kind: Kind) -> int:
        """Floating-point operations of the matrix products and convolutions.

        A gradient takes each product again for the weights, and again for the activations before
        it, except for the first layer's.
        """
        products, first = _products(self)
        per_member = products if kind == "forward" else 3 * products - first
        return 2 * self.members * self.batch_size * per_member


@dataclass(frozen=True)
class Task:
    """One row: an ensemble, what is computed, and on which batches."""

    ensemble: Ensemble
    kind: Kind
    batch: Batch

    @property
    def name(self) -> str:
        """The name of the row."""
        return f"{self.ensemble.name}-{self.kind}-{self.batch}"

    def row(self) -> Workload:
        """The row, with its goal and tolerances."""
        rtol, atol = _tolerance(self)
        what = {"forward": "forward", "gradient": "gradient", "step": "AdamW step"}[self.kind]
        seen = {"same": "same batch", "own": "own batches"}[self.batch]
        return Workload(
            self.name,
            f"{self.ensemble.title}: {what}, {seen}",
            "us",
            (Goal("fastest", 1.05),),
            rtol=rtol,
            atol=atol,
            flops=self.ensemble.flops(self.kind),
            left_out=self.ensemble.left_out,
            shows_memory=True,
            quick_rounds=QUICK_ROUNDS if self.name in QUICK_TASKS else 0,
        )


def _products(ensemble: Ensemble) -> tuple[int, int]:
    """Multiplications for one sample of one member: all, and those of the first layer."""
    sizes = ensemble.sizes
    match ensemble.model:
        case "mlp":
            layers = [i * o for i, o in pairwise(sizes)]
        case "cnn" | "cnn-nchw":
            layers = [9 * IMAGE**2 * i * o for i, o in pairwise(sizes[:-1])]
            layers.append(sizes[-2] * sizes[-1])
        case "transformer":
            (width,) = sizes
            layers = [
                SEQUENCE * width * 3 * width,
                2 * SEQUENCE**2 * width,  # scores, and their products with the values
                SEQUENCE * width * width,
                2 * SEQUENCE * width * FEED_FORWARD,
            ]
    return sum(layers), layers[0]


def _tolerance(task: Task) -> tuple[float, float]:
    """How far two right results may lie apart: relatively, and absolutely.

    Forward: float32 sums of up to 784 products of order 1 differ by some 1e-6 between orders of
    summation, which the layers behind amplify a few times. Gradients: the same error, times the
    slope of the loss, which is the mean over a batch and at least one output. A step divides by
    the root of a second moment of 1e-4, which turns an error of the gradient into a tenth of it,
    times the learning rate.
    """
    if task.kind == "forward":
        return 1e-4, 5e-5
    if task.ensemble.model == "mlp":
        return 1e-4, 2e-4 / task.ensemble.batch_size
    # Units at the kink cannot be avoided among so many: one that is on here and off there moves
    # a gradient by its slope, one over the numbers of samples and positions, times its input.
    return 1e-3, 1e-4


@lru_cache(maxsize=1)
def inputs(ensemble: Ensemble, batch: Batch) -> tuple[Any, Floats, Floats]:
    """Parameters with the members on axis 0, inputs, and targets of the outputs' shape.

    Inputs and targets have the member axis only where `batch` is "own". Parameters are a list of
    ``(weights, bias)`` for each layer, or a dict by PyTorch's names for the transformer; matrices
    are ``[in, out]``.
    """
    random = np.random.default_rng(9)

    def normal(*shape: int, scale: float = 1.0) -> Floats:
        return np.float32(scale) * random.standard_normal(shape, np.float32)

    params = _MAKERS[ensemble.model](ensemble, normal)
    shape, out = _shapes(ensemble)
    lead = (ensemble.members,) if batch == "own" else ()
    if ensemble.model == "mlp":
        groups = [[m] for m in range(ensemble.members)] if lead else [range(ensemble.members)]
        x = np.stack([_clear_of_kinks(params, group, shape, normal) for group in groups])
        x = x if lead else x[0]
    else:
        x = normal(*lead, *shape)
    if ensemble.model == "cnn-nchw":
        x = np.ascontiguousarray(np.moveaxis(x, -1, -3))
    return params, x, normal(*lead, *out)


def optimizer_state(params: Sequence[tuple[Floats, Floats]]) -> tuple[Any, Any]:
    """First and second moments, as after some steps: no update divides by something near zero."""
    random = np.random.default_rng(10)

    def like(leaf: Floats) -> Floats:
        return np.float32(1e-2) * random.standard_normal(leaf.shape, np.float32)

    first = [(like(weights), like(bias)) for weights, bias in params]
    second = [(like(w) ** 2 + np.float32(1e-4), like(b) ** 2 + np.float32(1e-4)) for w, b in params]
    return first, second


def _shapes(ensemble: Ensemble) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of a batch and of the outputs."""
    count, sizes = ensemble.batch_size, ensemble.sizes
    match ensemble.model:
        case "mlp":
            return (count, sizes[0]), (count, sizes[-1])
        case "cnn" | "cnn-nchw":
            return (count, IMAGE, IMAGE, sizes[0]), (count, sizes[-1])
        case "transformer":
            return (count, SEQUENCE, sizes[0]), (count, SEQUENCE, sizes[0])


Normal: TypeAlias = Callable[..., Floats]


def _mlp(ensemble: Ensemble, normal: Normal) -> list[tuple[Floats, Floats]]:
    members = ensemble.members
    return [
        (normal(members, i, o, scale=(2 / i) ** 0.5), normal(members, o, scale=0.1))
        for i, o in pairwise(ensemble.sizes)
    ]


def _cnn(ensemble: Ensemble, normal: Normal) -> list[tuple[Floats, Floats]]:
    members, (*channels, classes) = ensemble.members, ensemble.sizes
    last = channels[-1]
    convolutions = [
        (normal(members, 3, 3, i, o, scale=(2 / (9 * i)) ** 0.5), normal(members, o, scale=0.1))
        for i, o in pairwise(channels)
    ]
    dense = normal(members, last, classes, scale=last**-0.5), normal(members, classes, scale=0.1)
    return [*convolutions, dense]


def _cnn_nchw(ensemble: Ensemble, normal: Normal) -> list[tuple[Floats, Floats]]:
    *convolutions, dense = _cnn(ensemble, normal)
    turned = [(np.ascontiguousarray(k.transpose(0, 4, 3, 1, 2)), b) for k, b in convolutions]
    return [*turned, dense]


def _transformer(ensemble: Ensemble, normal: Normal) -> dict[str, Floats]:
    (width,) = ensemble.sizes
    layers = {
        "in_proj": (width, 3 * width),
        "out_proj": (width, width),
        "linear1": (width, FEED_FORWARD),
        "linear2": (FEED_FORWARD, width),
    }
    params = {}
    for name, (i, o) in layers.items():
        params[f"{name}_weight"] = normal(ensemble.members, i, o, scale=i**-0.5)
        params[f"{name}_bias"] = normal(ensemble.members, o, scale=0.1)
    for name in ("norm1", "norm2"):
        params[f"{name}_weight"] = 1 + normal(ensemble.members, width, scale=0.1)
        params[f"{name}_bias"] = normal(ensemble.members, width, scale=0.1)
    return params


_MAKERS: dict[Model, Callable[[Ensemble, Normal], Any]] = {
    "mlp": _mlp,
    "cnn": _cnn,
    "cnn-nchw": _cnn_nchw,
    "transformer": _transformer,
}


def _clear_of_kinks(
    params: Sequence[tuple[Floats, Floats]],
    members: Iterable[int],
    shape: tuple[int, ...],
    normal: Normal,
) -> Floats:
    """A batch for which no hidden unit of the `members` is within `KINK` of its kink."""
    x = normal(*shape)
    pending = np.arange(shape[0])
    while pending.size:
        near = np.zeros(pending.size, bool)
        for member in members:
            hidden = x[pending].astype(np.float64)
            for weights, bias in params[:-1]:
                hidden = hidden @ weights[member] + bias[member]
                near |= (np.abs(hidden) < KINK).any(axis=1)
                hidden = np.maximum(hidden, 0)
        pending = pending[near]
        x[pending] = normal(pending.size, *shape[1:])
    return x


_COMPILES_FOR_MINUTES = "XLA takes minutes to compile so many members written out"
_ONE_OF_MANY = "TorchInductor would compile for most of the run, once for each number of members"

_MLP = Ensemble("mlp-n10-b64", "MLP 784-128-128-10, N=10, B=64", "mlp", (784, 128, 128, 10), 10, 64)
_SMALL = Ensemble(
    "small-n1000-b64",
    "MLP 8-32-32-1, N=1000, B=64",
    "mlp",
    (8, 32, 32, 1),
    1000,
    64,
    left_out={"jax unroll": _COMPILES_FOR_MINUTES},
)
_CNN = Ensemble("cnn-n8-b16", "CNN 3→16→32, 32×32, N=8, B=16", "cnn", (3, 16, 32, 10), 8, 16)

ENSEMBLES: list[Ensemble] = [
    _MLP,
    replace(_MLP, name="mlp-n10-b1", title="MLP 784-128-128-10, N=10, B=1", batch_size=1),
    replace(_MLP, name="mlp-n100-b64", title="MLP 784-128-128-10, N=100, B=64", members=100),
    _SMALL,
    Ensemble("wide-n32-b256", "MLP 64-256-256-10, N=32, B=256", "mlp", (64, 256, 256, 10), 32, 256),
    _CNN,
    replace(
        _CNN,
        name="cnn-nchw-n8-b16",
        title="CNN 3→16→32, channels first, N=8, B=16",
        model="cnn-nchw",
        batches=("own",),
    ),
    Ensemble("transformer-n8-b8", "transformer block, N=8, B=8", "transformer", (64,), 8, 8),
    replace(_MLP, name="train-n10-b64", kinds=("step",), batches=("own",)),
]

GROWTH_SIZES = (1, 3, 10, 30, 100, 300, 1000)


def _grown(base: Ensemble, label: str, members: int) -> Ensemble:
    """A network of the growth, each member with its own batch.

    The gradients of 1,000 large networks are 0.5 GB, and every contestant's would have to be
    compared: those end at 100 members.
    """
    left_out = {"torch compile": _ONE_OF_MANY}
    if members > 30:
        left_out["jax unroll"] = _COMPILES_FOR_MINUTES
    return replace(
        base,
        name=f"growth-{label}-n{members}",
        title=f"{base.title.partition(',')[0]}, N={members}, B={base.batch_size}",
        members=members,
        kinds=("forward",) if base is _MLP and members > 100 else base.kinds,
        batches=("own",),
        left_out=left_out,
    )


GROWTH: list[Ensemble] = [
    _grown(base, label, members)
    for base, label in ((_SMALL, "small"), (_MLP, "mlp"))
    for members in GROWTH_SIZES
]
"""Two networks, from 1 member to 1,000."""


def all_tasks() -> list[Task]:
    """The rows of the table and of the growth, which every worker can be asked for."""
    return [task for ensemble in [*ENSEMBLES, *GROWTH] for task in ensemble.tasks]


ENSEMBLE_ROWS: list[Workload] = [task.row() for one in ENSEMBLES for task in one.tasks]
GROWTH_ROWS: list[Workload] = [task.row() for one in GROWTH for task in one.tasks]
