"""Hooks of tensors, and where gradients stop."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

torch = pytest.importorskip("torch")
from torch.autograd import Function  # noqa: E402 (only where PyTorch is)
from torch.utils.checkpoint import checkpoint  # noqa: E402

from stretto.torch.trace.derivative_marks import kept  # noqa: E402
from tests.torch.slopes import X, check, slopes, theirs, with_forward  # noqa: E402


def clipped(self, x):
    """Two hooks, of a tensor that was used before."""
    h = self.layer(x)
    y = h * x
    h.register_hook(lambda g: g.clamp(-1, 1))
    h.register_hook(lambda g: 3 * g)
    return y + 2 * h


def around_a_write(self, x):
    h = 1 * self.layer(x)
    h.register_hook(lambda g: 2 * g)
    h.mul_(x)
    h.register_hook(lambda g: g.add_(1))
    return 2 * h


def under_no_grad(self, x):
    h = self.layer(x)
    with torch.no_grad():
        h.register_hook(lambda g: g * h)
    return h * x, h


def of_a_parameter(self, x):
    self.layer.weight.register_hook(lambda g: 2 * g)
    y = self.layer(x)
    self.layer.weight._backward_hooks.clear()  # PyTorch would gather one at each call
    return y


@pytest.mark.parametrize("forward", [clipped, around_a_write, under_no_grad])
def test_hooks_of_tensors(forward):
    check(with_forward(forward))


def test_a_hook_of_an_argument():
    def forward(self, x):
        if x.requires_grad:
            x.register_hook(lambda g: 3 * g)
        return self.layer(x)

    module = with_forward(forward)
    x = torch.tensor(X, requires_grad=True)
    with st.config(enable_x64=True):
        ours = st.from_torch(module, x)
        slope = st.grad(lambda x: ours(x).sum())(X)
    module(x).sum().backward()
    np.testing.assert_allclose(slope, x.grad, rtol=1e-12)


# Where gradients stop


@torch.inference_mode()
def inferred(self, x):
    return self.layer(x)


def inferred_inside(self, x):
    with torch.inference_mode():
        h = self.layer(x)
    return h.clone() + x


def inferred_in_no_grad(self, x):
    with torch.no_grad():
        with torch.inference_mode():
            h = self.layer(x)
        k = self.layer(x)
        with torch.inference_mode(False):
            on = self.layer(x)
    return h.clone() + x * k + on * x


def decorated(self, x):
    @torch.inference_mode()
    def f(x):
        return self.layer(x)

    @torch.no_grad()
    def g(x):
        return self.layer(x)

    return f(x) + g(x) * x


def turned_on_and_off(self, x):
    with torch.no_grad():
        a = self.layer(x)
        with torch.enable_grad():
            b = 3 * self.layer(x)
            with torch.no_grad():
                b = b * self.layer(x).exp()
        c = 2 * self.layer(x)
    torch.set_grad_enabled(False)
    d = self.layer(x)
    torch.set_grad_enabled(True)
    return a + b + c * x + d * self.layer(x)


def detached(self, x):
    h, k = 1 * self.layer(x), self.layer(x)
    before = h + x
    h.detach_()
    return before + h * x + k.data * x + self.layer.weight.data.norm() * x


def frozen(self, x):
    self.layer.bias.requires_grad_(False)
    self.layer.weight.requires_grad = False
    y = self.layer(x) * x
    self.layer.requires_grad_(True)
    return y


def recomputed(self, x):
    h = self.layer(x)
    return checkpoint(lambda y: torch.tanh(self.layer(y)), h, use_reentrant=True) * x


STOPS = [inferred, inferred_inside, inferred_in_no_grad, decorated]
STOPS += [turned_on_and_off, detached, frozen, recomputed]


@pytest.mark.parametrize("forward", STOPS)
def test_where_gradients_stop(forward):
    if forward is inferred:
        module = with_forward(inferred)
        ours = st.from_torch(module.float(), torch.ones(4, 3))
        assert not np.any(st.grad(lambda m: m(snp.ones((4, 3))).sum())(ours).layer.weight)
    else:
        check(with_forward(forward))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_imported_where_gradients_are_off(mode):
    with st.config(enable_x64=True):
        module = with_forward(clipped)
        with mode():
            ours = st.from_torch(module, torch.from_numpy(X))
        found, (_, expected) = slopes(ours), theirs(module)
        np.testing.assert_allclose(found["layer.weight"], expected["layer.weight"], rtol=1e-12)


# Refusals


def late(self, x):
    h = self.layer(x)
    a = 2 * h
    h.register_hook(lambda g: g * a)
    return a * x


def hooking(register):
    def forward(self, x):
        h = self.layer(x)
        register(h)
        return h * x

    return forward


def packing(self, x):
    with torch.autograd.graph.saved_tensors_hooks(torch.round, lambda x: x):
        return self.layer(x).exp()


REFUSED = {
    "looking": (hooking(lambda h: h.register_hook(lambda g: None)), "gives no gradient: it only"),
    "gathering": (hooking(lambda h: h.register_hook([].append)), "list.append of a tensor"),
    "removed": (
        hooking(lambda h: h.register_hook(lambda g: 2 * g).remove()),
        "a hook of a tensor is removed in",
    ),
    "late": (late, "uses what was computed from that tensor before the hook was registered"),
    "failing": (
        hooking(lambda h: h.register_hook(lambda g: g.numpy())),
        "of a tensor, registered in .*, cannot be traced",
    ),
    "accumulated": (
        lambda self, x: self.layer.weight.register_post_accumulate_grad_hook(print) or x,
        "a hook is registered to run after gradients are accumulated",
    ),
    "node": (hooking(lambda h: h.grad_fn.register_hook(print)), "a hook of a grad_fn"),
    "before the node": (hooking(lambda h: h.grad_fn.register_prehook(print)), "of a grad_fn"),
    "packing": (packing, "saved_tensors_hooks.* are entered in"),
}


@pytest.mark.parametrize(("forward", "words"), REFUSED.values(), ids=REFUSED)
def test_refusals(forward, words):
    with pytest.raises(NotImplementedError, match=rf"(?s)from_torch: .*{words}"):
        st.from_torch(with_forward(forward), torch.from_numpy(X))


def test_pytorch_is_left_as_it_was():
    names = ["apply", "register_hook", "requires_grad", "data", "grad_fn", "requires_grad_"]
    before = [getattr(Function, names[0])] + [getattr(torch.Tensor, name) for name in names[1:]]
    with pytest.raises(ZeroDivisionError), kept():
        assert torch.Tensor.data is not before[3]
        raise ZeroDivisionError
    st.from_torch(with_forward(clipped).float(), torch.ones(4, 3))
    after = [getattr(Function, names[0])] + [getattr(torch.Tensor, name) for name in names[1:]]
    assert before == after and not torch.is_inference_mode_enabled()
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled()
