"""What ``fit`` shows while it runs: a bar on a terminal, lines elsewhere, or nothing."""

import io

import numpy as np
import pytest
from rich.console import Console

import stretto as st
from stretto import optim
from stretto.ensemble.training.progress import Reporter, described, entry_text, named

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
    assert described(np.array([1.0, np.nan])) == "1 –"
    assert described(np.full(9, np.nan)) == "–"
    assert described(np.arange(1.0, 8.0)) == "1 … 4 … 7 (7 members)"
    last = {"step": 2, "epoch": 1, "loss": np.array([0.25])}
    assert entry_text(last) == "step 2, epoch 1 · loss 0.25"


def test_the_bar_names_its_numbers():
    assert named(np.array([1.0, 0.5])) == "loss 1 0.5"
    assert named(np.arange(1.0, 8.0)) == "loss (least … median … most) 1 … 4 … 7 (7 members)"
    assert named(np.empty(0)) == ""
