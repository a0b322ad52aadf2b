"""``make_jaxpr``, and functions of jaxprs."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from stretto._engine.api.argument_leaves import wraps
from stretto._engine.api.graph import record_call, shapes_of
from stretto._engine.api.jit.signature import argument_set
from stretto._engine.core.config import over_axis
from stretto._engine.core.errors import ProgramError
from stretto._engine.core.functions import name_of
from stretto._engine.core.recorder import closing_over
from stretto.compat.jax import trees
from stretto.compat.jax.avals import as_aval, is_key
from stretto.compat.jax.calls import described, description
from stretto.compat.jax.jaxprs import arrays, control, named  # noqa: F401 (they fill the table)
from stretto.compat.jax.jaxprs.form import ClosedJaxpr, Jaxpr, Literal
from stretto.compat.jax.jaxprs.views import closed_over, eval_jaxpr

__all__ = [
    "check_jaxpr",
    "eval_jaxpr",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "make_jaxpr",
    "subjaxprs",
]


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
        args, kwargs = trees.map_(described, (args, kwargs))
        results: list[Any] = []

        def noting(*xs: Any, **ys: Any) -> Any:
            out = fun(*xs, **ys)
            results.extend(trees.leaves(out))
            return out

        noting.__name__ = name_of(fun)
        recorded = functools.partial(record_call, noting, args, kwargs, places)
        for name, size in axes:
            recorded = functools.partial(over_axis, name, size, recorded)
        program, structure, captured = closing_over(recorded)
        closed = closed_over(program, captured)
        _, moving = places.separate(args, kwargs, "make_jaxpr")
        _mark_keys(closed.jaxpr.invars, trees.leaves(moving))
        _mark_keys(closed.jaxpr.outvars[: len(results)], results)  # then values of references
        if return_shape:
            return closed, trees.map_(description, shapes_of(program, structure))
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
