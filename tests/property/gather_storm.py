"""Random gathers and bags by our kernel, beside NumPy in float64: values, derivatives, members.

``make gather-storm ARGS="--minutes 20 --seed 0"``. Each program reads rows, windows, columns or
single elements of a table of drawn shape at drawn indices, some beyond its ends, in one of the ways
in which people write it, and adds some of them up, weighted, or without those that do not count.
Tables and indices may be those of members. Some tables hold NaN, infinities and zeros of both
signs. What is only read has to be NumPy's to the bit; sums are held to NumPy's by the largest
number, and their derivatives to the same program without kernels. ``storms`` says how they run.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import stretto as st
import stretto.numpy as snp
from tests.property import storms

__all__ = ["Case", "disagreement", "draw_case", "operands", "results", "values"]

_READS = ("rows", "windows", "transposed", "columns", "along", "pairs")
_BAGS = ("sum", "mean", "max", "weighted", "counted", "both", "counted max")
_FLOATS = ("float32", "float32", "float64")
_OTHERS = ("bool", "int8", "int32", "int64", "bfloat16", "float16", "complex64", "complex128")
_WIDTHS = (1, 2, 8, 16, 17, 31, 64, 100, 300, 5000)
_COUNTS = ((7,), (300,), (2100,), (9, 30), (64, 33), (3, 5, 70), (1, 400))


class Case(NamedTuple):
    """What is read, by which indices, and what is done with it."""

    kind: str
    rows: int
    width: int
    counts: tuple[int, ...]
    mode: str
    dtype: str
    index: str
    members: str
    special: bool
    seed: int

    @property
    def words(self) -> str:
        """The case in a line."""
        return ", ".join(f"{name} {value}" for name, value in self._asdict().items())

    @property
    def is_bag(self) -> bool:
        """Whether what is read is added up."""
        return self.kind in _BAGS


def draw_case(seed: int) -> Case:
    """Draw a kind, shapes, and what to do beyond the ends."""
    rng = random.Random(f"gather {seed}")
    kind = rng.choice((*_READS, *_BAGS))
    counts = rng.choice(_COUNTS)
    return Case(
        kind,
        rng.choice((1, 3, 50, 400, 5000)),
        rng.choice(_WIDTHS[:-1] if len(counts) > 1 or counts[0] > 300 else _WIDTHS),
        counts,
        rng.choice(("clip", "fill", "promise_in_bounds")),
        rng.choice(_FLOATS if kind in _BAGS or rng.random() < 0.5 else _OTHERS),
        rng.choice(("int32", "int32", "int64", "int8", "uint32")),
        rng.choice(("none", "none", "table", "indices", "both")),
        rng.random() < 0.2,
        seed,
    )


def operands(case: Case) -> list[np.ndarray]:
    """The table and the indices, and for some bags weights and what counts."""
    random = np.random.default_rng(case.seed)
    shape = {
        "windows": (case.rows, 3, case.width),
        "transposed": (case.width, case.rows),
        "columns": (case.width, case.rows),
        "along": (*case.counts[:-1], case.rows),
        "pairs": (case.counts[-1] + 2, case.rows),
    }.get(case.kind, (case.rows, case.width))
    three = lambda yes: (3,) if yes else ()
    table = random.standard_normal((*three(case.members in ("table", "both")), *shape)) * 4
    own = three(case.members in ("indices", "both"))
    beyond = 0 if case.mode == "promise_in_bounds" else 3
    low = 0 if case.index == "uint32" else -case.rows - beyond
    high = min(case.rows + beyond, np.iinfo(case.index).max)
    low = max(low, np.iinfo(case.index).min)
    places = random.integers(low, high, (*own, *case.counts)).astype(case.index)
    dtype = np.dtype(getattr(ml_dtypes, case.dtype, case.dtype))
    table = (table + 1j * table[::-1] if dtype.kind == "c" else table).astype(dtype)
    if case.special and (case.dtype in _FLOATS or case.dtype == "bfloat16"):
        values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0]).astype(dtype)
        table.ravel()[random.integers(0, table.size, 4)] = random.choice(values, 4)
    weights = random.standard_normal(case.counts).astype(case.dtype) if case.is_bag else None
    counted = random.random(case.counts) < 0.6
    more = {"weighted": [weights], "both": [weights, counted]}.get(case.kind, [])
    return [table, places, *(more or ([counted] if case.kind.startswith("counted") else []))]


def values(case: Case, x: Any, places: Any, *more: Any) -> Any:
    """What the program returns, of one member."""
    kind = case.kind
    if kind == "along":
        return snp.take_along_axis(x, places, -1, mode=case.mode)
    if kind == "pairs":
        column = places.reshape((-1, places.shape[-1]))[0]
        return x.at[snp.arange(case.counts[-1]), column].get(mode=case.mode)
    if kind == "columns":
        return x.at[:, places].get(mode=case.mode)
    rows = (x.T if kind == "transposed" else x).at[places].get(mode=case.mode)
    if not case.is_bag:
        return rows
    axis = len(case.counts) - 1
    if kind in ("weighted", "both"):
        rows = rows * more[0][..., None]
    if kind in ("counted", "both"):
        rows = snp.where(more[-1][..., None], rows, 0)
    if kind == "counted max":
        rows = snp.where(more[-1][..., None], rows, -snp.inf)
    if kind.endswith("max"):
        return rows.max(axis)
    return rows.mean(axis) if kind == "mean" else rows.sum(axis)


def results(case: Case, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Values of all members, and of bags the gradient of a weighted sum of them by the table."""

    def both(x: Any, *others: Any) -> Any:
        def weighted(x: Any) -> Any:
            y = values(case, x, *others)
            return snp.sum(y * snp.cos(snp.arange(y.size, dtype=case.dtype)).reshape(y.shape))

        value = values(case, x, *others)
        return (value, st.grad(weighted)(x)) if case.is_bag else (value,)

    axes = (
        0 if case.members in ("table", "both") else None,
        0 if case.members in ("indices", "both") else None,
        *[None] * (len(arrays) - 2),
    )
    mapped = both if case.members == "none" else st.vmap(both, in_axes=axes)
    return [np.asarray(leaf) for leaf in st.jit(mapped)(*arrays)]


def expected(case: Case, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, float]:
    """The values in NumPy, of bags in float64, and the largest number between."""
    table, places, *more = arrays
    mapped = [case.members in ("table", "both"), case.members in ("indices", "both")]
    found, largest = [], 0.0
    for member in range(3 if any(mapped) else 1):
        x, i = [a[member] if m else a for a, m in zip((table, places), mapped, strict=True)]
        y, most = _of_member(case, x, i.astype(np.int64), more)
        found.append(y)
        largest = max(largest, most)
    return (np.stack(found) if any(mapped) else found[0]), largest


def _of_member(
    case: Case, x: np.ndarray, places: np.ndarray, more: Sequence[np.ndarray]
) -> tuple[np.ndarray, float]:
    kind, n = case.kind, case.rows
    if kind == "pairs":
        places = places.reshape((-1, places.shape[-1]))[0]
    places = np.where(places < 0, places + n, places)
    outside = (places < 0) | (places >= n) if case.mode == "fill" else np.zeros(places.shape, bool)
    places = np.clip(places, 0, n - 1)
    fill = _fill(x.dtype)
    if kind == "along":
        return np.where(outside, fill, np.take_along_axis(x, places, -1)), 0.0
    if kind == "pairs":
        return np.where(outside, fill, x[np.arange(case.counts[-1]), places]), 0.0
    if kind == "columns":
        return np.where(outside, fill, x[:, places]), 0.0
    rows = (x.T if kind == "transposed" else x)[places]
    rows = np.where(outside.reshape(outside.shape + (1,) * (rows.ndim - outside.ndim)), fill, rows)
    if not case.is_bag:
        return rows, 0.0
    rows, axis = rows.astype(np.float64), len(case.counts) - 1
    with np.errstate(all="ignore"):
        if kind in ("weighted", "both"):
            rows = rows * more[0][..., None].astype(np.float64)
        if kind in ("counted", "both"):
            rows = np.where(more[-1][..., None], rows, 0)
        if kind == "counted max":
            rows = np.where(more[-1][..., None], rows, -np.inf)
        largest = float(np.abs(rows[np.isfinite(rows)]).max(initial=0)) * case.counts[-1]
        if kind.endswith("max"):
            return rows.max(axis), largest
        return (rows.mean(axis) if kind == "mean" else rows.sum(axis)), largest


def _fill(dtype: np.dtype) -> Any:
    """What is read beyond the ends."""
    if dtype.kind == "b":
        return True
    if dtype.kind == "i":
        return np.iinfo(dtype).min
    return np.asarray(np.nan).astype(dtype)


def disagreement(case: Case, got: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> str:
    """Say in words where results differ by more than rounding; empty if nowhere."""
    wanted, largest = expected(case, arrays)
    value = got[0]
    if value.shape != wanted.shape:
        return f"value: {value.shape}, expected {wanted.shape}"
    if not case.is_bag:
        if value.dtype != wanted.dtype:
            return f"value: {value.dtype}, expected {wanted.dtype}"
        same = np.ascontiguousarray(value).tobytes() == np.ascontiguousarray(wanted).tobytes()
        return "" if same or _equal(value, wanted) else "value: other elements"
    with st.config(kernels=False):
        plain = results(case, arrays)
    eps = float(np.finfo(case.dtype).eps)
    for name, a, b in (("value", value, wanted), ("gradient", got[1], plain[1])):
        finite = np.isfinite(a) & np.isfinite(b)
        if not np.array_equal(a[~finite], b[~finite].astype(a.dtype), equal_nan=True):
            return f"{name}: other elements are not finite"
        apart = float(np.abs(a[finite].astype(np.float64) - b[finite]).max(initial=0))
        size = float(np.abs(b[finite]).max(initial=0))
        if not apart <= 20 * eps * (largest + size + 1):
            return f"{name}: apart by {apart:.3g} of {size:.3g}, the largest between {largest:.3g}"
    return ""


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Say whether elements are the same; NaN may have other bits."""
    if a.dtype.kind not in "fcV":
        return bool((a == b).all())
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    a, b = a.astype(wide), b.astype(wide)
    signs = lambda x: np.signbit(x.real[~np.isnan(x)])
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(signs(a), signs(b))


check = storms.check_by(draw_case, operands, results, disagreement)
STORM = storms.Storm("tests.property.gather_storm", "programs", check)


if __name__ == "__main__":
    sys.exit(storms.main(STORM))
