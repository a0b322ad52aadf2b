"""The two ways of running tests with a line broken: what each notices, and what it does not."""

import json
import subprocess
import sys
import textwrap

import pytest

from tests import mutant_runs
from tests.mutants import ROOT
from tests.mutations import Mutant, mutants_of

PATH = "src/stretto/_engine/a.py"
GUARDED = "src/stretto/_engine/core/guarded.py"

FILES = {
    "conftest.py": """
        import os
        def pytest_collection_modifyitems(items):
            if "STRETTO_NUM_CPU_DEVICES" not in os.environ:
                items[:] = [item for item in items if not item.get_closest_marker("devices")]
    """,
    "src/stretto/__init__.py": """
        import types
        config = types.SimpleNamespace(num_cpu_devices=1)
    """,
    "src/stretto/_engine/__init__.py": "",
    GUARDED: (ROOT / GUARDED).read_text("utf-8"),
    PATH: """
        import os, time
        from stretto._engine.core.guarded import guard
        def tested(x): return x + 1
        def untested(x): return x - 1
        def public(x): return x * 3
        guard(public)
        PAIR = (lambda x: x * 3, lambda x: x + 3)
        def default(x=7): return x
        TABLE = {n: n for n in [9]}
        def several(x): return x // 2
        def waits(x):
            if x > 3:
                time.sleep(100)
        def dies(x):
            if x > 4:
                os._exit(0)
    """,
    "tests/test_a.py": """
        import pytest
        import stretto
        from stretto._engine import a
        SEEN = []
        def test_that_fails_anyway(): assert SEEN
        def test_one(): assert a.tested(1) == 2
        def test_public(): assert a.public(2) == 6
        def test_pair(): assert [f(2) for f in a.PAIR] == [6, 5]
        def test_default(): assert a.default() == 7
        def test_table(): assert a.TABLE == {9: 9}
        def test_waits(): a.waits(3)
        def test_dies(): a.dies(4)
        def test_first(): SEEN.append(a.untested(1))
        def test_that_fails_after_another(): assert SEEN in ([], [0])
        @pytest.mark.devices
        def test_with_devices():
            assert a.several(4) == 2 and stretto.config.num_cpu_devices == 8
    """,
}

BY_FORKS = {
    "def tested(x): return x - 1": "test_one",
    "def untested(x): return x + 1": None,
    "def public(x): return x + 3": "test_public",
    "PAIR = (lambda x: x + 3, lambda x: x + 3)": "test_pair",
    "PAIR = (lambda x: x * 3, lambda x: x - 3)": "test_pair",
    "def default(x=8): return x": None,
    "TABLE = {n: n for n in [10]}": None,
    "def several(x): return x * 2": "test_with_devices",
    "if x >= 3:": "test_waits",
    "if x >= 4:": "test_dies",
}
"""What forks notice of lines that are broken, by which test."""

DRIVER = """
import json, sys
from pathlib import Path
from tests import mutant_runs
from tests.mutations import mutants_of

mutant_runs.IMPORTED, mutant_runs.QUIET = ["stretto"], 4
root, path = Path(sys.argv[1]), sys.argv[2]
forks = mutant_runs.Forks(root, mutant_runs.linked(root / "none", root / "programs"))
found = {}
for mutant in mutants_of(path, (root / path).read_text()):
    if mutant.after.strip() in sys.argv[3:]:
        found[mutant.after.strip()] = forks.noticed(mutant, [["tests/test_a.py"]])
print(json.dumps([found, sorted(forks.left_out)]))
"""


@pytest.fixture
def checkout(tmp_path):
    """A checkout of one module, of which some lines are tested and others are not."""
    for name, text in FILES.items():
        (tmp_path / "here" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "here" / name).write_text(textwrap.dedent(text))
    return mutant_runs.copied(tmp_path / "here", tmp_path / "copy")


def test_forks_notice_what_is_in_functions(checkout):
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(checkout), PATH, *BY_FORKS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found, left_out = json.loads(done.stdout)
    assert found == {
        line: f"tests/test_a.py::{test}" if test else None for line, test in BY_FORKS.items()
    }
    assert left_out == ["tests/test_a.py::test_that_fails_anyway"]


@pytest.mark.parametrize(
    "after, by",
    [
        ("def untested(x): return x + 1", None),
        ("def default(x=8): return x", "test_default"),
        ("TABLE = {n: n for n in [10]}", "test_table"),
        ("def several(x): return x * 2", "test_with_devices"),
    ],
)
def test_a_fresh_process_notices_what_is_anywhere(checkout, tmp_path, after, by):
    test = checkout / "tests" / "test_a.py"
    test.write_text(test.read_text().replace(" and stretto.config.num_cpu_devices == 8", ""))
    text = (checkout / PATH).read_text()
    (mutant,) = [each for each in mutants_of(PATH, text) if each.after.strip() == after]
    files = mutant_runs.Files(checkout, tmp_path / "no-cache")
    noticed = files.noticed(mutant, [["tests/test_a.py"]])
    assert noticed == (f"tests/test_a.py::{by}" if by else None)
    assert (checkout / PATH).read_text() == text


class Scripted(mutant_runs.Runs):
    """Says that tests fail, by what it was told: some with a line broken, others always."""

    def __init__(self, root, when_broken, always=()):
        super().__init__(root)
        self.when_broken, self.always = when_broken, always
        for name in "abc":
            (root / name).touch()

    def run(self, tests, mutant, devices=False):
        fails = {*self.always} | ({*self.when_broken} if mutant else set())
        alone = len(tests) == 1
        found = [t for t in tests if t not in self.left_out and (t in fails or t + "!" in fails)]
        return next((test for test in found if test in fails or not alone), None)


MUTANT = Mutant(PATH, 0, 0, 1, "2", "constant moved", "1")


@pytest.mark.parametrize(
    "when_broken, always, by, left_out",
    [
        ("", "", None, ""),
        ("b", "", "b", ""),
        ("b", "a", "b", "a"),
        ("bc", "ab", "c", "ab"),
        ("a", "a", None, "a"),
        (["a!"], "", None, ""),  # in company only
        (["a!", "c"], "", "c", ""),  # and in the next stage
    ],
)
def test_a_test_notices_that_passes_without_and_fails_again_alone(
    tmp_path, when_broken, always, by, left_out
):
    runs = Scripted(tmp_path, when_broken, always)
    assert runs.noticed(MUTANT, [["a", "b"], [], ["gone", "c"]]) == by
    assert runs.left_out == {*left_out}


def test_a_run_that_names_no_test_is_run_again_as_a_whole(tmp_path):
    runs = Scripted(tmp_path, "")
    said = []
    runs.run = lambda tests, mutant, devices=False: said.append(tests) or ("" if mutant else None)
    assert runs.noticed(MUTANT, [["a", "b"]]) == "a run that does not end, or dies"
    assert said == [["a", "b"]] * 3


def test_programs_begin_with_those_that_are_kept(tmp_path):
    (tmp_path / "kept" / "programs").mkdir(parents=True)
    (tmp_path / "kept" / "programs" / "one").write_text("1")
    made = mutant_runs.linked(tmp_path / "kept", tmp_path / "made")
    (made / "programs" / "one").unlink()
    assert (tmp_path / "kept" / "programs" / "one").read_text() == "1"
    assert [*mutant_runs.linked(tmp_path / "none", tmp_path / "empty").iterdir()] == []
