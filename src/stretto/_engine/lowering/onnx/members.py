"""Rules of spelling: dense layers of several members, one after the other, as convolutions.

A product of stacks of matrices packs the weights anew in each run, and its bias and its activation
are passes of their own; a convolution with a group for each member does all at once. So rows of
members, (members, rows, features), become an image of one line, (1, members * features, 1, rows),
and stay so from layer to layer. Measured with ten members and onnxruntime 1.32 on a CPU: 0.55 to 1
of the time, for 32 to 512 features and 1 to 1,000 rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.sizes import at_least, is_size
from stretto._engine.lowering.onnx.graph import Node, Shape
from stretto._engine.lowering.onnx.views import OF_ELEMENTS, Found, either

_F32 = np.dtype(np.float32)


def _weights(s: Any, node: Node | None) -> np.ndarray | None:
    """Return the weights (members, features, outputs) of a product, which nothing else reads."""
    if node is None or node.op != "MatMul":
        return None
    w = s.value(node.inputs[1])
    if w is None or w.ndim != 3 or len(w) < 2 or w.dtype != _F32 or not s.once(node.inputs[1]):
        return None
    shape = s.shape(node.inputs[0])
    if shape is None or len(shape) != 3 or shape[0] != len(w):
        return None
    return w if at_least(shape[1]) else None  # onnxruntime refuses an image of no pixels


def _image(s: Any, name: str) -> str | None:
    """Write the image of rows (members, rows, features), if they are those of a product."""
    node = s.made.get(name)
    if node is None or not s.once(name):
        return None
    if node.op in OF_ELEMENTS:
        return _activated(s, node, lambda name: _image(s, name))
    if node.op == "Transpose":
        return _image_of_view(s, node)
    product, bias = node, ""
    if node.op == "Add":
        inner, bias = next(
            ((y, c) for y, c in either(node) if s.value(c) is not None), (node.inputs[0], "")
        )
        if not bias or not s.once(inner):
            return None
        product = s.made.get(inner)
    w = _weights(s, product)
    if w is None or product is None:
        return None
    names = [*product.inputs[1:], *_line(s, bias, w.shape)]
    if bias and len(names) < 2:
        return None
    return _convolved(s, _turned(s, product.inputs[0]), w, *names)


def _activated(s: Any, node: Node, image_of: Callable[[str], str | None]) -> str | None:
    if any(s.value(n) is None for n in node.inputs[1:]):
        return None
    image = image_of(node.inputs[0])
    if image is None:
        return None
    names = [image, *node.inputs[1:]]
    return s.new(node.op, names, _F32, s.shape(image), **node.attributes)


def _image_of_view(s: Any, node: Node) -> str | None:
    """Return the image that rows are a view of; or write that of features that members share."""
    view = s.by(node.inputs[0], "Reshape")
    if view is None or not s.once(node.inputs[0]):
        return None
    if [*node.attributes["perm"]] == [0, 2, 1]:
        conv, shape = s.by(view.inputs[0], "Conv"), s.shape(view.inputs[0])
        is_line = conv is not None and len(shape) == 4 and shape[0] == shape[2] == 1
        return view.inputs[0] if is_line and s.once(view.inputs[0]) else None
    shape = s.shape(node.inputs[0])
    if [*node.attributes["perm"]] != [1, 0, 2] or shape is None or len(shape) != 3:
        return None
    return _image_of_shared(s, view.inputs[0], shape)


def _image_of_shared(s: Any, name: str, shape: Shape) -> str | None:
    """Write the image of rows (rows, members * features) that are one product of an input."""
    node = s.made.get(name)
    if node is None or not s.once(name):
        return None
    if node.op in OF_ELEMENTS:
        return _activated(s, node, lambda name: _image_of_shared(s, name, shape))
    if node.op not in ("Gemm", "MatMul") or s.shape(name) != (shape[0], shape[1] * shape[2]):
        return None
    x, weights, *biases = node.inputs
    w = s.value(weights)
    if w is None or not s.once(weights) or w.dtype != _F32 or {*node.attributes} - {"transB"}:
        return None
    if len(s.shape(x) or ()) != 2:
        return None
    if any(s.value(n) is None or s.shape(n) != (shape[1] * shape[2],) for n in biases):
        return None
    w = w.T if node.attributes.get("transB") else w
    rows, features = s.shape(x)
    turned = s.new("Transpose", [x], _F32, (features, rows), perm=[1, 0])
    return _convolved(s, _viewed(s, turned, (1, features, 1, rows)), w[None], weights, *biases)


def _line(s: Any, bias: str, shape: Sequence[int]) -> list[str]:
    """Return the bias of all members and outputs as a line, if it is one for each output."""
    value, (count, _, outputs) = s.value(bias), shape
    if value is None or value.ndim > 3 or (value.ndim > 1 and value.shape[-2] != 1):
        return []
    line = np.broadcast_to(value, (count, 1, outputs)).ravel()
    return [s.constant(line, bias)]


def _turned(s: Any, name: str) -> str:
    """Write rows (members, rows, features) as an image."""
    count, rows, features = s.shape(name)
    turned = s.new("Transpose", [name], _F32, (count, features, rows), perm=[0, 2, 1])
    return _viewed(s, turned, (1, count * features, 1, rows))


def _viewed(s: Any, name: str, shape: Sequence[Any]) -> str:
    target = np.array([-1 if is_size(n) else n for n in shape], np.int64)
    return s.new("Reshape", [name, s.constant(target)], _F32, tuple(shape))


def _convolved(s: Any, image: str, w: np.ndarray, name: str, *bias: str) -> str:
    """Write the convolution of an image with weights (members, features, outputs)."""
    count, features, outputs = w.shape
    kernel = w.swapaxes(1, 2).reshape(count * outputs, features, 1, 1)
    shape = (1, count * outputs, 1, s.shape(image)[-1])
    settings = {"kernel_shape": [1, 1], **({"group": count} if count > 1 else {})}
    return s.new("Conv", [image, s.constant(kernel, name), *bias], _F32, shape, **settings)


def _product(s: Any, node: Node) -> Found:
    """A product of members after another."""
    w = _weights(s, node)
    image = _image(s, node.inputs[0]) if w is not None else None
    if w is None or image is None:
        return False
    made = _convolved(s, image, w, node.inputs[1])
    count, _, outputs = w.shape
    view = _viewed(s, made, (count, outputs, s.shape(made)[-1]))
    return s.become(node, "Transpose", [view], perm=[0, 2, 1])


def _bias(s: Any, node: Node) -> Found:
    """The bias of such a product."""
    for name, other in either(node):
        turned = s.by(name, "Transpose")
        if turned is None or not s.once(name) or [*turned.attributes["perm"]] != [0, 2, 1]:
            continue
        image = _image_of_view(s, turned)
        conv = s.by(image, "Conv") if image is not None else None
        if conv is None or len(conv.inputs) != 2:
            continue
        count, outputs, rows = s.shape(turned.inputs[0])
        line = _line(s, other, (count, 0, outputs))
        if not line:
            continue
        made = s.new("Conv", [*conv.inputs, *line], _F32, s.shape(image), **conv.attributes)
        view = _viewed(s, made, (count, outputs, rows))
        return s.become(node, "Transpose", [view], perm=[0, 2, 1])
    return False


def _shared(s: Any, node: Node) -> Found:
    """Rows that are one product of an input, turned to become an image."""
    view = s.by(node.inputs[0], "Reshape")
    shape, out = s.shape(node.inputs[0]), s.shape(node.outputs[0])
    if view is None or not s.once(node.inputs[0]) or [*node.attributes["perm"]] != [1, 2, 0]:
        return False
    image = _image_of_shared(s, view.inputs[0], shape) if shape is not None else None
    if image is None:
        return False
    target = np.array([-1 if is_size(n) else n for n in out], np.int64)
    return s.become(node, "Reshape", [image, s.constant(target)])


RULES: dict[str, tuple[Any, ...]] = {
    "Add": (_bias,),
    "MatMul": (_product,),
    "Transpose": (_shared,),
}
