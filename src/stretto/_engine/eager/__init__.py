"""The short ways in front of operations: interpreters at rest, and NumPy for whole functions.

Begin with ``interpreter``, which runs an operation outside of any transformation; ``table`` says
which calls the extension in C does without it, ``twins`` puts NumPy in front of functions of
operations, and ``interpreted`` is the way of small programs.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto._engine.eager import checked

exports(__name__)
