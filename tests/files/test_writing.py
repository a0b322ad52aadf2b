"""``save``: what others read, what is refused, and what an interruption leaves."""

import os
import signal
import stat
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import safetensors.numpy

import stretto as st
import stretto.numpy as snp


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


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


# Nothing half-written


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
