"""Successive halving: when, how many, and which configurations are dropped."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from stretto.ensemble.sweeping import Clock, Halving, cuts_of


def test_cuts_keep_one_in_so_many():
    assert cuts_of(200, 27, 3, 1) == {1: 67, 3: 23, 9: 8}
    assert cuts_of(8, 100, 2, 5) == {5: 4, 10: 2, 20: 1}
    assert cuts_of(8, 5, 2, 5) == {} and cuts_of(1, 100, 2, 1) == {}


def test_what_is_behind_is_dropped_with_all_its_members():
    ensemble = st.Ensemble(lambda p, x: p["w"] * x, {"w": snp.zeros(6)})
    x = snp.ones(4)
    trainer = st.ensemble.Trainer(
        lambda m, x: ((m(x) - 1) ** 2).mean(), optim.sgd(0.1), early_stopping=True
    )
    state = trainer.start(ensemble, st.random.key(0))
    state, _ = trainer.step(state, x)
    halving = Halving(100, cuts=((1, 2), (2, 1)), members=(0, 0, 1, 1, 2, 2))
    score = np.array([1.0, 9.0, 4.0, 4.0, 7.0, 7.0])  # means 5, 4 and 7
    same = halving.observe(state, score)  # after no whole epoch
    assert same.each("active").all()
    state = halving.observe(same.replace(epoch=1), score)
    assert state.each("active").tolist() == [True] * 4 + [False] * 2
    assert state.each("stopped").tolist() == [-1] * 4 + [1] * 2
    state, _ = trainer.step(state, x)
    # The best so far counts: 1 and 3, beside 4 and 0.5.
    score = np.array([8.0, 3.0, 5.0, 0.5, np.nan, np.nan])
    state = halving.observe(state.replace(epoch=2), score)
    assert state.each("active").tolist() == [True] * 2 + [False] * 4
    assert state.each("stopped").tolist() == [-1, -1, 2, 2, 1, 1]


def test_who_diverged_is_behind():
    ensemble = st.Ensemble(lambda p, x: p["w"] * x, {"w": snp.array([1.0, 0.0])})
    trainer = st.ensemble.Trainer(
        lambda m, x: snp.log(m(x)).mean(), optim.sgd(0.1), on_divergence="freeze",
        early_stopping=True,
    )  # fmt: skip
    state, _ = trainer.step(trainer.start(ensemble, st.random.key(0)), snp.ones(3))
    halving = Halving(100, cuts=((1, 1),), members=(0, 1))
    state = halving.observe(state.replace(epoch=1), np.array([5.0, 1.0]))
    assert state.each("active").tolist() == [True, False]
    assert state.each("stopped")[0] == -1


def test_arguments_of_early_stopping_are_checked():
    with pytest.raises(ValueError, match="mode must be 'min' or 'max'"):
        Halving(3, mode="best")


def clock(seconds, members):
    made = Clock()
    made.seconds, made.members = seconds, members
    return made


def test_halving_that_costs_more_than_it_saves_says_so():
    words = clock([2.0, 3.0, 0.1, 0.1], [60, 20, 20, 20]).cost([1])
    assert words is not None and "took 2.9 s" in words and "saved 0.6 s" in words
    two = clock([2.0, 3.0, 0.1, 4.0, 0.1, 0.1], [60, 30, 30, 10, 10, 10]).cost([1, 3])
    assert two is not None and "took 6.8 s" in two and "saved 1.7 s" in two
    assert clock([2.0, 1.2, 1.0, 1.0], [60, 20, 20, 20]).cost([1]) is None
    assert clock([2.0, 3.0], [60, 20]).cost([1]) is None  # one epoch does not tell
    assert clock([2.0, 2.0], [60, 60]).cost([]) is None


def test_a_sweep_prints_what_halving_cost(monkeypatch, capsys):
    monkeypatch.setattr(Clock, "cost", lambda self, cuts: f"{len(self.seconds)} epochs, {cuts}")
    x = np.ones((8, 2), np.float32)
    for progress, said in ((None, "sweep: 3 epochs, [1]"), (False, "")):
        st.ensemble.sweep(
            lambda key: st.nn.Linear(2, 1, key=key), lambda m, x: (m(x) ** 2).mean(), x,
            st.optim.sgd, {"learning_rate": [0.1, 0.2]}, validation=x, epochs=3, halving=2,
            progress=progress,
        )  # fmt: skip
        assert said in capsys.readouterr().err
