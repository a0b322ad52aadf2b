"""Means over examples, whatever the batches."""

import numpy as np
import pytest

import stretto as st
from stretto import optim
from stretto.ensemble import EarlyStopping, Evaluator, Trainer

X = np.arange(7, dtype=np.float32)


def squares(member, x):
    return (member(x) ** 2).mean()


@pytest.mark.parametrize("batch_size", [2, 7, 100])
def test_the_mean_over_all_examples(batch_size):
    e = st.Ensemble(lambda p, x: p["w"] * x, [{"w": np.float32(i)} for i in range(3)])
    state = Trainer(squares, optim.sgd(0.1)).start(e, st.random.PRNGKey(0))
    first = lambda member, x: member(x).mean()
    found = Evaluator(squares, {"mean": first})(state, X, batch_size)
    np.testing.assert_allclose(found["loss"], np.arange(3) ** 2 * (X**2).mean(), rtol=1e-6)
    np.testing.assert_allclose(found["mean"], np.arange(3) * X.mean(), rtol=1e-6)
    # Members that do not train any more are not measured.
    stopped = state.packs[0].replace(active=st.numpy.array([True, False, True]))
    found = Evaluator(squares)(state.replace(packs=(stopped,)), X, batch_size)
    assert np.isnan(found["loss"]).tolist() == [False, True, False]


def small():
    return st.Ensemble(lambda p, x: p["w"] * x, [{"w": np.float32(i)} for i in range(3)])


def test_metrics_get_the_values_of_members_that_they_name():
    def loss(member, x, *, scale):
        return scale * (member(x) ** 2).mean()

    metrics = {
        "plain": squares,  # as for any ensemble
        "named": lambda member, x, scale: scale + 0 * x[0],
        "only": lambda member, x, *, scale=0.0: 2 * scale + 0 * x[0],
        "all": lambda member, x, **own: sum(own.values()) + 0 * x[0],
    }
    fitted = small().fit(
        lambda member, x, *, scale, offset: loss(member, x, scale=scale),
        X, optim.sgd(0.0), steps=1, validation=X, metrics=metrics, progress=False,
        per_member={"scale": [1.0, 2.0, 4.0], "offset": [10.0, 20.0, 30.0]},
    )  # fmt: skip
    last = {n: x[-1].tolist() for n, x in fitted.history.items() if n.startswith("validation")}
    assert last["validation_named"] == [1, 2, 4] and last["validation_only"] == [2, 4, 8]
    assert last["validation_all"] == [11, 22, 34]
    np.testing.assert_allclose(last["validation_plain"], np.arange(3) ** 2 * (X**2).mean())


def refusing(member, x):
    raise RuntimeError("called in evaluation")


def wide(member, x):
    return member(x)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"metrics": {"a": refusing}}, RuntimeError, "called in evaluation"),
        ({"metrics": {"a": wide}}, ValueError, r"metrics\['a'\] \(wide\) gives float32\["),
        ({"early_stopping": EarlyStopping(2, monitor="f1")}, ValueError, "is not among what is"),
    ],
)
def test_errors_of_the_evaluation_come_before_the_training(own, options, error, words):
    e, seen = small(), []
    batches = ((seen.append(1), X[:3])[1] for _ in range(5))
    data, validation = (np.stack([X] * 3), np.stack([X] * 3)) if own else (batches, X)
    with pytest.raises(error, match=words):
        e.fit(squares, data, optim.sgd(0.1), epochs=1, each=own, validation=validation, **options)
    assert len(seen) <= 1  # the first batch, whose shapes the loss is tried on
    assert [float(m.params["w"]) for m in e] == [0, 1, 2]


def test_the_loss_is_tried_in_evaluation_mode_on_the_validation_data():
    with pytest.raises(ValueError, match="shape"):
        small().fit(
            lambda m, x, y: ((m(x) - y) ** 2).mean(), (X, X), optim.sgd(0.1), steps=1,
            validation=(X, X.reshape(7, 1)[:, :0]), progress=False,
        )  # fmt: skip


def test_what_is_tried_is_not_traced_again():
    calls = []

    def counted(member, x):
        calls.append(1)
        return member(x).mean()

    small().fit(
        squares, X, optim.sgd(0.1), steps=2, evaluate_every=1, validation=X,
        metrics={"a": counted}, progress=False,
    )  # fmt: skip
    assert len(calls) == 1
