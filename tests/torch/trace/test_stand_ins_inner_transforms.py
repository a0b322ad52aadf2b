"""Derivatives and maps inside of ``forward``: forces, penalties, Jacobians, examples."""

import contextlib
import io
import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)
from torch.func import linearize  # noqa: E402

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
    return sum(torch.autograd.grad(g[:, k].sum(), x, create_graph=True)[0][:, k] for k in range(3))


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


def refused(inner, *, train=False):
    with pytest.raises(Exception) as error, contextlib.redirect_stderr(io.StringIO()):
        st.from_torch(Energy(inner).double(), X, train=train)
    return error.value


def test_what_is_refused():
    """Before anything is computed, with the line and a way out."""

    def drops(self, x):
        y = x.clone().requires_grad_()
        e = self.energy(nn.functional.dropout(y, 0.5, True)).sum()
        return torch.autograd.grad(e, y)[0]

    def adds_up(self, x):
        y = x.clone().requires_grad_()
        self.energy(y).sum().backward()
        return y.grad

    def unused(self, x):
        y = x.clone().requires_grad_()
        return torch.autograd.grad(self.energy(x).sum(), y)[0]

    def no_scalar(self, x):
        x.requires_grad_()
        return torch.autograd.grad(self.energy(x), x)[0]

    def complex_(self, x):
        z = torch.complex(x, x).requires_grad_()
        return torch.autograd.grad(z.abs().sum(), z)[0]

    def draws(self, x):
        return torch.func.vmap(lambda row: row + torch.randn(3))(x)

    def draws_alike(self, x):
        return torch.func.vmap(lambda row: row + torch.randn(3), randomness="different")(x)

    words = {
        drops: r"native_dropout.*draws random numbers inside of what is differentiated.*evaluation",
        adds_up: r"backward\(\) inside of forward.*torch.autograd.grad\(output, inputs\)",
        unused: r"used.*allow_unused=True|does not require gradients",
        no_scalar: r"an output of shape \(.*,\) is no scalar|only for scalar outputs",
        complex_: r"derivatives by complex numbers.*real and imaginary parts",
        draws: r"aten.randn.default draws random numbers inside|in randomness error mode",
        draws_alike: r"would be the same for all: draw them of an example's form",
    }
    for inner, wanted in words.items():
        assert re.search(wanted, str(refused(inner))), (inner, str(refused(inner)))


def linearized(self, x):
    value, moved = torch.func.linearize(self.energy, x)
    return value, moved(x), moved(torch.ones_like(x))


def moved(self, x):
    value, first = torch.func.jvp(self.energy, (x,), (x,))
    return value, first, torch.func.jvp(self.energy, (x,), (torch.ones_like(x),))[1]


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr:UserWarning")
def test_linearize():
    """Its values are PyTorch's; its slopes are those of ``jvp``."""
    torch.manual_seed(0)
    theirs = Energy(linearized).double()
    with st.config(enable_x64=True), contextlib.redirect_stderr(io.StringIO()):
        ours = st.from_torch(theirs, X)
        theirs.inner = moved
        other = st.from_torch(theirs, X)
        theirs.inner = linearized
        total = lambda m, x: sum((y**2).sum() for y in m(x))
        for (x,) in [(X,), *MORE]:
            for f in (ours, st.jit(ours)):
                for found, wanted in zip(f(x.numpy()), theirs(x), strict=True):
                    np.testing.assert_allclose(found, wanted.detach(), rtol=1e-10, atol=1e-12)
            slopes = [st.jit(st.grad(total, 1))(m, x.numpy()) for m in (ours, other)]
            np.testing.assert_allclose(*slopes, rtol=1e-10, atol=1e-12)


def test_linearize_by_its_name():
    error = refused(lambda self, x: linearize(self.energy, x)[1](x))
    assert "call it as torch.func.linearize, or take torch.func.jvp" in str(error)


def test_examples_draw_numbers_of_their_own():
    def noisy(self, x):
        f = lambda row: row * 0 + torch.randn_like(row)
        return (
            torch.func.vmap(f, randomness="different")(x),
            torch.func.vmap(f, randomness="same")(x),
        )

    ours = st.from_torch(Energy(noisy), X.float())
    with st.nn.keys(st.random.key(0)):
        own, shared = ours(X.float().numpy())
    assert len(np.unique(own)) == 15
    assert (np.asarray(shared) == np.asarray(shared)[0]).all()


def test_forces_are_trained():
    """A step on energies and forces, as force fields are fitted."""
    torch.manual_seed(0)
    theirs = Energy(forces).double()
    target = torch.ones(5, 3).double()
    with st.config(enable_x64=True):
        ours = st.from_torch(theirs, X, train=True).train()
        loss = lambda m: ((m(X.numpy())[1] - target.numpy()) ** 2).mean()
        slope = st.jit(st.grad(loss))(ours)
    (theirs(X.clone())[1] - target).square().mean().backward()
    for name, parameter in theirs.named_parameters():
        wanted = np.zeros(parameter.shape) if parameter.grad is None else parameter.grad
        np.testing.assert_allclose(slope.state_dict()[name], wanted, rtol=1e-8, atol=1e-12)


def test_pytorch_is_as_it_was():
    """Exports leave PyTorch's own functions in place."""
    before = torch.func.grad(torch.sin)(torch.tensor(0.5))
    st.from_torch(Energy(func_grad), X.float())
    assert torch.func.grad(torch.sin)(torch.tensor(0.5)) == before
    x = torch.tensor(0.5, requires_grad=True)
    assert torch.autograd.grad(x.sin(), x)[0] == before
    assert torch.func.vmap(torch.sin)(torch.ones(3)).shape == (3,)
