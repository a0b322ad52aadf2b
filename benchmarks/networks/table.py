"""The networks: sizes, inputs, first parameters, and the rows that measure them.

Every framework takes its numbers from here. A parameter is drawn by its name and by its shape in
PyTorch's layout, so that all sides have the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from benchmarks.networks.sizes import EFFICIENTNET_B0, MOBILENET_V3_SMALL
from benchmarks.workloads import Exact, Goal, Workload

__all__ = [
    "FULL",
    "MEMBERS",
    "NETWORKS",
    "ROWS",
    "TINY",
    "Adam",
    "Kind",
    "Network",
    "Stage",
    "Task",
    "all_tasks",
    "cache",
    "digest",
    "draw",
    "inputs",
    "sizes",
    "summary",
]

Array: TypeAlias = NDArray[Any]
Kind: TypeAlias = Literal["step", "forward", "decode"]
"""Loss, gradient and Adam; the outputs, in train mode; one token, with a cache."""
Stage: TypeAlias = Literal["trace", "lower", "compile", "first", "second"]
"""Parts of the first time of a step, and the whole of it, in a first and in a second process."""

MEMBERS = 5

KINKS = 2e-2
"""The tolerance where there are ReLU and maxima: near a kink rounding decides whether a unit is on.

The gradients of a U-Net differ by up to 6e-3 between any two of the frameworks, by 5e-4 mostly.
"""
EXACTLY = 1e-9
"""The tolerance in float64: the frameworks differ by up to 1e-11, of updates near 0 the most."""
NEGLIGIBLE = 1e-3
"""Of the largest gradient in a network: what rounding may leave of one that is 0."""

FEW, MANY = 16, 1024
"""Elements of a parameter that are compared, one by one or by their norm."""

QUICK_STAGES = "tiny-graph-n5-step", "tiny-gpt2-n1-decode"
"""The tasks whose first time is measured in the quick run."""


@dataclass(frozen=True)
class Adam:
    """The optimizer of a training step; moments begin as if 10 updates had been made.

    The first update of a fresh Adam would be the sign of the gradient, which rounding decides where
    that is near zero. This second moment keeps an update below some 0.15 of the rate for each unit
    of the gradient divided by its square root.
    """

    learning_rate: float = 1e-3
    decay_1: float = 0.9
    decay_2: float = 0.999
    epsilon: float = 1e-8
    count: int = 10
    second: float = 1e-8

    def update(self, first: Array) -> Array:
        """The first update in units of the rate, by the first moments after it, in float64."""
        first = first.astype(np.float64)
        slope = first / (1 - self.decay_1)
        second = self.decay_2 * self.second + (1 - self.decay_2) * slope * slope
        scale_1, scale_2 = (
            1 / (1 - decay ** (self.count + 1)) for decay in (self.decay_1, self.decay_2)
        )
        return -first * scale_1 / (np.sqrt(second * scale_2) + self.epsilon)


@dataclass(frozen=True)
class Network:
    """One architecture at one size.

    `model` names the function or class in each framework, `settings` are its arguments. `inputs`
    says what it takes: its first entry is the kind, then come sizes without the batch. `published`
    is the number of parameters in the publication or its reference implementation. `tolerance` is
    that of numbers in the units of `summary` and `digest`. `left_out` maps contestants of the
    ensemble to the reason why they do not take part.
    """

    name: str
    title: str
    model: str
    settings: Mapping[str, Any]
    inputs: tuple[Any, ...]
    batch: int
    kinds: tuple[Kind, ...] = ("step", "forward")
    members: tuple[int, ...] = (1, MEMBERS)
    published: int | None = None
    tolerance: float = 2e-3
    """What twelve layers make of rounding is some 1e-4."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    tiny: bool = False
    kinks: bool = False
    """Whether rounding may turn so many units on or off that single numbers of a step's gradients
    say nothing in float32: `rounding` compares them with those in float64."""
    dtype: Literal["float32", "float64"] = "float32"
    """Of inputs and parameters."""

    @property
    def tasks(self) -> list[Task]:
        """What is timed."""
        return [Task(self, kind, members) for members in self.members for kind in self.kinds]


@dataclass(frozen=True)
class Task:
    """A network, what is computed, and how many members there are."""

    network: Network
    kind: Kind
    members: int

    @property
    def name(self) -> str:
        """The name of the row of its time."""
        return f"{self.network.name}-n{self.members}-{self.kind}"

    @property
    def exact(self) -> Task | None:
        """The same in float64, which is compared and never timed, where rounding decides much."""
        if self.kind != "step" or not self.network.kinks:
            return None
        return replace(self, network=replace(self.network, dtype="float64"))

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The rows of its first time."""
        return () if self.kind == "forward" else ("trace", "lower", "compile", "first", "second")

    @property
    def row(self) -> Workload:
        """The row of its time, with the memory of a call."""
        left_out = dict(self.network.left_out) if self.members > 1 else {}
        return Workload(
            self.name,
            f"{self._title}: {self.kind}",
            "ms",
            (Goal("fastest", 1.1),),
            # Arrays that are compared are relative to their largest element (`digest`).
            rtol=self.network.tolerance,
            atol=self.network.tolerance,
            left_out=left_out,
            exact=Exact(self.name, EXACTLY, (2, 3)) if self.exact else None,
            shows_memory=True,
            quick_rounds=3 if self.network.tiny and self.kind != "forward" else 0,
        )

    def stage_row(self, stage: Stage) -> Workload:
        """The row of a part of its first time."""
        doing = {
            "trace": "trace",
            "lower": "lower",
            "compile": "compile",
            "first": "call to first result, nothing on disk",
            "second": "the same, second process",
        }[stage]
        goals = {"first": (Goal("jax", 0.5),), "second": (Goal("jax", 0.15),)}
        row = replace(
            self.row,
            name=f"{self.name}-{stage}",
            title=f"{self._title}, {self.kind}: {doing}",
            goals=goals.get(stage, (Goal("jax", 1.0),)),
            left_out={},
            # Of what is traced and lowered, sizes are compared.
            exact=None if stage in ("trace", "lower") else self.row.exact,
            shows_memory=False,
            warm_up=False,
            quick_rounds=2 if self.name in QUICK_STAGES else 0,
        )
        if stage in ("first", "second"):
            program = "benchmarks.networks.start", "{framework}", self.name
            return replace(row, timed_by=f"{stage} start", program=program)
        return row

    @property
    def rows(self) -> list[Workload]:
        """All its rows."""
        return [self.row, *map(self.stage_row, self.stages)]

    @property
    def _title(self) -> str:
        return self.network.title + (f", N={self.members}" if self.members > 1 else "")


_BLOCK = np.random.default_rng(11).standard_normal(2**20 + 7, np.float32)
"""Numbers for all parameters: drawing 10⁸ of them would take longer than compiling."""


def draw(name: str, shape: tuple[int, ...], member: int) -> Array:
    """A parameter's first value, float32: `shape` is PyTorch's.

    Weights are divided by the root of their inputs' number; scales are near 1, biases near 0.
    """
    start = crc32(f"{member}/{name}".encode()) % _BLOCK.size
    numbers = np.resize(np.roll(_BLOCK, -start), shape)
    if len(shape) > 1:
        return numbers * np.float32(np.prod(shape[1:]) ** -0.5)
    numbers *= np.float32(0.1)
    return numbers if "bias" in name else 1 + numbers


def inputs(network: Network, member: int) -> tuple[tuple[Array, ...], Array]:
    """A member's own batch: what its model takes, and the target of its loss.

    Images are channels first; targets are classes, but for the regressions. In float64 the numbers
    are those of float32.
    """
    random = np.random.default_rng((13, member))
    batch, (kind, *sizes) = network.batch, network.inputs

    def normal(*shape: int) -> Array:
        return random.standard_normal(shape, np.float32).astype(network.dtype)

    def integers(high: int, *shape: int) -> Array:
        return random.integers(0, high, shape, np.int32)

    match kind:
        case "images":
            size, classes = sizes
            return (normal(batch, 3, size, size),), integers(classes, batch)
        case "pixels":
            size, classes = sizes
            return (normal(batch, 3, size, size),), integers(classes, batch, size, size)
        case "tokens":
            length, vocabulary = sizes
            tokens = integers(vocabulary, batch, length + 1)
            return (tokens[:, :-1],), tokens[:, 1:]
        case "sentences":
            length, vocabulary, width = sizes
            return (integers(vocabulary, batch, length),), normal(batch, length, width)
        case "graph":
            nodes, edges, width, classes = sizes
            ends = integers(nodes, edges), integers(nodes, edges)
            return (normal(nodes, width), *ends), integers(classes, nodes)
        case "vectors":
            (width,) = sizes
            return (normal(batch, width),), normal(batch, width)
    raise ValueError(f"expected a kind of inputs, got {kind!r}")


def summary(
    losses: Array,
    before: Mapping[str, Array],
    after: Mapping[str, Array],
    first: Mapping[str, Array],
    kinks: bool = False,
) -> list[Array]:
    """What is compared of a step: losses, and for each member and parameter some numbers.

    These are the logarithm of the gradient's root mean square, elements of the gradient in units
    of the largest, and of the update in units of the rate. `before`, `after` and `first`, Adam's
    first moments, are by PyTorch's names, in its shapes, with the members along axis 0. Gradients
    that are 0 but for rounding, as those of a shift before a batch normalization, count as 0.

    With `kinks`, elements are more, those of gradients in units of the root mean square, and they
    are the rows of matrices, one for each parameter, whose norms are root mean squares: `rounding`
    compares them. Last come the updates less those that Adam makes of the first moments.
    """
    norms, elements, updates, remainders = [], [], [], []
    count = MANY if kinks else FEW
    for member in range(len(losses)):
        moments = {name: first[name][member] for name in sorted(first)}
        largest = {name: np.abs(moment).max() for name, moment in moments.items()}
        least = NEGLIGIBLE * max(largest.values())
        for name, moment in moments.items():
            norm = np.linalg.norm(moment.reshape(-1)) / moment.size**0.5
            norms.append(np.log(norm + least))
            unit = norm if kinks else largest[name]
            elements.append(sample(moment, count) / (unit + least))
            change = sample(after[name][member], count) - sample(before[name][member], count)
            updates.append(change / Adam().learning_rate)
            remainders.append(updates[-1] - Adam().update(sample(moment, count)))
    join = _rows if kinks else np.concatenate
    parts = [losses, norms, join(elements), join(updates)]
    parts += [np.concatenate(remainders)] if kinks else []
    return [np.asarray(part, losses.dtype) for part in parts]


def _rows(arrays: list[Array]) -> Array:
    """Vectors by the root of their size as the rows of a matrix, zeros behind the shorter ones."""
    matrix = np.zeros((len(arrays), max(array.size for array in arrays)), arrays[0].dtype)
    for row, array in zip(matrix, arrays, strict=True):
        row[: array.size] = array / array.size**0.5
    return matrix


def sample(array: Array, count: int) -> Array:
    """`count` elements at even distances, or all if there are fewer."""
    flat = array.reshape(-1)
    return flat[np.linspace(0, flat.size - 1, min(count, flat.size)).astype(int)]


def digest(outputs: Array) -> list[Array]:
    """What is compared of outputs with the members along axis 0, in units of the largest."""
    return [np.stack([sample(one, 4096) / np.abs(one).max() for one in outputs])]


def sizes(leaves: Iterable[Any]) -> list[Array]:
    """How many elements the results of a program have: what is compared of one that is not run."""
    return [np.array(sorted(int(np.prod(leaf.shape)) for leaf in leaves))]


def cache(network: Network, member: int) -> tuple[Array, Array, int]:
    """Where decoding begins: tokens, keys and values of those before, and a position.

    The cache is (layers, 2, B, heads, T, width of a head), twice as long as the sequences.
    """
    settings, length = network.settings, network.inputs[1]
    heads, width = settings["heads"], settings["width"]
    shape = settings["layers"], 2, network.batch, heads, 2 * length, width // heads
    filled = draw("cache", shape, member) * np.float32(np.prod(shape[1:]) ** 0.5)
    (tokens,), _ = inputs(network, member)
    return tokens[:, 0], filled, length


def _resnet(name: str, title: str, blocks: tuple[int, ...], batch: int, stem: str) -> Network:
    imagenet = stem == "imagenet"
    size, classes = (224, 1000) if imagenet else (32, 10)
    settings = {"blocks": blocks, "deep": len(blocks) == 4 and sum(blocks) > 8, "width": 64}
    settings |= {"imagenet": imagenet, "classes": classes}
    counts = {"resnet18-224": 11_689_512, "resnet50-224": 25_557_032}
    return Network(
        name,
        f"{title}, {size}×{size}, B={batch}",
        "resnet",
        settings,
        ("images", size, classes),
        batch,
        published=counts.get(name),
        tolerance=KINKS,
        kinks=True,
    )


_GPT2 = {"vocabulary": 50257, "positions": 1024, "width": 768, "heads": 12}
_BERT = {"vocabulary": 30522, "positions": 512, "width": 768, "heads": 12, "layers": 12}
_ODE = {"width": 32, "hidden": 64, "steps": 40}
_LARGE = {"torch compile": "five models and their moments for one more contestant: memory"}

NETWORKS: list[Network] = [
    _resnet("resnet18-32", "ResNet-18", (2, 2, 2, 2), 16, "cifar"),
    _resnet("resnet18-224", "ResNet-18", (2, 2, 2, 2), 4, "imagenet"),
    _resnet("resnet50-32", "ResNet-50", (3, 4, 6, 3), 8, "cifar"),
    _resnet("resnet50-224", "ResNet-50", (3, 4, 6, 3), 2, "imagenet"),
    Network(
        "mobilenet-v3-small",
        "MobileNet-v3-small, 224×224, B=4",
        "inverted",
        MOBILENET_V3_SMALL,
        ("images", 224, 1000),
        4,
        published=2_542_856,
        tolerance=KINKS,
        kinks=True,
    ),
    Network(
        "efficientnet-b0",
        "EfficientNet-B0, 224×224, B=2",
        "inverted",
        EFFICIENTNET_B0,
        ("images", 224, 1000),
        2,
        published=5_288_548,
    ),
    Network(
        "convnext-t",
        "ConvNeXt-T, 224×224, B=1",
        "convnext",
        {"depths": (3, 3, 9, 3), "widths": (96, 192, 384, 768), "classes": 1000},
        ("images", 224, 1000),
        1,
        published=28_589_128,
        left_out=_LARGE,
    ),
    Network(
        "vit-s",
        "ViT-S/16, 224×224, B=2",
        "vit",
        {"size": 224, "patch": 16, "width": 384, "layers": 12, "heads": 6, "classes": 1000},
        ("images", 224, 1000),
        2,
        published=22_050_664,
        left_out=_LARGE,
    ),
    Network(
        "unet",
        "U-Net 32 to 256, 64×64, B=4",
        "unet",
        {"widths": (32, 64, 128, 256), "classes": 8},
        ("pixels", 64, 8),
        4,
        tolerance=KINKS,
    ),
    Network(
        "gpt2",
        "GPT-2 small, B=1, T=128",
        "gpt2",
        {**_GPT2, "layers": 12},
        ("tokens", 128, 50257),
        1,
        ("step", "forward", "decode"),
        members=(1,),  # five are 10 GB with moments and gradients, for each contestant
        published=124_439_808,
    ),
    Network(
        "gpt2-l4",
        "GPT-2 small's first 4 layers, B=1, T=128",
        "gpt2",
        {**_GPT2, "layers": 4},
        ("tokens", 128, 50257),
        1,
        ("step", "forward", "decode"),
        members=(1,),
    ),
    Network(
        "gpt2-l4-v4k",
        "GPT-2 small's first 4 layers, 4,096 tokens, B=1, T=128",
        "gpt2",
        {**_GPT2, "vocabulary": 4096, "layers": 4},
        ("tokens", 128, 4096),
        1,
        ("step", "forward", "decode"),
        left_out=_LARGE,
    ),
    Network(
        "bert-base",
        "BERT-base encoder, B=1, T=128",
        "bert",
        _BERT,
        ("sentences", 128, 30522, 768),
        1,
        members=(1,),  # as for GPT-2
        published=108_891_648,
    ),
    Network(
        "bert-l4-v4k",
        "BERT-base's first 4 layers, 4,096 tokens, B=1, T=128",
        "bert",
        {**_BERT, "vocabulary": 4096, "layers": 4},
        ("sentences", 128, 4096, 768),
        1,
        left_out=_LARGE,
    ),
    Network(
        "lstm",
        "LSTM language model, 2×256, B=16, T=32",
        "lstm",
        {"vocabulary": 10_000, "width": 256, "layers": 2},
        ("tokens", 32, 10_000),
        16,
    ),
    Network(
        "graph",
        "graph network, 1,000 nodes, 8,000 edges",
        "graph",
        {"inputs": 16, "width": 64, "layers": 3, "classes": 10},
        ("graph", 1000, 8000, 16, 10),
        1,
    ),
    Network("ode", "neural ODE, 40 RK4 steps, B=64", "ode", _ODE, ("vectors", 32), 64),
    Network(
        "ode-unrolled",
        "neural ODE, 40 RK4 steps in a Python loop, B=64",
        "ode",
        {**_ODE, "unrolled": True},
        ("vectors", 32),
        64,
    ),
]


def _shrunk(network: Network) -> Network:
    """The same architecture, small enough for a check, with all its kinds of layers."""
    settings = dict(network.settings)
    images = ("images", 32, settings.get("classes"))
    smaller: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
        "resnet": ({"blocks": (1, 1), "width": 8}, images),
        "inverted": ({"blocks": settings.get("blocks", ())[:2], "head": 32}, images),
        "convnext": ({"depths": (1, 1), "widths": (16, 32)}, images),
        "vit": ({"size": 32, "width": 32, "layers": 2, "heads": 2}, images),
        "unet": ({"widths": (4, 8)}, ("pixels", 16, 8)),
        "gpt2": (
            {"vocabulary": 64, "positions": 16, "width": 32, "layers": 2, "heads": 2},
            ("tokens", 8, 64),
        ),
        "bert": (
            {"vocabulary": 64, "positions": 16, "width": 32, "layers": 2, "heads": 2},
            ("sentences", 8, 64, 32),
        ),
        "lstm": ({"vocabulary": 64, "width": 16}, ("tokens", 8, 64)),
        "graph": ({"inputs": 8, "width": 16, "layers": 2}, ("graph", 20, 60, 8, 10)),
        "ode": ({"width": 8, "hidden": 8, "steps": 4}, ("vectors", 8)),
    }
    changed, sizes = smaller[network.model]
    return replace(
        network,
        name=f"tiny-{network.name}",
        title=f"tiny {network.title.partition(',')[0]}",
        settings=settings | changed,
        inputs=sizes,
        batch=1 if network.model == "graph" else 4,
        members=(1, MEMBERS),
        published=None,
        left_out={},
        tiny=True,
    )


TINY: list[Network] = [
    _shrunk(one) for one in NETWORKS if not one.name.startswith(("gpt2-", "bert-l", "resnet50-2"))
]
"""All architectures, in a size at which everything can be checked in minutes."""


def all_tasks() -> list[Task]:
    """What every worker can be asked for."""
    return [task for network in [*NETWORKS, *TINY] for task in network.tasks]


ROWS: dict[str, Workload] = {row.name: row for task in all_tasks() for row in task.rows}
FULL: list[str] = [row.name for one in NETWORKS for task in one.tasks for row in task.rows]
"""The rows of a run that is not the quick one."""
