"""The benchmark of exported models: its networks export, and its table says what was measured."""

import argparse
import io

import numpy as np
import pytest
from rich.console import Console

pytest.importorskip("onnxruntime")

from benchmarks.export import __main__ as command
from benchmarks.export import layers, steps
from benchmarks.export.models import MODELS
from benchmarks.parity.families import cases_of

OPTIONS = argparse.Namespace(threads=1, seconds=0.0)


@pytest.mark.parametrize("name", ["mlp", "gru", "ensemble-small-mlp"])
def test_a_network_is_measured_and_its_values_hold(name, tmp_path):
    row = command.measured(name, 2, tmp_path, OPTIONS)
    assert row["fast_error"] < 1e-5 and row["exact_error"] < 1e-5
    assert row["fast_nodes"] <= row["exact_nodes"] and row["fast_ms"] > 0
    assert ("files_ms" in row) == MODELS[name].ensemble
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(command.table([row]))
    assert name in console.export_text()


def test_ratios_are_to_the_file_of_pytorch():
    row = {"name": "mlp", "batch": 1, "torch_nodes": 10, "fast_nodes": 5, "exact_nodes": 20}
    for key in ("bytes", "ms"):
        row |= {f"{kind}_{key}": 1.0 for kind in command.KINDS}
    row |= {f"{kind}_{key}": 0.0 for kind in command.KINDS for key in ("error", "seconds")}
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(command.table([row]))
    assert "0.50 (2.00)" in console.export_text()


def test_examples_are_like_what_a_network_takes():
    tokens = command.example(MODELS["lstm"], 3)
    assert tokens.dtype == np.int32 and tokens.max() < MODELS["lstm"].tokens
    assert command.example(MODELS["cnn"], 2).shape == (2, 3, 32, 32)


def test_the_command_ends_with_0_where_values_agree(tmp_path, capsys):
    words = ["--only", "mlp", "--seconds", "0", "--json", str(tmp_path / "rows.json")]
    assert command.main(words) == 0
    assert (tmp_path / "rows.json").exists() and "mlp" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name",
    [
        "tiny-lstm-n1-step-sgd",
        "tiny-graph-n1-step-adamw",
        "tiny-gpt2-n1-decode",
        "tiny-vit-s-n1-forward",
        "tiny-ode-n5-step-adam",
        "tiny-unet-n5-forward",
        "growth-small-n3-gradient-own",
    ],
)
def test_a_networks_file_is_as_near_as_stretto_itself(name):
    row = steps.compared(dict(steps.cases([*steps.OPTIMIZERS]))[name]())
    assert row["right"], row
    assert row["nodes"] > 10 and set(row["file"]) == set(row["own"])
    assert [row["name"], str(row["nodes"])] == steps.cells(row)[:2]


def test_what_is_too_far_off_is_said(monkeypatch, capsys):
    distance = lambda got, exact: {"outputs": 0.5 if got is not exact else 0.0}
    monkeypatch.setattr(steps, "distance", distance)
    monkeypatch.setattr(steps, "FACTOR", 0.9)
    assert steps.main(["--only", "tiny-ode-n1-forward"]) == 1
    assert "too far" in capsys.readouterr().out


def test_parts_are_measured_in_units_of_their_leaves():
    exact = {"state": [np.ones(2), np.zeros(2)], "loss": np.full(3, 10.0)}
    got = {"state": [np.full(2, 1.5), np.full(2, 1e-4)], "loss": np.full(3, 10.0)}
    found = steps.distance(got, exact)
    assert found == {"state": pytest.approx(0.5 / 1.001), "loss": 0.0}
    gradients = steps.distance(got["state"], exact["state"])
    assert gradients == {"outputs": pytest.approx(0.5 / 1.001)}


@pytest.mark.parametrize("name", ["gelu", "GRU", "BatchNorm2d", "Dropout", "cross_entropy"])
@pytest.mark.parametrize("opset", [21, 26])
def test_a_layer_has_its_slopes_in_a_file(name, opset):
    (case,) = cases_of(name, 1, 0)
    assert layers.outcome(case, opset) == ("agrees", "")


def test_a_layer_that_differs_is_counted(monkeypatch, capsys):
    monkeypatch.setattr(layers, "_differs", lambda *_: "out is off by 1 of 2")
    assert layers.main(["--only", "gelu", "--count", "1"]) == 1
    out = capsys.readouterr().out
    assert "differs\tgelu 0\tout is off by 1 of 2" in out and "{'differs': 1}" in out
