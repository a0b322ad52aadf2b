"""Rules by which operations pass masked cotangents, and tangents, on.

``pass_back`` is for running backwards, ``push_forward`` for going forward. What treats each element
alone passes conditions on as they are; what moves elements moves conditions along; what mixes
elements along some axes passes on those that do not vary along these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.autodiff.masked import (
    Condition,
    Known,
    Later,
    Masked,
    add_masked,
    both,
    chosen,
    narrow_condition,
    under,
    with_zeros,
)
from stretto._engine.core.interpreter import Linear
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.comparison import full
from stretto._engine.ops.elementwise import Elementwise


def pass_back(
    primitive: Primitive,
    run: Callable[[Any], Sequence[Any]],
    ct: Masked,
    args: Sequence[Any],
    keeps_zeros: bool,
) -> Sequence[Any]:
    """Return the cotangents of the arguments of an operation whose output has this cotangent.

    ``run`` applies its transpose rule to a value; ``keeps_zeros`` says that it only moves elements,
    adds them up and multiplies them by finite constants, so that zeros stay zeros.
    """
    mixes = type(primitive).kept_axes is Primitive.kept_axes
    if mixes and all([c.dims for c in ct.conditions]):
        return run(ct.with_zeros())
    if isinstance(primitive, Elementwise):
        alike = [ct.conditions if a.__class__ is Linear else None for a in args]
        return _lazily(run, ct, alike, args, keeps_zeros)
    moved: list[Any] = [
        _moved(primitive, run, ct, k, a.type) if a.__class__ is Linear else None
        for k, a in enumerate(args)
    ]
    lost = {i for m in moved if m is not None for i, c in enumerate(m) if c is None}
    if lost:
        kept = [m and tuple([c for i, c in enumerate(m) if i not in lost]) for m in moved]
        if keeps_zeros or not any(kept):
            out = run(ct.with_zeros())
        else:
            out = run(ct.without(frozenset(lost)))
        pairs = zip(out, kept, strict=True)
        return [under(v, m, keeps_zeros) if m and v is not None else v for v, m in pairs]
    return _lazily(run, ct, moved, args, keeps_zeros)


def _lazily(
    run: Callable[[Any], Sequence[Any]],
    ct: Masked,
    moved: Sequence[Any],
    args: Sequence[Any],
    keeps_zeros: bool,
) -> Sequence[Any]:
    """Give the cotangents of the arguments under these conditions, once they are needed."""
    raw = _Once(run, ct.raw)
    zeroed = _Once(run, ct.with_zeros) if keeps_zeros else None
    depth = ct.behind(keeps_zeros)
    return [
        m if m is None else raw.masked(k, m, args[k].type, zeroed, depth)
        for k, m in enumerate(moved)
    ]


def _moved(
    primitive: Primitive, run: Callable[[Any], Sequence[Any]], ct: Masked, k: int, type: ArrayType
) -> tuple[Condition | None, ...]:
    """Return the conditions on the cotangent of the ``k``-th operand; None for one that is lost."""
    axes = primitive.kept_axes(k, type, ct.type)
    shape = ct.type.shape

    def along(condition: Condition) -> Condition | None:
        dims = [axes[d] for d in condition.dims]
        if None in dims or dims != sorted(dims):  # type: ignore[type-var]
            return None
        return condition._replace(dims=tuple(dims))

    def moved(condition: Condition) -> Condition | None:
        pads = primitive.rearranges and type.size != ct.type.size
        same = along(condition) or (None if pads else along(narrow_condition(condition, shape)))
        if same is not None or not primitive.rearranges:
            return same
        every = tuple(range(type.ndim))
        if not pads:
            whole = Later(lambda: run(condition.whole(shape))[k], None, [condition])
            return Condition(whole, condition.holds, every)
        # Where nothing was taken from, the rule puts False.
        mask = Later(lambda: run(condition.mask(shape))[k], None, [condition])
        return Condition(mask, True, every)

    return tuple([moved(condition) for condition in ct.conditions])


class _Once:
    """The result of a transpose rule for a cotangent, computed when it is first needed."""

    __slots__ = ("_ct", "_parts", "_run")

    def __init__(self, run: Callable[[Any], Sequence[Any]], ct: Callable[[], Any]) -> None:
        self._run, self._ct = run, ct
        self._parts: Sequence[Any] | None = None

    def part(self, k: int) -> Any:
        """Return the cotangent of operand ``k``."""
        if self._parts is None:
            self._parts = self._run(self._ct())
        return self._parts[k]

    def masked(
        self,
        k: int,
        conditions: tuple[Condition, ...],
        type: ArrayType,
        with_zeros: _Once | None,
        depth: int,
    ) -> Masked:
        """Return what holds under these conditions; ``with_zeros`` has zeros elsewhere."""
        later = None if with_zeros is None else lambda: with_zeros.part(k)
        return Masked(conditions, type, lambda: self.part(k), later, depth)


def push_forward(
    primitive: Any, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
    """Output and tangent of an operation with one output, as its jvp rule, for masked tangents.

    The tangent of one that chooses is masked, too.
    """
    if primitive.picks:
        parts = zip(tangents, primitive.picks, strict=True)
        live = [(t, p) for t, p in parts if t is not None]
        if len(live) == 1:
            ((t, holds),) = live
            return primitive(*primals), chosen(t, primals[0], holds)
        shared, values = _in_common([t for t, _ in live])
        if shared:
            out, tangent = primitive.jvp(primals, [None, *values])
            return out, under(tangent, shared, False)
    elif isinstance(primitive, Elementwise):
        if primitive.counts or len([t for t in tangents if t is not None]) > 1:
            if getattr(primitive, "partials", None):
                return _partials(primitive, primals, tangents)
        else:
            return _along(primitive, primals, tangents)
    elif len(primals) == 1 and (primitive.keeps_zeros or _by_element(primitive, tangents[0])):
        return _along(primitive, primals, tangents)
    elif primitive.rearranges:
        return _joined(primitive, primals, tangents)
    return primitive.jvp(primals, [with_zeros(t) for t in tangents])


def _in_common(tangents: Sequence[Any]) -> tuple[tuple[Condition, ...], list[Any]]:
    """Return the conditions that are on both tangents, and the tangents under their others."""
    if any([t.__class__ is not Masked for t in tangents]):
        return (), [with_zeros(t) for t in tangents]
    first, second = tangents
    shared = tuple([c for c in first.conditions if c.among(second.conditions)])
    values = []
    for t in tangents:
        others = [k for k, c in enumerate(t.conditions) if not c.among(shared)]
        values.append(t.without(frozenset(others)) if others else t.raw())
    return shared, values


def _sum(x: Any, y: Any) -> Any:
    """Return the sum of two tangents of which either may be zero."""
    return y if x is None else x if y is None else add_masked(x, y)


def _by_element(primitive: Any, t: Masked) -> bool:
    """Say if an operation on one operand treats each element alone."""
    return [*primitive.kept_axes(0, t.type, t.type)] == [*range(t.type.ndim)]


def _partials(primitive: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Return the sum of each argument's partial derivative times its tangent, where it counts."""
    out, total = primitive(*primals), None
    for k, (partial, t) in enumerate(zip(primitive.partials, tangents, strict=True)):
        if t is None or partial is None:
            continue
        if t.__class__ is Masked:
            value = Known(partial(t.raw(), out, *primals))
            part: Any = Masked(t.conditions, value.value.type, value)
        else:
            part = partial(t, out, *primals)
        if primitive.counts:
            part = chosen(part, primitive.counts[k](*primals), True)
        total = _sum(total, part)
    return out, total


def _along(primitive: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Return the same, for one masked tangent and an operation with a place for each condition."""
    (k,) = [k for k, t in enumerate(tangents) if t is not None]
    t = tangents[k]
    if not primitive.keeps_zeros:
        out, tangent = primitive.jvp(primals, [None if v is None else v.raw() for v in tangents])
        if tangent is None:
            return out, None
        return out, Masked(t.conditions, tangent.type, Known(tangent))
    out = primitive(*primals)
    if out.type.kind not in ("float", "complex"):
        return out, None
    linear: Callable[[Any], Any] = primitive
    if hasattr(primitive, "partials"):
        linear = lambda v: primitive.partials[k](v, out, *primals)
    moved = _forward(primitive, t, k, out.type)
    if len(moved) == len(t.conditions):
        raw, zeroed = lambda: linear(t.raw()), lambda: linear(t.with_zeros())
        return out, Masked(moved, out.type, raw, zeroed, t.behind())
    value = Known(linear(t.with_zeros()))
    return out, Masked(moved, out.type, value, value) if moved else value.value


def _joined(primitive: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Return the same, for an operation that puts the elements of several operands together."""
    raws = [t.raw() if t.__class__ is Masked else t for t in tangents]
    out, tangent = primitive.jvp(primals, raws)

    def whole() -> Any:
        masks = []
        for x, t in zip(primals, tangents, strict=True):
            if t.__class__ is Masked:
                masks.append(both(t.conditions, x.type.shape).known())
            else:
                masks.append(full(x.type.shape, t is not None, np.dtype(bool)))
        return primitive(*masks)

    behind = [c for t in tangents if t.__class__ is Masked for c in t.conditions]
    condition = Condition(Later(whole, None, behind), True, tuple(range(out.ndim)))
    return out, Masked((condition,), tangent.type, Known(tangent))


def _forward(primitive: Any, t: Masked, k: int, out: ArrayType) -> tuple[Condition, ...]:
    """Return the conditions on the output's tangent; less where they cannot be moved."""
    axes = list(primitive.kept_axes(k, t.type, out))
    moved = []
    for condition in t.conditions:
        if all([d in axes for d in condition.dims]):
            dims = [axes.index(d) for d in condition.dims]
            if dims == sorted(dims):
                moved.append(condition._replace(dims=tuple(dims)))
                continue
        if primitive.rearranges:
            whole = Later(lambda c=condition: primitive(c.whole(t.type.shape)), None, [condition])
            moved.append(Condition(whole, condition.holds, tuple(range(out.ndim))))
    return tuple(moved)
