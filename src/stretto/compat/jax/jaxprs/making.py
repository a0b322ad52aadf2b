"""``make_jaxpr``, functions of jaxprs, and partial evaluation (``jax.interpreters.partial_eval``).

In partial evaluation, what depends on known values alone is computed; what involves unknown ones is
recorded, with the known values that it needs as constants. It is how ``linearize`` sorts
operations, without tangents.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from stretto._engine.api.argument_leaves import wraps
from stretto._engine.api.graph import record_call, shapes_of
from stretto._engine.api.jit.signature import argument_set
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.config import over_axis
from stretto._engine.core.errors import ProgramError
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.program import Program
from stretto._engine.core.recorder import Recorder, Traced, closing_over, record
from stretto._engine.core.rewriting import live
from stretto.compat.jax import tree_util
from stretto.compat.jax.avals import as_aval, get_aval, is_key, type_of_aval, unwrap_keys, wrap_keys
from stretto.compat.jax.calls import described, description
from stretto.compat.jax.jaxprs import operations  # noqa: F401 (it fills the table)
from stretto.compat.jax.jaxprs.jaxpr import (
    ClosedJaxpr,
    Jaxpr,
    Literal,
    closed_over,
    eval_jaxpr,
    jaxpr_of,
    program_of,
)


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """Make a function of the same arguments that returns the closed jaxpr of ``fun``.

    Args:
        fun: a function of trees of arrays.
        static_argnums: positions of arguments that are passed as they are.
        axis_env: the names and sizes of axes that ``fun`` may use.
        return_shape: whether the tree that ``eval_shape`` gives is returned as well.

    >>> import stretto.numpy as snp
    >>> print(make_jaxpr(lambda x: snp.sin(x) * 2)(1.0))
    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0:f32[] in (c,) }
    """
    if not callable(fun):
        raise TypeError(f"make_jaxpr: expected a function, got {type(fun).__name__}")
    places = argument_set(fun, static_argnums, None, "static", "make_jaxpr")
    axes = [(name, operator.index(size)) for name, size in axis_env or ()]

    @wraps(fun, "make_jaxpr")
    def made(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_util.map_(described, (args, kwargs))
        results: list[Any] = []

        def noting(*xs: Any, **ys: Any) -> Any:
            out = fun(*xs, **ys)
            results.extend(tree_util.leaves(out))
            return out

        noting.__name__ = name_of(fun)
        recorded = functools.partial(record_call, noting, args, kwargs, places)
        for name, size in axes:
            recorded = functools.partial(over_axis, name, size, recorded)
        program, structure, captured = closing_over(recorded)
        closed = closed_over(program, captured)
        _, moving = places.separate(args, kwargs, "make_jaxpr")
        _mark_keys(closed.jaxpr.invars, tree_util.leaves(moving))
        _mark_keys(closed.jaxpr.outvars[: len(results)], results)  # then values of references
        if return_shape:
            return closed, tree_util.map_(description, shapes_of(program, structure))
        return closed

    return made


def _mark_keys(atoms: Sequence[Any], leaves: Sequence[Any]) -> None:
    """Let the variables that stand for the words of keys say that they are keys."""
    for atom, leaf in zip(atoms, leaves, strict=True):
        if is_key(leaf):
            atom.aval = as_aval(leaf)


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
    """Return the function of flat arguments that a closed jaxpr is."""
    return functools.partial(eval_jaxpr, closed_jaxpr.jaxpr, closed_jaxpr.consts)


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """Return the jaxprs among the parameters of an equation."""
    for value in params.values():
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, (Jaxpr, ClosedJaxpr)):
                yield part.jaxpr


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """Return the jaxprs that its equations hold."""
    for e in jaxpr.eqns:
        yield from jaxprs_in_params(e.params)


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Check that each variable is assigned once, before it is read.

    Raises:
        ProgramError: one is not.
    """
    known = {*jaxpr.invars, *jaxpr.constvars}
    for n, e in enumerate(jaxpr.eqns):
        for atom in e.invars:
            if not isinstance(atom, Literal) and atom not in known:
                raise ProgramError(
                    f"equation {n} ({e.primitive}) reads a variable not yet assigned"
                )
        for v in e.outvars:
            if v in known:
                raise ProgramError(f"equation {n} ({e.primitive}) assigns a variable once more")
            known.add(v)
    for inner in subjaxprs(jaxpr):
        check_jaxpr(inner)


DynamicJaxprTracer = JaxprTracer = Traced


class PartialVal(NamedTuple):
    """A value that is known, ``(None, value)``, or unknown, ``(aval, None)``."""

    aval: Any
    value: Any

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """Return a known value."""
        return cls(None, const)

    @classmethod
    def unknown(cls, aval: Any) -> PartialVal:
        """Return an unknown value of this abstract value."""
        return cls(aval, None)

    def is_known(self) -> bool:
        """Say whether it is known."""
        return self.aval is None

    def get_known(self) -> Any:
        """Return the value, None if it is unknown."""
        return self.value if self.is_known() else None

    def get_aval(self) -> Any:
        """Return the abstract value."""
        return get_aval(self.value) if self.is_known() else self.aval


class _UnknownRecorder(Recorder):
    """Records what involves unknown values; hands the rest to the interpreter around it."""

    __slots__ = ()
    borrows = False

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Record the operation if any operand is unknown, a call one by one; else hand it on."""
        if not any([a.__class__ is Traced and a.interpreter is self for a in args]):
            return self.parent.process(primitive, args)
        called = primitive.called() if primitive.holds_programs else None
        if called is not None:
            return tuple(evaluate(called, args))
        return super().process(primitive, args)


def trace_to_jaxpr_nounits(
    fun: Any, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Evaluate a function of flat values as far as they are known.

    Args:
        fun: the function, wrapped as ``linear_util`` does.
        pvals: its arguments.
        instantiate: whether known results are to be results of the jaxpr as well; one for all, or
            one for each.

    Returns:
        The jaxpr of the rest, with the unknown arguments as inputs; the results; and the values of
        the jaxpr's constants.
    """
    known = [PartialVal(*p) for p in pvals]
    recorder = _UnknownRecorder([type_of_aval(p.aval) for p in known if not p.is_known()])
    recorder.begin(getattr(fun, "__name__", "a function"))
    inputs = iter(recorder.inputs)
    args = [
        p.value if p.is_known() else wrap_keys(Traced(recorder, next(inputs)), p.aval)
        for p in known
    ]
    call: Callable[..., Any] = getattr(fun, "call_wrapped", fun)
    outs = recorder.run(lambda: list(call(*args)))
    every = [instantiate] * len(outs) if isinstance(instantiate, bool) else list(instantiate)
    atoms, results = [], []
    for out, wanted in zip(outs, every, strict=True):
        words = unwrap_keys(out)
        unknown = type(words) is Traced and words.interpreter is recorder
        if unknown or wanted:
            value: Any = as_value(words, "trace_to_jaxpr_nounits", "a result")
            atoms.append(value.atom if unknown else recorder.lift(value))
            results.append(PartialVal.unknown(get_aval(out)))
        else:
            results.append(PartialVal.known(out))
    captured = list(recorder.captured.values())
    program = Program(
        [*recorder.inputs, *recorder.captured_vars.values()], recorder.equations, atoms, "partial"
    )
    closed = closed_over(program, captured)
    return closed.jaxpr, results, closed.consts


def trace_to_jaxpr_dynamic(
    fun: Any, in_avals: Sequence[Any], **options: Any
) -> tuple[Jaxpr, list[Any], list[Any]]:
    """Trace a function of flat values: the jaxpr, abstract values of its results, and constants."""
    del options
    call: Callable[..., Any] = getattr(fun, "call_wrapped", fun)

    def flat(*values: Any) -> Any:
        outs = call(*map(wrap_keys, values, in_avals))
        return [as_value(unwrap_keys(o), "trace_to_jaxpr_dynamic", "a result") for o in outs], None

    program, _, captured = record(flat, list(map(type_of_aval, in_avals)))
    closed = closed_over(program, captured)
    return closed.jaxpr, closed.out_avals, closed.consts


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Reduce a jaxpr to some of its outputs: the jaxpr, and which inputs it still has."""
    program = program_of(jaxpr)
    outputs = [a for a, used in zip(program.outputs, used_outputs, strict=True) if used]
    reduced = live(Program(program.inputs, program.equations, outputs, program.name))
    read = {a for e in reduced.equations for a in e.inputs} | set(reduced.outputs)
    forced = [instantiate] * len(program.inputs) if isinstance(instantiate, bool) else instantiate
    kept = [v in read or f for v, f in zip(program.inputs, forced, strict=True)]
    inputs = [v for v, k in zip(program.inputs, kept, strict=True) if k]
    reduced = Program(inputs, reduced.equations, reduced.outputs, program.name)
    return jaxpr_of(reduced, len(inputs), keep=True)[0], kept
