"""Where the secret of a job comes from, and who else may know it."""

import hashlib
import hmac
import os
import stat
import threading

import pytest

from stretto._engine.core import files
from stretto._engine.xla import handshake

LONG = "0123456789abcdef"
OTHER = 12345


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """No variable says anything, and the user's folder for caches is empty."""
    monkeypatch.delenv(handshake.SECRET, raising=False)
    monkeypatch.delenv(handshake.SECRET_FILE, raising=False)
    monkeypatch.setenv("STRETTO_CACHE_DIR", str(tmp_path / "caches"))
    monkeypatch.setattr(files, "_SAFE", set())


def secret(local=False):
    return handshake.job_secret("initialize", "host:1234", local)


def refused(words, local=False):
    with pytest.raises(RuntimeError, match=words) as caught:
        secret(local)
    return str(caught.value)


@pytest.mark.parametrize("local", [False, True])
def test_the_variable_and_the_file(monkeypatch, tmp_path, local):
    file = tmp_path / "secret"
    file.write_text(f"  {LONG}-of-a-file\n")
    file.chmod(0o600)
    monkeypatch.setenv(handshake.SECRET_FILE, str(file))
    assert secret(local) == f"{LONG}-of-a-file".encode()
    monkeypatch.setenv(handshake.SECRET, f"{LONG}é\n")  # which goes first
    assert secret(local) == f"{LONG}é".encode()


def test_short_ones(monkeypatch, tmp_path):
    monkeypatch.setenv(handshake.SECRET, LONG[1:])
    refused(
        "initialize: STRETTO_JOB_SECRET must have 16 characters or more, as `openssl rand -hex "
        "32` prints; got 15"
    )
    monkeypatch.delenv(handshake.SECRET)
    file = tmp_path / "secret"
    file.touch(0o600)
    monkeypatch.setenv(handshake.SECRET_FILE, str(file))
    refused(f"STRETTO_JOB_SECRET_FILE={file} must have 16 characters or more.*got 0")


def test_files_that_others_know(monkeypatch, tmp_path):
    file = tmp_path / "secret"
    file.write_text(LONG)
    monkeypatch.setenv(handshake.SECRET_FILE, str(file))
    for mode in (0o604, 0o602, 0o620, 0o644, 0o666):
        file.chmod(mode)
        refused(f"{file} cannot be used: others can read or write it, with mode {mode:o}")
    for mode in (0o600, 0o400, 0o640, 0o440):
        file.chmod(mode)
        assert secret() == LONG.encode()
    if os.geteuid() == 0:
        os.chown(file, OTHER, OTHER)
        refused("cannot be used: it belongs to user 12345, you are 0")
    monkeypatch.setenv(handshake.SECRET_FILE, str(tmp_path))
    refused("cannot be used")
    os.mkfifo(tmp_path / "pipe", 0o600)
    monkeypatch.setenv(handshake.SECRET_FILE, str(tmp_path / "pipe"))
    refused("cannot be used: it is not a regular file")
    monkeypatch.setenv(handshake.SECRET_FILE, str(tmp_path / "none"))
    refused("cannot be used: No such file")


def test_the_way_is_looked_at_before_and_after_the_folder_is_made(tmp_path, monkeypatch):
    """Nothing is made below what others can change, and nobody can have put another there."""
    seen = []
    monkeypatch.setattr(handshake, "check_way", lambda path: seen.append(os.path.exists(path)))
    secret(True)
    assert seen == [False, True]


def test_of_a_long_file_four_kibibytes_are_read(monkeypatch, tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"x" * 5000)
    path.chmod(0o600)
    assert handshake._of_file(str(path)) == b"x" * 4096
    monkeypatch.setattr(handshake.system, "user", lambda: None)
    assert handshake._of_file(str(path)) == b"x" * 4096
    monkeypatch.undo()
    monkeypatch.setenv("STRETTO_CACHE_DIR", str(tmp_path / "caches"))
    secret(True)
    (tmp_path / "caches" / "job-secret").write_bytes(b" " + b"x" * 5000)
    assert secret(True) == b"x" * 4095


def test_none_where_other_machines_reach_it():
    said = refused("host:1234 may be reached from other machines, and this job has no secret")
    assert "start the processes by stretto launch, or set STRETTO_JOB_SECRET" in said
    assert "STRETTO_JOB_SECRET_FILE to a file" in said


def test_the_users_own_on_one_machine(tmp_path):
    """Made once, by the first of any number at once, for this user alone."""
    found = []
    threads = [threading.Thread(target=lambda: found.append(secret(True))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1 and len(found[0]) == 64
    folder = tmp_path / "caches"
    assert os.listdir(folder) == ["job-secret"]
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(folder / "job-secret").st_mode) == 0o600
    (folder / "job-secret").unlink()
    assert secret(True) != found[0]


def test_the_users_own_that_others_know(tmp_path, monkeypatch):
    secret(True)
    path = tmp_path / "caches" / "job-secret"
    for mode in (0o644, 0o640, 0o604):
        path.chmod(mode)
        said = refused(f"{path} can be read by others, or is damaged: remove it", local=True)
        assert "or set STRETTO_JOB_SECRET" in said
    path.chmod(0o620)
    refused(f"{path} can be written by others", local=True)
    path.chmod(0o600)
    path.write_text("short")
    refused("is damaged: remove it", local=True)
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    refused("none can be kept for you", local=True)
    path.unlink()
    if os.geteuid() == 0:
        secret(True)
        os.chown(path, OTHER, OTHER)
        refused(f"{path} belongs to user 12345", local=True)
        os.chown(path, 0, 0)
        files._SAFE.clear()
        os.chown(tmp_path, OTHER, OTHER)
        refused(f"leads through {tmp_path}, a folder of user 12345", local=True)
        os.chown(tmp_path, 0, 0)
    monkeypatch.setattr(handshake, "cache_directory", lambda: None)
    refused("there is no home directory, nor STRETTO_CACHE_DIR", local=True)


def test_proofs():
    """RFC 4231's second case has this HMAC-SHA256; a proof is one of a text that names its side."""
    known = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert hmac.new(b"Jefe", b"what do ya want for nothing?", hashlib.sha256).hexdigest() == known
    said = ("a" * 64, "b" * 64, 1, 2, 3)
    one = handshake.proof(b"secret", "process", *said)
    text = b"stretto job 1\nprocess\n" + b"a" * 64 + b"\n" + b"b" * 64 + b"\n1\n2\n3"
    assert one == hmac.new(b"secret", text, hashlib.sha256).hexdigest()
    assert handshake.same(one, one) and not handshake.same(one, one[:-1])
    others = {
        handshake.proof(b"secreT", "process", *said),
        handshake.proof(b"secret", "coordinator", *said),
        handshake.proof(b"secret", "process", *said[:2], 12, 3),
        handshake.proof(b"secret", "process", *said[:2], 1, 23),
    }
    assert len(others | {one}) == 5
    assert len({handshake.new_challenge() for _ in range(100)}) == 100


MILLION = 1 << 20
HEX = "0" * 64


@pytest.mark.parametrize(
    ("kinds", "message", "field", "taken", "refused"),
    [
        (handshake.FROM_PROCESS, {"ping": 0}, "ping", (0, MILLION - 1), (-1, MILLION, True, 1.0)),
        (handshake.FROM_PROCESS, {"bye": 0}, "bye", (0, MILLION - 1), (-1, MILLION)),
        *[
            (
                handshake.FROM_PROCESS,
                {"join": 0, "of": 1, "devices": 1, "challenge": HEX, "proof": HEX},
                field,
                (least, most),
                (least - 1, most + 1),
            )
            for field, least, most in [
                ("join", 0, MILLION - 1),
                ("of", 1, MILLION),
                ("devices", 1, MILLION),
            ]
        ],
        (
            handshake.FROM_COORDINATOR,
            {"here": []},
            "here",
            ([], [0], [MILLION - 1]),
            ([-1], [MILLION], [True], 3),
        ),
        (
            handshake.FROM_COORDINATOR,
            {"all": [1], "service": 7},
            "all",
            ([], [1], [MILLION]),
            ([0], [MILLION + 1]),
        ),
        (
            handshake.FROM_COORDINATOR,
            {"all": [1], "service": 7},
            "service",
            (1, 65535, "unix:/" + "x" * 120),
            (0, 65536, "unix:/", "unix:/" + "x" * 121, "tcp:/x"),
        ),
        (
            handshake.FROM_COORDINATOR,
            {"refused": "why"},
            "refused",
            ("x", "x" * 200),
            ("", "x" * 201, 3),
        ),
        (handshake.FROM_COORDINATOR, {"gone": 0, "how": "died"}, "gone", (0,), (-1, MILLION)),
        (handshake.FROM_COORDINATOR, {"silent": 0, "whether": True}, "whether", (False,), (0, 1)),
        (handshake.FROM_PROCESS, {"ping": 0}, "pong", (), (0,)),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_messages_may_say(kinds, message, field, taken, refused):
    for value in taken:
        said = {**message, field: value}
        assert handshake.read(handshake.line(**said).strip(), kinds) == said
    for value in refused:
        with pytest.raises(ValueError, match=r"expected|message"):
            handshake.read(handshake.line(**{**message, field: value}).strip(), kinds)


def test_how_long_lines_may_be():
    """One that joins fits, and one that names a million processes."""
    longest = {"join": MILLION - 1, "of": MILLION, "devices": MILLION}
    assert len(handshake.line(**longest, challenge=HEX, proof=HEX)) < handshake.LONGEST == 1024
    assert len(handshake.line(here=[MILLION - 1] * MILLION)) < handshake.LONGEST_TOLD == 1 << 24


def test_a_file_that_others_remove_again_and_again(monkeypatch):
    """It is made twice, and not for ever."""
    made = []
    monkeypatch.setattr(handshake, "_make", made.append)
    with pytest.raises(files.Unsafe, match="job-secret was removed while it was made"):
        handshake._users_own()
    assert len(made) == 2


@pytest.mark.parametrize(("length", "is_taken"), [(15, False), (16, True), (17, True)])
def test_how_long_the_users_own_must_be(tmp_path, length, is_taken):
    secret(True)
    path = tmp_path / "caches" / "job-secret"
    path.write_bytes(b"x" * length + b"\n")
    if is_taken:
        assert secret(True) == b"x" * length
    else:
        with pytest.raises(RuntimeError, match="or is damaged: remove it"):
            secret(True)


def test_how_many_processes_there_may_be(monkeypatch):
    monkeypatch.setattr(handshake, "_MOST", 3)
    takes = handshake._integers(1, 9)
    assert [takes([4] * count) for count in (0, 2, 3, 4)] == [True, True, True, False]
    assert not takes((4, 4)) and not takes([0]) and not takes([10]) and takes([1, 9])
