"""Random work along an axis by our kernels, beside NumPy in float64: values, slopes, members.

``make along-storm ARGS="--minutes 20 --seed 0"``. Each case is a running sum, product or extremum,
a place of an extremum, or the k greatest, of an array of a drawn shape along one of its axes, in
both directions, for members that lie along another axis or not. Many elements are equal, and some
hold NaN, infinities and zeros of both signs. Extrema, places and the k greatest are to be the very
numbers; a member has the bits that it has alone; slopes are held to the program without kernels.
``storms`` says how they run.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto import lax
from tests.property import storms

__all__ = ["Case", "disagreement", "draw_case", "operands", "results"]

_RUNNING = {
    "cumsum": np.add,
    "cumprod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
}
_PLACES = {"argmax": np.argmax, "argmin": np.argmin}
_SIZES = (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 64, 65, 100, 129, 257, 300, 700, 1025)
_MOST = 60_000


class Case(NamedTuple):
    """An operation, and the array that it is of."""

    op: str
    shape: tuple[int, ...]
    axis: int
    reverse: bool
    k: int
    dtype: str
    members: int | None
    """The axis along which members lie."""
    special: bool
    seed: int

    @property
    def words(self) -> str:
        """The case in a line."""
        more = f", members along {self.members}" if self.members is not None else ""
        more += ", special numbers" if self.special else ""
        how = f"{self.k} of" if self.op == "top_k" else "from the end of" if self.reverse else "of"
        return f"{self.op} {how} {self.dtype}{self.shape} along {self.axis}{more}"


def draw_case(seed: int) -> Case:
    """Draw an operation, a shape and an axis."""
    rng = random.Random(f"along {seed}")
    op = rng.choice([*_RUNNING, *_PLACES, "top_k", "top_k"])
    shape = [rng.choice(_SIZES) for _ in range(rng.choice((1, 2, 2, 2, 3)))]
    while np.prod(shape) > _MOST:
        shape[rng.randrange(len(shape))] = rng.choice(_SIZES[:12])
    axis = len(shape) - 1 if op == "top_k" else rng.randrange(len(shape))
    integers = op == "cumsum" and rng.random() < 0.2
    return Case(
        op,
        tuple(shape),
        axis,
        op in _RUNNING and rng.random() < 0.4,
        min(shape[axis], rng.choice((1, 2, 5, 10, 40, 300))),
        rng.choice(("int32", "int64")) if integers else rng.choice(("float32", "float64")),
        rng.randrange(len(shape) + 1) if rng.random() < 0.4 else None,
        rng.random() < 0.3 and not integers,
        seed,
    )


def operands(case: Case) -> list[np.ndarray]:
    """The array, of all members; products of many elements stay in the range."""
    rng = np.random.default_rng(case.seed)
    shape = [*case.shape]
    if case.members is not None:
        shape.insert(case.members, 3)
    if case.dtype.startswith("int"):
        return [rng.integers(-(2**31), 2**31, shape).astype(case.dtype)]
    x = rng.standard_normal(shape)
    if case.op == "cumprod":
        x = np.exp(0.05 * x) * rng.choice([-1, 1], shape)
    if case.op in ("argmax", "argmin", "top_k", "cummax", "cummin") and rng.random() < 0.5:
        x = np.round(2 * x)  # zeros of both signs, and equals
    if rng.random() < 0.2:
        x = np.sort(x, -1)
    if case.special and x.size:
        at = rng.integers(0, x.size, 1 + x.size // 40)
        values = [0.0, -0.0, 1e30, -1e30, *([np.inf, -np.inf] if rng.random() < 0.7 else [])]
        x.ravel()[at] = rng.choice([*values, *([np.nan] if rng.random() < 0.5 else [])], len(at))
    return [x.astype(case.dtype)]


def _one(case: Case) -> Callable[[Any], list[Any]]:
    """Return the function of one member."""
    if case.op == "top_k":
        return lambda x: [*lax.top_k(x, case.k)]
    if case.op in _PLACES:
        return lambda x: [getattr(lax, case.op)(x, case.axis)]
    return lambda x: [getattr(lax, case.op)(x, case.axis, case.reverse)]


def results(case: Case, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Values of all members; the same of the first one alone; and the slope of a weighted sum."""
    (x,) = arrays
    one = _one(case)

    def weighted(x: Any) -> Any:
        y = one(x)[0]
        return snp.sum(y * snp.cos(snp.arange(y.size, dtype=y.dtype)).reshape(y.shape))

    has_slope = case.op not in _PLACES and not (case.special or case.dtype.startswith("int"))
    both = lambda x: [*one(x), *([st.grad(weighted)(x)] if has_slope else [])]
    alone = x if case.members is None else x.take(0, case.members)
    if case.members is not None:
        both = st.vmap(both, in_axes=case.members)
    found = [*st.jit(both)(x), *st.jit(one)(alone)]
    return [np.asarray(y) for y in found]


def expected(case: Case, x: np.ndarray) -> list[np.ndarray]:
    """The values of one member in NumPy, of floats in float64."""
    flip = (lambda v: np.flip(v, case.axis)) if case.reverse else (lambda v: v)
    if case.op == "top_k":
        order = np.argsort(x[..., ::-1], -1, kind="stable")[..., ::-1][..., : case.k]
        order = x.shape[-1] - 1 - order
        return [np.take_along_axis(x, order, -1), order]
    if case.op in _PLACES:
        return [_PLACES[case.op](x, case.axis)]
    wide = x.astype(np.float64) if case.dtype.startswith("float") else x
    with np.errstate(all="ignore"):
        return [flip(_RUNNING[case.op].accumulate(flip(wide), axis=case.axis, dtype=wide.dtype))]


def disagreement(case: Case, got: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> str:
    """Say in words where results differ by more than rounding; empty if nowhere."""
    (x,) = arrays
    of = [x] if case.members is None else list(np.moveaxis(x, case.members, 0))
    wanted = [expected(case, member) for member in of]
    count = len(wanted[0])
    eps = float(np.finfo(case.dtype).eps) if case.dtype.startswith("float") else 0.0
    for number in range(count):
        values = [got[number]] if case.members is None else [*got[number]]
        for a, b, member in zip(values, [w[number] for w in wanted], of, strict=True):
            if a.shape != b.shape:
                return f"value {number}: of shape {a.shape}, expected {b.shape}"
            if (np.isnan(a) != np.isnan(b)).any() or (np.isinf(a) != np.isinf(b)).any():
                return f"value {number}: other elements are not finite"
            finite = np.isfinite(b)
            bound = np.zeros(b.shape)
            if case.op == "cumsum":
                sizes = np.abs(np.where(np.isfinite(member), member, 0).astype(np.float64))
                bound = 20 * eps * sizes.sum(case.axis, keepdims=True) + bound
            elif case.op == "cumprod":
                bound = eps * member.shape[case.axis] * np.abs(np.where(finite, b, 0))
            apart = np.abs(np.where(finite, a, 0) - np.where(finite, b, 0))
            if not (apart <= bound).all():
                return f"value {number}: apart by {apart.max():.3g}"
        if got[number - count].tobytes() != values[0].tobytes():
            return f"value {number}: a member has other bits alone"
    with st.config(kernels=False):
        plain = results(case, arrays)
    for a, c in zip(got[count:-count], plain[count:-count], strict=True):
        if not np.isfinite(a).all():
            return "slope: other elements are not finite"
        distance = np.linalg.norm((a - c).astype(np.float64))
        if not distance <= 1e4 * eps * (1 + np.linalg.norm(c.astype(np.float64))):
            return f"slope: apart by {distance:.3g}"
    if case.op in ("cummax", "cummin") and (np.signbit(got[0]) != np.signbit(plain[0])).any():
        return "value 0: zeros of other signs"
    return ""


check = storms.check_by(draw_case, operands, results, disagreement)
STORM = storms.Storm("tests.property.along_storm", "arrays", check)


if __name__ == "__main__":
    sys.exit(storms.main(STORM))
