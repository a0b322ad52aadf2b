"""Writes in graphs of PyTorch's that gradients do not see: under ``no_grad``, or through ``.data``.

PyTorch changes the elements, and the gradient goes to the tensor as it was before. In a graph in
which nothing is changed in place the new value would be all there is, so here the old one gets its
gradient, by a rule. Like ``capture`` this imports PyTorch.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stretto.torch.marks import Unfit, is_smooth

__all__ = ["keep_gradients_of_writes", "shared_with_written"]

_NO_GRADIENT = torch.ops.higher_order.wrap_with_set_grad_enabled
_DETACH = torch.ops.aten.detach.default


def keep_gradients_of_writes(module: torch.fx.GraphModule, buffers: set[str]) -> None:
    """Give what is overwritten without gradients the gradient of its new value.

    ``buffers`` are the names of those inputs that are left out.
    """
    for node in list(module.graph.nodes):
        if node.op != "call_function":
            continue
        if node.target is _NO_GRADIENT and not node.args[0]:
            _region(module, node, buffers)
        written = _written(node)
        for x in written:
            stopped = next((y for y in _chain(x) if y.target is _DETACH), None)
            if stopped is not None and _matters(stopped.args[0], buffers):
                if any([_flows(y) for y in node.all_input_nodes if y not in written]):
                    raise Unfit(
                        f"from_torch: {node.target} writes a value that has a gradient into a "
                        f"tensor through .data or .detach(): the tensor and what it was detached "
                        f"from would differ in their gradients; write into a clone() instead"
                    )
                _keep(module.graph, node, stopped.args[0])


def _region(module: torch.fx.GraphModule, call: torch.fx.Node, buffers: set[str]) -> None:
    """What is written inside of a call without gradients."""
    part = getattr(module, str(call.args[1].target))
    inputs = [node for node in part.graph.nodes if node.op == "placeholder"]
    outer = dict(zip(inputs, call.args[2:], strict=True))
    written: dict[torch.fx.Node, None] = {}
    for node in part.graph.nodes:
        for x in _written(node):
            written[_root(x)] = None
    for node in written:
        if node in outer and _matters(outer[node], buffers):
            _keep(module.graph, call, outer[node])
    (results,) = [node.args[0] for node in part.graph.nodes if node.op == "output"]
    for user in list(call.users):
        if user.target is operator.getitem:
            result = results[user.args[1]]
            same = outer.get(_itself(result))
            if same is not None:  # x.mul_() is x, with its gradient
                user.replace_all_uses_with(same)


def shared_with_written(module: torch.fx.GraphModule) -> set[torch.fx.Node]:
    """The tensors that are written into, or of which a view is."""
    return {x for node in module.graph.nodes for y in _written(node) for x in _chain(y)}


def _written(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The tensors of real or complex numbers that an operation writes into."""
    found: list[Any] = []
    if isinstance(node.target, torch._ops.OpOverload) and node.target._opname != "detach_":
        for k, argument in enumerate(node.target._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = node.args[k] if k < len(node.args) else node.kwargs.get(argument.name)
                found += value if isinstance(value, (list, tuple)) else [value]
    return [x for x in found if isinstance(x, torch.fx.Node) and is_smooth(x.meta.get("val"))]


def _chain(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """A tensor, and those whose memory it is."""
    while True:
        yield node
        if node.op != "call_function" or not node.args:
            return
        target = node.target
        if target is not operator.getitem:
            arguments = getattr(getattr(target, "_schema", None), "arguments", ())
            if not arguments or arguments[0].alias_info is None:
                return
        if not isinstance(node.args[0], torch.fx.Node):
            return
        node = node.args[0]


def _root(node: torch.fx.Node) -> torch.fx.Node:
    *_, root = _chain(node)
    return root


def _itself(node: Any) -> Any:
    """The tensor that this is, after writes into it."""
    while isinstance(node, torch.fx.Node) and node.args and node.args[0] in _written(node):
        node = node.args[0]
    return node


def _matters(node: Any, buffers: set[str]) -> bool:
    root = _root(node)
    return not (root.op == "placeholder" and root.name in buffers)


def _flows(node: torch.fx.Node) -> bool:
    """Whether a gradient may go from here to an input."""
    seen: set[torch.fx.Node] = set()
    left = [node]
    while left:
        node = left.pop()
        if node in seen or node.target in (_DETACH, _NO_GRADIENT):
            continue
        seen.add(node)
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and not is_smooth(value):
            continue
        if node.op == "placeholder" and not node.name.startswith(("b_", "c_")):
            return True
        left += node.all_input_nodes
    return False


def _keep(graph: torch.fx.Graph, write: torch.fx.Node, x: torch.fx.Node) -> None:
    """Give ``x`` before ``write`` the gradient of ``x`` after it."""
    aten, own = torch.ops.aten, torch.ops.stretto

    def add(target: Any, *args: Any) -> torch.fx.Node:
        made = graph.call_function(target, args)
        made.meta.update(x.meta)
        return made

    with graph.inserting_before(write):
        old = add(aten.clone.default, x)
    following = write.next
    while following.target is operator.getitem:
        following = following.next
    with graph.inserting_before(following):
        new = add(aten.clone.default, add(_DETACH, x))
        ct = add(own.cotangent.default, new)
        rule = add(own.with_backward.default, "a write", False, [old], [new], [ct], [ct])
        rule.meta["val"] = [x.meta.get("val")]
        add(aten.copy_.default, x, add(operator.getitem, rule, 0))
