"""The derivatives that chains are made of, each checked against differences of its function.

Forward ones are compared along a direction. Reverse ones are paired with directions:
Re⟨gradient, v⟩ = Re⟨ct, J v⟩ for two random v, which an error in any element breaks.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.property.oracles import (
    Discard,
    Mismatch,
    arrays,
    assert_same,
    assert_slope,
    pairing,
    slope,
)
from tests.property.programs import Var, namespace
from tests.property.transformations import (
    MOST_ELEMENTS,
    Function,
    Inapplicable,
    Link,
    defined,
    names,
    transformation,
    tuple_of,
)

__all__: list[str] = []


def _variables(rng: random.Random, before: Function, real: bool = False) -> list[int]:
    """The parameters that derivatives are taken by."""
    kinds = ("float",) if real else ("float", "complex")
    able = [i for i, v in enumerate(before.params) if v.kind in kinds]
    if not able or not any(y.dtype.kind in "fc" for y in before.outs):
        raise Inapplicable
    return sorted(rng.sample(able, rng.randint(1, min(2, len(able)))))


def _unit(v: Var, prefix: str) -> Var:
    return Var(prefix + v.name, v.kind, v.shape)


def _extra(
    rng: random.Random, wanted: Sequence[Var], seed: int
) -> tuple[tuple[Var, ...], list[str]]:
    """Tangents or cotangents: parameters more, or lines that draw them."""
    if rng.random() < 0.5:
        return tuple(wanted), []
    return (), [f"{v.name} = {v.drawn(seed + i)}" for i, v in enumerate(wanted)]


def _values(wanted: Sequence[Var], extra: Sequence[Var], given: Sequence[Any], seed: int) -> Any:
    """The values of what ``_extra`` gave."""
    if extra:
        return list(given)
    draw = namespace("")["draw"]
    return arrays(draw(seed + i, v.kind, v.shape, v.low, v.high) for i, v in enumerate(wanted))


def _inexact(outs: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [y for y in outs if y.dtype.kind in "fc"]


def _cotangents(before: Function) -> list[Var]:
    return [
        Var(f"c{before.number + 1}_{i}", "complex" if y.dtype.kind == "c" else "float", y.shape)
        for i, y in enumerate(_inexact(before.outs))
    ]


def _forward(rng: random.Random, before: Function, last: Callable[..., list[str]]) -> Link:
    chosen = _variables(rng, before)
    moving = [before.params[i] for i in chosen]
    tangents = [_unit(v, f"t{before.number + 1}") for v in moving]
    seed = rng.randrange(1000)
    extra, lines = _extra(rng, tangents, seed)
    params = (*before.params, *extra)
    inner = f"lambda {names(moving)}: {before.call}"
    lines += last(inner, moving, tangents)
    count = len(before.params)

    def check(args: Any, outs: Any, _: Any) -> None:
        values = _values(tangents, extra, args[count:], seed)
        want = arrays(before.fun(*args[:count]))
        assert_same(outs[: len(want)], want, "the value beside its derivative")
        slopes = slope(before.fun, args[:count], dict(zip(chosen, values)))
        assert_slope(outs[len(want) :], slopes, "the derivative")

    return Link(defined(before, params, *lines), params, check)


@transformation("jvp", 1.0, "forward")
def _jvp(rng: random.Random, before: Function) -> Link:
    if rng.random() < 0.7:
        return _forward(
            rng,
            before,
            lambda inner, moving, tangents: [
                f"out, dout = st.jvp({inner}, {tuple_of(moving)}, {tuple_of(tangents)})",
                "return (*out, *inexact(dout))",
            ],
        )
    return _forward(
        rng,
        before,
        lambda inner, moving, tangents: [
            f"both = {_with_aux(moving, before)}",
            f"_, dout, out = st.jvp(both, {tuple_of(moving)}, {tuple_of(tangents)}, has_aux=True)",
            "return (*out, *dout)",
        ],
    )


def _with_aux(moving: Sequence[Var], before: Function) -> str:
    """The function's inexact results, and all of them beside."""
    return f"lambda {names(moving)}: (lambda ys: (inexact(ys), ys))({before.call})"


@transformation("linearize", 0.7, "forward")
def _linearize(rng: random.Random, before: Function) -> Link:
    apply = rng.choice([
        "linear({0})",
        "linear({0})",
        "st.jit(linear)({0})",
        "(y[1] for y in st.vmap(lambda k: inexact(linear(*(k * t for t in ({0},)))))"
        "(np.arange(2).astype(FLOAT)))",
    ])  # fmt: skip
    return _forward(
        rng,
        before,
        lambda inner, moving, tangents: [
            f"out, linear = st.linearize({inner}, {names(moving)})",
            f"return (*out, *inexact({apply.format(names(tangents))}))",
        ],
    )


def _reverse(
    rng: random.Random, before: Function, with_value: Any, last: Callable[..., list[str]]
) -> Link:
    chosen = _variables(rng, before)
    moving = [before.params[i] for i in chosen]
    cts = _cotangents(before)
    seed = rng.randrange(1000)
    extra, lines = _extra(rng, cts, seed)
    params = (*before.params, *extra)
    lines += last(moving, cts)
    count = len(before.params)

    def check(args: Any, outs: Any, numbers: Any) -> None:
        given = args[:count]
        values = _values(cts, extra, args[count:], seed)
        want = with_value(before, given, values)
        assert_same(outs[: len(want)], want, "the value beside its gradient")
        gradient = outs[len(want) :]
        for i, g in zip(chosen, gradient, strict=True):
            if (g.shape, g.dtype) != (args[i].shape, args[i].dtype):
                raise Mismatch(f"the gradient by argument {i} is {g.dtype}{g.shape}")
        for _ in range(2):
            along = {i: _direction(numbers, args[i]) for i in chosen}
            slopes = slope(before.fun, given, along)
            got = pairing(gradient, list(along.values()))
            scale = 1 + sum(float(np.sum(np.abs(g))) for g in gradient)
            assert_slope([got], [pairing(values, slopes)], "the gradient", scale)

    return Link(defined(before, params, *lines), params, check)


def _direction(numbers: np.random.Generator, like: np.ndarray) -> np.ndarray:
    v = numbers.uniform(-1, 1, like.shape)
    return np.asarray(v + 1j * numbers.uniform(-1, 1, like.shape) if like.dtype.kind == "c" else v)


def _loss(before: Function, moving: Sequence[Var], cts: Sequence[Var]) -> list[str]:
    terms = f"zip({tuple_of(cts)}, inexact({before.call}))"
    return [
        f"def loss({names(moving)}):",
        f"    return sum(snp.sum(snp.real(c * y)) for c, y in {terms})",
    ]


def _value_of_loss(before: Function, args: Any, cts: Any) -> list[np.ndarray]:
    return [pairing(cts, _inexact(arrays(before.fun(*args))))]


@transformation("grad", 1.2, "reverse")
def _grad(rng: random.Random, before: Function) -> Link:
    form = rng.choice(["some", "some", "all", "tree"])

    def last(moving: Any, cts: Any) -> list[str]:
        if form == "all":  # the others go by, as arguments
            argnums = tuple(before.params.index(v) for v in moving)
            line = f"return st.grad(loss, {argnums})({names(before.params)})"
            return [*_loss(before, before.params, cts), line]
        lines = _loss(before, moving, cts)
        if form == "tree":
            given = ", ".join(f"{v.name}={v.name}" for v in moving)
            keyed = ", ".join(f"tree[{v.name!r}]" for v in moving)
            lines.append(f"tree = st.grad(lambda d: loss(**d))(dict({given}))")
            return [*lines, f"return ({keyed},)"]
        return [*lines, f"return st.grad(loss, {tuple(range(len(moving)))})({names(moving)})"]

    return _reverse(rng, before, lambda *_: [], last)


@transformation("value_and_grad", 0.5, "reverse")
def _value_and_grad(rng: random.Random, before: Function) -> Link:
    def last(moving: Any, cts: Any) -> list[str]:
        argnums = tuple(range(len(moving)))
        return [
            *_loss(before, moving, cts),
            f"value, gradient = st.value_and_grad(loss, {argnums})({names(moving)})",
            "return (value, *gradient)",
        ]

    return _reverse(rng, before, _value_of_loss, last)


@transformation("vjp", 0.8, "reverse")
def _vjp(rng: random.Random, before: Function) -> Link:
    def last(moving: Any, cts: Any) -> list[str]:
        inner = f"lambda {names(moving)}: inexact({before.call})"
        return [
            f"out, back = st.vjp({inner}, {names(moving)})",
            f"return (*out, *back({tuple_of(cts)}))",
        ]

    def last_with_aux(moving: Any, cts: Any) -> list[str]:
        return [
            f"both = {_with_aux(moving, before)}",
            f"_, back, out = st.vjp(both, {names(moving)}, has_aux=True)",
            f"return (*out, *back({tuple_of(cts)}))",
        ]

    def last_mapped(moving: Any, cts: Any) -> list[str]:
        inner = f"lambda {names(moving)}: inexact({before.call})"
        scaled = f"tuple(k * c for c in {tuple_of(cts)})"
        return [
            f"out, back = st.vjp({inner}, {names(moving)})",
            f"many = st.vmap(lambda k: back({scaled}))(np.arange(2).astype(FLOAT))",
            "return (*out, *(g[1] for g in many))",
        ]

    inexact = lambda before, args, _: _inexact(arrays(before.fun(*args)))
    whole = lambda before, args, _: arrays(before.fun(*args))
    form = rng.random()
    if form < 0.6:
        return _reverse(rng, before, inexact, last)
    if form < 0.8:
        return _reverse(rng, before, inexact, last_mapped)
    return _reverse(rng, before, whole, last_with_aux)


def _jacobian(name: str) -> Callable[[random.Random, Function], Link]:
    def make(rng: random.Random, before: Function) -> Link:
        chosen = _variables(rng, before, real=True)[:1]
        (v,) = (before.params[i] for i in chosen)
        real = [y for y in before.outs if y.dtype.kind == "f"]
        if not real or v.size * sum(y.size for y in real) > MOST_ELEMENTS or v.size > 9:
            raise Inapplicable
        inner = f"lambda {v.name}: tuple(y for y in {before.call} if real(y))"
        line = f"return tuple(st.{name}({inner})({v.name}))"

        def check(args: Any, outs: Any, numbers: Any) -> None:
            for _ in range(2):
                direction = _direction(numbers, args[chosen[0]])
                slopes = slope(before.fun, args, {chosen[0]: direction})
                want = [s for s in slopes if s.dtype.kind == "f"]
                for got, y in zip(outs, want, strict=True):
                    if got.shape != (*y.shape, *v.shape):
                        raise Mismatch(f"{name}: shape {got.shape} of {y.shape} by {v.shape}")
                along = [np.asarray(np.tensordot(j, direction, v.ndim)) for j in outs]
                assert_slope(along, want, name)

        return Link(defined(before, before.params, line), before.params, check)

    return make


transformation("jacfwd", 0.4, "forward")(_jacobian("jacfwd"))
transformation("jacrev", 0.4, "reverse")(_jacobian("jacrev"))


@transformation("linear_transpose", 0.4, "forward", "reverse")
def _linear_transpose(rng: random.Random, before: Function) -> Link:
    def last(moving: Any, cts: Any) -> list[str]:
        inner = f"lambda {names(moving)}: inexact({before.call})"
        return [
            f"out, linear = st.linearize({inner}, {names(moving)})",
            f"back = st.linear_transpose(linear, {names(moving)})",
            f"return (*out, *back({tuple_of(cts)}))",
        ]

    value = lambda before, args, _: _inexact(arrays(before.fun(*args)))
    return _reverse(rng, before, value, last)


SECOND = {
    "hessian": "st.hessian(loss)({x})",
    "jacfwd of grad": "st.jacfwd(st.grad(loss))({x})",
    "jacrev of grad": "st.jacrev(st.grad(loss))({x})",
    "jvp of grad": "st.jvp(st.grad(loss), ({x},), ({t},))[1]",
    "grad of grad": "st.grad(lambda {x}: snp.sum({t} * st.grad(loss)({x})))({x})",
    "grad of jvp": "st.grad(lambda {x}: st.jvp(loss, ({x},), ({t},))[1])({x})",
    "hvp": "st.hvp(loss, ({x},), ({t},))",
}


@transformation("second", 0.5, "forward", "reverse")
def _second(rng: random.Random, before: Function) -> Link:
    """A gradient and, one way or another, a second derivative."""
    chosen = _variables(rng, before, real=True)[:1]
    (v,) = (before.params[i] for i in chosen)
    if v.size > 6 or sum(y.size for y in before.outs) > 60:
        raise Inapplicable
    (place,) = chosen
    cts = _cotangents(before)
    seed = rng.randrange(1000)
    along = _unit(v, f"t{before.number + 1}")
    drawn = [f"{c.name} = {c.drawn(seed + i)}" for i, c in enumerate((*cts, along))]
    kind = rng.choice(sorted(SECOND))
    whole = "{t}" not in SECOND[kind]
    text = SECOND[kind].format(x=v.name, t=along.name)
    result = f"return (st.grad(loss)({v.name}), {text})"
    source = defined(before, before.params, *drawn, *_loss(before, [v], cts), result)

    def check(args: Any, outs: Any, numbers: Any) -> None:
        *values, first = _values([*cts, along], (), (), seed)
        gradient, product = outs
        if gradient.shape != v.shape or product.shape != v.shape * (1 + whole):
            raise Mismatch(f"shapes {gradient.shape} and {product.shape} for {v.shape}")
        if whole:
            product = np.asarray(np.tensordot(product, first, v.ndim))

        other = _direction(numbers, args[place])

        def slope_at(t: float) -> Any:
            """The slope of the loss along ``other``, from differences, at a point moved by t."""
            moved = [a + t * first if i == place else a for i, a in enumerate(args)]
            return pairing(values, slope(before.fun, moved, {place: other}))

        scale = 1 + float(np.sum(np.abs(gradient)))
        assert_slope([pairing([gradient], [other])], [slope_at(0.0)], "the gradient", scale)
        # Differences of differences, with a longer step outside, to fourth order.
        step = 2e-3
        near, far = slope_at(step) - slope_at(-step), slope_at(2 * step) - slope_at(-2 * step)
        wide, narrow = far / (4 * step), near / (2 * step)
        scale = 1 + float(np.sum(np.abs(product)))
        if abs(wide - narrow) > 1e-2 * scale:
            raise Discard("two steps of second differences disagree")
        want, got = (4 * narrow - wide) / 3, np.sum(other * product)
        if not abs(got - want) <= 1e-5 * scale:
            raise Mismatch(f"a second derivative is {got}, differences give {want}")

    return Link(source, before.params, check)
