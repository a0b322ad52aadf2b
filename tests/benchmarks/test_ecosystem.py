"""The suites of libraries written for JAX: what their reports say, and which failures are known."""

import json
import sys
import tomllib
from pathlib import Path

from benchmarks.ecosystem import suites
from benchmarks.ecosystem.__main__ import EXCEPTIONS
from benchmarks.ecosystem.libraries import LIBRARIES, Library
from benchmarks.ecosystem.suites import Outcome, compared, fetched

REPORT = """<testsuites><testsuite>
<testcase classname="a.test_a" name="test_one" file="a/test_a.py"/>
<testcase classname="a.test_a" name="test_two" file="a/test_a.py"><skipped/></testcase>
<testcase classname="a.test_a" name="test_three[1.5]" file="a/test_a.py"><failure/></testcase>
<testcase classname="a.test_a.TestB" name="test_four" file="a/test_a.py"><failure/></testcase>
<testcase classname="" name="b.test_b"><error/></testcase>
</testsuite></testsuites>"""


def test_reports(tmp_path):
    (tmp_path / "report.xml").write_text(REPORT)
    outcome = suites.tests_of(tmp_path / "report.xml")
    failed = {
        "a.test_a::test_three[1.5]": "a/test_a.py::test_three[1.5]",
        "a.test_a.TestB::test_four": "a/test_a.py::TestB::test_four",
        "b.test_b": "b/test_b.py",
    }
    assert outcome == Outcome(1, 1, failed)


def test_failures_are_held_to_the_table():
    outcome = Outcome(1, 0, dict.fromkeys(["a::x[1]", "a::x[2]", "a::y"], "a.py"))
    assert compared(outcome, {"a::x*": "why", "a::y": "why"}) == ([], [])
    assert compared(outcome, {"a::x*": "why", "a::z": "why"}) == (["a::y"], ["a::z"])


def test_files_apart_have_processes_of_their_own(tmp_path):
    files = {
        "t/test_a.py": "import mark\ndef test_a(): assert mark.x == 0",
        "t/test_b.py": "import mark\ndef test_b(): mark.x = 1\ndef test_c(): assert mark.x == 0",
        "t/test_c.py": "import mark\ndef test_d(): assert mark.x == 0",
        "mark.py": "x = 0",
    }
    (tmp_path / "t").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    library = Library("t", "1", ("t",), {"PYTHONPATH": str(tmp_path)}, apart=("t/test_b.py",))
    report = tmp_path / "report.xml"
    whole = suites.run(library, tmp_path, report, library.tests, jax=sys.executable)
    assert whole == Outcome(3, 0, {"t.test_b::test_c": "t/test_b.py::test_c"})
    again = suites.run(library, tmp_path, report, [*whole.failed.values()], jax=sys.executable)
    assert again == Outcome(1, 0, {})


def test_sources_that_are_there_are_not_fetched(tmp_path):
    (tmp_path / "dm_haiku-0.0.17").mkdir()
    haiku = next(library for library in LIBRARIES if library.name == "dm-haiku")
    assert fetched(haiku, tmp_path) == tmp_path / "dm_haiku-0.0.17"


def test_libraries_have_the_versions_of_the_environment():
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))
    group = project["dependency-groups"]["ecosystem"]
    assert {f"{library.name}=={library.version}" for library in LIBRARIES} <= set(group)
    assert not [name for name in group if name.split("==")[0] in ("jax", "jaxlib")]


def test_exceptions_are_of_these_libraries_and_have_reasons():
    known = json.loads(EXCEPTIONS.read_text("utf-8"))
    assert known.keys() <= {library.name for library in LIBRARIES}
    assert all(reason for tests in known.values() for reason in tests.values())
