"""``primitive``: an operation of the user's own, with its rules.

It is recorded as a whole, as the package's own operations are, and each transformation asks it for
a rule. A rule that was not given is refused in words, or derived from the implementation where the
user says so. The implementation is traced when its program is needed: at the latest when the
operation is compiled, where the program takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from stretto._engine.autodiff.evaluate import record_closed
from stretto._engine.autodiff.linearize import apply_linear
from stretto._engine.autodiff.vmap import AxisSize
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.caches import room
from stretto._engine.core.config import settings, shaping, under
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import Linear, state
from stretto._engine.core.primitive import observable
from stretto._engine.core.program import Equation, Program
from stretto._engine.core.sizes import unnamed
from stretto._engine.core.types import ArrayType, array_type
from stretto._engine.higher_order.callback import declared_types
from stretto._engine.higher_order.custom_function import (
    Arguments,
    CustomFunction,
    P,
    R_co,
    fit_results,
    given_or_zero,
    user_rule,
)
from stretto._engine.higher_order.custom_vmap import mapped_result
from stretto._engine.higher_order.family import Call, ControlFlow, or_zeros
from stretto._engine.ops.layout import move_to_front

F = TypeVar("F", bound=Callable[..., Any])

DERIVABLE = ("jvp", "transpose", "vmap")
"""The rules that the implementation can give."""

_CAPACITY = 256  # for one operation: sets of types and parameters


class Rules:
    """A user's operation: its implementation, and the rules that were given or are derived."""

    def __init__(self, name: str, fun: Callable[..., Any], derived: frozenset[str]) -> None:
        self.name = name
        self.fun = fun
        self.derived = derived
        self.given: dict[str, Callable[..., Any]] = {}
        self.symbolic: dict[str, bool] = {}

    def __repr__(self) -> str:
        return self.name

    def find(self, name: str) -> Callable[..., Any] | None:
        """Return the rule that was given; None if it is derived, else it is refused."""
        rule = self.given.get(name)
        if rule is None and name not in self.derived:
            raise MissingRuleError(
                f"primitive: {self.name} has no rule for {name}: give one with def_{name}, or take "
                f"that of its implementation, with stretto.primitive(..., derive={name!r})"
            )
        return rule

    def has(self, name: str) -> bool:
        """Say if a rule was given, or is derived."""
        return name in self.given or name in self.derived

    def derives(self, name: str) -> bool:
        """Say if a rule is that of the implementation."""
        return name in self.derived and name not in self.given


class _Shown:
    """A parameter, for print alone: what is computed is said by the program."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __repr__(self) -> str:
        return repr(self._value)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Shown

    def __hash__(self) -> int:
        return 0


class UserPrimitive(ControlFlow):
    """One application of a user's operation, to arguments of these types.

    ``program`` is what it computes; until it is needed it is ``None``.
    """

    rules: Rules
    arguments: Arguments
    options: tuple[tuple[str, Any], ...]
    results: tuple[ArrayType, ...]
    structure: Any
    program: Program | None

    def __post_init__(self) -> None:
        vars(self)["name"] = self.rules.name
        vars(self)["shaping"] = shaping()

    def parameters(self) -> list[tuple[str, Any]]:
        """Return the user's parameters, which may be anything, to be shown; and the program."""
        return [*((name, _Shown(x)) for name, x in self.options), ("program", self.traced())]

    def programs(self) -> list[Program]:
        """Return the program."""
        return [self.traced()]

    @property
    def effects(self) -> frozenset[Any]:
        """Return the effects of the program; none while nobody needed it, as with a rule for types.

        A program with effects is refused in the latter case.
        """
        return frozenset() if self.program is None else self.program.effects

    def traced(self) -> Program:
        """Return the program of the implementation for these types, traced when first asked for."""
        if self.program is None:
            made = vars(self).get("made")
            if made is None:
                made = under(vars(self)["shaping"], self._trace)
                vars(self)["made"] = made
            return made
        return self.program

    def as_call(self) -> Call:
        """Return the call of the program, whose rules are those that are derived."""
        return Call(self.traced())

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return self.results

    def interpret(self, *args: Any) -> Sequence[Any]:
        """Run the implementation."""
        return self._computed(*args)

    def lower(self, b: Any, *operands: Any) -> Any:
        return b.program(self.traced(), operands)

    def inlined(self) -> Program:
        """Return the program: whoever inlines it has taken all derivatives already."""
        return self.traced()

    def padded(self, at: Any, *args: Any) -> Sequence[Any]:
        return tuple(at.run(self.traced(), args))

    def trimmed(self, equation: Equation, needed: Sequence[bool]) -> Equation:
        """Return it as it is: nothing is traced to see what is dead inside."""
        return equation

    def with_programs(self, change: Callable[[Program], Program]) -> UserPrimitive:
        """Return the same operation with its program changed."""
        program = self.traced()
        changed = change(program)
        if changed is program:
            return self
        return UserPrimitive(
            self.rules, self.arguments, self.options, self.results, self.structure, changed
        )

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        if self.rules.find("jvp") is None:
            return self.as_call().jvp(primals, tangents)
        return self._jvp(primals, tangents)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return the user's jvp rule, or that of the program."""
        if self.rules.find("jvp") is None:
            return self.as_call().linearize(primals, tangents)
        return self._jvp(primals, tangents)

    def linear_parts(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Give the operation itself, applied to the tangents, in which it is taken to be linear."""
        if self.rules.derives("jvp"):
            return self.as_call().linear_parts(primals, tangents)
        operands = [p if t is None else t for p, t in zip(primals, tangents, strict=True)]
        return [or_zeros(None, t) for t in self.results], apply_linear(self, *operands)

    def transpose(self, cts: Any, *args: Any) -> Sequence[Any]:
        if self.rules.find("transpose") is None:
            return self.as_call().transpose(cts, *args)
        return self._transpose(cts, args)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        if self.rules.find("vmap") is None:
            return self.as_call().vmap(size, args, axes)
        values = [x if a is None else move_to_front(x, a) for x, a in zip(args, axes, strict=True)]
        return self._vmap(size, values, [a is not None for a in axes])

    # What the user gave, called on flat values.

    def _computed(self, *values: Any) -> list[Any]:
        """Return what the implementation returns, checked to be what was inferred."""
        out = self.rules.fun(*self.arguments.every(values), **dict(self.options))
        caller = f"primitive: {self.name}"
        return fit_results(out, self.structure, self.results, caller, "what was inferred,")

    def _trace(self) -> Program:
        """Return the program of the implementation, if a rule gave the types of results."""
        arguments = self.arguments
        flat = lambda *values: (self._computed(*values), None)
        program, _ = record_closed(flat, arguments.types, self.name, arguments.paths())
        if observable(program.effects):
            raise TypeError(
                f"primitive: {self.name} calls Python for an effect, and has a rule by def_infer, "
                f"so that this was not known when it was recorded: leave out that rule"
            )
        return program

    def _called(self, rule: str, of: str, *args: Any) -> Any:
        """Return what a rule of the user's returns for these arguments."""
        given = self.rules.given[rule]
        return user_rule(of, (), (), lambda _: given(*args, **dict(self.options)))

    def _jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        symbolic, trees = self.rules.symbolic["jvp"], self.arguments.trees
        moving = [given_or_zero(p, t, symbolic) for p, t in zip(primals, tangents, strict=True)]
        caller = f"primitive: the jvp rule of {self.name}"
        result = self._called("jvp", caller, trees(primals), trees(moving))
        if not (isinstance(result, (tuple, list)) and len(result) == 2):
            raise TypeError(f"{caller} must return a pair (output, tangent), got {result!r}")
        like = self.structure, self.results, caller
        out = fit_results(result[0], *like, "an output")
        return out, fit_results(result[1], *like, "a tangent", tangent=True)

    def _transpose(self, cts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        symbolic = self.rules.symbolic["transpose"]
        filled = [given_or_zero(t, ct, symbolic) for t, ct in zip(self.results, cts, strict=True)]
        caller = f"primitive: the transpose rule of {self.name}"
        ct = tree.unflatten(self.structure, filled)
        result = self._called("transpose", caller, ct, *self.arguments.trees(args))
        back = self.arguments.cotangents(result, caller)
        return [ct if isinstance(a, Linear) else None for a, ct in zip(args, back, strict=True)]

    def _vmap(self, size: int, args: Sequence[Any], mapped: Sequence[bool]) -> tuple[Any, Any]:
        trees, caller = self.arguments.trees, f"primitive: the vmap rule of {self.name}"
        size = size if isinstance(size, AxisSize) else unnamed(size)
        result = self._called("vmap", caller, size, list(trees(mapped)), *trees(args))
        outs, varies = mapped_result(result, self.structure, self.results, size, caller)
        return outs, tuple(0 if v else None for v in varies)


class primitive(CustomFunction[P, R_co]):
    """An operation of one's own, which all transformations treat as a whole, by its rules.

    Called at rest, it runs ``impl``. Under a transformation it is one operation: programs show it
    under its name, and each transformation applies a rule, given with ``def_jvp``,
    ``def_transpose`` and ``def_vmap``. One that was not given is refused, unless ``derive`` names
    it: then it is that of ``impl``. When it is compiled, ``impl`` is traced and takes its place.

    Positional arguments are trees of arrays. Arguments that ``impl`` takes by name only are
    parameters: every rule gets them as they are. ``impl`` may compute with Stretto's functions, or
    with NumPy's in ``stretto.pure_callback``. It may use arrays from outside, but no traced ones.

    Args:
        fun: ``impl``, a function of arrays; its name is that of the operation.
        derive: the rules to take from ``impl``: any of ``"jvp"``, ``"transpose"`` and ``"vmap"``.

    Raises:
        TypeError: ``fun`` is not a function; or, in a call, an argument is no tree of arrays, a
            rule's result does not fit that of ``impl``, which names the leaf, or ``impl`` uses a
            traced value from outside.
        ValueError: ``derive`` names anything else.
        MissingRuleError: a transformation needs a rule that is neither given nor derived.

    >>> import stretto as st, stretto.numpy as snp
    >>> @st.primitive
    ... def power(x, *, n):
    ...     return x**n
    >>> @power.def_jvp
    ... def power_jvp(primals, tangents, *, n):
    ...     (x,), (dx,) = primals, tangents
    ...     return power(x, n=n), n * power(x, n=n - 1) * dx
    >>> float(st.grad(power)(2.0, n=3))
    12.0
    >>> st.vmap(lambda x: power(x, n=3))(snp.ones(3))
    Traceback (most recent call last):
    stretto._engine.core.errors.MissingRuleError: primitive: power has no rule for vmap: ...
    """

    kind = "primitive"

    def __init__(self, fun: Callable[P, R_co], derive: str | Sequence[str] = ()) -> None:
        super().__init__(fun)
        derived = frozenset((derive,) if isinstance(derive, str) else derive)
        unknown = sorted(derived - {*DERIVABLE}, key=str)
        if unknown:
            raise ValueError(
                f"primitive: derive must name some of {', '.join(map(repr, DERIVABLE))}; "
                f"got {unknown[0]!r}"
            )
        self.rules = Rules(self.name, fun, derived)
        self._operations: dict[Any, UserPrimitive] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Return the operation's value."""
        with boundary:
            positions, options = self._separate(args, kwargs)
            arguments, values = Arguments.of(self, positions)
            if state.interpreter.at_rest:
                out, structure = tree.flatten(self.fun(*arguments.every(values), **options))
                return tree.unflatten(structure, self._outputs(out))
            operation = self._operation(arguments, options)
            return tree.unflatten(operation.structure, operation(*values))

    def def_infer(self, infer: F) -> F:
        """Give the rule for the types of the results; without one, ``impl`` is traced for them.

        With it, ``impl`` may not call Python for an effect, as ``io_callback`` and ``debug.print``
        do.

        Args:
            infer: called as ``infer(*args, **parameters)``, where ``args`` are like the arguments,
                with things in place of arrays that have a ``shape`` and a ``dtype``; it returns a
                tree of such things, as of ``ShapeDtypeStruct``.

        Returns:
            The rule, so that this serves as a decorator.

        >>> import stretto as st
        >>> total = st.primitive(lambda x: x.sum())
        >>> rule = total.def_infer(lambda x: st.ShapeDtypeStruct((), x.dtype))
        >>> st.eval_shape(total, st.ShapeDtypeStruct((3,), "float32"))
        ShapeDtypeStruct(shape=(), dtype=float32)
        """
        return self._give("infer", infer)

    def def_jvp(self, jvp: F, symbolic_zeros: bool = False) -> F:
        """Give the rule for derivatives: forward ones, and reverse ones, which follow from it.

        A linear operation may be applied to the tangents, and then needs a rule to transpose it.

        Args:
            jvp: called as ``jvp(primals, tangents, **parameters)``, with tuples like the
                arguments; it returns the result and its tangent, linear in the tangents. Tangents
                of integers and booleans are zeros of dtype float0, and have to be for such results.
            symbolic_zeros: whether a tangent that is zero is a ``SymbolicZero``, and may be
                returned as one, instead of an array of zeros.

        Returns:
            The rule, so that this serves as a decorator.
        """
        return self._give("jvp", jvp, symbolic_zeros)

    def def_transpose(self, transpose: F, symbolic_zeros: bool = False) -> F:
        """Give the rule that runs the operation backwards, for arguments in which it is linear.

        Args:
            transpose: called as ``transpose(ct, *args, **parameters)``, where ``ct`` is like the
                result, and ``args`` like the arguments, with a ``Linear``, which has a shape and a
                dtype but no value, in place of each array whose cotangent is asked for. It returns
                a tuple of a cotangent for each argument; None stands for zero, and for an argument
                whose cotangent was not asked for.
            symbolic_zeros: whether a part of ``ct`` that is zero is a ``SymbolicZero`` instead of
                an array of zeros.

        Returns:
            The rule, so that this serves as a decorator.

        >>> import stretto as st, stretto.numpy as snp
        >>> @st.primitive
        ... def double(x):
        ...     return x + x
        >>> rule = double.def_jvp(lambda primals, tangents: (double(*primals), double(*tangents)))
        >>> rule = double.def_transpose(lambda ct, x: (double(ct),))
        >>> float(st.grad(double)(1.0))
        2.0
        """
        return self._give("transpose", transpose, symbolic_zeros)

    def def_vmap(self, vmap_rule: F) -> F:
        """Give the rule for several examples at once.

        Args:
            vmap_rule: called as ``vmap_rule(axis_size, in_batched, *args, **parameters)``, as that
                of ``custom_vmap``: with a boolean, or a tree of them, for each argument, which say
                what is mapped, and has its examples along axis 0; it returns the result and a tree
                of booleans like it.

        Returns:
            The rule, so that this serves as a decorator.
        """
        return self._give("vmap", vmap_rule)

    def check_rules(self) -> None:
        """None is needed to call it."""

    def _give(self, name: str, rule: F, symbolic_zeros: bool = False) -> F:
        if not callable(rule):
            raise TypeError(
                f"primitive: def_{name} of {self.name} takes a function, got {type(rule).__name__}"
            )
        self.rules.given[name], self.rules.symbolic[name] = rule, symbolic_zeros
        self._operations.clear()
        return rule

    def _separate(self, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments by position, and the parameters, each with defaults."""
        if self._signature is None or (not kwargs and len(args) == self._count):
            return args, kwargs
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.kind}: {self.name}: {error}") from None
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _operation(self, arguments: Arguments, options: dict[str, Any]) -> UserPrimitive:
        """Give the operation for arguments of these types; the same one if there was one before."""
        key = (tuple(arguments.types), arguments.structure, *sorted(options.items()), settings.key)
        try:
            known = self._operations.get(key)
        except TypeError:  # a parameter cannot be hashed
            return self._make(arguments, options)
        if known is None:
            known = self._make(arguments, options)
            room(self._operations, _CAPACITY)[key] = known
        return known

    def _make(self, arguments: Arguments, options: dict[str, Any]) -> UserPrimitive:
        infer = self.rules.given.get("infer")
        if infer is None:
            program, structure = self._traced(arguments, options)
            types = program.out_types
        else:
            program, caller = None, f"primitive: the rule of {self.name} for types"
            out = infer(*arguments.trees(arguments.types), **options)
            types, structure = declared_types(out, caller)
            weak = [getattr(leaf, "weak_type", False) for leaf in tree.leaves(out)]
            types = [array_type(t.shape, t.dtype, bool(w)) for t, w in zip(types, weak)]
        every = tuple(options.items())
        return UserPrimitive(self.rules, arguments, every, tuple(types), structure, program)

    def _traced(self, arguments: Arguments, options: dict[str, Any]) -> tuple[Program, Any]:
        """Return the program of the implementation, and the structure of its result."""

        def flat(*values: Any) -> Any:
            leaves, structure = tree.flatten(self.fun(*arguments.every(values), **options))
            return self._outputs(leaves), structure

        return record_closed(flat, arguments.types, self.name, arguments.paths())
