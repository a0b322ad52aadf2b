"""What a program sends between devices, by the user's line, and what is large of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from stretto._engine.api.explain.words import near, short
from stretto._engine.core.showing.words import size
from stretto._engine.xla.instructions import transfers_of
from stretto._engine.xla.pjrt import Executable

_MOST = 12
"""The most lines of the user's code that are printed."""

_LARGE = 1 << 20
"""The bytes of an argument from which on it is worth a warning that every device gets it whole."""


@dataclasses.dataclass(frozen=True)
class Collective:
    """What devices exchange at a call of a compiled program, for one line of the user's."""

    kind: str
    """As XLA names it: ``all-reduce``, ``all-gather``, ``collective-permute``, …"""
    line: str
    count: int
    """How many there are in the program; one in a loop counts once."""
    bytes: int
    """The size of their results on each device."""
    argument: str | None = None
    """The argument that is gathered as it is, if it is one."""


def collectives_of(executable: Executable, names: Sequence[str]) -> tuple[Collective, ...]:
    """The collectives of a compiled program; ``names`` are those of its inputs."""
    found: dict[tuple[str, str, str | None], list[int]] = {}
    for one in transfers_of(executable):
        line = f"{near(one.file)}:{one.line}" if one.file else "of no line"
        number = one.argument if one.kind == "all-gather" else None
        argument = None if number is None or number >= len(names) else names[number]
        found.setdefault((one.kind, line, argument), []).append(one.bytes)
    return tuple(
        [
            Collective(kind, line, len(sizes), sum(sizes), argument)
            for (kind, line, argument), sizes in found.items()
        ]
    )


def collective_lines(collectives: Sequence[Collective], devices: int) -> list[str]:
    """Them as lines of text, for a program on so many devices."""
    if devices == 1:
        return []
    if not collectives:
        return [f"devices: {devices}, which send each other nothing"]
    ordered = sorted(collectives, key=lambda c: -c.bytes)
    total = sum([c.bytes for c in ordered])
    lines = [
        f"devices: {devices}, each of which gets {size(total)} from others at a call, by line:"
    ]
    entries = []
    for c in ordered:
        what = f", the whole of {c.argument}" if c.argument else ""
        entries.append(f"{c.kind}, {c.count}: {size(c.bytes)}{what}  {c.line}")
    lines += short(entries, _MOST)
    for c in ordered:
        if c.argument and c.bytes >= _LARGE:
            lines.append(
                f"warning: every device gets the whole of {c.argument}, {size(c.bytes)}: split it "
                f"as {c.line} uses it, or keep the result split, lax.with_sharding_constraint"
            )
    return lines
