"""Callbacks: when they are called, what they get, and that they change nothing but by ``stop``."""

import types

import numpy as np
import pytest

import stretto as st
from stretto import optim
from stretto.ensemble import Callback, Checkpoints, DivergenceError, Event
from stretto.ensemble.training import fit_callbacks as module
from stretto.ensemble.training.fit_callbacks import Calls
from stretto.ensemble.training.trainer import Trainer
from tests.processes import together

X = np.linspace(-1, 1, 10, dtype=np.float32)
KEY = st.random.key(3)


def ensemble():
    return st.Ensemble(lambda p, x: p["w"] * x, [{"w": np.float32(i)} for i in range(3)])


def fit(e, callbacks=None, **options):
    loss = lambda member, x, y: ((member(x) - y) ** 2).mean()
    usual = {"epochs": 4, "batch_size": 5, "key": KEY, "progress": False}
    return e.fit(loss, (X, 3 * X), optim.adam(0.1), callbacks=callbacks, **usual | options)


def weights(e):
    return [float(member.params["w"]) for member in e]


class Noted(Callback):
    def __init__(self):
        self.calls = []

    def on_start(self, event):
        self.calls.append(("start", event.step, event.epoch))

    def on_entry(self, event):
        self.calls.append(("entry", event.step, event.epoch))

    def on_end(self, event):
        self.calls.append(("end", event.step, event.epoch))
        self.error = event.error


def test_when_they_are_called():
    noted = Noted()
    fit(ensemble(), [noted], steps=7)
    entries = [("entry", 2, 1), ("entry", 4, 2), ("entry", 6, 3), ("entry", 7, 3)]
    assert noted.calls == [("start", 0, 0), *entries, ("end", 7, 3)] and noted.error is None
    fit(ensemble(), [noted := Noted()], epochs=1, evaluate_every=1)
    assert [c[0] for c in noted.calls] == ["start", "entry", "entry", "end"]


def test_what_they_get():
    seen, e = [], ensemble()
    fitted = fit(e, [seen.append], validation=(X, X), metrics={"one": lambda m, x, y: 1.0})
    assert [event.step for event in seen] == fitted.history["step"].tolist()
    for i, event in enumerate(seen):
        assert set(event.entry) == {"loss", "validation_loss", "validation_one"}
        for name, x in event.entry.items():
            np.testing.assert_array_equal(x, fitted.history[name][i])
        assert len(event.history["step"]) == i + 1 and event.is_first_process
    with pytest.raises(ValueError, match="read-only"):
        seen[0].entry["loss"][0] = 1
    with pytest.raises(RuntimeError, match="must be asked for while the callback runs"):
        print(seen[0].ensemble)


def test_the_ensemble_as_it_stands():
    e, kept = ensemble(), []
    fitted = fit(e, [lambda event: kept.append(event.ensemble)], evaluate_every=1)
    assert len(kept) == 8 and len({tuple(weights(x)) for x in kept}) == 8
    assert weights(kept[-1]) == weights(fitted.ensemble)
    last = []
    fit(e, [types.SimpleNamespace(on_end=lambda event: last.append(event.ensemble))])
    assert last[0] is e


def test_they_do_not_change_the_training():
    def meddle(event):
        for member in event.ensemble.eval():
            member.params["w"] = 0
        event.ensemble.drop([0])
        dict(event.history).clear()
        st.random.normal(st.random.key(0), (3,))

    one, other = fit(ensemble()), fit(ensemble(), [meddle], evaluate_every=None)
    assert weights(one.ensemble) == weights(other.ensemble)
    for name, x in one.history.items():
        np.testing.assert_array_equal(x, other.history[name])


def test_a_callback_can_end_the_training(tmp_path):
    noted, e = Noted(), ensemble()
    stop = lambda event: event.stop() if event.epoch == 2 else None
    fitted = fit(e, [stop, noted], checkpoint=tmp_path)
    assert fitted.state.epoch == 2 and noted.calls[-2:] == [("entry", 4, 2), ("end", 4, 2)]
    assert Checkpoints(tmp_path).steps()[-1] == 4
    fitted = fit(ensemble(), [types.SimpleNamespace(on_start=lambda event: event.stop())])
    assert fitted.state.step == 0 and len(fitted.history) == 0


def test_a_resumed_training_does_not_repeat_entries(tmp_path):
    whole = fit(ensemble())
    noted = Noted()
    fit(ensemble(), [noted], epochs=2, checkpoint=tmp_path)
    seen = []
    begin = types.SimpleNamespace(
        on_start=lambda event: seen.append(event.history["step"].tolist())
    )
    resumed = fit(ensemble(), [noted, begin], checkpoint=tmp_path)
    assert [c[1] for c in noted.calls if c[0] == "entry"] == [2, 4, 6, 8] and seen == [[2, 4]]
    assert ("start", 4, 2) in noted.calls
    assert weights(resumed.ensemble) == weights(whole.ensemble)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_in_one_leaves_what_was_reached(error):
    e, noted, seen = ensemble(), Noted(), []

    def fail(event):
        seen.append(weights(event.ensemble))
        if event.epoch == 2:
            raise error("from the callback")

    with pytest.raises(error, match="from the callback"):
        fit(e, [noted, fail])
    assert weights(e) == seen[-1] != seen[0]
    assert noted.calls[-1] == ("end", 4, 2) and isinstance(noted.error, error)


def test_an_error_of_the_training_is_told():
    noted, seen = Noted(), []
    e = st.Ensemble(lambda p, x: p["w"] * x, [{"w": np.float32(1)}, {"w": np.float32(np.inf)}])
    end = types.SimpleNamespace(on_end=lambda event: seen.append(event.ensemble))
    with pytest.raises(DivergenceError):
        fit(e, [noted, end])
    assert isinstance(noted.error, DivergenceError) and seen == [e]


def test_all_that_were_started_are_told_of_the_end():
    first, last, never = Noted(), Noted(), Noted()

    def fail(event):
        raise RuntimeError("at the end")

    with pytest.raises(RuntimeError, match="at the end"):
        fit(ensemble(), [first, types.SimpleNamespace(on_end=fail), last])
    assert first.calls[-1][0] == last.calls[-1][0] == "end"
    with pytest.raises(RuntimeError, match="at the end"):
        fit(ensemble(), [first, types.SimpleNamespace(on_start=fail), never])
    assert first.calls[-1] == ("end", 0, 0) and never.calls == []


class Keras:
    def on_epoch_end(self, epoch, logs):
        pass


class Misspelt(Callback):
    def on_entri(self, event):
        pass


@pytest.mark.parametrize(
    ("callbacks", "words"),
    [
        (print, r"callbacks must be a list, such as callbacks=\[f\]"),
        ([Noted], r"has the class Noted; make one of it: Noted\(...\)"),
        ([3], "a function of an event, or an object with some of the methods on_start.*got int"),
        ([Keras()], r"'on_epoch_end', which would not be called \(did you mean 'on_entry'\?\)"),
        ([Misspelt()], r"'on_entri', which would not be called \(did you mean 'on_entry'\?\)"),
    ],
)
def test_what_is_no_callback(callbacks, words):
    with pytest.raises(TypeError, match=words):
        fit(ensemble(), callbacks)


class Gathers:
    """Two processes, of which this is the first, as ``process_allgather`` puts them together."""

    def __init__(self, *others):
        self.others, self.asked = list(others), []

    def process_allgather(self, x):
        self.asked.append(int(x))
        return np.array([int(x), self.others.pop(0)])


def with_others(monkeypatch, *others):
    gathers = Gathers(*others)
    monkeypatch.setattr(module, "distributed", gathers)
    return gathers


def state():
    return Trainer(lambda m, x: m(x).mean(), optim.sgd(0.1)).start(ensemble(), KEY)


def test_processes_agree(monkeypatch):
    gathers = with_others(monkeypatch, 1, 0, 0, 1)
    calls = Calls([], together=True)  # the other process has one
    calls.start(state())
    calls.entry(state())
    assert not calls.stopping
    calls.entry(state())
    assert calls.stopping and gathers.asked == [0, 0, 0, 0]
    gathers = with_others(monkeypatch, 0)
    calls = Calls([], together=True)  # none has
    calls.start(state())
    calls.entry(state())
    assert gathers.asked == [0]


def test_all_processes_fail_where_one_does(monkeypatch):
    def fail(event):
        raise ZeroDivisionError

    gathers = with_others(monkeypatch, 0, 0, 0)
    calls = Calls([fail], together=True)
    calls.start(state())
    with pytest.raises(ZeroDivisionError):
        calls.entry(state())
    assert gathers.asked == [1, 0, 2]
    with_others(monkeypatch, 1, 0, 2)
    calls = Calls([], together=True)
    calls.start(state())
    with pytest.raises(RuntimeError, match="a callback of process 1 raised an error"):
        calls.entry(state())


def test_which_process_logs(monkeypatch):
    for process, first in ((0, True), (1, False)):
        monkeypatch.setattr(module, "process_index", lambda process=process: process)
        assert Event(state(), lambda: None, together=True).is_first_process is first
        assert Event(state(), lambda: None).is_first_process


SCRIPT = """
import os
from stretto import optim
from stretto.ensemble import CSVLogger
st.distributed.initialize()
process = st.distributed.process_index()

def fit(callbacks):
    ensemble = st.Ensemble(lambda p, x: p["w"] * x, [{"w": np.float32(i)} for i in range(4)])
    loss = lambda member, x, y: ((member(x) - y) ** 2).mean()
    x = np.linspace(-1, 1, 10, dtype=np.float32)
    return ensemble.fit(
        loss, (x, 3 * x), optim.adam(0.1), epochs=4, batch_size=5, key=st.random.key(3),
        progress=False, mesh=st.make_mesh((2,), ("members",)), callbacks=callbacks,
    )

def stop(event):
    event.ensemble(1.0)
    if event.epoch == 2 and process == 1:
        event.stop()

def fail(event):
    if process == 1:
        raise RuntimeError("here")

fitted = fit([stop, CSVLogger(f"{os.environ['DIRECTORY']}/{process}.csv")])
print("stopped at", fitted.state.epoch)
print("alone", fit([lambda event: event.stop()] if process == 0 else None).state.epoch)
try:
    fit([fail])
except RuntimeError as error:
    print("error:", error)
"""


def test_two_processes(tmp_path):
    outputs = together(SCRIPT, DIRECTORY=str(tmp_path))
    for output in outputs:
        assert "stopped at 2" in output and "alone 1" in output
    assert "error: fit: a callback of process 1 raised an error" in outputs[0]
    assert "error: here" in outputs[1]
    assert [path.name for path in tmp_path.iterdir()] == ["0.csv"]
    assert len((tmp_path / "0.csv").read_text().splitlines()) == 1 + 2 * 4
