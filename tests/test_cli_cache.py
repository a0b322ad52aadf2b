"""The command ``stretto cache``."""

import os
import re
import time

import pytest

from stretto import cli
from stretto._engine.core.machine import cache_directory
from stretto._engine.xla import disk, store


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("STRETTO_CACHE_DIR", str(tmp_path / "caches"))
    return str(tmp_path / "caches" / "programs")


def said(capsys, *argv):
    """The exit status, and what is on standard output and standard error."""
    return cli.main(["cache", *argv]), *capsys.readouterr()


def test_what_is_shown(folder, capsys):
    assert said(capsys) == (
        0,
        f"directory  {folder}\nprograms   0\nsize       0 bytes of at most 1,073,741,824\n",
        "",
    )
    assert not os.path.exists(folder)  # to look makes nothing
    for n in range(2):
        store.write(folder, f"{n:064x}", bytes(1000), 1 << 30)
    now = time.time()
    os.utime(os.path.join(folder, f"{0:064x}.program"), (now, now - 3 * 86400))
    status, out, err = said(capsys)
    assert (status, err) == (0, "")
    day = r"\d{4}-\d\d-\d\d \d\d:\d\d"
    assert re.fullmatch(
        rf"directory  {folder}\nprograms   2\nsize       2,160 bytes of at most 1,073,741,824\n"
        rf"last used  ({day}) \(the oldest\) to ({day})\n",
        out,
    )


def test_clear(folder, capsys):
    store.write(folder, "ab" * 32, bytes(1000), 1 << 30)
    assert said(capsys, "clear") == (
        0,
        f"Removed 1 compiled programs, 1,080 bytes, from {folder}\n",
        "",
    )
    assert store.list_kept(folder) == []
    assert said(capsys, "clear")[1] == f"Removed 0 compiled programs, 0 bytes, from {folder}\n"


def test_switched_off(folder, capsys):
    with disk.config(disk_cache=False):
        assert "off        by STRETTO_DISK_CACHE\n" in said(capsys)[1]


@pytest.mark.parametrize("action", [[], ["clear"]], ids=["show", "clear"])
def test_a_folder_that_others_can_write(folder, capsys, action):
    store.write(folder, "ab" * 32, bytes(1000), 1 << 30)
    os.chmod(folder, 0o777)
    status, out, err = said(capsys, *action)
    assert (status, out) == (2, "")
    assert err.startswith(f"stretto cache: {folder} can be written by others")
    os.chmod(folder, 0o700)
    assert len(store.list_kept(folder)) == 1


def test_without_a_home(capsys, monkeypatch):
    monkeypatch.setattr(disk, "cache_directory", lambda: None)
    status, out, err = said(capsys)
    assert status == 0 and "no home directory" in out and not err


def test_wrong_arguments(capsys):
    status, out, err = said(capsys, "empty")
    assert (status, out) == (2, "") and "invalid choice: 'empty'" in err


def test_tests_have_a_directory_of_their_own():
    assert cache_directory() == os.environ["CACHE_DIR_OF_TESTS"]
