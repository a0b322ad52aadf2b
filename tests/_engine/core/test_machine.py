"""Where caches lie, and what is known of the processor."""

import os
import platform

import pytest

from stretto._engine.core import machine


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"STRETTO_CACHE_DIR": "/a/b", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/a/b"),
        ({"STRETTO_CACHE_DIR": "", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/stretto"),
        ({"XDG_CACHE_HOME": "not/absolute", "HOME": "/h"}, "/h/.cache/stretto"),
        ({"XDG_CACHE_HOME": "", "HOME": "/h"}, "/h/.cache/stretto"),
        ({"HOME": "/h"}, "/h/.cache/stretto"),
    ],
)
def test_the_directory_of_caches(monkeypatch, given, expected):
    for name in ("STRETTO_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert machine.cache_directory() == expected


def test_a_directory_given_is_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STRETTO_CACHE_DIR", "caches")
    assert machine.cache_directory() == str(tmp_path / "caches")


def test_without_a_home_there_is_none(monkeypatch):
    for name in ("STRETTO_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # a user that nobody knows
    assert machine.cache_directory() is None


INFO = """processor\t: 0
vendor_id\t: GenuineIntel
model name\t: A processor
cpu MHz\t\t: 2596.146
flags\t\t: fpu avx2

processor\t: 1
flags\t\t: fpu
"""


def test_the_processor_by_what_stays_the_same(monkeypatch, tmp_path):
    file = tmp_path / "cpuinfo"

    def said(text):
        file.write_text(text)
        monkeypatch.setattr(machine, "open", lambda path, **how: file.open(), raising=False)
        return machine.processor()

    here = said(INFO)
    assert platform.machine() in here and "GenuineIntel" in here and "avx2" in here
    assert said(INFO.replace("2596.146", "800.0")) == here  # what changes while it runs
    assert said(INFO.replace("fpu\n", "fpu more\n")) == here  # the others of a kind are like it
    assert said(INFO.replace("avx2", "avx")) != here
    assert said(INFO.replace("A processor", "Another")) != here


def test_the_processor_where_the_system_has_no_such_file(monkeypatch):
    def missing(path, **how):
        raise FileNotFoundError(path)

    monkeypatch.setattr(machine, "open", missing, raising=False)
    assert machine.processor().startswith(platform.machine())
