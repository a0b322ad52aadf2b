"""Derivatives of functions of trees: ``jvp``, ``linearize``, ``vjp``, ``grad``.

Layer 7 (api). Forward derivatives run each operation's jvp rule; reverse ones record the linear
part of the same rules and run it backwards. Conventions for complex numbers are those of JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stretto.api.arguments import (
    LEAF,
    name_of,
    values_of_tree,
    wraps,
)
from stretto.api.flat import Flat, chosen, is_active, pull_back, zero_tangent
from stretto.control.user_rule import fits
from stretto.core import tree
from stretto.core.boundary import boundary
from stretto.core.interpreter import as_value
from stretto.core.types import ArrayType, is_complex, is_float0, is_inexact
from stretto.ops.comparison import full
from stretto.ops.convert import convert
from stretto.transforms.evaluate import evaluate
from stretto.transforms.jvp import jvp_flat
from stretto.transforms.linearize import LinearMap, linearize_flat

__all__ = [
    "Pullback",
    "Pushforward",
    "grad",
    "jvp",
    "linearize",
    "value_and_grad",
    "vjp",
]


def _tangents(types: Sequence[ArrayType], given: Sequence[Any], who: str) -> list[Any]:
    """Tangents fit for primals of these types; ``None`` for those of integers and booleans."""
    out: list[Any] = []
    for p, t in zip(types, given, strict=True):
        if is_float0(t):
            if is_inexact(p.dtype) or t.shape != p.shape:
                raise TypeError(
                    f"{who}: float0 zeros of shape {t.shape} are no tangent of {p}: they go "
                    f"with integers and booleans, and have their shape"
                )
            out.append(None)
            continue
        value = as_value(t, who, "a tangent")
        if value.shape != p.shape:
            raise ValueError(f"{who}: a tangent must have its primal's shape: {value.type}, {p}")
        if not is_inexact(p.dtype):
            if who == "vjp" and value.dtype == p.dtype:  # such as zeros like the output
                out.append(None)
                continue
            raise TypeError(
                f"{who}: the primal {p} has no derivative; its tangent must be float0 zeros, "
                f"or convert the primal to a float"
            )
        if not fits(value, p):
            raise TypeError(f"{who}: a tangent must have its primal's dtype: {value.type}, {p}")
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
    with boundary:
        if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
            raise TypeError("jvp: primals and tangents must be tuples, one entry an argument")
        values, structure = values_of_tree(tuple(primals), "jvp", "primals")
        given, other = tree.flatten(tuple(tangents))
        if other != structure:
            raise TypeError(
                f"jvp: tangents must have the structure of primals; they part at "
                f"{tree.difference(tuple(primals), tuple(tangents), 'primals')}"
            )
        flat = Flat(fun, structure, has_aux, "jvp")
        outs, douts = jvp_flat(flat, values, _tangents([v.type for v in values], given, "jvp"))
        filled = [zero_tangent(o) if t is None else t for o, t in zip(outs, douts, strict=True)]
        out, aux = flat.rebuild(outs)
        dout = tree.unflatten(flat.out, filled[: flat.count])
        return (out, dout, aux) if has_aux else (out, dout)


class _About:
    """What a derivative at a point is, but for the residuals; compared as an object."""

    __slots__ = ("in_types", "linear", "out", "out_types", "structure")

    def __init__(
        self, linear: LinearMap, flat: Flat, values: Sequence[Any], structure: Any, outs: Any
    ) -> None:
        self.linear = linear._replace(residuals=[])
        self.structure, self.in_types = structure, [v.type for v in values]
        self.out, self.out_types = flat.out, [o.type for o in outs[: flat.count]]

    def __repr__(self) -> str:
        return self.linear.program.name


class _Derivative:
    """A derivative at a point, called like a function: a tree, whose leaves are its residuals.

    So it passes through ``jit`` and other transformations, as an argument and as a result.
    """

    __slots__ = ("_about", "_residuals")

    def __init__(self, about: _About, residuals: Sequence[Any]) -> None:
        self._about = about
        self._residuals = residuals

    def _map(self) -> LinearMap:
        return self._about.linear._replace(residuals=[*self._residuals])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._about}>"


class Pushforward(_Derivative):
    """What ``linearize`` gives: the derivative at a point, of tangents."""

    __slots__ = ()

    def __call__(self, /, *tangents: Any) -> Any:
        """The output's tangent, from one of each argument."""
        about, linear = self._about, self._map()
        with boundary:
            given, other = tree.flatten(tuple(tangents))
            if other != about.structure:
                raise TypeError(
                    f"linearize: tangents have structure {other}, expected {about.structure}"
                )
            fitted = _tangents(about.in_types, given, "linearize")
            moving = [
                zero_tangent(p) if t is None else t
                for p, t, a in zip(about.in_types, fitted, linear.active_in, strict=True)
                if a
            ]
            douts = iter(evaluate(linear.program, [*moving, *linear.residuals]))
            filled = [
                next(douts) if m else zero_tangent(o)
                for o, m in zip(about.out_types, linear.active_out, strict=False)
            ]
            return tree.unflatten(about.out, filled)


class Pullback(_Derivative):
    """What ``vjp`` gives: the derivative at a point, run backwards, of cotangents."""

    __slots__ = ()

    def __call__(self, ct: Any, /) -> tuple[Any, ...]:
        """The cotangent of each argument, from one of the output."""
        about, linear = self._about, self._map()
        with boundary:
            given, other = tree.flatten(ct)
            if other != about.out:
                raise TypeError(
                    f"vjp: the cotangent must have the structure of the output, {about.out}; got "
                    f"{other}"
                )
            fitted = _tangents(about.out_types, given, "vjp")
            cts = [*fitted, *[None] * (len(linear.active_out) - len(fitted))]
            back = pull_back(linear, cts)
            filled = [
                zero_tangent(p) if g is None else g
                for p, g in zip(about.in_types, back, strict=True)
            ]
            return tree.unflatten(about.structure, filled)


for _kind in (Pushforward, Pullback):
    tree.register_pytree_node(
        _kind,
        lambda x: (tuple(x._residuals), x._about),
        lambda about, residuals, kind=_kind: kind(about, residuals),
    )


def _linearized(
    kind: type[_Derivative], fun: Callable[..., Any], primals: Sequence[Any], has_aux: bool
) -> tuple[Any, ...]:
    """The value, the derivative as an object of this kind, and aux if there is one."""
    who = "vjp" if kind is Pullback else "linearize"
    values, structure = values_of_tree(tuple(primals), who, "primals")
    flat = Flat(fun, structure, has_aux, who)
    outs, linear = linearize_flat(flat, values, [is_active(v) for v in values])
    out, aux = flat.rebuild(outs)
    about = _About(linear, flat, values, structure, outs)
    derivative = kind(about, linear.residuals)
    return (out, derivative, aux) if has_aux else (out, derivative)


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``fun`` at ``primals``, and its derivative there: a linear function of tangents.

    The work that depends on the primals alone is done once. The function is a tree of what it
    keeps of that, so that it may be a result of ``jit``, or an argument. With ``has_aux`` the
    function returns (output, aux), and aux comes third.

    >>> import stretto as st
    >>> y, f_jvp = st.linearize(lambda x: x**3, 2.0)
    >>> float(f_jvp(1.0))
    12.0
    """
    with boundary:
        return _linearized(Pushforward, fun, primals, has_aux)


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``fun`` at ``primals``, and the function from its cotangents to theirs.

    The second returns a tuple with one tree an argument. It is a tree of what it keeps, so that it
    may be a result of ``jit``, or an argument. With ``has_aux`` the function returns (output, aux),
    and aux comes third.

    >>> import stretto as st
    >>> y, f_vjp = st.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> [float(g) for g in f_vjp(1.0)]
    [3.0, 2.0]
    """
    with boundary:
        return _linearized(Pullback, fun, primals, has_aux)


def _both(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
) -> Callable[..., Any]:
    """What ``value_and_grad`` gives, but for its name, and its tracebacks."""
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
    structure, shapes and dtypes. ``holomorphic``: complex arguments and result; without it the
    gradient of the real result u by a complex argument x + iy is du/dx - i du/dy, as in JAX.
    ``allow_int``: integer leaves get float0 zeros.

    Raises ``TypeError`` for an argument or a result of the wrong kind, naming it.

    >>> import stretto as st
    >>> value, slope = st.value_and_grad(lambda x: 2 * x)(5.0)
    >>> float(value), float(slope)
    (10.0, 2.0)
    """
    return wraps(fun, "value_and_grad")(_both(fun, argnums, has_aux, holomorphic, allow_int))


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
    both = _both(fun, argnums, has_aux, holomorphic, allow_int)

    @wraps(fun, "grad")
    def grad_fun(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_fun
