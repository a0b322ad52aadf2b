"""Snapshots that ``fit`` keeps, and optimizers that draw noise in it."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim
from stretto.ensemble import Checkpoints, EarlyStopping, Snapshots
from stretto.ensemble.training.step import OPTIMIZER_STREAM
from tests.meshes import mesh

KEY = st.random.PRNGKey(0)
X = np.random.default_rng(0).normal(size=(24, 2)).astype(np.float32)
Y = X.sum(1)


def squares(member, x, y):
    return ((member(x) - y) ** 2).mean()


def linear(p, x):
    return x @ p["w"] + p["b"]


def ensemble(count=3, **options):
    members = [{"w": snp.full(2, 0.1 * i), "b": snp.zeros(())} for i in range(count)]
    return st.Ensemble(linear, members, **options)


def fit(e, optimizer=None, **options):
    defaults = {"epochs": 4, "batch_size": 8, "key": KEY, "progress": False}
    optimizer = optim.sghmc(1e-2, data_size=24, friction=5.0) if optimizer is None else optimizer
    return e.fit(options.pop("loss", squares), (X, Y), optimizer, **{**defaults, **options})


def weights(e):
    return [np.asarray(x) for x in st.tree.leaves(e)]


def test_snapshots_are_the_members_at_the_ends_of_cycles():
    fitted = fit(ensemble(), snapshots=Snapshots(period=3, size=2, start=4))
    # 12 steps: cycles end after 3, 6, 9 and 12; the first is before the start, and two are kept.
    assert len(fitted.snapshots) == 6
    for at, steps in ((0, 9), (3, 12)):
        shorter = fit(ensemble(), epochs=None, steps=steps).ensemble
        for x, y in zip(weights(fitted.snapshots[at : at + 3]), weights(shorter), strict=True):
            np.testing.assert_array_equal(x, y)
    assert fitted.snapshots(X[:5]).shape == (6, 5)


def test_without_snapshots_there_are_none():
    with pytest.raises(ValueError, match=r"snapshots: there are none: give fit snapshots=Snap"):
        _ = fit(ensemble(), optim.sgd(0.1), epochs=1).snapshots


class Net(nn.Module):
    def __init__(self, key):
        super().__init__()
        self.fc = nn.Linear(2, 2, key=key)
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x):
        return self.norm(self.fc(x)).sum(-1)


def test_buffers_and_modes():
    e = st.Ensemble([Net(k) for k in st.random.split(KEY, 2)])
    fitted = fit(e, optim.sgd(0.01), snapshots=Snapshots(period=6, size=2))
    assert len(fitted.snapshots) == 4 and not fitted.snapshots[0].training
    last = fitted.snapshots[2:]
    for x, y in zip(weights(last), weights(fitted.ensemble), strict=True):
        np.testing.assert_array_equal(x, y)
    means = fitted.snapshots.state_dict()[0]["norm.running_mean"]
    assert (np.asarray(means[:2]) != np.asarray(means[2:])).any()


def test_several_architectures_shared_and_frozen_parts():
    def deep(p, x):
        return snp.tanh(x @ p["v"]) @ p["w"]

    first, second = {"w": snp.ones(2), "b": snp.zeros(())}, {"v": snp.eye(2), "w": snp.ones(2)}
    e = st.Ensemble([linear, deep, linear], [first, second, first], frozen="b", shared="b")
    fitted = fit(e, snapshots=Snapshots(period=6, size=3))
    assert len(fitted.snapshots) == 6
    for i in range(3):
        for x, y in zip(
            st.tree.leaves(fitted.snapshots[3 + i]), st.tree.leaves(fitted.ensemble[i]), strict=True
        ):
            np.testing.assert_array_equal(x, y)
    assert fitted.snapshots.groups[0].state_dict()[0]["b"].shape == ()


def test_shared_parts_that_are_trained_are_each_snapshots_own():
    e = ensemble(shared="b")
    fitted = fit(e, optim.sgd(0.1), snapshots=Snapshots(period=6, size=2))
    b = np.asarray(fitted.snapshots.state_dict()[0]["b"])
    assert b.shape == (6,) and len(set(b[:3])) == len(set(b[3:])) == 1 and b[0] != b[3]
    assert b[3] == np.asarray(fitted.ensemble.state_dict()[0]["b"])


def test_a_member_that_has_stopped_takes_no_more():
    options = {
        "optimizer": lambda learning_rate: optim.scale(-learning_rate),
        "hyperparams": {"learning_rate": [0.1, -0.1, -0.1]},
        "early_stopping": EarlyStopping(1), "validation": (X, Y), "epochs": 6,
        "snapshots": Snapshots(period=3, size=10),
    }  # fmt: skip
    fitted = fit(ensemble(), **options)
    stopped = [fitted.stopped.get(m, 18) // 3 for m in range(3)]
    assert min(stopped) < 6 == stopped[0]
    assert len(fitted.snapshots) == sum(stopped)
    # Those of the first cycles are of all members, those of the last of member 0 alone.
    w = np.asarray(fitted.snapshots.state_dict()[0]["w"])
    np.testing.assert_array_equal(w[-1], np.asarray(fitted.state.ensemble.state_dict()[0]["w"])[0])


def test_a_member_that_is_dropped_leaves_none():
    rates = {"learning_rate": [0.1, 1e30, 0.1]}
    with pytest.warns(st.ensemble.DivergenceWarning):
        fitted = fit(
            ensemble(), optim.sgd, hyperparams=rates, on_divergence="drop",
            snapshots=Snapshots(period=1, size=20),
        )  # fmt: skip
    assert len(fitted.ensemble) == 2 and len(fitted.snapshots) == 24


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("after", [2, 5, 7])
def test_the_same_bits_as_without_a_break(tmp_path, monkeypatch, after):
    options = {"snapshots": Snapshots(period=2, size=3, start=2)}
    often = lambda name: Checkpoints(tmp_path / name, every_steps=1)
    whole = fit(ensemble(), checkpoint=often("whole"), **options)
    save, written = Checkpoints.save, []

    def counted(self, *args):
        save(self, *args)
        written.append(args)
        if len(written) == after:
            raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", counted)
        with pytest.raises(Interrupted):
            fit(ensemble(), checkpoint=often("broken"), **options)
    resumed = fit(ensemble(), checkpoint=often("broken"), resume=True, **options)
    trees = [(f.snapshots, f.ensemble, f.state.packs) for f in (whole, resumed)]
    for x, y in zip(*map(weights, trees), strict=True):
        np.testing.assert_array_equal(x, y)
    with pytest.raises(ValueError, match=r"of another configuration(.*\n)*.*snapshots"):
        fit(ensemble(), checkpoint=often("broken"), snapshots=Snapshots(3, 3))


@pytest.mark.devices
@pytest.mark.parametrize("axes", [{"members": 4}, {"members": 2, "data": 2}], ids=str)
def test_members_over_a_mesh_have_the_same_snapshots(axes):
    options = {"snapshots": Snapshots(period=3, size=2)}
    whole = fit(ensemble(4), **options)
    split = fit(ensemble(4), mesh=mesh(**axes), **options)
    for x, y in zip(weights(whole.snapshots), weights(split.snapshots), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-5)


@pytest.mark.parametrize(
    ("snapshots", "error", "message"),
    [
        (Snapshots(13, 1), ValueError, r"ends with step 12, and training has 12, from 0"),
        (Snapshots(3, 1, start=12), ValueError, r"ends with step 14, and training has 12"),
        (3, TypeError, r"snapshots must be Snapshots\(period, size\), got int"),
    ],
)
def test_what_is_refused(snapshots, error, message):
    with pytest.raises(error, match=message):
        fit(ensemble(), snapshots=snapshots)


# Noise of optimizers in fit


@pytest.mark.parametrize(
    "make",
    [
        lambda key: optim.noisy_sgd(0.1, key=key),
        lambda key: optim.sgld(1e-2, data_size=24, key=key),
        lambda key: optim.sghmc(1e-2, data_size=24, friction=5.0, key=key),
        lambda key: optim.psgld(1e-3, data_size=24, key=key),
    ],
    ids=["noisy_sgd", "sgld", "sghmc", "psgld"],
)
@pytest.mark.parametrize(
    "key", [KEY, st.random.key(0), 0, None], ids=["raw", "typed", "seed", "none"]
)
def test_members_of_the_same_weights_move_apart(make, key):
    same = {"w": snp.ones(2), "b": snp.zeros(())}
    e = st.Ensemble(linear, [same] * 3)
    w = np.asarray(fit(e, make(key), order="same", epochs=1).ensemble.state_dict()[0]["w"])
    assert len(set(w.ravel().tolist())) == 6
    again = st.Ensemble(linear, [same] * 3)
    other = fit(again, make(key), order="same", epochs=1).ensemble.state_dict()[0]["w"]
    np.testing.assert_array_equal(w, other)


def test_members_of_two_architectures_draw_by_their_place():
    other = lambda p, x: linear(p, x) + 1
    same = {"w": snp.ones(2), "b": snp.zeros(())}
    flat = lambda member, x, y: 0.0 * member(x).sum()  # the prior and noise alone move weights
    e = st.Ensemble([linear, other, linear], [same] * 3)
    fitted = fit(e, loss=flat, epochs=1)
    w = np.stack([np.asarray(fitted.ensemble[i].params["w"]) for i in range(3)])
    assert len(set(w.ravel().tolist())) == 6
    for member in range(3):
        key = st.random.fold_in(st.random.fold_in(KEY, OPTIMIZER_STREAM), 0)
        key = st.random.fold_in(key, member)
        tx = optim.sghmc(1e-2, data_size=24, friction=5.0, key=key)
        params, state = same, tx.init(same)
        for _ in range(3):
            updates, state = tx.update(st.tree.map(snp.zeros_like, params), state, params)
            params = optim.apply_updates(params, updates)
        np.testing.assert_allclose(w[member], params["w"], rtol=1e-6)


def test_typed_keys_of_members_are_hyperparameters():
    keys = st.random.split(st.random.key(1), 3)
    rate = {"learning_rate": 1e-2, "data_size": 24}
    one = fit(ensemble(), optim.sgld, hyperparams={**rate, "key": keys}, epochs=1)
    raw = st.random.key_data(keys)
    two = fit(ensemble(), optim.sgld, hyperparams={**rate, "key": raw}, epochs=1)
    for x, y in zip(weights(one.ensemble), weights(two.ensemble), strict=True):
        np.testing.assert_array_equal(x, y)


def test_ivon_in_fit_takes_gradients_at_draws():
    def run(key, epochs=100):
        e = ensemble(4)
        tx = optim.ivon(0.1, data_size=24, prior_precision=1.0, b2=0.98, hess_init=0.5)
        noise = 0.5
        loss = lambda member, x, y: ((member(x) - y) ** 2).mean() / (2 * noise**2)
        return fit(e, tx, loss=loss, epochs=epochs, batch_size=24, key=key)

    fitted = run(KEY, 1200)
    features = np.concatenate([X, np.ones((24, 1), np.float32)], 1).astype(np.float64)
    precision = features.T @ features / 0.25 + np.eye(3)
    mean = np.linalg.solve(precision, features.T @ Y / 0.25)
    means = fitted.ensemble.state_dict()[0]
    got = np.concatenate([means["w"], np.asarray(means["b"])[:, None]], 1)
    deviation = 1 / np.sqrt(np.diag(precision))
    # A step of 0.1 keeps the means within a part of the posterior's deviations.
    assert (abs(got.mean(0) - mean) < deviation).all()
    hess = fitted.state.packs[0].rows.optimizer.hess
    precisions = 24 * np.concatenate([hess["w"], np.asarray(hess["b"])[:, None]], 1) + 1
    # Moving means of 50 estimates of relative deviation √2 or so, over four members: 0.1.
    np.testing.assert_allclose(precisions.mean(0), np.diag(precision), rtol=0.4)
    assert len(set(got[:, 0].tolist())) == 4

    draws = fitted.sample(st.random.key(3), 2_000)
    assert len(draws) == 8_000
    drawn = np.asarray(draws.state_dict()[0]["w"]).reshape(2_000, 4, -1)
    error = 1 / np.sqrt(precisions[:, :-1])
    # Of 2,000 draws: the mean is known to σ/45, the deviation to σ/63; here within five times.
    assert (abs(drawn.mean(0) - means["w"]) < error * 5 / 45).all()
    np.testing.assert_allclose(drawn.std(0), error, rtol=5 / 63)
    for x, y in zip(weights(fitted.sample(3, 2)), weights(fitted.sample(3, 2)), strict=True):
        np.testing.assert_array_equal(x, y)
    with pytest.raises(ValueError, match=r"Fitted\.sample: n must be at least 1, got 0"):
        fitted.sample(3, 0)
    again = run(KEY, 2)
    for x, y in zip(weights(again.ensemble), weights(run(KEY, 2).ensemble), strict=True):
        np.testing.assert_array_equal(x, y)


def test_ivon_with_hyperparameters_of_each_member():
    arguments = {"learning_rate": [0.1, 0.02, 0.1], "data_size": 24, "hess_init": [1.0, 1.0, 9.0]}
    fitted = fit(ensemble(), optim.ivon, hyperparams=arguments)
    for i, (rate, first) in enumerate([(0.1, 1.0), (0.02, 1.0), (0.1, 9.0)]):
        tx = optim.ivon(rate, data_size=24, hess_init=first)
        alone = fit(ensemble(), tx).ensemble[i]
        for x, y in zip(st.tree.leaves(alone), st.tree.leaves(fitted.ensemble[i]), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def test_draws_of_members_of_several_kinds_without_those_dropped():
    def bad(member, x, y):
        return ((member(x) - y) ** 2).mean() + member.scale

    class Line(st.nn.Module):
        def __init__(self, width, scale):
            super().__init__()
            self.layer = st.nn.Sequential(
                st.nn.Linear(2, width, key=KEY), st.nn.Linear(width, 1, key=KEY)
            )
            self.register_buffer("scale", snp.asarray(scale))

        def __call__(self, x):
            return self.layer(x)[:, 0]

    e = st.Ensemble([Line(2, 0.0), Line(3, 0.0), Line(2, np.nan), Line(3, 0.0)])
    tx = optim.ivon(0.01, data_size=24)
    with pytest.warns(st.ensemble.DivergenceWarning):
        fitted = fit(e, tx, loss=bad, on_divergence="drop", epochs=1)
    assert len(fitted.ensemble) == 3
    draws = fitted.sample(0, 4)
    assert [m.layer[0].weight.shape[0] for m in draws] == [2, 3, 3] * 4
    assert not any(m.training for m in draws)
    first = [np.asarray(m.layer[0].weight).ravel()[0] for m in draws]
    assert len(set(first)) == 12


def test_draws_of_an_optimizer_without_a_distribution_are_refused():
    fitted = fit(ensemble(), optim.sgd(0.1), epochs=1)
    with pytest.raises(ValueError, match=r"Fitted\.sample: the optimizer has no distribution"):
        fitted.sample(0)


def test_ivon_in_a_chain_is_refused_in_fit():
    tx = optim.chain(optim.clip(1.0), optim.ivon(0.1, data_size=24))
    with pytest.raises(ValueError, match="ivon: its update needs at="):
        fit(ensemble(), tx)
