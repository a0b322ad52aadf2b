"""The check that Stretto and JAX live in one process, without JAX: what it starts and reports."""

import subprocess
import sys

import pytest

from benchmarks import coexistence


@pytest.fixture
def runs(monkeypatch):
    """The processes that would have been started; the peers' Python is our own by default."""
    started, answers = [], {"version": "{} {}".format(*sys.version_info[:2]), "codes": {}}

    def run(python, *arguments):
        started.append(arguments)
        if len(arguments) == 2:
            return subprocess.CompletedProcess(arguments, 0, answers["version"], "")
        code = answers["codes"].get(arguments[3:], 0)
        return subprocess.CompletedProcess(arguments, code, "versions", "why\nbecause")

    monkeypatch.setattr(coexistence, "_run", run)
    return started, answers


def test_every_order_is_tried(runs, capsys):
    started, _ = runs
    assert coexistence.main([]) == 0
    orders = {arguments[3:] for arguments in started[1:]}
    assert orders == {
        (first, second, when)
        for first, second in (("jax", "stretto"), ("stretto", "jax"))
        for when in ("imported", "used")
    }
    assert capsys.readouterr().out.count("both compute (versions)") == 4


def test_a_failure_is_told(runs, capsys):
    _, answers = runs
    answers["codes"]["stretto", "jax", "used"] = 1
    assert coexistence.main([]) == 1
    assert "stretto used before jax: FAILED (because)" in capsys.readouterr().out


def test_another_python_is_left_alone(runs, capsys):
    started, answers = runs
    answers["version"] = "3 99"
    assert coexistence.main([]) == 0
    assert "not checked, the peers run on Python 3.99" in capsys.readouterr().out
    assert len(started) == 1


def test_the_program_is_python():
    compile(coexistence.PROGRAM, "program", "exec")
