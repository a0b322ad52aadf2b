"""Masks that select, inside of ``forward``: experts, edges of graphs, means of valid elements."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)

import stretto as st  # noqa: E402
from tests.torch.beside import check_module  # noqa: E402

RNG = np.random.default_rng(0)
X = torch.from_numpy(RNG.normal(size=(6, 4)))
MASK = torch.tensor([True, False, True, True, False, True])
MORE = [
    (torch.cat([X, X + 1]), torch.cat([~MASK, MASK])),
    (X[:2], MASK[:2]),
    (X, torch.ones(6, dtype=torch.bool)),
]


class Selects(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.inner = inner

    def forward(self, *args):
        return self.inner(self, *args)


def mean(self, x, mask):
    return torch.tanh(self.a(x))[mask].mean(0)


def total(self, x, mask):
    return x[mask].pow(2).sum() + self.a(x[mask]).sin().sum()


def divided(self, x, mask):
    chosen = self.a(x[mask])
    return chosen.sum(0) / chosen.shape[0] + mask.sum()


def put_number(self, x, mask):
    y = self.a(x)
    y[mask] = 0.5
    return y * x


def put_rows(self, x, mask):
    y = x.clone()
    y[mask] = self.a(x[mask])
    return y * 2


def put_row(self, x, mask):
    y = x.clone()
    y[mask] = self.a.bias
    return y


def put_more(self, x, mask):
    y = self.a(x)
    y[mask] += x[mask] * 3
    return y


def added(self, x, mask):
    out = torch.zeros_like(x)
    where = torch.where(mask)[0]
    out.index_add_(0, where, self.a(x[where]) * 2)
    return out


def by_nonzero(self, x, mask):
    where = mask.nonzero().squeeze(1)
    return torch.zeros_like(x).index_copy(0, where, self.a(x[where]))


def scattered(self, x, mask):
    where = mask.nonzero(as_tuple=True)[0]
    index = where[:, None].expand(-1, 4)
    return torch.zeros_like(x).scatter_add(0, index, torch.relu(self.a(x))[where])


def elements(self, x, mask):
    y = self.a(x)
    return y[y > 0].sum() + y.masked_select(y < 0).square().mean()


def centred(self, x, mask):
    chosen = self.a(x[mask])
    return ((chosen - chosen.mean(0)) ** 2).sum(0)


def weighted(self, x, mask):
    chosen = self.a(x[mask])
    return (torch.softmax(chosen, 0) * chosen).sum(0)


def normed(self, x, mask):
    return torch.nn.functional.layer_norm(self.a(x[mask]), (4,)).abs().sum(0)


def joined(self, x, mask):
    both = torch.cat([x[mask], self.a(x)[~mask]])
    return both.sin().sum(0)


def appended(self, x, mask):
    return torch.cat([self.a(x[mask]), x]).cos().sum(0)


def attended(self, x, mask):
    keys = self.a(x[mask])
    return torch.softmax(x @ keys.T, -1) @ keys


def cross_entropy(self, x, mask):
    logits = self.a(x)[mask]
    return nn.functional.cross_entropy(logits, x[mask].argmax(-1))


def twice(self, x, mask):
    y = x.clone()
    y[mask] = self.a(x[mask])
    return y[y.sum(-1) > 0].sum(0) + y[~mask].sum(0)


def differentiated(self, x, mask):
    x.requires_grad_(True)
    e = torch.tanh(self.a(x))[mask].pow(2).sum()
    return torch.autograd.grad(e, x, create_graph=True)[0]


INNER = [
    mean,
    total,
    divided,
    put_number,
    put_rows,
    put_row,
    put_more,
    added,
    by_nonzero,
    scattered,
    elements,
    centred,
    weighted,
    normed,
    joined,
    appended,
    attended,
    cross_entropy,
    twice,
    differentiated,
]


@pytest.mark.parametrize("inner", INNER, ids=lambda f: f.__name__)
def test_beside_pytorch(inner):
    torch.manual_seed(0)
    check_module([Selects(inner) for _ in range(3)], (X, MASK), MORE)
