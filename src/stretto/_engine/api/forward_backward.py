"""A function's forward and backward pass, as two functions: ``fwd_and_bwd``.

Layer 7 (api).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.api.arguments import as_argnums, name_of
from stretto._engine.api.derivatives import vjp
from stretto._engine.api.jit import jit

__all__ = ["fwd_and_bwd"]


def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Two functions: the way there, which gives value and residuals, and the way back from these.

    ``forward(*args)`` gives ``(output, residuals)``, with ``has_aux`` ``(output, residuals, aux)``;
    ``backward(residuals, cotangent)`` the cotangents of the arguments ``argnums``, one tree for an
    int, a tuple for several. Unless ``jitted`` is False each is compiled, once a signature, where
    ``jit`` of what ``vjp`` returns compiles once for each call of ``vjp``.

    Raises ``TypeError`` where ``fun`` is no function or ``argnums`` names no argument.

    >>> import stretto as st, stretto.numpy as snp
    >>> forward, backward = st.fwd_and_bwd(lambda x, w: x @ w, argnums=1)
    >>> y, residuals = forward(snp.arange(2.0), snp.ones(2))
    >>> float(y), backward(residuals, 1.0)
    (1.0, Array([0., 1.], dtype=float32))
    """
    who = "fwd_and_bwd"
    if not callable(fun):
        raise TypeError(f"{who}: expected a function, got {type(fun).__name__}")

    def forward(*args: Any, **kwargs: Any) -> Any:
        places = as_argnums(argnums, len(args), who)

        def of_chosen(*given: Any) -> Any:
            chosen = dict(zip(places, given, strict=True))
            return fun(*[chosen.get(i, x) for i, x in enumerate(args)], **kwargs)

        of_chosen.__name__ = name_of(fun)
        return vjp(of_chosen, *[args[i] for i in places], has_aux=has_aux)

    def backward(residuals: Any, cotangent: Any) -> Any:
        found = residuals(cotangent)
        return found if isinstance(argnums, (tuple, list)) else found[0]

    forward.__name__ = f"forward_{name_of(fun)}"
    backward.__name__ = f"backward_{name_of(fun)}"
    return (jit(forward), jit(backward)) if jitted else (forward, backward)
