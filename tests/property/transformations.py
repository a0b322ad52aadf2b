"""Transformations that chains are made of, each with an oracle that only calls its function.

A link is Python source that defines ``g2`` in terms of ``g1``, and the check of what ``g2`` gives.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tests.property.oracles import arrays, assert_same
from tests.property.programs import Var

__all__ = [
    "MOST_ELEMENTS",
    "TRANSFORMATIONS",
    "Function",
    "Inapplicable",
    "Link",
    "Transformation",
    "defined",
    "names",
    "transformation",
    "tuple_of",
]

MOST_ELEMENTS = 250


class Inapplicable(Exception):
    """The transformation does not apply to the function."""


@dataclasses.dataclass
class Function:
    """A function of the chain: ``g`` and its number, its parameters, what it gave."""

    number: int
    params: tuple[Var, ...]
    fun: Callable[..., Sequence[Any]]
    outs: list[np.ndarray]
    way: str

    @property
    def name(self) -> str:
        return f"g{self.number}"

    @property
    def call(self) -> str:
        return f"{self.name}({', '.join(v.name for v in self.params)})"


@dataclasses.dataclass
class Link:
    """How the next function is written, and the check of what it gives for its arguments."""

    source: str
    params: tuple[Var, ...]
    check: Callable[[list[np.ndarray], list[np.ndarray], np.random.Generator], None]


class Transformation(NamedTuple):
    """A way to make a link, and which derivatives it takes: ``""``, ``forward`` or ``reverse``."""

    make: Callable[[random.Random, Function], Link]
    weight: float
    takes: tuple[str, ...]


TRANSFORMATIONS: dict[str, Transformation] = {}


def transformation(name: str, weight: float, *takes: str) -> Callable[..., Any]:
    """Enter a maker of links into the table."""

    def enter(make: Any) -> Any:
        TRANSFORMATIONS[name] = Transformation(make, weight, takes)
        return make

    return enter


def names(params: Sequence[Var]) -> str:
    return ", ".join(v.name for v in params)


def tuple_of(params: Sequence[Var]) -> str:
    return "(" + "".join(v.name + ", " for v in params) + ")"


def defined(before: Function, params: Sequence[Var], *lines: str) -> str:
    """The source of the next function."""
    body = "".join(f"    {line}\n" for line in lines)
    return f"def g{before.number + 1}({names(params)}):\n{body}"


# The same function, some other way.


def _same(before: Function) -> Any:
    def check(args: Any, outs: Any, _: Any) -> None:
        assert_same(outs, before.fun(*args), "against the function itself")

    return check


@transformation("jit", 1.0)
def _jit(rng: random.Random, before: Function) -> Link:
    choice = rng.random()
    if choice < 0.6:
        source = f"g{before.number + 1} = st.jit({before.name})\n"
    elif choice < 0.75:  # by keyword, with a static argument
        given = ", ".join(f"{v.name}={v.name}" for v in before.params)
        inner = f"lambda n, {names(before.params)}: {before.call}[:n] + {before.call}[n:]"
        line = f"return st.jit({inner}, static_argnums=0)(1, {given})"
        source = defined(before, before.params, line)
    else:
        inside = [v for v in before.params if rng.random() < 0.5]
        line = f"return st.jit(lambda {names(inside)}: {before.call})({names(inside)})"
        source = defined(before, before.params, line)
    return Link(source, before.params, _same(before))


@transformation("disable_jit", 0.2)
def _disable_jit(rng: random.Random, before: Function) -> Link:
    lines = ("with st.config(disable_jit=True):", f"    return {before.call}")
    return Link(defined(before, before.params, *lines), before.params, _same(before))


@transformation("checkpoint", 0.7)
def _checkpoint(rng: random.Random, before: Function) -> Link:
    source = f"g{before.number + 1} = st.checkpoint({before.name})\n"
    return Link(source, before.params, _same(before))


@transformation("closure_convert", 0.2)
def _closure_convert(rng: random.Random, before: Function) -> Link:
    inside = [v for v in before.params if rng.random() < 0.5]
    example = f"lambda {names(inside)}: {before.call}" + "".join(f", {v.name}" for v in inside)
    lines = (
        f"converted, consts = st.closure_convert({example})",
        f"return converted({''.join(v.name + ', ' for v in inside)}*consts)",
    )
    return Link(defined(before, before.params, *lines), before.params, _same(before))


# Many examples.


def _mapped(rng: random.Random, before: Function) -> tuple[list[int], int]:
    """Which parameters are mapped, and the number of examples."""
    count = len(before.params)
    chosen = [i for i in range(count) if rng.random() < 0.6] or [rng.randrange(count)]
    size = rng.choice([1, 2, 2, 3])
    if size * max(sum(v.size for v in before.params), sum(y.size for y in before.outs)) > (
        MOST_ELEMENTS
    ):
        raise Inapplicable
    return chosen, size


def _with_axis(v: Var, size: int, axis: int) -> Var:
    return dataclasses.replace(v, shape=(*v.shape[:axis], size, *v.shape[axis:]))


def _examples(
    before: Function, args: Sequence[np.ndarray], axes: dict[int, int], size: int
) -> list[list[np.ndarray]]:
    """The results for each example, in a loop."""
    rows = []
    for k in range(size):
        row = [np.take(a, k, axes[i]) if i in axes else a for i, a in enumerate(args)]
        rows.append(arrays(before.fun(*row)))
    return rows


@transformation("vmap", 1.6)
def _vmap(rng: random.Random, before: Function) -> Link:
    chosen, size = _mapped(rng, before)
    axes = {i: rng.randint(0, before.params[i].ndim) for i in chosen}
    params = tuple(
        _with_axis(v, size, axes[i]) if i in axes else v for i, v in enumerate(before.params)
    )
    shown = [i for i in range(len(params)) if i in axes or rng.random() < 0.5]
    written = []
    for i in shown:
        back = i in axes and rng.random() < 0.3
        written.append(axes[i] - params[i].ndim if back else axes.get(i))
    out_axes: list[int | None] = [rng.randint(-y.ndim - 1, y.ndim) for y in before.outs]
    options = ""
    if rng.random() < 0.25:
        options = f", chunk_size={rng.choice([1, 2])}"
    inside = names([before.params[i] for i in shown])
    one = f"lambda {inside}: {before.call}"
    same = [v for i, v in enumerate(params) if i not in axes and v.kind == "float"]
    also = same[0] if same and rng.random() < 0.4 else None
    if also is not None:  # a result that is one for all examples
        one += f" + (snp.sin({also.name}),)"
        out_axes.append(None)
    if rng.random() < 0.8:
        how = f"in_axes={tuple(written)}, out_axes={tuple(out_axes)}{options}"
        line = f"return st.vmap({one}, {how})({inside})"
    else:  # trees of arguments, results and axes
        keyed = [before.params[i].name for i in shown]
        axis_of = dict(zip(keyed, written, strict=True))
        given = ", ".join(f"{name}={name}" for name in keyed)
        how = f"in_axes=({axis_of},), out_axes={{'ys': {tuple(out_axes)}}}{options}"
        line = f"return st.vmap(lambda d: {{'ys': ({one})(**d)}}, {how})(dict({given}))['ys']"

    def check(args: Any, outs: Any, _: Any) -> None:
        rows = _examples(before, args, axes, size)
        want = [np.stack(y, axis) for y, axis in zip(zip(*rows), out_axes)]
        if also is not None:
            want.append(np.sin(args[before.params.index(also)]))
        assert_same(outs, want, "vmap against the loop")

    return Link(defined(before, params, line), params, check)


@transformation("map", 0.4)
def _map(rng: random.Random, before: Function) -> Link:
    chosen, size = _mapped(rng, before)
    params = tuple(
        _with_axis(v, size, 0) if i in chosen else v for i, v in enumerate(before.params)
    )
    xs = tuple_of([before.params[i] for i in chosen])
    option = rng.choice(["", "", ", batch_size=2"])
    lines = (
        "def one(xs):",
        f"    {xs} = xs",
        f"    return {before.call}",
        f"return lax.map(one, {xs}{option})",
    )

    def check(args: Any, outs: Any, _: Any) -> None:
        rows = _examples(before, args, dict.fromkeys(chosen, 0), size)
        assert_same(outs, [np.stack(y) for y in zip(*rows)], "map against the loop")

    return Link(defined(before, params, *lines), params, check)


@transformation("scan", 0.7)
def _scan(rng: random.Random, before: Function) -> Link:
    """The carry adds up the results, and scales an argument a little."""
    chosen, size = _mapped(rng, before)
    params = tuple(
        _with_axis(v, size, 0) if i in chosen else v for i, v in enumerate(before.params)
    )
    scaled = [i for i, v in enumerate(before.params) if v.kind == "float" and v.low == -v.high][:1]
    xs = tuple_of([before.params[i] for i in chosen])
    reverse = rng.random() < 0.4
    lines = ["def step(total, xs):", f"    {xs} = xs"]
    for i in scaled:
        name = before.params[i].name
        renamed = f"{name}_" if i not in chosen else name
        lines.append(f"    {renamed} = {name} * (0.9 + 0.1 * snp.sin(total))")
    given = [
        f"{v.name}_" if i in scaled and i not in chosen else v.name
        for i, v in enumerate(before.params)
    ]
    lines += [
        f"    ys = {before.name}({', '.join(given)})",
        "    return total + sum(snp.mean(snp.real(y)) for y in inexact(ys)), ys",
        f"total, ys = lax.scan(step, 0.25, {xs}, reverse={reverse}, unroll={rng.choice([1, 2])})",
        "return (total, *ys)",
    ]

    def check(args: Any, outs: Any, _: Any) -> None:
        total: Any = np.asarray(0.25)
        rows: list[Any] = [None] * size
        for k in reversed(range(size)) if reverse else range(size):
            row = [a[k] if i in chosen else a for i, a in enumerate(args)]
            for i in scaled:
                row[i] = row[i] * (0.9 + 0.1 * np.sin(total))
            rows[k] = arrays(before.fun(*row))
            total = total + sum(np.mean(np.real(y)) for y in rows[k] if y.dtype.kind in "fc")
        assert_same(outs, [np.asarray(total), *map(np.stack, zip(*rows))], "scan against the loop")

    return Link(defined(before, params, *lines), params, check)


@transformation("cond", 0.6)
def _cond(rng: random.Random, before: Function) -> Link:
    """One branch is the function, the other that of arguments of the other sign, halved."""
    chooser = Var(f"k{before.number + 1}", "int", (), 0, 1)
    params = (chooser, *before.params)
    turned = [v.kind in ("float", "complex") and v.low == -v.high for v in before.params]
    other = ", ".join(f"-{v.name}" if t else v.name for v, t in zip(before.params, turned))
    lines = (
        f"def other({names(before.params)}):",
        f"    ys = {before.name}({other})",
        "    return tuple(0.5 * y if moves(y) else y for y in ys)",
        f"return lax.switch({chooser.name}, [{before.name}, other], {names(before.params)})",
    )

    def check(args: Any, outs: Any, _: Any) -> None:
        k, *rest = args
        if k:
            rest = [-a if t else a for a, t in zip(rest, turned, strict=True)]
        want = arrays(before.fun(*rest))
        if k:
            want = [0.5 * y if y.dtype.kind in "fc" else y for y in want]
        assert_same(outs, want, "switch against its branch")

    return Link(defined(before, params, *lines), params, check)
