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


def test_a_run_ends_with_a_table_and_a_file(tmp_path, capsys):
    file = tmp_path / "new" / "figures.json"
    options = [
        "--quick",
        "--frameworks",
        "numpy",
        "--only",
        "eager-add,import",
        "--json",
        str(file),
    ]
    assert main(options) == 0
    assert "eager add" in capsys.readouterr().out
    report = json.loads(file.read_text())
    assert report["quick"]
    assert report["machine"]["cores"] >= 1
    eager, imports = report["benchmarks"]
    assert len(eager["contestants"]["numpy"]["rounds"]) == report["rounds"] == 2
    assert len(imports["contestants"]["numpy"]["empty_process"]) == 3
    assert [goal["met"] for goal in eager["goals"]] == [None] * 3
    assert eager["measured_within"] > 0


def test_ensembles_have_a_table_of_their_own_with_memory(tmp_path, capsys):
    file = tmp_path / "figures.json"
    options = ["--quick", "--frameworks", "numpy", "--only", "mlp-n10-b1-*", "--json", str(file)]
    assert main(options) == 0
    printed = capsys.readouterr().out
    assert "mlp-n10-b1-forward-same: " in printed
    assert "the memory of a call" in printed
    rows = {row["name"]: row["contestants"] for row in json.loads(file.read_text())["benchmarks"]}
    assert set(rows) == {f"mlp-n10-b1-{kind}-{batch}" for kind in KINDS for batch in BATCHES}
    assert 0 <= rows["mlp-n10-b1-forward-own"]["numpy"]["peak_bytes"] < 2**23
    assert rows["mlp-n10-b1-gradient-own"] == {}


def test_a_worker_that_does_not_start_is_named(tmp_path, capsys):
    options = ["--quick", "--frameworks", "numpy,torch", "--only", "eager-add"]
    options += ["--peer-python", "/no/such/python", "--json", str(tmp_path / "figures.json")]
    assert main(options) == 1
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
    ],
)
def test_unusable_options_end_with_2(options, capsys):
    with pytest.raises(SystemExit) as ending:
        main(options)
    assert ending.value.code == 2
    assert "expected" in capsys.readouterr().err


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
        (pytest.approx(2.0), False),
    ]
    assert entry["failures"] == [{"contestant": "torch", "message": "died"}]
