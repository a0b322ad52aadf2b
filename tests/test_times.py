"""Recorded times: what is written and read again, and what is left out by them."""

import pytest

from tests import times

LONG = 'tests/test_a.py::test_b[it says "1\\2" × 3]'


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "times.toml"
    times.write({LONG: 0.5, "tests/test_a.py::test_c": 0.099, "src/b.py::b.f": 12.345}, path)
    assert times.read(path) == {LONG: 0.5, "src/b.py::b.f": 12.35}
    assert path.read_text("utf-8").index("src/b.py") < path.read_text("utf-8").index("tests/test_a")


def test_nothing_is_recorded_where_there_is_no_file(tmp_path):
    assert times.read(tmp_path / "times.toml") == {}


def test_what_is_gone_from_a_file_that_ran_as_a_whole_goes():
    old = {"a.py::x": 1.0, "a.py::y": 2.0, "b.py::x": 3.0}
    assert times.merged(old, {"a.py::x": 0.1}) == {"a.py::x": 0.1, "a.py::y": 2.0, "b.py::x": 3.0}
    assert times.merged(old, {"a.py::x": 0.1}, {"a.py"}) == {"a.py::x": 0.1, "b.py::x": 3.0}


def test_processor_time_counts_children():
    children = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(10**7))'])"
    began = times.processor_time()
    exec(children)
    assert times.processor_time() - began > 0.02


PAGE = """
import time, pytest

@pytest.mark.parametrize("n", [1, 2])
def test_slow(n):
    end = time.process_time() + 0.35
    while time.process_time() < end:
        pass

def test_quick():
    pass
"""


@pytest.fixture
def folder(pytester, monkeypatch):
    """A folder with tests of which two take long, where nothing is recorded yet."""
    monkeypatch.setattr(times, "RECORD", pytester.path / "times.toml")
    monkeypatch.setattr(times, "MEASURED", pytester.path / "measured")
    monkeypatch.setattr(times.read, "__defaults__", (pytester.path / "times.toml",))
    monkeypatch.setattr(times.write, "__defaults__", (pytester.path / "times.toml",))
    pytester.makepyfile(test_page=PAGE)
    return pytester


def test_what_took_long_is_recorded_and_then_left_out(folder, monkeypatch):
    folder.inline_run("--record-times", plugins=[times]).assertoutcome(passed=3)
    recorded = times.read()
    assert sorted(recorded) == ["test_page.py::test_slow[1]", "test_page.py::test_slow[2]"]
    assert all(0.3 <= seconds < 5 for seconds in recorded.values())
    folder.inline_run("--quick", plugins=[times]).assertoutcome(passed=1)
    monkeypatch.setattr(times, "SLOW", 6.0)
    folder.inline_run("--quick", plugins=[times]).assertoutcome(passed=3)
    folder.inline_run(plugins=[times]).assertoutcome(passed=3)


def test_a_test_that_was_named_runs(folder, monkeypatch):
    times.write({"test_page.py::test_slow[1]": 0.9, "test_page.py::test_slow[2]": 0.9})
    name = "test_page.py::test_slow[1]"
    folder.inline_run("--quick", name, plugins=[times]).assertoutcome(passed=1)


def test_it_says_how_many_are_left_out(folder):
    times.write({"test_page.py::test_slow[1]": 0.9})
    said = folder.runpytest_inprocess("--quick", plugins=[times])
    said.stdout.fnmatch_lines(["1 tests that take 0.1 s and more were left out; make test-all*"])


def test_of_chosen_tests_nothing_recorded_goes(folder):
    other = {"test_page.py::test_slow[2]": 9.0}
    times.write(other)
    folder.inline_run("--record-times", "-k", "quick", plugins=[times]).assertoutcome(passed=1)
    assert times.read() == other
