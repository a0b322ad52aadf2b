"""Types and operations that a library makes of its own.

A value of such a type is an object of Python, and an operation on it is its implementation, which
is traced as it is. So they can be used at rest and inside of a traced function; what cannot be had
is that they are arguments or results of a transformed one, or variables that derivatives are taken
by: that is an error, which names the type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from stretto.as_jax.avals import HIGH, AbstractValue
from stretto.as_jax.jaxprs.primitive import Primitive
from stretto.as_jax.refused import RefusedName

__all__ = [
    "AvalMutableQDD",
    "AvalQDD",
    "HiPrimitive",
    "HiPspec",
    "HiType",
    "MutableHiType",
    "VJPHiPrimitive",
    "aval_method",
    "aval_property",
    "control_flow_allowed_effects",
    "cur_qdd",
    "register_hitype",
]


class AvalQDD(NamedTuple):
    """A mutable type, and the type that its value has now."""

    aval: Any
    qdd: Any


class AvalMutableQDD(NamedTuple):
    """The same where that changes."""

    aval: Any
    mutable_qdd: Any


class aval_property:  # in lower case, as JAX has it
    """An attribute that a type gives to traced values of it."""

    def __init__(self, fget: Callable[[Any], Any]) -> None:
        self.fget = fget


class aval_method:
    """A method that a type gives to traced values of it."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun


class HiType(AbstractValue):
    """A type of a library's own, whose values do not change."""

    is_high = True
    has_qdd = False


class MutableHiType(AbstractValue):
    """A type of a library's own, whose values change."""

    is_high = True
    has_qdd = True


class HiPrimitive(Primitive):
    """An operation on values of such types: its implementation, wherever it is applied."""

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply it."""
        return getattr(self, "to_lojax", self.impl)(*args, **params)


VJPHiPrimitive = RefusedName(
    "jax.experimental.hijax.VJPHiPrimitive", "make the operation with stretto.primitive"
)
HiPspec: Any = object


class _Effects:
    """Kinds of effects; nothing is refused because of them."""

    def add_type(self, effect: type) -> None:
        """Add a kind."""


control_flow_allowed_effects = _Effects()


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Say which type the values of a class are of."""
    HIGH[val_cls] = typeof_fn


def cur_qdd(x: Any) -> Any:
    """The type that a mutable value has now."""
    return x.cur_qdd()
