"""Operations that hold programs: calls, branches, loops, users' own derivative rules."""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto._engine.higher_order import (
        scan,
        stop_gradient,
        while_loop,
        cond,
        checkpoint,
        custom_function,
        family,
    )

exports(__name__)
