"""What a PyTorch module holds, seen and put back."""

import collections
import functools
import itertools
import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 (only where PyTorch is)

from stretto.torch.python_state.holdings import (  # noqa: E402
    Absent,
    Snapshot,
    place_of,
    undone,
)

COUNT = [0]


def closing():
    n = 0

    def count():
        nonlocal n
        n += 1

    return count


@functools.lru_cache
def table(n):
    return torch.arange(n)


class Holds(nn.Module):
    """State of many kinds."""

    calls = 0

    def __init__(self):
        super().__init__()
        self.n, self.name, self.nan = 0, "a", float("nan")
        self.listed, self.named, self.chosen = [1, [2]], {"a": {"b": 1}}, {1}
        self.queue, self.array = collections.deque([1]), np.zeros(3)
        self.numbers, self.python = np.random.default_rng(0), random.Random(0)
        self.counter, self.count = itertools.count(), closing()
        self.tensor, self.layers = torch.zeros(3), nn.ModuleList([nn.Linear(2, 2)])
        self.hidden = [nn.ReLU()]

    def forward(self, x, seen=[]):  # noqa: B006 (this is what is tested)
        seen.append(1)
        COUNT[0] += 1
        return table(3)


def _appended_default():
    Holds.forward.__defaults__[0].append(1)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda m: setattr(m, "n", 1), "self.n"),
        (lambda m: setattr(m, "n", True), "self.n"),
        (lambda m: setattr(m, "new", 1), "self.new"),
        (lambda m: delattr(m, "name"), "self.name"),
        (lambda m: m.listed.append(1), "self.listed[2]"),
        (lambda m: m.listed[1].append(1), "self.listed[1][1]"),
        (lambda m: m.named["a"].update(b=2), "self.named['a']['b']"),
        (lambda m: m.chosen.add(2), "self.chosen"),
        (lambda m: m.queue.append(2), "self.queue[1]"),
        (lambda m: m.array.__iadd__(1), "self.array"),
        (lambda m: m.numbers.random(), "self.numbers"),
        (lambda m: m.python.random(), "self.python"),
        (lambda m: m.count(), "n, which closing.count closes over"),
        (lambda m: setattr(m, "tensor", torch.zeros(3)), "self.tensor"),
        (lambda m: setattr(m.layers[0], "in_features", 3), "self.layers.0.in_features"),
        (lambda m: setattr(m.hidden[0], "inplace", True), "self.hidden[0].inplace"),
        (lambda m: m.register_buffer("late", torch.ones(1)), "self.late"),
        (lambda m: m.layers.append(nn.ReLU()), "self.layers.1"),
        (lambda m: setattr(Holds, "calls", 3), "Holds.calls"),
        (lambda m: COUNT.__setitem__(0, 7), f"the global {__name__}.COUNT[0]"),
        (lambda m: _appended_default(), "a default[0] of Holds.forward"),
        (lambda m: random.random(), "Python's module random"),
        (lambda m: np.random.rand(), "numpy.random"),
    ],
)
def test_changes_are_named_and_undone(change, place):
    module = Holds()
    before = Snapshot(module)
    assert not list(before.changes())
    change(module)
    assert place in [found.place for found in before.changes()]
    before.restore()
    assert not list(before.changes())


def test_iterators_are_seen():
    module = Holds()
    before = Snapshot(module)
    next(module.counter)
    assert [found.place for found in before.changes()] == ["self.counter"]


def test_elements():
    module = Holds()
    few, all_ = Snapshot(module), Snapshot(module, elements=3)
    module.tensor.add_(1)
    assert not list(few.writes())
    (found,) = all_.writes()
    assert found.place == "self.tensor"
    all_.restore()
    assert not module.tensor.any()


def test_what_is_absent():
    module = Holds()
    before = Snapshot(module)
    module.new = 3
    (found,) = before.changes()
    assert (found.before, found.after, found.kind) == (Absent, 3, "")


def test_caches_are_emptied_if_they_were_used():
    table.cache_clear()
    before = Snapshot(Holds())
    table(5)
    before.restore()
    assert table.cache_info().currsize == 0


def test_undone():
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    module[0].held = [1]
    weight = module[0].weight
    value = weight.detach().clone()
    with undone(module):
        module[0].held.append(2)
        module[0].weight.data.mul_(2)
        module[0].weight = nn.Parameter(torch.ones(2, 2))
        module[1].running_mean = torch.ones(2)
    assert module[0].held == [1] and module[0].weight is weight
    assert torch.equal(weight, value) and not module[1].running_mean.any()


class Instances(collections.OrderedDict):
    """Makes what it is asked for, counts that, and writes only functions."""

    made = 0

    def __getitem__(self, key):
        self.made += 1
        return super().__getitem__(key)()


class Remembers(collections.UserDict):
    """Doubles what it gives."""

    def __getitem__(self, key):
        return 2 * self.data[key]


KINDS = Instances(relu=nn.ReLU, tanh=nn.Tanh)


def test_containers_that_make_what_they_give():
    class Chooses(nn.Module):
        def __init__(self):
            super().__init__()
            self.numbers = Remembers(a=1)

        def forward(self, x):
            return KINDS["relu"](x) * self.numbers["a"]

    module = Chooses()
    before = Snapshot(module)
    assert KINDS.made == 0 and not list(before.changes())
    with undone(module) as start:
        module(torch.ones(2))
        module.numbers["b"] = 3
        KINDS["gelu"] = nn.GELU
        places = {found.place for found in start.changes()}
    assert {"self.numbers.data['b']", f"the global {__name__}.KINDS['gelu']"} <= places
    assert f"the global {__name__}.KINDS.made" in places
    assert (KINDS.made, list(KINDS), module.numbers.data) == (0, ["relu", "tanh"], {"a": 1})
    assert isinstance(KINDS["tanh"], nn.Tanh)


def test_places():
    module = Holds()
    assert place_of(module, module.layers[0].weight) == "self.layers.0.weight"
    assert place_of(module, module.tensor[:2]) == "self.tensor"
    assert place_of(module, torch.ones(2, 3)).startswith("a tensor of shape (2, 3)")


def test_hooks_that_a_call_registers_are_undone():
    module = nn.Linear(2, 2)
    handle = module.weight.register_hook(lambda g: g)
    with undone(module):
        module.weight.register_hook(lambda g: 2 * g)
        module.bias.register_hook(lambda g: 2 * g)
        module.bias.register_post_accumulate_grad_hook(lambda p: None)
    assert len(module.weight._backward_hooks) == 1 and not module.bias._backward_hooks
    assert not module.bias._post_accumulate_grad_hooks
    handle.remove()
