"""Derivatives and maps inside of ``forward``: forces, penalties, Jacobians, examples."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)

import stretto as st  # noqa: E402
from tests.torch.beside import check_module  # noqa: E402

X = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 3)))
MORE = [(torch.cat([X, X + 1]),), (X[:2],)]


class Energy(nn.Module):
    def __init__(self, forward=None):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 1)
        self.inner = forward

    def energy(self, x):
        return self.b(torch.tanh(self.a(x))).squeeze(-1)

    def forward(self, x):
        return self.inner(self, x)


def forces(self, x):
    x.requires_grad_(True)
    e = self.energy(x)
    return e, -torch.autograd.grad(e.sum(), x, create_graph=True)[0]


def forces_of_a_copy(self, x):
    x = x.detach().clone().requires_grad_(True)
    return -torch.autograd.grad([self.energy(x).sum()], [x], create_graph=True)[0]


def still_forces(self, x):
    with torch.enable_grad():
        x = x.requires_grad_()
        return -torch.autograd.grad(self.energy(x).sum(), x)[0] + self.energy(x)[:, None]


def of_distances(self, x):
    x.requires_grad_(True)
    d = (x[:, None] - x[None]).square().sum(-1).add(1).sqrt()
    e = self.energy(d @ x).sum()
    return torch.autograd.grad(e, x, torch.ones_like(e), create_graph=True)[0]


def penalty(self, x):
    y = (x * 0.3 + 0.1).requires_grad_(True) if not x.requires_grad else x * 0.3 + 0.1
    g = torch.autograd.grad(self.energy(y).sum(), y, create_graph=True, retain_graph=True)[0]
    return ((g.norm(dim=1) - 1) ** 2).mean()


def twice(self, x):
    x.requires_grad_(True)
    (g,) = torch.autograd.grad(self.energy(x).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad((g**2).sum(), x, create_graph=True)
    return h


def by_weights(self, x):
    e = self.energy(x).square().sum()
    g = torch.autograd.grad(e, list(self.parameters()), create_graph=True)
    fast = [p - 0.1 * d for p, d in zip(self.parameters(), g, strict=True)]
    return torch.tanh(x @ fast[0].T + fast[1]) @ fast[2].T + fast[3]


def unused(self, x):
    x.requires_grad_(True)
    z = (x * 2).requires_grad_(True)
    g = torch.autograd.grad(self.energy(x).sum(), [z, x], create_graph=True, allow_unused=True)
    assert g[0] is None
    return g[1]


def func_grad(self, x):
    return torch.func.grad(lambda x: self.energy(x).sum())(x)


def func_grad_and_value(self, x):
    g, (v, aux) = torch.func.grad_and_value(
        lambda s, x: ((s * self.energy(x)).sum(), x * 2), (0, 1), has_aux=True
    )(torch.ones(3, dtype=x.dtype)[0], x)
    return g[0] + v, g[1] + aux


def vmapped(self, x):
    return torch.func.vmap(lambda row: self.energy(row[None])[0] * row.sum())(x)


def vmapped_axes(self, x):
    return torch.func.vmap(
        lambda row, w: (row * w.sum(), row[:1]), in_dims=(1, None), out_dims=(1, 0)
    )(x, self.a.weight)


def vmapped_grad(self, x):
    return torch.func.vmap(torch.func.grad(lambda row: self.energy(row[None]).sum()))(x)


def vmapped_twice(self, x):
    return torch.func.vmap(lambda a: torch.func.vmap(lambda b: (a * b).sum().sin())(x))(x)


def func_vjp(self, x):
    out, pull = torch.func.vjp(lambda x: torch.tanh(self.a(x)), x)
    return pull(out)[0]


def func_jvp(self, x):
    return torch.func.jvp(lambda x: torch.tanh(self.a(x)), (x,), (x * 2,))


def jacrev(self, x):
    return torch.func.vmap(torch.func.jacrev(lambda row: torch.tanh(self.a(row))))(x)


def jacfwd(self, x):
    return torch.func.vmap(torch.func.jacfwd(lambda row: torch.tanh(self.a(row))))(x)


def hessian(self, x):
    return torch.func.vmap(torch.func.hessian(lambda row: self.energy(row[None])[0]))(x)


def old_jacobian(self, x):
    x.requires_grad_(True)
    return torch.autograd.functional.jacobian(
        lambda w: torch.tanh(self.a(x) + w), x.mean(0).sum() * torch.ones(4), create_graph=True
    ).sum((0, 1))


def laplacian(self, x):
    x.requires_grad_(True)
    (g,) = torch.autograd.grad(self.energy(x).sum(), x, create_graph=True)
    return sum(
        torch.autograd.grad(g[:, k].sum(), x, create_graph=True)[0][:, k] for k in range(3)
    )


def batched_gradients(self, x):
    x.requires_grad_(True)
    y = torch.tanh(self.a(x)).sum(0)
    return torch.autograd.grad(
        y, x, torch.eye(4, dtype=x.dtype), is_grads_batched=True, create_graph=True
    )[0]


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize(
    "inner",
    [
        forces,
        forces_of_a_copy,
        still_forces,
        of_distances,
        penalty,
        twice,
        by_weights,
        unused,
        func_grad,
        func_grad_and_value,
        vmapped,
        vmapped_axes,
        vmapped_grad,
        vmapped_twice,
        func_vjp,
        func_jvp,
        jacrev,
        jacfwd,
        hessian,
        old_jacobian,
        laplacian,
        batched_gradients,
    ],
    ids=lambda f: f.__name__,
)
def test_beside_pytorch(inner):
    torch.manual_seed(0)
    check_module([Energy(inner) for _ in range(3)], (X,), [] if inner is old_jacobian else MORE)
