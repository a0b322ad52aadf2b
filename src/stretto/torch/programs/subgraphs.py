"""Operations of a graph on a part of it: derivatives and maps, and what masks select.

``substitutes`` leaves an operation that names values: results, and what they were computed from.
``with_parts`` gives it the graph between them, as a subgraph that the table differentiates or maps.

What masks select, ``x[mask]`` and ``torch.nonzero(mask)``, has a size that depends on values.
PyTorch's exporter gives it a name of its own, ``u0``, also where a module computes one mask twice;
masks that are computed alike become one first. The mask of ``torch.unique`` says which elements,
sorted, differ from the one before. Where a mask is constant, so is the size.

All else that has such a size is put into one operation with a subgraph, from the mask to sums,
scatters and whatever else has a fixed size again. That operation runs with the number of selected
elements as a size that varies, bounded by the mask's, so that it can be compiled, differentiated
and mapped.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from stretto.torch.programs.buffers import with_totals
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
    value_of,
)
from stretto.torch.table import aten_arithmetic, aten_indexing, aten_randomness, aten_reductions

_DERIVATIVES = {
    "stretto.grad.default": "torch.autograd.grad",
    "stretto.jvp.default": "torch.func.jvp",
}
_MAP = "stretto.vmap.default"


def with_parts(graph: Graph, caller: str) -> Graph:
    """Return the graph, in which each such operation has the part that it is of.

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
    """Return the random numbers that values are made of."""
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
    """Return the graph that computes ``results`` of ``starts``, and the other values that it reads.

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
    """Return the graph of these nodes alone, and what it reads of others besides ``starts``."""
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
    """Return the graph without the operations that no output needs."""
    first = len(graph.inputs)
    needed = set(refs([out.value for out in graph.outputs]))
    for k in range(len(graph.nodes) - 1, -1, -1):
        if first + k in needed:
            needed.update(refs((graph.nodes[k].args, dict(graph.nodes[k].kwargs))))
    kept = [k for k in range(len(graph.nodes)) if first + k in needed]
    return renumbered(graph, kept, {})


def renumbered(graph: Graph, order: Iterable[int], also: Mapping[int, Any]) -> Graph:
    """Return the graph with these nodes, in this order; ``also`` says what becomes of values."""
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


SELECTS = {"aten.index.Tensor", "aten.masked_select.default", "aten.nonzero.default"}
"""The operations whose results are as large as a mask says."""

_PURE = {
    "operator.getitem",
    *aten_arithmetic.TABLE,
    *aten_indexing.TABLE,
    *aten_reductions.TABLE,
}
"""Operations that draw no random numbers: equal arguments give equal results."""

_OF_VALUES = re.compile(r"\bu\d+\b")


def open_sizes(node: Node) -> set[str]:
    """Return the sizes that depend on values, in the types of a node."""
    sizes = [n for t in node.types if t is not None for n in t.shape if isinstance(n, str)]
    return {name for n in sizes for name in _OF_VALUES.findall(n)}


def mask_of(graph: Graph, node: Node) -> int:
    """Return the value by which a node selects, if it does; -1 otherwise."""
    match node.op:
        case "aten.nonzero.default":
            return node.args[0].index
        case "aten.masked_select.default":
            return node.args[1].index
        case "aten.index.Tensor":
            for index in node.args[1]:
                type = graph.type_at(index.index) if isinstance(index, Ref) else None
                if type is not None and type.dtype in ("bool", "uint8"):
                    return index.index
    return -1


def with_masks_shared(graph: Graph) -> Graph:
    """Return the graph, in which masks that are computed alike are one, and so are their sizes."""
    first = len(graph.inputs)
    same: dict[Any, int] = {}
    places = [*range(first)]
    of_mask: dict[int, str] = {}
    names: dict[str, str] = {}
    nodes = []
    change = lambda x: Ref(places[x.index]) if isinstance(x, Ref) else x
    for k, node in enumerate(graph.nodes, first):
        dtypes = tuple([t and t.dtype for t in node.types])
        key = node.op, replaced(node.args, change), replaced(node.kwargs, change), dtypes
        places.append(same.setdefault(key, k) if node.op in _PURE else k)
        mask = mask_of(graph, node)
        new = open_sizes(node) - names.keys()
        names |= {name: name for name in new}
        if mask >= 0 and len(new) == 1:
            (name,) = new
            names[name] = of_mask.setdefault(places[mask], name)
            shared = lambda x, old=mask: Ref(places[old]) if x == Ref(old) else x
            node = dataclasses.replace(node, args=replaced(node.args, shared))
        nodes.append(node)
    if all([old == new for old, new in names.items()]):
        return graph
    return dataclasses.replace(graph, nodes=tuple([_renamed(node, names) for node in nodes]))


def _renamed(node: Node, names: dict[str, str]) -> Node:
    def size(n: Any) -> Any:
        return _OF_VALUES.sub(lambda x: names[x[0]], n) if isinstance(n, str) else n

    def renamed(type: TensorType | None) -> TensorType | None:
        return type and TensorType(type.dtype, tuple(map(size, type.shape)))

    return dataclasses.replace(node, types=tuple(map(renamed, node.types)))


_OF_ARGUMENTS: dict[str, Callable[..., tuple[int | None, bool]]] = {
    "aten._unique.default": lambda *_: (None, True),
    "aten._unique2.default": lambda *_: (None, True),
    "aten.unique_consecutive.default": lambda inverse=False, counts=False, dim=None: (dim, False),
    "aten.unique_dim.default": lambda dim, *_: (dim, True),
    "aten.unique_dim_consecutive.default": lambda dim, *_: (dim, False),
}
"""Functions of the further arguments: the axis of the slices compared, and whether sorted."""


def with_distinct(graph: Graph) -> Graph:
    """Return the graph, in which what is distinct is selected by a mask."""
    return _Rewriting(graph).result() if any(map(_is_open, graph.nodes)) else graph


def _is_open(node: Node) -> bool:
    """Say whether a node gives distinct elements, and PyTorch knows not how many."""
    of_values = node.op in _OF_ARGUMENTS and node.types[0]
    return bool(of_values) and any([not isinstance(n, int) for n in of_values.shape])


class _Rewriting:
    """Puts others in the place of the operations that give what is distinct."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._nodes: list[Node] = []
        self._places = [Ref(k) for k in range(len(graph.inputs))]
        self._results: dict[int, list[Ref]] = {}  # of each such operation
        self._known: dict[Any, list[Ref]] = {}  # of the same elements there are as many

    def result(self) -> Graph:
        """Return the new graph."""
        graph, first = self._graph, len(self._graph.inputs)
        for k, node in enumerate(graph.nodes, first):
            if _is_open(node):
                self._results[k] = self._distinct(node)
                self._places.append(self._results[k][0])
            elif node.op == "operator.getitem" and node.args[0].index in self._results:
                self._places.append(self._results[node.args[0].index][node.args[1]])
            else:
                self._places.append(self._add(dataclasses.replace(node, **self._changed(node))))
        outputs = [Output(x.kind, x.name, replaced(x.value, self._change)) for x in graph.outputs]
        return Graph(graph.inputs, tuple(self._nodes), tuple(outputs), graph.subgraphs)

    def _change(self, x: Any) -> Any:
        return self._places[x.index] if isinstance(x, Ref) else x

    def _changed(self, node: Node) -> dict[str, Any]:
        kwargs = [(name, replaced(x, self._change)) for name, x in node.kwargs]
        return {"args": replaced(node.args, self._change), "kwargs": tuple(kwargs)}

    def _add(self, node: Node) -> Ref:
        self._nodes.append(node)
        return Ref(len(self._graph.inputs) + len(self._nodes) - 1)

    def _distinct(self, node: Node) -> list[Ref]:
        """Return the distinct elements, which of them each element is, and how often each is."""
        x = self._change(node.args[0])
        axis, is_sorted = _OF_ARGUMENTS[node.op](*node.args[1:], **dict(node.kwargs))
        key = x, axis, is_sorted
        if key in self._known:
            return self._known[key]
        values, type = node.types[0], self._graph.type_at(node.args[0].index)
        assert values is not None and type is not None
        count = values.shape[0 if axis is None else axis]
        types = (
            TensorType("bool", (None,)),
            TensorType("int64", (None,)),
            TensorType("int64", type.shape if axis is None else (type.shape[axis],)),
        )

        def add(op: str, type: TensorType, *args: Any) -> Ref:
            return self._add(Node(op, args, (), (type,), node.place))

        runs = self._add(Node("stretto.runs", (x, axis, is_sorted), (), types, node.place))
        mask, order, inverse = [
            add("operator.getitem", type, runs, k) for k, type in enumerate(types)
        ]
        places = add("aten.nonzero.default", TensorType("int64", (count, 1)), mask)
        found = add("stretto.distinct", values, x, axis, order, places)
        counts = add("stretto.counts", TensorType("int64", (count,)), inverse, places)
        self._known[key] = [found, inverse, counts]
        return self._known[key]


_COPIES = (
    "aten.alias.default",
    "aten.clone.default",
    "aten.detach.default",
    "aten.lift_fresh_copy.default",
)
_OPEN = re.compile(r"\bu\d+\b")


def with_known_counts(graph: Graph, constants: Mapping[str, np.ndarray]) -> Graph:
    """Return the graph, in whose types the sizes that constant masks tell are numbers.

    What is selected by such a mask refers to the constant itself, whose values are there while a
    program is compiled, and to no copy of it.
    """
    origins = {k: k for k, x in enumerate(graph.inputs) if x.kind == "constant"}
    sizes: dict[str, int] = {}
    nodes = []
    for k, node in enumerate(graph.nodes, len(graph.inputs)):
        if node.op in _COPIES and isinstance(node.args[0], Ref) and node.args[0].index in origins:
            origins[k] = origins[node.args[0].index]
        mask = _mask_of(node)
        if mask in origins:
            values = constants[graph.inputs[origins[mask]].name]
            if values.dtype == bool:
                shape = [n for type in node.types if type for n in type.shape]
                names = {n for n in shape if isinstance(n, str) and _OPEN.fullmatch(n)}
                sizes |= dict.fromkeys(names - sizes.keys(), int(values.sum()))
                direct = replaced(node.args, lambda x, old=mask: _moved(x, old, origins[old]))
                node = dataclasses.replace(node, args=direct)
        nodes.append(node)
    if not sizes:
        return graph
    return dataclasses.replace(graph, nodes=tuple([_with(node, sizes) for node in nodes]))


def _moved(x: Any, old: int, new: int) -> Any:
    return Ref(new) if isinstance(x, Ref) and x.index == old else x


def _mask_of(node: Node) -> int:
    """Return the value by which a node selects, if it is one alone; -1 otherwise."""
    if node.op not in ("aten.index.Tensor", "aten._unsafe_index.Tensor"):
        return -1
    used = [i for i in node.args[1] if i is not None]
    return used[0].index if len(used) == 1 and isinstance(used[0], Ref) else -1


def _with(node: Node, sizes: Mapping[str, int]) -> Node:
    def size(n: Any) -> Any:
        if not isinstance(n, str) or not set(_OPEN.findall(n)) & sizes.keys():
            return n
        text = _OPEN.sub(lambda found: str(sizes.get(found[0], found[0])), n)
        return text if re.search(r"[a-z]", text) else value_of(text, {})

    def known(type: TensorType | None) -> TensorType | None:
        return type and TensorType(type.dtype, tuple([size(n) for n in type.shape]))

    return dataclasses.replace(node, types=tuple([known(type) for type in node.types]))


def with_selections(graph: Graph) -> Graph:
    """Return the graph, with what has a size that depends on values in operations of its own."""
    graph = with_distinct(with_totals(graph))
    subgraphs = tuple([with_selections(part) for part in graph.subgraphs])
    graph = with_masks_shared(dataclasses.replace(graph, subgraphs=subgraphs))
    return _with_regions(graph, frozenset())


def _with_regions(graph: Graph, known: Set[str]) -> Graph:
    """Return the graph with an operation for each of its regions.

    Sizes that are ``known`` are those of the operation that the graph is inside of.
    """
    regions = _regions(graph, known)
    return _outlined(graph, regions, known) if regions else graph


def _reads(node: Node) -> set[int]:
    return set(refs((node.args, dict(node.kwargs))))


def _sizes_of(graph: Graph, known: Set[str]) -> list[set[str]]:
    """Return for each node the sizes that depend on values, of its result and of what it reads."""
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
    """Return the nodes of each region: those of sizes that belong together, and those between."""
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
    """Return for each node those that depend on it, and those that it depends on."""
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
    """Return the nodes, with those on the ways from one of them to another."""
    behind = set().union(*[after[k] for k in members])
    ahead = set().union(*[before[k] for k in members])
    return members | (behind & ahead)


def _cyclic(one: set[int], other: set[int], after: list[set[int]]) -> bool:
    """Say whether each of two regions needs the other."""
    return any([after[k] & other for k in one]) and any([after[k] & one for k in other])


def _outlined(graph: Graph, regions: Sequence[set[int]], known: Set[str]) -> Graph:
    """Return the graph with an operation for each region."""
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


def _used_outside(graph: Graph, members: set[int]) -> list[int]:
    """Return the nodes of a region that others, or the graph's outputs, read."""
    first = len(graph.inputs)
    read = {i for k, node in enumerate(graph.nodes) if k not in members for i in _reads(node)}
    read |= set(refs([x.value for x in graph.outputs]))
    return [k for k in sorted(members) if first + k in read]


def _order(
    graph: Graph, regions: Sequence[set[int]], region_of: dict[int, int]
) -> Iterable[tuple[str, int]]:
    """Return nodes and regions, each behind what it reads, and else in the order of the graph."""
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
    """Return the graph of a region, the masks that select in it, and what else it reads.

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
    """Return the sizes that come from a node, in which a mask selects."""
    if node.op not in SELECTS:
        return set()
    first = len(graph.inputs)
    before = [graph.nodes[i - first] for i in _reads(node) if i >= first and i - first in members]
    return open_sizes(node).difference(*map(open_sizes, before))


def _is_some(graph: Graph, mask: Ref) -> bool:
    """Say whether a mask has a true element wherever it has any: the first one of its runs."""
    k = mask.index - len(graph.inputs)
    if k < 0 or graph.nodes[k].op != "operator.getitem":
        return False
    return graph.nodes[graph.nodes[k].args[0].index - len(graph.inputs)].op == "stretto.runs"
