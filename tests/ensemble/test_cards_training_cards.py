"""Texts and cards of trainings."""

import dataclasses

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim
from stretto.ensemble.training.fit_callbacks import Divergence
from tests.pages import page_of, printed, text_in


@pytest.fixture(scope="module")
def fitted():
    x = snp.linspace(-1, 1, 64)[:, None]
    ensemble = st.Ensemble.init(lambda key: nn.Linear(1, 1, key=key), st.random.key(0), 5)
    return ensemble.fit(
        lambda member, x, y: ((member(x) - y) ** 2).mean(),
        (x, 2 * x),
        optim.adam(0.1),
        epochs=40,
        batch_size=16,
        validation=(x, 2 * x),
        early_stopping=3,
    )


def test_the_result_is_a_few_lines(fitted):
    lines = repr(fitted).split("\n")
    assert lines[0].startswith("Fitted: 5 members, ") and lines[0].endswith(" epochs")
    assert lines[1] == "  ensemble: 5 × Linear"
    assert [line.split(":")[0].strip() for line in lines[2:4]] == ["loss", "validation_loss"]
    last = [column[np.isfinite(column)][-1] for column in fitted.history["loss"].T]
    assert f"mean {np.mean(last):.4g}, least {min(last):.4g} (member {np.argmin(last)})" in lines[2]
    assert len(lines) <= 6
    if fitted.stopped:
        assert lines[4].startswith(f"  stopped early: {len(fitted.stopped)}: ")


def test_its_page_has_the_course_and_the_ensemble(fitted):
    assert "<path" in page_of(fitted) and "weight: float32[5,1,1]" in text_in(fitted)
    assert "Fitted" in printed(fitted) and printed(fitted).count("\n") <= 45


def test_states(fitted):
    assert repr(fitted.state).startswith("TrainState(5 members, ") and "\n" not in repr(
        fitted.state
    )
    assert "5 members" in text_in(fitted.state) and "× Linear" in text_in(fitted.state)
    for pack in fitted.state.all_packs():
        assert repr(pack).startswith("Pack(group=") and len(repr(pack)) < 1000
        assert len(repr(pack.rows)) < 2500
        page_of(pack)


def test_who_stopped_and_who_diverged(fitted):
    many = dataclasses.replace(
        fitted,
        stopped=dict.fromkeys(range(100), 7),
        diverged={3: Divergence(4, "<script>"), 5: Divergence(9, "weight")},
    )
    assert "stopped early: 100: 0 at step 7, " in repr(many) and "... 92 more" in repr(many)
    assert "diverged: 2: 3 at step 4 (<script>), 5 at step 9 (weight)" in repr(many)
    assert "<script>" in text_in(many)


@pytest.mark.parametrize("fill", [np.nan, np.inf])
def test_losses_that_are_not_finite(fitted, fill):
    history = {**fitted.history, "loss": np.full_like(fitted.history["loss"], fill)}
    assert "loss: not finite" in repr(dataclasses.replace(fitted, history=history))
    page_of(dataclasses.replace(fitted, history=history))


def test_many_members_entries_and_metrics(fitted):
    history = {f"metric{k}": np.ones((10_000, 500), np.float32) for k in range(50)}
    large = dataclasses.replace(fitted, history={**history, "loss": np.ones((10_000, 500))})
    assert repr(large).count("\n") < 40 and len(repr(large)) < 3000
    page_of(large)
    assert "Fitted" in repr(dataclasses.replace(fitted, history={}))
