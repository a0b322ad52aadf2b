"""Files written whole or not at all, and what is no plain file left alone."""

import errno
import fcntl
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

import pytest

from stretto._engine.core import files, system
from stretto._engine.core.caches import room
from tests.interruptions import interrupted, lines_of

LEFT = ".stretto-0123456789abcdef"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file"


@pytest.fixture(autouse=True)
def looks_at_once(monkeypatch):
    monkeypatch.setattr(files, "_SECOND", 0.0)


def put(path, content=b"new", **how):
    files.write_whole(path, lambda file: file.write(content), "save", **how)


def made_socket(path):
    bound = socket.socket(socket.AF_UNIX)
    before = os.getcwd()
    os.chdir(path.parent)  # the name of a socket must be short
    try:
        bound.bind(path.name)
    finally:
        os.chdir(before)
        bound.close()


def made_device(path):
    os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))


KINDS = {"a folder": os.mkdir, "a FIFO": os.mkfifo, "a socket": made_socket}
if os.geteuid() == 0:
    KINDS["a character device"] = made_device


@pytest.mark.parametrize("durable", [True, False])
def test_whole_or_as_it_was(path, durable):
    put(path, b"first", durable=durable)
    assert path.read_bytes() == b"first"

    def fail(file):
        file.write(b"half")
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        files.write_whole(path, fail, "save", durable=durable)
    assert path.read_bytes() == b"first" and os.listdir(path.parent) == ["file"]
    put(path, b"second", durable=durable)
    assert path.read_bytes() == b"second" and os.listdir(path.parent) == ["file"]


@pytest.mark.parametrize("durable", [True, False])
def test_the_folder_is_written_out_where_that_is_asked_for(path, monkeypatch, durable):
    flushed = []
    monkeypatch.setattr(files.system, "flush_folder", flushed.append)
    put(path, durable=durable)
    assert flushed == [str(path.parent)] * durable


# What is not written to


@pytest.mark.parametrize("linked", [False, True], ids=["itself", "by a link"])
@pytest.mark.parametrize("kind", KINDS)
def test_only_plain_files_are_replaced(path, kind, linked):
    KINDS[kind](path)
    before = os.lstat(path)
    given = path
    if linked:
        given = path.with_name("link")
        given.symlink_to(path)
    names = sorted(os.listdir(path.parent))
    with pytest.raises(OSError, match=f"^.*save: {given} is {kind}.* must be a regular file"):
        put(given)
    with pytest.raises(OSError, match=f"load: {given} is {kind}.* must be a regular file"):
        files.open_regular(given, "load")
    assert files.read_small(str(path), 100) is None
    now = os.lstat(path)
    assert (now.st_ino, now.st_mode, now.st_rdev) == (before.st_ino, before.st_mode, before.st_rdev)
    assert sorted(os.listdir(path.parent)) == names


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ("", ValueError, "save: the path is empty; name a file"),
        (None, TypeError, "save: the path must be a string or an os.PathLike, got NoneType"),
        (3, TypeError, "save: the path must be a string or an os.PathLike, got int"),
        (b"x", TypeError, r"save: the path must be text, got the bytes b'x'; use os.fsdecode"),
        ("a\0b", ValueError, "save: the path .* has a null character"),
        ("new/", IsADirectoryError, "save: new/ names a folder, not a file"),
        (".", IsADirectoryError, "save: . is a folder"),
        ("none/x", FileNotFoundError, "save: none/x: there is no directory .*none"),
        ("plain/x", NotADirectoryError, "save: plain/x could not be written: Not a directory"),
        ("x" * 300, OSError, "could not be written: File name too long"),
        ("circle", OSError, "save: circle could not be written: Too many levels of symbolic"),
        ("astray", FileNotFoundError, "save: astray: there is no directory .*none"),
    ],
    ids=lambda x: repr(x)[:12] if isinstance(x, (str, bytes, int, type(None))) else "",
)
def test_no_path_of_a_file(tmp_path, monkeypatch, given, error, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain").write_bytes(b"")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "astray").symlink_to(os.path.join("none", "x"))
    before = sorted(os.listdir())
    with pytest.raises(error, match=words):
        put(given)
    assert sorted(os.listdir()) == before


def test_links_are_written_through(path):
    put(path, b"old")
    link, other, astray = (path.with_name(n) for n in ("link", "other", "astray"))
    link.symlink_to("file")
    other.symlink_to(link)
    astray.symlink_to("later")  # to nothing, yet
    put(other)
    assert path.read_bytes() == b"new" and link.is_symlink() and other.is_symlink()
    put(astray)
    assert astray.is_symlink() and path.with_name("later").read_bytes() == b"new"


def test_permissions(path):
    usual = path.with_name("usual")
    usual.write_bytes(b"")
    put(path)
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)
    for mode in (0o600, 0o644, 0o444):
        path.chmod(mode)
        files.write_whole(path, lambda f: f.write(b"%o" % os.fstat(f.fileno()).st_mode), "save")
        assert stat.S_IMODE(path.stat().st_mode) == mode
        meanwhile = int(path.read_bytes(), 8)
        assert stat.S_IMODE(meanwhile) == mode | 0o600  # nobody else reads it


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES], ids=errno.errorcode.get)
def test_a_folder_that_can_only_be_read(path, monkeypatch, code):
    put(path, b"old")

    def refuse(*_, **__):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files, "open", refuse, raising=False)
    with pytest.raises(OSError, match=f"save: {path} could not be written: ") as caught:
        put(path)
    assert caught.value.errno == code and path.read_bytes() == b"old"


# A full disk


@pytest.mark.parametrize("at", ["write", "fsync", "replace"])
def test_a_full_disk(path, monkeypatch, at):
    put(path, b"old")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if at != "write":
        monkeypatch.setattr(os, at, full)
    with pytest.raises(OSError, match=f"save: {path} could not be written: No space") as caught:
        files.write_whole(path, full if at == "write" else lambda f: f.write(b"x"), "save")
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == b"old" and os.listdir(path.parent) == ["file"]


LIMITED = """
import resource, sys
from stretto._engine.core import files, system
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
content = bytes(int(sys.argv[2]))
try:
    files.write_whole(sys.argv[1], lambda file: file.write(content), "save")
except OSError as error:
    print(error.errno, error)
"""


@pytest.mark.parametrize("size", [(1 << 16) + 1, 1 << 20])
def test_a_disk_that_has_no_more_room(path, size):
    """Of the system, while it is written and, by a byte in a buffer, when it is closed."""
    put(path, b"old")
    command = [sys.executable, "-c", LIMITED, path, str(size)]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said.stdout.startswith(f"{errno.EFBIG} ") and "File too large" in said.stdout
    assert not said.stderr
    assert path.read_bytes() == b"old" and os.listdir(path.parent) == ["file"]


# Interruptions


@pytest.mark.parametrize("there", [False, True], ids=["new", "old"])
def test_an_interruption_at_any_line(path, there):
    """The old file is whole or the new one is, nothing else is left, and no lock is held."""
    (path.parent / "apart").mkdir()
    other = path.parent / "apart" / LEFT
    # Python ignores what is raised in a callback of its collector, which hypothesis has.
    everywhere = lambda name: "interruptions" not in name and "hypothesis" not in name
    folder = sorted(["apart", "file"])
    outcomes = set()

    def before():
        if there:
            path.write_bytes(b"old")
        elif path.exists():
            path.unlink()

    before()
    act = lambda: put(path, durable=there)
    count = lines_of(act, everywhere)
    assert count > 50
    for number in range(count):
        before()
        assert interrupted(act, everywhere, number)
        found = path.read_bytes() if path.exists() else None
        assert found in ((b"old", b"new") if there else (None, b"new"))
        outcomes.add(found)
        assert [n for n in sorted(os.listdir(path.parent)) if n not in folder] == [], number
        assert not other.exists()
    assert len(outcomes) == 2
    put(path, b"after")
    assert path.read_bytes() == b"after"


def test_an_interruption_while_leftovers_are_removed(path):
    # Python ignores what is raised in a callback of its collector, which hypothesis has.
    everywhere = lambda name: "interruptions" not in name and "hypothesis" not in name
    left = path.with_name(LEFT)
    left.write_bytes(b"half")
    count = lines_of(lambda: files.remove_abandoned(str(path.parent)), everywhere)
    for number in range(count):
        left.write_bytes(b"half")
        assert interrupted(lambda: files.remove_abandoned(str(path.parent)), everywhere, number)
        put(path)  # nobody holds its lock
        assert os.listdir(path.parent) == ["file"], number


# Writers that were killed, and those that are not

WRITER = """
import sys, time
from stretto._engine.core import files, system
def write(file):
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    sys.stdin.readline()
    file.write(b" and half")
files.write_whole(sys.argv[1], write, "save")
"""


def begun(path):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", WRITER, path], **pipes)
    assert process.stdout.readline() == b"writing\n"
    return process


def ours(folder):
    return [name for name in os.listdir(folder) if re.fullmatch(r"\.stretto-[0-9a-f]{16}", name)]


def test_what_killed_writers_left_goes_and_what_is_being_written_stays(path):
    killed, living = begun(path), begun(path)
    assert len(ours(path.parent)) == 2
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    put(path.with_name("other"))
    assert len(ours(path.parent)) == 1
    past = time.time() - 1e6  # however old it is
    os.utime(path.with_name(ours(path.parent)[0]), (past, past))
    put(path.with_name("other"))
    living.communicate(b"\n")
    assert living.returncode == 0 and path.read_bytes() == b"half and half"
    assert sorted(os.listdir(path.parent)) == ["file", "other"]
    killed.stdin.close(), killed.stdout.close()


def test_what_another_thread_writes_stays(path):
    going, written = threading.Event(), threading.Event()

    def slowly(file):
        file.write(b"half")
        going.set()
        assert written.wait(10)
        file.write(b" and half")

    thread = threading.Thread(target=files.write_whole, args=(path, slowly, "save"))
    thread.start()
    assert going.wait(10)
    put(path.with_name("other"))
    assert len(ours(path.parent)) == 1
    written.set()
    thread.join()
    assert path.read_bytes() == b"half and half" and not ours(path.parent)


def test_one_that_is_removed_before_it_is_locked_begins_anew(path, monkeypatch):
    lock, made = system.lock, []

    def late(file):
        if len(made) < 2:
            made.append(file.name)
            os.unlink(file.name)
        lock(file)

    monkeypatch.setattr(system, "lock", late)
    put(path)
    assert len(made) == 2 and path.read_bytes() == b"new"
    assert os.listdir(path.parent) == ["file"]


def test_without_locks_nothing_of_others_is_removed(path, monkeypatch):
    path.with_name(LEFT).write_bytes(b"half")

    def none(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", none)
        put(path)
        assert sorted(os.listdir(path.parent)) == [LEFT, "file"]
    put(path)
    assert os.listdir(path.parent) == ["file"]


def test_only_our_own_is_removed(path):
    folder = path.parent
    elsewhere = folder / "elsewhere"
    elsewhere.write_bytes(b"kept")
    (folder / ".stretto-notes").write_bytes(b"kept")
    (folder / LEFT.replace("0", "1", 1)).symlink_to(elsewhere)
    os.mkfifo(folder / LEFT.replace("0", "2", 1))
    (folder / LEFT.replace("0", "3", 1)).mkdir()
    before = sorted(os.listdir(folder))
    put(path)
    assert sorted(os.listdir(folder)) == sorted([*before, "file"])
    assert elsewhere.read_bytes() == b"kept"


def test_a_big_folder_is_looked_through_once_a_second(path, monkeypatch):
    monkeypatch.undo()
    assert files._SECOND == 1
    monkeypatch.setattr(files, "_SECOND", 3600.0)
    looks, listdir = [], os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: looks.append(folder) or listdir(folder))
    for _ in range(5):
        put(path)
    assert looks == [str(path.parent)]
    monkeypatch.setattr(files, "room", lambda table: room(table, 1))
    for name in ("one", "other"):
        (path.parent / name).mkdir()
        put(path.parent / name / "file")
    assert list(files._last_search) == [str(path.parent / "other")]


def test_a_second_later_it_is_looked_through_again(path, monkeypatch):
    monkeypatch.undo()
    looks = []
    monkeypatch.setattr(files, "_last_search", {})
    monkeypatch.setattr(os, "listdir", lambda folder: looks.append(files.time.monotonic()) or [])
    for now in (0.0, 0.5, 1.0, 1.75, 2.0, 2.25):
        monkeypatch.setattr(files.time, "monotonic", lambda now=now: now)
        files.remove_abandoned(str(path.parent))
    assert looks == [0.0, 1.0, 2.0]


# Reading


def test_small_files_are_read(path):
    path.write_bytes(b"12345")
    assert files.read_small(str(path), 5) == b"12345"
    assert files.read_small(str(path), 4) is None
    os.truncate(path, 1 << 40)  # ten times what a disk of tests has, and all of it a hole
    assert files.read_small(str(path), 5) is None
    with pytest.raises(FileNotFoundError):
        files.read_small(str(path.with_name("none")), 5)
    link = path.with_name("link")
    link.symlink_to(path)
    assert files.read_small(str(link), 1 << 50) is None


def test_a_file_that_grows_is_read_no_further(path, monkeypatch):
    path.write_bytes(bytes(100))
    status = os.fstat
    monkeypatch.setattr(os, "fstat", lambda n: status(n) if path.stat().st_size > 100 else grow(n))

    def grow(number):
        found = status(number)
        os.truncate(path, 1 << 30)
        return found

    assert files.read_small(str(path), 200) is None


def test_what_is_put_in_the_place_of_a_file_is_not_waited_for(path, monkeypatch):
    """A FIFO that takes the name between the look and the opening."""
    path.write_bytes(b"plain")
    real = os.stat

    def then_a_pipe(name, **how):
        found = real(name, **how)
        if stat.S_ISREG(found.st_mode):
            os.unlink(name)
            os.mkfifo(name)
        return found

    monkeypatch.setattr(os, "stat", then_a_pipe)
    with pytest.raises(OSError, match="is a FIFO"):
        files.open_regular(path, "load")
