"""The command that counts mutants: the list of some, which tests are for one, the report."""

import subprocess
import sys
import textwrap

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


def test_the_tests_that_run_a_line_come_before_the_mirror(tmp_path):
    record = mutants.Record(tmp_path / "none", tmp_path)
    record.tests = ["tests/nn/test_d.py::d", "tests/form/test_e.py::e", "tests/_engine/ops/b.py::b"]
    record.files = {MUTANT.path: {"5": [0, 1, 2]}}
    assert mutants.stages(Sources(), record, MUTANT) == [
        ["tests/_engine/ops/b.py::b"],
        ["tests/nn/test_d.py::d"],
        ["tests/_engine/ops/test_a.py"],
    ]


def test_without_a_record_the_mirror_comes_first_and_then_what_is_near(tmp_path):
    record = mutants.Record(tmp_path / "none", tmp_path)
    assert mutants.stages(Sources(), record, MUTANT) == [
        ["tests/_engine/ops/test_a.py"],
        mutants.EVERYWHERE,
        ["tests/_engine/ops/test_b.py", "tests/_engine/ops/test_c.py", "tests/nn/test_d.py"],
    ]


class Way:
    """A way of running tests that notices some mutants, and remembers which were tried."""

    def __init__(self, *notices):
        self.notices, self.tried = notices, []

    def noticed(self, mutant, tests):
        self.tried.append(mutant)
        return "test_a" if mutant in self.notices else None


def test_the_slow_way_is_for_what_the_quick_one_does_not_notice():
    ways = object.__new__(mutants.Ways)
    ways.forks, ways.files = Way(1), Way(2)
    assert [ways.noticed(mutant, []) for mutant in (1, 2, 3)] == ["test_a", "test_a", None]
    assert ways.files.tried == [2, 3]


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
