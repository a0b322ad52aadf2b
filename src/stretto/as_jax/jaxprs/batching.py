"""Rules for ``vmap`` of libraries' primitives: ``jax.interpreters.batching``.

Next, read ``mlir``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.layout import move_axis
from stretto._engine.transforms.vmap import AxisSize, Batched
from stretto.as_jax.jaxprs.primitive import Primitive

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

primitive_batchers: dict[Primitive, Callable[..., Any]] = {}
"""From operands, the mapped axis of each (None: the same for all examples), and parameters to
results and their mapped axes, by primitive."""

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


def batched(
    p: Primitive, size: int, args: tuple[Any, ...], axes: list[int | None], params: dict[str, Any]
) -> tuple[list[Any], list[bool]]:
    """The results of a primitive's rule, with examples along axis 0, and which are mapped."""
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
    """The array repeated along a new axis."""
    del mesh_axis
    x = as_value(x, "broadcast")
    return move_axis(broadcast_to(x, (sz, *x.shape)), 0, axis)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """The array with its examples along axis 0; repeated if it is the same for all."""
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
