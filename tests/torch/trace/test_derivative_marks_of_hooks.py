"""Hooks that modules and their parameters hold when they are imported."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)
from torch.nn.modules import module as modules  # noqa: E402
from torch.nn.utils import parametrizations, prune  # noqa: E402

from tests.torch.slopes import X, check, slopes, theirs, with_forward  # noqa: E402


def plain():
    return with_forward(lambda self, x: torch.tanh(self.layer(x)) * x)


def doubled(part, inputs, output):
    return 2 * output


def doubled_before(part, inputs):
    return (2 * inputs[0],)


FORWARD = {
    "of the whole": lambda m: m.register_forward_hook(doubled),
    "of a part": lambda m: m.layer.register_forward_hook(doubled),
    "always": lambda m: m.register_forward_hook(doubled, always_call=True),
    "by name": lambda m: m.register_forward_hook(lambda m, x, k, y: 3 * y, with_kwargs=True),
    "before the whole": lambda m: m.register_forward_pre_hook(doubled_before),
    "before a part": lambda m: m.layer.register_forward_pre_hook(doubled_before),
    "weight_norm": lambda m: parametrizations.weight_norm(m.layer),
    "spectral_norm": lambda m: parametrizations.spectral_norm(m.layer),
    "older weight_norm": lambda m: nn.utils.weight_norm(m.layer),
    "older spectral_norm": lambda m: nn.utils.spectral_norm(m.layer),
    "pruned": lambda m: prune.l1_unstructured(m.layer, "weight", 0.3),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("register", FORWARD.values(), ids=FORWARD)
def test_hooks_on_the_way_forward(register):
    module = plain()
    register(module)
    check(module.double().eval())


def test_hooks_of_parameters():
    module = plain()
    mask = torch.tensor([[1.0, 0.0, 1.0]], dtype=torch.float64)
    module.layer.weight.register_hook(lambda g: (g * mask).clamp(-2, 2))
    module.layer.weight.register_hook(lambda g: 3 * g + 1)
    module.layer.bias.register_hook(lambda g: g * module.layer.bias)
    ours = check(module, train=True)
    with st.config(enable_x64=True):
        found, (_, expected) = slopes(ours.train()), theirs(module.train())
    np.testing.assert_allclose(found["layer.weight"], expected["layer.weight"], rtol=1e-11)
    assert not module._forward_pre_hooks


def test_members_with_other_hooks():
    kind = type(plain())
    members = [kind().double() for _ in range(4)]
    for k, member in enumerate(members[1:]):
        member.layer.weight.register_hook(lambda g, k=k: g * (1 + k % 2))
    with st.config(enable_x64=True):
        ensemble = st.Ensemble.from_torch(members, torch.from_numpy(X))
        slope = st.grad(lambda e: sum([y.sum() for y in st.tree.leaves(e(X))]))(ensemble)
        found = snp.concatenate([group["layer.weight"] for group in slope.state_dict()])
    for member in members:
        member(torch.from_numpy(X)).sum().backward()
    expected = [member.layer.weight.grad for member in members]
    for one in expected:
        assert any(np.allclose(one, other, rtol=1e-11) for other in found)
    assert [len(group["layer.bias"]) for group in slope.state_dict()] == [1, 2, 1]


BACKWARD = {
    "of the whole": (
        lambda m: m.register_full_backward_hook(lambda m, x, y: None),
        r"the backward hook .*<lambda> of the module \(Module\) cannot come in",
    ),
    "of a part": (
        lambda m: m.layer.register_full_backward_hook(lambda m, x, y: (2 * x[0],)),
        r"of layer \(Linear\) cannot come in",
    ),
    "before a part": (
        lambda m: m.layer.register_full_backward_pre_hook(lambda m, y: y),
        r"of layer \(Linear\) cannot come in",
    ),
    "older": (
        lambda m: m.layer.register_backward_hook(lambda m, x, y: None),
        r"of layer \(Linear\) cannot come in",
    ),
    "forward, all modules": (
        lambda m: modules.register_module_forward_hook(doubled),
        "the hook doubled of all modules cannot come in",
    ),
    "before all, forward": (
        lambda m: modules.register_module_forward_pre_hook(doubled_before),
        "the hook doubled_before of all modules cannot come in",
    ),
    "all modules": (
        lambda m: modules.register_module_full_backward_hook(lambda m, x, y: None),
        "of all modules cannot come in",
    ),
    "before all": (
        lambda m: modules.register_module_full_backward_pre_hook(lambda m, y: None),
        "of all modules cannot come in",
    ),
    "accumulated": (
        lambda m: m.layer.weight.register_post_accumulate_grad_hook(print),
        "the hook print of the parameter layer.weight runs after gradients are accumulated",
    ),
    "looking": (
        lambda m: m.layer.weight.register_hook(lambda g: None),
        "of the parameter layer.weight, gives no gradient",
    ),
    "failing": (
        lambda m: m.layer.weight.register_hook(lambda g: g.numpy()),
        "of the parameter layer.weight, cannot be traced",
    ),
    "buffer": (
        lambda m: m.mean.requires_grad_().register_hook(lambda g: 2 * g),
        "the buffer mean has a hook, .*<lambda>, which cannot come in",
    ),
}


@pytest.mark.parametrize(("register", "words"), BACKWARD.values(), ids=BACKWARD)
def test_refusals(register, words):
    module = plain()
    handle = register(module)
    try:
        with pytest.raises(NotImplementedError, match=f"from_torch: .*{words}"):
            st.from_torch(module, torch.from_numpy(X))
    finally:
        handle.remove()
    check(module)


def test_a_hook_of_a_tied_parameter():
    module = plain()
    module.other = nn.Linear(3, 3, dtype=torch.float64)
    module.other.weight = module.layer.weight
    module.layer.weight.register_hook(lambda g: g.clamp(-1, 1))
    with pytest.raises(NotImplementedError, match=r"layer.weight has a hook, and is other.weight"):
        st.from_torch(module, torch.from_numpy(X))
