"""Functions with the user's own rules: their arguments, the call of a rule, and the zeros it sees.

``custom_jvp``, ``custom_vjp`` and ``custom_vmap`` derive from the classes here. The signature
resolves all arguments to positions. Arguments named as not differentiable reach the rules as they
are; the others reach them as trees of values.

A rule is a Python function that may have captured tracers of a trace that has ended by the time it
runs; ``user_rule`` gives them their present values.

Inside this package a zero tangent or cotangent is ``None``. A user's rule gets an array of zeros
instead, or a ``SymbolicZero`` if it asks for these.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

import numpy as np

from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.config import settings
from stretto._engine.core.errors import EscapedTracerError, PerturbationError
from stretto._engine.core.functions import name_of, signature_of
from stretto._engine.core.interpreter import Interpreter, Tracer, Value, as_value, state
from stretto._engine.core.position import place
from stretto._engine.core.program import Program
from stretto._engine.core.recorder import record
from stretto._engine.core.sizes import is_size
from stretto._engine.core.threads import holding
from stretto._engine.core.types import ArrayType, float0, is_float0, is_inexact, kind_of
from stretto._engine.higher_order.family import ControlFlow, parting
from stretto._engine.higher_order.refs import hide_refs
from stretto._engine.ops.comparison import full
from stretto._engine.ops.convert import convert

P = ParamSpec("P")
Q = ParamSpec("Q")
S = TypeVar("S")
R_co = TypeVar("R_co", covariant=True)


class WithRule(ControlFlow, abstract=True):
    """A program, and a function that takes its place when it is transformed."""

    program: Program
    rule: Callable[..., Any]

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return self.program.out_types

    def interpret(self, *args: Any) -> Sequence[Any]:
        """Run the program."""
        return evaluate(self.program, args)

    def lower(self, b: Any, *operands: Any) -> Any:
        return b.program(self.program, operands)

    def inlined(self) -> Program | None:
        """Return the program: whoever inlines it has taken all derivatives already."""
        return self.program

    def parameters(self) -> list[tuple[str, Any]]:
        """Return the program alone: a Python function tells nothing in print."""
        return [("program", self.program)]

    def padded(self, at: Any, *args: Any) -> Sequence[Any]:
        return tuple(at.run(self.program, args))


class CustomFunction(Generic[P, R_co]):
    """A function with rules: calling it runs the function, transforming it runs the rules.

    Outside any transformation the function just runs. Under one it is recorded, and the values that
    it captures become operands; these cannot be differentiated by, since no rule is given for them.
    """

    kind: ClassVar[str]
    fun: Callable[..., Any]
    name: str

    def __init__(
        self,
        fun: Callable[P, R_co],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        if not callable(fun):
            raise TypeError(f"{self.kind}: expected a function, got {type(fun).__name__}")
        functools.update_wrapper(self, fun, updated=())
        self.fun = fun
        self.name = name_of(fun)
        self._signature = signature_of(fun)
        parameters = self._signature.parameters.values() if self._signature else ()
        plain = all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
        self._count = len(parameters) if plain else None
        self._static = self._positions(nondiff_argnums, nondiff_argnames)

    def _positions(
        self, numbers: int | Sequence[int], names: str | Sequence[str]
    ) -> frozenset[int]:
        positions = (numbers,) if isinstance(numbers, int) else tuple(numbers)
        if any(not isinstance(i, int) or i < 0 for i in positions):
            raise ValueError(
                f"{self.kind}: nondiff_argnums of {self.name} must be positions from 0 on, got "
                f"{numbers!r}"
            )
        known = list(self._signature.parameters) if self._signature else []
        static = set(positions)
        for name in (names,) if isinstance(names, str) else names:
            if name not in known:
                raise ValueError(
                    f"{self.kind}: nondiff_argnames names {name!r}, but {self.name} takes "
                    f"{', '.join(known) or 'no argument by name'}"
                )
            static.add(known.index(name))
        return frozenset(static)

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(
        self: CustomFunction[Concatenate[S, Q], R_co], instance: S, owner: type | None = None
    ) -> Callable[Q, R_co]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Return the function's value."""
        with boundary:
            self.check_rules()
            arguments, values = Arguments.of(self, self._by_position(args, kwargs))
            if state.interpreter.at_rest:
                out, structure = tree.flatten(self.fun(*arguments.every(values)))
                return tree.unflatten(structure, self._outputs(out))

            def flat(*values: Any) -> Any:
                out, structure = tree.flatten(self.fun(*arguments.every(values)))
                return self._outputs(out), structure

            program, structure, captured = record(
                flat, arguments.types, arguments.paths(), self.name
            )
            # Only tracers change their meaning when the trace ends, so only these are remembered.
            traced = [c if isinstance(c, Tracer) else None for c in captured]
            operation = self.operation(arguments, program, structure, traced)
            return tree.unflatten(structure, operation(*values, *captured))

    def check_rules(self) -> None:
        """Raise ``AttributeError`` if no rules were given."""
        raise NotImplementedError

    def operation(
        self, arguments: Arguments, program: Program, structure: Any, captured: Sequence[Any]
    ) -> WithRule:
        """Return the operation to apply to the arguments' values and the captured ones.

        ``captured`` holds the captured values that are traced, and ``None`` in place of others.
        """
        raise NotImplementedError

    def _outputs(self, leaves: Sequence[Any]) -> list[Any]:
        return [as_value(leaf, f"{self.kind}: {self.name}", "the result") for leaf in leaves]

    def _by_position(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return all arguments in their positions, including defaults."""
        if not kwargs and len(args) == self._count:
            return args
        if self._signature is None:
            if kwargs:
                raise TypeError(
                    f"{self.kind}: Python does not know the signature of {self.name}; pass "
                    f"{', '.join(kwargs)} by position"
                )
            return args
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.kind}: {self.name}: {error}") from None
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"{self.kind}: {self.name} takes {', '.join(bound.kwargs)} by name only, and a "
                f"rule sees arguments by position; make it positional"
            )
        return bound.args

    def argument_names(self, count: int) -> list[str]:
        """Return the names of the first ``count`` arguments."""
        names = []
        for p in self._signature.parameters.values() if self._signature else ():
            if p.kind is p.VAR_POSITIONAL:
                names += [f"{p.name}[{i}]" for i in range(count - len(names))]
            elif p.kind is not p.VAR_KEYWORD:
                names.append(p.name)
        return [*names, *(f"args[{i}]" for i in range(len(names), count))][:count]

    def is_static(self, position: int) -> bool:
        """Say if the argument in this position is passed to the rules as it is."""
        return position in self._static

    def check_static(self, count: int) -> None:
        """Raise ``TypeError`` if a static argument is missing from a call with so many."""
        missing = [i for i in self._static if i >= count]
        if missing:
            raise TypeError(
                f"{self.kind}: nondiff_argnums names argument {missing[0]}, but {self.name} was "
                f"called with {count} positional arguments"
            )


class Arguments:
    """The arguments of one call: trees of values, and static arguments.

    Their values form a flat list: the leaves of the trees, then any tracers in static arguments.
    When a rule runs, perhaps under another transformation, it sees the values that these have
    then. The values themselves are not kept here.
    """

    types: list[ArrayType]

    def __init__(self, function: CustomFunction[..., Any], args: Sequence[Any]) -> None:
        function.check_static(len(args))
        self.function = function
        self._total = len(args)
        self._moving = [i for i in range(len(args)) if not function.is_static(i)]
        self._static: dict[int, tuple[Any, Any, Any]] = {}
        self._held_in: list[int] = []
        self.structure: Any = None
        self.count = 0

    @classmethod
    def of(
        cls, function: CustomFunction[..., Any], args: Sequence[Any]
    ) -> tuple[Arguments, list[Any]]:
        """Return the arguments, and their values."""
        arguments = cls(function, args)
        moving = hide_refs(tuple([args[i] for i in arguments._moving]))
        leaves, arguments.structure = tree.flatten(moving)
        arguments.count = len(leaves)
        values = arguments._as_values(leaves)
        for i, arg in enumerate(args):
            if function.is_static(i):
                parts, structure = tree.flatten(arg)
                held = [x for x in parts if isinstance(x, Tracer)]
                values += held
                arguments._held_in += [i] * len(held)
                arguments._static[i] = (arg, parts, structure) if held else (arg, None, None)
        arguments.types = [v.type for v in values]
        return arguments, values

    @functools.cached_property
    def names(self) -> list[str]:
        """The names of the arguments."""
        return self.function.argument_names(self._total)

    def _as_values(self, leaves: Sequence[Any]) -> list[Any]:
        caller = f"{self.function.kind}: {self.function.name}"
        try:
            return [as_value(leaf, caller) for leaf in leaves]
        except TypeError as error:
            problem = error
        for leaf, path in zip(leaves, self.paths(), strict=True):
            try:
                as_value(leaf, caller, path)
            except TypeError as error:
                problem = error
                break
        raise TypeError(
            f"{problem}. Name an argument that holds anything but arrays in nondiff_argnums; the "
            f"rules then get it as it is"
        )

    def paths(self) -> list[str]:
        """Return what messages call each value."""
        numbers = hide_refs(tree.unflatten(self.structure, range(self.count)))
        moving = [
            path
            for i, part in zip(self._moving, numbers, strict=True)
            for path in tree.paths(part, self.names[i])
        ]
        return [*moving, *(self.names[i] for i in self._held_in)]

    def trees(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Return the arguments that are not static, with these leaves."""
        return tree.unflatten(self.structure, leaves)

    def static(self, held: Sequence[Any]) -> list[Any]:
        """Give the static arguments in order, with these values in place of the tracers in them."""
        present = iter(held)
        return [
            arg
            if parts is None
            else tree.unflatten(s, [next(present) if isinstance(x, Tracer) else x for x in parts])
            for arg, parts, s in self._static.values()
        ]

    def every(self, values: Sequence[Any], leaves: Sequence[Any] | None = None) -> list[Any]:
        """Return all arguments in order; ``leaves`` may replace the values of those not static."""
        moving = iter(self.trees(values[: self.count] if leaves is None else leaves))
        if not self._static:
            return list(moving)
        static = iter(self.static(values[self.count : len(self.types)]))
        return [next(static if i in self._static else moving) for i in range(self._total)]

    def cotangents(self, result: Any, caller: str) -> list[Any]:
        """Give the cotangent of each leaf (``None``: zero), from what the user's ``bwd`` returned.

        That is a tuple with one tree for each argument that is not static. In place of any part of
        a tree, ``None`` stands for zeros, and an array for itself at each leaf of that part.
        Integers are taken for those whose leaf is of their type, and are of no consequence.
        """
        names = [self.names[i] for i in self._moving]
        if not isinstance(result, (tuple, list)) or len(result) != len(names):
            got = f"{len(result)}" if isinstance(result, (tuple, list)) else f"{describe(result)}"
            raise TypeError(
                f"{caller} must return a tuple of {len(names)} cotangents, for "
                f"{', '.join(names) or 'no argument'}; got {got}"
            )
        types, paths = self.types, self.paths()
        out: list[Any] = []
        for name, own, ct in zip(names, self.trees(range(self.count)), result, strict=True):
            entries, structure = tree.flatten(ct, is_leaf=lambda x: x is None)
            try:
                subtrees = structure.flatten_up_to(own)
            except (ValueError, TypeError):
                raise TypeError(
                    f"{caller} must return a cotangent like {name}, or None; they part at "
                    f"{tree.difference(own, ct, name)}"
                ) from None
            for entry, part in zip(entries, subtrees, strict=True):
                leaves = tree.leaves(hide_refs(part))
                if entry is None:
                    out += [None] * len(leaves)
                    continue
                what = f"{caller} must return a cotangent"
                for i in leaves:
                    integer = not is_inexact(types[i].dtype) and isinstance(entry, Value)
                    if integer and entry.type.dtype == types[i].dtype:
                        fit(entry, types[i], what, paths[i], False)
                        out.append(None)
                    else:
                        out.append(fit(entry, types[i], what, paths[i], True))
        return out

    def check_perturbed(self, perturbed: Sequence[bool], captured: Sequence[Any]) -> None:
        """Raise ``PerturbationError`` for a derivative by anything but leaves of the arguments."""
        caller = f"{self.function.kind}: {self.function.name}"
        remedy = (
            "its rules give no derivative by that. Pass it as an argument that is differentiated, "
            "or through stretto.lax.stop_gradient"
        )
        held = perturbed[self.count : len(self.types)]
        for i, p in zip(self._held_in, held, strict=True):
            if p:
                raise PerturbationError(
                    f"{caller} is differentiated by {self.names[i]}, which is in "
                    f"nondiff_argnums, and {remedy}"
                )
        for value, p in zip(captured, perturbed[len(self.types) :], strict=True):
            if p:
                raise PerturbationError(
                    f"{caller} is differentiated by a value of type {value.type} that it takes "
                    f"from outside ({value.origin()}), and {remedy}"
                )


class _StandIns(Interpreter):
    """Hands on operations, with captured tracers replaced by the values that they have now.

    A rule may run long after its function was traced, under another transformation. A tracer that
    it captured stands for an operand of the recorded operation, and that has a new value by then.
    """

    __slots__ = ("parent", "recorder", "values")

    def __init__(self, values: Mapping[int, Any]) -> None:
        self.parent = state.interpreter
        self.recorder = self.parent.recorder
        self.values = values

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Hand the operation on, with values in place of the tracers that stand for them."""
        values = self.values
        return self.parent.process(primitive, [values.get(id(a), a) for a in args])


def user_rule(
    caller: str,
    captured: Sequence[Any],
    now: Sequence[Any],
    call: Callable[[Callable[[Any], Any]], Any],
) -> Any:
    """Return the result of ``call``, which calls a rule; ``captured`` tracers now mean ``now``.

    ``None`` among ``captured`` stands for values that are not traced. ``call`` gets a function that
    it must apply to whatever the rule returns, since that may be a captured tracer.
    """
    values = {id(c): v for c, v in zip(captured, now, strict=True) if c is not None and c is not v}
    recorder = state.interpreter.recorder
    if settings.key.debugged and recorder is not None and recorder.locate is not place:
        again = user_rule, caller, captured, now, call
        return holding(recorder, "locate", place, *again)  # at the lines of the rule
    try:
        if not values:
            return call(lambda x: x)
        both = {**state.stand_ins, **values}
        under = "interpreter", _StandIns(values)
        present = lambda x: values.get(id(x), x)
        return holding(state, "stand_ins", both, holding, state, *under, call, present)
    except EscapedTracerError as error:
        raise EscapedTracerError(
            f"{caller} uses a traced value from outside that the function itself does not use; "
            f"pass it to the function as an argument. ({error})"
        ) from error


def fit_results(
    x: Any,
    structure: Any,
    types: Sequence[ArrayType],
    caller: str,
    what: str,
    tangent: bool = False,
) -> list[Any]:
    """Return a rule's results as values of these types; ``None`` for a zero tangent.

    Raises ``TypeError``, which says what is wrong where.
    """
    leaves, x_structure = tree.flatten(x)
    if x_structure != structure:
        raise TypeError(
            f"{caller} must return {what} like the function's output; they part at "
            f"{parting(structure, x_structure, 'output')}"
        )
    paths = tree.paths(tree.unflatten(structure, range(len(leaves))), "output")
    return [
        fit(leaf, t, f"{caller} must return {what}", path, tangent)
        for leaf, t, path in zip(leaves, types, paths, strict=True)
    ]


def fit(x: Any, type: ArrayType, caller: str, path: str, tangent: bool) -> Any:
    """Return one leaf of a rule's result as a value of this type; ``None`` for a zero tangent."""
    if tangent:
        if isinstance(x, SymbolicZero) and x.shape == type.shape:
            return None
        if not is_inexact(type.dtype):
            if is_float0(x) and x.shape == type.shape:
                return None
            raise TypeError(
                f"{caller} of dtype float0 and shape {type.shape} for {type} at {path}, got "
                f"{describe(x)}"
            )
    value = as_value(x, caller, path)
    if not fits(value, type):
        raise TypeError(f"{caller} of type {type} at {path}, got {value.type}")
    return convert(value, type.dtype, type.weak_type)


def fits(value: Any, type: ArrayType) -> bool:
    """Say if a value is of this type, or a Python number that can take it without loss."""
    if value.shape != type.shape:
        return False
    if value.dtype == type.dtype:
        return True
    return value.weak_type and _RANK[kind_of(value.dtype)] <= _RANK[kind_of(type.dtype)]


_RANK = {"bool": 0, "uint": 1, "int": 1, "float": 2, "complex": 3}


def describe(x: Any) -> str:
    """Return a value as messages show it: by its type if it has one."""
    return repr(x.type) if hasattr(x, "type") else repr(x)


@dataclasses.dataclass(frozen=True)
class SymbolicZero:
    """A tangent or cotangent that is known to be zero, so that nothing was computed for it.

    Rules given with ``symbolic_zeros=True`` get it as a leaf, and may return it. The dtype is
    float0 where the value is an integer or a boolean.

    Args:
        shape: the sizes of the axes.
        dtype: the dtype.

    >>> SymbolicZero((2,), np.dtype("float32"))
    SymbolicZero(shape=(2,), dtype=float32)
    """

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def __repr__(self) -> str:
        dtype = "float0" if self.dtype == float0 else self.dtype.name
        return f"SymbolicZero(shape={self.shape}, dtype={dtype})"


@dataclasses.dataclass(frozen=True)
class CustomVJPPrimal:
    """A leaf as ``fwd`` gets it with ``symbolic_zeros=True``.

    Args:
        value: the value.
        perturbed: whether it is differentiated by.
    """

    value: Any
    perturbed: bool


def custom_vjp_primal_tree_values(x: Any) -> Any:
    """Replace each ``CustomVJPPrimal`` of a tree by its value.

    Args:
        x: the tree, as ``fwd`` gets it with ``symbolic_zeros=True``.

    Returns:
        The tree of values.

    >>> custom_vjp_primal_tree_values({"x": CustomVJPPrimal(1.0, True), "n": 2})
    {'x': 1.0, 'n': 2}
    """
    return tree.map(lambda leaf: leaf.value if isinstance(leaf, CustomVJPPrimal) else leaf, x)


def zero_tangent(value: Any) -> Any:
    """Return the zero of the tangent space of a value: float0 for integers and booleans.

    NumPy has no array of a size that varies: there the zero is symbolic.
    """
    if is_inexact(value.dtype):
        return full(value.shape, 0, value.dtype, value.weak_type)
    if any(map(is_size, value.shape)):
        return symbolic_zero(value)
    return np.zeros(value.shape, float0)


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Make the zero tangent or cotangent for each leaf of a tree.

    Args:
        val: a tree of arrays.
        symbolic_zeros: whether to make ``SymbolicZero`` objects rather than arrays.

    Returns:
        The tree of zeros; their dtype is float0 where the leaf is an integer or a boolean.

    Raises:
        TypeError: a leaf is no array.

    >>> import stretto.numpy as snp
    >>> zero_from_primal(snp.ones(2))
    Array([0., 0.], dtype=float32)
    >>> zero_from_primal({"n": 1}, symbolic_zeros=True)
    {'n': SymbolicZero(shape=(), dtype=float0)}
    """

    def zero(leaf: Any) -> Any:
        value = as_value(leaf, "zero_from_primal", "a leaf")
        return symbolic_zero(value) if symbolic_zeros else zero_tangent(value)

    return tree.map(zero, val)


def symbolic_zero(value: Any) -> SymbolicZero:
    """Return the symbolic zero of the tangent space of a value or type."""
    return SymbolicZero(value.shape, value.dtype if is_inexact(value.dtype) else float0)


def given_or_zero(value: Any, tangent: Any, symbolic: bool) -> Any:
    """Return the tangent as a user's rule gets it, with a zero in place of ``None``."""
    if tangent is not None:
        return tangent
    return symbolic_zero(value) if symbolic else zero_tangent(value)
