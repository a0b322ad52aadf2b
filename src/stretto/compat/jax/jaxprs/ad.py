"""Derivative rules of libraries' primitives: ``jax.interpreters.ad``.

A zero is a ``Zero``, which is Stretto's ``SymbolicZero`` in other words; an argument that is to be
transposed by is an ``UndefinedPrimal``, Stretto's ``Linear``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from stretto._engine.autodiff.jvp import Dual
from stretto._engine.core.errors import PerturbationError
from stretto._engine.core.interpreter import Linear, Value
from stretto._engine.core.types import float0
from stretto._engine.higher_order import custom_function
from stretto._engine.higher_order.custom_function import zero_from_primal
from stretto._engine.ops.arithmetic import add
from stretto._engine.ops.comparison import full
from stretto.compat.jax.avals import ShapedArray, get_aval
from stretto.compat.jax.jaxprs.operations import primitive_of
from stretto.compat.jax.jaxprs.primitive import Primitive
from stretto.tree import register_pytree_node

__all__ = [
    "CustomVJPException",
    "JVPTracer",
    "SymbolicZero",
    "UndefinedPrimal",
    "Zero",
    "add_jaxvals",
    "add_jaxvals_p",
    "add_tangents",
    "defbilinear",
    "defjvp",
    "defjvp2",
    "deflinear",
    "deflinear2",
    "get_primitive_transpose",
    "instantiate_zeros",
    "is_undefined_primal",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like_aval",
]

primitive_jvps: dict[Primitive, Callable[..., Any]] = {}
"""The rule of each primitive, from (primals, tangents) and parameters to results and tangents."""

primitive_transposes: dict[Primitive, Callable[..., Any]] = {}
"""The rule of each primitive, from cotangents, operands and parameters to the operands' cotangents.

Rules given for Stretto's own operations are kept here, and not used.
"""

CustomVJPException = PerturbationError
JVPTracer = Dual
add_jaxvals_p = primitive_of("add_jaxvals")


class _OfAval(type):
    def __call__(cls, aval: Any) -> Any:
        return custom_function.SymbolicZero(tuple(aval.shape), np.dtype(aval.dtype))

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, custom_function.SymbolicZero)


class SymbolicZero(metaclass=_OfAval):
    """Stretto's zeros in rules of functions, made of an abstract value as JAX's are.

    Args:
        aval: the abstract value.
    """


class Zero:
    """A tangent or cotangent that is known to be zero.

    Args:
        aval: its abstract value.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval})"

    @staticmethod
    def from_primal_value(value: Any) -> Zero:
        """Return the zero tangent of a value."""
        return Zero(get_aval(value).to_tangent_aval())

    def instantiate(self) -> Any:
        """Return the array of zeros."""
        return zeros_like_aval(self.aval)


class UndefinedPrimal:
    """Stands for an argument whose cotangent is asked for, in a rule to transpose.

    Args:
        aval: its abstract value.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval})"


# Trees without leaves, so that ``vmap`` and others hand them on.
for _node in (Zero, UndefinedPrimal):
    register_pytree_node(_node, lambda x: ((), x.aval), lambda aval, _, node=_node: node(aval))


def is_undefined_primal(x: Any) -> bool:
    """Say whether it is an ``UndefinedPrimal``."""
    return type(x) is UndefinedPrimal


def zeros_like_aval(aval: Any) -> Any:
    """Return the array of zeros of an abstract value."""
    if aval.dtype == float0:
        return np.zeros(aval.shape, float0)
    return full(tuple(aval.shape), 0, np.dtype(aval.dtype), bool(aval.weak_type))


def instantiate_zeros(tangent: Any) -> Any:
    """Return the tangent, as an array of zeros if it is a ``Zero``."""
    return tangent.instantiate() if type(tangent) is Zero else tangent


def add_jaxvals(x: Any, y: Any) -> Any:
    """Return the sum of two arrays."""
    return add(x, y)


def add_tangents(x: Any, y: Any) -> Any:
    """Return the sum of two tangents, either of which may be a ``Zero``."""
    return y if type(x) is Zero else x if type(y) is Zero else add(x, y)


# Shorthand for rules


def deflinear2(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """Give the rules of a linear primitive; the transpose takes cotangents and operands."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            if primitive.multiple_results:
                return out, [Zero.from_primal_value(o) for o in out]
            return out, Zero.from_primal_value(out)
        return out, primitive.bind(*map(instantiate_zeros, tangents), **params)

    def transpose(cts: Any, *args: Any, **params: Any) -> Any:
        every = cts if primitive.multiple_results else [cts]
        if all(type(ct) is Zero for ct in every):
            return [None] * len(args)
        return transpose_rule(cts, *args, **params)

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose


def deflinear(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """Set the rules of a linear primitive, by a transpose that takes cotangents alone."""
    deflinear2(primitive, lambda ct, *args, **params: transpose_rule(ct, **params))


def defjvp(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """Give a rule for each operand: from its tangent and all operands to that of the result."""
    rules = [r and functools.partial(_without_result, r) for r in jvprules]
    defjvp2(primitive, *rules)


def _without_result(rule: Callable[..., Any], dx: Any, out: Any, *primals: Any, **ps: Any) -> Any:
    return rule(dx, *primals, **ps)


def defjvp2(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """Set rules as ``defjvp`` does that get the result after the tangent."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        terms = [
            rule(t, out, *primals, **params)
            for rule, t in zip(jvprules, tangents, strict=True)
            if rule is not None and type(t) is not Zero
        ]
        return out, functools.reduce(add_tangents, terms, Zero.from_primal_value(out))

    primitive_jvps[primitive] = jvp


def defbilinear(
    prim: Primitive, lhs_rule: Callable[..., Any], rhs_rule: Callable[..., Any]
) -> None:
    """Give the rules of a primitive linear in each of two operands, by its two transposes."""

    def left(dx: Any, x: Any, y: Any, **params: Any) -> Any:
        return prim.bind(dx, y, **params)

    def right(dy: Any, x: Any, y: Any, **params: Any) -> Any:
        return prim.bind(x, dy, **params)

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> Any:
        if is_undefined_primal(x):
            return lhs_rule(ct, x, y, **params), None
        return None, rhs_rule(ct, x, y, **params)

    defjvp(prim, left, right)
    primitive_transposes[prim] = transpose


def get_primitive_transpose(p: Primitive) -> Callable[..., Any]:
    """Return the rule to transpose a primitive.

    Raises:
        NotImplementedError: there is none.
    """
    return rule_of(primitive_transposes, p, "transpose", "interpreters.ad.primitive_transposes")


def rule_of(table: dict[Primitive, Any], p: Primitive, what: str, home: str) -> Callable[..., Any]:
    """Return the rule of a primitive in a table, or raise an error in words."""
    rule = table.get(p)
    if rule is None:
        raise NotImplementedError(
            f"primitive {p.name} has no rule for {what}: give one in jax.{home}"
        )
    return rule


# From Stretto's words to these, and back


def as_tangent(t: Any) -> Any:
    """Return a tangent or cotangent as rules get it."""
    is_zero = isinstance(t, custom_function.SymbolicZero)
    return Zero(ShapedArray(t.shape, t.dtype)) if is_zero else t


def from_tangent(t: Any, like: Any) -> Any:
    """Return a tangent that a rule returned for a result like this one."""
    if t is None or t is Zero or type(t) is Zero:
        return zero_from_primal(like, symbolic_zeros=True)
    return t


def as_operand(x: Any) -> Any:
    """Return an operand as rules to transpose get it."""
    if isinstance(x, Linear):
        return UndefinedPrimal(ShapedArray(x.shape, x.dtype, x.type.weak_type))
    return x


def from_cotangent(ct: Any, x: Any) -> Any:
    """Return a rule's cotangent for this operand; None for zero, and for a known one."""
    known = isinstance(x, Value) or not isinstance(x, (Linear, UndefinedPrimal))
    return None if known or ct is None or ct is Zero or type(ct) is Zero else ct
