"""What jaxprs consist of: variables, literals, equations, and the two kinds of program.

Their fields are JAX's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, TypeAlias

from stretto.compat.jax.jaxprs.printing import text_of

__all__ = [
    "Atom",
    "ClosedJaxpr",
    "Context",
    "DebugInfo",
    "DropVar",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "SourceInfo",
    "Var",
    "new_jaxpr_eqn",
]


class Var:
    """A variable, assigned once; compared as an object.

    Args:
        aval: the abstract value of what it stands for.
    """

    __slots__ = ("__weakref__", "aval")

    def __init__(self, aval: Any, initial_qdd: Any = None, final_qdd: Any = None) -> None:
        del initial_qdd, final_qdd
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short()}"


class DropVar(Var):
    """Stands for a result that nothing reads."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"


class Literal:
    """A constant in an operand's place.

    Args:
        val: a number, or an array.
        aval: its abstract value.
    """

    __slots__ = ("__weakref__", "aval", "val")

    def __init__(self, val: Any, aval: Any) -> None:
        self.val = val
        self.aval = aval

    def __repr__(self) -> str:
        return f"Literal({self.val})"


Atom: TypeAlias = Var | Literal


class SourceInfo(NamedTuple):
    """Where an equation was made: the user's line, and the named scopes."""

    traceback: Any
    name_stack: Any

    def replace(self, **changes: Any) -> SourceInfo:
        """A copy with some fields replaced."""
        return self._replace(**changes)


NO_SOURCE = SourceInfo(None, "")


class Context:
    """Under what an equation is evaluated; here nothing has to be restored."""

    @property
    def manager(self) -> Any:
        """A context manager that changes nothing."""
        return nullcontext()


CONTEXT = Context()


class DebugInfo(NamedTuple):
    """Which function a jaxpr is of, for messages."""

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None = None
    result_paths: tuple[str, ...] | None = None

    @property
    def func_name(self) -> str:
        """The function's name."""
        return self.func_src_info.partition(" ")[0]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class JaxprEqn:
    """``outvars = primitive(invars, **params)``."""

    invars: list[Any]
    outvars: list[Any]
    primitive: Any
    params: dict[str, Any]
    effects: Any = frozenset()
    source_info: SourceInfo = NO_SOURCE
    ctx: Context = CONTEXT

    def replace(self, **changes: Any) -> JaxprEqn:
        """A copy with some fields replaced."""
        given = {name: x for name, x in changes.items() if x is not None}
        return dataclasses.replace(self, **given)

    def __repr__(self) -> str:
        return text_of(self)


def new_jaxpr_eqn(
    invars: Sequence[Any],
    outvars: Sequence[Any],
    primitive: Any,
    params: dict[str, Any],
    effects: Any = frozenset(),
    source_info: SourceInfo | None = None,
    ctx: Context | None = None,
) -> JaxprEqn:
    """An equation of these parts."""
    return JaxprEqn(
        list(invars), list(outvars), primitive, params, effects, source_info or NO_SOURCE,
        ctx or CONTEXT,
    )  # fmt: skip


class Jaxpr:
    """Constants, inputs, equations in order, and outputs; compared as an object."""

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Any],
        eqns: Sequence[JaxprEqn],
        effects: Any = frozenset(),
        debug_info: DebugInfo | None = None,
        is_high: bool = False,
    ) -> None:
        self.constvars, self.invars = list(constvars), list(invars)
        self.outvars, self.eqns = list(outvars), list(eqns)
        self.effects, self.is_high = effects, is_high
        self.debug_info = debug_info or DebugInfo("", "unknown")
        self.program: Any = None
        """The program that it shows, whose inputs are ``invars``, then ``constvars``; None if it
        was made of equations."""

    @property
    def jaxpr(self) -> Jaxpr:
        """The jaxpr itself, so that both kinds may be asked."""
        return self

    @property
    def in_avals(self) -> list[Any]:
        """The abstract values of the inputs."""
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[Any]:
        """The abstract values of the outputs."""
        return [v.aval for v in self.outvars]

    def replace(self, **changes: Any) -> Jaxpr:
        """A jaxpr of the same parts, but for those named."""
        names = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info", "is_high")
        unknown = sorted(changes.keys() - {*names})
        if unknown:
            raise ValueError(f"Jaxpr.replace: a jaxpr has no {unknown[0]}; it has {names}")
        return Jaxpr(**({name: getattr(self, name) for name in names} | changes))

    def pretty_print(self, **options: Any) -> str:
        """As ``str``."""
        del options
        return str(self)

    def __str__(self) -> str:
        return text_of(self)

    __repr__ = __str__


class ClosedJaxpr:
    """A jaxpr with the values of its constants."""

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> None:
        if len(consts) != len(jaxpr.constvars):
            raise ValueError(
                f"ClosedJaxpr: the jaxpr has {len(jaxpr.constvars)} constants, got "
                f"{len(consts)} values"
            )
        self.jaxpr, self.consts = jaxpr, list(consts)

    literals = property(lambda self: self.consts)
    eqns = property(lambda self: self.jaxpr.eqns)
    effects = property(lambda self: self.jaxpr.effects)
    debug_info = property(lambda self: self.jaxpr.debug_info)
    in_avals = property(lambda self: self.jaxpr.in_avals)
    out_avals = property(lambda self: self.jaxpr.out_avals)
    constvars = property(lambda self: self.jaxpr.constvars)
    invars = property(lambda self: self.jaxpr.invars)
    outvars = property(lambda self: self.jaxpr.outvars)
    is_high = property(lambda self: self.jaxpr.is_high)

    def replace(self, *, jaxpr: Jaxpr | None = None, consts: Any = None) -> ClosedJaxpr:
        """A copy with another jaxpr, or other constants."""
        return ClosedJaxpr(
            self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts
        )

    def map_jaxpr(self, change: Any) -> ClosedJaxpr:
        """A copy with the jaxpr that ``change`` makes of this one."""
        return ClosedJaxpr(change(self.jaxpr), self.consts)

    def pretty_print(self, **options: Any) -> str:
        """As ``str``."""
        del options
        return str(self.jaxpr)

    def __str__(self) -> str:
        return str(self.jaxpr)

    __repr__ = __str__
