"""Tracing: run a Python function on tracers and keep what it did as a ``Program``.

The recorder is an interpreter that writes each operation down as an equation. What the function
takes from outside (captured arrays, tracers of enclosing transformations) becomes an input of the
program, after the function's own, so that programs are always closed.

A program has single numbers in its text, wherever they come from. Where programs are compared, all
that a function closes over has to be inputs instead, told from the constants that it makes itself
(``closing_over``): then functions that differ in those values alone have programs of one form.
``linearize`` and ``vjp`` need it, whose results are trees of such values, and ``make_jaxpr`` of
``stretto.as_jax``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from stretto._engine.core.config import settings
from stretto._engine.core.interpreter import Form, Interpreter, Tracer, Value, state
from stretto._engine.core.position import Place, place, scope, scopes
from stretto._engine.core.program import Atom, Equation, Literal, Program, Var, as_literal
from stretto._engine.core.sizes import is_size
from stretto._engine.core.threads import holding
from stretto._engine.core.types import ArrayType


class _Own:
    """Makes constants as the eager interpreter does, and knows them again."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}

    def constant(self, host: np.ndarray, type: ArrayType) -> Any:
        """Return the array that holds this NumPy array, which must not be written to afterwards."""
        value = state.eager.constant(host, type)
        if host.size <= 1 or not any(host.strides):  # else it is an input in any case
            self.take(value)
        return value

    def take(self, value: Any) -> None:
        """Know this array as if it had been made here."""
        self._made[id(value)] = value

    def made(self, value: Any) -> bool:
        """Say whether this array was made here."""
        return id(value) in self._made


def closing_over(fun: Callable[..., Any], *args: Any) -> Any:
    """Return ``fun(*args)``; what functions recorded in it close over are inputs of programs."""
    return holding(state, "maker", _Own(), fun, *args)


def take_as_own(values: Iterable[Any]) -> None:
    """Have arrays be constants that the function makes: those of a program that it runs."""
    if state.maker is not state.eager:
        for value in values:
            state.maker.take(value)


class Traced(Tracer):
    """A value of a program being recorded: an atom, and the recorder it belongs to."""

    __slots__ = ("_form", "atom")

    def __init__(self, interpreter: Recorder, atom: Atom, form: Any = None) -> None:
        self.interpreter = interpreter
        self.atom = atom
        self.type = atom.type
        self._form = form

    @property
    def position(self) -> Any:  # type: ignore[override]
        """Say where the equation that made it was called."""
        return self.interpreter.position_of(self.atom)

    def origin(self) -> str:
        """Give the argument it is, or the operation that made it and the arguments behind that."""
        return self.interpreter.origin(self.atom)

    def concrete(self) -> Any:
        """Return the constant, where the value is one."""
        if isinstance(self.atom, Literal) and not self.atom.type.varies:
            return self.atom.array()
        return None


class Recorder(Interpreter):
    """Records operations as equations, while ``run`` runs a function."""

    __slots__ = (
        "borrowed",
        "captured",
        "captured_vars",
        "ended",
        "equations",
        "inputs",
        "locate",
        "makers",
        "names",
        "noted",
        "own",
        "parent",
        "refuses",
    )
    borrows = True

    def __init__(self, types: Sequence[ArrayType], names: Sequence[str] = ()) -> None:
        self.inputs = [Var(t) for t in types]
        self.names = names
        self.equations: list[Equation] = []
        self.captured: dict[int, Any] = {}
        self.captured_vars: dict[int, Var] = {}
        self.parent = state.interpreter
        self.borrowed: Any = None
        """Holds what the body sees of references from outside; see ``core/cells``."""
        self.refuses = ""
        """Names what the body belongs to, if it may use none, as it is kept for later calls."""
        self.ended = False
        self.noted: list[tuple[str, Place | None]] = []
        """The formulas that became stable forms, in words; the program keeps it for ``explain``."""
        self.makers: tuple[int, dict[Atom, Equation]] = 0, {}
        """The number of equations that have been looked at for ``maker``, and what they compute."""
        self.own = None if state.maker is state.eager else state.maker
        """Notes the constants that the function makes itself, if others become inputs."""
        self.locate: Callable[[], Place | None] = place
        """Called for the source place of each new equation."""

    @property
    def recorder(self) -> Any:  # type: ignore[override]
        """The recorder itself."""
        return self

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Record the equation, and return tracers for its outputs."""
        rule = primitive.formed
        form = rule(*args) if rule is not None and settings.key.stable else None
        if form is not None and form.__class__ is not Form:
            return form
        # Nearly all operations have one or two arguments; a loop over them would double the cost.
        inputs: Sequence[Atom]
        if len(args) == 2:
            x, y = args
            x = x.atom if x.__class__ is Traced and x.interpreter is self else self.lift(x)
            y = y.atom if y.__class__ is Traced and y.interpreter is self else self.lift(y)
            inputs, types = (x, y), (x.type, y.type)
        elif len(args) == 1:
            (x,) = args
            x = x.atom if x.__class__ is Traced and x.interpreter is self else self.lift(x)
            inputs, types = (x,), (x.type,)
        else:
            inputs = [
                a.atom if a.__class__ is Traced and a.interpreter is self else self.lift(a)
                for a in args
            ]
            types = tuple([a.type for a in inputs])
        out_types = primitive.inferred.get(types) or primitive.out_types(types)
        if primitive.splat and inputs[0].__class__ is Literal:
            folded = _fold(primitive, inputs, out_types[0])
            if folded is not None:
                return Traced(self, folded)
        if primitive.multiple:
            outputs = [Var(t) for t in out_types]
            self.equations.append(Equation(primitive, inputs, outputs, self.locate()))
            return tuple([Traced(self, v) for v in outputs])
        out = Var(out_types[0])
        self.equations.append(Equation(primitive, inputs, (out,), self.locate()))
        return Traced(self, out, form)

    def splat(self, element: Any, type: ArrayType) -> Any:
        """Return the constant of this type, each of whose elements is this number."""
        return Traced(self, Literal(np.asarray(element).astype(type.dtype)[()], type))

    def run(self, fun: Callable[..., Any], *args: Any) -> Any:
        """Return ``fun(*args)``, called under this interpreter and outside all named scopes."""
        try:
            return holding(scope, "path", "", holding, state, "interpreter", self, fun, *args)
        finally:
            self.ended = True

    def lift(self, value: Value) -> Atom:
        """Return the atom for a value from outside: a literal, or an input that captures it."""
        known = self.captured_vars.get(id(value))
        if known is not None:
            return known
        if isinstance(value, Tracer):
            if value.interpreter.ended and id(value) not in state.stand_ins:
                value.escaped()
            atom = value.atom if type(value) is Traced else None
            if type(atom) is Literal and (self.own is None or value.interpreter.own is self.own):
                return atom
        elif self.own is None or self.own.made(value):
            array = value.host()  # None if the only copy is on a device
            if array is not None:
                literal = as_literal(array, value.type)
                if literal is not None:
                    return literal
        v = Var(value.type)
        self.captured[id(value)] = value
        self.captured_vars[id(value)] = v
        return v

    def maker(self, atom: Atom) -> Equation | None:
        """Return the equation that computes this atom, if one has."""
        seen, makers = self.makers
        for equation in self.equations[seen:]:
            makers.update(dict.fromkeys(equation.outputs, equation))
        self.makers = len(self.equations), makers
        return makers.get(atom)

    def position_of(self, atom: Atom) -> Any:
        """Say where the equation that assigns this atom was called; None for inputs."""
        for equation in self.equations:
            if atom in equation.outputs:
                return equation.position
        return None

    def origin(self, atom: Atom) -> str:
        """Describe the atom: a named argument, or an operation computed from some."""
        if atom in self.inputs:
            return self._input_name(atom)
        makers = {v: e for e in self.equations for v in e.outputs}
        maker = makers.get(atom)  # type: ignore[arg-type]
        if maker is None:
            return "a captured value"
        ancestors, pending = set(), [atom]
        while pending:
            a = pending.pop()
            if a in ancestors:
                continue
            ancestors.add(a)
            if a in makers:
                pending.extend(makers[a].inputs)  # type: ignore[index]
        sources = [self._input_name(v) for v in self.inputs if v in ancestors]
        ends = [makers[a].primitive for a in ancestors if a in makers and not makers[a].inputs]  # type: ignore[index]
        sizes = [getattr(primitive, "size", None) for primitive in ends]
        sources += [f"the size {n}" for n in sizes if is_size(n)]
        computed = f"computed by {maker.primitive.name} at {maker.position}"
        return f"{computed} from {', '.join(sources)}" if sources else computed

    def _input_name(self, atom: Atom) -> str:
        n = next(i for i, v in enumerate(self.inputs) if v is atom)
        return f"the argument {self.names[n]}" if n < len(self.names) else f"input {n}"


def element_of(value: Any) -> Any:
    """Return the number that all elements of a constant are; None if they differ or are unknown."""
    if value.__class__ is Traced:
        atom = value.atom
        return atom.value if atom.__class__ is Literal else None
    if isinstance(value, Tracer):
        return None
    array = value.host()
    if array is None or not array.size or (array.size > 1 and any(array.strides)):
        return None
    return array[(0,) * array.ndim]


_UNKNOWN: Any = object()


class standing:  # reads as a statement: `with standing(recorder, at):`
    """Give all equations recorded in a ``with`` block one place: ``at``, or that of the first.

    For rules, which call no function of the user's: to walk up through their frames for each
    operation, only to find the same line, would cost as much as recording it.
    """

    __slots__ = ("_at", "_outer", "_recorder")

    def __init__(self, recorder: Recorder, at: Place | None = _UNKNOWN) -> None:
        self._recorder = recorder
        self._at = at

    def __enter__(self) -> standing:
        self._outer = outer = self._recorder.locate
        if self._at is not _UNKNOWN or outer.__class__ is not standing:
            self._recorder.locate = self
        return self

    def __exit__(self, *error: object) -> None:
        self._recorder.locate = self._outer

    def __call__(self) -> Place | None:
        """Return the place, with the named scope that is current now."""
        at = self._at
        if at is _UNKNOWN:
            at = self._at = self._outer()
        return None if at is None else (at[0], at[1], scope.path if scopes.entered else "")

    def at(self, place: Place) -> standing:
        """Enter a block inside that has another place."""
        return standing(self._recorder, place)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Look for places again in a block inside, which may run a function of the user's."""
        recorder = self._recorder
        here = recorder.locate
        recorder.locate = self._outer
        try:
            yield
        finally:
            recorder.locate = here


def _fold(primitive: Any, inputs: Sequence[Any], out: ArrayType) -> Literal | None:
    """Give the literal that an operation gives if all its operands are literals; otherwise None."""
    if any(a.__class__ is not Literal for a in inputs):
        return None
    with np.errstate(all="ignore"):
        value = np.asarray(
            primitive.splat_reference(*[np.asarray(a.value, a.type.dtype) for a in inputs])
        )
    if settings.key.debugged and value.dtype.kind in "fcV" and not np.isfinite(value).all():
        return None  # a fault is found where it is computed
    return Literal(value.astype(out.dtype)[()], out)


def _atoms_of(fun: Callable[..., Any], recorder: Recorder) -> tuple[list[Atom], Any]:
    """Return the atoms that ``fun`` returns for the recorder's inputs, and its second result."""
    outputs, extra = fun(*[Traced(recorder, v) for v in recorder.inputs])
    atoms = [
        o.atom if type(o) is Traced and o.interpreter is recorder else recorder.lift(o)
        for o in outputs
    ]
    return atoms, extra


def record(
    fun: Callable[..., Any],
    types: Sequence[ArrayType],
    names: Sequence[str] = (),
    name: str = "main",
) -> tuple[Program, Any, list[Value]]:
    """Trace ``fun`` on values of these types.

    ``fun`` takes one value for each type and returns a flat sequence of values together with a
    second result that is not traced, such as a tree structure: ``return outputs, extra``. ``names``
    are what messages call the arguments.

    Returns the program, that second result, and the captured values, for which the program has
    inputs after those of the function. Equations keep their named scopes relative to this call; the
    equation that uses the program has the rest of the path.
    """
    recorder = Recorder(types, names)
    recorder.begin(name)
    atoms, extra = recorder.run(_atoms_of, fun, recorder)
    inputs = [*recorder.inputs, *recorder.captured_vars.values()]
    program = Program(inputs, recorder.equations, atoms, name)
    if recorder.noted:
        program.cache["noted"] = tuple(recorder.noted)
        outer = recorder.parent.recorder
        if outer is not None:  # what holds the program may hold another, made of it
            outer.noted += recorder.noted
    captured = list(recorder.captured.values())
    if recorder.borrowed is not None:
        captured = recorder.borrowed.present(captured)
    return program, extra, captured


def record_shared(
    fun: Callable[..., Sequence[Any]], types: Sequence[ArrayType], name: str
) -> Program:
    """Return the program of a function of values, for calls from several places.

    Its equations have no positions, which would be those of the first caller. ``fun`` returns a
    flat sequence of values, and captures none.
    """
    program, _, captured = record(lambda *xs: (fun(*xs), None), types)
    assert not captured, f"{fun} captured a value"
    equations = [Equation(e.primitive, e.inputs, e.outputs) for e in program.equations]
    return Program(program.inputs, equations, program.outputs, name)
