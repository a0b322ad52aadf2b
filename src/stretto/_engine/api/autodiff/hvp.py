"""``hvp``: the product of a Hessian and a vector, without computing the Hessian.

It is ``jvp`` of ``grad``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.api.autodiff.derivatives import grad, jvp
from stretto._engine.core.functions import name_of


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
        has_aux: whether ``fun`` returns a pair (output, aux), of which aux has no derivative.

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
