"""Types, programs, primitives and the current interpreter, on which every other layer is built.

Read ``types`` (shapes and dtypes), ``program`` (what tracing gives), ``primitive`` (what an
operation is), ``interpreter`` (who decides what an operation does), then ``recorder`` (how a Python
function becomes a program).
"""

from stretto._engine.core import trees_at_exit

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto._engine.core import cards, files, migration, shardings, tree

exports(__name__)
