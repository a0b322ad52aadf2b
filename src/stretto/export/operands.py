"""What operations take: what whoever records them takes care of, and type inference leaves out.

Of a file nobody has taken care. So the number of operands is that of the operation, and programs
inside get operands of the types of their inputs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.program import Program
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType, is_inexact
from stretto.files.names import Damaged


def check_operands(operation: Any, types: Sequence[ArrayType]) -> None:
    """Raise ``Damaged`` unless the operation takes operands of these types, as far as this knows.

    What type inference says is another matter.
    """
    count = operands_of(type(operation))
    if count is not None and len(types) != count:
        raise Damaged(f"it takes {count} operands, and has {len(types)}")
    for axes, ndim in _AXES.get(operation.name, _no_axes)(operation, types):
        if len({*axes}) < len(axes) or not all([0 <= axis < ndim for axis in axes]):
            raise Damaged(f"{list(axes)} are no axes of an array of rank {ndim}")
    inside = _INSIDE.get(operation.name)
    if inside is not None:
        for program, given in inside(operation, types):
            _check_inputs(program, given)


@functools.cache
def operands_of(cls: type[Any]) -> int | None:
    """Return how many operands an operation takes; None if that differs, or is not known."""
    partials = getattr(cls, "partials", None)
    if isinstance(partials, tuple):
        return len(partials)
    instance = object.__new__(cls)
    for rule in ("reference", "formula"):
        function = getattr(instance, rule, None)
        if function is None or cls.holds_programs:
            continue
        parameters = inspect.signature(function).parameters.values()
        if not any([p.kind is p.VAR_POSITIONAL for p in parameters]):
            return sum([p.default is p.empty and p.kind is not p.KEYWORD_ONLY for p in parameters])
    return None


Axes = Sequence[tuple[Sequence[int], int]]
"""Axes, of arrays of these ranks."""


def _no_axes(operation: Any, types: Sequence[ArrayType]) -> Axes:
    return ()


def _of_convolution(operation: Any, types: Sequence[ArrayType]) -> Axes:
    ndim = types[0].ndim
    if any([len(spec) != ndim for spec in operation.dims]):
        raise Damaged(f"it does not name each of {ndim} axes")
    return [(spec, ndim) for spec in operation.dims]


def _of_dot(operation: Any, types: Sequence[ArrayType]) -> Axes:
    sides = zip(operation.summed, operation.shared, types, strict=True)
    return [((*summed, *shared), type.ndim) for summed, shared, type in sides]


def _of_gather(operation: Any, types: Sequence[ArrayType]) -> Axes:
    x, indices = types
    dims = operation.dimension_numbers
    if len(operation.slice_sizes) != x.ndim:
        raise Damaged(f"its slices have {len(operation.slice_sizes)} axes, and {x} has {x.ndim}")
    for n, size in zip(x.shape, operation.slice_sizes, strict=True):
        if not (is_size(n) or is_size(size)) and not 0 <= size <= n:
            raise Damaged(f"its slices of {operation.slice_sizes} are no part of {x}")
    return [
        ((*dims.collapsed_slice_dims, *dims.operand_batching_dims), x.ndim),
        (dims.start_index_map, x.ndim),
        (dims.start_indices_batching_dims, max(indices.ndim - 1, 0)),
        (dims.offset_dims, x.ndim + indices.ndim),
    ]


def _of_scatter(operation: Any, types: Sequence[ArrayType]) -> Axes:
    x, indices, updates = types
    dims = operation.dimension_numbers
    return [
        ((*dims.inserted_window_dims, *dims.operand_batching_dims), x.ndim),
        (dims.scatter_dims_to_operand_dims, x.ndim),
        (dims.scatter_indices_batching_dims, max(indices.ndim - 1, 0)),
        (dims.update_window_dims, updates.ndim),
    ]


def _of_transpose(operation: Any, types: Sequence[ArrayType]) -> Axes:
    (x,) = types
    if len(operation.permutation) != x.ndim:
        raise Damaged(f"it permutes {len(operation.permutation)} axes, and {x} has {x.ndim}")
    return [(operation.permutation, x.ndim)]


_AXES: dict[str, Callable[[Any, Sequence[ArrayType]], Axes]] = {
    "broadcast_in_dim": lambda x, types: [(x.dims, len(x.shape))],
    "conv_general_dilated": _of_convolution,
    "dot_general": _of_dot,
    "gather": _of_gather,
    "iota": lambda x, types: [((x.dimension,), len(x.shape))],
    "transpose": _of_transpose,
    **dict.fromkeys(
        ("scatter", "scatter_add", "scatter_max", "scatter_min", "scatter_mul", "scatter_sub"),
        _of_scatter,
    ),
}


def _check_inputs(program: Program, given: Sequence[ArrayType]) -> None:
    wanted = program.in_types
    if len(given) != len(wanted):
        raise Damaged(f"{program.name} takes {len(wanted)} operands, and gets {len(given)}")
    for k, (type, want) in enumerate(zip(given, wanted, strict=True)):
        if not _alike(type, want):
            raise Damaged(f"operand {k} of {program.name} is {type}, and must be {want}")


def _alike(one: ArrayType, other: ArrayType) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype


def _check_same(what: str, given: Sequence[ArrayType], wanted: Sequence[ArrayType]) -> None:
    """Raise ``Damaged`` unless the types are the same but for weakness."""
    same = len(given) == len(wanted) and all(map(_alike, given, wanted))
    if not same:
        raise Damaged(f"{what} is of types {list(given)}, and must be {list(wanted)}")


def _parts(types: Sequence[ArrayType], *counts: int) -> list[list[ArrayType]]:
    """Return consecutive parts of so many, and the rest."""
    left, parts = list(types), []
    for count in counts:
        if not 0 <= count <= len(left):
            raise Damaged(f"it has {len(types)} operands, and says that {count} are of a kind")
        parts.append(left[:count])
        left = left[count:]
    return [*parts, left]


def _last(types: Sequence[ArrayType], count: int) -> Sequence[ArrayType]:
    return types[max(0, len(types) - count) :]


def _row(type: ArrayType, size: Any) -> ArrayType:
    """Return the type without a leading axis of this size."""
    if not type.ndim or type.shape[0] != size:
        raise Damaged(f"an operand is {type}, and must have a leading axis of {size}")
    return type.with_shape(type.shape[1:])


Inside = Sequence[tuple[Program, Sequence[ArrayType]]]
"""Programs with the types of what they get."""


def _of_scan(scan: Any, types: Sequence[ArrayType]) -> Inside:
    consts, carry, xs = _parts(types, scan.consts, scan.carry)
    _check_same("the carry returned", scan.body.out_types[: scan.carry], carry)
    if scan.unroll < 1:
        raise Damaged(f"it has {scan.unroll} steps in each iteration")
    return [(scan.body, [*consts, *carry, *[_row(x, scan.length) for x in xs]])]


def _of_while(loop: Any, types: Sequence[ArrayType]) -> Inside:
    first, second, carry = _parts(types, loop.cond_consts, loop.body_consts)
    _check_same("the carry returned", loop.body.out_types, carry)
    (holds,) = loop.cond.out_types
    if holds.shape or holds.dtype != bool:
        raise Damaged(f"its condition is {holds}, and must be bool[]")
    return [(loop.cond, [*first, *carry]), (loop.body, [*second, *carry])]


def _of_cond(cond: Any, types: Sequence[ArrayType]) -> Inside:
    (index,), given = _parts(types, 1)
    shape = () if cond.size is None else (cond.size,)
    if index.shape != shape or index.dtype != np.int32:
        raise Damaged(f"the number of its branch is {index}, and must be an int32 of shape {shape}")
    if cond.size is not None:
        if len(cond.mapped) != len(given):
            raise Damaged("it does not say of each operand if it is mapped")
        rows = zip(given, cond.mapped, strict=True)
        given = [_row(x, cond.size) if mapped else x for x, mapped in rows]
    for branch in cond.branches:
        _check_same("the result of a branch", branch.out_types, cond.branches[0].out_types)
    return [(branch, given) for branch in cond.branches]


def _of_implicit(operation: Any, types: Sequence[ArrayType]) -> Inside:
    *groups, given = _parts(types, *operation.consts)
    if len(given) != operation.count:
        raise Damaged(f"it has {operation.count} unknowns, and begins with {len(given)}")
    for name, group in operation.captures.items():
        program, taken = getattr(operation, name), groups[group]
        if program is not None:  # its own arguments come first
            _check_same(f"what {name} takes", _last(program.in_types, len(taken)), taken)
    return [(operation.solve, [*given, *groups[1]])]


def _of_sized(call: Any, types: Sequence[ArrayType]) -> Inside:
    count = len(call.variables)
    if len(call.most) != count or len(types) != count + len(call.program.inputs):
        raise Damaged("it has another number of sizes or operands than its program")
    return []


def _of_custom_jvp(operation: Any, types: Sequence[ArrayType]) -> Inside:
    inside = [(operation.program, types)]
    rule = operation.rule
    if isinstance(getattr(rule, "program", None), Program):
        moving = _those(types, rule.moving)
        outs = operation.program.out_types
        wanted = [*outs, *_those(outs, rule.varying)]
        _check_same("the result of its rule", rule.program.out_types, wanted)
        inside.append((rule.program, [*types, *moving]))
    return inside


def _of_custom_vjp(operation: Any, types: Sequence[ArrayType]) -> Inside:
    inside = [(operation.program, types)]
    rule = operation.rule
    if isinstance(getattr(rule, "forward", None), Program):
        _those(types, rule.moving)
        outs = operation.program.out_types
        _check_same("the result of its rule", rule.forward.out_types[: len(outs)], outs)
        _check_same("what its rule takes", rule.outs, outs)
        floating = [t for t in outs if is_inexact(t.dtype)]
        residuals = rule.forward.out_types[len(outs) :]
        wanted = _those(types, rule.given)
        _check_same("the cotangents of its rule", rule.backward.out_types, wanted)
        inside += [(rule.forward, types), (rule.backward, [*residuals, *floating])]
    return inside


def _those(types: Sequence[ArrayType], marks: Sequence[bool]) -> list[ArrayType]:
    """Return the types that are marked."""
    if len(marks) != len(types):
        raise Damaged(f"its rule is for {len(marks)} operands or results, and it has {len(types)}")
    return [t for t, marked in zip(types, marks, strict=True) if marked]


def _of_linear_call(call: Any, types: Sequence[ArrayType]) -> Inside:
    linear, residuals = _parts(types, call.linear)
    inside: list[Any] = []
    if call.program is not None:
        _check_same("its result", call.program.out_types, call.outs)
        inside.append((call.program, types))
    rule = call.backward
    if isinstance(getattr(rule, "program", None), Program):
        _check_same("what its transpose takes", rule.outs, call.outs)
        wanted = _those(linear, rule.given)
        _check_same("the result of its transpose", rule.program.out_types, wanted)
        inside.append((rule.program, [*residuals, *call.outs]))
    return inside


_INSIDE: dict[str, Callable[[Any, Sequence[ArrayType]], Inside]] = {
    "cond": _of_cond,
    "custom_jvp": _of_custom_jvp,
    "custom_linear_solve": _of_implicit,
    "custom_root": _of_implicit,
    "custom_vjp": _of_custom_vjp,
    "custom_vjp_forward": lambda x, types: [(x.program, types), (x.plain, types)],
    "custom_vmap": lambda x, types: [(x.program, types)],
    "linear_call": _of_linear_call,
    "scan": _of_scan,
    "sized_call": _of_sized,
    "while": _of_while,
}
