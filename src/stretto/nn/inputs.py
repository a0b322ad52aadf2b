"""What the constructors and calls of layers share: sizes, keys, and checks that name the layer.

``linear``, ``convolution``, ``pooling`` and the other files of layers use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike, Key
from stretto.random.keys import checked, split
from stretto.random.streams import next_key

if TYPE_CHECKING:
    from stretto.nn.module import Module

_T = TypeVar("_T")
_S = TypeVar("_S")

_SPATIAL = {1: "length", 2: "height, width", 3: "depth, height, width"}


def two_keys(key: Key | None, caller: str) -> tuple[Array, Array]:
    """Return keys for a layer's weight and bias; from the ambient stream's next key without one."""
    keys = split(next_key(caller) if key is None else checked(key, caller))
    return keys[0], keys[1]


def key_parts(key: Key | None, count: int) -> Sequence[Key | None] | Array:
    """Return keys for the parts of a call; without one each part draws from the ambient stream."""
    return (None,) * count if key is None else split(key, count)


def positive(caller: str, **sizes: Any) -> None:
    """Raise ``ValueError`` for a size of a layer that is not a positive integer."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"{caller}: {name} must be a positive integer, got {size!r}")


def hashable(setting: _T | list[_S]) -> _T | tuple[_S, ...]:
    """Return a list as the tuple that a module can keep."""
    return tuple(setting) if isinstance(setting, list) else setting


def refuse(layer: Module, expected: str, x: Array) -> None:
    """Raise ``ValueError`` for an input that does not fit a layer."""
    raise ValueError(
        f"{type(layer).__name__}({layer.extra_repr()}): expected input {expected}, got {x.type}"
    )


def check_signal(
    layer: Module, input: ArrayLike, n: int, channels: int | None = None, batch: bool = False
) -> Array:
    """Return the input as a value: (batch, channels, and ``n`` spatial axes), or without the batch.

    Raises ``ValueError``, with the layer's name, for another rank or number of channels, and with
    ``batch`` for an input without one.
    """
    x = as_value(input, type(layer).__name__, "input")
    fits = x.ndim == n + 2 or (x.ndim == n + 1 and not batch)
    if not fits or channels not in (None, x.shape[x.ndim - n - 1]):
        counted = "channels" if channels is None else f"{channels} channels"
        without = "" if batch else " or the same without the batch"
        refuse(layer, f"(batch, {counted}, {_SPATIAL[n]}){without}", x)
    return x


def check_features(layer: Module, input: ArrayLike, features: int, name: str = "input") -> Array:
    """Return the input as a value (..., features); raises ``ValueError`` that names the layer."""
    x = as_value(input, type(layer).__name__, name)
    if not x.ndim or x.shape[-1] != features:
        refuse(layer, f"(..., {features} features)", x)
    return x
