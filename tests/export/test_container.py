"""The container of ``jax.export``: written, read, and damaged."""

import collections
import random

import numpy as np
import pytest

from stretto._engine.core import tree
from stretto._engine.core.types import float0
from stretto.export.container import (
    Aval,
    Container,
    Node,
    dtype_of,
    from_bytes,
    leaves_of,
    to_bytes,
    tree_of,
)
from stretto.files.names import Damaged
from tests.export.exchange import FILES, NAMES

LEAF = Node("leaf")
AVALS = (Aval(("b", "3"), "float32"), Aval((), "bfloat16"), Aval(("2*b",), "float0"))


def sample(vjp=None):
    args = Node("tuple", (LEAF, Node("list", (LEAF, Node("none")))))
    in_tree = Node("tuple", (args, Node("dict", (LEAF,), ("k",))))
    out_tree = Node("custom", (LEAF,), (), "collections.OrderedDict", b'["a"]')
    return Container(
        "f", in_tree, AVALS, out_tree, AVALS[:1], ("cpu", "tpu"), b"module" * 9, (0, 2), True, vjp,
        unchecked=("platform", "custom_call:foo"), unordered=("an effect",),
    )  # fmt: skip


def test_what_is_written_is_read():
    container = sample(sample())
    assert from_bytes(to_bytes(container)) == container


@pytest.mark.parametrize("name", NAMES)
def test_files_of_jax_are_read_and_written_the_same(name):
    container = from_bytes((FILES / f"{name}.jax").read_bytes())
    assert from_bytes(to_bytes(container)) == container
    assert container.module.startswith(b"ML\xefR") and container.devices == 1


def test_trees_are_built():
    container = sample()
    args, kwargs = tree_of(container.in_tree, iter("xyz"))
    assert (args, kwargs) == (("x", ["y", None]), {"k": "z"})
    out = tree_of(container.out_tree, iter([1]))
    assert out == collections.OrderedDict(a=1) and type(out) is collections.OrderedDict
    assert leaves_of(container.in_tree) == tree.structure((args, kwargs)).num_leaves == 3


def test_classes_that_are_not_known_are_refused_by_name():
    with pytest.raises(Damaged, match=r"class 'my\.Class', which is not known here"):
        tree_of(Node("custom", (LEAF,), (), "my.Class", b""), iter([1]))
    with pytest.raises(Damaged, match="ordered dictionary are damaged"):
        tree_of(Node("custom", (LEAF,), (), "collections.OrderedDict", b"{"), iter([1]))


def test_dtypes():
    assert dtype_of(Aval((), "float0")) == float0
    assert dtype_of(Aval((), "bool")) == np.dtype(bool)
    assert dtype_of(Aval((), "float8_e4m3fn")).itemsize == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kept": (3,)}, "not those of arguments"),
        ({"kept": (2, 0)}, "not those of arguments"),
        ({"in_avals": AVALS[:2]}, "the tree of arguments has 3 leaves for 2"),
        ({"convention": 8}, "calling convention is 8"),
        ({"out_tree": Node("dict", (LEAF, LEAF), ("a", "a"))}, "other keys than it has values"),
        ({"out_tree": Node("none", (LEAF,))}, "has something below it"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes, words):
    with pytest.raises(Damaged, match=words):
        from_bytes(to_bytes(sample()._replace(**changes)))


def test_trees_without_end_are_refused():
    node = LEAF
    for _ in range(300):
        node = Node("tuple", (node,))
    with pytest.raises(Damaged, match="too deep"):
        from_bytes(to_bytes(sample()._replace(out_tree=node)))


@pytest.mark.parametrize("name", ["sine_and_sum", "symbolic", "two_platforms"])
def test_damaged_files_are_refused_or_another_file(name):
    content = (FILES / f"{name}.jax").read_bytes()
    rng, refused = random.Random(name), 0
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(rng.randrange(1, 5)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        if rng.random() < 0.3:
            del damaged[rng.randrange(len(damaged)) :]
        try:
            from_bytes(bytes(damaged))
        except Damaged:
            refused += 1
    assert refused > 80


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"no such file, but words", "it is damaged, or no file of jax.export: an offset"),
        (b"\x10\x04\0\0\0\0\0\0" + b"{" + b" " * 2000, "or an artifact, which export.load reads"),
    ],
)
def test_files_of_other_kinds_are_told(content, words):
    with pytest.raises(Damaged, match=words):
        from_bytes(content)
