"""The tasks of JAX's libraries: running programs, what they tell, and comparing values."""

import ast
import json
import sys
import textwrap
import tomllib
from pathlib import Path

import numpy as np
import pytest

from benchmarks.ecosystem.tasks import __main__ as command
from benchmarks.ecosystem.tasks import comparing, data, running, serving
from benchmarks.ecosystem.tasks.running import Told
from benchmarks.ecosystem.tasks.table import FORMS, ROWS, TASKS, Task, cases
from benchmarks.process import WorkerError
from benchmarks.publish import sections_of_tasks

PROGRAMS = Path("benchmarks/ecosystem/tasks/programs")
PLAIN = Task("plain", "a task", 3, 3)
CHAOTIC = Task("chaotic", "a task", 3, 3, "why")


def told(first=1.0, steps=(0.5, 0.7, 0.6), **values):
    arrays = {name: np.asarray(value, np.float32) for name, value in values.items()}
    return Told(first, 2 * first, list(steps), [2 * s for s in steps], arrays)


def test_each_task_is_a_program_that_knows_nothing_of_stretto():
    modules = {path.stem for path in PROGRAMS.glob("*.py")} - {"__init__"}
    assert modules == {task.name for task in TASKS}
    for name in modules:
        imported = set()
        for node in ast.walk(ast.parse((PROGRAMS / f"{name}.py").read_text("utf-8"))):
            if isinstance(node, ast.Import):
                imported.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module)
        assert "jax" in imported
        assert not any(module.startswith("stretto") for module in imported)


def test_rows_are_of_each_task_and_form():
    assert len(cases()) == len(TASKS) * len(FORMS)
    assert len(ROWS) == 3 * len(cases())
    assert all(len(row.goals) == 1 for row in ROWS.values())


def test_environments_have_the_libraries_that_are_named():
    groups = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["dependency-groups"]
    libraries = {one.split("==")[0] for one in groups["ecosystem"]}
    assert set(command.LIBRARIES) <= libraries
    assert "jax==0.10.2" in groups["ecosystem-jax"]


def steps(count):
    for i in range(count):
        yield {"loss": np.float32(i), "pair": np.arange(2)}
    return {"final": np.float64(0.1)}


def test_programs_tell_their_values_and_times(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["program", "ensemble", "3"])
    serving.serve(None, steps)
    first, line = capsys.readouterr().out.splitlines()
    assert first == serving.COMPLETE
    found = json.loads(line)
    assert found["values"] == {"loss": [0, 1, 2], "pair": [[0, 1]] * 3, "final": 0.1}
    assert found["types"] == {"loss": "float32", "pair": "int64", "final": "float64"}
    assert len(found["seconds"]) == len(found["processor"]) == 2
    assert found["processor_to_first"] > 0


def program(folder, body):
    file = folder / "program.py"
    file.write_text(textwrap.dedent(body))
    return [sys.executable, str(file)]


def test_programs_are_run_with_a_folder_of_their_own(tmp_path):
    line = program(
        tmp_path,
        """
        import json, os, sys
        print("complete", flush=True)
        folder = os.environ.get("STRETTO_CACHE_DIR", "")
        kept = [os.environ["STRETTO_DISK_CACHE"] == "1", bool(folder)]
        numbers = {"values": {"n": [int(sys.argv[2]), *kept]}, "types": {"n": "int64"}}
        print(json.dumps({**numbers, "seconds": [1], "processor": [2], "processor_to_first": 3}))
        """,
    )
    found = running.start(line, "single", 7, tmp_path, {})
    assert found.values["n"].tolist() == [7, 1, 1]
    assert found.first > 0
    assert (found.steps, found.processor, found.processor_to_first) == ([1], [2], 3)
    assert running.start(line, "single", 7, None, {}).values["n"].tolist() == [7, 0, 0]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError('no such thing')", "exit status 1: ValueError: no such thing"),
        ("print('complete'); print('{')", "expected a line of JSON, got '{'"),
        ("import time; time.sleep(60)", "exit status -9"),
    ],
)
def test_programs_that_fail(tmp_path, body, message):
    with pytest.raises(WorkerError, match=message):
        running.start(program(tmp_path, body), "single", 2, None, {}, patience=2)


def test_an_interpreter_that_is_not_there():
    with pytest.raises(WorkerError, match="cannot start /no/such/python"):
        running.start(["/no/such/python"], "single", 2, None, {})
    with pytest.raises(WorkerError, match="does not have numpy"):
        running.versions("/no/such/python", ("numpy",))


def test_versions_are_those_of_the_interpreter():
    found = running.versions(sys.executable, ("numpy",))
    assert found["numpy"] == np.__version__
    assert found["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}")


def test_programs_run_under_both_names():
    assert running.command("jax", "py", "p") == ["py", "-m", f"{running.PROGRAMS}.p"]
    through = ["py", "-m", "stretto.as_jax", "-m", f"{running.PROGRAMS}.p"]
    assert running.command("stretto", "py", "p") == through


def test_distances_are_relative_to_the_largest():
    one = {"a": np.array([1.0, 100.0]), "b": np.array([1, 2])}
    assert comparing.apart(one, one) == 0
    assert comparing.apart({**one, "a": np.array([1.1, 100.0])}, one) == pytest.approx(1e-3)
    assert comparing.apart({"a": np.zeros(2)}, {"a": np.zeros(2)}) == 0


@pytest.mark.parametrize(
    "other",
    [
        {"b": np.zeros(2)},
        {"a": np.zeros(3)},
        {"a": np.zeros(2, np.float32)},
        {"a": np.array([np.nan, 0.0])},
    ],
)
def test_what_cannot_be_compared_is_infinitely_apart(other):
    assert comparing.apart(other, {"a": np.zeros(2)}) == np.inf


def compared(task, narrow=0.0, wide=0.0, nudged=0.0):
    """The agreement of a task whose values are as far apart as this."""

    def run(framework, variables):
        if framework == "jax":
            return told(x=1 + (nudged if data.NUDGE in variables else 0))
        return told(x=1 + (wide if "JAX_ENABLE_X64" in variables else narrow))

    return comparing.agreement(task, run)


def test_equal_values_agree():
    found = compared(PLAIN)
    assert (found.message, found.nudged, found.narrow, found.wide) == (None, None, 0, 0)


def test_values_in_float64_must_be_equal():
    assert "in float64 are 1.0e-03 apart" in compared(CHAOTIC, wide=1e-3).message


def test_values_in_float32_may_differ_where_rounding_decides():
    assert "in float32 are 1.0e-03 apart" in compared(PLAIN, narrow=1e-3, nudged=1.0).message
    found = compared(CHAOTIC, narrow=1e-3, nudged=1e-4)
    assert found.message is None
    assert found.nudged == pytest.approx(1e-4, rel=1e-2)
    assert "by 9.5e-07 where data" in compared(CHAOTIC, narrow=1e-3, nudged=1e-6).message


def test_data_are_the_same_each_time_and_nudged_by_one_unit(monkeypatch):
    x, labels = data.images(20)
    assert (x.shape, x.dtype, labels.dtype) == ((20, 16, 16), "float32", "int32")
    np.testing.assert_array_equal(x, data.images(20)[0])
    moments, points = data.spirals(3, 5)
    assert moments.shape == (5,)
    assert points.shape == (3, 5, 2)
    features, classes = data.regression(30, 4)
    assert features.shape == (30, 4)
    assert set(classes.tolist()) == {0, 1}
    monkeypatch.setenv(data.NUDGE, "1")
    nudged = data.images(20)[0]
    np.testing.assert_allclose(nudged, x, rtol=3e-7, atol=0)
    assert np.mean(nudged != x) > 0.9


def run_main(monkeypatch, tmp_path, *options, ours=1.0):
    """The command over programs that tell at once."""
    starts = []

    def start(line, form, count, folder, variables):
        starts.append((line[0], count, folder is not None))
        mine = "stretto.as_jax" in line
        return told(0.5 if mine else 1.0, [0.2 if mine else 0.1], x=ours if mine else 1.0)

    monkeypatch.setattr(command, "start", start)
    versions = {"python": "3", "stretto": "1", "jax": "1"}
    monkeypatch.setattr(command, "versions", lambda python, packages: dict(versions))
    file = tmp_path / "tasks.json"
    status = command.main(
        ["--only", "linen_mlp-single", "--rounds", "2", "--json", str(file), *options]
    )
    return status, json.loads(file.read_text()), starts


def test_the_command_measures_in_turns(monkeypatch, tmp_path, capsys):
    status, report, starts = run_main(monkeypatch, tmp_path)
    assert status == 0
    rows = {row["name"]: row for row in report["benchmarks"]}
    first, step = rows["linen_mlp-single-first"], rows["linen_mlp-single-step"]
    assert first["contestants"]["stretto"]["rounds"] == [0.5, 0.5]
    assert first["contestants"]["jax"]["processor"] == [2.0, 2.0]
    assert [goal["met"] for goal in first["goals"] + step["goals"]] == [True, False]
    assert report["agreement"]["linen_mlp-single"]["message"] is None
    jax = str(Path(".venv-ecosystem-jax/bin/python").absolute())
    assert [(line == jax, kept) for line, _, kept in starts[-6:]] == [
        (False, True),
        (True, False),
        (False, True),
    ] * 2
    assert "ratio of processor time" in capsys.readouterr().out


def test_values_that_differ_are_a_failure_and_nothing_is_timed(monkeypatch, tmp_path, capsys):
    status, report, _ = run_main(monkeypatch, tmp_path, ours=2.0)
    assert status == 1
    assert report["benchmarks"] == []
    assert "linen_mlp-single: stretto: values in float64 are" in capsys.readouterr().err


def test_a_check_times_nothing(monkeypatch, tmp_path):
    status, report, starts = run_main(monkeypatch, tmp_path, "--check")
    assert (status, report["benchmarks"], len(starts)) == (0, [], 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rounds", "0"], "--rounds: expected at least 1, got 0"),
        (["--only", "no-such"], "--only: expected some of linen_mlp-single"),
    ],
)
def test_options_that_make_no_sense(options, message, capsys):
    with pytest.raises(SystemExit):
        command.main(options)
    assert message in capsys.readouterr().err


def test_runs_are_published_as_tables(monkeypatch, tmp_path):
    _, report, _ = run_main(monkeypatch, tmp_path)
    texts = sections_of_tasks([report])
    assert "MLP, Flax Linen and Optax: a step" in texts["tasks"]
    assert "**missed**" in texts["tasks"]
    assert "| MLP, Flax Linen and Optax |" in texts["tasks-values"]
    assert "jax 1" in texts["tasks-runs"]
    assert sections_of_tasks([]) == {}
