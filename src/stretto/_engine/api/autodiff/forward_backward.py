"""A function's forward and backward pass, as two functions: ``fwd_and_bwd``.

It is ``vjp`` with ``jit`` around each half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

from stretto._engine.api.arguments import as_argnums
from stretto._engine.api.autodiff.derivatives import vjp
from stretto._engine.api.jit.jit import jit
from stretto._engine.core.functions import name_of

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


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
        argnums: the position of the argument to differentiate by, or several.
        has_aux: whether ``fun`` returns a pair (output, aux), of which aux has no derivative.
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
    >>> forward, backward = st.fwd_and_bwd(lambda x, w: x @ w, argnums=1)
    >>> y, residuals = forward(snp.arange(2.0), snp.ones(2))
    >>> float(y), backward(residuals, 1.0)
    (1.0, Array([0., 1.], dtype=float32))
    """
    caller = "fwd_and_bwd"
    if not callable(fun):
        raise TypeError(f"{caller}: expected a function, got {type(fun).__name__}")

    def forward(*args: Any, **kwargs: Any) -> Any:
        places = as_argnums(argnums, len(args), caller)

        def of_chosen(*chosen_args: Any) -> Any:
            chosen = dict(zip(places, chosen_args, strict=True))
            return fun(*[chosen.get(i, x) for i, x in enumerate(args)], **kwargs)

        of_chosen.__name__ = name_of(fun)
        return vjp(of_chosen, *[args[i] for i in places], has_aux=has_aux)

    def backward(residuals: Any, cotangent: Any) -> Any:
        cotangents = residuals(cotangent)
        return cotangents if isinstance(argnums, (tuple, list)) else cotangents[0]

    forward.__name__ = f"forward_{name_of(fun)}"
    backward.__name__ = f"backward_{name_of(fun)}"
    return (jit(forward), jit(backward)) if jitted else (forward, backward)
