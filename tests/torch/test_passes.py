"""What runs without gradients, set apart in one pass."""

import contextlib
import io

import numpy as np
import pytest

import stretto as st

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)

from stretto.torch import passes  # noqa: E402


class Spike(torch.autograd.Function):
    """A step, with the slope of a smooth one."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient / (1 + x.abs()) ** 2


class Steps(nn.Module):
    """Spikes in each step, and in one of them a part without gradients that holds another."""

    def __init__(self, steps):
        super().__init__()
        self.layer, self.steps = nn.Linear(3, 3), steps

    def forward(self, x):
        v = total = torch.zeros_like(x)
        for k in range(self.steps):
            v = 0.9 * v + self.layer(x)
            spike = Spike.apply(v - 0.1)
            with torch.no_grad():
                kept = v * 2
                with torch.enable_grad():
                    kept = kept + v
            v, total = v - spike, total + spike * (k + 1) + kept
        return total


def test_spikes_in_a_loop():
    torch.manual_seed(0)
    module, x = Steps(5).double(), torch.randn(4, 3, dtype=torch.float64)
    with st.config(enable_x64=True), contextlib.redirect_stderr(io.StringIO()):
        ours = st.from_torch(module, x)
        value, slope = st.value_and_grad(lambda m: (m(x.numpy()) ** 2).sum())(ours)
        wanted = module(x).square().sum()
        wanted.backward()
        np.testing.assert_allclose(value, wanted.item(), rtol=1e-12)
        np.testing.assert_allclose(slope.layer.weight, module.layer.weight.grad, rtol=1e-9)


def _written(steps, monkeypatch):
    """How many graphs have their code written when so many steps are imported."""
    count = [0]

    def write(graph):
        count[0] += 1
        return plain(graph)

    plain = passes._WRITE
    with monkeypatch.context() as patched:
        patched.setattr(passes, "_WRITE", write)
        st.from_torch(Steps(steps), torch.ones(2, 3))
    return count[0]


def test_the_work_grows_with_the_steps_and_not_with_their_square(monkeypatch):
    few, more, most = (_written(steps, monkeypatch) for steps in (2, 6, 10))
    assert few < more and most - more == more - few
