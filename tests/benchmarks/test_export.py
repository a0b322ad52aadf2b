"""The benchmark of exported models: its networks export, and its table says what was measured."""

import argparse
import io

import numpy as np
import pytest
from rich.console import Console

pytest.importorskip("onnxruntime")

from benchmarks.export import __main__ as command
from benchmarks.export.models import MODELS

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
