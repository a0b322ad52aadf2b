"""The calls of the table, held to the law of sizes that vary; and what came of each.

`any_size.txt` has a line for each function and mode: a sign for each call and choice of axes, which
says that the law holds or who refuses. `python -m tests.functions.sized` tries them all, in some
minutes, and says where the file is wrong; with `--write` it writes the file.
"""

import argparse
import importlib
import pathlib
import pkgutil
import string
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

import stretto.numpy as snp
from stretto.errors import MissingRuleError, TracedValueError
from tests.any_size import MODES, Axes, Outcome, attempt, choices, compare, valid_part
from tests.functions import entries, table
from tests.functions.checks import bits, instances, kinds_of, words
from tests.functions.table import Entry

_FLOAT32 = float(np.finfo(np.float32).eps / np.finfo(np.float64).eps)
"""How much larger the errors of float32 are."""
TABLE = pathlib.Path(__file__).parent / "any_size.txt"
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "shapes.md"
HOLDS, SIZE, SHAPE = "+", "?", "!"
SIGNS = {
    HOLDS: "the law holds",
    SIZE: "Python would need to know a size",
    SHAPE: "shapes do not fit, since the call has others of a fixed size",
}
OF_NO_SIGN = {"lax.linalg.svd", "linalg.svd", "numpy.linalg.svd", "scipy.linalg.svd"}
"""Functions whose results have signs that LAPACK chooses by the size; `test_svd` compares the
derivatives of their squares."""

for _, _name, _ in pkgutil.iter_modules(entries.__path__):
    importlib.import_module(f"tests.functions.entries.{_name}")


class Case(NamedTuple):
    """One call, with a choice of axes whose size varies, in one mode of the law."""

    name: str
    mode: str
    dtype: str
    pair: tuple[list[np.ndarray], list[np.ndarray]]
    function: Callable
    like: Callable
    axes: Axes
    rounded: bool
    """Whether 64-bit arguments are converted to float32 first: as close as that is exact."""


def cases(entry: Entry, modes: Sequence[str] = MODES) -> Iterator[Case]:
    """Each call, choice of axes and mode; derivatives in 64 bits."""
    kinds = {kind for d in entry.dtypes for kind in kinds_of(d)}
    wide = tuple(d for k, d in (("float", "f64"), ("complex", "c128")) if k in kinds)[:1]
    for mode in modes:
        derivative, mapped = mode in ("jvp", "vjp"), mode in ("vmap", "ragged")
        unlike = derivative and (entry.undifferentiated or entry.name in OF_NO_SIGN)
        if unlike or (mapped and entry.unmapped):
            continue
        dtypes = wide if derivative else entry.dtypes[:1]
        for dtype, each, ours, theirs, arrays, again in instances(entry, dtypes):
            for named, axes in choices(arrays).items():
                name = f"{words(entry, each, dtype)}, {mode} where {named} varies"
                rounded = derivative and getattr(each, "kwargs", {}).get("dtype") is np.float32
                yield Case(name, mode, dtype, (arrays, again), ours, theirs, axes, rounded)


def check(entry: Entry, case: Case) -> Outcome:
    """Hold a case to the law, or return the refusal.

    Factors that are not unique may be others where there is padding: they are then compared as the
    entry compares them.
    """
    with bits(case.dtype):
        pair = [[snp.asarray(a) for a in arrays] for arrays in case.pair]
        outcome = attempt(case.function, pair, case.axes, case.mode)
        if outcome.refused is not None:
            return outcome
        try:
            tolerance = entry.tolerance * (_FLOAT32 if case.rounded else 1)
            compare(outcome.got, outcome.wanted, tolerance, case.name)
        except AssertionError:
            if entry.compare is None or case.mode in ("jvp", "vjp"):
                raise
            for out, arrays in examples(outcome, case):
                entry.compare(out, case.like(*arrays))
    return outcome


def examples(
    outcome: Outcome, case: Case
) -> Iterator[tuple[list[np.ndarray], Sequence[np.ndarray]]]:
    """The results for each example, without padding, and its arrays."""
    valid = [valid_part(a, b) for a, b in zip(outcome.got, outcome.wanted)]
    if case.mode == "values":
        yield valid, case.pair[0]
        return
    count = len(valid) // 2
    for i, arrays in enumerate(case.pair):
        own = [v[i] for v in valid] if case.mode == "vmap" else valid[i * count : (i + 1) * count]
        yield own, arrays


def operation_of(refused: MissingRuleError) -> str:
    """The operation that has no rule: the first word of its message."""
    return str(refused).split()[0].rstrip(":")


def kind_of_outcome(outcome: Outcome) -> str:
    """A sign, or the name of the operation that refuses."""
    if outcome.refused is None:
        return HOLDS
    if isinstance(outcome.refused, MissingRuleError):
        return operation_of(outcome.refused)
    return SIZE if isinstance(outcome.refused, TracedValueError) else SHAPE


def tried() -> list[Entry]:
    """The entries whose functions can be traced."""
    return [e for _, e in sorted(table.ENTRIES.items()) if not e.uncompiled]


class Written(NamedTuple):
    """What the file says."""

    meaning: dict[str, str]
    """What signs stand for: a text, or the name of an operation that refuses."""
    rows: dict[tuple[str, str], str]
    """The signs of each function and mode."""
    rules: dict[str, tuple[str, str, int]]
    """For each operation a case in which its rule runs: a function, a mode, and the number."""


def read() -> Written:
    """What the file says."""
    meaning, rows, rules = {}, {}, {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        first, second, *rest = line.split(" ", 2)
        if first == "#":
            meaning[second] = rest[0]
        elif first == "=":
            name, mode, number = rest[0].split()
            rules[second] = name, mode, int(number)
        else:
            rows[first, second] = rest[0] if rest else ""
    return Written(meaning, rows, rules)


def written(found: dict[tuple[str, str], list[str]], rules: dict[str, tuple[str, str, int]]) -> str:
    """The file that says so."""
    operations = sorted({kind for kinds in found.values() for kind in kinds} - SIGNS.keys())
    signs = dict(zip(operations, string.ascii_letters)) | {sign: sign for sign in SIGNS}
    lines = [f"# {sign} {text}" for sign, text in SIGNS.items()]
    lines += [f"# {signs[name]} {name}" for name in operations]
    lines += [f"= {rule} {name} {mode} {n}" for rule, (name, mode, n) in sorted(rules.items())]
    lines += [
        f"{name} {mode} {''.join(signs[kind] for kind in kinds)}"
        for (name, mode), kinds in found.items()
    ]
    return "\n".join(lines) + "\n"


def counts() -> dict[str, int]:
    """How many attempts came to what, by the meanings of signs."""
    every = "".join(read().rows.values())
    return {text: every.count(sign) for sign, text in read().meaning.items()}


def page() -> str:
    """The page, with what came of all attempts in its place."""
    rows = ["| attempts | |", "| ---: | --- |"]
    for text, count in sorted(counts().items(), key=lambda item: -item[1]):
        own = text in SIGNS.values()
        rows.append(f"| {count:,} | {text if own else f'refused by `{text}`'} |")
    before, rest = PAGE.read_text(encoding="utf-8").split("sized --write -->\n")
    _, after = rest.split("<!-- end -->")
    table = "\n".join(rows)
    return f"{before}sized --write -->\n\n{table}\n\n<!-- end -->{after}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write what is found")
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    found: dict[tuple[str, str], list[str]] = {}
    rules: dict[str, tuple[str, str, int]] = {}
    failures = 0
    for entry in tried():
        for case in cases(entry):
            row = found.setdefault((entry.name, case.mode), [])
            try:
                outcome = check(entry, case)
            except Exception as error:
                failures += 1
                print(f"{case.name}: {type(error).__name__}: {error}", flush=True)
                outcome = Outcome(None)
            for primitive in outcome.primitives:
                rules.setdefault(primitive.name, (entry.name, case.mode, len(row)))
            row.append(kind_of_outcome(outcome))
    text = written(found, rules)
    if args.write:
        TABLE.write_text(text, encoding="utf-8")
        PAGE.write_text(page(), encoding="utf-8")
    elif text != TABLE.read_text(encoding="utf-8"):
        failures += 1
        print(f"{TABLE.name} says something else: run python -m tests.functions.sized --write")
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
