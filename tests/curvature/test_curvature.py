import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.curvature import fisher, ggn
from tests.curvature.posteriors import LIKELIHOODS, double, needs_references, network, row, values


@pytest.fixture(autouse=True)
def _double():
    with st.enable_x64():
        yield


def data(*shape, seed=0):
    return snp.array(np.random.default_rng(seed).normal(size=shape))


def mlp(seed=0):
    st.random.manual_seed(seed)
    return double(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))


def blocks(model, x, lam):
    """Return Σ JᵀΛJ by whole Jacobians, one example after the other."""
    apply, chosen, _ = st.curvature.parts_of(model)
    total = 0
    for i in range(len(x)):
        jacobian = st.jacrev(lambda w, i=i: apply(w, x[i : i + 1])[0])(chosen)
        flat = np.concatenate(
            [np.asarray(jacobian[n]).reshape(-1, chosen[n].size) for n in chosen], 1
        )
        total = total + flat.T @ lam(np.asarray(apply(chosen, x[i : i + 1])[0])) @ flat
    return total


def softmax_hessian(f):
    p = np.exp(f - f.max())
    p = p / p.sum()
    return np.diag(p) - np.outer(p, p)


@needs_references
@pytest.mark.parametrize("tag", ["reg", "cla", "con"])
def test_laplace_torchs_matrices(tag):
    model, stored, likelihood = network(tag), values(), LIKELIHOODS[tag]
    x, y = stored[f"{tag}.x"], stored[f"{tag}.y"]
    curvature = ggn(model, x, likelihood)
    whole = np.asarray(curvature.dense())
    np.testing.assert_allclose(whole, stored[f"{tag}.all.full.ggn.H"], atol=1e-12)
    np.testing.assert_allclose(
        row(curvature.diagonal()), stored[f"{tag}.all.diag.ggn.H"], atol=1e-12
    )
    last = ggn(model, x, likelihood, weights="last")
    np.testing.assert_allclose(
        row(last.diagonal()), stored[f"{tag}.last_layer.diag.ggn.H"], atol=1e-12
    )
    if tag != "con":
        stays = stored[f"{tag}.last_layer.full.ggn.H"]
        np.testing.assert_allclose(last.dense(), stays, atol=1e-12)
    chosen = stored[f"{tag}.subnet.indices"]
    part = whole[np.ix_(chosen, chosen)]
    np.testing.assert_allclose(part, stored[f"{tag}.subnet.full.H"], atol=1e-12)
    if tag == "reg":  # laplace-torch's empirical Fisher of the Gaussian is known to be wrong
        return
    empirical = fisher(model, x, likelihood, kind="empirical", y=y)
    np.testing.assert_allclose(
        row(empirical.diagonal()), stored[f"{tag}.all.diag.ef.H"], atol=1e-12
    )
    if tag == "cla":
        stays = stored["cla.all.full.ef.H"]
        np.testing.assert_allclose(empirical.dense(), stays, atol=1e-12)


def test_all_that_can_be_asked_for_is_of_one_matrix():
    model, x = mlp(), data(7, 3)
    expected = blocks(model, x, softmax_hessian)
    curvature = ggn(model, x, batch_size=3)  # the third batch has two examples, and padding
    assert curvature.size == 26 and curvature.examples == 7
    np.testing.assert_allclose(curvature.dense(), expected, atol=1e-14)
    np.testing.assert_allclose(row(curvature.diagonal()), np.diag(expected), atol=1e-14)
    np.testing.assert_allclose(curvature.trace(), np.trace(expected), rtol=1e-13)
    v = np.random.default_rng(1).normal(size=(26, 2))
    np.testing.assert_allclose(curvature @ v, expected @ v, atol=1e-13)
    np.testing.assert_allclose(curvature @ v[:, 0], expected @ v[:, 0], atol=1e-13)
    named = st.curvature.matrices.unflatten(
        snp.array(v[:, 0]), {n: w.shape for n, w in curvature.parts.chosen.items()}
    )
    product = curvature @ named
    assert list(product) == list(curvature.names)
    np.testing.assert_allclose(row(product), expected @ v[:, 0], atol=1e-13)


@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian", "heteroscedastic"])
def test_other_likelihoods_have_their_own_hessian(likelihood):
    model, x = mlp(), data(4, 3)

    def lam(f):
        s = 1 / (1 + np.exp(-f))
        return {
            "bernoulli": np.diag(s * (1 - s)),
            "gaussian": np.eye(2),
            "heteroscedastic": np.diag([np.exp(-f[1]), 0.5]),
        }[likelihood]

    expected = blocks(model, x, lam)
    np.testing.assert_allclose(ggn(model, x, likelihood).dense(), expected, atol=1e-14)
    np.testing.assert_allclose(fisher(model, x, likelihood).dense(), expected, atol=1e-14)


def test_a_function_has_its_own_hessian():
    model, x, y = mlp(), data(4, 3), data(4, 2, seed=1)
    curvature = ggn(model, x, lambda f, y: snp.sum(snp.cosh(f - y)), y=y)
    targets = iter(np.asarray(y))
    expected = blocks(model, x, lambda f: np.diag(np.cosh(f - next(targets))))
    np.testing.assert_allclose(curvature.dense(), expected, atol=1e-14)


def lstm():
    layer = double(nn.LSTM(2, 3, batch_first=True))
    params = dict(layer.named_parameters())
    return lambda p, x: st.func.functional_call(layer, p, x)[0][:, -1], params


def tied(params, x):
    return snp.tanh(x @ params["a"]) @ params["a"].T + params["b"]


NETWORKS = {
    "convolution": lambda: (
        double(
            nn.Sequential(
                nn.Conv2d(2, 4, 2, stride=2, dilation=(1, 2), padding=1, groups=2),
                nn.SiLU(),
                nn.Flatten(),
                nn.Linear(16, 2),
            )
        ),
        data(2, 2, 3, 4),
    ),
    "attention": lambda: (
        double(nn.Sequential(nn.TransformerEncoderLayer(4, 2, 5, batch_first=True), nn.Flatten())),
        data(2, 2, 4),
    ),
    "lstm": lambda: (lstm(), data(3, 4, 2)),
    "tied": lambda: ((tied, {"a": data(3, 2), "b": data(3)}), data(3, 3)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_any_kind(name):
    model, x = NETWORKS[name]()
    curvature = ggn(model, x, "gaussian", batch_size=2)
    expected = blocks(model, x, lambda f: np.eye(f.size))
    np.testing.assert_allclose(curvature.dense(), expected, atol=1e-12)
    np.testing.assert_allclose(row(curvature.diagonal()), np.diag(expected), atol=1e-12)
    v = np.random.default_rng(1).normal(size=len(expected))
    np.testing.assert_allclose(curvature @ v, expected @ v, atol=1e-11)


def test_images_of_logits():
    model = double(nn.Conv2d(1, 3, 2))
    x = data(2, 1, 3, 3)

    def lam(f):
        whole = np.zeros((3, 4, 3, 4))
        for i, logits in enumerate(f.reshape(3, 4).T):
            whole[:, i, :, i] = softmax_hessian(logits)
        return whole.reshape(12, 12)

    np.testing.assert_allclose(ggn(model, x).dense(), blocks(model, x, lam), atol=1e-14)


def test_the_empirical_fisher_is_the_sum_of_squared_slopes():
    model, x, y = mlp(), data(5, 3), data(5, 2, seed=1)
    apply, chosen, _ = st.curvature.parts_of(model)
    loss = st.curvature.likelihood_of("gaussian").nll
    expected = 0
    for i in range(5):
        slope = row(st.grad(lambda w, i=i: loss(apply(w, x[i : i + 1])[0], y[i]))(chosen))
        expected = expected + np.outer(slope, slope)
    got = fisher(model, x, "gaussian", kind="empirical", y=y)
    np.testing.assert_allclose(got.dense(), expected, atol=1e-13)


def test_the_monte_carlo_fisher_tends_to_the_exact_one():
    model, x = mlp(), data(6, 3)
    exact = np.asarray(fisher(model, x).dense())
    error = []
    for samples in (10, 1000):
        drawn = fisher(model, x, kind="monte_carlo", key=st.random.key(3), samples=samples)
        error.append(np.abs(np.asarray(drawn.dense()) - exact).max() / np.abs(exact).max())
    # Errors fall as 1/√samples: by ten, up to chance.
    assert error[1] < 0.05 and error[1] < error[0] / 3


def test_draws_do_not_depend_on_batches():
    model, x = mlp(), data(6, 3)
    one, two = (
        fisher(model, x, kind="monte_carlo", key=st.random.key(3), batch_size=b).dense()
        for b in (6, 4)
    )
    np.testing.assert_allclose(one, two, atol=1e-14)


def test_jit_and_members_of_an_ensemble():
    x = data(5, 3)
    members = [mlp(seed) for seed in range(3)]
    ensemble = st.Ensemble(members)
    together = ensemble.vmap(lambda m: ggn(m, x).dense())()
    for i, member in enumerate(members):
        np.testing.assert_allclose(together[i], ggn(member, x).dense(), atol=1e-15)
    stacked = ensemble.vmap(lambda m: ggn(m, x))()
    diagonals = st.vmap(lambda c: c.diagonal())(stacked)
    np.testing.assert_allclose(
        diagonals["0.weight"][1], ggn(members[1], x).diagonal()["0.weight"], atol=1e-15
    )
    compiled = st.jit(lambda m, x: ggn(m, x).trace())(members[0], x)
    np.testing.assert_allclose(compiled, ggn(members[0], x).trace(), rtol=1e-14)


def test_the_trace_has_a_slope():
    x = data(5, 3)

    def apply(params, x):
        return snp.tanh(x @ params["a"])

    def trace(scale):
        return ggn((apply, {"a": scale * data(3, 2, seed=1)}), x, "gaussian").trace()

    h = 1e-5
    difference = (trace(1 + h) - trace(1 - h)) / (2 * h)
    np.testing.assert_allclose(st.grad(trace)(1.0), difference, rtol=1e-8)


def test_what_does_not_fit_is_said_before():
    curvature = ggn(double(nn.Linear(100, 100)), data(2, 100))
    with st.config(memory_budget=1 << 20):
        with pytest.raises(MemoryError, match=r"a matrix of 10,100 × 10,100 takes 0.8 GB"):
            curvature.dense()
        with pytest.raises(MemoryError, match="70 vectors of 10,100"):
            curvature.low_rank(30, st.random.key(0))


def test_mistakes_are_told():
    model, x = mlp(), data(4, 3)
    with pytest.raises(ValueError, match="x and y must have examples along axis 0, as many"):
        fisher(model, x, kind="empirical", y=np.zeros(3, int))
    with pytest.raises(
        TypeError, match="Hessian of the function <lambda> may depend on the targets"
    ):
        ggn(model, x, lambda f, y: snp.sum(f**2))
    with pytest.raises(ValueError, match="has the eigenvalue -2, and so no root"):
        ggn(model, x, lambda f, y: -snp.sum(f**2), y=np.zeros(4))
    with pytest.raises(ValueError, match="kind must be 'exact', 'monte_carlo' or 'empirical'"):
        fisher(model, x, kind="true")
    with pytest.raises(TypeError, match="kind='empirical' needs the targets, y="):
        fisher(model, x, kind="empirical")
    with pytest.raises(TypeError, match="kind='exact' takes no targets"):
        fisher(model, x, y=np.zeros(4, int))
    with pytest.raises(TypeError, match="kind='monte_carlo' needs a key"):
        fisher(model, x, kind="monte_carlo")
    with pytest.raises(TypeError, match="kind='exact' draws nothing"):
        fisher(model, x, key=st.random.key(0))
    with pytest.raises(ValueError, match="needs a distribution of targets, and <lambda> has no"):
        fisher(model, x, lambda f, y: snp.sum(f**2))
    with pytest.raises(ValueError, match=r"Curvature @ v: v must be a dictionary .* \(26,\)"):
        ggn(model, x) @ np.ones(3)
    with pytest.raises(ValueError, match="v must have an array for each weight, of its shape"):
        ggn(model, x) @ {"0.weight": np.ones((4, 3))}
    with pytest.raises(ValueError, match="rank must be at most the number of weights, 26"):
        ggn(model, x).low_rank(27, st.random.key(0))
    summed = (lambda p, x: snp.sum(x @ p["a"], axis=0)), {"a": data(3, 2)}
    with pytest.raises(ValueError, match="outputs must have the examples along axis 0"):
        ggn(summed, x).dense()


def test_vectors_of_another_precision_are_taken():
    model, x = mlp(), data(4, 3)
    v = np.arange(26, dtype=np.float32)
    whole = np.asarray(ggn(model, x).dense())
    np.testing.assert_allclose(ggn(model, x) @ v, whole @ v, atol=1e-12)


def test_it_prints_in_short():
    text = repr(ggn(mlp(), data(4, 3), weights="last"))
    assert text.startswith("Curvature(function=None, names=('2.weight', '2.bias')")


def test_many_classes_and_little_memory():
    curvature = ggn(double(nn.Linear(2, 1000)), data(2, 2))
    said = r"Curvature.diagonal: 999 cotangents, .* takes 0.0 GB"
    with st.config(memory_budget=1 << 20), pytest.raises(MemoryError, match=said):
        curvature.diagonal()
    said = r"Curvature @ v: the root of an example, \(1000, 999\), takes 0.0 GB"
    with st.config(memory_budget=1 << 20), pytest.raises(MemoryError, match=said):
        curvature @ np.ones(3000)
