"""``load`` and ``load_header``: what comes back, and what is refused."""

import dataclasses
import json
import os
import struct
import tracemalloc
import warnings
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.nn.models import Tied


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


class AdamState(NamedTuple):
    count: Any
    mu: Any
    nu: Any


@st.tree.register_dataclass
@dataclasses.dataclass
class TrainState:
    params: Any
    opt: Any
    key: Any
    order: Any
    name: str = dataclasses.field(default="run", metadata={"static": True})


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(snp.ones((n, 2)))
        self.bias = nn.Parameter(snp.arange(float(n)))
        self.register_buffer("seen", snp.zeros((), int))
        self.inner = Inner()


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(snp.full(2, 3.0))
        self.register_parameter("shift", None)


def same(one, other):
    assert st.tree.structure(one) == st.tree.structure(other)
    for a, b in zip(st.tree.leaves(one), st.tree.leaves(other), strict=True):
        assert type(a) is type(b)
        if isinstance(a, st.Array):
            assert a.type is b.type
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


DATA = {
    "fc": [{"w": snp.ones((2, 3)), "b": None}, (), snp.asarray(1.5)],
    "step": 7,
    "best": 0.1,
    "done": False,
    "order": np.arange(5),
    "small": snp.array([-8, 7], dtype=snp.int4),
    "narrow": snp.array([1.0, -2.5], dtype=ml_dtypes.bfloat16),
    "key": st.random.PRNGKey(5),
    "empty": snp.zeros((0, 4)),
    "flag": snp.array([True, False]),
    "z": snp.array([1 + 2j]),
}


@pytest.mark.parametrize(
    "tree", [DATA, [], {}, None, snp.ones(3), 5, (1, [2.5])], ids=lambda t: str(t)[:9]
)
def test_what_is_data_comes_back_as_it_was(path, tree):
    st.save(path, tree)
    same(st.load(path), tree)
    same(st.load(path, like=tree), tree)


def test_the_whole_state_of_training_comes_back(path):
    params = {"w": snp.ones((2, 2)), "b": None}
    opt = (AdamState(3, params, st.tree.map(lambda x: 0.5 * x, params)), (), AdamState(0, (), ()))
    state = TrainState(params, opt, st.random.PRNGKey(1), np.random.default_rng(0).permutation(9))
    st.save(path, state)
    same(st.load(path, like=state), state)
    fresh = st.tree.map(lambda x: x * 0, state)
    same(st.load(path, like=fresh), state)
    flat = st.load(path)
    assert sorted(flat) == ["key", "opt.0.count", "opt.0.mu.w", "opt.0.nu.w", "opt.2.count",
                            "order", "params.w"]  # fmt: skip
    assert type(flat["opt.0.count"]) is int


def test_modules(path):
    model = Model(3)
    st.save(path, model)
    same(st.load(path, like=Model(3)), model)
    assert list(safetensors.numpy.load_file(path)) and set(st.load(path)) == set(model.state_dict())
    st.save(path, model.state_dict())
    other = st.tree.map(lambda x: x * 0, Model(3))
    other.load_state_dict(st.load(path))
    for name, array in model.state_dict().items():
        np.testing.assert_array_equal(other.state_dict()[name], array)
    stacked = st.stack([Model(3), model])
    st.save(path, stacked)
    same(st.load(path, like=stacked), stacked)


def test_files_by_others_are_read_by_name(path):
    arrays = {"b.weight": np.ones((2, 2), np.float32), "a": np.arange(3, dtype=np.int64)}
    safetensors.numpy.save_file(arrays, path, {"format": "pt"})
    made = st.load(path)
    assert list(made) == ["a", "b.weight"] and made["a"].dtype == np.int32
    np.testing.assert_array_equal(made["b.weight"], arrays["b.weight"])
    like = {"a": snp.zeros(3, int), "b": {"weight": snp.zeros((2, 2))}}
    assert st.load(path, like)["a"].tolist() == [0, 1, 2]
    assert st.files.load_header(path).metadata == {"format": "pt"}
    safetensors.numpy.save_file({"step": np.array(4), "lr": np.array(0.5, np.float32)}, path)
    assert st.load(path, like={"step": 0, "lr": 0.0}) == {"step": 4, "lr": 0.5}


def test_like_may_hold_types_alone(path):
    st.save(path, {"w": snp.ones((2, 3)), "n": 3})
    like = st.eval_shape(lambda: {"w": snp.zeros((2, 3)), "n": snp.zeros((), int)})
    made = st.load(path, like)
    assert made["w"].shape == (2, 3) and int(made["n"]) == 3 and made["n"].dtype == np.int32


def test_arrays_are_of_the_program(path):
    """Loaded memory is what compiled programs use where it lies, and nobody can write it."""
    st.save(path, {"a": snp.ones(3, snp.int8), "b": snp.ones((5, 7)), "c": snp.ones(1 << 12)})
    made = st.load(path)
    for x in made.values():
        assert np.asarray(x).ctypes.data % 64 == 0 and not np.asarray(x).flags.writeable
    assert float(st.jit(lambda t: t["b"].sum() + t["c"].sum())(made)) == 35 + 4096
    os.truncate(path, 10)  # what was loaded depends on the file no more
    assert float(made["c"].sum()) == 4096


def test_64_bits(path):
    st.save(path, {"w": np.array([0.1]), "n": np.array([1])})
    header = st.files.load_header(path).arrays
    assert header["w"].dtype == np.float64 and header["n"].dtype == np.int64
    same(st.load(path), {"w": np.array([0.1]), "n": np.array([1])})  # NumPy's stay NumPy's
    like = {"w": snp.zeros(1), "n": snp.zeros(1, int)}
    with pytest.warns(UserWarning, match=r"load: .*model.safetensors: loses digits of w, "):
        made = st.load(path, like)
    assert made["w"].dtype == np.float32 and made["n"].dtype == np.int32
    with st.enable_x64():
        like = {"w": snp.zeros(1), "n": snp.zeros(1, int)}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made = st.load(path, like)
        assert made["w"].tolist() == [0.1] and made["w"].dtype == np.float64
    st.save(path, {"n": np.array([2**40])})
    with pytest.raises(OverflowError, match=r"load: .*model.safetensors: n is int64 in the file"):
        st.load(path, {"n": snp.zeros(1, int)})


def test_a_part_of_a_file(path):
    st.save(path, {"w": snp.ones(2), "b": [snp.ones(3), 4]})
    with pytest.raises(ValueError, match=r"of a file's arrays: load\(path, like, strict=False\)"):
        st.load(path, {"b": [snp.zeros(3), 0]})
    found = st.load(path, {"b": [snp.zeros(3), 0]}, strict=False)
    assert found["b"][0].tolist() == [1, 1, 1] and found["b"][1] == 4
    assert st.load(path, {}, strict=False) == {}
    with pytest.raises(ValueError, match=r"missing: a\n  w: expected float32\[3\], got .*\[2\]$"):
        st.load(path, {"w": snp.ones(3), "a": 1}, strict=False)
    with pytest.raises(ValueError, match="strict=False reads what `like` has, and there is none"):
        st.load(path, strict=False)


def of_modules(tree):
    """Return where the one weight of ``Tied`` is, in what was loaded."""
    return tree["model"].a.weight, tree["model"].c.weight


def test_tied_weights_are_one_array(path):
    model = Tied()
    st.save(path, {"model": model, "same": model.a.weight})
    like = {"model": st.tree.map(snp.zeros_like, Tied()), "same": snp.zeros((3, 3))}
    found = st.load(path, like)
    one, other = of_modules(found)
    assert one is other
    np.testing.assert_array_equal(one, model.a.weight)
    np.testing.assert_array_equal(found["same"], one)  # in a dictionary, and an array of its own
    by_name = st.load(path)["model"]
    assert by_name["a.weight"] is by_name["b.weight"] is by_name["c.weight"]
    header = st.files.load_header(path).arrays
    assert header.keys() == {"same", *(f"model.{name}" for name in by_name)}
    alone = st.load(path, {"model": {"c": {"weight": snp.zeros((3, 3))}}}, strict=False)
    np.testing.assert_array_equal(alone["model"]["c"]["weight"], one)


def test_tied_weights_are_as_they_are_asked_for(path):
    st.save(path, {"model": Tied()})
    like = {"model": Tied()}
    like["model"].a.weight = snp.zeros((3, 3))
    place = lambda name, x: st.devices()[0] if name == "model.c.weight" else None
    one, other = of_modules(st.load(path, like, sharding=place))
    np.testing.assert_array_equal(one, other)
    numpys = {"model": {name: {"weight": np.zeros((3, 3), np.float32)} for name in "ac"}}
    found = st.load(path, numpys, strict=False)["model"]
    found["a"]["weight"][0, 0] = 9
    assert found["c"]["weight"][0, 0] != 9


def test_weights_that_are_not_tied_stay_apart(path):
    model = Tied()
    model.c.weight = nn.Parameter(model.a.weight + 1)
    st.save(path, model)
    found = st.load(path, Tied())
    assert found.c.weight is not found.a.weight
    np.testing.assert_array_equal(found.c.weight, found.a.weight + 1)
    # What is shared in a container that says nothing of it is there for each name.
    shared = snp.ones(3)
    st.save(path, {"a": shared, "b": [shared, shared]})
    assert sorted(safetensors.numpy.load_file(path)) == ["a", "b.0", "b.1"]


@pytest.mark.parametrize(
    "ties", [{"c.weight": "d.weight"}, {"a.weight": "a.bias"}, {"x": "a.bias"}]
)
def test_damaged_ties(path, ties):
    st.save(path, Tied())
    with safetensors.safe_open(path, "np") as file:
        said = json.loads(file.metadata()["stretto"])
    arrays = safetensors.numpy.load_file(path)
    words = {"stretto": json.dumps(said | {"ties": ties})}
    safetensors.numpy.save_file(arrays, path, words)
    with pytest.raises(ValueError, match="its description of the tree is damaged"):
        st.load(path)


def test_a_model_of_several_files_is_for_a_checkpoint(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"a model of several files with .*Checkpoint"):
        st.load(tmp_path)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text('{"metadata": {}, "weight_map": {}}')
    with pytest.raises(ValueError, match=r"the index of a model of several files, .*Checkpoint"):
        st.load(index)


def test_all_that_does_not_fit_like_is_listed(path):
    st.save(path, {"fc1": {"w": snp.ones((2, 3)), "b": snp.ones(2)}, "old": 1, "n": 2.5})
    like = {"fc1": {"w": snp.ones((4, 3)), "b": snp.ones(2, int)}, "new": [1, 2], "n": 2}
    with pytest.raises(ValueError) as caught:
        st.load(path, like)
    assert str(caught.value).split("\n  ") == [
        f"load: {path} does not match `like`:",
        "missing: new.0, new.1",
        "unexpected: old",
        "fc1.b: expected int32[2], got float32[2]",
        "fc1.w: expected float32[4,3], got float32[2,3]",
        "n: expected a Python int, got float64[]",
    ]
    with pytest.raises(TypeError, match="`like` has at name a str"):
        st.load(path, {"fc1": {"w": 1, "b": 1}, "old": 1, "n": 1, "name": "x"})


def test_header(path):
    st.save(path, DATA, {"epoch": "7", "notes": "ü"})
    header = st.files.load_header(path)
    assert header.metadata == {"epoch": "7", "notes": "ü"}
    assert list(header.arrays) == sorted(header.arrays)
    assert header.arrays["fc.0.w"] == st.ShapeDtypeStruct((2, 3), np.float32)
    assert header.arrays["small"] == st.ShapeDtypeStruct((2,), ml_dtypes.int4)


# Damage


def file_of(header, data=b"\0" * 8):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


DAMAGED = {
    "empty": (b"", "it has 0 bytes"),
    "short": (b"abc", "it has 3 bytes"),
    "zip": (b"PK\x03\x04" + b"\0" * 90, r"zip archive \(as PyTorch's"),
    "text": (b"hello, this is no such file", "truncated, or not a safetensors file"),
    "header too long": (struct.pack("<Q", 1 << 62) + b"{}", "its header takes 46116860184273"),
    "header long": (struct.pack("<Q", 99_999_999) + b"{}", "its header takes 99999999"),
    "no JSON": (file_of(b"{nonsense"), "invalid JSON"),
    "no text": (file_of(b"\xff\xfe"), "UTF-8"),
    "nested": (file_of(b"[" * 10_000), "invalid JSON"),
    "overlap": (file_of({"a": entry(), "b": entry()}), "invalid offset for tensor"),
    "hole": (file_of({"a": entry(shape=(1,), offsets=(4, 8))}), "invalid offset"),
    "wrong size": (file_of({"a": entry(shape=(3,))}), "invalid shape, data type, or offset"),
    "negative": (file_of({"a": entry(shape=(-2,))}), "-2"),
    "overflow": (file_of({"a": entry(shape=(1 << 40, 1 << 40))}), "overflow"),
    "backwards": (file_of({"a": entry(offsets=(8, 0))}), "damaged"),
    "unknown type": (file_of({"a": entry(dtype="F99")}), "F99"),
    "type without dtype": (file_of({"a": entry("F4", (16,))}), "F4, which Stretto has no dtype"),
    "twice": (
        file_of(b'{"a":%s,"a":%s}' % ((json.dumps(entry()).encode(),) * 2)),
        "its header has two entries 'a'",
    ),
    "twice in one": (
        file_of(b'{"a":{"dtype":"I32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}'),
        "damaged",
    ),
    "metadata twice": (
        file_of(b'{"__metadata__":{"a":"1","a":"2"}}', b""),
        "its header has two entries 'a'",
    ),
    "NaN": (file_of(b'{"a":{"dtype":"F32","shape":[NaN],"data_offsets":[0,8]}}'), "invalid JSON"),
    "not a number": (file_of({"a": entry(shape=(2.5,))}), "invalid JSON"),
    "beyond the end": (file_of({"a": entry(shape=(4,), offsets=(0, 16))}), "not fully covered"),
    "far beyond": (file_of({"a": entry(offsets=(1 << 60, (1 << 60) + 8))}), "invalid offset"),
    "header of 2^60": (struct.pack("<Q", 1 << 60) + b"{}" * 50, "takes 1152921504606846976"),
    "many axes": (file_of({"a": entry(shape=(2, *[1] * 70))}), "which no array can be"),
    "long beside empty": (
        file_of({"a": entry(shape=(0, 1 << 62), offsets=(0, 0))}, b""),
        "which no array can be",
    ),
    "extra bytes": (file_of({"a": entry()}, b"\0" * 9), "not fully covered"),
    "missing bytes": (file_of({"a": entry()}, b"\0" * 7), "not fully covered"),
    "metadata": (file_of({"__metadata__": {"a": 1}}, b""), "invalid JSON"),
    "description": (file_of({"__metadata__": {"stretto": "{"}}, b""), "description of the tree"),
    "booleans": (file_of({"a": entry("BOOL", (8,))}, b"\1" * 7 + b"\2"), "neither 0 nor 1"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_files_are_refused_in_words(path, case):
    data, words = DAMAGED[case]
    path.write_bytes(data)
    with pytest.raises(ValueError, match=words) as caught:
        st.load(path)
    of_elements = ("booleans", "many axes", "long beside empty")
    if case not in (*of_elements, "type without dtype", "description"):
        assert str(caught.value).startswith(f"load: {path}: it")
    if case not in of_elements:
        with pytest.raises(ValueError, match=words):
            st.files.load_header(path)


def test_every_truncation_is_refused(path):
    st.save(path, DATA)
    whole = path.read_bytes()
    for end in [*range(0, len(whole), 7), len(whole) - 1]:
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match=r"model.safetensors: "):
            st.load(path)


def test_changed_bytes_never_do_worse_than_an_error(path):
    """Any byte of the header changed: an error in words, or a tree of other names or values."""
    st.save(path, {"w": [snp.ones(2), 3], "b": np.ones(2), "small": snp.ones(2, snp.int4)})
    whole = path.read_bytes()
    length = 8 + int.from_bytes(whole[:8], "little")
    rng = np.random.default_rng(0)
    for place in range(length):
        changed = bytearray(whole)
        changed[place] = rng.integers(0, 256)
        path.write_bytes(changed)
        try:
            st.load(path)
        except ValueError as error:
            assert str(path) in str(error)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing.safetensors"):
        st.load(tmp_path / "nothing.safetensors")
    with pytest.raises(IsADirectoryError):
        st.load(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is no directory .*none"):
        st.save(tmp_path / "none" / "x.safetensors", 1)


def test_no_memory_is_asked_for_that_the_file_has_not(path):
    """Whatever a header says, of a length, an offset or a shape."""
    huge = [
        struct.pack("<Q", 99_999_999) + b"{}",
        file_of({"a": entry(shape=(1 << 40,), offsets=(0, 1 << 42))}),
        file_of({"__metadata__": {"stretto": "[" * 100_000}}, b""),
    ]
    for data in huge:
        path.write_bytes(data)
        tracemalloc.start()
        with pytest.raises(ValueError, match=r"model\.safetensors: "):
            st.load(path)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 10 << 20


@pytest.mark.parametrize(
    "said",
    [
        {"version": 1, "tree": {"dict": [["a", "leaf"], ["a", "leaf"]]}, "kinds": {}, "dtypes": {}},
        {"version": 1, "tree": {"list": ["leaf"] * 3}, "kinds": {}, "dtypes": {}},
        {"version": 1, "tree": "leaf", "kinds": {"a": "int"}, "dtypes": {"a": "complex128"}},
        {"version": float("nan"), "tree": None, "kinds": {}, "dtypes": {}},
        {"version": 1, "tree": {"dict": 3}, "kinds": {}, "dtypes": {}},
        {"version": 1, "tree": {"dict": [[[], "leaf"]]}, "kinds": {}, "dtypes": {}},
    ],
)
def test_descriptions_that_nobody_wrote(path, said):
    words = {"stretto": json.dumps(said)}
    path.write_bytes(file_of({"__metadata__": words, "a": entry()}))
    with pytest.raises(ValueError, match=r"load: .*model\.safetensors: its description"):
        st.load(path)


def test_python_numbers_come_back_in_full(path):
    numbers = {"x": 1e-8, "y": 1 + 1e-15, "n": 7, "z": 1 + 1e-12j, "flag": True, "s": [0.1]}
    st.save(path, numbers)
    for found in (st.load(path), st.load(path, like=numbers)):
        assert found == numbers
        assert [type(v) for v in st.tree.leaves(found)] == [
            type(v) for v in st.tree.leaves(numbers)
        ]
