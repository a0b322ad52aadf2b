"""Bytes kept in a folder: written whole, found again, and no more than may be."""

import os
import stat
import threading
import time

import pytest

from stretto._engine.xla import store
from tests.interrupts import interrupted, sites

KEY, OTHER = "ab" * 32, "cd" * 32
LIMIT = 1 << 20


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "caches" / "programs")


def key(n):
    return f"{n:064x}"


def path_of(folder, key):
    return os.path.join(folder, f"{key}.program")


def total(folder):
    return sum(file.size for file in store.list_kept(folder))


@pytest.mark.parametrize("content", [b"", b"x", bytes(range(256)) * 400])
def test_what_is_written_is_read(folder, content):
    assert store.read(folder, KEY, LIMIT) is None and store.list_kept(folder) == []
    store.write(folder, KEY, content, LIMIT)
    assert store.read(folder, KEY, LIMIT) == content
    assert store.read(folder, OTHER, LIMIT) is None
    (file,) = store.list_kept(folder)
    assert file.name == f"{KEY}.program" and file.size == os.path.getsize(path_of(folder, KEY))
    assert abs(time.time() - file.used) < 60


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors as Linux does")
def test_no_descriptor_stays_open(folder):
    store.write(folder, KEY, b"x", LIMIT)
    held = []
    open_folder = store.system.Folder
    before = len(os.listdir("/proc/self/fd"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            store.system, "Folder", lambda path: held.append(open_folder(path)) or held[-1]
        )
        store.read(folder, KEY, LIMIT)
        store.write(folder, OTHER, b"y", LIMIT)
        assert len(store.list_kept(folder)) == len(store.clear(folder)) == 2
    assert len(held) == 4
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_last_of_several_writers_stays(folder):
    for content in (b"first", b"second", b"third"):
        store.write(folder, KEY, content, LIMIT)
    assert store.read(folder, KEY, LIMIT) == b"third"
    assert len(store.list_kept(folder)) == 1


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_folders_and_files_are_the_users_alone(folder, mask):
    before = os.umask(mask)
    try:
        store.write(folder, KEY, b"x", LIMIT)
    finally:
        os.umask(before)
    assert store.read(folder, KEY, LIMIT) == b"x"
    for path, mode in [
        (os.path.dirname(folder), 0o700),
        (folder, 0o700),
        (path_of(folder, KEY), 0o600),
    ]:
        assert stat.S_IMODE(os.stat(path).st_mode) == mode


def test_a_file_under_the_name_of_another_key_is_not_read(folder):
    store.write(folder, KEY, b"x", LIMIT)
    os.rename(path_of(folder, KEY), path_of(folder, OTHER))
    assert store.read(folder, OTHER, LIMIT) is None


@pytest.mark.parametrize(
    ("age", "is_noted"),
    [(1800, False), (3600, False), (3601, True), (7200, True), (-3600, False), (-3601, True)],
)
def test_use_is_noted_within_the_hour(folder, monkeypatch, age, is_noted):
    store.write(folder, KEY, b"x", LIMIT)
    now = float(round(time.time()))
    os.utime(path_of(folder, KEY), (now - age, now - age))
    monkeypatch.setattr(store.time, "time", lambda: now)
    assert store.read(folder, KEY, LIMIT) == b"x"
    (file,) = store.list_kept(folder)
    assert (abs(file.used - now) < 60) is is_noted


def test_there_is_never_more_than_the_limit(folder):
    limit = 64 * 1024
    for n in range(100):
        store.write(folder, key(n), bytes(3000), limit)
        assert total(folder) <= limit
    assert total(folder) > limit // 2


def test_the_least_lately_used_go(folder):
    limit, now = 64 * 1024, time.time()
    for n in range(10):
        store.write(folder, key(n), bytes(5000), limit)
        os.utime(path_of(folder, key(n)), (now - 100 + n, now - 100 + n))
    os.utime(path_of(folder, key(0)), (now, now))
    for n in range(10, 14):
        store.write(folder, key(n), bytes(5000), limit)
    left = {file.name for file in store.list_kept(folder)}
    assert f"{key(0)}.program" in left and f"{key(13)}.program" in left
    assert f"{key(1)}.program" not in left


def test_what_would_take_much_of_the_space_is_left_out(folder):
    store.write(folder, KEY, bytes(1000), 8000)
    store.write(folder, KEY, bytes(1000), 0)
    assert store.read(folder, KEY, LIMIT) is None
    store.write(folder, KEY, bytes(1000), 16000)
    assert store.read(folder, KEY, LIMIT) == bytes(1000)


@pytest.mark.parametrize(("limit", "is_kept"), [(8000, True), (8007, True), (7999, False)])
def test_a_file_takes_an_eighth_of_the_space_at_most(folder, limit, is_kept):
    store.write(folder, KEY, bytes(920), limit)  # with its header 1,000 bytes
    assert store.list_kept(folder) == [] or os.path.getsize(path_of(folder, KEY)) == 1000
    assert (store.read(folder, KEY, LIMIT) is not None) is is_kept
    store.write(folder, KEY, bytes(920), LIMIT)
    assert (store.read(folder, KEY, limit) is not None) is is_kept


@pytest.mark.parametrize(
    ("limit", "left"), [(3001, "abc"), (3000, "abc"), (2999, "bc"), (1999, "c"), (999, ""), (0, "")]
)
def test_the_oldest_go_until_the_rest_is_within_the_limit(folder, limit, left):
    now, names = time.time(), {key(int(name, 16)): name for name in "abc"}
    for age, each in enumerate(reversed(names)):
        store.write(folder, each, bytes(920), LIMIT)
        os.utime(path_of(folder, each), (now - age, now - age))
    assert os.path.getsize(os.path.join(folder, "written")) == 3
    with store._open_folder(folder) as at:
        removed = store._sweep(at, limit)
    named = lambda files: "".join(sorted([names[file.name[:64]] for file in files]))
    assert named(store.list_kept(folder)) == left
    assert named(removed) == "abc".removesuffix(left)
    assert os.path.getsize(os.path.join(folder, "written")) == 0


@pytest.mark.parametrize(("age", "stays"), [(3580, True), (3600, True), (3601, False)])
def test_what_a_writer_left_may_stay_for_an_hour(folder, monkeypatch, age, stays):
    store.write(folder, KEY, b"x", LIMIT)
    now = float(round(time.time()))
    monkeypatch.setattr(store.time, "time", lambda: now)
    path, past = os.path.join(folder, f"{OTHER}.{'0' * 16}.beside"), now - age
    with open(path, "wb"):
        os.utime(path, (past, past))
    with store._open_folder(folder) as at:
        assert store._sweep(at, LIMIT) == []
    assert os.path.exists(path) is stays


def test_space_is_made_for_what_is_written(folder, monkeypatch):
    """And for what may be written until files are counted again."""
    limits = []
    monkeypatch.setattr(store, "_note", lambda at, size: 10_000)
    monkeypatch.setattr(store, "_sweep", lambda at, limit: limits.append(limit))
    store.write(folder, KEY, bytes(920), 64_000)
    assert limits == [64_000 - 1000 - 1000]


def test_files_are_seldom_counted(folder, monkeypatch):
    """However many there are: once for each 64th part of the limit that is written."""
    sweeps = []
    sweep = store._sweep
    monkeypatch.setattr(store, "_sweep", lambda *args: sweeps.append(args) or sweep(*args))
    for n in range(256):
        store.write(folder, key(n), bytes(1900), LIMIT)
    assert 256 * 2048 / (LIMIT / 64) / 2 < len(sweeps) <= 256 * 2048 / (LIMIT / 64)
    assert len(store.list_kept(folder)) == 256


def test_the_note_of_what_was_written_is_shared(folder):
    """Each of many processes writes little, and all together much."""
    for n in range(40):
        store.write(folder, key(n), bytes(1000), LIMIT)
    assert 0 < os.path.getsize(os.path.join(folder, "written")) * 1024 <= LIMIT // 64 + 2048


def test_what_killed_writers_left_goes_when_it_is_old(folder):
    store.write(folder, KEY, b"x", LIMIT)
    old = f"{OTHER}.{'0' * 16}.beside"
    young = f"{OTHER}.{'1' * 16}.beside"
    foreign = ["notes.txt", f"{OTHER}.program.bak", "x" * 64 + ".program"]
    past = time.time() - 4000
    for name in (old, young, *foreign):
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(b"part")
        if name != young:
            os.utime(path, (past, past))
    for n in range(20):  # enough for files to be counted
        store.write(folder, key(n), bytes(2000), LIMIT)
    names = os.listdir(folder)
    assert old not in names and young in names and set(foreign) <= set(names)


def test_clear(folder):
    assert store.clear(folder) == []
    for n in range(3):
        store.write(folder, key(n), b"x", LIMIT)
    with open(os.path.join(folder, "notes.txt"), "wb"):
        pass
    assert sorted(file.name for file in store.clear(folder)) == [
        f"{key(n)}.program" for n in range(3)
    ]
    assert store.list_kept(folder) == [] and store.read(folder, key(0), LIMIT) is None
    assert "notes.txt" in os.listdir(folder)
    store.write(folder, KEY, b"x", LIMIT)
    assert store.read(folder, KEY, LIMIT) == b"x"


def test_threads_that_write_read_and_clear(folder):
    """Files vanish under each other's hands: what is read is whole, or not there."""
    errors, stop = [], threading.Event()
    limit = 64 * 1024

    def content(n):
        return bytes([n]) * 3000

    def work(start):
        try:
            for turn in range(60):
                n = (start * 7 + turn) % 30
                store.write(folder, key(n), content(n), limit)
                for k in (n, (n + 11) % 30):
                    assert store.read(folder, key(k), LIMIT) in (None, content(k))
        except BaseException as error:
            errors.append(error)

    def sweep():
        while not stop.is_set():
            store.clear(folder)
            stop.wait(0.002)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    sweeper = threading.Thread(target=sweep)
    for thread in (*threads, sweeper):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    sweeper.join()
    assert not errors


def test_readers_never_see_half_a_file(folder):
    contents = [bytes([n]) * (5000 + 700 * n) for n in range(8)]
    store.write(folder, KEY, contents[0], LIMIT)
    seen, stop = set(), threading.Event()

    def look():
        while not stop.is_set():
            seen.add(store.read(folder, KEY, LIMIT))

    reader = threading.Thread(target=look)
    reader.start()
    for n in range(200):
        store.write(folder, KEY, contents[n % 8], LIMIT)
    stop.set()
    reader.join()
    assert seen <= set(contents)


# A file that was just opened is let go of, and closed for it, with a remark.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupted_writer_leaves_nothing(folder):
    files = ("xla/store",)

    def write():
        store.write(folder, KEY, b"x" * 100, LIMIT)

    write()
    for site in sites(write, files, "signal"):
        if site[0].co_name != "_remove":  # what cleans up
            interrupted(write, site, files, "signal")
            assert not [n for n in os.listdir(folder) if n.endswith(".beside")], site
            assert store.read(folder, KEY, LIMIT) == b"x" * 100


def test_a_file_that_goes_while_the_folder_is_read(folder, monkeypatch):
    for n in range(3):
        store.write(folder, key(n), b"x", LIMIT)
    status_of = store.system.Folder.status_of

    def gone(self, name):
        if name.startswith(key(1)):
            raise FileNotFoundError(name)
        return status_of(self, name)

    monkeypatch.setattr(store.system.Folder, "status_of", gone)
    assert {kept.name[:64] for kept in store.list_kept(folder)} == {key(0), key(2)}


@pytest.mark.parametrize(("age", "is_noted"), [(3580, False), (3620, True)])
def test_use_is_noted_after_an_hour(folder, age, is_noted):
    store.write(folder, KEY, b"x", LIMIT)
    past = time.time() - age
    os.utime(path_of(folder, KEY), (past, past))
    store.read(folder, KEY, LIMIT)
    assert (os.stat(path_of(folder, KEY)).st_mtime > past + 60) is is_noted


def test_one_byte_is_noted_for_each_kibibyte(folder):
    for size, noted in [(900, 1), (1000, 3)]:  # with their headers 9xx and 1,0xx bytes
        store.write(folder, key(size), bytes(size), LIMIT)
        assert os.path.getsize(os.path.join(folder, "written")) == noted


@pytest.mark.parametrize(("written", "is_counted"), [(64, False), (65, True)])
def test_files_are_counted_after_a_64th_of_the_limit(folder, monkeypatch, written, is_counted):
    """That is 65,536 bytes of 4 MiB, written a kibibyte at a time."""
    sweeps = []
    monkeypatch.setattr(store, "_sweep", lambda at, limit: sweeps.append(limit))
    for n in range(written):
        store.write(folder, key(n), bytes(900), 1 << 22)
    assert bool(sweeps) is is_counted
    assert all(limit < (1 << 22) - (1 << 16) for limit in sweeps)
