"""What a row is: a layer or a function, and its settings and inputs at three sizes.

The values of inputs and parameters are drawn here, so that all frameworks compute on the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.parity.case import Layer, cotangent, filled
from benchmarks.workloads import Goal, Workload

__all__ = [
    "KINDS",
    "SIZES",
    "Drawn",
    "Row",
    "Setting",
    "Task",
    "compared",
    "cotangents",
    "distinct",
    "integers",
    "normal",
    "of",
    "parameter",
    "signs",
    "simplex",
    "tasks_of",
    "uniform",
]

SIZES = ("small", "medium", "large")

Kind: TypeAlias = Literal["forward", "gradient"]
KINDS: tuple[Kind, ...] = ("forward", "gradient")

GOAL = Goal("fastest", 1.2)

SETTLE = 0.01
"""Seconds before a batch: NumPy, whose idle threads wait longer, is not among the frameworks."""

POSITIONS = 2**18
"""Of a result with more numbers than this, so many are compared, spread evenly."""


@dataclass(frozen=True)
class Drawn:
    """An input, described: which numbers, and whether results are differentiated by them."""

    kind: Literal["normal", "distinct", "uniform", "integers", "signs", "simplex"]
    shape: tuple[int, ...]
    bounds: tuple[float, float] = (0.0, 1.0)
    fixed: bool = False

    def values(self, position: int) -> NDArray[Any]:
        """The numbers, for the input at `position`: float32, or int32."""
        draw = np.random.default_rng([position, len(self.shape), *self.shape])
        match self.kind:
            case "normal":
                return draw.standard_normal(self.shape, np.float32)
            case "distinct":
                size = math.prod(self.shape)
                return draw.permutation(np.linspace(-3, 3, size, dtype=np.float32)).reshape(
                    self.shape
                )
            case "uniform":
                low, high = self.bounds
                return (low + (high - low) * draw.random(self.shape, np.float32)).astype(np.float32)
            case "integers":
                low, high = self.bounds
                return draw.integers(int(low), int(high), self.shape, np.int32)
            case "signs":
                return np.where(draw.random(self.shape) < 0.5, np.float32(1), np.float32(-1))
            case "simplex":
                parts = draw.exponential(size=self.shape)
                return (parts / parts.sum(-1, keepdims=True)).astype(np.float32)

    @property
    def differentiated(self) -> bool:
        """Whether the gradient is by this input, too."""
        return self.kind != "integers" and not self.fixed


def normal(*shape: int, fixed: bool = False) -> Drawn:
    """Standard normal numbers."""
    return Drawn("normal", shape, fixed=fixed)


def distinct(*shape: int) -> Drawn:
    """Numbers of which no two are equal, so that it is clear whose slope is whose."""
    return Drawn("distinct", shape)


def uniform(*shape: int, low: float = 0.0, high: float = 1.0, fixed: bool = False) -> Drawn:
    """Numbers from `low` to `high`."""
    return Drawn("uniform", shape, (low, high), fixed)


def integers(below: int, *shape: int, low: int = 0) -> Drawn:
    """Integers from `low` to below `below`."""
    return Drawn("integers", shape, (low, below))


def signs(*shape: int) -> Drawn:
    """1 and -1, by which nothing is differentiated."""
    return Drawn("signs", shape, fixed=True)


def simplex(*shape: int, fixed: bool = False) -> Drawn:
    """Positive numbers whose sum over the last axis is 1."""
    return Drawn("simplex", shape, fixed=fixed)


@dataclass(frozen=True)
class Setting:
    """One size: the inputs, and the constructor's or the function's keyword arguments."""

    inputs: tuple[Drawn, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


def of(*inputs: Drawn, **options: Any) -> Setting:
    """A size in a line."""
    return Setting(inputs, options)


@dataclass(frozen=True)
class Row:
    """A layer of `nn`, a function of `nn.functional`, or an operation, at three sizes.

    `target` is the layer's or the function's name, which is the same in PyTorch, or that of an
    operation, for which each worker has its own function. `shared` are keyword arguments for all
    sizes, `call` those of the layer's call. `training` is the layer's mode. `paired`: the inputs
    after the first are given as one tuple. The first goes `through` this function of
    `nn.functional`, along its last axis, before. `by_chance`: what it draws differs between
    frameworks, so that only shares, means and deviations are compared. `without_jax` is the reason
    why JAX has no twin. `slope`: whether there is a gradient. `of_largest` is a tolerance, relative
    to the largest number of an array.
    """

    name: str
    target: str
    settings: tuple[Setting, Setting, Setting]
    shared: Mapping[str, Any] = field(default_factory=dict)
    call: Mapping[str, Any] = field(default_factory=dict)
    training: bool = False
    paired: bool = False
    by_chance: bool = False
    through: str = ""
    without_jax: str = ""
    slope: bool = True
    of_largest: float = 2e-5


@dataclass(frozen=True)
class Task:
    """A row at one size, forward or with its gradient: what is timed."""

    row: Row
    size: str
    kind: Kind

    @property
    def name(self) -> str:
        """The name of the workload."""
        return f"{self.row.name}-{self.size}-{self.kind}"

    @property
    def setting(self) -> Setting:
        """Inputs and settings."""
        return self.row.settings[SIZES.index(self.size)]

    @property
    def options(self) -> dict[str, Any]:
        """All keyword arguments of the constructor or function."""
        return {**self.row.shared, **self.setting.options}

    @property
    def layer(self) -> Layer | None:
        """The layer; None if it is a function."""
        is_layer = self.row.target[0].isupper()
        return Layer(self.row.target, (), self.options) if is_layer else None

    @property
    def values(self) -> list[NDArray[Any]]:
        """The inputs."""
        return [one.values(position) for position, one in enumerate(self.setting.inputs)]

    def arranged(self, inputs: list[Any]) -> tuple[Any, ...]:
        """The arguments of the call that the inputs are."""
        return (inputs[0], tuple(inputs[1:])) if self.row.paired else tuple(inputs)

    @property
    def differentiated(self) -> list[bool]:
        """Of each input, whether the gradient is by it."""
        return [one.differentiated for one in self.setting.inputs]

    @property
    def shapes(self) -> str:
        """The inputs' shapes, such as "8×64×56×56"."""
        shapes = ["×".join(map(str, one.shape)) or "scalar" for one in self.setting.inputs]
        return ", ".join(shapes)

    @property
    def workload(self) -> Workload:
        """The row of the table."""
        return Workload(
            self.name,
            f"{self.row.name} {self.kind}, {self.shapes}",
            "us" if self.size == "small" else "ms",
            (GOAL,),
            # Sums of float32 in another order, and functions that are a few units off.
            rtol=1e-4,
            # Shares and moments of some thousand draws.
            atol=0.05 if self.row.by_chance else 1e-6,
            of_largest=self.row.of_largest,
            left_out={"jax": self.row.without_jax} if self.row.without_jax else {},
            warm_up=False,  # calibration has done so
            settle=SETTLE,
        )


def tasks_of(row: Row) -> Iterator[Task]:
    """Forward and gradient at each size."""
    for size in SIZES:
        for kind in KINDS:
            if row.slope or kind == "forward":
                yield Task(row, size, kind)


def parameter(name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """The values of a parameter."""
    return filled(name, shape).astype(np.float32)


def cotangents(shapes: list[tuple[int, ...]]) -> list[NDArray[np.float32]]:
    """The weights of the sum that is differentiated, for outputs of these shapes."""
    return [cotangent(shape, place).astype(np.float32) for place, shape in enumerate(shapes)]


def compared(task: Task, results: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """What is compared of the results: integers in one width, and no more than needed."""
    some = [_some(one.astype(np.int64) if one.dtype.kind == "i" else one) for one in results]
    return [_moments(one) for one in some] if task.row.by_chance else some


def _moments(array: NDArray[Any]) -> NDArray[np.float64]:
    """The share of the most frequent number, mean and deviation."""
    _, counts = np.unique(array, return_counts=True)
    share = counts.max() / array.size
    return np.array([share, array.mean(), array.std()], np.float64)


def _some(array: NDArray[Any]) -> NDArray[Any]:
    if array.size <= POSITIONS:
        return array
    return array.ravel()[np.linspace(0, array.size - 1, POSITIONS).astype(int)]
