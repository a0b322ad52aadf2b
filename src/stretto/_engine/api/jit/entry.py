"""What one signature of a jitted function was traced to, and how it is run.

``jit`` makes an entry for each signature. When it is first run, what no result needs is left out,
and the rest is lowered and compiled, or interpreted if it is small. Donated arguments are matched
to results of their type.
"""

from __future__ import annotations

import dataclasses
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, cast

from stretto._engine.api.arguments import LEAF
from stretto._engine.api.jit.beforehand import beforehand, with_equal_ones_merged
from stretto._engine.core import tree
from stretto._engine.core.config import config
from stretto._engine.core.effects import meshes, observable
from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.interpreter import Tracer
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.position import user_position, user_stack_level
from stretto._engine.core.program import Atom, Program
from stretto._engine.core.rewriting import live, used_inputs
from stretto._engine.core.single_flight import Turn, in_turn
from stretto._engine.core.types import ArrayType
from stretto._engine.lowering.stablehlo import lower
from stretto._engine.lowering.text import Text
from stretto._engine.passes.interpret_small import interpretable
from stretto._engine.passes.prepare import for_platform, prepare
from stretto._engine.xla import cache
from stretto._engine.xla.array import SHARDED, Array
from stretto._engine.xla.holder import Donated
from stretto._engine.xla.interpreted import Interpreted
from stretto._engine.xla.options import Options
from stretto._engine.xla.pjrt import Executable

if TYPE_CHECKING:  # loaded when first used
    from stretto._engine.api.jit.ref_arguments import Uses
    from stretto._engine.core.shardings import Placement, Sharding
    from stretto._engine.xla import background, pending, sharded
    from stretto._engine.xla.on_device import OnDevice
    from stretto._engine.xla.partitions import PlacedExecutable
else:
    background = LazyModule("stretto._engine.xla.background")
    pending = LazyModule("stretto._engine.xla.pending")
    sharded = LazyModule("stretto._engine.xla.sharded")

_LONG = 5_000
"""The characters of a text that takes long to compile: a tenth of a second or more."""


@dataclasses.dataclass(eq=False, slots=True, weakref_slot=True)
class Entry:
    """What one signature was traced to, and how to run it."""

    program: Program
    out_structure: Any
    captured: list[Any]
    """The captured values: those of the program's inputs after the arguments."""
    names: Sequence[str]
    """What messages call the leaves of the arguments."""
    donated: Sequence[bool]
    """Which leaves are donated; empty if none is."""
    keep_unused: bool
    options: Options
    signature: Callable[[], str]
    """The types of the arguments, in words."""
    seconds: float
    """How long tracing took."""
    ins: Sequence[Sharding | None] = ()
    """The shardings of the leaves of the arguments; empty if none has one."""
    outs: Sequence[Sharding | None] = ()
    """The shardings of the results that were asked for; empty if none was."""
    uses: Uses | None = None
    """The references that it uses, if it writes any or takes any from outside."""

    out_types: tuple[ArrayType, ...] = field(init=False)
    single: bool = field(init=False)
    has_tracers: bool = field(init=False)
    seen_from_outside: bool = field(init=False)
    """Whether it does more than to give results, such as to call Python."""
    settled: bool = False
    """Whether it is decided how calls are run."""
    executable: Any = None
    quick: bool = False
    """Whether the executable is one that was compiled quickly; see ``config.tiers``."""
    later: bool = False
    """Whether the next call may return before it is compiled; see ``pending``."""
    small: Interpreted | None = None
    """What runs it instead of an executable, if it is small."""

    records: int = 0
    """How many fingerprints of calls lead here; see ``dispatch``."""

    # Known once unused work has been left out:
    kept: list[int] | None = None
    """The leaves that are passed to the program; ``None``: all."""
    constants: Sequence[Any] = ()
    """The arrays passed after them: captured, or computed from captured ones (``beforehand``)."""
    placement: Placement | None = None
    """Where it runs, if not on the default device."""
    taken: frozenset[int] = frozenset()
    """The positions, among the values passed, of those whose memory a result takes over."""

    _slim: Program | None = None
    _text: Text | None = None
    _turn: Turn = field(default_factory=Turn)
    _on: dict[Any, Entry] = field(default_factory=dict)
    """The same program for arguments that are on a device, by their sharding."""

    def __post_init__(self) -> None:
        self.out_types = self.program.out_types
        self.single = self.out_structure == LEAF
        self.seen_from_outside = observable(self.program.effects)
        self.has_tracers = any(isinstance(c, Tracer) for c in self.captured)
        if self.uses is not None:
            self.has_tracers |= any(not cell.lasts for cell in self.uses.outside)

    def text(self) -> Text:
        """The StableHLO of what is used; written once."""
        return self._text or in_turn(self._turn, self._written)

    def _written(self) -> Text:
        if self._text is None:
            self._text = self._lower()
        return self._text

    def settle(self) -> None:
        """Decide, once, how calls are run: interpreted if the program is small, else compiled."""
        if not self.settled:
            in_turn(self._turn, self._settle)

    def _settle(self) -> None:
        if not self.settled:
            plain = not (self.options or any(self.donated) or self._on_devices())
            if config.interpret_small and plain:
                slim = self.slim()
                self.small = Interpreted(slim) if interpretable(slim) else None
            if self.small is None:
                self.later = self._may_come_later()
                if not self.later:
                    self.prepare()
            self.settled = True

    def _may_come_later(self) -> bool:
        """Whether a first call may return before the program is compiled, and it takes long.

        It must not matter when the call is run: it takes no memory of arguments, writes to no
        references, and calls no Python. Options that XLA does not have are refused at once.
        """
        if not config.compile_in_background or config.tiers or config.plan == "measure":
            return False
        text = self._whole_text()
        plain = not (self.options or self.taken or self.uses or text.calls)
        return plain and self.placement is None and len(text) > _LONG

    @property
    def is_compiled(self) -> bool:
        """Whether it is compiled, or a thread is about it."""
        return self.executable is not None or (self.settled and self.small is None)

    def _on_devices(self) -> bool:
        """Whether it runs on devices of choice: an argument, a result or a value of it is there."""
        if self.ins or self.outs or meshes(self.program.effects):
            return True
        return any([c.__class__ in SHARDED for c in self.captured])

    def slim(self) -> Program:
        """The program without what no result needs, including unused inputs."""
        return self._slim or in_turn(self._turn, self._slimmed_once)

    def _slimmed_once(self) -> Program:
        if self._slim is None:
            self._slim = self._slimmed()
        return self._slim

    def _slimmed(self) -> Program:
        program, constants = self.program, self.captured
        if config.simplify and not self.has_tracers:
            program = with_equal_ones_merged(live(program), constants)
            program, constants = beforehand(program, constants)
        prepared = prepare(program)
        used = list(used_inputs(prepared))
        own = len(used) - len(constants)
        if self.keep_unused:
            used[:own] = [True] * own
        inputs = [v for v, u in zip(prepared.inputs, used, strict=True) if u]
        places = [i for i in range(own) if used[i]]
        self.kept = None if len(places) == own else places
        self.constants = [c for c, u in zip(constants, used[own:], strict=True) if u]
        return Program(inputs, prepared.equations, prepared.outputs, prepared.name)

    def _lower(self) -> Text:
        slim = self.slim()
        inputs = slim.inputs
        places = range(len(self.names)) if self.kept is None else self.kept
        donated = [k for k, i in enumerate(places) if self.donated and self.donated[i]]
        on_devices = self._on_devices()
        if on_devices:  # what has no sharding is copied to the devices
            donated = [k for k in donated if self.ins and self.ins[places[k]] is not None]
        aliases = aliases_of(slim, donated)
        if self.outs:
            aliases = {
                k: out
                for k, out in aliases.items()
                if self.outs[out] is None or self.outs[out] == self.ins[places[k]]
            }
        self.taken = frozenset(aliases)
        self.placement = self._placed(slim, places, aliases) if on_devices else None
        text = lower(for_platform(slim, self.placement), aliases, self.placement)
        idle = [k for k in donated if k not in aliases and inputs[k].type.size]
        if idle:
            what = ", ".join(f"{self.names[places[k]]} ({inputs[k].type})" for k in idle)
            warnings.warn(
                f"Some donated buffers were not usable: {self.program.name}: no result can have "
                f"the memory of the donated {what}, so nothing was donated there; results have the "
                f"types {', '.join(map(repr, self.out_types))}",
                stacklevel=user_stack_level(),
            )
        return text

    def _placed(
        self, slim: Program, places: Sequence[int], aliases: dict[int, int]
    ) -> Placement | None:
        """Where the program runs. A result that takes an argument's memory lies where that does."""
        ins = [self.ins[i] if self.ins else None for i in places]
        names = [self.names[i] for i in places]
        ins += [sharded.sharding_if_any(c) for c in self.constants]
        names += ["a captured array"] * len(self.constants)
        outs = list(self.outs) or [None] * len(slim.outputs)
        for i, k in aliases.items():
            if outs[k] is None:
                outs[k] = ins[i]
        return sharded.placement_of(slim, ins, outs, names)

    def compile(self, options: Options) -> Executable:
        """The executable, compiled with these options."""
        start = time.perf_counter()
        text = self._whole_text()
        lowered = time.perf_counter()
        executable: Executable
        if self.placement is None:
            executable = cache.compiled(text, self.out_types, options)
        else:
            executable = sharded.compiled(text, self.out_types, self.placement, options)
        self._log(executable, lower=lowered - start, compile=time.perf_counter() - lowered)
        return executable

    def _whole_text(self) -> Text:
        """The text, if it can be compiled by itself."""
        for c in self.captured:
            if isinstance(c, Tracer):
                raise TracedValueError(
                    f"{self.program.name} cannot be compiled by itself: it captures a traced value "
                    f"({c.origin()}); pass that value as an argument"
                )
        return self.text()

    def _log(self, executable: Executable, **seconds: float) -> None:
        cache.log(self.program.name, self.signature, executable, trace=self.seconds, **seconds)

    def prepare(self) -> Executable:
        """Compile once, in whichever thread comes first."""
        return self.executable or in_turn(self._turn, self._compiled)

    def _compiled(self) -> Executable:
        if self.executable is None:
            if config.tiers:
                return self._compile_quickly()
            self.executable = self.compile(self.options)
        return self.executable

    # Tiers

    def _compile_quickly(self) -> Executable:
        """Compile quickly, and have the program optimized in the background."""
        start = time.perf_counter()
        text = self._whole_text()
        if self.placement is not None:
            self.executable = self.compile(self.options)
            return self.executable
        lowered = time.perf_counter()
        executable, quick = cache.compiled_quickly(text, self.out_types, self.options)
        took = {"quick compile" if quick else "compile": time.perf_counter() - lowered}
        self._log(executable, lower=lowered - start, **took)
        self.quick, self.executable = quick, executable
        if quick:
            # What nobody can call any more, as after ``clear_caches``, is not worth optimizing.
            this = weakref.ref(self)
            background.in_background(lambda: _optimize(this()))
        return executable

    def optimized(self) -> Executable:
        """The executable, optimized; waits if the background is at work on that."""
        if self.quick or self.executable is None:
            return in_turn(self._turn, self._optimized)
        return self.executable

    def _optimized(self) -> Executable:
        if self.quick or self.executable is None:
            self.executable = self.compile(self.options)
            self.quick = False  # last: no record is made of the quick one
        return self.executable

    def run(self, arrays: Sequence[Array], executable: Executable | None = None) -> Any:
        """Run on the arrays of the arguments, and build the result."""
        if self.kept is not None:
            arrays = [arrays[i] for i in self.kept]
        everything: Sequence[Array] = [*arrays, *self.constants]
        if self.small is not None and executable is None:
            results = self.small(everything)
        else:
            results = self._compiled_results(executable or self.executable, everything)
        return results[0] if self.single else tree.unflatten(self.out_structure, results)

    def _compiled_results(self, run: Executable | None, arrays: Sequence[Array]) -> list[Array]:
        """What the executable, which may be missing yet, gives for the arrays passed to it."""
        if run is None and self.later:
            self.later = False
            results = pending.begun(self.program.name, self.prepare, arrays, self.out_types)
            if results is not None:
                return results
        run = run or self.prepare()
        if self.placement is not None:
            arrays = sharded.all_placed(arrays, self.placement)
        if run.on_arrays is not None and not self.taken:
            return run.on_arrays(arrays)
        outs = self._run_taking(run, arrays) if self.taken else run(_buffers(arrays))
        if self.placement is None:
            return [Array(None, t, b) for t, b in zip(self.out_types, outs, strict=True)]
        return sharded.results_of(cast("PlacedExecutable", run), outs)

    def run_on(self, default: OnDevice, arrays: Sequence[Array]) -> Any:
        """As ``run``, under ``default_device``: what is nowhere in particular goes to that."""
        entry = self
        if not (self.ins or self.outs or meshes(self.program.effects)):
            entry = self.with_shardings((default.sharding,) * len(self.names))
        entry.settle()
        result = entry.run(arrays)
        return default.put(result) if self.single else tree.map(default.put, result)

    def with_shardings(self, ins: Sequence[Sharding | None]) -> Entry:
        """The same program for arguments that are there."""
        ins = tuple(ins)
        if ins == tuple(self.ins):
            return self
        entry = self._on.get(ins)
        if entry is not None:
            return entry
        entry = Entry(
            self.program,
            self.out_structure,
            self.captured,
            self.names,
            self.donated,
            self.keep_unused,
            self.options,
            self.signature,
            self.seconds,
            ins,
            self.outs,
            self.uses,
        )
        return self._on.setdefault(ins, entry)

    def _run_taking(self, run: Executable, everything: Sequence[Array]) -> list[Any]:
        """Run, letting results take over the memory of the arguments in ``taken``."""
        self._refuse_shared(everything)
        pending.wait_for_all()  # those that have not run may read what is taken here
        position = user_position()
        donated: list[tuple[Array, Any]] = []
        buffers = []
        try:
            for k, array in enumerate(everything):
                if k in self.taken:
                    buffers.append(array.to_give())
                    donated.append((array, array.kept()))  # before the array gives it up
                    array.donate(Donated(self.program.name, self._name(k), position))
                else:
                    buffers += _buffers([array])
            return run(buffers)
        except BaseException:
            for array, kept in donated:
                array.take_back(kept)
            raise

    def _refuse_shared(self, arrays: Sequence[Array]) -> None:
        """Raise ``ValueError`` if an array is donated and also passed as another argument."""
        ids = [id(a) for a in arrays]
        if len(set(ids)) == len(ids):
            return
        for k in self.taken:
            if ids.count(ids[k]) > 1:
                other = next(j for j, i in enumerate(ids) if i == ids[k] and j != k)
                raise ValueError(
                    f"{self.program.name}: one array was passed as {self._name(k)}, which is "
                    f"donated, and as {self._name(other)}; its memory cannot be taken and read at "
                    f"once: pass a copy, snp.copy(...), as one of them"
                )

    def _name(self, k: int) -> str:
        """What messages call the k-th of the values passed."""
        own = len(self.names) if self.kept is None else len(self.kept)
        if k >= own:
            return "a captured array"
        return self.names[k if self.kept is None else self.kept[k]]


def _buffers(arrays: Sequence[Array]) -> list[Any]:
    """The buffers of these arrays where they are."""
    return [a.to_give() if a.__class__ in SHARDED else a.to_buffer() for a in arrays]


def _optimize(entry: Entry | None) -> None:
    """Replace the executable of an entry by the optimized one, for later calls."""
    if entry is None:
        return
    try:
        entry.optimized()
    except Exception as error:
        warnings.warn(
            f"{entry.program.name}: the program could not be optimized in the background, so "
            f"calls go on as compiled quickly (config.tiers): {error}",
            RuntimeWarning,
            stacklevel=2,
        )


def aliases_of(program: Program, donated: Sequence[int]) -> dict[int, int]:
    """Which output takes over the memory of each donated input, ``{input: output}``.

    If the input itself is returned, that output; otherwise any of the same type.
    """
    free = dict(enumerate(program.outputs))
    aliases: dict[int, int] = {}

    def match(i: int, fits: Any) -> None:
        k = next((k for k, atom in free.items() if fits(atom)), None)
        if k is not None:
            del free[k]
            aliases[i] = k

    for i in donated:
        match(i, lambda atom, v=program.inputs[i]: atom is v)
    for i in donated:
        type = program.inputs[i].type
        if i not in aliases and type.size:
            match(i, lambda atom, type=type: _same(atom, type))
    return dict(sorted(aliases.items()))


def _same(atom: Atom, type: Any) -> bool:
    return atom.type.shape == type.shape and atom.type.dtype == type.dtype
