"""Arithmetic of sizes, parts of results, control flow, and whether buffers are as imported."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.interpreter import Tracer

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


def _as_imported(buffer: Any, values: Sequence[Any], name: str) -> Any:
    """Whether a buffer is as it was when the module was imported; it raises where that is known."""
    expected = np.asarray(values, buffer.dtype).reshape(buffer.shape)
    if isinstance(buffer, Tracer):
        return snp.array_equal(buffer, expected, equal_nan=buffer.dtype.kind in "fc")
    if not np.array_equal(np.asarray(buffer), expected, equal_nan=buffer.dtype.kind in "fc"):
        raise ValueError(
            f"the program of this imported module is made for the values that its buffer {name} "
            f"had, as the module makes a number of Python of it (.item(), int(), if): import the "
            f"module anew with these values"
        )
    return True


def _where_as_imported(same: Any, x: Any) -> Any:
    """A result, or NaN, or -1 of an integer, where a compiled program is not made for a buffer."""
    if same is True or x.dtype.kind == "b":
        return x
    return snp.where(same, x, snp.asarray(-1 if x.dtype.kind in "iu" else snp.nan, x.dtype))


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
    "stretto.as_imported.default": _as_imported,
    "stretto.where_as_imported.default": _where_as_imported,
}
