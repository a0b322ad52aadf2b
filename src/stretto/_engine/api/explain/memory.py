"""The memory that a compiled program takes at its peak, and the arguments that could give theirs.

The sizes are XLA's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from stretto._engine.api.explain.words import near, short
from stretto._engine.api.jit.entry import Entry, aliases_of
from stretto._engine.core.cards import size
from stretto._engine.core.config import config
from stretto._engine.core.types import bytes_of
from stretto._engine.xla.instructions import temporaries_at_peak
from stretto._engine.xla.memory import ALWAYS_MAPPED, is_glibc
from stretto._engine.xla.pjrt import Executable

_MOST = 5
"""The most lines of the user's code that are printed."""

_LEAST = 1 << 12
"""The fewest bytes for which donation is worth a line."""


@dataclasses.dataclass(frozen=True)
class Memory:
    """The bytes that a call of a compiled program takes."""

    arguments: int
    results: int
    temporaries: int
    donated: int
    """The bytes of results that lie in the memory of arguments."""
    largest: tuple[tuple[str, int, int], ...]
    """The temporaries at the peak: (the user's line, bytes, how many), largest first."""
    mapped: int
    """The bytes of temporaries that the system may map anew at each call; see ``keep_memory``."""

    @property
    def peak(self) -> int:
        """All of it: arguments, results and temporaries."""
        return self.arguments + self.results + self.temporaries - self.donated


@dataclasses.dataclass(frozen=True)
class Donation:
    """An argument, all of whose arrays results could lie in."""

    argument: str
    which: int | str
    """Its position, or its name if it was passed by name."""
    bytes: int
    """The size of its arrays: the most that donation saves."""


def memory_of(executable: Executable) -> Memory:
    """Return what XLA says of a compiled program."""
    stats = executable.memory_analysis()
    by_line: dict[str, list[int]] = {}
    for one in temporaries_at_peak(executable):
        line = f"{near(one.file)}:{one.line}" if one.file else "in loops, or of no line"
        by_line.setdefault(line, []).append(one.bytes)
    largest = [(line, sum(sizes), len(sizes)) for line, sizes in by_line.items()]
    temporaries = int(stats.temp_size_in_bytes)
    anew = temporaries >= ALWAYS_MAPPED and is_glibc() and not config.keep_memory
    return Memory(
        int(stats.argument_size_in_bytes),
        int(stats.output_size_in_bytes),
        temporaries,
        int(stats.alias_size_in_bytes),
        tuple(sorted(largest, key=lambda entry: -entry[1])),
        temporaries if anew else 0,
    )


def donations_of(entry: Entry, of_leaves: Sequence[int | str]) -> tuple[Donation, ...]:
    """Give the arguments that could be donated and are not; ``of_leaves`` has that of each leaf."""
    slim = entry.slim()
    leaves = list(range(len(entry.names)) if entry.kept is None else entry.kept)
    given = [k for k, i in enumerate(leaves) if entry.donated and entry.donated[i]]
    matched = aliases_of(slim, [*given, *[k for k in range(len(leaves)) if k not in given]])
    fits: dict[int | str, list[tuple[int, bool]]] = {}
    for k, i in enumerate(leaves):
        if k not in given and slim.inputs[k].type.size:
            fits.setdefault(of_leaves[i], []).append((k, k in matched))
    found = []
    for which, entries in fits.items():
        total = sum(bytes_of(slim.inputs[k].type) for k, _ in entries)
        if total >= _LEAST and all(fit for _, fit in entries):
            name = entry.names[leaves[entries[0][0]]].split("[")[0].split(".")[0]
            found.append(Donation(name, which, total))
    return tuple(found)


def memory_lines(function: str, memory: Memory, donations: Sequence[Donation]) -> list[str]:
    """Return both as lines of text."""
    parts = f"{size(memory.arguments)} of arguments, {size(memory.results)} of results, "
    parts += f"{size(memory.temporaries)} of temporaries"
    if memory.donated:
        parts += f", less {size(memory.donated)} donated"
    lines = [f"memory: {size(memory.peak)} at most: {parts}"]
    entries = [
        f"{size(total)} in {count}  {line}"
        for line, total, count in memory.largest
        if line and total
    ]
    if entries:
        lines += ["temporaries at the peak, by line:", *short(entries, _MOST)]
    if memory.mapped:
        lines.append(
            f"pages: {size(memory.mapped)} may be mapped anew at each call; config.keep_memory, "
            f"set first, keeps them"
        )
    if donations:
        names = ", ".join([d.argument for d in donations])
        total = sum(d.bytes for d in donations)
        lines.append(f"donation: up to {size(total)} less, as results could lie in the memory of")
        lines.append(f"  {names}, if the caller needs it no more: {_jit(function, donations)}")
    return lines


def _jit(function: str, donations: Sequence[Donation]) -> str:
    """Return the call of ``jit`` that donates these."""
    name = function if function.isidentifier() else "f"
    numbers = tuple(d.which for d in donations if isinstance(d.which, int))
    names = tuple(d.which for d in donations if isinstance(d.which, str))
    options: list[Any] = [f"donate_argnums={numbers}"] if numbers else []
    options += [f"donate_argnames={names}"] if names else []
    return f"st.jit({name}, {', '.join(options)})"
