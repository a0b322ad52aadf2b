"""Random sums and products of few operands, by XLA's library YNNPACK and without it.

``make library-storm ARGS="--programs 5000 --seed 0"``. Each program adds up, repeats and multiplies
arrays of which some are each member's own and some are shared, so that XLA makes kernels of the
library's of sums, products, broadcasts and what is element-wise between them. Many are compiled
together, as by default, with sums alone in the library, and with products, too; each result is held
to that of a program without the library. ``make plan-storm`` holds whole networks, in which few
kernels are of such kinds. Exit status 1 after any disagreement, each printed with its seed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import stretto as st
import stretto.numpy as snp

__all__ = ["Case", "disagreements", "draw_case", "main"]

LIBRARY = "xla_cpu_experimental_ynn_fusion_type"
_SUMS, _PRODUCTS = "LIBRARY_FUSION_TYPE_REDUCE", "LIBRARY_FUSION_TYPE_DOT"
WAYS = {"default": None, "sums": _SUMS, "products and sums": f"{_PRODUCTS},{_SUMS}"}
"""What the library gets; without a word what we choose."""

_TOGETHER = 12
_BOUND = 1e-3
"""How far results may be apart, as a share of the largest: sums are taken in other orders."""

_ROUNDING = 1e-5
"""The same where all that is left of numbers near 1 is their rounding."""


class Case(NamedTuple):
    """A function of one member, and all members' arguments."""

    seed: int
    function: Callable[..., Any]
    arguments: tuple[np.ndarray, ...]
    own: tuple[bool, ...]
    """Which arguments have an axis of members."""
    words: str

    def together(self, arguments: Sequence[Any]) -> Any:
        """All members at once."""
        return st.vmap(self.function, in_axes=tuple([0 if o else None for o in self.own]))(
            *arguments
        )


def _mean(x: Any, axis: int) -> Any:
    """A sum along an axis that is about as large as its terms."""
    return snp.sum(x, axis, keepdims=True) / x.shape[axis] ** 0.5 if -axis <= x.ndim else x


UNARY: dict[str, Callable[[Any], Any]] = {
    "square": lambda x: x * x,
    "half": lambda x: 0.5 * x,
    "exp": lambda x: snp.exp(0.1 * snp.clip(x, -9.0, 9.0)),
    "negative": lambda x: -x,
    "softmax": lambda x: snp.exp(0.1 * x - snp.max(0.1 * x, -1, keepdims=True)),
}
SUMS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: _mean(x, -1),
    "sum of columns": lambda x: _mean(x, -2),
    "sum of the first axis": lambda x: _mean(x, -x.ndim) if x.ndim else x,
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "times": lambda x, y: x * y,
    "plus": lambda x, y: x + y,
    "minus": lambda x, y: x - y,
    "over": lambda x, y: x / (y * y + 1),
}


def draw_case(seed: int) -> Case:
    """Draw a function of a few steps, and which of its arguments members share."""
    rng, numbers = random.Random(f"library {seed}"), np.random.default_rng(seed)
    members, rows = rng.choice([2, 3, 5]), rng.choice([64, 128, 256])
    columns, lead = rng.choice([32, 64]), rng.choice([(), (4,), (8,)])
    shapes = {
        "p": (*lead, rows, columns),
        "x": (*lead, rows, columns),
        "row": (*lead, rows, 1),
        "column": (*lead, 1, columns),
        "bias": (columns,),
        "matrix": (rows, columns),
        "weight": (columns, columns),
    }
    own = [rng.random() < (0.7 if name == "p" else 0.3) for name in shapes]
    own[0] |= not any(own)
    values = ["p", "x", *rng.sample(["row", "column", "bias", "matrix"], rng.randint(0, 2))]
    steps: list[tuple[str, Callable[..., Any], tuple[str, ...]]] = []

    def step(name: str, apply: Callable[..., Any], *inputs: str) -> str:
        values.append(f"v{len(steps)}")
        steps.append((name, apply, inputs))
        return values[-1]

    def drawn(of: dict[str, Callable[..., Any]], *inputs: str) -> str:
        name = rng.choice([*of])
        return step(name, of[name], *inputs)

    def joined(x: str) -> str:
        pair = (x, rng.choice(values)) if rng.random() < 0.5 else (rng.choice(values), x)
        return drawn(BINARY, *pair)

    product = lambda x, w: 0.3 * (x @ w) if x.ndim > 1 and x.shape[-1] == w.shape[0] else x
    for _ in range(rng.choice([1, 1, 2])):
        value = rng.choice(["x", "p", rng.choice(values)])
        for _ in range(rng.randint(0, 2)):
            value = joined(value)
        if rng.random() < 0.3:
            value = drawn(UNARY, value)
        if rng.random() < 0.3:
            value = step("times the weight", product, value, "weight")
        if rng.random() < 0.9:
            value = drawn(SUMS, value)
        for _ in range(rng.randint(0, 3)):
            value = joined(value)

    def function(*arguments: Any) -> Any:
        known = dict(zip(shapes, arguments, strict=True))
        for k, (_, apply, inputs) in enumerate(steps):
            known[f"v{k}"] = apply(*[known[name] for name in inputs])
        return known[values[-1]]

    arguments = [
        numbers.standard_normal((members, *shape) if mine else shape).astype(np.float32)
        for shape, mine in zip(shapes.values(), own, strict=True)
    ]
    theirs = [name for name, mine in zip(shapes, own, strict=True) if mine]
    words = "; ".join([f"{name} {', '.join(inputs)}" for name, _, inputs in steps])
    whole = f"{members} members of {shapes['x']}, own {theirs}: {words}"
    return Case(seed, function, tuple(arguments), tuple(own), whole)


def _results(cases: Sequence[Case], work: str | None) -> list[np.ndarray]:
    def run(arguments: Sequence[Any]) -> list[Any]:
        return [case.together(given) for case, given in zip(cases, arguments, strict=True)]

    options = None if work is None else {LIBRARY: work}
    # XLA and its library are compared: our kernels stand for neither.
    with st.config(disk_cache=False, interpret_small=False, roll_loops=False, kernels=False):
        compiled = st.jit(run, compiler_options=options)
        return [np.asarray(y) for y in compiled([case.arguments for case in cases])]


def disagreements(cases: Sequence[Case], ways: Sequence[str] = tuple(WAYS)) -> list[str]:
    """Say which results are others by the library, in each of these ways."""
    wanted = _results(cases, "")
    found = []
    for way in ways:
        for case, got, want in zip(cases, _results(cases, WAYS[way]), wanted, strict=True):
            largest = np.abs(want).max()
            apart = np.abs(got - want).max()
            if np.isfinite(largest) and not apart <= _BOUND * largest + _ROUNDING:
                found.append(f"{case.seed}, {way}: {case.words}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; print each disagreement and a summary."""
    parser = argparse.ArgumentParser(prog="library_storm", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=1_000)
    given = parser.parse_args(arguments)
    start, found = time.monotonic(), 0
    for first in range(given.seed, given.seed + given.programs, _TOGETHER):
        last = min(first + _TOGETHER, given.seed + given.programs)
        for words in disagreements([draw_case(seed) for seed in range(first, last)]):
            found += 1
            print(words, flush=True)
        st.clear_caches()
    seconds = time.monotonic() - start
    print(f"{given.programs} programs, {found} disagreements, {seconds:.0f} s", flush=True)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
