"""Methods of merging: each against its formula in NumPy, in float64."""

import numpy as np
import pytest

import stretto as st
from stretto.merge.methods import METHODS, _ranks
from tests.merge import models

NAMES = ("a", "b", "c")
WEIGHTS = (0.5, 0.3, 0.4)


@pytest.fixture(scope="module")
def family(tmp_path_factory):
    return models.family(tmp_path_factory.mktemp("models"), *NAMES)


def merged(family, tmp_path, method, names=NAMES, *, base=True, out="out", each=None, **settings):
    """The result of a recipe, and of each tensor the models and the base in float64."""
    paths, weights = family
    listed = [{"path": paths[n]} | {k: v[i] for k, v in (each or {}).items()}
              for i, n in enumerate(names)]  # fmt: skip
    recipe = {"method": method, "models": listed, "parameters": settings}
    if base:
        recipe["base"] = paths["base"]
    place = tmp_path / f"{out}.safetensors"
    st.merge.run(recipe, place)
    found = models.read(place)
    assert list(found) == list(models.read(paths["base"]))
    wide = {n: {k: x.astype(np.float64) for k, x in w.items()} for n, w in weights.items()}
    return [
        (name, x, [wide[n][name] for n in names], wide["base"][name]) for name, x in found.items()
    ]


def close(x, expected, name):
    np.testing.assert_allclose(x, expected, rtol=2e-6, atol=2e-7, err_msg=name)


def elected(deltas, weights, *, divide):
    """Deltas with the sign of their sum, added up, and divided by their weights."""
    scaled = [w * d for w, d in zip(weights, deltas, strict=True)]
    sign = np.where(sum(scaled) >= 0, 1, -1)
    agree = [np.sign(d) == sign for d in scaled]
    total = sum(np.where(a, d, 0) for a, d in zip(agree, scaled, strict=True))
    share = sum(np.where(a, w, 0) for a, w in zip(agree, weights, strict=True))
    return total / np.where(share == 0, 1, share) if divide else total


@pytest.mark.parametrize("normalize", [True, False])
def test_linear(family, tmp_path, normalize):
    each = {"weight": WEIGHTS}
    for name, x, xs, _ in merged(family, tmp_path, "linear", each=each, normalize=normalize):
        total = sum(w * y for w, y in zip(WEIGHTS, xs, strict=True))
        close(x, total / sum(WEIGHTS) if normalize else total, name)


def test_linear_weighs_alike_by_default(family, tmp_path):
    for name, x, xs, _ in merged(family, tmp_path, "linear"):
        close(x, sum(xs) / 3, name)


@pytest.mark.parametrize("normalize", [True, False])
def test_task_arithmetic(family, tmp_path, normalize):
    settings = {"each": {"weight": WEIGHTS}, "lambda": 0.7, "normalize": normalize}
    for name, x, xs, base in merged(family, tmp_path, "task_arithmetic", **settings):
        total = sum(w * (y - base) for w, y in zip(WEIGHTS, xs, strict=True))
        close(x, base + 0.7 * total / (sum(WEIGHTS) if normalize else 1), name)


def largest(delta, share):
    count = max(1, int(share * delta.size))
    least = np.sort(abs(delta.astype(np.float32)), axis=None)[-count]
    return np.where(abs(delta.astype(np.float32)) >= least, delta, 0)


@pytest.mark.parametrize("densities", [(0.2, 0.5, 0.9), (1, 1, 1), (0.4, 0, 1e-9)])
def test_ties(family, tmp_path, densities):
    each = {"weight": WEIGHTS, "density": densities}
    for name, x, xs, base in merged(family, tmp_path, "ties", each=each):
        float32 = [(y.astype(np.float32) - base.astype(np.float32)) for y in xs]
        kept = [largest(d, s) if s else 0 * d for d, s in zip(float32, densities, strict=True)]
        close(x, base + elected(kept, WEIGHTS, divide=True), name)


@pytest.mark.parametrize("elect", [True, False])
def test_breadcrumbs(family, tmp_path, elect):
    method = "breadcrumbs_ties" if elect else "breadcrumbs"
    each = {"weight": WEIGHTS, "density": (0.5,) * 3, "gamma": (0.1,) * 3}
    for name, x, xs, base in merged(family, tmp_path, method, each=each):
        kept = []
        for y in xs:
            delta = y.astype(np.float32) - base.astype(np.float32)
            size = np.sort(abs(delta), axis=None)
            count, above = int(0.5 * delta.size), int(0.1 * delta.size)
            high = size[-1 - above]
            low = size[-above - count]
            kept.append(np.where((abs(delta) >= low) & (abs(delta) <= high), delta, 0))
        total = sum(w * d for w, d in zip(WEIGHTS, kept, strict=True))
        close(x, base + (elected(kept, WEIGHTS, divide=False) if elect else total), name)


def test_breadcrumbs_drop_fewer_of_the_largest_where_too_few_would_be_left(family, tmp_path):
    each = {"weight": (1.0,), "density": (0.95,), "gamma": (0.5,)}
    for name, x, (y,), base in merged(family, tmp_path, "breadcrumbs", "a", each=each):
        delta = y.astype(np.float32) - base.astype(np.float32)
        count = int(0.95 * delta.size)
        most = np.sort(abs(delta), axis=None)[count - 1]
        close(x, base + np.where(abs(delta) <= most, delta, 0), name)


@pytest.mark.parametrize("method", ["dare_linear", "dare_ties"])
def test_dropping_at_random_keeps_the_share_and_the_mean(family, tmp_path, method):
    each = {"weight": (1.0,), "density": (0.25,)}
    ratios = []
    for _, x, (y,), base in merged(family, tmp_path, method, "a", each=each):
        ratios.append(((x - base) / (y - base)).reshape(-1))
    ratios = np.concatenate(ratios)
    kept = abs(ratios) > 1e-3
    assert abs(kept.mean() - 0.25) < 0.02
    np.testing.assert_allclose(ratios[kept], 4, rtol=1e-3)


def test_random_choices_differ_by_model_and_tensor_and_seed(family, tmp_path):
    each = {"weight": (1.0,), "density": (0.5,)}

    def kept(name, seed, out):
        paths, weights = family
        recipe = {"method": "dare_linear", "base": paths["base"], "seed": seed,
                  "models": [{"path": paths[name], "weight": 1.0, "density": 0.5}]}  # fmt: skip
        st.merge.run(recipe, tmp_path / out)
        return {k: x != weights["base"][k] for k, x in models.read(tmp_path / out).items()}

    once, again, other = kept("a", 0, "1"), kept("b", 0, "2"), kept("a", 1, "3")
    up, down = "model.layers.0.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.weight"
    np.testing.assert_array_equal(once[up], again[up])  # of the first model, whichever it is
    assert 0.3 < (once[up] == once[down]).mean() < 0.7
    assert 0.3 < (once[up] == other[up]).mean() < 0.7
    both = {k: m for k, *m in merged(family, tmp_path, "dare_linear", "aa", base=True,
                                     each={k: v * 2 for k, v in each.items()})}  # fmt: skip
    x, xs, base = both[up]
    times = np.round((x - base) / (xs[0] - base))
    assert set(np.unique(times)) == {0, 2, 4}  # two models draw for themselves


def test_rows_keep_large_elements_more_often(family, tmp_path):
    each = {"weight": (1.0,), "density": (0.5,), "epsilon": (0.45,)}
    settings = {"each": each, "rescale": False}
    small, large = [], []
    for _, x, (y,), base in merged(family, tmp_path, "della_linear", "a", **settings):
        if x.ndim == 2:
            kept = abs(x - base) > 1e-12
            rank = np.argsort(np.argsort(abs(y - base), axis=-1), axis=-1)
            small.append(kept[rank < 4])
            large.append(kept[rank >= 20])
    assert np.concatenate(small).mean() < 0.2
    assert np.concatenate(large).mean() > 0.8


def test_rescaled_deltas_have_their_l1_norm(family, tmp_path):
    each = {"weight": (1.0,), "density": (0.3,)}
    for name, x, (y,), base in merged(family, tmp_path, "ties", "a", each=each, rescale=True):
        np.testing.assert_allclose(abs(x - base).sum(), abs(y - base).sum(), 1e-4, err_msg=name)


def test_slerp(family, tmp_path):
    for name, x, (y,), base in merged(family, tmp_path, "slerp", "a", t=0.3):
        cosine = np.vdot(base, y) / np.linalg.norm(base) / np.linalg.norm(y)
        angle = np.arccos(cosine)
        if abs(cosine) > 0.9995:
            expected = 0.7 * base + 0.3 * y
        else:
            expected = (np.sin(0.7 * angle) * base + np.sin(0.3 * angle) * y) / np.sin(angle)
        close(x, expected, name)


@pytest.mark.parametrize("base", [True, False])
def test_nuslerp(family, tmp_path, base):
    each = {"weight": (0.2, 0.6)}
    for name, x, xs, start in merged(family, tmp_path, "nuslerp", "ab", base=base, each=each):
        first, second = (y - start * base for y in xs)
        cosine = np.vdot(first, second) / np.linalg.norm(first) / np.linalg.norm(second)
        angle = np.arccos(cosine)
        along = (np.sin(0.25 * angle) * first + np.sin(0.75 * angle) * second) / np.sin(angle)
        close(x, along + start * base, name)


@pytest.mark.parametrize("base", [True, False])
def test_multislerp(family, tmp_path, base):
    each = {"weight": WEIGHTS}
    share = np.array(WEIGHTS) / sum(WEIGHTS)
    for name, x, xs, start in merged(family, tmp_path, "multislerp", base=base, each=each):
        ys = [y - start * base for y in xs]
        norms = [np.linalg.norm(y) for y in ys]
        units = [y / n for y, n in zip(ys, norms, strict=True)]
        mean = sum(s * u for s, u in zip(share, units, strict=True))
        mean /= np.linalg.norm(mean)
        flat = sum(s * (u - np.vdot(u, mean) * mean) for s, u in zip(share, units, strict=True))
        far = np.linalg.norm(flat)
        on_sphere = np.cos(far) * mean + (np.sin(far) * flat / far if far else 0)
        close(x, share @ norms * on_sphere + start * base, name)


def test_karcher_mean_is_where_the_tangents_cancel(family, tmp_path):
    for name, x, xs, _ in merged(family, tmp_path, "karcher", base=False, max_iter=50, tol=1e-12):
        mean = x / np.linalg.norm(x)
        units = [y / np.linalg.norm(y) for y in xs]
        angles = [np.arccos(np.clip(np.vdot(u, mean), -1, 1)) for u in units]
        pull = sum(
            a / np.sin(a) * (u - np.cos(a) * mean) for a, u in zip(angles, units, strict=True)
        )
        assert np.linalg.norm(pull) < 1e-5, name
        np.testing.assert_allclose(
            np.linalg.norm(x), np.mean([np.linalg.norm(y) for y in xs]), rtol=1e-5
        )


def test_model_stock(family, tmp_path):
    for name, x, xs, base in merged(family, tmp_path, "model_stock"):
        deltas = [(y - base).reshape(-1) for y in xs]
        pairs = [(0, 1), (0, 2), (1, 2)]
        cosine = np.mean([
            deltas[i] @ deltas[j] / np.linalg.norm(deltas[i]) / np.linalg.norm(deltas[j])
            for i, j in pairs
        ])  # fmt: skip
        t = 3 * cosine / (1 + 2 * cosine)
        np.testing.assert_allclose(x, t * sum(xs) / 3 + (1 - t) * base, 1e-5, 1e-5, err_msg=name)


def test_nearswap(family, tmp_path):
    for name, x, (y,), base in merged(family, tmp_path, "nearswap", "a", t=0.05):
        moved = np.where(abs(y - base) <= 0.05, y, base + np.sign(y - base) * 0.05)
        close(x, moved, name)


@pytest.mark.parametrize("method", ["ram", "ramplus_tl"])
def test_ram(family, tmp_path, method):
    settings = {"epsilon": 0.1} | ({"r": 0.5, "alpha": 0.4} if method == "ramplus_tl" else {})
    for name, x, xs, base in merged(family, tmp_path, method, **settings):
        float32 = [y.astype(np.float32) - base.astype(np.float32) for y in xs]
        moved = [np.where(abs(d) > np.float32(0.1), d, 0) for d in float32]
        count = sum((d != 0).astype(int) for d in moved)
        total = 0
        for d in moved:
            shared, unique = ((d != 0) & (count > 1)).sum(), ((d != 0) & (count == 1)).sum()
            larger = 1.0
            if method == "ramplus_tl":
                larger += 0.5 * np.clip(shared / max(unique, 0.1), 0, 0.4)
            total = total + np.where(count > 1, d / np.maximum(count, 1), larger * d)
        close(x, base + total, name)


@pytest.mark.parametrize("share", [1.0, 0.3, 0.0])
def test_sce(family, tmp_path, share):
    for name, x, xs, base in merged(family, tmp_path, "sce", select_topk=share):
        deltas = [(y.astype(np.float32) - base.astype(np.float32)).astype(np.float64) for y in xs]
        spread = np.var(deltas, axis=0)
        count = int(np.count_nonzero(spread) * share)
        if share < 1:
            least = np.sort(spread, axis=None)[-count] if count else np.inf
            deltas = [np.where(spread >= least * (1 - 1e-6), d, 0) for d in deltas]
        energy = np.array([np.mean(d * d) for d in deltas])
        energy = energy / energy.sum() if energy.sum() >= 1e-6 else np.full(3, 1 / 3)
        sign = np.where(sum(deltas) >= 0, 1, -1)
        agree = [np.sign(d) == sign for d in deltas]
        top = sum(np.where(a, e * d, 0) for a, e, d in zip(agree, energy, deltas, strict=True))
        bottom = sum(np.where(a, e, 0) for a, e in zip(agree, energy, strict=True))
        close(x, base + top / np.maximum(bottom, 1e-6), name)


def test_fusion_moves_what_is_far_more_important_than_most(family, tmp_path):
    for name, x, (y,), base in merged(family, tmp_path, "arcee_fusion", "a"):
        ours, theirs = (np.exp(z - z.max(-1, keepdims=True)) for z in (y, base))
        ours, theirs = (z / z.sum(-1, keepdims=True) + 1e-8 for z in (ours, theirs))
        apart = np.sum(ours * np.log(ours / theirs), -1, keepdims=True)
        important = abs(y - base) * apart
        low, middle, high = (
            np.sort(important, axis=None)[int(q * (x.size - 1))] for q in (0.25, 0.5, 0.75)
        )
        least = middle + 1.5 * (high - low)
        sure = abs(important - least) > 1e-4 * least  # what is nearer is decided by rounding
        expected = np.where(important >= least, y, base).astype(np.float32)
        np.testing.assert_array_equal(x[sure], expected[sure], err_msg=name)
        moved = (x != base.astype(np.float32)).mean()
        assert x.ndim == 1 or 0 < moved < 0.3


def test_passthrough(family, tmp_path):
    for name, x, (y,), _ in merged(family, tmp_path, "passthrough", "a", base=False):
        np.testing.assert_array_equal(x, y.astype(np.float32), err_msg=name)
    for name, x, (y,), _ in merged(
        family, tmp_path, "passthrough", "a", base=False, out="twice", scale=2.0
    ):
        np.testing.assert_array_equal(x, 2 * y.astype(np.float32), err_msg=name)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_results_have_the_same_bytes_whatever_memory_there_is(tmp_path, method):
    rng = np.random.default_rng(3)
    how = METHODS[method]
    count = 1 if how.base == "first" else how.most or 3
    base = {"long": rng.standard_normal((150, 97)).astype(np.float32)}
    paths, weights = [], []
    for name in ("base", *NAMES)[: count + 1]:
        far = 0 if name == "base" else 0.1
        moved = base["long"] + far * rng.standard_normal((150, 97))
        paths.append(str(tmp_path / f"{name}.safetensors"))
        weights.append({"long": moved.astype(np.float32)})
        models.save_file(weights[-1], paths[-1])
    settings = {}
    for s in how.settings:
        if s.name in ("density", "select_topk", "t", "weight"):
            settings[s.name] = {"density": 0.4, "select_topk": 0.4, "t": 0.3, "weight": 0.7}[s.name]
    listed = models.with_beside(method, paths[1:], weights[1:], tmp_path)
    recipe = {"method": method, "models": listed, "parameters": settings}
    if how.base != "none":
        recipe["base"] = paths[0]
    # Blocks of 4096, of 2^16, and all in one; a whole matrix needs some.
    for i, memory in enumerate((1 if how.matrix is None else 210_000, 220_000, "1GB")):
        st.merge.run(recipe, tmp_path / f"out{i}", memory=memory)
    found = [(tmp_path / f"out{i}").read_bytes() for i in range(3)]
    assert found[0] == found[1] == found[2]


def beside(family, tmp_path, method):
    """The paths of the files beside the models, and in float64 what they hold."""
    paths, weights = family
    listed = models.with_beside(
        method, [paths[n] for n in NAMES], [weights[n] for n in NAMES], tmp_path
    )
    key = METHODS[method].beside.key
    files = [m[key] for m in listed]
    return key, files, [
        {k: x.astype(np.float64) for k, x in models.read(f).items()} for f in files
    ]  # fmt: skip


def test_fisher(family, tmp_path):
    key, files, fishers = beside(family, tmp_path, "fisher")
    each = {key: files, "weight": WEIGHTS}
    for name, x, xs, _ in merged(family, tmp_path, "fisher", base=False, each=each, least=0.5):
        shares = [w * np.maximum(f[name], 0.5) for w, f in zip(WEIGHTS, fishers, strict=True)]
        close(x, sum(s * y for s, y in zip(shares, xs, strict=True)) / sum(shares), name)


def test_a_method_of_ones_own(family, tmp_path):
    @st.merge.method
    def towards(models, base, *, far=0.5, weight: st.merge.Each = 1.0, mean=True):
        """Go towards the weighted sum."""
        total = sum(weight[i] * (x - base) for i, x in enumerate(models))
        return base + far * total / (len(models) if mean else 1)

    try:
        each = {"weight": (1.0, 2.0, 3.0)}
        settings = {"each": each, "far": 0.25, "mean": False}
        for name, x, xs, base in merged(family, tmp_path, "towards", **settings):
            total = sum(w * (y - base) for w, y in zip((1, 2, 3), xs, strict=True))
            np.testing.assert_allclose(x, base + 0.25 * total, 1e-5, 1e-5, err_msg=name)
        with pytest.raises(ValueError, match="there is a method 'towards' already"):
            st.merge.method(lambda models: models[0], name="towards")
        assert METHODS["towards"].words == "Go towards the weighted sum."
    finally:
        del METHODS["towards"]


def test_what_is_no_method():
    with pytest.raises(TypeError, match=r"must take \(models\) or \(models, base\).*got \(x\)"):
        st.merge.method(lambda x: x, name="strange")
    assert "strange" not in METHODS


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ranks_of_equal_magnitudes_go_by_place(dtype):
    rng = np.random.default_rng(0)
    x = abs(rng.standard_normal((7, 500)).round(1)).astype(dtype)
    x[0, ::3], x[1, 5] = np.inf, np.nan
    x[2] = 0
    order = np.argsort(x, axis=-1, kind="stable")
    found = _ranks(x)
    np.testing.assert_array_equal(np.take_along_axis(found, order, -1), [np.arange(500)] * 7)
    assert _ranks(x[:, :0]).shape == (7, 0)
    np.testing.assert_array_equal(_ranks(x[:, :1]), np.zeros((7, 1)))
