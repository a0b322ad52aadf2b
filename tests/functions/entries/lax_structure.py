"""Entries of the operations of `lax` on whole arrays: shapes, reductions, slices, products."""

import numpy as np
from scipy import signal

from tests.functions.table import call, entry, given, without_entry, x

KINDS = "f32 i8 bool c64 f64"
NUMBERS = "f32 f64 i32 c64"


def broadcast_in_dim(v, shape, dims):
    place = [1] * len(shape)
    for d, n in zip(dims, v.shape):
        place[d] = n
    return np.broadcast_to(v.reshape(place), shape)


entry(
    "lax.broadcast_in_dim",
    broadcast_in_dim,
    [call(x(3), (2, 3), (1,)), call(x(3), (3, 2), (0,)), call(x(), (2, 0), ())],
    KINDS,
)
entry(
    "lax.reshape", np.reshape, [call(x(2, 3), (3, 2)), call(x(), (1,)), call(x(0, 3), (0,))], KINDS
)
entry("lax.expand_dims", np.expand_dims, [call(x(2, 3), (0,)), call(x(2), (0, 2))], KINDS)
entry(
    "lax.squeeze",
    lambda v, d: np.squeeze(v, tuple(d)),
    [call(x(1, 2, 1), (0,)), call(x(1, 2, 1), (0, 2))],
    KINDS,
)
entry("lax.transpose", np.transpose, [call(x(2, 3, 1), (2, 0, 1)), call(x(0, 2), (1, 0))], KINDS)
entry("lax.rev", np.flip, [call(x(2, 3), (0,)), call(x(2, 3), (0, 1)), call(x(2), ())], KINDS)
entry(
    "lax.concatenate",
    np.concatenate,
    [call([x(2, 3), x(1, 3)], 0), call([x(2, 1), x(2, 0)], 1)],
    KINDS,
)
entry(
    "lax.split",
    lambda v, sizes, axis=0: np.split(v, np.cumsum(sizes)[:-1], axis),
    [call(x(5, 2), (2, 3)), call(x(2, 5), (1, 0, 4), 1)],
    KINDS,
)


def pad(v, value, config):
    for axis, (low, high, inner) in enumerate(config):
        spaced = np.full(
            [*v.shape[:axis], max(0, v.shape[axis] * (inner + 1) - inner), *v.shape[axis + 1 :]],
            value,
        )
        spaced[(slice(None),) * axis + (slice(None, None, inner + 1),)] = v
        widths = [(0, 0)] * v.ndim
        widths[axis] = (max(low, 0), max(high, 0))
        v = np.pad(spaced, widths, constant_values=value)
        n = v.shape[axis]
        v = v[(slice(None),) * axis + (slice(max(-low, 0), n - max(-high, 0)),)]
    return v


entry(
    "lax.pad",
    pad,
    [
        call(x(2, 3), x(), ((1, 2, 0), (0, 0, 1))),
        call(x(4), x(), ((-1, 2, 1),)),
        call(x(0), x(), ((2, 1, 0),)),
    ],
    KINDS,
)
entry(
    "lax.slice",
    lambda v, a, b, s=None: v[tuple(map(slice, a, b, s or [1] * v.ndim))],
    [call(x(4, 5), (1, 0), (3, 5)), call(x(4, 5), (0, 1), (4, 5), (2, 3))],
    KINDS,
)
entry(
    "lax.slice_in_dim",
    lambda v, a, b, s=1, axis=0: np.moveaxis(np.moveaxis(v, axis, 0)[a:b:s], 0, axis),
    [call(x(4, 5), 1, 3), call(x(4, 5), 0, 5, 2, 1), call(x(4), None, -1)],
    KINDS,
)
for name, like in {"sum": np.sum, "prod": np.prod}.items():
    entry(
        f"lax.reduce_{name}",
        like,
        [call(x(2, 3), (0,)), call(x(2, 3), (0, 1)), call(x(0, 3), (0,)), call(x(2), ())],
        NUMBERS,
    )
for name, like in {"max": np.max, "min": np.min}.items():
    entry(f"lax.reduce_{name}", like, [call(x(2, 3), (0,)), call(x(2, 3), (0, 1))], "f32 f64 i32")
    entry(
        f"lax.arg{name}",
        lambda v, axis, dtype, name=name: getattr(np, f"arg{name}")(v, axis).astype(dtype),
        [call(x(2, 3), 0, np.int32), call(x(2, 3), 1, np.int32)],
        "f32 i32 bool",
    )
for name, like in {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}.items():
    entry(
        f"lax.reduce_{name}",
        lambda v, axes, like=like: like.reduce(v, tuple(axes)),
        [call(x(2, 3), (0,)), call(x(2, 3), (0, 1))],
        "i32 bool",
    )
for name, like in {
    "cumsum": np.add,
    "cumprod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
    "cumlogsumexp": np.logaddexp,
}.items():
    entry(
        f"lax.{name}",
        lambda v, axis=0, reverse=False, like=like: (
            np.flip(like.accumulate(np.flip(v, axis), axis), axis)
            if reverse
            else like.accumulate(v, axis)
        ),
        [call(x(4, 3)), call(x(4, 3), 1), call(x(4, 3), 0, True), call(x(0, 3), 1)],
        "f32 f64" if name == "cumlogsumexp" else "f32 f64 i32",
    )
entry("lax.iota", lambda t, n: np.arange(n, dtype=t), [call(np.int32, 4), call(np.float32, 0)])
entry(
    "lax.broadcasted_iota",
    lambda t, shape, d: np.indices(shape)[d].astype(t),
    [call(np.int32, (2, 3), 1), call(np.float32, (2, 3), 0)],
)


def sort(v, dimension=-1, is_stable=True, num_keys=1):
    if isinstance(v, np.ndarray):
        return np.sort(v, dimension, stable=True)
    order = np.lexsort(v[:num_keys][::-1], dimension)
    return tuple(np.take_along_axis(a, order, dimension) for a in v)


entry(
    "lax.sort",
    sort,
    [
        call(x(2, 3)),
        call(x(2, 3), 0),
        call((x(4), x(4))),
        call((x(4, 2), x(4, 2), x(4, 2)), 0, num_keys=2),
    ],
    "f32 f64 i8",
)
entry(
    "lax.top_k",
    lambda v, k: (-np.sort(-v)[..., :k], np.argsort(-v, stable=True)[..., :k]),
    [call(x(2, 5), 2), call(x(4), 4)],
    "f32 f64 i32",
)
START = given(1, "i32")
PAST = given(9, "i32")
entry(
    "lax.dynamic_slice",
    lambda v, s, n: v[
        tuple(slice(c := min(max(int(a), 0), m - k), c + k) for a, m, k in zip(s, v.shape, n))
    ],
    [call(x(4, 5), (START, START), (2, 3)), call(x(4), (PAST,), (2,))],
    KINDS,
)
entry(
    "lax.dynamic_slice_in_dim",
    lambda v, s, n, axis=0: np.take(v, range(int(s), int(s) + n), axis),
    [call(x(4, 5), START, 2), call(x(4, 5), START, 3, 1)],
    KINDS,
)
entry(
    "lax.dynamic_index_in_dim",
    lambda v, i, axis=0, keepdims=True: np.take(v, [int(i)] if keepdims else int(i), axis),
    [call(x(4, 5), START), call(x(4, 5), START, 1, False)],
    KINDS,
)


def updated(v, update, starts):
    out = np.array(v)
    places = [min(max(int(a), 0), m - k) for a, m, k in zip(starts, v.shape, update.shape)]
    out[tuple(slice(p, p + k) for p, k in zip(places, update.shape))] = update
    return out


def along(v, axis, start):
    return [start if d == axis else 0 for d in range(v.ndim)]


entry(
    "lax.dynamic_update_slice",
    updated,
    [call(x(4, 5), x(2, 3), (START, PAST)), call(x(4), x(2), (START,))],
    KINDS,
)
entry(
    "lax.dynamic_update_slice_in_dim",
    lambda v, u, s, axis: updated(v, u, along(v, axis, s)),
    [call(x(4, 5), x(2, 5), START, 0), call(x(4, 5), x(4, 2), START, 1)],
    KINDS,
)
entry(
    "lax.dynamic_update_index_in_dim",
    lambda v, u, i, axis: updated(v, np.expand_dims(u, axis), along(v, axis, i)),
    [call(x(4, 5), x(5), START, 0), call(x(4, 5), x(4), START, 1)],
    KINDS,
)

# products

entry("lax.dot", np.dot, [call(x(3), x(3)), call(x(2, 3), x(3, 4)), call(x(2, 3), x(3))], NUMBERS)
entry(
    "lax.dot_general",
    lambda a, b, numbers: np.einsum("bij,bkj->bik" if numbers[1][0] else "ij,kj->ik", a, b),
    [
        call(x(2, 3), x(4, 3), (((1,), (1,)), ((), ()))),
        call(x(5, 2, 3), x(5, 4, 3), (((2,), (2,)), ((0,), (0,)))),
    ],
    NUMBERS,
)


def valid(a, b):
    return np.stack(
        [
            [
                sum(signal.correlate(image, window, "valid") for image, window in zip(i, w))
                for w in b
            ]
            for i in a
        ]
    )


IMAGES = [call(x(2, 3, 5, 6), x(4, 3, 2, 3))]
strided = [call(*c.args, (1, 1), "VALID") for c in IMAGES]
entry("lax.conv", lambda a, b, *_: valid(a, b), strided, "f32 f64")
entry(
    "lax.conv_with_general_padding",
    lambda a, b, *_: valid(a, b),
    [call(*c.args, (1, 1), ((0, 0), (0, 0)), None, None) for c in IMAGES],
    "f32 f64",
)
entry(
    "lax.conv_general_dilated",
    lambda a, b, strides, padding: valid(np.pad(a, [(0, 0), (0, 0), *padding]), b)[
        ..., :: strides[0], :: strides[1]
    ],
    [call(*c.args, (2, 1), ((1, 0), (2, 2))) for c in IMAGES],
    "f32 f64",
)
entry(
    "lax.conv_transpose",
    lambda a, b, strides, _: signal.correlate(a[0, :, 0], b[:, 0, 0])[None, :, None],
    [call(x(1, 5, 1), x(3, 1, 1), (1,), [(2, 2)])],
    "f32 f64",
    tolerance=1,
)
entry(
    "lax.conv_dimension_numbers",
    None,
    [call((1, 2, 3), (4, 2, 3), ("NCH", "OIH", "NCH"))],
    unlike="it names axes; tests/_engine/ops/convolution/test_general.py",
    uncompiled="its result is no array",
)
entry(
    "lax.stop_gradient",
    lambda v: v,
    [call(x(2, 3))],
    KINDS,
    undifferentiated="its derivative is zero on purpose: test_stop_gradient.py",
)
entry("lax.optimization_barrier", lambda v: v, [call(x(2, 3)), call((x(), x(2)))], KINDS)
without_entry(
    "it takes functions, and has a file of tests in tests/control",
    "lax.associative_scan",
    "lax.cond",
    "lax.switch",
    "lax.custom_linear_solve",
    "lax.custom_root",
    "lax.linear_call",
    "lax.fori_loop",
    "lax.map",
    "lax.reduce",
    "lax.reduce_window",
    "lax.scan",
    "lax.while_loop",
)
without_entry(
    "it uses an axis by its name: tests/_engine/ops/collective/test_functions.py",
    "lax.all_gather",
    "lax.all_to_all",
    "lax.axis_index",
    "lax.axis_size",
    "lax.pmax",
    "lax.pmean",
    "lax.pmin",
    "lax.ppermute",
    "lax.pshuffle",
    "lax.psum",
    "lax.psum_scatter",
    "lax.pswapaxes",
)
without_entry(
    "its dimension numbers are many: tests/_engine/ops/index/test_gather_scatter.py, and the laws",
    "lax.gather",
    "lax.scatter",
    "lax.scatter_add",
    "lax.scatter_max",
    "lax.scatter_min",
    "lax.scatter_mul",
    "lax.scatter_sub",
)
