"""Operations that hold programs: calls, branches, loops, users' own derivative rules.

Read ``family`` (what they share), ``call`` (the simplest), ``cond``, ``while_loop``, ``scan`` and
``loops``, then ``custom_jvp`` and ``custom_vjp``.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto._engine.higher_order import (
        checkpoint,
        cond,
        family,
        in_python,
        scan,
        stop_gradient,
        while_loop,
    )

exports(__name__)
