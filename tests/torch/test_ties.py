"""Tensors under several names: one array, written once."""

import copy

import numpy as np
import pytest

import stretto as st

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)

from stretto.torch.ties import identity, merge_inputs, sharing  # noqa: E402


class Shared(nn.Module):
    """One layer of batch normalization under two names."""

    def __init__(self):
        super().__init__()
        self.first = nn.BatchNorm1d(4)
        self.linear = nn.Linear(4, 4)
        self.second = self.first

    def forward(self, x):
        return self.second(self.linear(self.first(x)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.linear(x))


class Siamese(nn.Module):
    """One network for two arguments, in a list and a dictionary as well."""

    def __init__(self):
        super().__init__()
        self.left = Block()
        self.right = self.left
        self.all = nn.ModuleList([self.left, nn.ModuleDict({"x": self.right})])

    def forward(self, x, y):
        return self.left(x) - self.right(y) + self.all[1]["x"](x + y)


def check_training(module, examples, steps=3):
    """Train mode: results and statistics of PyTorch's, call after call."""
    theirs = copy.deepcopy(module).train()
    ours = st.from_torch(module, examples, train=True).train()
    call = st.jit(st.nn.stateful_call)
    for k in range(steps):
        args = [x * (k + 1) + k for x in examples]
        out, ours = call(ours, *[x.numpy() for x in args])
        np.testing.assert_allclose(out, theirs(*args).detach(), rtol=2e-4, atol=2e-5)
    found, wanted = ours.state_dict(), theirs.state_dict()
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5)
    return ours


def test_one_layer_under_two_names():
    torch.manual_seed(0)
    ours = check_training(Shared(), (torch.randn(5, 4),))
    assert dict(ours.ties)["second.running_mean"] == "first.running_mean"
    assert "second.running_mean" not in dict(ours.named_buffers())
    assert int(ours.first.num_batches_tracked) == 6  # two a call


def test_one_network_for_two_arguments():
    torch.manual_seed(0)
    x, y = torch.randn(5, 4), torch.randn(5, 4)
    check_training(Siamese(), (x, y))
    check_training(Siamese(), (x, x))


def test_ensembles_and_files(tmp_path):
    torch.manual_seed(0)
    members = [Shared() for _ in range(3)]
    ensemble = st.Ensemble.from_torch(members, torch.randn(5, 4), train=True)
    x = np.float32(np.random.default_rng(0).normal(size=(6, 4)))
    out, after = ensemble.train().stateful_call(x)
    for k, member in enumerate(members):
        want = member.train()(torch.from_numpy(x)).detach()
        np.testing.assert_allclose(out[k], want, rtol=2e-4, atol=2e-5)
        statistics = after[k].state_dict()["second.running_var"]
        np.testing.assert_allclose(statistics, member.second.running_var, rtol=1e-4, atol=1e-5)
    ours = st.from_torch(members[0], torch.randn(5, 4))
    st.torch.save(tmp_path / "net.safetensors", ours)
    again = st.torch.load(tmp_path / "net.safetensors")
    np.testing.assert_array_equal(again(x), ours(x))
    assert again.load_state_dict(ours.state_dict()).missing_keys == []


def test_exported_programs():
    program = torch.export.export(Shared().train(), (torch.randn(5, 4),), strict=False)
    ours = st.from_torch(program)
    assert len([x for x in ours.evaluation_program.graph.inputs if x.kind == "buffer"]) == 3


def test_a_buffer_under_two_names():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(4))
            self.register_buffer("same", self.count)

        def forward(self, x):
            self.count.add_(1)
            return x * self.same

    ours = check_training(Twice(), (torch.ones(3, 4),))
    assert ours.ties == (("same", "count"),)


@pytest.mark.parametrize("whole", [True, False])
def test_what_shares_memory_otherwise_is_named(whole):
    class Shares(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(4))
            self.register_buffer("r", self.w.data if whole else torch.zeros(5))
            self.register_buffer("v", torch.zeros(4) if whole else self.r[:4])

        def forward(self, x):
            self.r.add_(1)
            return x * self.w * self.v

    with pytest.raises(
        NotImplementedError, match=r"shares its memory .*\((w and r|r and v)\).*keep"
    ):
        st.from_torch(Shares(), torch.ones(3, 4))


def test_identities():
    x = torch.ones(4)
    assert identity(x) == identity(x.detach()) == identity(x.view(4))
    assert len({identity(y) for y in (x, x[:2], x.view(2, 2), x.clone())}) == 4
    assert identity(torch.ones(0)) != identity(torch.ones(0))
    assert list(sharing({"x": x, "again": x, "part": x[1:], "other": x.clone()})) == [("x", "part")]


def test_programs_without_ties_stay():
    program = torch.export.export(nn.Linear(4, 2), (torch.ones(3, 4),), strict=False)
    before = str(program.graph), program.graph_signature
    merge_inputs(program)
    assert (str(program.graph), program.graph_signature) == before
