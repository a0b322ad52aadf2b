"""Functions with the user's own vmap rule: ``custom_vmap``, ``sequential_vmap``.

They share ``custom_function`` with the custom derivatives; read that first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.jvp import instantiate, jvp_flat, jvp_program
from stretto._engine.autodiff.vmap import to_axis
from stretto._engine.core import tree
from stretto._engine.core.program import Equation, Program, Var
from stretto._engine.core.sizes import unnamed
from stretto._engine.core.types import ArrayType
from stretto._engine.higher_order.custom_function import (
    Arguments,
    CustomFunction,
    P,
    R_co,
    WithRule,
    fit_results,
    user_rule,
)
from stretto._engine.higher_order.family import Call, linearize_call, parting
from stretto._engine.higher_order.loops import map_
from stretto._engine.ops.layout import move_to_front

F = TypeVar("F", bound=Callable[..., Any])


class CustomVmap(WithRule):
    """A program; ``rule(size, mapped, args)`` gives outputs, and which have examples on axis 0."""

    takes_masked = True

    def inlined(self) -> None:
        """Return None: under ``vmap`` the rule must take its place, not the program."""
        return

    def where(self, equation: Equation, live: Var, keep_rules: bool) -> Equation:
        """Return the equation as it is: what examples are computed is the rule's affair."""
        return equation

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        values = [x if a is None else move_to_front(x, a) for x, a in zip(args, axes, strict=True)]
        outs, mapped = self.rule(unnamed(size), [a is not None for a in axes], values)
        return outs, tuple(0 if m else None for m in mapped)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return the program of values and tangents, whose rule is the derivative of the rule."""
        active = tuple(t is not None for t in tangents)
        program, mask = jvp_program(self.program, active)
        operation = CustomVmap(program, _derivative(self.rule, active, mask))
        outs = operation(*primals, *(t for t in tangents if t is not None))
        douts = iter(outs[len(mask) :])
        return outs[: len(mask)], [next(douts) if m else None for m in mask]

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Linearize the program: the rule gives no residuals, so from here on it has no effect."""
        return linearize_call(self.program, evaluate, primals, tangents)

    def transpose(self, cts: Any, *args: Any) -> Sequence[Any]:
        return Call(self.program).transpose(cts, *args)


def _derivative(rule: Callable[..., Any], active: Sequence[bool], mask: Sequence[bool]) -> Any:
    """Return the rule for values and tangents.

    If only one of a value and its tangent is mapped, the other is repeated for all examples.
    """

    def derivative(size: int, mapped: Sequence[bool], args: Sequence[Any]) -> Any:
        count = len(active)
        numbers = iter(range(count, len(args)))
        numbered = [next(numbers) if a else None for a in active]
        both = [m or bool(k and mapped[k]) for m, k in zip(mapped[:count], numbered, strict=True)]

        def placed(i: int, wanted: bool) -> Any:
            return to_axis(args[i], size, 0 if mapped[i] else None, 0 if wanted else None)

        primals = [placed(i, b) for i, b in enumerate(both)]
        tangents = [
            None if k is None else placed(k, b) for k, b in zip(numbered, both, strict=True)
        ]
        varies: list[bool] = []

        def fun(*xs: Any) -> Any:
            nonlocal varies
            outs, varies = rule(size, both, xs)
            return outs

        outs, douts = jvp_flat(fun, primals, tangents)
        douts = instantiate(outs, douts, mask)
        moving = [t for t, m in zip(douts, mask, strict=True) if m]
        return [*outs, *moving], [*varies, *(v for v, m in zip(varies, mask, strict=True) if m)]

    return derivative


class custom_vmap(CustomFunction[P, R_co]):
    """A function whose ``vmap`` the user gives.

    ``@f.def_vmap`` takes a function of the number of examples, a list with a tree of booleans for
    each argument, which say what is mapped, and the arguments, with their examples along axis 0
    where they are. It returns the result, and a tree of booleans like it that say the same about
    the result. The rule may use ``vmap`` and ``f``; with nested vmaps it is applied for each in
    turn, the innermost first.

    A forward derivative under ``vmap`` is that of the rule. A reverse derivative of ``f`` is that
    of the function, and its ``vmap`` is an ordinary one; taken of a ``vmap`` of ``f``, it is that
    of the rule.

    Args:
        fun: the function.

    Raises:
        TypeError: ``fun`` is not a function; or, in a call, what the rule returns does not fit the
            function's result, which names the leaf, or a value that the function takes from
            outside is mapped.
        AttributeError: in a call, no rule was given.

    >>> import stretto as st, stretto.numpy as snp
    >>> @st.custom_vmap
    ... def total(x):
    ...     return snp.sum(x)
    >>> @total.def_vmap
    ... def rule(axis_size, in_batched, x):
    ...     return x @ snp.ones(x.shape[-1]), in_batched[0]
    >>> st.vmap(total)(snp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([3., 7.], dtype=float32)
    """

    kind = "custom_vmap"
    _rule: Callable[..., Any] | None = None

    def __init__(self, fun: Callable[P, R_co]) -> None:
        super().__init__(fun)

    def def_vmap(self, vmap_rule: F) -> F:
        """Give the rule; return it, so that this serves as a decorator.

        Args:
            vmap_rule: called as ``vmap_rule(axis_size, in_batched, *args)``, with a boolean, or a
                tree of them, for each argument; it returns the result and a tree of booleans like
                it.

        Returns:
            The rule.
        """
        self._rule = vmap_rule
        return vmap_rule

    def check_rules(self) -> None:
        """Raise ``AttributeError`` if there is no rule."""
        if self._rule is None:
            raise AttributeError(f"{self.kind}: {self.name} has no rule; give one with def_vmap")

    def operation(
        self, arguments: Arguments, program: Program, structure: Any, captured: Sequence[Any]
    ) -> CustomVmap:
        """Return the program with the rule, on flat values."""
        user_function, count = self._rule, len(arguments.types)
        caller = f"{self.kind}: the rule of {self.name}"
        assert user_function is not None

        def rule(size: int, mapped: Sequence[bool], args: Sequence[Any]) -> Any:
            for value, m in zip(captured, mapped[count:], strict=True):
                if m:
                    raise TypeError(
                        f"{self.kind}: {self.name} takes a value of type {value.type} from outside "
                        f"that is mapped ({value.origin()}), of which its rule is not informed; "
                        f"pass it as an argument"
                    )

            def call(present: Callable[[Any], Any]) -> tuple[list[Any], list[bool]]:
                result = user_function(
                    size, list(arguments.trees(mapped[:count])), *arguments.trees(args[:count])
                )
                outs, varies = mapped_result(result, structure, program.out_types, size, caller)
                return [present(o) for o in outs], varies

            return user_rule(caller, captured, args[count:], call)

        return CustomVmap(program, rule)


def mapped_result(
    result: Any, structure: Any, types: Sequence[ArrayType], size: int, caller: str
) -> tuple[list[Any], list[bool]]:
    """Check what a rule for ``size`` examples returned; return the outputs, and which are mapped.

    ``types`` are those of one example.
    """
    if not (isinstance(result, (tuple, list)) and len(result) == 2):
        raise TypeError(
            f"{caller} must return a pair (result, booleans that say which arrays are mapped), "
            f"got {result!r}"
        )
    varies = _flags(result[1], structure, caller)
    whole = [t.with_shape((size, *t.shape)) if v else t for t, v in zip(types, varies, strict=True)]
    return fit_results(result[0], structure, whole, caller, "an output"), varies


def _flags(flags: Any, structure: Any, caller: str) -> list[bool]:
    """Return the booleans of a tree of this structure."""
    leaves, flags_structure = tree.flatten(flags)
    if flags_structure != structure:
        raise TypeError(
            f"{caller} must return, second, a boolean for each array of the function's output; "
            f"they part at {parting(structure, flags_structure, 'output')}"
        )
    for leaf in leaves:
        if not isinstance(leaf, (bool, np.bool_)):
            raise TypeError(f"{caller} must return, second, booleans; got {leaf!r}")
    return [bool(leaf) for leaf in leaves]


class _SequentialVmap(custom_vmap[P, R_co]):
    kind = "sequential_vmap"


def sequential_vmap(f: Callable[P, R_co]) -> custom_vmap[P, R_co]:
    """Make a function that ``vmap`` applies to one example at a time, in a loop (``lax.map``).

    For a function that needs so much memory, or is so irregular, that all examples at once would be
    worse. What ``custom_vmap`` says about derivatives holds here: the reverse derivative of ``f``,
    mapped, is computed for all examples at once.

    Args:
        f: the function.

    Returns:
        A function of the same arguments.

    Raises:
        TypeError: ``f`` is not a function.

    >>> import stretto as st, stretto.numpy as snp
    >>> square = sequential_vmap(lambda x: x * x)
    >>> st.vmap(square)(snp.array([1.0, 2.0, 3.0]))
    Array([1., 4., 9.], dtype=float32)
    """
    function: Any = _SequentialVmap(f)

    @function.def_vmap
    def rule(axis_size: int, in_batched: Sequence[Any], *args: Any) -> Any:
        leaves, structure = tree.flatten(args)
        mapped = tree.leaves(in_batched)

        def one(examples: Sequence[Any]) -> Any:
            own = iter(examples)
            every = [next(own) if m else x for x, m in zip(leaves, mapped, strict=True)]
            return function(*tree.unflatten(structure, every))

        moving = [x for x, m in zip(leaves, mapped, strict=True) if m]
        out = map_(one, moving) if moving else one(())
        return out, tree.map(lambda _: bool(moving), out)

    return function
