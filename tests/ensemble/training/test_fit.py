"""``fit``: as each member trained alone, with the same order and keys; and what it refuses."""

import signal

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim
from stretto.ensemble import Checkpoints, DataOrder, EarlyStopping
from stretto.ensemble.training.loggers import Reporter
from stretto.ensemble.training.step import noise_key
from stretto.ensemble.training.trainer import Trainer

KEY = st.random.PRNGKey(7)
N, FEATURES = 48, 4


def model(key, width=8):
    first, second = st.random.split(key)
    return nn.Sequential(
        nn.Linear(FEATURES, width, bias=False, key=first),  # the norm would undo a bias
        nn.BatchNorm1d(width),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(width, 2, key=second),
    )


def models(count, **options):
    return [model(k, **options) for k in st.random.split(st.random.PRNGKey(1), count)]


def loss(member, x, y):
    return nn.functional.cross_entropy(member(x), y)


def accuracy(member, x, y):
    return (member(x).argmax(-1) == y).mean()


@pytest.fixture(scope="module")
def data():
    x = np.random.default_rng(0).normal(size=(N, FEATURES)).astype(np.float32)
    return x, (x[:, 0] * x[:, 1] > 0).astype(np.int32)


def alone(member, number, optimizer, data, order, epochs):
    """One member trained by a plain loop, with the order and the keys that ``fit`` gives it."""
    trained, rest = {}, {}
    for name, x in member.state_dict().items():
        (trained if name in dict(member.named_parameters()) else rest)[name] = x
    x, y = (snp.array(a) for a in data)

    @st.jit
    def step(trained, rest, state, i, key):
        def f(trained):
            made = st.tree.unflatten(
                st.tree.structure(member), [{**trained, **rest}[n] for n in names]
            )
            with nn.keys(key):
                out, after = nn.stateful_call(made, x[i])
            return nn.functional.cross_entropy(out, y[i]), after.state_dict()

        (value, after), grads = st.value_and_grad(f, has_aux=True)(trained)
        updates, state = optimizer.update(grads, state, trained)
        return optim.apply_updates(trained, updates), {n: after[n] for n in rest}, state, value

    names = list(member.state_dict())
    state, done, losses = optimizer.init(trained), 0, []
    for epoch in range(epochs):
        indices = order.indices(KEY, epoch, [number])
        for i in np.asarray(indices)[:, 0] if order.each else np.asarray(indices):
            key = noise_key(KEY, done, number)
            trained, rest, state, value = step(trained, rest, state, snp.array(i), key)
            losses.append(float(value))
            done += 1
    return {**trained, **rest}, losses


@pytest.mark.parametrize("order", ["own", "same", "bootstrap"])
def test_as_each_member_alone(data, order):
    optimizer = optim.chain(
        optim.clip_by_global_norm(0.5), optim.adamw(optim.linear_schedule(0.02, 0.001, 12))
    )
    ensemble = st.Ensemble(models(3))
    fitted = ensemble.fit(loss, data, optimizer, epochs=2, batch_size=16, order=order, key=KEY)
    plan = DataOrder(N, 16, order, 3)
    for number, member in enumerate(models(3)):
        expected, losses = alone(member, number, optimizer, data, plan, 2)
        got = ensemble[number].state_dict()
        for name, x in expected.items():
            # XLA adds up batched and single products in different orders.
            np.testing.assert_allclose(got[name], x, rtol=2e-4, atol=2e-5, err_msg=name)
        means = np.mean(np.reshape(losses, (2, -1)), 1)
        np.testing.assert_allclose(fitted.history["loss"][:, number], means, rtol=1e-4)


# With a small function, quick to compile

X = np.linspace(-1, 1, 10, dtype=np.float32)


def times(params, x):
    return params["w"] * x


def squares(member, x, y):
    return ((member(x) - y) ** 2).mean()


def small(count=2, **options):
    return st.Ensemble(times, [{"w": np.float32(i)} for i in range(count)], **options)


def weights(ensemble):
    return [float(member.params["w"]) for member in ensemble]


def test_what_is_measured():
    def both(member, x, y):
        return squares(member, x, y), {"largest": abs(member(x) - y).max()}

    near = lambda member, x, y: (abs(member(x) - y) < 0.5).mean()
    fitted = small().fit(
        both, (X, X), optim.sgd(0.0), epochs=2, batch_size=5, key=KEY, order="given",
        validation=(X[:3], X[:3]), metrics={"near": near}, validation_batch_size=2,
    )  # fmt: skip
    history = fitted.history
    assert history["step"].tolist() == [2, 4] and history["epoch"].tolist() == [1, 2]
    np.testing.assert_allclose(history["loss"], [[(X**2).mean(), 0]] * 2, rtol=1e-5)
    np.testing.assert_allclose(history["largest"], [[1, 0]] * 2)
    np.testing.assert_allclose(history["validation_loss"][0], [(X[:3] ** 2).mean(), 0], rtol=1e-5)
    np.testing.assert_allclose(history["validation_near"][0], [0, 1])
    assert history["validation_largest"].shape == (2, 2)


def test_evaluation_is_in_evaluation_mode(data):
    ensemble = st.Ensemble(models(2))
    fitted = ensemble.fit(
        loss, data, optim.sgd(0.05), steps=2, batch_size=16, key=KEY, evaluate_every=1,
        validation=data, metrics={"accuracy": accuracy},
    )  # fmt: skip
    ensemble.eval()
    x, y = (snp.array(a) for a in data)
    out = ensemble(x)
    expected = [nn.functional.cross_entropy(o, y) for o in out]
    np.testing.assert_allclose(fitted.history["validation_loss"][-1], expected, rtol=1e-5)
    accuracies = (np.asarray(out).argmax(-1) == data[1]).mean(-1)
    np.testing.assert_allclose(fitted.history["validation_accuracy"][-1], accuracies, rtol=1e-6)
    assert fitted.history["step"].tolist() == [1, 2]


@pytest.mark.parametrize("drop_last", [True, False])
def test_what_fills_no_batch(drop_last):
    fitted = small().fit(
        lambda member, x: (x.sum() * member.params["w"], {"seen": float(x.shape[0]) + 0 * x[0]}),
        X, optim.sgd(1.0), epochs=1, batch_size=4, order="given", drop_last=drop_last, key=KEY,
    )  # fmt: skip
    assert fitted.state.step == (2 if drop_last else 3)
    gone = X[:8].sum() if drop_last else X.sum()
    assert weights(fitted.ensemble) == pytest.approx([-gone, 1 - gone], abs=1e-6)


def test_batches_of_ones_own():
    class Loader:
        def __iter__(self):
            return ((X[i : i + 2], X[i : i + 2]) for i in range(0, 10, 2))

    given = small().fit(
        squares, (X, X), optim.adam(0.1), epochs=2, batch_size=2, order="given", key=KEY
    )
    for data in (Loader(), list(Loader())):
        fitted = small().fit(squares, data, optim.adam(0.1), epochs=2, key=KEY)
        assert weights(fitted.ensemble) == weights(given.ensemble)
    once = small().fit(squares, iter(Loader()), optim.adam(0.1), epochs=1, key=KEY)
    assert once.state.step == 5


def test_batches_with_a_part_for_each_member():
    batches = [(np.stack([X, 0 * X]), np.stack([X, X]))] * 3
    fitted = small().fit(squares, batches, optim.sgd(0.5), epochs=1, order="own", key=KEY)
    assert weights(fitted.ensemble)[1] == 1 and weights(fitted.ensemble)[0] > 0.5


def test_a_dictionary_is_one_argument():
    e = small()
    e.fit(
        lambda member, batch: squares(member, batch["x"], batch["y"]),
        {"x": X, "y": 3 * X}, optim.sgd(0.5), epochs=40, batch_size=5,
    )  # fmt: skip
    assert weights(e) == pytest.approx([3, 3], abs=1e-3)


def test_the_key_comes_from_the_ambient_stream():
    def trained():
        e = small()
        with nn.keys(KEY):
            e.fit(squares, (X, 3 * X), optim.sgd(0.5), epochs=1, batch_size=3)
        return weights(e)

    assert trained() == trained()
    e = small()
    e.fit(squares, (X, 3 * X), optim.sgd(0.5), epochs=1, batch_size=3, key=KEY)
    assert weights(e) != trained()


def test_steps_end_within_an_epoch():
    fitted = small().fit(squares, (X, X), optim.sgd(0.1), steps=7, batch_size=5, key=KEY)
    assert fitted.state.step == 7 and fitted.history["step"].tolist() == [2, 4, 6, 7]
    fitted = small().fit(squares, (X, X), optim.sgd(0.1), steps=7, epochs=2, batch_size=5, key=KEY)
    assert fitted.state.step == 4


def test_several_architectures(data):
    members = [*models(1), *models(2, width=4)]
    ensemble = st.Ensemble([members[1], members[0], members[2]])
    fitted = ensemble.fit(loss, data, optim.adam(0.01), epochs=1, batch_size=16, key=KEY)
    assert fitted.history["loss"].shape == (1, 3)
    # The member at place 1 has the order and the random numbers of that place.
    plan = DataOrder(N, 16, members=3)
    _, losses = alone(members[0], 1, optim.adam(0.01), data, plan, 1)
    np.testing.assert_allclose(fitted.history["loss"][0, 1], np.mean(losses), rtol=1e-4)


def test_an_interruption_leaves_what_was_reached(monkeypatch):
    e, seen = small(), []

    def interrupt(self, state):
        seen.append(weights(state.ensemble))
        if state.step == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Reporter, "step", interrupt)
    with pytest.raises(KeyboardInterrupt):
        e.fit(squares, (X, 3 * X), optim.sgd(0.1), epochs=3, batch_size=2, key=KEY)
    assert weights(e) == seen[-1] != seen[0]


def test_an_interruption_within_a_step_leaves_what_the_step_gave(monkeypatch):
    """It has taken the arrays of the state, and its own are not yet handed on."""
    e, real, calls = small(), Trainer.in_order, []

    def pressed(self, *args):
        out = real(self, *args)
        calls.append(1)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return out

    fitted = small()
    fitted.fit(squares, (X, 3 * X), optim.sgd(0.1), steps=3, batch_size=2, key=KEY)
    monkeypatch.setattr(Trainer, "in_order", pressed)
    with pytest.raises(KeyboardInterrupt):
        e.fit(squares, (X, 3 * X), optim.sgd(0.1), epochs=3, batch_size=2, key=KEY)
    assert len(calls) == 3
    assert weights(e) == weights(fitted) != weights(small())


def test_what_a_training_gives_does_not_depend_on_later_ones():
    e = small()
    fitted = e.fit(squares, (X, X), optim.sgd(0.1), epochs=1, batch_size=5, key=KEY)
    before = weights(e)
    trainer = st.ensemble.Trainer(squares, optim.sgd(0.1))
    trainer.step(fitted.state, (X, X))
    assert weights(e) == before


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"epochs": None}, ValueError, "fit: give epochs= or steps="),
        ({"batch_size": 11}, ValueError, "fit: batch_size=11 is larger than an epoch of 10 exam"),
        ({"order": "any"}, ValueError, "fit: order must be one of"),
        ({"data": (X, X[:5])}, ValueError, r"data\[0\]: float32\[10\], data\[1\]: float32\[5\]"),
        ({"data": ()}, ValueError, "data has no arrays"),
        ({"data": (X[:0], X[:0])}, ValueError, "data has no examples"),
        ({"data": []}, ValueError, "data has no batches"),
        ({"data": 3}, TypeError, "or an iterable of batches; got int"),
        ({"data": [X], "batch_size": 2}, ValueError, "an iterable of batches has its own sizes"),
        ({"data": [X], "order": "bootstrap"}, ValueError, "must be 'same' or 'own', got 'bootstr"),
        ({"data": [(X, X)], "order": "own"}, ValueError, r"the 2 members along axis 0; got batch"),
        (
            {"data": iter([(X, X)]), "epochs": 2},
            ValueError,
            "no batch left for epoch 1; an iterator",
        ),
        ({"validation": [X]}, TypeError, "validation must be an array, or a tuple"),
        ({"validation": (X, X[:2])}, ValueError, "the arrays of validation must have the same num"),
        ({"early_stopping": 2}, ValueError, "early_stopping watches validation data"),
        ({"metrics": {"a": squares}}, ValueError, "metrics are measured on validation data"),
        ({"metrics": {"a": 3}, "validation": (X, X)}, TypeError, "metrics must be functions"),
        (
            {"metrics": {"loss": squares}, "validation": (X, X)},
            TypeError,
            "names other than 'loss'",
        ),
        (
            {"metrics": {"a": lambda m, x, y: m(x)}, "validation": (X, X)},
            ValueError,
            r"metrics\['a'\] .* gives float32\[10\] for each member",
        ),
        (
            {"validation": (X, X), "early_stopping": EarlyStopping(2, monitor="f1")},
            ValueError,
            "monitor='f1' is not among what is evaluated: loss",
        ),
        ({"optimizer": "adam"}, TypeError, "expected a GradientTransformation"),
        ({"loss": lambda m, x, y: m(x)}, ValueError, "expected a scalar: take the mean"),
        ({"checkpoint": Checkpoints("x"), "resume": 3}, ValueError, "resume must be True, False"),
    ],
    ids=range(23),
)
def test_what_is_refused(options, error, words):
    options = {"loss": squares, "data": (X, X), "optimizer": optim.sgd(0.1), "epochs": 1, **options}
    with pytest.raises(error, match=words):
        small().fit(options.pop("loss"), options.pop("data"), options.pop("optimizer"), **options)


@pytest.mark.parametrize(
    ("argument", "value"),
    [("epochs", -1), ("steps", -1), ("batch_size", 0), ("batch_size", -1), ("evaluate_every", 0)]
    + [("validation_batch_size", -1), ("early_stopping", 0), ("early_stopping", -2)],
)
def test_counts_are_counts(argument, value):
    ensemble = st.Ensemble(lambda p, x: p * x, [snp.ones(()), snp.zeros(())])
    asked = {"steps": 1, "validation": (snp.ones(4), snp.ones(4))}
    loss = lambda m, x, y: ((m(x) - y) ** 2).mean()
    for wrong, error in ((value, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match=f"fit: {argument} must be"):
            ensemble.fit(
                loss, (snp.ones(4), snp.ones(4)), st.optim.sgd(0.1), **asked | {argument: wrong}
            )


class Table:
    """Stand for a DataFrame: iterated over it gives names, and it makes an array."""

    def __iter__(self):
        return iter(["a", "b"])

    def __array__(self, dtype=None, copy=None):
        return np.ones((4, 2), np.float32)


def test_data_that_were_meant_otherwise():
    ensemble = st.Ensemble(lambda p, x: p * x, [snp.ones(()), snp.zeros(())])
    loss = lambda member, x, y: ((member(x) - y) ** 2).mean()
    x = snp.ones(4)
    with pytest.raises(TypeError, match=r"fit: data is a list of 2 arrays.*give a tuple, \(x, y\)"):
        ensemble.fit(loss, [x, x], st.optim.sgd(0.1), steps=1)
    for given in ({"data": Table()}, {"data": (x, x), "validation": Table()}):
        with pytest.raises(TypeError, match=r"fit: (data|validation) is a Table; .*to_numpy\(\)"):
            ensemble.fit(loss, optimizer=st.optim.sgd(0.1), steps=1, **given)
