"""Arithmetic of sizes, parts of results, and control flow."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from stretto import lax

__all__ = ["TABLE"]

_OF_PYTHON = [
    "add",
    "and_",
    "eq",
    "floordiv",
    "ge",
    "getitem",
    "gt",
    "le",
    "lt",
    "mod",
    "mul",
    "ne",
    "neg",
    "not_",
    "or_",
    "pos",
    "pow",
    "sub",
    "truediv",
]


def _conditional(
    predicate: Any, true: Callable[..., Any], false: Callable[..., Any], operands: Sequence[Any]
) -> Any:
    if isinstance(predicate, bool):
        return tuple((true if predicate else false)(*operands))
    branches = [lambda *xs, f=f: tuple(f(*xs)) for f in (true, false)]
    return lax.cond(predicate.reshape(()), *branches, *operands)


def _loop(
    condition: Callable[..., Any], body: Callable[..., Any], carried: Sequence[Any], more: Any = ()
) -> Any:
    """``torch.while_loop``: ``more`` is what condition and body read and do not change."""
    return lax.while_loop(
        lambda xs: condition(*xs, *more)[0].reshape(()),
        lambda xs: tuple(body(*xs, *more)),
        tuple(carried),
    )


def _without_gradient(enabled: bool, function: Callable[..., Any], *operands: Any) -> Any:
    results = function(*operands)
    return tuple(results if enabled else map(lax.stop_gradient, results))


TABLE: dict[str, Callable[..., Any]] = {
    **{f"operator.{name}": getattr(operator, name) for name in _OF_PYTHON},
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.trunc": math.trunc,
    "builtins.round": round,
    "aten.sym_numel.default": lambda x: x.size,
    "aten.sym_size.int": lambda x, axis: x.shape[axis],
    "torch.sym_float": float,
    "torch.sym_int": int,
    "torch.sym_ite": lambda predicate, true, false: true if predicate else false,
    "torch.sym_max": max,
    "torch.sym_min": min,
    "torch.sym_not": operator.not_,
    "cond": _conditional,
    "while_loop": _loop,
    "wrap_with_autocast": lambda device, dtype, enabled, cached, f, *xs: tuple(f(*xs)),
    "wrap_with_set_grad_enabled": _without_gradient,
}
