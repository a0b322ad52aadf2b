"""The leaves of a function's arguments: their values, their names, and the way back.

Arguments are trees; what is below this layer knows flat lists of values only. These functions
flatten the one into the other, and know the name of each leaf for messages.

References among them, and those that a jitted function takes from outside: a trace notes which it
uses, and calls read and write these. Their values are arguments of the compiled program, and what
was written to them are results. Those that are passed differ from call to call; those taken from
outside are found while tracing, and are read and written again by each call.

``Flat`` makes a function of flat values, which all derivatives take, of the user's function of
trees, and ``Chosen`` reduces that to the arguments in ``argnums``.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.autodiff.linearize import LinearMap
from stretto._engine.autodiff.transpose import backward
from stretto._engine.core import tree
from stretto._engine.core.boundary import bounded
from stretto._engine.core.cells import Cell, giving, values_of_cells, write_all
from stretto._engine.core.errors import RefError
from stretto._engine.core.functions import described, name_of, signature_of
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.program import Program
from stretto._engine.core.tree import left_out
from stretto._engine.core.types import ArrayType, float0, is_complex, is_float0, is_inexact
from stretto._engine.higher_order.refs import Parts, Ref


def wraps(fun: Callable[..., Any], verb: str) -> Callable[[Any], Any]:
    """Give a transformed function the name and documentation of the one it was made from.

    Its errors show no frames of this package. Raises ``TypeError`` if ``fun`` is not a function.
    """
    if not callable(fun):
        raise TypeError(f"{verb}: expected a function, got {type(fun).__name__}")

    def decorate(transformed: Any) -> Any:
        call: Any = bounded(transformed)
        call.__wrapped__ = fun
        call.__name__ = call.__qualname__ = f"{verb}_{name_of(fun)}"
        call.__doc__ = getattr(fun, "__doc__", None)
        call.__module__ = getattr(fun, "__module__", None) or __name__
        return call

    return decorate


def argument_names(fun: Callable[..., Any], count: int) -> list[str]:
    """Return the names of a function's first ``count`` positional arguments."""
    signature = signature_of(fun)
    names: list[str] = []
    for parameter in signature.parameters.values() if signature else ():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            while len(names) < count:
                names.append(f"{parameter.name}[{len(names)}]")
    names.extend(f"args[{i}]" for i in range(len(names), count))
    return names[:count]


def leaf_names(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    paths: Callable[[Any, str], list[str]] = tree.paths,
) -> list[str]:
    """Return each leaf of the arguments as an expression in Python: ``params['w'][0]``.

    ``args`` and ``kwargs`` are trees, or with ``tree.paths_of`` for ``paths`` their structures.
    """
    names = [
        path
        for name, arg in zip(argument_names(fun, len(args)), args, strict=True)
        for path in paths(arg, name)
    ]
    for key in sorted(kwargs or {}):
        names.extend(paths((kwargs or {})[key], key))
    return names


class LeafNames(Sequence[str]):
    """The result of ``leaf_names``, computed when first read: it takes longer than most calls."""

    def __init__(self, *of: Any) -> None:
        self._of = of

    @functools.cached_property
    def _names(self) -> list[str]:
        return leaf_names(*self._of)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, i: Any) -> Any:
        return self._names[i]


def as_argnums(argnums: int | Sequence[int], count: int, caller: str) -> tuple[int, ...]:
    """Return positions of arguments, made non-negative.

    Raises ``TypeError`` for what is not an int, or names a missing argument; ``ValueError`` for an
    argument that is named twice.
    """
    if isinstance(argnums, int) and 0 <= argnums < count:
        return (argnums,)
    entries: tuple[Any, ...] = tuple(argnums) if isinstance(argnums, (tuple, list)) else (argnums,)
    try:
        positions = tuple([operator.index(i) for i in entries])
    except TypeError:
        raise TypeError(
            f"{caller}: argnums must be an int or a sequence of ints, got {argnums!r}"
        ) from None
    for i in positions:
        if not -count <= i < count:
            raise TypeError(
                f"{caller}: argnums names argument {i}, but the function was called with {count} "
                f"positional arguments"
            )
    chosen = tuple(i % count for i in positions)
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"{caller}: argnums names an argument twice: {argnums!r}")
    return chosen


def as_values(leaves: Sequence[Any], caller: str, names: Callable[[], Sequence[str]]) -> list[Any]:
    """Return the leaves as values.

    ``TypeError`` names the first leaf that is not a value, ``OverflowError`` that of integers that
    do not fit.
    """
    try:
        return [leaf if isinstance(leaf, Value) else as_value(leaf, caller) for leaf in leaves]
    except (TypeError, OverflowError) as error:
        problem: Exception = error
    for leaf, name in zip(leaves, names(), strict=True):
        as_value(leaf, caller, name)
    raise problem


LEAF = tree.structure(0)
"""The structure of one leaf alone."""


class Nothing:
    """Stands for float0 zeros: a node without leaves, unflattened to such zeros of ``shape``."""

    __slots__ = ("shape",)

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


tree.register_pytree_node(
    Nothing, lambda x: ((), x.shape), lambda shape, _: np.zeros(shape, float0)
)


def without_float0(x: Any, lead: tuple[int, ...] = ()) -> Any:
    """Return the tree with float0 zeros replaced by nodes without leaves.

    Gradients by integers are such zeros; they hold nothing that could be computed. When the tree is
    put together again they come back, with leading axes ``lead``.
    """
    if not holds_float0(tree.leaves(x)):
        return x
    return tree.map(lambda leaf: Nothing((*lead, *leaf.shape)) if is_float0(leaf) else leaf, x)


def holds_float0(leaves: Sequence[Any]) -> bool:
    """Say if any leaf is float0 zeros."""
    return any([not isinstance(leaf, Value) and is_float0(leaf) for leaf in leaves])


def values_of_tree(x: Any, caller: str, root: str) -> tuple[list[Any], Any]:
    """Return the leaves of a tree as values, and its structure; messages call the tree ``root``."""
    if isinstance(x, Value):  # most results are a single value
        return [x], LEAF
    leaves, structure = tree.flatten(x)
    return as_values(leaves, caller, lambda: tree.paths(x, root)), structure


class RefUses(NamedTuple):
    """The references that the trace of a signature uses; the program's results are then a triple.

    That is the function's own result, the new values of references that were passed, and those of
    references from outside.
    """

    given: Sequence[int]
    """The positions of the references passed that it writes."""
    outside: Sequence[Cell]
    """The references from outside, in the order of the program's inputs after the leaves."""
    written: Sequence[Cell]
    """The references from outside that it writes."""

    def leaves(self, own: Sequence[Any], refs: Mapping[int, Ref], name: str) -> list[Any]:
        """Return the leaves of the arguments, and the values of the references from outside."""
        for ref in refs.values():
            if ref in self.outside:
                raise RefError(
                    f"{name}: one reference of type {ref.type} is passed as an argument and taken "
                    f"from outside, so that the two would not be told apart: do one of the two"
                )
        return [*own, *values_of_cells(self.outside)]

    def write(self, results: Any, refs: Mapping[int, Ref]) -> Any:
        """Write the new values to the references, and return the function's own result."""
        if not (self.given or self.written):
            return results
        result, given, values = results
        write_all([refs[i] for i in self.given], given)
        write_all(self.written, values)
        return result


class RefRecorder:
    """The function of leaves that is traced; it records which references it reads and writes.

    Args:
        fun: a function of all leaves, some of which are references.
        kinds: the positions of these, and what tells references to keys from those to arrays.
        name: what messages call the function.
    """

    def __init__(
        self, fun: Callable[..., Any], kinds: Sequence[tuple[int, Any]], name: str
    ) -> None:
        self._name = name
        self._parts = Parts(fun, dict(kinds))
        self._written: list[Any] = []
        self._giving = giving(self._parts, self._written, kept=True)

    def __call__(self, *leaves: Any) -> tuple[list[Any], Any]:
        """Return the values of the result, or of the triple, and the structure of that."""
        (result, given), values = self._giving(*leaves)
        result = without_float0(result)
        whole = (result, given, values) if given or values else result
        return values_of_tree(whole, self._name, "the result")

    def uses(
        self, program: Program, captured: Sequence[Any], own: int
    ) -> tuple[RefUses | None, Program, list[Any]]:
        """Return what it uses, the program, and the values that this captured besides references.

        The inputs for references come before those for the other captured values.
        """
        found = [i for i, c in enumerate(captured) if isinstance(c, Cell)]
        given = self._parts.changed
        if not (found or given or self._written):
            return None, program, list(captured)
        others = [i for i in range(len(captured)) if i not in found]
        inputs = program.inputs[:own]
        inputs += tuple([program.inputs[own + i] for i in (*found, *others)])
        uses = RefUses(tuple(given), tuple([captured[i] for i in found]), tuple(self._written))
        ordered = Program(inputs, program.equations, program.outputs, program.name)
        return uses, ordered, [captured[i] for i in others]


def kinds_of(refs: Mapping[int, Ref]) -> tuple[tuple[int, Any], ...]:
    """Return the positions of references, with what tells those to keys from those to arrays."""
    return tuple([(i, ref.structure) for i, ref in refs.items()])


OF_DERIVATIVE = {
    "argnums": "the position of the argument to differentiate by, or several.",
    "has_aux": "whether ``fun`` returns a pair (output, aux), of which aux has no derivative.",
    "holomorphic": "whether arguments and result are complex and ``fun`` is holomorphic.",
    "allow_int": """whether integers may be differentiated by; their derivatives are float0 zeros.
        A module's buffers always may.""",
    "chunk_size": "how many elements at a time, in less memory; all at once by default.",
}
of_derivative = described(OF_DERIVATIVE)
"""Complete the docstring of a function that differentiates another."""


class Flat:
    """A function of trees as one of flat values; remembers the structure of its result.

    Leaves of aux that are not arrays are passed on as they are.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        structure: Any,
        has_aux: bool,
        caller: str,
        name: str | None = None,
    ) -> None:
        self.fun, self.structure, self.has_aux, self.caller = fun, structure, has_aux, caller
        self.name = name or name_of(fun)
        self.out: Any = None
        self.aux: Any = None
        self.aux_leaves: list[Any] = []
        self.count = 0

    def __call__(self, *leaves: Any) -> list[Any]:
        """Return the leaves of the output, then the arrays among those of aux."""
        result = self.fun(*tree.unflatten(self.structure, leaves))
        if not self.has_aux:
            outs, self.out = values_of_tree(result, self.name, "the result")
            self.count = len(outs)
            return outs
        if not (isinstance(result, (tuple, list)) and len(result) == 2):
            raise TypeError(
                f"{self.caller}: with has_aux=True the function must return a pair (output, aux), "
                f"got {type(result).__name__}"
            )
        result, aux = result
        outs, self.out = values_of_tree(result, self.name, "the result")
        self.aux_leaves, self.aux = tree.flatten(aux)
        self.count = len(outs)
        return [*outs, *(x for x in self.aux_leaves if isinstance(x, Value))]

    def rebuild(self, values: Sequence[Any]) -> tuple[Any, Any]:
        """Return the output, and aux, or None if there is none."""
        out = values[0] if self.out is LEAF else tree.unflatten(self.out, values[: self.count])
        if not self.has_aux:
            return out, None
        arrays = iter(values[self.count :])
        aux = [next(arrays) if isinstance(x, Value) else x for x in self.aux_leaves]
        return out, tree.unflatten(self.aux, aux)


def is_active(value: Any) -> bool:
    """Say if derivatives can be taken with respect to this value."""
    return value.type.kind in ("float", "complex")


def pull_back(linear: LinearMap, cts: Sequence[Any]) -> list[Any]:
    """Return cotangents of all inputs, ``None`` for zero, from those of all outputs."""
    outs = [ct for ct, m in zip(cts, linear.active_out, strict=True) if m]
    residuals = linear.residuals
    mask = [True] * (len(linear.program.inputs) - len(residuals)) + [False] * len(residuals)
    back = backward(linear.program, mask, residuals, outs)
    if len(back) == len(linear.active_in):
        return back
    active = iter(back)
    return [next(active) if a else None for a in linear.active_in]


class Chosen:
    """A function of only those arguments that derivatives are taken by; the others are fixed."""

    def __init__(
        self, fun: Any, args: Sequence[Any], kwargs: Any, positions: Sequence[int], caller: str
    ) -> None:
        self.fun, self.args, self.kwargs = fun, args, kwargs
        self.positions, self.caller = positions, caller
        leaves, self.structure = tree.flatten(tuple([args[i] for i in positions]))
        self.values = as_values(leaves, caller, self.paths)

    def paths(self) -> list[str]:
        """Return the leaves of the chosen arguments as expressions in Python."""
        names = argument_names(self.fun, len(self.args))
        return [path for i in self.positions for path in tree.paths(self.args[i], names[i])]

    def __call__(self, *chosen_args: Any) -> Any:
        """Return the function's result with these values for the chosen arguments."""
        args = list(self.args)
        for i, x in zip(self.positions, chosen_args, strict=True):
            args[i] = x
        return self.fun(*args, **self.kwargs)

    def check(self, holomorphic: bool, allow_int: bool) -> None:
        """Raise ``TypeError``, naming the leaf, for a type that has no such derivative.

        Integers among the leaves that their node leaves out are as with ``allow_int``: a module's
        buffers.
        """
        for k, value in enumerate(self.values):
            if value.type.kind == "float" and not holomorphic:
                continue
            problem = _not_differentiable(value.type, holomorphic, allow_int, self.caller)
            if problem:
                chosen = tuple([self.args[i] for i in self.positions])
                exempt = left_out(chosen, self.structure)
                if is_inexact(value.type.dtype) or k not in exempt:
                    raise TypeError(f"{self.caller}: {self.paths()[k]} {problem}")


def _not_differentiable(
    type: ArrayType, holomorphic: bool, allow_int: bool, caller: str
) -> str | None:
    if holomorphic:
        if not is_complex(type.dtype):
            return f"must be complex with holomorphic=True, got {type}"
    elif is_complex(type.dtype) and caller == "jacfwd":
        # In reverse, a real result of complex arguments has one row; a forward derivative would
        # need two directions for each element.
        return (
            f"is complex ({type}); pass holomorphic=True for a holomorphic function, or take "
            f"derivatives of real and imaginary parts"
        )
    elif not is_inexact(type.dtype) and not allow_int:
        return (
            f"must be of a floating dtype, got {type}; convert it with .astype(float), or pass "
            f"allow_int=True for float0 gradients"
        )
    return None


def chosen(fun: Any, args: Any, kwargs: Any, argnums: int | Sequence[int], caller: str) -> Chosen:
    """Return the function of the arguments that ``argnums`` names."""
    return Chosen(fun, args, kwargs, as_argnums(argnums, len(args), caller), caller)
