"""Randomised MAP: members are exact posterior samples of a linear model."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim
from stretto.ensemble import randomised_map
from stretto.ensemble.groups import Member
from stretto.ensemble.randomised import anchored, perturbed

KEY = st.random.key(5)
RNG = np.random.default_rng(0)
N, SCALE, NOISE = 12, 0.8, 0.3
X = RNG.normal(size=(N, 2))
Y = X @ [1.0, -0.5] + NOISE * RNG.normal(size=N)
PRECISION = X.T @ X / NOISE**2 + np.eye(2) / SCALE**2
MEAN = np.linalg.solve(PRECISION, X.T @ Y / NOISE**2)
NUMBERS = np.arange(N)


def nll(member, x, y):
    return ((member(x) - y) ** 2).mean() / (2 * NOISE**2)


def made(size, **options):
    defaults = {"loss_of": nll, "prior_scale": SCALE, "noise": NOISE, "key": KEY, "size": size}
    return randomised_map(**{**defaults, "data_size": N, **options})


def apply(w, x):
    return x @ w


def drawn(keys):
    """The anchors and the noise of the targets that members of these keys have."""
    member = Member(apply, snp.zeros(2, np.float64))
    anchors = st.vmap(lambda k: anchored(member, k, SCALE)[0][1])(keys)
    noise = st.vmap(lambda k: perturbed(snp.zeros(N, np.float64), NUMBERS, k, NOISE))(keys)
    return np.asarray(anchors), np.asarray(noise)


def exact(keys):
    anchors, noise = drawn(keys)
    right = (Y + noise) @ X / NOISE**2 + anchors / SCALE**2
    return np.linalg.solve(PRECISION, right.T).T


def test_trained_members_are_the_minima_of_their_draws():
    with st.enable_x64():
        loss, per_member = made(6)
        members = [np.zeros(2)] * 6
        e = st.Ensemble(apply, members)
        rate = optim.sgd(1.0 / np.linalg.eigvalsh(PRECISION / N).max())
        data = (X, Y, NUMBERS)
        e.fit(loss, data, rate, epochs=150, batch_size=N, per_member=per_member, progress=False)
        (keys,) = per_member.values()
        np.testing.assert_allclose(st.tree.leaves(e)[0], exact(keys), rtol=0, atol=1e-9)


def test_the_minima_are_draws_of_the_conjugate_posterior():
    size = 20_000
    with st.enable_x64():
        _, per_member = made(size)
        (keys,) = per_member.values()
        samples = exact(keys)
    covariance = np.linalg.inv(PRECISION)
    deviation = np.sqrt(np.diag(covariance))
    # Standard errors: σ/√S of the mean, at most σσ'√(2/S) of the covariance; within 4.5 of them.
    assert (abs(samples.mean(0) - MEAN) < 4.5 * deviation / np.sqrt(size)).all()
    error = abs(np.cov(samples.T) - covariance) / np.outer(deviation, deviation)
    assert (error < 4.5 * np.sqrt(2 / size)).all()


def test_the_energy_is_that_of_the_docstring():
    with st.enable_x64():
        loss, per_member = made(3)
        (keys,) = per_member.values()
        anchors, noise = drawn(keys)
        w = np.array([0.4, -1.0])
        member = Member(apply, snp.asarray(w))
        rows = np.array([3, 1, 7])  # any examples of a batch keep their own noise
        for m in range(3):
            got = loss(member, X[rows], Y[rows], rows, randomised_map_keys=keys[m])
            data = ((X[rows] @ w - Y[rows] - noise[m, rows]) ** 2).mean() / (2 * NOISE**2)
            prior = ((w - anchors[m]) ** 2).sum() / (2 * SCALE**2 * N)
            np.testing.assert_allclose(got, data + prior, rtol=1e-12)
            unchanged = loss(member, X, Y, -np.ones(N, int), randomised_map_keys=keys[m])
            data = ((X @ w - Y) ** 2).mean() / (2 * NOISE**2)
            np.testing.assert_allclose(unchanged, data + prior, rtol=1e-12)


def test_modules_metrics_and_members_alone():
    def with_metrics(member, x, y):
        return nll(member, x, y), {"error": abs(member(x) - y).mean()}

    def run(places):
        models = [nn.Sequential(nn.Linear(2, 4, key=k), nn.Tanh(), nn.Linear(4, 1, key=k),
                                nn.Flatten(0)) for k in st.random.split(KEY, 3)]  # fmt: skip
        loss, per_member = made(3, loss_of=with_metrics)
        per_member = {n: x[np.asarray(places)] for n, x in per_member.items()}
        e = st.Ensemble([models[i] for i in places])
        data = (X.astype(np.float32), Y.astype(np.float32), NUMBERS)
        fitted = e.fit(loss, data, optim.adam(1e-2), epochs=3, batch_size=4, order="same",
                       key=st.random.PRNGKey(0), per_member=per_member, progress=False)  # fmt: skip
        return fitted

    together = run([0, 1, 2])
    assert together.history["error"].shape == (3, 3)
    for i in range(3):
        alone = run([i])
        for x, y in zip(
            st.tree.leaves(alone.ensemble[0]), st.tree.leaves(together.ensemble[i]), strict=True
        ):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)


def test_classes_are_anchored_alone():
    loss, per_member = made(
        2, loss_of=lambda m, x, y: nn.functional.cross_entropy(m(x), y), noise=0
    )
    (keys,) = per_member.values()
    member = nn.Linear(2, 3, key=KEY)
    labels = snp.zeros(N, np.int32)
    one, other = (
        float(loss(member, snp.asarray(X), labels, NUMBERS, randomised_map_keys=k)) for k in keys
    )
    assert one != other
    noisy, _ = made(2)
    with pytest.raises(ValueError, match=r"y must be floating.*noise=0"):
        noisy(member, snp.asarray(X), labels, NUMBERS, randomised_map_keys=keys[0])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: made(2, loss_of=3), TypeError, "loss_of must be a function"),
        (lambda: made(2, prior_scale=0.0), ValueError, "prior_scale must be above 0"),
        (lambda: made(2, noise=-1.0), ValueError, "noise must be at least 0"),
        (lambda: made(0), ValueError, "size"),
        (lambda: made(2, data_size=0), ValueError, "data_size"),
        (
            lambda: made(2)[0](None, X, Y, randomised_map_keys=KEY),
            ValueError,
            r"expected batches \(x, y, number\), of 2 parts",
        ),
        (
            lambda: made(2)[0](None, X, Y, Y, randomised_map_keys=KEY),
            TypeError,
            r"numbers of its examples, integers of shape \(12,\)",
        ),
    ],
)
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
