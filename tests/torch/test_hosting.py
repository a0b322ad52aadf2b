"""Modules that PyTorch trains and that are computed here: values, gradients, loops, refusals."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)


def network(key=None):
    """A network with everything that has a mode."""
    keys = st.random.split(st.random.key(0) if key is None else key, 2)
    return st.nn.Sequential(
        st.nn.Linear(3, 16, key=keys[0]),
        st.nn.BatchNorm1d(16),
        st.nn.ReLU(),
        st.nn.Dropout(0.5),
        st.nn.Linear(16, 2, key=keys[1]),
    )


class Theirs(nn.Module):
    """A module of PyTorch, without what rounds differently in each library."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4 * 36, 2)

    def forward(self, x):
        return self.head(torch.tanh(self.norm(self.conv(x))).flatten(1))


def test_there_and_back_in_values_gradients_and_ten_steps():
    torch.manual_seed(0)
    theirs, x = Theirs().double(), torch.randn(6, 3, 8, 8, dtype=torch.float64)
    with st.config(enable_x64=True):
        ours = st.to_torch(st.from_torch(theirs, x, train=True)).train()
        assert set(ours.state_dict()) == set(theirs.state_dict())
        optimizers = [torch.optim.AdamW(m.parameters(), 1e-2) for m in (theirs, ours)]
        for _ in range(10):
            outs = []
            for module, optimizer in zip((theirs, ours), optimizers, strict=True):
                optimizer.zero_grad()
                outs.append(module(x))
                outs[-1].square().mean().backward()
                optimizer.step()
            torch.testing.assert_close(*outs, rtol=1e-9, atol=1e-12)
            for name, parameter in theirs.named_parameters():
                slope = ours.get_parameter(name).grad
                torch.testing.assert_close(slope, parameter.grad, rtol=1e-8, atol=1e-12)
        for name, tensor in theirs.state_dict().items():
            torch.testing.assert_close(ours.state_dict()[name], tensor, rtol=1e-8, atol=1e-12)
        torch.testing.assert_close(ours.eval()(x), theirs.eval()(x), rtol=1e-8, atol=1e-12)
        theirs.load_state_dict(ours.state_dict())


def test_functions_of_trees():
    @st.to_torch
    def f(pair, *, scale, flag=False):
        x, y = pair
        return {"out": snp.sin(x) @ y * scale["by"], "best": snp.argmax(x, -1), "flag": None}

    x = torch.randn(4, 3, requires_grad=True)
    y = torch.randn(3, 2, requires_grad=True)
    out = f((x, y), scale={"by": torch.tensor(2.0)}, flag=True)
    assert out["flag"] is None and out["best"].equal(x.argmax(-1).int())
    assert out["out"].requires_grad and not out["best"].requires_grad
    theirs = x.sin() @ y * 2
    torch.testing.assert_close(out["out"], theirs)
    for slope, expected in zip(
        torch.autograd.grad(out["out"].square().sum(), [x, y]),
        torch.autograd.grad(theirs.square().sum(), [x, y]),
        strict=True,
    ):
        torch.testing.assert_close(slope, expected)


def test_one_of_several_results_and_of_several_arguments():
    f = st.to_torch(lambda x, y, n: (x * y, x + n, y**2))
    x, y = torch.ones(3, requires_grad=True), torch.full((3,), 2.0, requires_grad=True)
    _, total, squares = f(x, y, torch.arange(3))
    assert torch.autograd.grad(total.sum(), x, retain_graph=True)[0].tolist() == [1, 1, 1]
    assert torch.autograd.grad(squares.sum(), y)[0].tolist() == [4, 4, 4]
    frozen, _, _ = f(x, y.detach(), torch.arange(3))
    frozen.sum().backward()
    assert x.grad.tolist() == [2, 2, 2] and y.grad is None


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_by_differences(dtype):
    with st.config(enable_x64=True):
        f = st.to_torch(lambda x, w: (snp.tanh(x @ w), snp.exp(x[0] * w[:, 0])))
        x, w = (
            torch.randn(shape, dtype=getattr(torch, dtype), requires_grad=True)
            for shape in ((3, 4), (4, 2))
        )
        assert torch.autograd.gradcheck(f, (x, w))
        assert torch.autograd.gradgradcheck(f, (x, w))


def test_second_derivatives_of_a_network():
    hosted, x = st.to_torch(network().eval()), torch.randn(4, 3, requires_grad=True)
    plain = nn.Sequential(
        nn.Linear(3, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(), nn.Linear(16, 2)
    )
    plain.load_state_dict(hosted.state_dict())
    penalties = []
    for module in (hosted, plain.eval()):
        (slope,) = torch.autograd.grad((module(x) ** 2).sum(), x, create_graph=True)
        penalties.append(torch.autograd.grad(slope.square().sum(), [*module.parameters()]))
    for ours, theirs in zip(*penalties, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_frozen_weights_and_those_of_other_layers():
    hosted = st.to_torch(network()).eval()
    hosted.get_parameter("0.weight").requires_grad_(False)
    whole = nn.Sequential(nn.Linear(5, 3), hosted, nn.Softplus())
    whole(torch.randn(4, 5)).sum().backward()
    assert hosted.get_parameter("0.weight").grad is None
    slopes = [p.grad for n, p in whole.named_parameters() if n != "1.0.weight"]
    assert len(slopes) == 7 and all(g.abs().sum() > 0 for g in slopes)


def test_half_precision_and_other_dtypes_of_weights():
    hosted = st.to_torch(st.nn.Linear(3, 2)).bfloat16()
    out = hosted(torch.ones(4, 3, dtype=torch.bfloat16))
    out.sum().backward()
    assert out.dtype == hosted.weight.grad.dtype == torch.bfloat16
    assert hosted.weight.grad.eq(4).all()


def test_an_ensemble_in_a_loop_of_pytorchs():
    torch.manual_seed(0)
    ensemble = st.Ensemble.init(network, st.random.key(0), 4)
    hosted = st.to_torch(ensemble)
    x = torch.randn(256, 3)
    y = torch.stack([x.sum(1), x[:, 0] * x[:, 1]], 1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 64, shuffle=True)
    optimizer = torch.optim.Adam(hosted.parameters(), 1e-2)

    def loss():
        with torch.no_grad():
            return float((hosted.eval()(x) - y).square().mean())

    before = loss()
    for _ in range(10):
        hosted.train()
        for inputs, targets in loader:
            optimizer.zero_grad()
            (hosted(inputs) - targets).square().mean().backward()
            optimizer.step()
    assert loss() < before / 2
    assert hosted.get_buffer("1.num_batches_tracked").tolist() == [40] * 4
    (names,) = ensemble.state_dict()
    trained = ensemble.replace([{n: snp.from_dlpack(hosted.state_dict()[n]) for n in names}]).eval()
    np.testing.assert_allclose(trained(x.numpy()), hosted(x).detach(), rtol=1e-5, atol=1e-5)
    alone = st.to_torch(trained[2])
    torch.testing.assert_close(alone(x), hosted(x)[2])
    each = hosted.each(x.reshape(4, 64, 3))
    torch.testing.assert_close(each[1], hosted(x[64:128])[1])
    assert hosted.train().each(x.reshape(4, 64, 3)).shape == (4, 64, 2)
    assert hosted.get_buffer("1.num_batches_tracked").tolist() == [41] * 4


def test_gradients_of_an_ensemble_are_those_of_its_members():
    ensemble = st.Ensemble.init(network, st.random.key(0), 3).eval()
    hosted, x = st.to_torch(ensemble), torch.randn(5, 3)
    hosted(x).square().sum().backward()
    for i in range(3):
        member = st.to_torch(ensemble[i])
        member(x).square().sum().backward()
        for name, parameter in member.named_parameters():
            torch.testing.assert_close(
                hosted.get_parameter(name).grad[i], parameter.grad, rtol=1e-4, atol=1e-5
            )


def test_random_numbers_are_pytorchs_to_seed():
    hosted, x = st.to_torch(network()), torch.randn(4, 3)
    torch.manual_seed(3)
    first, second = hosted(x), hosted(x)
    torch.manual_seed(3)
    assert hosted(x).equal(first) and not second.equal(first)
    state = torch.get_rng_state()
    hosted.eval()(x)
    assert torch.get_rng_state().equal(state), "nothing is drawn where nothing is random"


def test_the_backward_pass_has_the_numbers_of_the_forward_pass():
    drop, x = st.to_torch(st.nn.Dropout(0.5)), torch.ones(100, requires_grad=True)
    out = drop(x)
    assert torch.autograd.grad(out.sum(), x)[0].equal(out)


def test_buffers_are_updated_where_they_are():
    hosted, x = st.to_torch(network()), torch.randn(8, 3)
    buffer = hosted.get_buffer("1.running_mean")
    out = hosted(x)
    assert hosted.get_buffer("1.running_mean") is buffer and not buffer.eq(0).any()
    out.sum().backward()  # though they were read before
    with torch.no_grad():
        hosted(x)
    assert int(hosted.get_buffer("1.num_batches_tracked")) == 2


def test_copies_and_files():
    torch.manual_seed(0)
    hosted, x = st.to_torch(network()).eval(), torch.randn(4, 3)
    for other in (copy.deepcopy(hosted), pickle.loads(pickle.dumps(hosted))):
        assert other(x).equal(hosted(x))
        with torch.no_grad():
            other.get_parameter("0.weight").zero_()
        assert not other(x).equal(hosted(x))
        other.load_state_dict(hosted.state_dict())
        assert other(x).equal(hosted(x))


def test_results_are_pytorchs_to_write():
    weights = st.jit(lambda x: x + 1)(snp.ones((300, 300)))
    f = st.to_torch(lambda x: (weights, x, x + 1))
    for settings in ({}, {"disable_jit": True}):
        x = torch.ones(300, 300)
        with st.config(**settings):
            for result in f(x):
                result.add_(10)
        assert x.eq(1).all() and bool((weights == 2).all())


def test_what_was_written_to_before_the_backward_pass_is_found():
    hosted, x = st.to_torch(st.nn.Linear(3, 2)), torch.randn(4, 3)
    out = hosted(x).square().sum()
    with torch.no_grad():
        hosted.weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_graphs_are_freed_as_pytorchs():
    hosted, x = st.to_torch(st.nn.Linear(3, 2)), torch.randn(4, 3, requires_grad=True)
    loss = hosted(x).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        loss.backward()
    out = hosted(x)
    with torch.no_grad():
        assert hosted(x).grad_fn is None
    seen = weakref.ref(out)
    del out
    gc.collect()
    assert seen() is None


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # PyTorch's own use of it
def test_torch_func_and_checkpoint():
    hosted, x = st.to_torch(network()), torch.randn(4, 3, requires_grad=True)
    torch.manual_seed(0)
    plain = torch.autograd.grad(hosted(x).square().sum(), x)[0]
    torch.manual_seed(0)
    again = torch.utils.checkpoint.checkpoint(hosted, x, use_reentrant=False)
    assert torch.autograd.grad(again.square().sum(), x)[0].equal(plain)
    hosted.eval()
    names = dict(hosted.named_parameters())
    slopes = torch.func.grad(lambda p: torch.func.functional_call(hosted, p, (x,)).square().sum())(
        names
    )
    expected = torch.autograd.grad(hosted(x).square().sum(), [*names.values()])
    for slope, theirs in zip(slopes.values(), expected, strict=True):
        torch.testing.assert_close(slope, theirs)
    with pytest.raises(NotImplementedError, match=r"vmap does not reach.*stretto.vmap"):
        torch.func.vmap(hosted)(x)
    with pytest.raises(NotImplementedError, match=r"forward-mode.*stretto.jvp"):
        torch.func.jvp(hosted, (x,), (x,))


def test_compiled_once_for_each_signature():
    traces = []

    def f(x, power):
        traces.append((x.shape, power))
        return x**power

    hosted = st.to_torch(f)
    for n, power in ((3, 2), (3, 2), (4, 2), (3, 3), (3, 2)):
        x = torch.full((n,), 2.0)
        assert hosted(x, power).tolist() == [2.0**power] * n
    assert traces == [((3,), 2), ((4,), 2), ((3,), 3)]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (np.ones((4, 3), "f"), r"Linear: args\[0\]: expected a tensor of PyTorch, got a ndarray"),
        (snp.ones((4, 3)), r"args\[0\]: expected a tensor of PyTorch, got a Array of float32"),
        ({1, 2}, r"args\[0\]: expected a tensor, or something hashable.*got a set"),
        (torch.ones(4, 3).double(), r"float64 would become float32"),
        (torch.ones(4, 3, device="meta"), r"expected tensors on the CPU, got one on meta"),
        (torch.eye(3).to_sparse(), r"expected dense tensors"),
    ],
)
def test_arguments_that_are_no_tensors(argument, message):
    with pytest.raises(TypeError, match=message):
        st.to_torch(st.nn.Linear(3, 2))(argument)


def test_parts_and_results_that_are_refused():
    part = st.to_torch(st.nn.Sequential(st.nn.Linear(3, 2))).get_submodule("0")
    with pytest.raises(NotImplementedError, match=r"this Linear is a part.*stretto.to_torch"):
        part(torch.ones(3))
    with pytest.raises(TypeError, match=r"the result.* must be an array or a number"):
        st.to_torch(lambda x: "word")(torch.ones(3))
    with pytest.raises(ValueError, match=r"expected input \(..., 3 features\)"):
        st.to_torch(st.nn.Linear(3, 2))(torch.ones(4))
