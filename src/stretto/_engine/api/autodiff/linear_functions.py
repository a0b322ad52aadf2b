"""Derivatives at a point, as functions: what ``linearize`` and ``vjp`` return.

Such a function is a tree: its leaves are the residuals, the values at that point which the
derivative needs; the linear program is static data. So it may be returned from ``jit``, carried by
a loop, and mapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.api.autodiff.flat import Flat, pull_back
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.linearize import LinearMap
from stretto._engine.core import tree
from stretto._engine.core.boundary import bounded
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.program import Program, form
from stretto._engine.core.types import ArrayType, is_float0, is_inexact
from stretto._engine.higher_order.custom_function import zero_tangent
from stretto._engine.ops.convert import convert


def tangents_of(types: Sequence[ArrayType], leaves: Sequence[Any], caller: str) -> list[Any]:
    """Return the leaves as tangents for primals of these types; ``None`` for integers and booleans.

    Raises ``TypeError`` and ``ValueError`` for a leaf that is no such tangent.
    """
    out: list[Any] = []
    for type, t in zip(types, leaves, strict=True):
        if is_float0(t):
            if is_inexact(type.dtype) or t.shape != type.shape:
                raise TypeError(
                    f"{caller}: float0 zeros of shape {t.shape} are not a tangent of {type}: they "
                    f"are for integers and booleans, and have their shape"
                )
            out.append(None)
            continue
        value = as_value(t, caller, "a tangent")
        if value.shape != type.shape:
            raise ValueError(
                f"{caller}: a tangent must have its primal's shape: {value.type}, {type}"
            )
        if not is_inexact(type.dtype):
            if caller == "vjp" and value.dtype == type.dtype:  # such as zeros like the output
                out.append(None)
                continue
            raise TypeError(
                f"{caller}: the primal {type} has no derivative; its tangent must be float0 zeros, "
                f"or convert the primal to a float"
            )
        # A Python number may be a tangent of its own kind alone: 1 is no tangent of a float.
        same_kind = value.weak_type and value.type.kind == type.kind
        if value.dtype != type.dtype and not same_kind:
            raise TypeError(
                f"{caller}: a tangent must have its primal's dtype, {type.dtype} for {type} (for "
                f"integers and booleans zeros of dtype float0), got {value.type}; convert it, as "
                f"by .astype({type.dtype.name!r})"
            )
        out.append(convert(value, type.dtype, type.weak_type))
    return out


class _Linear:
    """All of a linear function except its residuals. Two that do the same are equal."""

    __slots__ = ("_key", "active_in", "active_out", "name", "out", "outs", "program", "structure",
                 "types")  # fmt: skip

    def __init__(
        self, flat: Flat, structure: Any, values: Sequence[Any], outs: Sequence[Any], of: LinearMap
    ) -> None:
        self.name, self.program = flat.name, of.program
        self.active_in, self.active_out = of.active_in, of.active_out
        self.structure, self.out = structure, flat.out
        self.types = tuple([v.type for v in values])
        self.outs = tuple([o.type for o in outs[: flat.count]])
        self._key: Any = None

    def key(self) -> Any:
        """Return what equal ones have in common; computed when first needed."""
        if self._key is None:
            self._key = (
                _same(self.program), self.active_in, self.active_out, self.structure, self.out,
                self.types, self.outs,
            )  # fmt: skip
        return self._key

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Linear) and self.key() == other.key())

    def __hash__(self) -> int:
        return hash(self.key())

    def map(self, residuals: Sequence[Any], caller: str) -> LinearMap:
        """Return the linear map with these residuals.

        Raises ``TypeError`` if their types have changed.
        """
        program = self.program
        own = len(program.inputs) - len(residuals)
        values = [as_value(r, caller, "a residual") for r in residuals]
        for v, r in zip(program.inputs[own:], values, strict=True):
            if r.shape != v.type.shape or r.dtype != v.type.dtype:
                raise TypeError(
                    f"{caller}: this derivative of {self.name} has a residual {r.type}, but was "
                    f"made with {v.type}: if it was returned from vmap, or is a stack of several, "
                    f"call it inside vmap, which takes it as an argument"
                )
        return LinearMap(program, values, self.active_in, self.active_out)


def _same(program: Program) -> Any:
    """Return an object that is equal for programs that do the same, forwards and in reverse."""
    # A form does not include users' own rules, so programs with these are compared as objects.
    own = any([e.primitive.holds_programs or e.primitive.calls_python for e in program.equations])
    return program if own else form(program)


_MOST = 8
"""The most types of arguments that are printed."""


class _LinearFunction:
    """A linear function: its residuals, and the rest."""

    __slots__ = ("_linear", "_residuals")

    _what: str

    def __init__(self, linear: _Linear, residuals: Sequence[Any]) -> None:
        self._linear, self._residuals = linear, residuals

    @classmethod
    def of(
        cls, flat: Flat, structure: Any, values: Sequence[Any], outs: Sequence[Any], map: LinearMap
    ) -> Any:
        """Return the function for a linear map, and what ``linearize_flat`` took and gave."""
        return cls(_Linear(flat, structure, values, outs, map), map.residuals)

    def __repr__(self) -> str:
        types = [repr(type) for type in self._linear.types]
        more = f", and {len(types) - _MOST} more" if len(types) > _MOST else ""
        return f"<{self._what} of {self._linear.name} at {', '.join(types[:_MOST])}{more}>"


def _is_node(cls: Any) -> Any:
    tree.register_pytree_node(cls, lambda x: (tuple(x._residuals), x._linear), cls)
    return cls


@_is_node
class JvpFunction(_LinearFunction):
    """Maps tangents of the arguments to that of the output; ``linearize`` returns it."""

    __slots__ = ()

    _what = "jvp"

    @bounded
    def __call__(self, *tangents: Any) -> Any:
        """Return the tangent of the output, for one tangent, a tree, for each argument."""
        linear = self._linear
        leaves, structure = tree.flatten(tuple(tangents))
        if structure != linear.structure:
            raise TypeError(
                f"linearize: tangents have structure {structure}, expected {linear.structure}"
            )
        fitted = tangents_of(linear.types, leaves, "linearize")
        of = linear.map(self._residuals, "linearize")
        moving = [
            zero_tangent(p) if t is None else t
            for p, t, a in zip(linear.types, fitted, of.active_in, strict=True)
            if a
        ]
        douts = iter(evaluate(of.program, [*moving, *of.residuals]))
        filled = [
            next(douts) if m else zero_tangent(t)
            for t, m in zip(linear.outs, of.active_out, strict=False)
        ]
        return tree.unflatten(linear.out, filled)


@_is_node
class VjpFunction(_LinearFunction):
    """Maps a cotangent of the output to those of the arguments; ``vjp`` returns it."""

    __slots__ = ()

    _what = "vjp"

    @bounded
    def __call__(self, ct: Any) -> tuple[Any, ...]:
        """Return the cotangents of the arguments, a tree for each, for that of the output."""
        linear = self._linear
        leaves, structure = tree.flatten(ct)
        if structure != linear.out:
            raise TypeError(
                f"vjp: the cotangent must have the structure of the output, {linear.out}; got "
                f"{structure}"
            )
        cts: list[Any] = tangents_of(linear.outs, leaves, "vjp")
        cts += [None] * (len(linear.active_out) - len(cts))
        back = pull_back(linear.map(self._residuals, "vjp"), cts)
        filled = [
            zero_tangent(t) if g is None else g for t, g in zip(linear.types, back, strict=True)
        ]
        return tree.unflatten(linear.structure, filled)
