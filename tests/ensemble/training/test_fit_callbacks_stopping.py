"""Early stopping of each member: its parameters stay, the rest is packed anew, the best returns."""

import numpy as np
import pytest

import stretto as st
from stretto import optim
from stretto.ensemble import EarlyStopping, Trainer

KEY = st.random.PRNGKey(0)
X = np.linspace(-1, 1, 8, dtype=np.float32)


def times(params, x):
    return params["w"] * x


def squares(member, x, y):
    return ((member(x) - y) ** 2).mean()


def ensemble(count):
    return st.Ensemble(times, [{"w": np.float32(i + 2)} for i in range(count)])


def state_of(scores, patience, **options):
    """The state after evaluations with these scores, a step before each."""
    trainer = Trainer(squares, optim.sgd(0.1), early_stopping=True)
    state = trainer.start(ensemble(len(scores[0])), KEY)
    stopping = EarlyStopping(patience, **options)
    for row in scores:
        state, _ = trainer.step(state, (X, X))
        state = stopping.observe(state, np.array(row, np.float32))
    return state


def test_patience_counts_evaluations_without_a_better_score():
    nan = np.nan
    scores = [[3, 3, 3, nan], [2, 4, 2.9, nan], [2.5, 5, 2.8, nan], [1, 6, 2.7, nan]]
    state = state_of(scores, 2)
    assert state.each("stopped").tolist() == [-1, 3, -1, 2]
    assert state.each("active").tolist() == [True, False, True, False]
    best = state.packs[0].rows.best
    np.testing.assert_array_equal(best.score, np.array([1, 3, 2.7, np.inf], np.float32))
    # 0.1 better is not better by more than 0.5.
    assert state_of(scores, 2, min_delta=0.5).each("stopped").tolist() == [-1, 3, 3, 2]


def test_a_stopped_member_keeps_its_bits_and_the_best_are_those_of_their_evaluation():
    trainer = Trainer(squares, optim.adam(0.1), early_stopping=True)
    stopping = EarlyStopping(1)
    state = trainer.start(ensemble(2), KEY)
    seen = []
    for row in ([1, 1], [2, 0.5], [3, 0.25], [4, 9]):
        state, _ = trainer.step(state, (X, X))
        state = stopping.observe(state, row)
        seen.append([float(m.params["w"]) for m in state.ensemble])
    first, second = zip(*seen, strict=True)
    assert first[1] == first[2] == first[3] and first[0] != first[1]
    assert len(set(second)) == 4
    assert [float(m.params["w"]) for m in state.best] == [first[0], second[2]]


def test_fit_stops_members_packs_the_others_and_restores_the_best():
    e = ensemble(5)
    fitted = e.fit(
        squares,
        (X, X),
        optim.sgd,
        epochs=8,
        batch_size=8,
        key=KEY,
        hyperparams={"learning_rate": [0.1, -0.1, 0.2, -0.1, -0.2]},
        validation=(X, X),
        early_stopping=2,
    )
    # The first evaluation comes after a step, and is the best of those that get worse.
    assert fitted.stopped == {1: 3, 3: 3, 4: 3}
    losses = fitted.history["validation_loss"]
    assert losses.shape == (8, 5)
    assert np.isnan(losses[3:, [1, 3, 4]]).all() and not np.isnan(losses[:, [0, 2]]).any()
    assert [p.group.places for p in fitted.state.packs] == [(0, 2)]
    assert [p.group.places for p in fitted.state.finished[0]] == [(1, 3, 4)]
    best = np.nanmin(losses, 0)
    got = [float(squares(m, X, X)) for m in e]
    np.testing.assert_allclose(got, best, rtol=1e-5)
    # As they were when they were stopped, without the restoration.
    last = [float(squares(m, X, X)) for m in fitted.state.ensemble]
    np.testing.assert_allclose(
        last, [losses[-1 if i in (0, 2) else 2, i] for i in range(5)], rtol=1e-5
    )


def test_packing_changes_nothing_for_the_others():
    def fit(count, rates):
        e = ensemble(count)
        e.fit(
            squares, (X, X), optim.adam, epochs=6, batch_size=2, key=KEY,
            hyperparams={"learning_rate": rates}, validation=(X, X),
            early_stopping=EarlyStopping(1, restore_best=False),
        )  # fmt: skip
        return [float(m.params["w"]) for m in e]

    with_stopped = fit(4, [0.1, -0.1, -0.1, -0.1])
    assert with_stopped[0] == pytest.approx(fit(1, [0.1])[0], rel=1e-6)


def test_another_score_and_the_larger_the_better():
    assert EarlyStopping(1, monitor="a", mode="max").score({"a": np.array([2.0])}) == [-2.0]
    with pytest.raises(ValueError, match="monitor='a' is not among what is evaluated: loss"):
        EarlyStopping(1, monitor="a").score({"loss": np.zeros(1)})
    with pytest.raises(ValueError, match="patience must be at least 1"):
        EarlyStopping(0)
    with pytest.raises(ValueError, match="mode must be 'min' or 'max', got 'best'"):
        EarlyStopping(1, mode="best")


def test_all_stopped_ends_the_training():
    fitted = ensemble(2).fit(
        squares, (X, X), optim.scale(0.1), epochs=50, batch_size=8, validation=(X, X),
        early_stopping=1,
    )  # fmt: skip
    assert fitted.state.step == 2 and fitted.stopped == {0: 2, 1: 2}
