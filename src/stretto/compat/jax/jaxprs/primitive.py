"""Primitives as equations name them: each is one object, which ``bind`` applies."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from stretto._engine.core.interpreter import as_value, state
from stretto._engine.core.threads import holding
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.elementwise import Elementwise
from stretto.compat.jax import jaxprs
from stretto.compat.jax.avals import aval_of, type_of_aval, unwrap_keys

F = TypeVar("F", bound=Callable[..., Any])


class Primitive:
    """An operation that a library makes, with its rules in the tables of ``jax.interpreters``.

    Args:
        name: what programs call it.
    """

    multiple_results = False
    call_primitive = False
    map_primitive = False
    ref_primitive = False
    skip_canonicalization = False
    is_effectful = None

    def __init__(self, name: str) -> None:
        self.name = name
        self._impl: Callable[..., Any] | None = None
        self._abstract_eval: Callable[..., Any] | None = None
        self.effectful = False
        """True where ``abstract_eval`` gives effects as well."""
        self.operation: Any = None
        """The operation that it is here, once it was applied; see ``own``."""

    def __repr__(self) -> str:
        return self.name

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply it: one result, or a list of them if ``multiple_results``."""
        outs = jaxprs.own.apply(self, args, params)
        return list(outs) if self.multiple_results else outs

    def bind_with_trace(self, trace: Any, args: Any, *more: Any) -> Any:
        """Call ``bind`` under this trace; the parameters come last, as a dictionary."""
        return holding(state, "interpreter", trace, functools.partial(self.bind, **more[-1]), *args)

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters, with the functions among them, if any, as ``subfuns``."""
        return params

    def def_impl(self, impl: F) -> F:
        """Give the function that computes it."""
        self._impl = impl
        return impl

    def def_abstract_eval(self, abstract_eval: F) -> F:
        """Give the rule from abstract values of the operands to those of the results."""
        self._abstract_eval, self.effectful = abstract_eval, False
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval: F) -> F:
        """Set the rule for abstract values, one that gives effects, second."""
        self._abstract_eval, self.effectful = abstract_eval, True
        return abstract_eval

    def impl(self, *args: Any, **params: Any) -> Any:
        """Compute it."""
        if self._impl is None:
            raise NotImplementedError(
                f"primitive {self.name} has no implementation: give one with def_impl"
            )
        return self._impl(*args, **params)

    def abstract_eval(self, *avals: Any, **params: Any) -> Any:
        """Return the abstract values of the results, and the effects."""
        if self._abstract_eval is None:
            raise NotImplementedError(
                f"primitive {self.name} has no rule for abstract values: give one with "
                f"def_abstract_eval"
            )
        out = self._abstract_eval(*avals, **params)
        return out if self.effectful else (out, frozenset())

    @property
    def has_abstract_eval(self) -> bool:
        """True where there is a rule for abstract values."""
        return self._abstract_eval is not None


class CallPrimitive(Primitive):
    """A primitive that applies a function."""

    multiple_results = True
    call_primitive = True


class KnownPrimitive(Primitive):
    """A primitive that is an operation of Stretto's.

    ``build`` makes that from the parameters and the operands' types; ``order`` says which of JAX's
    operands each of Stretto's is, where that differs, and ``results`` of as many results.
    """

    def __init__(
        self,
        name: str,
        build: Callable[[dict[str, Any], tuple[ArrayType, ...]], Any],
        multiple: bool = False,
        order: tuple[int, ...] | None = None,
        results: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(name)
        self.build = build
        self.multiple_results = multiple
        self.order, self.results = order, results
        self.subfuns: Callable[[dict[str, Any]], Any] | None = None
        """Gives the functions that a call with rules of its own holds, from its parameters."""

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters, with the functions among them, if any, as ``subfuns``."""
        return params if self.subfuns is None else {**params, "subfuns": self.subfuns(params)}

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the operation."""
        values = [as_value(unwrap_keys(x), self.name, f"operand {i}") for i, x in enumerate(args)]
        if self.order is not None:
            values = [values[i] for i in self.order]
        operation = self.build(params, tuple([v.type for v in values]))
        if isinstance(operation, Elementwise):
            values = _of_one_shape(values)
        outs = operation(*values)
        if getattr(operation, "multiple", True):
            return as_jax_has(self, outs) if self.multiple_results else outs[0]
        return [outs] if self.multiple_results else outs

    def impl(self, *args: Any, **params: Any) -> Any:
        """Apply the operation."""
        return self.bind(*args, **params)

    def abstract_eval(self, *avals: Any, **params: Any) -> Any:
        """Return the abstract values of the results, and the effects."""
        types = [type_of_aval(aval) for aval in avals]
        if self.order is not None:
            types = [types[i] for i in self.order]
        operation = self.build(params, tuple(types))
        outs = [aval_of(t) for t in as_jax_has(self, operation.out_types(tuple(types)))]
        return (outs if self.multiple_results else outs[0]), operation.effects


def as_jax_has(p: Primitive, outs: Sequence[Any]) -> list[Any]:
    """Return the results of an operation in the order that the primitive has them in."""
    order = getattr(p, "results", None)
    if order is None or len(order) != len(outs):
        return list(outs)
    return [outs[order.index(i)] for i in range(len(order))]


def as_stretto_has(p: Primitive, outs: Sequence[Any]) -> list[Any]:
    """Return the results of a primitive in the order that the operation has them in."""
    order = getattr(p, "results", None)
    if order is None or len(order) != len(outs):
        return list(outs)
    return [outs[i] for i in order]


def _of_one_shape(values: list[Any]) -> list[Any]:
    """Return the values, with scalars repeated to the shape of the others."""
    shape = max([v.shape for v in values], key=len, default=())
    return [broadcast_to(v, shape) if v.shape == () and shape else v for v in values]


_KNOWN: dict[str, Primitive] = {}


def known(name: str, make: Callable[[], Primitive]) -> Primitive:
    """Return the primitive of this name, made if there is none."""
    found = _KNOWN.get(name)
    if found is None:
        found = _KNOWN[name] = make()
    return found


def find_primitive(name: str) -> Primitive | None:
    """Return the primitive of this name, if it is one of Stretto's."""
    return _KNOWN.get(name)
