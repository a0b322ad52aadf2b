"""The check that narrow floats round once, last: in float16 and bfloat16, against 64 bits.

Of the same inputs, at three magnitudes, each result that 64 bits say fits the narrow dtype is what
they say, to a few units in the last place; and so are gradients. `table.py` says what is called.
Run as `python -m tests.functions.narrow [NAME...]` this lists what is not.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

import stretto as st
from stretto._engine.core.interpreter import Value
from tests.functions import checks
from tests.functions.table import Entry

MAGNITUDES = (1, 150, 5e-5)
"""What arrays of the table, most of them from -2 to 2, are multiplied by."""

UNITS = 4
"""Units in the last place that a result may be off, of its element or of the largest summand's."""

DTYPES = ("float16", "bfloat16")


def _float(value: Any) -> bool:
    return isinstance(value, Value) and np.issubdtype(np.asarray(value).dtype, np.floating) or (
        isinstance(value, Value) and str(value.dtype) in DTYPES
    )


def _results(fun: Callable, arrays: list) -> list:
    return [v for v in checks.leaves(fun(*arrays)) if isinstance(v, Value) and v.type.kind == "float"]


def _gradients(fun: Callable, arrays: list) -> list:
    moving = [i for i, a in enumerate(arrays) if a.size and str(a.dtype) in (*DTYPES, "float64")]
    if not moving:
        return []

    def total(*some):
        full = list(arrays)
        for i, v in zip(moving, some):
            full[i] = v
        return _results(fun, full)

    out, back = st.vjp(total, *[arrays[i] for i in moving])
    return list(back([np.ones(v.shape, v.dtype) for v in out])) if out else []


def wrong(got: np.ndarray, want: np.ndarray, dtype: str) -> str:
    """What is wrong with a narrow result, in words; nothing where it is right."""
    info = ml_dtypes.finfo(dtype)
    if str(got.dtype) != dtype:
        return ""  # of a wider dtype, as counts and statistics of tests are
    got, want = got.astype(np.float64), want.astype(np.float64)
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    fits = np.isfinite(want) & (np.abs(want) <= float(info.max) * (1 - float(info.eps)))
    lost = fits & ~np.isfinite(got)
    if lost.any():
        return f"{got[lost][0]} for {want[lost][0]:.4g}"
    gone = fits & (got == 0) & (np.abs(want) > 2 * float(info.smallest_normal))
    if gone.any():
        return f"0 for {want[gone][0]:.4g}"
    error = np.where(fits, np.abs(got - want), 0)
    unit = float(info.eps) * np.abs(want) + float(info.smallest_subnormal)
    units = error / np.where(fits, unit, 1)
    if units.size and units.max() > UNITS:
        worst = units.argmax()
        return f"{got.flat[worst]:.6g} for {want.flat[worst]:.6g}, {units.max():.3g} units"
    return ""


def faults(name: str, fun: Callable, arrays: list, dtype: str) -> Iterator[str]:
    """What is wrong with a function of these arrays of 64 bits, in words."""
    floats = [a.dtype == np.float64 for a in arrays]
    narrow = [a.astype(dtype) if f else a for a, f in zip(arrays, floats)]
    exact = [a.astype(np.float64) if f else a for a, f in zip(narrow, floats)]
    for kind, of in (("value", _results), ("gradient", _gradients)):
        with st.enable_x64(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                want = [np.asarray(v) for v in of(fun, exact)]
                got = [np.asarray(v) for v in of(fun, narrow)]
            except Exception as error:
                yield f"{kind} {type(error).__name__}"
                return
        for a, b in zip(got, want):
            if words := wrong(a, b, dtype):
                yield f"{kind} {words}"
                break


def check(entry: Entry) -> list[str]:
    """What is wrong with an entry of the table in narrow floats."""
    out = []
    for dtype in DTYPES:
        with st.enable_x64():
            several = list(checks.instances(entry, ("f64",)))
        for _, each, fun, _, arrays, _ in several:
            if not any(a.dtype == np.float64 for a in arrays):
                continue
            for magnitude in MAGNITUDES:
                scaled = [a * magnitude if a.dtype == np.float64 else a for a in arrays]
                words = checks.words(entry, each, dtype)
                for fault in faults(entry.name, fun, scaled, dtype):
                    out.append(f"{words} times {magnitude}: {fault}")
    return out


if __name__ == "__main__":
    import sys
    import time

    from tests.functions import table, test_functions  # noqa: F401 (fills the table)

    for name in sys.argv[1:] or sorted(table.ENTRIES):
        entry = table.ENTRIES[name]
        if name.startswith(("lax.", "random.", "fft.", "numpy.fft")) or "f32" not in " ".join(entry.dtypes):
            continue
        start = time.perf_counter()
        found = check(entry)
        print(f"# {name} {time.perf_counter() - start:.2f} s", flush=True)
        for line in found:
            print(line, flush=True)
