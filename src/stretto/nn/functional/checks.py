"""Checks of arguments of functions and layers, numbers per axis, keys, classes, reductions.

Those of layers name the layer.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.functions import described
from stretto._engine.core.integers import integers
from stretto._engine.core.interpreter import as_value, state
from stretto._engine.core.migration import explain_call
from stretto._engine.core.types import is_complex, kind_of
from stretto._engine.core.typing import ArrayLike, Key, Tree
from stretto._engine.ops.convert import as_inexact
from stretto._engine.ops.layout import reshape
from stretto._engine.xla.array import Array
from stretto.random.keys import as_key, split
from stretto.random.streams import next_key

if TYPE_CHECKING:
    from stretto.nn.module import Module

_F = TypeVar("_F", bound=Callable[..., Any])


def explains_keywords(function: _F) -> _F:
    """Decorate a function with parameters that JAX spells otherwise: the error names its own.

    >>> from stretto.nn import functional as F
    >>> F.softmax([1.0], axis=0)
    Traceback (most recent call last):
    TypeError: softmax() got an unexpected keyword argument 'axis'; it is dim here
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Tree:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            explain_call(error, function)
            raise

    return call  # type: ignore[return-value]


def numbers(value: object, caller: str, name: str) -> tuple[int, ...]:
    """Return one integer or a sequence of them, as a tuple."""
    values = value if isinstance(value, (tuple, list)) else (value,)
    return integers(values, caller, name)


def per_axis(value: object, n: int, caller: str, name: str, least: int = 1) -> tuple[int, ...]:
    """Return ``n`` integers, of one for all or of one for each; none below ``least``."""
    try:
        values = numbers(value, caller, name)
    except TypeError:
        values = ()
    if len(values) == 1:
        values *= n
    if len(values) != n or min(values, default=least) < least:
        raise ValueError(
            f"{caller}: {name} must be an integer of at least {least}, or {n} of them; got "
            f"{value!r}"
        )
    return values


def add_batch_axis(x: ArrayLike, n: int, caller: str) -> tuple[Array, bool]:
    """Return ``x`` as (batch, channels, and ``n`` spatial axes), and whether it had no batch.

    Raises ``ValueError`` for another rank.
    """
    value = as_value(x, caller, "input")
    if value.ndim == n + 2:
        return value, False
    if value.ndim == n + 1:
        return reshape(value, (1, *value.shape)), True
    raise ValueError(
        f"{caller}: input must have {n + 2} axes (batch, channels, {n} spatial) or {n + 1} "
        f"(without the batch), got {value.type}"
    )


def drop_batch_axis(x: Array, single: bool) -> Array:
    """Return ``x`` without the batch axis that ``add_batch_axis`` added."""
    return reshape(x, x.shape[1:]) if single else x


def as_float(x: ArrayLike, caller: str, name: str = "input") -> Array:
    """Return the value, with integers as the default float."""
    value: Any = as_inexact(x, caller, name)
    return value


# Losses and chance

loss = described(
    {"reduction": '``"none"`` for each loss, ``"mean"`` or ``"sum"``.'},
    'A scalar, or each loss where ``reduction`` is ``"none"``.',
)
"""Complete the docstring of a loss."""


def same_shape(caller: str, **arguments: Any) -> None:
    """Raise ``ValueError`` unless all arguments have one shape."""
    if len({x.shape for x in arguments.values()}) > 1:
        got = ", ".join(f"{name} {x.type}" for name, x in arguments.items())
        raise ValueError(
            f"{caller}: expected {' and '.join(arguments)} of one shape, got {got}; broadcast one "
            f"first if that is intended"
        )


def pair(caller: str, input: ArrayLike, target: ArrayLike) -> tuple[Array, Array]:
    """Return both as floating values of one shape."""
    x, y = as_float(input, caller), as_float(target, caller, "target")
    same_shape(caller, input=x, target=y)
    return x, y


def classes_of(caller: str, x: Array, target: ArrayLike, axis: int) -> Array:
    """Return the target as classes, which have the shape of ``x`` without its class axis."""
    t = as_value(target, caller, "target")
    expected = (*x.shape[:axis], *x.shape[axis + 1 :])
    if kind_of(t.dtype) not in ("int", "uint") or t.shape != expected:
        raise ValueError(
            f"{caller}: expected target as integer classes of shape {expected} for input {x.type} "
            f"with its classes along axis {axis}, got {t.type}"
        )
    return t


class Classes(NamedTuple):
    """Hold what a loss was given as classes."""

    caller: str
    target: Array
    """Traced, by the interpreter that the watch began under."""
    count: int
    ignore_index: int


class ClassWatch:
    """Hold the classes that losses were given within a block."""

    def __init__(self, interpreter: object) -> None:
        self.interpreter = interpreter
        self.classes: list[Classes] = []
        self.has_classes = False
        """True where there were any, also in a transformation within the block."""


class _Watch(threading.local):
    watched: ClassWatch | None = None


_watch = _Watch()


@contextmanager
def watch_classes() -> Iterator[ClassWatch]:
    """Collect the targets that losses take as classes, while they are traced inside the block."""
    outer = _watch.watched
    _watch.watched = watched = ClassWatch(state.interpreter)
    try:
        yield watched
    finally:
        _watch.watched = outer


def check_range(caller: str, target: Array, count: int, ignore_index: int) -> None:
    """Raise ``IndexError`` for a class that is out of range; what is traced is watched instead."""
    if target.__class__ is Array:
        host = target.to_host()
        wrong = (host != ignore_index) & ((host < 0) | (host >= count))
        if wrong.any():
            raise IndexError(
                f"{caller}: target has class {host[wrong][0]} at {np.argwhere(wrong)[0].tolist()}, "
                f"but the input has {count} classes, numbered from 0"
            )
    elif (watched := _watch.watched) is not None:
        watched.has_classes = True
        if watched.interpreter is state.interpreter:
            watched.classes.append(Classes(caller, target, count, ignore_index))


def check_known(condition: Array, message: str) -> None:
    """Raise ``ValueError`` where a condition on elements is known not to hold everywhere.

    Traced elements are not known.
    """
    if condition.__class__ is Array and not condition.to_host().all():
        raise ValueError(message)


def probability(p: object, caller: str, name: str = "p") -> float:
    """Return a number from 0 to 1; raise ``ValueError`` for others, ``TypeError`` for no number."""
    if isinstance(p, bool) or not isinstance(p, (int, float)):
        raise TypeError(f"{caller}: {name} must be a Python number from 0 to 1, got {p!r}")
    if not 0 <= p <= 1:
        raise ValueError(f"{caller}: {name} must be from 0 to 1, got {p!r}")
    return float(p)


def key_or_next(key: Key | None, caller: str) -> Key:
    """Return the key, or the next one of the ambient stream."""
    return next_key(caller) if key is None else key


def reduce_losses(loss: Array, reduction: str, caller: str) -> Array:
    """Return the losses themselves (``"none"``), their ``"mean"`` or their ``"sum"``.

    Raises ``ValueError`` for an unknown reduction, ``TypeError`` for complex losses.
    """
    if is_complex(loss.dtype):
        raise TypeError(f"{caller}: a loss is real, got {loss.type}")
    if reduction == "none":
        return loss
    if reduction == "mean":
        return snp.mean(loss)
    if reduction == "sum":
        return snp.sum(loss)
    raise ValueError(f"{caller}: reduction must be 'none', 'mean' or 'sum', got {reduction!r}")


def positive_part(x: Array) -> Array:
    """Return ``max(x, 0)`` with a derivative of 1 at 0, as that of PyTorch's ``clamp_min``."""
    return snp.where(snp.greater_equal(x, 0), x, 0.0)


_T = TypeVar("_T")
_S = TypeVar("_S")

_SPATIAL = {1: "length", 2: "height, width", 3: "depth, height, width"}


def two_keys(key: Key | None, caller: str) -> tuple[Array, Array]:
    """Return keys for a layer's weight and bias; from the ambient stream's next key without one."""
    keys = split(next_key(caller) if key is None else as_key(key, caller))
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
