"""Values whose sizes depend on values: what masks select, ``x[mask]`` and ``torch.nonzero(mask)``.

PyTorch's exporter gives such a size a name of its own, ``u0``. All that has this size is put into
one operation with a subgraph, from the mask to sums, scatters and whatever else has a fixed size
again. That operation runs with the number of selected elements as a size that varies, bounded by
the mask's, so that it can be compiled, differentiated and mapped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence, Set
from typing import Any

from stretto.torch.distinct import with_distinct
from stretto.torch.graph import Graph, Input, Node, Output, Ref, Subgraph, refs, replaced
from stretto.torch.guards import with_totals
from stretto.torch.masks import SELECTS, mask_of, open_sizes, with_masks_shared

__all__ = ["with_selections"]


def with_selections(graph: Graph) -> Graph:
    """The graph, in which what has a size that depends on values is in operations of their own."""
    graph = with_distinct(with_totals(graph))
    subgraphs = tuple([with_selections(part) for part in graph.subgraphs])
    graph = with_masks_shared(dataclasses.replace(graph, subgraphs=subgraphs))
    return _with_regions(graph, frozenset())


def _with_regions(graph: Graph, known: Set[str]) -> Graph:
    """The graph with an operation for each of its regions.

    Sizes that are ``known`` are those of the operation that the graph is inside of.
    """
    regions = _regions(graph, known)
    return _outlined(graph, regions, known) if regions else graph


def _reads(node: Node) -> set[int]:
    return set(refs((node.args, dict(node.kwargs))))


def _sizes_of(graph: Graph, known: Set[str]) -> list[set[str]]:
    """For each node, the sizes that depend on values that its result has, or that it reads."""
    first = len(graph.inputs)
    held: list[set[str]] = []
    found: list[set[str]] = []
    for node in graph.nodes:
        before = [i - first for i in _reads(node) if i >= first]
        if node.op == "operator.getitem":  # beside what it is a part of
            held.append(open_sizes(node) - known)
            found.append(set().union(*[found[i] for i in before]))
            continue
        read = set().union(*[held[i] for i in before])
        own = open_sizes(node) - known
        unknown = not node.types or any([t is None or None in t.shape for t in node.types])
        held.append(own | read if unknown else own)
        found.append(own | read)
    return found


def _regions(graph: Graph, known: Set[str]) -> list[set[int]]:
    """The nodes of each region: those of sizes that belong together, and what lies between."""
    groups: list[tuple[set[str], set[int]]] = []
    for k, names in enumerate(_sizes_of(graph, known)):
        if names:
            members = {k}
            for group in [g for g in groups if g[0] & names]:
                groups.remove(group)
                names, members = names | group[0], members | group[1]
            groups.append((names, members))
    regions = [members for _, members in groups]
    after, before = _closures(graph)
    while True:
        closed = [_between(members, after, before) for members in regions]
        merged: list[set[int]] = []
        for members in closed:
            for other in [r for r in merged if r & members or _cyclic(r, members, after)]:
                merged.remove(other)
                members = members | other
            merged.append(members)
        if merged == regions:
            return regions
        regions = merged


def _closures(graph: Graph) -> tuple[list[set[int]], list[set[int]]]:
    """For each node those that depend on it, and those that it depends on."""
    first = len(graph.inputs)
    before: list[set[int]] = []
    after: list[set[int]] = [set() for _ in graph.nodes]
    for k, node in enumerate(graph.nodes):
        direct = [i - first for i in _reads(node) if i >= first]
        before.append(set(direct).union(*[before[i] for i in direct]))
        for i in before[k]:
            after[i].add(k)
    return after, before


def _between(members: set[int], after: list[set[int]], before: list[set[int]]) -> set[int]:
    """The nodes, with those on the ways from one of them to another."""
    behind = set().union(*[after[k] for k in members])
    ahead = set().union(*[before[k] for k in members])
    return members | (behind & ahead)


def _cyclic(one: set[int], other: set[int], after: list[set[int]]) -> bool:
    """Whether each of two regions needs the other."""
    return any([after[k] & other for k in one]) and any([after[k] & one for k in other])


def _outlined(graph: Graph, regions: Sequence[set[int]], known: Set[str]) -> Graph:
    """The graph with an operation for each region."""
    first = len(graph.inputs)
    region_of = {k: r for r, members in enumerate(regions) for k in members}
    used = [_used_outside(graph, members) for members in regions]
    subgraphs = list(graph.subgraphs)
    nodes: list[Node] = []
    places: dict[int, Ref] = {k: Ref(k) for k in range(first)}
    change = lambda x: places[x.index] if isinstance(x, Ref) else x
    for kind, index in _order(graph, regions, region_of):
        if kind == "node":
            nodes.append(_changed(graph.nodes[index], change))
            places[first + index] = Ref(first + len(nodes) - 1)
            continue
        part, masks, free = _part(graph, regions[index], used[index], known)
        subgraphs.append(part)
        held = Subgraph(len(subgraphs) - 1)
        some = tuple([_is_some(graph, mask) for mask in masks])
        args = (held, tuple(map(change, masks)), tuple(map(change, free)), some)
        place = next(
            graph.nodes[k].place for k in sorted(regions[index]) if open_sizes(graph.nodes[k])
        )
        types = [graph.nodes[k].type for k in used[index]]
        nodes.append(Node("stretto.selected", args, (), tuple(types), place))
        whole = Ref(first + len(nodes) - 1)
        for i, k in enumerate(used[index]):
            nodes.append(Node("operator.getitem", (whole, i), (), (graph.nodes[k].type,), place))
            places[first + k] = Ref(first + len(nodes) - 1)
    outputs = [Output(x.kind, x.name, replaced(x.value, change)) for x in graph.outputs]
    return Graph(graph.inputs, tuple(nodes), tuple(outputs), tuple(subgraphs))


def _changed(node: Node, change: Any) -> Node:
    args = tuple([replaced(x, change) for x in node.args])
    kwargs = tuple([(name, replaced(x, change)) for name, x in node.kwargs])
    return dataclasses.replace(node, args=args, kwargs=kwargs)


def _used_outside(graph: Graph, members: set[int]) -> list[int]:
    """The nodes of a region that others, or the graph's outputs, read."""
    first = len(graph.inputs)
    read = {i for k, node in enumerate(graph.nodes) if k not in members for i in _reads(node)}
    read |= set(refs([x.value for x in graph.outputs]))
    return [k for k in sorted(members) if first + k in read]


def _order(
    graph: Graph, regions: Sequence[set[int]], region_of: dict[int, int]
) -> Iterable[tuple[str, int]]:
    """Nodes and regions, each behind what it reads, and else in the order of the graph."""
    first = len(graph.inputs)
    done: set[tuple[str, int]] = set()
    unit_of = lambda k: ("region", region_of[k]) if k in region_of else ("node", k)
    for k in range(len(graph.nodes)):
        waiting = [unit_of(k)]
        while waiting:
            unit = waiting[-1]
            if unit in done:
                waiting.pop()
                continue
            own = regions[unit[1]] if unit[0] == "region" else {unit[1]}
            read = {i - first for m in own for i in _reads(graph.nodes[m]) if i >= first}
            missing = [u for u in dict.fromkeys(map(unit_of, sorted(read))) if u not in done]
            missing = [u for u in missing if u != unit]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            done.add(unit)
            yield unit


def _part(
    graph: Graph, members: set[int], used: Sequence[int], known: Set[str]
) -> tuple[Graph, list[Ref], list[Ref]]:
    """The graph of a region, the masks that select in it, and the other values that it reads.

    Its inputs are, for each mask, the places of its true elements, and then those values. What is
    selected by masks that are computed in the region is in operations inside of its graph.
    """
    first = len(graph.inputs)
    ordered = sorted(members)
    masks: list[int] = []
    selects: dict[int, int] = {}
    inner: set[str] = set()
    for k in ordered:
        node = graph.nodes[k]
        new = _begun(graph, node, members)
        if not new:
            continue
        mask = mask_of(graph, node)
        if mask - first in members:
            inner |= new
            continue
        if mask not in masks:
            masks.append(mask)
        selects[k] = masks.index(mask)
    read = dict.fromkeys([i for k in ordered for i in sorted(_reads(graph.nodes[k]))])
    free = [i for i in read if i - first not in members]
    count = len(masks)
    places = {i: Ref(count + k) for k, i in enumerate(free)}
    places |= {first + k: Ref(count + len(free) + j) for j, k in enumerate(ordered)}
    calls: dict[int, Subgraph] = {}

    def change(x: Any) -> Any:
        if isinstance(x, Ref):
            return places[x.index]
        return calls.setdefault(x.index, Subgraph(len(calls))) if isinstance(x, Subgraph) else x

    nodes = []
    for k in ordered:
        node = _changed(graph.nodes[k], change)
        if k in selects:
            name = "stretto." + node.op.removeprefix("aten.")
            node = dataclasses.replace(node, op=name, args=(Ref(selects[k]), *node.args))
        nodes.append(node)
    inputs = [Input("argument", f"places_{k}", None) for k in range(count)]
    inputs += [Input("argument", f"value_{k}", None) for k in free]
    outputs = [Output("result", "", places[first + k]) for k in used]
    parts = tuple([graph.subgraphs[k] for k in calls])
    outer = set(known).union(*map(open_sizes, nodes)) - inner
    part = _with_regions(Graph(tuple(inputs), tuple(nodes), tuple(outputs), parts), outer)
    return part, [Ref(i) for i in masks], [Ref(i) for i in free]


def _begun(graph: Graph, node: Node, members: set[int]) -> set[str]:
    """The sizes that come from a node, in which a mask selects."""
    if node.op not in SELECTS:
        return set()
    first = len(graph.inputs)
    before = [graph.nodes[i - first] for i in _reads(node) if i >= first and i - first in members]
    return open_sizes(node).difference(*map(open_sizes, before))


def _is_some(graph: Graph, mask: Ref) -> bool:
    """Whether a mask has a true element wherever it has any: the first one of its runs."""
    k = mask.index - len(graph.inputs)
    if k < 0 or graph.nodes[k].op != "operator.getitem":
        return False
    return graph.nodes[graph.nodes[k].args[0].index - len(graph.inputs)].op == "stretto.runs"
