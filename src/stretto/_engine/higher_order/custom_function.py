"""Functions with the user's own rules: their arguments, and the call of a rule.

``custom_jvp``, ``custom_vjp`` and ``custom_vmap`` derive from the classes here. The signature
resolves all arguments to positions. Arguments named as not differentiable reach the rules as they
are; the others reach them as trees of values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.errors import PerturbationError
from stretto._engine.core.functions import name_of, signature_of
from stretto._engine.core.interpreter import Tracer, Value, as_value, state
from stretto._engine.core.program import Program
from stretto._engine.core.recorder import record
from stretto._engine.core.types import ArrayType, is_inexact
from stretto._engine.higher_order.family import ControlFlow
from stretto._engine.higher_order.refs import hide_refs
from stretto._engine.higher_order.user_rule import describe, fit

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
