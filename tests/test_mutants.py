"""The command that counts mutants: the list of some, which tests are for one, the report."""

import ast
import subprocess
import sys
import textwrap

import pytest

from tests import mutants
from tests.mutations import Mutant


def test_a_line_of_the_list_may_be_broken_in_several_ways(tmp_path):
    rows = """
        mutant = [
            {before = "x < 1", after = ["x <= 1", "x < 2"], because = "both hold"},
            {before = "y", after = "z", because = "names"},
        ]
    """
    (tmp_path / "list.toml").write_text(textwrap.dedent(rows))
    assert mutants.equivalent(tmp_path / "list.toml") == {
        ("x < 1", "x <= 1"): "both hold",
        ("x < 1", "x < 2"): "both hold",
        ("y", "z"): "names",
    }


class Sources:
    """Two modules with mirrors, of which one uses the other."""

    names = {  # noqa: RUF012
        "src/stretto/_engine/ops/a.py": "a",
        "src/stretto/_engine/ops/b.py": "b",
        "tests/_engine/ops/test_c.py": "tests.c",
    }

    def mirrors(self, name):
        return [f"tests/_engine/ops/test_{name}.py"]

    def around(self, names, depth):
        return [*names, "b"]

    def testers(self, name):
        return ["tests/form/test_every.py", "tests/nn/test_d.py"]


MUTANT = Mutant("src/stretto/_engine/ops/a.py", 4, 0, 1, "2", "constant moved", "1")


LINE = mutants.Told(False, set(), 1, 9)


@pytest.fixture
def text(monkeypatch):
    """What is told of the line, and the tests around it."""
    said = {"told": LINE, "tests": ["tests/nn/test_d.py::d", "tests/nn/test_d.py::reads"]}
    monkeypatch.setattr(mutants.Path, "read_text", lambda file, encoding: "")
    monkeypatch.setattr(mutants, "told_of", lambda tree, line: said["told"])
    monkeypatch.setattr(mutants.Record, "around", lambda self, path, line, told: said["tests"])
    return said


def test_the_tests_that_run_a_line_come_before_the_mirror(tmp_path, text):
    record = mutants.Record(tmp_path / "none", tmp_path)
    record.tests = ["tests/nn/test_d.py::d", "tests/form/test_e.py::e", "tests/_engine/ops/b.py::b"]
    record.files = {MUTANT.path: {"5": [0, 1, 2]}}
    assert mutants.stages(Sources(), record, MUTANT) == [
        ["tests/_engine/ops/b.py::b"],
        ["tests/nn/test_d.py::d"],
        ["tests/_engine/ops/test_a.py"],
        ["tests/nn/test_d.py::reads"],
        ["tests/_engine/ops/test_b.py", "tests/nn/test_d.py"],
    ]


def test_for_a_line_that_runs_at_import_those_of_what_reads_it_run(tmp_path, text):
    record = mutants.Record(tmp_path / "none", tmp_path)
    record.tests, record.files = ["tests/nn/test_d.py::imports"], {MUTANT.path: {"5": [0]}}
    text["told"] = LINE._replace(at_import=True)
    assert mutants.stages(Sources(), record, MUTANT) == [
        [],
        ["tests/nn/test_d.py::d", "tests/nn/test_d.py::reads"],
        ["tests/_engine/ops/test_a.py"],
        mutants.EVERYWHERE,
        ["tests/_engine/ops/test_b.py", "tests/nn/test_d.py"],
    ]


@pytest.mark.parametrize("at_import", [False, True])
def test_without_a_record_the_mirror_comes_first_and_then_what_is_near(tmp_path, text, at_import):
    record = mutants.Record(tmp_path / "none", tmp_path)
    text["told"], text["tests"] = LINE._replace(at_import=at_import), []
    assert mutants.stages(Sources(), record, MUTANT) == [
        ["tests/_engine/ops/test_a.py"],
        mutants.EVERYWHERE,
        ["tests/_engine/ops/test_b.py", "tests/_engine/ops/test_c.py", "tests/nn/test_d.py"],
    ]


MODULE = """\
LIMIT = 3
MOST, LEAST = (
    5,
    1,
)

class Kept:
    name = "x"

    @cached
    def method(self, least=2,
               most=4):
        self.total = \\
            MOST
        return least
    other = 1

def f(x, y=7):
    def g(z=8):
        x.total += LIMIT
    return g
"""


@pytest.mark.parametrize(
    "line, told",
    [
        (1, (True, {"LIMIT"}, 1, 1)),
        (3, (True, {"MOST", "LEAST"}, 3, 3)),
        (6, (True, set(), 6, 6)),
        (8, (True, {"Kept", "name"}, 7, 16)),
        (10, (True, set(), 13, 15)),
        (12, (True, set(), 13, 15)),
        (13, (False, {"total"}, 13, 15)),
        (14, (False, {"total"}, 13, 15)),
        (15, (False, set(), 13, 15)),
        (16, (True, {"Kept", "other"}, 7, 16)),
        (18, (True, set(), 19, 21)),
        (19, (False, set(), 19, 21)),
        (20, (False, {"total"}, 19, 21)),
    ],
)
def test_what_the_text_tells_of_a_line(line, told):
    assert mutants.told_of(ast.parse(MODULE), line) == told


@pytest.mark.parametrize(
    "line, tests",
    [
        (1, ["inside", "another"]),
        (3, ["sets"]),
        (8, ["returns", "sets", "another"]),
        (12, ["sets", "returns"]),
        (13, ["returns", "inside", "sets"]),
        (15, ["sets"]),
        (18, ["inside", "after"]),
        (20, ["after", "sets"]),
    ],
)
def test_tests_of_what_is_beside_a_line_and_of_what_reads_what_it_sets(tmp_path, line, tests):
    (tmp_path / "a.py").write_text(MODULE)
    (tmp_path / "b.py").write_text("from a import LIMIT\n\ndef h():\n    return LIMIT, Kept\n")
    record = mutants.Record(tmp_path / "none", tmp_path)
    record.tests = ["sets", "returns", "inside", "after", "another"]
    record.files = {
        "b.py": {"4": [4]},
        "a.py": {"13": [0], "14": [0], "15": [1], "20": [2], "21": [3]},
    }
    told = mutants.told_of(ast.parse(MODULE), line)
    assert sorted(record.around("a.py", line, told)) == sorted(tests)


def test_of_many_tests_some_run_first_those_of_lines_that_few_run(tmp_path):
    (tmp_path / "a.py").write_text("LIMIT = 3\n" + "f = lambda: LIMIT\n" * 200)
    record = mutants.Record(tmp_path / "none", tmp_path)
    record.tests = [*map(str, range(200))]
    lines = {str(n + 2): [*range(n)] for n in range(200)}
    record.files = {"a.py": lines}
    told = mutants.Told(True, {"LIMIT"}, 1, 1)
    found = record.around("a.py", 1, told)
    assert len(found) == mutants.READERS // 2 and found[:3] == ["0", "1", "2"]


class Way:
    """A way of running tests that notices some mutants, and remembers what was tried."""

    def __init__(self, *notices, functions=()):
        self.notices, self.functions, self.tried = notices, functions, []

    def codes(self, mutant):
        return [mutant] if mutant in self.functions else []

    def noticed(self, mutant, tests):
        self.tried.append((mutant, tests))
        return "test_a" if mutant in self.notices else None


def test_the_slow_way_is_for_what_the_quick_one_does_not_notice():
    """It runs the last tests of what is in no function, which the quick way cannot break."""
    ways = object.__new__(mutants.Ways)
    ways.forks, ways.files = Way(1, functions=(1, 2)), Way(2)
    found = [ways.noticed(mutant, [["near"], ["far"]]) for mutant in (1, 2, 3)]
    assert found == ["test_a", "test_a", None]
    assert ways.files.tried == [(2, [["near"]]), (3, [["near"], ["far"]])]


PROCESSES = """
from tests import mutants

class Way:
    def noticed(self, mutant, tests):
        return tests[mutant]

for found in mutants.results(Way(), [(n, "abcde") for n in range(5)], jobs=2):
    print(*found)
"""


def test_several_processes_yield_what_noticed_each():
    command = [sys.executable, "-c", PROCESSES]
    done = subprocess.run(command, cwd=mutants.ROOT, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.splitlines()) == [f"{n} {'abcde'[n]} False" for n in range(5)]


def test_the_report_counts(capsys):
    results = [(MUTANT, "test_a", False)] * 19 + [(MUTANT, "only speed", True)]
    assert mutants.report(iter(results)) == 0
    assert "19 of 19 noticed; 1 more" in capsys.readouterr().out
    assert mutants.report(iter([*results, (MUTANT, None, False)] + [(MUTANT, None, False)])) == 1
    out = capsys.readouterr().out
    assert "19 of 21 noticed" in out and out.count("a.py:5: constant moved") == 24
