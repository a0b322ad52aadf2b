"""One rule for modes: ``fit`` trains in train mode, and leaves members in evaluation mode."""

import traceback

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim

X = st.random.normal(st.random.key(0), (24, 3))
KEY = st.random.key(1)


def made():
    def new(key):
        first, second = st.random.split(key)
        return nn.Sequential(
            nn.Linear(3, 4, key=first), nn.BatchNorm1d(4), nn.Dropout(0.5),
            nn.Linear(4, 1, key=second),
        )  # fmt: skip

    return st.Ensemble.init(new, st.random.key(2), 3)


def loss(member, x):
    return (member(x) ** 2).mean()


def fit(ensemble, loss=loss, **options):
    options = {"epochs": 2, "batch_size": 8, "key": KEY, "progress": False, **options}
    return ensemble.fit(loss, X, optim.sgd(0.1), **options)


def test_members_can_be_called_after_a_training():
    ensemble = made()
    fitted = fit(ensemble)
    assert ensemble(X).shape == (3, 24, 1) and fitted.ensemble is ensemble
    assert not any(m.training for m in ensemble[0].modules())
    assert int(ensemble[0][1].num_batches_tracked) == 6


def test_evaluation_mode_before_a_training_makes_no_difference():
    one, other = made(), made().eval()
    fit(one), fit(other)
    np.testing.assert_array_equal(one(X), other(X))
    assert int(fit(one).ensemble[0][1].num_batches_tracked) == 12  # trained on without train()


def test_layers_that_are_in_evaluation_mode_among_others_stay_so():
    def new(key):
        layer = nn.BatchNorm1d(3).eval()
        return nn.Sequential(layer, nn.Linear(3, 1, key=key))

    ensemble = st.Ensemble.init(new, KEY, 2)
    fit(ensemble)
    assert int(ensemble[0][0].num_batches_tracked) == 0


def test_after_an_error_members_are_in_evaluation_mode_too():
    ensemble = made()
    with pytest.raises(st.ensemble.DivergenceError):
        fit(ensemble, lambda member, x: snp.log(-snp.abs(member(x)).mean() - 1))
    assert ensemble(X).shape == (3, 24, 1)


def test_what_is_refused_before_the_first_step_leaves_modes_alone():
    for ensemble in (made(), made().eval()):
        before = ensemble[0].training
        with pytest.raises(ValueError, match="expected a scalar"):
            fit(ensemble, lambda member, x: member(x))
        assert ensemble[0].training == before


def test_a_call_in_train_mode_says_eval_first():
    with pytest.raises(RuntimeError, match=r"Call the model with \.eval\(\) before.*to train it"):
        made()(X)
    ensemble = st.Ensemble([nn.Sequential(nn.Linear(3, 1), nn.Dropout(0.5))])
    with pytest.raises(Exception, match=r"evaluation mode with \.eval\(\), or pass key="):
        ensemble(X)


def test_errors_of_fit_show_the_users_frames_alone():
    def wrong(member, x):
        return member(x[:, :2]).mean()

    with pytest.raises(Exception) as raised:
        fit(made(), wrong)
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert [f.name for f in frames][-1] == "wrong"
    assert all("src/stretto/" not in f.filename for f in frames)
    text = "".join(traceback.format_exception(raised.value))
    assert len(text) < 3000


def test_a_resumed_training_says_from_where(tmp_path, capsys):
    fit(made(), checkpoint=tmp_path)
    assert "goes on" not in capsys.readouterr().err
    fit(made(), checkpoint=tmp_path, epochs=3)
    assert capsys.readouterr().err == ""  # progress=False
    fit(made(), checkpoint=tmp_path, epochs=4, progress=None)
    said = capsys.readouterr().err.replace("\n", "")
    assert f"fit: goes on from {tmp_path}" in said and "step 9, epoch 3" in said


def test_a_function_that_was_compiled_over_the_ensemble_is_warned_of():
    ensemble = made().eval()
    constant = st.jit(lambda x: ensemble(x) + 0)
    handed = st.jit(lambda e, x: e(x))
    before = constant(X)
    with pytest.warns(UserWarning, match="has the weights that this ensemble had before"):
        fit(ensemble)
    np.testing.assert_array_equal(constant(X), before)  # so it is
    assert not np.array_equal(ensemble(X), before)
    handed(ensemble, X)
    st.grad(lambda x: ensemble(x).sum())(X)  # runs at once
    fit(ensemble)  # warnings are errors
