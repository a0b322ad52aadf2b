"""The benchmark of layers, as far as it goes without peers: its tables, its report, its worker."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest

from benchmarks.layers import stretto_worker
from benchmarks.layers.__main__ import main
from benchmarks.layers.catalogue import EXCEPTIONS, ROWS, TASKS
from benchmarks.layers.report import as_layer_table, as_summary
from benchmarks.layers.row import SIZES, Row, Task, compared, integers, normal, of, parameter
from benchmarks.layers.shapes import parameter_shapes, statistics_of
from benchmarks.measure import Row as Measured
from benchmarks.parity.ours import built
from benchmarks.worker import run_once
from stretto import nn
from stretto.nn import functional

TARGETS = {row.target for row in ROWS}


def public():
    """Layers and functions of `nn`, and those of `nn.functional`."""
    found = {name: getattr(nn, name) for name in nn.__all__}
    layers = {n for n, one in found.items() if inspect.isclass(one) and issubclass(one, nn.Module)}
    functions = {name for name, one in found.items() if inspect.isfunction(one)}
    return layers | functions | set(functional.__all__)


def test_every_layer_and_function_has_a_row_or_a_reason_why_not():
    assert public() <= TARGETS | EXCEPTIONS.keys()


def test_exceptions_are_of_what_is_there_and_has_no_row():
    assert EXCEPTIONS.keys() <= public()
    assert not EXCEPTIONS.keys() & TARGETS
    assert all(EXCEPTIONS.values())


def test_names_are_unique_and_each_task_is_one_workload():
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert all(task.workload.name == name for name, task in TASKS.items())
    assert len(TASKS) == sum(len(SIZES) * (1 + row.slope) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_sizes_grow_and_gradients_are_by_something(row):
    def work(size):
        task = Task(row, size, "forward")
        arrays = [one.shape for one in task.setting.inputs]
        arrays += parameter_shapes(task.layer).values() if task.layer else []
        return sum(int(np.prod(shape)) for shape in arrays)

    small, medium, large = map(work, SIZES)
    assert small < medium < large
    task = Task(row, "small", "gradient")
    has_parameters = task.layer is not None and parameter_shapes(task.layer)
    assert not row.slope or any(task.differentiated) or has_parameters


@pytest.mark.parametrize("row", [row for row in ROWS if row.target[0].isupper()], ids=repr)
def test_shapes_for_jax_are_those_of_the_layer(row):
    task = Task(row, "small", "forward")
    module = built(task.layer, "float32")
    shapes = {name: tuple(x.shape) for name, x in module.named_parameters()}
    assert parameter_shapes(task.layer) == shapes
    statistics = {
        name: (tuple(x.shape), float(x[0])) for name, x in module.named_buffers() if x.ndim
    }
    assert statistics_of(task.layer) == statistics


def test_inputs_are_the_same_each_time_and_differ_by_position():
    (first, second), again = of(normal(3), normal(3)).inputs, normal(3)
    np.testing.assert_array_equal(first.values(0), again.values(0))
    assert (first.values(0) != second.values(1)).all()
    assert integers(5, 100).values(0).max() == 4


def test_many_numbers_are_compared_at_some_positions_and_draws_by_their_moments():
    task = TASKS["relu-small-forward"]
    (few,) = compared(task, [np.arange(2**20)])
    assert (few.size, few[0], few[-1]) == (2**18, 0, 2**20 - 1)
    (moments,) = compared(TASKS["dropout-small-forward"], [np.float32([0, 0, 0, 2])])
    np.testing.assert_allclose(moments, [0.75, 0.5, 0.75**0.5], rtol=1e-6)


def results_of(name):
    case = stretto_worker.make(TASKS[name])
    return case.arrays(run_once(case))


def test_outputs_and_gradients_come_in_order():
    """Of a linear layer: outputs, by the input, by bias and weight."""
    x = TASKS["linear-small-gradient"].values[0].astype(float)
    weight, bias = parameter("weight", (128, 784)), parameter("bias", (128,))
    y, dx, dbias, dweight = results_of("linear-small-gradient")
    np.testing.assert_allclose(y, x @ weight.T + bias, rtol=1e-4, atol=1e-4)
    (forward,) = results_of("linear-small-forward")
    np.testing.assert_allclose(forward, y, rtol=1e-5, atol=1e-5)
    # The cotangent, from the gradient by the bias and the weight, is the same.
    ct = np.linalg.lstsq(weight.T.astype(float), dx.T, rcond=None)[0].T
    np.testing.assert_allclose(dbias, ct.sum(0), rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(dweight, ct.T @ x, rtol=1e-2, atol=2e-2)


def test_running_statistics_are_compared_too():
    results = results_of("batch-norm2d-small-forward")
    assert [one.shape for one in results] == [(4, 32, 14, 14), (32,), (32,)]


def test_states_are_one_tuple():
    h, c = results_of("lstm-cell-small-forward")
    assert h.shape == c.shape == (8, 32)


def measured(name, ours, **peers):
    return Measured(
        TASKS[name].workload, {"stretto": [ours] * 3, **{p: [t] * 3 for p, t in peers.items()}}
    )


def test_the_worst_comes_first_and_is_marked():
    rows = [
        measured("relu-small-forward", 1.0, torch=1.0, jax=2.0),
        measured("gelu-small-forward", 1.6, torch=2.0, jax=1.0),
        measured("silu-small-forward", 1.3, torch=1.0),
        measured("silu-small-gradient", 1.0),
    ]
    table = as_layer_table(rows, ["stretto", "torch", "jax"])
    columns = [list(map(str, column.cells)) for column in table.columns]
    assert [name.split("-")[0] for name in columns[0]] == ["gelu", "silu", "relu", "silu"]
    assert columns[-1] == [
        "▲▲ 1.60 (1.60 to 1.60)",
        "▲ 1.30 (1.30 to 1.30)",
        "1.00 (1.00 to 1.00)",
        "",
    ]
    (line,) = as_summary(rows)
    assert line == "forward: 3 rows, geometric mean 1.28; 1 above 1.5, 2 above 1.2"


def test_the_command_checks_without_timing(tmp_path):
    file = tmp_path / "check.json"
    options = ["--check", "--frameworks", "stretto", "--only", "relu-small-*", "--json", str(file)]
    assert main(options) == 0
    report = json.loads(file.read_text())
    assert [one["contestants"] for one in report["benchmarks"]] == [{}, {}]


def test_the_command_times_and_draws(tmp_path, capsys):
    file = tmp_path / "layers.json"
    options = ["--rounds", "1", "--frameworks", "stretto", "--only", "relu-small-*"]
    assert main([*options, "--json", str(file)]) == 0
    report = json.loads(file.read_text())
    assert len(report["benchmarks"][0]["contestants"]["stretto"]["rounds"]) == 1
    assert (tmp_path / "layers.png").read_bytes().startswith(b"\x89PNG")
    assert "relu-small-gradient" in capsys.readouterr().out


def test_unknown_rows_are_refused(capsys):
    with pytest.raises(SystemExit) as ending:
        main(["--only", "nonsense"])
    assert ending.value.code == 2
    assert "nonsense" in capsys.readouterr().err


def test_a_row_without_gradient_has_forward_tasks_alone():
    row = Row("argmax", "argmax", (of(normal(1)),) * 3, slope=False)
    assert [task.kind for task in TASKS.values() if task.row.name == row.name] == ["forward"] * 3
