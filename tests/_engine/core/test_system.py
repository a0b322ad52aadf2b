"""What systems differ in, with the parts that some lack taken away one by one."""

import ctypes
import errno
import fcntl
import os
import pathlib
import re
import resource
import signal
import stat
import subprocess
import sys
import time
import types

import pytest

from stretto._engine.core import files, system
from stretto._engine.xla import handshake, store

KEY, LIMIT = "5a" * 32, 1 << 20


def without(monkeypatch, *names):
    """Have the standard library none of these modules."""
    real = system.module
    monkeypatch.setattr(system, "module", lambda name: None if name in names else real(name))


def test_a_module_that_there_is_and_one_that_there_is_not():
    assert system.module("fcntl") is fcntl and system.module("nothing_of_this_name") is None


def test_a_file_that_is_forgotten_is_still_there(monkeypatch, tmp_path):
    path = tmp_path / "file"
    with path.open("wb", 0) as file:
        file.write(b"data")
        system.flush(file.fileno())
        system.forget(file.fileno())
        monkeypatch.delattr(os, "posix_fadvise", raising=False)
        system.forget(file.fileno())
        told = []
        monkeypatch.setattr(os, "posix_fadvise", lambda *all: told.append(all), raising=False)
        monkeypatch.setattr(os, "POSIX_FADV_DONTNEED", 4, raising=False)
        system.forget(file.fileno())
        assert told == [(file.fileno(), 0, 0, 4)]  # all of it
    assert path.read_bytes() == b"data"
    read, write = os.pipe()
    monkeypatch.undo()
    system.forget(read)  # where the system says that this cannot be
    os.close(read)
    os.close(write)


# Who uses what

SOURCES = pathlib.Path(files.__file__).parents[2]
WORDS = re.compile(
    r"fcntl|import (?:pwd|grp|resource)|/proc/|/sys/fs|geteuid|O_(?:NOFOLLOW|NONBLOCK|DIRECTORY)|"
    r"dir_fd|os\.(?:link|fork|fchmod|waitpid|sched_getaffinity)\b|register_at_fork|prctl|listxattr|"
    r"signal\.SIG(?!INT|TERM|_DFL|nals)|pthread_kill|libstdc|msvcrt|windll|preexec_fn"
)
ALLOWED = {"_engine/core/system.py", "_engine/core/machine.py", "_engine/core/threads.py"}


def test_no_other_module_uses_what_systems_lack():
    found = {
        f"{name}: {match[0]}"
        for path in SOURCES.rglob("*.py")
        if (name := path.relative_to(SOURCES).as_posix()) not in ALLOWED
        for match in WORDS.finditer(path.read_text(encoding="utf-8"))
    }
    assert not sorted(found), "core/system and core/machine are for these"


# Files


@pytest.mark.parametrize("flag", [system._NO_LINK, 0])
def test_links_are_refused(tmp_path, monkeypatch, flag):
    monkeypatch.setattr(system, "_NO_LINK", flag)
    (tmp_path / "file").write_bytes(b"here")
    (tmp_path / "link").symlink_to("file")
    with open(system.open_no_link(str(tmp_path / "file"), os.O_RDONLY), "rb") as file:
        assert file.read() == b"here"
    with pytest.raises(OSError, match="symbolic") as raised:
        system.open_no_link(str(tmp_path / "link"), os.O_RDONLY)
    assert raised.value.errno == errno.ELOOP
    made = system.open_no_link(str(tmp_path / "new"), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.close(made)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600


def test_locks(tmp_path):
    path = tmp_path / "file"
    with open(path, "xb") as first, open(path, "rb") as second:
        system.lock(first)
        assert not system.take_over(second)
        first.close()
        assert system.take_over(second)


def test_without_locks_what_is_old_counts_as_left_behind(tmp_path, monkeypatch):
    without(monkeypatch, "fcntl")
    ages = {f".stretto-{'0' * 16}": 3620, f".stretto-{'1' * 16}": 3580}  # seconds: about an hour
    for name, age in ages.items():
        (tmp_path / name).write_bytes(b"half")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    files.write_whole(str(tmp_path / "file"), lambda file: file.write(b"whole"), "test")
    assert sorted(os.listdir(tmp_path)) == [*ages][1:] + ["file"]


class Held:
    """``os.replace`` and ``os.unlink`` of a system on which files are held by who has them open."""

    def __init__(self, monkeypatch, *others):
        self.others, self.real = list(others), {n: getattr(os, n) for n in ("replace", "unlink")}
        monkeypatch.setattr(system, "KEEPS_OPEN_FILES", True)
        monkeypatch.setattr(system, "_PAUSES", (0.0, 0.0))
        for name in self.real:
            monkeypatch.setattr(
                os, name, lambda *args, name=name, **how: self.call(name, *args, **how)
            )

    def call(self, name, *paths, **how):
        here = {os.path.realpath(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")}
        if here & {os.path.realpath(p) for p in paths} or (self.others and self.others.pop()):
            raise PermissionError(errno.EACCES, "Permission denied", *paths[:1])
        return self.real[name](*paths, **how)


def test_files_that_nobody_can_replace_while_they_are_open(tmp_path, monkeypatch):
    path = tmp_path / "file"
    Held(monkeypatch)
    for text in (b"old", b"new"):
        files.write_whole(str(path), lambda file, text=text: file.write(text), "test")
        assert path.read_bytes() == text

    def fail(file):
        file.write(b"half")
        raise KeyError

    with pytest.raises(KeyError):
        files.write_whole(str(path), fail, "test")
    assert os.listdir(tmp_path) == ["file"] and path.read_bytes() == b"new"
    left = tmp_path / f".stretto-{'0' * 16}"
    left.write_bytes(b"half")
    files._last_search.clear()
    files.remove_abandoned(str(tmp_path))
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_that_others_read_is_waited_for(tmp_path, monkeypatch):
    source, target = tmp_path / "new", tmp_path / "file"
    source.write_bytes(b"new")
    held = Held(monkeypatch, True, True)
    system.replace(str(source), str(target))
    assert target.read_bytes() == b"new" and held.others == []
    source.write_bytes(b"newer")
    held.others = [True] * 9
    with pytest.raises(PermissionError):
        system.replace(str(source), str(target))
    assert len(held.others) == 6
    with pytest.raises(OSError, match=r"test: .*file could not be written: Permission denied"):
        files.write_whole(str(target), lambda file: file.write(b"newer"), "test")


def test_how_long_a_file_that_others_read_is_waited_for(monkeypatch):
    """A second, where it is in the way at all."""
    pauses = []
    monkeypatch.setattr(system.time, "sleep", pauses.append)

    def refused(*paths, **how):
        raise PermissionError(errno.EACCES, "Permission denied", *paths[:1])

    monkeypatch.setattr(os, "replace", refused)
    with pytest.raises(PermissionError):
        system.replace("new", "file")
    assert pauses == []  # that is Windows
    monkeypatch.setattr(system, "KEEPS_OPEN_FILES", True)
    with pytest.raises(PermissionError):
        system.replace("new", "file")
    assert pauses == [0.01, 0.03, 0.1, 0.3, 0.6]


@pytest.mark.parametrize("error", [IsADirectoryError, PermissionError])
def test_a_folder_is_no_file_to_remove(tmp_path, monkeypatch, error):
    def refused(path):
        raise error(errno.EPERM, "Operation not permitted", path)

    for name in ("file", "other"):
        (tmp_path / name).write_bytes(b"")
    system.remove(str(tmp_path / "file"))
    assert os.listdir(tmp_path) == ["other"]
    monkeypatch.setattr(os, "unlink", refused)
    with pytest.raises(IsADirectoryError):
        system.remove(str(tmp_path))
    with pytest.raises(error):
        system.remove(str(tmp_path / "other"))


@pytest.mark.parametrize("has_links", [True, False])
def test_a_name_is_given_once(tmp_path, monkeypatch, has_links):
    if not has_links:
        monkeypatch.delattr(os, "link")
    for content in ("first", "second"):
        (tmp_path / content).write_text(content)
    system.publish(str(tmp_path / "first"), str(tmp_path / "file"))
    with pytest.raises(FileExistsError):
        system.publish(str(tmp_path / "second"), str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "first"
    monkeypatch.setenv("STRETTO_CACHE_DIR", str(tmp_path / "caches"))
    monkeypatch.setattr(files, "_SAFE", set())
    monkeypatch.setattr(files, "check_way", lambda path: None)
    monkeypatch.setattr(handshake, "check_way", lambda path: None)
    assert handshake._users_own() == handshake._users_own()
    assert os.listdir(tmp_path / "caches") == ["job-secret"]


def test_what_is_written_is_on_the_disk(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: done.append("cache or disk"))
    system.flush_folder(str(tmp_path))
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda descriptor, what: done.append(what))
    system.flush_folder(str(tmp_path))

    def unknown(descriptor, what):
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(fcntl, "fcntl", unknown)
    system.flush_folder(str(tmp_path))
    without(monkeypatch, "fcntl")
    system.flush_folder(str(tmp_path))
    monkeypatch.setattr(system, "_IS_FOLDER", 0)
    system.flush_folder(str(tmp_path))
    assert done == ["cache or disk", 51, "cache or disk", "cache or disk"]


# Folders


@pytest.fixture(params=["by descriptor", "by path"])
def folder(request, tmp_path, monkeypatch):
    assert system._BY_DESCRIPTOR
    monkeypatch.setattr(system, "_BY_DESCRIPTOR", request.param == "by descriptor")
    monkeypatch.setattr(store, "check_way", lambda path: None)
    return str(tmp_path / "kept")


def test_what_is_kept_in_a_folder(folder):
    assert store.read(folder, KEY, LIMIT) is None and store.list_kept(folder) == []
    for content in (b"first", b"second"):
        store.write(folder, KEY, content, LIMIT)
        assert store.read(folder, KEY, LIMIT) == content
    assert [kept.name for kept in store.list_kept(folder)] == [f"{KEY}.program"]
    assert len(store.clear(folder)) == 1 and os.listdir(folder) == ["written"]


def test_what_others_may_have_put_there(folder, tmp_path):
    store.write(folder, KEY, b"content", LIMIT)
    path = os.path.join(folder, f"{KEY}.program")
    os.rename(path, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", path)
    with pytest.raises(OSError, match="symbolic"):
        store.read(folder, KEY, LIMIT)
    with pytest.raises(files.Unsafe, match="not a regular file"):
        store.write(folder, KEY, b"content", LIMIT)
    os.symlink(folder, tmp_path / "link")
    (tmp_path / "file").write_bytes(b"")
    for name in ("link", "file"):
        with pytest.raises(OSError, match=r"symbolic|Not a directory"):
            store.list_kept(str(tmp_path / name))
    os.chmod(folder, 0o777)
    with pytest.raises(files.Unsafe, match="can be written by others"):
        store.read(folder, KEY, LIMIT)


def test_only_a_folder_is_opened_as_one(folder, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path)
    at = system.Folder(str(tmp_path))
    assert stat.S_ISDIR(at.open().st_mode) and sorted(at.names()) == ["file", "link"]
    held = at._at
    at.close()
    if held is not None:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(held)
    with pytest.raises(NotADirectoryError):
        system.Folder(str(tmp_path / "file")).open()
    with pytest.raises(OSError, match=r"symbolic|Not a directory"):
        system.Folder(str(tmp_path / "link")).open()


def test_a_file_that_is_open_elsewhere_stays(folder, monkeypatch):
    store.write(folder, KEY, b"content", LIMIT)
    at = system.Folder(folder)
    at.open()
    with monkeypatch.context() as patch:
        held = Held(patch, True)
        assert not at.remove(f"{KEY}.program") and held.others == []
        held.others = [True]
        patch.setattr(system, "KEEPS_OPEN_FILES", False)
        with pytest.raises(PermissionError):
            at.remove(f"{KEY}.program")
    assert at.remove(f"{KEY}.program") and not at.remove(f"{KEY}.program")
    at.close()
    at.close()


# Users


def test_without_users_nobody_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 40)
    path.chmod(0o666)
    with pytest.raises(files.Unsafe, match="can be written by others"):
        files.check_owned(path.stat(), str(path))
    with pytest.raises(OSError, match="others can read or write it"):
        handshake._of_file(str(path))
    monkeypatch.setattr(system, "HAS_USERS", False)
    files.check_owned(path.stat(), str(path))
    files.check_way(str(tmp_path))
    assert handshake._of_file(str(path)) == b"x" * 40
    files.write_whole(str(path), lambda file: file.write(b"new"), "test")
    assert path.read_bytes() == b"new" and system.user() is None


@pytest.mark.parametrize("name", ["pwd", "grp"])
def test_no_group_is_known_to_be_a_users_own(monkeypatch, name):
    without(monkeypatch, name)
    assert not system.is_alone.__wrapped__(os.getgid(), os.getuid())


def test_lists_where_nobody_knows_of_any(tmp_path, monkeypatch):
    assert not system.has_list(str(tmp_path / "nowhere"))
    monkeypatch.delattr(os, "listxattr", raising=False)
    assert not system.has_list(str(tmp_path))


# Processes


def test_limits(monkeypatch):
    set_to = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (256, 1000))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: set_to.append(limits))
    for count in (100, 500, 5000):
        system.allow_descriptors(count)
    assert set_to == [(500, 1000), (1000, 1000)]
    system.allow_descriptors(256)
    assert len(set_to) == 2  # it may have so many already
    infinity = resource.RLIM_INFINITY
    for limits, count in [((256, infinity), 5000), ((infinity, infinity), 5000)]:
        monkeypatch.setattr(resource, "getrlimit", lambda which, limits=limits: limits)
        system.allow_descriptors(count)
    assert set_to[2:] == [(5000, infinity)]
    del set_to[2:]
    without(monkeypatch, "resource")
    system.allow_descriptors(500)
    assert len(set_to) == 2


def test_signals(monkeypatch):
    assert system.ending_signals() == [signal.SIGHUP, signal.SIGTERM]
    monkeypatch.delattr(signal, "SIGHUP")
    assert system.ending_signals() == [signal.SIGTERM]


@pytest.mark.parametrize("forks", [True, False])
def test_processes_apart_from_the_terminal(monkeypatch, forks):
    if not forks:
        monkeypatch.delattr(os, "fork")
    # It sleeps little at a time: a signal that comes just before a sleep is handled after it.
    code = "import os, time\nprint(os.getsid(0), flush=True)\nwhile True: time.sleep(0.02)"
    command = [sys.executable, "-Sc", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, **system.apart()) as process:
        assert process.stdout is not None
        session = int(process.stdout.readline())
        assert (session == process.pid) is forks
        with monkeypatch.context() as patch:
            if not forks:
                patch.delattr(signal, "SIGKILL")
            system.pass_on(process, signal.SIGINT)
        assert process.wait(10) == -(signal.SIGINT if forks else signal.SIGTERM)


def test_children(monkeypatch):
    """Also those of another process group and session."""
    code = "import time; time.sleep(99)  # a-mark-of-ours"
    process = subprocess.Popen([sys.executable, "-Sc", code], start_new_session=True)
    while system.children("a-mark-of-ours") != [process.pid]:
        time.sleep(0.01)
    system.collect(process.pid, kill=False)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.05)
    assert system.children("a-mark-of-ours") == [process.pid]
    monkeypatch.setattr(os.path, "isdir", lambda path: False)
    assert system.children("a-mark-of-ours") == []
    monkeypatch.undo()
    system.collect(process.pid, kill=True)
    assert system.children("a-mark-of-ours") == []
    process.wait()


@pytest.mark.parametrize("error", [TypeError, OSError])
def test_without_a_c_library(monkeypatch, error):
    def none(name):
        raise error

    assert system.c_library() is not None
    monkeypatch.setattr(ctypes, "CDLL", none)
    assert system.c_library() is None
    system.adopt(True)
    system.hold_thread(1)
    system.leave_libraries_alone()


@pytest.mark.parametrize(("age", "is_left"), [(0.0, False), (3600.0, False), (3600.5, True)])
def test_without_locks_a_file_counts_as_left_behind_after_an_hour(
    tmp_path, monkeypatch, age, is_left
):
    path = tmp_path / "file"
    path.write_bytes(b"half")
    os.utime(path, (0, 1000))
    monkeypatch.setattr(system, "module", lambda name: None)
    monkeypatch.setattr(system.time, "time", lambda: 1000 + age)
    with path.open("rb") as file:
        system.lock(file)
        assert system.take_over(file) is is_left


class Library:
    """A C library that notes what it is asked for."""

    pause, _exit = "pause", "_exit"

    def __init__(self, lacks=()):
        self.asked, self.lacks = [], lacks

    def __getattr__(self, name):
        if name in self.lacks:
            raise AttributeError(name)
        return lambda *given: self.asked.append((name, *given))


def test_what_linux_is_told_of_processes(monkeypatch):
    library = Library()
    monkeypatch.setattr(system, "c_library", lambda: library)
    system._end_with_parent()
    system.adopt(True)
    system.adopt(False)
    dies_with_parent, takes_children = 1, 36  # of <linux/prctl.h>
    assert library.asked == [
        ("prctl", dies_with_parent, signal.SIGTERM),
        ("prctl", takes_children, 1, 0, 0, 0),
        ("prctl", takes_children, 0, 0, 0, 0),
    ]
    monkeypatch.setattr(system, "c_library", lambda: Library(lacks=["prctl"]))
    system.adopt(True)


def test_a_thread_is_held_by_a_signal_that_nobody_else_uses(monkeypatch):
    library, sent = Library(), []
    monkeypatch.setattr(system, "c_library", lambda: library)
    monkeypatch.setattr(system.signal, "pthread_kill", lambda *given: sent.append(given))
    system.hold_thread(77)
    last = int(signal.SIGRTMAX)
    assert (library.asked, sent) == ([("signal", last, "pause")], [(77, last)])
    library = Library(lacks=["signal"])
    system.hold_thread(78)
    assert sent == [(77, last)]


def test_libraries_are_left_alone_at_the_end(monkeypatch):
    library, cpp = Library(), Library()
    monkeypatch.setattr(system, "c_library", lambda: library)
    monkeypatch.setattr(system, "ctypes", types.SimpleNamespace(CDLL=lambda name: cpp))
    system.leave_libraries_alone()
    assert cpp.asked == [("_ZSt13set_terminatePFvvE", "pause")]
    assert library.asked == [("fflush", None), ("on_exit", "_exit", None)]
    cpp.lacks = ["_ZSt13set_terminatePFvvE"]  # another one than GNU's
    library.asked.clear()
    system.leave_libraries_alone()
    assert library.asked == [("fflush", None), ("on_exit", "_exit", None)]
