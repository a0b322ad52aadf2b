"""Looks at data before the first step of fit: numbers that are not finite, and labels."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim
from stretto.ensemble.training import fit_arguments

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 3)).astype(np.float32)
Y = RNG.integers(0, 2, 100).astype(np.int32)
KEY = st.random.key(0)


def made(outputs=2):
    return st.Ensemble.init(lambda key: nn.Linear(3, outputs, key=key), KEY, 3)


def loss(member, x, y):
    return nn.functional.cross_entropy(member(x), y)


def fit(data, loss=loss, ensemble=None, **options):
    options = {"epochs": 1, "key": KEY, "progress": False, **options}
    return (ensemble or made()).fit(loss, data, optim.adam(1e-2), **options)


def changed(x, place, value):
    x = x.copy()
    x[place] = value
    return x


@pytest.mark.parametrize("label", [7, 2, -1, -99, 2**31 - 1])
@pytest.mark.parametrize("place", [0, 63, 98, 99], ids=str)
def test_a_label_that_is_no_class(label, place):
    """Also the last example, which fills no whole batch."""
    ensemble = made()
    before = ensemble(X)
    message = (
        rf"data\[1\] has the class {label} in example {place}, and cross_entropy got 2 classes"
    )
    with pytest.raises(ValueError, match=message) as raised:
        fit((X, changed(Y, place, label)), ensemble=ensemble)
    assert "learning rate" not in str(raised.value) and "np.unique" in str(raised.value)
    np.testing.assert_array_equal(ensemble(X), before)


def test_labels_as_the_loss_takes_them():
    bad = changed(Y, 41, 3)
    of = lambda m, b: nn.functional.nll_loss(nn.log_softmax(m(b["x"]), -1), b["y"].astype(int))
    with pytest.raises(
        ValueError, match=r"data\['y'\] has the class 3 in example 41, and nll_loss"
    ):
        fit({"x": X, "y": bad.astype(np.int16)}, of)
    with pytest.raises(ValueError, match=r"data\[1\] has the class 3 in example 41"):
        fit((X, bad[:, None]), lambda m, x, y: loss(m, x, y.squeeze(-1)))
    with pytest.raises(ValueError, match=r"data has the class 3 in example 41"):
        fit((X, 10 * bad), lambda m, x, y: loss(m, x, y // 10))  # no array has it
    fit((X, bad + 1), lambda m, x, y: loss(m, x, snp.clip(y - 1, 0, 1)))
    fit((X, changed(Y, 5, -100)))
    fit((X, changed(Y, 5, 9)), lambda m, x, y: nn.functional.cross_entropy(m(x), y, ignore_index=9))


def test_labels_of_pixels():
    labels = np.zeros((100, 4, 4), np.int32)
    labels[33, 2, 1] = 2
    spread = lambda m, x, y: loss(lambda x: m(x)[:, :, None, None] + snp.zeros((4, 4)), x, y)
    with pytest.raises(ValueError, match=r"data\[1\] has the class 2 in example 33, at \[2, 1\]"):
        fit((X, labels), spread)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(value):
    message = (
        rf"data\[0\] has {value} in example 17, at \[2\] in it, of which the loss is nan.*nan_to"
    )
    with pytest.raises(ValueError, match=message):
        fit((changed(X, (17, 2), value), Y))
    targets = changed(X[:, 0], 3, value)
    squares = lambda m, x, y: ((m(x)[:, 0] - y) ** 2).mean()
    for y in (targets, targets.astype(np.float64), targets.astype(np.float16)):
        with pytest.raises(ValueError, match=rf"data\[1\] has {value} in example 3, of which"):
            fit((X, y), squares)
    huge = changed(X, 4, 3e38)  # finite, though its sum is not in 32 bits
    huge[5] = 3e38
    fit((huge, Y), lambda m, x, y: loss(m, x * 1e-38, y))


def test_a_loss_that_knows_what_is_missing():
    missing = np.where(np.arange(100) % 3 == 0, np.nan, X[:, 0])

    def masked(m, x, y):
        known = ~snp.isnan(y)
        return snp.where(known, m(x)[:, 0] - snp.where(known, y, 0.0), 0.0).__pow__(2).mean()

    fitted = fit((X, missing), masked)
    assert np.isfinite(fitted.history["loss"]).all()


def test_validation_and_the_first_batch():
    bad = changed(Y, 8, 5)
    with pytest.raises(ValueError, match=r"validation\[1\] has the class 5 in example 8"):
        fit((X, Y), validation=(X, bad))
    with pytest.raises(
        ValueError, match=r"batch\[1\] has the class 5 in example 8 of the first batch"
    ):
        fit([(X[:10], bad[:10])])
    with pytest.raises(ValueError, match=r"batch\[0\] has nan in example 1 of the first batch"):
        fit([(changed(X[:10], 1, np.nan), Y[:10])])


def test_data_of_each_member():
    own = np.stack([X] * 3), np.stack([Y, Y, changed(Y, 60, 4)])
    with pytest.raises(ValueError, match=r"has the class 4 in example 60 of member 2"):
        fit(own, each=True)
    sizes = [100, 40, 70]
    ragged = st.ragged([X[:n] for n in sizes]), st.ragged([y[:n] for n, y in zip(sizes, own[1])])
    with pytest.raises(ValueError, match=r"has the class 4 in example 60 of member 2"):
        fit(ragged, each=True)
    with pytest.warns(UserWarning, match="member 2 diverged"):  # and the others go on
        assert list(fit(own, each=True, on_divergence="freeze").diverged) == [2]
    with pytest.raises(ValueError, match="has the class 5 in example 8"):
        fit((X, changed(Y, 8, 5)), on_divergence="freeze")
    fit((X, changed(Y, 8, 5)), on_divergence="ignore")


def test_sweeps_look_too():
    with pytest.raises(ValueError, match="has the class 5 in example 8"):
        st.ensemble.sweep(lambda key: nn.Linear(3, 2, key=key), loss, (X, changed(Y, 8, 5)),
                          optim.adam, {"learning_rate": [1e-3, 1e-2]}, validation=(X, Y),
                          epochs=1, progress=False)  # fmt: skip


def test_arrays_that_hold_no_numbers():
    for y in (Y.astype(object), np.array(["cat", "dog"] * 50)):
        with pytest.raises(TypeError, match=r"fit: data\[1\] has the dtype .*np.unique"):
            fit((X, y))
    with pytest.raises(ValueError, match="fit: data has no examples"):
        fit((X[:0], Y[:0]))
    with pytest.raises(ValueError, match="same number of examples"):
        fit((X, Y[:50]))


def test_sound_data_cost_no_program_where_there_are_no_classes(monkeypatch):
    runs = []
    monkeypatch.setattr(fit_arguments, "jit", lambda f: runs.append(f) or st.jit(f))
    fit(X, lambda m, x: (m(x) ** 2).mean())
    assert not runs
    fit((X, Y))
    assert len(runs) == 1
