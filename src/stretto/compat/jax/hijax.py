"""Types and operations that a library makes of its own: ``jax.experimental.hijax``.

A value of such a type is an object of Python, and an operation on it is its implementation, which
is traced as it is. Where the value changes, what it consists of is held by references while a
function is traced: an operation works on a copy made of their values, and what it changes there is
written to them. So these objects can be used, passed and taken from outside as references can
(decision 59).
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from stretto._engine.core import tree
from stretto._engine.core.errors import RefError
from stretto._engine.core.interpreter import as_value, state
from stretto._engine.core.threads import holding
from stretto._engine.higher_order.refs import Ref
from stretto._engine.ops.convert import convert
from stretto.compat.jax.avals import AbstractValue, pytype_aval_mappings
from stretto.compat.jax.jaxprs.primitive import Primitive
from stretto.compat.jax.modules import RefusedName
from stretto.compat.jax.tree_util import LEAVES

HIGH: dict[type, Any] = {}
"""The classes of such values, with the function that gives a value's type."""


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
        run = functools.partial(getattr(self, "to_lojax", self.impl), **params)
        if state.interpreter.at_rest or _thread.direct:
            return run(*args)
        parts = {i: _parts_of(x) for i, x in enumerate(args) if _changes(x)}
        copies = {i: p.copy() for i, p in parts.items()}
        outs = _directly(run, *[copies.get(i, x) for i, x in enumerate(args)])
        for i, p in parts.items():
            p.take(copies[i])
        for out in outs if isinstance(outs, (list, tuple)) else (outs,):
            if _changes(out):
                _keep(_Parts(out, [_held(x) for x in _consists_of(out)]))
        return outs


class _Thread(threading.local):
    direct = False
    """Say whether operations work on the values that they are given, and not on copies."""

    def __init__(self) -> None:
        self.kept: list[tuple[Any, _Parts]] = []
        """The parts of values that a trace has made or been given, until it ends."""


_thread = _Thread()


def _directly(fun: Callable[..., Any], *args: Any) -> Any:
    return holding(_thread, "direct", True, fun, *args)


VJPHiPrimitive = RefusedName(
    "jax.experimental.hijax.VJPHiPrimitive", "make the operation with stretto.primitive"
)
HiPspec: Any = object


class _Effects:
    """Kinds of effects; nothing is refused because of them."""

    def add_type(self, effect: type) -> None:
        """Add a kind."""


control_flow_allowed_effects = _Effects()


def cur_qdd(x: Any) -> Any:
    """Return the type that a mutable value has now."""
    return x.cur_qdd()


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Say which type the values of a class are of.

    They are leaves of JAX's trees, and nodes of what they consist of to transformations.
    """
    HIGH[val_cls] = pytype_aval_mappings[val_cls] = typeof_fn
    LEAVES.add(val_cls)
    tree.register_pytree_node(val_cls, _to_children, _from_children)


def _changes(x: Any) -> bool:
    """Say whether it is a value of such a type that changes."""
    typeof = HIGH.get(type(x))
    return typeof is not None and bool(typeof(x).has_qdd)


def _consists_of(x: Any) -> Sequence[Any]:
    """Return the arrays and keys that a mutable value consists of."""
    return _directly(HIGH[type(x)](x).read_loval, x.cur_qdd(), x)


class _Parts:
    """The references to what a mutable value consists of."""

    def __init__(self, owner: Any, refs: Sequence[Any]) -> None:
        self.owner, self.refs = owner, list(refs)
        self.aval, self.qdd = HIGH[type(owner)](owner), owner.cur_qdd().normalize()

    def copy(self) -> Any:
        """Return a value that consists of what they hold now."""
        return _directly(self.aval.new_from_loval, self.qdd, *[ref[...] for ref in self.refs])

    def check(self, value: Any, what: str) -> None:
        """Raise ``RefError`` unless the value consists of arrays of the same types."""
        now = value.cur_qdd().normalize()
        if now != self.qdd:
            raise RefError(
                f"what a {type(value).__name__} consists of {what}, from {self.qdd} to {now}: let "
                f"arrays keep their types and places, or make another"
            )

    def take(self, changed: Any) -> None:
        """Write what a changed copy consists of."""
        self.check(changed, "changes inside of a traced function")
        for ref, before, new in zip(
            self.refs, [ref[...] for ref in self.refs], _consists_of(changed), strict=True
        ):
            if new is not before:
                ref[...] = new


class _Part(Ref):
    """A reference to a part of a mutable value that was made outside of all transformations."""

    __slots__ = ("_parts", "_place")

    def __init__(self, parts: _Parts, place: int, held: Any) -> None:
        self._parts, self._place = parts, place
        leaves, structure = tree.flatten(held)
        super().__init__(_strong(leaves[0]), None if structure == tree.structure(0) else structure)
        self._home = None

    @property
    def _value(self) -> Any:  # type: ignore[override]
        owner = self._parts.owner
        self._parts.check(owner, "has changed since a function that uses it was traced")
        (value,) = tree.leaves(_consists_of(owner)[self._place])
        return _strong(value)

    @_value.setter
    def _value(self, value: Any) -> None:
        if not self._parts.refs:
            return  # it is being made
        owner = self._parts.owner
        now = list(_consists_of(owner))
        (before,) = tree.leaves(now[self._place])
        if value is not before:
            now[self._place] = tree.unflatten(tree.structure(now[self._place]), [value])
            _directly(self._parts.aval.update_from_loval, self._parts.qdd, owner, *now)


_known: weakref.WeakValueDictionary[int, _Parts] = weakref.WeakValueDictionary()
"""The parts by the owner's id, which stays its own while they are known."""


def _keep(parts: _Parts) -> _Parts:
    _thread.kept = [(around, p) for around, p in _thread.kept if not around.ended]
    _thread.kept.append((state.interpreter, parts))
    _known[id(parts.owner)] = parts
    return parts


def _parts_of(x: Any) -> _Parts:
    """Return the references to what a mutable value consists of, the same while anyone has them."""
    found = _known.get(id(x))
    if found is not None:
        return found
    parts = _Parts(x, [])
    # It was made outside of all transformations, or a trace would have kept it.
    parts.refs = [_Part(parts, i, h) for i, h in enumerate(_consists_of(x))]
    _known[id(x)] = parts
    return parts if state.interpreter.at_rest else _keep(parts)


def _strong(x: Any) -> Any:
    value = as_value(x, "hijax")
    return convert(value, value.dtype)


def _held(x: Any) -> Ref:
    """Return a reference, made here, to an array or a key."""
    leaves, structure = tree.flatten(x)
    return Ref(_strong(leaves[0]), None if structure == tree.structure(0) else structure)


def _to_children(x: Any) -> tuple[Sequence[Any], Any]:
    aval = HIGH[type(x)](x)
    if aval.has_qdd:
        return _parts_of(x).refs, (aval, x.cur_qdd().normalize())
    return aval.lower_val(x), (aval, None)


def _from_children(of: Any, children: Sequence[Any]) -> Any:
    aval, qdd = of
    if qdd is None:
        return aval.raise_val(*children)
    held = [x[...] if isinstance(x, Ref) else x for x in children]
    made = _directly(aval.new_from_loval, qdd, *held)
    parts = _Parts(made, list(children))
    if state.interpreter.at_rest:
        return made
    _keep(parts)
    return made
