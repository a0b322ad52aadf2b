"""Values that are cheap to compute are computed again, rather than kept for long.

The forward pass of a training step leaves values for the backward pass, and at its end, where the
most memory is in use, all of them are there. Many are made by a few element-wise operations of
others that are kept as well: the normalized outputs of a convolution, their sigmoids, the products
of the two. They are computed again, behind a barrier, so that XLA does not take the copy for the
original. ``prepare`` calls this; decision 44 has the measurements.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from stretto._engine.core.primitive import Kernel
from stretto._engine.core.program import Atom, Equation, Program, Var, is_number
from stretto._engine.core.rewriting import (
    changed_inside,
    live,
    remember,
    types_made,
    with_equations,
)
from stretto._engine.core.types import bytes_of
from stretto._engine.ops.comparison import Eq, Gt, Le, Ne, Select
from stretto._engine.ops.convert import ConvertElementType
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.exponential import IntegerPow, LogisticSlope
from stretto._engine.ops.identities import OPTIMIZATION_BARRIER
from stretto._engine.ops.trigonometric import SechSquared

_WRITTEN_OUT = (IntegerPow, LogisticSlope, SechSquared)
"""Primitives of a few operations each that are no operation of StableHLO's."""

_MUCH = 1 << 25
"""The bytes alive at once from which on memory matters: the system maps such blocks anew."""

_LEAST = 1 << 16
"""The bytes of the smallest value that is not kept."""

_SMALL = 8
"""Values this many times smaller than what is made of them cost nothing to keep."""

_OPERATIONS = 24
"""The most operations that are done again for one value."""

_LONG = 4
"""The most of them with tens of instructions an element."""

_SOURCES = 2
"""The most arrays of its size that a value is computed from again: each of them is read."""

_WORTH = 0.9
"""The share of the memory from which on nothing is changed: the rest is made of other things.

EfficientNet-B0's step takes 88 MiB in place of 213, a U-Net's 36 in place of 42."""

_AFTER = 4
"""A value is kept if less than so many times its bytes are made before it is used again."""


def rematerialize(program: Program) -> Program:
    """Return the program that does not keep what is cheap to compute again; the same values.

    >>> import stretto as st, stretto.numpy as snp
    >>> def layers(x, w):
    ...     for _ in range(8):
    ...         x = st.nn.functional.silu(x @ w)
    ...     return x.sum()
    >>> program = st.make_graph(st.grad(layers))(snp.ones((1024, 1024)), snp.ones((1024, 1024)))
    >>> [
    ...     sum(e.primitive.name == "logistic" for e in p.equations)
    ...     for p in (program, rematerialize(program))
    ... ]
    [8, 15]
    """
    return remember(program, "rematerialize", _rematerialize)


def _rematerialize(program: Program) -> Program:
    program = changed_inside(program, rematerialize)
    types = types_made(program)
    if any([bytes_of(t) >= _LEAST for t in types]):
        lives = _Lives(program)
        if lives.most >= _MUCH:
            return _with_copies(program, lives)
    return program


class _Lives:
    """The spans from where values are made to where they are used, and where most bytes are alive.

    ``peak`` is the number of the equation that is the first behind it; ``made`` and ``used`` map
    values to numbers of equations.
    """

    def __init__(self, program: Program) -> None:
        end = len(program.equations)
        self.made: dict[Var, int] = dict.fromkeys(program.inputs, -1)
        self.used: dict[Var, list[int]] = {}
        self.written = [0]
        """The bytes that equations make, up to each."""
        change = [0] * (end + 2)
        for number, e in enumerate(program.equations):
            for a in dict.fromkeys(e.inputs):
                if isinstance(a, Var):
                    self.used.setdefault(a, []).append(number)
            self.made.update(dict.fromkeys(e.outputs, number))
            self.written.append(self.written[-1] + _bytes(e.outputs))
        for a in dict.fromkeys(program.outputs):
            if isinstance(a, Var):
                self.used.setdefault(a, []).append(end)
        for value, uses in self.used.items():
            # An input is there all the time, whether or not it is used.
            if self.made[value] >= 0:
                change[self.made[value]] += bytes_of(value.type)
                change[uses[-1] + 1] -= bytes_of(value.type)
        self.peak = self.most = alive = 0
        for number, more in enumerate(change):
            alive += more
            if alive > self.most:
                self.peak, self.most = number, alive

    def spans(self, value: Var) -> bool:
        """Say whether the value is made before the peak, and used behind it."""
        return self.made[value] < self.peak < self.used[value][-1]

    def far(self, value: Var) -> bool:
        """Say whether it is kept for long: much else is made from one use to the next."""
        before = [self.made[value], *[p for p in self.used[value] if p <= self.peak]][-1]
        after = next(p for p in self.used[value] if p > self.peak)
        return self.written[after] - self.written[before + 1] >= _AFTER * bytes_of(value.type)


def _with_copies(program: Program, lives: _Lives) -> Program:
    """Return the program with copies of what is cheap, made where it is used behind the peak."""
    makers = {v: e for e in program.equations if _cheap(e.primitive) for v in e.outputs}
    kept: set[Atom] = {v for v in lives.used if lives.made[v] < 0}
    kept.update(program.outputs)
    # Of a copy that differs by rounding, an extremum is not found.
    kept.update([a for e in program.equations if _compares(e.primitive) for a in e.inputs])
    spanning = [v for v in lives.used if v not in kept and lives.spans(v)]
    spanning.sort(key=lives.made.__getitem__)
    kept.update([v for v in spanning if v not in makers or bytes_of(v.type) < _LEAST])
    wanted = dict.fromkeys([v for v in spanning if v not in kept and lives.far(v)])
    kept.update(_worth_keeping(wanted, makers, kept))
    again: dict[Var, list[Equation]] = {}
    for value in spanning:
        if value in kept:
            continue
        chain = _chain(value, makers, kept) if value in wanted else None
        if chain is None or chain.missing:
            kept.add(value)
        else:
            again[value] = sorted(chain.operations, key=lambda e: lives.made[e.outputs[0]])
            kept.update(chain.small)
    again |= _masks_again(program, [v for v in spanning if v in kept], kept)
    if not again:
        return program
    result = live(with_equations(program, _Copies(program, lives, again, kept).equations))
    return result if _Lives(result).most <= _WORTH * lives.most else program


def _worth_keeping(
    wanted: Iterable[Var], makers: dict[Var, Equation], kept: set[Atom]
) -> list[Var]:
    """Give values that are not used behind the peak, but of which larger ones are made that are."""
    gain: dict[Var, int] = {}
    for value in wanted:
        chain = _chain(value, makers, kept)
        if chain is not None and len(chain.missing) == 1:
            (missing,) = chain.missing
            gain[missing] = gain.get(missing, 0) + bytes_of(value.type)
    return [v for v, much in gain.items() if 2 * much >= 3 * bytes_of(v.type)]


def _masks_again(
    program: Program, spanning: Iterable[Var], kept: set[Atom]
) -> dict[Var, list[Equation]]:
    """Return how masks of ReLUs are made again: of the results, where these are kept.

    An element is above 0 where it was before. XLA compares again rather than store a mask, and so
    keeps what the ReLU was applied to, as large as its result.
    """
    masks = {v for v in spanning if v.type.dtype == bool}
    made = {v: e for e in program.equations for v in e.outputs if v in masks}
    again: dict[Var, list[Equation]] = {}
    for e in program.equations if made else ():
        mask: Any = e.inputs[0] if isinstance(e.primitive, Select) else None
        if mask not in made or e.outputs[0] not in kept:
            continue
        compared = made[mask]
        if not isinstance(compared.primitive, Le | Gt):
            continue
        x, zero = compared.inputs
        chosen, other = e.inputs[1:] if isinstance(compared.primitive, Gt) else e.inputs[:0:-1]
        if x is chosen and is_number(zero, 0) and is_number(other, 0):
            own = [e.outputs[0], zero]
            again[mask] = [Equation(compared.primitive, own, [mask], compared.place)]
    return again


def _cheap(primitive: Any) -> bool:
    """Say whether an operation takes little time, in the kernel that reads its result."""
    if isinstance(primitive, Elementwise):
        simple = bool(primitive.op) or isinstance(primitive, _WRITTEN_OUT)
        return simple and not _compares(primitive)
    return isinstance(primitive, Select | ConvertElementType) or primitive.kernel is Kernel.VIEW


def _compares(primitive: Any) -> bool:
    return isinstance(primitive, Eq | Ne)


class _Chain(NamedTuple):
    """The operations that make a value, back to what is kept."""

    operations: list[Equation]
    small: list[Var]
    """Values that cost little to be kept for it."""
    missing: list[Var]
    """Large values that it is made of, and that are neither kept nor cheap."""


def _chain(value: Var, makers: dict[Var, Equation], kept: set[Atom]) -> _Chain | None:
    """Return how a value is made; None if that takes too many operations, or too many arrays."""
    operations: dict[Equation, None] = {}
    sources: dict[Var, None] = {}
    small: list[Var] = []
    missing: dict[Var, None] = {}
    size = bytes_of(value.type)
    open_ = [value]
    while open_:
        e = makers[open_.pop()]
        if e in operations:
            continue
        operations[e] = None
        if len(operations) > _OPERATIONS:
            return None
        for a in e.inputs:
            if not isinstance(a, Var):
                continue
            slight = _SMALL * bytes_of(a.type) <= size
            if a in kept:
                if not slight:
                    sources[a] = None
            elif slight:
                small.append(a)
            elif a in makers:
                open_.append(a)
            else:
                missing[a] = None
    long = sum([e.primitive.kernel is Kernel.LONG for e in operations])
    if long > _LONG or not 1 <= len(sources) + len(missing) <= _SOURCES:
        return None
    return _Chain(list(operations), small, list(missing))


class _Copies:
    """The equations of a program, with copies where they are needed."""

    def __init__(
        self, program: Program, lives: _Lives, again: dict[Var, list[Equation]], kept: set[Atom]
    ) -> None:
        self.equations: list[Equation] = []
        self._again = again
        self._kept = kept
        self._copies: dict[Atom, Var] = {}
        """Copies of values, and of those that are kept: behind a barrier."""
        for number, e in enumerate(program.equations):
            if number > lives.peak:
                wanted = [a for a in e.inputs if a in again]
                for a in wanted:
                    self._copy(a)
                if wanted:
                    inputs = [self._copies[a] if a in again else a for a in e.inputs]
                    e = Equation(e.primitive, inputs, e.outputs, e.place)
            self.equations.append(e)

    def _copy(self, value: Any) -> None:
        """Do the operations that make it once more, those that are not there yet."""
        size = bytes_of(value.type)
        for e in self._again[value]:
            if e.outputs[0] in self._copies:
                continue
            inputs = [self._source(a, size) for a in e.inputs]
            outputs = [Var(v.type) for v in e.outputs]
            self._copies.update(zip(e.outputs, outputs, strict=True))
            self.equations.append(Equation(e.primitive, inputs, outputs, e.place))

    def _source(self, a: Atom, size: int) -> Atom:
        if a in self._copies or not isinstance(a, Var) or a not in self._kept:
            return self._copies.get(a, a)
        if _SMALL * bytes_of(a.type) <= size:
            return a
        copy = self._copies[a] = Var(a.type)
        self.equations.append(Equation(OPTIMIZATION_BARRIER, [a], [copy]))
        return copy


def _bytes(values: Iterable[Var]) -> int:
    return sum([bytes_of(v.type) for v in values])
