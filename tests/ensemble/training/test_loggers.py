"""Loggers: what they write, also where a training is resumed, and in one process alone."""

import csv
import io
import struct
import sys
import types
from importlib import import_module

import numpy as np
import pytest

import stretto as st
from stretto import optim
from stretto.ensemble import ConsoleLogger, CSVLogger, Logger, TensorBoardLogger, TrackingLogger

X = np.linspace(-1, 1, 10, dtype=np.float32)
KEY = st.random.key(3)


def fit(callbacks, members=2, **options):
    e = st.Ensemble(lambda p, x: p["w"] * x, [{"w": np.float32(i)} for i in range(members)])
    loss = lambda member, x, y: ((member(x) - y) ** 2).mean()
    usual = {"epochs": 4, "batch_size": 5, "key": KEY, "progress": False}
    return e.fit(loss, (X, 3 * X), optim.adam(0.1), callbacks=callbacks, **usual | options)


def test_lines():
    written = io.StringIO()
    history = fit([ConsoleLogger(written)], epochs=2).history
    lines = written.getvalue().splitlines()
    assert len(lines) == 2
    losses = " ".join(f"{x:.4g}" for x in history["loss"][1])
    assert lines[1] == f"step 4, epoch 2 · loss {losses}"


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_csv(tmp_path):
    path = tmp_path / "inner" / "losses.csv"
    history = fit([CSVLogger(path)], validation=(X, X)).history
    rows = rows_of(path)
    assert list(rows[0]) == ["step", "epoch", "member", "loss", "validation_loss"]
    places = [(int(r["step"]), int(r["epoch"]), int(r["member"])) for r in rows]
    assert places == [(2 * e, e, m) for e in (1, 2, 3, 4) for m in (0, 1)]
    for name in ("loss", "validation_loss"):
        read = np.array([r[name] for r in rows]).astype(np.float32).reshape(4, 2)
        np.testing.assert_array_equal(read, history[name])


def test_csv_of_a_killed_and_resumed_training(tmp_path):
    def killed(event):
        if event.epoch == 3:
            raise KeyboardInterrupt

    path, other = tmp_path / "losses.csv", tmp_path / "whole.csv"
    checkpoint = st.ensemble.Checkpoints(tmp_path / "run", every_epochs=2)
    with pytest.raises(KeyboardInterrupt):
        fit([CSVLogger(path), killed], checkpoint=checkpoint)
    assert len(rows_of(path)) == 6  # the third epoch is there, and comes again
    with open(path, "a") as file:
        file.write("8,4,")  # and it was killed while it wrote the fourth
    fit([CSVLogger(path)], checkpoint=checkpoint)
    fit([CSVLogger(other)])
    assert path.read_text() == other.read_text()
    # Going on from the last checkpoint: no entry is new.
    fit([CSVLogger(path)], checkpoint=checkpoint)
    assert path.read_text() == other.read_text()
    # From the beginning, with other members: nothing of the old.
    fit([CSVLogger(path)], members=1, epochs=1)
    assert [r["member"] for r in rows_of(path)] == ["0"]


def test_csv_where_a_column_comes_later(tmp_path):
    path = tmp_path / "losses.csv"
    logger = CSVLogger(path)
    one = {"step": np.array([1]), "epoch": np.array([1]), "loss": np.array([[1.0, 2.0]])}
    two = {
        "step": np.array([1, 2]),
        "epoch": np.array([1, 2]),
        "loss": np.array([[1.0, 2.0], [3.0, 4.0]]),
        "more": np.array([[np.nan, np.nan], [5.0, 6.0]]),
    }
    for history in (one, two):
        logger.write(types.SimpleNamespace(history=history, entry={"loss": 1}))
    assert path.read_text().splitlines() == [
        "step,epoch,member,loss,more",
        "1,1,0,1.0,nan",
        "1,1,1,2.0,nan",
        "2,2,0,3.0,5.0",
        "2,2,1,4.0,6.0",
    ]


class Run:
    def __init__(self):
        self.logged = []


class ByOne(Run):
    def log_metric(self, name, value, step):
        self.logged.append((step, name, value))


class Together(Run):
    def log_metrics(self, by_name, step):
        self.logged += [(step, n, x) for n, x in by_name.items()]


class WeightsAndBiases(Run):
    def log(self, by_name, step):
        self.logged += [(step, n, x) for n, x in by_name.items()]


@pytest.mark.parametrize("kind", [ByOne, Together, WeightsAndBiases])
def test_runs_of_trackers(kind):
    run = kind()
    history = fit([TrackingLogger(run)], epochs=2).history
    loss = history["loss"]
    expected = [
        (2 * e, name, value)
        for e in (1, 2)
        for name, value in [
            ("epoch", e),
            ("loss/mean", pytest.approx(loss[e - 1].mean())),
            ("loss/0", float(loss[e - 1, 0])),
            ("loss/1", float(loss[e - 1, 1])),
        ]
    ]
    assert run.logged == expected and all(type(x) is float for _, _, x in run.logged)
    fit([TrackingLogger(run := kind(), members=False)], epochs=1)
    assert [name for _, name, _ in run.logged] == ["epoch", "loss/mean"]


def test_what_is_not_a_number_is_left_out():
    run = Together()
    entry = {"loss": np.array([np.nan, 2.0]), "f1": np.array([np.nan, np.nan])}
    TrackingLogger(run).write(types.SimpleNamespace(step=1, epoch=1, entry=entry))
    assert run.logged == [(1, "epoch", 1.0), (1, "loss/mean", 2.0), (1, "loss/1", 2.0)]


def test_what_is_no_run():
    with pytest.raises(TypeError, match=r"expected a run with log_metrics\(.*, got Run"):
        TrackingLogger(Run())


def test_only_the_first_process_writes():
    class Noted(Logger):
        def __init__(self):
            self.calls = []

        def open(self, event):
            self.calls.append("open")

        def write(self, event):
            self.calls.append("write")

        def close(self):
            self.calls.append("close")

    for first, calls in ((False, []), (True, ["open", "write", "close"])):
        noted, event = Noted(), types.SimpleNamespace(is_first_process=first)
        noted.on_start(event)
        noted.on_entry(event)
        noted.on_end(event)
        assert noted.calls == calls


# TensorBoard


class FakeWriter:
    def __init__(self, directory, purge_step, filename_suffix):
        self.calls = [("open", directory, purge_step, filename_suffix)]
        writers.append(self)

    def add_scalar(self, name, value, step):
        self.calls.append((name, value, step))

    def flush(self):
        self.calls.append("flush")

    def close(self):
        self.calls.append("close")


writers = []


@pytest.mark.parametrize("package", ["tensorboardX", "torch.utils.tensorboard"])
def test_tensorboard_by_either_package(package, monkeypatch, tmp_path):
    for name in ("tensorboardX", "torch", "torch.utils", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, name, None)  # as if not installed
    parts = package.split(".")
    for i in range(len(parts)):
        monkeypatch.setitem(sys.modules, ".".join(parts[: i + 1]), types.ModuleType("fake"))
    sys.modules[package].SummaryWriter = FakeWriter
    writers.clear()
    loss = fit([TensorBoardLogger(tmp_path)], epochs=1).history["loss"][0]
    (writer,) = writers
    assert writer.calls == [
        ("open", str(tmp_path), 1, ".0"),
        ("epoch", 1.0, 2),
        ("loss/mean", pytest.approx(loss.mean()), 2),
        ("loss/0", float(loss[0]), 2),
        ("loss/1", float(loss[1]), 2),
        "flush",
        "close",
    ]


def test_tensorboard_that_is_not_installed(monkeypatch):
    for name in ("tensorboardX", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, name, None)
    words = "TensorBoardLogger needs tensorboardX or torch: pip install tensorboardX"
    with pytest.raises(ModuleNotFoundError, match=words):
        TensorBoardLogger("runs")


def test_event_files(tmp_path):
    """They are read without TensorFlow: records of a length, its checksum, data, and theirs."""
    pytest.importorskip("tensorboardX", reason="it writes the files")
    event_pb2 = import_module("tensorboardX.proto.event_pb2")
    fit([TensorBoardLogger(tmp_path / "log")], epochs=2, checkpoint=tmp_path / "run")
    fit([TensorBoardLogger(tmp_path / "log")], epochs=4, checkpoint=tmp_path / "run")
    values = {}
    for path in sorted((tmp_path / "log").iterdir()):
        data, at = path.read_bytes(), 0
        while at < len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            event = event_pb2.Event.FromString(data[at + 12 : at + 12 + size])
            at += 12 + size + 4
            for value in event.summary.value:
                values.setdefault(value.tag, []).append((event.step, value.simple_value))
    loss = fit([]).history["loss"]
    assert set(values) == {"epoch", "loss/mean", "loss/0", "loss/1"}
    assert sorted(values["loss/1"]) == [(2 * e, float(loss[e - 1, 1])) for e in (1, 2, 3, 4)]
