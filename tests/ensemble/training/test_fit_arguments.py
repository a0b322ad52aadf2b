"""Arguments of ``fit`` that are misspelt, in another order, or of another kind."""

import inspect

import numpy as np
import pytest

import stretto as st
from stretto import optim
from stretto.ensemble.training.fit import fit

X = np.linspace(-1, 1, 10, dtype=np.float32)
SGD = optim.sgd(0.1)


def loss(member, x, y):
    return ((member(x) - y) ** 2).mean()


def refused(*args, **named):
    """The words of the error for such a call; nothing has been trained."""
    e = st.Ensemble(lambda p, x: p["w"] * x, [{"w": np.float32(0)}, {"w": np.float32(1)}])
    with pytest.raises(TypeError) as caught:
        e.fit(*args, **{"epochs": 1} | named)
    assert [float(m.params["w"]) for m in e] == [0, 1]
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("optimiser", "there is no argument 'optimiser': it is optimizer="),
        ("shared_optimiser", "it is shared_optimizer="),
        ("lr", r"hyperparams={'learning_rate': rates}"),
        ("validation_data", "it is validation=(x, y)"),
        ("validation_split", "split the data"),
        ("shuffle", "order= says it: 'own', the default, shuffles"),
        ("n_epochs", "it is epochs="),
        ("seed", "key=st.random.key(0)"),
        ("verbose", "it is progress="),
        ("logger", "loggers are callbacks"),
        ("batchsize", "did you mean 'batch_size'?"),
        ("earlystopping", "did you mean 'early_stopping'?"),
        ("zzz", "it has loss, data, optimizer, epochs"),
    ],
)
def test_names_of_other_libraries(name, words):
    assert words in refused(loss, (X, X), SGD, **{name: 1})


def test_another_order():
    right = "as in ensemble.fit(loss, (x, y), optim.adam(1e-3), epochs=10)"
    for args, words in [
        ((X, X, SGD), "loss must be a function of a member and a batch, got ndarray"),
        (((X, X), loss, SGD), "loss must be a function of a member and a batch, got tuple"),
        (("mse", (X, X), SGD), "loss must be a function of a member and a batch, got str"),
        ((SGD, loss, (X, X)), "loss must be a function"),
        ((loss, SGD, (X, X)), "data is an optimizer"),
        ((loss, optim.sgd, (X, X)), "data is a function"),
        ((loss, X, X), "optimizer: expected a GradientTransformation, got ndarray"),
        ((loss, X, X, SGD), "got 4 arguments; without a name there are loss, data and optimizer"),
        ((loss, (X, X)), "optimizer must be given"),
        ((loss,), "data and optimizer must be given"),
    ]:
        text = refused(*args)
        assert words in text and right in text
    assert "got optimizer twice" in refused(loss, X, X, optimizer=SGD)


def test_another_kind():
    assert "hyperparams must be a dictionary" in refused(loss, X, optim.sgd, hyperparams=[0.1, 0.2])
    for metrics in (loss, [loss]):
        text = refused(loss, (X, X), SGD, validation=(X, X), metrics=metrics)
        assert "metrics must be a dictionary, which has them by name" in text
    assert "epochs must be an integer, got the float 0.5" in refused(loss, (X, X), SGD, epochs=0.5)
    text = refused(loss, (X, X), optim.sgd, hyperparams={"lr": [0.1, 0.2]})
    assert "sgd has no argument 'lr' (did you mean 'learning_rate'?)" in text


def test_the_signature_is_that_of_fit():
    parameters = inspect.signature(fit).parameters
    assert list(parameters)[:4] == ["ensemble", "loss", "data", "optimizer"]
    assert all(p.kind is not p.VAR_KEYWORD for p in parameters.values())
