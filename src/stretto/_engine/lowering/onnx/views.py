"""Rules of spelling: views, which copy nothing, out of the way of operators and of each other.

A reshape between two operators keeps a runtime from making them one. So views meet, and those that
undo each other go; what treats elements alone is done before a view; and constants are as small as
they can be broadcast from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.sizes import is_size
from stretto._engine.lowering.onnx.graph import Node, broadcast

_F32 = np.dtype(np.float32)

LARGEST = 1 << 16
"""The most elements of a constant that is made for an operator that asks for one."""

Found = bool | str | tuple[str, ...]
"""What a rule returns: whether it changed the node, or the tensors that stand for its outputs."""


def keeps_shape(s: Any, kept: str, other: str) -> bool:
    """Say whether ``kept`` has the shape that it has together with ``other``."""
    shape, more = s.shape(kept), s.shape(other)
    if shape is None or more is None or len(more) > len(shape):
        return False
    return all(n in (1, m) for n, m in zip(more[::-1], shape[::-1], strict=False))


def either(node: Node) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the two inputs in both orders."""
    x, y = node.inputs
    return (x, y), (y, x)


def _smaller_constants(s: Any, node: Node) -> Found:
    """Keep one row of a constant that repeats rows, where another operand has the whole shape."""
    for k, name in enumerate(node.inputs):
        value = s.value(name)
        if value is None or value.size < 2 or value.size > 1 << 26:
            continue
        others = [s.shape(n) for n in node.inputs if n != name]
        if any(shape is None for shape in others):
            continue
        kept = value
        for axis in range(value.ndim):
            back = value.ndim - axis
            whole = any(len(o) >= back and o[-back] == value.shape[axis] for o in others)
            if not whole or kept.shape[axis] < 2:
                continue
            first = kept.take([0], axis)
            if np.array_equal(kept, np.broadcast_to(first, kept.shape), kept.dtype.kind == "f"):
                kept = first
        # Axes of size 1 in front go where another operand has as many.
        most = max((len(o) for o in others), default=0)
        while kept.ndim and kept.shape[0] == 1 and most >= value.ndim:
            kept = kept[0]
        if kept.ndim < value.ndim or kept.size < value.size:
            inputs = [*node.inputs]
            inputs[k] = s.constant(kept, name)
            return s.become(node, node.op, inputs, **node.attributes)
    return False


def _viewed(s: Any, node: Node) -> Found:
    """Make a chain of Reshape, Squeeze and Unsqueeze one Reshape, or nothing."""
    source = node.inputs[0]
    while (inner := s.by(source, "Reshape", "Squeeze", "Unsqueeze")) is not None:
        source = inner.inputs[0]
    out = s.shape(node.outputs[0])
    if out is None or s.value(source) is not None:
        return False
    if s.shape(source) == out:
        return source
    if source == node.inputs[0]:
        return False
    if any(is_size(n) for n in out):
        # Its own target says the shape whatever is viewed.
        if node.op != "Reshape":
            return False
        return s.become(node, "Reshape", [source, node.inputs[1]], **node.attributes)
    zero = {"allowzero": 1} if 0 in out else {}
    return s.become(node, "Reshape", [source, s.constant(np.array(out, np.int64))], **zero)


def _kept_axes(s: Any, node: Node) -> Found:
    """A reduction whose axes are put back as units keeps them."""
    (source, *_), out = node.inputs, s.shape(node.outputs[0])
    inner = s.made.get(source)
    if inner is None or not inner.op.startswith("Reduce") or not s.once(source):
        return False
    if inner.attributes.get("keepdims", 1) or len(inner.inputs) < 2:
        return False
    shape, axes = s.shape(inner.inputs[0]), s.ints(inner.inputs[1])
    if shape is None or axes is None or out is None:
        return False
    units = tuple([1 if d in axes else n for d, n in enumerate(shape)])
    if units != out:
        return False
    return s.become(node, inner.op, inner.inputs, **{**inner.attributes, "keepdims": 1})


def _kept_axes_of_choice(s: Any, node: Node) -> Found:
    """Units put into a choice between reductions are put into each: the maximum that keeps NaN."""
    (source, *_), out = node.inputs, s.shape(node.outputs[0])
    choice = s.by(source, "Where")
    if choice is None or not s.once(source) or out is None or s.scalar(choice.inputs[1]) is None:
        return False
    test, other, chosen = choice.inputs
    inner = s.made.get(chosen)
    if inner is None or not inner.op.startswith("Reduce") or not s.once(chosen):
        return False
    if not s.once(test):
        return False
    parts = [
        s.new(node.op, [name, *node.inputs[1:]], s.dtype(name), out, **node.attributes)
        for name in (test, chosen)
    ]
    for name in parts:
        _kept_axes(s, s.made[name])
    return s.become(node, "Where", [parts[0], other, parts[1]])


def _transposed(s: Any, node: Node) -> Found:
    """Leave out a transpose that changes nothing, join two, and make one of units a Reshape."""
    (x,) = node.inputs
    perm = [*node.attributes["perm"]]
    if perm == sorted(perm):
        return x
    inner = s.by(x, "Transpose")
    if inner is not None:
        first = inner.attributes["perm"]
        return s.become(node, "Transpose", inner.inputs, perm=[first[p] for p in perm])
    shape = s.static(x)
    if shape is not None and s.value(x) is None:
        moved = [p for p in perm if shape[p] != 1]
        if moved == sorted(moved) and 0 not in shape:
            target = s.constant(np.array([shape[p] for p in perm], np.int64))
            return s.become(node, "Reshape", [x, target])
    return False


def _without_units(s: Any, node: Node) -> Found:
    """A product whose other operand has all axes takes matrices without units before them."""
    for k, name in enumerate(node.inputs):
        view = s.by(name, "Reshape", "Unsqueeze")
        wide, other = s.shape(name), s.shape(node.inputs[1 - k])
        if view is None or wide is None or other is None or len(other) < len(wide):
            continue
        small = s.shape(view.inputs[0])
        if s.by(view.inputs[0], "Reshape", "Squeeze", "Unsqueeze") is not None:
            continue  # which are to be one view first
        if small is None or len(small) < 2 or (1,) * (len(wide) - len(small)) + small != wide:
            continue
        inputs = [*node.inputs]
        inputs[k] = view.inputs[0]
        return s.become(node, "MatMul", inputs)
    return False


def _units_transposed(s: Any, node: Node) -> Found:
    """A view that only moves units after a transpose is another transpose."""
    inner = s.by(node.inputs[0], "Transpose")
    out = s.static(node.outputs[0])
    if inner is None or out is None or not s.once(node.inputs[0]):
        return False
    shape = s.static(inner.inputs[0])
    if shape is None or len(shape) != len(out):
        return False
    perm = inner.attributes["perm"]
    moved = [p for p in perm if shape[p] != 1]
    if [shape[p] for p in moved] != [n for n in out if n != 1]:
        return False
    whole, units = iter(moved), iter([d for d, n in enumerate(shape) if n == 1])
    order = [next(units) if n == 1 else next(whole) for n in out]
    return s.become(node, "Transpose", inner.inputs, perm=order)


def _picked(s: Any, node: Node) -> Found:
    """One index along an axis, which is then left out, is a Gather."""
    out = s.shape(node.outputs[0])
    cut = s.by(node.inputs[0], "Slice")
    if cut is None or out is None or not s.once(node.inputs[0]) or len(cut.inputs) > 4:
        return False
    x, *bounds = cut.inputs
    starts, ends, axes = [s.ints(name) for name in bounds]
    shape = s.shape(x)
    if shape is None or None in (starts, ends, axes) or len(axes) != 1:
        return False
    (axis,), (start,), (end,) = axes, starts, ends
    if end != start + 1 or start < 0 or out != (*shape[:axis], *shape[axis + 1 :]):
        return False
    return s.become(node, "Gather", [x, s.constant(np.array(start, np.int64))], axis=axis)


def _unexpanded(s: Any, node: Node) -> Found:
    """An operator whose operands broadcast takes the smaller tensor, where its result stays."""
    for k, name in enumerate(node.inputs):
        wide = s.by(name, "Expand")
        if wide is None:
            continue
        shapes = [s.shape(n) for n in node.inputs]
        small = s.shape(wide.inputs[0])
        if small is None or any(shape is None for shape in shapes):
            continue
        last = 2 if node.op == "MatMul" else 0
        if last and (len(small) < 2 or small[-2:] != shapes[k][-2:]):
            continue
        rows = [shape[: len(shape) - last] for shape in shapes]
        mine = small[: len(small) - last]
        others = [r for j, r in enumerate(rows) if j != k]
        if broadcast([mine, *others]) == broadcast(rows):
            inputs = [*node.inputs]
            inputs[k] = wide.inputs[0]
            return s.become(node, node.op, inputs, **node.attributes)
    return False


def _lower(s: Any, node: Node) -> Found:
    """An operand that is a view without units before it is taken as it was: it broadcasts so."""
    for k, name in enumerate(node.inputs):
        view = s.by(name, "Reshape", "Squeeze")
        if view is None or s.value(view.inputs[0]) is not None:
            continue
        small, source, out = [s.shape(n) for n in (name, view.inputs[0], node.outputs[0])]
        if None in (small, source, out) or len(source) > len(out):
            continue
        if source != (*[1] * (len(source) - len(small)), *small):
            continue
        inputs = [*node.inputs]
        inputs[k] = view.inputs[0]
        return s.become(node, node.op, inputs, **node.attributes)
    return False


OF_ELEMENTS = ("Relu", "Clip", "Sigmoid", "Tanh", "Gelu", "Neg", "Exp", "Erf", "Sqrt", "Abs",
                "HardSwish", "HardSigmoid", "Reciprocal", "Log", "Not", "LeakyRelu", "Elu", "Selu",
                "Softplus")  # fmt: skip
"""Operators of each element alone, after which a view may as well be taken."""


def _before_view(s: Any, node: Node) -> Found:
    """A view of elements, each taken alone, is taken after: it may meet another there."""
    view = s.by(node.inputs[0], "Reshape")
    if view is None or not s.once(node.inputs[0]):
        return False
    source = view.inputs[0]
    shape, dtype = s.shape(source), s.dtype(node.outputs[0])
    if shape is None or dtype.kind == "V":
        return False
    name = s.new(node.op, [source, *node.inputs[1:]], dtype, shape, **node.attributes)
    return s.become(node, "Reshape", [name, view.inputs[1]], **view.attributes)


def _rejoined(s: Any, node: Node) -> Found:
    """Parts that are joined as they were split are the whole."""
    axis, shape = node.attributes["axis"], s.shape(node.outputs[0])
    if shape is None:
        return False
    inputs = [*node.inputs]
    for name in dict.fromkeys(node.inputs):
        split = s.by(name, "Split")
        if split is None or split.attributes["axis"] != axis % len(shape) or name not in inputs:
            continue
        at, count = inputs.index(name), len(split.outputs)
        if tuple(inputs[at : at + count]) == split.outputs:
            inputs[at : at + count] = [split.inputs[0]]
    if len(inputs) == 1:
        return inputs[0]
    if len(inputs) == len(node.inputs):
        return False
    return s.become(node, "Concat", inputs, **node.attributes)


def _both_ways(s: Any, node: Node) -> Found:
    """Both directions' states (T, 2, B, H), split and joined along H."""
    out = s.shape(node.outputs[0])
    parts = [s.by(n, "Squeeze") for n in node.inputs]
    if out is None or len(out) != 3 or node.attributes["axis"] not in (2, -1):
        return False
    if any(p is None or len(p.inputs) < 2 or s.ints(p.inputs[1]) != [1] for p in parts):
        return False
    split = s.by(parts[0].inputs[0], "Split")
    if split is None or split.outputs != tuple([p.inputs[0] for p in parts]):
        return False
    whole = s.shape(split.inputs[0])
    if split.attributes["axis"] != 1 or whole is None or len(whole) != 4 or _varying(out) > 1:
        return False
    length, count, batch, size = whole
    turned = (length, batch, count, size)
    name = s.new("Transpose", split.inputs, s.dtype(node.outputs[0]), turned, perm=[0, 2, 1, 3])
    return s.become(node, "Reshape", [name, _target(s, out)])


def _cast_before_transpose(s: Any, node: Node) -> Found:
    """A cast goes before a transpose: onnxruntime's fusion with a product ends the process."""
    turned = s.by(node.inputs[0], "Transpose")
    if turned is None or not s.once(node.inputs[0]):
        return False
    (x,) = turned.inputs
    name = s.new("Cast", [x], node.attributes["to"], s.shape(x), **node.attributes)
    return s.become(node, "Transpose", [name], **turned.attributes)


def _image_windows(s: Any, node: Node) -> Found:
    """Windows of one element along the first spatial axis: as if that were channels."""
    window, shape = node.attributes["kernel_shape"], s.shape(node.inputs[0])
    n, out = len(window), s.shape(node.outputs[0])
    if n != 3 or window[0] != 1 or shape is None or out is None:
        return False
    if _varying(shape) > 1 or _varying(shape[1:3]) or _varying(out) > 1:
        return False
    settings = {}
    for name, fill in (("strides", 1), ("dilations", 1), ("pads", 0)):
        given = node.attributes.get(name)
        if given is None:
            continue
        if given[0] != fill or (name == "pads" and given[n] != fill):
            return False
        settings[name] = given[1:n] + given[n + 1 :] if name == "pads" else given[1:]
    flat, small = [(v[0], v[1] * v[2], *v[3:]) for v in (shape, out)]
    dtype = s.dtype(node.inputs[0])
    image = s.new("Reshape", [node.inputs[0], _target(s, flat)], dtype, flat)
    attributes = {**node.attributes, **settings, "kernel_shape": [*window[1:]]}
    pooled = s.new(node.op, [image], dtype, small, **attributes)
    return s.become(node, "Reshape", [pooled, _target(s, out)])


def _target(s: Any, shape: Sequence[Any]) -> str:
    """Return the name of a shape, of which at most one size varies."""
    return s.constant(np.array([-1 if is_size(n) else n for n in shape], np.int64))


def _varying(shape: Sequence[Any]) -> int:
    return sum(map(is_size, shape))


def _constant_before_view(s: Any, node: Node) -> Found:
    """A constant that meets a view of a product meets the product, whose weights may take it."""
    for name, other in either(node)[: 2 if node.op in ("Add", "Mul") else 1]:
        view, value = s.by(name, "Reshape"), s.value(other)
        if view is None or value is None or not s.once(name):
            continue
        source = view.inputs[0]
        made = s.by(source, "Conv", "ConvTranspose", "Gemm", "MatMul")
        shape, out = s.shape(source), s.shape(name)
        if made is None or None in (shape, out) or not s.once(source) or value.ndim > len(out):
            continue
        if s.shape(node.outputs[0]) != out:
            continue
        moved = _on_source(value.reshape((1,) * (len(out) - value.ndim) + value.shape), shape, out)
        if moved is None:
            continue
        result = s.new(node.op, [source, s.constant(moved, other)], s.dtype(source), shape)
        return s.become(node, "Reshape", [result, view.inputs[1]], **view.attributes)
    return False


_PRIMES = (1_000_003, 1_000_033, 1_000_037, 1_000_039, 1_000_081, 1_000_099)


def _on_source(value: np.ndarray, shape: Sequence[Any], out: Sequence[Any]) -> np.ndarray | None:
    """Return a constant that broadcasts to a view as one that broadcasts to what is viewed."""
    # Each variable is a prime, so that products of sizes are equal where they are.
    known: dict[Any, int] = {}

    def number(n: Any) -> int:
        if not is_size(n):
            return n
        prime = lambda v: known.setdefault(v, _PRIMES[len(known) % len(_PRIMES)])
        return n.at(prime, lambda x, by: x // by, lambda x: max(x, 0))

    shape, out = [[number(n) for n in v] for v in (shape, out)]
    sizes: list[int] = []
    axes: list[int] = []
    i = j = 0
    while i < len(shape) or j < len(out):
        first, second = [i], [j]
        a, b = [v[k] if k < len(v) else 1 for v, k in ((shape, i), (out, j))]
        while a != b:
            if a < b:
                first.append(first[-1] + 1)
                if first[-1] >= len(shape):
                    return None
                a *= shape[first[-1]]
            else:
                second.append(second[-1] + 1)
                if second[-1] >= len(out):
                    return None
                b *= out[second[-1]]
        first, second = [k for k in first if k < len(shape)], [k for k in second if k < len(out)]
        if any(value.shape[k] != 1 for k in second):
            axes += second
            sizes += [shape[k] for k in first]
        else:
            sizes += [1] * len(first)
        i, j = i + max(len(first), 1), j + max(len(second), 1)
    wide = tuple([out[k] if k in axes else 1 for k in range(len(out))])
    if math.prod(wide) > LARGEST or math.prod(wide) != math.prod(sizes):
        return None
    return np.broadcast_to(value, wide).reshape(sizes)


def _repeated(s: Any, node: Node) -> Found:
    """Elements of an image repeated along an axis are a Resize, and of two one."""
    wide = s.by(node.inputs[0], "Expand")
    if wide is None or not s.once(node.inputs[0]):
        return False
    units, spread, out = [s.static(n) for n in (wide.inputs[0], node.inputs[0], node.outputs[0])]
    if None in (units, spread, out) or len(units) != len(spread) or s.dtype(wide.inputs[0]) != _F32:
        return False
    grown = [d for d, n in enumerate(units) if spread[d] != n]
    if len(grown) != 1 or grown[0] < 3 or len(units) not in (4, 5):
        return False
    (d,) = grown
    shape = (*units[:d], *units[d + 1 :])
    larger = (*shape[: d - 1], shape[d - 1] * spread[d], *shape[d:])
    # It may make room for another axis already.
    if larger not in (out, *[out[:k] + out[k + 1 :] for k, n in enumerate(out) if n == 1]):
        return False
    scales = [1.0] * len(shape)
    scales[d - 1] = float(spread[d])
    x: str | None = wide.inputs[0]
    while x is not None and s.static(x) != shape:
        view = s.by(x, "Reshape", "Squeeze", "Unsqueeze")
        x = view.inputs[0] if view is not None else None
    if x is None:
        x = s.new("Reshape", [wide.inputs[0], _target(s, shape)], _F32, shape)
    before = s.by(x, "Resize")
    if before is not None and s.once(x):
        x = before.inputs[0]
        scales = [a * float(b) for a, b in zip(scales, s.value(before.inputs[2]), strict=True)]
    name = s.new(
        "Resize",
        [x, "", s.constant(np.array(scales, np.float32))],
        _F32,
        larger,
        mode="nearest",
        nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    )
    return s.become(node, "Reshape", [name, _target(s, out)])


def _lifted_product(s: Any, node: Node) -> Found:
    """A view that adds units before the matrices of a product is taken of its operands."""
    product = s.by(node.inputs[0], "MatMul")
    out = s.static(node.outputs[0])
    if product is None or out is None or not s.once(node.inputs[0]):
        return False
    shapes = [s.static(n) for n in product.inputs]
    made = s.static(node.inputs[0])
    if None in (*shapes, made) or len(made) < 3:
        return False
    if out[-2:] != made[-2:] or [n for n in out[:-2] if n != 1] != [n for n in made[:-2] if n != 1]:
        return False
    if any(v[:-2] != made[:-2] for v in shapes):
        return False
    targets = [(*out[:-2], *v[-2:]) for v in shapes]
    meets = [
        (view := s.by(n, "Reshape")) is not None and s.static(view.inputs[0]) == t
        for n, t in zip(product.inputs, targets, strict=True)
    ]
    if not any(meets):
        return False
    names = [
        s.new("Reshape", [n, _target(s, t)], s.dtype(n), t)
        for n, t in zip(product.inputs, targets, strict=True)
    ]
    return s.become(node, "MatMul", names)


BROADCASTING = (_smaller_constants, _unexpanded, _lower)
"""Of operators whose operands broadcast."""

RULES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(OF_ELEMENTS, (_before_view,)),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div"), (_constant_before_view, *BROADCASTING)),
    **dict.fromkeys(("Max", "Min", "Where"), BROADCASTING),
    **dict.fromkeys(("AveragePool", "MaxPool"), (_image_windows,)),
    "Cast": (_before_view, _cast_before_transpose),
    "Concat": (_both_ways, _rejoined),
    "MatMul": (_unexpanded, _without_units),
    "Reshape": (
        _viewed,
        _kept_axes,
        _kept_axes_of_choice,
        _picked,
        _lifted_product,
        _repeated,
        _units_transposed,
    ),
    "Squeeze": (_viewed, _picked),
    "Transpose": (_transposed,),
    "Unsqueeze": (_viewed, _kept_axes, _kept_axes_of_choice),
}
