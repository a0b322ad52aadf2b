"""One ``load`` for both kinds of files: told apart by how they begin, and used alike."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.export.container import Container, Node, to_bytes
from stretto.export.flatbuffers import Number, Record, written
from stretto.files.names import Damaged
from tests.export.exchange import FILES, NAMES

X = np.arange(3, dtype=np.float32)


def fun(p, key):
    return {"y": p["w"] * 2 + st.random.normal(key, (3,)), "rest": [snp.sum(p["w"]), p["n"] + 1]}


P = {"w": X, "n": np.int32(7)}


@pytest.mark.parametrize("make", [st.export.program, st.export.stablehlo])
def test_what_either_kind_can_do(make, tmp_path):
    made = make(fun, P, st.random.key(0))
    made.save(tmp_path / "made")
    loaded = st.export.load(tmp_path / "made")
    assert type(loaded) is type(made) and loaded.__name__ == "fun"
    assert loaded.inputs == made.inputs and loaded.outputs == made.outputs
    assert [*loaded.outputs] == ["rest[0]", "rest[1]", "y"]
    assert [t.shape for t in loaded.inputs.values()] == [(), (3,), (2,)]
    key = st.random.key(5)
    want = fun({"w": snp.asarray(X), "n": 7}, key)
    np.testing.assert_allclose(loaded(P, key)["y"], want["y"], rtol=1e-6)
    sum, n, y = loaded.flat([np.int32(7), X, st.random.key_data(key)])
    assert (float(sum), int(n)) == (3.0, 8)
    np.testing.assert_allclose(y, want["y"], rtol=1e-6)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "made").read_bytes()


def test_names_of_stablehlo():
    file = st.export.stablehlo(fun, P, st.random.key(0))
    assert [*file.inputs] == ["args[0]['n']", "args[0]['w']", "args[1].words"]
    state = st.export.stablehlo(lambda p, x: ({"w": p["w"] + x}, st.random.key(0)), {"w": X}, X[0])
    assert [*state.outputs] == ["new_args[0]['w']", "out[1].words"]
    by_name = st.export.load(FILES / "by_name.jax")
    assert {n: t.shape for n, t in by_name.inputs.items()} == {"args[0]": (2,), "kwargs['y']": (2,)}
    assert [*by_name.outputs] == ["out"]


@pytest.mark.parametrize("name", NAMES)
def test_no_file_of_jax_begins_like_an_artifact(name):
    assert (FILES / f"{name}.jax").read_bytes()[4:9] != b"\0\0\0\0{"


def test_bytes_are_those_of_stablehlo(tmp_path):
    content = st.export.stablehlo(snp.sin, X).serialize()
    for given in (content, bytearray(content), memoryview(content)):
        np.testing.assert_allclose(st.export.load(given)(X), np.sin(X), rtol=1e-6)
    st.export.program(snp.sin, X).save(tmp_path / "artifact")
    with pytest.raises(ValueError, match="write them into a file, and load that"):
        st.export.load((tmp_path / "artifact").read_bytes())


OTHERS = {
    "empty": b"",
    "short": b"\0\0\0\0\0\0\0\0",
    "text": b"no such file" * 9,
    "array": b"\x93NUMPY\x01\0v\0{'descr': '<f4'}",
    "zip": b"PK\x03\x04" + bytes(90),
    "another table": written(Record(Number("H", 3), "name", [Record(Number("b", 1))])),
    "a module of bytes": to_bytes(
        Container("f", Node("tuple"), (), Node("tuple"), (), ("cpu",), b"MZ", ())
    ),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_what_is_neither_is_refused(kind, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(OTHERS[kind])
    for source, where in ((path, f"export.load: {path}: "), (OTHERS[kind], "export.load: ")):
        with pytest.raises(Damaged) as caught:
            st.export.load(source)
        assert str(caught.value).startswith(f"{where}it is neither an artifact, as Artifact.save ")


def test_what_is_truncated_is_said_to_be(tmp_path):
    path = tmp_path / "artifact"
    st.export.program(snp.sin, X).save(path)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(Damaged, match=r"^export\.load: .*: it is truncated, or not a safetensors"):
        st.export.load(path)
    content = (FILES / "sine_and_sum.jax").read_bytes()
    with pytest.raises(Damaged, match=r"^export\.load: "):
        st.export.load(content[:1000])


def test_what_is_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        st.export.load(tmp_path / "none")
    with pytest.raises(OSError, match="a folder"):
        st.export.load(tmp_path)
    with pytest.raises(TypeError, match=r"export\.load: the path must be a string"):
        st.export.load(3)
    with pytest.raises(ValueError, match="the path is empty"):
        st.export.load("")
