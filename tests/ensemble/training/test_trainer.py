"""``Trainer``: states, steps, hyperparameters of one's own, shared and frozen parts."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim
from stretto.ensemble import DataOrder, Trainer

KEY = st.random.PRNGKey(0)
X = np.linspace(-1, 1, 8, dtype=np.float32)


def times(params, x):
    return params["w"] * x + params["b"]


def squares(member, x, y):
    return ((member(x) - y) ** 2).mean()


def ensemble(count=3, **options):
    members = [{"w": np.float32(i), "b": np.float32(0)} for i in range(count)]
    return st.Ensemble(times, members, **options)


def params(e, i):
    return {n: float(x) for n, x in e[i].params.items()}


def test_a_loop_of_ones_own_is_fit():
    y = 3 * X + 1
    order = DataOrder(len(X), 3, members=3)
    trainer = Trainer(squares, optim.adam(0.1))
    state = trainer.start(ensemble(), KEY)
    losses = []
    for epoch in range(2):
        for i in np.asarray(order.indices(KEY, epoch)):
            state, metrics = trainer.step(state, (X[i], y[i]), each=True)
            losses.append(metrics["loss"])
    fitted = ensemble().fit(squares, (X, y), optim.adam(0.1), epochs=2, batch_size=3, key=KEY)
    assert state.step == 4 and fitted.state.step == 4
    for i in range(3):
        assert params(state.ensemble, i) == pytest.approx(params(fitted.ensemble, i), rel=1e-6)
    np.testing.assert_allclose(np.mean(losses[2:], 0), fitted.history["loss"][1], rtol=1e-5)


def test_the_ensemble_given_stays_and_the_state_is_taken():
    e = ensemble()
    trainer = Trainer(squares, optim.sgd(0.1))
    state = trainer.start(e, KEY)
    trainer.step(state, (X, X))
    assert params(e, 2) == {"w": 2, "b": 0}
    with pytest.raises(st.errors.DonatedArrayError):
        trainer.step(state, (X, X))


def test_each_member_has_its_own_hyperparameters():
    rates = np.array([0.0, 0.1, 0.5], np.float32)
    trainer = Trainer(squares, optim.sgd, hyperparams={"learning_rate": rates, "momentum": 0.9})
    state, _ = trainer.step(trainer.start(ensemble(), KEY), (X, X + 1))
    state, _ = trainer.step(state, (X, X + 1))
    for i, rate in enumerate(rates):
        plain = Trainer(squares, optim.sgd(float(rate), 0.9))
        one = plain.start(ensemble()[[i]], KEY)
        for _ in range(2):
            one, _ = plain.step(one, (X, X + 1))
        assert params(state.ensemble, i) == pytest.approx(params(one.ensemble, 0), rel=1e-6)


def test_the_loss_gets_what_is_each_members_own():
    def weighed(member, x, y, weight):
        return weight * squares(member, x, y)

    trainer = Trainer(weighed, optim.sgd(0.1), per_member={"weight": [0.0, 1.0, 2.0]})
    state, metrics = trainer.step(trainer.start(ensemble(), KEY), (X, X + 1))
    assert params(state.ensemble, 0) == {"w": 0, "b": 0}
    assert params(state.ensemble, 2)["b"] == pytest.approx(0.4)
    # (w - 1)² mean(x²) + 1 for a member with slope w.
    spread = float((X**2).mean())
    np.testing.assert_allclose(metrics["loss"], [0, 1, 2 * (spread + 1)], rtol=1e-6)


def test_frozen_parts_stay():
    trainer = Trainer(squares, optim.sgd(0.1))
    state, _ = trainer.step(trainer.start(ensemble(frozen="w"), KEY), (X, X + 1))
    for i in range(3):
        assert params(state.ensemble, i) == {"w": i, "b": pytest.approx(0.2)}


def test_shared_parts_get_the_mean_gradient_once():
    e = ensemble(shared="b")
    trainer = Trainer(squares, optim.sgd(0.1), shared_optimizer=optim.sgd(1.0))
    batch = (np.stack([X] * 3), np.stack([X + 1, X + 2, X + 6]))
    state, _ = trainer.step(trainer.start(e, KEY), batch, each=True)
    # The gradient of b is -2 times the offset, 1, 2 and 6.
    assert [params(state.ensemble, i)["b"] for i in range(3)] == pytest.approx([6, 6, 6])
    assert state.packs[0].shared["b"].shape == ()
    # Of their own parts each gets the gradient of its own loss.
    spread = float((X**2).mean())
    expected = [w - 0.1 * 2 * (w - 1) * spread for w in range(3)]
    assert [params(state.ensemble, i)["w"] for i in range(3)] == pytest.approx(expected)


def test_several_architectures_keep_their_order():
    linear = lambda k: nn.Linear(1, 1, key=k)
    deep = lambda k: nn.Sequential(nn.Linear(1, 2, key=k), nn.Linear(2, 1, key=k))
    keys = st.random.split(KEY, 3)
    e = st.Ensemble([linear(keys[0]), deep(keys[1]), linear(keys[2])])
    loss = lambda member, x, y: ((member(x[:, None])[:, 0] - y) ** 2).mean()
    trainer = Trainer(loss, optim.sgd(0.1))
    state, metrics = trainer.step(trainer.start(e, KEY), (X, 2 * X))
    for i in range(3):
        alone, single = trainer.step(trainer.start(e[[i]], KEY), (X, 2 * X))
        np.testing.assert_allclose(metrics["loss"][i], single["loss"][0], rtol=1e-6)
        for x, y in zip(
            st.tree.leaves(state.ensemble[i]), st.tree.leaves(alone.ensemble[0]), strict=True
        ):
            np.testing.assert_allclose(x, y, rtol=1e-5)


def test_chunks_bound_memory_and_change_nothing():
    trainer = Trainer(squares, optim.adam(0.1))
    whole, _ = trainer.step(trainer.start(ensemble(5), KEY), (X, X + 1))
    trainer = Trainer(squares, optim.adam(0.1))
    parts, _ = trainer.step(trainer.start(ensemble(5, chunk_size=2), KEY), (X, X + 1))
    for i in range(5):
        assert params(whole.ensemble, i) == pytest.approx(params(parts.ensemble, i))


def test_a_state_is_a_tree():
    trainer = Trainer(squares, optim.adam(0.1))
    state = trainer.start(ensemble(), KEY)
    leaves, structure = st.tree.flatten(state)
    again = st.tree.unflatten(structure, leaves)
    after, _ = trainer.step(again, (X, X))
    assert after.step == 1


class Noisy(nn.Module):
    """Draws from the ambient stream, and counts its calls."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(snp.zeros(()))
        self.register_buffer("seen", snp.zeros((), np.int32))

    def forward(self, x):
        if self.training:
            self.update_buffer("seen", self.seen + 1)
            return self.w * x + st.random.normal(st.random.next_key("Noisy"), x.shape)
        return self.w * x


def test_members_draw_numbers_of_their_own_and_keep_their_buffers():
    def noise(member, x):
        out = member(x)
        return out.mean() + 0 * member.w, {"first": out[0]}

    trainer = Trainer(noise, optim.sgd(0.0))
    state = trainer.start(st.Ensemble([Noisy() for _ in range(4)]), KEY)
    drawn = []
    for _ in range(2):
        state, metrics = trainer.step(state, X)
        drawn += np.asarray(metrics["first"]).tolist()
    assert len(set(drawn)) == 8
    assert [int(m.seen) for m in state.ensemble] == [2] * 4


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"optimizer": 0.1}, TypeError, "fit: optimizer: expected a GradientTransformation, got"),
        ({"optimizer": optim.adam}, TypeError, "call it, as in adam"),
        ({"loss": 3}, TypeError, "loss must be a function of a member and a batch, got int"),
        ({"on_divergence": "stop"}, ValueError, "on_divergence must be one of .* got 'stop'"),
        ({"hyperparams": {"learning_rate": [1.0]}}, TypeError, "go with a function that makes"),
        (
            {"optimizer": optim.sgd, "hyperparams": {"learning_rate": [1.0, 2.0]}},
            ValueError,
            r"hyperparams\['learning_rate'\] must have an entry for each of 3 members along axis "
            r"0, got float32\[2\]",
        ),
        ({"per_member": {"rate": 1.0}}, ValueError, r"per_member\['rate'\] must have an entry"),
        ({"loss": lambda m, x, y: m(x) - y}, ValueError, r"gives float32\[8\] .* take the mean"),
        ({"loss": lambda m, x, y: None}, ValueError, "gives a NoneType; expected a scalar"),
        ({"loss": lambda m, x, y: (m(x) > y).sum()}, ValueError, "expected a float, which has a"),
        (
            {"loss": lambda m, x, y: (m(x).mean(), {"loss": 1.0})},
            ValueError,
            "a metric called 'loss'",
        ),
        (
            {"loss": lambda m, x, y: (m(x).mean(), {"all": x})},
            ValueError,
            r"gives the metric 'all' as float32\[8\]",
        ),
    ],
    ids=["number", "uncalled", "loss", "reaction", "made", "rates", "own", "vector", "none", "int",
         "name", "metric"],
)  # fmt: skip
def test_what_is_refused(options, error, words):
    options = {"loss": squares, "optimizer": optim.sgd(0.1), **options}
    with pytest.raises(error, match=words):
        trainer = Trainer(options.pop("loss"), options.pop("optimizer"), **options)
        trainer.step(trainer.start(ensemble(), KEY), (X, X))


def test_ensembles_that_cannot_be_trained_are_refused():
    trainer = Trainer(squares, optim.sgd(0.1))
    with pytest.raises(ValueError, match="member 0 has nothing to train: all of b, w are frozen"):
        trainer.start(ensemble(frozen="*"), KEY)
    with pytest.raises(ValueError, match="member 0 is in evaluation mode"):
        trainer.start(st.Ensemble([Noisy()]).eval(), KEY)
    with pytest.raises(ValueError, match="early stopping of members that train b together"):
        Trainer(squares, optim.sgd(0.1), early_stopping=True).start(ensemble(shared="b"), KEY)
    rates = {"learning_rate": [0.1, 0.1, 0.1]}
    with pytest.raises(TypeError, match="give shared_optimizer="):
        Trainer(squares, optim.sgd, hyperparams=rates).start(ensemble(shared="b"), KEY)


def test_a_shared_buffer_cannot_be_updated():
    e = st.Ensemble([Noisy(), Noisy()], shared="seen")
    trainer = Trainer(lambda member, x: member(x).mean(), optim.sgd(0.1))
    with pytest.raises(ValueError, match="updates seen, which the members share"):
        trainer.step(trainer.start(e, KEY), X)


def test_losses_of_64_bits_are_summed_in_64():
    with st.config(enable_x64=True):
        members = [{"w": np.float64(i), "b": np.float64(0)} for i in range(3)]
        e = st.Ensemble(times, members)
        x = X.astype(np.float64)
        # A sum of 32 bits would warn that its memory cannot be donated.
        fitted = e.fit(squares, (x, 3 * x), optim.sgd(0.1), epochs=2, batch_size=4, key=KEY)
        assert {n: s.dtype for n, s in fitted.state.sums[0].items() if n == "loss"} == {
            "loss": np.float64
        }
    assert fitted.history["loss"].shape == (2, 3)
