"""Programs that run in NumPy, operation by operation, and are not compiled: which, and how.

Compiling takes at least some ten milliseconds, and starting a compiled program some five
microseconds, in which NumPy can do a few small operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from stretto._engine.core.program import Atom, Literal, Program
from stretto._engine.eager.interpreter import quiet
from stretto._engine.xla.array import Array

MOST_EQUATIONS = 8
"""Each operation takes NumPy 0.3 to 2 µs, plus 0.2 µs for the step."""

MOST_ELEMENTS = 1024
"""The largest array: adding two of 1,024 elements takes NumPy 0.1 µs more than two of 4."""

MOST_WORK = 200_000.0
"""The most work of all operations, by ``Primitive.work``: some 10 µs."""


def interpretable(program: Program) -> bool:
    """Say whether the program is so small that it is not worth compiling.

    At most 8 operations, each ``light`` (NumPy's own kind of function: arithmetic, comparisons,
    sums, products, shapes), on arrays of at most 1,024 elements. It depends on the program alone,
    so that equal calls give equal bits whether they are the first or the last.
    """
    equations = program.equations
    if len(equations) > MOST_EQUATIONS:
        return False
    if any([v.type.size > MOST_ELEMENTS for v in program.inputs]):
        return False
    work = 0.0
    for e in equations:
        primitive = e.primitive
        types = tuple([a.type for a in e.inputs])
        if not primitive.light or primitive.multiple or primitive.compiled(types):
            return False
        outs = [v.type for v in e.outputs]
        if any([t.size > MOST_ELEMENTS for t in outs]):
            return False
        work += primitive.work(types, outs)
    return work <= MOST_WORK


# How they run


class Interpreted:
    """A program of operations with one result each, as a list of NumPy calls.

    Values are numbered in the order in which they are computed, and each step knows the numbers of
    its operands. Called with arrays, it returns the arrays of the program's outputs.
    """

    __slots__ = ("_literals", "_outputs", "_steps")

    def __init__(self, program: Program) -> None:
        numbers: dict[Atom, int] = {}
        for v in program.inputs:
            numbers[v] = len(numbers)
        atoms = [a for e in program.equations for a in e.inputs] + list(program.outputs)
        literals = {a: None for a in atoms if isinstance(a, Literal)}
        for a in literals:
            numbers[a] = len(numbers)
        self._literals = [a.array() for a in literals]
        self._steps: list[tuple[Callable[..., Any], Callable[[Any], Any], np.dtype]] = []
        for e in program.equations:
            (out,) = e.outputs
            inputs = _getter([numbers[a] for a in e.inputs])
            numbers[out] = len(numbers)
            self._steps.append((e.primitive.reference, inputs, out.type.dtype))
        self._outputs = [(numbers[a], a.type) for a in program.outputs]

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """Compute the arrays of the outputs from those of the inputs."""
        values: list[Any] = [x.to_host() if x._host is None else x._host for x in arrays]
        values += self._literals
        quiet.run(self._evaluate, values)
        return [Array(values[number], type) for number, type in self._outputs]

    def _evaluate(self, values: list[Any]) -> None:
        for function, inputs, dtype in self._steps:
            result = function(*inputs(values))
            if result.__class__ is not np.ndarray:
                result = np.asarray(result)
            if result.dtype is not dtype and result.dtype != dtype:
                result = result.astype(dtype)
            values.append(result)


def _getter(numbers: Sequence[int]) -> Callable[[Any], Any]:
    """Make a function that returns the values with these numbers, as a sequence."""
    if len(numbers) > 1:
        return itemgetter(*numbers)
    return itemgetter(slice(numbers[0], numbers[0] + 1)) if numbers else lambda values: ()
