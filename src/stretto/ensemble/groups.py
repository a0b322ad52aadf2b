"""What members of one architecture have in common, and one member of them.

A group has a function, the structure of one member, and the names of its arrays. These are stacked,
with the members along axis 0, or, where members share them, there once. Before this, read ``tied``;
next, ``grouping``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from stretto._engine.core import tree
from stretto._engine.core.lazy import shown
from stretto._engine.core.typing import Tree
from stretto.ensemble.tied import Ties, retied, untied

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    M_co = TypeVar("M_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    M_co = TypeVar("M_co", covariant=True)
"""What a member is: its module, or ``Member``. ``Ensemble`` alone has members of any type."""

__all__ = ["Group", "M_co", "Member", "call_module", "changed", "moved"]


def call_module(module: Callable[..., Any], *args: Any, **kwargs: Any) -> Tree:
    """What an ensemble of modules does with a member."""
    return module(*args, **kwargs)


@shown("stretto.ensemble.showing", "card_of_member", "member_text")
class Member:
    """One member of an ensemble of functions: its parameters, and a call of the function on them.

    >>> import stretto as st
    >>> ensemble = st.Ensemble(lambda p, x: p * x, [2.0, 3.0])
    >>> ensemble[1](st.numpy.ones(2))
    Array([3., 3.], dtype=float32)
    """

    def __init__(self, function: Callable[..., Any], params: Tree) -> None:
        self.function, self.params = function, params

    def __call__(self, *args: Any, **kwargs: Any) -> Tree:
        """The function of the parameters and these arguments."""
        return self.function(self.params, *args, **kwargs)


tree.register_attributes(
    Member,
    lambda member: ([member.params], member.function, ("params",)),
    lambda function, children: Member(function, children[0]),
)


@dataclasses.dataclass(frozen=True)
class Group:
    """What members of one architecture have in common; static, and compared by value."""

    function: Callable[..., Any]
    structure: Any
    """Of one member, without the second places of what it holds twice."""
    names: tuple[str, ...]
    """Of its leaves, dotted."""
    shared: tuple[bool, ...]
    """Which leaves all members share."""
    trained: tuple[bool, ...]
    """Which leaves an optimiser may change: parameters of inexact dtype that are not frozen."""
    places: tuple[int, ...]
    """Where its members stand in the ensemble."""
    ties: Ties = ()
    """The second places, each with the first."""

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self.places)

    @property
    def axes(self) -> list[int | None]:
        """The member axis of each leaf; ``None`` where it is shared."""
        return [None if s else 0 for s in self.shared]

    def of(self, leaves: Sequence[Any]) -> Tree:
        """The callable of one member with these leaves: the module, or a ``Member``."""
        params = retied(tree.unflatten(self.structure, leaves), self.ties)
        return params if self.function is call_module else Member(self.function, params)

    def leaves_of(self, member: Tree) -> list[Any]:
        """The leaves of such a callable."""
        params = member if self.function is call_module else member.params
        return tree.leaves(untied(params, self.ties))

    def whole(self) -> Tree:
        """A member's parameters with all places filled: with the numbers of the leaves there."""
        return retied(tree.unflatten(self.structure, range(len(self.names))), self.ties)


def changed(group: Group, **fields: Any) -> Group:
    """The group with other fields."""
    return dataclasses.replace(group, **fields)


def moved(group: Group, places: Iterable[int]) -> Group:
    """The group with its members at other places of the ensemble."""
    return changed(group, places=tuple(places))
