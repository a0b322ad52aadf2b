"""What is shown of a module: the modules inside it, with their parameters, counts and bytes.

``text_of`` is the whole text, as PyTorch's; ``brief_text`` is the ``repr``, which stays short.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from stretto._engine.core.cards import (
    MOST_LINES,
    Card,
    Item,
    bytes_in,
    counted,
    ends,
    numbers_in,
    one_line,
    size,
    type_words,
)
from stretto.nn.module import Module


def text_of(module: Module) -> str:
    """Return the module and all modules inside it, a line for each, or a few."""
    return "\n".join(_inside(module, sys.maxsize, False))


def brief_text(module: Module) -> str:
    """Return the same in few lines: of equal neighbours one, and what is deepest left out.

    >>> from stretto import nn
    >>> nn.Sequential(*[nn.Sequential(nn.ReLU(), nn.Tanh()) for _ in range(100)])
    Sequential(
      (0-99): 100 × Sequential(
        (0): ReLU()
        (1): Tanh()
      )
    )
    """
    whole = _lines(module, sys.maxsize, False)
    if len(whole) <= MOST_LINES:
        return "\n".join(whole)
    deepest, lines = _depth(module), whole
    for depth in range(deepest, 0, -1):
        lines = _lines(module, depth, True)
        if len(lines) < MOST_LINES:
            note = [] if depth == deepest else [_NOTE]
            return "\n".join([*lines, *note])
    first, left_out, last = ends(lines, MOST_LINES - 2)
    return "\n".join([*first, f"  ... {left_out:,} more lines", *last, _NOTE])


_NOTE = "# print(module) shows all of it"


def _depth(module: Module) -> int:
    """Return how many modules are one inside the other, this one included."""
    return 1 + max([_depth(child) for child in module.children()], default=0)


def _lines(module: Module, depth: int, merged: bool) -> list[str]:
    """Return the lines, down to this depth; where ``merged``, equal neighbours are one."""
    extra, name = module.extra_repr(), module._get_name()
    children = list(module.named_children())
    if not children:
        return f"{name}({extra})".split("\n")
    if not depth:
        return [f"{name}(... {', '.join([*amounts(module), '...'])})"]
    parts = [(key, _inside(child, depth - 1, merged)) for key, child in children]
    lines = [f"{name}(", *([f"  {line}" for line in extra.split("\n")] if extra else [])]
    for key, (first, *rest) in _merge_neighbors(parts) if merged else parts:
        lines.append(f"  ({key}): {first}")
        lines += [f"  {line}" for line in rest]
    return [*lines, ")"]


def _inside(module: Module, depth: int, merged: bool) -> list[str]:
    """Return the lines of a module inside another: those of its own ``repr``, if it has one."""
    if type(module).__repr__ is Module.__repr__:
        return _lines(module, depth, merged)
    return repr(module).split("\n")


def _merge_neighbors(parts: list[tuple[str, list[str]]]) -> Iterator[tuple[str, list[str]]]:
    """Return numbered neighbours of equal text as one: ``(0-11): 12 × Block(``."""
    start = 0
    while start < len(parts):
        end = start + 1
        while end < len(parts) and parts[end][1] == parts[start][1] and parts[start][0].isdigit():
            end += 1
        key, lines = parts[start]
        if end - start > 1:
            key = f"{key}-{parts[end - 1][0]}"
            lines = [f"{end - start} × {lines[0]}", *lines[1:]]
        yield key, lines
        start = end


def card_of(module: Module) -> Card:
    """Return the module and those inside it, with the parameters of each part."""
    return _card(module, "")


def _card(module: Module, name: str) -> Card:
    extra = one_line(module.extra_repr(), 120)
    title = f"{module._get_name()}({extra})"
    body: list[Item] = []
    for key, role in module._roles.items():
        value = module.__dict__[key]
        if role == "module" and value is not None:
            body.append(_card(value, key))
        elif role in ("parameter", "buffer") and value is not None:
            notes = " buffer" if role == "buffer" else ""
            body.append(((f"{key}: ", ""), (type_words(value), "op"), (notes, "quiet")))
    mode = () if module.training or name else ("in evaluation mode",)
    prefix = f"({name}): " if name else ""
    return Card(f"{prefix}{title}", (*amounts(module), *mode), tuple(body), open=not name)


def amounts(module: Module) -> tuple[str, ...]:
    """Return how many parameters and buffers a module has, and their bytes; nothing for neither."""
    parameters, buffers = list(module.parameters()), list(module.buffers())
    if not parameters and not buffers:
        return ()
    facts = [counted(numbers_in(parameters), "parameter")]
    if buffers:
        facts.append(f"{numbers_in(buffers):,} in buffers")
    return (*facts, size(bytes_in([*parameters, *buffers])))
