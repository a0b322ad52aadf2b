"""Break single lines of the engine, one at a time, and count how many the tests notice.

``make mutants ARGS="--count 100 --seed 0"``. ``tests/mutations.py`` says which lines are broken,
and how. For each, pytest runs the tests that run the line, where ``make test-lines`` recorded them
(``tests/lines.py``), the test files of the module's name, and some that run other lines of the
function, or lines which read what it sets. Of one that runs while its module is imported, those
that read what it defines come first. At last the mirrors of modules that use it run, and the tests
that use its names, nearest first (``tests/changed.py``); tests that need several devices, in a
process that has eight.

They run first in a fork of a process in which everything is imported, with broken functions in the
place of those that are there: a second or two each. What no test notices there, or is in no
function, is broken once more in a copy of the file, which a fresh process imports: a minute where
nothing notices it (``tests/mutant_runs.py`` has both ways).

A mutant is noticed where a test fails that passes without it, or does not end. Those that were not
noticed are printed, with file and line: each is a test that is missing, or changes nothing that
anyone could test, such as only the speed. The latter are listed by the content of the line in
``equivalent_mutants.toml``, each with a reason, and counted apart.
"""

from __future__ import annotations

import argparse
import ast
import functools
import hashlib
import json
import os
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from tests.changed import Sources, defined, tests_of
from tests.mutant_runs import Files, Forks, copied, linked
from tests.mutations import Mutant, chosen

ROOT = Path(__file__).parent.parent
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")

FILES = 25
"""The most test files that run for a mutant at last, of those of modules that use its own."""

READERS = 60
"""The most tests that run for a line because they run others: of its function, or what reads it."""

EVERYWHERE = [
    "tests/_engine/core/test_primitive_declarations.py",
    "tests/_engine/test_defaults.py",
]
"""Tests of what all modules say while they are imported."""


def digest(file: Path) -> str:
    """Return a digest of a file's content."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


class Record:
    """The tests of each line, from the file that ``tests/lines.py`` wrote, if there is one."""

    def __init__(self, file: Path, root: Path) -> None:
        told: Any = {"tests": [], "files": {}}
        if file.exists():
            told = json.loads(file.read_text("utf-8"))
        self.root = root
        self.tests: list[str] = told["tests"]
        self.files = {
            path: each["lines"]
            for path, each in told["files"].items()
            if (root / path).exists() and digest(root / path) == each["digest"]
        }

    def of(self, path: str, line: int) -> list[str]:
        """Return the tests that run a line, counted from 1, of a file that is as it was."""
        return [self.tests[n] for n in self.files.get(path, {}).get(str(line), ())]

    def around(self, path: str, line: int, told: Told) -> list[str]:
        """Return tests that run other lines: those beside one, or which read what it defines.

        Of lines of one function, those that few tests run come first.
        """
        names = "|".join(map(re.escape, sorted(told.names)))
        word = re.compile(rf"\b({names})\b")
        beside = [(path, n) for n in range(told.first, told.last + 1) if n != line]
        reading = [
            (file, n)
            for file in sorted(self.files, key=lambda file: file != path)
            for n, text in enumerate(self._lines(file), 1)
            if names and word.search(text) and (file, n) not in {*beside, (path, line)}
        ]
        tests: dict[str, None] = {}
        for places in (beside, reading):
            each = sorted([self.of(*place) for place in places], key=len)
            few = dict.fromkeys(test for of in each for test in of[:: max(1, len(of) // 4)])
            tests |= dict.fromkeys([*few][: READERS // 2])
        return [*tests]

    @functools.cache  # noqa: B019 (of the one record)
    def _lines(self, path: str) -> list[str]:
        return (self.root / path).read_text("utf-8").splitlines()


class Told(NamedTuple):
    """What the text of a module tells of a line."""

    at_import: bool
    """Whether it runs while the module is imported: it is in no function."""
    names: set[str]
    """What it defines: names of the module or the class, or attributes of objects."""
    first: int
    last: int
    """The lines of the function in which it is, or of whose signature it is a part; or of the
    class."""


def told_of(tree: ast.Module | ast.ClassDef, line: int) -> Told:
    """Return what the text of a module tells of a line, counted from 1."""
    for node in tree.body:
        begin = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        if not begin <= line <= (node.end_lineno or begin):
            continue
        if isinstance(node, ast.ClassDef):
            return told_of(node, line)
        if isinstance(node, ast.FunctionDef):
            inside = node.body[0].lineno, node.end_lineno or line
            return Told(line < inside[0], _attributes(node, line), *inside)
        if isinstance(tree, ast.ClassDef):
            names = {tree.name, *defined(node)}
            return Told(True, names, tree.lineno, tree.end_lineno or line)
        return Told(True, defined(node), line, line)
    return Told(True, set(), line, line)


def _attributes(function: ast.FunctionDef, line: int) -> set[str]:
    """Return the attributes that a line of a function sets."""
    return {
        target.attr
        for node in ast.walk(function)
        if isinstance(node, (ast.Assign, ast.AugAssign)) and node.lineno <= line
        if line <= (node.end_lineno or line)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Attribute)
    }


def stages(sources: Sources, record: Record, mutant: Mutant) -> list[list[str]]:
    """Return the tests of a mutant in their order: those known to run it, nearest first, and more.

    Tests of forms are not among them: what they say is not about behaviour.
    """
    name = sources.names[mutant.path]
    own = sources.mirrors(name)
    folder = os.path.dirname(own[0]) if own else ""
    near = lambda test: test.startswith(f"{folder}/")
    line = mutant.line + 1
    told = told_of(ast.parse((record.root / mutant.path).read_text("utf-8")), line)
    recorded, around = record.of(mutant.path, line), record.around(mutant.path, line, told)
    if told.at_import:  # those recorded happened to import the module
        recorded, around = around, []
    mirrors = [m for user in sources.around([name], 1)[1:] for m in sources.mirrors(user)]
    others = dict.fromkeys([*mirrors, *tests_of(sources, name)])
    if recorded:
        found = [[*filter(near, recorded)], [t for t in recorded if not near(t)], own]
        found.append(EVERYWHERE if told.at_import else [t for t in around if t not in recorded])
    else:
        others |= dict.fromkeys(t for t in sources.names if re.match(rf"{folder}/test_[^/]+$", t))
        found = [own, EVERYWHERE]
    beyond = sorted([test for test in others if test not in own], key=lambda test: not near(test))
    found.append(beyond[:FILES])
    return [[t for t in tests if not t.startswith("tests/form/")] for tests in found]


def equivalent(path: Path = EQUIVALENT) -> dict[tuple[str, str], str]:
    """Return the reasons by the line before and after, without the spaces around it.

    Of a line that may be broken in several ways, for one reason, ``after`` is a list of them.
    """
    if not path.exists():
        return {}
    rows = tomllib.loads(path.read_text("utf-8")).get("mutant", [])
    return {
        (row["before"], after): row["because"]
        for row in rows
        for after in (row["after"] if isinstance(row["after"], list) else [row["after"]])
    }


class Ways:
    """The two ways of running tests, of one process: the quick one, and the slow one."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder, self.cache = folder, cache
        self.forks = Forks(copied(ROOT, folder / "here"), linked(cache, folder / "programs"))

    @functools.cached_property
    def files(self) -> Files:
        """Return the slow way, with a copy of the checkout for this process."""
        return Files(copied(ROOT, self.folder / str(os.getpid())), self.cache)

    def noticed(self, mutant: Mutant, tests: list[list[str]]) -> str | None:
        """Return the test that notices a mutant, if one does in either way.

        The last tests, which are many, run once.
        """
        quick = self.forks.noticed(mutant, tests)
        return quick or self.files.noticed(
            mutant, tests[: -1 if self.forks.codes(mutant) else None]
        )


_ways: Ways


def _begin(ways: Ways) -> None:
    """Begin a process that runs mutants; ``ways`` is from the process that it is forked from."""
    global _ways  # noqa: PLW0603
    _ways = ways


def _noticed(mutant: Mutant, tests: list[list[str]]) -> str | None:
    return _ways.noticed(mutant, tests)


def main(arguments: list[str] | None = None) -> int:
    """Print what was noticed, and return 1 where fewer than 95 of 100 were."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--skip", type=int, default=0, help="how many of the first to leave out")
    parser.add_argument("--only", default="", help="a part of the path of the files to break")
    processors = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=processors, help="how many to run at once")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "tests")
    parser.add_argument("--lines", type=Path, default=ROOT / "build" / "lines.json")
    parser.add_argument("--list", action="store_true", help="print the mutants, and run nothing")
    options = parser.parse_args(arguments)
    mutants = chosen(ROOT, options.count, options.seed, options.only)[options.skip :]
    if options.list:
        print(*mutants, sep="\n")
        return 0
    sources, record, reasons = Sources(ROOT), Record(options.lines, ROOT), equivalent()
    because = [reasons.get((each.before.strip(), each.after.strip())) for each in mutants]
    same = [(mutant, reason, True) for mutant, reason in zip(mutants, because) if reason]
    run = [(each, stages(sources, record, each)) for each, why in zip(mutants, because) if not why]
    with tempfile.TemporaryDirectory(prefix="stretto-mutants-") as folder:
        ways = Ways(Path(folder), options.cache)
        return report(chain(same, results(ways, run, options.jobs)))


def results(
    ways: Ways, run: list[tuple[Mutant, list[list[str]]]], jobs: int
) -> Iterator[tuple[Mutant, str | None, bool]]:
    """Run the tests of mutants in so many processes, and yield what noticed each."""
    pool = ProcessPoolExecutor(jobs, get_context("fork"), _begin, (ways,))
    try:
        waiting = {pool.submit(_noticed, mutant, tests): mutant for mutant, tests in run}
        for one in as_completed(waiting):
            yield waiting[one], one.result(), False
    finally:
        pool.shutdown(cancel_futures=True)


def report(results: Iterator[tuple[Mutant, str | None, bool]]) -> int:
    """Print each result as it comes, and the count at the end."""
    noticed, same, missed = 0, 0, []
    for number, (mutant, by, listed) in enumerate(results, 1):
        if listed:
            same += 1
        elif by is None:
            missed.append(mutant)
        else:
            noticed += 1
        said = f"same: {by}" if listed else "NOT NOTICED" if by is None else f"noticed by {by}"
        print(f"{number}. {mutant}\n    {said}", flush=True)
    real = noticed + len(missed)
    print(f"\n{noticed} of {real} noticed; {same} more change nothing that can be tested")
    print(*missed, sep="\n")
    return int(noticed < 0.95 * real)


if __name__ == "__main__":
    sys.exit(main())
