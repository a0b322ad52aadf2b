"""Random updates of many arrays by our kernel, beside NumPy in float64: in place, for members too.

``make updates-storm ARGS="--minutes 20 --seed 0"``. Each program updates arrays of drawn shapes,
which are donated or not, from arrays beside them: operations are drawn one by one, with numbers
that are literals, arguments or each member's own, so that most programs are no optimizer. Some
arrays are updated in another way than others, and some hold NaN, infinities, zeros of both signs
and denormals. Values are held to NumPy's, by the largest number that stands between. ``storms``
says how they run.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import stretto as st
import stretto.numpy as snp
from tests.property import storms

__all__ = ["Case", "disagreement", "draw_case", "expected", "operands", "results", "step_of"]

_SHAPES = (
    (3, 3, 40, 30),
    (64, 64),
    (17, 5, 3),
    (9000,),
    (33,),
    (1,),
    (2, 1, 40000),
    (70, 80),
    (1024,),
)
_OF_TWO = ("add", "sub", "mul", "max", "min", "ratio", "where")
_OF_ONE = ("exp", "abs", "neg", "square", "root", "inverse root", "sign", "half", "rate")


class Step(NamedTuple):
    """An operation, and which of the values before it reads."""

    op: str
    reads: tuple[int, ...]


class Case(NamedTuple):
    """Programs, the arrays that each updates, and what they hold."""

    dtype: str
    kept: int
    """How many arrays are updated together, as a parameter and its moments are."""
    given: int
    """How many are read beside them."""
    shapes: tuple[tuple[int, ...], ...]
    programs: tuple[tuple[Step, ...], ...]
    donated: bool
    members: bool
    special: bool
    seed: int

    @property
    def words(self) -> str:
        """The case in a line."""
        each = [", ".join([f"{s.op} {s.reads}" for s in steps]) for steps in self.programs]
        said = {"donated": self.donated, "members": self.members, "special": self.special}
        more = "".join([f", {name}" for name, is_so in said.items() if is_so])
        of = f"{self.dtype}, {self.kept} of each shape of {self.shapes}, {self.given} beside"
        return f"{of}{more}: {' | '.join(each)}"


def draw_case(seed: int) -> Case:
    """Draw shapes, what is updated, and operations."""
    rng = random.Random(f"updates {seed}")
    kept, given = rng.randint(1, 3), rng.randint(1, 2)
    programs = []
    for _ in range(rng.choice((1, 1, 2))):
        steps: list[Step] = []
        for number in range(rng.randint(kept + 1, 12)):
            known = kept + given + number
            late = lambda: max(rng.randrange(known), rng.randrange(known))  # noqa: B023
            family = rng.choice((_OF_TWO, _OF_ONE))
            reads = (late(), late()) if family is _OF_TWO else (late(),)
            steps.append(Step(rng.choice(family), reads))
        programs.append(tuple(steps))
    shapes = tuple([rng.choice(_SHAPES) for _ in range(rng.choice((6, 9, 70)))])
    return Case(
        rng.choice(("float32", "float32", "float64")),
        kept,
        given,
        shapes,
        tuple(programs),
        rng.random() < 0.6,
        rng.random() < 0.3,
        rng.random() < 0.2,
        seed,
    )


def operands(case: Case) -> tuple[list[list[np.ndarray]], list[list[np.ndarray]], np.ndarray]:
    """What is updated and what is beside it, of each shape, and a number, of each member."""
    random = np.random.default_rng(case.seed)
    own = (3,) if case.members else ()

    def drawn(count: int) -> list[list[np.ndarray]]:
        whole = [[(*own, *shape)] * count for shape in case.shapes]
        return [[random.standard_normal(s).astype(case.dtype) for s in each] for each in whole]

    kept, given = drawn(case.kept), drawn(case.given)
    if case.special:
        array = random.integers(len(kept))
        tiny = np.finfo(case.dtype).smallest_subnormal * 3
        values = [np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, 1e30, -1e30]
        flat = kept[array][0].reshape(-1)
        flat[random.integers(0, flat.size, 4)] = random.choice(values, 4)
    return kept, given, random.uniform(0.1, 1, own).astype(case.dtype)


def updated(
    case: Case, number: int, numbers: Any, arrays: Sequence[Any], rate: Any, seen: list[Any]
) -> list[Any]:
    """What takes the place of the arrays of a shape, in the functions of ``numbers``."""
    known = [*arrays]
    for op, reads in case.programs[number % len(case.programs)]:
        x, y = known[reads[0]], known[reads[-1]]
        made = {
            "add": lambda: x + y,  # noqa: B023
            "sub": lambda: x - y,  # noqa: B023
            "mul": lambda: x * y,  # noqa: B023
            "max": lambda: numbers.maximum(x, y),  # noqa: B023
            "min": lambda: numbers.minimum(x, y),  # noqa: B023
            "ratio": lambda: x / (1 + y * y),  # noqa: B023
            "where": lambda: numbers.where(x < y, x, 0.5 * y),  # noqa: B023
            "exp": lambda: numbers.exp(numbers.minimum(x, 3)),  # noqa: B023
            "abs": lambda: numbers.abs(x),  # noqa: B023
            "neg": lambda: -x,  # noqa: B023
            "square": lambda: x * x,  # noqa: B023
            "root": lambda: numbers.sqrt(numbers.abs(x)),  # noqa: B023
            "inverse root": lambda: 1 / numbers.sqrt(1 + numbers.abs(x)),  # noqa: B023
            "sign": lambda: 0.1 * numbers.sign(x),  # noqa: B023
            "half": lambda: 0.5 * x,  # noqa: B023
            "rate": lambda: x * rate,  # noqa: B023
        }[op]()
        known.append(made)
    seen += known
    return known[-case.kept :]


def step_of(case: Case) -> Callable[..., Any]:
    """The function of all arrays, of what is beside them and of the number."""

    def step(kept: Any, given: Any, rate: Any) -> Any:
        pairs = enumerate(zip(kept, given, strict=True))
        return [updated(case, k, snp, [*one, *beside], rate, []) for k, (one, beside) in pairs]

    return st.vmap(step) if case.members else step


def results(case: Case, arrays: Any) -> list[np.ndarray]:
    """What a step makes of all arrays."""
    run = st.jit(step_of(case), donate_argnums=(0,) * case.donated)
    kept, given, rate = st.tree.map(snp.array, arrays)
    return [np.asarray(leaf) for leaf in st.tree.leaves(run(kept, given, rate))]


def expected(case: Case, arrays: Any) -> tuple[list[np.ndarray], float]:
    """The values in NumPy, in float64, and the largest number between."""
    seen: list[Any] = []
    kept, given, rate = st.tree.map(lambda a: a.astype(np.float64), arrays)
    found = []
    with np.errstate(all="ignore"):
        for k, (one, beside) in enumerate(zip(kept, given, strict=True)):
            rates = rate.reshape(*rate.shape, *[1] * len(case.shapes[k]))
            found += updated(case, k, np, [*one, *beside], rates, seen)
        largest = max([np.abs(v[np.isfinite(v)]).max(initial=0) for v in seen])
    return found, float(largest)


def disagreement(case: Case, got: Sequence[np.ndarray], arrays: Any) -> str:
    """Say in words where results differ by more than rounding; empty if nowhere."""
    with st.config(kernels=False):
        plain = results(case, arrays)
    wanted, largest = expected(case, arrays)
    eps = float(np.finfo(case.dtype).eps)
    for number, (a, b, c) in enumerate(zip(got, wanted, plain, strict=True)):
        if a.shape != c.shape or a.dtype != c.dtype:
            return f"value {number}: {a.dtype}{a.shape}, expected {c.dtype}{c.shape}"
        if (np.isnan(a) != np.isnan(c)).any() or (np.isinf(a) != np.isinf(c)).any():
            if largest < 1e20 or not case.special:  # at the ends of the range rounding decides
                return f"value {number}: other elements are not finite"
            continue
        if largest >= 1e20:
            continue
        # A comparison or a sign that rounding decides moves an element: XLA's as well, mostly.
        finite = np.isfinite(a) & np.isfinite(b)
        apart = np.minimum(np.abs(a - b), np.abs(a - c))[finite].max(initial=0)
        if not apart <= 100 * eps * (largest + 1) ** 2:
            return f"value {number}: apart by {apart:.3g}, the largest between {largest:.3g}"
    return ""


check = storms.check_by(draw_case, operands, results, disagreement)
STORM = storms.Storm("tests.property.updates_storm", "programs", check)


if __name__ == "__main__":
    sys.exit(storms.main(STORM))
