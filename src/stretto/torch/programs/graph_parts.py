"""Operations of a graph on a part of it: derivatives and maps inside a module's ``forward``.

``substitutes`` leaves an operation that names values: results, and what they were computed from.
``with_parts`` gives it the graph between them, as a subgraph that the table differentiates or maps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stretto.torch.programs.torch_graph import (
    Graph,
    Input,
    Node,
    Output,
    Ref,
    Subgraph,
    TensorType,
    refs,
    replaced,
)
from stretto.torch.table import aten_randomness

_DERIVATIVES = {
    "stretto.grad.default": "torch.autograd.grad",
    "stretto.jvp.default": "torch.func.jvp",
}
_MAP = "stretto.vmap.default"


def with_parts(graph: Graph, caller: str) -> Graph:
    """The graph, in which each such operation has the part that it is of.

    Raises:
        NotImplementedError: a part does not lead from the one to the other, or draws numbers.
    """
    subgraphs = [with_parts(part, caller) for part in graph.subgraphs]
    nodes: list[Node] = []
    changed = False
    for node in graph.nodes:
        if node.op in _DERIVATIVES or node.op == _MAP:
            results, starts, *more = node.args
            part, free = of_part(graph, nodes, subgraphs, results, starts)
            _check(graph, nodes, node, part, free, caller)
            subgraphs.append(part)
            held = Subgraph(len(subgraphs) - 1)
            node = dataclasses.replace(node, args=(held, free, starts, *more))
            changed = True
        nodes.append(node)
    if not changed and not graph.subgraphs:
        return graph
    return pruned(dataclasses.replace(graph, nodes=tuple(nodes), subgraphs=tuple(subgraphs)))


def _check(
    graph: Graph, nodes: Sequence[Node], node: Node, part: Graph, free: Sequence[Ref], caller: str
) -> None:
    """Raise ``NotImplementedError`` for a part that would give something else than PyTorch's."""
    what = _DERIVATIVES.get(node.op, "torch.func.vmap")
    where = f"{caller}: {what} in {node.place}"
    starts = node.args[1]
    if len(set(starts)) < len(starts):
        raise NotImplementedError(f"{where}: two of its inputs are one tensor: clone() one of them")
    if node.op == _MAP:
        if node.args[-1] == "different":
            shared = _drawn(graph, nodes, free)
            if shared:
                raise NotImplementedError(
                    f"{where}: {shared[0].op}, in {shared[0].place}, draws numbers without the "
                    f"examples, which would be the same for all: draw them of an example's form, "
                    f"torch.randn_like(x), or before, with an axis of examples that is mapped"
                )
        return
    drawn = [each for each in part.nodes if each.op in aten_randomness.TABLE]
    if drawn:
        raise NotImplementedError(
            f"{where}: {drawn[0].op}, in {drawn[0].place}, draws random numbers inside of what is "
            f"differentiated: draw them before, or import the module in evaluation mode"
        )
    types = [graph.inputs[r.index].type for r in starts if r.index < len(graph.inputs)]
    types += [t for r in starts if r.index >= len(graph.inputs) for t in _types(graph, nodes, r)]
    if any([t is not None and t.dtype.startswith("complex") for t in types]):
        raise NotImplementedError(
            f"{where}: derivatives by complex numbers inside of forward are not supported: take "
            f"them by real and imaginary parts"
        )
    used = set(refs([out.value for out in part.outputs]))
    used |= {index for each in part.nodes for index in refs((each.args, dict(each.kwargs)))}
    lost = [k for k in range(len(starts)) if k not in used]
    if lost:
        raise NotImplementedError(
            f"{where}: its input {lost[0]} leads to none of its outputs in the program that "
            f"PyTorch exports: take the derivative by a clone() of it, from which the outputs are "
            f"computed"
        )


def _types(graph: Graph, nodes: Sequence[Node], ref: Ref) -> Sequence[TensorType | None]:
    return nodes[ref.index - len(graph.inputs)].types


def _drawn(graph: Graph, nodes: Sequence[Node], values: Sequence[Ref]) -> list[Node]:
    """The random numbers that values are made of."""
    first = len(graph.inputs)
    needed = {ref.index for ref in values}
    found = []
    for k in range(len(nodes) - 1, -1, -1):
        if first + k in needed:
            needed.update(refs((nodes[k].args, dict(nodes[k].kwargs))))
            if nodes[k].op in aten_randomness.TABLE:
                found.append(nodes[k])
    return found


def of_part(
    graph: Graph,
    nodes: Sequence[Node],
    subgraphs: Sequence[Graph],
    results: Sequence[Any],
    starts: Sequence[Ref],
) -> tuple[Graph, tuple[Ref, ...]]:
    """The graph that computes ``results`` of ``starts``, and the other values that it reads.

    Its inputs are ``starts``, then those values. ``nodes`` are those of ``graph`` so far.
    """
    first = len(graph.inputs)
    begun = {ref.index for ref in starts}
    reached = set(begun)
    for k, node in enumerate(nodes):
        if not reached.isdisjoint(refs((node.args, dict(node.kwargs)))):
            reached.add(first + k)
    needed = set(refs(tuple(results)))
    for k in range(len(nodes) - 1, -1, -1):
        if first + k in needed and first + k in reached and first + k not in begun:
            needed.update(refs((nodes[k].args, dict(nodes[k].kwargs))))
    members = [k for k in range(len(nodes)) if first + k in needed & reached - begun]
    return _extracted(graph, nodes, subgraphs, members, results, starts)


def _extracted(
    graph: Graph,
    nodes: Sequence[Node],
    subgraphs: Sequence[Graph],
    members: Sequence[int],
    results: Sequence[Any],
    starts: Sequence[Ref],
) -> tuple[Graph, tuple[Ref, ...]]:
    """The graph of these nodes alone, and what it reads of others besides ``starts``."""
    first = len(graph.inputs)
    own = {first + k for k in members} | {ref.index for ref in starts}
    read = [index for k in members for index in refs((nodes[k].args, dict(nodes[k].kwargs)))]
    read += refs(tuple(results))
    free = [index for index in dict.fromkeys(read) if index not in own]
    taken = [*[ref.index for ref in starts], *free]
    places = {index: Ref(k) for k, index in enumerate(taken)}
    for k, member in enumerate(members):
        places[first + member] = Ref(len(taken) + k)
    used: dict[int, Subgraph] = {}

    def change(x: Any) -> Any:
        if isinstance(x, Ref):
            return places[x.index]
        return used.setdefault(x.index, Subgraph(len(used))) if isinstance(x, Subgraph) else x

    made = tuple([_changed(nodes[k], change) for k in members])
    inputs = [Input("argument", f"value_{k}", _type_at(graph, nodes, k)) for k in taken]
    outputs = [Output("result", "", replaced(x, change)) for x in results]
    parts = tuple([subgraphs[k] for k in used])
    return Graph(tuple(inputs), made, tuple(outputs), parts), tuple([Ref(k) for k in free])


def _type_at(graph: Graph, nodes: Sequence[Node], index: int) -> Any:
    first = len(graph.inputs)
    if index < first:
        return graph.inputs[index].type
    return nodes[index - first].type


def _changed(node: Node, change: Any) -> Node:
    args = tuple([replaced(x, change) for x in node.args])
    kwargs = tuple([(name, replaced(x, change)) for name, x in node.kwargs])
    return dataclasses.replace(node, args=args, kwargs=kwargs)


def pruned(graph: Graph) -> Graph:
    """The graph without the operations that no output needs."""
    first = len(graph.inputs)
    needed = set(refs([out.value for out in graph.outputs]))
    for k in range(len(graph.nodes) - 1, -1, -1):
        if first + k in needed:
            needed.update(refs((graph.nodes[k].args, dict(graph.nodes[k].kwargs))))
    kept = [k for k in range(len(graph.nodes)) if first + k in needed]
    return renumbered(graph, kept, {})


def renumbered(graph: Graph, order: Iterable[int], also: Mapping[int, Any]) -> Graph:
    """The graph with these of its nodes, in this order; ``also`` says what becomes of values."""
    first = len(graph.inputs)
    order = list(order)
    places: dict[int, Any] = {k: Ref(k) for k in range(first)}
    places |= {first + k: Ref(first + i) for i, k in enumerate(order)}
    places |= also
    change = lambda x: places[x.index] if isinstance(x, Ref) else x
    return dataclasses.replace(
        graph,
        nodes=tuple([_changed(graph.nodes[k], change) for k in order]),
        outputs=tuple([Output(x.kind, x.name, replaced(x.value, change)) for x in graph.outputs]),
    )
