"""Constant masks select a number of elements that is known at the import."""

import numpy as np
import pytest

import stretto as st

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.columns = torch.tensor([True, False, True, True])
        self.pairs = torch.eye(3, dtype=torch.bool)

    def forward(self, x):
        h = self.layer(x)[:, self.columns]
        diagonal = (h.T @ h)[self.pairs]
        both = torch.cat([h, 2 * x[:, self.columns]], 1)
        return h, diagonal, both


def test_beside_pytorch():
    torch.manual_seed(0)
    with st.config(enable_x64=True):
        theirs = Masked().double()
        x = torch.randn(3, 4, dtype=torch.float64)
        ours = st.from_torch(theirs, x)
        for other in (x, x[[0, 1, 2, 0, 1]]):
            expected = theirs(other)
            for f in (ours, st.jit(ours)):
                for found, want in zip(f(other.numpy()), expected, strict=True):
                    np.testing.assert_allclose(found, want.detach(), rtol=1e-12)
        theirs(x)[1].sum().backward()
        slope = st.jit(st.grad(lambda model: model(x.numpy())[1].sum()))(ours)
        np.testing.assert_allclose(slope.layer.weight, theirs.layer.weight.grad, rtol=1e-12)
