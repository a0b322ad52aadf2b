"""Programs as text: variables, statements and blocks, and how they are written out as Python.

A program is kept as statements, so that it can be made smaller, and runs as the Python source that
a failure prints.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["PREAMBLE", "Block", "Statement", "Var", "free", "live", "namespace", "renamed"]

PREAMBLE = """\
import numpy as np
import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.api.autodiff.custom_gradient import custom_gradient
from stretto._engine.higher_order.custom_vmap import sequential_vmap


FLOAT, COMPLEX, INT = np.float64, np.complex128, np.int64


def draw(seed, kind, shape, low=-1.0, high=1.0):
    rng = np.random.default_rng(seed)
    if kind == "bool":
        return snp.asarray(rng.random(shape) < 0.5)
    if kind == "int":
        return snp.asarray(np.asarray(rng.integers(int(low), int(high) + 1, shape)).astype(INT))
    x = np.asarray(rng.uniform(low, high, shape))
    if kind == "complex":
        return snp.asarray((x + 1j * rng.uniform(low, high, shape)).astype(COMPLEX))
    return snp.asarray(x.astype(FLOAT))


def moves(x):
    return x.dtype.kind in "fc" or x.dtype == snp.bfloat16


def real(x):
    return moves(x) and x.dtype.kind != "c"


def inexact(xs):
    return tuple(x for x in xs if moves(x))


def repeat(turns, x, weights, kept):
    seen = []
    for i, weight in enumerate(weights):
        x, y = turns[i % len(turns)](x, weight)
        seen.append(y)
    return x, kept(seen)


def mean_of(ys):
    return sum(ys) / len(ys)


def planned(plan, f, **options):
    def run(*xs):
        with st.config(plan=plan):
            return st.vmap(f, **options)(*xs)

    return run
"""
"""What the source of every program and chain begins with. It runs with 64-bit types enabled."""


@dataclasses.dataclass(frozen=True)
class Var:
    """A variable, with bounds for its elements (for both parts of complex ones)."""

    name: str
    kind: str
    shape: tuple[int, ...]
    low: float = -1.0
    high: float = 1.0

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def bound(self) -> float:
        return max(abs(self.low), abs(self.high))

    def drawn(self, seed: int) -> str:
        """An expression for a value of this variable."""
        return f"draw({seed}, {self.kind!r}, {self.shape}, {self.low}, {self.high})"


@dataclasses.dataclass(frozen=True)
class Statement:
    """``outs = text``, where ``{0}``, ``{1}``… are the operands, after ``setup`` and the bodies."""

    operation: str
    outs: tuple[Var, ...]
    text: str
    operands: tuple[Var, ...]
    bodies: tuple[Block, ...] = ()
    setup: tuple[str, ...] = ()

    def lines(self) -> Iterable[str]:
        for body in self.bodies:
            yield from body.lines()
        yield from self.setup
        names = [v.name for v in self.operands]
        yield f"{', '.join(v.name for v in self.outs)} = {self.text.format(*names)}"

    def reads(self) -> set[str]:
        return {v.name for v in self.operands}.union(*(free(b) for b in self.bodies))


@dataclasses.dataclass(frozen=True)
class Block:
    """A function: its parameters as written and as variables, its statements, its results."""

    name: str
    signature: str
    params: tuple[Var, ...]
    statements: tuple[Statement, ...]
    results: tuple[Var, ...]
    returns: str = ""
    """The result, where ``{0}``, ``{1}``… are ``results``; by default their tuple."""

    unpack: tuple[str, ...] = ()

    def lines(self) -> Iterable[str]:
        yield f"def {self.name}({self.signature}):"
        for line in self.unpack:
            yield f"    {line}"
        for statement in self.statements:
            for line in statement.lines():
                yield f"    {line}"
        names = [v.name for v in self.results]
        text = (
            self.returns.format(*names) if self.returns else f"({''.join(n + ', ' for n in names)})"
        )
        yield f"    return {text}"

    def source(self) -> str:
        return "\n".join(self.lines()) + "\n"

    def count(self) -> int:
        """How many statements there are, those of bodies included."""
        return sum(1 + sum(b.count() for b in s.bodies) for s in self.statements)

    def operations(self) -> set[str]:
        found = {s.operation for s in self.statements}
        return found.union(*(b.operations() for s in self.statements for b in s.bodies))


def free(block: Block) -> set[str]:
    """The names that a block reads from outside."""
    known = {v.name for v in block.params}
    read: set[str] = set()
    for statement in block.statements:
        read |= statement.reads() - known
        known |= {v.name for v in statement.outs}
    return read | {v.name for v in block.results} - known


def live(block: Block) -> Block:
    """The block without statements that its results do not need, in bodies as well."""
    needed = {v.name for v in block.results}
    kept: list[Statement] = []
    for statement in reversed(block.statements):
        if not needed.isdisjoint(v.name for v in statement.outs):
            bodies = tuple(live(b) for b in statement.bodies)
            statement = dataclasses.replace(statement, bodies=bodies)
            kept.append(statement)
            needed |= statement.reads()
    return dataclasses.replace(block, statements=tuple(reversed(kept)))


def renamed(block: Block, others: Mapping[str, Var]) -> Block:
    """The block that reads other variables for those named."""

    def change(statement: Statement) -> Statement:
        return dataclasses.replace(
            statement,
            operands=tuple(others.get(v.name, v) for v in statement.operands),
            bodies=tuple(renamed(b, others) for b in statement.bodies),
        )

    return dataclasses.replace(
        block,
        statements=tuple(change(s) for s in block.statements),
        results=tuple(others.get(v.name, v) for v in block.results),
    )


def namespace(source: str) -> dict[str, Any]:
    """The names that this source, with the preamble before it, defines."""
    names: dict[str, Any] = {}
    exec(compile(PREAMBLE + "\n\n" + source, "<program>", "exec"), names)
    return names
