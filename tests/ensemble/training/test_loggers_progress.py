"""The display of ``fit`` while it runs: a bar on a terminal, lines elsewhere, or nothing.

The bar in a notebook: one display, however many steps there are.
"""

import io
import sys
import types

import numpy as np
import pytest
from rich.console import Console

import stretto as st
from stretto import optim
from stretto.ensemble.training import loggers
from stretto.ensemble.training.loggers import (
    NotebookBar,
    Reporter,
    describe_values,
    entry_text,
    in_notebook,
    name_losses,
)

X = np.ones(4, np.float32)


def shown(show, terminal):
    written = io.StringIO()
    console = Console(file=written, force_terminal=terminal, width=200)
    trainer = st.ensemble.Trainer(lambda m, x: (m(x) ** 2).mean(), optim.sgd(0.1))
    e = st.Ensemble(lambda p, x: p["w"] * x, [{"w": np.float32(1)}, {"w": np.float32(2)}])
    state = trainer.start(e, st.random.PRNGKey(0))
    with Reporter(show, 10, console) as reporter:
        reporter.step(state.replace(step=3))
        history = {"step": np.array([5]), "epoch": np.array([1]), "loss": np.array([[0.5, 2.0]])}
        reporter.entry(state.replace(step=5, history=history))
    return written.getvalue()


@pytest.mark.parametrize(
    ("show", "terminal", "words"),
    [
        (None, True, "epoch 1"),
        (True, True, "0.5 2"),
        (True, False, "step 5, epoch 1 · loss 0.5 2\n"),
    ],
    ids=["bar by default", "bar", "lines"],
)
def test_what_is_shown(show, terminal, words):
    assert words in shown(show, terminal)


@pytest.mark.parametrize(("show", "terminal"), [(False, True), (None, False), (False, False)])
def test_nothing_where_it_is_not_wanted(show, terminal):
    assert shown(show, terminal) == ""


def test_losses_of_many_members_in_words():
    assert describe_values(np.array([1.0, np.nan])) == "1 –"
    assert describe_values(np.full(9, np.nan)) == "–"
    assert describe_values(np.arange(1.0, 8.0)) == "1 … 4 … 7 (7 members)"
    last = {"step": 2, "epoch": 1, "loss": np.array([0.25])}
    assert entry_text(last) == "step 2, epoch 1 · loss 0.25"


def test_the_bar_names_its_numbers():
    assert name_losses(np.array([1.0, 0.5])) == "loss 1 0.5"
    assert name_losses(np.arange(1.0, 8.0)) == "loss (least … median … most) 1 … 4 … 7 (7 members)"
    assert name_losses(np.empty(0)) == ""


class Display:
    """Stand for IPython's: it keeps what was shown, and how often each was updated."""

    def __init__(self):
        self.shown, self.updates = [], []

    def display(self, thing, display_id):
        assert display_id
        self.shown.append(thing._repr_mimebundle_(include=None, exclude=None))
        return types.SimpleNamespace(
            update=lambda thing: self.updates.append(thing._repr_mimebundle_())
        )


@pytest.fixture
def display(monkeypatch):
    display = Display()
    ipython = types.ModuleType("IPython")
    ipython.display = display
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    return display


def fit(**options):
    e = st.Ensemble(lambda p, x: p["w"] * x, [{"w": np.float32(i)} for i in range(2)])
    loss = lambda member, x: ((member(x) - x) ** 2).mean()
    x = np.ones(8, np.float32)
    return e.fit(loss, x, optim.sgd(0.1), key=st.random.key(0), **options)


def test_where_it_is():
    assert not in_notebook()


def test_ipython_in_a_terminal_is_no_notebook(display):
    assert in_notebook()
    sys.modules["IPython"].get_ipython = types.SimpleNamespace
    assert not in_notebook()
    sys.modules["IPython"].get_ipython = lambda: None
    assert not in_notebook()


@pytest.mark.parametrize("progress", [None, True])
def test_one_display(display, progress, capsys):
    fitted = fit(steps=300, evaluate_every=1, batch_size=8, progress=progress)
    assert len(display.shown) == 1 and 1 <= len(display.updates) < 100
    last = display.updates[-1]
    loss = " ".join(f"{x:.4g}" for x in fitted.history["loss"][-1])
    assert last["text/plain"].startswith("epoch 300 · 300/300 · 0:0")
    assert last["text/plain"].endswith(f" · loss {loss}") and "left" not in last["text/plain"]
    assert '<progress value="300" max="300"></progress>' in last["text/html"]
    assert capsys.readouterr() == ("", "")


def test_none_where_it_is_not_wanted(display):
    fit(steps=3, progress=False)
    assert display.shown == []


def test_time_that_is_left(monkeypatch):
    now = iter([0.0, 60.0, 61.0, 61.0])
    monkeypatch.setattr(loggers.time, "monotonic", lambda: next(now))
    bar = NotebookBar(30)
    bar.update(10)  # resumed from there
    bar._done = 20
    assert bar._text() == "training · 20/30 · 0:01:01 · 0:01:01 left"


def test_without_a_total():
    bar = NotebookBar(None)
    bar.update(5, "a < b", "0.5")
    shown = bar._repr_mimebundle_()
    assert shown["text/plain"] == "a < b · 5 · 0:00:00 · 0.5"
    assert shown["text/html"] == "<progress></progress> <code>a &lt; b · 5 · 0:00:00 · 0.5</code>"
