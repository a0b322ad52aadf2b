"""Constants computed while a graph is written: what nodes give whose inputs are all known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from stretto._engine.lowering.onnx.graph import Node


def folded(node: Node, values: Sequence[Any]) -> np.ndarray | None:
    """Return what a node makes of these arrays, or None where it is not known here."""
    rule = _RULES.get(node.op)
    if rule is None:
        return None
    with np.errstate(all="ignore"):
        return rule(node.attributes, *values)


Rule = Callable[..., "np.ndarray | None"]


def _each(function: Callable[..., Any]) -> Rule:
    """Return the rule of an operator of elements; the dtype is that of the last operand."""

    def rule(_: Mapping[str, Any], *values: np.ndarray) -> np.ndarray:
        return np.asarray(function(*values)).astype(values[-1].dtype, copy=False)

    return rule


def _test(function: Callable[..., Any]) -> Rule:
    return lambda _, *values: np.asarray(function(*values))


def _divide(_: Mapping[str, Any], x: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    return np.asarray(x / y) if x.dtype.kind == "f" else None


def _cast(attributes: Mapping[str, Any], x: np.ndarray) -> np.ndarray | None:
    to = np.dtype(attributes["to"])
    return None if x.dtype.kind not in "biu" and to.kind in "biu" else x.astype(to)


def _reshape(attributes: Mapping[str, Any], x: np.ndarray, shape: np.ndarray) -> Any:
    target = [int(n) for n in shape]
    if 0 in target and not attributes.get("allowzero"):
        return None
    return x.reshape(target)


def _unsqueeze(_: Mapping[str, Any], x: np.ndarray, axes: np.ndarray) -> np.ndarray:
    return np.expand_dims(x, tuple([int(a) for a in axes]))


def _squeeze(_: Mapping[str, Any], x: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    return np.squeeze(x, None if axes is None else tuple([int(a) for a in axes]))


def _transpose(attributes: Mapping[str, Any], x: np.ndarray) -> np.ndarray:
    return x.transpose(attributes["perm"])


def _concat(attributes: Mapping[str, Any], *parts: np.ndarray) -> np.ndarray:
    return np.concatenate(parts, attributes["axis"])


def _slice(
    _: Mapping[str, Any],
    x: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    axes: np.ndarray,
    steps: np.ndarray | None = None,
) -> np.ndarray | None:
    by = np.ones_like(starts) if steps is None else steps
    index = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, by, strict=True):
        # Backwards it is the whole axis: to before an end that lies before all.
        if step < 0 and (start, step) != (-1, -1):
            return None
        last = None if step < 0 and end < -x.shape[axis] else int(end)
        index[int(axis)] = slice(int(start), last, int(step))
    return x[tuple(index)]


def _expand(_: Mapping[str, Any], x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    target = np.broadcast_shapes(x.shape, tuple([int(n) for n in shape]))
    return np.array(np.broadcast_to(x, target))


_RULES: dict[str, Rule] = {
    "Abs": _each(np.abs),
    "Add": _each(np.add),
    "And": _test(np.logical_and),
    "Cast": _cast,
    "Concat": _concat,
    "Div": _divide,
    "Equal": _test(np.equal),
    "Exp": _each(np.exp),
    "Expand": _expand,
    "Greater": _test(np.greater),
    "GreaterOrEqual": _test(np.greater_equal),
    "Less": _test(np.less),
    "LessOrEqual": _test(np.less_equal),
    "Max": _each(np.maximum),
    "Min": _each(np.minimum),
    "Mul": _each(np.multiply),
    "Neg": _each(np.negative),
    "Not": _test(np.logical_not),
    "Or": _test(np.logical_or),
    "Reciprocal": _each(lambda x: np.ones_like(x) / x),
    "Reshape": _reshape,
    "Slice": _slice,
    "Sqrt": _each(np.sqrt),
    "Squeeze": _squeeze,
    "Sub": _each(np.subtract),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": _each(np.where),
}
