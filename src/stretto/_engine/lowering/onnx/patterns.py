"""Rules of spelling: several nodes that are one operator of onnxruntime.

Each rule takes the graph being rewritten and the last node of its pattern. It changes the node and
says so, or returns the name of a tensor that stands for it, or nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.sizes import is_size
from stretto._engine.lowering.onnx.graph import FINITE, Graph, Node
from stretto._engine.lowering.onnx.views import LARGEST, Found, either, keeps_shape

_FLOATS = (np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64))
_F32 = np.dtype(np.float32)


# Elements


def _bounded(s: Any, node: Node) -> Found:
    """Where(x <= c, c, x) is Max, and Where(x >= c, c, x) is Min: NaN fails the comparison."""
    test, bound, x = node.inputs
    compared = s.by(test, "LessOrEqual", "GreaterOrEqual", "Less", "Greater")
    if compared is None or not keeps_shape(s, x, bound):
        return False
    low, other = s.value(bound), s.value(compared.inputs[1])
    if low is None or other is None or not np.array_equal(low, other):
        return False
    op = "Max" if compared.op.startswith("Less") else "Min"
    if compared.inputs[0] != x:
        # Of x bounded from below, as far as the upper bound is above.
        inner = s.by(x, "Relu", "Max")
        if op == "Max" or inner is None or inner.inputs[0] != compared.inputs[0]:
            return False
        least = s.value(inner.inputs[1]) if inner.op == "Max" else np.zeros((), low.dtype)
        if least is None or not np.all(least <= low):
            return False
    if not s.has_kernel(op, x) or np.isnan(low).any():
        return False
    return s.become(node, op, [x, bound])


def _relu(s: Any, node: Node) -> Found:
    """Max(x, 0) of floats: onnxruntime refuses a Clip of integers after a Relu."""
    for x, zero in either(node):
        if s.scalar(zero) == 0 and keeps_shape(s, x, zero) and s.dtype(x) in _FLOATS:
            return s.become(node, "Relu", [x])
    return False


def _clip(s: Any, node: Node) -> Found:
    """Min(Max(x, a), b) with a <= b; Relu is a Max."""
    for inner, high in either(node):
        made = s.by(inner, "Max", "Relu")
        top = s.scalar(high)
        if made is None or top is None or not keeps_shape(s, inner, high):
            continue
        pairs = either(made) if made.op == "Max" else ((made.inputs[0], ""),)
        for x, low in pairs:
            bottom = s.scalar(low) if low else 0
            if bottom is None or not bottom <= top or not s.has_kernel("Clip", x):
                continue
            if s.shape(x) != s.shape(inner):
                continue
            dtype = s.dtype(x)
            bounds = [s.constant(np.array(v, dtype)) for v in (bottom, top)]
            return s.become(node, "Clip", [x, *bounds])
    return False


def _neutral(element: float, last: bool) -> Any:
    """Return the rule of an operator that leaves an operand as it is, with this other one.

    It must be the ``last`` of the two, or may be either.
    """

    def rule(s: Any, node: Node) -> Found:
        for x, other in [node.inputs] if last else either(node):
            value = s.value(other)
            if value is None or value.size == 0 or not keeps_shape(s, x, other):
                continue
            if value.size <= LARGEST and np.all(value == element):
                return x
        return False

    return rule


def _cast(s: Any, node: Node) -> Found:
    """Leave out a cast to the same dtype, or to a wider one and back."""
    (x,) = node.inputs
    to = np.dtype(node.attributes["to"])
    if s.dtype(x) == to:
        return x
    first = s.by(x, "Cast")
    if first is not None and s.dtype(first.inputs[0]) == to:
        between = np.dtype(first.attributes["to"])
        if np.can_cast(to, between, "safe"):
            return first.inputs[0]
    return False


def _twice(s: Any, node: Node) -> Found:
    """Leave out two turns that undo each other."""
    inner = s.by(node.inputs[0], node.op)
    return inner.inputs[0] if inner is not None else False


def _reciprocal_product(s: Any, node: Node) -> Found:
    """x * (1 / y) is x / y, which rounds once."""
    for x, other in either(node):
        inverse = s.by(other, "Reciprocal")
        if inverse is not None and s.once(other) and s.dtype(x) in _FLOATS:
            return s.become(node, "Div", [x, inverse.inputs[0]])
    return False


def _scaled_quotient(s: Any, node: Node) -> Found:
    """(x * c) / c of a mean that was made a sum again."""
    x, by = node.inputs
    product = s.by(x, "Mul")
    divisor = s.scalar(by)
    if product is None or not divisor or not s.once(x) or not keeps_shape(s, x, by):
        return False
    for inner, factor in either(product):
        if s.by(inner, "AveragePool") is not None and s.scalar(factor) == divisor:
            return inner
    return False


# Reductions


def _mean(s: Any, node: Node) -> Found:
    """A sum divided by how many were summed."""
    total, count = node.inputs
    summed = s.by(total, "ReduceSum")
    if summed is None or not s.once(total) or not s.has_kernel("ReduceMean", total):
        return False
    if s.dtype(total) not in _FLOATS:
        return False
    n = _reduced_count(s, summed)
    if n is None or s.scalar(count) != n or not keeps_shape(s, total, count):
        return False
    return s.become(node, "ReduceMean", summed.inputs, **summed.attributes)


def _reduced_count(s: Any, node: Node) -> int | None:
    shape, axes = s.shape(node.inputs[0]), s.ints(node.inputs[1])
    if shape is None or axes is None or any(is_size(shape[a]) for a in axes):
        return None
    return math.prod([int(shape[a]) for a in axes])


def _mean_of_split(s: Any, node: Node) -> Found:
    """A mean over an image whose axes were split into a unit and the whole is that of the image."""
    source, axes = node.inputs[0], s.ints(node.inputs[1])
    view = s.by(source, "Reshape")
    if view is None or axes is None:
        return False
    shape, split, out = [s.shape(n) for n in (view.inputs[0], source, node.outputs[0])]
    if None in (shape, split, out):
        return False
    # What is summed are all elements behind the axes that are kept, but for units.
    kept = [n for d, n in enumerate(split) if d not in axes and n != 1]
    first = [d for d in range(len(split)) if d not in axes and split[d] != 1]
    last = first[-1] + 1 if first else 0
    if any(d < last for d in axes if split[d] != 1):
        return False
    at = 0
    for d in range(len(shape)):
        if [n for n in shape[:d] if n != 1] == kept:
            at = d
            break
    else:
        return False
    whole = list(range(at, len(shape)))
    units = (*shape[:at], *[1] * len(whole))
    if out == units:
        keep = 1
    elif out == shape[:at]:
        keep = 0
    else:
        return False
    names = [view.inputs[0], s.constant(np.array(whole, np.int64))]
    return s.become(node, node.op, names, **{**node.attributes, "keepdims": keep})


def _keeps_axes(s: Any, node: Node) -> bool:
    """Say whether a reduction's result broadcasts along its axes: they are units, or the first."""
    if node.attributes.get("keepdims", 1):
        return True
    axes = s.ints(node.inputs[1])
    return axes is not None and sorted(axes) == [*range(len(axes))]


def _max_of(s: Any, name: str) -> tuple[str, int] | None:
    """Return what a maximum with kept axes is of, and its one axis; NaN may be kept apart."""
    choice = s.by(name, "Where")
    if choice is not None:
        test, nan, name = choice.inputs
        value = s.scalar(nan)
        any_nan = s.by(test, "ReduceMax")
        if value is None or not math.isnan(value) or any_nan is None:
            return None
    most = s.by(name, "ReduceMax")
    if most is None or not _keeps_axes(s, most):
        return None
    axes = s.ints(most.inputs[1])
    if axes is None or len(axes) != 1:
        return None
    return most.inputs[0], axes[0]


def _sum_of(s: Any, name: str, axis: int) -> str | None:
    """Return what a sum over this axis, which is kept, is of."""
    total = s.by(name, "ReduceSum")
    if total is None or not _keeps_axes(s, total):
        return None
    return total.inputs[0] if s.ints(total.inputs[1]) == [axis] else None


def _softmax(s: Any, node: Node) -> Found:
    """exp(x - max) / sum(exp(x - max))."""
    top, bottom = node.inputs
    e = s.by(top, "Exp")
    shifted = s.by(e.inputs[0], "Sub") if e is not None else None
    if shifted is None:
        return False
    most = _max_of(s, shifted.inputs[1])
    if most is None or most[0] != shifted.inputs[0] or not s.has_kernel("Softmax", top):
        return False
    if _sum_of(s, bottom, most[1]) != top:
        return False
    return s.become(node, "Softmax", [most[0]], axis=most[1])


def _log_softmax(s: Any, node: Node) -> Found:
    """x - max - log(sum(exp(x - max)))."""
    first, last = node.inputs
    shifted, log = s.by(first, "Sub"), s.by(last, "Log")
    if shifted is None or log is None:
        return False
    most = _max_of(s, shifted.inputs[1])
    if most is None or most[0] != shifted.inputs[0] or not s.has_kernel("LogSoftmax", first):
        return False
    total = _sum_of(s, log.inputs[0], most[1])
    e = s.by(total, "Exp") if total is not None else None
    if e is None or e.inputs[0] != first:
        return False
    return s.become(node, "LogSoftmax", [most[0]], axis=most[1])


def _attention(s: Any, node: Node) -> Found:
    """exp(w - max) @ v / sum, whose rows that are masked as a whole are 0: softmax(w) @ v.

    Such rows have a maximum of -inf, and their sum is made 1.
    """
    product, total = s.by(node.inputs[0], "MatMul"), s.by(node.inputs[1], "Add")
    if product is None or total is None:
        return False
    e = s.by(product.inputs[0], "Exp")
    shifted = s.by(e.inputs[0], "Sub") if e is not None else None
    chosen = s.by(shifted.inputs[1], "Where") if shifted is not None else None
    if shifted is None or chosen is None or s.scalar(chosen.inputs[1]) != 0.0:
        return False
    empty, _, largest = chosen.inputs
    most, tested = _max_of(s, largest), s.by(empty, "Equal")
    if most is None or most[0] != shifted.inputs[0] or tested is None:
        return False
    if tested.inputs[0] != largest or s.scalar(tested.inputs[1]) != -math.inf:
        return False
    x, axis = most
    shape = s.shape(x)
    if not s.has_kernel("Softmax", x) or axis != len(shape) - 1:
        return False
    for summed, one in either(total):
        cast = s.by(one, "Cast")
        if _sum_of(s, summed, axis) == product.inputs[0] and cast and cast.inputs[0] == empty:
            break
    else:
        return False
    dtype, out = s.dtype(x), s.shape(node.outputs[0])
    weights = s.new("Softmax", [x], dtype, shape, axis=axis)
    if not s.exact and _has_a_place_in_each_row(s, x):
        return s.become(node, "MatMul", [weights, product.inputs[1]])
    mixed = s.new("MatMul", [weights, product.inputs[1]], dtype, out)
    low = s.constant(np.array(-math.inf, dtype))
    nothing = s.new("Equal", [x, low], np.dtype(bool), shape)
    last = s.constant(np.array([axis], np.int64))
    rows = (*shape[:-1], 1)
    every = s.new("ReduceMin", [nothing, last], np.dtype(bool), rows, keepdims=1)
    return s.become(node, "Where", [every, s.constant(np.array(0, dtype)), mixed])


def _has_a_place_in_each_row(s: Any, name: str) -> bool:
    """Say whether a mask is known that leaves something in each row."""
    masked = s.by(name, "Where")
    if masked is None or s.scalar(masked.inputs[2]) != -math.inf:
        return False
    mask = s.value(masked.inputs[0])
    if mask is not None:
        return bool(mask.any(-1).all())
    # The place in the row is at most that of the row: the diagonal is left.
    causal = s.by(masked.inputs[0], "GreaterOrEqual")
    if causal is None:
        return False
    column = s.by(causal.inputs[0], "Unsqueeze")
    return column is not None and column.inputs[0] == causal.inputs[1]


# Normalization


def _mean_along(s: Any, name: str, x: str) -> list[int] | None:
    """Return the axes, which are kept, that a tensor is the mean of ``x`` along.

    The mean of x - p, and p added again, is that, too, for p that is the same along the axes.
    """
    mean = s.by(name, "ReduceMean")
    if mean is not None and mean.inputs[0] == x and mean.attributes.get("keepdims", 1):
        return _long_axes(s, mean)
    total = s.by(name, "Add")
    if total is None:
        return None
    for pilot, rest in either(total):
        mean = s.by(rest, "ReduceMean")
        if mean is None or not mean.attributes.get("keepdims", 1):
            continue
        apart = s.by(mean.inputs[0], "Sub")
        if apart is None or apart.inputs != (x, pilot):
            continue
        axes, shape = _long_axes(s, mean), s.shape(pilot)
        if axes is not None and shape is not None and all(shape[a] == 1 for a in axes):
            return axes
    return None


def _long_axes(s: Any, node: Node) -> list[int] | None:
    """Return a reduction's axes, in order, but for those of one element."""
    axes, shape = s.ints(node.inputs[1]), s.shape(node.inputs[0])
    if axes is None or shape is None:
        return None
    return [a for a in sorted([a % len(shape) for a in axes]) if shape[a] != 1]


def _with_units(s: Any, name: str) -> str:
    """Return a tensor before units in front of it were left out."""
    view = s.by(name, "Reshape", "Squeeze")
    small, source = s.shape(name), s.shape(view.inputs[0]) if view is not None else None
    if view is None or small is None or source is None:
        return name
    return view.inputs[0] if source == (1,) * (len(source) - len(small)) + small else name


def _layer_norm(s: Any, node: Node) -> Found:
    """(x - mean) / sqrt(mean of squares + eps), along the last axes."""
    d, root = node.inputs
    under = s.by(root, "Sqrt")
    total = s.by(under.inputs[0], "Add") if under is not None else None
    centred = s.by(d, "Sub")
    if total is None or centred is None or not s.has_kernel("LayerNormalization", d):
        return False
    x = centred.inputs[0]
    for squares, small in either(total):
        eps, mean = s.scalar(small), s.by(_with_units(s, squares), "ReduceMean")
        if eps is None or mean is None or not mean.attributes.get("keepdims", 1):
            continue
        if not keeps_shape(s, squares, small):
            continue
        square = s.made.get(mean.inputs[0])
        if square is None or not (
            (square.op == "Mul" and square.inputs == (d, d))
            or (square.op == "Pow" and square.inputs[0] == d and s.scalar(square.inputs[1]) == 2)
        ):
            continue
        axes, shape = _long_axes(s, mean), s.shape(x)
        if not axes or shape is None or _mean_along(s, centred.inputs[1], x) != axes:
            continue
        sizes = shape[axes[0] :]
        if any(is_size(n) for n in sizes) or math.prod(sizes) > LARGEST:
            continue
        if any(shape[a] != 1 for a in range(axes[0], len(shape)) if a not in axes):
            continue
        if s.shape(d) != shape or (s.static(x) is not None and 0 in shape):
            continue
        scale = s.constant(np.ones(sizes, s.dtype(x)))
        return s.become(
            node, "LayerNormalization", [x, scale], axis=-len(sizes), epsilon=float(eps)
        )
    return False


def _scaled_layer_norm(s: Any, node: Node) -> Found:
    """(x - mean) * (scale / sqrt(...)): the scale afterwards."""
    for d, factor in either(node):
        quotient = s.by(factor, "Div")
        if quotient is None or s.by(d, "Sub") is None or s.value(quotient.inputs[0]) is None:
            continue
        shape = s.shape(d)
        if s.by(quotient.inputs[1], "Sqrt") is None or shape is None:
            continue
        name = s.new("Div", [d, quotient.inputs[1]], s.dtype(d), shape)
        if _layer_norm(s, s.made[name]):
            return s.become(node, "Mul", [name, quotient.inputs[0]])
    return False


def _norm_before(s: Any, name: str, other: str) -> Node | None:
    """Return the layer norm, without a bias yet, that alone this is for, of this shape."""
    norm = s.by(name, "LayerNormalization")
    if norm is None or len(norm.inputs) != 2 or not s.once(name):
        return None
    return norm if s.shape(other) == s.shape(norm.inputs[1]) else None


def _norm_scale(s: Any, node: Node) -> Found:
    """A layer norm, times its scale."""
    for inner, scale in either(node):
        norm = _norm_before(s, inner, scale)
        ones = s.value(norm.inputs[1]) if norm is not None else None
        if norm is not None and ones is not None and np.all(ones == 1):
            return s.become(node, norm.op, [norm.inputs[0], scale], **norm.attributes)
    return False


def _norm_bias(s: Any, node: Node) -> Found:
    """A layer norm, and its bias."""
    for inner, bias in either(node):
        norm = _norm_before(s, inner, bias)
        if norm is not None:
            return s.become(node, norm.op, [*norm.inputs, bias], **norm.attributes)
    return False


def _batch_norm(s: Any, node: Node) -> Found:
    """(x - mean) * scale + bias with constants for each channel, that no operator before takes."""
    for product, bias in either(node):
        scaled = s.by(product, "Mul")
        if scaled is None or not s.once(product):
            continue
        for apart, scale in either(scaled):
            centred = s.by(apart, "Sub")
            if centred is None or not s.once(apart):
                continue
            x, mean = centred.inputs
            parts = [_by_channel(s, n, x) for n in (scale, bias, mean)]
            if any(p is None for p in parts) or s.dtype(x) != _F32:
                continue
            names = [s.constant(p) for p in parts]  # type: ignore[arg-type]
            ones = s.constant(np.ones(s.shape(x)[1], _F32))
            return s.become(node, "BatchNormalization", [x, *names, ones], epsilon=0.0)
    return False


def _by_channel(s: Any, name: str, x: str) -> np.ndarray | None:
    """Return a constant that differs along axis 1 of ``x`` alone, as a line."""
    value, shape = s.value(name), s.shape(x)
    if value is None or shape is None or len(shape) < 2 or is_size(shape[1]):
        return None
    if value.ndim > len(shape) or value.ndim < len(shape) - 1:
        return None
    back = len(shape) - 2
    line = value.shape[len(value.shape) - back - 1]
    if value.size != line or line != shape[1]:
        return None
    return value.reshape(line)


# Products


def _affine(s: Any, node: Node) -> Found:
    """A constant for each feature, times or added to the result of a product: in its weights."""
    for inner, other in either(node)[: 2 if node.op in ("Add", "Mul") else 1]:
        made, value = s.by(inner, "Conv", "ConvTranspose", "Gemm", "MatMul"), s.value(other)
        if made is None or value is None or not s.once(inner) or value.dtype.kind != "f":
            continue
        weights = s.value(made.inputs[1])
        if weights is None:
            continue
        if made.op == "MatMul" and (weights.ndim != 2 or len(s.shape(made.inputs[0]) or ()) < 2):
            continue
        features = weights.shape[0 if made.op == "Conv" else 1]
        if made.op == "ConvTranspose":
            features *= made.attributes.get("group", 1)
        if made.op == "Gemm" and made.attributes.get("transB"):
            features = weights.shape[0]
        line = _of_features(s, value, inner, features, made.op in ("Conv", "ConvTranspose"))
        if line is None:
            continue
        bias = s.value(made.inputs[2]) if len(made.inputs) > 2 else None
        if len(made.inputs) > 2 and bias is None:
            continue
        found = _with_affine(s, node, made, line, bias, other)
        if found:
            return found
    return False


def _of_features(
    s: Any, value: np.ndarray, inner: str, features: int, channels: bool
) -> np.ndarray | None:
    """Return a constant as a line with an element for each feature."""
    shape = s.shape(inner)
    if shape is None or value.ndim > len(shape):
        return None
    at = len(shape) - 2 if channels else 0
    if value.size == 1:
        return np.full(features, value.reshape(()), value.dtype)
    if value.size != features or value.ndim <= at or value.shape[value.ndim - at - 1] != features:
        return None
    return value.reshape(features)


def _with_affine(
    s: Any, node: Node, made: Node, line: np.ndarray, bias: np.ndarray | None, other: str
) -> Found:
    x, name, *biases = made.inputs
    like = biases[0] if biases else other
    weights = s.value(name)
    if node.op in ("Mul", "Div"):
        if not s.once(name) or not np.isfinite(line).all() or (node.op == "Div" and not line.all()):
            return False
        factor = line if node.op == "Mul" else 1 / line
        if made.op == "Conv":
            axis: tuple[int, ...] = (factor.size, *[1] * (weights.ndim - 1))
        elif made.op == "ConvTranspose":
            if made.attributes.get("group", 1) != 1:
                return False
            axis = (1, factor.size, *[1] * (weights.ndim - 2))
        else:
            axis = (factor.size, 1) if made.attributes.get("transB") else (1, factor.size)
        inputs = [x, s.constant(weights * factor.reshape(axis), name)]
        if bias is not None:
            inputs.append(s.constant(bias * factor, like))
        return s.become(node, made.op, inputs, **made.attributes)
    added = line if node.op == "Add" else -line
    if bias is not None:
        added = bias + added
    if made.op == "MatMul":
        if len(s.shape(x) or ()) != 2:
            return False
        return s.become(node, "Gemm", [x, name, s.constant(added, like)])
    return s.become(node, made.op, [x, name, s.constant(added, like)], **made.attributes)


def _padded_conv(s: Any, node: Node) -> Found:
    """Zeros put around an image before it is convolved or averaged are padding."""
    pad = s.by(node.inputs[0], "Pad")
    if pad is None or len(pad.inputs) < 3 or s.scalar(pad.inputs[2]) != 0:
        return False
    edges, shape = s.ints(pad.inputs[1]), s.shape(pad.inputs[0])
    if edges is None or shape is None or pad.attributes.get("mode", "constant") != "constant":
        return False
    n = len(shape)
    low, high = edges[:n], edges[n:]
    if any(low[:2]) or any(high[:2]) or min(edges) < 0:
        return False
    window = node.attributes["kernel_shape"]
    if node.op == "AveragePool" and any(
        p >= k for p, k in zip([*low[2:], *high[2:]], [*window] * 2, strict=True)
    ):
        return False
    pads = [*node.attributes.get("pads", [0] * (2 * (n - 2)))]
    pads = [a + b for a, b in zip(pads, [*low[2:], *high[2:]], strict=True)]
    return s.become(
        node, node.op, [pad.inputs[0], *node.inputs[1:]], **{**node.attributes, "pads": pads}
    )


def _turned_weights(s: Any, node: Node) -> Found:
    """A product with the transpose of a matrix is Gemm with ``transB``."""
    x, w = node.inputs[:2]
    turned = s.by(w, "Transpose")
    if turned is None or s.shape(x) is None or len(s.shape(x)) != 2 or not s.has_kernel("Gemm", x):
        return False
    if [*turned.attributes["perm"]] != [1, 0] or s.value(turned.inputs[0]) is None:
        return False
    if node.op == "Gemm" and node.attributes:
        return False
    return s.become(node, "Gemm", [x, turned.inputs[0], *node.inputs[2:]], transB=1)


# Windows

_CARRIER = 2.0**-40
"""A factor that makes of all numbers in a window less than the last digit of the largest."""


def _guarded_pool(s: Any, node: Node) -> Sequence[Node]:
    """Return the maximum in windows that is taken where all is finite, and a view of it.

    Of one whose sum in windows can be said without a branch, too.
    """
    finite = node.attributes.get("then_branch")
    if not isinstance(finite, Graph) or not finite.name.startswith(FINITE):
        return ()
    nodes = [inner for inner in finite.nodes if inner.op != "Identity"]
    ops = [inner.op for inner in nodes]
    follows = ops == ["MaxPool"] or (
        ops == ["MaxPool", "Reshape"] and nodes[1].inputs[0] == nodes[0].outputs[0]
    )
    if not follows or s.shape(nodes[0].outputs[0]) is None:
        return ()
    shape, count = s.shape(nodes[0].inputs[0]), math.prod(nodes[0].attributes["kernel_shape"])
    if shape is None or is_size(shape[1]):
        return ()
    return nodes if count <= _WIDEST and shape[1] * count <= LARGEST else ()


def _pool(s: Any, node: Node) -> Found:
    """A guarded maximum in windows of what is not negative."""
    nodes = _guarded_pool(s, node)
    if not nodes or not _is_not_negative(s, nodes[0].inputs[0]):
        return False
    return _carried_pool(s, node, nodes, nodes[0].inputs[0])


def _relu_of_pool(s: Any, node: Node) -> Found:
    """Where a ReLU follows a guarded maximum, it goes before it: the larger stays the larger."""
    guarded = s.by(node.inputs[0], "If")
    nodes = _guarded_pool(s, guarded) if guarded is not None else ()
    if not nodes or not s.once(node.inputs[0]):
        return False
    x = nodes[0].inputs[0]
    before = s.new("Relu", [x], s.dtype(x), s.shape(x))
    return _carried_pool(s, node, nodes, before)


def _carried_pool(s: Any, node: Node, nodes: Sequence[Node], x: str) -> Found:
    """Write a maximum in windows of what is not negative, which keeps NaN, without a branch.

    max(x) + 2^-40 sum(x) is NaN where an element is, infinite where one is, and rounds to max(x)
    elsewhere: for n elements the sum is at most n max(x), and n 2^-40 max(x) is less than half of
    its last digit. The sum is a convolution, which onnxruntime keeps in the layout of the pool.
    """
    pool, *views = nodes
    shape, window = s.shape(x), pool.attributes["kernel_shape"]
    dtype, out = s.dtype(x), s.shape(pool.outputs[0])
    weights = s.constant(np.full((shape[1], 1, *window), _CARRIER, dtype))
    total = s.new("Conv", [x, weights], dtype, out, **pool.attributes, group=shape[1])
    most = s.new("MaxPool", [x], dtype, out, **pool.attributes)
    if not views:
        return s.become(node, "Add", [most, total])
    names = [s.new("Add", [most, total], dtype, out), *views[0].inputs[1:]]
    return s.become(node, "Reshape", names, **views[0].attributes)


_WIDEST = 1 << 14
"""The most elements of a window whose sum, times ``_CARRIER``, is less than half a digit."""

_KEEP_SIGN = {"Reshape", "Squeeze", "Unsqueeze", "Transpose", "MaxPool", "AveragePool"}


def _is_not_negative(s: Any, name: str, depth: int = 8) -> bool:
    """Say whether a tensor is known to have no negative element; it may have NaN."""
    node = s.made.get(name)
    if not depth:
        return False
    if node is None:
        value = s.value(name)
        return value is not None and value.size <= LARGEST and not (value < 0).any()
    if node.op in ("Relu", "Sigmoid", "Exp", "Abs", "Softplus", "HardSigmoid", "Softmax"):
        return True
    if node.op == "Clip":
        low = s.scalar(node.inputs[1])
        return low is not None and low >= 0
    if node.op in _KEEP_SIGN:
        return _is_not_negative(s, node.inputs[0], depth - 1)
    if node.op in ("Add", "Concat"):
        return all(_is_not_negative(s, n, depth - 1) for n in node.inputs)
    if node.op == "Conv":  # of a pool, as it is written here
        weights = s.value(node.inputs[1])
        return (
            len(node.inputs) == 2
            and weights is not None
            and weights.size <= LARGEST
            and bool((weights == _CARRIER).all())
            and _is_not_negative(s, node.inputs[0], depth - 1)
        )
    return False


# Indices


def _bounded_rows(s: Any, node: Node) -> Found:
    """Bounded indices, to those below 0 of which n was added: a Gather adds it itself."""
    bound = s.by(node.inputs[1], "Clip")
    shape = s.static(node.inputs[0])
    if bound is None or shape is None:
        return False
    n = shape[node.attributes.get("axis", 0)]
    index = _unwrapped(s, bound.inputs[0], n)
    if not n or index == bound.inputs[0] or [s.scalar(b) for b in bound.inputs[1:]] != [0, n - 1]:
        return False
    dtype = s.dtype(index)
    bounds = [s.constant(np.array(end, dtype)) for end in (-n, n - 1)]
    inside = s.new("Clip", [index, *bounds], dtype, s.shape(index))
    return s.become(node, "Gather", [node.inputs[0], inside], **node.attributes)


def _embedding(s: Any, node: Node) -> Found:
    """Rows by bounded indices, of which those out of range give NaN or 0.

    An index is in range if bounding it leaves it as it is; without the bound, a Gather ends in an
    error for one that is not.
    """
    test, rows, fill = node.inputs
    value = s.scalar(fill)
    moved = s.by(rows, "Transpose", "Reshape")
    gather = s.by(rows if moved is None else moved.inputs[0], "Gather")
    if gather is None or value is None or not (math.isnan(value) or value == 0):
        return False
    bound, shape = s.by(gather.inputs[1], "Clip"), s.shape(gather.inputs[0])
    if bound is None or shape is None:
        return False
    n, ends = shape[gather.attributes.get("axis", 0)], [s.scalar(b) for b in bound.inputs[1:]]
    if is_size(n) or ends not in ([0, n - 1], [-n, n - 1]):
        return False
    index, inside = bound.inputs[0], bound.outputs[0]
    view = s.by(test, "Unsqueeze", "Reshape")
    both = s.by(view.inputs[0] if view is not None else test, "And")
    tests = [s.by(t, "GreaterOrEqual", "LessOrEqual") for t in both.inputs] if both else [None]
    for t in tests:
        if t is None or s.scalar(t.inputs[1]) != (0 if t.op == "GreaterOrEqual" else n - 1):
            return False
        if index != (_unwrapped(s, t.inputs[0], n) if ends[0] else t.inputs[0]):
            return False
    if s.exact:
        test = s.new("Equal", [index, inside], np.dtype(bool), s.shape(inside))
        if view is not None:
            flags = s.shape(view.outputs[0])
            test = s.new(
                view.op, [test, *view.inputs[1:]], np.dtype(bool), flags, **view.attributes
            )
        return s.become(node, "Where", [test, rows, fill])
    name = gather.outputs[0]
    inputs = [gather.inputs[0], index]
    if moved is None:
        return s.become(node, "Gather", inputs, **gather.attributes)
    found = s.new("Gather", inputs, s.dtype(name), s.shape(name), **gather.attributes)
    return s.become(node, moved.op, [found, *moved.inputs[1:]], **moved.attributes)


def _rows(s: Any, node: Node) -> Found:
    """GatherND by one index each is a Gather of rows."""
    data, index = node.inputs
    shape = s.shape(index)
    if node.attributes.get("batch_dims", 0) or shape is None or shape[-1] != 1:
        return False
    last = s.constant(np.array([len(shape) - 1], np.int64))
    name = s.new("Squeeze", [index, last], s.dtype(index), shape[:-1])
    return s.become(node, "Gather", [data, name], axis=0)


def _unwrapped(s: Any, name: str, n: int) -> str:
    """Return indices as they were before n was added to those below 0: Gather does the same."""
    kind = s.by(name, "Cast")
    inner = kind.inputs[0] if kind is not None else name
    choice = s.by(inner, "Where")
    if choice is None:
        return name
    test, wrapped, plain = choice.inputs
    below, more = s.by(test, "Less"), s.by(wrapped, "Add")
    if below is None or more is None or below.inputs[0] != plain or s.scalar(below.inputs[1]) != 0:
        return name
    if not any(x == plain and s.scalar(c) == n for x, c in either(more)):
        return name
    if s.dtype(plain) not in (np.dtype(np.int32), np.dtype(np.int64)):
        return name
    return plain


RULES: dict[str, tuple[Any, ...]] = {
    "Add": (_neutral(0, last=False), _norm_bias, _affine, _batch_norm),
    "AveragePool": (_padded_conv,),
    "Cast": (_cast,),
    "Conv": (_padded_conv,),
    "Div": (
        _neutral(1, last=True),
        _scaled_quotient,
        _mean,
        _softmax,
        _attention,
        _layer_norm,
        _affine,
    ),
    "Gather": (_bounded_rows,),
    "GatherND": (_rows,),
    "Gemm": (_turned_weights,),
    "If": (_pool,),
    "Identity": (lambda s, node: not s.is_output(node.outputs[0]) and node.inputs[0],),
    "MatMul": (_turned_weights,),
    "Max": (_neutral(-math.inf, last=False), _relu),
    "Min": (_neutral(math.inf, last=False), _clip),
    "Mul": (
        _neutral(1, last=False),
        _reciprocal_product,
        _norm_scale,
        _scaled_layer_norm,
        _affine,
    ),
    "Neg": (_twice,),
    "Not": (_twice,),
    "ReduceMean": (_mean_of_split,),
    "Relu": (_relu_of_pool,),
    "Sub": (_neutral(0, last=True), _log_softmax, _affine),
    "Where": (_bounded, _embedding),
}
