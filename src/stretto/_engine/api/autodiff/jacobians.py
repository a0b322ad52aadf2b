"""Jacobians and Hessians: a derivative along every direction, in one vectorized pass.

The function is linearized once; its linear map, or the transpose of that, is then mapped over all
unit vectors.

``hvp``, the product of a Hessian and a vector, is ``jvp`` of ``grad``: no Hessian is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np

from stretto._engine.api import argument_leaves
from stretto._engine.api.autodiff.derivatives import grad, jvp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.linearize import LinearMap, linearize_flat
from stretto._engine.autodiff.vmap import to_axis
from stretto._engine.core import tree
from stretto._engine.core.functions import described, name_of
from stretto._engine.core.interpreter import constant
from stretto._engine.core.types import ArrayType, float0, is_complex, is_inexact
from stretto._engine.higher_order.custom_function import zero_tangent
from stretto._engine.higher_order.loops import map_chunks, positive
from stretto._engine.ops.layout import move_axis, reshape

P = ParamSpec("P")


def _directions(type: ArrayType) -> Any:
    """Return all unit tangents of one array, along axis 0."""
    eye = np.eye(type.size, dtype=type.dtype).reshape(type.size, *type.shape)
    return constant(eye, type.weak_type)


def _by_all_directions(
    apply: Callable[..., Sequence[Any]], types: Sequence[Any], chunk_size: int | None
) -> list[list[Any]]:
    """Return, for each input, the outputs of a linear map at its unit directions, along axis 0.

    With a ``chunk_size``, so many directions at a time.
    """
    table = []
    for i, t in enumerate(types):

        def one(direction: Any, i: int = i) -> Sequence[Any]:
            return apply([
                direction if k == i else zero_tangent(other)
                for k, other in enumerate(types)
            ])  # fmt: skip

        basis = _directions(t)
        outs, axes = map_chunks(one, t.size, chunk_size or t.size, [basis], [0], ["direction"])
        table.append([to_axis(o, t.size, a, 0) for o, a in zip(outs, axes, strict=True)])
    return table


def _jacobian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    chunk_size: int | None,
    forward: bool,
) -> Callable[P, Any]:
    caller = "jacfwd" if forward else "jacrev"
    if chunk_size is not None:
        chunk_size = positive(chunk_size, f"{caller}: chunk_size")
    name = name_of(fun)

    @argument_leaves.wraps(fun, caller)
    def jacobian_fun(*args: Any, **kwargs: Any) -> Any:
        of_chosen = argument_leaves.chosen(fun, args, kwargs, argnums, caller)
        values, structure = of_chosen.values, of_chosen.structure
        of_chosen.check(holomorphic, allow_int)
        flat = argument_leaves.Flat(of_chosen, structure, has_aux, caller, name)
        outs, linear = linearize_flat(flat, values, [argument_leaves.is_active(v) for v in values])
        out_values = outs[: flat.count]
        if not forward:
            _check_outputs(name, out_values, holomorphic)
        rows = (_columns if forward else _rows)(linear, values, out_values, flat.count, chunk_size)
        trees = [tree.unflatten(structure, row) for row in rows]
        if not isinstance(argnums, (tuple, list)):
            trees = [t[0] for t in trees]
        jacobian = tree.unflatten(flat.out, trees)
        return (jacobian, flat.rebuild(outs)[1]) if has_aux else jacobian

    return jacobian_fun


def _check_outputs(name: str, outs: Sequence[Any], holomorphic: bool) -> None:
    for out in outs:
        if is_complex(out.dtype) != holomorphic or not is_inexact(out.dtype):
            wanted = "complex" if holomorphic else "real"
            raise TypeError(
                f"jacrev: {name} must return {wanted} floating results with "
                f"holomorphic={holomorphic}, got {out.type}; use vjp for other derivatives"
            )


def _columns(
    linear: LinearMap, values: Any, outs: Any, count: int, chunk_size: int | None
) -> list[list[Any]]:
    """Return the Jacobian's entries by output and input, forwards: a direction for each input."""
    types = [v.type for v in values if argument_leaves.is_active(v)]
    mask = linear.active_out

    def apply(tangents: Sequence[Any]) -> list[Any]:
        douts = iter(evaluate(linear.program, [*tangents, *linear.residuals]))
        full_outs = [next(douts) if m else None for m in mask][:count]
        return [zero_tangent(o) if d is None else d for o, d in zip(outs, full_outs, strict=True)]

    table = iter(_by_all_directions(apply, types, chunk_size))
    columns = []
    for v in values:
        if not argument_leaves.is_active(v):
            columns.append([np.zeros((*o.shape, *v.shape), float0) for o in outs])
            continue
        columns.append([
            reshape(move_axis(d, 0, d.ndim - 1), (*o.shape, *v.shape))
            for o, d in zip(outs, next(table), strict=True)
        ])  # fmt: skip
    return [list(row) for row in zip(*columns, strict=True)]


def _rows(
    linear: LinearMap, values: Any, outs: Any, count: int, chunk_size: int | None
) -> list[list[Any]]:
    """Give the Jacobian's entries by output and input, in reverse: a direction for each output."""
    extra = len(linear.active_out) - count
    active = [v for v in values if argument_leaves.is_active(v)]

    def apply(cts: Sequence[Any]) -> list[Any]:
        back = argument_leaves.pull_back(linear, [*cts, *[None] * extra])
        kept = [g for g, a in zip(back, linear.active_in, strict=True) if a]
        return [zero_tangent(v) if g is None else g for v, g in zip(active, kept, strict=True)]

    rows = []
    types = [o.type for o in outs]
    for o, results in zip(outs, _by_all_directions(apply, types, chunk_size), strict=True):
        entries = iter(results)
        rows.append([
            reshape(next(entries), (*o.shape, *v.shape))
            if argument_leaves.is_active(v)
            else np.zeros((*o.shape, *v.shape), float0)
            for v in values
        ])  # fmt: skip
    return rows


_of_jacobian = described(
    argument_leaves.OF_DERIVATIVE,
    returns="""A function of the same arguments whose result has the structure of the output, and
    in the place of each of its leaves a tree like the argument (for several ``argnums`` a tuple of
    trees), of arrays of shape output shape + input shape; with ``has_aux`` a pair of that and
    aux.""",
)


@_of_jacobian
def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    chunk_size: int | None = None,
) -> Callable[P, Any]:
    """Make a function that gives the Jacobian of ``fun``, forwards for all input elements at once.

    Args:
        fun: a function of trees of arrays.

    Raises:
        TypeError: ``fun`` is not a function, or ``chunk_size`` not an integer; or, in a call, an
            argument is of the wrong kind, or ``argnums`` names one that is not there.
        ValueError: ``chunk_size`` is not positive; or, in a call, ``argnums`` names an argument
            twice.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.jacfwd(lambda x: x * x)(snp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    return _jacobian(fun, argnums, has_aux, holomorphic, allow_int, chunk_size, forward=True)


@_of_jacobian
def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    chunk_size: int | None = None,
) -> Callable[P, Any]:
    """Make a function that gives the Jacobian of ``fun``, backwards for all results at once.

    Args:
        fun: a function of trees of arrays that returns floating arrays.

    Raises:
        TypeError: ``fun`` is not a function, or ``chunk_size`` not an integer; or, in a call, an
            argument or a result is of the wrong kind, or ``argnums`` names one that is not there.
        ValueError: ``chunk_size`` is not positive; or, in a call, ``argnums`` names an argument
            twice.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.jacrev(lambda x: x.sum())(snp.array([1.0, 2.0]))
    Array([1., 1.], dtype=float32)
    """
    return _jacobian(fun, argnums, has_aux, holomorphic, allow_int, chunk_size, forward=False)


@argument_leaves.of_derivative
def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """Make a function that gives the second derivatives of ``fun``: ``jacfwd`` of ``jacrev``.

    Args:
        fun: a function of trees of arrays that returns floating arrays.

    Returns:
        A function of the same arguments; its result has the structure of the output, in the place
        of each leaf a tree like the argument, and in the place of each of its leaves another, of
        arrays of shape output shape + input shape + input shape.

    Raises:
        TypeError: ``fun`` is not a function; or, in a call, an argument or a result is of the
            wrong kind, or ``argnums`` names one that is not there.
        ValueError: in a call, ``argnums`` names an argument twice.

    >>> import stretto as st
    >>> float(st.hessian(lambda x: x**3)(2.0))
    12.0
    """
    inner = jacrev(fun, argnums, has_aux, holomorphic)
    return jacfwd(inner, argnums, has_aux, holomorphic)


@argument_leaves.of_derivative
def hvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """Compute the second derivative of ``fun`` along ``tangents``: Hessian times vector.

    The gradient is differentiated forwards, H v = d/dt ∇f(x + t v): a few times the work of ``fun``
    and the memory of its gradient, however many elements there are.

    Args:
        fun: a function of trees of arrays that returns a real scalar; with ``has_aux`` a pair of
            that and anything.
        primals: the arguments, a tuple or list of trees.
        tangents: a tuple or list of trees of the same structure, shapes and dtypes.

    Returns:
        The product: for one primal a tree like it, for several a tuple of trees; with ``has_aux``
        a pair of that and aux.

    Raises:
        TypeError: ``primals`` or ``tangents`` is neither tuple nor list, the tangents differ from
            their primals in structure or dtype, an argument is not floating, or the result is not
            a real scalar.
        ValueError: a tangent differs from its primal in shape.

    Source: Pearlmutter, "Fast exact multiplication by the Hessian", 1994.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, v = snp.array([1.0, 2.0]), snp.array([1.0, 0.0])
    >>> st.hvp(lambda x: (x**3).sum(), (x,), (v,))
    Array([6., 0.], dtype=float32)
    """
    if not isinstance(primals, (tuple, list)):
        raise TypeError(
            f"hvp: primals of {name_of(fun)} must be a tuple, one entry an argument; got "
            f"{type(primals).__name__}"
        )
    argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    out = jvp(grad(fun, argnums, has_aux), primals, tangents, has_aux)
    return (out[1], out[2]) if has_aux else out[1]
