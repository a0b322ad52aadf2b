"""``explain``: what the compiler is asked to do, what memory that takes, and what to do about it.

The function is traced and compiled, and not run. The report says

- the form of each convolution, product and formula of the program as it is lowered, asked of the
  functions that the lowering and the runtime ask;
- the memory that the compiled program takes at its peak, by XLA's sizes, and the arguments that
  could give theirs;
- the values that derivatives keep from the way forward, and ``checkpoint``s that would save them.
  While a function is traced, each linearization notes its residuals; here they are found again in
  the program. What is computed element by element from other kept values does not count: the
  compiler computes it again;
- what a program sends between devices, by the user's line.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType, MethodType
from typing import Any, NamedTuple

from stretto._engine.api.jit.entry import Entry, aliases_of
from stretto._engine.api.jit.jit import Jitted, jit
from stretto._engine.autodiff.jvp import Dual
from stretto._engine.autodiff.vmap import Batched
from stretto._engine.core.boundary import boundary
from stretto._engine.core.cards import size
from stretto._engine.core.config import config
from stretto._engine.core.interpreter import Value, state
from stretto._engine.core.lazy import shown
from stretto._engine.core.position import Position
from stretto._engine.core.program import Atom, Equation, Program, Var
from stretto._engine.core.recorder import Traced
from stretto._engine.core.threads import holding
from stretto._engine.core.types import bytes_of
from stretto._engine.higher_order.checkpoint import Checkpoint
from stretto._engine.higher_order.scan import Scan
from stretto._engine.lowering.text import Facts
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convolution.formulation import formulation
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.thresholds import HALF, Costs
from stretto._engine.passes.formulations.mapped import Mapped
from stretto._engine.xla.instructions import temporaries_at_peak, transfers_of
from stretto._engine.xla.memory import ALWAYS_MAPPED, is_glibc
from stretto._engine.xla.options import Libraries, library_of
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
    """The number of devices that it runs on."""
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
    products: 2, ...
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
    facts = entry.text().facts
    chosen = library_of(facts, entry.options)
    names = entry.names if entry.kept is None else [entry.names[i] for i in entry.kept]
    return Explanation(
        traced.fun_name,
        convolutions_of(entry.slim()),
        products_of(entry.slim(), chosen, facts),
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


_MOST_TRANSFERS = 12
"""The most lines of the user's code that are printed."""

_LARGE_TRANSFER = 1 << 20
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
    """Return them as lines of text, for a program on so many devices."""
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
    lines += short(entries, _MOST_TRANSFERS)
    for c in ordered:
        if c.argument and c.bytes >= _LARGE_TRANSFER:
            lines.append(
                f"warning: every device gets the whole of {c.argument}, {size(c.bytes)}: split it "
                f"as {c.line} uses it, or keep the result split, lax.with_sharding_constraint"
            )
    return lines


def where(position: Position | None) -> str:
    """Return the user's line and function, with the file as seen from the current folder."""
    if position is None:
        return "an unknown line"
    return f"{near(position.file)}:{position.line} ({position.code.co_name})"


def near(file: str) -> str:
    """Return the path of a file, relative if it is below the current folder."""
    here = os.getcwd() + os.sep
    return file.removeprefix(here)


def short(lines: Sequence[str], most: int) -> list[str]:
    """Return the first of these lines, indented, and how many are left out."""
    shown = [f"  {line}" for line in lines[:most]]
    return shown if len(lines) <= most else [*shown, f"  and {len(lines) - most} more"]


_MOST_OPERATIONS = 10
"""The most convolutions that are printed."""


@dataclasses.dataclass(frozen=True)
class Convolution:
    """A convolution of the program: where it is, what it is, and how it is computed."""

    position: str
    geometry: str
    formulation: str
    reason: str
    count: int
    """The number of them; one in a ``scan`` counts once for each step."""


@dataclasses.dataclass(frozen=True)
class Products:
    """The products of the program, and who computes them."""

    count: int
    library: str
    """``"YNNPACK"`` or ``"Eigen"``, for those that no kernel computes."""
    reason: str
    kernels: int
    """The number of those that kernels of our own compute, as written in the program's text."""
    fused: int
    """The number of these that have what follows in them."""
    rows: int
    """The number of calls of kernels for softmax, norms and what is like them, along rows."""
    updates: int
    """The number of calls of kernels for what an optimizer does, of many arrays each."""
    attention: int
    """The number of calls of kernels for attention, of several products each, or its gradients."""
    gathers: int
    """The number of calls of kernels for rows at indices, or their sums."""


@dataclasses.dataclass(frozen=True)
class StableForm:
    """A formula of the program that is computed in another way: where, and how in words."""

    position: str
    form: str


def stable_forms_of(program: Program) -> tuple[StableForm, ...]:
    """Return what was noted while it and those in it were traced, each once for a line."""
    found = {
        StableForm(where(None if place is None else Position(*place)), words): None
        for words, place in program.cache.get("noted", ())
    }
    for equation in program.equations:
        primitive: Any = equation.primitive
        for inner in primitive.programs() if primitive.holds_programs else ():
            found.update(dict.fromkeys(stable_forms_of(inner)))
    return tuple(found)


def stable_lines(forms: tuple[StableForm, ...]) -> list[str]:
    """Return these as lines of text."""
    if not forms:
        return []
    entries = [f"{form.form}  {form.position}" for form in forms]
    return [
        "computed so that digits stay (config.stable_forms):",
        *short(entries, _MOST_OPERATIONS),
    ]


def convolutions_of(program: Program) -> tuple[Convolution, ...]:
    """Return the convolutions of a prepared program, equal ones of a line together."""
    found: dict[tuple[str, str, str, str], int] = {}
    for equation, count in operations(program, 1):
        op: Any = equation.primitive
        if isinstance(op, ConvGeneralDilated):
            lhs, rhs = [a.type for a in equation.inputs]
            chosen = formulation(op, lhs, rhs, equation.outputs[0].type)
            geometry = _geometry(op, lhs.shape, rhs.shape)
            one = (where(equation.position), geometry, chosen.name, chosen.reason)
            found[one] = found.get(one, 0) + count
    return tuple([Convolution(*one, count=n) for one, n in found.items()])


def products_of(program: Program, chosen: Libraries, facts: Facts) -> Products:
    """Return the products of a prepared program, for what was chosen for its text."""
    count = sum(n for e, n in operations(program, 1) if isinstance(e.primitive, DotGeneral))
    library = "YNNPACK" if chosen.products else "Eigen"
    return Products(
        count,
        library,
        chosen.reason,
        facts.kernel_products,
        facts.fused_products,
        facts.kernel_rows,
        facts.kernel_updates,
        facts.kernel_attention,
        facts.kernel_gathers,
    )


def formulation_lines(convolutions: tuple[Convolution, ...], products: Products) -> list[str]:
    """Return both as lines of text."""
    lines = []
    if convolutions:
        lines.append("convolutions, as they are lowered:")
        entries = []
        for c in convolutions:
            times = f" ×{c.count}" if c.count > 1 else ""
            entries.append(f"{c.position}: {c.geometry}{times}\n    {c.formulation}: {c.reason}")
        lines += short(entries, _MOST_OPERATIONS)
    if products.kernels:
        fused = f", {products.fused} with what follows" if products.fused else ""
        others = " and convolutions as products" if products.kernels > products.count else ""
        what = f"{products.count}{others}"
        lines.append(f"products: {what}, of which kernels compute {products.kernels}{fused}")
    elif products.count and not products.attention:
        lines.append(f"products: {products.count}, by {products.library}: {products.reason}")
    if products.attention:
        calls = f"{products.attention} calls of kernels, of several products each"
        lines.append(f"attention and its gradients: {calls}")
    if products.rows:
        lines.append(f"softmax, norms and the like, along rows: {products.rows} calls of kernels")
    if products.updates:
        lines.append(f"updates of many arrays: {products.updates} calls of kernels")
    if products.gathers:
        lines.append(f"rows at indices, or their sums: {products.gathers} calls of kernels")
    return lines


def operations(program: Program, count: int) -> Iterator[tuple[Equation, int]]:
    """Return the equations that are lowered, those inside others too, and how often each is run."""
    for equation in program.equations:
        primitive: Any = equation.primitive
        if not primitive.holds_programs:
            yield equation, count
        elif isinstance(primitive, Mapped):
            yield from operations(primitive.plan()[0], count)
        else:
            steps = primitive.length if isinstance(primitive, Scan) else 1
            inlined = primitive.inlined()
            for inner in primitive.programs() if inlined is None else [inlined]:
                yield from operations(inner, count * steps)


def _geometry(op: Any, image: tuple[int, ...], kernel: tuple[int, ...]) -> str:
    """Say kernel, stride, groups, image and features in words."""
    batch, features, *places = op.dims.lhs_spec
    window = [kernel[a] for a in op.dims.rhs_spec[2:]]
    parts = [f"kernel {_sides(window)}"]
    for name, sides in (
        ("stride", op.strides),
        ("dilation", op.rhs_dilation),
        ("image dilated", op.lhs_dilation),
    ):
        if any(n != 1 for n in sides):
            parts.append(f"{name} {_sides(sides)}")
    if op.feature_groups > 1:
        parts.append(f"{op.feature_groups} groups")
    if op.batch_groups > 1:
        parts.append(f"{op.batch_groups} groups of the batch")
    parts.append(f"image {_sides([image[a] for a in places])}, batch {image[batch]}")
    parts.append(f"features {image[features]} to {kernel[op.dims.rhs_spec[0]]}")
    return ", ".join(parts)


def _sides(sizes: Any) -> str:
    return "x".join(map(str, sizes)) or "of one element"


_MOST_TEMPORARIES = 5
"""The most lines of the user's code that are printed."""

_LEAST_DONATED = 1 << 12
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
        if total >= _LEAST_DONATED and all(fit for _, fit in entries):
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
        lines += ["temporaries at the peak, by line:", *short(entries, _MOST_TEMPORARIES)]
    if memory.mapped:
        lines.append(
            f"pages: {size(memory.mapped)} may be mapped anew at each call; config.keep_memory, "
            f"set first, keeps them"
        )
    if donations:
        names = ", ".join([d.argument for d in donations])
        total = sum(d.bytes for d in donations)
        lines.append(f"donation: up to {size(total)} less, as results could lie in the memory of")
        lines.append(f"  {names}, if the caller needs it no more: {_donating(function, donations)}")
    return lines


def _donating(function: str, donations: Sequence[Donation]) -> str:
    """Return the call of ``jit`` that donates these."""
    name = function if function.isidentifier() else "f"
    numbers = tuple(d.which for d in donations if isinstance(d.which, int))
    names = tuple(d.which for d in donations if isinstance(d.which, str))
    options: list[Any] = [f"donate_argnums={numbers}"] if numbers else []
    options += [f"donate_argnames={names}"] if names else []
    return f"st.jit({name}, {', '.join(options)})"


_MOST_KEPT = 5
"""The most lines of the user's code that are printed."""

_CHEAP = (Costs(), HALF)
"""The measured costs of arithmetic, as against those of exponentials and their like."""

_WORTH_SAVING = 0.1
"""The least share of what is kept that a checkpoint must save to be advised."""


@dataclasses.dataclass(frozen=True)
class Kept:
    """The results of one line that are kept: bytes, in so many arrays."""

    position: str
    bytes: int
    count: int


@dataclasses.dataclass(frozen=True)
class Saving:
    """The bytes that a checkpoint of something that repeats would save, by estimate."""

    position: str
    function: str
    times: int
    bytes: int
    loop: bool
    """True for the body of a ``scan``."""


def kept_lines(kept: Sequence[Kept], savings: Sequence[Saving]) -> list[str]:
    """Return both as lines of text."""
    if not kept:
        return []
    lines = [f"kept for derivatives: {size(sum(k.bytes for k in kept))}, by line:"]
    lines += short([f"{size(k.bytes)} in {k.count}  {k.position}" for k in kept], _MOST_KEPT)
    for s in savings[:2]:
        lines.append(
            f"checkpoint: about {size(s.bytes)} less at {s.position}, which repeats {s.times} times"
        )
        plain = s.function.isidentifier() and not s.function.startswith("__")
        name = s.function if plain else "f"
        if s.loop:
            lines.append(f"  as st.lax.scan(st.checkpoint({name}), ...) computes it again")
        else:
            lines.append(
                f"  as st.checkpoint({name})(...) computes it again, {name} being what repeats"
            )
    return lines


def _atom(value: Any) -> Any:
    """Return the variable behind a value that is being transformed; None if it is not traced."""
    while isinstance(value, (Dual, Batched)):
        value = value.primal if isinstance(value, Dual) else value.value
    return value.atom if isinstance(value, Traced) else None


class _Step(NamedTuple):
    """An equation of a program whose calls are opened."""

    equation: Equation
    inputs: list[Atom]
    outputs: list[Var]


class _Found(NamedTuple):
    """The values kept, by line, and those that checkpoints would save."""

    lines: dict[str, list[int]]
    savings: list[Saving]


def kept_of(
    program: Program, residuals: Iterable[Value], temporaries: int
) -> tuple[tuple[Kept, ...], tuple[Saving, ...]]:
    """Return what is kept, by line, and where checkpoints would save, both largest first.

    Where that is more than all ``temporaries``, the compiler computes some of it again by itself,
    and a checkpoint saves that much less.
    """
    noted = {_atom(value) for value in residuals} - {None}
    found = _Found({}, [])
    _search(program, noted, 1, found)
    total = sum(map(sum, found.lines.values()))
    kept = [Kept(line, sum(sizes), len(sizes)) for line, sizes in found.lines.items()]
    share = min(1.0, temporaries / max(total, 1))
    worth = [
        dataclasses.replace(s, bytes=round(share * s.bytes))
        for s in found.savings
        if s.bytes > _WORTH_SAVING * total
    ]
    return (
        tuple(sorted(kept, key=lambda k: -k.bytes)),
        tuple(sorted(worth, key=lambda s: -s.bytes)),
    )


def _search(program: Program, noted: set[Any], times: int, found: _Found) -> None:
    """Add what is kept of this program, so many times, and of the programs inside it."""
    steps: list[_Step] = []
    kept: dict[Atom, None] = {}
    _open(program, {}, noted, steps, kept)
    costly = _costly(steps, kept)
    _repeats(steps, costly, times, found)
    for step in steps:
        own = [k for k, v in enumerate(step.outputs) if v in costly]
        primitive: Any = step.equation.primitive
        if isinstance(primitive, Mapped) and own:
            inside = {primitive.member.outputs[k] for k in own}
            _search(primitive.member, inside, times * primitive.size, found)
        elif isinstance(primitive, Scan) and own:
            _loop(step, own, times, found)
        elif own:
            line = found.lines.setdefault(where(step.equation.position), [])
            line += [times * bytes_of(step.outputs[k].type) for k in own]
        elif primitive.holds_programs and not isinstance(primitive, Checkpoint):
            members = primitive.size if isinstance(primitive, Mapped) else 1
            for inner in primitive.programs():
                _search(inner, noted, times * members, found)


def _open(
    program: Program,
    names: dict[Atom, Atom],
    noted: set[Any],
    steps: list[_Step],
    kept: dict[Atom, None],
) -> None:
    """Append the program's equations to ``steps``, with those of calls in place of the calls."""
    for equation in program.equations:
        inputs = [names.get(a, a) for a in equation.inputs]
        primitive: Any = equation.primitive
        inner = primitive.inlined() if primitive.holds_programs else None
        is_checkpoint = isinstance(primitive, Checkpoint)
        if inner is None or isinstance(primitive, Mapped):
            outputs = [Var(v.type) for v in equation.outputs]
            names.update(zip(equation.outputs, outputs, strict=True))
            steps.append(_Step(equation, inputs, outputs))
        else:
            inside: dict[Atom, Atom] = dict(zip(inner.inputs, inputs, strict=True))
            # What is inside a checkpoint is not kept, unless it is an output of it.
            _open(inner, inside, set() if is_checkpoint else noted, steps, kept)
            outs: list[Any] = [inside.get(a, a) for a in inner.outputs]
            names.update(zip(equation.outputs, outs, strict=True))
        kept.update({names[v]: None for v in equation.outputs if v in noted})


def _costly(steps: Sequence[_Step], kept: dict[Atom, None]) -> set[Atom]:
    """Return the values kept that take more than cheap work on arguments and other such ones."""
    unknown: set[Atom] = set()
    costly: set[Atom] = set()
    for step in steps:
        primitive: Any = step.equation.primitive
        cheap = isinstance(primitive, Elementwise) and primitive.costs in _CHEAP
        if cheap and not any([a in unknown for a in step.inputs]):
            continue
        for v in step.outputs:
            (costly if v in kept else unknown).add(v)
    return costly


def _loop(step: _Step, own: Sequence[int], times: int, found: _Found) -> None:
    """Return what a ``scan`` stacks of each step, and a checkpoint of its body would not."""
    loop: Any = step.equation.primitive
    body, total = loop.body, 0
    places = {v: e.position for e in body.equations for v in e.outputs}
    position = step.equation.position
    for k in own:
        count = times * bytes_of(step.outputs[k].type)
        place = places.get(body.outputs[k]) or step.equation.position
        found.lines.setdefault(where(place), []).append(count)
        total += count
        position = place
    carried = times * sum(bytes_of(v.type) for v in body.outputs[: loop.carry])
    saved = total - total // loop.length - loop.length * carried
    found.savings.append(Saving(where(position), body.name, loop.length, saved, True))


def _repeats(steps: Sequence[_Step], costly: set[Atom], times: int, found: _Found) -> None:
    """Estimate what checkpoints of functions called again and again, or of loops, would save.

    Each stretch between two arrivals at one place of a function stands for a call. A checkpoint
    keeps what goes into it, and while it is gone back through, it has all that it keeps now.
    """
    last = max([i for i, s in enumerate(steps) if any([v in costly for v in s.outputs])], default=0)
    steps = steps[: last + 1]
    made: dict[Atom, int] = {v: i for i, step in enumerate(steps) for v in step.outputs}
    arrivals: dict[CodeType, dict[int, list[int]]] = {}
    final: dict[CodeType, int] = {}
    previous: Any = None
    for i, step in enumerate(steps):
        place = step.equation.place
        if place is not None:
            final[place[0]] = i
            if place[:2] != previous:
                arrivals.setdefault(place[0], {}).setdefault(place[1], []).append(i)
        previous = place and place[:2]
    for code, by_offset in arrivals.items():
        offset, starts = max(by_offset.items(), key=lambda item: (len(item[1]), -item[1][0]))
        before = after = most = 0
        for start, end in zip(starts, [*starts[1:], final[code] + 1], strict=True):
            part = steps[start:end]
            mine = sum(bytes_of(v.type) for s in part for v in s.outputs if v in costly)
            enters = {a for s in part for a in s.inputs if made.get(a, start) < start}
            before += mine
            after += sum(bytes_of(a.type) for a in enters)
            most = max(most, mine)
        position = Position(code, offset)
        saved = times * (before - after - most)
        found.savings.append(Saving(where(position), code.co_name, len(starts), saved, False))
