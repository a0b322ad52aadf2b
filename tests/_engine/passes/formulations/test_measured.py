"""Formulations chosen by measuring, and remembered."""

import json
import os

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core import files
from stretto._engine.passes.formulations import measured
from tests.interruptions import interrupted, lines_of


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("STRETTO_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(measured, "_known", {})
    return tmp_path / "plans"


@pytest.fixture
def clock(monkeypatch):
    """A clock that finds loops fastest, and counts what it measures."""
    seen = []

    def seconds(program):
        seen.append(program)
        loops = any(e.primitive.name == "scan" for e in program.equations)
        return 1.0 if loops else 2.0

    monkeypatch.setattr(measured.clock, "seconds_of", seconds)
    return seen


def run():
    w, x = snp.ones((4, 32, 16)), snp.ones((8, 32))
    with st.config(plan="measure"):
        jitted = st.jit(st.vmap(lambda w: x @ w))
        np.testing.assert_allclose(jitted(w), np.full((4, 8, 16), 32.0))
        return jitted.lower(w).as_text()


def test_the_fastest_is_taken_and_remembered(folder, clock):
    assert "stablehlo.while" in run()
    tried = len(clock)
    assert tried == 4
    (file,) = folder.iterdir()
    said = json.loads(file.read_text())
    assert said["plan"] == "in turn" and set(said["seconds"]) == {
        "auto",
        "batched",
        "in turn",
        "written out",
    }
    run()
    assert len(clock) == tried  # in memory
    measured._known.clear()
    assert "stablehlo.while" in run()
    assert len(clock) == tried  # on disk


@pytest.mark.parametrize("text", ["", "{", "[]", '{"plan": 3}', '{"plan": "rm -rf"}'])
def test_a_damaged_note_is_measured_anew(folder, clock, text):
    run()
    (file,) = folder.iterdir()
    file.write_text(text)
    measured._known.clear()
    before = len(clock)
    assert "stablehlo.while" in run()
    assert len(clock) > before
    assert json.loads(file.read_text())["plan"] == "in turn"


def planted(path, kind):
    """Something else in the place of a measurement."""
    path.unlink()
    if kind == "large":
        path.write_text('{"plan": "in turn"}')
        os.truncate(path, 10 << 30)
    elif kind == "nested":
        path.write_text("[" * 60_000)
    elif kind == "link":
        (path.parent / "elsewhere").write_text('{"plan": "at once"}')
        path.symlink_to(path.parent / "elsewhere")
    else:
        {"pipe": os.mkfifo, "folder": os.mkdir}[kind](path)


@pytest.mark.parametrize("kind", ["large", "nested", "link", "pipe", "folder"])
def test_what_is_no_small_file_is_measured_anew(folder, clock, kind):
    run()
    (file,) = folder.iterdir()
    planted(file, kind)
    measured._known.clear()
    before = len(clock)
    assert "stablehlo.while" in run()
    assert len(clock) > before
    if kind in ("pipe", "folder"):
        assert not file.is_file()  # what nobody here made stays as it is


def test_an_interruption_leaves_a_measurement_or_none(folder, monkeypatch):
    monkeypatch.setattr(files, "_SECOND", 0.0)  # each writer looks for leftovers, as the first
    folder.mkdir()
    path = folder / "key.json"
    where = lambda name: name in (measured.__file__, files.__file__)
    write = lambda: measured._write("key", "in turn", {"in turn": 1.0})
    count = lines_of(write, where)
    for number in range(count):
        assert interrupted(write, where, number)
        assert measured._read("key") in (None, "in turn")
        assert {n.name for n in folder.iterdir()} <= {path.name}
        path.unlink(missing_ok=True)


def test_the_folder_is_made_with_those_above_it(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(measured, "_known", {})
    monkeypatch.setenv("STRETTO_CACHE_DIR", str(tmp_path / "one" / "two"))
    run()
    assert len([*(tmp_path / "one" / "two" / "plans").iterdir()]) == 1


def test_a_measurement_is_not_worth_waiting_for_the_disk(folder, clock, monkeypatch):
    waited = []
    monkeypatch.setattr(os, "fsync", waited.append)
    run()
    assert not waited and len([*folder.iterdir()]) == 1


def test_without_a_folder_it_is_remembered_in_memory(tmp_path, monkeypatch, clock):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("STRETTO_CACHE_DIR", str(blocked))
    monkeypatch.setattr(measured, "_known", {})
    run()
    tried = len(clock)
    run()
    assert len(clock) == tried


def test_the_real_clock_measures(folder):
    run()
    (file,) = folder.iterdir()
    assert all(s > 0 for s in json.loads(file.read_text())["seconds"].values())


@pytest.mark.parametrize(("size", "is_read"), [(1 << 16, True), ((1 << 16) + 1, False)])
def test_how_large_a_note_may_be(folder, size, is_read):
    folder.mkdir()
    (folder / "key.json").write_text(json.dumps({"plan": "in turn"}).ljust(size))
    assert (measured._read("key") == "in turn") is is_read
