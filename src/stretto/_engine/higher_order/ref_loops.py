"""Loops whose bodies write to references from outside, and loops over references.

A loop is traced once to learn which references it writes; if it writes any, it is traced again with
their values in its carry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.core import tree
from stretto._engine.core.cells import carrying, values_of_cells, write_all
from stretto._engine.higher_order.refs import Parts, Ref, lent

Loop = Callable[..., tuple[Any, Any]]


def holds_refs(xs: Any) -> bool:
    """Whether any leaf is a reference."""
    return any([isinstance(x, Ref) for x in tree.leaves(xs)])


def scan_writing(
    loop: Loop, step: Callable[..., Any], init: Any, names: Sequence[str], written: Sequence[Any]
) -> tuple[Any, Any]:
    """The results of a scan that writes to references.

    ``loop`` is a function of the step, the first carry, and what messages call its leaves.
    """
    inner = carrying(step, written)

    def body(carry: Any, x: Any) -> Any:
        (new, y), values = inner(carry[1], carry[0], x)
        return (new, values), y

    names = [*names, *["the reference"] * len(written)]
    (last, values), ys = loop(body, (init, values_of_cells(written)), names)
    write_all(written, values)
    return last, ys


def scan_over_refs(loop: Loop, caller: str, step: Callable[..., Any], xs: Any) -> tuple[Any, Any]:
    """The results of a scan that reads and writes its part of references at each step.

    ``loop`` is a function of the step and of what it goes over.
    """
    leaves, structure = tree.flatten(xs)
    values, refs = lent(leaves, caller, lambda: tree.paths(xs, "xs"))
    parts = Parts(
        lambda carry, *x: step(carry, tree.unflatten(structure, x)),
        {1 + i: ref.structure for i, ref in refs.items()},
    )

    def body(carry: Any, x: Sequence[Any]) -> Any:
        (new, y), given = parts(carry, *x)
        return new, (y, given)

    last, (ys, stacks) = loop(body, values)
    write_all([refs[i - 1] for i in parts.changed], stacks)
    return last, ys


def while_writing(
    loop: Callable[..., Any],
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init: Any,
    names: Sequence[str],
    written: Sequence[Any],
) -> Any:
    """The last carry of a while loop that writes to references.

    ``loop`` is a function of the condition, the body, the first carry, and what messages call its
    leaves.
    """
    condition, step = carrying(cond_fun, written), carrying(body_fun, written)
    result, values = loop(
        lambda state: condition(state[1], state[0])[0],
        lambda state: step(state[1], state[0]),
        (init, values_of_cells(written)),
        [*names, *["the reference"] * len(written)],
    )
    write_all(written, values)
    return result
