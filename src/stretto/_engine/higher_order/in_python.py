"""Branches and loops as Python runs them: what ``disable_jit`` makes of them.

Functions are called with the values of each step, instead of being recorded once, so that
``print``, ``if`` and debuggers in them work. Where a condition is traced, as by a ``vmap`` around
it, Python cannot decide, and the usual way is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.core import tree
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.types import promote
from stretto._engine.higher_order.family import check_carry, values_of
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import expand_dims, move_to_front, reshape
from stretto._engine.ops.shape import concatenate, slice_in_dim


def concrete_array(x: Any) -> Any:
    """Return the concrete array behind a value; None where there is none."""
    while isinstance(x, Tracer):
        x = x.concrete()
    return x


def call(caller: str, function: Callable[..., Any], *args: Any) -> Any:
    """Return the result of the function, with values as leaves, for arguments like that."""
    return _with_values(caller, function(*[_with_values(caller, a) for a in args]))


def run_while(
    caller: str, cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], carry: Any
) -> tuple[Any] | None:
    """Return the last carry, in a tuple; None where the condition is traced."""
    structure = tree.structure(carry)
    carry = _with_values(caller, carry)
    while True:
        goes_on = concrete_array(as_value(cond_fun(carry), caller, "the result of cond_fun"))
        if goes_on is None:
            return None
        if not bool(goes_on):
            return (carry,)
        carry = call(caller, body_fun, carry)
        check_carry(caller, structure, tree.structure(carry))


def run_scan(
    caller: str,
    f: Callable[[Any, Any], tuple[Any, Any]],
    carry: Any,
    xs: Any,
    length: int,
    reverse: bool,
) -> tuple[Any, Any]:
    """Return the last carry and the stacked results of ``length`` steps, at least one.

    ``f`` checks what it returns.
    """
    leaves, structure = tree.flatten(xs)
    values = values_of(leaves, caller)
    carry, steps = _with_values(caller, carry), []
    for i in range(length)[:: -1 if reverse else 1]:
        x = tree.unflatten(structure, [_element(v, i) for v in values])
        carry, y = call(caller, f, carry, x)
        steps.append(y)
    return carry, tree.map(lambda *ys: _stacked(caller, ys), *steps[:: -1 if reverse else 1])


def map_one_by_one(
    caller: str,
    flat: Callable[..., Sequence[Any]],
    size: int,
    args: Sequence[Any],
    axes: Sequence[int | None],
) -> list[Any]:
    """Return the outputs of ``flat`` for each of the examples along ``axes``, stacked in front."""
    moved = [x if a is None else move_to_front(x, a) for x, a in zip(args, axes, strict=True)]
    each = [
        flat(*[x if a is None else _element(x, i) for x, a in zip(moved, axes, strict=True)])
        for i in range(size)
    ]
    return [_stacked(caller, outs) for outs in zip(*each, strict=True)]


def _with_values(caller: str, x: Any) -> Any:
    leaves, structure = tree.flatten(x)
    return tree.unflatten(structure, values_of(leaves, caller))


def _element(x: Any, i: int) -> Any:
    return reshape(slice_in_dim(x, i, i + 1), x.shape[1:])


def _stacked(caller: str, values: Sequence[Any]) -> Any:
    dtype, weak = promote([(v.type.dtype, v.type.weak_type) for v in values], caller)
    return concatenate([expand_dims(convert(v, dtype, weak), 0) for v in values], 0)
