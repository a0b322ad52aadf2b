"""What is shown of an ensemble and its members: architectures, parts and counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from stretto._engine.core import tree
from stretto._engine.core.cards import (
    Card,
    Item,
    bytes_in,
    counted,
    ends,
    numbers_in,
    one_line,
    short,
    size,
    type_words,
)
from stretto.ensemble.groups import Group, Member, call_module
from stretto.nn.module import Module

if TYPE_CHECKING:  # it names this module
    from stretto.ensemble.ensemble import Ensemble


_MOST = 30
"""The most architectures that are printed."""


def text_of(ensemble: Ensemble[Any]) -> str:
    """The ``repr`` of an ensemble: a line for each architecture."""
    lines = [
        f"  {group.size} × {kind_of(group)}: {', '.join(_facts(group, arrays))}"
        for group, arrays in zip(ensemble._layout.groups, ensemble._arrays, strict=True)
    ]
    first, left_out, last = ends(lines, _MOST)
    middle = [f"  ... {left_out:,} more architectures"] if left_out else []
    head = f"Ensemble of {counted(len(ensemble), 'member')}"
    return "\n".join([head, *first, *middle, *last])


def kind_of(group: Group) -> str:
    """What the members of a group are, in a word."""
    if group.function is not call_module:
        return str(getattr(group.function, "__name__", "a function"))
    params = tree.unflatten(group.structure, group.names)
    return params._get_name() if isinstance(params, Module) else type(params).__name__


def _facts(group: Group, arrays: Sequence[Any]) -> Iterator[str]:
    """How much a member has, and what of it is shared, frozen or in another mode."""
    counts = [
        numbers_in([x]) // (1 if is_shared else max(group.size, 1))
        for x, is_shared in zip(arrays, group.shared, strict=True)
    ]
    trained = sum([n for n, t in zip(counts, group.trained, strict=True) if t])
    yield f"{counted(len(counts), 'array')} each"
    yield f"{counted(sum(counts), 'number')}"
    shared = sum(group.shared)
    if shared:
        yield f"{shared} of {counted(len(counts), 'array')} shared"
    if trained < sum(counts):
        yield f"{trained:,} trained"
    if group.function is call_module:
        params = tree.unflatten(group.structure, group.names)
        if isinstance(params, Module) and not params.training:
            yield "in evaluation mode"


def card_of(ensemble: Ensemble[Any]) -> Card:
    """The ensemble, with the arrays of each architecture as they are stacked."""
    layout = ensemble._layout
    arrays = [x for column in ensemble._arrays for x in column]
    facts = [counted(len(layout.groups), "architecture"), size(bytes_in(arrays))]
    if layout.chunk_size is not None:
        facts.append(f"chunks of {layout.chunk_size}")
    facts += [f"{name} {value}" for name, value in layout.options]
    if layout.over is not None:
        facts.append(f"over {layout.over.mesh}")
    body = [
        _card(group, column) for group, column in zip(layout.groups, ensemble._arrays, strict=True)
    ]
    return Card(f"Ensemble of {counted(len(ensemble), 'member')}", tuple(facts), tuple(body))


def _card(group: Group, arrays: Sequence[Any]) -> Card:
    body: list[Item] = []
    rows = zip(group.names, arrays, group.shared, group.trained, strict=True)
    for name, x, is_shared, is_trained in rows:
        notes = [w for w, yes in (("shared", is_shared), ("not trained", not is_trained)) if yes]
        words = f" {', '.join(notes)}" if notes else ""
        body.append(((f"{name}: ", ""), (type_words(x), "op"), (words, "quiet")))
    facts = tuple(_facts(group, arrays))
    return Card(f"{group.size} × {kind_of(group)}", facts, tuple(body), open=False)


def member_text(member: Member) -> str:
    """The ``repr`` of a member of functions: its parameters whole if they are few numbers."""
    name = getattr(member.function, "__name__", member.function)
    leaves = tree.leaves(member.params)
    is_small = len(leaves) <= 12 and numbers_in(leaves) <= 60
    params = repr(member.params) if is_small else short(member.params)
    return f"Member({name}, {params})"


def card_of_member(member: Member) -> Card:
    """A member of functions, and its parameters."""
    lines = zip(tree.paths(member.params), tree.leaves(member.params), strict=True)
    body = tuple([((f"{path}: ", ""), (type_words(x), "op")) for path, x in lines])
    name = getattr(member.function, "__name__", None) or one_line(repr(member.function))
    return Card(f"Member of {name}", (counted(len(body), "array"),), body)
