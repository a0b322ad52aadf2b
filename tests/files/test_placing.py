"""``load`` onto devices: the same elements on any number, and only what they need is read."""

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import stretto as st
import stretto.numpy as snp
from stretto import P
from stretto._engine.xla import partitions, sharded
from stretto._engine.xla.device import Device
from stretto.files import load_files
from stretto.sharding import NamedSharding, SingleDeviceSharding

pytestmark = pytest.mark.devices


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def over(count, spec, *shape):
    shape = shape or (count,)
    names = "xyz"[: len(shape)]
    return NamedSharding(st.make_mesh(shape, tuple(names), devices=st.devices()[:count]), spec)


A = np.arange(512, dtype=np.float32).reshape(16, 32)


def state():
    split = over(8, P("x"))
    return {
        "w": st.device_put(A, split),
        "narrow": st.device_put(snp.asarray(A, snp.bfloat16), over(8, P(None, "x"))),
        "flags": st.device_put(A % 3 == 0, split),
        "small": st.device_put(snp.asarray(A % 5, snp.int4), split),
        "scalar": st.device_put(np.float32(2), over(8, P())),
        "empty": st.device_put(np.ones((0, 8), np.float32), split),
        "weak": st.device_put(2.5, over(8, P())),
        "keys": st.device_put(st.random.split(st.random.key(3), 8), split),
        "plain": snp.arange(16),
        "theirs": np.arange(16),
        "step": 7,
        "none": None,
    }


def same(a, b):
    for x, y in zip(st.tree.leaves(a), st.tree.leaves(b), strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()
        assert getattr(x, "weak_type", None) == getattr(y, "weak_type", None)


def test_without_sharding_all_come_back_whole(path):
    tree = state()
    st.save(path, tree)
    made = st.load(path)
    for leaf in st.tree.leaves(made):
        assert isinstance(leaf, int | np.ndarray) or leaf.__class__ is st.Array
    same(made | {"keys": None}, tree | {"keys": None})
    np.testing.assert_array_equal(made["keys"]["words"], st.random.key_data(tree["keys"]))


WHERE = {
    "two": lambda: over(2, P("x")),
    "four": lambda: over(4, P(None, "x")),
    "one": lambda: over(1, P()),
    "other mesh": lambda: over(8, P("y", "x"), 4, 2),
    "both": lambda: over(8, P(("y", "x")), 4, 2),
    "copies": lambda: over(8, P("y"), 4, 2),
    "device": lambda: SingleDeviceSharding(st.devices()[3]),
}


@pytest.mark.parametrize("where", WHERE)
def test_onto_other_devices(path, where):
    tree, target = state(), WHERE[where]()
    st.save(path, tree)
    place = lambda name, x: target if x.shape == (16, 32) else None
    made = st.load(path, tree | {"plain": snp.zeros(16, int)}, sharding=place)
    same(made, tree)
    for name in ("w", "narrow", "flags", "small"):
        assert made[name].sharding == target
    assert made["scalar"].sharding == tree["scalar"].sharding  # as `like` has it
    assert made["plain"].__class__ is st.Array and made["step"] == 7
    words = st.random.key_data
    assert words(made["keys"]).sharding == words(tree["keys"]).sharding


def test_ways_to_say_where(path):
    st.save(path, {"w": snp.ones((8, 2)), "b": {"c": np.ones(8), "n": 3, "f": snp.ones(8)}})
    split = over(4, P("x"))
    made = st.load(path, sharding=split)
    assert made["w"].sharding == made["b"]["c"].sharding == split and made["b"]["n"] == 3
    made = st.load(path, sharding={"w": split, "b": "cpu:2"})
    assert made["w"].sharding == split and made["b"]["c"].device == st.devices()[2]
    made = st.load(path, sharding={"w": None, "b": {"c": st.devices()[0], "n": None, "f": split}})
    assert made["w"].__class__ is made["b"]["c"].__class__ is st.Array
    with st.sharding.set_mesh(split.mesh):
        assert st.load(path, sharding=P("x"))["w"].sharding == split
    asked = []
    st.load(path, sharding=lambda *x: asked.append(x))
    assert ("b.c", st.ShapeDtypeStruct((8,), np.float32)) in asked and len(asked) == 4


def test_what_like_says(path):
    split = over(4, P("x"))
    st.save(path, {"w": snp.ones(8), "n": 3})
    made = st.load(path, {"w": st.device_put(snp.zeros(8), split), "n": 0})
    assert made["w"].sharding == split
    made = st.load(path, {"w": st.ShapeDtypeStruct((8,), np.float32, sharding=split), "n": 0})
    assert made["w"].sharding == split
    made = st.load(path, {"w": snp.zeros(8), "n": st.device_put(np.int32(0), over(4, P()))})
    assert made["n"].sharding == over(4, P()) and int(made["n"]) == 3


@pytest.mark.parametrize(
    ("sharding", "error", "words"),
    [
        (lambda: over(8, P("x")), ValueError, r"load: .*: w, float32\[12,4\], cannot be split ev"),
        (lambda: over(4, P(None, None, "x")), ValueError, r"w, .* has 2 axes, .* entries for 3"),
        (lambda: P("x"), ValueError, "sharding is .* and no mesh is in use"),
        (lambda: "cpu:9", ValueError, "sharding must be None or one of the 8 devices"),
        (lambda: {"v": None}, ValueError, "sharding must be a prefix of the tree"),
        (lambda: 3, TypeError, "sharding must be a sharding, .*; for w it is 3"),
        (lambda: lambda name, x: "x" * 2, ValueError, "must be None or one of the 8 devices"),
    ],
    ids=["uneven", "axes", "no mesh", "device", "prefix", "number", "function"],
)
def test_what_is_refused_before_anything_is_read(path, monkeypatch, sharding, error, words):
    st.save(path, {"w": snp.ones((12, 4))})
    monkeypatch.setattr(load_files.File, "read", None)
    with pytest.raises(error, match=words):
        st.load(path, sharding=sharding())


def test_64_bits(path):
    st.save(path, {"w": np.linspace(0, 1, 8), "z": np.ones(8, complex), "n": np.arange(8)})
    with pytest.warns(UserWarning, match="loses digits of w, of 64 bits"):
        made = st.load(path, sharding=over(4, P("x")))
    assert [made[n].dtype for n in "wzn"] == [np.float32, np.complex64, np.int32]
    with st.enable_x64():
        made = st.load(path, sharding=over(4, P("x")))
        assert [made[n].dtype for n in "wzn"] == [np.float64, np.complex128, np.int64]
        np.testing.assert_array_equal(made["w"], np.linspace(0, 1, 8))


def counted(monkeypatch):
    """Record what is read from here on: the number of bytes of each reading."""
    reads, real = [], load_files.bytes_at

    def count(file, offset, size):
        reads.append(size)
        return real(file, offset, size)

    monkeypatch.setattr(load_files, "bytes_at", count)
    return reads


@pytest.mark.parametrize("spec", [P("x"), P(None, "x"), P()], ids=str)
def test_one_process_of_eight_reads_what_its_device_needs(path, monkeypatch, spec):
    big = np.arange(1 << 20, dtype=np.float32).reshape(8, 1 << 17)
    st.save(path, {"big": big})
    header = int.from_bytes(path.read_bytes()[:8], "little")
    monkeypatch.setattr(Device, "is_local", property(lambda device: device.id == 5))
    monkeypatch.setattr(partitions, "put", lambda parts, type, place: parts)
    monkeypatch.setattr(sharded, "of_parts", lambda type, parts, place: parts)
    reads = counted(monkeypatch)
    ((part,),) = st.load(path, sharding=over(8, spec)).values()
    index = over(8, spec).indices(big.shape)[5]
    np.testing.assert_array_equal(part, big[index])
    assert sum(reads) <= big[index].nbytes + header + 100


def test_copies_are_read_once(path, monkeypatch):
    st.save(path, {"w": A})
    reads = counted(monkeypatch)
    st.load(path, sharding=over(8, P()))
    assert reads.count(A.nbytes) == 1 and sum(reads) < A.nbytes + 1000


def test_no_more_than_one_array_beside_those_on_devices(path):
    trees = {name: np.ones((1 << 8, 1 << 12), np.float32) for name in "abcd"}  # 4 MiB each
    st.save(path, trees)
    st.load(path, sharding=over(8, P("x")))
    tracemalloc.start()
    made = st.load(path, sharding=over(8, P("x")))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 6 << 22  # the parts are memory of NumPy's
    assert made["d"].sharding == over(8, P("x"))


def test_headers_of_what_no_array_can_be(path):
    entry = {"dtype": "F32", "shape": [2, *[1] * 70], "data_offsets": [0, 8]}
    text = json.dumps({"a": entry}).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    with pytest.raises(ValueError, match="which no array can be"):
        st.load(path, sharding=over(2, P("x")))


@some.composite
def splits(draw, shape):
    """A sharding of arrays of this shape over some of eight devices."""
    sizes = draw(some.sampled_from([(1,), (2,), (4,), (8,), (2, 2), (2, 4), (4, 2), (2, 2, 2)]))
    names = list("xyz"[: len(sizes)])
    mesh = st.make_mesh(sizes, tuple(names), devices=st.devices()[: int(np.prod(sizes))])
    parts = []
    for size in shape:
        taken = draw(some.lists(some.sampled_from(names), unique=True)) if names else []
        if size % mesh.size_of(taken):
            taken = []
        names = [name for name in names if name not in taken]
        parts.append(tuple(taken))
    return NamedSharding(mesh, P(*parts))


@settings(max_examples=60)
@given(some.data())
def test_any_split_onto_any_other(tmp_path_factory, data):
    shape = tuple(data.draw(some.lists(some.sampled_from([0, 1, 2, 4, 8, 16]), max_size=3)))
    dtype = data.draw(some.sampled_from(["bool", "int8", "float16", "float32", "complex64"]))
    host = (np.arange(int(np.prod(shape))).reshape(shape) % 100).astype(dtype)
    before, after = data.draw(splits(shape)), data.draw(splits(shape))
    path = tmp_path_factory.mktemp("split") / "x"
    st.save(path, st.device_put(host, before))
    made = st.load(path, sharding=after)
    assert made.sharding == after or made.__class__ is st.Array
    for found in (made, st.load(path)):
        assert found.dtype == host.dtype
        np.testing.assert_array_equal(found, host)
