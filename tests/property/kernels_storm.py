"""Random products by our kernels, beside NumPy in float64: values, derivatives, members, bits.

``make kernels-storm ARGS="--minutes 20 --seed 0"``. Each is an einsum of random letters and sizes,
of floats of 16 to 64 bits or integers of 8 to 32, narrow ones also with results of 32, some
operands turned, repeated or in a slice of a larger array, with a bias, a residual or a cut at zero
behind it, alone or for the members of an ensemble. Some hold NaN, infinities and numbers at the
ends of the range. Values and both derivatives are held to NumPy's; the same program without kernels
must agree in what is finite. Integers are held to NumPy's of 64 bits, to the bit.
``storms`` says how they run.
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
from stretto._engine.ops.product_strides import Geometry
from tests.property import storms

__all__ = ["Case", "disagreement", "draw_case", "results"]

_SIZES = (1, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 47, 48, 49, 63, 65, 100, 130)
_MOST = 400_000
_NARROW = ("bfloat16", "float16")
_INTEGERS = ("int8", "uint8", "int16", "int32")


class Case(NamedTuple):
    """A product, and how its operands lie."""

    spec: str
    sizes: dict[str, int]
    dtype: str
    follows: str
    members: tuple[bool, bool]
    """Which operands are each member's own; none if there are no members."""
    ways: tuple[str, str]
    special: bool
    seed: int
    wide: bool
    """Whether the product of narrow numbers is to be in 32 bits."""

    @property
    def result(self) -> str:
        """The dtype of the product."""
        return ("int32" if self.dtype in _INTEGERS else "float32") if self.wide else self.dtype

    @property
    def words(self) -> str:
        """The case in a line."""
        shapes = {c: n for c, n in self.sizes.items() if c in self.spec}
        return (
            f"{self.dtype}{f' to {self.result}' if self.wide else ''} {self.spec} {shapes}, "
            f"{self.follows or 'alone'}, members own "
            f"{self.members}, operands {self.ways}{', special numbers' if self.special else ''}"
        )

    @property
    def terms(self) -> list[str]:
        """The letters of both operands and of the result."""
        return self.spec.replace("->", ",").split(",")


def draw_case(seed: int) -> Case:
    """Draw letters for batch, rows, columns and sums, their order, sizes and the rest."""
    rng = random.Random(f"kernels {seed}")
    while True:
        batch, rows, columns, sums = "ab", "ij", "mn", "xy"
        counts = [rng.choice((0, 0, 1, 2)), *rng.choices((0, 1, 1, 1, 2), k=3)]
        b, r, c, s = (
            letters[:count]
            for letters, count in zip((batch, rows, columns, sums), counts, strict=True)
        )
        if not s:
            continue
        x, y, out = (rng.sample(t, len(t)) for t in (b + r + s, b + c + s, b + r + c))
        if rng.random() < 0.6:  # mostly as users write them
            x, y, out = [*b, *r, *s], [*b, *s, *c], [*b, *r, *c]
        sizes = {letter: rng.choice(_SIZES) for letter in "abijmnxy"}
        sizes |= {letter: min(sizes[letter], 5) for letter in "ab"}
        work = np.prod([sizes[letter] for letter in {*x, *y}], dtype=float)
        if 1000 < work < 40 * _MOST and all(
            np.prod([sizes[letter] for letter in t], dtype=float) < _MOST for t in (x, y, out)
        ):
            break
    return Case(
        f"{''.join(x)},{''.join(y)}->{''.join(out)}",
        sizes,
        dtype := rng.choice(("float32", "float32", "float64", *_NARROW, "int8", *_INTEGERS)),
        rng.choice(("", "", "bias", "residual", "relu", "bias, relu", "turned")),
        rng.choice(((False, False), (True, True), (True, False), (False, True))),
        (
            rng.choice(("", "", "turned", "repeated", "slice")),
            rng.choice(("", "", "turned", "repeated", "slice")),
        ),
        rng.random() < 0.15,
        seed,
        dtype in (*_NARROW, *_INTEGERS[:3]) and rng.random() < 0.6,
    )


def operands(case: Case) -> list[np.ndarray]:
    """The operands of all members, what is added, and the weights of the derivative's sum."""
    random = np.random.default_rng(case.seed)
    x, y, out = ([case.sizes[c] for c in t] for t in case.terms)
    added = {"bias": out[-1:], "bias, relu": out[-1:]}.get(case.follows, out)
    shapes = [(*([3] if own else []), *s) for s, own in zip((x, y), case.members, strict=True)]
    shapes += [added, out]
    if case.dtype in _INTEGERS:
        ends = np.iinfo(case.dtype).min, np.iinfo(case.dtype).max
        if case.special:
            return [random.choice(ends, s).astype(case.dtype) for s in shapes]
        return [random.integers(*ends, s, case.dtype, endpoint=True) for s in shapes]
    found = [random.standard_normal(s).astype(case.dtype) for s in shapes]
    if case.special:
        for array in found[:2]:
            if array.size:
                places = random.integers(0, array.size, 3)
                array.ravel()[places] = random.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], 3)
    return found


def _laid(value: Any, way: str) -> Any:
    """The same array, made of another that lies otherwise."""
    if way == "turned" and value.ndim > 1:
        return snp.swapaxes(snp.swapaxes(value, 0, -1) * 1, 0, -1)
    if way == "repeated" and value.ndim > 1:
        return snp.broadcast_to(value[:1], value.shape)
    if way == "slice" and value.ndim:
        return snp.concatenate([value, value[:1]])[: value.shape[0]]
    return value


def _function(case: Case, numbers: Any) -> Any:
    """What is computed of one member's operands, in the functions of ``numbers``."""

    def one(x: Any, y: Any, added: Any) -> Any:
        if numbers is snp:
            x, y = _laid(x, case.ways[0]), _laid(y, case.ways[1])
        else:
            x, y = (
                np.broadcast_to(v[:1], v.shape) if way == "repeated" and v.ndim > 1 else v
                for v, way in zip((x, y), case.ways, strict=True)
            )
        preferred = {"preferred_element_type": case.result} if case.wide and numbers is snp else {}
        out = numbers.einsum(case.spec, x, y, **preferred)
        if case.dtype in _INTEGERS:
            out = out.astype(case.result)
        if "bias" in case.follows or case.follows == "residual":
            out = out + added
        if "relu" in case.follows:
            out = numbers.where(out <= 0, 0, out)
        if case.follows == "turned":
            out = out.T.T if numbers is np else snp.transpose(snp.transpose(out))
        return out

    return one


def results(case: Case, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Values of all members, and of floats the gradients of a weighted sum by both operands."""
    x, y, added, weights = arrays
    one = _function(case, snp)
    axes = tuple(0 if own else None for own in case.members)

    def values(x: Any, y: Any) -> Any:
        f = lambda x, y: one(x, y, added)
        return st.vmap(f, in_axes=axes)(x, y) if any(case.members) else f(x, y)

    if case.dtype in _INTEGERS:
        return [np.asarray(st.jit(values)(x, y))]
    slopes = st.grad(lambda x, y: snp.sum(values(x, y) * weights), argnums=(0, 1))
    found = st.jit(lambda x, y: (values(x, y), slopes(x, y)))(x, y)
    return [np.asarray(leaf) for leaf in st.tree.leaves(found)]


def expected(case: Case, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The values in NumPy, in float64, or in int64 and wrapped."""
    x, y, added, _ = arrays
    if case.dtype in _INTEGERS:
        x, y = x.astype(np.int64), y.astype(np.int64)
    else:
        x, y, added = (a.astype(np.float64) for a in (x, y, added))
    one = _function(case, np)
    with np.errstate(all="ignore"):
        if not any(case.members):
            return one(x, y, added)
        members = [
            one(x[i] if case.members[0] else x, y[i] if case.members[1] else y, added)
            for i in range(3)
        ]
        return np.stack(members)


def disagreement(case: Case, got: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> str:
    """Say in words where results differ by more than rounding; empty if nowhere."""
    with st.config(kernels=False):
        plain = results(case, arrays)
    if case.dtype in _INTEGERS:
        for other in (expected(case, arrays), *plain):
            if (other.dtype, other.shape) != (got[0].dtype, got[0].shape):
                return f"values: {got[0].dtype}{got[0].shape}, expected {other.dtype}{other.shape}"
            if (other != got[0]).any():
                return f"values: {int((other != got[0]).sum())} of {other.size} differ"
        return ""
    with np.errstate(all="ignore"):
        wanted = [expected(case, arrays), *plain[1:]]
        # Of a few roundings: sums of narrow floats are in float32.
        rounding = {d: 3 * float(ml_dtypes.finfo(d).eps) for d in _NARROW}
        for name, a, b, c in zip(("values", "x'", "y'"), got, wanted, plain, strict=True):
            if a.shape != b.shape or a.dtype != c.dtype:
                return f"{name}: {a.dtype}{a.shape}, expected {c.dtype}{b.shape}"
            if (np.isnan(a) != np.isnan(b)).any() or (np.isinf(a) != np.isinf(b)).any():
                return f"{name}: other elements are not finite"
            finite = np.isfinite(b)
            apart = np.abs(a.astype(float) - b.astype(float))[finite].max(initial=0)
            size = float(np.abs(b)[finite].max(initial=0))
            bound = rounding.get(a.dtype.name) or 60 * np.finfo(a.dtype).eps
            if apart > bound * (size + 1):
                return f"{name}: apart by {apart:.3g} of {size:.3g}"
    return ""


def check(seed: int) -> tuple[str, str, list[np.ndarray]]:
    """Run the case of a seed."""
    Geometry.is_quicker = lambda *_: True  # small ones too
    case = draw_case(seed)
    arrays = operands(case)
    got = results(case, arrays)
    return disagreement(case, got, arrays), case.words, got


STORM = storms.Storm("tests.property.kernels_storm", "products", check)


if __name__ == "__main__":
    sys.exit(storms.main(STORM))
