"""Eager evaluation that looks for NaN and infinity: the interpreter at rest while debugging.

``config.debug_nans`` and ``config.debug_infs`` put it in the place of ``EAGER``. Short ways for
arrays at rest ask whether the current interpreter is that one, so all of them leave what is done
under this one to it, and cost nothing while it is not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.core.config import config, settings
from stretto._engine.core.errors import NonFiniteError
from stretto._engine.core.interpreter import Interpreter, _State, state
from stretto._engine.core.position import user_position
from stretto._engine.core.scope import scopes
from stretto._engine.xla.array import Array
from stretto._engine.xla.eager import EAGER
from stretto._engine.xla.searching import Known, Search, marks_of


class Checked(Interpreter):
    """Evaluates operations on arrays, and raises where one makes NaN or infinity."""

    __slots__ = ()

    ended = False
    at_rest = True

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Run it; NaN that operands had is not its fault."""
        if not settings.key.debugged:  # another thread has changed the setting of all
            follow(False)
            return EAGER.process(primitive, args)
        outs = EAGER.process(primitive, args)
        results = outs if primitive.multiple else (outs,)
        if any([marks_of(x) is not None for x in results]):
            search = Search()
            known = [Known(x, search.came("an operand", x)) for x in args]
            made = search.apply(primitive, known, results, user_position())
            for k in made:
                if k.fault is not None and k.fault.operation is not None:
                    raise NonFiniteError(k.fault)
        return outs


CHECKED = Checked()
scopes.entered = True  # equations then keep which rules of derivatives made them


def check_results(
    program: Any, args: Sequence[Array], names: Sequence[str], results: Sequence[Any]
) -> None:
    """Raise ``NonFiniteError`` if the results of a compiled program have NaN or infinity.

    The program is run again operation by operation to find where that comes from. What is written
    down in it as a constant is meant, and what is returned as it came is nobody's fault.

    Args:
        program: as it was traced.
        args: what it was run on.
        names: what messages call these.
        results: what the compiled program gave.
    """
    given = {*program.inputs}
    own = [k for k, a in enumerate(program.outputs) if a not in given]
    bad = [k for k in own if marks_of(results[k]) is not None]
    if not bad:
        return
    search = Search()
    known = [Known(x, search.came(name, x)) for x, name in zip(args, names, strict=True)]
    outs = search.run(program, known)
    faults = [outs[k].fault for k in bad]
    found = [f for f in faults if f is not None]
    if found:
        fault = min(found, key=search.order)
        fault.function = program.name
        raise NonFiniteError(fault)
    for k in bad:
        if marks_of(outs[k].value) is None:
            raise NonFiniteError(search.unfound(program.name, results[k]))


def follow(everywhere: bool) -> None:
    """Put the interpreter in place that the settings ask for, if nothing is being traced.

    Args:
        everywhere: whether the settings of all threads have changed, not those of this one alone.
    """
    if everywhere and _State.interpreter in (CHECKED, EAGER):
        values = config._values
        debugged = values["debug_nans"] or values["debug_infs"]
        _State.interpreter = CHECKED if debugged else EAGER
    here = state.interpreter
    wanted = CHECKED if settings.key.debugged else EAGER
    if here is not wanted and (here is EAGER or here is CHECKED):
        state.interpreter = wanted
