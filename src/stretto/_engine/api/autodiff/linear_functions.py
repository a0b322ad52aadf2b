"""Linear functions: what ``linearize`` and ``vjp`` return, and ``linear_transpose``.

A derivative at a point is a function that is a tree: its leaves are the residuals, the values at
that point which the derivative needs; the linear program is static data. So it may be returned from
``jit``, carried by a loop, and mapped.

``linear_transpose`` runs a linear function backwards, without a point to linearize at. It is
``autodiff/transpose`` alone, plus errors that name the operation that is not linear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from stretto._engine.api.argument_leaves import Flat, leaf_names, pull_back, values_of_tree
from stretto._engine.api.graph import types_of
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.linearize import LinearMap
from stretto._engine.autodiff.transpose import backward
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary, bounded
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.program import Equation, Program, form
from stretto._engine.core.recorder import record
from stretto._engine.core.rewriting import drop_dead
from stretto._engine.core.types import ArrayType, is_float0, is_inexact
from stretto._engine.higher_order.custom_function import fits, zero_tangent
from stretto._engine.higher_order.family import ControlFlow, parting
from stretto._engine.ops.comparison import full
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


def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[[Any], tuple[Any, ...]]:
    """Transpose a linear function: from cotangents of its result to those of its arguments.

    For a function with matrix A, x ↦ A x, it is ct ↦ Aᵀ ct; complex numbers are not conjugated. It
    costs what ``fun`` costs, and unlike ``vjp`` needs no values. That ``fun`` is linear is taken
    for granted: a constant that it adds is ignored.

    Args:
        fun: a linear function. Arguments and results must all be floating or complex, or all be
            integers.
        *primals: trees of arrays or ``ShapeDtypeStruct``, for the types of the arguments alone.

    Returns:
        A function that takes a tree like the result and returns a tuple with one tree for each
        argument.

    Raises:
        TypeError: ``fun`` is not linear, which names the operation, or types are mixed; or, in a
            call, the cotangent does not fit.

    >>> import stretto as st, stretto.numpy as snp
    >>> x = st.ShapeDtypeStruct((3,), snp.float32)
    >>> st.linear_transpose(lambda x: 2.0 * x.sum(), x)(1.0)
    (Array([2., 2., 2.], dtype=float32),)
    """
    with boundary:
        caller = name_of(fun)
        leaves, structure = tree.flatten(primals)
        names = leaf_names(fun, primals)
        types = types_of(leaves, f"linear_transpose: {caller}", lambda: names)

        def flat(*values: Any) -> Any:
            return values_of_tree(fun(*tree.unflatten(structure, values)), caller, "the result")

        program, out, captured = record(flat, types, names, caller)
        outs = program.out_types
        if len({is_inexact(t.dtype) for t in (*types, *outs)}) > 1:
            raise TypeError(
                f"linear_transpose: arguments and results of {caller} must all be floating or "
                f"complex, or all be integers; got {_listed(types)} to {_listed(outs)}; capture "
                f"what is not linear from outside"
            )
        program = drop_dead(program)
        linear = [i < len(types) for i in range(len(program.inputs))]
        if any(is_inexact(t.dtype) for t in types):
            rounded = _rounded(program, linear)
            if rounded is not None:
                raise TypeError(_refusal(caller, rounded))

    @bounded
    def transposed(ct: Any) -> tuple[Any, ...]:
        values, ct_structure = values_of_tree(ct, "linear_transpose", "ct")
        if ct_structure != out:
            raise TypeError(
                "linear_transpose: the cotangent must have the structure of the result of "
                f"{caller}; they part at {parting(out, ct_structure, 'result')}"
            )
        cts = [_fit(value, t, caller) for value, t in zip(values, outs, strict=True)]
        try:
            back = backward(program, linear, captured, cts)
        except (AttributeError, MissingRuleError, TypeError, ValueError) as error:
            culprit = _not_linear(program, linear)
            if culprit is None:
                raise
            raise TypeError(_refusal(caller, culprit)) from error
        filled = [
            full(t.shape, 0, t.dtype, t.weak_type) if g is None else g
            for g, t in zip(back, types, strict=True)
        ]
        return tree.unflatten(structure, filled)

    return transposed


def _listed(types: Sequence[ArrayType]) -> str:
    return ", ".join(map(repr, types)) or "nothing"


def _fit(value: Any, type: ArrayType, caller: str) -> Any:
    if not fits(value, type):
        raise TypeError(
            f"linear_transpose: a cotangent of {caller} must have its result's type, {type}; got "
            f"{value.type}"
        )
    return convert(value, type.dtype, type.weak_type)


class _Culprit(NamedTuple):
    equation: Equation
    why: str


def _refusal(caller: str, culprit: _Culprit) -> str:
    name, position = culprit.equation.primitive.name, culprit.equation.position
    return (
        f"linear_transpose: {caller} cannot be transposed: {name} at {position} is not linear "
        f"in what depends on the arguments{culprit.why}; stretto.vjp gives the derivative at a "
        f"point"
    )


def _dependent(program: Program, linear: Sequence[bool]) -> Iterator[tuple[Equation, set[Any]]]:
    """Give the equations that depend on linear inputs, each with all earlier variables that do."""
    varying: set[Any] = {v for v, m in zip(program.inputs, linear, strict=True) if m}
    for equation in program.equations:
        if any([a in varying for a in equation.inputs]):
            yield equation, varying
            varying.update(equation.outputs)


def _called(equation: Equation) -> Program | None:
    primitive = equation.primitive
    return primitive.called() if isinstance(primitive, ControlFlow) else None


def _rounded(program: Program, linear: Sequence[bool]) -> _Culprit | None:
    """Give the first operation that turns something depending on floating inputs into integers."""
    for equation, varying in _dependent(program, linear):
        if not equation.primitive.holds_programs:
            if not all(is_inexact(v.type.dtype) for v in equation.outputs):
                return _Culprit(equation, "")
            continue
        called = _called(equation)
        if called is not None:
            culprit = _rounded(called, [a in varying for a in equation.inputs])
            if culprit is not None:
                return culprit
    return None


def _not_linear(program: Program, linear: Sequence[bool]) -> _Culprit | None:
    """Return the first operation that cannot be transposed in what depends on the linear inputs."""
    for equation, varying in _dependent(program, linear):
        why = _trial(equation, varying)
        if why is None:
            continue
        called = _called(equation)
        inside = called and _not_linear(called, [a in varying for a in equation.inputs])
        return inside or _Culprit(equation, why)
    return None


def _trial(equation: Equation, varying: set[Any]) -> str | None:
    """Try the transpose rule on tracers: None if it works, otherwise why not."""
    known = [a.type for a in equation.inputs if a not in varying]

    def apply(*values: Any) -> Any:
        rest = iter(values)
        args = [Linear(a.type) if a in varying else next(rest) for a in equation.inputs]
        cts = list(rest)
        primitive = equation.primitive
        primitive.transpose(cts if primitive.multiple else cts[0], *args)
        return [], None

    try:
        record(apply, [*known, *(v.type for v in equation.outputs)])
    except MissingRuleError as error:
        return f" ({error})"
    except (AttributeError, TypeError, ValueError):
        return ""
    return None
