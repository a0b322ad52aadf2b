"""``explain``: what the compiler is asked to do, what memory that takes, and what to do about it.

The function is traced and compiled, and not run.

At the end stands what a program sends between devices, by the user's line.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

from stretto._engine.api.explain.formulations import (
    Convolution,
    Products,
    StableForm,
    convolutions_of,
    formulation_lines,
    products_of,
    stable_forms_of,
    stable_lines,
)
from stretto._engine.api.explain.kept import Kept, Saving, kept_lines, kept_of
from stretto._engine.api.explain.memory import (
    Donation,
    Memory,
    donations_of,
    memory_lines,
    memory_of,
)
from stretto._engine.api.explain.words import near, short
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.jit.jitted import Jitted
from stretto._engine.core.boundary import boundary
from stretto._engine.core.cards import size
from stretto._engine.core.interpreter import state
from stretto._engine.core.lazy import shown
from stretto._engine.core.threads import holding
from stretto._engine.xla.instructions import transfers_of
from stretto._engine.xla.options import library_of
from stretto._engine.xla.pjrt import Executable


@shown("stretto._engine.api.cards", "card_of_report", "text_of_report")
@dataclasses.dataclass(frozen=True)
class Explanation:
    """A report of what a function does for arguments of certain types; it prints itself."""

    function: str
    convolutions: tuple[Convolution, ...]
    products: Products
    memory: Memory
    donations: tuple[Donation, ...]
    """The arguments whose memory results could take."""
    kept: tuple[Kept, ...]
    """The values that derivatives keep from the way forward, by the user's line."""
    checkpoints: tuple[Saving, ...]
    """The lines where a checkpoint would save much of that."""
    devices: int
    """On how many devices it runs."""
    collectives: tuple[Collective, ...]
    """The values that these send each other, by the user's line."""
    stable_forms: tuple[StableForm, ...]
    """The formulas that are computed in another way, which keeps their digits."""

    def lines(self) -> list[str]:
        """Return the report, without its first line."""
        return [
            *memory_lines(self.function, self.memory, self.donations),
            *collective_lines(self.collectives, self.devices),
            *kept_lines(self.kept, self.checkpoints),
            *formulation_lines(self.convolutions, self.products),
            *stable_lines(self.stable_forms),
        ]

    def __str__(self) -> str:
        return "\n".join([f"{self.function}, compiled:", *self.lines()])


def explain(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Explanation:
    """Say what a function is compiled to, and what memory it takes, without running it.

    The report has the memory at its peak, as XLA states it, and the largest temporaries by your
    line; the arguments that could be donated; what devices send each other, if there are several,
    by your line, with a warning of large arguments that each gets whole; what derivatives keep
    between the way forward and the way back, and where a ``checkpoint`` would save most of it, by
    estimate; how each convolution is computed, and why; which library computes the products; and
    which formulas are computed in another way that keeps their digits (``config.stable_forms``).

    Args:
        fun: a function of trees of arrays, jitted or not.
        *args: its arguments: arrays, or what has a shape and a dtype alone, as
            ``ShapeDtypeStruct`` has.
        **kwargs: the same, by name.

    Returns:
        The report, which prints itself, with all it says in its fields.

    Raises:
        TypeError: ``fun`` is not a function, or an argument is not a tree of arrays.

    >>> import stretto as st, stretto.numpy as snp
    >>> def step(w, x):
    ...     return w - 0.1 * st.grad(lambda w: snp.sum(snp.tanh(x @ w) ** 2))(w)
    >>> print(st.explain(step, snp.ones((256, 64)), snp.ones((512, 256))))
    step, compiled:
    memory: ... kB at most: 589.8 kB of arguments, 65.5 kB of results, ... of temporaries
    ...
    donation: up to 65.5 kB less, as results could lie in the memory of
      w, if the caller needs it no more: st.jit(step, donate_argnums=(0,))
    ...
    products: 2, by ...
    """
    with boundary:
        if isinstance(fun, MethodType) and isinstance(fun.__func__, Jitted):
            fun, args = fun.__func__, (fun.__self__, *args)
        if not callable(fun):
            raise TypeError(f"explain: expected a function, got {type(fun).__name__}")
        return explain_jitted(fun if isinstance(fun, Jitted) else jit(fun), args, kwargs)


def explain_jitted(
    fun: Jitted[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Explanation:
    """Return the report for a jitted function."""
    # Traced anew, since what derivatives keep is noted while tracing.
    residuals: list[Any] = []
    options = fun._static, fun._donated, fun._keep_unused, fun._inline, fun._options, fun._shardings
    fresh = Jitted(fun._fun, *options)
    trace = functools.partial(fresh.trace, *args, **kwargs)
    traced = holding(state, "residuals", residuals, trace)
    executable = traced.lower().compile()._executable
    memory = memory_of(executable)
    kept, savings = kept_of(traced.program, residuals, memory.temporaries)
    entry = traced._entry
    chosen = library_of(entry.text().facts, entry.options)
    names = entry.names if entry.kept is None else [entry.names[i] for i in entry.kept]
    return Explanation(
        traced.fun_name,
        convolutions_of(entry.slim()),
        products_of(entry.slim(), chosen),
        memory,
        donations_of(entry, _arguments_of_leaves(fun, args, kwargs, traced.in_tree)),
        kept,
        savings,
        len(entry.placement.devices) if entry.placement else 1,
        collectives_of(executable, names),
        stable_forms_of(traced.program),
    )


def _arguments_of_leaves(
    fun: Jitted[..., Any], args: Sequence[Any], kwargs: dict[str, Any], structure: Any
) -> list[int | str]:
    """Return the position or name of the argument that each leaf belongs to."""
    static = fun._static.present(args, kwargs)
    positional, named = structure.children()
    moving = [i for i in range(len(args)) if i not in static]
    parts = [*zip(moving, positional.children(), strict=True)]
    parts += zip(named.entries(), named.children(), strict=True)
    return [which for which, part in parts for _ in range(part.num_leaves)]


_MOST = 12
"""The most lines of the user's code that are printed."""

_LARGE = 1 << 20
"""The bytes of an argument from which on it is worth a warning that every device gets it whole."""


@dataclasses.dataclass(frozen=True)
class Collective:
    """An exchange between devices at a call of a compiled program, for one line of the user's."""

    kind: str
    """XLA's name: ``all-reduce``, ``all-gather``, ``collective-permute``, …"""
    line: str
    count: int
    """The number of them in the program; one in a loop counts once."""
    bytes: int
    """The size of their results on each device."""
    argument: str | None = None
    """The argument that is gathered as it is, if it is one."""


def collectives_of(executable: Executable, names: Sequence[str]) -> tuple[Collective, ...]:
    """Return the collectives of a compiled program; ``names`` are those of its inputs."""
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
