"""Files that are damaged, foreign, open to others or half written are never read."""

import contextlib
import errno
import hashlib
import os
import signal
import stat
import subprocess
import sys
import time

import pytest

from stretto._engine.core import files
from stretto._engine.xla import store
from tests.interruptions import interrupted, lines_of

KEY = "ab" * 32
CONTENT = b"native code" * 5
LIMIT = 1 << 20


@pytest.fixture
def folder(tmp_path):
    """A folder with one file, of ``KEY``."""
    made = str(tmp_path / "caches" / "programs")
    store.write(made, KEY, CONTENT, LIMIT)
    return made


@pytest.fixture
def path(folder):
    return os.path.join(folder, f"{KEY}.program")


def read(*which):
    return store.read(*which, LIMIT)


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


def put(path, data):
    with open(path, "wb") as file:
        file.write(data)


# Damage


def test_no_beginning_of_a_file_is_read(folder, path):
    whole = bytes_of(path)
    for length in range(len(whole)):
        put(path, whole[:length])
        assert store.read(folder, KEY, LIMIT) is None
    put(path, whole)
    assert store.read(folder, KEY, LIMIT) == CONTENT


def test_no_file_with_a_flipped_bit_is_read(folder, path):
    whole = bytes_of(path)
    for place in range(len(whole)):
        for bit in (place % 8, (place + 4) % 8):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << bit
            put(path, damaged)
            assert store.read(folder, KEY, LIMIT) is None


@pytest.mark.parametrize("more", [b"\0", bytes(4096), CONTENT])
def test_no_file_with_more_at_its_end_is_read(folder, path, more):
    put(path, bytes_of(path) + more)
    assert store.read(folder, KEY, LIMIT) is None


def test_a_damaged_file_is_replaced_by_the_next_write(folder, path):
    put(path, b"damaged")
    store.write(folder, KEY, b"anew", LIMIT)
    assert store.read(folder, KEY, LIMIT) == b"anew"


@pytest.mark.parametrize("size", [LIMIT // 8 + 1, 10 << 30])
def test_what_is_larger_than_the_bound_is_not_read(folder, path, monkeypatch, size):
    """A file of a hole, which takes no space."""
    os.truncate(path, size)
    monkeypatch.setattr(store, "_all_of", lambda *_: pytest.fail("it was read"))
    assert store.read(folder, KEY, LIMIT) is None
    monkeypatch.undo()
    store.write(folder, KEY, b"anew", LIMIT)
    assert store.read(folder, KEY, LIMIT) == b"anew"


def test_a_file_that_grows_is_read_no_further(folder, path, monkeypatch):
    check, read = store._check_file, []

    def grow(status, where):
        check(status, where)
        os.truncate(path, 1 << 30)

    all_of = store._all_of
    monkeypatch.setattr(store, "_check_file", grow)
    monkeypatch.setattr(store, "_all_of", lambda *how: read.append(all_of(*how)) or read[-1])
    assert store.read(folder, KEY, LIMIT) is None
    assert len(read[0]) <= LIMIT // 8


# Other users


@pytest.mark.parametrize("mode", [0o602, 0o620, 0o666, 0o777])
def test_a_file_that_others_can_write(folder, path, mode):
    os.chmod(path, mode)
    with pytest.raises(store.Unsafe, match=f"{path} can be written by others.*remove it"):
        store.read(folder, KEY, LIMIT)
    with pytest.raises(store.Unsafe):
        store.write(folder, KEY, b"anew", LIMIT)
    assert CONTENT in bytes_of(path)


@pytest.mark.parametrize("mode", [0o702, 0o720, 0o770, 0o777, 0o1777])
def test_a_folder_that_others_can_write(folder, mode):
    os.chmod(folder, mode)
    for use in (
        lambda: store.read(folder, KEY, LIMIT),
        lambda: store.write(folder, KEY, b"anew", LIMIT),
        lambda: store.list_kept(folder),
        lambda: store.clear(folder),
    ):
        with pytest.raises(store.Unsafe, match=f"{folder} can be written by others"):
            use()
    os.chmod(folder, 0o755)
    assert store.read(folder, KEY, LIMIT) == CONTENT


def test_a_folder_in_one_that_everybody_can_write(folder):
    above = os.path.dirname(folder)
    files._SAFE.clear()  # as in a process that begins
    os.chmod(above, 0o777)
    with pytest.raises(store.Unsafe, match=f"leads through {above}.*chmod o-w {above}"):
        store.read(folder, KEY, LIMIT)
    with pytest.raises(store.Unsafe, match=f"leads through {above}"):
        store.write(os.path.join(above, "new", "programs"), KEY, b"x", LIMIT)
    assert not os.path.exists(os.path.join(above, "new"))  # before anything is made there
    os.chmod(above, 0o1777)  # as /tmp: there nobody can rename what is others'
    assert store.read(folder, KEY, LIMIT) == CONTENT


def foreign(monkeypatch, is_foreign):
    """Let ``os`` say that another user owns what ``is_foreign`` says, of its status."""

    def claimed(ask):
        def ask_and_claim(*args, **how):
            status = ask(*args, **how)
            if not is_foreign(status):
                return status
            fields = list(status)
            fields[stat.ST_UID] += 1
            return os.stat_result(fields, {"st_mtime": status.st_mtime})

        return ask_and_claim

    monkeypatch.setattr(os, "fstat", claimed(os.fstat))
    monkeypatch.setattr(os, "stat", claimed(os.stat))


def test_a_file_of_another_user(folder, path, monkeypatch):
    with monkeypatch.context() as patch:
        foreign(patch, lambda status: stat.S_ISREG(status.st_mode))
        with pytest.raises(store.Unsafe, match=f"{path} belongs to user .*remove it"):
            store.read(folder, KEY, LIMIT)
        with pytest.raises(store.Unsafe):
            store.write(folder, KEY, b"anew", LIMIT)
    assert store.read(folder, KEY, LIMIT) == CONTENT


def test_a_folder_of_another_user(folder, monkeypatch):
    with monkeypatch.context() as patch:
        foreign(patch, lambda status: stat.S_ISDIR(status.st_mode))
        for use in (read, lambda *which: store.write(*which, b"anew", LIMIT)):
            with pytest.raises(store.Unsafe, match=f"{folder} belongs to user"):
                use(folder, KEY)
    assert store.read(folder, KEY, LIMIT) == CONTENT


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser gives files away")
def test_a_file_really_of_another_user(folder, path):
    os.chown(path, 12345, 12345)
    with pytest.raises(store.Unsafe, match="belongs to user 12345, you are 0"):
        store.read(folder, KEY, LIMIT)
    with pytest.raises(store.Unsafe):
        store.write(folder, KEY, b"anew", LIMIT)
    assert store.clear(folder) == [] and CONTENT in bytes_of(path)


def test_another_effective_user(folder, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(store.Unsafe, match="belongs to user"):
        store.read(folder, KEY, LIMIT)


def test_what_is_checked_is_what_was_opened(folder, path, monkeypatch):
    """A file that is put in the place of the one opened is not read."""
    evil = os.path.join(os.path.dirname(folder), "evil")
    put(evil, b"evil")
    real = os.fstat

    def swap(handle):
        status = real(handle)
        if stat.S_ISREG(status.st_mode) and os.path.exists(evil):
            os.replace(evil, path)
        return status

    monkeypatch.setattr(os, "fstat", swap)
    assert store.read(folder, KEY, LIMIT) == CONTENT
    assert bytes_of(path) == b"evil" and store.read(folder, KEY, LIMIT) is None


# What is not a file


def test_a_link_in_the_place_of_a_file(folder, path):
    elsewhere = os.path.join(os.path.dirname(folder), "elsewhere")
    os.rename(path, elsewhere)
    os.symlink(elsewhere, path)
    with pytest.raises(OSError):
        store.read(folder, KEY, LIMIT)
    with pytest.raises(store.Unsafe, match="is not a regular file"):
        store.write(folder, KEY, b"anew", LIMIT)
    assert CONTENT in bytes_of(elsewhere) and os.path.islink(path)


def test_a_link_in_the_place_of_the_folder(folder):
    elsewhere = f"{folder}-elsewhere"
    os.rename(folder, elsewhere)
    os.symlink(elsewhere, folder)
    for use in (read, lambda *which: store.write(*which, b"anew", LIMIT)):
        with pytest.raises(OSError):
            use(folder, KEY)
    assert store.read(elsewhere, KEY, LIMIT) == CONTENT


def test_a_link_to_the_folder_above_is_followed(folder, tmp_path):
    """As where the home directory lies on another disk."""
    os.symlink(os.path.dirname(folder), tmp_path / "link")
    assert store.read(str(tmp_path / "link" / "programs"), KEY, LIMIT) == CONTENT


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["directory", "pipe"])
def test_no_file_in_the_place_of_a_file(folder, path, make):
    os.remove(path)
    make(path)
    if make is os.mkfifo:
        os.chmod(path, 0o600)
    for use in (read, lambda *which: store.write(*which, b"anew", LIMIT)):
        with pytest.raises(store.Unsafe, match="is not a regular file"):
            use(folder, KEY)
    assert store.list_kept(folder) == []


def test_a_file_in_the_place_of_a_folder(tmp_path):
    put(tmp_path / "caches", b"")
    folder = str(tmp_path / "caches" / "programs")
    for use in (read, lambda *which: store.write(*which, b"anew", LIMIT)):
        with pytest.raises(OSError):
            use(folder, KEY)


# Writing that fails


class Full:
    """A file on a disk that has space for some bytes."""

    def __init__(self, handle, space):
        self.file, self.space = os.fdopen(handle, "wb", closefd=False), space

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def write(self, data):
        self.file.write(data[: self.space])
        self.space -= len(data)
        if self.space < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("space", [0, 40, 100])
def test_a_full_disk(folder, path, monkeypatch, space):
    other = "cd" * 32
    before = sorted(os.listdir(folder))
    with monkeypatch.context() as patch:
        full = lambda handle, how, closefd: Full(handle, space)
        patch.setattr(store, "open", full, raising=False)
        for key in (KEY, other):
            with pytest.raises(OSError, match="No space"):
                store.write(folder, key, b"anew" * 100, LIMIT)
    assert sorted(os.listdir(folder)) == before
    assert store.read(folder, KEY, LIMIT) == CONTENT and store.read(folder, other, LIMIT) is None


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES], ids=errno.errorcode.get)
def test_a_folder_that_can_only_be_read(folder, path, monkeypatch, code):
    past = time.time() - 7200
    os.utime(path, (past, past))
    real = os.open

    def refuse(*args, **how):
        raise OSError(code, os.strerror(code))

    def read_only(name, flags, *args, **how):
        return refuse() if flags & (os.O_WRONLY | os.O_CREAT) else real(name, flags, *args, **how)

    monkeypatch.setattr(os, "open", read_only)
    monkeypatch.setattr(os, "utime", refuse)
    assert store.read(folder, KEY, LIMIT) == CONTENT
    with pytest.raises(OSError):
        store.write(folder, KEY, b"anew", LIMIT)
    assert store.read(folder, KEY, LIMIT) == CONTENT


def test_a_folder_that_cannot_be_made(tmp_path, monkeypatch):
    def refuse(*args, **how):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "mkdir", refuse)
    folder = str(tmp_path / "caches" / "programs")
    assert store.read(folder, KEY, LIMIT) is None
    with pytest.raises(PermissionError):
        store.write(folder, KEY, CONTENT, LIMIT)


# Interruptions


def of_the_store(name):
    return name in (store.__file__, contextlib.__file__)


@pytest.mark.parametrize("sweeping", [False, True])
def test_an_interruption_at_any_line_of_a_write(folder, monkeypatch, sweeping):
    if sweeping:
        monkeypatch.setattr(store, "_PART", 1 << 30)
    write = lambda: store.write(folder, KEY, b"anew", LIMIT)
    count, outcomes = lines_of(write, of_the_store), set()
    for number in range(count):
        store.write(folder, KEY, CONTENT, LIMIT)
        assert interrupted(write, of_the_store, number)
        found = store.read(folder, KEY, LIMIT)
        assert found in (CONTENT, b"anew"), number
        outcomes.add(found)
        assert sorted(os.listdir(folder)) == [f"{KEY}.program", "written"], number
    assert len(outcomes) == 2
    write()
    assert store.read(folder, KEY, LIMIT) == b"anew"


def test_an_interruption_at_any_line_of_a_read(folder):
    look = lambda: store.read(folder, KEY, LIMIT)
    for number in range(lines_of(look, of_the_store)):
        assert interrupted(look, of_the_store, number)
        assert look() == CONTENT


# Other processes, which load the module alone: the package would take half a second each

ALONE = """
import importlib.util, os, signal, sys, types
def loaded(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
for name in ("stretto", "stretto._engine", "stretto._engine.core"):
    sys.modules[name] = types.ModuleType(name)
engine = os.path.dirname(os.path.dirname(sys.argv[1]))
for name in ("system", "caches", "files"):
    loaded(f"stretto._engine.core.{name}", os.path.join(engine, "core", f"{name}.py"))
store = loaded("store", sys.argv[1])
folder, key = sys.argv[2:4]
"""

KILLED = """
def die(*args, **how):
    os.kill(os.getpid(), signal.SIGKILL)
class Dying:
    def __init__(self, handle, how, closefd): self.handle, self.left = handle, int(sys.argv[5])
    def __enter__(self): return self
    def __exit__(self, *error): die()
    def write(self, data):
        os.write(self.handle, data[:self.left])
        self.left -= len(data)
        if self.left < 0: die()
replace = os.replace
point = sys.argv[4]
if point == "noted": store._note = lambda *args: note(*args) or die()
if point == "opened": store.open = die
if point == "writing": store.open = Dying
if point == "written": os.replace = die
if point == "renamed": os.replace = lambda *args, **how: replace(*args, **how) or die()
note = lambda *args: None
store.write(folder, key, b"anew" * 1000, 1 << 20)
"""


def alone(code, *args, **how):
    command = [sys.executable, "-SE", "-c", ALONE + code, store.__file__, *args]
    return subprocess.Popen(command, **how)


@pytest.mark.parametrize("there", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize(
    ("point", "space"),
    [("noted", 0), ("opened", 0), *[("writing", n) for n in (0, 1, 79, 80, 81, 2000, 4080)]]
    + [("written", 0), ("renamed", 0)],
)
def test_a_writer_that_is_killed(tmp_path, there, point, space):
    folder = str(tmp_path / "caches" / "programs")
    before = CONTENT if there else None
    if there:
        store.write(folder, KEY, CONTENT, LIMIT)
    process = alone(KILLED, folder, KEY, point, str(space))
    assert process.wait() == -signal.SIGKILL
    assert store.read(folder, KEY, LIMIT) == (b"anew" * 1000 if point == "renamed" else before)
    names = set(os.listdir(folder)) - {"written", f"{KEY}.program"}
    assert all(name.endswith(".beside") for name in names)
    assert len(names) == (point in ("opened", "writing", "written"))
    store.write(folder, KEY, b"next", LIMIT)
    assert store.read(folder, KEY, LIMIT) == b"next"
    past = time.time() - 4000
    for name in names:
        os.utime(os.path.join(folder, name), (past, past))
    store.clear(folder)
    assert os.listdir(folder) == ["written"]


STORM = """
sys.stdin.read(1)
content = bytes(range(256)) * 80
found = store.read(folder, key, 1 << 30)
if found is None:
    store.write(folder, key, content, 1 << 30)
assert store.read(folder, key, 1 << 30) == content
print(found is None)
"""


def test_fifty_processes_at_once(tmp_path):
    """On one key that nobody has written: all find the same, and one file is there in the end."""
    folder = str(tmp_path / "caches" / "programs")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    processes = [alone(STORM, folder, KEY, **pipes) for _ in range(50)]
    for process in processes:
        process.stdin.write(b"x")
        process.stdin.flush()
    said = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * 50, said
    assert b"True\n" in {out for out, _ in said}
    assert sorted(os.listdir(folder)) == [f"{KEY}.program", "written"]
    digest = hashlib.sha256(store.read(folder, KEY, LIMIT)).hexdigest()
    assert digest == hashlib.sha256(bytes(range(256)) * 80).hexdigest()
