"""Run a program in NumPy, operation by operation, by the reference rules.

Small programs have this instead of an executable; ``passes/interpret_small`` says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from stretto._engine.core.program import Atom, Literal, Program
from stretto._engine.xla.array import Array
from stretto._engine.xla.eager import quiet


class Interpreted:
    """A program of operations with one result each, as a list of NumPy calls.

    Values are numbered in the order in which they are computed, and each step knows the numbers of
    its operands. Called with arrays, it returns the arrays of the program's outputs.
    """

    __slots__ = ("_literals", "_outputs", "_steps")

    def __init__(self, program: Program) -> None:
        places: dict[Atom, int] = {}
        for v in program.inputs:
            places[v] = len(places)
        atoms = [a for e in program.equations for a in e.inputs] + list(program.outputs)
        literals = {a: None for a in atoms if isinstance(a, Literal)}
        for a in literals:
            places[a] = len(places)
        self._literals = [a.array() for a in literals]
        self._steps: list[tuple[Callable[..., Any], Callable[[Any], Any], np.dtype]] = []
        for e in program.equations:
            (out,) = e.outputs
            inputs = _getter([places[a] for a in e.inputs])
            places[out] = len(places)
            self._steps.append((e.primitive.reference, inputs, out.type.dtype))
        self._outputs = [(places[a], a.type) for a in program.outputs]

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """The arrays of the outputs for those of the inputs."""
        values: list[Any] = [x.to_host() if x._host is None else x._host for x in arrays]
        values += self._literals
        quiet.run(self._evaluate, values)
        return [Array(values[place], type) for place, type in self._outputs]

    def _evaluate(self, values: list[Any]) -> None:
        for function, inputs, dtype in self._steps:
            result = function(*inputs(values))
            if result.__class__ is not np.ndarray:
                result = np.asarray(result)
            if result.dtype is not dtype and result.dtype != dtype:
                result = result.astype(dtype)
            values.append(result)


def _getter(places: Sequence[int]) -> Callable[[Any], Any]:
    """A function that returns the values at these places, as a sequence."""
    if len(places) > 1:
        return itemgetter(*places)
    return itemgetter(slice(places[0], places[0] + 1)) if places else lambda values: ()
