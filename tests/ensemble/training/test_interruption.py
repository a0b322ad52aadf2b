"""A training that Ctrl-C stops, wherever that falls: what the ensemble and the files then are."""

import functools
import os

import numpy as np
import pytest

import stretto as st
from stretto import optim
from stretto._engine.core import files
from stretto.ensemble import Checkpoints
from stretto.ensemble.training.loggers import Reporter
from tests.interruptions import interrupted, lines_of

KEY = st.random.PRNGKey(0)
X = np.linspace(-1, 1, 12, dtype=np.float32)
STEPS, POINTS = 4, 16


def ensemble():
    """Make an ensemble of two architectures, so that a step is two calls."""
    apply = lambda p, x: sum(w * x for w in p.values())
    members = [{"w": 0.0}, {"w": 4.0}, {"w": 1.0, "v": 2.0}]
    return st.Ensemble(apply, members)


def fit(e, directory):
    loss = lambda member, x, y: ((member(x) - y) ** 2).mean()
    return e.fit(
        loss,
        (X, 3 * X),
        optim.adam(0.1),
        steps=STEPS,
        batch_size=4,
        key=KEY,
        progress=False,
        checkpoint=directory and Checkpoints(directory, every_steps=1, keep=2),
    )


def bits(e):
    return [np.asarray(x).tobytes() for x in st.tree.leaves(e)]


@pytest.fixture
def reached(monkeypatch):
    """The bits of the ensemble after each step of a training that nobody stops."""
    found = [bits(ensemble())]
    with monkeypatch.context() as patch:
        patch.setattr(Reporter, "step", lambda self, state: found.append(bits(state.ensemble)))
        fit(ensemble(), None)
    assert len(found) == STEPS + 1 and len({tuple(b) for b in found}) == STEPS + 1
    return found


def of_the_training(name):
    return any(part in name for part in ("ensemble/training", "stretto/files", "core/files"))


def test_it_comes_out_and_leaves_all_whole(tmp_path, monkeypatch, reached):
    monkeypatch.setattr(files, "_SECOND", 0.0)
    fit(ensemble(), tmp_path / "first")  # which does more than those that follow
    count = lines_of(lambda: fit(ensemble(), tmp_path / "whole"), of_the_training)
    seen = set()
    for number in np.linspace(0, 0.98 * count, POINTS, dtype=int):
        directory, e = tmp_path / str(number), ensemble()
        act = functools.partial(fit, e, directory)
        assert interrupted(act, of_the_training, number), number
        assert bits(e) in reached, number
        seen.add(reached.index(bits(e)))
        names = os.listdir(directory) if directory.exists() else []
        assert all(name.startswith("step-") for name in names), names
        other = ensemble()
        fitted = fit(other, directory)  # a warning of a damaged file would be an error
        assert bits(other) == reached[-1] and fitted.state.step == STEPS
    assert {0, STEPS} <= seen and len(seen) > 2
