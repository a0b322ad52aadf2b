"""Functions of trees as functions of flat values, which all derivatives take.

``transforms`` works on functions of flat values; ``Flat`` makes one of the user's function, and
``Chosen`` reduces that to the arguments in ``argnums``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.api.argument_leaves import (
    LEAF,
    argument_names,
    as_argnums,
    as_values,
    values_of_tree,
)
from stretto._engine.autodiff.linearize import LinearMap
from stretto._engine.autodiff.transpose import backward
from stretto._engine.core import tree
from stretto._engine.core.functions import described, name_of
from stretto._engine.core.interpreter import Value
from stretto._engine.core.tree import left_out
from stretto._engine.core.types import ArrayType, is_complex, is_inexact

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
            problem = _problem(value.type, holomorphic, allow_int, self.caller)
            if problem:
                chosen = tuple([self.args[i] for i in self.positions])
                exempt = left_out(chosen, self.structure)
                if is_inexact(value.type.dtype) or k not in exempt:
                    raise TypeError(f"{self.caller}: {self.paths()[k]} {problem}")


def _problem(type: ArrayType, holomorphic: bool, allow_int: bool, caller: str) -> str | None:
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
