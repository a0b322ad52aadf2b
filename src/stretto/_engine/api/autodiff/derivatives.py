"""Derivatives of functions of trees: ``jvp``, ``linearize``, ``vjp``, ``grad``, ``jet``.

Forward derivatives run each operation's jvp rule (``autodiff/jvp``). Reverse ones record the linear
part of the same rules (``autodiff/linearize``) and run it backwards (``autodiff/transpose``). Here
trees are flattened, arguments chosen and types checked. Conventions for complex numbers are JAX's.

``fwd_and_bwd`` is ``vjp`` with ``jit`` around each half. ``jet`` has derivatives of higher orders
along a curve, all at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from stretto._engine.api.argument_leaves import (
    LEAF,
    Flat,
    as_argnums,
    chosen,
    is_active,
    of_derivative,
    pull_back,
    values_of_tree,
    wraps,
)
from stretto._engine.api.autodiff.linear_functions import JvpFunction, VjpFunction, tangents_of
from stretto._engine.api.jit.jit import jit
from stretto._engine.autodiff.jet import jet_flat
from stretto._engine.autodiff.jvp import jvp_flat
from stretto._engine.autodiff.linearize import LinearMap, linearize_flat
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.functions import name_of
from stretto._engine.core.recorder import closing_over
from stretto._engine.core.types import is_complex, is_inexact
from stretto._engine.higher_order.custom_function import zero_tangent
from stretto._engine.ops.comparison import full, zeros_like

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")
X = TypeVar("X", bound=Any)


@overload
def jvp(
    fun: Callable[..., R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, A]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[True],
) -> tuple[R, R, A]: ...
@overload
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool
) -> tuple[Any, ...]: ...
@of_derivative
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """Compute the value of ``fun`` at ``primals``, and its derivative there along ``tangents``.

    Args:
        fun: a function of trees of arrays.
        primals: the arguments, a tuple or list of trees.
        tangents: a tuple or list of trees of the same structure, shapes and dtypes.

    Returns:
        The output and its tangent, like each other; with ``has_aux`` then aux.

    Raises:
        TypeError: ``primals`` or ``tangents`` is neither tuple nor list, or the tangents differ
            from their primals in structure or dtype.
        ValueError: a tangent differs from its primal in shape.

    >>> import stretto as st
    >>> [float(x) for x in st.jvp(lambda x: x**2, (3.0,), (1.0,))]
    [9.0, 6.0]
    """
    with boundary:
        if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
            raise TypeError("jvp: primals and tangents must be tuples, one entry an argument")
        values, structure = values_of_tree(tuple(primals), "jvp", "primals")
        leaves, tangents_structure = tree.flatten(tuple(tangents))
        if tangents_structure != structure:
            raise TypeError(
                f"jvp: tangents must have the structure of primals; they part at "
                f"{tree.difference(tuple(primals), tuple(tangents), 'primals')}"
            )
        flat = Flat(fun, structure, has_aux, "jvp")
        outs, douts = jvp_flat(flat, values, tangents_of([v.type for v in values], leaves, "jvp"))
        filled = [zero_tangent(o) if t is None else t for o, t in zip(outs, douts, strict=True)]
        out, aux = flat.rebuild(outs)
        dout = tree.unflatten(flat.out, filled[: flat.count])
        return (out, dout, aux) if has_aux else (out, dout)


def _linearized(
    fun: Callable[..., Any], primals: Sequence[Any], has_aux: bool, caller: str
) -> tuple[Flat, list[Any], Any, list[Any], LinearMap]:
    values, structure = values_of_tree(tuple(primals), caller, "primals")
    flat = Flat(fun, structure, has_aux, caller)
    # As many residuals at every point: the map is a tree of them, which loops carry.
    outs, linear = closing_over(linearize_flat, flat, values, [is_active(v) for v in values])
    return flat, values, structure, outs, linear


@overload
def linearize(
    fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, A]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, Callable[..., R], A]: ...
@overload
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool) -> tuple[Any, ...]: ...
@of_derivative
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Compute the value of ``fun`` at ``primals``, and its derivative there as a linear function.

    The work that depends on the primals alone is done once. The function is a tree of what that
    gave: it may be returned from ``jit``, carried by a loop, and mapped.

    Args:
        fun: a function of trees of arrays.
        *primals: its arguments.

    Returns:
        The output, and a function from tangents, one tree for each argument, to that of the
        output; with ``has_aux`` then aux.

    Raises:
        TypeError: an argument is not a tree of arrays.

    >>> import stretto as st
    >>> y, f_jvp = st.linearize(lambda x: x**3, 2.0)
    >>> float(f_jvp(1.0))
    12.0
    """
    with boundary:
        flat, values, structure, outs, linear = _linearized(fun, primals, has_aux, "linearize")
        out, aux = flat.rebuild(outs)
    apply = JvpFunction.of(flat, structure, values, outs, linear)
    return (out, apply, aux) if has_aux else (out, apply)


@overload
def vjp(
    fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Callable[[Any], tuple[Any, ...]]]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, A]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, Callable[[Any], tuple[Any, ...]], A]: ...
@overload
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool) -> tuple[Any, ...]: ...
@of_derivative
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Compute the value of ``fun`` at ``primals``, and the function from its cotangents to theirs.

    That function is a tree of the values that it needs: it may be returned from ``jit``, carried by
    a loop, and mapped.

    Args:
        fun: a function of trees of arrays.
        *primals: its arguments.

    Returns:
        The output, and a function from a cotangent like it to a tuple with one tree for each
        argument; with ``has_aux`` then aux.

    Raises:
        TypeError: an argument is not a tree of arrays.

    >>> import stretto as st
    >>> y, f_vjp = st.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> [float(g) for g in f_vjp(1.0)]
    [3.0, 2.0]
    >>> f_vjp = st.jit(lambda x: st.vjp(st.numpy.sin, x)[1])(0.0)
    >>> [float(g) for g in f_vjp(2.0)]
    [2.0]
    """
    with boundary:
        flat, values, structure, outs, linear = _linearized(fun, primals, has_aux, "vjp")
        out, aux = flat.rebuild(outs)
    cotangents = VjpFunction.of(flat, structure, values, outs, linear)
    return (out, cotangents, aux) if has_aux else (out, cotangents)


def _both(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
) -> Callable[..., Any]:
    """Return the function that ``value_and_grad`` makes, without name and filtered tracebacks."""
    name = name_of(fun)

    def both(*args: Any, **kwargs: Any) -> Any:
        of_chosen = chosen(fun, args, kwargs, argnums, "grad")
        values, structure = of_chosen.values, of_chosen.structure
        of_chosen.check(holomorphic, allow_int)
        flat = Flat(of_chosen, structure, has_aux, "grad", name)
        outs, linear = linearize_flat(flat, values, [is_active(v) for v in values])
        if flat.out != LEAF or outs[0].shape or not is_inexact(outs[0].dtype):
            got = ", ".join(map(repr, [o.type for o in outs[: flat.count]])) or "no array"
            got += " in a tree" if flat.count == 1 and flat.out != LEAF else ""
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
        back = pull_back(linear, cts)
        filled = [zero_tangent(v) if g is None else g for v, g in zip(values, back, strict=True)]
        grads = tree.unflatten(structure, filled)
        value, aux = flat.rebuild(outs)
        gradient = grads if isinstance(argnums, (tuple, list)) else grads[0]
        return ((value, aux) if has_aux else value), gradient

    return both


@overload
def value_and_grad(
    fun: Callable[Concatenate[X, P], R],
    argnums: Literal[0] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[X, P], tuple[R, X]]: ...
@overload
def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[R, Any]]: ...
@of_derivative
def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Make a function that gives the value of ``fun`` and its gradient.

    The gradient of a real result u by a complex argument x + iy is du/dx - i du/dy, as in JAX.

    Args:
        fun: a function of trees of arrays that returns a real scalar; with ``has_aux`` a pair of
            that and anything.

    Returns:
        A function of the same arguments that returns (value, gradient), with ``has_aux``
        ((value, aux), gradient). The gradient has the structure, shapes and dtypes of its
        argument; for several ``argnums`` it is a tuple.

    Raises:
        TypeError: ``fun`` is not a function; or, in a call, an argument or the result is of the
            wrong kind, which is named, or ``argnums`` names an argument that is not there.
        ValueError: in a call, ``argnums`` names an argument twice.

    >>> import stretto as st
    >>> value, slope = st.value_and_grad(lambda x: 2 * x)(5.0)
    >>> float(value), float(slope)
    (10.0, 2.0)
    """
    return wraps(fun, "value_and_grad")(_both(fun, argnums, has_aux, holomorphic, allow_int))


@overload
def grad(
    fun: Callable[Concatenate[X, P], Any],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[X, P], X]: ...
@overload
def grad(
    fun: Callable[Concatenate[X, P], tuple[Any, A]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[X, P], tuple[X, A]]: ...
@overload
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]: ...
@of_derivative
def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Make a function that gives the gradient of ``fun``.

    Args:
        fun: a function of trees of arrays that returns a real scalar; with ``has_aux`` a pair of
            that and anything.

    Returns:
        A function of the same arguments that returns the gradient, as ``value_and_grad`` does;
        with ``has_aux`` (gradient, aux).

    Raises:
        TypeError: as for ``value_and_grad``.
        ValueError: as for ``value_and_grad``.

    >>> import stretto as st
    >>> float(st.grad(st.grad(lambda x: 2 * x**3))(1.0))
    12.0
    """
    both = _both(fun, argnums, has_aux, holomorphic, allow_int)

    @wraps(fun, "grad")
    def grad_fun(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_fun


@overload
def fwd_and_bwd(
    fun: Callable[P, R],
    argnums: int | Sequence[int],
    has_aux: Literal[False] = False,
    jitted: bool = True,
) -> tuple[Callable[P, tuple[R, Any]], Callable[[Any, Any], Any]]: ...
@overload
def fwd_and_bwd(
    fun: Callable[P, tuple[R, A]],
    argnums: int | Sequence[int],
    has_aux: Literal[True],
    jitted: bool = True,
) -> tuple[Callable[P, tuple[R, Any, A]], Callable[[Any, Any], Any]]: ...
@overload
def fwd_and_bwd(
    fun: Callable[P, Any], argnums: int | Sequence[int], has_aux: bool, jitted: bool = True
) -> tuple[Callable[P, tuple[Any, ...]], Callable[[Any, Any], Any]]: ...
@of_derivative
def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Make two functions: the forward pass, which also gives residuals, and the backward pass.

    Each is compiled once a signature, where ``jit`` of what ``vjp`` returns compiles once for each
    call of ``vjp``.

    Args:
        fun: a function of trees of arrays.
        jitted: whether the two functions are compiled.

    Returns:
        ``forward(*args)``, which gives (output, residuals), with ``has_aux`` (output, residuals,
        aux); and ``backward(residuals, cotangent)``, which gives the cotangents of the arguments
        ``argnums``, one tree for an int, a tuple for several.

    Raises:
        TypeError: ``fun`` is not a function; or, in a call, ``argnums`` names an argument that is
            not there.
        ValueError: in a call, ``argnums`` names an argument twice.

    >>> import stretto as st, stretto.numpy as snp
    >>> forward, backward = fwd_and_bwd(lambda x, w: x @ w, argnums=1)
    >>> y, residuals = forward(snp.arange(2.0), snp.ones(2))
    >>> float(y), backward(residuals, 1.0)
    (1.0, Array([0., 1.], dtype=float32))
    """
    caller = "fwd_and_bwd"
    if not callable(fun):
        raise TypeError(f"{caller}: expected a function, got {type(fun).__name__}")

    def forward(*args: Any, **kwargs: Any) -> Any:
        positions = as_argnums(argnums, len(args), caller)

        def of_chosen(*chosen_args: Any) -> Any:
            chosen = dict(zip(positions, chosen_args, strict=True))
            return fun(*[chosen.get(i, x) for i, x in enumerate(args)], **kwargs)

        of_chosen.__name__ = name_of(fun)
        return vjp(of_chosen, *[args[i] for i in positions], has_aux=has_aux)

    def backward(residuals: Any, cotangent: Any) -> Any:
        cotangents = residuals(cotangent)
        return cotangents if isinstance(argnums, (tuple, list)) else cotangents[0]

    forward.__name__ = f"forward_{name_of(fun)}"
    backward.__name__ = f"backward_{name_of(fun)}"
    return (jit(forward), jit(backward)) if jitted else (forward, backward)


def jet(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Sequence[Any]],
    factorial_scaled: bool = True,
) -> tuple[Any, Any]:
    """Compute the value of ``fun`` along a curve, and its derivatives of higher orders there.

    For a curve x(t) whose derivatives at 0 are ``primals``, then ``series``, these are the
    derivatives of fun(x(t)): the Taylor series of the composition. The work for K orders grows as
    K² for each product, where K nested ``jvp`` take 2ᴷ; a loop takes 2ᴷ here, too.

    Args:
        fun: a function of trees of arrays.
        primals: the arguments, a tuple or list of trees.
        series: for each argument a list of its derivatives along the curve, the first order
            first, each a tree like the argument; what is missing is zero.
        factorial_scaled: whether terms are derivatives; otherwise they are coefficients of the
            Taylor series, which are derivatives divided by k!.

    Returns:
        The output, and a tree like it with the list of derivatives at each leaf, as many as the
        longest of ``series`` has. For outputs that are not floating they are zeros.

    Raises:
        TypeError: ``primals`` or ``series`` is neither tuple nor list, or a term differs from its
            argument in structure or dtype.
        ValueError: there are not as many series as arguments, or a term differs from its argument
            in shape.
        MissingRuleError: an operation has no derivative.

    Source: Bettencourt, Johnson and Duvenaud, "Taylor-mode automatic differentiation for
    higher-order derivatives in JAX", 2019.

    >>> import stretto as st, stretto.numpy as snp
    >>> value, terms = st.jet(snp.exp, (0.0,), ([1.0, 0.0, 0.0],))
    >>> float(value), [float(x) for x in terms]
    (1.0, [1.0, 1.0, 1.0])
    >>> value, terms = st.jet(lambda x: x**3, (2.0,), ([1.0, 0.0, 0.0],))
    >>> float(value), [float(x) for x in terms]
    (8.0, [12.0, 12.0, 6.0])
    """
    with boundary:
        if not isinstance(primals, (tuple, list)) or not isinstance(series, (tuple, list)):
            raise TypeError("jet: primals and series must be tuples, one entry an argument")
        if len(primals) != len(series):
            raise ValueError(
                f"jet: expected a series for each argument, got {len(series)} for {len(primals)}"
            )
        values, structure = values_of_tree(tuple(primals), "jet", "primals")
        order = max([len(terms) for terms in series], default=0)
        every: list[list[Any]] = [[v] for v in values]
        start = 0
        for number, (primal, terms) in enumerate(zip(primals, series, strict=True)):
            count = tree.structure(primal).num_leaves
            own = every[start : start + count]
            start += count
            for k, term in enumerate(terms, 1):
                leaves, term_structure = tree.flatten(term)
                if term_structure != tree.structure(primal):
                    raise TypeError(
                        f"jet: term {k} of argument {number} must have the structure of the "
                        f"argument; they part at {tree.difference(primal, term, 'primals')}"
                    )
                tangents = tangents_of([column[0].type for column in own], leaves, "jet")
                for column, tangent in zip(own, tangents, strict=True):
                    column.append(_scaled(tangent, 1 if factorial_scaled else math.factorial(k)))
        flat = Flat(fun, structure, False, "jet")
        outs = jet_flat(flat, every, order)
        found = [_filled(terms, factorial_scaled) for terms in outs]
        value = tree.unflatten(flat.out, [terms[0] for terms in outs])
        return value, tree.unflatten(flat.out, found)


def _scaled(term: Any, factor: float) -> Any:
    return term if term is None or factor == 1 else term * factor


def _filled(terms: list[Any], factorial_scaled: bool) -> list[Any]:
    """Return the terms after the first, with zeros where they are zero."""
    zero = zeros_like(terms[0])
    if not is_inexact(zero.dtype):
        return [zero] * (len(terms) - 1)
    scales = [1 if factorial_scaled else 1 / math.factorial(k) for k in range(len(terms))]
    return [
        zero if t is None else _scaled(t, c) for t, c in zip(terms[1:], scales[1:], strict=True)
    ]
