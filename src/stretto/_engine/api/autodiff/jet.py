"""``jet``: derivatives of higher orders along a curve, all at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.api.argument_leaves import values_of_tree
from stretto._engine.api.autodiff.flat import Flat
from stretto._engine.api.autodiff.linear_functions import tangents_of
from stretto._engine.autodiff.jet import jet_flat
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.types import is_inexact
from stretto._engine.ops.comparison import zeros_like


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
