"""The bar in a notebook: one display, however many steps there are."""

import sys
import types

import numpy as np
import pytest

import stretto as st
from stretto import optim
from stretto.ensemble.training import notebook
from stretto.ensemble.training.notebook import NotebookBar, in_notebook


class Display:
    """As IPython's: it keeps what was shown, and how often each was updated."""

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
    monkeypatch.setattr(notebook.time, "monotonic", lambda: next(now))
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
