"""A user's Python function, as operations call it: with arrays, for results of declared types.

Compiled programs call it in threads of their own. It runs as if nothing were being traced, and
under the settings that were current when the call was traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.config import shaping, under
from stretto._engine.core.holding import holding
from stretto._engine.core.interpreter import (
    Tracer,
    Value,
    as_value,
    constant,
    refuse_masked,
    state,
)
from stretto._engine.core.types import ArrayType, array_type, canonical_dtype, kind_of, promote
from stretto._engine.higher_order.family import parting

_SCALARS = (bool, int, float, complex)


class Host:
    """A function, with everything that its calls have in common.

    ``arguments`` is the structure of its arguments, and ``static`` has the leaves of it that are
    not arrays, by position. What the function returns must have the structure ``results``, or is
    ignored if that is ``None``.
    """

    def __init__(
        self,
        caller: str,
        function: Callable[..., Any],
        arguments: Any,
        static: dict[int, Any],
        results: Any,
    ) -> None:
        self.caller = caller
        self.function = function
        self.arguments = arguments
        self.static = static
        self.results = results
        self.settings = shaping()

    @property
    def name(self) -> str:
        """The function's name."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __repr__(self) -> str:
        return self.name

    def __call__(self, values: Sequence[Any], types: Sequence[ArrayType]) -> list[Any]:
        """Call the function on arrays; return its results, of these types."""
        arrays = iter(values)
        count = len(values) + len(self.static)
        leaves = [self.static[i] if i in self.static else next(arrays) for i in range(count)]
        args, kwargs = tree.unflatten(self.arguments, leaves)

        def run() -> list[Any]:
            out = self.function(*args, **kwargs)
            return [] if self.results is None else self._checked(out, types)

        return holding(state, "interpreter", state.eager, under, self.settings, run)

    def _checked(self, out: Any, types: Sequence[ArrayType]) -> list[Any]:
        leaves, structure = tree.flatten(out)
        if structure != self.results:
            raise TypeError(
                f"{self.caller}: {self.name} must return a tree like result_shape_dtypes; they "
                f"part at {parting(self.results, structure, 'result')}"
            )
        paths = tree.paths(out, "result")
        return [
            self._result(leaf, t, path) for leaf, t, path in zip(leaves, types, paths, strict=True)
        ]

    def _result(self, leaf: Any, type: ArrayType, path: str) -> Any:
        """The leaf as an array of the declared type; a Python number may have any that it fits."""
        if leaf.__class__ in _SCALARS:
            got = as_value(leaf, self.caller, path).type
            both = [(type.dtype, False), (got.dtype, got.weak_type)]
            if not type.shape and promote(both)[0] == type.dtype:
                return constant(np.asarray(leaf, type.dtype))
        elif isinstance(leaf, Tracer):
            leaf.escaped()
        else:
            refuse_masked(leaf, self.caller, path)
            host = leaf.to_host() if isinstance(leaf, Value) else np.asarray(leaf)
            kind_of(host.dtype)  # refuses strings, objects, dates
            got = array_type(host.shape, host.dtype)
            if (got.shape, got.dtype) == (type.shape, type.dtype):
                return constant(host if isinstance(leaf, Value) else np.array(host, order="C"))
        ways = ["declare what it returns"]
        if got.size == type.size and got.shape != type.shape:
            ways.insert(0, f"reshape it with .reshape({type.shape})")
        if got.dtype != type.dtype:
            ways.insert(0, f"convert it with .astype({type.dtype.name!r})")
        raise TypeError(
            f"{self.caller}: {self.name} must return {type} for {path}, as result_shape_dtypes "
            f"declares; it returned {got}: {', or '.join(ways)}"
        )


def declared(result_shape_dtypes: Any, caller: str) -> tuple[list[ArrayType], Any]:
    """The types and the structure of a tree of things with shape and dtype.

    Raises ``TypeError`` for a leaf without them, ``ValueError`` for 64-bit types with
    ``enable_x64`` off.
    """
    leaves, structure = tree.flatten(result_shape_dtypes)
    types = []
    for leaf, path in zip(leaves, tree.paths(result_shape_dtypes, "result"), strict=True):
        if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
            raise TypeError(
                f"{caller}: result_shape_dtypes must be a tree of stretto.ShapeDtypeStruct or "
                f"arrays, got {type(leaf).__name__} for {path}"
            )
        dtype = np.dtype(leaf.dtype)
        kind_of(dtype)
        if canonical_dtype(dtype) != dtype:
            raise ValueError(
                f"{caller}: result_shape_dtypes declares {dtype.name} for {path}, but "
                f"enable_x64 is off: declare {canonical_dtype(dtype).name}, or run under "
                f"stretto.enable_x64()"
            )
        types.append(array_type(tuple(leaf.shape), dtype))
    return types, structure


def separate(leaves: Sequence[Any]) -> tuple[list[Any], dict[int, Any]]:
    """The leaves that are arrays or numbers, as values; and the others, by position."""
    values, static = [], {}
    for i, leaf in enumerate(leaves):
        try:
            values.append(as_value(leaf))
        except (TypeError, OverflowError):
            static[i] = leaf
    return values, static
