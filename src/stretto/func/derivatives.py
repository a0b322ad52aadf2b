"""Derivatives with torch.func's arguments and results.

They are those of ``api/autodiff``, but for the order of results, and for complex numbers: a
gradient here is the conjugate of JAX's, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from stretto._engine.api.argument_leaves import as_argnums, wraps
from stretto._engine.api.autodiff import derivatives as api
from stretto._engine.api.autodiff import jacobians
from stretto._engine.api.autodiff.derivatives import linearize
from stretto._engine.api.autodiff.flat import Flat, is_active
from stretto._engine.autodiff.linearize import linearize_flat
from stretto._engine.core import tree
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import is_complex, is_float0
from stretto._engine.core.typing import Tree
from stretto._engine.ops.complex_parts import conj
from stretto.random.streams import refusing
from stretto.tree import Partial

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")
X = TypeVar("X", bound=Any)


def _conjugate(x: Tree) -> Tree:
    """Return the tree with its complex leaves conjugated."""

    def one(leaf: Tree) -> Tree:
        return leaf if is_float0(leaf) or not _is_complex(leaf) else conj(leaf)

    return tree.map(one, x)


def _is_complex(leaf: Tree) -> bool:
    return is_complex(as_value(leaf).dtype)


@overload
def grad_and_value(
    func: Callable[Concatenate[X, P], R], argnums: Literal[0] = 0, has_aux: Literal[False] = False
) -> Callable[Concatenate[X, P], tuple[X, R]]: ...
@overload
def grad_and_value(
    func: Callable[Concatenate[X, P], tuple[R, A]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[X, P], tuple[X, tuple[R, A]]]: ...
@overload
def grad_and_value(
    func: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[P, tuple[Any, Any]]: ...
def grad_and_value(
    func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Make a function that gives the gradient and the value of another.

    The gradient by a complex argument x + iy is du/dx + i du/dy, along which the value grows.

    Args:
        func: a function that returns a real scalar; with ``has_aux`` a pair of that and anything.
        argnums: the positional arguments to differentiate by.
        has_aux: whether ``func`` returns a pair.

    Returns:
        A function that returns (gradient, value), or (gradient, (value, aux)).

    Raises:
        TypeError: when called, as for ``st.grad``.

    As ``torch.func.grad_and_value``.

    >>> import stretto as st
    >>> slope, value = st.func.grad_and_value(lambda x: x**2)(3.0)
    >>> float(slope), float(value)
    (6.0, 9.0)
    """
    both = api.value_and_grad(func, argnums, has_aux)

    @wraps(func, "grad_and_value")
    def grad_and_value_func(*args: Any, **kwargs: Any) -> Tree:
        value, gradient = both(*args, **kwargs)
        return _conjugate(gradient), value

    return grad_and_value_func


@overload
def grad(
    func: Callable[Concatenate[X, P], Any], argnums: Literal[0] = 0, has_aux: Literal[False] = False
) -> Callable[Concatenate[X, P], X]: ...
@overload
def grad(
    func: Callable[Concatenate[X, P], tuple[Any, A]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[X, P], tuple[X, A]]: ...
@overload
def grad(
    func: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[P, Any]: ...
def grad(
    func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Make a function that gives the gradient of another; see ``grad_and_value``.

    Args:
        func: a function that returns a real scalar; with ``has_aux`` a pair of that and anything.
        argnums: the positional arguments to differentiate by.
        has_aux: whether ``func`` returns a pair.

    Returns:
        A function that returns the gradient, or (gradient, aux).

    Raises:
        TypeError: when called, as for ``st.grad``.

    As ``torch.func.grad``.

    >>> import stretto as st
    >>> float(st.func.grad(lambda x: x**2)(3.0))
    6.0
    """
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func, "grad")
    def grad_func(*args: Any, **kwargs: Any) -> Tree:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_func


@overload
def vjp(
    func: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Callable[[Any], tuple[Any, ...]]]: ...
@overload
def vjp(
    func: Callable[..., tuple[R, A]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, Callable[[Any], tuple[Any, ...]], A]: ...
@overload
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool) -> tuple[Any, ...]: ...
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Tree:
    """Run a function, and give the one that takes its cotangents back to its arguments.

    For complex numbers the cotangent is multiplied by the conjugate of the derivative, as in
    PyTorch.

    Args:
        func: the function; with ``has_aux`` it returns a pair of its output and anything.
        *primals: its arguments, trees of arrays.
        has_aux: whether it returns a pair.

    Returns:
        The output; the function from its cotangents to a tuple of those of ``primals``; and aux if
            asked for.

    As ``torch.func.vjp``.

    >>> import stretto as st
    >>> out, vjp_fn = st.func.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> [float(g) for g in vjp_fn(1.0)]
    [3.0, 2.0]
    """
    out, pull, *aux = api.vjp(func, *primals, has_aux=has_aux)

    return (out, Partial(_pull_back, pull), *aux)


def _pull_back(pull: Callable[..., Any], cotangents: Tree) -> Tree:
    """Return the cotangents of the primals, by PyTorch's convention."""
    return _conjugate(pull(_conjugate(cotangents)))


@overload
def jvp(
    func: Callable[..., R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    strict: bool = False,
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    func: Callable[..., tuple[R, A]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    strict: bool = False,
    has_aux: Literal[True],
) -> tuple[R, R, A]: ...
@overload
def jvp(
    func: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    strict: bool = False,
    has_aux: bool,
) -> tuple[Any, ...]: ...
def jvp(
    func: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Tree:
    """Run a function, and give the derivative of its output along a direction.

    Args:
        func: the function; with ``has_aux`` it returns a pair of its output and anything.
        primals: a tuple of its arguments.
        tangents: the direction, a tuple like it.
        strict: refuse an output that does not depend on the primals; otherwise its derivative is
            zero.
        has_aux: whether it returns a pair.

    Returns:
        The output, its derivative, and aux if asked for.

    Raises:
        ValueError: with ``strict``, an output does not depend on the primals.

    As ``torch.func.jvp``.

    >>> import stretto as st
    >>> [float(x) for x in st.func.jvp(lambda x: x**2, (3.0,), (1.0,))]
    [9.0, 6.0]
    """
    if strict:
        values, structure = tree.flatten(tuple(primals))
        values = [as_value(x, "func.jvp", "a primal") for x in values]
        flat = Flat(func, structure, has_aux, "func.jvp")
        linear = linearize_flat(flat, values, [is_active(v) for v in values])[1]
        if not all(linear.active_out[: flat.count]):
            raise ValueError(
                f"func.jvp: strict=True, and an output of {flat.name} does not depend on the "
                f"primals"
            )
    return api.jvp(func, primals, tangents, has_aux)


def jacrev(
    func: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[P, Any]:
    """Make a function that gives the Jacobian of another, by reverse mode.

    Args:
        func: a function of real arrays with real results.
        argnums: the positional arguments to differentiate by.
        has_aux: whether ``func`` returns a pair of its output and anything.
        chunk_size: rows at a time, to save memory; all by default.

    Returns:
        A function that returns the Jacobian, or (Jacobian, aux).

    Raises:
        TypeError: in a call, an argument is complex.

    As ``torch.func.jacrev``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.func.jacrev(lambda x: x * x, chunk_size=1)(snp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    return _real(
        func, argnums, "jacrev", jacobians.jacrev(func, argnums, has_aux, chunk_size=chunk_size)
    )


def jacfwd(
    func: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[P, Any]:
    """Make a function that gives the Jacobian of another, by forward mode.

    ``func`` is run once for all directions.

    Args:
        func: a function of real arrays with real results.
        argnums: the positional arguments to differentiate by.
        has_aux: whether ``func`` returns a pair of its output and anything.
        randomness: ``"same"`` lets ``func`` draw from the ambient stream, ``"error"`` refuses that.

    Returns:
        A function that returns the Jacobian, or (Jacobian, aux).

    Raises:
        TypeError: in a call, an argument is complex.
        ValueError: ``randomness`` is neither.

    As ``torch.func.jacfwd``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.func.jacfwd(lambda x: x * x)(snp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    if randomness not in ("error", "same"):
        raise ValueError(
            f"func.jacfwd: randomness must be 'error' or 'same', got {randomness!r}: all columns "
            f"are derivatives of one function, with one set of draws"
        )

    @wraps(func, "fixed")
    def fixed(*args: Any, **kwargs: Any) -> Tree:
        with refusing("func.jacfwd does not allow it by default: pass randomness='same'"):
            return func(*args, **kwargs)

    of = fixed if randomness == "error" else func
    return _real(func, argnums, "jacfwd", jacobians.jacfwd(of, argnums, has_aux))


def _real(
    func: Callable[..., Any],
    argnums: int | Sequence[int],
    caller: str,
    jacobian: Callable[..., Any],
) -> Callable[..., Any]:
    """Make the same of a function, for real arguments alone."""

    @wraps(func, caller)
    def jacobian_func(*args: Any, **kwargs: Any) -> Tree:
        for i in as_argnums(argnums, len(args), caller):
            if any(map(_is_complex, tree.leaves(args[i]))):
                raise TypeError(
                    f"func.{caller}: argument {i} is complex; take derivatives by its real and "
                    f"imaginary parts, or use st.{caller} with holomorphic=True"
                )
        return jacobian(*args, **kwargs)

    return jacobian_func


def hessian(func: Callable[P, Any], argnums: int | Sequence[int] = 0) -> Callable[P, Any]:
    """Make a function that gives the second derivatives of another: ``jacfwd`` of ``jacrev``.

    Args:
        func: a function of real arrays that returns a real scalar.
        argnums: the positional arguments to differentiate by.

    Returns:
        A function that returns the Hessian.

    As ``torch.func.hessian``.

    >>> import stretto as st
    >>> float(st.func.hessian(lambda x: x**3)(2.0))
    12.0
    """
    return jacfwd(jacrev(func, argnums), argnums)
