"""The attributes of arrays, traced values and keys that clients of JAX read.

Attached by ``finder.install``, so that Stretto by itself has none of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from stretto._engine.api.jit.stages import Lowered
from stretto._engine.core.interpreter import Interpreter, Tracer, Value
from stretto._engine.core.shardings import NamedSharding
from stretto._engine.higher_order.refs import Ref
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.layout import move_to_front, reshape
from stretto._engine.ops.random.rng_bit_generator import RngBitGenerator
from stretto._engine.ops.shape import slice_in_dim
from stretto._engine.xla.array import Array
from stretto.compat.jax import tracing
from stretto.compat.jax.avals import ShapedArray, get_aval
from stretto.compat.jax.keys import take
from stretto.numpy.dtypes import ScalarType
from stretto.random.key_arrays import KeyArray
from stretto.typing import SymbolicZero

__all__ = ["attach"]


def _aval(self: Any) -> ShapedArray:
    """The abstract value."""
    return get_aval(self)


def _set_trace(self: Any, trace: Any) -> None:
    """As libraries' own tracers set it, in place of a call of ``Tracer.__init__``."""
    self.interpreter = trace


def _trace(self: Any) -> Any:
    """The transformation that it belongs to."""
    return self.interpreter


def _pointer(self: Array) -> int:
    """The address of the elements on the device."""
    return self.to_buffer().unsafe_buffer_pointer()


def _of_words(name: str) -> property:
    def get(self: Any) -> Any:
        return getattr(self._words, name)

    return property(get)


def _call_on_words(name: str) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._words, name)(*args, **kwargs)

    call.__name__ = name
    return call


class _Module:
    """A lowered function, as ``compiler_ir`` gives it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def as_hlo_text(self) -> str:
        """The text, without the places in the source."""
        return re.sub(r", metadata=\{[^}]*\}", "", self._text)

    def __str__(self) -> str:
        return self._text


def _compiler_ir(self: Any, dialect: str | None = None) -> _Module:
    """The module of a lowered function, which prints itself."""
    return _Module(self.as_text(dialect))


def _changed(self: NamedSharding, mesh: Any = None, spec: Any = None) -> NamedSharding:
    """A copy over another mesh, or with another spec."""
    return NamedSharding(mesh or self.mesh, self.spec if spec is None else spec)


def _hash_of_class(self: ScalarType) -> int:
    """As NumPy's class of the dtype has; ``jax.numpy.int32`` is found among these, not dtypes."""
    return hash(self.dtype.type)


def _bits_of_the_first(
    self: RngBitGenerator, size: int, args: Sequence[Any], axes: Sequence[int | None]
) -> tuple[tuple[Any, Any], tuple[int, int]]:
    """As JAX maps the generator of "rbg" keys: the first state gives the bits of all examples.

    The other states stay what they are.
    """
    states = move_to_front(args[0], axes[0])
    first = reshape(slice_in_dim(states, 0, 1), states.shape[1:])
    after, bits = RngBitGenerator((size, *self.shape), self.dtype, self.algorithm)(first)
    rest = slice_in_dim(states, 1, states.shape[0])
    states = concatenate([reshape(after, (1, *after.shape)), rest], 0)
    return (states, bits), (0, after.ndim - 1)


def attach() -> None:
    """Attach them."""
    tracing.attach()
    Value.take = take  # type: ignore[method-assign]
    RngBitGenerator.vmap = _bits_of_the_first  # type: ignore[method-assign]
    ScalarType.__hash__ = _hash_of_class  # type: ignore[method-assign]
    Value.aval = property(_aval)  # type: ignore[attr-defined]
    Ref.aval = property(_aval)  # type: ignore[attr-defined]
    Tracer._trace = property(_trace, _set_trace)  # type: ignore[attr-defined]
    Array.unsafe_buffer_pointer = _pointer  # type: ignore[attr-defined]
    NamedSharding.update = _changed  # type: ignore[attr-defined]
    SymbolicZero.aval = property(_aval)  # type: ignore[attr-defined]
    Interpreter.main = property(lambda self: self)  # type: ignore[attr-defined]
    KeyArray.aval = property(_aval)  # type: ignore[attr-defined]
    Lowered.compiler_ir = _compiler_ir  # type: ignore[attr-defined]
    KeyArray.weak_type = False  # type: ignore[attr-defined]
    for name in ("sharding", "device", "committed", "is_fully_addressable", "is_fully_replicated"):
        setattr(KeyArray, name, _of_words(name))
    for name in ("devices", "delete", "is_deleted", "is_ready", "copy_to_host_async"):
        setattr(KeyArray, name, _call_on_words(name))
