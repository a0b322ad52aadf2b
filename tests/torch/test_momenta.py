"""Batch normalization with ``momentum=None``: statistics that are plain means."""

import numpy as np
import pytest

import stretto as st
from stretto.ensemble import update_batch_norm

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)

from stretto.torch.momenta import counting  # noqa: E402


class Net(nn.Module):
    """Layers with and without a momentum, one of them called twice."""

    def __init__(self):
        super().__init__()
        self.plain = nn.BatchNorm2d(3, momentum=None)
        self.moving = nn.BatchNorm2d(3)
        self.flat = nn.BatchNorm1d(3, momentum=None, affine=False)

    def forward(self, x):
        x = self.moving(self.plain(x).relu())
        return self.flat(self.plain(x).mean((2, 3)))


def batches(n):
    torch.manual_seed(0)
    return [torch.randn(k + 3, 3, 4, 4) * (k + 1) for k in range(n)]


def test_statistics_and_values():
    theirs = Net()
    first, *data = batches(4)
    ours = st.from_torch(theirs, first, train=True).train()
    assert theirs.plain.momentum is None
    theirs.train()
    for x in data:
        out, after = st.nn.stateful_call(ours, x.numpy())
        compiled, ours = st.jit(st.nn.stateful_call)(ours, x.numpy())
        np.testing.assert_allclose(out, theirs(x).detach(), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(out, compiled, rtol=1e-3, atol=1e-4)
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[name], value, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(after.state_dict()[name], value, rtol=1e-4, atol=1e-5)
    found = ours.eval()(first.numpy())
    np.testing.assert_allclose(found, theirs.eval()(first).detach(), rtol=1e-3, atol=1e-4)


def test_members_and_files(tmp_path):
    members, (first, x) = [Net() for _ in range(3)], batches(2)
    ensemble = st.Ensemble.from_torch(members, first, train=True).train()
    for _ in range(2):
        out, ensemble = ensemble.stateful_call(x.numpy())
    for k, member in enumerate(members):
        member.train()(x)
        np.testing.assert_allclose(out[k], member(x).detach(), rtol=1e-3, atol=1e-4)
        var = ensemble[k].state_dict()["plain.running_var"]
        np.testing.assert_allclose(var, member.plain.running_var, rtol=1e-4)
    ours = st.from_torch(Net(), first, train=True)
    st.torch.save(tmp_path / "net.safetensors", ours)
    again = st.torch.load(tmp_path / "net.safetensors").train()
    _, after = st.nn.stateful_call(again, x.numpy())
    _, wanted = st.nn.stateful_call(ours.train(), x.numpy())
    np.testing.assert_array_equal(after.plain.running_var, wanted.plain.running_var)


def test_statistics_over_a_data_set():
    theirs, data = nn.Sequential(nn.BatchNorm1d(3, momentum=None)), batches(3)
    data = [x.mean((2, 3)) for x in data]
    ours = st.from_torch(theirs, data[0], train=True)
    updated = update_batch_norm(ours, [x.numpy() for x in data])
    theirs.train()
    for x in data:
        theirs(x)
    np.testing.assert_allclose(updated.state_dict()["0.running_var"], theirs[0].running_var, 1e-5)


def test_layers_come_back():
    class Breaks(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(3, momentum=None)

        def forward(self, x):
            return x if x.sum() > 0 else self.norm(x)

    module = Breaks()
    with pytest.raises(Exception, match="data-dependent"):
        st.from_torch(module, torch.ones(2, 3), train=True)
    assert module.norm.momentum is None
    with counting(module):
        assert np.isnan(module.norm.momentum)


def test_a_layer_that_does_not_count_is_refused():
    class Resets(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(3, momentum=None)

        def forward(self, x):
            out = self.norm(x)
            self.norm.num_batches_tracked.fill_(0)
            return out

    with pytest.raises(NotImplementedError, match=r"momentum=None, in norm .BatchNorm1d.*does not"):
        st.from_torch(Resets(), torch.ones(2, 3), train=True)
