"""Counts: what is read from Callgrind, what counts as worse, and the paths themselves."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks import counts, counts_worker
from benchmarks.counts_paths import PATHS
from benchmarks.counts_worker import chosen
from benchmarks.process import ROOT, environment


def test_the_hot_paths_are_there():
    assert {
        "eager-add",
        "eager-affine",
        "eager-sum",
        "eager-vmap",
        "eager-grad",
        "jitted",
        "jitted-compiled",
        "jitted-dict",
        "ensemble",
        "trace",
        "lower",
    } <= {path.name for path in PATHS}
    assert [path.name for path in chosen(["eager-a*"])] == ["eager-add", "eager-affine"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_a_path_is_gone_as_often_as_asked(path):
    with path.within():
        path.make(2)()
        held = path.hold(3)()
    if isinstance(held, list):
        assert len(held) == 3


def test_sections_are_as_many_as_are_expected(monkeypatch):
    marks: list[None] = []
    monkeypatch.setattr(counts_worker, "mark", lambda: marks.append(None))
    counts_worker.main(["instructions", "eager-a*"])
    found = counts.instructions_of([0] * len(marks), ["eager-add", "eager-affine"])
    assert set(found) == {"import", "eager-add", "eager-affine"}


def test_instructions_are_the_difference_of_two_lengths():
    add, affine = chosen(["eager-a*"])
    totals = [7, 500, 9, 40 + 3 * add.times, 40 + 6 * add.times, 9, 0, 5 * affine.times]
    found = counts.instructions_of(totals, [add.name, affine.name])
    assert found == {"import": 500, "eager-add": 3, "eager-affine": 5}
    with pytest.raises(counts.CountingError, match="expected 5 sections, got 8"):
        counts.instructions_of(totals, [add.name])


def test_totals_are_read_from_the_file(tmp_path):
    file = tmp_path / "out.3"
    file.write_text("version: 1\nevents: Ir\nfn=(1) main\n1 5\ntotals: 1653389876\n")
    assert counts.total_of(file) == 1653389876
    file.write_text("version: 1\n")
    with pytest.raises(counts.CountingError, match=r"no line of totals in out\.3"):
        counts.total_of(file)


def test_functions_are_charged_for_what_they_spend_themselves():
    text = """
positions: line
ob=(1) /usr/bin/program
fl=(1) a.c
fn=(1) main
16 400
cob=(2) /usr/lib/library.so
cfn=(2) work
calls=5 20
16 9000
+3 50
* 1

ob=(2)
fn=(2)
20 9000

ob=(1)
fn=(1)
-4 7
totals: 9458
"""
    assert counts.libraries_of(text) == {"program": 458, "library.so": 9000}
    assert counts.functions_of(text) == {"main": 458, "work": 9000}


@pytest.mark.parametrize(
    ("kind", "before", "now", "worse"),
    [
        ("instructions", 1000.0, 1031.0, True),
        ("instructions", 1000.0, 1029.0, False),
        ("instructions", 1000.0, 500.0, False),
        ("garbage", 0.0, 1.0, True),
        ("garbage", 0.0, 0.3, False),
        ("peak", 400.0, 456.0, False),
        ("peak", 400.0, 500.0, True),
    ],
)
def test_what_grows_by_more_than_3_percent_is_named(kind, before, now, worse):
    lines = counts.compare({"a": {kind: now}, "new": {kind: now}}, {"a": {kind: before}})
    assert len(lines) == worse
    assert all(line.startswith(f"worse: a: {kind}: {before:,g} → {now:,g}") for line in lines)


def test_allocations_of_an_addition():
    """One array, in few blocks, none of which waits for the collector."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.counts_worker", "allocations", "eager-add"],
        check=True,
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    found = json.loads(done.stdout)
    assert list(found) == ["import", "eager-add"]
    assert 0.9 < found["eager-add"]["held"] < 10
    assert found["eager-add"]["garbage"] < 0.1
    assert 0 < found["eager-add"]["peak"] < 2000


@pytest.fixture
def counted(monkeypatch):
    """The command, with figures in the place of counting."""
    figures = {"import": {"instructions": 9.0}, "eager-add": {"instructions": 100.0}}
    about = {"made_with": {"python": "3"}, "revision": "abc", "machine": "EPYC"}
    spenders = {"eager-add": ["   100  add"]}
    monkeypatch.setattr(counts, "count", lambda _, n: (figures, spenders if n else {}))
    monkeypatch.setattr(counts, "describe", lambda: about)
    return figures, about


def test_the_command_writes_compares_and_fails_if_something_is_worse(tmp_path, capsys, counted):
    figures, about = counted
    file = tmp_path / "new" / "counts.json"
    options = ["--only", "eager-add", "--file", str(file)]
    assert counts.main([*options, "--write", "--functions", "1"]) == 0
    assert "eager-add:\n     100  add\n" in capsys.readouterr().out
    assert json.loads(file.read_text())["counts"] == figures
    assert counts.main(options) == 0
    figures["eager-add"]["instructions"] = 110.0
    assert counts.main(options) == 1
    printed = capsys.readouterr().out
    assert "worse: eager-add: instructions: 100 → 110, 10% more" in printed
    assert "1.100" in printed
    about["made_with"] = {"python": "4"}
    assert counts.main(options) == 0
    assert "Not compared: the file kept was made with python 3." in capsys.readouterr().out


def test_writing_some_keeps_the_others(tmp_path, counted):
    figures, _ = counted
    file = tmp_path / "counts.json"
    options = ["--only", "eager-add", "--file", str(file), "--write"]
    assert counts.main(options) == 0
    del figures["import"]
    figures["eager-add"] = {"instructions": 50.0}
    assert counts.main(options) == 0
    written = json.loads(file.read_text())
    assert {name: one["instructions"] for name, one in written["counts"].items()} == {
        "import": 9.0,
        "eager-add": 50.0,
    }
    assert set(written["titles"]) == {"import", "eager-add"}


def test_without_valgrind_the_command_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(counts.shutil, "which", lambda _: None)
    assert counts.main(["--only", "eager-add"]) == 2
    assert "install valgrind" in capsys.readouterr().err


def test_unknown_paths_are_refused(capsys):
    with pytest.raises(SystemExit):
        counts.main(["--only", "nonsense"])
    assert "no path is called nonsense" in capsys.readouterr().err
