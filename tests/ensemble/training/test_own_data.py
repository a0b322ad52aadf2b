"""``fit`` where members have data of their own, and where examples differ in length."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim

KEY = st.random.PRNGKey(7)
RNG = np.random.default_rng(0)
COUNTS = (6, 23, 14)
XS = [RNG.normal(size=(n, 3)).astype(np.float32) for n in COUNTS]
YS = [(i + 1) * x.sum(1) for i, x in enumerate(XS)]
OWN = st.ragged(XS), st.ragged(YS)
SEQUENCES = [RNG.normal(size=(n, 3)).astype(np.float32) for n in RNG.integers(1, 9, size=20)]
MEANS = np.array([x.mean() for x in SEQUENCES])


def model(key, width=4):
    first, second = st.random.split(key)
    return nn.Sequential(
        nn.Linear(3, width, bias=False, key=first),  # the norm would undo a bias
        nn.BatchNorm1d(width),
        nn.Tanh(),
        nn.Linear(4, 1, key=second),
    )


def models():
    return [model(k) for k in st.random.split(st.random.PRNGKey(1), 3)]


def loss(member, x, y):
    return ((member(x)[:, 0] - y) ** 2).mean()


def fit(members, data, loss=loss, **options):
    ensemble = st.Ensemble(members)
    usual = {"epochs": 3, "batch_size": 4, "key": KEY, "progress": False}
    return ensemble.fit(loss, data, optim.adam(1e-2), **usual | options)


def close(one, other):
    for a, b in zip(st.tree.leaves(one), st.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("drop_last", [None, True])
def test_members_are_trained_as_each_alone(drop_last):
    fitted = fit(models(), OWN, each=True, order="given", drop_last=drop_last)
    assert fitted.history["step"].tolist() == ([6, 12, 18] if drop_last is None else [5, 10, 15])
    for i, member in enumerate(models()):
        lone = fit([member], (XS[i], YS[i]), order="given", drop_last=bool(drop_last))
        close(fitted.ensemble[i], lone.ensemble[0])
        np.testing.assert_allclose(
            fitted.history["loss"][:, i], lone.history["loss"][:, 0], rtol=1e-5
        )


def test_members_of_several_architectures():
    make = lambda: [*models()[:2], nn.Linear(3, 1, key=KEY)]
    fitted = fit(make(), OWN, each=True, order="given")
    for i, member in enumerate(make()):
        lone = fit([member], (XS[i], YS[i]), order="given", drop_last=False)
        close(fitted.ensemble[i], lone.ensemble[0])


def test_an_epoch_has_each_example_once():
    seen = lambda m, x: (m(x).sum() * 0 + x.sum(), {"count": snp.asarray(x.shape[0])})
    data = st.ragged([np.arange(n * 3.0).reshape(n, 3) for n in COUNTS])
    fitted = fit(models(), data, seen, each=True, evaluate_every=1, epochs=2)
    steps = [-(-n // 4) for n in COUNTS]
    for i, n in enumerate(COUNTS):
        counts, sums = fitted.history["count"][:, i], fitted.history["loss"][:, i]
        assert np.isfinite(counts[: steps[i]]).all() and np.isnan(counts[steps[i] : 6]).all()
        for epoch in (0, 6):
            assert np.nansum(counts[epoch : epoch + 6]) == n
            assert np.nansum(sums[epoch : epoch + 6]) == np.arange(n * 3.0).sum()


def test_as_many_for_all():
    x = np.stack([a[:6] for a in XS])
    y = x.sum(-1)
    fitted = fit(models(), {"x": x, "y": y}, lambda m, b: loss(m, b["x"], b["y"]), each=True)
    assert fitted.history["step"].tolist() == [1, 2, 3]  # what fills no batch is dropped
    same = fit(models(), (st.ragged(list(x)), st.ragged(list(y))), each=True)
    close(fitted.ensemble, same.ensemble)
    again = fit(models(), (x, y), each=True, order="bootstrap", fraction=0.8)
    assert again.history["loss"].shape == (3, 3)


def test_validation_is_each_member_s_own():
    counted = {"rows": lambda m, x, y: snp.asarray(x.shape[0] * 1.0)}
    fitted = fit(
        models(),
        OWN,
        each=True,
        order="bootstrap",
        validation=OWN,
        validation_batch_size=6,
        metrics=counted,
        early_stopping=st.ensemble.EarlyStopping(5, restore_best=False),
    )
    ensemble = fitted.ensemble.eval()
    for i in range(3):
        parts = [(XS[i][a : a + 6], YS[i][a : a + 6]) for a in range(0, COUNTS[i], 6)]
        wanted = sum(len(y) * float(loss(ensemble[i], x, y)) for x, y in parts) / COUNTS[i]
        np.testing.assert_allclose(fitted.history["validation_loss"][-1, i], wanted, rtol=1e-4)
        rows = sum(len(y) ** 2 for _, y in parts) / COUNTS[i]
        np.testing.assert_allclose(fitted.history["validation_rows"][-1, i], rows, rtol=1e-6)


def test_who_rests_has_nothing_to_diverge_by():
    def once(m, x, y):  # at a row of zeros, as a member that rests might see
        return loss(m, x, y) / (snp.abs(x).sum() > 0)

    data = st.ragged([snp.zeros((1, 3)) + 1, *XS[1:]]), st.ragged([snp.zeros(1), *YS[1:]])
    fitted = fit(models(), data, once, each=True, on_divergence="freeze")
    assert not fitted.diverged
    bad = [YS[0] * np.nan, *YS[1:]]
    with pytest.warns(UserWarning, match="member 0"):
        fitted = fit(models(), (OWN[0], st.ragged(bad)), each=True, on_divergence="freeze")
    assert list(fitted.diverged) == [0] and np.isfinite(fitted.history["loss"][:, 1:]).all()


def test_shared_parts_get_the_mean_over_those_that_have_a_batch():
    def start():
        trunk = nn.Linear(3, 4, bias=False, key=KEY)
        keys = st.random.split(st.random.PRNGKey(1), 3)
        return [nn.Sequential(trunk, nn.Linear(4, 1, bias=False, key=k)) for k in keys]

    ensemble = st.Ensemble(start(), shared="0.*")
    options = {"epochs": 1, "batch_size": 4, "each": True, "order": "given", "key": KEY}
    ensemble.fit(loss, OWN, optim.sgd(0.1), progress=False, **options)
    trunk = start()[0][0].weight
    heads = [m[1].weight for m in start()]
    for step in range(6):
        at = slice(4 * step, 4 * step + 4)
        slopes = []
        for i in range(3):
            x, y = XS[i][at], YS[i][at]
            if len(x):
                f = lambda t, h, x=x, y=y: (((x @ t.T) @ h.T)[:, 0] - y).__pow__(2).mean()
                by_trunk, by_head = st.grad(f, (0, 1))(trunk, heads[i])
                slopes.append(by_trunk)
                heads[i] = heads[i] - 0.1 * by_head
        trunk = trunk - 0.1 * sum(slopes) / len(slopes)
    np.testing.assert_allclose(ensemble[0][0].weight, trunk, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(ensemble[1][1].weight, heads[1], rtol=1e-4, atol=1e-6)


def test_a_training_goes_on_where_it_was(tmp_path):
    whole = fit(models(), OWN, each=True, epochs=4)
    fit(models(), OWN, each=True, epochs=2, checkpoint=tmp_path)
    resumed = fit(models(), OWN, each=True, epochs=4, checkpoint=tmp_path)
    for a, b in zip(st.tree.leaves(whole.ensemble), st.tree.leaves(resumed.ensemble), strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="order"):
        other = [st.ragged([x[:-1] for x in xs]) for xs in (XS, YS)]
        fit(models(), tuple(other), each=True, checkpoint=tmp_path)


def test_a_step_with_batches_of_different_sizes():
    trainer = st.ensemble.Trainer(loss, optim.sgd(0.1))
    state = trainer.start(st.Ensemble(models()), KEY)
    state, metrics = trainer.step(state, OWN, each=True)
    for i, member in enumerate(models()):
        np.testing.assert_allclose(metrics["loss"][i], loss(member, XS[i], YS[i]), rtol=1e-5)


@pytest.mark.parametrize("order", ["own", "same", "bootstrap", "given"])
def test_examples_of_different_lengths(order):
    def of_sequences(member, xs, means):
        return ((st.vmap(lambda x: member(x).mean())(xs) - means) ** 2).mean()

    def padded(member, xs, sizes, means):
        inside = snp.arange(8)[None] < sizes[:, None]
        outs = snp.where(inside, st.vmap(member)(xs)[..., 0], 0).sum(1) / sizes
        return ((outs - means) ** 2).mean()

    make = lambda: [nn.Linear(3, 1, key=k) for k in st.random.split(KEY, 3)]
    ragged = st.ragged(SEQUENCES)
    data = ragged, MEANS
    got = fit(make(), data, of_sequences, order=order, validation=data, validation_batch_size=7)
    rectangle = ragged.pad(0, 8), ragged.lengths.astype(np.float32), MEANS
    wanted = fit(
        make(), rectangle, padded, order=order, validation=rectangle, validation_batch_size=7
    )
    close(got.ensemble, wanted.ensemble)
    for name in ("loss", "validation_loss"):
        np.testing.assert_allclose(got.history[name], wanted.history[name], rtol=2e-5)


def test_targets_of_the_same_lengths():
    def tagged(member, xs, ys):
        return st.vmap(lambda x, y: ((member(x)[:, 0] - y) ** 2).sum())(xs, ys).mean()

    data = st.ragged(SEQUENCES), st.ragged([x.sum(1) for x in SEQUENCES])
    fitted = fit(
        [nn.Linear(3, 1, key=KEY)] * 2, data, tagged, epochs=30, validation=data, batch_size=5
    )
    assert fitted.history["loss"][-1].max() < fitted.history["loss"][0].min() / 2


def test_batches_that_are_ragged():
    def of_sequences(member, xs):
        return (st.vmap(lambda x: member(x).mean())(xs) ** 2).mean()

    batches = [st.ragged(SEQUENCES[i : i + 5]) for i in range(0, 20, 5)]
    usual = {"batch_size": None}
    fitted = fit([nn.Linear(3, 1, key=KEY)] * 2, batches, of_sequences, **usual)
    assert fitted.history["loss"][-1, 0] < fitted.history["loss"][0, 0]
    own = [(st.ragged([x[:n] for x in XS]), st.ragged([y[:n] for y in YS])) for n in (3, 5, 9)]
    fitted = fit(models(), own, order="own", **usual)
    assert np.isfinite(fitted.history["loss"]).all()


@pytest.mark.parametrize(
    ("data", "options", "match"),
    [
        ((OWN[0], st.ragged(YS[::-1])), {}, r"member 0 has 6 in data\[0\] and 14 in data\[1\]"),
        (st.ragged(XS[:2]), {}, "an entry for each of 3 members"),
        (np.zeros((3,)), {}, "must be ragged or have the members"),
        (np.zeros((3, 0)), {}, "no examples"),
        ([XS[0]], {}, "say order='own'"),
        (OWN, {"order": "same"}, "shows all members the same"),
        (OWN, {"drop_last": True, "batch_size": 8}, "member 0 has 6 examples, which do not fill"),
        (OWN, {"batch_size": 24}, "batch_size=24 is larger"),
        ((OWN[0], OWN[0].values), {}, "entry for each of 3 members"),
    ],
)
def test_what_is_refused(data, options, match):
    with pytest.raises(ValueError, match=match):
        fit(models(), data, each=True, **options)


def test_over_devices():
    devices = np.array(st.devices()[:1])
    fitted = fit(
        models(), OWN, each=True, order="given", mesh=st.sharding.Mesh(devices, ("members",))
    )
    close(fitted.ensemble, fit(models(), OWN, each=True, order="given").ensemble)
    mesh = st.sharding.Mesh(devices.reshape(1, 1), ("members", "data"))
    with pytest.raises(NotImplementedError, match="leave the axis out"):
        fit(models(), OWN, each=True, mesh=mesh)
