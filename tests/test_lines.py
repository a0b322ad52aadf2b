"""Recording which tests run which lines."""

import os
import subprocess
import sys

import pytest

from tests.mutants import ROOT, Record

pytest.importorskip("coverage")
from tests import lines

CACHES = "src/stretto/_engine/core/caches.py"


def test_lines_have_their_tests(tmp_path):
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "tests.lines"]
    ran = "tests/_engine/core/test_caches_weak.py"
    subprocess.run(
        [*command, ran],
        cwd=ROOT,
        env={**os.environ, "LINES_OF_TESTS": str(tmp_path)},
        check=True,
        capture_output=True,
    )
    lines.write(tmp_path, tmp_path / "record")
    record = Record(tmp_path / "record", ROOT)
    text = (ROOT / CACHES).read_text("utf-8").splitlines()
    (inside,) = [n for n, line in enumerate(text, 1) if "for reference in references" in line]
    assert record.of(CACHES, inside)
    assert all(test.startswith(f"{ran}::") for test in record.of(CACHES, inside))
    (at_import,) = [n for n, line in enumerate(text, 1) if line.startswith('"""')][:1]
    assert not record.of(CACHES, at_import)
    changed = tmp_path / CACHES
    changed.parent.mkdir(parents=True)
    changed.write_text("another\n")
    assert not Record(tmp_path / "record", tmp_path).of(CACHES, inside)


def test_some_tests_stand_for_many():
    by_file = {
        "tests/numpy/test_far.py": [f"far{i}" for i in range(1000)],
        "tests/_engine/core/test_near.py": ["near"],
    }
    few = lines.few_of(by_file, "src/stretto/_engine/core/caches.py")
    assert few[0] == "near" and len(few) == 1 + lines.EACH and len({*few}) == len(few)


@pytest.mark.parametrize(
    "text, imports",
    [
        ("from stretto._engine.core import caches", True),
        ("from stretto._engine.core import (\n    boundary,\n    caches,\n)", True),
        ("from stretto._engine.core.caches import WeakTable", True),
        ('monkeypatch.setattr("stretto._engine.core.caches.LIMIT", 0)', True),
        ("from stretto._engine.core import boundary\ncaches = boundary", False),
        ("from stretto._engine.core.caches_of import x", False),
        ("from stretto._engine import caches", False),
    ],
)
def test_files_that_import_the_module_are_among_them(monkeypatch, text, imports):
    far = [f"tests/far{n}.py" for n in range(20)]
    by_file = {file: [f"{file}{i}" for i in range(20)] for file in [*far, "tests/own.py"]}
    by_file["tests/own.py"] = ["own"]
    monkeypatch.setattr(lines, "text_of", lambda file: text if file == "tests/own.py" else "")
    assert ("own" in lines.few_of(by_file, CACHES)) is imports


def test_without_a_record_there_are_none(tmp_path):
    assert not Record(tmp_path / "none", ROOT).of(CACHES, 1)
