"""Random programs in float32, eager and compiled, against NumPy in float64.

``make program-storm ARGS="--programs 100000 --seed 0"``. Each program is a few functions of NumPy's
vocabulary applied to each other. It runs eagerly, under ``jit``, ``vmap`` and ``jit(vmap(grad))``;
compiled programs are compiled many together. What is expected is NumPy's result in float64, and for
the gradient the extrapolated difference along a random direction. How far float32 may be off is
measured: NumPy's program also runs with every intermediate result moved by a rounding of float32,
at random, and a result may be as far off as these are from each other, times a factor. What is
farther off is measured once more with many more runs, and a gradient's own program as well, since
its roundings are others. Exit status 1 after any disagreement, each printed with its seed.

LLVM takes three quarters of the time to optimize machine code. Without that, by the flags that
``tests/conftest.py`` has in ``XLA_FLAGS``, the programs and XLA's own passes are the same.
"""

from __future__ import annotations

import argparse
import collections
import functools
import random
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.special

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.graph import record_call

__all__ = ["Program", "Step", "check", "draw_program", "main"]

_BATCH = 3
_TOGETHER = 48
"""So many programs are one compiled program: a compilation of one alone takes mostly overhead."""

_RUNS = 6
_MORE_RUNS = 48
"""So many where the first few let a result be wrong: by chance, all six may move alike."""

_FACTOR = 12
"""How much farther off than the farthest of the moved runs a result may be. Functions of several
roundings, such as ``tanh`` and sums in another order, count as one step."""

_MEASURED = 0.01
"""The most, of a result, that moving the steps may move it: as the tangent of a large number, one
that moves more may move by anything."""

_ROUNDING = 2.0**-23
_TINY = 2.0**-120
_LARGEST, _LEAST = 1e37, 1e-36
"""Examples with results beyond are left out: float32 has infinities there, and compiled programs
take subnormal numbers for zero."""


class Step(NamedTuple):
    """A function of earlier values, by their numbers."""

    name: str
    apply: Callable[..., Any]
    inputs: tuple[int, ...]


class Program(NamedTuple):
    """Steps one after the other; the last value is the result."""

    seed: int
    shape: tuple[int, ...]
    scale: float
    steps: list[Step]

    @property
    def words(self) -> str:
        """The program in a line."""
        steps = [f"{step.name}{step.inputs}" for step in self.steps]
        return f"{self.shape} times {self.scale:g}: " + ", ".join(steps)

    def __call__(self, library: Any, x: Any) -> Any:
        """Apply the steps, with functions of this library."""
        values = [x]
        for step in self.steps:
            values.append(step.apply(library, *[values[i] for i in step.inputs]))
        return values[-1]

    def sample(self) -> np.ndarray:
        """A batch of arguments."""
        rng = np.random.default_rng(self.seed)
        return (self.scale * rng.standard_normal((_BATCH, *self.shape))).astype(np.float32)


SUMS = frozenset({"sum", "mean", "average", "matmul", "trapezoid", "var", "logaddexp"})
STEEP = frozenset({"cbrt", "sqrt"})
"""Functions without a slope at 0."""
JUMPS = frozenset({"floor", "rint", "sign", "mod"})
"""Steps whose differences say nothing of their derivative."""


class Moved:
    """NumPy and SciPy in float64, with float32's range, and each result moved by its rounding.

    The moves are random and the same each time for one seed; without a seed there are none. The
    seed 0 is for results rounded to float32, which a jump may lie next to.
    """

    outside = False
    """Whether a result was beyond float32's range, or below its normal numbers."""
    steep = False
    """Whether a step has no slope there, or no number as its result."""

    def __init__(self, seed: int | None = None) -> None:
        self.rng = np.random.default_rng(seed) if seed else None
        self.rounds = seed == 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(np, name, None) or getattr(scipy.special, name)
        if name in STEEP:
            return lambda x: self.moved(function(self.kept_from_zero(x)))
        if name == "cumsum":
            return self.running_sum
        if name in ("prod", "cumprod"):
            return lambda x, **options: self.moved(
                function(self.in_any_order(self.moved(x), options["axis"]), **options), _many(x)
            )
        if name == "copysign":
            return lambda x, y: self.moved(function(x, self.with_a_sign(y)))
        if name in SUMS:  # each partial sum is rounded, as if the terms were
            return lambda x, *args, **options: self.moved(
                function(self.moved(x), *map(self.moved, args), **options), _many(x)
            )
        return lambda *args, **options: self.moved(function(*args, **options))

    def running_sum(self, x: Any, axis: int) -> Any:
        """The running sum, each partial sum rounded before the next term."""
        sums = np.cumsum(self.moved(x), axis)
        return self.moved(sums + np.cumsum(self.moved(sums) - sums, axis))

    def in_any_order(self, x: Any, axis: int) -> Any:
        """The same; notes whether some order of the factors leaves float32's range."""
        self.outside |= bool(np.any(np.prod(np.maximum(np.abs(x), 1), axis=axis) > _LARGEST))
        return x

    def with_a_sign(self, x: Any) -> Any:
        """The same; what a library makes of the sign of NaN is its own."""
        self.outside |= bool(np.any(np.isnan(x)))
        return x

    def kept_from_zero(self, x: Any) -> Any:
        """The same; notes whether it is 0 anywhere."""
        self.steep |= bool(np.any(np.asarray(x) == 0))
        return x

    def moved(self, x: Any, times: float = 1.0) -> Any:
        """The result of a function, moved by so many roundings."""
        x = np.asarray(x)
        if x.dtype.kind != "f":
            return x
        self.steep |= not np.all(np.isfinite(x))
        if self.rng is not None:
            # Of different sizes: equal ones of two steps can cancel in every run.
            sizes = self.rng.uniform(0.6, 1.4, x.shape)
            x = x * (1 + times * _ROUNDING * sizes * self.rng.choice([-1.0, 1.0], x.shape))
        if self.rounds:
            x = x.astype(np.float32).astype(np.float64)
        size = np.abs(x)
        self.outside |= bool(np.any((size > _LARGEST) | ((size < _LEAST) & (size > 0))))
        return x


def _many(x: Any) -> float:
    """How many roundings the sum or product along an axis of an array may be off by."""
    return max(1.0, max(np.shape(x)) ** 0.5 / 4)


class Own:
    """The same functions of Stretto's."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return getattr(snp, name, None) or getattr(st.scipy.special, name)


OWN = Own()


def _named(name: str) -> Callable[..., Any]:
    return lambda library, *xs: getattr(library, name)(*xs)


def _positive(library: Any, x: Any) -> Any:
    return library.add(library.abs(x), 0.125)


SMOOTH = (
    *("sin", "cos", "tan", "tanh", "sinh", "cosh", "arctan", "arcsinh", "exp", "expm1", "exp2"),
    *("square", "deg2rad", "expit", "erf", "erfc", "ndtr", "log_ndtr", "negative", "positive"),
)
ODD = ("abs", "sign", "cbrt", "floor", "rint")
PAIRS = (*("add", "subtract", "multiply", "maximum", "minimum", "logaddexp", "copysign"),)

UNARY: dict[str, Callable[..., Any]] = {
    **{name: _named(name) for name in (*SMOOTH, *ODD)},
    "log": lambda lib, x: lib.log(_positive(lib, x)),
    "log1p": lambda lib, x: lib.log1p(lib.abs(x)),
    "log2": lambda lib, x: lib.log2(_positive(lib, x)),
    "sqrt": lambda lib, x: lib.sqrt(_positive(lib, x)),
    "reciprocal": lambda lib, x: lib.divide(1.0, _positive(lib, x)),
    "arcsin": lambda lib, x: lib.arcsin(lib.multiply(0.9, lib.tanh(x))),
    "arccos": lambda lib, x: lib.arccos(lib.multiply(0.9, lib.sin(x))),
    "arctanh": lambda lib, x: lib.arctanh(lib.multiply(0.9, lib.tanh(x))),
    "arccosh": lambda lib, x: lib.arccosh(lib.add(1.5, lib.abs(x))),
    "cube": lambda lib, x: lib.power(x, 3),
    "power of 1.5": lambda lib, x: lib.power(_positive(lib, x), 1.5),
    "2.5 x - 1": lambda lib, x: lib.subtract(lib.multiply(2.5, x), 1.0),
    "clip": lambda lib, x: lib.clip(x, -0.75, 1.25),
    "where positive": lambda lib, x: lib.where(x > 0, x, lib.multiply(0.25, x)),
    "raw log": lambda lib, x: lib.log(x),
    "raw sqrt": lambda lib, x: lib.sqrt(x),
    "nan_to_num": lambda lib, x: lib.nan_to_num(x, nan=0.5, posinf=2.0, neginf=-2.0),
}

BINARY: dict[str, Callable[..., Any]] = {
    **{name: _named(name) for name in PAIRS},
    # Neither is differentiable at (0, 0).
    "arctan2": lambda lib, x, y: lib.arctan2(x, _positive(lib, y)),
    "hypot": lambda lib, x, y: lib.hypot(x, _positive(lib, y)),
    "divide": lambda lib, x, y: lib.divide(x, _positive(lib, y)),
    "power": lambda lib, x, y: lib.power(_positive(lib, x), lib.tanh(y)),
    "where": lambda lib, x, y: lib.where(x > y, x, lib.negative(y)),
    "mod": lambda lib, x, y: lib.mod(x, _positive(lib, y)),
}


def _exponentials(lib: Any, x: Any) -> Any:
    return lib.exp(lib.subtract(x, lib.max(x, axis=-1, keepdims=True)))


WHOLE: dict[str, Callable[..., Any]] = {
    "sum": lambda lib, x: lib.sum(x, axis=-1, keepdims=True),
    "mean": lambda lib, x: lib.mean(x, axis=0, keepdims=True),
    "max": lambda lib, x: lib.max(x, axis=-1, keepdims=True),
    "min": lambda lib, x: lib.min(x, axis=0, keepdims=True),
    "prod": lambda lib, x: lib.prod(x, axis=-1, keepdims=True),
    "var": lambda lib, x: (
        lib.mean(
            lib.square(lib.subtract(x, lib.mean(x, axis=-1, keepdims=True))), axis=-1, keepdims=True
        )
        if lib is not OWN
        else lib.var(x, axis=-1, keepdims=True)
    ),
    "norm": lambda lib, x: lib.sqrt(lib.add(lib.sum(lib.square(x), axis=-1, keepdims=True), 0.01)),
    "softmax": lambda lib, x: lib.divide(
        _exponentials(lib, x), lib.sum(_exponentials(lib, x), axis=-1, keepdims=True)
    ),
    "cumsum": lambda lib, x: lib.cumsum(x, axis=-1),
    "cumprod": lambda lib, x: lib.cumprod(x, axis=0),
    "sort": lambda lib, x: lib.sort(x, axis=-1),
    "median": lambda lib, x: lib.median(x, axis=-1, keepdims=True),
    "diff": lambda lib, x: lib.diff(x, axis=-1) if x.shape[-1] > 1 else x,
    "flip": lambda lib, x: lib.flip(x, axis=-1),
    "roll": lambda lib, x: lib.roll(x, 1, axis=0),
    "transpose": lambda lib, x: lib.swapaxes(x, 0, -1),
    "first half": lambda lib, x: x[..., : (x.shape[-1] + 1) // 2],
    "every other": lambda lib, x: x[..., ::2],
    "rows": lambda lib, x: lib.take(x, np.array([0, -1, 0]), axis=0),
    "doubled": lambda lib, x: lib.concatenate([x, lib.negative(x)], axis=-1),
    "gram": lambda lib, x: lib.matmul(x, lib.swapaxes(x, -1, -2)),
    "outer": lambda lib, x: lib.multiply(lib.sum(x, axis=-1, keepdims=True), x[..., :1]),
    "tril": lambda lib, x: lib.tril(x),
    "average": lambda lib, x: lib.average(x, axis=-1, keepdims=True),
    "trapezoid": lambda lib, x: lib.trapezoid(x, axis=-1)[..., None],
    # It adds a part of a distance to a value of up to 9, whose rounding the 9 stands for.
    "interp": lambda lib, x: lib.add(
        lib.interp(x, np.arange(-3.0, 4.0), np.arange(-3.0, 4.0) ** 2), 9.0
    ),
    "greatest": lambda lib, x: lib.take_along_axis(
        x, lib.argmax(x, axis=-1, keepdims=True), axis=-1
    ),
}

_MOST = 64


_SMALL = [(1, 4), (3, 5), (4, 4), (2, 1), (1, 1), (5, 2)]
_LARGE = [(33, 257), (64, 40), (1, 3000), (500, 7), (96, 96)]
"""Of so many elements that kernels are vectorized, and go to libraries."""


def draw_program(seed: int, most: int = 7, large: bool = False) -> Program:
    """Draw up to so many steps."""
    rng = random.Random(f"program {seed}")
    shape = rng.choice(_LARGE if large else _SMALL)
    scale = rng.choice([1.0, 1.0, 0.1, 5.0, 30.0, 1e-3, 1e3])
    values = [np.zeros(shape)]
    steps: list[Step] = []
    while len(steps) < rng.randint(2, most):
        kind = rng.random()
        i = len(values) - 1 if rng.random() < 0.7 else rng.randrange(len(values))
        if kind < 0.5:
            name, inputs = rng.choice([*UNARY]), (i,)
            apply = UNARY[name]
        elif kind < 0.75:
            name, inputs = rng.choice([*BINARY]), (i, rng.randrange(len(values)))
            apply = BINARY[name]
        else:
            name, inputs = rng.choice([*WHOLE]), (i,)
            apply = WHOLE[name]
        with np.errstate(all="ignore"):
            try:
                value = np.asarray(apply(Moved(), *[values[k] for k in inputs]))
            except ValueError:  # shapes that do not go together
                continue
        if 0 < value.size <= _MOST * (300 if large else 1) and value.ndim == 2:
            values.append(value)
            steps.append(Step(name, apply, inputs))
    return Program(seed, shape, scale, steps)


class Expected(NamedTuple):
    """What a program gives for each example, moved and not, and its slope along a direction."""

    runs: np.ndarray
    """The values; the first without moves."""
    direction: np.ndarray
    slopes: np.ndarray
    """The slopes of the sum, in the same order; NaN where they cannot be told."""
    told: np.ndarray
    """Which examples stay in float32's range."""
    smooth: np.ndarray
    """Of which examples every step has a slope."""


def _slope(program: Program, x: np.ndarray, along: np.ndarray, seed: int | None) -> float:
    """The slope of the sum along a direction; NaN where two steps disagree, or at a kink."""
    if any([step.name in JUMPS for step in program.steps]):
        return np.nan
    step = 1e-4 * max(0.01, min(program.scale, 1.0))

    def at(t: float) -> float:
        return float(np.sum(program(Moved(seed), x + t * along)))

    ahead, behind, here = at(step), at(-step), at(0.0)
    near, nearer = at(step / 2), at(-step / 2)
    wide, narrow = (ahead - behind) / (2 * step), (near - nearer) / step
    one_sided = (near - here) / (step / 2)
    rounding = 1e-15 * abs(here) / step
    if rounding > 1e-7 + 1e-5 * abs(narrow):
        return np.nan
    if not abs(wide - narrow) <= 1e-4 * abs(narrow) + 1e-7 + rounding:
        return np.nan
    if not abs(one_sided - narrow) <= 0.02 * abs(narrow) + 1e-7 + rounding:
        return np.nan
    return (4 * narrow - wide) / 3


def expected(program: Program, runs: int = _RUNS) -> Expected:
    """What NumPy gives in float64, with and without rounding to float32 on the way."""
    xs = program.sample().astype(np.float64)
    seeds = [None, *range(runs)]
    along = np.random.default_rng(program.seed + 1).standard_normal(xs.shape)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = [Moved() for _ in xs]
        first = [program(library, x) for library, x in zip(plain, xs, strict=True)]
        rest = [[program(Moved(seed), x) for x in xs] for seed in seeds[1:]]
        values = np.array([first, *rest])
        slopes = np.array(
            [
                [_slope(program, x, d, seed) for x, d in zip(xs, along, strict=True)]
                for seed in (None, 1, 2)
            ]
        )
    told = np.array([not library.outside for library in plain])
    return Expected(values, along, slopes, told, np.array([not one.steep for one in plain]))


def _own(program: Program, x: Any) -> Any:
    return program(OWN, x)


def _gradient(program: Program, x: Any) -> Any:
    return st.grad(lambda x: snp.sum(program(OWN, x)))(x)


def _together(programs: Sequence[Program]) -> tuple[list[Any], list[Any], list[Any]]:
    """All programs' results under ``jit`` and ``jit(vmap)``, and their gradients."""

    def run(xs: Sequence[Any]) -> Any:
        one = [_own(p, x[0]) for p, x in zip(programs, xs, strict=True)]
        many = [st.vmap(functools.partial(_own, p))(x) for p, x in zip(programs, xs, strict=True)]
        slopes = [
            st.vmap(functools.partial(_gradient, p))(x) for p, x in zip(programs, xs, strict=True)
        ]
        return one, many, slopes

    with st.config(disk_cache=False):
        return st.jit(run)([p.sample() for p in programs])


def _off(got: Any, runs: np.ndarray, told: Any) -> str:
    """Say where a result is farther off than it may be; empty if nowhere."""
    got, want = np.asarray(got, np.float64), runs[0]
    told = np.reshape(told, np.shape(told) + (1,) * (want.ndim - np.ndim(told)))
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    with np.errstate(all="ignore"):
        spread = np.max(np.abs(runs - want), axis=0)
        bound = _FACTOR * spread + 4 * _ROUNDING * np.abs(want) + _TINY
        measured = np.isfinite(spread) & (spread <= _MEASURED * np.abs(want))
        wrong = measured & ~(np.abs(got - want) <= bound)
    wrong |= np.all(np.isnan(runs), axis=0) & ~np.isnan(got)
    wrong &= told
    if not wrong.any():
        return ""
    k = tuple(np.argwhere(wrong)[0].tolist())
    return f"{got[k]} at {k}, expected {want[k]}, within {bound[k]:.3g}"


def check(programs: Sequence[Program]) -> list[tuple[Program, str, str]]:
    """Every disagreement: the program, the way it ran, and what was off."""
    wanted = [expected(p) for p in programs]
    found: list[tuple[Program, str, str]] = []
    one, many, slopes = _together(programs)
    for program, want, first, batch, slope in zip(programs, wanted, one, many, slopes, strict=True):
        x = program.sample()
        with np.errstate(all="ignore"):
            alone, mapped = _own(program, x[0]), st.vmap(functools.partial(_own, program))(x)
        for way, got, at in (
            ("eager", alone, 0),
            ("jit", first, 0),
            ("vmap", mapped, slice(None)),
            ("jit(vmap)", batch, slice(None)),
        ):
            if _off(got, want.runs[:, at], want.told[at]):
                more = expected(program, _MORE_RUNS)
                if wrong := _off(got, more.runs[:, at], more.told[at]):
                    found.append((program, way, wrong))
        gradient = np.asarray(slope, np.float64)
        if _slopes_off(gradient, want, np.zeros(len(x))) and (
            wrong := _slopes_off(gradient, want, _spread_of_gradient(program, want))
        ):
            found.append((program, "jit(vmap(grad))", wrong))
    return found


def _slopes_off(gradient: np.ndarray, want: Expected, spread: np.ndarray) -> str:
    """Say which example's gradient is off; empty if none."""
    axes = tuple(range(1, gradient.ndim))
    with np.errstate(all="ignore"):
        along = np.sum(gradient * want.direction, axis=axes)
        size = np.sum(np.abs(gradient * want.direction), axis=axes)
        apart = np.max(np.abs(want.slopes - want.slopes[0]), axis=0)
        known = want.told & want.smooth & np.isfinite(apart) & (np.abs(want.slopes[0]) < 1e30)
        bound = 100 * apart + 2e-4 * (np.where(np.isfinite(size), size, 0) + 1e-3)
        bound = bound + 2e-4 * np.abs(want.slopes[0]) + _FACTOR * spread
        wrong = known & ~(np.abs(along - want.slopes[0]) <= bound)
    if not wrong.any():
        return ""
    k = int(np.argmax(wrong))
    return f"{along[k]} of example {k}, expected {want.slopes[0][k]}, within {bound[k]:.3g}"


def _spread_of_gradient(program: Program, want: Expected) -> np.ndarray:
    """How far each example's slope moves with the roundings of the gradient's own program.

    Infinite where it leaves float32's range on the way.
    """
    xs = program.sample().astype(np.float64)
    with st.enable_x64(), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gradient = functools.partial(_gradient, program)
        graph, _, captured = record_call(gradient, (xs[0],), {})
        spread = np.zeros(len(xs))
        for k, (x, along) in enumerate(zip(xs, want.direction, strict=True)):
            libraries = [Moved(), *map(Moved, range(_MORE_RUNS // 2))]
            runs = [np.sum(_run(graph, [x, *captured], library) * along) for library in libraries]
            spread[k] = np.inf if libraries[0].outside else np.max(np.abs(runs - runs[0]))
    return spread


def _run(program: Any, args: Sequence[Any], library: Moved) -> np.ndarray:
    """A program's result, each operation by its definition in NumPy and then moved."""
    known = dict(zip(program.inputs, args, strict=True))

    def value(atom: Any) -> Any:
        return known[atom] if atom in known else np.full(atom.type.shape, atom.value)

    for e in program.equations:
        inputs = [np.asarray(value(a), a.type.dtype) for a in e.inputs]
        if e.primitive.holds_programs:
            results = e.primitive(*inputs)
        else:
            results = e.primitive.reference(*inputs)
        for v, result in zip(
            e.outputs, results if e.primitive.multiple else [results], strict=True
        ):
            known[v] = library.moved(np.asarray(result))
    (out,) = program.outputs
    return value(out)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; print each disagreement and a summary."""
    parser = argparse.ArgumentParser(prog="program_storm", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=2_000)
    parser.add_argument("--large", action="store_true", help="of thousands of elements")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    given = parser.parse_args(arguments)
    start = time.monotonic()
    counts: collections.Counter[str] = collections.Counter()
    said = 0
    while said < given.programs and time.monotonic() - start < 60 * given.minutes:
        count = min(_TOGETHER, given.programs - said)
        programs = [draw_program(given.seed + said + i, large=given.large) for i in range(count)]
        for program, way, wrong in check(programs):
            counts[way] += 1
            print(f"{program.seed}, {way}: {wrong}\n    {program.words}", flush=True)
        said += count
        if said % (100 * _TOGETHER) == 0:
            print(f"{said} programs after {time.monotonic() - start:.0f} s", flush=True)
        st.clear_caches()
    print(
        f"{said} programs, {sum(counts.values())} disagreements {dict(counts)}, "
        f"{time.monotonic() - start:.0f} s",
        flush=True,
    )
    return bool(counts)


if __name__ == "__main__":
    sys.exit(main())
