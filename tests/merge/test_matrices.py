"""Methods of whole matrices, each against its formula in NumPy, in float64."""

import tracemalloc

import numpy as np
import pytest

import stretto as st
from stretto.merge.matrices import Matrices, memory_of, truncated
from stretto.merge.methods import METHODS
from stretto.merge.streams import Source
from tests.merge import models
from tests.merge.test_methods import NAMES, WEIGHTS, beside, close, merged


@pytest.fixture(scope="module")
def family(tmp_path_factory):
    return models.family(tmp_path_factory.mktemp("models"), *NAMES)


@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (5, 5)])
def test_truncation_is_the_nearest_matrix_of_that_rank(shape):
    x = np.random.default_rng(1).standard_normal(shape)
    u, s, v = truncated(x, 3)
    p, all_s, q = np.linalg.svd(x, full_matrices=False)
    np.testing.assert_allclose(s, all_s[:3], 1e-12)
    np.testing.assert_allclose(u * s @ v.T, p[:, :3] * all_s[:3] @ q[:3], 0, 1e-12)
    for y in (u, v):
        np.testing.assert_allclose(y.T @ y, np.eye(3), 0, 1e-12)


@pytest.mark.parametrize("alpha", [1.0, 0.6, 0.0])
def test_regmean(family, tmp_path, alpha):
    key, files, grams = beside(family, tmp_path, "regmean")
    each = {key: files, "weight": WEIGHTS}
    seen = 0
    for name, x, xs, _ in merged(family, tmp_path, "regmean", base=False, each=each, alpha=alpha):
        if name in grams[0]:
            seen += 1
            own = [w * (alpha * g[name] + (1 - alpha) * np.diag(np.diag(g[name])))
                   for w, g in zip(WEIGHTS, grams, strict=True)]  # fmt: skip
            right = sum(g @ y.T for g, y in zip(own, xs, strict=True))
            close(x, np.linalg.solve(sum(own), right).T, name)
        else:
            close(x, sum(w * y for w, y in zip(WEIGHTS, xs, strict=True)) / sum(WEIGHTS), name)
    assert seen == 9


def test_regmean_finds_what_all_inputs_say():
    rng = np.random.default_rng(5)
    inputs = [rng.standard_normal((40, 6)) * [1, 1, 1, 1, 1, 0] for _ in range(2)]
    xs = [rng.standard_normal((6, 4)) for _ in inputs]
    grams = [{"w": (z.T @ z).astype(np.float32)} for z in inputs]
    tuned = [{"w": x.astype(np.float32)} for x in xs]
    found = st.merge.trees("regmean", tuned, grams=grams, alpha=1.0, inputs_first=True)["w"]
    both = np.concatenate([z[:, :5] for z in inputs])
    outputs = np.concatenate([z @ x for z, x in zip(inputs, xs, strict=True)])
    expected = np.linalg.lstsq(both, outputs)[0]
    np.testing.assert_allclose(found[:5], expected, 1e-5, 1e-6)
    np.testing.assert_allclose(found[5], (xs[0][5] + xs[1][5]) / 2, 1e-6)  # an input never seen
    with pytest.raises(ValueError, match="the inputs of w do not say what all of it should be"):
        st.merge.trees("regmean", [{"w": np.ones((2, 2))}], grams=[{"w": np.ones((2, 2))}],
                       alpha=1.0)  # fmt: skip
    with pytest.raises(ValueError, match=r"w of grams 1 has shape \[4, 4\]; expected \[3, 3\]"):
        st.merge.trees("regmean", [{"w": np.ones((4, 3))}], grams=[{"w": np.ones((4, 4))}])
    with pytest.raises(ValueError, match="w is missing in grams 2"):
        st.merge.trees("regmean", tuned, grams=[grams[0], {}])
    with pytest.raises(ValueError, match="w is missing in fisher 2"):
        st.merge.trees("fisher", tuned, fisher=[tuned[0], {}])
    with pytest.raises(ValueError, match="expected grams=, a list with a tree for each of 2"):
        st.merge.trees("regmean", tuned)


def test_task_singular_vectors(family, tmp_path):
    settings = {"each": {"weight": WEIGHTS}, "lambda": 0.7}
    for name, x, xs, base in merged(family, tmp_path, "tsv", **settings):
        deltas = [y - base for y in xs]
        if x.ndim == 1:
            mean = sum(w * d for w, d in zip(WEIGHTS, deltas, strict=True)) / 3
            close(x, base + 0.7 * mean, name)
            continue
        rank = min(x.shape) // 3
        parts = [np.linalg.svd(d, full_matrices=False) for d in deltas]
        u = np.concatenate([u[:, :rank] for u, _, _ in parts], axis=1)
        v = np.concatenate([v[:rank] for _, _, v in parts])
        s = np.concatenate([w * s[:rank] for w, (_, s, _) in zip(WEIGHTS, parts, strict=True)])
        (p, _, q), (g, _, h) = (np.linalg.svd(z, full_matrices=False) for z in (u, v))
        close(x, base + 0.7 * (p @ q * s) @ (g @ h), name)


def test_isotropic(family, tmp_path):
    settings = {"each": {"weight": WEIGHTS}, "lambda": 0.7}
    for name, x, xs, base in merged(family, tmp_path, "iso", **settings):
        total = sum(w * (y - base) for w, y in zip(WEIGHTS, xs, strict=True))
        if x.ndim == 1:
            close(x, base + 0.7 * total / 3, name)
            continue
        u, s, v = np.linalg.svd(total, full_matrices=False)
        close(x, base + 0.7 * s.mean() * u @ v, name)


def test_directions_of_no_length_stay_out():
    rng = np.random.default_rng(4)
    base = {"w": np.zeros((5, 7), np.float32)}
    low = rng.standard_normal((5, 2)) @ rng.standard_normal((2, 7))
    u, s, v = np.linalg.svd(low)
    tuned = [{"w": low.astype(np.float32)}]
    np.testing.assert_allclose(
        st.merge.trees("iso", tuned, base)["w"], s[:2].mean() * u[:, :2] @ v[:2], 1e-5, 1e-6
    )
    for method in ("iso", "tsv"):
        np.testing.assert_array_equal(st.merge.trees(method, [base, base], base)["w"], base["w"])
    twice = st.merge.trees("tsv", tuned * 2, base)["w"]  # each of the two tasks keeps both
    np.testing.assert_allclose(twice, low, 1e-5, 1e-6)


def test_matrices_may_be_averaged(family, tmp_path):
    cases = [{"match": "*embed*", "value": False}, {"value": True}]
    averaged = []
    for name, x, xs, base in merged(family, tmp_path, "iso", decompose=cases):
        mean = base + sum(y - base for y in xs) / 3
        averaged += [name] if np.allclose(x, mean, 1e-5, 1e-6) and x.ndim == 2 else []
    assert averaged == ["model.embed_tokens.weight"]


@pytest.mark.parametrize("method", ["tsv", "iso", "regmean"])
@pytest.mark.parametrize("shape", [(300, 300), (80, 900), (900, 80)])
def test_no_more_memory_is_taken(tmp_path, method, shape):
    rng = np.random.default_rng(8)
    sizes = {"base": shape, "a": shape, "b": shape, "c": shape}
    count = shape[1]
    sizes |= {"g": (count, count)} if method == "regmean" else {}
    sources = {}
    for name, size in sizes.items():
        x = rng.standard_normal(size)
        x = x @ x.T + np.eye(count) if name == "g" else x
        models.save_file({"w": x.astype(np.float32)}, tmp_path / name)
        sources[name] = Source(st.merge.Checkpoint(tmp_path / name), "w")
    how = METHODS[method]
    base = sources["base"] if how.base == "needed" else None
    settings = {s.name: np.ones(3) if s.each else s.default for s in how.settings}
    beside = [sources["g"]] * 3 if "g" in sources else []
    m = Matrices([sources[n] for n in "abc"], base, beside, settings, "w")
    how.matrix(m)
    tracemalloc.start()
    how.matrix(m)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.05 * memory_of(list(sources.values()))


def test_memory_for_whole_matrices(family, tmp_path):
    paths, _ = family
    recipe = {"method": "tsv", "base": paths["base"], "models": [paths["a"], paths["b"]]}
    text = str(st.merge.plan(recipe))
    assert "10 matrices as wholes, in up to 67,200 bytes of memory" in text
    with pytest.raises(ValueError, match=r"whole matrices, and for \S+ of shape \[50, 24\] about "
                       r"67,200 bytes, with memory=10,000: give more"):  # fmt: skip
        st.merge.run(recipe, tmp_path / "out", memory=10_000)
    assert not (tmp_path / ".out.merging").exists()
