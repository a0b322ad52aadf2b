import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.curvature import fisher, ggn
from stretto.curvature.plan import Plan
from tests.curvature.posteriors import LIKELIHOODS, double, needs_references, network, row, values


@pytest.fixture(autouse=True)
def _double():
    st.random.manual_seed(0)
    with st.enable_x64():
        yield


def data(*shape, seed=0):
    return snp.array(np.random.default_rng(seed).normal(size=shape))


def exact_blocks(curvature, kron):
    """Return how far each block is from that of the whole matrix, over its largest entry."""
    whole, blocks = np.asarray(curvature.dense()), np.asarray(kron.dense())
    errors, start = {}, 0
    for name in curvature.names:
        size = curvature.parts.chosen[name].size
        at = slice(start, start + size)
        scale = np.abs(whole[at, at]).max()
        errors[name] = np.abs(whole[at, at] - blocks[at, at]).max() / max(scale, 1e-300)
        start += size
    return errors


@needs_references
@pytest.mark.parametrize("tag", ["reg", "cla", "con"])
def test_laplace_torchs_factors(tag):
    model, stored, likelihood = network(tag), values(), LIKELIHOODS[tag]
    x, y = stored[f"{tag}.x"], stored[f"{tag}.y"]

    def check(kron, name):
        if f"{name}.H" in stored and stored[f"{name}.H"].ndim == 2:
            np.testing.assert_allclose(kron.dense(), stored[f"{name}.H"], atol=1e-12)
        else:
            np.testing.assert_allclose(row(kron.diagonal()), stored[f"{name}.H_diag"], atol=1e-12)

    kron = ggn(model, x, likelihood).kron()
    check(kron, f"{tag}.all.kron.ggn")
    check(ggn(model, x, likelihood, weights="last").kron(), f"{tag}.last_layer.kron.ggn")
    if tag == "reg":  # known_wrong has its empirical Fisher
        return
    for i, factors in enumerate(kron.factors[n] for n in kron.names):
        for j, got in enumerate((factors.B, factors.A)):
            name = f"{tag}.all.kron.ggn.fac{i}{j}"
            if name in stored:
                np.testing.assert_allclose(got, stored[name], atol=1e-12)
            else:
                assert np.asarray(got) == [[1.0]]
    check(fisher(model, x, likelihood, kind="empirical", y=y).kron(), f"{tag}.all.kron.ef")


LSTM = {}


def lstm(params, x):
    return st.func.functional_call(LSTM["layer"], params, x)[0][:, -1]


def stacked(params, x):
    def step(h, layer):
        return snp.tanh(h @ layer["w"] + layer["b"]), None

    return st.lax.scan(step, x, params)[0]


# Models that run one position of one example: there factors are no approximation.
EXACT = {
    "mlp": lambda: (
        double(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))),
        data(1, 3),
    ),
    "inputs first": lambda: (
        (lambda p, x: snp.tanh(x @ p["a"]) @ p["b"] + p["c"],
         {"a": data(3, 4), "b": data(4, 2), "c": data(2)}),
        data(1, 3),
    ),
    "heads": lambda: (
        (lambda p, x: snp.einsum(
            "nhk,hko->no", snp.tanh(snp.einsum("nd,dhk->nhk", x, p["a"])), p["b"]
         ),
         {"a": data(3, 2, 4), "b": data(2, 4, 2)}),
        data(1, 3),
    ),
    "a matrix a head": lambda: (
        (lambda p, x: snp.einsum("nhd,hdk->nhk", x, p["a"]), {"a": data(2, 3, 4)}),
        data(1, 2, 3),
    ),
    "reshaped": lambda: ((lambda p, x: x @ p["a"].reshape(3, 4), {"a": data(12)}), data(1, 3)),
    "reversed": lambda: ((lambda p, x: x @ p["a"][::-1, ::-1], {"a": data(3, 4)}), data(1, 3)),
    "groups, dilation": lambda: (
        double(nn.Sequential(nn.Conv2d(4, 6, (2, 3), dilation=(2, 1), groups=2), nn.Flatten())),
        data(1, 4, 3, 3),
    ),
    "depthwise": lambda: (
        double(nn.Sequential(nn.Conv1d(4, 4, 3, groups=4), nn.Flatten())),
        data(1, 4, 3),
    ),
    "transposed convolution": lambda: (
        double(nn.Sequential(nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, groups=2),
                             nn.Flatten())),
        data(1, 4, 1),
    ),
    "attention": lambda: (double(nn.TransformerEncoderLayer(4, 2, 5, batch_first=True)),
                          data(1, 1, 4)),
    "an embedding": lambda: (
        double(nn.Sequential(nn.Embedding(5, 3), nn.LayerNorm(3), nn.Linear(3, 2))),
        snp.array([3]),
    ),
    "batch norm": lambda: (
        double(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))),
        data(1, 3),
    ),
    "layers in a loop": lambda: (
        (stacked, {"w": data(1, 4, 4), "b": data(1, 4)}),
        data(1, 4),
    ),
    "jit in jit": lambda: (
        (st.jit(lambda p, x: st.jit(lambda a, x: x @ a)(p["a"], x)), {"a": data(3, 2)}),
        data(1, 3),
    ),
    "checkpoint": lambda: (
        (lambda p, x: st.checkpoint(lambda a, x: snp.tanh(x @ a))(p["a"], x), {"a": data(3, 2)}),
        data(1, 3),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_blocks_of_one_position_are_exact(name):
    model, x = EXACT[name]()
    curvature = ggn(model, x, "gaussian")
    kron = curvature.kron()
    assert max(exact_blocks(curvature, kron).values()) < 1e-13
    assert len(kron.factors) == len(curvature.names)


@settings(max_examples=15, deadline=None)
@given(some.permutations("abcd"), some.booleans(), some.sampled_from(["abcd", "ab", "bd", "d"]))
def test_any_order_of_a_weights_axes_is_exact(order, joined, summed):
    sizes = {"a": 2, "b": 3, "c": 2, "d": 2}
    weight = "".join(order)
    shape = tuple(sizes[i] for i in weight)
    own = "".join(i for i in weight if i not in summed)

    def apply(params, x):
        return snp.einsum(f"n{summed},{weight}->n{own}", x, params["w"].reshape(shape))

    given_shape = (shape[0] * shape[1], *shape[2:]) if joined else shape
    x = data(1, *[sizes[i] for i in summed])
    with st.enable_x64():
        curvature = ggn((apply, {"w": data(*given_shape, seed=1)}), x, "gaussian")
        factors = curvature.kron().factors["w"]
        assert factors.A.shape[-1] == math.prod(sizes[i] for i in summed)
        np.testing.assert_allclose(factors.dense(), curvature.dense(), atol=1e-13)


def test_last_layers_of_linear_outputs_are_exact():
    # g is the same for all examples, so that the mean of the products is the product of the means.
    model, x = double(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))), data(9, 3)
    curvature = ggn(model, x, "gaussian", weights="last")
    assert max(exact_blocks(curvature, curvature.kron()).values()) < 1e-14


@pytest.mark.parametrize("name", ["heads", "groups, dilation", "transposed convolution", "mlp"])
def test_factors_are_sums_and_means_over_examples(name):
    model, x = EXACT[name]()
    x = snp.concatenate([x, 2 * x - 1, x**2], 0)
    kron = ggn(model, x, "gaussian", batch_size=2).kron()  # the second batch has padding
    each = [ggn(model, x[i : i + 1], "gaussian").kron() for i in range(3)]
    for n, f in kron.factors.items():
        np.testing.assert_allclose(f.B, sum(k.factors[n].B for k in each), rtol=1e-12, atol=1e-13)
        mean = sum(k.factors[n].A for k in each) / 3
        np.testing.assert_allclose(f.A, mean, rtol=1e-12, atol=1e-13)
    joined = each[0] + each[1] + each[2]
    np.testing.assert_allclose(joined.dense(), kron.dense(), rtol=1e-12, atol=1e-13)


def test_positions_count_as_examples():
    def apply(params, x):
        return snp.tanh(x @ params["w"] + params["b"]).sum(axis=1)

    params, x = {"w": data(3, 2), "b": data(2, seed=1)}, data(4, 5, 3, seed=2)
    kron = ggn((apply, params), x, "gaussian").kron()
    slopes = 1 - np.tanh(np.asarray(x @ params["w"] + params["b"])) ** 2  # diagonal Jacobians
    B = sum(np.diag(g**2) for g in slopes.reshape(-1, 2))
    flat = np.asarray(x).reshape(-1, 3)
    np.testing.assert_allclose(kron.factors["w"].B, B, atol=1e-13)
    np.testing.assert_allclose(kron.factors["w"].A, flat.T @ flat / len(flat), atol=1e-14)
    np.testing.assert_allclose(kron.factors["b"].B, B, atol=1e-13)
    np.testing.assert_array_equal(kron.factors["b"].A, [[1.0]])


def test_steps_of_a_loop_are_positions():
    def unrolled(params, x):
        h = snp.zeros((len(x), 2))
        for i in range(3):
            h = snp.tanh(x[:, i] @ params["a"] + h @ params["b"] + params["c"])
        return h

    def looped(params, x):
        def step(h, x):
            return snp.tanh(x @ params["a"] + h @ params["b"] + params["c"]), None

        return st.lax.scan(step, snp.zeros((len(x), 2)), snp.moveaxis(x, 1, 0))[0]

    params = {"a": data(3, 2), "b": data(2, 2, seed=1), "c": data(2, seed=2)}
    x = data(4, 3, 3, seed=3)
    one, two = (ggn((f, params), x, "gaussian").kron() for f in (unrolled, looped))
    for n in params:
        np.testing.assert_allclose(one.factors[n].B, two.factors[n].B, atol=1e-13)
        np.testing.assert_allclose(one.factors[n].A, two.factors[n].A, atol=1e-13)


def test_lstms_have_factors():
    LSTM["layer"] = double(nn.LSTM(3, 4, batch_first=True))
    params = dict(LSTM["layer"].named_parameters())
    curvature = ggn((lstm, params), data(1, 1, 3), "gaussian")
    assert max(exact_blocks(curvature, curvature.kron()).values()) < 1e-13
    kron = ggn((lstm, params), data(2, 5, 3), "gaussian").kron()
    assert kron.factors["weight_hh_l0"].A.shape == (4, 4)


def test_layers_of_a_loop_are_groups():
    params, x = {"w": data(3, 4, 4), "b": data(3, 4, seed=1)}, data(1, 4, seed=2)
    curvature = ggn((stacked, params), x, "gaussian")
    kron = curvature.kron()
    factors = kron.factors["w"]
    assert factors.B.shape == factors.A.shape == (3, 4, 4)
    whole = np.asarray(ggn((stacked, params), x, "gaussian", weights="w").dense())
    block = np.asarray(factors.dense())
    for i in range(3):
        at = slice(16 * i, 16 * (i + 1))
        np.testing.assert_allclose(block[at, at], whole[at, at], atol=1e-13)
        np.testing.assert_array_equal(block[at, : 16 * i], 0)


def test_a_weight_that_enters_twice_has_both():
    def apply(params, x):
        return snp.tanh(x @ params["a"]) @ params["a"]

    def apart(params, x):
        return snp.tanh(x @ params["a"]) @ params["b"]

    a, x = data(3, 3), data(2, 3, seed=1)
    kron = ggn((apply, {"a": a}), x, "gaussian").kron()
    both = ggn((apart, {"a": a, "b": a}), x, "gaussian").kron()
    f, g, h = kron.factors["a"], both.factors["a"], both.factors["b"]
    np.testing.assert_allclose(f.B, g.B + h.B, atol=1e-13)
    np.testing.assert_allclose(f.A, (g.A + h.A) / 2, atol=1e-14)


def test_look_ups_have_as_factor_how_often_rows_come():
    model = double(nn.Sequential(nn.Embedding(4, 3), nn.Flatten(), nn.Linear(6, 2)))
    x = snp.array([[1, 1], [3, 0]])
    factors = ggn(model, x, "gaussian").kron().factors["0.weight"]
    np.testing.assert_allclose(np.asarray(factors.A)[:, 0, 0], [0.25, 0.5, 0, 0.25])
    w = np.asarray(model[2].weight).reshape(2, 2, 3)  # outputs, positions, features
    B = 2 * sum(w[:, p].T @ w[:, p] for p in range(2))
    np.testing.assert_allclose(np.asarray(factors.B)[0], B, atol=1e-14)
    block = np.kron(np.diag([0.25, 0.5, 0, 0.25]), B)
    np.testing.assert_allclose(factors.dense(), block, atol=1e-14)


@pytest.mark.parametrize("name", ["mlp", "heads", "a matrix a head", "depthwise", "an embedding"])
def test_all_forms_are_of_one_matrix(name):
    model, x = EXACT[name]()
    kron = ggn(model, snp.concatenate([x, x]), "gaussian").kron()
    whole = np.asarray(kron.dense())
    np.testing.assert_allclose(row(kron.diagonal()), np.diag(whole), atol=1e-14)
    v = np.random.default_rng(0).normal(size=(kron.size, 2))
    np.testing.assert_allclose(kron @ v, whole @ v, atol=1e-12)
    np.testing.assert_allclose(kron @ v[:, 0], whole @ v[:, 0], atol=1e-12)
    np.testing.assert_allclose((2 * kron).dense(), 2 * whole, atol=1e-13)
    start = 0
    for n, e in kron.eigen().items():
        size = math.prod(e.factors.layout.shape)
        at = slice(start, start + size)
        start += size
        # (U ⊗ V) diag(λ μᵀ) (U ⊗ V)ᵀ v = U (λ μᵀ ∘ Uᵀ v V) Vᵀ
        m = e.factors.matrix(snp.array(v[at, 0]).reshape(e.factors.layout.shape))
        inner = e.values * snp.einsum("...po,...pi,...ij->...oj", e.B_vectors, m, e.A_vectors)
        back = snp.einsum("...po,...oi,...ji->...pj", e.B_vectors, inner, e.A_vectors)
        product = np.asarray(e.factors.weight(back)).ravel()
        np.testing.assert_allclose(product, whole[at, at] @ v[at, 0], atol=1e-12, err_msg=n)
        np.testing.assert_allclose(
            np.sort(np.broadcast_to(e.values, m.shape).ravel()),
            np.linalg.eigvalsh(whole[at, at]),
            atol=1e-12,
        )


def test_an_ensemble_has_each_members_in_one_program():
    models = [double(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))) for _ in range(3)]
    x = data(5, 3)
    together = st.Ensemble(models).vmap(lambda m: ggn(m, x).kron())()
    for i, model in enumerate(models):
        alone = ggn(model, x).kron()
        for n, f in together.factors.items():
            np.testing.assert_allclose(f.B[i], alone.factors[n].B, atol=1e-15)
            np.testing.assert_allclose(f.A[i], alone.factors[n].A, atol=1e-15)
    first = st.tree.take(together, 0)
    np.testing.assert_allclose(first.dense(), ggn(models[0], x).kron().dense(), atol=1e-15)
    compiled = st.jit(lambda m: ggn(m, x).kron().diagonal())(models[1])
    np.testing.assert_allclose(compiled["0.weight"], together.factors["0.weight"].B[1].diagonal()[
        :, None] * together.factors["0.weight"].A[1].diagonal(), atol=1e-15)  # fmt: skip


def test_members_that_are_functions():
    params = [{"a": data(3, 2, seed=i)} for i in range(2)]
    ensemble = st.Ensemble(lambda p, x: snp.tanh(x @ p["a"]), params)
    x = data(4, 3)
    together = ensemble.vmap(lambda m: ggn(m, x, "gaussian").kron().dense())()
    alone = ggn(ensemble[1], x, "gaussian").kron().dense()
    np.testing.assert_allclose(together[1], alone, atol=1e-15)


@pytest.mark.parametrize(
    ("apply", "met"),
    [
        (lambda p, x: x @ snp.exp(p["a"]), "exp"),
        (lambda p, x: x @ (p["a"] @ p["a"]), "dot_general with another weight"),
        (lambda p, x: x[:, :40] @ p["a"][:40], "slice"),
        (lambda p, x: snp.tanh(x @ p["a"]) @ p["a"].T, "several operations, which use its axes"),
        (lambda p, x: x, "nothing: the outputs do not depend on it"),
        (lambda p, x: st.lax.cond(x.sum() > 0, lambda: x @ p["a"], lambda: x), "cond"),
    ],
)
def test_a_large_matrix_that_meets_something_else_is_refused_by_name(apply, met):
    model = apply, {"a": data(80, 80), "b": data(2)}
    with pytest.raises(
        NotImplementedError, match=f"a \\(80, 80\\) has no .* factors: it meets {met}"
    ):
        ggn(model, data(1, 80), "gaussian").kron()


@pytest.mark.parametrize(
    "apply",
    [
        lambda p, x: x @ snp.exp(p["a"]),
        lambda p, x: x @ (p["a"] @ p["a"]),
        lambda p, x: snp.tanh(x @ p["a"]) @ p["a"].T,
        lambda p, x: snp.tanh(x @ p["a"] * p["a"][0]),
        lambda p, x: st.lax.cond(x.sum() > 0, lambda: x @ p["a"], lambda: x),
    ],
)
def test_a_small_one_has_its_exact_block(apply):
    curvature = ggn((apply, {"a": data(3, 3)}), data(4, 3, seed=1), "gaussian")
    kron = curvature.kron()
    np.testing.assert_allclose(kron.dense(), curvature.dense(), atol=1e-12)
    assert kron.factors["a"].A.shape == (1, 1)


def test_what_does_not_fit_is_said_before():
    curvature = ggn(double(nn.Linear(600, 2)), data(2, 600))
    said = r"Curvature.kron: the factors of weight, 1 of 2 × 2"
    with st.config(memory_budget=1 << 20), pytest.raises(MemoryError, match=said):
        curvature.kron()
    kron = curvature.kron()
    with (
        st.config(memory_budget=1 << 20),
        pytest.raises(MemoryError, match=r"Kron.dense: a matrix"),
    ):
        kron.dense()


def convolutions():
    layers = nn.Conv2d(1, 2, 3, 2), nn.ReLU(), nn.Conv2d(2, 3, 2), nn.Tanh(), nn.Flatten()
    return double(nn.Sequential(*layers, nn.Linear(12, 4))), data(5, 1, 7, 7)


def test_a_weight_and_its_bias_have_one_cotangent_and_the_same_bits():
    model, x = convolutions()
    curvature = ggn(model, x)
    plan = Plan(curvature)
    assert plan.same == [0, 0, 2, 2, 4, 4]
    assert plan.own == [0, 2] and plan.at_outputs == {4, 5}
    factors = curvature.kron().factors
    for layer in "025":
        weight, bias = factors[f"{layer}.weight"], factors[f"{layer}.bias"]
        np.testing.assert_array_equal(weight.B, bias.B)
    drawn = fisher(model, x, kind="monte_carlo", key=st.random.key(0), samples=3).kron()
    np.testing.assert_array_equal(drawn.factors["5.weight"].B, drawn.factors["5.bias"].B)


def test_weights_with_the_same_inputs_have_one_factor():
    params = {n: data(3, 2, seed=i) for i, n in enumerate("qkv")}
    apply = lambda p, x: snp.tanh(x @ p["q"]) * (x @ p["k"]) + x @ p["v"]
    curvature = ggn((apply, params), data(4, 3), "gaussian")
    assert set(Plan(curvature).same_other.values()) == {0}
    for factors in curvature.kron().factors.values():
        np.testing.assert_allclose(factors.A, data(4, 3).T @ data(4, 3) / 4, atol=1e-14)


@pytest.mark.parametrize("numbers", [1, 5 * 30 * 2])
@pytest.mark.parametrize("likelihood", ["categorical", "gaussian"])
def test_columns_of_roots_that_go_one_or_two_at_a_time(numbers, likelihood, monkeypatch):
    model, x = convolutions()
    together = ggn(model, x, likelihood).kron()
    monkeypatch.setattr("stretto.curvature.plan._NEAR", numbers)
    params = dict(model.named_parameters())
    apply = lambda params, x: st.func.functional_call(model, params, x)
    apart = ggn((apply, params), x, likelihood).kron()  # a function, so that it is compiled anew
    for name, factors in together.factors.items():
        found = apart.factors[name]
        np.testing.assert_allclose(found.B, factors.B, rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(found.A, factors.A)


@pytest.mark.parametrize("name", ["categorical", "bernoulli", "gaussian", "heteroscedastic"])
def test_a_last_layer_has_the_sum_of_hessians_without_roots(name):
    f, shape = data(6, 4), (6, 2, 2) if name == "heteroscedastic" else (6, 4)
    apply = lambda p, x: (x + p["b"]).reshape(-1, *shape[1:])
    curvature = ggn((apply, {"b": snp.zeros(4)}), f, name)
    plan = Plan(curvature)
    assert plan.at_outputs == {0} and not plan.needs_roots and not plan.work
    roots = np.asarray(st.vmap(curvature.likelihood.root, (0, None))(f.reshape(shape), None))
    roots = roots.reshape(6, 4, -1)
    expected = np.einsum("nor,npr->op", roots, roots)
    np.testing.assert_allclose(curvature.kron().factors["b"].B, expected, atol=1e-14)


def test_positions_of_a_last_layer_are_summed():
    """Logits at each pixel by one layer: Λ between pixels is left out, as in all factors."""
    model = double(nn.Conv1d(2, 3, 1))
    curvature = ggn(model, data(4, 2, 5))
    assert not Plan(curvature).needs_roots
    roots = Plan(fisher(model, data(4, 2, 5), kind="monte_carlo", key=st.random.key(0)))
    assert roots.at_outputs == {0, 1} and roots.needs_roots and not roots.needs_passes
    p = np.asarray(nn.functional.softmax(model(data(4, 2, 5)), 1))
    expected = np.diag(p.sum((0, 2))) - np.einsum("ncl,ndl->cd", p, p)
    np.testing.assert_allclose(curvature.kron().factors["weight"].B, expected, atol=1e-14)


def test_a_last_layer_of_sure_predictions_keeps_its_digits():
    logits = np.array([[20.0, 0.0, 1.0], [0.0, 21.0, 2.0]])
    p = np.asarray(nn.functional.softmax(snp.asarray(logits), -1))
    exact = -p.T @ p
    np.fill_diagonal(exact, 0)
    np.fill_diagonal(exact, -exact.sum(1))
    x = snp.asarray(logits, np.float32)
    kron = ggn((lambda p, x: x + p["b"], {"b": snp.zeros(3, np.float32)}), x).kron()
    np.testing.assert_allclose(kron.factors["b"].B, exact, rtol=1e-5)


def test_passes_that_take_hours_are_said_before(monkeypatch):
    monkeypatch.setattr("stretto.curvature.kron._MANY", 1e5)
    model = double(nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 40)))
    x = data(7, 3)
    said = (
        r"7 examples with roots of 39 columns, for 40 outputs, take 273 passes back .* 1e\+05 "
        r"operations: .* hours .* weights='last'.* fisher\(kind='monte_carlo'\)"
    )
    with pytest.warns(UserWarning, match=said):
        ggn(model, x).kron()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ggn(model, x, weights="last").kron()
        fisher(model, x, kind="monte_carlo", key=st.random.key(0)).kron()


def test_eigenvectors_that_take_long_are_said_before(monkeypatch):
    model = double(nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 40)))
    kron = ggn(model, data(7, 3)).kron()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kron.eigen()
    monkeypatch.setattr("stretto.curvature.kron._CUBE", 1.0)
    said = (
        r"Kron.eigen: .* take some 2,140.1 minutes, most of them those of 2.weight, 40 × 40 and "
        r"5 × 5; choose fewer weights="
    )
    with pytest.warns(UserWarning, match=said):
        kron.eigen()


def test_mistakes_are_told():
    model, x = EXACT["mlp"]()
    kron = ggn(model, x).kron()
    with pytest.raises(ValueError, match=r"Kron @ v: v must be a dictionary .* \(26,\)"):
        kron @ np.ones(3)
    with pytest.raises(ValueError, match="Kron @ v: v must have an array for each weight"):
        kron @ {"0.weight": np.ones(2)}
    with pytest.raises(ValueError, match="expected the same weights"):
        kron + ggn(model, x, weights="last").kron()
    with pytest.raises(TypeError):
        kron + 1
