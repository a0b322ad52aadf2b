"""What PyTorch modules do comes in right, or is refused in words, as the page says."""

import collections

import numpy as np
import pytest

import stretto as st

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)
from torch.nn.utils import parametrizations, rnn  # noqa: E402
from torch.utils._pytree import tree_map  # noqa: E402

from tests.torch.kinds import COMES_IN, REFUSED  # noqa: E402

BOUND = 1e-10


def made(code):
    """The module and its arguments, in float64."""
    torch.manual_seed(0)
    names = {
        "torch": torch,
        "nn": nn,
        "rnn": rnn,
        "parametrizations": parametrizations,
        "collections": collections,
        "numpy": np,
    }
    exec(code, names)
    args = names.get("args", (torch.randn(3, 4),))
    return names["module"].double(), tree_map(double, args)


def double(x):
    return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def arrays(args):
    return tree_map(lambda x: x.numpy() if isinstance(x, torch.Tensor) else x, args)


def floats(results):
    leaves = st.tree.leaves(results) if not isinstance(results, torch.Tensor) else [results]
    return [x for x in leaves if getattr(x, "dtype", None) in (torch.float64, np.float64)]


def projected(leaves):
    return sum([((k + 1) * x + x * x).sum() for k, x in enumerate(leaves)])


def theirs(module, args):
    """PyTorch's outputs, gradients and buffers."""
    module.zero_grad()
    results = module(*args)
    leaves = floats(tree_map(lambda x: x, results))
    projected(leaves).backward()
    zero = torch.zeros_like
    named = [(n, x) for n, x in module.named_parameters() if x.requires_grad]
    slopes = {n: (zero(x) if x.grad is None else x.grad).numpy().copy() for n, x in named}
    saved = module.state_dict()
    buffers = {n: x.numpy().copy() for n, x in module.named_buffers() if n in saved}
    return [x.detach().numpy() for x in leaves], slopes, buffers


def near(found, expected):
    assert found.shape == expected.shape
    assert np.abs(found - expected).max(initial=0) <= BOUND * (1 + np.abs(expected).max(initial=0))


def held(ours, module, args):
    """Values, gradients and buffers here are PyTorch's."""

    def loss(model):
        results, after = st.nn.stateful_call(model, *arrays(args))
        leaves = floats(results)
        return projected(leaves), (leaves, after)

    slopes, (leaves, after) = st.jit(st.grad(loss, has_aux=True))(ours)
    outputs, gradients, buffers = theirs(module, args)
    for found, expected in zip(leaves, outputs, strict=True):
        near(np.asarray(found), expected)
    found, state = slopes.state_dict(), after.state_dict()
    for name, expected in gradients.items():
        near(np.asarray(found[name]), expected)
    for name, expected in buffers.items():
        near(np.asarray(state[name]), expected)


@pytest.mark.parametrize("kind", COMES_IN, ids=[kind.what for kind in COMES_IN])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_comes_in(kind):
    with st.config(enable_x64=True):
        module, args = made(kind.code)
        if not kind.train:
            module.eval()
        ours = st.from_torch(module, args, train=kind.train)
        held(ours.train() if kind.train else ours, module, args)
        if kind.sizes and not kind.train:
            index = torch.tensor([2, 0, 1, 1, 0])
            turned = tree_map(lambda x: x[index], args)
            held(ours, module, turned)


@pytest.mark.parametrize("kind", REFUSED, ids=[kind.what for kind in REFUSED])
def test_is_refused(kind):
    with st.config(enable_x64=True):
        module, args = made(kind.code)
        module.eval()
        if kind.use:
            names = {"ours": st.from_torch(module, args), "numpy": np}
            with pytest.raises((TypeError, ValueError, RuntimeError)) as caught:
                eval(kind.use, names)
        else:
            with pytest.raises(Exception, match=r".") as caught:
                st.from_torch(module, args)
        notes = getattr(caught.value, "__notes__", [])
        assert kind.says in " ".join([str(caught.value), *notes])
