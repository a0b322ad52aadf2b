"""Entries of the operations of `lax` that are written with others, and of bits and precision."""

import math

import numpy as np

import stretto.lax as lax
from tests.functions.table import call, entry, given, without_entry, x

KINDS = "f32 i8 bool c64 f64"

entry(
    "lax.clz",
    lambda v: np.asarray([32 - (int(n) & 0xFFFFFFFF).bit_length() for n in v], v.dtype),
    [call(given([0, 1, -1, 77, -5], "i32")), call(x(0, dtype="i32"))],
)
entry(
    "lax.mulhi",
    lambda a, b: (a.astype(np.int64) * b >> 32).astype(a.dtype),
    [call(given([2**31 - 1, -7, -(2**31)], "i32"), given([4, 2**30, -(2**31)], "i32"))],
)
entry(
    "lax.reduce_precision",
    lambda v, e, m: v.astype(np.float16).astype(v.dtype) if e == 5 else v,
    [call(x(2, 3), 5, 10), call(given([1e6, 1e-9, 0.1], "f32"), 5, 10), call(x(2), 11, 52)],
    "f32 f64",
    undifferentiated="it is a staircase whose derivative is taken to be that of the identity",
)

# Made, repeated, reshaped, read

entry("lax.full", np.full, [call((2, 3), x(), np.float32), call((0,), x())], KINDS)
entry("lax.full_like", np.full_like, [call(x(2, 3), 7), call(x(2), 1, np.int8)], KINDS)
entry("lax.empty", np.zeros, [call((2, 3), np.float32), call((), np.int8)])
entry("lax.shape_as_value", lambda s: np.asarray(s, np.int32), [call((2, 3)), call(())])
entry("lax.stage", np.asarray, [call(x(2)), call(3.0)])
without_entry("tests/lax/test_arrays.py: it gives a dtype", "lax.dtype")
entry(
    "lax.broadcast",
    lambda v, sizes: np.broadcast_to(v, (*sizes, *v.shape)),
    [call(x(3), (2, 4)), call(x(), (2,)), call(x(2, 0), ())],
    KINDS,
)
entry(
    "lax.broadcast_like",
    lambda v, w: np.broadcast_to(v, w.shape),
    [call(x(3), x(2, 3)), call(x(), x(2)), call(x(2, 1), x(2, 0))],
    KINDS,
)
entry(
    "lax.broadcast_to_rank",
    lambda v, n: v.reshape((1,) * (n - v.ndim) + v.shape),
    [call(x(2, 3), 4), call(x(), 1), call(x(2), 1)],
    KINDS,
)


def collapse(v, start, stop=None):
    start, stop, _ = slice(start, stop).indices(v.ndim)
    return v.reshape((*v.shape[:start], math.prod(v.shape[start:stop]), *v.shape[stop:]))


entry(
    "lax.collapse",
    collapse,
    [call(x(2, 3, 4), *a) for a in ((1,), (0, 2), (-2,), (1, 1), (0, 3))],
    KINDS,
)
entry("lax.tile", np.tile, [call(x(2, 3), (2, 1)), call(x(2), (0,)), call(x(), ())], KINDS)
entry("lax.stack", np.stack, [call([x(2, 3), x(2, 3)], 1), call([x()], 0), call([x(0)] * 2)], KINDS)
entry(
    "lax.unstack",
    lambda v, axis=0: [np.take(v, i, axis) for i in range(v.shape[axis])],
    [call(x(2, 3)), call(x(2, 3), -1)],
    KINDS,
)
entry(
    "lax.index_in_dim",
    lambda v, i, axis=0, keepdims=True: np.take(v, [i] if keepdims else i, axis),
    [call(x(3, 4), 1), call(x(3, 4), -1, 1, keepdims=False)],
    KINDS,
)
PLACES = [given([2, 0, 1, -1], "i32"), given([1, 0, 3, 2], "i32")]
entry(
    "lax.index_take",
    lambda v, idxs, axes: (
        v[tuple(idxs[axes.index(d)] if d in axes else slice(None) for d in (0, 1))]
        if axes == (0, 1)
        else v[idxs[0]]
    ),
    [call(x(3, 4, 2), PLACES, (0, 1)), call(x(3, 4), PLACES[:1], (0,))],
    KINDS,
)
entry(
    "lax.select_n",
    lambda which, *cases: np.choose(which.astype(int), cases, mode="clip"),
    [
        call(given([[0, 3, 1], [2, 9, -1]], "i32"), *[x(2, 3)] * 4),
        call(given([True, False], "bool"), x(2), x(2)),
        call(given(1, "i32"), x(2), x(2)),
    ],
    "f32 i8 f64",
)
entry(
    "lax.argsort",
    lambda v, axis=-1: np.argsort(v, axis, kind="stable"),
    [call(x(5)), call(x(4, 2), 0)],
    "f32 i8 f64",
)
entry(
    "lax.sort_key_val",
    lambda k, v, d=-1: tuple(np.take_along_axis(a, np.argsort(k, d, "stable"), d) for a in (k, v)),
    [call(x(5), x(5)), call(x(4, 2), x(4, 2), 0)],
    "f32 i8 f64",
)
entry(
    "lax.approx_max_k",
    lambda v, k, d=-1: [
        f(a, k, d)
        for a in [np.argsort(-v, d, "stable")]
        for f in (lambda a, k, d: np.take_along_axis(v, np.take(a, range(k), d), d),
                  lambda a, k, d: np.take(a, range(k), d).astype(np.int32))
    ],
    [call(x(6), 2), call(x(5, 3), 2, 0)],
    "f32 f64",
)  # fmt: skip
entry(
    "lax.approx_min_k",
    lambda v, k, d=-1: [
        f(a, k, d)
        for a in [np.argsort(v, d, "stable")]
        for f in (lambda a, k, d: np.take_along_axis(v, np.take(a, range(k), d), d),
                  lambda a, k, d: np.take(a, range(k), d).astype(np.int32))
    ],
    [call(x(6), 2), call(x(5, 3), 2, 0)],
    "f32 f64",
)  # fmt: skip


def scatter_apply(v, places, func, numbers, update_shape):
    v = v.copy()
    for (place,) in places:
        v[place] = func(v[place])
    return v


entry(
    "lax.scatter_apply",
    scatter_apply,
    [
        call(
            x(4, 2),
            given([[1], [3], [3]], "i32"),
            lambda v: v * v + 1,
            lax.ScatterDimensionNumbers((1,), (0,), (0,)),
            update_shape=(3, 2),
        )
    ],
    "f32 f64",
)

# Products

entry(
    "lax.batch_matmul", np.matmul, [call(x(2, 3, 4), x(2, 4, 2)), call(x(2, 3), x(3, 0))], "f32 f64"
)


def ragged_dot(v, w, sizes):
    group = np.repeat(np.arange(len(sizes)), sizes)
    out = np.zeros((v.shape[0], w.shape[2]), v.dtype)
    for row, g in enumerate(group):
        out[row] = v[row] @ w[g]
    return out


SIZES = given([2, 0, 3], "i32")
entry("lax.ragged_dot", ragged_dot, [call(x(6, 2), x(3, 2, 4), SIZES)], "f32 f64")


def ragged_sums(v, w, sizes, numbers):
    ends = np.cumsum(sizes)
    return np.stack([v[e - n : e].T @ w[e - n : e] for e, n in zip(ends, sizes)])


SUMMED = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
entry("lax.ragged_dot_general", ragged_sums, [call(x(6, 2), x(6, 3), SIZES, SUMMED)], "f32 f64")
entry(
    "lax.scaled_dot",
    lambda v, w, lhs_scale, rhs_scale, preferred_element_type: (
        (v * np.repeat(lhs_scale, 2, 1)) @ (w * np.repeat(rhs_scale, 4, 0))
    ),
    [
        call(
            x(3, 4),
            x(4, 2),
            lhs_scale=x(3, 2),
            rhs_scale=x(1, 2),
            preferred_element_type=np.float32,
        )
    ],
    "f32",
)

# Windows


def windows(v, shape):
    view = np.lib.stride_tricks.sliding_window_view(v, shape, (2, 3))
    n, c, a, b, *_ = view.shape
    return view.transpose(0, 1, 4, 5, 2, 3).reshape(n, c * math.prod(shape), a, b)


entry(
    "lax.conv_general_dilated_patches",
    lambda v, shape, strides, padding: windows(v, shape)[..., :: strides[0], :: strides[1]],
    [call(x(2, 2, 3, 4), (2, 2), (1, 2), "VALID"), call(x(1, 1, 4, 4), (1, 3), (2, 1), "VALID")],
    "f32 i8 f64",
)
entry(
    "lax.conv_general_dilated_local",
    lambda v, w, strides, padding, shape: np.einsum("niab,oiab->noab", windows(v, shape), w),
    [call(x(2, 2, 3, 4), x(3, 8, 2, 3), (1, 1), "VALID", (2, 2))],
    "f32 f64",
)
SHAPES = "shapes, which tests/lax/test_arrays.py and tests/lax/test_convolutions.py show"
without_entry(
    SHAPES,
    "lax.broadcast_shapes",
    "lax.padtype_to_pads",
    "lax.conv_general_permutations",
    "lax.conv_general_shape_tuple",
    "lax.conv_shape_tuple",
    "lax.conv_transpose_shape_tuple",
    "lax.reduce_window_shape_tuple",
)
without_entry("types, not functions", "lax.DotDimensionNumbers")
without_entry(
    "tests/_engine/ops/test_random_bits_rng_bit_generator.py: bits", "lax.rng_bit_generator"
)
without_entry("tests/_engine/ops/test_layout_sharding.py", "lax.with_sharding_constraint")
without_entry(
    "tests/lax/test_platforms.py",
    "lax.after_all",
    "lax.composite",
    "lax.create_token",
    "lax.dce_sink",
    "lax.pbroadcast",
    "lax.pcast",
    "lax.platform_dependent",
    "lax.precv",
    "lax.psend",
    "lax.ragged_all_to_all",
    "lax.rng_uniform",
)
