import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.curvature import fisher, ggn
from stretto.curvature.matrices import flatten, unflatten
from stretto.curvature.plan import Plan
from tests.curvature.posteriors import double


@pytest.fixture(autouse=True)
def _double():
    st.random.manual_seed(0)
    with st.enable_x64():
        yield


def data(*shape):
    return snp.array(np.random.default_rng(0).normal(size=shape))


def test_flat_vectors_are_joined_in_order():
    parts = {"b": snp.arange(6.0).reshape(2, 3), "a": snp.arange(2.0)}
    flat = flatten(parts)
    np.testing.assert_array_equal(flat, [0, 1, 2, 3, 4, 5, 0, 1])
    back = unflatten(flat, {n: x.shape for n, x in parts.items()})
    assert list(back) == ["b", "a"]
    np.testing.assert_array_equal(back["b"], parts["b"])


MODELS = {
    "mlp": lambda: (nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), data(6, 3)),
    "convolution": lambda: (
        nn.Sequential(nn.Conv2d(2, 4, 2, groups=2), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3)),
        data(4, 2, 3, 3),
    ),
    "attention": lambda: (nn.TransformerEncoderLayer(4, 2, 5, batch_first=True), data(2, 3, 4)),
    "embedding": lambda: (
        nn.Sequential(nn.Embedding(5, 3), nn.LayerNorm(3), nn.Flatten(), nn.Linear(6, 2)),
        snp.array([[0, 1], [1, 1], [4, 2]]),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_diagonal_is_that_of_the_whole(name):
    model, x = MODELS[name]()
    curvature = ggn(double(model), x, "gaussian")
    whole = np.asarray(curvature.dense())
    np.testing.assert_allclose(flatten(curvature.diagonal()), np.diag(whole), atol=1e-12)
    v = np.random.default_rng(1).normal(size=len(whole))
    np.testing.assert_allclose(curvature @ v, whole @ v, atol=1e-11)


def nll(f, y):
    return snp.logaddexp(0.0, f).sum() + (f[0] * f[1] - y) ** 2 / 20 + (f**2).sum()


LAST = {
    "categorical": ggn,
    "bernoulli": lambda model, x, **weights: ggn(model, x, "bernoulli", **weights),
    "gaussian": lambda model, x, **weights: ggn(model, x, "gaussian", batch_size=2, **weights),
    "a function": lambda model, x, **weights: ggn(model, x, nll, y=x[:, 0], **weights),
    "drawn": lambda model, x, **weights: fisher(
        model, x, kind="monte_carlo", key=st.random.key(0), samples=2, batch_size=5, **weights
    ),
    "given": lambda model, x, **weights: fisher(
        model, x, kind="empirical", y=snp.array([0, 1, 2, 2, 1, 0, 1]), **weights
    ),
}


@pytest.mark.parametrize("weights", ["last", "2.weight", "2.bias"])
@pytest.mark.parametrize("name", LAST)
def test_a_last_layer_is_part_of_the_whole(name, weights):
    """That of all weights is made of Jacobians, that of the last layer of its inputs."""
    model = double(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)))
    x = data(7, 4)
    last, whole = LAST[name](model, x, weights=weights), LAST[name](model, x)
    assert Plan(last).is_last_layer and not Plan(whole).is_last_layer
    start = {"last": 25, "2.weight": 25, "2.bias": 40}[weights]
    at = slice(start, start + last.size)
    np.testing.assert_allclose(last.dense(), np.asarray(whole.dense())[at, at], atol=1e-13)


@pytest.mark.parametrize(
    "apply",
    [
        lambda p, x: x @ p["w"] + p["b"],
        lambda p, x: (p["w"].T @ x[..., None]).reshape(-1, 2) + p["b"],
        lambda p, x: (x @ p["w"][::-1, ::-1] + p["b"])[:, None],
        lambda p, x: st.jit(lambda x: snp.einsum("ni,io->no", x, p["w"]))(x) + p["b"],
    ],
)
def test_whatever_writes_a_last_layer(apply):
    curvature = ggn((apply, {"b": data(2), "w": data(3, 2)}), data(5, 3), "gaussian")
    assert Plan(curvature).is_last_layer
    jacobian = st.jacrev(lambda p: apply(p, curvature.x).reshape(-1))(curvature.parts.chosen)
    rows = np.concatenate([np.asarray(jacobian[n]).reshape(10, -1) for n in curvature.names], 1)
    np.testing.assert_allclose(curvature.dense(), rows.T @ rows, atol=1e-13)


@pytest.mark.parametrize(
    "apply",
    [
        lambda p, x: snp.tanh(x @ p["w"] + p["b"]),
        lambda p, x: (x @ p["w"] + p["b"]) * 2,
        lambda p, x: x @ p["w"] + p["b"] + x[:, :2] @ p["w"][:2],
        lambda p, x: (x @ p["w"] + p["b"]).sum(-1, keepdims=True),
    ],
)
def test_what_is_no_last_layer_has_jacobians(apply):
    curvature = ggn((apply, {"b": data(2), "w": data(3, 2)}), data(5, 3), "gaussian")
    assert not Plan(curvature).is_last_layer
    jacobian = st.jacrev(lambda p: apply(p, curvature.x))(curvature.parts.chosen)
    rows = [np.asarray(x) for x in jacobian.values()]
    rows = np.concatenate([x.reshape(*x.shape[:2], -1) for x in rows], -1)
    whole = np.einsum("nop,noq->pq", rows, rows)
    np.testing.assert_allclose(curvature.dense(), whole, atol=1e-13)


def test_the_largest_eigenvalues_by_lanczos():
    model, x = MODELS["mlp"]()
    curvature = ggn(double(model), x)
    expected = np.linalg.eigvalsh(np.asarray(curvature.dense()))[::-1]
    values, vectors = curvature.low_rank(4, st.random.key(0))
    np.testing.assert_allclose(values, expected[:4], rtol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-13)
    np.testing.assert_allclose(curvature @ vectors, vectors * values, atol=1e-7)


def test_lanczos_goes_on_where_the_rank_is_less_than_its_steps():
    x = snp.concatenate([data(1, 5)] * 3)  # rank 1
    model = (lambda p, x: x @ p["w"], {"w": data(5, 1)})
    values, vectors = ggn(model, x, "gaussian").low_rank(5, st.random.key(0))
    expected = [3 * float((x[0] ** 2).sum()), 0, 0, 0, 0]
    np.testing.assert_allclose(values, expected, atol=1e-13)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(5), atol=1e-13)


def test_all_eigenvectors_are_the_whole_matrix():
    model, x = MODELS["mlp"]()
    curvature = ggn(double(model), x)
    values, vectors = curvature.low_rank(26, st.random.key(0))
    np.testing.assert_allclose((vectors * values) @ vectors.T, curvature.dense(), atol=1e-13)
