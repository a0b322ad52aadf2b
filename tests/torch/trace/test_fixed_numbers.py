"""Numbers of Python that a module makes of its buffers and constants."""

import os
import tempfile

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)

import stretto as st  # noqa: E402
import stretto.numpy as snp  # noqa: E402
from tests.torch.beside import check_module  # noqa: E402

X = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 4)))


class Numbered(nn.Module):
    def __init__(self, inner, n=3):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.inner = inner
        self.register_buffer("n", torch.tensor(n))
        self.register_buffer("lengths", torch.tensor([1, n, 0, 2]))
        self.register_buffer("on", torch.tensor(True))
        self.register_buffer("scale", torch.tensor(0.5))
        self.sizes = torch.tensor([1, 2])

    def forward(self, *args):
        return self.inner(self, *args)


INNER = {
    "a slice": lambda self, x: self.a(x)[:, : int(self.n)],
    "a factor": lambda self, x: self.a(x) * self.scale.item(),
    "a loop": lambda self, x: sum(self.a(x) * k for k in range(self.n)),
    "a split": lambda self, x: self.a(x).split([*self.sizes.tolist(), 1], 1)[1],
    "a greatest length": lambda self, x: torch.zeros(int(self.lengths.max()), 4) + self.a(x[:1]),
    "a choice": lambda self, x: self.a(x) if self.on else x,
    "a computed choice": lambda self, x: self.a(x) if (self.lengths == 2).any() else x,
    "a view": lambda self, x: self.a(x).reshape(-1, int(self.n) - 1, 2),
    "a computed factor": lambda self, x: self.a(x) * float((self.scale**2).sum()),
    "repeats": lambda self, x: self.a(x).repeat_interleave(self.lengths, dim=1),
    "repeats made in forward": lambda self, x: self.a(x).repeat_interleave(
        torch.tensor([1, 2, 0, 3]), 1
    ),
    "indices of repeats": lambda self, x: self.a(x)[:, torch.repeat_interleave(self.sizes)],
}


@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
def test_beside_pytorch(inner):
    torch.manual_seed(0)
    check_module([Numbered(inner) for _ in range(3)], (X,), [(X[:2],), (torch.cat([X, X]),)])


def test_members_with_other_numbers_have_programs_of_their_own():
    torch.manual_seed(0)
    modules = [Numbered(INNER["a factor"], n) for n in (3, 3, 3)]
    modules[1].scale.fill_(2.0)
    x = X.float()
    ensemble = st.Ensemble.from_torch(modules, x)
    assert len(ensemble.groups) == 2
    for f in (ensemble, st.jit(ensemble)):
        for found, module in zip(f(x.numpy()), modules, strict=True):
            np.testing.assert_allclose(found, module(x).detach(), rtol=1e-5, atol=1e-6)


def test_other_values_are_refused_or_nan():
    ours = st.from_torch(Numbered(INNER["a slice"]), X.float())
    x = X.float().numpy()
    path = os.path.join(tempfile.mkdtemp(), "module.safetensors")
    st.torch.save(path, ours)
    for model in (ours, st.torch.load(path)):
        model.load_state_dict({**model.state_dict(), "n": snp.asarray(2)})
        with pytest.raises(ValueError, match=r"its buffer n had.*import the module anew"):
            model(x)
        assert np.isnan(st.jit(lambda model, x: model(x))(model, x)).all()


def test_what_forward_writes_to_is_no_number():
    def counts(self, x):
        y = x * int(self.n)
        self.n.add_(1)
        return y

    with pytest.raises(NotImplementedError, match=r"its buffer n .*and writes to it"):
        st.from_torch(Numbered(counts), X.float())

    def written(self, x):
        lengths = self.lengths.clone()
        lengths += x.sum().long()
        return x * int(lengths.sum())

    def drawn(self, x):
        return x * int(torch.bernoulli(self.scale))

    def trained(self, x):
        return x * int(self.a.bias.sum())

    for inner in (written, drawn, trained):
        with pytest.raises(Exception, match=r"data-dependent|cannot be compiled"):
            st.from_torch(Numbered(inner), X.float())


def test_repeats_with_a_total():
    def inner(self, x, repeats):
        return self.a(x).repeat_interleave(repeats, 0, output_size=6) * 2

    torch.manual_seed(0)
    repeats = torch.tensor([1, 0, 3, 2])
    others = [(X[:4], torch.tensor([0, 6, 0, 0])), (X[:3], torch.tensor([2, 2, 2]))]
    check_module([Numbered(inner) for _ in range(3)], (X[:4], repeats), others)
    ours = st.from_torch(Numbered(inner), (X[:4].float(), repeats))
    x, other = X[:4].float().numpy(), np.array([1, 1, 1, 1])
    with pytest.raises(ValueError, match="the repeats add up to 4, and output_size is 6"):
        ours(x, other)
    assert np.isnan(st.jit(ours)(x, other)).all()


def test_repeats_without_a_total():
    with pytest.raises(NotImplementedError, match="output_size="):
        st.from_torch(
            Numbered(lambda self, x, repeats: x.repeat_interleave(repeats, 0).sum(0)),
            (X.float(), torch.tensor([1, 0, 3, 2, 1])),
        )
