"""The command, with NumPy alone: exit status, table, JSON."""

from __future__ import annotations

import json

import pytest

from benchmarks.__main__ import main
from benchmarks.catalogue import WORKLOADS
from benchmarks.measure import Failure, Row
from benchmarks.report import as_json, peak_flops
from benchmarks.report_ensembles import memory_of
from benchmarks.workloads_ensembles import BATCHES

KINDS = ("forward", "gradient")


def options(file, *more):
    """Options of a run with NumPy alone."""
    return ["--frameworks", "numpy", "--json", str(file), *more]


def test_a_run_ends_with_a_table_a_file_and_a_picture(tmp_path, capsys):
    file = tmp_path / "new" / "figures.json"
    assert main(options(file, "--quick", "--rounds", "1", "--only", "eager-add,import")) == 0
    printed = capsys.readouterr().out
    assert "eager add" in printed
    assert "not compared: 2 rows: no earlier run has the row" in printed
    report = json.loads(file.read_text())
    assert report["mode"] == "quick"
    assert report["machine"]["cores"] >= 1
    eager, imports = report["benchmarks"]
    assert len(eager["contestants"]["numpy"]["rounds"]) == 1
    assert len(imports["contestants"]["numpy"]["empty_process"]) == 1
    assert [goal["met"] for goal in eager["goals"]] == [None] * 2
    assert eager["measured_within"] > 0
    assert file.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert [copy.name[:8] for copy in (tmp_path / "new" / "history").iterdir()] == ["figures-"]


def test_a_check_is_not_kept(tmp_path):
    assert main(options(tmp_path / "check.json", "--check", "--only", "eager-add")) == 0
    assert [file.name for file in tmp_path.iterdir()] == ["check.json"]


def test_rows_have_rounds_of_their_own_in_the_quick_run(tmp_path):
    file = tmp_path / "figures.json"
    assert main(options(file, "--quick", "--only", "import")) == 0
    (row,) = json.loads(file.read_text())["benchmarks"]
    assert len(row["contestants"]["numpy"]["rounds"]) == WORKLOADS["import"].quick_rounds == 2


def test_ensembles_have_a_table_of_their_own_with_memory(tmp_path, capsys):
    file = tmp_path / "figures.json"
    assert main(options(file, "--check", "--only", "mlp-n10-b1-*")) == 0
    printed = capsys.readouterr().out
    assert "mlp-n10-b1-forward-same: " in printed
    assert "the memory of a call" in printed
    rows = {row["name"]: row["contestants"] for row in json.loads(file.read_text())["benchmarks"]}
    assert set(rows) == {f"mlp-n10-b1-{kind}-{batch}" for kind in KINDS for batch in BATCHES}
    assert 0 <= rows["mlp-n10-b1-forward-own"]["numpy"]["peak_bytes"] < 2**23
    assert rows["mlp-n10-b1-gradient-own"] == {}


def test_a_worker_that_does_not_start_is_named(tmp_path, capsys):
    more = ["--check", "--only", "eager-add", "--peer-python", "/no/such/python"]
    assert main(options(tmp_path / "figures.json", *more, "--frameworks", "numpy,torch")) == 1
    assert "start: torch: cannot start /no/such/python" in capsys.readouterr().err


@pytest.mark.parametrize(("peak", "text"), [(None, ""), (4096, "< 0.2 MB"), (3 * 2**19, "1.5 MB")])
def test_memory_is_told_as_far_as_it_is_known(peak, text):
    row = Row(WORKLOADS["mlp-n10-b64-forward-same"], {"jax": [1.0]}, {"jax": {"peak_bytes": peak}})
    assert memory_of(row, "jax") == text


@pytest.mark.parametrize(
    "options",
    [
        ["--only", "nonsense"],
        ["--only", "import,cnm-*"],
        ["--only", ","],
        ["--rounds", "0"],
        ["--frameworks", "mlx"],
        ["--quick", "--check"],
    ],
    ids=" ".join,
)
def test_unusable_options_end_with_2(options, capsys):
    with pytest.raises(SystemExit) as ending:
        main(options)
    assert ending.value.code == 2
    assert "error: argument" in capsys.readouterr().err


def test_goals_and_fractions_of_the_peak():
    product = Row(WORKLOADS["product"], {"jax": [2.0, 1.0, 2.0]}, {"jax": {}})
    workload = WORKLOADS["mlp-n10-b64-forward-same"]
    seconds = workload.flops / WORKLOADS["product"].flops
    row = Row(
        workload,
        {"stretto": [4 * seconds], "jax": [5 * seconds], "jax unroll": [2 * seconds]},
        {"stretto": {}, "jax": {}, "jax unroll": {}},
        [Failure(workload.name, "torch", "died")],
    )
    assert peak_flops([product, row]) == product.workload.flops
    _, entry = as_json([product, row])
    assert entry["contestants"]["stretto"]["fraction_of_peak"] == pytest.approx(0.25)
    assert entry["fastest_peer"] == "jax unroll"
    assert [(goal["ratio"], goal["met"]) for goal in entry["goals"]] == [
        (pytest.approx(2.0), False)
    ]
    assert entry["failures"] == [{"contestant": "torch", "message": "died"}]
