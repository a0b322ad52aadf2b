"""State dictionaries, and tensors under several names."""

import copy
import os
import pickle
from collections import OrderedDict

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.torch import from_state_dict, to_state_dict

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)

from stretto.torch.importing import identity, merge_inputs, sharing  # noqa: E402


def test_arrays_need_no_pytorch():
    found = from_state_dict({"a": np.float32([1, 2]), "b": snp.ones(2, "bfloat16"), "c": 3})
    assert [x.dtype for x in found.values()] == ["float32", snp.bfloat16, "int32"]
    with pytest.warns(UserWarning, match="has 1 arrays of float64, which become those of half"):
        assert from_state_dict({"a": np.ones(2)})["a"].dtype == "float32"
    with pytest.raises(
        OverflowError, match=r"n is the integer \d+, int64, which does not fit in int32"
    ):
        from_state_dict({"n": np.int64(2**40)})
    with st.config(enable_x64=True):
        assert int(from_state_dict({"n": np.int64(2**40)})["n"]) == 2**40


def test_safetensors_need_no_pytorch(tmp_path):
    path = tmp_path / "linear.safetensors"
    layer = st.nn.Linear(3, 2)
    st.save(path, layer)
    other = st.nn.Linear(3, 2, key=st.random.key(1))
    assert other.load_state_dict(from_state_dict(path)) == ([], [])
    np.testing.assert_array_equal(other.weight, layer.weight)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"linear\.safetensors"):
        from_state_dict(path)


def test_what_is_no_dictionary_of_arrays():
    for wrong in (3, [1], None, st.nn.Linear(1, 1)):
        with pytest.raises(TypeError, match=r"from_state_dict: the path must be a string or"):
            from_state_dict(wrong)
        with pytest.raises(TypeError, match=r"to_state_dict: expected a dictionary of arrays by"):
            to_state_dict(wrong)
    for wrong in ({"model": {"a": np.ones(2)}}, {3: np.ones(2)}, {"a": "text"}, {"a": None}):
        with pytest.raises(TypeError, match=r"expected tensors by name, got a .*weights_only=True"):
            from_state_dict(wrong)
    with pytest.raises(FileNotFoundError):
        from_state_dict("nowhere.safetensors")


LAYERS = {
    "Linear": (3, 2),
    "Bilinear": (3, 2, 4),
    "Conv1d": (4, 6, 3),
    "Conv2d": (4, 6, (3, 2)),
    "Conv3d": (2, 3, 2),
    "ConvTranspose2d": (4, 6, (3, 2)),
    "BatchNorm2d": (4,),
    "LayerNorm": ((3, 4),),
    "GroupNorm": (2, 4),
    "RMSNorm": (4,),
    "Embedding": (7, 3),
    "EmbeddingBag": (7, 3),
    "PReLU": (3,),
    "RNN": (3, 4, 2),
    "LSTM": (3, 4, 2),
    "GRU": (3, 4, 2),
    "LSTMCell": (3, 4),
    "GRUCell": (3, 4),
    "MultiheadAttention": (8, 2),
    "TransformerEncoderLayer": (8, 2, 16),
    "TransformerDecoderLayer": (8, 2, 16),
    "Transformer": (8, 2, 1, 1, 16),
}


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # of PyTorch's own making
@pytest.mark.parametrize("name", LAYERS)
def test_layers_have_the_names_and_layouts_of_pytorch(name):
    theirs = getattr(nn, name)(*LAYERS[name])
    ours = getattr(st.nn, name)(*LAYERS[name])
    state = theirs.state_dict()
    assert ours.load_state_dict(from_state_dict(state)) == ([], [])
    for key, tensor in state.items():
        np.testing.assert_array_equal(ours.state_dict()[key], tensor.numpy())
    again = getattr(nn, name)(*LAYERS[name])
    again.load_state_dict(to_state_dict(ours.state_dict()))
    for key, tensor in again.state_dict().items():
        assert torch.equal(tensor, state[key])


def network(n):
    return n.Sequential(
        n.Conv2d(3, 4, 3), n.BatchNorm2d(4), n.ReLU(), n.Flatten(), n.Linear(144, 2)
    )


def test_files(tmp_path):
    theirs = network(nn)
    x = np.random.default_rng(0).normal(size=(5, 3, 8, 8)).astype(np.float32)
    theirs(torch.from_numpy(x))
    theirs.eval()
    path = tmp_path / "network.pt"
    torch.save(theirs.state_dict(), path)
    ours = network(st.nn).eval()
    ours.load_state_dict(from_state_dict(path))
    np.testing.assert_allclose(ours(x), theirs(torch.from_numpy(x)).detach(), rtol=1e-5, atol=1e-6)
    torch.save(theirs.state_dict(), path, _use_new_zipfile_serialization=False)
    for name, value in from_state_dict(os.fspath(path)).items():
        np.testing.assert_array_equal(value, theirs.state_dict()[name])


def test_all_or_nothing():
    ours = network(st.nn)
    before = ours.state_dict()
    state = network(nn).state_dict()
    state["other"] = state.pop("0.bias")
    state["4.weight"] = torch.ones(2, 3)
    with pytest.raises(
        ValueError,
        match=r"nothing was loaded.*missing: 0.bias; unexpected: other; 4.weight: expected shape "
        r"\(2, 144\), got \(2, 3\)",
    ):
        ours.load_state_dict(from_state_dict(state))
    assert all([value is before[name] for name, value in ours.state_dict().items()])


class Executes:
    def __reduce__(self):
        return os.system, ("touch executed",)


@pytest.mark.parametrize("protocol", [2, 5])
def test_files_that_would_run_code(tmp_path, monkeypatch, protocol):
    monkeypatch.chdir(tmp_path)
    hostile = tmp_path / "hostile.pt"
    torch.save({"a": torch.ones(2), "b": Executes()}, hostile, pickle_protocol=protocol)
    plain = tmp_path / "plain.pth"
    plain.write_bytes(pickle.dumps(Executes(), protocol=protocol))
    old = tmp_path / "old.pt"
    torch.save([Executes()], old, _use_new_zipfile_serialization=False)
    whole = tmp_path / "whole.pt"
    torch.save(nn.Linear(2, 2), whole)
    for path in (hostile, plain, old, whole):
        with pytest.raises(
            ValueError, match=r"no weights can be read from this file.*nothing else"
        ):
            from_state_dict(path)
    assert not (tmp_path / "executed").exists()


def test_files_that_are_damaged(tmp_path):
    path = tmp_path / "network.pt"
    torch.save(OrderedDict(a=torch.arange(300.0)), path)
    whole = path.read_bytes()
    for end in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match=r"network.pt: no weights can be read from this file"):
            from_state_dict(path)
    path.write_bytes(b"no weights at all")
    with pytest.raises(ValueError, match="damaged, or holds more than"):
        from_state_dict(path)
    with pytest.raises(FileNotFoundError):
        from_state_dict(tmp_path / "nowhere.pt")
    with pytest.raises(IsADirectoryError):
        from_state_dict(tmp_path)


def test_files_of_other_things(tmp_path):
    path = tmp_path / "other.pt"
    torch.save([torch.ones(2)], path)
    with pytest.raises(TypeError, match=r"other.pt: expected a dictionary of tensors by name, got"):
        from_state_dict(path)
    torch.save({"model": {"a": torch.ones(2)}, "step": 3}, path)
    with pytest.raises(TypeError, match=r"got a dict under 'model'; of a checkpoint"):
        from_state_dict(path)
    with pytest.raises(TypeError, match=r"from_state_dict: a: expected dense tensors"):
        from_state_dict({"a": torch.ones(2, 2).to_sparse()})


def test_tensors_are_copies_bit_for_bit():
    bits = np.arange(256, dtype=np.uint8)
    for name in ("float8_e4m3fn", "float8_e5m2", "int8", "uint8"):
        array = snp.asarray(bits.view(name))
        tensor = to_state_dict({"a": array})["a"]
        assert str(tensor.dtype) == f"torch.{name}"
        np.testing.assert_array_equal(tensor.view(torch.uint8).numpy(), bits)
    array = snp.asarray(np.arange(2**16, dtype=np.uint16).view("bfloat16"))
    tensors = to_state_dict({"a": array, "b": array, "c": snp.array(2.0), "d": np.ones(2)})
    np.testing.assert_array_equal(
        tensors["a"].view(torch.uint16).numpy(), np.arange(2**16, dtype=np.uint16)
    )
    assert tensors["a"] is tensors["b"] and tensors["c"].shape == ()
    assert tensors["d"].dtype == torch.float64
    tensors["a"].zero_()
    assert float(array[1]) != 0
    back = from_state_dict({"a": torch.from_numpy(np.arange(3))})
    assert back["a"].dtype == "int32"
    with pytest.raises(TypeError, match=r"to_state_dict: a: PyTorch has no tensors of int4"):
        to_state_dict({"a": snp.zeros(2, "int4")})
    with pytest.raises(TypeError, match=r"to_state_dict: a must be an array"):
        to_state_dict({"a": [1.0]})


class Shared(nn.Module):
    """One layer of batch normalization under two names."""

    def __init__(self):
        super().__init__()
        self.first = nn.BatchNorm1d(4)
        self.linear = nn.Linear(4, 4)
        self.second = self.first

    def forward(self, x):
        return self.second(self.linear(self.first(x)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.linear(x))


class Siamese(nn.Module):
    """One network for two arguments, in a list and a dictionary as well."""

    def __init__(self):
        super().__init__()
        self.left = Block()
        self.right = self.left
        self.all = nn.ModuleList([self.left, nn.ModuleDict({"x": self.right})])

    def forward(self, x, y):
        return self.left(x) - self.right(y) + self.all[1]["x"](x + y)


def check_training(module, examples, steps=3):
    """Train mode: results and statistics of PyTorch's, call after call."""
    theirs = copy.deepcopy(module).train()
    ours = st.from_torch(module, examples, train=True).train()
    call = st.jit(st.nn.stateful_call)
    for k in range(steps):
        args = [x * (k + 1) + k for x in examples]
        out, ours = call(ours, *[x.numpy() for x in args])
        np.testing.assert_allclose(out, theirs(*args).detach(), rtol=2e-4, atol=2e-5)
    found, wanted = ours.state_dict(), theirs.state_dict()
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5)
    return ours


def test_one_layer_under_two_names():
    torch.manual_seed(0)
    ours = check_training(Shared(), (torch.randn(5, 4),))
    assert dict(ours.ties)["second.running_mean"] == "first.running_mean"
    assert "second.running_mean" not in dict(ours.named_buffers())
    assert int(ours.first.num_batches_tracked) == 6  # two a call


def test_one_network_for_two_arguments():
    torch.manual_seed(0)
    x, y = torch.randn(5, 4), torch.randn(5, 4)
    check_training(Siamese(), (x, y))
    check_training(Siamese(), (x, x))


def test_ensembles_and_files(tmp_path):
    torch.manual_seed(0)
    members = [Shared() for _ in range(3)]
    ensemble = st.Ensemble.from_torch(members, torch.randn(5, 4), train=True)
    x = np.float32(np.random.default_rng(0).normal(size=(6, 4)))
    out, after = ensemble.train().stateful_call(x)
    for k, member in enumerate(members):
        want = member.train()(torch.from_numpy(x)).detach()
        np.testing.assert_allclose(out[k], want, rtol=2e-4, atol=2e-5)
        statistics = after[k].state_dict()["second.running_var"]
        np.testing.assert_allclose(statistics, member.second.running_var, rtol=1e-4, atol=1e-5)
    ours = st.from_torch(members[0], torch.randn(5, 4))
    st.torch.save(tmp_path / "net.safetensors", ours)
    again = st.torch.load(tmp_path / "net.safetensors")
    np.testing.assert_array_equal(again(x), ours(x))
    assert again.load_state_dict(ours.state_dict()).missing_keys == []


def test_exported_programs():
    program = torch.export.export(Shared().train(), (torch.randn(5, 4),), strict=False)
    ours = st.from_torch(program)
    assert len([x for x in ours.evaluation_program.graph.inputs if x.kind == "buffer"]) == 3


def test_a_buffer_under_two_names():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(4))
            self.register_buffer("same", self.count)

        def forward(self, x):
            self.count.add_(1)
            return x * self.same

    ours = check_training(Twice(), (torch.ones(3, 4),))
    assert ours.ties == (("same", "count"),)


@pytest.mark.parametrize("whole", [True, False])
def test_what_shares_memory_otherwise_is_named(whole):
    class Shares(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(4))
            self.register_buffer("r", self.w.data if whole else torch.zeros(5))
            self.register_buffer("v", torch.zeros(4) if whole else self.r[:4])

        def forward(self, x):
            self.r.add_(1)
            return x * self.w * self.v

    with pytest.raises(
        NotImplementedError, match=r"shares its memory .*\((w and r|r and v)\).*keep"
    ):
        st.from_torch(Shares(), torch.ones(3, 4))


def test_identities():
    x = torch.ones(4)
    assert identity(x) == identity(x.detach()) == identity(x.view(4))
    assert len({identity(y) for y in (x, x[:2], x.view(2, 2), x.clone())}) == 4
    assert identity(torch.ones(0)) != identity(torch.ones(0))
    assert list(sharing({"x": x, "again": x, "part": x[1:], "other": x.clone()})) == [("x", "part")]


def test_programs_without_ties_stay():
    program = torch.export.export(nn.Linear(4, 2), (torch.ones(3, 4),), strict=False)
    before = str(program.graph), program.graph_signature
    merge_inputs(program)
    assert (str(program.graph), program.graph_signature) == before
