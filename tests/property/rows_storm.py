"""Random programs along rows by our kernel, beside NumPy in float64: values, derivatives, members.

``make rows-storm ARGS="--minutes 20 --seed 0"``. Each program makes arrays of one shape out of each
other, and one value a row by sums, maxima and minima along its last axes, along some with others
behind, or along the first as well: operations are drawn one by one, so that most programs are no
softmax and no norm. Operands are repeated along some axes, within rows as well, and some hold NaN,
infinities, zeros of both signs and denormals. Values are held to NumPy's, by the largest number
that stands between; derivatives to the same program without kernels. ``storms`` says how they run.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import stretto as st
import stretto.numpy as snp
from tests.property import storms

__all__ = ["Case", "disagreement", "draw_case", "operands", "results", "values"]

_LEADS = ((70,), (9, 8), (3, 5, 7), (130,), (2, 64), (1, 40), (257,))
_TAILS = ((33,), (64,), (100,), (7, 9), (1000,), (1025,), (4, 16), (5, 49), (3, 1100))
_CHANNELS = ((8,), (21,), (40,), (4, 6))
_BEHIND = ((32,), (49,), (6, 7), (5, 64), (300,))
"""Axes of rows, and behind them, where others lie behind."""
_OF_TWO = ("add", "sub", "mul", "max", "min", "ratio", "where")
_OF_ONE = ("exp", "abs", "neg", "square", "relu", "tame", "tanh", "log")
_ALONG = ("sum", "mean", "max of row", "min of row", "first")


class Step(NamedTuple):
    """An operation, and which of the values before it reads."""

    op: str
    reads: tuple[int, ...]


class Case(NamedTuple):
    """A program, the shapes of its operands, and what they hold."""

    lead: tuple[int, ...]
    tail: tuple[int, ...]
    behind: tuple[int, ...]
    over: bool
    dtype: str
    shapes: tuple[tuple[int, ...], ...]
    steps: tuple[Step, ...]
    returned: tuple[int, ...]
    members: bool
    special: bool
    seed: int

    @property
    def words(self) -> str:
        """The case in a line."""
        steps = "; ".join(f"{s.op} {s.reads}" for s in self.steps)
        of = f"{self.dtype} {self.lead} of {self.tail}"
        of += f" before {self.behind}" if self.behind else ""
        of += f"{', over the first' if self.over else ''}, operands {self.shapes}"
        more = f"{', members' if self.members else ''}{', special numbers' if self.special else ''}"
        return f"{of}{more}: {steps}; returns {self.returned}"


def draw_case(seed: int) -> Case:
    """Draw shapes, operands that are repeated along some axes, and operations."""
    rng = random.Random(f"rows {seed}")
    lead, tail, behind = rng.choice(_LEADS), rng.choice(_TAILS), ()
    if rng.random() < 0.4:
        lead, tail, behind = (
            rng.choice(((4,), (16,), (5, 3))),
            rng.choice(_CHANNELS),
            rng.choice(_BEHIND),
        )
    over = not behind and len(lead) > 1 and rng.random() < 0.5
    whole = (*lead, *tail, *behind)
    shapes = [whole]
    for _ in range(rng.randint(0, 3)):
        shape = [n if rng.random() < 0.6 else 1 for n in lead]
        kept = rng.choice((0, 1, len(tail), len(tail)))  # of the tail's axes
        shape += [*tail[:kept], *[1] * (len(tail) - kept)]
        shape += list(behind) if rng.random() < 0.6 else [1] * len(behind)
        shapes.append(tuple(shape) if rng.random() < 0.8 else (*tail, *behind))
    steps: list[Step] = []
    for number in range(rng.randint(6, 16)):
        known = len(shapes) + number
        late = lambda: max(rng.randrange(known), rng.randrange(known))  # noqa: B023
        family = rng.choice((_OF_TWO, _OF_TWO, _OF_ONE, _ALONG, _ALONG))
        op = rng.choice(family)
        reads = (late(), late()) if family is _OF_TWO else (late(),)
        steps.append(Step(op, reads))
    last = len(shapes) + len(steps) - 1
    also = rng.randrange(len(shapes), last + 1)
    return Case(
        lead,
        tail,
        behind,
        over,
        rng.choice(("float32", "float32", "float64")),
        tuple(shapes),
        tuple(steps),
        (last, also) if also != last else (last,),
        rng.random() < 0.3,
        rng.random() < 0.2,
        seed,
    )


def operands(case: Case) -> list[np.ndarray]:
    """The operands; the first is each member's own, where there are members."""
    random = np.random.default_rng(case.seed)
    found = []
    for number, shape in enumerate(case.shapes):
        own = (3,) if case.members and number == 0 else ()
        found.append(random.standard_normal((*own, *shape)).astype(case.dtype))
    if case.special:
        array = found[random.integers(len(found))]
        tiny = np.finfo(case.dtype).smallest_subnormal * 3
        values = [np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, 1e30, -1e30]
        array.ravel()[random.integers(0, array.size, 4)] = random.choice(values, 4)
    return found


def values(
    case: Case, numbers: Any, given: Sequence[Any], seen: list[Any] | None = None
) -> list[Any]:
    """What the program returns, in the functions of ``numbers``."""
    whole = (*case.lead, *case.tail, *case.behind)
    last = -len(case.behind)
    axes = (*[-len(whole)] * case.over, *range(last - len(case.tail), last))
    first = [slice(0, 1) if k - len(whole) in axes else slice(None) for k in range(len(whole))]
    known = [*given]

    def full(x: Any) -> Any:
        return numbers.broadcast_to(x, whole)

    for op, reads in case.steps:
        x, *more = [known[i] for i in reads]
        if op in _ALONG:
            x = full(x)
            known.append(
                {
                    "sum": lambda: numbers.sum(x, axes, keepdims=True),  # noqa: B023
                    "mean": lambda: numbers.mean(x, axes, keepdims=True),  # noqa: B023
                    "max of row": lambda: numbers.max(x, axes, keepdims=True),  # noqa: B023
                    "min of row": lambda: numbers.min(x, axes, keepdims=True),  # noqa: B023
                    "first": lambda: x[(..., *first)],  # noqa: B023
                }[op]()
            )
        elif more:
            (y,) = more
            known.append(
                {
                    "add": lambda: x + y,  # noqa: B023
                    "sub": lambda: x - y,  # noqa: B023
                    "mul": lambda: x * y,  # noqa: B023
                    "max": lambda: numbers.maximum(x, y),  # noqa: B023
                    "min": lambda: numbers.minimum(x, y),  # noqa: B023
                    "ratio": lambda: x / (1 + y * y),  # noqa: B023
                    "where": lambda: numbers.where(x < y, x, 0.5 * y),  # noqa: B023
                }[op]()
            )
        else:
            known.append(
                {
                    "exp": lambda: numbers.exp(numbers.minimum(x, 3)),  # noqa: B023
                    "abs": lambda: numbers.abs(x),  # noqa: B023
                    "neg": lambda: -x,  # noqa: B023
                    "square": lambda: x * x,  # noqa: B023
                    "relu": lambda: numbers.where(x <= 0, 0, x),  # noqa: B023
                    "tame": lambda: x / (1 + numbers.abs(x)),  # noqa: B023
                    "tanh": lambda: numbers.tanh(x),  # noqa: B023
                    "log": lambda: numbers.log1p(numbers.abs(x)),  # noqa: B023
                }[op]()
            )
    if seen is not None:
        seen += known
    return [full(known[i]) for i in case.returned]


def results(case: Case, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Values of all members, and the gradient of a weighted sum of them by the first operand."""

    def one(x: Any, *others: Any) -> Any:
        return values(case, snp, [x, *others])

    def weighted(x: Any, *others: Any) -> Any:
        size = np.prod(case.lead + case.tail + case.behind)
        weights = snp.cos(snp.arange(size, dtype=case.dtype))
        return sum([snp.sum(y * weights.reshape(y.shape)) for y in one(x, *others)])

    both = lambda *a: (one(*a), st.grad(weighted)(*a))
    if case.members:
        both = st.vmap(both, in_axes=(0, *[None] * (len(arrays) - 1)))
    return [np.asarray(leaf) for leaf in st.tree.leaves(st.jit(both)(*arrays))]


def expected(case: Case, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], float]:
    """The values in NumPy, in float64, and the largest number between."""
    wide = [a.astype(np.float64) for a in arrays]
    seen: list[Any] = []
    with np.errstate(all="ignore"):
        if not case.members:
            found = values(case, np, wide, seen)
        else:
            rows = [values(case, np, [x, *wide[1:]], seen) for x in wide[0]]
            found = [np.stack(column) for column in zip(*rows, strict=True)]
        largest = max([np.abs(v[np.isfinite(v)]).max(initial=0) for v in map(np.asarray, seen)])
    return found, float(largest)


def disagreement(case: Case, got: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> str:
    """Say in words where results differ by more than rounding; empty if nowhere."""
    with st.config(kernels=False):
        plain = results(case, arrays)
    wanted, largest = expected(case, arrays)
    eps = float(np.finfo(case.dtype).eps)
    for number, (a, c) in enumerate(zip(got, plain, strict=True)):
        name = f"value {number}" if number < len(wanted) else "gradient"
        if a.shape != c.shape or a.dtype != c.dtype:
            return f"{name}: {a.dtype}{a.shape}, expected {c.dtype}{c.shape}"
        if (np.isnan(a) != np.isnan(c)).any() or (np.isinf(a) != np.isinf(c)).any():
            # At the ends of the range the order of a sum, and where it rounds, decide.
            if largest < 1e20 or not case.special:
                return f"{name}: other elements are not finite"
            continue
        b = wanted[number] if number < len(wanted) and largest < 1e20 else c
        finite = np.isfinite(a) & np.isfinite(b)
        apart = np.abs(a[finite] - b[finite]).max(initial=0)
        size = float(np.abs(b[finite]).max(initial=0))
        bound = 200 * eps * (largest + size + 1)
        if number >= len(wanted):
            # A comparison that rounding decides moves single slopes.
            distance = np.linalg.norm((a[finite] - b[finite]).astype(np.float64))
            apart, bound = (
                distance,
                1e-3 * np.linalg.norm(b[finite].astype(np.float64)) + 100 * bound,
            )
        if not apart <= bound and not (case.special and largest >= 1e20):
            return f"{name}: apart by {apart:.3g} of {size:.3g}, the largest between {largest:.3g}"
    return ""


check = storms.check_by(draw_case, operands, results, disagreement)
STORM = storms.Storm("tests.property.rows_storm", "programs", check)


if __name__ == "__main__":
    sys.exit(storms.main(STORM))
