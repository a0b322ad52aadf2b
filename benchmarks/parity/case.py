"""A case: one call, or one layer and its steps, as data that both frameworks can carry out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import wire

__all__ = [
    "Case",
    "Fixed",
    "Layer",
    "Step",
    "called",
    "changed",
    "cotangent",
    "described",
    "filled",
    "is_float",
    "packed",
    "unpacked",
]


@dataclass(frozen=True)
class Fixed:
    """A floating array by which nothing is differentiated."""

    array: NDArray[Any]


@dataclass(frozen=True)
class Layer:
    """A module to build: its name in `nn`, and the constructor's arguments."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One call, in train or evaluation mode where it is a layer's."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    training: bool = False


@dataclass(frozen=True)
class Case:
    """What to call, a function of `nn.functional` by name or a layer, and with what.

    A layer keeps its buffers from step to step. Floating arrays among the arguments are
    differentiated unless they are `Fixed`. With `through`, the first argument goes through that
    function, along its last axis, before. `slack` multiplies the tolerance of float64, for the
    reason `because`.
    """

    target: str | Layer
    steps: tuple[Step, ...]
    through: str = ""
    slack: float = 1.0
    because: str = ""


def called(name: str, *args: Any, **kwargs: Any) -> Case:
    """One call of a function."""
    return Case(name, (Step(args, kwargs),))


def is_float(value: Any) -> bool:
    """Whether it is an array to differentiate by."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same tuples, lists and dictionaries, with arrays, `Fixed` and layers changed, in order.

    Both frameworks go through arguments by this, so that gradients come in one order.
    """
    if isinstance(value, (np.ndarray, Fixed, Layer)):
        return change(value)
    if isinstance(value, (tuple, list)):
        return type(value)([changed(item, change) for item in value])
    if isinstance(value, Mapping):
        return {name: changed(item, change) for name, item in value.items()}
    return value


def cotangent(shape: tuple[int, ...], position: int) -> NDArray[np.float64]:
    """The weights by which the output at `position` enters the sum that is differentiated."""
    return _single(np.random.default_rng(position).standard_normal(shape))


def filled(name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Values for the parameter `name`: what both layers begin with."""
    draw = np.random.default_rng(list(name.encode())).standard_normal(shape)
    return _single(draw / max(1, shape[-1] if shape else 1) ** 0.5)


def _single(array: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers that float32 holds exactly, so that both precisions see the same ones."""
    return np.asarray(array, np.float32).astype(np.float64)


def packed(value: Any) -> Any:
    """The inverse of `unpacked`, for JSON; it takes cases too."""
    match value:
        case np.ndarray():
            return {"array": wire.encode(value)}
        case Fixed():
            return {"fixed": wire.encode(value.array)}
        case Layer():
            return {"layer": packed([value.name, value.args, value.kwargs])}
        case Step():
            return {"step": packed([value.args, value.kwargs, value.training])}
        case Case():
            return {"case": packed([value.target, value.steps, value.through])}
        case tuple():
            return {"tuple": [packed(item) for item in value]}
        case list():
            return [packed(item) for item in value]
        case Mapping():
            return {"names": {name: packed(item) for name, item in value.items()}}
        case None | str() | bool() | int() | float():
            return value
    raise TypeError(f"expected what JSON has, arrays and cases, got {type(value).__name__}")


def unpacked(message: Any) -> Any:
    """What was `packed`."""
    if isinstance(message, list):
        return [unpacked(item) for item in message]
    if not isinstance(message, dict):
        return message
    ((kind, content),) = message.items()
    match kind:
        case "array":
            return wire.decode(content)
        case "fixed":
            return Fixed(wire.decode(content))
        case "tuple":
            return tuple(unpacked(content))
        case "names":
            return {name: unpacked(item) for name, item in content.items()}
        case _:
            return {"layer": Layer, "step": Step, "case": Case}[kind](*unpacked(content))


def described(value: Any) -> str:
    """The case in a line, arrays by their shapes."""
    match value:
        case np.ndarray():
            return f"{value.dtype}{list(value.shape)}"
        case Fixed():
            return described(value.array)
        case Layer():
            return value.name + _arguments(value.args, value.kwargs)
        case Step():
            return _arguments(value.args, value.kwargs)
        case Case():
            name = value.target if isinstance(value.target, str) else described(value.target)
            return name + (described(value.steps[0]) if value.steps else "")
        case list():
            return "[" + ", ".join(map(described, value)) + "]"
        case tuple():
            return _arguments(value, {})
        case Mapping():
            return "dict" + _arguments((), value)
    return repr(value)


def _arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    named = [f"{name}={described(item)}" for name, item in kwargs.items()]
    return f"({', '.join([*map(described, args), *named])})"
