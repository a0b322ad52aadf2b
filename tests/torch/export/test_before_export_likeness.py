"""Which PyTorch modules are alike: equal but for the values of their weights."""

import copy
import functools
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 (only where PyTorch is)
from torch.nn.utils import parametrizations  # noqa: E402

from stretto.torch.export.before_export import Likeness  # noqa: E402


class Net(nn.Module):
    """Settings of many kinds."""

    def __init__(self, p=0.5, act=torch.relu, scale=2.0, flags=None, bias=True):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(p))
        self.recurrent = nn.LSTM(3, 4, 2)
        self.attention = nn.TransformerEncoderLayer(4, 2)
        self.head = nn.Linear(4, 2, bias=bias)
        self.act, self.flags = act, flags or {"names": ["a", 1, None], "".join(["b", "c"]): 1.5}
        self.scale = torch.tensor(scale)


def alike(x, y):
    of = Likeness().of
    return of(x) == of(y)


def test_modules_of_one_architecture_are_alike():
    first, second = Net(), Net()
    assert alike(first, second)
    with torch.no_grad():
        first.body[1].running_mean += 1
        first.head.weight += 1
    assert alike(first, second)
    assert alike(copy.deepcopy(first), copy.deepcopy(first))
    assert not alike(first, first.head)


@pytest.mark.parametrize(
    "settings",
    [
        {"p": 0.25},
        {"act": torch.tanh},
        {"act": functools.partial(nn.functional.softmax, dim=0)},
        {"scale": 3.0},
        {"flags": {"names": ["a", 1, None], "bc": 1.0}},
        {"flags": {"names": ["a", True, None], "bc": 1.5}},
        {"bias": False},
    ],
)
def test_settings_make_a_difference(settings):
    assert not alike(Net(), Net(**settings))
    if "act" not in settings:
        assert alike(Net(**settings), Net(**settings))


def _shared(net):
    net.head = net.attention.linear2


def _tied(net):
    net.attention.linear2.weight = nn.Parameter(net.attention.linear1.weight.detach())
    net.attention.linear1.weight = net.attention.linear2.weight


@pytest.mark.parametrize(
    "change",
    [
        lambda net: net.requires_grad_(False),
        lambda net: net.double(),
        lambda net: net.eval(),
        lambda net: net.register_buffer("mask", torch.ones(2)),
        lambda net: net.head.register_forward_hook(lambda *args: None),
        lambda net: net.head.register_forward_pre_hook(lambda *args: None),
        lambda net: setattr(net, "forward", lambda x: x),
        lambda net: setattr(net.head, "extra", np.float32(1)),
        lambda net: parametrizations.weight_norm(net.head),
        _shared,
        _tied,
    ],
)
def test_what_was_done_to_a_module_makes_a_difference(change):
    net = Net()
    change(net)
    assert not alike(net, Net())
    assert alike(net, net)


def test_state_that_a_module_would_not_save_counts():
    class Hides(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.n = n

        def __getstate__(self):
            return {}

        def __reduce__(self):
            return Hides, (0,)

    assert alike(Hides(1), Hides(1))
    assert not alike(Hides(1), Hides(2))


class Scale:
    """Something that would not say what it holds."""

    def __init__(self, by):
        self.by = by

    def __reduce__(self):
        return Scale, (1.0,)

    def __call__(self, x):
        return x * self.by


class Level:
    """Something that would leave out what it holds."""

    def __init__(self, by):
        self.by = by

    def __getstate__(self):
        return {"by": 0}


@pytest.mark.parametrize("kind", [Scale, Level])
def test_what_an_object_would_leave_out_counts(kind):
    def made(by):
        net = nn.Linear(2, 2)
        net.held = [kind(by)]
        return net

    assert alike(made(2.0), made(2.0))
    assert not alike(made(2.0), made(3.0))


def test_methods_are_known_by_their_functions():
    def doubled(self, x):
        return 2 * x

    def negated(self, x):
        return -x

    def patched(function):
        net = nn.Linear(2, 2)
        net.forward = types.MethodType(function, net)
        return net

    assert alike(patched(doubled), patched(doubled))
    assert not alike(patched(doubled), patched(negated))

    def holding(by):
        net = nn.Linear(2, 2)
        net.held = Scale(by).__call__
        return net

    assert alike(holding(2.0), holding(2.0))
    assert not alike(holding(2.0), holding(3.0))


def test_equal_names_do_not_hide_different_classes():
    def made(sign):
        class Local(nn.Module):
            def forward(self, x):
                return sign * x

        return Local

    one, other = made(1), made(-1)
    assert alike(one(), one())
    assert not alike(one(), other())


def test_what_cannot_be_described_is_like_nothing():
    net = nn.Linear(2, 2)
    net.held = (x for x in ())
    assert not alike(net, net)


def test_parts_of_parameters_are_not_their_elements():
    def made(part, *, weights=1.0):
        net = nn.Linear(2, 2)
        with torch.no_grad():
            net.weight.fill_(weights)
        net.held = [part(net.weight)]
        return net

    def row(w):
        return w[0]

    assert alike(made(row), made(row, weights=2.0))
    for other in (lambda w: w[1], lambda w: w[0].detach(), lambda w: w[0].detach().clone()):
        assert not alike(made(row), made(other))
    assert not alike(made(lambda w: w.data[0]), made(lambda w: w.data[0].clone()))
