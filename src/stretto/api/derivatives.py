"""Derivatives of functions of trees: ``jvp``, ``linearize``, ``vjp``, ``grad``, Jacobians.

Layer 7 (api). Forward derivatives run each operation's jvp rule; reverse ones record the linear
part of the same rules and run it backwards. Conventions for complex numbers are those of JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto.api.arguments import (
    argument_names,
    as_argnums,
    as_values,
    name_of,
    values_of_tree,
    wraps,
)
from stretto.core import tree
from stretto.core.interpreter import Value, as_value, constant
from stretto.core.types import ArrayType, array_type, float0, is_complex, is_inexact
from stretto.ops.broadcast import move_axis, reshape
from stretto.ops.comparison import full, zeros_like
from stretto.ops.convert import convert
from stretto.transforms.evaluate import evaluate
from stretto.transforms.jvp import jvp_flat
from stretto.transforms.linearize import LinearMap, linearize_flat
from stretto.transforms.transpose import backward
from stretto.transforms.vmap import to_axis, vmap_flat

__all__ = [
    "grad",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "value_and_grad",
    "vjp",
]


class _Flat:
    """A function of trees as one of flat values; remembers the structure of its result.

    What aux holds beside arrays is handed on as it is.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        structure: Any,
        has_aux: bool,
        who: str,
        name: str | None = None,
    ) -> None:
        self.fun, self.structure, self.has_aux, self.who = fun, structure, has_aux, who
        self.name = name or name_of(fun)
        self.out: Any = None
        self.aux: Any = None
        self.aux_leaves: list[Any] = []
        self.count = 0

    def __call__(self, *leaves: Any) -> list[Any]:
        result = self.fun(*tree.unflatten(self.structure, leaves))
        aux: Any = ()
        if self.has_aux:
            if not (isinstance(result, tuple) and len(result) == 2):
                raise TypeError(
                    f"{self.who}: with has_aux=True the function must return a pair (output, aux), "
                    f"got {type(result).__name__}"
                )
            result, aux = result
        outs, self.out = values_of_tree(result, self.name, "the result")
        self.aux_leaves, self.aux = tree.flatten(aux)
        self.count = len(outs)
        return [*outs, *(x for x in self.aux_leaves if isinstance(x, Value))]

    def rebuild(self, values: Sequence[Any]) -> tuple[Any, Any]:
        """The output, and aux."""
        arrays = iter(values[self.count :])
        aux = [next(arrays) if isinstance(x, Value) else x for x in self.aux_leaves]
        return tree.unflatten(self.out, values[: self.count]), tree.unflatten(self.aux, aux)


def _is_active(value: Any) -> bool:
    return is_inexact(value.type.dtype)


def _zero_tangent(value: Any) -> Any:
    """The zero of the tangent space: float0 for integers and booleans."""
    if _is_active(value):
        return full(value.shape, 0, value.dtype, value.weak_type)
    return np.zeros(value.shape, float0)


def _tangents(primals: Sequence[Any], given: Sequence[Any], who: str) -> list[Any]:
    """Tangents fit for the primals; ``None`` for those of integers and booleans."""
    out: list[Any] = []
    for p, t in zip(primals, given, strict=True):
        if getattr(t, "dtype", None) == float0:
            out.append(None)
            continue
        value = as_value(t, who, "a tangent")
        if value.shape != p.shape:
            raise ValueError(
                f"{who}: a tangent must have its primal's shape: {value.type}, {p.type}"
            )
        if not _is_active(p):
            raise TypeError(
                f"{who}: the primal {p.type} has no derivative; its tangent must be float0 zeros, "
                f"or convert the primal to a float"
            )
        if value.dtype != p.dtype and not value.weak_type:
            raise TypeError(
                f"{who}: a tangent must have its primal's dtype: {value.type}, {p.type}"
            )
        out.append(convert(value, p.dtype, p.weak_type))
    return out


def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """The value of ``fun`` at ``primals``, and its derivative there along ``tangents``.

    Parameters: ``primals`` and ``tangents`` sequences of trees of one structure, shapes and dtypes.
    With ``has_aux`` the function returns (output, aux), and aux comes third.

    Raises ``TypeError`` or ``ValueError`` where tangents do not fit their primals.

    >>> import stretto as st
    >>> [float(x) for x in st.jvp(lambda x: x**2, (3.0,), (1.0,))]
    [9.0, 6.0]
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("jvp: primals and tangents must be tuples, one entry an argument")
    values, structure = values_of_tree(tuple(primals), "jvp", "primals")
    given, other = tree.flatten(tuple(tangents))
    if other != structure:
        raise TypeError(
            f"jvp: tangents must have the structure of primals; they part at "
            f"{tree.difference(tuple(primals), tuple(tangents), 'primals')}"
        )
    flat = _Flat(fun, structure, has_aux, "jvp")
    outs, douts = jvp_flat(flat, values, _tangents(values, given, "jvp"))
    filled = [_zero_tangent(o) if t is None else t for o, t in zip(outs, douts, strict=True)]
    out, aux = flat.rebuild(outs)
    dout = tree.unflatten(flat.out, filled[: flat.count])
    return (out, dout, aux) if has_aux else (out, dout)


def _linearized(
    fun: Callable[..., Any], primals: Sequence[Any], has_aux: bool, who: str
) -> tuple[_Flat, list[Any], Any, list[Any], LinearMap]:
    values, structure = values_of_tree(tuple(primals), who, "primals")
    flat = _Flat(fun, structure, has_aux, who)
    outs, linear = linearize_flat(flat, values, [_is_active(v) for v in values])
    return flat, values, structure, outs, linear


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``fun`` at ``primals``, and its derivative there: a linear function of tangents.

    The work that depends on the primals alone is done once.

    >>> import stretto as st
    >>> y, f_jvp = st.linearize(lambda x: x**3, 2.0)
    >>> float(f_jvp(1.0))
    12.0
    """
    flat, values, structure, outs, linear = _linearized(fun, primals, has_aux, "linearize")

    def apply(*tangents: Any) -> Any:
        given, other = tree.flatten(tuple(tangents))
        if other != structure:
            raise TypeError(f"linearize: tangents have structure {other}, expected {structure}")
        fitted = _tangents(values, given, "linearize")
        moving = [
            zeros_like(v) if t is None else t
            for v, t, a in zip(values, fitted, linear.active_in, strict=True)
            if a
        ]
        douts = iter(evaluate(linear.program, [*moving, *linear.residuals]))
        mask = linear.active_out[: flat.count]
        filled = [next(douts) if m else _zero_tangent(o) for o, m in zip(outs, mask, strict=False)]
        return tree.unflatten(flat.out, filled)

    out, aux = flat.rebuild(outs)
    return (out, apply, aux) if has_aux else (out, apply)


def _pull_back(linear: LinearMap, cts: Sequence[Any]) -> list[Any]:
    """Cotangents of all inputs, ``None`` for zero, from those of all outputs."""
    outs = [ct for ct, m in zip(cts, linear.active_out, strict=True) if m]
    count = sum(linear.active_in)
    mask = [i < count for i in range(len(linear.program.inputs))]
    back = iter(backward(linear.program, mask, linear.residuals, outs))
    return [next(back) if a else None for a in linear.active_in]


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``fun`` at ``primals``, and the function from its cotangents to theirs.

    The second returns a tuple with one tree an argument.

    >>> import stretto as st
    >>> y, f_vjp = st.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> [float(g) for g in f_vjp(1.0)]
    [3.0, 2.0]
    """
    flat, values, structure, outs, linear = _linearized(fun, primals, has_aux, "vjp")
    head = outs[: flat.count]

    def pull_back(ct: Any) -> tuple[Any, ...]:
        given, other = tree.flatten(ct)
        if other != flat.out:
            raise TypeError(
                f"vjp: the cotangent must have the structure of the output, {flat.out}; got {other}"
            )
        fitted = _tangents(head, given, "vjp")
        cts = [*fitted, *[None] * (len(outs) - flat.count)]
        back = _pull_back(linear, cts)
        filled = [_zero_tangent(v) if g is None else g for v, g in zip(values, back, strict=True)]
        return tree.unflatten(structure, filled)

    out, aux = flat.rebuild(outs)
    return (out, pull_back, aux) if has_aux else (out, pull_back)


class _Chosen:
    """A function of the arguments that derivatives are taken by; the others stay as they are."""

    def __init__(
        self, fun: Any, args: Sequence[Any], kwargs: Any, places: Sequence[int], who: str
    ) -> None:
        self.fun, self.args, self.kwargs, self.places, self.who = fun, args, kwargs, places, who
        leaves, self.structure = tree.flatten(tuple(args[i] for i in places))
        self.values = as_values(leaves, who, self.paths)

    def paths(self) -> list[str]:
        """The leaves of the chosen arguments, as Python would write them."""
        names = argument_names(self.fun, len(self.args))
        return [path for i in self.places for path in tree.paths(self.args[i], names[i])]

    def __call__(self, *given: Any) -> Any:
        args = list(self.args)
        for i, x in zip(self.places, given, strict=True):
            args[i] = x
        return self.fun(*args, **self.kwargs)

    def check(self, holomorphic: bool, allow_int: bool) -> None:
        """Raise ``TypeError``, naming the leaf, for a type that has no such derivative."""
        for k, value in enumerate(self.values):
            problem = _problem(value.type, holomorphic, allow_int)
            if problem:
                raise TypeError(f"{self.who}: {self.paths()[k]} {problem}")


def _problem(type: ArrayType, holomorphic: bool, allow_int: bool) -> str | None:
    if holomorphic:
        if not is_complex(type.dtype):
            return f"must be complex with holomorphic=True, got {type}"
    elif is_complex(type.dtype):
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


def _chosen(fun: Any, args: Any, kwargs: Any, argnums: int | Sequence[int], who: str) -> _Chosen:
    return _Chosen(fun, args, kwargs, as_argnums(argnums, len(args), who), who)


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """A function that gives the value of ``fun`` and its gradient by the arguments ``argnums``.

    Parameters: ``fun`` must return a real scalar (with ``has_aux`` a pair of that and anything).
    ``argnums`` an int gives one tree, several give a tuple; gradients have their argument's
    structure, shapes and dtypes. ``holomorphic``: complex arguments and result. ``allow_int``:
    integer leaves get float0 zeros.

    Raises ``TypeError`` for an argument or a result of the wrong kind, naming it.

    >>> import stretto as st
    >>> value, slope = st.value_and_grad(lambda x: 2 * x)(5.0)
    >>> float(value), float(slope)
    (10.0, 2.0)
    """
    name = name_of(fun)

    @wraps(fun, "value_and_grad")
    def value_and_grad_fun(*args: Any, **kwargs: Any) -> Any:
        of_chosen = _chosen(fun, args, kwargs, argnums, "grad")
        values, structure = of_chosen.values, of_chosen.structure
        of_chosen.check(holomorphic, allow_int)
        flat = _Flat(of_chosen, structure, has_aux, "grad", name)
        outs, linear = linearize_flat(flat, values, [_is_active(v) for v in values])
        if flat.count != 1 or outs[0].shape or not is_inexact(outs[0].dtype):
            got = ", ".join(map(repr, [o.type for o in outs[: flat.count]])) or "no array"
            raise TypeError(
                f"grad: {name} must return a real scalar, got {got}; sum or average the result, or "
                f"use jacrev"
            )
        out = outs[0]
        if is_complex(out.dtype) != holomorphic:
            raise TypeError(
                f"grad: {name} returned {out.type} with holomorphic={holomorphic}; take .real, or "
                f"pass holomorphic=True for a holomorphic function"
            )
        cts = [full((), 1, out.dtype, out.weak_type), *[None] * (len(outs) - 1)]
        back = _pull_back(linear, cts)
        filled = [_zero_tangent(v) if g is None else g for v, g in zip(values, back, strict=True)]
        grads = tree.unflatten(structure, filled)
        value, aux = flat.rebuild(outs)
        gradient = grads[0] if isinstance(argnums, int) else grads
        return ((value, aux) if has_aux else value), gradient

    return value_and_grad_fun


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """A function that gives the gradient of ``fun`` by the arguments ``argnums``.

    Parameters and errors are those of ``value_and_grad``; with ``has_aux`` the result is a pair of
    gradient and aux.

    >>> import stretto as st
    >>> float(st.grad(st.grad(lambda x: 2 * x**3))(1.0))
    12.0
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)

    @wraps(fun, "grad")
    def grad_fun(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_fun


# Jacobians: a derivative along every direction, in one vectorised pass


def _directions(size: int, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """All unit tangents of one array, along axis 0."""
    eye = np.eye(size, dtype=dtype).reshape(size, *shape)
    return constant(eye, False)


def _by_all_directions(
    apply: Callable[..., Sequence[Any]], types: Sequence[Any]
) -> list[list[Any]]:
    """For each input, each output of a linear map at all the input's unit directions, on axis 0."""
    table = []
    for i, t in enumerate(types):

        def one(direction: Any, i: int = i) -> Sequence[Any]:
            return apply([
                direction if k == i else full(other.shape, 0, other.dtype)
                for k, other in enumerate(types)
            ])  # fmt: skip

        basis = _directions(t.size, t.shape, t.dtype)
        outs, axes = vmap_flat(one, t.size, [basis], [0])
        table.append([to_axis(o, t.size, a, 0) for o, a in zip(outs, axes, strict=True)])
    return table


def _jacobian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    forward: bool,
) -> Callable[..., Any]:
    who = "jacfwd" if forward else "jacrev"

    name = name_of(fun)

    @wraps(fun, who)
    def jacobian_fun(*args: Any, **kwargs: Any) -> Any:
        of_chosen = _chosen(fun, args, kwargs, argnums, who)
        values, structure = of_chosen.values, of_chosen.structure
        of_chosen.check(holomorphic, allow_int)
        flat = _Flat(of_chosen, structure, has_aux, who, name)
        outs, linear = linearize_flat(flat, values, [_is_active(v) for v in values])
        out_values = outs[: flat.count]
        if not forward:
            _check_outputs(name, out_values, holomorphic)
        rows = (_columns if forward else _rows)(linear, values, out_values, flat.count)
        trees = [tree.unflatten(structure, row) for row in rows]
        if isinstance(argnums, int):
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


def _columns(linear: LinearMap, values: Any, outs: Any, count: int) -> list[list[Any]]:
    """Entries by output and input, found forwards: one direction an input element."""
    types = [array_type(v.shape, v.dtype) for v in values if _is_active(v)]
    mask = linear.active_out

    def apply(tangents: Sequence[Any]) -> list[Any]:
        given = iter(evaluate(linear.program, [*tangents, *linear.residuals]))
        full_outs = [next(given) if m else None for m in mask][:count]
        return [
            full(o.shape, 0, o.dtype) if d is None else d
            for o, d in zip(outs, full_outs, strict=True)
        ]

    table = iter(_by_all_directions(apply, types))
    columns = []
    for v in values:
        if not _is_active(v):
            columns.append([np.zeros((*o.shape, *v.shape), float0) for o in outs])
            continue
        columns.append([
            reshape(move_axis(d, 0, d.ndim - 1), (*o.shape, *v.shape))
            for o, d in zip(outs, next(table), strict=True)
        ])  # fmt: skip
    return [list(row) for row in zip(*columns, strict=True)]


def _rows(linear: LinearMap, values: Any, outs: Any, count: int) -> list[list[Any]]:
    """Entries by output and input, found backwards: one direction an output element."""
    extra = len(linear.active_out) - count
    active = [v for v in values if _is_active(v)]

    def apply(cts: Sequence[Any]) -> list[Any]:
        back = _pull_back(linear, [*cts, *[None] * extra])
        kept = [g for g, a in zip(back, linear.active_in, strict=True) if a]
        return [
            full(v.shape, 0, v.dtype) if g is None else g for v, g in zip(active, kept, strict=True)
        ]

    rows = []
    types = [array_type(o.shape, o.dtype) for o in outs]
    for o, found in zip(outs, _by_all_directions(apply, types), strict=True):
        given = iter(found)
        rows.append([
            reshape(next(given), (*o.shape, *v.shape))
            if _is_active(v)
            else np.zeros((*o.shape, *v.shape), float0)
            for v in values
        ])  # fmt: skip
    return rows


def jacfwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The Jacobian of ``fun``, one forward pass for all input elements at once.

    The result has the output's structure; in the place of each output leaf a tree like the
    argument, of arrays of shape output shape + input shape.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.jacfwd(lambda x: x * x)(snp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    return _jacobian(fun, argnums, has_aux, holomorphic, allow_int, forward=True)


def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The Jacobian of ``fun``, one backward pass for all output elements at once; see ``jacfwd``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.jacrev(lambda x: x.sum())(snp.array([1.0, 2.0]))
    Array([1., 1.], dtype=float32)
    """
    return _jacobian(fun, argnums, has_aux, holomorphic, allow_int, forward=False)


def hessian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """The second derivatives of ``fun``: ``jacfwd`` of ``jacrev``.

    >>> import stretto as st
    >>> float(st.hessian(lambda x: x**3)(2.0))
    12.0
    """
    inner = jacrev(fun, argnums, has_aux, holomorphic)
    return jacfwd(inner, argnums, has_aux, holomorphic)
