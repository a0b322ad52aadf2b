"""Rules for ``vmap`` of primitives: ``jax.interpreters.batching``.

Those of Stretto's own operations can be looked up, and replaced.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.autodiff.vmap import AxisSize, Batched
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.layout import move_axis
from stretto.compat.jax.jaxprs.jaxpr import SPELLINGS, spell_operation
from stretto.compat.jax.jaxprs.primitive import KnownPrimitive, Primitive

__all__ = [
    "BatchTracer",
    "axis_primitive_batchers",
    "bdim_at_front",
    "broadcast",
    "defbroadcasting",
    "defvectorized",
    "fancy_primitive_batchers",
    "not_mapped",
    "primitive_batchers",
]

_own_rules: dict[type, Any] = {}
"""The rule of each class of operations of which a library replaced it."""


class _Batchers(dict[Primitive, Callable[..., Any]]):
    """Rules by primitive; what is assigned to one of Stretto's operations takes its rule's place.

    Until then the rule of such a one is a function that applies Stretto's.
    """

    def __missing__(self, p: Primitive) -> Callable[..., Any]:
        if not isinstance(p, KnownPrimitive):
            raise KeyError(p)
        return functools.partial(_by_own_rule, p)

    def __contains__(self, p: object) -> bool:
        return isinstance(p, KnownPrimitive) or super().__contains__(p)

    def get(self, p: Any, default: Any = None) -> Any:
        """Return the rule, or the default where there is none."""
        try:
            return self[p]
        except KeyError:
            return default

    def __setitem__(self, p: Primitive, rule: Callable[..., Any]) -> None:
        super().__setitem__(p, rule)
        if isinstance(p, KnownPrimitive):
            for cls in [cls for cls, spelling in SPELLINGS.items() if spelling.primitive is p]:
                _replace(cls, rule)


def _example(type: ArrayType, axis: int | None) -> ArrayType:
    shape = type.shape
    return type if axis is None else type.with_shape((*shape[:axis], *shape[axis + 1 :]))


def _by_own_rule(p: KnownPrimitive, args: Any, axes: Any, **params: Any) -> Any:
    """Return the result of the rule that an operation has by itself, and where its examples lie."""
    values = [as_value(x, p.name, f"operand {i}") for i, x in enumerate(args)]
    places = range(len(values)) if p.order is None else p.order
    values, axes = [values[i] for i in places], [axes[i] for i in places]
    types = tuple([_example(v.type, a) for v, a in zip(values, axes, strict=True)])
    operation = p.build(params, types)
    size = next(v.shape[a] for v, a in zip(values, axes, strict=True) if a is not None)
    rule = _own_rules.get(type(operation), type(operation).vmap)
    out, axis = rule(operation, size, values, axes)
    return (list(out), list(axis)) if p.multiple_results else (out, axis)


def _replace(cls: Any, rule: Callable[..., Any]) -> None:
    """Have operations of this class mapped by a library's rule."""
    _own_rules.setdefault(cls, cls.vmap)

    def vmap(self: Any, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        types = [_example(x.type, a) for x, a in zip(args, axes, strict=True)]
        _, params, places = spell_operation(self, types)
        out, axis = rule(
            tuple([args[i] for i in places]), tuple([axes[i] for i in places]), **params
        )
        return (tuple(out), tuple(axis)) if self.multiple else (out, axis)

    cls.vmap = vmap


primitive_batchers: dict[Primitive, Callable[..., Any]] = _Batchers()
"""The rule of each primitive, from operands, the mapped axis of each (None: the same for all), and
parameters to results and their mapped axes."""

axis_primitive_batchers: dict[Primitive, Callable[..., Any]] = {}
"""The same for rules that get the size of the axis, its name and the kind of trace first."""

fancy_primitive_batchers: dict[Primitive, Callable[..., Any]] = {}
"""The same for rules that get size and name as one object first."""

BatchTracer = Batched
not_mapped = None


class AxisData:
    """The size of a mapped axis, and its name."""

    def __init__(self, size: int) -> None:
        self.name = size.name if isinstance(size, AxisSize) else None
        self.size = int(size)
        self.spmd_name = self.explicit_mesh_axis = None


def call_batched(
    p: Primitive, size: int, args: tuple[Any, ...], axes: list[int | None], params: dict[str, Any]
) -> tuple[list[Any], list[bool]]:
    """Return a rule's results, with examples along axis 0, and which are mapped."""
    axis = AxisData(size)
    if p in fancy_primitive_batchers:
        outs, dims = fancy_primitive_batchers[p](axis, args, axes, **params)
    elif p in axis_primitive_batchers:
        rule = axis_primitive_batchers[p]
        outs, dims = rule(axis.size, axis.name, None, args, axes, **params)
    elif p in primitive_batchers:
        outs, dims = primitive_batchers[p](args, axes, **params)
    else:
        raise NotImplementedError(
            f"primitive {p.name} has no rule for vmap: give one in "
            f"jax.interpreters.batching.primitive_batchers"
        )
    if not p.multiple_results:
        outs, dims = [outs], [dims]
    elif dims is None or isinstance(dims, int):
        dims = [dims] * len(outs)
    values = [as_value(o, p.name, "a result of its rule for vmap") for o in outs]
    fronted = [o if d is None else move_axis(o, d, 0) for o, d in zip(values, dims, strict=True)]
    return fronted, [d is not None for d in dims]


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any = None) -> Any:
    """Return the array repeated along a new axis."""
    del mesh_axis
    x = as_value(x, "broadcast")
    return move_axis(broadcast_to(x, (sz, *x.shape)), 0, axis)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """Return the array with its examples along axis 0; repeated if it is the same for all."""
    return broadcast(x, size, 0, mesh_axis) if bdim is None else move_axis(x, bdim, 0)


def defvectorized(prim: Primitive) -> None:
    """Give the rule of a primitive that works on any leading axes, all operands alike."""

    def rule(args: Any, axes: Any, **params: Any) -> Any:
        out = prim.bind(*args, **params)
        return out, [axes[0]] * len(out) if prim.multiple_results else axes[0]

    primitive_batchers[prim] = rule


def defbroadcasting(prim: Primitive) -> None:
    """Give the rule of a primitive that works on operands of one shape, element by element."""

    def rule(args: Any, axes: Any, **params: Any) -> Any:
        size = next(x.shape[a] for x, a in zip(args, axes, strict=True) if a is not None)
        fronted = [bdim_at_front(x, a, size) for x, a in zip(args, axes, strict=True)]
        out = prim.bind(*fronted, **params)
        return out, [0] * len(out) if prim.multiple_results else 0

    primitive_batchers[prim] = rule
