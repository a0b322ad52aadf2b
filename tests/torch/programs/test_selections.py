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


def greatest(self, x, mask):
    y = self.a(x).relu() * 2
    y[mask] += x[mask]
    return y.masked_fill(~mask[:, None], -1e9).max(0)[0]


def put_columns(self, x, mask):
    y = x.T.clone()
    y[:, mask] = self.a(x[mask]).T
    y[1, mask] = 2.0
    return y


def of_edges(self, x, mask):
    edges = torch.stack([torch.arange(6), torch.arange(6).flip(0)])[:, : x.shape[0]] % x.shape[0]
    kept = edges[:, mask]
    loops = torch.arange(x.shape[0])
    kept = torch.cat([kept, torch.stack([loops, loops])], 1)
    degree = torch.zeros(x.shape[0], dtype=x.dtype)
    degree = degree.scatter_add(0, kept[1], torch.ones(kept.shape[1], dtype=x.dtype))
    norm = degree.rsqrt()[kept].prod(0)
    return torch.zeros_like(x).index_add(0, kept[1], self.a(x)[kept[0]] * norm[:, None])


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
    greatest,
    put_columns,
    differentiated,
]


@pytest.mark.parametrize("inner", INNER, ids=lambda f: f.__name__)
def test_beside_pytorch(inner):
    torch.manual_seed(0)
    check_module([Selects(inner) for _ in range(3)], (X, MASK), MORE)


class Experts(nn.Module):
    """A layer of experts as in Mixtral: each token goes to two of four."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 4, bias=False)
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 4)) for _ in range(4)]
        )

    def forward(self, x):
        tokens = x.reshape(-1, 4)
        weights, chosen = torch.topk(torch.softmax(self.gate(tokens), -1), 2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(tokens)
        mask = nn.functional.one_hot(chosen, 4).permute(2, 1, 0)
        for expert, of_expert in zip(self.experts, mask, strict=True):
            rank, token = torch.where(of_expert)
            out.index_add_(0, token, expert(tokens[token]) * weights[token, rank, None])
        return out.reshape(x.shape)


def test_experts():
    torch.manual_seed(0)
    x = torch.from_numpy(RNG.normal(size=(2, 3, 4)))
    more = torch.from_numpy(RNG.normal(size=(5, 3, 4)))
    check_module([Experts() for _ in range(3)], (x,), [(more,)])


def test_graphs():
    torch.manual_seed(0)
    check_module([Selects(of_edges) for _ in range(3)], (X, MASK), [(X, ~MASK)])


def test_nothing_is_selected():
    ours = st.from_torch(Selects(total), (X.float(), MASK))
    none = np.zeros(6, bool)
    assert float(ours(X.float().numpy(), none)) == 0
    assert float(st.jit(ours)(X.float().numpy(), none)) == 0
    slope = st.jit(st.grad(lambda x: ours(x, none)))(X.float().numpy())
    np.testing.assert_array_equal(slope, np.zeros((6, 4)))


def test_results_whose_size_depends_on_values():
    ours = st.from_torch(Selects(lambda self, x, mask: self.a(x)[mask]), (X.float(), MASK))
    assert ours(X.float().numpy(), MASK.numpy()).shape == (4, 4)
    with pytest.raises(st.errors.SizeError, match=r"depends on the values of a mask.*torch.where"):
        st.jit(ours)(X.float().numpy(), MASK.numpy())


def test_maxima_of_what_may_be_nothing():
    ours = st.from_torch(Selects(lambda self, x, mask: x[mask].max(0)[0]), (X.float(), MASK))
    x = X.float().numpy()
    np.testing.assert_array_equal(ours(x, MASK.numpy()), x[MASK.numpy()].max(0))
    with pytest.raises(st.errors.SizeError) as error:
        st.jit(ours)(x, MASK.numpy())
    assert "torch.where(mask, x, value)" in "".join(error.value.__notes__)


def nested(self, x, mask):
    y = self.a(x[mask])
    return y[y.sum(1) > 0].sum(0)


def nested_elements(self, x, mask):
    y = self.a(x[mask])
    return (y[y > 0] ** 2).sum()


def both(self, x, mask):
    y = self.a(x[mask])
    z = y[y.sum(1) > 0]
    return torch.cat([y, z]).sin().sum(0), (y @ z.T).sum()


def thrice(self, x, mask):
    y = self.a(x[mask])
    z = y[y[:, 0] > -1]
    w = z[z[:, 1] > -1.0]
    return w.sum(0) + z.mean()


def put_inside(self, x, mask):
    y = self.a(x[mask])
    inner = y.sum(1) > 0
    z = y.clone()
    z[inner] = y[inner] * 3
    out = torch.zeros_like(x)
    out[mask] = z
    return out


def edges_left(self, x, mask):
    n = x.shape[0]
    edges = torch.stack([torch.arange(n), torch.arange(n).flip(0) // 2])[:, mask]
    edges = edges[:, edges[0] != edges[1]]
    return torch.zeros_like(x).index_add(0, edges[1], self.a(x)[edges[0]])


def computed_twice(self, x, mask):
    logits, targets = self.a(x), x.argmax(1)
    return nn.functional.cross_entropy(logits[targets != 2], targets[targets != 2])


NESTED = [nested, nested_elements, both, thrice, put_inside, edges_left, computed_twice]


@pytest.mark.parametrize("inner", NESTED, ids=lambda f: f.__name__)
def test_masks_of_what_masks_select(inner):
    torch.manual_seed(0)
    check_module([Selects(inner) for _ in range(3)], (X, MASK), MORE)


def test_nested_masks_that_select_nothing():
    ours = st.from_torch(Selects(nested), (X.float(), MASK))
    x = X.float().numpy()
    for f in (ours, st.jit(ours)):
        np.testing.assert_array_equal(f(x, np.zeros(6, bool)), np.zeros(4))
