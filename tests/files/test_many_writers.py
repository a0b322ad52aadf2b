"""Trees that several processes write, here threads: one tree, and the old one or the new."""

import os
import shutil
import subprocess
import sys
import threading
import time
import types

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as some

import stretto as st
import stretto.numpy as snp
from stretto import P
from stretto._engine.core import files as core_files
from stretto._engine.core import system
from stretto._engine.xla.device import Device
from stretto.files import file_parts, load_files, many_writers, save_files
from stretto.files.file_parts import folder_of, remove
from stretto.files.many_writers import Group, write_together
from stretto.sharding import NamedSharding
from tests.files.test_placing import counted, over, same, splits, state

pytestmark = pytest.mark.devices


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


class Killed(BaseException):
    """The end of a process."""


def save(path, trees, metadata=None, count=2):
    """Save from so many processes, each with its tree, or all with one; what they raised."""
    barrier, raised = threading.Barrier(count, timeout=60), [None] * count
    own = trees if isinstance(trees, list) else [trees] * count

    def process(index):
        group = Group(index, count, lambda name: barrier.wait(), lambda d: d.id * count // 8)
        try:
            write_together(str(path), *save_files._parts(own[index], metadata), group)
        except BaseException as error:
            raised[index] = error
            if not isinstance(error, Exception):
                barrier.abort()  # the others are ended, too

    threads = [threading.Thread(target=process, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def saved(path, tree, metadata=None, count=2):
    assert save(path, tree, metadata, count) == [None] * count


def data_files(path):
    return sorted(os.path.join(folder_of(path), name) for name in os.listdir(folder_of(path)))


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_what_was_saved_comes_back(path, count):
    tree = state()
    saved(path, tree, {"note": "ü"}, count)
    same(st.load(path), tree)
    same(st.load(path, like=tree), tree)
    with_split = st.load(path, sharding=lambda name, x: over(4, P(None, "x")) if x.ndim == 2 and
                         x.shape[1] % 4 == 0 else None)  # fmt: skip
    same(with_split, tree)
    header = st.files.load_header(path)
    assert header.metadata == {"note": "ü"}
    assert header.arrays["narrow"] == st.ShapeDtypeStruct((16, 32), ml_dtypes.bfloat16)
    assert len(data_files(path)) == count


def test_each_part_is_written_once_and_others_read_it(path):
    host = np.arange(1 << 14, dtype=np.float32).reshape(128, 128)
    copies = NamedSharding(st.make_mesh((2, 4), ("x", "y")), P("x"))
    saved(path, {"w": st.device_put(host, copies), "all": st.device_put(host, over(8, P()))})
    sizes = [os.path.getsize(name) for name in data_files(path)]
    assert sum(sizes) < 2 * host.nbytes + 4096
    first, second = [safetensors.numpy.load_file(name) for name in data_files(path)]
    np.testing.assert_array_equal(first["w.0"], host[:64])
    np.testing.assert_array_equal(second["w.0"], host[64:])
    np.testing.assert_array_equal(first["all.0"], host)
    assert list(second) == ["w.0"]


def test_a_device_reads_what_it_needs_and_that_is_checked(path, monkeypatch):
    host = np.arange(1 << 22, dtype=np.float32).reshape(8, 1 << 19)  # 2 MiB a row
    saved(path, {"w": st.device_put(host, over(8, P("x")))})
    with open(data_files(path)[0], "r+b") as file:  # the last part of the first process
        file.seek(-1, os.SEEK_END)
        byte = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([byte[0] ^ 1]))
    reads = counted(monkeypatch)
    only = lambda name, x: over(1, P())
    with load_files.open_file(path, "load") as file:
        entry = load_files.contents_of(file).entries["w"]
        reads.clear()
        for row in (0, 1, 2, 4, 7):
            box = slice(row, row + 1), slice(5, 105)
            found = file.read("w", entry, box)
            assert found.tobytes() == host[box].tobytes()
        assert sum(reads) == 5 * file_parts.BLOCK
        box = slice(3, 4), slice(0, 1 << 18)
        assert file.read("w", entry, box).tobytes() == host[box].tobytes()
        with pytest.raises(ValueError, match=r"-00000\.safetensors is damaged: a part of w has"):
            file.read("w", entry, (slice(3, 4), slice(0, 1 << 19)))
    for sharding in (None, only):
        with pytest.raises(
            ValueError, match=r"load: .*-00000\.safetensors is damaged: a part of w"
        ):
            st.load(path, sharding=sharding)


def test_arrays_that_are_not_split_are_those_of_the_first(path):
    trees = [
        {"n": process, "x": snp.full(3, process), "d": st.device_put(process, f"cpu:{process * 4}")}
        for process in (0, 1)
    ]
    saved(path, trees)
    made = st.load(path)
    assert made["n"] == 0 and made["x"].tolist() == [0, 0, 0] and int(made["d"]) == 0


def test_one_file_and_several_replace_each_other(path):
    w = st.device_put(np.arange(8.0), over(8, P("x")))
    saved(path, {"a": w})
    st.save(path, {"b": w})
    assert os.listdir(path.parent) == [path.name]
    np.testing.assert_array_equal(st.load(path)["b"], w)
    saved(path, {"c": w}, count=4)
    saved(path, {"d": w}, count=2)
    assert list(st.load(path)) == ["d"] and len(data_files(path)) == 2
    remove(str(path))
    assert os.listdir(path.parent) == []


def test_by_way_of_a_link(path):
    w = st.device_put(np.arange(8.0), over(8, P("x")))
    link = path.with_name("link")
    link.symlink_to(path)
    saved(link, {"w": w})
    assert link.is_symlink() and sorted(os.listdir(path.parent)) == [
        "link",
        path.name,
        f"{path.name}.parts",
    ]
    np.testing.assert_array_equal(st.load(path)["w"], w)
    np.testing.assert_array_equal(st.load(link)["w"], w)


# What goes wrong


@pytest.mark.parametrize("before", ["nothing", "one", "several"])
def test_an_end_at_any_step_leaves_the_old_tree_or_the_new(path, monkeypatch, before):
    old = {"w": st.device_put(np.arange(8.0), over(8, P("x"))), "n": 1}
    new = {"w": st.device_put(-np.arange(8.0), over(8, P("x"))), "n": 2}
    steps, outcomes, number = [], set(), 0

    def begin():
        if before == "one":
            st.save(path, old)
        if before == "several":
            saved(path, old)

    def patched(name, when):
        real, lock = getattr(os, name), threading.Lock()

        def call(*args, **kwargs):
            with lock:
                steps.append(name)
                here = len(steps) == number + 1
            if here and when == "before":
                raise Killed
            result = real(*args, **kwargs)
            if here:
                raise Killed
            return result

        return call

    while True:
        for when in ("before", "after"):
            begin()
            steps.clear()
            with monkeypatch.context() as patch:
                for name in ("mkdir", "replace", "fsync", "unlink", "rmdir"):
                    patch.setattr(os, name, patched(name, when))
                save(path, new)
                reached = len(steps)
            if before == "nothing" and not path.exists():
                outcomes.add(None)
            else:
                made = st.load(path)
                outcomes.add(made["n"])
                same(made, {1: old, 2: new}[made["n"]])
            saved(path, new)  # the next one finds nothing in its way, and tidies up
            same(st.load(path), new)
            assert len(data_files(path)) == 2
            remove(str(path))
            assert os.listdir(path.parent) == []
        if reached <= number:
            break
        number += 1
    assert number > 10 and outcomes == {2, None if before == "nothing" else 1}


@pytest.mark.parametrize("who", [0, 1])
def test_a_process_that_fails_has_all_fail(path, monkeypatch, who):
    old = {"w": st.device_put(np.arange(8.0), over(8, P("x")))}
    saved(path, old)
    files = data_files(path)
    real = many_writers._write_data

    def full(name, arrays, group):
        if group.index == who:
            raise OSError(28, "No space left on device")
        real(name, arrays, group)

    with monkeypatch.context() as patch:
        patch.setattr(many_writers, "_write_data", full)
        raised = save(path, {"w": st.device_put(np.zeros(8), over(8, P("x")))})
    assert "No space left" in str(raised[who])
    assert "failed, and says why; what was there is still there" in str(raised[1 - who])
    same(st.load(path), old)
    assert data_files(path) == files
    saved(path, old)
    assert len(data_files(path)) == 2 and not set(files) & set(data_files(path))


def test_what_is_written_stays_if_the_folder_cannot_be_flushed(path, monkeypatch):
    """The last step of a rename may fail when it is done."""
    new = {"w": st.device_put(np.arange(8.0), over(8, P("x")))}
    real = system.flush_folder

    def fail(folder):
        if folder == str(path.parent):
            raise OSError(5, "Input/output error")
        real(folder)

    with monkeypatch.context() as patch:
        patch.setattr(system, "flush_folder", fail)
        first, second = save(path, new)
    assert "Input/output error" in str(first) and second is None
    same(st.load(path), new)


def test_where_there_can_be_no_file(path):
    w = {"w": st.device_put(np.zeros(8), over(8, P("x")))}
    first, second = save(path / "model", w)
    assert isinstance(first, OSError) and "there can be no folder" in str(first)
    assert isinstance(second, OSError) and os.listdir(path.parent) == []
    os.mkfifo(path)
    first, second = save(path, w)
    assert "is a FIFO (a named pipe), and must be a regular file" in str(first)
    assert isinstance(second, OSError) and os.listdir(path.parent) == [path.name]


KILLED = """
import itertools, sys
import numpy as np, stretto as st
from stretto.files import save_files
from stretto.files.many_writers import Group, write_together
x = st.sharding.NamedSharding(st.make_mesh((8,), ("x",)), st.P("x"))
for i in itertools.count():
    tree = {n: st.device_put(np.full((8, 1 << 12), i), x) for n in "abc"}
    write_together(sys.argv[1], *save_files._parts(tree, None), Group(0, 1, lambda name: None))
    print(i, flush=True)
"""


def test_a_killed_process_leaves_one_tree(path):
    for wait in (0.0, 0.002, 0.005, 0.011, 0.017):
        with subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE) as run:
            for _ in range(2):
                run.stdout.readline()
            time.sleep(wait)
            run.kill()
        made = st.load(path)
        (value,) = {float(x) for name in "abc" for x in np.unique(made[name])}
        assert value >= 1
    core_files._last_search.clear()
    saved(path, made | {"w": st.device_put(np.zeros(8), over(8, P("x")))})
    assert len(data_files(path)) == 2
    remove(str(path))
    assert os.listdir(path.parent) == []


def test_no_shared_folder(path, monkeypatch):
    monkeypatch.setattr(many_writers, "_announce", lambda *_: None)
    for error in save(path, {"w": st.device_put(np.zeros(8), over(8, P("x")))}):
        assert isinstance(error, FileNotFoundError) and "a file system that they share" in str(
            error
        )
    assert not path.exists()


def test_other_trees_are_refused(path):
    w = st.device_put(np.zeros((8, 8)), over(8, P("x")))
    across = st.device_put(np.zeros((8, 8)), over(8, P(None, "x")))
    for theirs, words in [
        ({"v": w}, "process 1 wrote a part of v of shape"),
        ({"w": across}, r"process 1 wrote a part of w of shape \(8, 1\) at \(0, 4\)"),
        ({"w": w, "v": w}, "process 1 wrote a part of v"),
    ]:
        first, second = save(path, [{"w": w}, theirs])
        with pytest.raises(ValueError, match=words):
            raise first
        assert "another process failed" in str(second) and not path.exists()
    first, _ = save(path, [{"w": w}, {}])
    with pytest.raises(
        ValueError, match=r"no process wrote the part of w at \(4, 0\), and 3 others"
    ):
        raise first


DAMAGE = {
    "missing": (os.unlink, r"its data file .*-00001\.safetensors is missing"),
    "truncated": (lambda name: os.truncate(name, 100), "is truncated: it has 100 bytes, and had"),
    "longer": (lambda name: os.truncate(name, 10_000), "is damaged: it has 10000 bytes, and had"),
    "other": (
        lambda name: _write(name, os.path.getsize(name)),
        r"-00001\.safetensors is damaged: a part of w has other checksums",
    ),
}


def _write(name, size):
    with open(name, "wb") as file:
        file.write(b"x" * size)


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_data(path, case):
    saved(path, {"w": st.device_put(np.zeros(8), over(8, P("x")))})
    damage, words = DAMAGE[case]
    damage(data_files(path)[1])
    for sharding in (None, over(2, P("x"))):
        with pytest.raises(ValueError, match=f"load: {path}: .*{words}"):
            st.load(path, sharding=sharding)
    assert list(st.files.load_header(path).arrays) == ["w"]


def test_a_damaged_index(path):
    saved(path, {"w": st.device_put(np.zeros(8), over(8, P("x")))})
    whole = path.read_bytes()
    for place in range(8, len(whole), 5):
        changed = bytearray(whole)
        changed[place] = ord("7") if changed[place] != ord("7") else ord("8")
        path.write_bytes(changed)
        try:
            made = st.load(path)
        except ValueError as error:
            assert str(path) in str(error)
        else:  # spaces at the end of the header, or a name that nobody reads
            raise AssertionError(changed[place - 20 : place + 20], made)


def test_a_tree_that_is_replaced_while_it_is_read_is_read_again(path, monkeypatch):
    old = {"w": st.device_put(np.arange(8.0), over(8, P("x")))}
    new = {"w": st.device_put(-np.arange(8.0), over(8, P("x")))}
    for method in ("check_data", "_opened"):
        saved(path, old)
        real, calls = getattr(load_files.File, method), []

        def slow(self, *args, real=real, calls=calls):
            calls.append(1)
            if len(calls) == 1:
                saved(path, new)
            return real(self, *args)

        with monkeypatch.context() as patch:
            patch.setattr(load_files.File, method, slow)
            same(st.load(path), new)


def test_a_save_that_is_no_more_is_an_error(path):
    saved(path, {"w": st.device_put(np.zeros(8), over(8, P("x")))})
    shutil.move(path, path.with_name("moved"))
    with pytest.raises(
        ValueError, match="is missing: the file and the folder beside it belong tog"
    ):
        st.load(path.with_name("moved"))


def test_all_processes_are_those_of_the_runtime(monkeypatch):
    group = many_writers.all_processes()
    assert (group.index, group.count) == (0, 1) and group.owner(st.devices()[5]) == 0
    calls = []
    fake = types.SimpleNamespace(sync_global_devices=calls.append)
    monkeypatch.setattr(many_writers, "distributed", fake)
    group.sync("here")
    assert calls == ["here"]


def test_what_is_not_all_here_is_saved_together(path, monkeypatch):
    calls = []
    alone = Group(0, 1, calls.append)
    monkeypatch.setattr(many_writers, "all_processes", lambda: alone)
    everywhere = st.device_put(np.arange(8.0), over(8, P()))
    st.save(path, everywhere)
    assert calls == []
    monkeypatch.setattr(Device, "is_local", property(lambda device: device.id < 4))
    st.save(path, {"n": everywhere})
    assert [name.split(": ")[1] for name in calls] == ["begin", "written", "done"]
    np.testing.assert_array_equal(st.load(path)["n"], np.arange(8.0))
    assert len(data_files(path)) == 1
    split = st.device_put(np.arange(8.0), over(4, P("x")))
    monkeypatch.setattr(Device, "is_local", property(lambda device: device.id < 2))
    with pytest.raises(ValueError, match=r"no process wrote the part of w at \(4,\), and 1 other"):
        st.save(path, {"w": split})
    np.testing.assert_array_equal(st.load(path)["n"], np.arange(8.0))


@settings(max_examples=30)
@given(some.data())
def test_any_split_over_any_processes(tmp_path_factory, data):
    shape = tuple(data.draw(some.lists(some.sampled_from([0, 1, 2, 4, 8, 16]), max_size=3)))
    dtype = data.draw(some.sampled_from(["bool", "int8", "float16", "float32", "complex64"]))
    host = (np.arange(int(np.prod(shape))).reshape(shape) % 100).astype(dtype)
    before, after = data.draw(splits(shape)), data.draw(splits(shape))
    count = data.draw(some.sampled_from([1, 2, 3, 8]))
    path = tmp_path_factory.mktemp("split") / "x"
    saved(path, st.device_put(host, before), count=count)
    for found in (st.load(path, sharding=after), st.load(path)):
        assert found.dtype == host.dtype
        np.testing.assert_array_equal(found, host)
