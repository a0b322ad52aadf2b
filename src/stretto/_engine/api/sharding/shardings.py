"""The shardings that ``jit`` is given: ``in_shardings`` and ``out_shardings``.

Trees of shardings that are prefixes of the arguments, or of the result, become one sharding for
each leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from stretto._engine.core import tree
from stretto._engine.core.shardings import NamedSharding, Sharding, check_split
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.sharding_constraint import named_here


class Shardings(NamedTuple):
    """The shardings that ``jit`` was given; None where it was given none."""

    ins: Any = None
    outs: Any = None

    def of_arguments(
        self,
        args: Sequence[Any],
        types: Sequence[ArrayType],
        there: Sequence[Sharding | None],
        caller: str,
        names: Callable[[], Sequence[str]],
    ) -> tuple[Sharding | None, ...]:
        """Return the sharding that each leaf of the arguments is to have.

        ``there`` says where the leaves are, if any has a sharding. Raises ``ValueError`` for a leaf
        that has another sharding than the one asked for, or cannot be split so.
        """
        wanted = tree.prefix_leaves(self.ins, tuple(args), caller, "in_shardings")
        wanted += [None] * (len(types) - len(wanted))  # keyword arguments
        result: list[Sharding | None] = []
        for i, (asked, type) in enumerate(zip(wanted, types, strict=True)):
            has = there[i] if there else None
            if asked is None:
                result.append(has)
                continue
            sharding = named_here(asked, caller, "in_shardings")
            fit(sharding, type, f"{caller}: {names()[i]}, {type},")
            if has is not None and not sharding.is_equivalent_to(has, type.ndim):
                raise ValueError(
                    f"{caller}: {names()[i]}, {type}, has the sharding {has}, and in_shardings "
                    f"asks for {sharding}: put it there first, stretto.device_put({names()[i]}, "
                    f"sharding), or leave it out of in_shardings (None) to have it followed"
                )
            result.append(has or sharding)
        return tuple(result)

    def of_results(
        self, structure: Any, types: Sequence[ArrayType], caller: str
    ) -> tuple[Sharding | None, ...]:
        """Return the sharding that each leaf of the result is to have; empty if none is asked for.

        Raises ``ValueError`` for a result that cannot be split so.
        """
        if self.outs is None:
            return ()
        result = tree.unflatten(structure, range(len(types)))
        wanted = tree.prefix_leaves(self.outs, result, caller, "out_shardings")
        shardings = [
            None if asked is None else named_here(asked, caller, "out_shardings")
            for asked in wanted
        ]
        for sharding, type, path in zip(
            shardings, types, tree.paths(result, "the result"), strict=True
        ):
            if sharding is not None:
                fit(sharding, type, f"{caller}: {path}, {type},")
        return tuple(shardings)


FREE = Shardings()
"""No sharding is asked for."""


def shardings_of(leaves: Sequence[Any]) -> tuple[Sharding | None, ...]:
    """Return the shardings of arrays, or of what describes them; empty if none has one."""
    there = tuple([getattr(x, "_sharding", None) for x in leaves])
    return there if any(there) else ()


def fit(sharding: Sharding, type: ArrayType, what: str) -> None:
    """Raise ``ValueError`` unless an array of this type can have the sharding."""
    if isinstance(sharding, NamedSharding):
        check_split(sharding, type.shape, what)
