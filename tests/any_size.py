"""The law of sizes that vary: with anything as padding the values are those without.

A function is traced with some axes of its arrays as size variables, and written for a bucket. With
anything as padding, the valid part of its results must be what it gives without padding; so must
that of its derivatives, forwards and backwards, and of what it gives mapped over examples, of one
size or each of its own. What comes of an attempt is an `Outcome`: its results, or the words in
which it was refused. Tests of rules use `holds`; `functions/test_of_any_size.py` holds the table of
all functions to the law.
"""

import dataclasses
import re
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.vmap import vmap_program
from stretto._engine.core.interpreter import Value
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.program import Program
from stretto._engine.core.recorder import record
from stretto._engine.core.sizes import SizeVariable, is_size, size_of
from stretto._engine.core.types import ArrayType, array_type, is_inexact
from stretto._engine.higher_order.fixed_sizes import padded_program, variables_of
from stretto._engine.higher_order.sized_call import SizedCall
from stretto.errors import MissingRuleError, SizeError
from tests.functions.checks import close, leaves

MODES = ("values", "jvp", "vjp", "vmap", "ragged")

Axes = dict[tuple[int, int], int]
"""For (argument, axis) the number of the size variable in its place."""


class Outcome(NamedTuple):
    """What came of an attempt: the error if it was refused, else results, and those wanted."""

    refused: Exception | None
    got: Sequence[Any] = ()
    wanted: Sequence[Any] = ()
    primitives: frozenset[type[Primitive]] = frozenset()
    """The operations whose rules ran."""


# Which axes vary


def choices(arrays: Sequence[np.ndarray]) -> dict[str, Axes]:
    """The ways in which axes may vary: each alone, equal ones together, and all at once.

    By name: "0.1" is axis 1 of the first array, "0.0=0.1" are two axes of one size, and "0.0 1.1"
    are two axes of two sizes.
    """
    every = [(i, d) for i, a in enumerate(arrays) for d, n in enumerate(a.shape) if n]
    size = lambda place: arrays[place[0]].shape[place[1]]
    sizes = list(dict.fromkeys(map(size, every)))
    alike = [[p for p in every if size(p) == n] for n in sizes]
    groups = [[p] for p in every]
    groups += alike
    groups += [[p for p in group if p[0] == i] for group in alike for i in range(len(arrays))]
    groups += [[p for p in group if p[1] == 0] for group in alike]
    found = {_named([group]): dict.fromkeys(group, 0) for group in groups if group}
    if len(alike) > 1:
        found[_named(alike)] = {p: k for k, group in enumerate(alike) for p in group}
    return found


def _named(groups: Sequence[Sequence[tuple[int, int]]]) -> str:
    return " ".join("=".join(f"{i}.{d}" for i, d in group) for group in groups)


# Problems: a function of arrays, and arrays with sizes in place of some of theirs


@dataclasses.dataclass(frozen=True)
class Problem:
    """A function that gives a list of arrays, its arguments, and their types with sizes."""

    function: Callable
    args: Sequence[Any]
    types: Sequence[ArrayType]
    wanted: Callable[[], list]
    """What it gives without padding."""


def sized_types(arrays: Sequence[Any], axes: Axes, least: bool) -> list[ArrayType]:
    """The arrays' types with size variables, each of 1 or more, or of its size or more."""
    types = []
    for i, a in enumerate(arrays):
        shape = list(a.shape)
        for d, n in enumerate(a.shape):
            if (i, d) in axes:
                shape[d] = size_of(SizeVariable(f"n{axes[i, d]}", 1 if least else n))
        types.append(array_type(tuple(shape), a.dtype))
    return types


def sizes_of(problem: Problem) -> dict[SizeVariable, int]:
    """The variables' true sizes."""
    known = {}
    for a, type in zip(problem.args, problem.types):
        for have, n in zip(a.shape, type.shape):
            variable = next(n.variables()) if is_size(n) else None
            if variable is not None and n.terms == size_of(variable).terms:
                known[variable] = have
    return known


def as_values(function: Callable) -> Callable:
    """The function of a call as one that gives a list of arrays."""
    return lambda *xs: [snp.asarray(v) for v in leaves(function(*xs))]


def derived(function: Callable, arrays: Sequence[Any]) -> tuple[Callable, list[int]]:
    """The inexact results as a function of the inexact arguments, given all; and which they are."""
    moving = [i for i, a in enumerate(arrays) if is_inexact(a.dtype) and a.size]

    def of(xs: Sequence[Any]) -> Callable:
        def inner(*some: Any) -> list:
            full = list(xs)
            for i, v in zip(moving, some):
                full[i] = v
            out = leaves(function(*full))
            return [v for v in out if isinstance(v, Value) and is_inexact(v.dtype)]

        return inner

    return of, moving


def problem_of(
    function: Callable, pair: Sequence[Sequence[Any]], axes: Axes, mode: str, least: bool
) -> Problem | None:
    """The function itself, a derivative of it, or it mapped; None if it has no derivative."""
    arrays, again = pair
    types = sized_types(arrays, axes, least)
    plain = as_values(function)
    if mode in ("values", "ragged"):
        return Problem(plain, arrays, types, lambda: plain(*arrays))
    if mode == "vmap":
        stacked = [snp.stack([a, b]) for a, b in zip(arrays, again)]
        both = [t.with_shape((2, *t.shape)) for t in types]
        wanted = lambda: [
            np.stack(v) for v in zip(*[list(map(np.asarray, plain(*xs))) for xs in pair])
        ]
        return Problem(st.vmap(plain), stacked, both, wanted)
    of, moving = derived(function, arrays)
    out = of(arrays)(*[arrays[i] for i in moving])
    if not (moving and out):
        return None
    count, rng = len(arrays), np.random.default_rng(zlib.crc32(repr(axes).encode()))
    if mode == "jvp":

        def tangents(*xs: Any) -> list:
            some = tuple(xs[i] for i in moving)
            return list(st.jvp(of(xs[:count]), some, tuple(xs[count:]))[1])

        more = [_direction(rng, arrays[i]) for i in moving]
        args = [*arrays, *more]
        both = [*types, *[types[i] for i in moving]]
        return Problem(tangents, args, both, lambda: tangents(*args))

    def cotangents(*xs: Any) -> list:
        some = [xs[i] for i in moving]
        return list(st.vjp(of(xs[:count]), *some)[1](list(xs[count:])))

    def recorded(*xs: Any) -> Any:
        return of(xs)(*[xs[i] for i in moving]), None

    args = [*arrays, *[_direction(rng, v) for v in out]]
    outs = record(recorded, types)[0].out_types
    outs = [array_type(t.shape, t.dtype) for t in outs]
    return Problem(cotangents, args, [*types, *outs], lambda: cotangents(*args))


def _direction(rng: np.random.Generator, like: Any) -> Any:
    out = rng.uniform(-1, 1, like.shape)
    if is_inexact(like.dtype) and like.dtype.kind == "c":
        out = out + 1j * rng.uniform(-1, 1, like.shape)
    return snp.asarray(out, dtype=like.dtype)


# Attempts


def garbage(x: Any, shape: Sequence[int]) -> np.ndarray:
    """The array in front of a larger one of NaN, infinities, the greatest numbers, and True."""
    whole = np.empty(shape, x.dtype)
    if whole.dtype.kind in "iu":
        info = np.iinfo(whole.dtype)
        fill = [info.max, info.min, info.max - 1]
    elif whole.dtype.kind == "b":
        fill = [True]
    else:
        fill = [np.nan, np.inf, -1e30 if whole.dtype.itemsize > 2 else -6e4, -np.inf]
    whole.ravel()[:] = np.resize(np.asarray(fill).astype(whole.dtype), whole.size)
    whole[tuple(slice(n) for n in x.shape)] = np.asarray(x)
    return whole


def attempt(function: Callable, pair: Sequence[Sequence[Any]], axes: Axes, mode: str) -> Outcome:
    """Trace and write for a bucket, if this is not refused, and run.

    `pair` are the arguments of two examples; all modes but the mapped ones take the first. Where a
    size of 1 or more is refused, one that is at least that of the arrays is tried.
    """
    for least in (True, False):
        try:
            return _attempt(function, pair, axes, mode, least)
        except (SizeError, MissingRuleError, TypeError, ValueError) as error:
            if not is_refusal(error):
                raise
            refused = error
        if not isinstance(refused, SizeError):
            break
    return Outcome(refused)


def evaluated(program: Program, args: Sequence[Any]) -> list[Any]:
    """What it gives, operation by operation; SciPy's functions warn of what is past the ends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return evaluate(program, args)


def _attempt(
    function: Callable, pair: Sequence[Sequence[Any]], axes: Axes, mode: str, least: bool
) -> Outcome:
    problem = problem_of(function, pair, axes, mode, least)
    if problem is None:
        return Outcome(None)
    program, _, captured = record(lambda *xs: (problem.function(*xs), None), problem.types)
    variables, known = variables_of(program), sizes_of(problem)
    most = {v: known[v] + 2 + 3 * k for k, v in enumerate(variables)}
    fixed = padded_program(program, variables, most)
    sizes = [snp.asarray(known[v], np.int32) for v in variables]
    carriers = [t.shape for t in fixed.in_types[len(variables) :]]
    ran = frozenset(rules_of(program))
    if mode != "ragged":
        args = [garbage(x, shape) for x, shape in zip(problem.args, carriers)]
        got = evaluated(fixed, [*sizes, *map(snp.asarray, args), *captured])
        return Outcome(None, got, problem.wanted(), ran)
    over = (True,) * (len(variables) + len(problem.args)) + (False,) * len(captured)
    mapped, _ = vmap_program(fixed, 2, over, (True,) * len(fixed.outputs))
    both = [np.stack([garbage(x, s) for x in each]) for *each, s in zip(*pair, carriers)]
    every = [snp.stack([n, n]) for n in sizes]
    got = evaluated(mapped, [*every, *map(snp.asarray, both), *captured])
    wanted = [v for xs in pair for v in problem.function(*xs)]
    return Outcome(None, [x[i] for i in (0, 1) for x in got], wanted, ran)


def rules_of(program: Program) -> Iterator[type[Primitive]]:
    """The classes of the operations whose rules write this program for a bucket."""
    for e in program.equations:
        primitive: Any = e.primitive
        types = [v.type for v in (*e.inputs, *e.outputs)]
        if primitive.holds_programs:
            sized = isinstance(primitive, SizedCall)  # it is written for sizes inside and outside
            inner = primitive.program if sized else primitive.inlined()
            yield type(primitive)
            for p in primitive.programs() if inner is None else [inner]:
                yield from rules_of(p)
        elif any(is_size(n) for t in types for n in t.shape) or not e.inputs:
            yield type(primitive)


def is_refusal(error: Exception) -> bool:
    """Whether an error is a refusal: of its own kind, or about shapes with sizes in them."""
    return isinstance(error, (SizeError, MissingRuleError)) or bool(
        re.search(r"\bn\d\b", str(error))
    )


def compare(got: Sequence, wanted: Sequence, tolerance: float, where: str) -> None:
    """Assert that the valid parts of carriers are the values without padding."""
    assert len(got) == len(wanted), f"{where}: {len(got)} results, expected {len(wanted)}"
    for a, b in zip(got, wanted):
        assert a.ndim == np.ndim(b) and a.dtype == b.dtype, f"{where}: {a.type} for {b}"
        close(valid_part(a, b), b, tolerance, where)


def valid_part(carrier: Any, like: Any) -> np.ndarray:
    """What is not padding."""
    return np.asarray(carrier)[tuple(slice(n) for n in np.shape(like))]


def holds(
    function: Callable,
    arrays: Sequence[Any],
    axes: Axes,
    modes: Sequence[str] = MODES,
    tolerance: float = 1.0,
    again: Sequence[Any] | None = None,
) -> None:
    """Assert the law for a function of these arrays; `again` are those of another example."""
    pair = [[snp.asarray(a) for a in xs] for xs in (arrays, arrays if again is None else again)]
    for mode in modes:
        outcome = attempt(function, pair, axes, mode)
        if outcome.refused is not None:
            raise AssertionError(f"{mode}: refused") from outcome.refused
        compare(outcome.got, outcome.wanted, tolerance, mode)
