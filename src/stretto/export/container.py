"""The file of ``jax.export``: a module of StableHLO, and what is to be known to call it.

It is a FlatBuffer of 26 fields. Arguments and results are trees; their types have sizes as text,
which may be expressions of variables. What classes of nodes beside tuples, lists and dictionaries
are called in files is in ``NODES``. A file may have the function of the reverse derivative in it,
in the same form.

Source: what JAX 0.10.2 writes and reads, serialization version 3 with the fields added up to
version 11, calling convention 10.
"""

from __future__ import annotations

import collections
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from stretto._engine.core.types import float0
from stretto._engine.core.typing import Tree
from stretto.export.flatbuffers import Number, Numbers, Record, Table, read, written
from stretto.export.splits import Split
from stretto.files.names import Damaged
from stretto.random.key_arrays import IMPLEMENTATIONS

CONVENTION = 10
"""The version of how ``main`` is called; 9 differs in nothing that is met here."""

_VERSION = 3
"""The version that readers of any age take; what came later are further fields."""

_DTYPES = (
    *[
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
    ],
    *[
        "complex64",
        "complex128",
        "bfloat16",
        "int4",
        "uint4",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
    ],
    *["float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float0", "float8_e4m3", "float8_e3m4"],
    *["float8_e8m0fnu", "float4_e2m1fn", "key_fry", "key_rbg", "key_unsafe_rbg"],
)
"""The dtypes by number."""

_KINDS = ("leaf", "none", "tuple", "list", "dict", "custom")
_DEEPEST = 200
"""The most nodes of a tree within each other, and derivatives of derivatives, that are read."""


class Aval(NamedTuple):
    """The type of an argument or a result.

    Args:
        shape: the sizes of its axes, as text.
        dtype: the name of its dtype.
    """

    shape: tuple[str, ...]
    dtype: str


class Node(NamedTuple):
    """A node of a tree.

    Args:
        kind: one of leaf, none, tuple, list, dict, custom.
        children: the nodes below it.
        names: the keys of a dict.
        name: what a class is called in files.
        data: what else there is to know of a node of a class.
    """

    kind: str
    children: tuple[Node, ...] = ()
    names: tuple[str, ...] = ()
    name: str = ""
    data: bytes = b""


class Container(NamedTuple):
    """A file: its module, and what is to be known to call it.

    Args:
        name: the function's name.
        in_tree: the tree of (args, kwargs).
        in_avals: the types of the arguments.
        out_tree: the tree of the result.
        out_avals: the types of the results.
        platforms: the platforms by name; ``main`` is told which, by number, if they are several.
        module: a portable artifact.
        kept: the numbers of the arguments that ``main`` takes.
        symbolic: whether shapes have variables, or the platform is told.
        vjp: the function from arguments and cotangents of results to cotangents of arguments.
        devices: how many devices it is for.
        ordered: the effects whose order ``main`` keeps, by tokens that it takes and gives.
        unordered: the other effects.
        unchecked: the checks that whoever wrote it left out.
        convention: the version of how ``main`` is called.
        in_splits: how the arguments lie, where that is said; empty if it is of none.
        out_splits: the same of the results.
    """

    name: str
    in_tree: Node
    in_avals: tuple[Aval, ...]
    out_tree: Node
    out_avals: tuple[Aval, ...]
    platforms: tuple[str, ...]
    module: bytes
    kept: tuple[int, ...]
    symbolic: bool = False
    vjp: Container | None = None
    devices: int = 1
    ordered: tuple[str, ...] = ()
    unordered: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    convention: int = CONVENTION
    in_splits: tuple[Split | None, ...] = ()
    out_splits: tuple[Split | None, ...] = ()


# Writing


def to_bytes(container: Container) -> bytes:
    """Write a file.

    Args:
        container: what is to be in it.

    Returns:
        The bytes.
    """
    return written(_record(container))


def _record(c: Container) -> Record:
    unique = list(dict.fromkeys([*c.in_avals, *c.out_avals]))
    number = {aval: k for k, aval in enumerate(unique)}
    ins = c.in_splits or (None,) * len(c.in_avals)
    outs = c.out_splits or (None,) * len(c.out_avals)
    splits = list(dict.fromkeys([s for s in (*ins, *outs) if s is not None]))
    meshes = list(dict.fromkeys([s.axes for s in splits]))
    number_of = lambda s: 0 if s is None else 1 + splits.index(s)
    place = lambda each: Numbers("I", tuple(map(number_of, each)))
    sharding = lambda s: Record() if s is None else Record(None, None, _split_record(s, meshes))
    return Record(
        Number("H", _VERSION),
        c.name,
        _tree_record(c.in_tree),
        [*map(_aval_record, c.in_avals)],
        _tree_record(c.out_tree),
        [*map(_aval_record, c.out_avals)],
        Number("h", c.devices),
        [*map(sharding, ins)],
        [*map(sharding, outs)],
        [*c.platforms],
        [Record(name) for name in c.ordered],
        [Record(name) for name in c.unordered],
        [*map(_check_record, c.unchecked)],
        c.module,
        Number("H", c.convention),
        Numbers("H", c.kept),
        Number("?", c.symbolic),
        None if c.vjp is None else _record(c.vjp),
        Number("I", c.devices),
        [*map(_aval_record, unique)],
        [*map(_mesh_record, meshes)],
        [_split_record(s, meshes) for s in splits],
        Numbers("I", tuple([number[aval] for aval in c.in_avals])),
        Numbers("I", tuple([number[aval] for aval in c.out_avals])),
        place(ins),
        place(outs),
    )


def _mesh_record(axes: Sequence[tuple[str, int]]) -> Record:
    auto = 1
    sizes = Numbers("I", tuple([size for _, size in axes]))
    return Record(sizes, [name for name, _ in axes], Numbers("b", (auto,) * len(axes)))


def _split_record(split: Split, meshes: Sequence[tuple[tuple[str, int], ...]]) -> Record:
    parts = [Record([*names]) for names in split.parts]
    number = meshes.index(split.axes)
    return Record(_mesh_record(split.axes), Record(parts, [], []), None, Number("I", number))


def _aval_record(aval: Aval) -> Record:
    on_device = 1
    dtype = _DTYPES.index(aval.dtype)
    return Record(Number("b", 0), [*aval.shape], Number("b", dtype), Number("b", on_device))


def _tree_record(node: Node) -> Record:
    return Record(
        Number("b", _KINDS.index(node.kind)),
        [*map(_tree_record, node.children)] if node.children else None,
        [*node.names] if node.kind == "dict" and node.children else None,
        node.name if node.kind == "custom" else None,
        node.data if node.kind == "custom" else None,
    )


def _check_record(check: str) -> Record:
    kind, _, target = check.partition(":")
    return Record(Number("b", 1), target) if kind == "custom_call" else Record(Number("b", 0))


# Reading


def is_container(content: bytes) -> bool:
    """Say whether bytes seem to be a file: their first table leads to a portable artifact.

    Args:
        content: the bytes.

    Returns:
        Whether they do; the rest may still be damaged.
    """
    try:
        return read(content).bytes(13).startswith(b"ML\xefR")
    except Damaged:
        return False


def from_bytes(content: bytes) -> Container:
    """Read a file.

    Args:
        content: its bytes.

    Returns:
        What is in it; the module is bytes still.

    Raises:
        Damaged: it is damaged, or no such file.
    """
    try:
        table = read(content)
    except Damaged as error:
        other = content[8:9] == b"{"  # the header of safetensors
        is_what = "an artifact, which export.load reads" if other else "no file of jax.export"
        raise Damaged(f"it is damaged, or {is_what}: {error}") from None
    return _container(table, 0)


def _container(table: Table, depth: int) -> Container:
    if depth > _DEEPEST:
        raise Damaged("derivatives of derivatives without end")
    convention = table.number(14, "H")
    if convention not in (9, CONVENTION):
        raise Damaged(
            f"its calling convention is {convention}, and 9 and {CONVENTION} are known: it was "
            f"written by another version of JAX"
        )
    avals = [*map(_aval, table.tables(19))]
    vjp = table.table(17)
    in_avals, out_avals = _avals(table, avals, 22, 3), _avals(table, avals, 23, 5)
    in_tree, out_tree = [_tree(_present(table.table(k)), 0) for k in (2, 4)]
    for tree, each, what in ((in_tree, in_avals, "arguments"), (out_tree, out_avals, "results")):
        if leaves_of(tree) != len(each):
            raise Damaged(f"the tree of {what} has {leaves_of(tree)} leaves for {len(each)}")
    kept = table.numbers(15, "H")
    if any([k >= len(in_avals) for k in kept]) or sorted(set(kept)) != [*kept]:
        raise Damaged("the numbers of the arguments that are kept are not those of arguments")
    return Container(
        table.text(1),
        in_tree,
        in_avals,
        out_tree,
        out_avals,
        table.texts(9),
        table.bytes(13),
        kept,
        bool(table.number(16, "B")),
        None if vjp is None else _container(vjp, depth + 1),
        table.number(18, "I") or table.number(6, "h"),
        tuple([t.text(0) for t in table.tables(10)]),
        tuple([t.text(0) for t in table.tables(11)]),
        tuple(
            [
                f"custom_call:{t.text(1)}" if t.number(0, "b") else "platform"
                for t in table.tables(12)
            ]
        ),
        convention,
        _splits(table, 24, 7, in_avals),
        _splits(table, 25, 8, out_avals),
    )


def _splits(
    table: Table, numbers: int, each: int, avals: Sequence[Aval]
) -> tuple[Split | None, ...]:
    """Return how arrays lie, which is listed by number, or one by one in older files."""
    found = table.numbers(numbers, "I")
    unique = [None, *map(_split, table.tables(21))]
    if found and max(found) >= len(unique):
        raise Damaged(f"there is no sharding {max(found)}")
    splits = [unique[k] for k in found]
    if not found:
        named = [t.table(2) for t in table.tables(each)]
        splits = [None if t is None else _split(t) for t in named]
    if not any(splits):
        return ()
    if len(splits) != len(avals):
        raise Damaged(f"it has {len(splits)} shardings for {len(avals)} arrays")
    for split, aval in zip(splits, avals, strict=True):
        if split is not None and len(split.parts) > len(aval.shape):
            raise Damaged(f"an array of {len(aval.shape)} axes is split along {len(split.parts)}")
    return tuple(splits)


def _split(table: Table) -> Split:
    mesh, spec = [_present(table.table(k)) for k in (0, 1)]
    sizes, names = mesh.numbers(0, "I"), mesh.texts(1)
    parts = tuple([t.texts(0) for t in spec.tables(0)])
    used = [name for part in parts for name in part]
    whole = len(sizes) == len(names) == len({*names}) and len({*used}) == len(used)
    if not whole or not all(sizes) or not {*used} <= {*names}:
        raise Damaged("a sharding is over axes that its mesh does not have")
    if table.text(2) not in ("", "device"):
        raise Damaged(f"an array is in the memory {table.text(2)!r}, and one kind is known here")
    if spec.texts(1) or spec.texts(2):
        raise Damaged("an array has parts that are not summed yet, which is not known here")
    return Split(tuple(zip(names, sizes, strict=True)), parts)


def _present(table: Table | None) -> Table:
    if table is None:
        raise Damaged("it lacks a tree, a mesh or a specification: it is no file of jax.export")
    return table


def _avals(table: Table, unique: Sequence[Aval], numbers: int, each: int) -> tuple[Aval, ...]:
    """Return the types that are listed by number, or one by one in older files."""
    found = table.numbers(numbers, "I")
    if not found:
        return tuple(map(_aval, table.tables(each)))
    if max(found) >= len(unique):
        raise Damaged(f"there is no type {max(found)}")
    return tuple([unique[k] for k in found])


def _aval(table: Table) -> Aval:
    dtype = table.number(2, "b")
    if table.number(0, "b") or not 0 <= dtype < len(_DTYPES):
        raise Damaged("it has a type of a kind that is not known")
    return Aval(table.texts(1), _DTYPES[dtype])


def _tree(table: Table, depth: int) -> Node:
    kind = table.number(0, "b")
    if depth > _DEEPEST or not 0 <= kind < len(_KINDS):
        raise Damaged("a tree is too deep, or of a kind that is not known")
    children = tuple([_tree(child, depth + 1) for child in table.tables(1)])
    node = Node(_KINDS[kind], children, table.texts(2), table.text(3), table.bytes(4))
    if node.kind == "dict" and (
        len(node.names) != len(children) or len({*node.names}) != len(children)
    ):
        raise Damaged("a dict of a tree has other keys than it has values")
    if node.kind in ("leaf", "none") and children:
        raise Damaged("a leaf of a tree has something below it")
    return node


def leaves_of(node: Node) -> int:
    """Count the leaves of a tree.

    Args:
        node: its root.

    Returns:
        Their number.
    """
    return 1 if node.kind == "leaf" else sum(map(leaves_of, node.children))


_NAMES = {"key_fry": "threefry2x32", "key_rbg": "rbg", "key_unsafe_rbg": "unsafe_rbg"}
KEYS = {name: IMPLEMENTATIONS[made] for name, made in _NAMES.items()}
"""The implementations of typed keys, by the names of their dtypes; a module takes their words."""


def dtype_of(aval: Aval) -> np.dtype:
    """Find the dtype of a type; that of their words, for keys.

    Args:
        aval: the type.

    Returns:
        The dtype.
    """
    if aval.dtype == "float0":
        return float0
    if aval.dtype in KEYS:
        return np.dtype(np.uint32)
    return np.dtype(getattr(ml_dtypes, aval.dtype, aval.dtype))


# Trees


class NodeClass(NamedTuple):
    """How nodes of a class are written and made.

    Args:
        name: what the class is called in files.
        to_bytes: a function from what is to be known of a node to bytes.
        from_bytes: the function back.
        build: a function from what is to be known of a node, and its children, to the node.
    """

    name: str
    to_bytes: Callable[[Any], bytes]
    from_bytes: Callable[[bytes], Any]
    build: Callable[[Any, Sequence[Any]], Any]


def _keys(content: bytes) -> list[str]:
    try:
        keys = json.loads(content)
    except (ValueError, RecursionError):
        raise Damaged("the keys of an ordered dictionary are damaged") from None
    if not isinstance(keys, list) or not all([isinstance(k, str) for k in keys]):
        raise Damaged("the keys of an ordered dictionary are no texts")
    return keys


NODES: dict[type, NodeClass] = {
    collections.OrderedDict: NodeClass(
        "collections.OrderedDict",
        lambda keys: json.dumps([*keys]).encode(),
        _keys,
        lambda keys, children: collections.OrderedDict(zip(keys, children, strict=True)),
    )
}
"""The classes of nodes that files may have."""


def tree_of(node: Node, leaves: Iterator[Any]) -> Tree:
    """Build the tree of a node.

    Args:
        node: its root.
        leaves: the leaves, in order.

    Returns:
        The tree.

    Raises:
        Damaged: it has nodes of a class that is not known here.
    """
    if node.kind == "leaf":
        return next(leaves)
    if node.kind == "none":
        return None
    if node.kind == "dict":
        # In the order of the keys, as their leaves are.
        return {k: tree_of(c, leaves) for k, c in zip(node.names, node.children, strict=True)}
    children = [tree_of(child, leaves) for child in node.children]
    if node.kind == "tuple":
        return tuple(children)
    if node.kind == "list":
        return children
    for known in NODES.values():
        if known.name == node.name:
            data = known.from_bytes(node.data)
            try:
                return known.build(data, children)
            except (TypeError, ValueError) as error:
                raise Damaged(f"a node of class {node.name!r} is damaged: {error}") from None
    raise Damaged(
        f"its trees have nodes of the class {node.name!r}, which is not known here: under JAX's "
        f"names, jax.export.register_pytree_node_serialization tells what it is"
    )
