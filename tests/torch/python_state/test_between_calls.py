"""What a PyTorch module keeps between calls, in Python: refused by name, or harmless."""

import functools
import itertools
import random

import numpy as np
import pytest

import stretto as st

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 (only where PyTorch is)

from stretto.torch.python_state.holdings import Snapshot  # noqa: E402

X = torch.from_numpy(np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32))
COUNT = 0


class Settings:
    """State of the program, not of a module."""

    n = 0


SETTINGS = Settings()


class Inner(nn.Module):
    """Counts by itself."""

    def __init__(self):
        super().__init__()
        self.k = 0

    def forward(self, x):
        self.k += 1
        return x + self.k


def counting():
    n = 0

    def count(x):
        nonlocal n
        n += 1
        return x * n

    return count


class Base(nn.Module):
    """Many attributes, of which ``step`` changes some."""

    calls = 0

    def __init__(self, step):
        super().__init__()
        self.b = nn.Parameter(torch.ones(4))
        self.n, self.history, self.named, self.chosen = 0, [], {"h": torch.zeros(4)}, set()
        self.mean, self.pair, self.total = torch.zeros(4), (torch.zeros(4), 1), torch.tensor(0)
        self.first, self.table, self.layer, self.array = True, None, None, np.zeros(2)
        self.hidden, self.inner = [Inner()], nn.Sequential(nn.ReLU(), Inner())
        self.norm = [nn.BatchNorm1d(4, affine=False)]
        self.numbers, self.python = np.random.default_rng(0), random.Random(0)
        self.counter, self.count = itertools.count(1), counting()
        self.step = step

    def forward(self, x):
        return self.step(self, x)


def counts(m, x):
    m.n += 1
    return x * m.n


def counts_unused(m, x):
    m.n += 1
    return x * m.b


def lists(m, x):
    m.history.append(x.mean(0))
    return x * len(m.history)


def chooses(m, x):
    m.chosen.add(len(m.chosen))
    return x * len(m.chosen)


def assigns(m, x):
    m.mean = 0.9 * m.mean + x.mean(0)
    return x * m.mean


def assigns_inside(m, x):
    m.named["h"] = m.named["h"] + x.mean(0)
    return x * m.named["h"]


def assigns_pair(m, x):
    m.pair = (m.pair[0] + x.mean(0), 1)
    return x + m.pair[0]


def writes(m, x):
    m.mean.mul_(0.9).add_(x.mean(0))
    return x * m.mean


def writes_number(m, x):
    m.total += 1
    return x * m.total


def counts_globally(m, x):
    global COUNT  # noqa: PLW0603 (this is what is tested)
    COUNT += 1
    return x * COUNT


def counts_in_settings(m, x):
    SETTINGS.n += 1
    return x * SETTINGS.n


def counts_in_class(m, x):
    type(m).calls += 1
    return x * m.calls


def counts_in_array(m, x):
    m.array += 1
    return x * float(m.array[0])


def counts_in_default(m, x, seen=[]):  # noqa: B006 (this is what is tested)
    seen.append(1)
    return x * len(seen)


def toggles(m, x):
    m.first = not m.first
    return x * 2 if m.first else x * 3


@pytest.mark.parametrize(
    ("step", "place"),
    [
        (counts, r"self\.n \(from 1 to 2\)"),
        (counts_unused, r"self\.n \(from 1 to 2\)"),
        (lists, r"self\.history\[1\]"),
        (chooses, r"self\.chosen"),
        (assigns, r"self\.mean"),
        (assigns_inside, r"self\.named\['h'\]"),
        (assigns_pair, r"self\.pair"),
        (writes, r"self\.mean"),
        (writes_number, r"self\.total"),
        (counts_globally, r"the global .*test_between_calls\.COUNT \(from 1 to 2\)"),
        (counts_in_settings, r"the global .*test_between_calls\.SETTINGS\.n \(from 1 to 2\)"),
        (counts_in_class, r"Base\.calls \(from 1 to 2\)"),
        (counts_in_array, r"self\.array"),
        (counts_in_default, r"seen, a default of .*|a default\[1\] of counts_in_default"),
        (toggles, r"self\.first \(from False to True\)"),
        (lambda m, x: m.count(x), r"n, which counting\.count closes over"),
        (lambda m, x: m.inner(x), r"self\.inner\.1\.k \(from 1 to 2\)"),
        (lambda m, x: m.hidden[0](x), r"self\.hidden\[0\]\.k \(from 1 to 2\)"),
        (lambda m, x: m.norm[0](x), r"self\.norm\[0\]\.running_mean"),
        (lambda m, x: x * next(m.counter), r"self\.counter"),
    ],
)
def test_state_that_would_freeze(step, place):
    module = Base(step)
    before = Snapshot(module, elements=100)
    with pytest.raises(NotImplementedError, match=f"^from_torch: .*{place}.*register_buffer"):
        st.from_torch(module, X)
    left = [x.place for x in (*before.changes(), *before.writes())]
    assert left in ([], ["self.counter"])  # which nobody can turn back


@pytest.mark.parametrize(
    ("draw", "place"),
    [
        (lambda m: random.random(), "Python's module random"),
        (lambda m: np.random.rand(), r"numpy\.random"),
        (lambda m: m.numbers.random(), r"self\.numbers"),
        (lambda m: m.python.random(), r"self\.python"),
    ],
)
def test_random_numbers_of_others(draw, place):
    with pytest.raises(NotImplementedError, match=f"draws random numbers from {place}"):
        st.from_torch(Base(lambda m, x: x * draw(m)), X)


def starts_by_data(m, x):
    if m.first:
        m.mean, m.first = x.mean(0), False
    return x - m.mean


def starts_otherwise(m, x):
    if m.first:
        m.first = False
        return x * 2
    return x * 3


def starts_by_chance(m, x):
    if m.table is None:
        m.table = torch.rand(4)
    return x * m.table


def makes_a_layer(m, x):
    if m.layer is None:
        m.layer = nn.Linear(4, 4)
    return m.layer(x)


def makes_a_buffer(m, x):
    if not hasattr(m, "late"):
        m.register_buffer("late", torch.full((4,), 2.0))
    return x * m.late


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (starts_by_data, r"sets self\.mean, self\.first in its first call"),
        (starts_otherwise, r"sets self\.first in its first call"),
        (starts_by_chance, r"sets self\.table in its first call"),
        (makes_a_layer, r"makes self\.layer when it is first called"),
        (makes_a_buffer, r"makes self\.late when it is first called"),
    ],
)
def test_first_calls(step, words):
    theirs = Base(step)
    with pytest.raises(NotImplementedError, match=words + ".* call it once before the import"):
        st.from_torch(theirs, X)
    assert theirs.first and theirs.table is None and not hasattr(theirs, "late")
    theirs(X)
    ours = st.from_torch(theirs, X)
    np.testing.assert_allclose(ours(2 * X.numpy()), theirs(2 * X).detach(), rtol=1e-5, atol=1e-6)


@functools.cache
def sines(n):
    return torch.sin(torch.arange(n) * 0.1)


def positions(m, x):
    n = x.shape[0]
    if m.table is None or m.table.shape[0] < n:
        m.table = torch.cos(torch.arange(n)[:, None] * torch.arange(4) * 0.1)
    return x * m.table[:n]


def triangles(m, x):
    n = x.shape[1]
    if n not in m.named:
        m.named[n] = torch.tril(torch.ones(n, n))
    return x @ m.named[n]


def leaves_behind(m, x):
    m.last = x * 2
    m.named["last"] = m.last.detach()
    return m.last * m.b


def warns_once(m, x):
    if m.first:
        m.first = False
    return x * m.b


def counts_down(m, x):
    m.n += 1
    y = x * m.n
    m.n -= 1
    return y


def hands_on(m, x):
    m.handed = x * 2
    y = m.handed + 1
    del m.handed
    return y


@pytest.mark.parametrize(
    "step",
    [
        positions,
        triangles,
        leaves_behind,
        warns_once,
        counts_down,
        hands_on,
        lambda m, x: x * sines(4) * m.b,
    ],
)
def test_memos_and_what_is_never_read(step):
    sines.cache_clear()
    theirs = Base(step)
    before = Snapshot(theirs)
    ours = st.from_torch(theirs, X, train=True)
    assert not list(before.changes())
    for _ in range(2):
        np.testing.assert_allclose(ours(X.numpy()), theirs(X).detach(), rtol=1e-5, atol=1e-6)
    again = st.from_torch(theirs, X)  # with what the calls left behind
    np.testing.assert_allclose(again(X.numpy()), theirs(X).detach(), rtol=1e-5, atol=1e-6)


def test_a_memo_of_the_examples_length():
    theirs = Base(positions)
    ours = st.from_torch(theirs, X)
    longer = torch.cat([X, 2 * X])
    np.testing.assert_allclose(ours(longer.numpy()), theirs(longer).detach(), rtol=1e-5)


def test_the_weights_that_pytorchs_hooks_compute():
    with pytest.warns(FutureWarning, match="deprecated"):
        theirs = nn.utils.weight_norm(nn.Linear(4, 4))
    ours = st.from_torch(theirs, X)
    np.testing.assert_allclose(ours(X.numpy()), theirs(X).detach(), rtol=1e-5, atol=1e-6)
    theirs(X).square().sum().backward()
    slope = st.grad(lambda m: (m(X.numpy()) ** 2).sum())(ours)
    np.testing.assert_allclose(slope.weight_g, theirs.weight_g.grad, rtol=1e-4)
    np.testing.assert_allclose(slope.weight_v, theirs.weight_v.grad, rtol=1e-3, atol=1e-5)
