"""``to_torch``: what it takes, and the names and roles of what it makes."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


@pytest.mark.parametrize("wrong", [3, "linear", None, st.nn.Linear, [st.nn.Linear(2, 2)]])
def test_what_is_nothing_to_compute(wrong):
    with pytest.raises(TypeError, match=r"to_torch: expected a module, a function or an Ensemble"):
        st.to_torch(wrong)


torch = pytest.importorskip("torch")


class Net(st.nn.Module):
    """Parameters, buffers of both kinds, a tied weight, a module in two places, and None."""

    def __init__(self, key):
        super().__init__()
        first, second = st.random.split(key)
        self.body = st.nn.Sequential(st.nn.Linear(3, 3, key=first), st.nn.BatchNorm1d(3))
        self.again = self.body
        self.head = st.nn.Linear(3, 3, bias=False, key=second)
        self.head.weight = st.nn.Parameter(self.body[0].weight)
        self.register_buffer("scale", snp.array(2, "bfloat16"), persistent=False)

    def forward(self, x):
        return self.again(self.head(self.body(x))) * self.scale.astype("float32")


@pytest.fixture
def net():
    net = Net(st.random.key(0))
    net.body[1].eval()
    return net


def test_modules_have_their_arrays_under_their_names(net):
    hosted = st.to_torch(net)
    assert isinstance(hosted, torch.nn.Module)
    assert set(hosted.state_dict()) == set(net.state_dict())
    for name, tensor in hosted.state_dict().items():
        ours = net.state_dict()[name]
        assert tensor.numpy().tobytes() == ours.tobytes() and tensor.shape == ours.shape
    assert [n for n, _ in hosted.named_parameters()] == [n for n, _ in net.named_parameters()]
    assert {n for n, _ in hosted.named_buffers()} == {n for n, _ in net.named_buffers()}
    assert hosted.scale.dtype == torch.bfloat16
    assert hosted.again is hosted.body and hosted.head.weight is hosted.body.get_parameter(
        "0.weight"
    )
    assert repr(hosted).startswith("Net(\n  (body): Sequential(\n    (0): Linear()")


def test_weights_are_copied_and_come_back(net):
    hosted = st.to_torch(net)
    before = np.array(net.head.weight)
    with torch.no_grad():
        hosted.head.weight.add_(1)
    np.testing.assert_array_equal(net.head.weight, before)
    net.load_state_dict(hosted.state_dict())
    np.testing.assert_array_equal(net.head.weight, before + 1)
    assert net.head.weight is net.body[0].weight
    np.testing.assert_allclose(
        net.train()(np.eye(3, dtype=np.float32)), hosted.train()(torch.eye(3)).detach(), rtol=1e-6
    )


def test_modes_are_those_of_the_parts(net):
    hosted = st.to_torch(net)
    assert hosted.training and hosted.head.training and not hosted.get_submodule("body.1").training
    x = torch.randn(4, 3)
    mean = hosted.body.get_buffer("1.running_mean")
    hosted(x)
    assert mean.eq(0).all()
    hosted.get_submodule("body.1").train()
    hosted(x)
    assert not mean.eq(0).any()
    kept = mean.clone()
    hosted.eval()(x)
    assert mean.equal(kept)


def test_names_that_pytorch_has_itself():
    class Named(st.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = st.nn.Linear(1, 1)
            self.inner.register_buffer("half", snp.ones(1))

    with pytest.raises(
        ValueError, match=r"attribute 'half' of its own.*Named.*inner\.half: rename"
    ):
        st.to_torch(Named())


def test_modules_of_pytorch_are_told_the_other_way():
    with pytest.raises(TypeError, match=r"got Linear, which is PyTorch's: st.from_torch"):
        st.to_torch(torch.nn.Linear(2, 2))


def test_ensembles_have_their_stacked_arrays():
    ensemble = st.Ensemble.init(Net, st.random.key(0), 4, shared="body.0.bias", frozen="body.1.*")
    hosted = st.to_torch(ensemble)
    (theirs,) = ensemble.state_dict()
    assert set(hosted.state_dict()) == set(theirs)
    for name, tensor in hosted.state_dict().items():
        assert tuple(tensor.shape) == theirs[name].shape
    assert [n for n, _ in hosted.named_parameters()] == list(ensemble.trainable()[0])


def test_ensembles_of_several_architectures_and_of_functions():
    both = st.Ensemble(
        [st.nn.Linear(2, 1), st.nn.Sequential(st.nn.Linear(2, 1)), st.nn.Linear(2, 1)]
    )
    assert [*st.to_torch(both).state_dict()] == [
        "group0.weight", "group0.bias", "group1.0.weight", "group1.0.bias",
    ]  # fmt: skip
    x = torch.randn(5, 2)
    np.testing.assert_allclose(st.to_torch(both)(x).detach(), both(x.numpy()), rtol=1e-6)
    functions = st.Ensemble(lambda p, x: x * p["w"] + p["b"], [{"w": 1.0, "b": 2.0}] * 3)
    hosted = st.to_torch(functions)
    assert [*hosted.state_dict()] == ["b", "w"]
    assert hosted(torch.ones(2)).tolist() == [[3, 3]] * 3
    assert st.to_torch(st.Ensemble(lambda w, x: w * x, [2.0, 3.0]))(torch.ones(())).tolist() == [
        2,
        3,
    ]
