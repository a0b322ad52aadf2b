"""Laplace posteriors: references, exact cases, ensembles, transformations, and what is refused."""

import functools
import math

import numpy as np
import pytest
from scipy import optimize, special

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.ensemble import Laplace, fit_laplace
from tests.ensemble.posteriors import (
    FOLDER,
    SETTINGS,
    STRUCTURES,
    WEIGHTS,
    close,
    data,
    needs_reference,
    network,
    perceptron,
    table,
    values,
)

KEY = st.random.key(0)
ALL = ["full", "kron", "diagonal", "low_rank"]


@pytest.fixture(autouse=True)
def _float64():
    with st.config(enable_x64=True):
        yield


@functools.cache
def found():
    return values()


@functools.cache
def fitted(tag, structure, subset="all"):
    x, y, _ = data(tag, found())
    settings = {**SETTINGS[tag], "structure": structure, "weights": WEIGHTS[subset]}
    return fit_laplace(network(tag, found()), (x, y), **settings, batch_size=7)


def linear(params, x):
    return x @ params["w"]


# References


@needs_reference
@pytest.mark.parametrize("tag", ["reg", "cla", "con"])
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("subset", WEIGHTS)
def test_predictions_and_evidence_are_the_references(tag, structure, subset):
    laplace, (_, _, xt) = fitted(tag, structure, subset), data(tag, found())
    name = f"{tag}.{subset}.{STRUCTURES[structure]}.ggn"
    # The references are at a MAP to 5e-7, and have been rounded by other routines.
    out = laplace.predict(xt)
    close(out.mean, found()[f"{name}.glm_mean"])
    close(out.covariance, found()[f"{name}.glm_var"])
    joint = found().get(f"{name}.glm_joint_cov6")
    if joint is not None:
        close(laplace.predict(xt[:6], joint=True).covariance.reshape(6, 6), joint)
    of = st.value_and_grad(lambda log: laplace.log_marginal_likelihood(snp.exp(log)))
    for i, prior in enumerate([1.0, 0.1, 10.0]):
        value, slope = of(snp.log(prior))
        close(value, found()[f"{name}.marglik{i}"])
        close(slope, found()[f"{name}.dmarglik_dlogprior{i}"])
        if tag == "reg" and structure != "kron":  # known_wrong has these
            by_noise = lambda log, prior=prior: laplace.log_marginal_likelihood(prior, snp.exp(log))
            expected = found()[f"{name}.dmarglik_dlogsigma{i}"]
            close(st.grad(by_noise)(snp.log(0.2)), expected)


@needs_reference
def test_the_slope_by_noise_that_laplace_torch_has_wrong():
    laplace = fitted("reg", "kron")
    by_noise = lambda log: laplace.log_marginal_likelihood(1.0, snp.exp(log))
    close(st.grad(by_noise)(snp.log(0.2)), 0.25537404, rtol=1e-7)
    step = 1e-5
    close(
        (by_noise(snp.log(0.2) + step) - by_noise(snp.log(0.2) - step)) / (2 * step),
        0.25537404,
        rtol=1e-6,
    )


@needs_reference
@pytest.mark.parametrize("tag", ["reg", "cla", "con"])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_tuning_by_the_evidence_finds_the_references_optimum(tag, structure):
    laplace, name = fitted(tag, structure), f"{tag}.all.{STRUCTURES[structure]}.ggn"
    once = laplace.tuned()
    # The evidence is flat at its top: to 1e-9 in it, the optimum is found to 1e-5.
    close(once.log_marginal_likelihood(), found()[f"{name}.opt_prior_scalar_marglik"])
    close(once.prior_precision["0.bias"], found()[f"{name}.opt_prior_scalar"], rtol=1e-5)
    assert len({float(x) for x in once.prior_precision.values()}) == 1
    each = laplace.tuned(per="layer")
    close(each.log_marginal_likelihood(), found()[f"{name}.opt_prior_layerwise_marglik"])
    assert len({float(x) for x in each.prior_precision.values()}) == 4


@needs_reference
def test_links_are_the_references():
    laplace, (_, _, xt) = fitted("cla", "full"), data("cla", found())
    for link in ("probit", "bridge"):
        close(laplace.probabilities(xt, link=link), found()[f"cla.all.full.ggn.{link}"])
    drawn = np.load(FOLDER / "mc.npz")["mc"]
    # 4 standard errors of 4,000 draws of probabilities, whose deviation is below 0.5.
    close(laplace.probabilities(xt, KEY, samples=4000), drawn, atol=4 * 0.5 / 4000**0.5)
    # With fewer draws than outputs they are of the weights; the same law.
    many = [laplace.probabilities(xt, k, samples=2) for k in st.random.split(KEY, 300)]
    close(np.mean(many, 0), drawn, atol=4 * 0.5 / 600**0.5)


@needs_reference
def test_full_predictions_are_near_those_of_nuts_and_sampled_weights_are_not():
    nuts, (_, _, xt) = np.load(FOLDER / "nuts.npz"), data("reg", found())
    laplace = fitted("reg", "full")
    x = np.asarray(xt)[:, 0]
    at_data = np.abs(x) <= np.abs(np.asarray(data("reg", found())[0])).max()
    ratio = np.asarray(laplace.predict(xt).std)[:, 0] / nuts["sd"]
    assert 0.8 < np.median(ratio[at_data]) < 1.3
    wide = np.asarray(laplace.sample(KEY, 200)(xt).std(0))[:, 0] / nuts["sd"]
    assert np.median(wide[at_data]) > 3 * np.median(ratio[at_data])


# Exact cases


def regression(seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(20, 4))
    return x, x @ rng.normal(size=(4, 1)) + noise * rng.normal(size=(20, 1))


def at_maximum(x, y, prior, noise, **settings):
    """Fit a linear model at the maximum of the posterior of this prior and noise."""
    precision = x.T @ x / noise**2 + prior * np.eye(4)
    w = snp.asarray(np.linalg.solve(precision, x.T @ y) / noise**2)
    settings = {"likelihood": "gaussian", "structure": "full", **settings}
    return fit_laplace((linear, {"w": w}), (x, y), prior_precision=prior, noise=noise, **settings)


@pytest.mark.parametrize("structure", ["full", "kron", "diagonal", "low_rank"])
def test_prior_and_noise_of_the_greatest_evidence_of_these_weights(structure):
    laplace = at_maximum(*regression(), 2.0, 1.0, structure=structure, rank=3)

    def loss(logs):
        return -float(laplace.log_marginal_likelihood(math.exp(logs[0]), math.exp(logs[1])))

    direct = optimize.minimize(loss, np.zeros(2), tol=1e-12, method="Nelder-Mead")
    tuned = laplace.tuned(noise=True)
    found = [float(tuned.prior_precision["w"]), float(tuned.noise)]
    np.testing.assert_allclose(found, np.exp(direct.x), rtol=1e-5)
    alone = laplace.tuned()
    assert float(alone.noise) == 1.0
    assert tuned.log_marginal_likelihood() > alone.log_marginal_likelihood()


def test_fits_in_turn_with_tuned_ones_end_at_the_evidence_of_the_conjugate_model():
    """There the weights, the prior and the noise fit each other, as where all are found at once."""
    x, y = regression()
    prior, noise = 1.0, 1.0
    for _ in range(60):
        tuned = at_maximum(x, y, prior, noise).tuned(noise=True)
        prior, noise = float(tuned.prior_precision["w"]), float(tuned.noise)
    direct = st.ensemble.fit_bayesian_regression(x, y)
    np.testing.assert_allclose(prior, direct.prior_precision[0], rtol=1e-6)
    np.testing.assert_allclose(noise, direct.noise[0], rtol=1e-6)
    evidence = at_maximum(x, y, prior, noise).log_marginal_likelihood()
    np.testing.assert_allclose(evidence, direct.log_marginal_likelihood()[0], rtol=1e-9)


def test_noise_of_members_and_priors_of_layers_are_found_together():
    members = [perceptron(i) for i in range(2)]
    settings = {"likelihood": "gaussian", "noise": 0.5}
    x, y = table()
    y = snp.asarray(y, np.float64)
    if y.ndim == 1:
        y = y[:, None]
    outputs = members[0](x).shape[-1]
    y = snp.broadcast_to(y, (len(y), outputs))
    many = fit_laplace(st.Ensemble(members), (x, y), **settings).tuned(per="layer", noise=True)
    for i, member in enumerate(members):
        one = fit_laplace(member, (x, y), **settings).tuned(per="layer", noise=True)
        np.testing.assert_allclose(many.noise[i], one.noise, rtol=1e-6)
        for name, value in one.prior_precision.items():
            np.testing.assert_allclose(many.prior_precision[name][i], value, rtol=1e-5)


def test_targets_that_are_met_have_no_noise():
    x = np.ones((9, 4))
    with pytest.raises(ValueError, match="the evidence grows for ever as σ falls"):
        fit_laplace(
            (linear, {"w": snp.ones((4, 1))}),
            (x, x @ np.ones((4, 1))),
            likelihood="gaussian",
            structure="full",
            noise=1.0,
        ).tuned(noise=True)


@pytest.mark.parametrize("structure", ["full", "low_rank"])
def test_conjugate_linear_regression_is_exact(structure):
    rng = np.random.default_rng(0)
    x, xt, prior, noise = rng.normal(size=(20, 4)), rng.normal(size=(5, 4)), 0.7, 0.3
    y = x @ rng.normal(size=(4, 1)) + noise * rng.normal(size=(20, 1))
    precision = x.T @ x / noise**2 + prior * np.eye(4)
    mean = np.linalg.solve(precision, x.T @ y) / noise**2
    laplace = fit_laplace(
        (linear, {"w": snp.asarray(mean)}),
        (x, y),
        likelihood="gaussian",
        structure=structure,
        prior_precision=prior,
        noise=noise,
        rank=4,
    )
    covariance = xt @ np.linalg.inv(precision) @ xt.T
    close(laplace.predict(xt).mean, xt @ mean)
    close(laplace.predict(xt).variance[:, 0], np.diag(covariance))
    close(laplace.predict(xt, noise=True).variance[:, 0], np.diag(covariance) + noise**2)
    joint = laplace.predict(xt, joint=True)
    close(joint.covariance.reshape(5, 5), covariance)
    close(
        laplace.predict(xt, joint=True, noise=True).covariance.reshape(5, 5),
        covariance + noise**2 * np.eye(5),
    )
    # The evidence at the exact MAP is that of the Gaussian process with this kernel.
    kernel = x @ x.T / prior + noise**2 * np.eye(20)
    size = np.linalg.slogdet(2 * np.pi * kernel)[1]
    expected = -(y.T @ np.linalg.solve(kernel, y) + size).item() / 2
    close(laplace.log_marginal_likelihood(), expected)
    close(laplace.implied_prior_precision, prior, rtol=1e-8)


def test_two_targets_have_the_same_covariance_each():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(10, 3)), rng.normal(size=(10, 2))
    one = fit_laplace(
        (linear, {"w": snp.zeros((3, 2))}),
        (x, y),
        likelihood="gaussian",
        noise=0.5,
        structure="kron",
    )
    expected = x @ np.linalg.inv(x.T @ x / 0.25 + np.eye(3)) @ x.T
    out = one.predict(x).covariance
    # Kronecker factors are exact here: B is N times 1, A the mean of x xᵀ.
    close(out[:, 0, 0], np.diag(expected))
    close(out[:, 1, 1], np.diag(expected))
    close(out[:, 0, 1], 0, atol=1e-12)
    close(one.predict(x, joint=True).covariance[:, 0, :, 0], expected)


# Ensembles and transformations


@functools.cache
def ensemble_and_ones(structure):
    x, y = table()
    members = [perceptron(i) for i in range(3)]
    settings = {"structure": structure, "rank": 5}
    many = fit_laplace(st.Ensemble(members), (x, y), **settings)
    return many, [fit_laplace(m, (x, y), **settings) for m in members]


@pytest.mark.parametrize("structure", ALL)
def test_an_ensemble_has_each_members_result(structure):
    many, ones = ensemble_and_ones(structure)
    x = table(seed=1)[0][:4]
    keys = st.random.split(KEY, 3)
    # Equal but for the rounding of products that are batched.
    for i, one in enumerate(ones):
        close(many.predict(x).mean[i], one.predict(x).mean, rtol=1e-12)
        close(many.predict(x).covariance[i], one.predict(x).covariance)
        close(many.log_marginal_likelihood()[i], one.log_marginal_likelihood(), rtol=1e-12)
        close(many.implied_prior_precision[i], one.implied_prior_precision)
        close(
            many.tuned(per="layer").prior_precision["0.bias"][i],
            one.tuned(per="layer").prior_precision["0.bias"],
            rtol=1e-5,
        )
    drawn = np.concatenate([o.members(k, 2)(x) for o, k in zip(ones, keys, strict=True)])
    close(many.members(KEY, 2)(x), drawn)
    assert len(many.members(KEY, 2)) == 6
    drawn = np.concatenate([o.sample(k, 2)(x) for o, k in zip(ones, keys, strict=True)])
    close(many.sample(KEY, 2)(x), drawn)
    for link in ("sampled", "probit"):
        each = [o.probabilities(x, k, link) for o, k in zip(ones, keys, strict=True)]
        close(many.probabilities(x, KEY, link), np.mean(each, 0))


def test_an_ensembles_full_posterior_is_equal_to_the_last_bit():
    many, ones = ensemble_and_ones("full")
    for i, one in enumerate(ones):
        mine, theirs = many._posterior.precision.curvature[i], one._posterior.precision.curvature
        np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(
            many.log_marginal_likelihood()[i], one.log_marginal_likelihood()
        )


def test_priors_and_noise_of_each_member():
    many, ones = ensemble_and_ones("kron")
    priors = snp.asarray([0.5, 1.0, 2.0])
    found = many.log_marginal_likelihood(priors)
    for i, one in enumerate(ones):
        close(found[i], one.log_marginal_likelihood(priors[i]))


def test_functions_of_a_tree_and_ensembles_of_them():
    rng = np.random.default_rng(0)
    x, y = snp.asarray(rng.normal(size=(10, 3))), snp.asarray(rng.normal(size=(10, 1)))
    trees = [{"w": snp.asarray(rng.normal(size=(3, 1)))} for _ in range(2)]
    settings = {"likelihood": "gaussian", "noise": 0.5}
    many = fit_laplace(st.Ensemble(linear, trees), (x, y), **settings)
    for i, params in enumerate(trees):
        one = fit_laplace((linear, params), (x, y), **settings)
        close(many.predict(x).covariance[i], one.predict(x).covariance)
        close(one.sample(KEY, 2)(x), one.members(KEY, 2)(x))  # linear


@pytest.mark.parametrize("structure", ALL)
def test_under_jit_vmap_and_grad(structure):
    _, (laplace, *_) = ensemble_and_ones(structure)
    x = table(seed=1)[0][:3]
    whole = laplace.predict(x)
    inside = st.jit(lambda posterior, x: posterior.predict(x))(laplace, x)
    close(inside.covariance, whole.covariance)
    priors = snp.asarray([0.3, 1.0, 4.0])
    of = laplace.log_marginal_likelihood
    close(st.vmap(of)(priors), [of(p) for p in priors], rtol=1e-12)
    close(st.jit(of)(priors[1]), laplace.log_marginal_likelihood(), rtol=1e-12)
    step = 1e-5
    by = {n: snp.asarray(0.8) for n in laplace.prior_precision}
    slope = st.grad(of)(by)
    for name, prior in by.items():
        up, down = [of({**by, name: prior + d}) for d in (step, -step)]
        close(slope[name], (up - down) / (2 * step), rtol=1e-5, atol=1e-7)


def test_a_loss_that_is_a_mean_shows_in_the_implied_prior():
    # The MAP of a sum has δ = 1; that of the mean over N with the same weight decay has N.
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 2))
    y = x @ np.ones((2, 1)) + rng.normal(size=(50, 1))
    of = lambda prior: np.linalg.solve(x.T @ x + prior * np.eye(2), x.T @ y)
    for prior in (1.0, 50.0):
        laplace = fit_laplace(
            (linear, {"w": snp.asarray(of(prior))}), (x, y), likelihood="gaussian", noise=1.0
        )
        close(laplace.implied_prior_precision, prior)


def test_tuning_by_held_out_targets():
    x, y = table(seed=3)
    laplace = fit_laplace(perceptron(0), (x, y), structure="kron")
    tuned = laplace.tuned("validation", data=table(seed=4), key=KEY)
    (value,) = {float(v) for v in tuned.prior_precision.values()}
    score = lambda p: (
        -st.ensemble.nll(p.probabilities(table(seed=4)[0], KEY, samples=4000), table(seed=4)[1])
    )
    better = laplace._with(value, None, "test")
    assert score(better) > score(laplace._with(1e-4, None, "test"))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 2))
    y, held = x @ np.ones((2, 1)) + rng.normal(size=(20, 1)), rng.normal(size=(9, 2))
    line = fit_laplace((linear, {"w": snp.ones((2, 1))}), (x, y), likelihood="gaussian", noise=1.0)
    best = line.tuned("validation", data=(held, held @ np.ones((2, 1))))
    scores = [
        line._with(p, None, "test")
        .predict(held, noise=True)
        .log_density(held @ np.ones((2, 1)))
        .mean()
        for p in np.logspace(-4, 4, 41)
    ]
    close(best.prior_precision["w"], np.logspace(-4, 4, 41)[np.argmax(scores)])


# What users of others report


def test_one_logit():
    x, _ = table()
    y = (x[:, :1] > 0).astype(np.float64)
    model = perceptron(0, outputs=1)
    laplace = fit_laplace(model, (x, y), likelihood="bernoulli", structure="full")
    both = lambda x: snp.concatenate([snp.zeros_like(model(x)), model(x)], -1)
    p = laplace.probabilities(x, KEY)
    assert p.shape == (30, 1) and both(x).shape == (30, 2)
    close(laplace.probabilities(x, link="probit"), p, atol=0.06)
    f = np.asarray(model(x))
    h = special.expit(f) * special.expit(-f)
    state = model.state_dict()
    j = st.jacrev(lambda w: st.func.functional_call(model, w, x))(state)
    j = np.concatenate([np.reshape(j[n], (30, -1)) for n in state], 1)
    close(laplace._posterior.precision.curvature, (j * h).T @ j)


def test_heteroscedastic_noise():
    x, _ = table()
    y = x[:, 0] * 2
    model = perceptron(0, outputs=2)
    laplace = fit_laplace(model, (x, y), likelihood="heteroscedastic", structure="full")
    out, targets = laplace.predict(x), laplace.predict(x, noise=True)
    assert out.mean.shape == (30, 2) and targets.mean.shape == (30,)
    noise = np.exp(np.asarray(out.mean)[:, 1] + np.asarray(out.variance)[:, 1] / 2)
    close(targets.variance, out.variance[:, 0] + noise)
    close(laplace.predict(x, joint=True, noise=True).variance, targets.variance)


def test_a_function_as_likelihood():
    x, y = table()
    model = perceptron(0)
    nll = lambda f, y: -nn.functional.log_softmax(f, -1)[y]
    mine = fit_laplace(model, (x, y), likelihood=nll, structure="full")
    known = fit_laplace(model, (x, y), structure="full")
    close(mine.log_marginal_likelihood(), known.log_marginal_likelihood())
    with pytest.raises(ValueError, match="has no classes"):
        mine.probabilities(x, KEY)


def test_image_to_image():
    rng = np.random.default_rng(0)
    layers = nn.Conv2d(1, 2, 3, padding=1), nn.Tanh(), nn.Conv2d(2, 3, 1)
    model = st.tree.map(lambda w: w.astype(np.float64), nn.Sequential(*layers)).eval()
    x = snp.asarray(rng.normal(size=(4, 1, 3, 3)))
    y = snp.asarray(rng.integers(3, size=(4, 3, 3)).astype(np.int32))
    laplace = fit_laplace(model, (x, y), structure="kron")
    out = laplace.predict(x)
    assert out.covariance.shape == (4, 3, 3, 3, 3, 3, 3)
    for link in ("sampled", "probit"):
        p = laplace.probabilities(x, KEY, link, samples=200)
        assert p.shape == (4, 3, 3, 3)
        close(p.sum(1), 1)  # classes are axis 1, as in PyTorch
    with pytest.raises(ValueError, match=r"link='bridge' is for outputs \(batch, classes\)"):
        laplace.probabilities(x, link="bridge")


@pytest.mark.parametrize("structure", ["kron", "diagonal"])
def test_many_classes_in_the_last_layer(structure):
    classes = 300  # of 10,000 it is the same, in minutes
    rng = np.random.default_rng(0)
    x, y = snp.asarray(rng.normal(size=(5, 2))), snp.asarray(np.arange(5, dtype=np.int32))
    model = perceptron(0, outputs=classes, width=3)
    laplace = fit_laplace(model, (x, y), structure=structure, weights="last", batch_size=1)
    few = laplace.probabilities(x, KEY, samples=20)  # of draws of the weights: no covariance
    close(few.sum(-1), 1)
    close(few, laplace.probabilities(x, KEY, samples=2000), atol=0.1)
    assert laplace.members(KEY, 3)(x).shape == (3, 5, classes)


def test_ten_thousand_classes_are_said_in_gigabytes():
    x, y = snp.ones((300, 64), np.float32), snp.zeros(300, np.int32)
    layer = st.tree.map(lambda w: w.astype(np.float32), nn.Linear(64, 10_000))
    with (
        st.config(memory_budget=2_000_000_000),
        pytest.raises(MemoryError, match=r"650,000 weights takes 1,690.0 GB"),
    ):
        fit_laplace(layer, (x, y), structure="full")
    with (
        st.config(memory_budget=500_000_000),
        pytest.raises(MemoryError, match=r"Hessian of 10,000 outputs.* takes 1.6 GB"),
    ):
        fit_laplace(nn.Sequential(nn.Linear(64, 64), nn.Tanh(), layer), (x, y), structure="kron")


def test_factors_of_a_last_layer_take_no_roots():
    x, y = snp.ones((3, 2)), snp.zeros(3, np.int32)
    model = perceptron(0, outputs=300, width=3)
    with st.config(memory_budget=1_200_000):  # less than twice the root of one example
        laplace = fit_laplace(model, (x, y), structure="kron", weights="last")
        with pytest.raises(MemoryError, match=r"300 outputs.* take weights='last'"):
            fit_laplace(model, (x, y), structure="kron")
    p = np.asarray(nn.functional.softmax(model(x), -1))
    values = [np.asarray(b.left_values)[0] for b in laplace._posterior.precision.blocks.values()]
    hessian = 3 * (np.diag(p[0]) - np.outer(p[0], p[0]))
    for found in values:
        close(found, np.linalg.eigvalsh(hessian), atol=1e-14)


def test_a_root_of_few_columns_for_many_classes():
    classes = 2000
    rng = np.random.default_rng(0)
    x, y = snp.asarray(rng.normal(size=(4, 2))), snp.asarray(np.arange(4, dtype=np.int32))
    known = st.curvature.likelihood_of("categorical")
    drawn = snp.asarray(rng.normal(size=(classes, 8)) / 8**0.5)

    def root(f, y):
        p = nn.functional.softmax(f, -1)[:, None]
        return snp.sqrt(p) * drawn - p * (snp.sqrt(p) * drawn).sum(0)

    few = st.curvature.Likelihood("categorical", known.nll, root)
    model = perceptron(0, outputs=classes, width=3)
    laplace = fit_laplace(model, (x, y), likelihood=few, structure="diagonal", weights="last")
    with st.config(memory_budget=20_000_000), pytest.raises(MemoryError, match="2,000 outputs"):
        fit_laplace(model, (x, y), structure="diagonal", weights="last")
    close(laplace.probabilities(x, KEY, samples=5).sum(-1), 1)


# What is refused


def test_batch_norm_and_dropout_in_train_mode():
    x, y = table()
    for layer in (nn.BatchNorm1d(5), nn.Dropout(0.5)):
        model = nn.Sequential(nn.Linear(2, 5), layer, nn.Linear(5, 3))
        with pytest.raises(ValueError, match=r"call model.eval\(\) first"):
            fit_laplace(model, (x, y))
        fit_laplace(model.eval(), (x, y), structure="diagonal")
        with pytest.raises(ValueError, match=r"call model.eval\(\) first"):
            fit_laplace(st.Ensemble([model]).train(), (x, y))


def refused(message, kind=ValueError, **changed):
    x, y = table()
    settings = {"structure": "diagonal", **changed}
    data = settings.pop("data", (x, y))
    with pytest.raises(kind, match=message):
        fit_laplace(settings.pop("model", perceptron(0)), data, **settings)


def test_arguments_that_are_refused():
    x, y = table()
    refused("structure must be one of 'full', 'kron'.* got 'block'", structure="block")
    refused("likelihood='gaussian' needs noise=", likelihood="gaussian")
    refused("noise= is the standard deviation of likelihood='gaussian'; 'categorical'", noise=1.0)
    refused("prior_precision must be positive, got -1", prior_precision=-1.0)
    refused("prior_precision must be a number, got float64", prior_precision=snp.ones(2))
    refused(
        r"must have an entry for each of 0.weight, .*; got 0.bias", prior_precision={"0.bias": 1}
    )
    refused("data must be a tuple", data=x)
    refused("data must be a tuple", data=[])
    refused("as many targets as inputs along axis 0", data=(x, y[:3]))
    refused("batch_size must be at least 1", batch_size=0)
    refused("covers no weight", weights="9.*")
    many = st.Ensemble([perceptron(0), perceptron(1, width=4)])
    refused("members of 2 architectures.*ensemble.groups", NotImplementedError, model=many)


def test_calls_that_are_refused():
    _, (laplace, *_) = ensemble_and_ones("kron")
    x, y = table()
    for message, call in [
        ("noise=True is for targets that are numbers", lambda: laplace.predict(x, noise=True)),
        ("link must be one of", lambda: laplace.probabilities(x, KEY, "softmax")),
        ("link='sampled' needs key=", lambda: laplace.probabilities(x)),
        ("samples must be at least 1", lambda: laplace.probabilities(x, KEY, samples=0)),
        ("n must be at least 1", lambda: laplace.members(KEY, 0)),
        ("n must be at least 1", lambda: laplace.sample(KEY, 0)),
        ("has no noise=", lambda: laplace.log_marginal_likelihood(noise=1.0)),
        ("must be positive", lambda: laplace.log_marginal_likelihood(0.0)),
        ("by must be 'evidence' or 'validation'", lambda: laplace.tuned("test")),
        ("data= is for by='validation'", lambda: laplace.tuned(data=(x, y))),
        ("noise=True is for likelihood='gaussian'", lambda: laplace.tuned(noise=True)),
        ("needs data=", lambda: laplace.tuned("validation")),
        ("has per='all'", lambda: laplace.tuned("validation", "layer", data=(x, y))),
        ("needs key=", lambda: laplace.tuned("validation", data=(x, y))),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(AttributeError):
        laplace.structure = "full"


def test_sizes_are_said_before_anything_is_made():
    _, (laplace, *_) = ensemble_and_ones("kron")
    with (
        st.config(memory_budget=1_000_000),
        pytest.raises(
            MemoryError, match=r"covariance of 3 outputs of 40,000 examples takes 0.0 GB"
        ),
    ):
        laplace.predict(snp.zeros((40_000, 2)))
    x, y = table()
    with (
        st.config(memory_budget=1000),
        pytest.raises(
            MemoryError, match=r"structure='full' of 33 weights takes .* take structure='kron'"
        ),
    ):
        fit_laplace(perceptron(9), (x, y), structure="full")


def test_shared_weights_are_not_drawn_as_members():
    x, y = table()
    first, other = perceptron(0), perceptron(1)
    other.get_submodule("0").weight = first.get_submodule("0").weight
    other.get_submodule("0").bias = first.get_submodule("0").bias
    many = st.Ensemble([first, other], shared="0")
    laplace = fit_laplace(many, (x, y), structure="diagonal")
    with pytest.raises(ValueError, match=r"the members share 0.*members\(\) keeps them apart"):
        laplace.sample(KEY, 2)
    last = fit_laplace(many, (x, y), structure="diagonal", weights="last")
    assert len(last.sample(KEY, 2)) == 4
    assert isinstance(last, Laplace)
