"""Random attention by our kernels, beside NumPy in float64: values, derivatives, members, bits.

``make attention-storm ARGS="--minutes 20 --seed 0"``. Each is written by hand or by a function of
``st.nn``: products by ``einsum`` or ``@``, heads in groups or axes in other orders, scores with
steps between (factors, arrays that are added, masks, causal ones), softmax by its function or by
exponentials, divided before the second product or after it, alone or for an ensemble's members.
Some rows see nothing, and some arrays hold NaN, infinities and large numbers. Values are held to
NumPy's, derivatives to those of the same program in float64 without kernels; what is finite must be
what it is without kernels. How far results may be off is what the same program is off without
kernels, and some roundings of the largest score. ``storms`` says how they run.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.property import storms

__all__ = [
    "Case",
    "attention",
    "disagreement",
    "draw_case",
    "given",
    "operands",
    "program",
    "results",
]

_ROWS = (1, 1, 2, 3, 4, 7, 32, 33, 40, 63, 64, 65, 100, 130, 257, 300)
_KEYS = (1, 3, 31, 32, 33, 48, 64, 97, 130, 240, 241, 256, 257, 500)
_WIDTHS = (1, 2, 4, 8, 9, 13, 16, 16, 24, 31, 32, 33, 64, 64, 80, 100, 128, 160)
_HIDDEN = (-np.inf, -1e9, -1e9, -1e4, -30.0, float(np.finfo(np.float32).min))


class Step(NamedTuple):
    """What is done to scores."""

    kind: str
    """One of ``scale``, ``add``, ``mask`` and ``causal``."""
    number: float
    """The factor, or what hidden scores become."""
    shape: tuple[int, ...]
    """That of the array, which is repeated along axes of size 1."""
    offset: int
    """The last key that the first query sees."""


class Case(NamedTuple):
    """A way to write attention, and what its arrays hold."""

    batch: tuple[int, ...]
    heads: int
    groups: int
    """The heads of keys and values."""
    rows: int
    keys: int
    features: int
    columns: int
    dtype: str
    written: str
    """``function``, ``einsum``, ``einsum, heads inside`` or ``matmul``."""
    softmax: str
    """``function``, ``early`` or ``late``: when exponentials are divided."""
    factor: float
    """Of queries."""
    steps: tuple[Step, ...]
    members: tuple[bool, ...]
    """Which of queries, keys and values are each member's own; none if there are no members."""
    slopes: str
    """Nothing, ``operands`` for the derivatives by queries, keys and values, or ``all``."""
    special: str
    """Nothing, ``not finite`` or ``large``."""
    seed: int

    @property
    def words(self) -> str:
        """The case in a line."""
        return ", ".join([f"{name} {value}" for name, value in self._asdict().items()])


def draw_case(seed: int) -> Case:
    """Draw sizes, the way it is written, and steps."""
    rng = random.Random(f"attention {seed}")
    while True:
        batch = tuple([rng.randint(1, 3) for _ in range(rng.choice((0, 1, 1, 2)))])
        heads = rng.randint(1, 8)
        groups = rng.choice([n for n in range(1, heads + 1) if heads % n == 0])
        groups = rng.choice((heads, heads, groups))
        rows, keys = rng.choice(_ROWS), rng.choice(_KEYS)
        features = rng.choice(_WIDTHS)
        columns = rng.choice((features, features, rng.choice(_WIDTHS)))
        if np.prod(batch) * heads * rows * keys * (features + columns) < 40_000_000:
            break
    written = rng.choice(("function", "einsum", "einsum, heads inside", "matmul"))
    full = (*batch, heads, rows, keys)
    steps = [_draw_step(rng, full) for _ in range(rng.choice((0, 0, 1, 1, 1, 2, 3)))]
    if written == "function":
        kind = rng.choice(("", "add", "mask", "causal"))
        steps = [_draw_step(rng, full, kind)._replace(number=-np.inf, offset=0)] if kind else []
    return Case(
        batch,
        heads,
        groups,
        rows,
        keys,
        features,
        columns,
        rng.choice(("float32", "float32", "float64")),
        written,
        rng.choice(("function", "early", "late")),
        rng.choice((1.0, 0.125, -0.3, float(features**-0.5), float(features**-0.5))),
        tuple(steps),
        rng.choice(((), (), (True, True, True), (True, False, False), (False, True, True))),
        rng.choice(("", "operands", "all") if rows >= 32 else ("", "", "", "all")),
        rng.choice(("", "", "", "", "not finite", "large")),
        seed,
    )


def _draw_step(rng: random.Random, full: tuple[int, ...], kind: str = "") -> Step:
    kind = kind or rng.choice(("scale", "add", "add", "mask", "mask", "causal", "causal"))
    shape = tuple([n if rng.random() < 0.5 else 1 for n in full[:-2]])
    shape += rng.choice((full[-2:], full[-2:], (1, full[-1]), (full[-2], 1)))
    offset = rng.choice((0, 0, full[-1] - full[-2], rng.randint(-full[-2], full[-1])))
    number = rng.choice((0.5, -1.0, 3.0)) if kind == "scale" else rng.choice(_HIDDEN)
    return Step(kind, number, shape if kind in ("add", "mask") else (), offset)


def operands(case: Case) -> list[np.ndarray]:
    """Queries, keys, values, the weights of the derivative's sum, and the arrays of steps."""
    random = np.random.default_rng(case.seed)
    draw = lambda *shape: random.standard_normal(shape).astype(case.dtype)
    of = lambda n: (3,) if case.members and case.members[n] else ()
    sizes = [
        (case.heads, case.rows, case.features),
        (case.groups, case.keys, case.features),
        (case.groups, case.keys, case.columns),
    ]
    found = [draw(*of(n), *case.batch, *size) for n, size in enumerate(sizes)]
    found.append(draw(*case.batch, case.heads, case.rows, case.columns))
    for step in case.steps:
        if step.kind == "add":
            array = draw(*step.shape)
            hidden = random.random(step.shape) < random.choice([0, 0, 0.2])
            found.append(np.where(hidden, step.number, array).astype(case.dtype))
        elif step.kind == "mask":
            seen = random.random(step.shape) < random.choice([0.3, 0.8, 1])
            if random.random() < 0.4:
                seen[..., random.integers(seen.shape[-2]), :] = False
            if random.random() < 0.4:  # as of examples that differ in length
                ends = random.integers(0, seen.shape[-1] + 1, (*seen.shape[:-1], 1))
                seen = np.arange(seen.shape[-1]) < ends
            found.append(seen)
    if case.special:
        arrays = [a for n, a in enumerate(found) if (a.dtype != bool and n != 3) or n < 3]
        array = arrays[random.integers(len(arrays))]
        places = random.integers(0, array.size, 2)
        values = [np.nan, np.inf, -np.inf] if case.special == "not finite" else [3e4, -3e4, 0, -0.0]
        array.ravel()[places] = random.choice(values, 2)
    return found


def attention(case: Case, arrays: Sequence[Any]) -> Any:
    """What is computed of one member's queries, keys and values, and the arrays of steps."""
    q, k, v, *others = arrays
    if case.written == "function":
        mask = others[0] if others else None
        causal = [step.kind for step in case.steps] == ["causal"]
        shared = case.groups != case.heads
        return nn.functional.scaled_dot_product_attention(
            q, k, v, mask, is_causal=causal, scale=case.factor, enable_gqa=shared
        )
    q = q * case.factor
    if case.groups != case.heads:
        repeats = case.heads // case.groups
        k, v = snp.repeat(k, repeats, axis=-3), snp.repeat(v, repeats, axis=-3)
    if case.written == "einsum, heads inside":
        q, k, v = (snp.swapaxes(a, -2, -3) for a in (q, k, v))
        scores = snp.einsum("...thd,...shd->...hts", q, k)
    elif case.written == "einsum":
        scores = snp.einsum("...td,...sd->...ts", q, k)
    else:
        scores = q @ k.swapaxes(-1, -2)
    scores = _stepped(case, snp, scores, others)
    if case.softmax == "function":
        weights, total = nn.functional.softmax(scores, dim=-1), 1.0
    else:
        weights = snp.exp(scores - st.lax.stop_gradient(scores.max(-1, keepdims=True)))
        total = weights.sum(-1, keepdims=True)
    if case.softmax == "early":
        weights = weights / total
    if case.written == "einsum, heads inside":
        out = snp.swapaxes(snp.einsum("...hts,...shd->...thd", weights, v), -2, -3)
    else:
        out = snp.einsum("...ts,...sd->...td", weights, v) if "e" in case.written else weights @ v
    return out / total if case.softmax == "late" else out


def _stepped(case: Case, numbers: Any, scores: Any, others: Sequence[Any]) -> Any:
    """The scores after all steps, in the functions of ``numbers``."""
    left = list(others)
    for step in case.steps:
        if step.kind == "scale":
            scores = scores * step.number
        elif step.kind == "add":
            scores = scores + left.pop(0)
        elif step.kind == "mask":
            scores = numbers.where(left.pop(0), scores, step.number)
        else:
            rows = numbers.arange(case.rows)[:, None] + step.offset
            scores = numbers.where(rows >= numbers.arange(case.keys), scores, step.number)
    return scores


def results(case: Case, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Values of all members, and the gradients of a weighted sum by arrays of floats."""
    compiled: Any = st.jit(program(case, arrays))
    return [np.asarray(leaf) for leaf in st.tree.leaves(compiled(*given(arrays)))]


def given(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The arguments of the program."""
    return [a for n, a in enumerate(arrays) if n != 3]


def program(case: Case, arrays: Sequence[np.ndarray]) -> Any:
    """The function that computes values and gradients."""
    others, weights = arrays[4:], arrays[3]
    floats = tuple([n for n, a in enumerate(given(arrays)) if a.dtype != bool])
    floats = floats if case.slopes == "all" else floats[:3]
    axes = tuple([0 if own else None for own in case.members])

    def both(*given: Any) -> Any:
        if not case.slopes:
            return attention(case, given)

        def weighted(*given: Any) -> Any:
            out = attention(case, given)
            return snp.sum(out * weights), out

        slopes, out = st.grad(weighted, argnums=floats, has_aux=True)(*given)
        return out, slopes

    if case.members:
        both = st.vmap(both, in_axes=(*axes, *[None] * len(others)))
    return both


def expected(case: Case, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, float]:
    """The values in NumPy, in float64, and the largest finite score."""
    q, k, v, _, *others = [a if a.dtype == bool else a.astype(np.float64) for a in arrays]
    largest = [0.0]

    def one(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        k, v = (np.repeat(a, case.heads // case.groups, axis=-3) for a in (k, v))
        before = q @ k.swapaxes(-1, -2) * case.factor
        case_of = case
        if case.written == "function" and case.steps and case.steps[0].kind == "mask":
            case_of = case._replace(steps=(case.steps[0]._replace(number=-np.inf),))
        scores = _stepped(case_of, np, before, others)
        largest.append(np.abs(before[np.isfinite(before)]).max(initial=0))
        top = scores.max(-1, keepdims=True)
        if case.written == "function":
            top = np.where(top == -np.inf, 0, top)
        e = np.exp(scores - top)
        total = e.sum(-1, keepdims=True)
        if case.written == "function":
            total = total + (scores.max(-1, keepdims=True) == -np.inf)
        return e / total @ v

    with np.errstate(all="ignore"):
        if not case.members:
            return one(q, k, v), max(largest)
        own = lambda a, n, i: a[i] if case.members[n] else a
        members = [one(own(q, 0, i), own(k, 1, i), own(v, 2, i)) for i in range(3)]
        return np.stack(members), max(largest)


def disagreement(case: Case, got: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> str:
    """Say in words where results differ by more than rounding; empty if nowhere."""
    with st.config(kernels=False):
        plain = results(case, arrays)
        wide = results(case, [a if a.dtype == bool else a.astype(np.float64) for a in arrays])
    values, largest = expected(case, arrays)
    eps = float(np.finfo(case.dtype).eps)
    names = ["values", "q'", "k'", "v'", *["added'" for _ in plain[4:]]][: len(plain)]
    for name, a, b, c in zip(names, got, wide, plain, strict=True):
        if a.shape != c.shape or a.dtype != c.dtype:
            return f"{name}: {a.dtype}{a.shape}, expected {c.dtype}{c.shape}"
        if (np.isnan(a) != np.isnan(c)).any() or (np.isinf(a) != np.isinf(c)).any():
            return f"{name}: other elements are not finite"
        if name == "values":
            b = np.where(np.isfinite(values), values, b)
        finite = np.isfinite(a) & np.isfinite(b)
        a, b, c = (x[finite].astype(np.float64) for x in (a, b, c))
        # Slopes of scores, which are about one, times other arrays: sums of them may cancel.
        size = np.abs(b).max(initial=0) + (name == "added'")
        if case.special == "large" and name != "values":
            size = max(size, 3e4)
        apart, without = (np.abs(x - b).max(initial=0) for x in (a, c))
        if not apart <= 4 * without + 8 * eps * (1 + min(largest, 100)) * size + 1e-30:
            return f"{name}: apart by {apart:.3g} of {size:.3g}, without kernels by {without:.3g}"
    return ""


def check(seed: int) -> tuple[str, str, list[np.ndarray]]:
    """Run the attention of a seed."""
    case = draw_case(seed)
    arrays = operands(case)
    got = results(case, arrays)
    # Sums over heads, for what is repeated, are XLA's, whose bits do depend on threads.
    ours = got[: 4 if case.groups == case.heads else 2]
    return disagreement(case, got, arrays), case.words, ours


STORM = storms.Storm("tests.property.attention_storm", "cases", check)


if __name__ == "__main__":
    sys.exit(storms.main(STORM))
