"""Parameters that a PyTorch module reaches otherwise than by its attributes."""

import functools

import numpy as np
import pytest

import stretto as st

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 (only where PyTorch is)
from torch.nn import functional as F  # noqa: E402

from tests.torch.beside import check_module  # noqa: E402

X = torch.from_numpy(np.random.default_rng(0).normal(size=(6, 4)))


class Base(nn.Module):
    """Two parameters and a buffer, which subclasses hold elsewhere, too."""

    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.randn(4, 4)), nn.Parameter(torch.randn(4))
        self.register_buffer("mask", torch.tensor([1.0, 2.0, 3.0, 4.0]))
        self.hold()

    def hold(self):
        """Put them somewhere."""


class InDictionaries(Base):
    def hold(self):
        self.held = {"w": self.w, "inner": {"b": (self.b,)}}

    def forward(self, x):
        return x @ self.held["w"] + self.held["inner"]["b"][0]


class InLists(Base):
    def hold(self):
        self.held = [self.w, self.b, self.mask]

    def forward(self, x):
        w, b, mask = self.held
        return torch.stack([(x @ w) * mask, x + b]).sum(0)


class InFunctions(Base):
    def hold(self):
        w = self.w

        def by_default(x, w=w, *, b=self.b):
            return x @ w * b

        self.functions = [
            lambda x: x @ w,
            functools.partial(F.linear, weight=self.w, bias=self.b),
            by_default,
        ]

    def forward(self, x):
        return sum(f(x) for f in self.functions)


class Parts(Base):
    """Views of many kinds."""

    def hold(self):
        w = self.w
        self.views = [w.t(), w[1], w[:, 2], w.view(-1), w[1:3, ::2], w.diagonal(), w.T[1:]]
        self.more = [w[None].expand(3, 4, 4), w.unfold(0, 2, 1), w.reshape(2, 8), self.mask[:2]]

    def forward(self, x):
        t, row, column, flat, cut, diagonal, below = self.views
        expanded, unfolded, wide, mask = self.more
        out = x @ t + row * column + flat[3:7] + cut.sum() * diagonal + below.sum(0)
        return out + (expanded**2).mean() + (unfolded**3).mean() + wide.mean() + mask.sum()


class Detached(Base):
    def hold(self):
        self.held = [self.w.detach(), self.w.data[0]]

    def forward(self, x):
        return x @ self.held[0] * self.b + self.held[1] * self.w.sum()


class Data(Base):
    def hold(self):
        self.held = [self.b]

    def forward(self, x):
        return x * self.held[0].data * self.w.data[0] + self.b


class InModules(Base):
    def hold(self):
        self.listed = nn.ParameterList([torch.randn(4), torch.randn(4)])
        self.named = nn.ParameterDict({"a": torch.randn(4)})
        self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))
        self.again = [self.listed[1], self.named["a"], self.normed]

    def forward(self, x):
        listed, named, normed = self.again
        return normed(x * self.listed[0] * listed) + named * self.named["a"]


class InBranches(Base):
    def hold(self):
        self.held = [self.w]

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x @ self.held[0], lambda x: x * self.b, (x,))


class Tied(Base):
    def hold(self):
        self.layer = nn.Linear(4, 4)
        self.layer.weight = self.w
        self.held = [self.layer]

    def forward(self, x):
        return self.held[0](x) + x @ self.w


RIGHT = [InDictionaries, InLists, InFunctions, Parts, Detached, Data, InModules, InBranches, Tied]


def made(kind):
    """Three in float64 from the start: ``double()`` gives parameters other memory."""
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    try:
        return [kind() for _ in range(3)]
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("kind", RIGHT)
def test_values_and_slopes(kind):
    check_module(made(kind), (X,), [(X[:2],), (X[:1] - 1,)])


def test_members_of_an_ensemble_have_their_own():
    for kind in (InDictionaries, InFunctions, Parts):
        nets = [kind() for _ in range(3)]
        ensemble = st.Ensemble.from_torch(nets, X.float())
        assert len(ensemble.groups) == 1
        for row, net in zip(ensemble(X.float().numpy()), nets, strict=True):
            np.testing.assert_allclose(row, net(X.float()).detach(), rtol=1e-4, atol=1e-5)


def test_constants_of_members_differ():
    class Plain(Base):
        def hold(self):
            self.scale, self.held = torch.randn(4), {"a": [torch.randn(4)]}

        def forward(self, x):
            return x * self.scale * self.b + self.held["a"][0]

    nets = [Plain() for _ in range(3)]
    ensemble = st.Ensemble.from_torch(nets, X.float())
    for row, net in zip(ensemble(X.float().numpy()), nets, strict=True):
        np.testing.assert_allclose(row, net(X.float()).detach(), rtol=1e-5, atol=1e-6)


def test_training_reaches_them():
    theirs = Parts()
    ours = st.from_torch(theirs, X.float())
    other = Parts()
    ours.load_state_dict(st.torch.from_state_dict(other.state_dict()))
    np.testing.assert_allclose(ours(X.float().numpy()), other(X.float()).detach(), rtol=1e-4)


def test_buffers_that_are_written_to_elsewhere():
    class Counts(Base):
        def hold(self):
            self.held = {"mask": self.mask, "first": self.mask[:1]}

        def forward(self, x):
            self.held["mask"].add_(1.0)
            self.held["first"].mul_(2.0)
            return x * self.mask

    theirs = Counts()
    ours = st.from_torch(theirs, X.float())
    out, after = st.nn.stateful_call(ours, X.float().numpy())
    np.testing.assert_allclose(out, theirs(X.float()).detach(), rtol=1e-6)
    np.testing.assert_array_equal(after.mask, theirs.mask)


class Computed(Base):
    def hold(self):
        self.double_w = self.w * 2

    def forward(self, x):
        return x @ self.double_w


class Unregistered(Base):
    def hold(self):
        self.layers = [nn.Linear(4, 4)]

    def forward(self, x):
        return self.layers[0](x) * self.b


class OtherLeaf(Base):
    def hold(self):
        self.held = (nn.Parameter(self.w.data),)

    def forward(self, x):
        return x @ self.held[0]


OTHER = nn.Linear(4, 4)


class OfAnother(Base):
    def forward(self, x):
        return F.linear(x, OTHER.weight)


class Closes(Base):
    def hold(self):
        extra = nn.Parameter(torch.ones(4))
        self.f = lambda x: x * extra

    def forward(self, x):
        try:
            return self.f(x)
        except NotImplementedError:
            return x


class ComputedBuffer(Base):
    def hold(self):
        self.register_buffer("wt", self.w.t())

    def forward(self, x):
        return x @ self.wt


class Wider(Base):
    def hold(self):
        self.flat = torch.randn(8)
        self.w, self.b = nn.Parameter(self.flat[:4]), nn.Parameter(self.flat[4:])

    def forward(self, x):
        return x * self.w + self.b + self.flat[2:6]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Computed, r"self\.double_w requires gradients and is no parameter"),
        (Unregistered, r"self\.layers\[0\]\.weight requires .* nn\.ModuleList"),
        (OtherLeaf, r"self\.held\[0\] requires gradients"),
        (OfAnother, r"the global .*test_captured_tensors\.OTHER\.weight requires gradients"),
        (Closes, r"extra, which Closes\.hold\.<lambda> closes over requires gradients"),
        (ComputedBuffer, r"the buffer wt was computed from what requires gradients"),
        (Wider, r"self\.flat shares memory with w, b"),
    ],
)
def test_refusals(kind, words):
    with pytest.raises(NotImplementedError, match=words) as error:
        st.from_torch(kind(), X.float())
    assert str(error.value).startswith("from_torch: ")


def test_constants_are_let_in():
    class Frozen(Base):
        def hold(self):
            self.layers = [nn.Linear(4, 4).requires_grad_(False)]

        def forward(self, x):
            return self.layers[0](x) * self.b

    check_module(made(Frozen)[:1], (X,))


def test_programs_that_were_exported_elsewhere():
    exported = torch.export.export(InLists(), (X.float(),), strict=False)
    with pytest.raises(NotImplementedError, match="has w as a constant, too"):
        st.from_torch(exported)
