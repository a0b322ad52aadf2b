"""Jaxprs: their parts and text, and the way from programs, which they are views of, and back.

The fields of the parts are JAX's, and ``text_of`` prints them. Arrays that a program holds become
constants of its jaxpr. A view holds its program, and the program knows its views as long as anybody
has them. ``spell`` and its like say how operations and their parameters are spelled; ``operations``
is written with them.
"""

from __future__ import annotations

import dataclasses
import itertools
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from stretto._engine.autodiff.evaluate import evaluate, record_closed
from stretto._engine.core import program as core
from stretto._engine.core.interpreter import as_value, constant
from stretto._engine.core.program import Equation
from stretto._engine.core.recorder import take_as_own
from stretto._engine.core.types import ArrayType, scalar_dtype
from stretto._engine.higher_order.user_primitive import UserPrimitive
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.iota import Constant
from stretto.compat.jax.avals import aval_of, type_of_aval, unwrap_keys, wrap_keys
from stretto.compat.jax.jaxprs.primitive import KnownPrimitive, Primitive, as_jax_has, known

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


class Spelling(NamedTuple):
    """Names an operation, and gives its parameters for an equation."""

    primitive: Primitive
    params: Callable[[Any, core.Equation], dict[str, Any]]


SPELLINGS: dict[type, Spelling] = {}
"""The spelling of each class of operations, from the tables. Others are shown as they are."""


def closed_jaxpr_of(program: core.Program) -> ClosedJaxpr:
    """Return the program as a closed jaxpr, whose constants are the arrays that it holds."""
    view = program.cache.get("closed jaxpr")
    found = None if view is None else view()
    if found is None:
        found = closed_over(program, ())
        program.cache["closed jaxpr"] = weakref.ref(found)
    return found


def open_jaxpr_of(program: core.Program) -> Jaxpr:
    """Return the program as a jaxpr without constants: the arrays that it holds are equations."""
    return jaxpr_of(program, len(program.inputs), keep=True)[0]


def closed_over(program: core.Program, captured: Sequence[Any]) -> ClosedJaxpr:
    """Return the same for a program whose last inputs are constants, with these values."""
    jaxpr, held = jaxpr_of(program, len(program.inputs) - len(captured))
    return ClosedJaxpr(jaxpr, [*captured, *held])


def jaxpr_of(program: core.Program, own: int, keep: bool = False) -> tuple[Jaxpr, list[Any]]:
    """Return the jaxpr of a program with so many inputs of its own, and the arrays that it holds.

    The other inputs, and unless they are to be kept those arrays, are its constants.
    """
    if not keep and any(type(e.primitive) is Constant for e in program.equations):
        program = _without_constants(program)
    held = program.cache.get("held", [])
    atoms: dict[core.Atom, Any] = {v: Var(aval_of(v.type)) for v in program.inputs}
    read = {a for e in program.equations for a in e.inputs} | set(program.outputs)
    for e in program.equations:
        for v in e.outputs:
            atoms[v] = (Var if v in read else DropVar)(aval_of(v.type))
    eqns = [_equation(e, atoms) for e in program.equations]
    inputs = [atoms[v] for v in program.inputs]
    outs = [_atom(a, atoms) for a in program.outputs]
    info = DebugInfo("jit", program.name)
    jaxpr = Jaxpr(inputs[own:], inputs[:own], outs, eqns, program.effects, info)
    jaxpr.program = program
    return jaxpr, held


def _without_constants(program: core.Program) -> core.Program:
    """Return the program with the arrays that it holds as its last inputs, in its cache."""
    found = program.cache.get("without constants")
    if found is None:
        constants = [e for e in program.equations if type(e.primitive) is Constant]
        inputs = [*program.inputs, *(e.outputs[0] for e in constants)]
        others = [e for e in program.equations if type(e.primitive) is not Constant]
        found = core.Program(inputs, others, program.outputs, program.name)
        arrays: list[Any] = [e.primitive for e in constants]
        found.cache["held"] = [constant(c.held.array, c.held.type.weak_type) for c in arrays]
        program.cache["without constants"] = found
    return found


def _atom(atom: core.Atom, atoms: dict[core.Atom, Any], scalar: bool = False) -> Any:
    if isinstance(atom, core.Literal):
        return _literal(atom, scalar)
    return atoms[atom]


def _literal(literal: core.Literal, scalar: bool) -> Literal:
    """Return the constant; where operands are elements, one number stands for all of them."""
    type, value = literal.type, literal.value
    if scalar:
        type = type.with_shape(())
    if type.shape:
        return Literal(constant(literal.array(), type.weak_type), aval_of(type))
    number = np.asarray(value).item()
    is_number = type.weak_type and scalar_dtype(number.__class__) == type.dtype
    return Literal(number if is_number else value, aval_of(type))


def spell_operation(
    operation: Any, types: Sequence[ArrayType]
) -> tuple[Primitive, dict[str, Any], list[int]]:
    """Return what an operation on such operands is called, its parameters, and their order."""
    spelling = _spelling(operation)
    outs = [core.Var(t) for t in operation.out_types(tuple(types))]
    e = core.Equation(operation, [core.Var(t) for t in types], outs)
    order = getattr(spelling.primitive, "order", None)
    places = range(len(types)) if order is None else [order.index(i) for i in range(len(order))]
    return spelling.primitive, spelling.params(operation, e), list(places)


def _equation(e: core.Equation, atoms: dict[core.Atom, Any]) -> JaxprEqn:
    operation: Any = e.primitive
    spelling = _spelling(operation)
    scalars = isinstance(operation, Elementwise)
    operands = [_atom(a, atoms, scalars) for a in e.inputs]
    order = getattr(spelling.primitive, "order", None)
    if order is not None:
        operands = [operands[order.index(i)] for i in range(len(order))]
    place = e.place
    source = NO_SOURCE if place is None else SourceInfo(e.position, place[2])
    params = spelling.params(operation, e)
    outs = as_jax_has(spelling.primitive, [atoms[v] for v in e.outputs])
    return JaxprEqn(operands, outs, spelling.primitive, params, operation.effects, source)


def _spelling(operation: Any) -> Spelling:
    if isinstance(operation, UserPrimitive):
        return _of_user(operation)
    found = SPELLINGS.get(type(operation))
    if found is None:
        found = SPELLINGS[type(operation)] = generic(type(operation))
    return found


def generic(cls: Any) -> Spelling:
    """Return an operation under its own name, with its own parameters."""

    def params(operation: Any, equation: core.Equation) -> dict[str, Any]:
        return {name: shown(getattr(operation, name)) for name in operation._parameters}

    def build(params: dict[str, Any], types: Any) -> Any:
        return cls(**{name: meant(value) for name, value in params.items()})

    return Spelling(known(cls.name, lambda: KnownPrimitive(cls.name, build, cls.multiple)), params)


def _of_user(operation: UserPrimitive) -> Spelling:
    """Return the spelling of a user's operation: as a library made it, or as one with all it is."""
    made_by = getattr(operation.arguments.function, "made_by", None)
    if made_by is not None:
        return Spelling(made_by, lambda operation, _: dict(operation.options))
    build = lambda params, types: params["operation"]
    own = KnownPrimitive(operation.name, build, multiple=True)
    own = vars(operation.rules).setdefault("shown", own)
    return Spelling(own, lambda operation, _: {**dict(operation.options), "operation": operation})


def shown(value: Any) -> Any:
    """Return a parameter with programs as closed jaxprs."""
    if isinstance(value, core.Program):
        return closed_jaxpr_of(value)
    if type(value) is tuple and any(isinstance(v, core.Program) for v in value):
        return tuple(map(shown, value))
    return value


# And back


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any, **options: Any) -> list[Any]:
    """Return the outputs of a jaxpr for these constants and arguments.

    Args:
        jaxpr: the jaxpr.
        consts: the values of its constants.
        *args: those of its inputs.
        **options: how equations are noted, which does not matter here.
    """
    del options
    if len(args) != len(jaxpr.invars) or len(consts) != len(jaxpr.constvars):
        raise TypeError(
            f"eval_jaxpr: the jaxpr takes {len(jaxpr.invars)} arguments and "
            f"{len(jaxpr.constvars)} constants, got {len(args)} and {len(consts)}"
        )
    values = [unwrap_keys(x) for x in (*args, *consts)]
    if jaxpr.program is not None and all(map(_fits, values, jaxpr.program.in_types)):
        return _outputs(jaxpr, evaluate(jaxpr.program, values))
    known: dict[Any, Any] = dict(zip([*jaxpr.invars, *jaxpr.constvars], values, strict=True))
    atoms = itertools.chain(jaxpr.outvars, (a for e in jaxpr.eqns for a in e.invars))
    take_as_own(a.val for a in atoms if isinstance(a, Literal))
    for e in jaxpr.eqns:
        operands = [a.val if isinstance(a, Literal) else known[a] for a in e.invars]
        out = e.primitive.bind(*operands, **e.params)
        outs = out if e.primitive.multiple_results else [out]
        known.update(zip(e.outvars, outs, strict=True))
    outs = [a.val if isinstance(a, Literal) else known[a] for a in jaxpr.outvars]
    return _outputs(jaxpr, outs)


def _outputs(jaxpr: Jaxpr, outs: Sequence[Any]) -> list[Any]:
    """Return the outputs, those that are keys as keys."""
    return [wrap_keys(o, a.aval) for o, a in zip(outs, jaxpr.outvars, strict=True)]


def _fits(value: Any, expected: ArrayType) -> bool:
    """Say whether a value is already an array of this type."""
    type = getattr(value, "type", None)
    return type is not None and (type.shape, type.dtype) == (expected.shape, expected.dtype)


def program_of(jaxpr: Jaxpr | ClosedJaxpr) -> core.Program:
    """Return the program of a jaxpr: the one that it shows, or one made of its equations."""
    inner = jaxpr.jaxpr
    consts = jaxpr.consts if isinstance(jaxpr, ClosedJaxpr) else ()
    if len(consts) != len(inner.constvars):
        raise TypeError(
            f"a jaxpr with {len(inner.constvars)} constants stands where a program is wanted: "
            f"give their values, as ClosedJaxpr(jaxpr, consts)"
        )
    if inner.program is not None and not consts:
        return inner.program
    types = [type_of_aval(v.aval) for v in inner.invars]
    name = inner.debug_info.func_name
    fun = lambda *xs: (_values(eval_jaxpr(inner, consts, *xs)), None)
    return record_closed(fun, types, name)[0]


def _values(outs: Sequence[Any]) -> list[Any]:
    return [as_value(unwrap_keys(x), "a jaxpr", "an output") for x in outs]


def meant(value: Any) -> Any:
    """Return a parameter with jaxprs as programs."""
    if isinstance(value, (ClosedJaxpr, Jaxpr)):
        return program_of(value)
    if type(value) is tuple and any(isinstance(v, (ClosedJaxpr, Jaxpr)) for v in value):
        return tuple(map(meant, value))
    return value


def _same(x: Any) -> Any:
    return x


class Field(NamedTuple):
    """A parameter that is one of the operation's, in another form."""

    name: str
    to: Callable[[Any], Any] = _same
    back: Callable[[Any], Any] = _same


class Fixed(NamedTuple):
    """A parameter that always has this value, since the operation knows no other."""

    value: Any


Entry = Field | Fixed | str
"""The source of a parameter; a text names that of the operation that it is."""

NONE = Fixed(None)


def spell(
    cls: Any,
    name: str | None = None,
    entries: dict[str, Entry] | None = None,
    order: tuple[int, ...] | None = None,
    results: tuple[int, ...] | None = None,
) -> None:
    """Say how a class of operations is spelled: its name, and JAX's parameters.

    ``order`` says which of JAX's operands each of the operation's is, and ``results`` which of its
    results, where there are as many.
    """
    fields = {n: Field(e) if isinstance(e, str) else e for n, e in (entries or {}).items()}

    def params(operation: Any, equation: Equation) -> dict[str, Any]:
        return {
            n: f.value if isinstance(f, Fixed) else f.to(shown(getattr(operation, f.name)))
            for n, f in fields.items()
        }

    def build(params: dict[str, Any], types: Any) -> Any:
        moving = [(n, f) for n, f in fields.items() if isinstance(f, Field) and n in params]
        return cls(**{f.name: f.back(meant(params[n])) for n, f in moving})

    called = name or cls.name
    own = known(called, lambda: KnownPrimitive(called, build, cls.multiple, order, results))
    SPELLINGS[cls] = Spelling(own, params)


def spell_as_it_is(*classes: Any) -> None:
    """Show operations that JAX has by the same name with their own parameters."""
    SPELLINGS.update({cls: generic(cls) for cls in classes})


def spell_by_hand(
    cls: Any,
    name: str,
    params: Callable[[Any, Equation], dict[str, Any]],
    build: Callable[[dict[str, Any], Any], Any],
) -> None:
    """Say how a class is spelled by functions to and from the parameters.

    Where several classes have one name, the ``build`` of the first serves all.
    """
    own = known(name, lambda: KnownPrimitive(name, build, cls.multiple))
    SPELLINGS[cls] = Spelling(own, params)
