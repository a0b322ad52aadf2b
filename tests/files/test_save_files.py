"""``save``: what others read, what is refused, and what an interruption leaves."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
import warnings

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

import stretto as st
import stretto.numpy as snp
from stretto._engine.core import files
from stretto.files import file_parts
from tests.interruptions import interrupted, lines_of
from tests.nn.models import Tied


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def test_tied_weights_are_written_once(path):
    model = Tied()
    st.save(path, model)
    theirs = safetensors.numpy.load_file(path)
    assert [name for name in theirs if "weight" in name] == ["a.weight"]
    assert [name for name in theirs if name.startswith("b.")] == []
    assert model.c.weight is model.a.weight


def test_others_read_our_files(path):
    st.save(path, {"layers": [{"w": snp.ones(2)}], "s": snp.ones((), snp.bfloat16), "n": 3})
    theirs = safetensors.numpy.load_file(path)
    assert {k: (v.dtype.name, v.shape) for k, v in theirs.items()} == {
        "layers.0.w": ("float32", (2,)),
        "s": ("bfloat16", ()),
        "n": ("int64", ()),
    }


@pytest.mark.parametrize(
    ("tree", "metadata", "error", "words"),
    [
        ({"name": "adam"}, None, TypeError, r"save: tree\['name'\] must be an array or a number"),
        ({"a": {"b": 1}, "a.b": 1}, None, ValueError, "save: 'a.b' cannot be the name"),
        (1, {"epoch": 7}, TypeError, r"metadata\['epoch'\] is a int; use str"),
        (1, {"stretto": "x"}, ValueError, "where the tree is described"),
    ],
    ids=["text", "names", "metadata", "ours"],
)
def test_what_cannot_be_saved(path, tree, metadata, error, words):
    st.save(path, 1)
    before = path.read_bytes()
    with pytest.raises(error, match=words):
        st.save(path, tree, metadata)
    assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]


def test_traced_values_are_refused(path):
    with pytest.raises(st.errors.TracedValueError, match=r"save: tree\['w'\] is traced"):
        st.jit(lambda x: st.save(path, {"w": x}))(snp.ones(2))
    assert os.listdir(path.parent) == []


def test_elements_are_in_the_order_of_c(path):
    x = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    st.save(path, {"t": x, "every other": x[:, ::2]})
    theirs = safetensors.numpy.load_file(path)
    np.testing.assert_array_equal(theirs["t"], x)
    np.testing.assert_array_equal(theirs["every other"], x[:, ::2])


def test_every_dtype_is_aligned_for_others(path):
    """The format: the elements of the widest types first, and all on their own boundaries."""
    types = ("bool", "int8", "uint16", "bfloat16", "float32", "int64", "complex64", "float16")
    st.save(path, {t: np.ones(3, getattr(ml_dtypes, t, t)) for t in types}, {"é": "ü"})
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    assert length % 8 == 0 and header["__metadata__"]["é"] == "ü"
    found = safetensors.numpy.load_file(path)
    for name in types:
        assert header[name]["data_offsets"][0] % found[name].itemsize == 0
        assert (found[name] == 1).all() and found[name].dtype.name == name


@pytest.mark.parametrize("words", [{"note": "\ud800"}, {"\ud800": "note"}])
def test_half_a_character_is_refused(path, words):
    with pytest.raises(ValueError, match="save: the names and the metadata must be text"):
        st.save(path, 1, words)
    assert os.listdir(path.parent) == []


def test_a_header_longer_than_any_reader_takes(path, monkeypatch):
    monkeypatch.setattr(file_parts, "_LONGEST", 1000)
    with pytest.raises(ValueError, match=r"metadata take .* the format has room for 1000"):
        st.save(path, 1, {"note": "x" * 1000})
    assert os.listdir(path.parent) == []


# What is there and is no file


def members():
    return st.Ensemble(lambda p, x: p["w"] * x, [{"w": 0.0}, {"w": 1.0}])


X = snp.ones(2)
WRITERS = {
    "save": lambda path: st.save(path, X),
    "Ensemble.save": lambda path: members().save(path),
    "numpy.save": lambda path: snp.save(path, X),
    "numpy.savez": lambda path: snp.savez(path, X),
    "numpy.savez_compressed": lambda path: snp.savez_compressed(path, X),
    "tofile": X.tofile,
    "tofile as text": lambda path: X.tofile(path, " "),
}
READERS = {
    "load": st.load,
    "load_header": st.files.load_header,
    "Ensemble.load": lambda path: st.Ensemble.load(path, members()),
    "numpy.load": snp.load,
}


def suffix(writer):
    return {"numpy.save": ".npy"}.get(writer, ".npz" if "savez" in writer else "")


@pytest.mark.parametrize("caller", [*WRITERS, *READERS])
def test_no_function_waits_for_a_pipe_or_replaces_it(tmp_path, caller):
    path = tmp_path / f"pipe{suffix(caller)}"
    os.mkfifo(path)
    with pytest.raises(OSError, match=f"{path} is a FIFO .a named pipe., and must be a regular"):
        {**WRITERS, **READERS}[caller](path)
    assert stat.S_ISFIFO(os.lstat(path).st_mode) and os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("caller", [*WRITERS, *READERS])
def test_what_is_no_path(tmp_path, caller):
    for given, error in [
        (None, TypeError),
        (b"x", TypeError),
        ("", ValueError),
        ("\0", ValueError),
    ]:
        words = "the path must be" if error is TypeError else "the path (is empty|.* has a null)"
        with pytest.raises(error, match=words):
            {**WRITERS, **READERS}[caller](given)
    folder = tmp_path / f"folder{suffix(caller)}"
    folder.mkdir()
    with pytest.raises(IsADirectoryError, match=f"{folder} is a folder"):
        {**WRITERS, **READERS}[caller](folder)
    with pytest.raises(FileNotFoundError):
        {**WRITERS, **READERS}[caller](tmp_path / "none" / "x")


@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, writer):
    path = tmp_path / f"file{suffix(writer)}"
    WRITERS[writer](path)
    before = path.read_bytes()

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=f"{path} could not be written: No space left") as caught:
        WRITERS[writer](path)
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == before and os.listdir(tmp_path) == [path.name]


# Nothing half-written


def test_an_interruption_at_any_line_of_the_writer(path, monkeypatch):
    monkeypatch.setattr(files, "_SECOND", 0.0)  # each save looks for leftovers, as the first
    tree = {"w": np.ones(3), "b": [1, None]}
    where = lambda name: "stretto" in name and "interruptions" not in name
    st.save(path, 1)
    count = lines_of(lambda: st.save(path, tree), where)
    outcomes = set()
    for number in range(0, count):
        st.save(path, 1)
        assert interrupted(lambda: st.save(path, tree), where, number)
        found = st.load(path)
        outcomes.add(found == 1)
        assert found == 1 or found["b"] == [1, None]
        assert os.listdir(path.parent) == [path.name]
    assert outcomes == {True, False}


def test_an_interrupted_load_leaves_no_file_open(path):
    st.save(path, {"w": np.ones(3), "b": [1, None]})
    where = lambda name: "stretto/files" in name
    with warnings.catch_warnings():  # some are closed when the traceback goes, and not before
        warnings.simplefilter("ignore", ResourceWarning)
        for number in range(lines_of(lambda: st.load(path), where)):
            assert interrupted(lambda: st.load(path), where, number)
    assert not [n for n in os.listdir("/proc/self/fd") if leads_to(n) == str(path)]
    assert st.load(path)["b"] == [1, None]


def leads_to(number):
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return ""


def test_a_failed_save_leaves_the_old_file_and_no_other(path, monkeypatch):
    st.save(path, {"w": 1})
    before = path.read_bytes()
    for name in ("fsync", "replace", "fchmod"):
        with monkeypatch.context() as patch:

            def fail(*_):
                raise OSError("no space left")

            patch.setattr(os, name, fail)
            with pytest.raises(OSError, match="no space left"):
                st.save(path, {"w": 2})
        assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]


LIMITED = """
import resource, sys
import numpy as np, stretto as st
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
try:
    st.save(sys.argv[1], {"w": np.ones(1 << 16)})
except OSError as error:
    print(error)
"""


def test_a_file_that_finds_no_room_is_an_error_with_its_path(path):
    st.save(path, {"w": 1})
    before = path.read_bytes()
    said = subprocess.run(
        [sys.executable, "-c", LIMITED, path], capture_output=True, text=True, check=True
    ).stdout
    assert f"save: {path} could not be written: " in said and "too large" in said
    assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]


def test_permissions_are_usual(path):
    usual = path.with_name("usual")
    usual.write_bytes(b"")
    st.save(path, 1)
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)
    path.chmod(0o640)
    st.save(path, 2)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    link = path.with_name("link")
    link.symlink_to(path)
    st.save(link, 3)
    assert link.is_symlink() and st.load(path) == 3


WRITER = """
import sys, stretto as st, numpy as np
i = 0
while True:
    st.save(sys.argv[1], {"a": np.full(1 << 18, i), "b": np.full(1 << 18, i)})
    print(i, flush=True)
    i += 1
"""


def test_a_kill_leaves_a_whole_file(path):
    """Killed at some moment of saving again and again, the file is one of those saved."""
    for wait in (0.0, 0.003, 0.011):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        first = writer.stdout.readline()
        assert first.strip() == b"0"
        time.sleep(wait)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        made = st.load(path)
        assert (made["a"] == made["b"]).all() and (made["a"] == made["a"][0]).all()


def test_loading_while_others_save(path):
    st.save(path, {"a": np.zeros(1 << 14), "b": np.zeros(1 << 14)})
    stop = threading.Event()

    def write():
        i = 0
        while not stop.is_set():
            i += 1
            st.save(path, {"a": np.full(1 << 14, i), "b": np.full(i % 100, i)})

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(60):
            made = st.load(path)
            assert (made["a"] == made["a"][0]).all()
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert os.listdir(path.parent) == [path.name]
