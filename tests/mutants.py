"""Break single lines of the engine, one at a time, and count how many the tests notice.

``make mutants ARGS="--count 100 --seed 0"``. A mutant is a line of ``src/stretto/_engine`` with an
operator flipped, a constant moved, a condition negated, or a statement removed. What no test is
meant to see is never chosen: docstrings, annotations, messages, and what only type checkers read.

For each, pytest runs in a copy of the checkout: first the test file of the module's name; then the
tests that run the line, where ``make test-lines`` recorded them (``tests/lines.py``), or else those
beside that file, mirrors of the modules that use it, and the tests that use its names, nearest
first (``tests/changed.py``); tests that need several devices, in a process that has eight. A mutant
is noticed where a test fails that passes without it, or does not end. Those that were not noticed
are printed, with file and line: each is a test that is missing, or changes nothing that anyone
could test, such as only the speed. The latter are listed by the content of the line in
``equivalent_mutants.toml``, each with a reason, and counted apart.
"""

from __future__ import annotations

import argparse
import ast
import functools
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from tests.changed import Sources, tests_of

ROOT = Path(__file__).parent.parent
ENGINE = "src/stretto/_engine"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")

DEVICES = "pytest.mark.devices"
"""What is in the files of tests that need several devices."""

FILES = 10
"""The most test files that run for a mutant, after its mirror."""

EVERYWHERE = [
    "tests/_engine/core/test_primitive_declarations.py",
    "tests/_engine/test_defaults.py",
]
"""Tests of what all modules say while they are imported."""

_LEAST = 1e-12
"""A hundredth of a smaller number is below the last bit of what it is added to: they are the last
coefficients of series."""

HANGS = 300
"""Seconds after which a test is taken not to end; a run, after twice as many."""

PROCESSOR = 300
"""Seconds of processor time that one run of pytest may take; what did not run noticed nothing."""

COMPARISONS = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
OPERATORS = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "*",
    ast.Pow: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.BitXor: "|",
    ast.LShift: ">>",
    ast.RShift: "<<",
    ast.MatMult: "*",
}
BOOLEANS = {ast.And: "or", ast.Or: "and"}

WORDS = re.compile(
    r"\b(warn|warning|_warn|getLogger|TypeVar|LazyModule|LazyMethod|cast|overload)\b"
)
"""Calls whose arguments are messages, or are for type checkers."""


class Mutant(NamedTuple):
    """A line with one part replaced; the line and the columns count from 0."""

    path: str
    line: int
    start: int
    end: int
    put: str
    kind: str
    before: str

    @property
    def after(self) -> str:
        """Return the line that was broken."""
        raw = self.before.encode()
        return (raw[: self.start] + self.put.encode() + raw[self.end :]).decode()

    def __str__(self) -> str:
        lines = f"    {self.before.strip()}\n    {self.after.strip()}"
        return f"{self.path}:{self.line + 1}: {self.kind}\n{lines}"


class Breaking(ast.NodeVisitor):
    """Collect the mutants of one file."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.lines = path, text.splitlines()
        self.found: list[Mutant] = []
        self.visit(ast.parse(text))

    def add(self, node: ast.AST, put: str, kind: str) -> None:
        """Note that a node, if it is on one line, is replaced."""
        if node.lineno == node.end_lineno:
            self.add_at(node.lineno - 1, node.col_offset, node.end_col_offset, put, kind)

    def add_at(self, line: int, start: int, end: int, put: str, kind: str) -> None:
        """Note that a part of a line is replaced."""
        self.found.append(Mutant(self.path, line, start, end, put, kind, self.lines[line]))

    def between(self, left: ast.AST, right: ast.AST, put: str, kind: str) -> None:
        """Note that the operator between two operands on one line is replaced."""
        if left.end_lineno != right.lineno:
            return
        raw = self.lines[left.end_lineno - 1].encode()
        gap = raw[left.end_col_offset : right.col_offset].decode()
        symbol = gap.strip(" ()")
        if symbol:
            start = left.end_col_offset + gap.index(symbol)
            self.add_at(left.end_lineno - 1, start, start + len(symbol), put, kind)

    def visit(self, node: ast.AST) -> None:
        """Visit a node, but for what no test is meant to see."""
        if isinstance(node, (ast.JoinedStr, ast.Raise, ast.Assert, ast.AnnAssign)):
            if isinstance(node, ast.Raise) and "NotImplementedError" not in ast.unparse(node):
                self.add(node, "pass", "statement removed")
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                self.visit(node.value)
            return
        if isinstance(node, ast.Call) and WORDS.search(ast.unparse(node.func)):
            return
        super().visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        """Leave ``zip(..., strict=True)`` alone: it is an assertion."""
        if node.arg != "strict":
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Look at defaults and the body: not at annotations, nor at decorators."""
        if "overload" in map(ast.unparse, node.decorator_list):
            return
        for part in (*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body):
            self.visit(part)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Look at the body: not at decorators, as ``frozen=True``."""
        for part in node.body:
            self.visit(part)

    def visit_If(self, node: ast.If) -> None:
        """Negate a condition; leave out what is for type checkers."""
        if "TYPE_CHECKING" in ast.unparse(node.test):
            return
        self.negated(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """Negate the condition of an expression."""
        self.negated(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        """Negate the condition of a loop."""
        self.negated(node.test)
        self.generic_visit(node)

    def negated(self, test: ast.expr) -> None:
        """Note that a condition on one line is negated."""
        if test.lineno == test.end_lineno and not isinstance(test, (ast.Compare, ast.NamedExpr)):
            raw = self.lines[test.lineno - 1].encode()
            text = raw[test.col_offset : test.end_col_offset].decode()
            self.add(test, f"(not ({text}))", "condition negated")

    def visit_Compare(self, node: ast.Compare) -> None:
        """Flip a comparison."""
        operands = [node.left, *node.comparators]
        for left, op, right in zip(operands, node.ops, operands[1:], strict=False):
            self.between(left, right, COMPARISONS[type(op)], "comparison flipped")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Flip an operator, but not where text is made, or a union of types."""
        strings = (ast.JoinedStr, ast.Constant)
        textual = any(
            isinstance(side, strings) and isinstance(getattr(side, "value", ""), str)
            for side in (node.left, node.right)
        )
        if not textual:
            self.between(node.left, node.right, OPERATORS[type(node.op)], "operator flipped")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Turn ``and`` into ``or``, and the other way."""
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.between(left, right, BOOLEANS[type(node.op)], "operator flipped")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Move an integer by one and another number by a hundredth, and turn a truth value."""
        if isinstance(node.value, bool):
            self.add(node, str(not node.value), "constant moved")
        elif isinstance(node.value, int) or (
            isinstance(node.value, float) and not 0 < abs(node.value) < _LEAST
        ):
            moved = node.value + 1 if isinstance(node.value, int) else node.value * 1.01 or 0.01
            self.add(node, str(moved), "constant moved")

    def visit_Expr(self, node: ast.Expr) -> None:
        """Remove a call whose result is not used; leave docstrings alone."""
        if isinstance(node.value, ast.Constant):
            return
        if isinstance(node.value, ast.Call):
            if WORDS.search(ast.unparse(node.value.func)):
                return
            self.add(node, "pass", "statement removed")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Remove ``x += y``."""
        self.add(node, "pass", "statement removed")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Remove what is written to an attribute or an item."""
        if any(ast.unparse(t) in ("__slots__", "__all__") for t in node.targets):
            return
        if all(isinstance(t, (ast.Attribute, ast.Subscript)) for t in node.targets):
            self.add(node, "pass", "statement removed")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        """Remove ``continue``."""
        self.add(node, "pass", "statement removed")

    def visit_Break(self, node: ast.Break) -> None:
        """Remove ``break``."""
        self.add(node, "pass", "statement removed")


@functools.cache
def mutants_of(path: str, text: str) -> list[Mutant]:
    """Return the mutants of a file that are programs, and other ones than the file."""
    return [mutant for mutant in Breaking(path, text).found if mutant.after != mutant.before]


def broken(text: str, mutant: Mutant) -> str:
    """Return the text of the file with the line broken."""
    lines = text.splitlines(keepends=True)
    ending = lines[mutant.line][len(mutant.before) :]
    lines[mutant.line] = mutant.after + ending
    return "".join(lines)


def chosen(root: Path, count: int, seed: int, only: str = "") -> list[Mutant]:
    """Choose so many lines that can be broken, each as likely as the others, and a way for each."""
    lines: dict[tuple[str, int], list[Mutant]] = {}
    for file in sorted((root / ENGINE).rglob("*.py")):
        path = file.relative_to(root).as_posix()
        if only in path:
            for mutant in mutants_of(path, file.read_text("utf-8")):
                lines.setdefault((path, mutant.line), []).append(mutant)
    draw = random.Random(seed)
    places = draw.sample(sorted(lines), min(count, len(lines)))
    return [draw.choice(lines[place]) for place in places]


class Copy:
    """A copy of the checkout in which files are broken, with a cache of programs for each run."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.root, self.cache = folder, cache
        self.runs = 0
        leave = shutil.ignore_patterns(".git", ".venv*", "build", "dist", ".pytest_cache")
        shutil.copytree(ROOT, folder, ignore=leave)
        # The tests of forms compare files with the checkout, and say nothing about behaviour.
        shutil.rmtree(folder / "tests" / "form", ignore_errors=True)

    def failing(self, tests: list[str]) -> str | None:
        """Return the first test that fails, "" where one does not end, ``None`` if all pass."""
        files = {self.root / test.partition("::")[0] for test in tests}
        several = [f for f in files if f.is_file() and DEVICES in f.read_text("utf-8")]
        failed = self.run(tests)
        if failed is None and several:
            chosen = tests if "::" in tests[0] else sorted(map(str, several))
            failed = self.run(["-m", "devices", *chosen], STRETTO_NUM_CPU_DEVICES="8")
        return failed

    def run(self, arguments: list[str], **variables: str) -> str | None:
        """Run pytest once; return as ``failing`` does."""
        self.runs += 1
        programs = self.root.with_name(f"{self.root.name}-programs-{self.runs}")
        if self.cache.is_dir():  # by links: what a broken program writes is not for the next
            shutil.copytree(self.cache, programs, copy_function=os.link)
        else:
            programs.mkdir(0o700)
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.root / "src"),
            "PYTHONDONTWRITEBYTECODE": "",
            "CACHE_DIR_OF_TESTS": str(programs),
            "STRETTO_CACHE_DIR": str(programs),
            **variables,
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "--rootdir=.", "--tb=no"]
        command += ["-o", f"faulthandler_timeout={HANGS}"]
        command += ["-o", "faulthandler_exit_on_timeout=true", "-p", "no:cacheprovider"]
        limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR, PROCESSOR + 5))
        try:
            done = subprocess.run(
                [*command, *arguments],
                cwd=self.root,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                preexec_fn=limit,
                timeout=2 * HANGS,
            )
        except subprocess.TimeoutExpired:  # its threads wait for each other, after the last test
            return ""
        finally:
            shutil.rmtree(programs, ignore_errors=True)
        if done.returncode in (0, 5, -signal.SIGXCPU):  # 5: nothing was chosen
            return None
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
        return failed[1] if failed else ""

    def noticed(self, mutant: Mutant, stages: list[list[str]]) -> str | None:
        """Break the file, run the tests in their order, and return what noticed it, if any did."""
        file = self.root / mutant.path
        text, stat = file.read_text("utf-8"), file.stat()
        try:
            for tests in filter(None, stages):
                self.write(file, broken(text, mutant), stat)
                failed = self.failing(tests)
                if failed is None:
                    continue
                # Again, alone: with the line broken it fails, and without it passes.
                again = [failed] if failed else tests
                if self.failing(again) is None:
                    continue
                self.write(file, text, stat)
                if self.failing(again) is None:
                    return failed or "a run that does not end, or dies"
        finally:
            self.write(file, text, stat)
        return None

    def write(self, file: Path, text: str, stat: os.stat_result) -> None:
        """Write a file, with a time that no bytecode has: a broken line may be as long."""
        file.write_text(text, "utf-8")
        os.utime(file, (stat.st_atime, stat.st_mtime + 10 + self.runs))


def digest(file: Path) -> str:
    """Return a digest of a file's content."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


class Record:
    """The tests of each line, from the file that ``tests/lines.py`` wrote, if there is one."""

    def __init__(self, file: Path, root: Path) -> None:
        told: Any = {"tests": [], "files": {}}
        if file.exists():
            told = json.loads(file.read_text("utf-8"))
        self.tests: list[str] = told["tests"]
        self.files = {
            path: each["lines"]
            for path, each in told["files"].items()
            if (root / path).exists() and digest(root / path) == each["digest"]
        }

    def of(self, path: str, line: int) -> list[str]:
        """Return the tests that run a line, counted from 1, of a file that is as it was."""
        return [self.tests[n] for n in self.files.get(path, {}).get(str(line), ())]


def stages(sources: Sources, record: Record, mutant: Mutant) -> list[list[str]]:
    """Return the tests of a mutant in their order: its module's mirrors, and what else runs it."""
    name = sources.names[mutant.path]
    own = sources.mirrors(name)
    recorded = record.of(mutant.path, mutant.line + 1)
    if recorded:
        return [own, [test for test in recorded if test.partition("::")[0] not in own]]
    mirrors = [m for user in sources.around([name], 1)[1:] for m in sources.mirrors(user)]
    folder = os.path.dirname(own[0]) if own else ""
    others = dict.fromkeys([*mirrors, *tests_of(sources, name)])
    others |= dict.fromkeys(t for t in sources.names if re.match(rf"{folder}/test_[^/]+$", t))
    for mirror in own:
        others.pop(mirror, None)
    near = sorted(others, key=lambda test: not test.startswith(f"{folder}/"))
    return [own, EVERYWHERE, near[:FILES]]


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


def main(arguments: list[str] | None = None) -> int:
    """Print what was noticed, and return 1 where fewer than 95 of 100 were."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--skip", type=int, default=0, help="how many of the first to leave out")
    parser.add_argument("--only", default="", help="a part of the path of the files to break")
    parser.add_argument("--jobs", type=int, default=1, help="how many to run at once")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "tests")
    parser.add_argument("--lines", type=Path, default=ROOT / "build" / "lines.json")
    parser.add_argument("--list", action="store_true", help="print the mutants, and run nothing")
    options = parser.parse_args(arguments)
    mutants = chosen(ROOT, options.count, options.seed, options.only)[options.skip :]
    if options.list:
        print(*mutants, sep="\n")
        return 0
    reasons = equivalent()
    with tempfile.TemporaryDirectory(prefix="stretto-mutants-") as folder:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(options.jobs):
            copies.put(Copy(Path(folder) / str(number), options.cache))
        sources = Sources(Path(folder) / "0")
        record = Record(options.lines, ROOT)
        sources.used_by  # noqa: B018 (parsed once, before there are several threads)

        def run(mutant: Mutant) -> tuple[Mutant, str | None, bool]:
            because = reasons.get((mutant.before.strip(), mutant.after.strip()))
            if because:
                return mutant, because, True
            copy = copies.get()
            try:
                return mutant, copy.noticed(mutant, stages(sources, record, mutant)), False
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(options.jobs) as pool:
            waiting = [pool.submit(run, mutant) for mutant in mutants]
            return report(one.result() for one in as_completed(waiting))


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
