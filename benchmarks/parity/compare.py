"""One case in both frameworks: whether they agree, refuse, or differ, and where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.parity import ours
from benchmarks.parity.case import Case
from benchmarks.parity.known import Fault, fault_of

__all__ = [
    "AGREE",
    "BOTH_REFUSE",
    "DIFFER",
    "PEER_REFUSES",
    "PEER_WRONG",
    "TOLERANCES",
    "Verdict",
    "compare",
]

AGREE, BOTH_REFUSE, PEER_REFUSES = "agree", "both refuse", "only PyTorch refuses"
PEER_WRONG, DIFFER = "PyTorch is wrong", "differ"

TOLERANCES = {"float64": 1e-11, "float32": 2e-5}
"""How far numbers may be apart, relative to 1 plus PyTorch's.

Some 5·10⁴ and 170 units in the last place: both add in their own order, and divide by deviations
and roots that rounding has moved. What is wrong is off by more than either. In float32 a number may
instead be as near to PyTorch's in float64: where much cancels, PyTorch's own rounding shows.
"""

PARTS = {
    "outputs": "output",
    "others": "indices",
    "buffers": "buffer",
    "gradients": "gradient",
    "parameters": "gradient of",
}
"""What a step gives, and how a message calls it."""

COMPILED = {"float64": False, "float32": True}


@dataclass(frozen=True)
class Verdict:
    """The outcome of a case, and the message or the place that goes with it."""

    outcome: str
    why: str = ""


Array: TypeAlias = NDArray[Any]
Arrays: TypeAlias = Sequence[Array] | Mapping[Any, Array]
Check: TypeAlias = Callable[[Array, Array, Array, str], None]
"""Raises `Difference` for Stretto's array, PyTorch's, and PyTorch's in float64; then the place."""


class Difference(Exception):
    """Where two results differ."""


def compare(case: Case, results: Mapping[str, Any]) -> Verdict:
    """Carry the case out by Stretto, beside PyTorch's `results` of both precisions."""
    refused = next((one["refused"] for one in results.values() if "refused" in one), None)
    try:
        if refused is not None:
            answer = ours.refusal(case)
            if answer is None:
                return Verdict(PEER_REFUSES, refused)
            return Verdict(BOTH_REFUSE, f"{refused} | Stretto: {answer}")
        fault = fault_of(case, results["float64"])
        for dtype in results:
            _compare(case, dtype, results, fault)
    except Difference as difference:
        return Verdict(DIFFER, str(difference))
    except Exception as error:
        return Verdict(DIFFER, f"Stretto raised {type(error).__name__}: {error}")
    return Verdict(AGREE) if fault is None else Verdict(PEER_WRONG, fault.reason)


def _compare(case: Case, dtype: str, results: Mapping[str, Any], fault: Fault | None) -> None:
    peer = results[dtype]
    state = peer.get("loaded")
    if not isinstance(case.target, str):
        _compare_states(ours.initial_state(ours.built(case.target, dtype)), peer["initial"], dtype)
    if fault is not None and fault.everything:
        return
    steps = ours.steps(case, dtype, COMPILED[dtype], state)
    near = _near(TOLERANCES[dtype] * (case.slack if dtype == "float64" else 1))
    for number, ours_here in enumerate(steps):
        theirs, exact = peer["steps"][number], results["float64"]["steps"][number]
        for part, name in PARTS.items():
            if fault is not None and part in ("gradients", "parameters"):
                continue
            check = _equal if part == "others" else near
            where = f"{dtype}, step {number}: {name}"
            _each(ours_here[part], theirs[part], exact[part], check, where)


def _compare_states(own: Mapping[str, Array], theirs: Mapping[str, Array], dtype: str) -> None:
    """Names in order, shapes, dtypes; and where one begins with equal numbers, the other does."""
    if list(own) != list(theirs):
        raise Difference(f"names of the state: {list(own)}, PyTorch {list(theirs)}")

    def alike(a: Array, b: Array, exact: Array, where: str) -> None:
        _same_type(a, b, where)
        constant = b.size > 0 and (b == b.flat[0]).all() and (b.size > 1 or b.flat[0] in (0, 1))
        if constant and not np.array_equal(a, b):
            raise Difference(f"{where} begins with {a.ravel()[:4]}, PyTorch {b.ravel()[:4]}")
        if not constant and a.size > 1 and (a == a.flat[0]).all():
            raise Difference(f"{where} begins with one number, {a.flat[0]}; PyTorch's do not")

    _each(own, theirs, theirs, alike, f"{dtype}: initial")


def _each(own: Arrays, theirs: Arrays, exact: Arrays, check: Check, where: str) -> None:
    """Check arrays in order, or by name."""
    if not isinstance(own, Mapping):
        own, theirs, exact = (dict(enumerate(arrays)) for arrays in (own, theirs, exact))
    assert isinstance(theirs, Mapping)
    if own.keys() != theirs.keys():
        raise Difference(f"{where}: there are {list(own)}, PyTorch has {list(theirs)}")
    for key in own:
        check(own[key], theirs[key], exact[key], f"{where} {key}")


def _same_type(a: Array, b: Array, where: str) -> None:
    if a.shape != b.shape:
        raise Difference(f"{where}: shape {a.shape}, PyTorch {b.shape}")
    # Integers are as wide as a framework has them.
    if a.dtype.kind != b.dtype.kind or (a.dtype.kind == "f" and a.dtype != b.dtype):
        raise Difference(f"{where}: {a.dtype}, PyTorch {b.dtype}")


def _equal(a: Array, b: Array, exact: Array, where: str) -> None:
    _same_type(a, b, where)
    if not np.array_equal(a, b):
        raise Difference(f"{where}: {a.ravel()[:6]}, PyTorch {b.ravel()[:6]}")


def _near(tolerance: float) -> Check:
    """A check that each number is near PyTorch's, or near its exact one."""

    def near(a: Array, b: Array) -> Array:
        with np.errstate(invalid="ignore", over="ignore"):
            close = np.isfinite(b) & (np.abs(a - b) <= tolerance * (1 + np.abs(b)))
        return close | (a == b) | (np.isnan(a) & np.isnan(b))

    def check(a: Array, b: Array, exact: Array, where: str) -> None:
        _same_type(a, b, where)
        far = ~(near(a, b) | near(a, exact))
        if far.any():
            raise Difference(
                f"{where}: {a[far][0]!r}, PyTorch {b[far][0]!r}; "
                f"{far.sum()} of {far.size} numbers are not within {tolerance:.1g}"
            )

    return check
