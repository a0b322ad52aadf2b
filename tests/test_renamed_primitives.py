"""No decision goes by what a primitive is called: the package decides alike under other names."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stretto._engine.kernels import WITHOUT

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def said():
    """What both processes say: with the names as they are, and with others."""
    command = [sys.executable, "-m", "tests.renamed_primitives"]
    processes = [
        subprocess.Popen([*command, which], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for which in ("own", "other")
    ]
    outputs = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    return [json.loads(output) for output in outputs]


def test_one_process_has_other_names(said):
    assert [each["renamed"] for each in said] == [0.0, 1.0]


def test_decisions_are_the_same(said):
    own, other = (each["decisions"] for each in said)
    assert own.keys() == other.keys()
    parted = [
        f"{subject}: {decision}"
        for subject, decisions in own.items()
        for decision in decisions.keys() | other[subject].keys()
        if decisions.get(decision) != other[subject].get(decision)
    ]
    assert not parted


def test_the_programs_are_such_that_decisions_differ(said):
    decisions = said[0]["decisions"]
    loops = {name for name, d in decisions.items() if "scan" in d.get("rolled", "")}
    assert {"dear", "written", "sums"} <= loops
    assert not {"light", "once", "products"} & loops
    assert "mapped" in decisions["mapped calls"]["always rolled"]
    assert "scan" not in decisions["mapped calls"]["always rolled"]
    product = "one wide product" if WITHOUT else "one batched product"
    assert decisions["mapped"]["plans"] == [[product]]
    assert {d["interpreted"] for d in decisions.values() if "interpreted" in d} == {True, False}
    assert len({str(d["compiled"]) for d in decisions.values() if "compiled" in d}) > 10
