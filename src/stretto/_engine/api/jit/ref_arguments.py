"""References in jitted functions: a trace notes which it uses, and calls read and write these.

The values of references are arguments of the compiled program, and what was written to them are
results. Those that are passed differ from call to call; those taken from outside are found while
tracing, and are read and written again by each call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from stretto._engine.api.argument_leaves import values_of_tree, without_float0
from stretto._engine.core.cells import Cell, giving, values_of_cells, write_all
from stretto._engine.core.errors import RefError
from stretto._engine.core.program import Program
from stretto._engine.higher_order.refs import Parts, Ref


class Uses(NamedTuple):
    """The references that the trace of a signature uses; the program's results are then a triple.

    That is the function's own result, the new values of references that were passed, and those of
    references from outside.
    """

    given: Sequence[int]
    """The positions of the references passed that it writes."""
    outside: Sequence[Cell]
    """The references from outside, in the order of the program's inputs after the leaves."""
    written: Sequence[Cell]
    """The references from outside that it writes."""

    def leaves(self, own: Sequence[Any], refs: Mapping[int, Ref], name: str) -> list[Any]:
        """Return the leaves of the arguments, and the values of the references from outside."""
        for ref in refs.values():
            if ref in self.outside:
                raise RefError(
                    f"{name}: one reference of type {ref.type} is passed as an argument and taken "
                    f"from outside, so that the two would not be told apart: do one of the two"
                )
        return [*own, *values_of_cells(self.outside)]

    def write(self, results: Any, refs: Mapping[int, Ref]) -> Any:
        """Write the new values to the references, and return the function's own result."""
        if not (self.given or self.written):
            return results
        result, given, values = results
        write_all([refs[i] for i in self.given], given)
        write_all(self.written, values)
        return result


class RefRecorder:
    """The function of leaves that is traced; it records which references it reads and writes.

    Args:
        fun: a function of all leaves, some of which are references.
        kinds: the positions of these, and what tells references to keys from those to arrays.
        name: what messages call the function.
    """

    def __init__(
        self, fun: Callable[..., Any], kinds: Sequence[tuple[int, Any]], name: str
    ) -> None:
        self._name = name
        self._parts = Parts(fun, dict(kinds))
        self._written: list[Any] = []
        self._giving = giving(self._parts, self._written, kept=True)

    def __call__(self, *leaves: Any) -> tuple[list[Any], Any]:
        """Return the values of the result, or of the triple, and the structure of that."""
        (result, given), values = self._giving(*leaves)
        result = without_float0(result)
        whole = (result, given, values) if given or values else result
        return values_of_tree(whole, self._name, "the result")

    def uses(
        self, program: Program, captured: Sequence[Any], own: int
    ) -> tuple[Uses | None, Program, list[Any]]:
        """Return what it uses, the program, and the values that this captured besides references.

        The inputs for references come before those for the other captured values.
        """
        found = [i for i, c in enumerate(captured) if isinstance(c, Cell)]
        given = self._parts.changed
        if not (found or given or self._written):
            return None, program, list(captured)
        others = [i for i in range(len(captured)) if i not in found]
        inputs = program.inputs[:own]
        inputs += tuple([program.inputs[own + i] for i in (*found, *others)])
        uses = Uses(tuple(given), tuple([captured[i] for i in found]), tuple(self._written))
        ordered = Program(inputs, program.equations, program.outputs, program.name)
        return uses, ordered, [captured[i] for i in others]


def kinds_of(refs: Mapping[int, Ref]) -> tuple[tuple[int, Any], ...]:
    """Return the positions of references, with what tells those to keys from those to arrays."""
    return tuple([(i, ref.structure) for i, ref in refs.items()])
