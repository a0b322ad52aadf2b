"""Values and gradients of PyTorch modules beside those of what they become here, in float64."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)

X = np.random.default_rng(0).normal(size=(4, 3))


class Layer(nn.Module):
    """A linear layer and a buffer, for modules that differ in what they do with it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("mean", torch.ones(3))


def with_forward(forward):
    """A module of a ``Layer``'s parameters, in float64."""
    torch.manual_seed(0)
    return type("Module", (Layer,), {"forward": forward})().double().eval()


def _weights(shape):
    return 2 + np.cos(np.arange(int(np.prod(shape)), dtype=float)).reshape(shape)


def theirs(module, x=X):
    """PyTorch's results, and its gradients by the parameters and by ``x``."""
    x = torch.tensor(x, requires_grad=True)
    module.zero_grad()
    results = torch.utils._pytree.tree_leaves(module(x * 1))
    loss = sum([(y * torch.from_numpy(_weights(y.shape))).sum() for y in results])
    if loss.requires_grad:
        loss.backward()
    named = {"x": x, **dict(module.named_parameters())}
    of = {k: np.zeros(p.shape) if p.grad is None else p.grad.numpy() for k, p in named.items()}
    return [y.detach().numpy() for y in results], of


def _loss(module, x):
    return sum([(y * snp.asarray(_weights(y.shape))).sum() for y in st.tree.leaves(module(x))])


def slopes(module, x=X, transform=lambda f: f):
    """The gradients of an imported module by its parameters and by ``x``."""
    of, by_x = transform(st.grad(_loss, argnums=(0, 1)))(module, x)
    return {**of.state_dict(), "x": by_x}


def check(module, x=X, **options):
    """Import a module, compare it with PyTorch's, compiled and for more rows, and return it."""
    with st.config(enable_x64=True):
        ours = st.from_torch(module, torch.from_numpy(X), **options)
        for rows in (x, np.resize(x, (7, 3)) + 0.1):
            results, expected = theirs(module, rows)
            for a, b in zip(st.tree.leaves(ours(rows)), results, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
            found = slopes(ours, rows, st.jit if rows is x else lambda f: f)
            for name, value in expected.items():
                np.testing.assert_allclose(found[name], value, rtol=1e-11, err_msg=name)
    return ours
