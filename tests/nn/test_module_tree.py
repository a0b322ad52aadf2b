"""A module as a tree: what iteration gives, layouts, copies."""

from __future__ import annotations

import gc
import pickle
import threading

import pytest

import stretto.numpy as snp
from stretto import nn
from stretto._engine.core import tree
from stretto.nn.module_tree import Layout
from tests.nn.models import Pair, Tied


def test_names_and_order():
    model = Pair()
    assert [n for n, _ in model.named_modules()] == ["", "one", "two"]
    assert [n for n, _ in model.named_modules("m")] == ["m", "m.one", "m.two"]
    assert list(model.modules()) == [model, model.one, model.two]
    assert list(model.children()) == [model.one, model.two]
    names = ["one.weight", "one.bias", "two.weight"]
    assert [n for n, _ in model.named_parameters()] == names
    assert [n for n, _ in model.named_parameters("p")] == [f"p.{n}" for n in names]
    assert list(model.named_parameters(recurse=False)) == []
    assert [x.shape for x in model.parameters()] == [(4, 3), (4,), (2, 4)]
    assert [n for n, _ in model.named_buffers()] == [
        "one.count",
        "one.cache",
        "two.count",
        "two.cache",
    ]
    assert len(list(model.buffers())) == 4
    assert model.get_submodule("") is model and model.get_submodule("two") is model.two


@pytest.mark.parametrize("target", ["three", "one.weight", "gone"])
def test_no_such_module(target):
    model = Pair()
    model.gone = nn.Module()
    model.gone = None
    with pytest.raises(AttributeError, match=f"'{target}': .*has no module"):
        model.get_submodule(target)


def test_what_is_shared_is_given_once():
    model = Tied()
    assert [n for n, _ in model.named_modules()] == ["", "a", "c"]
    assert [n for n, _ in model.named_parameters()] == ["a.weight", "a.bias", "c.bias"]
    assert "b.weight" in model.state_dict() and "c.weight" in model.state_dict()


def module(**attributes):
    made = nn.Module()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def weight():
    return nn.Parameter(snp.ones(2))


def buffered(persistent):
    made = nn.Module()
    made.register_buffer("b", snp.ones(2), persistent)
    return made


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (module(a=1, b=2), module(b=2, a=1), r"attributes \['training', 'a', 'b'\], in this order"),
        (module(a=1), module(a=2), "a Module with a=1 and one with a=2"),
        (module(a=1), module(a=1.0), "a=1 and one with a=1.0"),
        (module(a=1), module(a=True), "a=1 and one with a=True"),
        (module(a=1), module(a=weight()), "in which a is a static, and one in which it is a param"),
        (
            module(a=weight()),
            buffered(True),
            r"\['training', 'a'\].* and one with \['training', 'b",
        ),
        (buffered(True), buffered(False), r"saves all but \[\] and one \['b'\]"),
        (module(a=module(c=1)), module(a=module(c=2)), r"root\.a: a Module with c=1 and"),
    ],
)
def test_difference_in_words(one, other, words):
    assert tree.structure(one) != tree.structure(other)
    with pytest.raises(ValueError, match=words):
        raise ValueError(tree.difference(one, other, "root"))


def test_equal_layouts():
    for make in (lambda: module(a=1, b=weight()), lambda: buffered(False), module):
        assert tree.structure(make()) == tree.structure(make())
        assert hash(tree.structure(make())) == hash(tree.structure(make()))


def test_layouts_are_made_once_and_go():
    gc.collect()
    before = len(Layout._all.values())
    made = [module(a=("only here", 1)) for _ in range(2)]
    one, other = (tree.structure(m) for m in made)
    assert one == other and len(Layout._all.values()) == before + 1
    del one, other, made
    gc.collect()
    assert len(Layout._all.values()) == before


def test_threads_get_one_layout():
    barrier, found = threading.Barrier(8), []

    def work():
        made = module(a="of threads")
        barrier.wait()
        found.append(tree.structure(made))

    threads = [threading.Thread(target=work) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(found) == 8 and all(s == found[0] for s in found)


def test_a_structure_is_pickled_with_its_layouts():
    spec = tree.structure(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)))
    assert pickle.loads(pickle.dumps(spec)) == spec
    model = nn.Linear(2, 2)
    tree.leaves(model)
    assert pickle.loads(pickle.dumps(model._layout)) is model._layout
