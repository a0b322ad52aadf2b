"""Break single lines of the engine: which lines can be broken, and how, for ``tests/mutants.py``.

A mutant is a line of ``src/stretto/_engine`` with an operator flipped, a constant moved, a
condition negated, or a statement removed. What no test is meant to see is never chosen: docstrings,
annotations, messages, and what only type checkers read.
"""

from __future__ import annotations

import ast
import functools
import random
import re
from pathlib import Path
from typing import NamedTuple

ENGINE = "src/stretto/_engine"

_LEAST = 1e-12
"""A hundredth of a smaller number is below the last bit of what it is added to: they are the last
coefficients of series."""

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

    def visit_Call(self, node: ast.Call) -> None:
        """Leave ``x.astype(dtype, copy=False)`` alone, a copy more, and ``x.reshape(-1)``.

        NumPy takes any negative number for the size that is not known.
        """
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        for part in (node.func, *node.args, *node.keywords):
            copies = method == "astype" and isinstance(part, ast.keyword) and part.arg == "copy"
            unknown = method == "reshape" and ast.unparse(part) == "-1"
            if not (copies or unknown):
                self.visit(part)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Look at defaults and the body: not at annotations, nor at decorators."""
        if "overload" in map(ast.unparse, node.decorator_list):
            return
        for part in (*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body):
            self.visit(part)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Look at the body: not at decorators, as ``frozen=True``, nor at a protocol for types."""
        if any(ast.unparse(base).startswith("Protocol") for base in node.bases):
            return
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
