"""Methods of merging: what becomes of the same place in several models, and in their base.

A ``Method`` computes a block of the result from the blocks of the models (``Pieces``), as a pure
function that is compiled. What it has to know of the whole tensor before, such as a threshold, an
angle or a norm, its ``measure`` finds in a pass over the stream. Most methods are a few lines, as
they share three ideas:

- *Arcs.* SLERP, NuSLERP, multi-SLERP, the Karcher mean and model stock stay within the span of the
  models: they are weighted sums, whose weights follow from the products of the models with each
  other. These are measured; the weights are computed in float64 (``arcs``).
- *Sparse deltas.* TIES, DARE, DELLA and breadcrumbs keep a part of each model's difference from the
  base, chosen by magnitude, at random, or both, and add them up, where signs agree or everywhere.
- *Choices by element.* SCE, RAM, nearswap and fusion move where a test holds.

A few need whole matrices, in memory: ``matrices`` has what they make of them.

Names of settings, and what they do at their bounds, are mergekit's where it has them, so that its
recipes mean the same here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np

from stretto import numpy as snp
from stretto._engine.api.graph import ShapeDtypeStruct
from stretto._engine.core.typing import Array
from stretto._engine.higher_order.callback import pure_callback
from stretto.merge import arcs, matrices
from stretto.merge.checkpoints import shown
from stretto.merge.formulas import (
    agreeing,
    by_precision,
    drawn,
    elected,
    kept_count,
    large,
    only,
    sum_of,
)
from stretto.merge.measuring import Measuring, Pieces, in_runs

__all__ = ["METHODS", "Beside", "Each", "Method", "Setting", "method"]

REQUIRED: Any = inspect.Parameter.empty
_LARGEST = 1e30  # of a setting: its products are floats


class Each:
    """Marks a setting of ``merge.method`` that has a number for each model, as an annotation.

    The function is given a vector with one number for each model.

    >>> import stretto as st
    >>> @st.merge.method
    ... def louder(models, *, gain: st.merge.Each = 1.0):
    ...     return sum(x * gain[i] for i, x in enumerate(models))
    >>> st.merge.METHODS["louder"].settings[0].each
    True
    """


class Setting(NamedTuple):
    """A setting of a method."""

    name: str
    default: Any = REQUIRED
    each: bool = False
    """Whether each model has its own."""
    kind: type = float
    """``float`` settings are arguments of the compiled program, others are part of it."""
    low: float = -float("inf")
    high: float = float("inf")
    words: str = ""

    def problem(self, value: object) -> str | None:
        """Say what is wrong with a value, or return ``None``."""
        if self.kind is bool:
            return None if isinstance(value, bool) else "must be true or false"
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return f"must be a number, got {shown(value)}"
        low, high = max(self.low, -_LARGEST), min(self.high, _LARGEST)
        if not low <= value <= high:  # NaN is not, either
            return f"must be from {low:g} to {high:g}, got {shown(value)}"
        if self.kind is int and value != int(value):
            return f"must be a whole number, got {shown(value)}"
        return None


class Beside(NamedTuple):
    """Files with more tensors, by the names of the models' own: one beside each model."""

    key: str
    """The key under which a model has the path."""
    words: str
    """What is in such a file."""
    of_inputs: bool = False
    """Whether its tensors are square, over the inputs of matrices, and not there for all tensors;
    otherwise they are like the model's."""


class Method(NamedTuple):
    """A way to merge; ``merge.method`` makes one of a function.

    >>> import stretto as st
    >>> st.merge.METHODS["slerp"].words
    'Go along the arc from the base to the model.'
    """

    name: str
    """What recipes call it."""
    combine: Callable[[Pieces], Array]
    """Computes a block of the result."""
    words: str
    """What it does, in one sentence."""
    settings: tuple[Setting, ...] = ()
    """What a recipe may set."""
    base: str = "needed"
    """Whether there is a base: "needed", "optional" or "none"; with the last, a base is one of the
    models."""
    fewest: int = 1
    """How many models there must be; the base counts where it is the first of them."""
    most: int | None = None
    """How many there may be; ``None`` for any number."""
    measure: Callable[[Measuring], Any] | None = None
    """Finds what ``combine`` must know of the whole tensor, in a pass before."""
    rows: Callable[[Mapping[str, Any]], bool] = lambda settings: False
    """Whether blocks must be whole rows, with these settings."""
    source: str = ""
    """Where it was published."""
    beside: Beside | None = None
    """What files the models need beside them."""
    matrix: Callable[[matrices.Matrices], np.ndarray] | None = None
    """What becomes of a matrix, if it needs all of it; ``combine`` is for what is left."""


# Weighted sums


def _weighted(arrays: Sequence[Array], weights: Array) -> Array:
    """Add up weighted arrays, rounding once for each."""
    total = arrays[0] * weights[0]
    for i in range(1, len(arrays)):
        product = arrays[i].astype(np.float64) * weights[i].astype(np.float64)
        total = (total.astype(np.float64) + product).astype(total.dtype)
    return total


def _linear(p: Pieces) -> Array:
    weights = p.settings["weight"]
    total = _weighted(p.models, weights)
    return p.over(total, snp.sum(weights)) if p.settings["normalize"] else total


def _mean(p: Pieces) -> Array:
    weights = p.settings["weight"]
    return p.over(_weighted(p.models, weights), snp.sum(weights))


def _mean_delta(p: Pieces) -> Array:
    base: Any = p.base
    mean = p.over(_weighted(p.deltas, p.settings["weight"]), snp.asarray(len(p.models), base.dtype))
    return base + p.times(mean, p.settings["lambda"])


def _in_span(p: Pieces) -> Array:
    """Add up the models, and the base, by measured weights."""
    arrays = [*p.models] if p.base is None else [*p.models, p.base]
    return _weighted(arrays, p.measured)


def _stock(p: Pieces) -> Array:
    base: Any = p.base
    mean = p.over(sum_of(p.models), snp.asarray(len(p.models), base.dtype))
    return p.times(mean, p.measured) + p.times(base, 1 - p.measured)


# Sparse deltas


def _added(p: Pieces, deltas: Sequence[Array], *, elect: bool) -> Array:
    """Add deltas to the base by their weights; where asked, only those with the elected sign."""
    base: Any = p.base
    weights = p.settings["weight"]
    scaled = [p.times(x, weights[i]) for i, x in enumerate(deltas)]
    if elect:
        total, share = elected(scaled, [weights[i] for i in range(len(scaled))])
        share = snp.where(share == 0, 1, share)
    else:
        total = sum_of(scaled)
        share = snp.sum(weights)
        share = snp.where(abs(share) < 1e-8, 1, share)
    if p.settings["normalize"]:
        total = total / share if elect else p.over(total, share)
    return base + p.times(total, p.settings["lambda"])


def _sparse(
    keep: Callable[[Pieces, int, Array], Array], *, elect: bool
) -> Callable[[Pieces], Array]:
    """Return a method's ``combine``, given which elements of a delta it keeps."""

    def combine(p: Pieces) -> Array:
        scale = p.measured["scale"]
        kept = [only(x, keep(p, i, x), scale[i], p.times) for i, x in enumerate(p.deltas)]
        return _added(p, kept, elect=elect)

    return combine


def _keep_all(p: Pieces, i: int, delta: Array) -> Array:
    return snp.ones(delta.shape, bool)


def _keep_large(p: Pieces, i: int, delta: Array) -> Array:
    return large(delta, p.measured["least"][i])


def _keep_middle(p: Pieces, i: int, delta: Array) -> Array:
    size = abs(delta)
    return large(delta, p.measured["least"][i]) & (size <= p.measured["largest"][i])


def _keep_any(p: Pieces, i: int, delta: Array) -> Array:
    return drawn(p.noise(i), p.settings["density"][i])


def _keep_by_rank(p: Pieces, i: int, delta: Array) -> Array:
    """Keep the larger of a row with a larger probability, from density − ε to density + ε."""
    density, epsilon = p.settings["density"][i], p.settings["epsilon"][i]
    count = delta.shape[-1]
    # NumPy sorts with vectors: 8 ns an element, where argsort, twice, takes XLA 144.
    places = ShapeDtypeStruct(delta.shape, np.int32)
    rank = pure_callback(_ranks, places, abs(delta)).astype(delta.dtype)
    middle = snp.where(count > 1, rank / max(count - 1, 1), 0.0)
    return (p.noise(i) < density - epsilon + 2 * epsilon * middle) | (density >= 1)


def _ranks(sizes: Any) -> np.ndarray:
    """Return the place of each in its row, the smallest being first, and of equal ones the first.

    >>> _ranks(np.float32([[3, 1, 2, 1]]))
    array([[3, 0, 2, 1]], dtype=int32)
    """
    rows = np.asarray(sizes)
    places = np.arange(rows.shape[-1], dtype=np.uint32)
    if rows.dtype == np.float32:
        # Of floats that are 0 or more the bits have their order. With the place behind them no two
        # are equal, so that all ways to sort give the same.
        keys = rows.view(np.uint32).astype(np.uint64) << np.uint64(32) | places
        keys.sort(axis=-1)
        order = (keys & np.uint64(0xFFFFFFFF)).astype(np.intp)
    else:
        order = np.argsort(rows, axis=-1, kind="stable")
    ranks = np.empty(rows.shape, np.int32)
    np.put_along_axis(ranks, order, places.astype(np.int32)[None], -1)
    return ranks


# Choices by element


def _fisher(p: Pieces) -> Array:
    weights = p.settings["weight"]
    each = [weights[i] for i in range(len(p.models))]
    return by_precision(p.models, p.beside, each, p.settings["least"], p.times)


def _nearswap(p: Pieces) -> Array:
    base: Any = p.base
    far = snp.maximum(abs(p.models[0] - base), 1e-6)
    share = snp.clip(p.times(1 / far, p.settings["t"]), 0, 1)
    return p.times(p.models[0], share) + p.times(base, 1 - share)


def _ram(p: Pieces) -> Array:
    base: Any = p.base
    moved = [snp.where(abs(x) > p.settings["epsilon"], x, 0) for x in p.deltas]
    count = sum_of([(abs(x) > p.settings["epsilon"]).astype(base.dtype) for x in p.deltas])
    alone = [p.times(x, p.measured[i]) for i, x in enumerate(moved)]
    together = [x / snp.maximum(count, 1) for x in moved]
    return base + snp.where(count > 1, sum_of(together), sum_of(alone))


def _sce(p: Pieces) -> Array:
    base: Any = p.base
    deltas, weights = p.deltas, p.measured["weight"]
    mean = sum_of(deltas) / len(deltas)
    spread = sum_of([(x - mean) ** 2 for x in deltas]) / len(deltas)
    deltas = [snp.where(spread >= p.measured["least"], x, 0) for x in deltas]
    agree = agreeing(deltas)
    total = sum_of([only(x, a, weights[i], p.times) for i, (a, x) in enumerate(zip(agree, deltas))])
    share = sum_of([snp.where(a, weights[i], 0) for i, a in enumerate(agree)])
    return base + total / snp.maximum(share, 1e-6)


def _importance(p: Pieces) -> Array:
    """Return how far elements moved, times how far the softmax of their rows did."""
    base: Any = p.base
    tuned = p.models[0]
    ours, theirs = (_softmax(x) + 1e-8 for x in (tuned, base))
    apart = snp.sum(ours * snp.log(ours / theirs), axis=-1, keepdims=True)
    return abs(tuned - base) * apart


def _softmax(x: Array) -> Array:
    e = snp.exp(x - snp.max(x, axis=-1, keepdims=True))
    return e / snp.sum(e, axis=-1, keepdims=True)


def _fused(p: Pieces) -> Array:
    base: Any = p.base
    return snp.where(_importance(p) >= p.measured, p.models[0], base)


# What is measured first


def _thin(m: Measuring) -> dict[str, Any]:
    """Measure nothing but what deltas are scaled by, which is 1."""
    return {"scale": np.ones(len(m.models), m.dtype)}


def _magnitude(p: Pieces) -> Array:
    return abs(p.deltas[0])


def _thresholds(m: Measuring) -> dict[str, Any]:
    """Find for each model the least magnitude of the share that is kept."""
    least = []
    for i, share in enumerate(m.settings["density"]):
        if share >= 1 or not m.size:
            least.append(0.0)
        elif share <= 0:
            least.append(np.inf)
        else:
            least += m.largest(_magnitude, [kept_count(share, m.size)], i)
    measured = {"least": np.asarray(least, m.dtype), **_thin(m)}
    return _rescaled(m, measured, _kept_large)


def _middles(m: Measuring) -> dict[str, Any]:
    """Find for each model the magnitudes between which the share is that is kept."""
    least, largest = [], []
    both = zip(m.settings["density"], m.settings["gamma"], strict=True)
    for i, (share, top) in enumerate(both):
        kept = int(share * m.size)
        above = min(int(top * m.size), m.size - kept)
        if share >= 1 or not m.size:
            low, high = 0.0, np.inf
        elif not kept:
            low, high = np.inf, -1.0
        else:
            high, low = m.largest(_magnitude, [above + 1, above + kept], i)
        least.append(low)
        largest.append(high)
    measured = {
        "least": np.asarray(least, m.dtype), "largest": np.asarray(largest, m.dtype), **_thin(m),
    }  # fmt: skip
    return _rescaled(m, measured, _kept_middle)


def _at_random(m: Measuring) -> dict[str, Any]:
    return _rescaled(m, _thin(m), _kept_any)


def _by_rank(m: Measuring) -> dict[str, Any]:
    return _rescaled(m, _thin(m), _kept_by_rank)


def _rescaled(
    m: Measuring, measured: dict[str, Any], both: Callable[[Pieces], Array]
) -> dict[str, Any]:
    """Where asked, scale what is kept so that its sum of magnitudes is the delta's."""
    if not m.settings["rescale"]:
        return measured
    if m.settings["rescale"] == "density":
        share = np.asarray(m.settings["density"], m.dtype)
        return {**measured, "scale": np.where(share > 0, 1 / np.where(share > 0, share, 1), 1)}
    before, after = m.sums(both, measured)
    small = (before < 1e-7) | (after < 1e-7)
    scale = np.where(small, 1.0, before / np.where(small, 1.0, after))
    return {**measured, "scale": scale.astype(m.dtype)}


def _sizes_of(keep: Callable[[Pieces, int, Array], Array]) -> Callable[[Pieces], Array]:
    """Return a function that adds up magnitudes, of all and of what is kept: (runs, 2, models)."""

    def both(p: Pieces) -> Array:
        sizes = [abs(x) for x in p.deltas]
        kept = [snp.where(keep(p, i, x), abs(x), 0) for i, x in enumerate(p.deltas)]
        return snp.stack([snp.stack([_added_up(x) for x in of], -1) for of in (sizes, kept)], -2)

    return both


def _added_up(x: Array) -> Array:
    """Add up each run, or each row."""
    return in_runs(x) if x.ndim == 1 else snp.sum(x, axis=-1)


_kept_large, _kept_middle = _sizes_of(_keep_large), _sizes_of(_keep_middle)
_kept_any, _kept_by_rank = _sizes_of(_keep_any), _sizes_of(_keep_by_rank)


def _squares(p: Pieces) -> Array:
    return snp.stack([in_runs(x * x) for x in _chosen(p)], -1)


def _spread(p: Pieces) -> Array:
    deltas = p.deltas
    mean = sum_of(deltas) / len(deltas)
    return sum_of([(x - mean) ** 2 for x in deltas]) / len(deltas)


def _moving(p: Pieces) -> Array:
    return in_runs((_spread(p) != 0).astype(np.float32))[..., None]


def _chosen(p: Pieces) -> list[Array]:
    return [snp.where(_spread(p) >= p.measured, x, 0) for x in p.deltas]


def _sce_measures(m: Measuring) -> dict[str, Any]:
    """Find the least spread that is kept, and how large each model's deltas are there."""
    share = m.settings["select_topk"]
    least = 0.0
    if share < 1 and m.size:
        kept = int(float(m.sums(_moving)[0]) * share)
        least = m.largest(_spread, [kept], None)[0] if kept else np.inf
    squares = m.sums(_squares, np.asarray(least, m.dtype)) / max(m.size, 1)
    total = squares.sum()
    weights = squares / total if total >= 1e-6 else np.full(len(squares), 1 / len(squares))
    return {"least": np.asarray(least, m.dtype), "weight": weights.astype(m.dtype)}


def _ram_measures(m: Measuring) -> Any:
    """Return what elements that one model moved are multiplied by."""
    if "r" not in m.settings:
        return np.ones(len(m.models), m.dtype)
    shared, unique = m.sums(_contributions)
    rho = shared / np.maximum(unique, float(m.settings["epsilon"]))
    scale = 1 + float(m.settings["r"]) * np.clip(rho, 0, float(m.settings["alpha"]))
    return scale.astype(m.dtype)


def _contributions(p: Pieces) -> Array:
    moved = [(abs(x) > p.settings["epsilon"]).astype(np.float32) for x in p.deltas]
    count = sum_of(moved)
    shared = [in_runs(snp.where(count > 1, x, 0)) for x in moved]
    unique = [in_runs(snp.where(count == 1, x, 0)) for x in moved]
    return snp.stack([snp.stack(shared, -1), snp.stack(unique, -1)], -2)


def _quartiles(m: Measuring) -> Any:
    """Return the median of importance and one and a half times the distance of the quartiles."""
    places = [int(q * (m.size - 1)) for q in (0.25, 0.5, 0.75)]
    low, middle, high = m.largest(_importance, [m.size - p for p in places], None)
    return np.asarray(middle + 1.5 * (high - low), m.dtype)


def _on_arc(weights: Callable[[Measuring], np.ndarray]) -> Callable[[Measuring], Any]:
    """Return what measures the weights of a sum, the base's weight being what is left of 1."""

    def measure(m: Measuring) -> Any:
        found = weights(m)
        if m.base is not None:
            found = np.append(found, 1 - found.sum())
        return found.astype(m.dtype)

    return measure


def _share(m: Measuring) -> float:
    first, second = (float(w) for w in m.settings["weight"])
    return 0.5 if abs(first + second) < 1e-6 else second / (first + second)


def _stock_share(m: Measuring) -> Any:
    return np.asarray(arcs.stock(m.products()), m.dtype)


def _shares(m: Measuring) -> np.ndarray:
    weights = np.asarray(m.settings["weight"], np.float64)
    return weights / weights.sum() if m.settings["normalize_weights"] else weights


# The table


_WEIGHT = Setting("weight", each=True, words="of each model")
_NORMALIZE = Setting("normalize", True, kind=bool, words="whether to divide by the sum of weights")
_LAMBDA = Setting("lambda", 1.0, words="what the sum of deltas is multiplied by")
_DENSITY = Setting("density", 1.0, each=True, low=0, high=1, words="the share that is kept")


def _family(*extra: Setting, normalize: bool, rescale: bool) -> tuple[Setting, ...]:
    return (
        _WEIGHT, _DENSITY, _LAMBDA, _NORMALIZE._replace(default=normalize),
        Setting("rescale", rescale, kind=bool, words="whether what is kept gets the old L1 norm"),
        *extra,
    )  # fmt: skip


_GAMMA = Setting("gamma", 0.01, each=True, low=0, high=1, words="the share of the largest to drop")
_EPSILON = Setting("epsilon", 0.15, each=True, low=0, high=1, words="how far probabilities differ")
_EVEN = _WEIGHT._replace(default=1.0)
_SHARE = _EVEN._replace(low=0)
_DECOMPOSE = Setting(
    "decompose",
    True,
    kind=bool,
    words="whether a matrix is decomposed; its deltas are averaged otherwise",
)
_MOVED = Setting("epsilon", 1e-5, low=0, words="a smaller change counts as none")

_TABLE = [
    Method("linear", _linear, "Average the models by their weights.",
           (_EVEN, _NORMALIZE), "none", source="2203.05482"),
    Method("task_arithmetic", _sparse(_keep_all, elect=False), "Add the deltas to the base.",
           _family(normalize=False, rescale=False), measure=_thin, source="2212.04089"),
    Method("ties", _sparse(_keep_large, elect=True),
           "Keep the largest deltas, elect a sign, and average those that have it.",
           _family(normalize=True, rescale=False), measure=_thresholds, source="2306.01708"),
    Method("dare_linear", _sparse(_keep_any, elect=False), "Drop deltas at random, and add up.",
           _family(normalize=False, rescale=True), measure=_at_random, source="2311.03099"),
    Method("dare_ties", _sparse(_keep_any, elect=True),
           "Drop deltas at random, elect a sign, and add up those that have it.",
           _family(normalize=False, rescale=True), measure=_at_random, source="2311.03099"),
    Method("breadcrumbs", _sparse(_keep_middle, elect=False),
           "Drop the largest and the smallest deltas, and add up.",
           _family(_GAMMA, normalize=False, rescale=False), measure=_middles, source="2312.06795"),
    Method("breadcrumbs_ties", _sparse(_keep_middle, elect=True),
           "Drop the largest and the smallest deltas, elect a sign, and add up those that have it.",
           _family(_GAMMA, normalize=False, rescale=False), measure=_middles, source="2312.06795"),
    Method("della_linear", _sparse(_keep_by_rank, elect=False),
           "Drop deltas at random, small ones of a row more often, and add up.",
           _family(_EPSILON, normalize=False, rescale=True), measure=_by_rank,
           rows=lambda settings: True, source="2406.11617"),
    Method("della", _sparse(_keep_by_rank, elect=True),
           "Drop deltas at random, small ones of a row more often, elect a sign, and average.",
           _family(_EPSILON, normalize=True, rescale=True), measure=_by_rank,
           rows=lambda settings: True, source="2406.11617"),
    Method("slerp", _in_span, "Go along the arc from the base to the model.",
           (Setting("t", low=0, high=1, words="how far, from 0 to 1"),), "first", 2, 2,
           _on_arc(lambda m: arcs.slerp(m.products(), float(m.settings["t"])))),
    Method("nuslerp", _in_span, "Go along the arc between two models, or between their deltas.",
           (_WEIGHT,), "optional", 2, 2,
           _on_arc(lambda m: arcs.nuslerp(m.products(), _share(m)))),
    Method("multislerp", _in_span, "Average several models, or deltas, on a sphere.",
           (_WEIGHT, Setting("normalize_weights", True, kind=bool)), "optional", 1, None,
           _on_arc(lambda m: arcs.multislerp(m.products(), _shares(m)))),
    Method("karcher", _in_span, "Average the directions of the models on a sphere.",
           (Setting("max_iter", 10, kind=int, low=1), Setting("tol", 1e-5, low=0)), "none",
           measure=_on_arc(lambda m: arcs.karcher(
               m.products(), int(m.settings["max_iter"]), float(m.settings["tol"]))),
           source="2603.04972"),
    Method("model_stock", _stock, "Go from the base to the mean, as far as the models agree.",
           (), fewest=2, measure=_stock_share, source="2403.19522"),
    Method("fisher", _fisher, "Average the models, each element by how sure its model is of it.",
           (_SHARE, Setting("least", 1e-6, low=1e-30, words="smaller Fishers are raised to it")),
           "none", source="2111.09832",
           beside=Beside("fisher", "the diagonal of the Fisher information of each tensor")),
    Method("regmean", _mean, "Find the weights whose outputs are nearest to the models' own.",
           (_SHARE, Setting("alpha", 0.9, low=0, high=1, words="what is kept off the diagonals"),
            Setting("inputs_first", False, kind=bool, words="whether axis 0 is the inputs'")),
           "none", source="2212.09849", matrix=matrices.regression,
           beside=Beside("grams", "the Gram matrices of the inputs of weights", of_inputs=True)),
    Method("tsv", _mean_delta, "Add up leading singular vectors of the deltas, made orthogonal.",
           (_EVEN, _LAMBDA, _DECOMPOSE), source="2412.00081", matrix=matrices.singular_vectors),
    Method("iso", _mean_delta, "Add up the deltas, with all singular values made their mean.",
           (_EVEN, _LAMBDA, _DECOMPOSE), source="2502.04959", matrix=matrices.isotropic),
    Method("nearswap", _nearswap, "Move the base where the model is near.",
           (Setting("t", low=0, words="how far an element moves"),), most=1),
    Method("ram", _ram, "Average what several models moved, and keep what one did.",
           (_MOVED,), measure=_ram_measures, source="2601.13572"),
    Method("ramplus_tl", _ram,
           "Average what several models moved, and keep, enlarged, what one did.",
           (_MOVED, Setting("r", 0.1, low=0), Setting("alpha", 0.2, low=0)),
           measure=_ram_measures, source="2601.13572"),
    Method("sce", _sce, "Keep the deltas that differ most, weigh by energy, and elect a sign.",
           (Setting("select_topk", 1.0, low=0, high=1, words="the share that is kept"),),
           measure=_sce_measures, source="2408.07990"),
    Method("arcee_fusion", _fused, "Move the base where a change is far more important than most.",
           (), most=1, measure=_quartiles, rows=lambda settings: True),
    Method("passthrough", lambda p: p.models[0] * p.settings["scale"], "Take the one model.",
           (Setting("scale", 1.0, each=False, words="what its tensors are multiplied by"),),
           "none", most=1),
]  # fmt: skip

METHODS: dict[str, Method] = {each.name: each for each in _TABLE}
"""The methods by name."""


# Methods of users

F = TypeVar("F", bound=Callable[..., Any])


@overload
def method(function: F) -> F: ...
@overload
def method(function: None = None, *, name: str | None = None) -> Callable[[F], F]: ...
def method(function: Any = None, *, name: str | None = None) -> Any:
    """Make a function a method of merging, known to recipes by its name.

    Args:
        function: ``f(models, base, *, ...)`` or ``f(models, *, ...)``: from blocks of the models, a
            list of vectors, and of the base, to a block of the result. It is compiled. Its
            keyword-only arguments are settings: those annotated as ``merge.Each`` have a number for
            each model, others are one number, or a truth value where the default is one.
        name: by default the function's.

    Returns:
        The function.

    Raises:
        TypeError: the arguments are others.
        ValueError: there is a method of this name.

    >>> import stretto as st
    >>> @st.merge.method
    ... def halfway(models, base, *, far=0.5):
    ...     return base + far * (models[0] - base)
    >>> del st.merge.METHODS["halfway"]
    """
    if function is None:
        return lambda f: method(f, name=name)
    called = name or function.__name__
    if called in METHODS:
        raise ValueError(f"method: there is a method {called!r} already: give another name=")
    settings, positional = [], []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            positional.append(parameter.name)
            continue
        each = parameter.annotation in (Each, "Each", "merge.Each", "st.merge.Each")
        kind = bool if isinstance(parameter.default, bool) else float
        settings.append(Setting(parameter.name, parameter.default, each, kind))
    if positional not in (["models"], ["models", "base"]):
        raise TypeError(
            f"method: {called} must take (models) or (models, base), settings by keyword alone; "
            f"got ({', '.join(positional)})"
        )
    has_base = len(positional) == 2

    def combine(p: Pieces) -> Array:
        return function(p.models, *([p.base] if has_base else []), **p.settings)

    words = (inspect.getdoc(function) or "").partition("\n")[0]
    METHODS[called] = Method(
        called, combine, words, tuple(settings), "needed" if has_base else "none"
    )
    return function
