"""Export each call of the table of functions, run the file, and compare: how many agree.

``python -m tests.export.survey --only numpy.linalg`` prints, for each call that does not agree,
why, and at the end the counts; with ``--sizes`` for each choice of axes whose size varies, at
several sizes; with ``--opset 21`` in an older version of the operators, or a newer one. Each model
passes the format's checker. ``make export-survey`` does the first two.
"""

import argparse
import importlib
import pkgutil
import sys
import warnings
from collections import Counter
from typing import Any

import numpy as np

import stretto as st
from stretto import export
from stretto._engine.core import tree
from stretto._engine.core.types import is_complex
from tests.any_size import as_values, choices
from tests.export.running import exported, run
from tests.functions import checks, entries, table

for _, name, _ in pkgutil.iter_modules(entries.__path__):
    importlib.import_module(f"tests.functions.entries.{name}")


def outcome(
    entry: Any, dtype: str, ours: Any, theirs: Any, arrays: Any, where: str, opset: int
) -> tuple[str, str]:
    """Say what became of a call: "agrees", "refused", "differs", or an error."""
    with checks.bits(dtype), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = ours(*arrays)
        values, structure = checks.leaves(expected), tree.structure(expected)
        if not all(hasattr(v, "dtype") for v in values):
            return "no array", ""
        if any(hasattr(v.dtype, "extended_kind") for v in values):
            return "no array", ""
        try:
            model = exported(ours, *arrays, opset=opset)
        except st.errors.ExportError as error:
            return "refused", str(error).partition("\n")[0]
        except st.errors.TracedValueError as error:
            return "not compiled", str(error).partition("\n")[0]
        got = run(model, arrays)
    if entry.compare is not None and theirs is not None:
        whole = [
            g[..., 0] + 1j * g[..., 1] if is_complex(np.asarray(v).dtype) else g
            for g, v in zip(got, values, strict=True)
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = theirs(*arrays)
        try:
            entry.compare(tree.unflatten(structure, whole), wanted)
        except AssertionError as error:
            return "differs", " ".join(str(error).split())[:300]
        return "agrees", ""
    for g, v in zip(got, values, strict=True):
        v = np.asarray(v)
        if is_complex(v.dtype):
            g = g[..., 0] + 1j * g[..., 1]
        try:
            if g.dtype != v.dtype and not is_complex(v.dtype):
                return "differs", f"dtype {g.dtype} for {v.dtype}"
            checks.close(g, v, max(entry.tolerance, 1.0), where)
        except AssertionError as error:
            return "differs", " ".join(str(error).split())[:300]
    return "agrees", ""


def resized(x: np.ndarray, axes: Any, i: int, by: dict[int, int]) -> np.ndarray:
    """Return an array whose axes that vary have other sizes, by repeating or leaving out parts."""
    shape = [by[axes[i, d]] if (i, d) in axes else n for d, n in enumerate(x.shape)]
    for d, n in enumerate(shape):
        x = np.take(x, np.arange(n) % x.shape[d], axis=d)
    return np.asarray(x)


def sizes_outcome(entry: Any, dtype: str, ours: Any, arrays: Any, axes: Any) -> tuple[str, str]:
    """Say what became of a call exported with sizes that vary, run at several others."""
    numbers = sorted(set(axes.values()))
    have = {k: next(arrays[i].shape[d] for (i, d), v in axes.items() if v == k) for k in numbers}
    spec = tuple(
        {d: f"n{axes[i, d]}" for d in range(a.ndim) if (i, d) in axes} or None
        for i, a in enumerate(arrays)
    )
    function = as_values(ours)
    with checks.bits(dtype), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model = export.onnx(function, *arrays, dynamic_axes=spec)
        except st.errors.ExportError as error:
            return "refused", str(error).partition("\n")[0]
        except (st.errors.MissingRuleError, st.errors.TracedValueError, TypeError, ValueError) as e:
            return "not traced", f"{type(e).__name__}: {str(e)[:200]}"
        guards = [e.value for e in model.metadata_props if e.key.startswith("stretto.holds")]
        ran = 0
        for more in (0, 1, 2, 5, -1):
            by = {k: n + more for k, n in have.items()}
            if min(by.values()) < 1:
                continue
            other = [resized(a, axes, i, by) for i, a in enumerate(arrays)]
            if guards and more:
                continue
            try:
                values = function(*other)
            except Exception:
                continue
            got = run(model, other)
            ran += 1
            for g, v in zip(got, values, strict=True):
                v = np.asarray(v)
                if is_complex(v.dtype):
                    g = g[..., 0] + 1j * g[..., 1]
                try:
                    checks.close(g, v, max(entry.tolerance, 1.0), f"sizes {by}")
                except AssertionError as error:
                    return "differs", " ".join(str(error).split())[:200]
    return ("agrees" if ran > 1 or guards else "agrees at one size"), ""


def survey_sizes(names: list[str]) -> dict[str, Counter]:
    """Return the outcomes by function, with each choice of axes that vary."""
    found: dict[str, Counter] = {}
    for name in names:
        entry = table.ENTRIES[name]
        if entry.uncompiled or entry.compare is not None:
            continue
        for dtype, each, ours, _, arrays, _ in checks.instances(entry, entry.dtypes[:1]):
            for named, axes in choices(arrays).items():
                try:
                    what, why = sizes_outcome(entry, dtype, ours, arrays, axes)
                except Exception as error:
                    what, why = "error", f"{type(error).__name__}: {str(error)[:300]}"
                found.setdefault(name, Counter())[what] += 1
                if what not in ("agrees", "not traced"):
                    where = f"{checks.words(entry, each, dtype)} where {named} varies"
                    print(f"{what}\t{where}\t{why}", flush=True)
    return found


def survey(names: list[str], opset: int) -> dict[str, Counter]:
    """Return the outcomes by function."""
    found: dict[str, Counter] = {}
    for name in names:
        entry = table.ENTRIES[name]
        for dtype, each, ours, theirs, arrays, _ in checks.instances(entry):
            where = checks.words(entry, each, dtype)
            try:
                what, why = outcome(entry, dtype, ours, theirs, arrays, where, opset)
            except Exception as error:
                what, why = "error", f"{type(error).__name__}: {str(error)[:300]}"
            kind = what + (" (complex)" if "c" in dtype.replace("bc", "") else "")
            found.setdefault(name, Counter())[kind] += 1
            if what not in ("agrees", "no array"):
                print(f"{what}\t{where}\t{why}", flush=True)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print the outcomes, and return 1 where a call differs or ends in an error."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--only", default="", help="the beginning of the functions' names")
    parser.add_argument("--part", default="0/1", help="which part of how many: 0/2")
    parser.add_argument("--opset", type=int, default=26, help="the version of the operators")
    parser.add_argument("--sizes", action="store_true", help="with axes whose size varies")
    options = parser.parse_args(arguments)
    part, of = map(int, options.part.split("/"))
    names = [n for n in sorted(table.ENTRIES) if n.startswith(options.only)][part::of]
    found = survey_sizes(names) if options.sizes else survey(names, options.opset)
    total = sum(found.values(), Counter())
    whole = sum(set(c) <= {"agrees", "agrees (complex)", "no array"} for c in found.values())
    print(dict(total), f"{whole} of {len(found)} functions whole")
    return int(any(total[k] for k in total if k.startswith(("differs", "error"))))


if __name__ == "__main__":
    sys.exit(main())
