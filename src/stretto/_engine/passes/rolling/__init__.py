"""Loops found in straight-line code.

Read ``roll_loops`` (the pass), ``stretches`` (what repeats), ``operands`` (whether it is a loop),
``liveness`` and ``profit`` (whether it is worth it), ``selection``, ``rewrite``.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto._engine.passes.rolling import profit, selection, stretches

exports(__name__)
