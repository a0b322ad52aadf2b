"""Operations of the table that move, combine, look up and sort elements."""

from __future__ import annotations

import math

from tests.property.programs import Var
from tests.property.writer import Skip, Writer, operation

__all__: list[str] = []


# Shapes.


@operation("transpose", 0.5)
def _transpose(w: Writer) -> None:
    v = w.inexact(fits=lambda v: v.ndim > 1)
    order = list(range(v.ndim))
    w.rng.shuffle(order)
    shape = tuple(v.shape[i] for i in order)
    w.emit(f"snp.transpose({{0}}, {tuple(order)})", [v], shape, v.low, v.high, v.kind)


@operation("reshape", 0.5)
def _reshape(w: Writer) -> None:
    v = w.inexact()
    shapes = [(v.size,), (1, v.size), (v.size, 1), tuple(reversed(v.shape))]
    shape = w.rng.choice(shapes)
    w.emit(f"snp.reshape({{0}}, {shape})", [v], shape, v.low, v.high, v.kind)


@operation("broadcast_to", 0.4)
def _broadcast_to(w: Writer) -> None:
    v = w.inexact()
    shape = w.small((w.rng.choice([1, 2, 3]), *v.shape))
    w.emit(f"snp.broadcast_to({{0}}, {shape})", [v], shape, v.low, v.high, v.kind)


@operation("flip", 0.3)
def _flip(w: Writer) -> None:
    v = w.inexact()
    text = f"snp.flip({{0}}, axis={w.axis(v)})"
    w.emit(text, [v], v.shape, v.low, v.high, v.kind)


@operation("roll", 0.2)
def _roll(w: Writer) -> None:
    v = w.inexact()
    text = f"snp.roll({{0}}, {w.rng.choice([-1, 1, 2])}, axis={w.axis(v)})"
    w.emit(text, [v], v.shape, v.low, v.high, v.kind)


@operation("slice", 0.6)
def _slice(w: Writer) -> None:
    v = w.inexact()
    axis = w.axis(v)
    n = v.shape[axis]
    index = w.rng.choice([slice(1, None), slice(None, None, 2), slice(None, None, -1), slice(0, 1)])
    count = len(range(n)[index])
    if not count:
        raise Skip
    parts = ["" if x is None else str(x) for x in (index.start, index.stop, index.step)]
    text = ":, " * axis + ":".join(parts)
    shape = (*v.shape[:axis], count, *v.shape[axis + 1 :])
    w.emit(f"{{0}}[{text}]", [v], shape, v.low, v.high, v.kind)


@operation("pad", 0.4)
def _pad(w: Writer) -> None:
    v = w.inexact(10, fits=lambda v: v.ndim > 0)
    value = w.float(-1, 1, fits=lambda v: not v.ndim) if v.kind == "float" else None
    config, shape = [], []
    for n in v.shape:
        low, high, inside = w.rng.choice([(0, 0, 0), (1, 0, 0), (0, 1, 1), (-1, 2, 0), (1, -1, 1)])
        config.append((low, high, inside))
        shape.append(low + high + n + inside * max(n - 1, 0))
    if min(shape) < 1:
        raise Skip
    b = max(v.bound, 1)
    operands = [v] if value is None else [v, value]
    text = f"lax.pad({{0}}, {'{1}' if value else '0'}, {config})"
    w.emit(text, operands, w.small(shape), -b, b, v.kind)


@operation("concatenate", 0.5)
def _concatenate(w: Writer) -> None:
    x = w.inexact()
    axis = w.axis(x)

    def matches(v: Var) -> bool:
        if (v.kind, v.ndim) != (x.kind, x.ndim):
            return False
        return all(a == b for i, (a, b) in enumerate(zip(v.shape, x.shape)) if i != axis)

    y = w.any_of(matches)
    shape = (*x.shape[:axis], x.shape[axis] + y.shape[axis], *x.shape[axis + 1 :])
    b = max(x.bound, y.bound)
    text = f"snp.concatenate([{{0}}, {{1}}], axis={axis})"
    w.emit(text, [x, y], w.small(shape), -b, b, x.kind)


@operation("stack", 0.4)
def _stack(w: Writer) -> None:
    x = w.inexact()
    y = w.any_of(lambda v: (v.kind, v.shape) == (x.kind, x.shape))
    axis = w.rng.randint(0, x.ndim)
    shape = (*x.shape[:axis], 2, *x.shape[axis:])
    b = max(x.bound, y.bound)
    text = f"snp.stack([{{0}}, {{1}}], axis={axis})"
    w.emit(text, [x, y], w.small(shape), -b, b, x.kind)


@operation("triangle", 0.2)
def _triangle(w: Writer) -> None:
    v = w.inexact(fits=lambda v: v.ndim > 1)
    b = v.bound
    w.emit(f"snp.{w.rng.choice(['tril', 'triu'])}({{0}})", [v], v.shape, -b, b, v.kind)


# Reductions.


def _reduced(w: Writer, v: Var) -> tuple[str, tuple[int, ...], int]:
    """How to say which axes are reduced, the shape then, and the number of elements of each sum."""
    axes = [i for i in range(v.ndim) if w.rng.random() < 0.6]
    shape = tuple(n for i, n in enumerate(v.shape) if i not in axes)
    many = math.prod(v.shape[i] for i in axes)
    if axes == list(range(v.ndim)) and w.rng.random() < 0.5:
        return "", shape, many
    return f", axis={tuple(axes)}", shape, many


@operation("sum", 1.0)
def _sum(w: Writer) -> None:
    v = w.inexact(2)
    how, shape, many = _reduced(w, v)
    b = v.bound * many
    w.emit(f"snp.sum({{0}}{how})", [v], shape, -b, b, v.kind)


@operation("mean", 0.5)
def _mean(w: Writer) -> None:
    v = w.inexact()
    how, shape, many = _reduced(w, v)
    if not many:
        raise Skip
    w.emit(f"snp.mean({{0}}{how})", [v], shape, v.low, v.high, v.kind)


@operation("product", 0.5)
def _product(w: Writer) -> None:
    v = w.float(-1, 1)
    how, shape, _ = _reduced(w, v)
    w.emit(f"snp.prod({{0}}{how})", [v], shape, -1, 1)


@operation("extreme", 0.5)
def _extreme(w: Writer) -> None:
    v = w.float(fits=lambda v: v.size > 0)
    how, shape, _ = _reduced(w, v)
    w.emit(f"snp.{w.rng.choice(['max', 'min'])}({{0}}{how})", [v], shape, v.low, v.high)


@operation("deviation", 0.3)
def _deviation(w: Writer) -> None:
    v = w.float(-4, 4, fits=lambda v: v.size > 1)
    w.emit(f"snp.{w.rng.choice(['var', 'ptp'])}({{0}})", [v], (), 0, 16)


@operation("logsumexp", 0.3)
def _logsumexp(w: Writer) -> None:
    v = w.float(-4, 4)
    axis = w.axis(v)
    shape = v.shape[:axis] + v.shape[axis + 1 :]
    w.emit(f"st.nn.logsumexp({{0}}, dim={axis})", [v], shape, -4, 8)


@operation("softmax", 0.3)
def _softmax(w: Writer) -> None:
    v = w.float(-4, 4)
    axis = w.axis(v)
    w.emit(f"st.nn.softmax({{0}}, dim={axis})", [v], v.shape, 0, 1)


def _cumulative(name: str) -> None:
    def write(w: Writer) -> None:
        v = w.float(-1, 1)
        axis = w.axis(v)
        b = {"cumsum": v.shape[axis], "cumlogsumexp": 3}.get(name, 1)
        text = f"lax.{name}({{0}}, axis={axis}, reverse={w.rng.random() < 0.3})"
        w.emit(text, [v], v.shape, -b, b)

    operation(name, 0.2)(write)


for _name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
    _cumulative(_name)


# Products.


@operation("dot", 0.8)
def _dot(w: Writer) -> None:
    x = w.inexact(2, fits=lambda v: v.ndim in (1, 2))
    n = x.shape[-1]
    y = w.any_of(
        lambda v: v.kind == x.kind and v.ndim in (1, 2) and v.shape[max(v.ndim - 2, 0)] == n
    )
    y = w.within(y, -2, 2)
    shape = x.shape[:-1] + (y.shape[1:] if y.ndim == 2 else ())
    b = n * x.bound * y.bound * (2 if x.kind == "complex" else 1)
    w.emit("{0} @ {1}", [x, y], w.small(shape), -b, b, x.kind)


@operation("dot_general", 0.5)
def _dot_general(w: Writer) -> None:
    x = w.float(-2, 2, fits=lambda v: v.ndim >= 2)
    y = w.within(w.any_of(lambda v: v.kind == "float" and v.shape[:1] == x.shape[:1]), -2, 2)
    pairs = [(i, j) for i in range(1, x.ndim) for j in range(1, y.ndim) if x.shape[i] == y.shape[j]]
    if not pairs:
        raise Skip
    i, j = w.rng.choice(pairs)
    shape = (
        x.shape[0],
        *(n for k, n in enumerate(x.shape) if k not in (0, i)),
        *(n for k, n in enumerate(y.shape) if k not in (0, j)),
    )
    b = x.shape[i] * x.bound * y.bound
    text = f"lax.dot_general({{0}}, {{1}}, ((({i},), ({j},)), ((0,), (0,))))"
    w.emit(text, [x, y], w.small(shape), -b, b)


@operation("outer", 0.3)
def _outer(w: Writer) -> None:
    x, y = (w.float(-4, 4, fits=lambda v: v.ndim == 1) for _ in range(2))
    b = x.bound * y.bound
    w.emit("snp.outer({0}, {1})", [x, y], w.small((*x.shape, *y.shape)), -b, b)


@operation("convolution", 0.3)
def _convolution(w: Writer) -> None:
    x = w.float(-2, 2, fits=lambda v: v.size > 0)
    y = w.float(-2, 2, fits=lambda v: 0 < v.size <= 4)
    n, k = x.size, y.size
    stride, spread = w.rng.choice([(1, 1), (2, 1), (1, 2)])
    window = (k - 1) * spread + 1
    count = (n + 2 - window) // stride + 1
    if count < 1:
        raise Skip
    both = f"snp.reshape({{0}}, (1, 1, {n})), snp.reshape({{1}}, (1, 1, {k}))"
    text = f"lax.conv_general_dilated({both}, ({stride},), [(1, 1)], rhs_dilation=({spread},))"
    w.emit(f"snp.reshape({text}, ({count},))", [x, y], w.small((count,)), -4 * k, 4 * k)


# Indices.


def _index(w: Writer, size: int) -> Var:
    if not size:
        raise Skip
    return w.integer(size)


def _indices(w: Writer, size: int, distinct: bool = False) -> Var:
    """A vector of indices below ``size``."""
    i = _index(w, size)
    count = w.rng.randint(1, size) if distinct else w.rng.randint(1, 3)
    step = 1 if distinct else w.rng.randint(0, 2)
    text = f"({{0}} + {step} * np.arange({count})) % {size}"
    return w.emit(text, [i], (count,), 0, size - 1, "int")


@operation("index", 0.6)
def _index_axis(w: Writer) -> None:
    v = w.inexact()
    axis = w.axis(v)
    i = _index(w, v.shape[axis])
    shape = v.shape[:axis] + v.shape[axis + 1 :]
    w.emit(f"{{0}}[{':, ' * axis}{{1}}]", [v, i], shape, v.low, v.high, v.kind)


@operation("take", 0.5)
def _take(w: Writer) -> None:
    v = w.inexact()
    axis = w.axis(v)
    i = _indices(w, v.shape[axis])
    shape = w.small((*v.shape[:axis], *i.shape, *v.shape[axis + 1 :]))
    w.emit(f"snp.take({{0}}, {{1}}, axis={axis})", [v, i], shape, v.low, v.high, v.kind)


@operation("take_along_axis", 0.3)
def _take_along_axis(w: Writer) -> None:
    v = w.float(fits=lambda v: v.size > 0)
    axis = w.axis(v)
    i = w.any_of(lambda i: i.kind == "int" and i.shape == v.shape and i.low >= 0)
    i = w.emit(f"{{0}} % {v.shape[axis]}", [i], i.shape, 0, v.shape[axis] - 1, "int")
    text = f"snp.take_along_axis({{0}}, {{1}}, axis={axis})"
    w.emit(text, [v, i], v.shape, v.low, v.high)


def _at(kind: str) -> None:
    def write(w: Writer) -> None:
        v = w.float(-4, 4, fits=lambda v: v.size > 0)
        axis = w.axis(v)
        if w.rng.random() < 0.5:
            i = _index(w, v.shape[axis])
        else:
            i = _indices(w, v.shape[axis], distinct=kind in ("set", "multiply"))
        shape = (*v.shape[:axis], *i.shape, *v.shape[axis + 1 :])
        u = w.fit("float", w.rng.choice([shape, ()]), -2, 2)
        b = v.bound * u.bound if kind == "multiply" else v.bound + 3 * u.bound
        only = ", unique_indices=True" if kind == "multiply" else ""
        text = f"{{0}}.at[{':, ' * axis}{{1}}].{kind}({{2}}{only})"
        w.emit(text, [v, i, u], v.shape, -b, b)

    operation(f"at_{kind}", 0.2)(write)


for _name in ("set", "add", "subtract", "multiply", "min", "max"):
    _at(_name)


@operation("dynamic_slice", 0.5)
def _dynamic_slice(w: Writer) -> None:
    v = w.inexact(fits=lambda v: v.ndim > 0 and v.size > 0)
    axis = w.axis(v)
    i = _index(w, v.shape[axis])
    size = w.rng.randint(1, v.shape[axis])
    shape = (*v.shape[:axis], size, *v.shape[axis + 1 :])
    text = f"lax.dynamic_slice_in_dim({{0}}, {{1}}, {size}, axis={axis})"
    w.emit(text, [v, i], shape, v.low, v.high, v.kind)


@operation("dynamic_update_slice", 0.5)
def _dynamic_update_slice(w: Writer) -> None:
    v = w.float(fits=lambda v: v.ndim > 0 and v.size > 0)
    axis = w.axis(v)
    i = _index(w, v.shape[axis])
    size = w.rng.randint(1, v.shape[axis])
    u = w.fit("float", (*v.shape[:axis], size, *v.shape[axis + 1 :]), -4, 4)
    b = max(v.bound, u.bound)
    text = f"lax.dynamic_update_slice_in_dim({{0}}, {{1}}, {{2}}, axis={axis})"
    w.emit(text, [v, u, i], v.shape, -b, b)


@operation("get", 0.3)
def _get(w: Writer) -> None:
    """Indices in range and beyond it, with each way of dealing with these."""
    v = w.inexact(fits=lambda v: v.ndim > 0 and v.size > 0)
    i = _indices(w, v.shape[0])
    mode = w.rng.choice(["clip", "fill", "promise_in_bounds"])
    more = 0 if mode == "promise_in_bounds" else w.rng.choice([0, 1, -1, -5])
    value = ", fill_value=0.5" if mode == "fill" else ""
    shape = w.small((*i.shape, *v.shape[1:]))
    b = max(v.bound, 1)
    text = f"{{0}}.at[{{1}} + {more}].get(mode='{mode}'{value})"
    w.emit(text, [v, i], shape, -b, b, v.kind)


EMPTY = (
    # With what is taken from no elements, or in no steps.
    "{0} + snp.sum({1}[:0])",
    "{0} * snp.prod({1}[:0])",
    "snp.concatenate([{1}[:0], {1}]).sum() * 0.1 + {0}",
    "{0} + snp.sum(lax.map(snp.sin, {1}[:0]))",
    "{0} + snp.sum(st.vmap(snp.sin)({1}[1:]))",
    "lax.scan(lambda c, x: (c * x.sum(), c), {0}, {1}[:0])[0]",
    "{0} + lax.scan(lambda c, x: (c * x.sum(), c), {0}, {1}[:0])[1].sum()",
    "{0} + snp.sum(snp.sort({1}[:0]) ** 2) + snp.sum(snp.cumsum({1}[:0]))",
    "{0} + snp.sum({1}[:0].T @ {1}[:0])",
)


@operation("empty", 0.4)
def _empty(w: Writer) -> None:
    x, y = w.float(-4, 4), w.float(-1, 1, fits=lambda v: 0 < v.ndim < 3)
    w.emit(w.rng.choice(EMPTY), [x, y], x.shape, -9, 9)


# Sorting.


@operation("sort", 0.4)
def _sort(w: Writer) -> None:
    v = w.float()
    w.emit(f"snp.sort({{0}}, axis={w.axis(v)})", [v], v.shape, v.low, v.high)


@operation("sort_by_key", 0.3)
def _sort_by_key(w: Writer) -> None:
    x = w.float()
    y = w.any_of(lambda v: v.shape == x.shape and v.kind in ("float", "complex"))
    text = f"lax.sort([{{0}}, {{1}}], dimension={w.axis(x)}, num_keys=1)"
    w.statement(text, [x, y], [w.fresh(x), w.fresh(y)])


@operation("top_k", 0.3)
def _top_k(w: Writer) -> None:
    v = w.float(fits=lambda v: v.ndim > 0 and v.shape[-1] > 0)
    k = w.rng.randint(1, v.shape[-1])
    found = w.fresh(v, (*v.shape[:-1], k))
    place = Var(w.name("v"), "int", found.shape, 0, v.shape[-1] - 1)
    w.statement(f"lax.top_k({{0}}, {k})", [v], [found, place])
    w.scope.remove(place)  # it is of 32 bits
    w.emit("{0}.astype(INT)", [place], place.shape, place.low, place.high, "int")


@operation("argmax", 0.3)
def _argmax(w: Writer) -> None:
    v = w.float(fits=lambda v: v.size > 0)
    axis = w.axis(v)
    tilt = f"({{0}} + 0.00317 * np.arange({v.size}).reshape({v.shape}))"
    name = w.rng.choice(["argmax", "argmin"])
    shape = v.shape[:axis] + v.shape[axis + 1 :]
    w.emit(f"snp.{name}({tilt}, axis={axis})", [v], shape, 0, v.shape[axis] - 1, "int")


@operation("argsort", 0.2)
def _argsort(w: Writer) -> None:
    v = w.float()
    axis = w.axis(v)
    tilt = f"({{0}} + 0.00317 * np.arange({v.size}).reshape({v.shape}))"
    text = f"snp.argsort({tilt}, axis={axis})"
    w.emit(text, [v], v.shape, 0, max(v.shape[axis] - 1, 0), "int")
