"""Graphs that PyTorch exported, in the table's operations, with a module's own gradients.

``derivative_marks`` leaves marks in a trace. Here they become what a ``Graph`` can say: values that
are detached, and ``with_backward``, whose rule is a graph of its own.

Under ``no_grad``, or through ``.data``, PyTorch changes elements, and the gradient goes to the
tensor as it was before. In a graph in which nothing is changed in place the new value would be all
there is, so here the old one gets its gradient, by a rule.
"""

from __future__ import annotations

import copy
import dataclasses
import heapq
import itertools
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.export import ExportedProgram  # pyright: ignore[reportMissingImports]

from stretto.torch.importing import merge_inputs, sharing
from stretto.torch.table import TABLE
from stretto.torch.trace.derivative_marks import Unfit, is_smooth

_CHECKS = {
    "_assert_async",
    "_assert_scalar",
    "_assert_tensor_metadata",
    "_linalg_check_errors",
    "sym_constrain_range",
}
"""Operations that check what PyTorch assumed of its example, and have no result."""

_EFFECT = torch.ops.higher_order.with_effects

_SHARED = "expected compiled_fn to be GraphModule"
"""The beginning of PyTorch's error for writing to memory that several inputs share."""


def decomposed(
    exported: ExportedProgram, decompositions: Callable[[], dict[Any, Any]]
) -> ExportedProgram:
    """Return the program in operations that are in the table, each tensor once among its inputs.

    Decomposing takes PyTorch two passes over the program, one and a half times what the export
    took, so it is left out where each operation is in the table: none there writes in place.

    Raises ``NotImplementedError`` where it writes to memory that several tensors share.
    """
    merge_inputs(exported)
    if _is_in_table(exported.graph_module):
        return exported
    try:
        return exported.run_decompositions(decompositions())
    except AssertionError as error:
        if not str(error).startswith(_SHARED):
            raise
        pairs = sharing({**exported.state_dict, **exported.constants})
        named = ", ".join([f"{first} and {second}" for first, second in pairs])
        raise NotImplementedError(
            f"from_torch: the module writes to a tensor that shares its memory with another "
            f"({named or 'among its arguments'}); arrays never share what is written: keep one of "
            f"them, and compute the other from it in forward"
        ) from error


def _is_in_table(module: torch.fx.GraphModule) -> bool:
    """Say whether a program has operations of the table alone, and calls no other graph."""
    called = [node for node in module.graph.nodes if node.op not in ("placeholder", "output")]
    return all([node.op == "call_function" and _is_plain(node.target) for node in called])


def _is_plain(target: Any) -> bool:
    if isinstance(target, torch._ops.OperatorBase):
        aten = isinstance(target, torch._ops.OpOverload) and target.namespace == "aten"
        return aten and (name_of(target) in TABLE or is_check(target))
    return name_of(target) in TABLE


def is_check(target: Any) -> bool:
    """Say whether an operation only checks what PyTorch assumed of its example."""
    return getattr(target, "_opname", "") in _CHECKS


def check_effects(nodes: Sequence[torch.fx.Node]) -> None:
    """Raise ``NotImplementedError`` for an operation that has an effect beside its result."""
    for node in nodes:
        if node.target is _EFFECT:
            _check_effect(node)


def _check_effect(node: torch.fx.Node) -> None:
    operation: Any = node.args[1]
    if not is_check(operation) and operation._opname != "_print":
        raise NotImplementedError(
            f"from_torch: {operation}, in {place_of(node)}, has an effect beside its result, which "
            f"no program here has"
        )


def name_of(target: Any) -> str:
    """Return the name of an operation in the table."""
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    if isinstance(target, torch._ops.HigherOrderOperator):
        return target.name()
    return f"{target.__module__.removeprefix('_')}.{target.__name__}"


def place_of(node: torch.fx.Node) -> str:
    """Return the module, and the line in it, that a node comes from."""
    stack = list(node.meta.get("nn_module_stack", {}).values())
    path, kind = stack[-1] if stack else ("", "")
    lines = (node.meta.get("stack_trace") or "").strip().splitlines()
    files = [line.strip() for line in lines if line.strip().startswith("File ")]
    where = files[-1].removeprefix("File ") if files else ""
    name = kind if isinstance(kind, str) else kind.__qualname__
    module = f"{path or 'the module'} ({name.rpartition('.')[2]})" if name else path
    return ", ".join([part for part in (module, where) if part])


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
    """Keep the gradients of what is written inside of a call without gradients."""
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
    """Return the tensors that are written into, or of which a view is."""
    return {x for node in module.graph.nodes for y in _written(node) for x in _chain(y)}


def _written(node: torch.fx.Node) -> list[torch.fx.Node]:
    """Return the tensors of real or complex numbers that an operation writes into."""
    found: list[Any] = []
    if isinstance(node.target, torch._ops.OpOverload) and node.target._opname != "detach_":
        for k, argument in enumerate(node.target._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = node.args[k] if k < len(node.args) else node.kwargs.get(argument.name)
                found += value if isinstance(value, (list, tuple)) else [value]
    return [x for x in found if isinstance(x, torch.fx.Node) and is_smooth(x.meta.get("val"))]


def _chain(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """Yield a tensor, and those whose memory it is."""
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
    """Return the tensor that this is, after writes into it."""
    while isinstance(node, torch.fx.Node) and node.args and node.args[0] in _written(node):
        node = node.args[0]
    return node


def _matters(node: Any, buffers: set[str]) -> bool:
    root = _root(node)
    return not (root.op == "placeholder" and root.name in buffers)


def _flows(node: torch.fx.Node) -> bool:
    """Say whether a gradient may go from here to an input."""
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


_COTANGENT = torch.ops.stretto.cotangent.default
_HOOKED = torch.ops.stretto.hooked.default
_RULE = torch.ops.stretto.with_backward.default


def with_gradients_stopped(exported: ExportedProgram) -> ExportedProgram:
    """Return a copy, in which what is computed without gradients is detached.

    Decompositions would forget that it was.
    """
    module = copy.deepcopy(exported.graph_module)
    exported = copy.copy(exported)
    exported._graph_module = module
    buffers = set(exported.graph_signature.inputs_to_buffers)
    for part in module.modules():
        if isinstance(part, torch.fx.GraphModule):
            keep_gradients_of_writes(part, buffers if part is module else set())
            written = shared_with_written(part)
            for node in part.graph.find_nodes(op="call_function", target=_NO_GRADIENT):
                if _is_empty(part, node):
                    part.graph.erase_node(node)
                elif not node.args[0]:
                    _detach_results(part, node, written)
            for node in part.graph.find_nodes(
                op="call_function", target=torch.ops.aten.detach_.default
            ):
                node.target = torch.ops.aten.detach.default
                after = _after(node)
                node.args[0].replace_all_uses_with(node, lambda user, own=after: user in own)
            for node in part.graph.find_nodes(op="get_attr"):
                if not node.users:
                    part.graph.erase_node(node)
            part.recompile()
    return exported


def _is_empty(part: torch.fx.GraphModule, node: torch.fx.Node) -> bool:
    """Say whether what runs without gradients there computes nothing."""
    called = getattr(part, str(getattr(node.args[1], "target", "")), None)
    if called is None or node.users or not isinstance(called, torch.fx.GraphModule):
        return False
    return not any([x.op.startswith("call") for x in called.graph.nodes])


def _after(node: torch.fx.Node) -> set[torch.fx.Node]:
    found = set()
    following = node.next
    while following.op != "root":
        found.add(following)
        following = following.next
    return found


def _detach_results(
    module: torch.fx.GraphModule, call: torch.fx.Node, written: set[torch.fx.Node]
) -> None:
    """Detach the results of a call without gradients.

    One that is written into later, as a tensor of zeros may be, is copied as well: a gradient goes
    to what is written there, which it would not through ``detach``.
    """
    for node in [user for user in call.users if user.target is operator.getitem]:
        if not is_smooth(node.meta.get("val")):
            continue
        targets = [torch.ops.aten.detach.default]
        if node in written:
            targets.append(torch.ops.aten.clone.default)
        last, own = node, set()
        for target in targets:
            with module.graph.inserting_after(last):
                last = module.graph.call_function(target, (last,))
            last.meta.update(node.meta)
            own.add(last)
        node.replace_all_uses_with(last, lambda user, own=own: user not in own)


# Hooks


def with_hooks(module: torch.fx.GraphModule) -> None:
    """Make rules of the hooks of tensors, in a graph in which nothing is changed in place.

    A hook sees the gradient from all uses of its tensor, also from those before it was registered;
    of several, the first sees it first.
    """
    graph = module.graph
    marks: dict[torch.fx.Node, list[torch.fx.Node]] = {}
    for mark in graph.find_nodes(op="call_function", target=_HOOKED):
        marks.setdefault(mark.args[1], []).append(mark)
    for node, own in marks.items():
        cts = {mark.args[2] for mark in own}
        rest = _descendants(cts) | _descendants([node]) & _ancestors(cts)
        value = node
        for mark in reversed(own):
            name, _, ct, gradient = mark.args
            arguments = (name, False, [value], [value], [ct], [gradient])
            with graph.inserting_before(mark):
                rule = graph.call_function(_RULE, arguments)
                value = graph.call_function(operator.getitem, (rule, 0))
            value.meta.update(node.meta)
            rule.meta.update(node.meta, val=[node.meta["val"]])
            rest |= {rule, value}
        node.replace_all_uses_with(value, lambda user, rest=rest: user not in rest)
        for mark in own:
            graph.erase_node(mark)
    if marks:
        _sort(graph)


def _ancestors(nodes: Iterable[torch.fx.Node]) -> set[torch.fx.Node]:
    return _reached(nodes, lambda node: node.all_input_nodes)


def _descendants(nodes: Iterable[torch.fx.Node]) -> set[torch.fx.Node]:
    return _reached(nodes, lambda node: node.users)


def _reached(
    nodes: Iterable[torch.fx.Node], step: Callable[[torch.fx.Node], Iterable[torch.fx.Node]]
) -> set[torch.fx.Node]:
    """Return what is reached from these nodes, without these but by a way."""
    found: set[torch.fx.Node] = set()
    left = [x for node in nodes for x in step(node)]
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += step(node)
    return found


def _sort(graph: torch.fx.Graph) -> None:
    """Put each node after those that it reads, and otherwise leave the order."""
    nodes = list(graph.nodes)
    place = {node: k for k, node in enumerate(nodes)}
    missing = {node: len(node.all_input_nodes) for node in nodes}
    ready = [place[node] for node in nodes if not missing[node] and node.op != "output"]
    heapq.heapify(ready)
    done: list[torch.fx.Node] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        done.append(node)
        for user in node.users:
            missing[user] -= 1
            if not missing[user] and user.op != "output":
                heapq.heappush(ready, place[user])
    if len(done) < len(nodes) - 1:
        names = sorted({node.args[0] for node in nodes if node.target is _RULE and missing[node]})
        raise Unfit(
            f"from_torch: the hook {', '.join(names)} of a tensor uses what was computed from that "
            f"tensor before the hook was registered: register it first, or write an "
            f"autograd.Function whose backward does the same"
        )
    for before, node in itertools.pairwise(done):
        before.append(node)


# Rules


def is_rule(node: torch.fx.Node) -> bool:
    """Say whether this is ``with_backward``."""
    return node.target is _RULE


def needed(
    roots: Iterable[torch.fx.Node], known: Collection[torch.fx.Node] = ()
) -> set[torch.fx.Node]:
    """Return these nodes and those that they need, without what is known and what that needs.

    Rules need neither cotangents nor gradients.
    """
    found: set[torch.fx.Node] = set()
    left = list(roots)
    while left:
        node = left.pop()
        if node not in found and node not in known:
            found.add(node)
            left += _read(node)
    return found


def _read(node: torch.fx.Node) -> Sequence[torch.fx.Node]:
    if is_check(node.target):
        return ()
    return [*node.args[2], *node.args[3]] if is_rule(node) else node.all_input_nodes


def check_inside(nodes: Iterable[torch.fx.Node]) -> None:
    """Refuse what was computed in a ``backward`` and is used outside of it."""
    users = [user for x in nodes if x.target is _COTANGENT for user in x.users]
    names = sorted({user.args[0] for user in users if is_rule(user)})
    if names:
        raise Unfit(
            f"from_torch: what the backward of {', '.join(names)} computes is kept and used "
            f"outside of it, as a buffer or a result: gradients are had from stretto.grad, and no "
            f"module can keep them"
        )


@dataclasses.dataclass(frozen=True)
class Backward:
    """The nodes of a rule.

    Args:
        nodes: what its gradients alone need.
        cotangents: those that it begins with.
        residuals: what it reads from outside.
        gradients: what it gives.
    """

    nodes: set[torch.fx.Node]
    cotangents: list[torch.fx.Node]
    residuals: list[torch.fx.Node]
    gradients: list[torch.fx.Node]


def backward_of(node: torch.fx.Node, known: set[torch.fx.Node]) -> Backward:
    """Return the rule of a ``with_backward`` in a graph that computes what is ``known``."""
    name, _, _, _, cotangents, gradients = node.args
    around = known | set(cotangents)
    nodes = {x for x in needed(gradients, around) if x.op != "placeholder"}
    check_inside(nodes)
    random = [
        x for x in nodes if torch.Tag.nondeterministic_seeded in getattr(x.target, "tags", ())
    ]
    if random:
        raise Unfit(
            f"from_torch: the backward of {name} draws random numbers ({random[0].target}): draw "
            f"them in forward, and save them by ctx.save_for_backward"
        )
    inside = nodes | set(cotangents)
    read: dict[torch.fx.Node, None] = dict.fromkeys(gradients)
    for each in sorted(nodes):
        read |= dict.fromkeys(_read(each))
        if is_rule(each):
            read |= dict.fromkeys(backward_of(each, around | nodes).residuals)
    residuals = [x for x in read if x not in inside and x.op != "get_attr"]
    return Backward(nodes, list(cotangents), residuals, list(gradients))
