"""Arrays on devices on their way to a file: in the order of C, and never as a whole."""

import tracemalloc

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P
from stretto.files import file_elements
from stretto.files.file_elements import pieces_of, stored
from stretto.sharding import NamedSharding

pytestmark = pytest.mark.devices

SPECS = [P(), P("x"), P(None, "y"), P("y", "x"), P(("x", "y")), P(None, ("y", "x"))]
DTYPES = ["bool", "int4", "int8", "bfloat16", "float32", "complex64", "complex128"]


def on(x, spec):
    return st.device_put(x, NamedSharding(st.make_mesh((2, 4), ("x", "y")), spec))


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_stored_is_what_the_whole_array_is_stored_as(dtype, spec):
    host = (np.arange(128).reshape(16, 8) % 3).astype(getattr(ml_dtypes, dtype, dtype))
    with st.enable_x64():
        x = on(snp.array(host), spec)
        whole, split = stored(snp.array(host), "x", "save"), stored(x, "x", "save")
    assert split[1:] == whole[1:]
    assert split.array.dtype == whole.array.dtype and split.array.shape == whole.array.shape
    assert (split.array.nbytes, split.array.itemsize) == (whole.array.nbytes, whole.array.itemsize)
    assert b"".join(pieces_of(split.array)) == b"".join(pieces_of(whole.array))


@pytest.mark.parametrize("shape", [(), (0, 8), (8, 0)], ids=str)
def test_scalars_and_nothing(shape):
    x = on(np.ones(shape, np.float32), P("x") if shape else P())
    assert b"".join(pieces_of(stored(x, "x", "save").array)) == np.ones(shape, "f4").tobytes()


def test_a_few_rows_at_a_time(monkeypatch):
    monkeypatch.setattr(file_elements, "_PIECE", 64)
    host = np.arange(128, dtype=np.float32).reshape(16, 8)
    pieces = list(pieces_of(stored(on(host, P("x", "y")), "x", "save").array))
    assert [len(piece) for piece in pieces] == [64] * 8
    assert b"".join(pieces) == host.tobytes()


def test_a_file_is_the_same_however_arrays_are_split(tmp_path):
    host = np.arange(128, dtype=np.float32).reshape(16, 8)
    files = []
    for x in (snp.array(host), *[on(host, spec) for spec in SPECS]):
        st.save(tmp_path / "x", {"w": x, "n": 3})
        files.append((tmp_path / "x").read_bytes())
    assert len(set(files)) == 1


def test_no_array_is_put_together(tmp_path, monkeypatch):
    monkeypatch.setattr(file_elements, "_PIECE", 1 << 18)
    x = on(np.ones((1 << 10, 1 << 12), np.float32), P("x", "y"))  # 16 MiB
    st.save(tmp_path / "x", x)  # what is loaded once
    tracemalloc.start()
    st.save(tmp_path / "x", [x, x])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1 << 21
    np.testing.assert_array_equal(st.load(tmp_path / "x")[1], x)


def test_nothing_is_kept():
    x = on(np.ones((16, 8), np.float32), P("x"))
    for piece in pieces_of(stored(x, "x", "save").array):
        assert len(piece)
    assert x._host is None


def test_each_part_is_written_once():
    host = np.arange(128, dtype=np.float32).reshape(16, 8)
    of_process = lambda device: device.id // 4
    for spec, counts in [(P("y"), (4, 0)), (P("x"), (1, 1)), (P("y", "x"), (4, 4)), (P(), (1, 0))]:
        array = stored(on(host, spec), "x", "save").array
        parts = [array.parts(process, of_process) for process in (0, 1)]
        assert tuple(map(len, parts)) == counts
        made = np.zeros_like(host)
        for part in [*parts[0], *parts[1]]:
            assert part.shape == array.part_shape and part.itemsize == 4
            (data,) = part.pieces()
            assert data.shape == part.shape and data.nbytes == part.nbytes
            made[tuple(slice(i, i + n) for i, n in zip(part.start, part.shape, strict=True))] = data
        np.testing.assert_array_equal(made, host)


def test_donated_arrays_are_refused():
    x = on(np.ones((16, 8), np.float32), P("x"))
    x.delete()
    with pytest.raises(st.errors.DonatedArrayError):
        stored(x, "x", "save")
