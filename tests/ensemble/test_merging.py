"""Task vectors, TIES, DARE, and averages weighted by Fisher."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.ensemble import (
    add_task_vectors,
    dare,
    diagonal_fisher,
    fisher_average,
    task_vector,
    ties,
)

RNG = np.random.default_rng(0)


def tree(scale=1.0):
    return {
        "a": snp.array(scale * RNG.normal(size=(4, 3)).astype(np.float32)),
        "b": [snp.array(RNG.normal(size=5).astype(np.float32)), None],
        "n": snp.array(3),
    }


def flat(t):
    return np.concatenate([np.asarray(t["a"]).ravel(), np.asarray(t["b"][0])])


BASE, ONE, TWO, THREE = (tree() for _ in range(4))


def test_task_vectors_add_and_undo():
    vector = task_vector(ONE, BASE)
    np.testing.assert_allclose(flat(vector), flat(ONE) - flat(BASE), rtol=1e-6)
    assert int(vector["n"]) == 0
    back = add_task_vectors(BASE, [vector])
    np.testing.assert_allclose(flat(back), flat(ONE), atol=1e-6)
    both = add_task_vectors(BASE, [vector, task_vector(TWO, BASE)], [0.5, -2.0])
    want = flat(BASE) + 0.5 * (flat(ONE) - flat(BASE)) - 2 * (flat(TWO) - flat(BASE))
    np.testing.assert_allclose(flat(both), want, atol=1e-5)
    assert int(both["n"]) == 3


def test_task_vectors_of_low_precision_are_wide():
    base, tuned = {"w": snp.ones(2, snp.bfloat16)}, {"w": snp.full(2, 1.5, snp.bfloat16)}
    vector = task_vector(tuned, base)
    assert vector["w"].dtype == np.float32
    assert add_task_vectors(base, [vector])["w"].dtype == ml_dtypes.bfloat16


def test_scales_are_differentiable_and_mapped():
    vectors = [task_vector(ONE, BASE), task_vector(TWO, BASE)]
    f = lambda scales: add_task_vectors(BASE, vectors, scales)["a"].sum()
    slopes = st.jit(st.grad(f))(snp.array([0.3, 0.4]))
    np.testing.assert_allclose(slopes, [v["a"].sum() for v in vectors], rtol=1e-4)
    np.testing.assert_allclose(
        st.vmap(lambda s: add_task_vectors(BASE, vectors, s)["a"].sum())(snp.array([0.0, 1.0])),
        [BASE["a"].sum(), f([1.0, 1.0])],
        rtol=1e-5,
    )


def ties_by_hand(vectors, density):
    trimmed = []
    for v in vectors:
        kept = max(1, int(density * v.size))
        least = np.sort(np.abs(v))[v.size - kept]
        trimmed.append(np.where(np.abs(v) >= least, v, 0))
    trimmed = np.array(trimmed)
    sign = np.sign(trimmed.sum(0))
    agree = (np.sign(trimmed) == sign) & (sign != 0)
    return (trimmed * agree).sum(0) / np.maximum(agree.sum(0), 1)


@pytest.mark.parametrize("density", [0.01, 0.2, 0.5, 1.0])
def test_ties(density):
    vectors = [task_vector(t, BASE) for t in (ONE, TWO, THREE)]
    want = ties_by_hand([flat(v) for v in vectors], density)
    for merged in (ties(vectors, density), st.jit(lambda v: ties(v, density))(vectors)):
        np.testing.assert_allclose(flat(merged), want, rtol=1e-5, atol=1e-6)
        assert merged["b"][1] is None and int(merged["n"]) == 0
    single = ties([vectors[0]], 1.0)
    np.testing.assert_allclose(flat(single), flat(vectors[0]), rtol=1e-6)


def test_ties_where_the_sum_is_zero():
    merged = ties([{"w": snp.array([1.0, 2.0])}, {"w": snp.array([-1.0, 2.0])}], 1.0)
    assert merged["w"].tolist() == [0, 2]


@pytest.mark.parametrize("density", [0.1, 0.5, 1.0])
def test_ties_as_checkpoints_are_merged(density):
    tuned = [ONE, TWO, THREE]
    vectors = [task_vector(t, BASE) for t in tuned]
    merged = ties(vectors, density, scope="leaf", of_zero="positive")
    want = st.merge.trees("ties", tuned, BASE, weight=1.0, density=density)
    np.testing.assert_allclose(flat(add_task_vectors(BASE, [merged])), flat(want), rtol=1e-6)


def test_ties_where_a_sum_of_zero_is_positive():
    vectors = [{"w": snp.array([1.0, 2.0])}, {"w": snp.array([-1.0, 2.0])}]
    assert ties(vectors, 1.0, of_zero="positive")["w"].tolist() == [1, 2]


def test_ties_is_differentiable_and_mapped():
    rows = snp.array(RNG.normal(size=(5, 3, 6)).astype(np.float32))
    f = lambda rows: ties([{"w": row} for row in rows], 0.5)["w"]
    np.testing.assert_array_equal(st.vmap(f)(rows), [f(row) for row in rows])
    slopes = st.grad(lambda rows: f(rows).sum())(rows[0])
    # Of each element that agrees 1 / n, where n do.
    chosen = slopes != 0
    np.testing.assert_allclose(slopes.sum(0), chosen.any(0), rtol=1e-6)
    np.testing.assert_allclose((slopes * rows[0]).sum(0), f(rows[0]), rtol=1e-6)


def test_words_that_ties_and_dare_do_not_know():
    with pytest.raises(ValueError, match="ties: scope must be 'tree' or 'leaf', got 'model'"):
        ties([ONE], scope="model")
    with pytest.raises(ValueError, match="ties: of_zero must be 'none' or 'positive', got '\\+'"):
        ties([ONE], of_zero="+")
    with pytest.raises(ValueError, match="dare: rescale must be 'density' or 'norm' or 'no'"):
        dare(ONE, st.random.PRNGKey(0), rescale=True)


def test_dare_rescales_as_it_is_told():
    vector = {"w": snp.array(RNG.normal(size=4000).astype(np.float32)), "zero": snp.zeros(3),
              "half": snp.full(9, 0.5, snp.float16)}  # fmt: skip
    key = st.random.PRNGKey(1)
    plain, norm = (dare(vector, key, 0.7, rescale=word) for word in ("no", "norm"))
    kept = np.asarray(plain["w"]) != 0
    np.testing.assert_array_equal(np.asarray(plain["w"])[kept], np.asarray(vector["w"])[kept])
    np.testing.assert_allclose(abs(norm["w"]).sum(), abs(vector["w"]).sum(), rtol=1e-5)
    assert norm["zero"].tolist() == [0, 0, 0]
    assert norm["half"].dtype == np.float16
    slopes = st.grad(lambda w: dare({**vector, "w": w}, key, 0.7)["w"].sum())(vector["w"])
    np.testing.assert_allclose(slopes[kept], 1 / 0.3, rtol=1e-5)
    assert not slopes[~kept].any()


def test_dare_keeps_the_mean():
    vector = {"a": snp.ones((100, 100)), "b": snp.full(5000, 2.0, snp.float16), "n": snp.array(0)}
    keys = st.random.split(st.random.PRNGKey(0), 3)
    many = st.jit(st.vmap(lambda k: dare(vector, k, 0.8)))(keys)
    for thin in (dare(vector, keys[0], 0.8), st.take(many, 1)):
        assert thin["b"].dtype == np.float16
        kept = np.asarray(thin["a"]) != 0
        # A share of 0.2 of 10,000: one deviation is 0.004.
        assert abs(kept.mean() - 0.2) < 0.02
        np.testing.assert_allclose(np.asarray(thin["a"])[kept], 5, rtol=1e-6)
        assert set(np.asarray(thin["b"], float)) == {0.0, 10.0}
    assert (np.asarray(many["a"][0]) != np.asarray(many["a"][1])).any()
    np.testing.assert_array_equal(st.take(many, 0)["a"], dare(vector, keys[0], 0.8)["a"])
    np.testing.assert_array_equal(dare(vector, keys[0], 0.0)["a"], vector["a"])


def test_the_diagonal_fisher_of_a_gaussian():
    """d/dμ of −(x − μ)² / 2σ² is (x − μ)/σ², whose mean square is that of the data."""
    x, y = RNG.normal(size=50).astype(np.float32), RNG.normal(size=50).astype(np.float32)
    f = lambda p, x, y: -0.5 * ((x - p["mu"]) / 2) ** 2 + y * p["s"][0, 0]
    params = {"mu": snp.float32(0.3), "s": snp.zeros((1, 1), snp.bfloat16), "n": 3}
    of = lambda p: diagonal_fisher(f, p, x, y)
    for fisher in (of(params), st.jit(of)(params)):
        np.testing.assert_allclose(fisher["mu"], (((x - 0.3) / 4) ** 2).mean(), rtol=1e-5)
        np.testing.assert_allclose(fisher["s"], [[(y**2).mean()]], rtol=1e-5)
        assert fisher["s"].dtype == np.float32 and int(fisher["n"]) == 0


def test_gram_matrices_of_what_linear_layers_are_given():
    keys = st.random.split(st.random.PRNGKey(0))
    first, last = (st.nn.Linear(4, 4, key=k) for k in keys)
    model = st.nn.Sequential(first, st.nn.Tanh(), st.nn.Dropout(0.5), last)
    batches = [snp.array(RNG.normal(size=(n, 6, 4)).astype(np.float32)) for n in (5, 3)]
    found = st.ensemble.input_grams(model, [(batches[0], "labels"), batches[1]])
    assert list(found) == ["0.weight", "3.weight"]
    x = np.concatenate([np.asarray(b, float).reshape(-1, 4) for b in batches])
    np.testing.assert_allclose(found["0.weight"], x.T @ x, 1e-5, 1e-6)
    h = np.tanh(x @ np.asarray(first.weight).T + np.asarray(first.bias))
    np.testing.assert_allclose(found["3.weight"], h.T @ h, 1e-5, 1e-6)
    assert type(model[0]) is st.nn.Linear  # the model is as it was
    assert model.training
    with pytest.raises(TypeError, match="input_grams: expected a module, got a dict"):
        st.ensemble.input_grams({}, batches)
    with pytest.raises(ValueError, match="input_grams: no Linear"):
        st.ensemble.input_grams(st.nn.Sequential(st.nn.Tanh()), batches)


def test_merging_by_gram_matrices_keeps_outputs():
    """Two layers, each for inputs of its own half of the space: one does what both do."""
    keys = st.random.split(st.random.PRNGKey(1))
    models = [st.nn.Linear(6, 3, key=k) for k in keys]
    inputs = [RNG.normal(size=(20, 6)).astype(np.float32) for _ in models]
    inputs[0][:, 3:] = inputs[1][:, :3] = 0
    outputs = [np.asarray(m(x)) - np.asarray(m.bias) for m, x in zip(models, inputs, strict=True)]
    grams = [st.ensemble.input_grams(m, [x]) for m, x in zip(models, inputs, strict=True)]
    merged = st.merge.trees("regmean", models, grams=grams, alpha=1.0)
    for x, y in zip(inputs, outputs, strict=True):
        np.testing.assert_allclose(x @ np.asarray(merged.weight).T, y, 1e-4, 1e-5)


def test_the_fisher_average():
    members, fishers = [ONE, TWO, THREE], [st.tree.map(abs, t) for t in (TWO, THREE, BASE)]
    values, sure = [flat(t) for t in members], [flat(f) for f in fishers]
    for weights in (None, [1.0, 0.5, 2.0]):
        lam = weights or [1.0] * 3
        top = sum(w * f * v for w, f, v in zip(lam, sure, values, strict=True))
        want = top / sum(w * f for w, f in zip(lam, sure, strict=True))
        for f in (fisher_average, st.jit(fisher_average)):
            made = f(members, fishers, weights)
            np.testing.assert_allclose(flat(made), want, rtol=1e-4, atol=1e-6)
            assert int(made["n"]) == 3
    nobody = [st.tree.map(lambda x: 0 * x, f) for f in fishers]
    np.testing.assert_allclose(
        flat(fisher_average(members, nobody)), np.mean(values, 0), rtol=1e-4, atol=1e-6
    )


OTHER = {"a": snp.ones((4, 3)), "b": [snp.ones(6), None], "n": snp.array(3)}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: task_vector(OTHER, BASE), ValueError, r"task_vector: member 1 .*\['b'\]\[0\]"),
        (lambda: add_task_vectors(BASE, []), ValueError, "expected at least one tree"),
        (lambda: add_task_vectors(BASE, BASE), TypeError, "expected a list of trees, got a dict"),
        (lambda: add_task_vectors(BASE, [ONE], [1, 2]), ValueError, "2 scales and 1 vectors"),
        (lambda: add_task_vectors(BASE, [ONE, OTHER]), ValueError, r"member 2 .*\['b'\]\[0\]"),
        (lambda: ties([ONE], 0), ValueError, "density must be above 0"),
        (lambda: ties([ONE, OTHER]), ValueError, r"ties: member 1 differs .*\['b'\]\[0\]"),
        (lambda: dare(ONE, st.random.PRNGKey(0), 1.0), ValueError, "below 1, got 1.0"),
        (lambda: fisher_average([ONE], [ONE, TWO]), ValueError, "1 members, 2 Fishers"),
        (lambda: fisher_average([ONE, OTHER], [ONE, TWO]), ValueError, "member 1 differs"),
        (lambda: fisher_average([ONE, TWO], [ONE, OTHER]), ValueError, "member 1 differs"),
    ],
    ids=range(11),
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
