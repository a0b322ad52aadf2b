"""Record programs that need nothing from outside.

What is derived from a program, such as its derivative, is cached with it, so it must not depend on
the call that first needed it. The transformations of whole programs (``jvp_program``,
``transpose_program``, ...) record their results here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.core.cells import refusing_cells
from stretto._engine.core.errors import EscapedTracerError
from stretto._engine.core.interpreter import Tracer
from stretto._engine.core.program import Equation, Program
from stretto._engine.core.recorder import record
from stretto._engine.core.rewriting import drop_dead
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.constant import Constant, Held


def record_closed(
    fun: Callable[..., Any], types: Sequence[ArrayType], name: str, names: Sequence[str] = ()
) -> tuple[Program, Any]:
    """Trace ``fun`` as ``record`` does; captured arrays become constants, and dead work is dropped.

    ``names`` are what messages call the arguments.

    Raises ``EscapedTracerError`` if a traced value was captured.
    """
    program, extra, captured = record(refusing_cells(fun, name), types, names, name)
    if not captured:
        return drop_dead(program), extra
    constants = []
    for v, value in zip(program.inputs[len(types) :], captured, strict=True):
        if isinstance(value, Tracer):
            raise EscapedTracerError(
                f"{name}: a traced value from outside is used ({value.origin()}); pass "
                f"it to the function as an argument"
            )
        constants.append(Equation(Constant(Held(value.to_host(), value.type)), (), (v,)))
    inputs = program.inputs[: len(types)]
    whole = Program(inputs, [*constants, *program.equations], program.outputs, name)
    return drop_dead(whole), extra
