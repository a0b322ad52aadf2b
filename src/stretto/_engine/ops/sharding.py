"""Results that are asked to lie somewhere on a mesh: ``out_sharding`` of functions.

In a program it is a constraint; outside, the result is put there. ``sharding_constraint`` has the
operation.
"""

from __future__ import annotations

from typing import Any

from stretto._engine import ops


def laid_out(result: Any, sharding: Any, caller: str, argument: str = "out_sharding") -> Any:
    """Return the result, where the argument of the caller says that it is to lie.

    Args:
        result: an array.
        sharding: a ``NamedSharding``, or a ``PartitionSpec`` over the mesh in use; None for none.
        caller: the function that was called, for messages.
        argument: what it calls ``sharding``.

    Returns:
        The same values.

    Raises:
        TypeError: ``sharding`` is none, or not over a mesh.
        ValueError: an axis cannot be split so, or there is no mesh in use.
    """
    if sharding is None:
        return result
    return ops.sharding_constraint.constrained(result, sharding, caller, argument, "the result")
