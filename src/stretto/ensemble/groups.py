"""What members of one architecture have in common, and one member of them.

A group has a function, the structure of one member, and the names of its arrays. These are stacked,
with the members along axis 0, or, where members share them, there once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from stretto._engine.core import tree
from stretto._engine.core.lazy import shown
from stretto._engine.core.typing import Tree
from stretto.ensemble.tied import Ties, retied, untied
from stretto.nn.module import Module
from stretto.nn.module_tree import BORROWED

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    M_co = TypeVar("M_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    M_co = TypeVar("M_co", covariant=True)
"""What a member is: its module, or ``Member``. ``Ensemble`` alone has members of any type."""


def call_module(module: Callable[..., Any], *args: Any, **kwargs: Any) -> Tree:
    """What an ensemble of modules does with a member."""
    return module(*args, **kwargs)


@shown("stretto.ensemble.ensemble_cards", "card_of_member", "member_text")
class Member:
    """One member of an ensemble of functions: its parameters, and a call of the function on them.

    >>> import stretto as st
    >>> ensemble = st.Ensemble(lambda p, x: p * x, [2.0, 3.0])
    >>> ensemble[1](st.numpy.ones(2))
    Array([3., 3.], dtype=float32)
    """

    function: Callable[..., Any]
    params: Tree

    def __init__(self, function: Callable[..., Any], params: Tree) -> None:
        self.__dict__.update(function=function, params=params)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse a change, which the ensemble would not see."""
        raise AttributeError(
            f"Member.{name}: a member is a copy of what the ensemble holds, and does not change: "
            f"write ensemble[i] = params with other parameters",
            name=name,
            obj=self,
        )

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
    """Which leaves an optimizer may change: parameters of inexact dtype that are not frozen."""
    places: tuple[int, ...]
    """Where its members stand in the ensemble."""
    ties: Ties = ()
    """The second places, each with the first."""
    shapes: tuple[tuple[int, ...], ...] = ()
    """Of the leaves of one member; none of a group from before they were kept."""

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self.places)

    def axes_in_front(self, column: Sequence[Any]) -> int | None:
        """How many axes stacked arrays have in front of those that an ensemble has.

        0 for an ensemble; ``None`` where a function of trees made something else of the arrays.
        """
        found = set()
        shapes = self.shapes or [None] * len(column)
        for shape, shared, x in zip(shapes, self.shared, column, strict=True):
            have = tuple(getattr(x, "shape", ()))
            if shape is None:
                fits = shared or have[:1] == (self.size,)
                found.add(0 if fits else None)
                continue
            want = shape if shared else (self.size, *shape)
            extra = len(have) - len(want)
            found.add(extra if extra >= 0 and have[extra:] == want else None)
        return found.pop() if len(found) == 1 else None

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


def reshaped(group: Group, column: Sequence[Any]) -> Group:
    """The group with leaves of the shapes of these arrays; itself where they are so already."""
    shapes = tuple([x.shape if s else x.shape[1:] for x, s in zip(column, group.shared)])
    return group if shapes == group.shapes else changed(group, shapes=shapes)


def taken(member: Tree) -> Tree:
    """A member as an ensemble gives it: to be read, and changed only as a copy.

    What is assigned to a module that was taken out of the stacked arrays would not reach them.
    """
    if isinstance(member, Module):
        for module in member.modules():
            module.__dict__[BORROWED] = True
    return member


def refuse_other_rows(group: Group, column: Sequence[Any]) -> None:
    """Raise ``ValueError`` where a function of trees, or a vmap, separated the rows of members."""
    if group.axes_in_front(column) == 0:
        return
    shapes = group.shapes or [None] * len(column)
    for name, shared, shape, x in zip(group.names, group.shared, shapes, column, strict=True):
        have = tuple(getattr(x, "shape", ()))
        if shared:
            fits, want = shape in (None, have), f"{shape}, which the members share"
        else:
            fits = have == (group.size, *(have[1:] if shape is None else shape))
            want = f"{group.size} along axis 0, the members"
            want += "" if shape is None else f", and {shape} behind"
        if not fits:
            raise ValueError(
                f"Ensemble: {name} has shape {have}, expected {want}. A vmap, or a function of "
                f"trees, that takes an ensemble apart goes by its arrays: ensemble.vmap(f) runs f "
                f"on each member, ensemble[places] takes some"
            )
