"""Bags of rows give what PyTorch gives."""

import numpy as np
import pytest

import stretto as st

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)

from tests.torch.beside import check_module  # noqa: E402


class Flat(nn.Module):
    """Bags that begin at offsets."""

    def __init__(self, **options):
        super().__init__()
        self.bag = nn.EmbeddingBag(10, 4, **options)

    def forward(self, indices, offsets, weights=None):
        return self.bag(indices, offsets, weights)


class Rows(nn.Module):
    """A bag a row."""

    def __init__(self, **options):
        super().__init__()
        self.bag = nn.EmbeddingBag(10, 4, **options)

    def forward(self, indices):
        return self.bag(indices)


INDICES = torch.tensor([1, 2, 2, 5, 4, 3, 2, 9])
OTHERS = [(torch.tensor([3, 2, 2]), torch.tensor([0, 0, 2, 3]))]


def members(kind, zeros=False, **options):
    torch.manual_seed(0)
    made = [kind(**options) for _ in range(2)]
    if zeros:  # all rows are equal, and the first of them has the slope
        nn.init.zeros_(made[0].bag.weight)
    return made


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
def test_offsets_and_rows(mode, padding):
    options = {"mode": mode, "padding_idx": padding}
    zeros = mode == "max"
    check_module(members(Flat, zeros, **options), (INDICES, torch.tensor([0, 4])), OTHERS)
    rows = torch.randint(0, 10, (3, 5)), torch.randint(0, 10, (7, 5))
    check_module(members(Rows, zeros, **options), rows[:1], [rows[1:]])


@pytest.mark.parametrize("last", [False, True])
def test_weights_of_samples(last):
    offsets = torch.tensor([0, 3, 8] if last else [0, 3])
    weights = torch.randn(8).double()
    check_module(members(Flat, mode="sum", include_last_offset=last), (INDICES, offsets, weights))


def test_float32():
    for mode in ("sum", "mean", "max"):
        for sparse in {False, mode != "max"}:
            module = Flat(mode=mode, sparse=sparse)
            ours = st.from_torch(module, (INDICES, torch.tensor([0, 4])))
            for args in [(INDICES, torch.tensor([0, 4])), *OTHERS]:
                found = st.jit(ours)(*[x.numpy() for x in args])
                np.testing.assert_allclose(found, module(*args).detach(), rtol=1e-5, atol=1e-6)


def test_a_recommender():
    class Recommender(nn.Module):
        """Dense features, bags of categories, and products of all pairs, as in DLRM."""

        def __init__(self):
            super().__init__()
            self.bags = nn.ModuleList([nn.EmbeddingBag(n, 4, mode="sum") for n in (10, 6)])
            self.bottom = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4), nn.ReLU())
            self.top = nn.Sequential(nn.Linear(7, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())

        def forward(self, dense, indices, offsets):
            x = self.bottom(dense)
            found = [bag(indices[k], offsets[k]) for k, bag in enumerate(self.bags)]
            rows = torch.stack([x, *found], 1)
            i, j = torch.tril_indices(3, 3, -1)
            pairs = torch.bmm(rows, rows.transpose(1, 2))[:, i, j]
            return self.top(torch.cat([x, pairs], 1))

    torch.manual_seed(0)
    args = (torch.randn(2, 3).double(), torch.randint(0, 6, (2, 5)), torch.tensor([[0, 2], [0, 4]]))
    check_module([Recommender() for _ in range(2)], args)


def test_frequencies_are_refused():
    module = Flat(mode="sum", scale_grad_by_freq=True)
    with pytest.raises(NotImplementedError, match="how often an index occurs"):
        st.from_torch(module, (INDICES, torch.tensor([0, 4])))(INDICES.numpy(), np.int32([0, 4]))
