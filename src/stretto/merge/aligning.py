"""``align``: a network's units in the order of another's, before the two are averaged.

Hidden units have no order: rows of one layer and columns of the next may be exchanged, and the
network computes the same. Networks from different starts have theirs in different orders, and their
average is worse than both unless one is put into the other's. A ``Graph`` says which axes of which
tensors go together; ``stack_graph`` and ``llama_graph`` derive it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from stretto._engine.core.interpreter import constant
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.tree import unflatten
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Tree
from stretto.files.file_elements import stored
from stretto.files.names import leaf_names
from stretto.merge.checkpoints import Checkpoint
from stretto.merge.recipes import nearest, raise_all
from stretto.tree.members import Alike

__all__ = ["Graph", "align", "llama_graph", "stack_graph"]

optimize = LazyModule("scipy.optimize")

T = TypeVar("T")

Axes = Mapping[str, Sequence[str | None]]


class Graph(NamedTuple):
    """Which axes of a network's tensors are permuted together.

    >>> import stretto as st
    >>> graph = st.merge.Graph(
    ...     {"fc1.weight": ("h", None), "fc1.bias": ("h",), "fc2.weight": (None, "h")}
    ... )
    >>> graph.sizes
    {}
    """

    axes: Axes
    """By tensor, for each axis the name of its group of units, or ``None`` where it stays."""
    sizes: Mapping[str, int] = {}
    """How many units are in a group, where that is not the least size of its axes. An axis may be a
    multiple of it: each unit then has as many elements, one after the other."""


def align(model: T, reference: Tree, graph: Graph | Axes, *, seed: int = 0, rounds: int = 100) -> T:
    """Return a model with its units in the order that brings its weights nearest to another's.

    It computes the same. One group after the other, in a random order, gets the best permutation
    while the others stay, which is an assignment; until none gets better.

    Args:
        model: a tree of arrays, or a ``Checkpoint``, which is read whole.
        reference: one with the same names and shapes.
        graph: a ``Graph``, or the mapping ``axes`` of one. Each tensor of floats must be in it.
        seed: of the order of groups.
        rounds: the most rounds over all groups.

    Returns:
        A tree like ``model``; for a ``Checkpoint`` a dictionary of arrays, which ``save`` writes.

    Raises:
        ValueError: the models differ; or the graph does not fit, with all that is wrong.

    Source: Ainsworth et al., "Git Re-Basin: merging models modulo permutation symmetries", 2023,
    algorithm 1.

    >>> import stretto as st, stretto.numpy as snp
    >>> model = {"up": snp.array([[1.0], [2.0]]), "down": snp.array([[10.0, 20.0]])}
    >>> other = {"up": snp.array([[2.1], [0.9]]), "down": snp.array([[20.0, 10.0]])}
    >>> st.merge.align(model, other, {"up": ("h", None), "down": (None, "h")})["up"]
    Array([[2.],
           [1.]], dtype=float32)
    """
    names, ours, structure = _arrays(model)
    their_names, found, _ = _arrays(reference)
    theirs = dict(zip(their_names, found, strict=True))
    arrays = dict(zip(names, ours, strict=True))
    graph = graph if isinstance(graph, Graph) else Graph(graph)
    sizes = _checked(arrays, theirs, graph)
    permutations = _matched(arrays, theirs, graph, sizes, np.random.default_rng(seed), rounds)
    moved = [
        constant(_permuted(x, graph.axes.get(name, ()), permutations, sizes))
        for name, x in arrays.items()
    ]
    if structure is None:
        result: Any = dict(zip(names, moved, strict=True))
        return result
    return unflatten(structure, moved)


def _arrays(model: Tree) -> tuple[list[str], list[np.ndarray], Any]:
    """Return names and arrays of a model, and the structure of a tree."""
    if isinstance(model, Checkpoint):
        return list(model), [np.asarray(x) for x in model.values()], None
    alike = Alike("align")
    row = alike.row(model, 0)
    names = leaf_names(model, "align")
    arrays: list[Any] = [stored(x, n, "align").array for n, x in zip(names, row, strict=True)]
    return names, arrays, alike.structure


def _checked(
    arrays: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray], graph: Graph
) -> dict[str, int]:
    """Return the sizes of all groups; raise for all that does not fit."""
    problems = [
        f"{name} is in one model, and not in the other" for name in sorted(arrays.keys() ^ theirs)
    ]
    for name, x in arrays.items():
        other = theirs.get(name, x)
        if other.shape != x.shape:
            problems.append(
                f"{name} has shape {list(x.shape)}, and {list(other.shape)} in the reference"
            )
        if not (_is_finite(x) and _is_finite(other)):
            problems.append(f"{name} has NaN or infinities")
        if name not in graph.axes and is_inexact(x.dtype):
            problems.append(
                f"{name} is not in the graph: say for each of its {x.ndim} axes the group, or None"
            )
    sizes = {}
    places = _places(arrays, graph, problems)
    for group, found in places.items():
        sizes[group] = graph.sizes.get(group, min(size for _, size in found))
        problems += [
            f"an axis of {name} has {size} elements, which {sizes[group]} units of the group "
            f"{group!r} cannot share"
            for name, size in found if sizes[group] < 1 or size % sizes[group]
        ]  # fmt: skip
    problems += [
        f"no tensor has the group {group!r}" + nearest(group, places)
        for group in graph.sizes if group not in places
    ]  # fmt: skip
    raise_all(problems, "the graph with the models", "align")
    return sizes


def _places(
    arrays: Mapping[str, np.ndarray], graph: Graph, problems: list[str]
) -> dict[str, list[tuple[str, int]]]:
    """Return for each group its axes: the tensor, and the size."""
    found: dict[str, list[tuple[str, int]]] = {}
    for name, axes in graph.axes.items():
        if name not in arrays:
            problems.append(
                f"{name} of the graph is no tensor of the model" + nearest(name, arrays)
            )
        elif len(axes) != arrays[name].ndim:
            problems.append(
                f"{name} of shape {list(arrays[name].shape)} has {len(axes)} axes in the graph"
            )
        else:
            for group, size in zip(axes, arrays[name].shape, strict=True):
                if group is not None:
                    found.setdefault(group, []).append((name, size))
    return found


def _is_finite(x: np.ndarray) -> bool:
    return not is_inexact(x.dtype) or bool(np.isfinite(x).all())


def _matched(
    arrays: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray], graph: Graph,
    sizes: Mapping[str, int], rng: np.random.Generator, rounds: int,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Return for each group the order of its units."""
    places: dict[str, list[tuple[str, int]]] = {group: [] for group in sizes}
    for name, axes in graph.axes.items():
        for axis, group in enumerate(axes):
            if group is not None:
                places[group].append((name, axis))
    orders = {group: np.arange(size) for group, size in sizes.items()}
    groups = sorted(sizes)
    for _ in range(rounds):
        better = False
        for g in rng.permutation(len(groups)):
            group = groups[g]
            count = sizes[group]
            alike = np.zeros((count, count))  # their unit by ours
            for name, axis in places[group]:
                others = [None if i == axis else a for i, a in enumerate(graph.axes[name])]
                own = _permuted(arrays[name], others, orders, sizes)
                alike += _by_unit(theirs[name], axis, count) @ _by_unit(own, axis, count).T
            _, order = optimize.linear_sum_assignment(alike, maximize=True)
            before = alike[np.arange(count), orders[group]].sum()
            after = alike[np.arange(count), order].sum()
            if after > before + 1e-12 * abs(before):
                orders[group], better = order, True
        if not better:
            break
    return orders


def _by_unit(x: np.ndarray, axis: int, count: int) -> np.ndarray:
    """Return what belongs to each unit, (units, elements), in float64."""
    return np.moveaxis(x, axis, 0).reshape(count, -1).astype(np.float64)


def _permuted(
    x: np.ndarray, axes: Sequence[str | None], orders: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
) -> np.ndarray:  # fmt: skip
    for axis, group in enumerate(axes):
        if group is not None:
            each = x.shape[axis] // sizes[group]
            places = (orders[group][:, None] * each + np.arange(each)).reshape(-1)
            x = np.take(x, places, axis)
    return x


# Graphs


def stack_graph(model: Tree, *, inputs_first: bool = False) -> Graph:
    """Derive the graph of a plain stack: layers, each of which feeds the next alone.

    Layers are linear or convolutions, with biases; between them there may be norms over all
    channels (batch, layer, or RMS norms), element by element functions, pooling, and one
    flattening with the channels first. Names alone do not tell whether a network is such: one with
    skip connections, with norms of groups of channels, or whose names are not in the order of its
    layers, needs a graph of your own.

    Args:
        model: a tree of arrays or a ``Checkpoint``, whose names go by layer in their order, numbers
            as numbers.
        inputs_first: whether weights are (inputs, outputs), rather than (outputs, inputs, ...).

    Returns:
        A ``Graph``. The first layer's inputs and the last one's outputs stay.

    Raises:
        ValueError: shapes do not follow each other so, with all that does not fit.

    >>> import stretto as st
    >>> from stretto import nn
    >>> keys = st.random.split(st.random.PRNGKey(0))
    >>> model = nn.Sequential(nn.Linear(4, 8, key=keys[0]), nn.ReLU(), nn.Linear(8, 2, key=keys[1]))
    >>> st.merge.stack_graph(model).axes["2.weight"]
    (None, '0')
    """
    layers: dict[str, dict[str, tuple[int, ...]]] = {}
    for name, shape in sorted(_shapes(model).items(), key=lambda item: _natural(item[0])):
        prefix, _, last = name.rpartition(".")
        layers.setdefault(prefix, {})[last] = shape
    axes: dict[str, tuple[str | None, ...]] = {}
    sizes: dict[str, int] = {}
    problems: list[str] = []
    group = None
    for prefix, tensors in layers.items():
        weights = [last for last, shape in tensors.items() if len(shape) > 1]
        if len(weights) > 1:
            problems.append(f"{prefix} has several matrices, {', '.join(weights)}")
            continue
        for last in weights:
            shape = tensors[last]
            outputs, inputs = (1, 0) if inputs_first else (0, 1)
            own: list[str | None] = [None] * len(shape)
            if group is not None and shape[inputs] % sizes[group]:
                problems.append(
                    f"{prefix}.{last} takes {shape[inputs]} inputs, and {group} has "
                    f"{sizes[group]} outputs"
                )
            own[inputs] = group
            group = prefix
            sizes[group] = shape[outputs]
            own[outputs] = group
            axes[f"{prefix}.{last}".removeprefix(".")] = tuple(own)
        for last, shape in tensors.items():
            if last in weights:
                continue
            if shape and (group is None or shape[0] != sizes[group]):
                problems.append(
                    f"{prefix}.{last} of shape {list(shape)} does not follow "
                    f"{group or 'any layer'}" + (f" of {sizes[group]} outputs" if group else "")
                )
            axes[f"{prefix}.{last}".removeprefix(".")] = (group,) * len(shape)
    if group is None:
        problems.append("it has no matrix")
    raise_all(problems, "the plain stack", "stack_graph")
    stays = {group: None}
    return Graph({n: tuple(stays.get(a, a) for a in own) for n, own in axes.items()})


def _shapes(model: Tree) -> dict[str, tuple[int, ...]]:
    if isinstance(model, Checkpoint):
        return {name: x.shape for name, x in model.stored.items()}
    names, arrays, _ = _arrays(model)
    return {name: x.shape for name, x in zip(names, arrays, strict=True)}


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts numbers in names as numbers."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if i % 2 else (-1, part) for i, part in enumerate(parts)]


_LLAMA: tuple[tuple[str, tuple[str | None, ...]], ...] = (
    (r"model\.embed_tokens\.weight", (None, "stream")),
    (r"lm_head\.weight", (None, "stream")),
    (r"model\.norm\.weight", ("stream",)),
    (r"(model\.layers\.\d+)\.(input_layernorm|post_attention_layernorm)\.weight", ("stream",)),
    (r"(model\.layers\.\d+)\.self_attn\.[qkv]_proj\.weight", ("{}.heads", "stream")),
    (r"(model\.layers\.\d+)\.self_attn\.[qkv]_proj\.bias", ("{}.heads",)),
    (r"(model\.layers\.\d+)\.self_attn\.[qk]_norm\.weight", (None,)),
    (r"(model\.layers\.\d+)\.self_attn\.o_proj\.weight", ("stream", "{}.heads")),
    (r"(model\.layers\.\d+)\.self_attn\.o_proj\.bias", ("stream",)),
    (r"(model\.layers\.\d+)\.mlp\.(gate|up)_proj\.weight", ("{}.mlp", "stream")),
    (r"(model\.layers\.\d+)\.mlp\.(gate|up)_proj\.bias", ("{}.mlp",)),
    (r"(model\.layers\.\d+)\.mlp\.down_proj\.weight", ("stream", "{}.mlp")),
    (r"(model\.layers\.\d+)\.mlp\.down_proj\.bias", ("stream",)),
)


def llama_graph(model: Tree, key_value_heads: int | None = None) -> Graph:
    """Return the graph of a Llama, Mistral or Qwen, by the names that transformers gives.

    The channels of the stream that all layers add to are one group, and the units of each MLP are
    one. Attention heads that share keys and values stay together, as rotary embeddings fix the
    order within a head.

    Args:
        model: a tree of arrays or a ``Checkpoint``, with these names.
        key_value_heads: how many heads keys have; by default as a ``Checkpoint``'s configuration
            says, and otherwise heads stay.

    Returns:
        A ``Graph``.

    Raises:
        ValueError: there are tensors with other names.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.merge.llama_graph({"model.layers.0.mlp.down_proj.weight": snp.ones((4, 8))}).axes
    {'model.layers.0.mlp.down_proj.weight': ('stream', 'model.layers.0.mlp')}
    """
    if key_value_heads is None and isinstance(model, Checkpoint):
        said = model.configuration(model.components[0].folder) or {}
        key_value_heads = said.get("num_key_value_heads", said.get("num_attention_heads"))
    axes = {}
    sizes = {}
    problems = []
    for name in _shapes(model):
        found = next(_placed(name), None)
        if found is None:
            problems.append(f"{name} is no tensor of a Llama: write a graph of your own")
            continue
        heads = [a for a in found if a is not None and a.endswith(".heads")]
        if key_value_heads is None:
            found = tuple(None if a in heads else a for a in found)
        else:
            sizes |= dict.fromkeys(heads, key_value_heads)
        axes[name] = found
    raise_all(problems, "the model", "llama_graph")
    return Graph(axes, sizes)


def _placed(name: str) -> Iterator[tuple[str | None, ...]]:
    for pattern, axes in _LLAMA:
        match = re.fullmatch(pattern, name)
        if match:
            layer = match[1] if match.re.groups else ""
            yield tuple(a and a.format(layer) for a in axes)
