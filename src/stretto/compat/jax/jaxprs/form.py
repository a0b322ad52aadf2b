"""The parts of jaxprs: variables, literals, equations, and the two kinds of program.

Their fields are JAX's, and ``text_of`` prints them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, TypeAlias

import numpy as np

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
    "text_of",
]

WIDTH = 80
"""The most characters of a line; longer text is broken."""

CALLS = {"inline": False, "keep_unused": False}
"""Parameters of compiled calls that are not printed with these values; nor are options, shardings,
layouts and donations of which there are none. Their names are printed first."""


def text_of(shown: Any) -> str:
    """Return the text of a jaxpr, or of an equation."""
    return _Printer().jaxpr(shown, 0) if _is_jaxpr(shown) else _Printer().equation(shown, 0)


class _Printer:
    """Names variables, those of inner jaxprs too, each when it is first printed."""

    def __init__(self) -> None:
        self._fresh = _letters()
        self._names: dict[Any, str] = {}

    def jaxpr(self, jaxpr: Any, indent: int) -> str:
        """Return the text of a jaxpr whose later lines are indented so far."""
        first = " ".join(map(self.declared, jaxpr.constvars))
        inputs = " ".join(map(self.declared, jaxpr.invars))
        # Laid out for lines of their own; whether all of it fits on one is seen afterwards.
        equations = [self.equation(e, indent + 4) for e in jaxpr.eqns]
        outs = ", ".join(map(self.used, jaxpr.outvars))
        head = f"{{ lambda {first}; {inputs}. let"
        tail = f"in ({outs}{',' if len(jaxpr.outvars) == 1 else ''}) }}"
        line = f"{head} {'; '.join(equations)} {tail}"
        if "\n" not in line and indent + len(line) <= WIDTH:
            return line
        inner, outer = "\n" + " " * (indent + 4), "\n" + " " * (indent + 2)
        return head + "".join(inner + e for e in equations) + outer + tail

    def equation(self, e: Any, indent: int) -> str:
        """Return the text of an equation that begins so far from the left."""
        outs = " ".join(map(self.declared, e.outvars))
        operands = "".join(f" {self.used(a)}" for a in e.invars)
        start = f"{outs} = {e.primitive}" if outs else f"{e.primitive}"
        params = _printed_params(e.params)
        if not params:
            return start + operands
        parts = [self._parameter(name, value, indent + 2) for name, value in params]
        line = f"{start}[{' '.join(parts)}]{operands}"
        if "\n" not in line and indent + len(line) <= WIDTH:
            return line
        inner = "\n" + " " * (indent + 2)
        return f"{start}[" + "".join(inner + p for p in parts) + f"\n{' ' * indent}]{operands}"

    def _parameter(self, name: str, value: Any, indent: int) -> str:
        if _is_jaxpr(value):
            return f"{name}={self.jaxpr(value.jaxpr, indent)}"
        if isinstance(value, tuple) and value and all(map(_is_jaxpr, value)):
            inner = "\n" + " " * (indent + 2)
            texts = "".join(inner + self.jaxpr(part.jaxpr, indent + 2) for part in value)
            return f"{name}=({texts}\n{' ' * indent})"
        return f"{name}={getattr(value, '__name__', value)}"

    def declared(self, v: Any) -> str:
        """Return a variable with its type, where it is assigned."""
        return f"{self._named(v)}:{v.aval.str_short(short_dtypes=True)}"

    def used(self, atom: Any) -> str:
        """Return a variable, or a literal with its type."""
        if hasattr(atom, "val"):
            # A float in as many digits as its own dtype needs.
            value = np.asarray(atom.val, atom.aval.dtype) if type(atom.val) is float else atom.val
            return f"{value}:{atom.aval.str_short(short_dtypes=True)}"
        return self._named(atom)

    def _named(self, v: Any) -> str:
        if repr(v) == "_":
            return "_"
        if v not in self._names:
            self._names[v] = next(self._fresh)
        return self._names[v]


def _is_jaxpr(value: Any) -> bool:
    return hasattr(value, "jaxpr") and hasattr(value, "eqns")


def _printed_params(params: dict[str, Any]) -> Sequence[tuple[str, Any]]:
    """Return the parameters that say something, in the order of the text."""
    params = {name: value for name, value in sorted(params.items()) if value is not None}
    if "donated_invars" not in params:
        return list(params.items())
    said = {
        name: value
        for name, value in params.items()
        if name not in ("name", "jaxpr")
        and not (name in CALLS and value is CALLS[name])
        and not (isinstance(value, tuple) and not any(value))
    }
    front = [(name, params[name]) for name in ("name", "jaxpr") if name in params]
    return [*front, *said.items()]


def _letters() -> Iterator[str]:
    """Yield ``a`` to ``z``, ``ba``, ``bb``, …: numbers to the base of 26."""
    digits = "abcdefghijklmnopqrstuvwxyz"
    written: Callable[[int], str] = lambda n: (written(n // 26) if n >= 26 else "") + digits[n % 26]
    return map(written, itertools.count())


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
    """The place where an equation was made: the user's line, and the named scopes."""

    traceback: Any
    name_stack: Any

    def replace(self, **changes: Any) -> SourceInfo:
        """Return a copy with some fields replaced."""
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
    """Names the function that a jaxpr is of, for messages."""

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
        """Return a copy with some fields replaced."""
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
    """Return an equation of these parts."""
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
        """Return a jaxpr of the same parts, but for those named."""
        names = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info", "is_high")
        unknown = sorted(changes.keys() - {*names})
        if unknown:
            raise ValueError(f"Jaxpr.replace: a jaxpr has no {unknown[0]}; it has {names}")
        return Jaxpr(**({name: getattr(self, name) for name in names} | changes))

    def pretty_print(self, **options: Any) -> str:
        """Print as ``str`` does."""
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
        """Return a copy with another jaxpr, or other constants."""
        return ClosedJaxpr(
            self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts
        )

    def map_jaxpr(self, change: Any) -> ClosedJaxpr:
        """Return a copy with the jaxpr that ``change`` makes of this one."""
        return ClosedJaxpr(change(self.jaxpr), self.consts)

    def pretty_print(self, **options: Any) -> str:
        """Print as ``str`` does."""
        del options
        return str(self.jaxpr)

    def __str__(self) -> str:
        return str(self.jaxpr)

    __repr__ = __str__
