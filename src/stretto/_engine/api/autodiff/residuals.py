"""What a reverse derivative keeps from the forward pass: ``print_saved_residuals``.

Useful when choosing what a ``checkpoint`` should keep.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stretto._engine.api.arguments import LeafNames, as_values
from stretto._engine.api.autodiff.flat import Flat, is_active
from stretto._engine.autodiff.linearize import linearize_flat
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import Tracer
from stretto._engine.core.recorder import record


def print_saved_residuals(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print the type of each value that ``vjp`` of ``fun`` keeps, and what it was computed by.

    Args:
        fun: a function of trees of arrays.
        *args: its arguments.
        **kwargs: the same, by name.

    Raises:
        TypeError: an argument is not a tree of arrays.

    >>> import stretto as st, stretto.numpy as snp
    >>> def loss(x, w):
    ...     return snp.dot(snp.sin(x), w)
    >>> st.ad_checkpoint.print_saved_residuals(loss, snp.ones(3), snp.ones(3))
    float32[3] computed by cos at ... (loss) from the argument x
    float32[3] the argument w
    float32[3] computed by sin at ... (loss) from the argument x
    """
    lines: list[str] = []
    caller = name_of(fun)

    def flat(*values: Any) -> Any:
        function = Flat(lambda a, k: fun(*a, **k), structure, False, caller)
        outs, linear = linearize_flat(function, values, [is_active(v) for v in values])
        for kept in linear.residuals:
            origin = kept.origin() if isinstance(kept, Tracer) else "a captured array"
            lines.append(f"{kept.type} {origin}")
        return outs, None

    with boundary:
        leaves, structure = tree.flatten((args, kwargs))
        names = LeafNames(fun, args, kwargs)
        values = as_values(leaves, caller, lambda: names)
        record(flat, [v.type for v in values], names, caller)
    print(*lines, sep="\n")
