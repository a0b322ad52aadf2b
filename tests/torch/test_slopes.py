"""Derivatives at kinks, ties, bounds and poles are those of PyTorch, in float64."""

import math
import warnings

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

torch = pytest.importorskip("torch")
from torch.nn import functional as F  # noqa: E402

from tests.torch.beside_pytorch import Calls, weights  # noqa: E402

INF, NAN = math.inf, math.nan
ROWS = [[3.0, 1, 3, 3, 1], [2, 2, 2, 2, 2], [1, 2, 3, 3, 2]]
CONSTANT = [[1.0, 1, 1], [1, 2, 4]]
PLANE = [[[1.0, 1, 1, 1], [2, 2, 0, 0], [1, 1, 3, 3], [0, 0, 0, 0]]]
AROUND = [0.0, -0.0, 1, -1, 3, -3, 6, 0.5, -0.5, 2, 20, -20, INF, -INF]
TARGETS = torch.tensor([0.0, 1, 0, 1, 0.5], dtype=torch.float64)
SIGNS = torch.tensor([1.0, -1], dtype=torch.float64)
GROUPS = torch.tensor([0, 0, 1, 1])


def along(name):
    return lambda x: getattr(torch, name)(x, -1).values


def besides(name):
    return lambda x: x + getattr(torch, name)(x)


ACTIVATIONS = """relu relu6 hardtanh hardswish hardsigmoid leaky_relu elu celu selu softsign
tanhshrink hardshrink softshrink logsigmoid softplus gelu silu mish rrelu"""
ROOTS = "square sqrt rsqrt log log2 log10 reciprocal exp2 expm1 erfinv lgamma i0"

POINTS = {}
"""By name a function, and the lists of numbers that it is called with."""


def point(name, function, *xs):
    assert name not in POINTS
    POINTS[name] = function, xs


for c in (0, 1, 2, 3):
    point(f"std, correction {c}", lambda x, c=c: x.std(-1, correction=c), CONSTANT)
    point(f"var, correction {c}", lambda x, c=c: x.var(-1, correction=c), CONSTANT)
point("std of all", torch.std, [[2.0, 2], [2, 2]])
point("std, biased", lambda x: x.std(0, False), [[2.0, 2], [2, 3], [2, 4]])
point("std_mean", lambda x: torch.std_mean(x, -1)[0], [[2.0, 2], [2, 3]])
point("std over two axes", lambda x: x.std((0, 1)), [[1.0, 1], [1, 1]])
point("std of one", lambda x: x.std(-1), [[2.0], [3]])
point("std of one, biased", lambda x: x.std(-1, correction=0), [[2.0], [3]])
point("var of one", lambda x: x.var(-1), [[2.0], [3]])

for p in (0, 0.5, 1, 1.5, 2, 3, INF, -INF, -1):
    norm = lambda x, p=p: torch.linalg.vector_norm(x, p, -1)
    point(f"{p}-norm at 0", norm, [[0.0, 0, 0], [1, 0, -2]])
    point(f"{p}-norm of equal", norm, [[1.0, -1, 1], [2, 2, 1]])
    point(f"x.norm {p}", lambda x, p=p: x.norm(p, -1), [[0.0, 0, 0], [1, -1, 1]])
    if p:
        distance = lambda x, y, p=p: torch.dist(x, y, p)
        point(f"{p}-distance", distance, [1.0, 2, 3], [1.0, 2, 4])
        point(f"{p}-distance of equal", distance, [1.0, 2, 3], [1.0, 2, 3])
    if p >= 0:
        rows = [[1.0, 2], [3, 4], [0, 1]], [[1.0, 2], [3, 5]]
        point(f"cdist {p}", lambda x, y, p=p: torch.cdist(x, y, p), *rows)
        point(f"pdist {p}", lambda x, p=p: F.pdist(x, p), [[1.0, 2], [1, 2], [3, 4], [0, 3]])
    if p > 0:
        rows = [[1.0, 2], [3, 4]], [[1.0, 2], [3, 5]]
        point(f"pairwise {p}", lambda x, y, p=p: F.pairwise_distance(x, y, p), *rows)
        point(f"normalize {p}", lambda x, p=p: F.normalize(x, p), [[0.0, 0], [3, 3]])
point("matrix norm", torch.linalg.norm, [[0.0, 0], [0, 0]])
point("matrix norm 1", lambda x: torch.linalg.matrix_norm(x, 1), [[1.0, -1], [1, 1]])
point("cosines", F.cosine_similarity, [[0.0, 0], [1, 1]], [[1.0, 0], [1, 1]])
point("renorm", lambda x: torch.renorm(x, 2, 0, 1.0), [[3.0, 4], [0.3, 0.4], [0, 0]])

for name in ("remainder", "fmod"):
    f = getattr(torch, name)
    point(name, f, [4.0, -4, 5, -5, 6, 0], [2.0, 2, 2, 2, -3, 3])
    point(f"{name} by a number", lambda x, f=f: f(x, 2.0), [4.0, -4, 5, -5, 0])
for name in ("round", "floor", "ceil", "trunc", "sign", "sgn", "frac"):
    point(name, besides(name), [1.0, 0.5, 0, -1])
for mode in ("floor", "trunc"):
    divided = lambda x, y, m=mode: x + torch.div(x, y, rounding_mode=m)
    point(f"div, {mode}", divided, [4.0, 5], [2.0, 2])

for name in ("cummax", "cummin"):
    point(name, along(name), ROWS)
    point(f"{name} of NaN", along(name), [[1.0, NAN, 3, NAN]])
for name in ("max", "min", "median", "nanmedian", "mode", "sort"):
    point(f"{name} along", along(name), ROWS)
for name in ("max", "min", "median", "nanmedian", "amax", "amin"):
    point(f"{name} of all", getattr(torch, name), ROWS)
point("median of NaN", torch.median, [1.0, NAN, 2, NAN])
point("median of an even number", lambda x: torch.median(x, -1).values, [[1.0, 3, 1, 3]])
point("nanmedian of NaN", lambda x: torch.nanmedian(x, -1).values, [[1.0, NAN, 1, 2]])
point("sort, descending", lambda x: torch.sort(x, -1, descending=True).values, ROWS)
point("sort, stable", lambda x: torch.sort(x, dim=-1, descending=True, stable=True).values, ROWS)
point("msort", torch.msort, ROWS)
point("topk of others", lambda x: torch.topk(x, 2).values, [[3.0, 1, 2, 0]])
point("kthvalue of others", lambda x: torch.kthvalue(x, 2).values, [[3.0, 1, 2, 0]])
point("amax along", lambda x: x.amax(-1), ROWS)
point("amin along two", lambda x: x.amin((0, 1)), ROWS)
point("aminmax", lambda x: sum(torch.aminmax(x, dim=-1)), ROWS)
point("quantile", lambda x: torch.quantile(x, 0.5, -1), ROWS)
point("nanquantile", lambda x: torch.nanquantile(x, 0.5, -1), [[1.0, NAN, 1, 2]])
for name in ("maximum", "minimum", "fmax", "fmin", "max", "min"):
    point(f"{name} of two", getattr(torch, name), [1.0, 2, 0, -0.0], [1.0, 1, -0.0, 0])
for name in ("fmax", "fmin"):
    point(f"{name} of NaN", getattr(torch, name), [1.0, NAN, NAN], [NAN, 1, NAN])

for name in ACTIVATIONS.split():
    point(name, getattr(F, name), AROUND)
point("threshold", lambda x: F.threshold(x, 1.0, 20.0), AROUND)
point("elu of 2", lambda x: F.elu(x, 2.0), AROUND)
point("celu of 2", lambda x: F.celu(x, 2.0), AROUND)
point("leaky_relu, negative", lambda x: F.leaky_relu(x, -0.5), [0.0, 1, -1])
point("prelu", F.prelu, [[0.0, -0.0], [1, -1]], [0.25])
point("prelu of channels", F.prelu, [[0.0, -0.0], [1, -1]], [0.25, 0.5])
point("softplus at its threshold", lambda x: F.softplus(x, 2.0, 10.0), [5.0, 5.1, 4.9])
point("abs", torch.abs, AROUND)
point("clamp", lambda x: x.clamp(-1, 1), [-1.0, 1, 0, 2, -2, NAN])
bounds = [-1.0, 1, 0, 2, -2, 0], [-1.0, -1, -1, -1, -1, 1], [1.0, 1, 1, 1, 1, -1]
point("clamp by tensors", torch.clamp, *bounds)
point("clamp_min", lambda x: x.clamp_min(1), [1.0, 0, 2, NAN])
point("clamp_max", lambda x: x.clamp_max(1), [1.0, 0, 2, NAN])
point("clamp from a tensor", lambda x, a: torch.clamp(x, min=a), [1.0, 0, 2], [1.0, 1, 1])
point("clamp to a tensor", lambda x, a: torch.clamp(x, max=a), [1.0, 0, 2], [1.0, 1, 1])
point("where", lambda x, y: torch.where(x > y, x, y), [1.0, 2, 0], [1.0, 1, 3])
point("nan_to_num", torch.nan_to_num, [NAN, INF, -INF, 1, 0])
point("copysign", torch.copysign, [0.0, 1, -1, -0.0], [1.0, -1, 0, -0.0])

point("sinc", torch.sinc, [0.0, 1, -1, 0.5, 2])
for x in ([0.0, 2, 3], [0.0, 0, 3], [1.0, 2, 3]):
    point(f"prod of {x}", torch.prod, x)
point("prod along", lambda x: x.prod(-1), [[0.0, 2, 3], [0, 0, 3], [1, 2, 3]])
zeros = [[0.0, 2, 3], [2, 0, 3], [0, 0, 3], [1, 2, 3], [2, 0, 0]]
point("cumprod", lambda x: x.cumprod(-1), zeros)
point("pow", torch.pow, [0.0, 0, 0, 2, -2, -2, 1, 0], [0.0, 1, 2, 0, 2, 3, 0, 0.5])
point("pow of negative numbers", torch.pow, [-2.0, 2, 4], [0.5, -1, -0.5])
for e in (0, 1, 2, 0.5, -1, 3, 1.5):
    point(f"pow {e}", lambda x, e=e: x**e, [0.0, 1, 2])
for b in (0.0, 1.0, 2.0):
    point(f"{b} to the power", lambda x, b=b: b**x, [0.0, 1, 2])
for name in ROOTS.split():
    point(name, getattr(torch, name), [0.0, 1])
for name in ("asin", "acos", "atanh", "log1p"):
    point(name, getattr(torch, name), [1.0, -1, 0])
point("acosh", torch.acosh, [1.0, 2])
point("division by 0", lambda x, y: x / y, [0.0, 1], [0.0, 0])
point("atan2", torch.atan2, [0.0, 0, 1, -0.0, 0], [0.0, -1, 0, -1, 1])
point("hypot", torch.hypot, [3.0, 0], [4.0, 2])
point("xlogy", torch.xlogy, [1.0, 0, 2], [1.0, 2, 2])
point("xlog1py", torch.special.xlog1py, [0.0, 1], [1.0, 1])
point("entr", torch.special.entr, [0.0, 1, -1, 0.5])
point("logit", torch.logit, [0.0, 1, 0.5])
point("logit with bounds", lambda x: torch.logit(x, 0.1), [0.1, 0.9, 0, 1, 0.5])
point("i0e", torch.special.i0e, [0.0, 1, -1])
point("i1e", torch.special.i1e, [0.0, 1, -1])
point("logaddexp", torch.logaddexp, [0.0, 1, -INF], [0.0, -INF, 0])
point("logsumexp", lambda x: x.logsumexp(-1), [[-INF, 0.0], [0, 0], [INF, 0]])
point("logcumsumexp", lambda x: x.logcumsumexp(-1), [[0.0, 0, -INF]])
infinite = [[-INF, -INF], [-INF, 0], [0, 0]]
point("softmax", lambda x: x.softmax(-1), infinite)
point("log_softmax", lambda x: x.log_softmax(-1), infinite)
point("masked softmax", lambda x: x.masked_fill(x < 1, -INF).softmax(-1), [[0.0, 0], [1, 2]])
mask = torch.tensor([[False, False], [True, True]])
masked = lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=mask)
point("attention to nothing", masked, [[[1.0, 2], [3, 4]]])
point("complex abs", lambda x: torch.complex(x, x).abs(), [0.0, 1])
point("complex angle", lambda x: torch.complex(x, x).angle(), [0.0, 1])
point("complex sgn", lambda x: torch.view_as_real(torch.sgn(torch.complex(x, x))), [0.0, 1])
point("angle", lambda x: x + torch.angle(x), [0.0, 1, -1])

for name in ("huber_loss", "smooth_l1_loss", "l1_loss"):
    f = getattr(F, name)
    point(name, lambda x, y, f=f: f(x, y, reduction="none"), [0.0, 1, -1, 2, 0.5], [0.0] * 5)
beta = lambda x, b: F.smooth_l1_loss(x, 0 * x, beta=b, reduction="none")
point("smooth_l1_loss, beta 0", lambda x: beta(x, 0.0), [0.0, 1, -1])
point("smooth_l1_loss, beta 2", lambda x: beta(x, 2.0), [0.0, 2, -2])
point("hinge", lambda x: F.hinge_embedding_loss(x, SIGNS), [1.0, 1])
ranking = lambda x, y, m: F.margin_ranking_loss(x, y, SIGNS, margin=m)
point("ranking", lambda x, y: ranking(x, y, 1.0), [1.0, 1], [0.0, 2])
point("ranking without margin", lambda x, y: ranking(x, y, 0.0), [1.0, 1], [1.0, 1])
classes = torch.tensor([[0, -1, 1], [2, 1, -1]])
point("margins", lambda x: F.multilabel_margin_loss(x, classes), [[1.0, 0, 2], [1, 2, 1]])
point("triplets", F.triplet_margin_loss, [[0.0, 0]], [[0.0, 1]], [[0.0, 2]])
cosines = lambda x, y: F.cosine_embedding_loss(x, y, SIGNS)
point("cosine embedding", cosines, [[1.0, 0], [1, 0]], [[1.0, 0], [0, 1]])
entropies = lambda x: F.binary_cross_entropy(x, TARGETS, reduction="none")
point("binary cross entropy", entropies, [0.0, 0, 1, 1, 0.5])
by_target = lambda x, y: F.binary_cross_entropy(x, y, reduction="mean")
point("binary cross entropy by targets", by_target, [0.2, 0.5, 0, 1], [0.5, 1, 0.5, 0.5])
logits = F.binary_cross_entropy_with_logits
point("with logits", logits, [0.0, 1, -1], [0.0, 1, 0.5])
point("soft margins", lambda x: F.soft_margin_loss(x, SIGNS), [0.0, 0])

point("max_pool2d", lambda x: F.max_pool2d(x, 2), PLANE)
point("max_pool2d, overlapping", lambda x: F.max_pool2d(x, 3, 1, 1), PLANE)
point("max_pool2d with indices", lambda x: F.max_pool2d(x, 2, return_indices=True)[0], PLANE)
point("max_pool1d", lambda x: F.max_pool1d(x, 2), PLANE[0])
point("max_pool1d of -inf", lambda x: F.max_pool1d(x, 2), [[-INF, -INF, 1.0, 1]])
point("max_pool3d", lambda x: F.max_pool3d(x, 2), [[PLANE[0], PLANE[0]]])
point("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, 2), PLANE)
point("adaptive_max_pool1d", lambda x: F.adaptive_max_pool1d(x, 3), PLANE[0])
for p in (1, 2, 3):
    point(f"lp_pool1d {p}", lambda x, p=p: F.lp_pool1d(x, p, 2), [[0.0, 0, 1, 1]])
for mode in ("nearest", "nearest-exact", "area", "bilinear", "bicubic"):
    for size in ((3, 6), (2, 3)):
        resized = lambda x, m=mode, s=size: F.interpolate(x, s, mode=m)
        point(f"{mode} {size}", resized, [PLANE])

GRID = [
    [[-1.0, -1], [1, 1], [0, 0]],
    [[-1.5, 0.5], [1.25, -1.25], [0.3333, 0.75]],
    [[-0.75, -0.75], [0.75, 0.75], [2, -2]],
    [[0.25, 0.25], [-1.25, 1], [1, -1]],
]
PIXELS = [[[[1.0, 2, 3, 4], [5, 7, 6, 8], [9, 1, 2, 4], [3, 1, 7, 2]]]]
for mode in ("bilinear", "nearest", "bicubic"):
    for padding in ("zeros", "border", "reflection"):
        for corners in (False, True):
            sampled = lambda *xs, h=(mode, padding, corners): F.grid_sample(*xs, *h)
            point(f"grid_sample {mode} {padding} {corners}", sampled, PIXELS, [GRID])

for how in ("amax", "amin", "prod", "mean", "sum"):
    reduced = lambda x, y, h=how: torch.scatter_reduce(x, 0, GROUPS, y, h)
    point(f"scatter {how}", reduced, [1.0, 5, 2], [1.0, 1, 3, 3])
    point(f"scatter {how} of zeros", reduced, [1.0, 5, 2], [0.0, 2, 0, 0])
reduced = lambda x, y: torch.index_reduce(x, 0, GROUPS, y, "amax")
point("index_reduce", reduced, [1.0, 5, 2], [1.0, 1, 3, 3])
point("layer_norm", lambda x: F.layer_norm(x, (3,)), [[1.0, 1, 1], [1, 2, 3]])
point("group_norm", lambda x: F.group_norm(x, 2), [[[1.0, 1, 1], [1, 2, 3]]])
point("instance_norm", F.instance_norm, [[[1.0, 1, 1], [1, 2, 3]]])
point("rms_norm", lambda x: F.rms_norm(x, (3,)), [[0.0, 0, 0], [1, 2, 3]])
point("corner of a matrix", torch.linalg.det, [[1.0, 2], [3, 4]])

OTHERWISE = {}
"""Points where derivatives differ from PyTorch's on purpose, with ours; the page lists them."""


def otherwise(name, function, xs, ours):
    point(name, function, *xs)
    OTHERWISE[name] = ours


last = lambda x: torch.where(x > 0, x.log(), x)
otherwise("a branch that is not taken", last, ([1.0, 0],), [[1, 1]])
otherwise("hypot at 0", torch.hypot, ([0.0], [0.0]), [[0], [0]])
otherwise("xlogy at 0 of 0", torch.xlogy, ([0.0], [0.0]), [[0], [0]])
nothing = lambda x: x.logsumexp(-1)
otherwise("logsumexp of nothing", nothing, ([[-INF, -INF]],), [[[0, 0]]])
otherwise("det of rank 1", torch.linalg.det, ([[1.0, 2], [2, 4]],), [[[4, -2], [-2, 1]]])
polar = lambda r: torch.polar(r, 0 * r).real
otherwise("polar at 0", polar, ([0.0],), [[1]])
least = lambda x, y: torch.scatter_reduce(x, 0, GROUPS, y, "amin", include_self=False)
otherwise("scatter without itself", least, ([1.0, 5], [1.0, 1, 3, 3]), [[0, 0], [0.5] * 4])
otherwise("maximum of NaN", torch.maximum, ([1.0, NAN], [NAN, 1.0]), [[0, 0], [0, 0]])


@pytest.fixture(scope="module")
def found():
    """By name the value and the slopes here, and PyTorch's: all functions are one module."""
    theirs, arrays, values = {}, [], []
    for name, (function, xs) in POINTS.items():
        leaves = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in xs]
        with warnings.catch_warnings(action="ignore"):  # PyTorch's, of deviations of one number
            value = function(*leaves)
        scale = torch.ones(()) if name in OTHERWISE else torch.from_numpy(weights(value.shape))
        slopes = torch.autograd.grad((value * scale).sum(), leaves, allow_unused=True)
        zeros = [np.zeros(x.shape) for x in leaves]
        slopes = [z if s is None else s.numpy() for s, z in zip(slopes, zeros, strict=True)]
        theirs[name] = value.detach().numpy(), slopes
        arrays.append([x.detach() for x in leaves])
        values.append(scale.numpy())

    def every(nested):
        return [f(*xs) for (f, _), xs in zip(POINTS.values(), nested, strict=True)]

    with st.config(enable_x64=True), torch.no_grad():
        module = st.from_torch(Calls(every), (arrays,), dynamic_batch=False)
        given = [[snp.asarray(x.numpy()) for x in xs] for xs in arrays]

        def total(given):
            results = module(given)
            scaled = [(x * w).sum() for x, w in zip(results, values, strict=True)]
            return sum(scaled[1:], scaled[0]), results

        slopes, results = st.grad(total, has_aux=True)(given)
    return {
        name: (np.asarray(value), [np.asarray(g) for g in of], theirs[name])
        for name, value, of in zip(POINTS, results, slopes, strict=True)
    }


@pytest.mark.parametrize("name", [name for name in POINTS if name not in OTHERWISE])
def test_points(found, name):
    value, slopes, (their_value, their_slopes) = found[name]
    np.testing.assert_allclose(value, their_value, rtol=1e-9, atol=1e-12)
    for ours, theirs in zip(slopes, their_slopes, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", OTHERWISE)
def test_points_that_differ_on_purpose(found, name):
    value, slopes, (their_value, their_slopes) = found[name]
    np.testing.assert_allclose(value, their_value, rtol=1e-9, atol=1e-12)
    for ours, wanted in zip(slopes, OTHERWISE[name], strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-9, atol=1e-12)
    same = [np.allclose(x, y, equal_nan=True) for x, y in zip(slopes, their_slopes, strict=True)]
    assert not all(same)
