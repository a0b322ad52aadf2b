"""Embeddings with a greatest norm: what they give, their slopes, and what they write."""

import copy
import re

import numpy as np
import pytest

import stretto as st
from stretto import nn, optim

torch = pytest.importorskip("torch")

ROWS = torch.tensor([[1, 2, 2], [3, 3, 0]])


class Net(torch.nn.Module):
    """A table, and a layer or the table itself behind it."""

    def __init__(self, tied=False, trained=True, **how):
        super().__init__()
        self.table = torch.nn.Embedding(7, 3, max_norm=1.0, **how)
        self.table.weight.requires_grad_(trained)
        self.layer = torch.nn.Linear(3, 2)
        self.tied = tied

    def forward(self, i):
        h = self.table(i)
        return (h @ self.table.weight.T if self.tied else self.layer(h)).mean(1)


def nets(n=1, **how):
    torch.manual_seed(0)
    return [Net(**how).double() for _ in range(n)]


HOW = [
    {},
    {"tied": True},
    {"trained": False},
    {"norm_type": 1.0},
    {"scale_grad_by_freq": True},
    {"padding_idx": 2},
]


@pytest.mark.parametrize("how", HOW, ids=str)
def test_training_is_pytorchs(how):
    (theirs,) = nets(**how)
    with st.config(enable_x64=True):
        model = st.from_torch(copy.deepcopy(theirs), ROWS, train=True).train()
        opt, optimizer = (
            optim.sgd(0.5),
            torch.optim.SGD([p for p in theirs.parameters() if p.requires_grad], 0.5),
        )

        @st.jit
        def step(model, i):
            def loss(model):
                out, after = nn.stateful_call(model, i)
                return (out**2).sum(), after

            (value, after), slopes = st.value_and_grad(loss, has_aux=True)(model)
            updates, _ = opt.update(slopes, opt.init(model), model)
            return optim.apply_updates(after, updates), value

        for t in range(3):
            i = (ROWS + t) % 7
            optimizer.zero_grad()
            expected = theirs(i).square().sum()
            expected.backward()
            optimizer.step()
            model, value = step(model, i.numpy())
            np.testing.assert_allclose(value, expected.detach(), rtol=1e-9)
            for name, array in theirs.state_dict().items():
                np.testing.assert_allclose(model.state_dict()[name], array, rtol=1e-9, atol=1e-12)


def test_evaluation_keeps_the_table():
    (theirs,) = nets()
    with st.config(enable_x64=True):
        ours = st.from_torch(copy.deepcopy(theirs), ROWS)
        before = theirs.table.weight.detach().clone()
        out = st.jit(ours)(ROWS.numpy())
        np.testing.assert_allclose(out, theirs(ROWS).detach(), rtol=1e-9)
        np.testing.assert_array_equal(ours.table.weight, before)
        other = (ROWS + 2) % 7
        np.testing.assert_allclose(ours(other.numpy()), theirs(other).detach(), rtol=1e-9)


def test_a_table_that_is_read_elsewhere_is_state():
    (theirs,) = nets(tied=True)
    with st.config(enable_x64=True):
        ours = st.from_torch(copy.deepcopy(theirs), ROWS)
        with pytest.raises(RuntimeError, match=re.escape("weight would be updated inside a")):
            st.jit(lambda m, i: m(i))(ours, ROWS.numpy())
        out, after = nn.stateful_call(ours, ROWS.numpy())
        np.testing.assert_allclose(out, theirs(ROWS).detach(), rtol=1e-9)
        np.testing.assert_allclose(after.table.weight, theirs.table.weight.detach(), rtol=1e-9)


def test_ensembles():
    several = nets(3)
    with st.config(enable_x64=True):
        ensemble = st.Ensemble.from_torch(copy.deepcopy(several), ROWS, train=True)
        expected = np.stack([net(ROWS).detach() for net in several])
        np.testing.assert_allclose(ensemble(ROWS.numpy()), expected, rtol=1e-9)
        _, after = ensemble.train().stateful_call(ROWS.numpy())
        for net, member in zip(several, after, strict=True):
            np.testing.assert_allclose(member.table.weight, net.table.weight.detach(), rtol=1e-9)


def test_bags():
    bag = torch.nn.EmbeddingBag(7, 3, max_norm=1.0, mode="mean").double()
    with st.config(enable_x64=True):
        ours = st.from_torch(copy.deepcopy(bag), ROWS)
        np.testing.assert_allclose(st.jit(ours)(ROWS.numpy()), bag(ROWS).detach(), rtol=1e-9)
