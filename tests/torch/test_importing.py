"""PyTorch's modules imported: values, modes, ties, frozen weights, dynamic sizes, refusals."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


def test_what_is_no_module_of_pytorchs():
    for wrong in (len, 3, st.nn.Linear(2, 2)):
        with pytest.raises(TypeError, match=r"from_torch: expected a torch.nn.Module, got a"):
            st.from_torch(wrong)
    with pytest.raises(TypeError, match=r"got the path 'net.pt2': .* torch.export.load\(path\)"):
        st.from_torch("net.pt2")


torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)

X = np.random.default_rng(0).normal(size=(4, 3, 8, 8)).astype(np.float32)


class Net(nn.Module):
    """What a small network has: convolution, batch normalization, dropout, a head."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(4, 2)
        self.scale = torch.tensor(2.0)

    def forward(self, x, *, double: bool = False):
        h = self.body(x).mean((2, 3))
        out = self.head(self.drop(h)) * self.scale
        return {"out": 2 * out if double else out, "hidden": (h,)}


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return Net().eval()


def test_values_in_both_modes(net):
    ours = st.from_torch(net, torch.from_numpy(X), train=True)
    assert list(ours.state_dict()) and set(ours.state_dict()) == set(net.state_dict())
    for n in (4, 2, 7):
        x = np.resize(X, (n, 3, 8, 8))
        with torch.no_grad():
            theirs = net(torch.from_numpy(x))
        out = ours(x)
        np.testing.assert_allclose(out["out"], theirs["out"], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(out["hidden"][0], theirs["hidden"][0], rtol=1e-5, atol=1e-6)
    theirs, net.drop.p = net.train(), 0.0
    net.drop.p = 0.5
    ours.train()
    with st.nn.keys(st.random.key(0)):
        _, after = st.nn.stateful_call(ours, X)
    theirs(torch.from_numpy(X))
    net.eval()
    for name, value in net.named_buffers():
        np.testing.assert_allclose(after.state_dict()[name], value, rtol=1e-5, atol=1e-6)


def test_gradients(net):
    net.double()
    with st.config(enable_x64=True):
        ours = st.from_torch(net, torch.from_numpy(X).double())
        net(torch.from_numpy(X).double())["out"].square().sum().backward()
        slope = st.grad(lambda m, x: (m(x)["out"] ** 2).sum())(ours, X.astype(float))
    for name, parameter in net.named_parameters():
        np.testing.assert_allclose(slope.state_dict()[name], parameter.grad, rtol=1e-8, atol=1e-10)
    net.float()


def test_arguments_that_are_part_of_the_program(net):
    ours = st.from_torch(net, (torch.from_numpy(X),), {"double": True})
    np.testing.assert_allclose(
        ours(X, double=True)["out"],
        2 * st.from_torch(net, torch.from_numpy(X))(X)["out"],
        rtol=1e-5,
    )
    with pytest.raises(ValueError, match="double is part of the program: it was True"):
        ours(X, double=False)


def test_tied_and_frozen_weights():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(5, 3)
            self.head = nn.Linear(3, 5, bias=False)
            self.head.weight = self.embed.weight
            self.still = nn.Parameter(torch.ones(3), requires_grad=False)

        def forward(self, ids):
            return self.head(self.embed(ids) * self.still)

    theirs = Tied()
    ids = torch.tensor([[1, 2], [3, 4]])
    ours = st.from_torch(theirs, ids)
    assert [name for name, _ in ours.named_parameters()] == ["embed.weight"]
    assert set(ours.state_dict()) == set(theirs.state_dict())
    theirs(ids).square().sum().backward()
    slope = st.grad(lambda m: (m(ids.numpy()) ** 2).sum())(ours)
    np.testing.assert_allclose(slope.embed.weight, theirs.embed.weight.grad, rtol=1e-5)


def test_gradients_that_pytorch_stops():
    class Stops(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(torch.ones(3))

        def forward(self, x):
            with torch.no_grad():
                still = self.a * x
            rounded = torch.round(x * self.a)
            return still * self.a + (x * self.a + (rounded - x * self.a).detach())

    theirs, x = Stops(), torch.tensor([0.4, 1.6, 2.5])
    ours = st.from_torch(theirs, x)
    theirs(x).sum().backward()
    slope = st.grad(lambda m: m(x.numpy()).sum())(ours)
    np.testing.assert_allclose(slope.a, theirs.a.grad, rtol=1e-6)


def test_members_of_one_architecture_are_one_program():
    nets = [Net().eval() for _ in range(3)]
    members = [st.from_torch(net, torch.from_numpy(X)) for net in nets]
    out = st.Ensemble(members)(X)["out"]
    for row, net in zip(out, nets, strict=True):
        with torch.no_grad():
            np.testing.assert_allclose(row, net(torch.from_numpy(X))["out"], rtol=1e-5, atol=1e-6)


def test_control_flow():
    class Chooses(nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))

    ours = st.from_torch(Chooses(), torch.ones(3))
    f = st.jit(ours)
    np.testing.assert_array_equal(f(snp.ones(3)), [2, 2, 2])
    np.testing.assert_array_equal(f(-snp.ones(3)), [-2, -2, -2])


def test_exported_programs():
    theirs = nn.Linear(3, 2)
    x = torch.ones(4, 3)
    ours = st.from_torch(torch.export.export(theirs, (x,)))
    np.testing.assert_allclose(ours(x.numpy()), theirs(x).detach(), rtol=1e-6)
    assert set(ours.state_dict()) == {"weight", "bias"}


def test_half_precision():
    theirs = nn.Linear(3, 2).bfloat16()
    x = torch.ones(4, 3, dtype=torch.bfloat16)
    ours = st.from_torch(theirs, x)
    out = ours(snp.ones((4, 3), "bfloat16"))
    assert out.dtype == ours.weight.dtype == snp.bfloat16
    np.testing.assert_allclose(
        np.asarray(out, np.float32), theirs(x).detach().float(), rtol=2e-2, atol=1e-2
    )


def test_modules_that_pytorch_cannot_export():
    class Asks(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(Exception) as error:
        st.from_torch(Asks(), torch.ones(3))
    assert "PyTorch cannot export this Asks" in error.value.__notes__[0]


def test_operations_that_are_missing():
    class Picks(nn.Module):
        def forward(self, x):
            return torch.bincount(x.long())

    with pytest.raises(
        NotImplementedError, match=r"aten.bincount.default, in the module \(Picks\)"
    ):
        st.from_torch(Picks(), torch.ones(3))


def test_64_bits_inside_of_a_module():
    class Wide(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return (self.layer(x).double() + 1e-12).float()

    with pytest.warns(UserWarning, match=r"Wide computes in 64 bits .*test_importing.py.*enable_x"):
        st.from_torch(Wide(), torch.ones(3, 4))
    with st.config(enable_x64=True):
        st.from_torch(Wide(), torch.ones(3, 4))


class Optional(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x, scale=1.0, flag=False, *, bias=None, options=(("a", 1), None)):
        y = self.layer(x) * scale + options[0][1]
        y = -y if flag else y
        return y if bias is None else y + bias


def test_options_that_are_left_out():
    module, x = Optional(), torch.ones(4, 3)
    for kwargs in ({"scale": 2.0}, {"flag": True}, {"options": (("a", 2), None)}):
        model = st.from_torch(module, x, kwargs)
        (name,) = kwargs
        np.testing.assert_allclose(
            model(x.numpy(), **kwargs), module(x, **kwargs).detach(), rtol=1e-6
        )
        with pytest.raises(ValueError, match=f"{name} is part of the program: .* is left out now"):
            model(x.numpy())
    model = st.from_torch(module, x, {"scale": 1.0, "bias": None})
    for kwargs in ({}, {"scale": 1.0}, {"flag": False, "options": (("a", 1), None)}):
        np.testing.assert_allclose(model(x.numpy(), **kwargs), module(x).detach(), rtol=1e-6)
    with pytest.raises(TypeError, match="bias"):
        st.from_torch(module, x, {"bias": x})(x.numpy())


class Cached(nn.Module):
    """Writes into one of its arguments."""

    def __init__(self, returned):
        super().__init__()
        self.layer, self.returned = nn.Linear(3, 3), returned

    def forward(self, x, cache):
        cache["keys"][:, 1] = self.layer(x)
        total = cache["keys"].sum(1)
        return (total, cache["keys"]) if self.returned else total


def test_what_is_written_into_an_argument(tmp_path):
    x = torch.ones(4, 3)

    def cache():
        return {"keys": torch.zeros(4, 2, 3), "values": torch.ones(4, 2)}

    arrays = {name: value.numpy() for name, value in cache().items()}
    module = Cached(False)
    with pytest.raises(NotImplementedError, match="Cached writes into its argument cache, and"):
        st.from_torch(module, (x, cache()))
    with pytest.raises(ValueError, match="writes is one of refuse, return, ignore; got 'keep'"):
        st.from_torch(module, (x, cache()), writes="keep")
    theirs = cache()
    want = module(x, theirs).detach()
    model = st.from_torch(module, (x, cache()), writes="return")
    st.torch.save(tmp_path / "m.safetensors", model)
    ensemble = st.Ensemble.from_torch([module, module], (x, cache()), writes="return")
    for found, written in (
        model(x.numpy(), arrays),
        st.torch.load(tmp_path / "m.safetensors")(x.numpy(), arrays),
        st.jit(model)(x.numpy(), arrays),
        st.tree.map(lambda leaf: leaf[1], ensemble(x.numpy(), arrays)),
    ):
        np.testing.assert_allclose(found, want, rtol=1e-6)
        assert list(written) == ["cache"] and list(written["cache"]) == ["keys", "values"]
        np.testing.assert_allclose(written["cache"]["keys"], theirs["keys"].detach(), rtol=1e-6)
        np.testing.assert_array_equal(written["cache"]["values"], theirs["values"])
    again, _ = model(x.numpy(), **written)
    np.testing.assert_allclose(again, want, rtol=1e-6)
    ignoring = st.from_torch(module, (x, cache()), writes="ignore")
    np.testing.assert_allclose(ignoring(x.numpy(), arrays), want, rtol=1e-6)
    total, keys = st.from_torch(Cached(True), (x, cache()))(x.numpy(), arrays)
    assert total.shape == (4, 3) and keys.shape == (4, 2, 3)
    assert not arrays["keys"].any()


def test_what_is_written_and_returned():
    out = st.from_torch(nn.ReLU(inplace=True), torch.ones(2, 3))(np.float32([[-1, 2, 3]]))
    np.testing.assert_array_equal(out, [[0, 2, 3]])
