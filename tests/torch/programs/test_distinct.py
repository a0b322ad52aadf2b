"""``torch.unique`` and its relatives inside of ``forward``: groups, voxels, prototypes."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)

import stretto as st  # noqa: E402
from tests.torch.beside import check_module  # noqa: E402

RNG = np.random.default_rng(0)
X = torch.from_numpy(RNG.normal(size=(6, 4)))
IDS = torch.tensor([7, 2, 7, 7, 0, 2])
MORE = [
    (torch.cat([X, X + 1]), torch.cat([IDS, IDS * 2])),
    (X[:2], IDS[:2]),
    (X, torch.zeros(6, dtype=torch.int64)),
    (X, torch.arange(6)),
]


class Grouped(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.inner = inner

    def forward(self, *args):
        return self.inner(self, *args)


def pooled(self, x, ids):
    u, inverse = torch.unique(ids, return_inverse=True)
    out = torch.zeros(u.shape[0], 4, dtype=x.dtype).index_add_(0, inverse, self.a(x))
    return out[inverse], (out**2).sum(0)


def mean(self, x, ids):
    u, inverse, counts = torch.unique(ids, return_inverse=True, return_counts=True)
    h = self.a(x)
    out = torch.zeros(u.numel(), 4, dtype=x.dtype)
    out = out.scatter_add(0, inverse[:, None].expand_as(h), h) / counts[:, None]
    return out.sin().sum(0), out.mean(), counts.max(), u.sum()


def voxels(self, x, ids):
    places = torch.stack([ids % 3, ids // 3], 1)
    u, inverse = torch.unique(places, dim=0, return_inverse=True)
    h = self.a(x)
    out = torch.full((u.shape[0], 4), -torch.inf, dtype=x.dtype)
    out = out.scatter_reduce(0, inverse[:, None].expand_as(h), h, "amax")
    return out.pow(2).sum(), u.to(x.dtype).sum(0), out[inverse]


def taken(self, x, ids):
    u, inverse = x.detach().round().unique(return_inverse=True)
    return self.a(u[inverse])


def consecutive(self, x, ids):
    u, inverse, counts = torch.unique_consecutive(
        ids.sort()[0], return_inverse=True, return_counts=True
    )
    out = x.new_zeros(u.shape[0], 4).index_add(0, inverse, self.a(x))
    return out.cos().sum(0) / counts.sum(), out.T @ u.to(x.dtype)


def consecutive_slices(self, x, ids):
    u, counts = torch.unique_consecutive(torch.stack([ids, ids // 2]), return_counts=True, dim=1)
    return u.sum(1) + counts.sum(), self.a(x)


def extremes(self, x, ids):
    u = torch.unique(ids)
    return self.a(x).sum(0) * u.max(), u.min(), u.double().mean()


def number(self, x, ids):
    return self.a(x) * torch.unique(ids).numel()


def of_selected(self, x, ids):
    u, inverse = torch.unique(ids[ids > 0], return_inverse=True)
    out = torch.zeros(u.shape[0], 4, dtype=x.dtype).index_add(0, inverse, self.a(x)[ids > 0])
    return out.sin().sum(0)


def selected(self, x, ids):
    u = torch.unique(ids)
    return u[u != 0].sum() * self.a(x)


def twice(self, x, ids):
    inverse = torch.unique(ids, return_inverse=True)[1]
    u, counts = torch.unique(ids, return_counts=True)
    return self.a(x) / counts[inverse][:, None], (u * counts).sum()


def prototypes(self, x, ids):
    u = torch.unique(ids)
    members = (ids[None] == u[:, None]).to(x.dtype)
    means = members @ self.a(x) / members.sum(1, keepdim=True)
    return torch.softmax(-(torch.cdist(x, means) ** 2), 1).pow(2).sum(1)


INNER = [
    pooled,
    mean,
    voxels,
    taken,
    consecutive,
    consecutive_slices,
    extremes,
    number,
    of_selected,
    selected,
    twice,
    prototypes,
]


@pytest.mark.parametrize("inner", INNER, ids=lambda f: f.__name__)
def test_beside_pytorch(inner):
    torch.manual_seed(0)
    check_module([Grouped(inner) for _ in range(3)], (X, IDS), MORE)


def test_results_whose_size_depends_on_values():
    ours = st.from_torch(Grouped(lambda self, x, ids: torch.unique(ids)), (X.float(), IDS))
    np.testing.assert_array_equal(ours(X.float().numpy(), IDS.numpy()), [0, 2, 7])
    with pytest.raises(st.errors.SizeError, match=r"how many elements are distinct.*inverse"):
        st.jit(ours)(X.float().numpy(), IDS.numpy())


@pytest.mark.parametrize(
    "inner",
    [
        lambda self, x, ids: x * 2 if torch.unique(ids).numel() > 2 else x,
        lambda self, x, ids: sum(x * k for k in range(torch.unique(ids).numel())),
    ],
)
def test_numbers_of_distinct_elements_decide_nothing(inner):
    with pytest.raises(Exception, match="data-dependent") as error:
        st.from_torch(Grouped(inner), (X.float(), IDS))
    assert "the values of tensors" in "".join(error.value.__notes__)


def test_many_columns():
    x = torch.from_numpy(RNG.integers(0, 2, (50, 40)))
    wanted = torch.unique(x, dim=0, return_inverse=True)[1]
    inner = lambda self, x: torch.unique(x, dim=0, return_inverse=True)[1]
    ours = st.from_torch(Grouped(inner), (x,))
    for f in (ours, st.jit(ours)):
        np.testing.assert_array_equal(f(x.numpy()), wanted)


def test_nan_is_equal_to_nothing():
    x = torch.tensor([torch.nan, 1.0, torch.nan, 1.0])
    inner = lambda self, x: torch.unique(x, return_counts=True)[1].square().sum()
    ours = st.from_torch(Grouped(inner), (x,))
    assert int(st.jit(ours)(x.numpy())) == int(inner(None, x)) == 6


def test_the_first_of_equal_elements_has_the_slope():
    inner = lambda self, x: (torch.unique(x) * 2).sum()
    ours = st.from_torch(Grouped(inner), (torch.ones(4),))
    slope = st.jit(st.grad(ours))(np.float32([3, 1, 3, 1]))
    np.testing.assert_array_equal(slope, [2, 2, 0, 0])
