"""Writes random programs: picks variables, keeps them within the domains of operations.

Deterministic from a seed. Every variable carries bounds that hold for all inputs, so that no
operation leaves its domain: where bounds do not fit, the operand is first taken through a sine.
Operations register themselves in ``TABLE`` (``operations`` and ``control``).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.property.programs import Block, Statement, Var

__all__ = [
    "ABOUT",
    "FEW",
    "LIMIT",
    "TABLE",
    "Operation",
    "Skip",
    "Writer",
    "draw_program",
    "operation",
]

LIMIT = 60.0
"""No bound exceeds this; operations whose result might take smaller operands."""

MOST_ELEMENTS = 27


class Skip(Exception):
    """The operation does not apply to the variables there are."""


class Operation(NamedTuple):
    """A way of adding a statement to a program."""

    name: str
    write: Callable[[Writer], None]
    weight: float
    way: str
    """``both``: differentiable both ways; else the one way, ``forward`` or ``reverse``."""


TABLE: dict[str, Operation] = {}


def operation(name: str, weight: float = 1.0, way: str = "both") -> Callable[..., Any]:
    """Enter a function of a writer into the table."""

    def enter(write: Callable[[Writer], None]) -> Callable[[Writer], None]:
        assert name not in TABLE, name
        TABLE[name] = Operation(name, write, weight, way)
        return write

    return enter


class Writer:
    """Writes the statements of one block."""

    def __init__(
        self,
        rng: random.Random,
        scope: Sequence[Var],
        ways: Sequence[str] = ("both",),
        depth: int = 0,
        counter: list[int] | None = None,
    ) -> None:
        self.rng = rng
        self.scope = list(scope)
        self.ways = tuple(ways)
        self.depth = depth
        self.counter = [0] if counter is None else counter
        self.statements: list[Statement] = []
        self.current = ""

    # Names and statements.

    def name(self, prefix: str) -> str:
        self.counter[0] += 1
        return f"{prefix}{self.counter[0]}"

    def emit(
        self,
        text: str,
        operands: Sequence[Var],
        shape: Sequence[int],
        low: float = -LIMIT,
        high: float = LIMIT,
        kind: str = "float",
    ) -> Var:
        """A statement with one result."""
        out = Var(self.name("v"), kind, tuple(shape), low, high)
        self.statement(text, operands, [out])
        return out

    def statement(
        self,
        text: str,
        operands: Sequence[Var],
        outs: Sequence[Var],
        bodies: Sequence[Block] = (),
        setup: Sequence[str] = (),
    ) -> None:
        made = Statement(
            self.current, tuple(outs), text, tuple(operands), tuple(bodies), tuple(setup)
        )
        self.statements.append(made)
        self.scope.extend(outs)

    def grow(self, count: int, among: Sequence[str] = ()) -> None:
        """Add about so many operations; of these names only, if there are any."""
        able = [o for o in TABLE.values() if o.way in self.ways and o.name in (among or TABLE)]
        weights = [1.0 if among else o.weight for o in able]
        for _ in range(count):
            for _ in range(30):
                chosen = self.rng.choices(able, weights)[0]
                outer, self.current = self.current, chosen.name
                try:
                    chosen.write(self)
                except Skip:
                    continue
                finally:
                    self.current = outer
                break

    # Choosing variables.

    def any_of(self, fits: Callable[[Var], bool]) -> Var:
        """One of the variables in scope that fit, recent ones first."""
        found = [v for v in self.scope if fits(v)]
        if not found:
            raise Skip
        return self.rng.choices(found, [1 + k for k in range(len(found))])[0]

    def float(
        self, low: float = -LIMIT, high: float = LIMIT, fits: Callable[[Var], bool] | None = None
    ) -> Var:
        """A real variable within these bounds."""
        v = self.any_of(lambda v: v.kind == "float" and (fits is None or fits(v)))
        return self.within(v, low, high)

    def complex(self, bound: float = LIMIT, fits: Callable[[Var], bool] | None = None) -> Var:
        """A complex variable with both parts within this bound."""
        v = self.any_of(lambda v: v.kind == "complex" and (fits is None or fits(v)))
        return self.within(v, -bound, bound)

    def inexact(self, bound: float = LIMIT, fits: Callable[[Var], bool] | None = None) -> Var:
        """A real or, less often, complex variable."""
        kinds = ("complex",) if self.rng.random() < 0.15 else ("float",)
        v = self.any_of(lambda v: v.kind in kinds and (fits is None or fits(v)))
        return self.within(v, -bound, bound)

    def within(self, v: Var, low: float, high: float) -> Var:
        """The variable, or a sine of it that lies within these bounds."""
        if low <= v.low and v.high <= high:
            return v
        if v.kind == "complex":
            bound = min(high, 1.0)
            text = f"{bound} * lax.complex(snp.sin(snp.real({{0}})), snp.sin(snp.imag({{0}})))"
            return self.emit(text, [v], v.shape, -bound, bound, "complex")
        if low <= -1 and high >= 1:
            return self.emit("snp.sin({0})", [v], v.shape, -1.0, 1.0)
        low, high = max(low, -4.0), min(high, 4.0 + max(low, 0.0))
        middle, half = round((low + high) / 2, 6), round((high - low) / 2, 6)
        return self.emit(f"{middle} + {half} * snp.sin({{0}})", [v], v.shape, low, high)

    def scalar(self, low: float = -LIMIT, high: float = LIMIT) -> Var:
        """A real variable of rank 0."""
        v = self.float()
        if v.ndim:
            v = self.emit("snp.mean({0})", [v], (), v.low, v.high)
        return self.within(v, low, high)

    def truth(self) -> Var:
        """A boolean of rank 0, found from data."""
        made = [v for v in self.scope if v.kind == "bool"]
        if made and self.rng.random() < 0.3:
            v = self.rng.choice(made)
            return (
                self.emit(f"snp.{self.rng.choice(['any', 'all'])}({{0}})", [v], (), kind="bool")
                if v.ndim
                else v
            )
        v = self.scalar()
        return self.emit(f"{{0}} > {self.odd()}", [v], (), kind="bool")

    def integer(self, size: int) -> Var:
        """An integer of rank 0, from 0 up to below ``size``."""
        made = [v for v in self.scope if v.kind == "int"]
        if made:
            v = self.rng.choice(made)
            if v.ndim:
                v = self.emit("snp.sum({0})", [v], (), -LIMIT, LIMIT, "int")
            if v.low >= 0 and v.high < size:
                return v
            return self.emit(f"{{0}} % {size}", [v], (), 0, size - 1, "int")
        v = self.scalar(-1, 1)
        text = f"snp.floor((1.01 + {{0}}) * {size} / 2.03 + 0.0037).astype(INT)"
        return self.emit(text, [v], (), 0, size - 1, "int")

    def odd(self) -> float:
        """A number that data meets by no coincidence."""
        return round(self.rng.uniform(-0.5, 0.5), 4) + 0.00003

    def fit(self, kind: str, shape: tuple[int, ...], low: float, high: float) -> Var:
        """A variable of this very type and within these bounds, made from another if need be."""
        same = [v for v in self.scope if (v.kind, v.shape) == (kind, shape)]
        if same and self.rng.random() < 0.9:
            v = self.rng.choices(same, [1 + k for k in range(len(same))])[0]
            if kind in ("float", "complex"):
                return self.within(self.with_work(v), low, high)
            if low <= v.low and v.high <= high:
                return v
        if kind == "bool":
            v = self.truth()
        elif kind == "int":
            v = self.integer(int(high - low) + 1)
            if low:
                v = self.emit(f"{{0}} + {int(low)}", [v], v.shape, low, high, "int")
        else:
            v = self.scalar()
            if kind == "complex":
                v = self.emit("{0} + 0.5j", [v], v.shape, min(v.low, 0), max(v.high, 1), kind)
            v = self.within(v, low, high)
        if v.shape == shape:
            return v
        return self.emit(f"snp.broadcast_to({{0}}, {shape})", [v], shape, v.low, v.high, kind)

    def with_work(self, v: Var) -> Var:
        """The variable, with what this block made last added to it, if it was made elsewhere."""
        made = [u for s in self.statements for u in s.outs if u.kind == "float"]
        if not made or v in made or self.rng.random() < 0.3:
            return v
        bound = v.bound + made[-1].bound
        return self.emit("{0} + snp.mean({1})", [v, made[-1]], v.shape, -bound, bound, v.kind)

    # Blocks inside.

    def inner(self, params: Sequence[Var], closed: bool = False) -> Writer:
        """A writer for a body: it sees the variables here, unless it is ``closed``."""
        scope = [] if closed else self.scope
        return Writer(self.rng, [*scope, *params], self.ways, self.depth + 1, self.counter)

    def param(self, like: Var, shape: tuple[int, ...] | None = None) -> Var:
        """A parameter for a body, of a variable's type."""
        shape = like.shape if shape is None else shape
        return Var(self.name("p"), like.kind, shape, like.low, like.high)

    def block(
        self,
        prefix: str,
        params: Sequence[Var],
        results: Sequence[Var],
        signature: str = "",
        returns: str = "",
        unpack: Sequence[str] = (),
    ) -> Block:
        """The block of the statements written here."""
        return Block(
            self.name(prefix),
            signature or ", ".join(p.name for p in params),
            tuple(params),
            tuple(self.statements),
            tuple(results),
            returns,
            tuple(unpack),
        )

    def fresh(self, like: Var, shape: tuple[int, ...] | None = None) -> Var:
        """A variable for a result of the statement at hand, of a variable's type."""
        shape = like.shape if shape is None else shape
        return Var(self.name("v"), like.kind, shape, like.low, like.high)

    def axis(self, v: Var) -> int:
        """One of its axes."""
        if not v.ndim:
            raise Skip
        return self.rng.randrange(v.ndim)

    def small(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape, if it is not too large."""
        if math.prod(shape) > MOST_ELEMENTS or len(shape) > 3:
            raise Skip
        return tuple(shape)


FEW = (
    *("literal", "number", "square", "clip", "relu", "sign", "add", "subtract", "multiply"),
    *("maximum", "where", "sum", "mean", "reshape", "transpose", "slice", "concatenate", "dot"),
)
"""Operations that NumPy has: programs of a few of them need not be compiled."""

ABOUT = {"few operations": FEW, "long loops": ("repeated often",), "large arrays": ("large",)}
"""What a program can be about, and the operations that it has then."""


def draw_program(seed: int, size: int = 8, about: str = "") -> tuple[Block, str]:
    """The random program ``g0`` of this seed, and the way in which it can be differentiated.

    ``about`` is in ``ABOUT``; else it may be about few operations, or about nothing.
    """
    rng = random.Random(f"program {seed}{about}")
    about = about or rng.choices(["", "few operations"], [7, 1])[0]
    way = rng.choices(["both", "forward", "reverse"], [8, 1, 1])[0]
    sizes = rng.choices([1, 2, 3], [1, 4, 4], k=2)
    kinds = ["float"] * rng.choice([1, 2, 2, 3])
    kinds += ["int"] * (rng.random() < 0.4) + ["complex"] * (rng.random() < 0.3)
    params = []
    for i, kind in enumerate(kinds):
        shape = tuple(rng.choice(sizes) for _ in range(rng.choices([0, 1, 2], [2, 4, 3])[0]))
        if kind == "int":
            params.append(Var(f"x{i}", kind, shape[:1], 0, 2))
        else:
            params.append(Var(f"x{i}", kind, shape))
    writer = Writer(rng, params, ("both",) if way == "both" else ("both", way))
    if about == "few operations":
        writer.grow(rng.randint(1, 5), FEW)
    elif about:
        writer.grow(1)
        writer.grow(1, ABOUT[about])
        writer.grow(rng.randint(0, 2))
    else:
        writer.grow(rng.randint(2, size))
    made = [v for s in writer.statements for v in s.outs]
    read = set[str]().union(*(s.reads() for s in writer.statements))
    ends = [v for v in made if v.name not in read]
    results = [v for v in ends if v.kind in ("float", "complex")][-3:] or params[:1]
    for _ in range(rng.choice([0, 0, 1, 2])):
        results.append(rng.choice([*made, *params]))
    rng.shuffle(results)
    return Block("g0", ", ".join(v.name for v in params), tuple(params),
                 tuple(writer.statements), tuple(results)), way  # fmt: skip
