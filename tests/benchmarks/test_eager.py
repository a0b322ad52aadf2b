"""The comparison with NumPy outside of jit: it runs, and says what failed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import eager
from benchmarks.eager_rows import DTYPES, ROWS, Row


def test_names_are_unique_and_dtypes_known():
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names))
    assert {dtype for row in ROWS for dtype in row.dtypes} <= DTYPES.keys()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_numpy_takes_every_row(row):
    for dtype in row.dtypes:
        random = np.random.default_rng(0)
        arrays = [maker(random, 200, DTYPES[dtype]) for maker in row.makers]
        assert row.function(np, *arrays) is not None


def run(tmp_path, *arguments):
    file = tmp_path / "eager.json"
    short = ["--rounds", "3", "--seconds", "0.01", "--json", str(file)]
    return eager.main([*arguments, *short]), json.loads(file.read_text())


def test_rows_are_measured(tmp_path, capsys):
    status, found = run(tmp_path, "--only", "exp,nonzero", "--sizes", "1e1,1e2")
    assert status == 0
    assert {entry["row"] for entry in found} == {"exp", "nonzero"}
    for entry in found:
        assert set(entry["ratios"]) == set(eager.WAYS)
        assert all(t > 0 for times in entry["seconds"].values() for t in times[:1])
    assert "0 of 0 with 1e5 elements" in capsys.readouterr().out


def test_an_error_is_told_and_the_others_go_on(tmp_path, capsys, monkeypatch):
    def fails(module, x):
        raise RuntimeError("no such thing")

    good = next(row for row in ROWS if row.name == "exp")
    monkeypatch.setattr(eager, "ROWS", [Row("bad", fails, good.makers), good])
    status, found = run(tmp_path, "--sizes", "10", "--dtypes", "float32")
    assert status == 1
    assert [entry.get("error") for entry in found] == ["RuntimeError: no such thing", None]
    assert "bad, float32, 10: RuntimeError" in capsys.readouterr().out


def test_costs_of_primitives(tmp_path):
    status, found = run(tmp_path, "--primitives", "--only", "add,erf", "--dtypes", "float32")
    assert status == 0
    assert {entry["row"] for entry in found} == {"add", "erf"}
    assert all(entry["numpy"] > 0 and entry["compiled"] > 0 for entry in found)
