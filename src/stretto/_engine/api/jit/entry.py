"""Entries: what one signature of a jitted function was traced to, and how its calls are run.

``jit`` makes an entry for each signature. When it is first run, what no result needs is left out,
and the rest is lowered and compiled, or interpreted if it is small. Donated arguments are matched
to results of their type.

A runner takes the arrays that are passed to the program, and gives those of its results:
``BufferRunner`` on the default device, ``PlacedRunner`` where the program says, and
``DonatingRunner`` either way, letting results take over the memory of arguments. ``Interpreted``
and what executables have for arrays (``on_arrays``) are runners as well.

Captured arrays: equal ones are merged, and work on them alone is done once, before compiling
(``beforehand``). A jitted function may compute with arrays from outside, or with counts, and no
argument: a filter's transform, a factor of a matrix, a table of positions. That is computed when a
signature is first run, and the results are passed to the program instead of the arrays. A NumPy
array that is used twice is captured twice, so equal ones are common.
"""

from __future__ import annotations

import dataclasses
import functools
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, cast

from stretto._engine import xla
from stretto._engine.api.argument_leaves import LEAF
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core import tree
from stretto._engine.core.config import config
from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.interpreter import Tracer, state
from stretto._engine.core.position import user_position, user_stack_level
from stretto._engine.core.primitive import meshes, observable
from stretto._engine.core.program import Atom, Equation, Program, Var
from stretto._engine.core.rewriting import live, used_inputs, with_inputs
from stretto._engine.core.threads import Turn, holding, in_turn
from stretto._engine.core.types import ArrayType, bytes_of
from stretto._engine.eager.interpreted import Interpreted, interpretable
from stretto._engine.eager.interpreter import EAGER
from stretto._engine.lowering.stablehlo import lower
from stretto._engine.lowering.text import Text
from stretto._engine.ops.broadcast import BroadcastInDim
from stretto._engine.ops.elementwise import INTEGRAL, Elementwise
from stretto._engine.ops.iota import Constant
from stretto._engine.ops.layout import Reshape, Transpose
from stretto._engine.ops.shape import Slice
from stretto._engine.passes.prepare import for_platform, prepare
from stretto._engine.xla import cache
from stretto._engine.xla.array import SHARDED, Array, Donated
from stretto._engine.xla.options import Options
from stretto._engine.xla.pjrt import Executable

if TYPE_CHECKING:
    from stretto._engine.api.argument_leaves import RefUses
    from stretto._engine.core.shardings import Placement, Sharding
    from stretto._engine.eager.interpreter import OnDevice
    from stretto._engine.xla.partitions import PlacedExecutable

_LONG = 5_000
"""The characters of a text that takes long to compile: a tenth of a second or more."""


@dataclasses.dataclass(eq=False, slots=True, weakref_slot=True)
class Entry:
    """Holds what one signature was traced to, and what runs its calls."""

    program: Program
    out_structure: Any
    captured: list[Any]
    """The values of the program's inputs after the arguments."""
    names: Sequence[str]
    """The names of the leaves of the arguments, for messages."""
    donated: Sequence[bool]
    """One flag for each leaf, set where it is donated; empty if none is."""
    keep_unused: bool
    options: Options
    signature: Callable[[], str]
    """The types of the arguments, in words."""
    seconds: float
    """The seconds that tracing took."""
    ins: Sequence[Sharding | None] = ()
    """The shardings of the leaves of the arguments; empty if none has one."""
    outs: Sequence[Sharding | None] = ()
    """The shardings of the results that were asked for; empty if none was."""
    uses: RefUses | None = None
    """The references that it uses, if it writes any or takes any from outside."""

    out_types: tuple[ArrayType, ...] = field(init=False)
    single: bool = field(init=False)
    has_tracers: bool = field(init=False)
    seen_from_outside: bool = field(init=False)
    """True if it does more than to give results, such as to call Python."""
    decided: bool = False
    """True once it is known if calls are interpreted or compiled."""
    runner: Runner | None = None
    """Runs the calls; None until the program is compiled, if it is to be."""
    executable: Executable | None = None
    """The compiled program, if there is one."""
    quick: bool = False
    """True if the executable was compiled quickly; see ``config.tiers``."""
    later: bool = False
    """True if the next call may return before the program is compiled; see ``background``."""

    records: int = 0
    """The number of fingerprints of calls that lead here; see ``dispatch``."""

    # Known once unused work has been left out:
    kept: list[int] | None = None
    """The leaves that are passed to the program; ``None``: all."""
    constants: Sequence[Any] = ()
    """The arrays passed after them: captured, or computed from captured ones (``beforehand``)."""
    placement: Placement | None = None
    """The devices that it runs on, if not the default one."""
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
        """Return the StableHLO of what is used; written once."""
        return self._text or in_turn(self._turn, self._write_text)

    def _write_text(self) -> Text:
        if self._text is None:
            self._text = self._lower()
        return self._text

    def decide(self) -> None:
        """Decide, once, how calls are run: interpreted if the program is small, else compiled."""
        if not self.decided:
            in_turn(self._turn, self._decide)

    def _decide(self) -> None:
        if not self.decided:
            plain = not (self.options or any(self.donated) or self._on_devices())
            if config.interpret_small and plain and interpretable(self.slim()):
                self.runner = Interpreted(self.slim())
            else:
                self.later = self._may_come_later()
                if not self.later:
                    self.prepare()
            self.decided = True

    def _may_come_later(self) -> bool:
        """Say if a first call may return before the program is compiled, which takes long.

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
        """True if it is compiled, or a thread is about it."""
        return self.executable is not None or (self.decided and not self.is_interpreted)

    @property
    def is_interpreted(self) -> bool:
        """True if the program is small, and has no executable."""
        return isinstance(self.runner, Interpreted)

    def _on_devices(self) -> bool:
        """Say if it runs on devices of choice: an argument, a result or a value of it is there."""
        if self.ins or self.outs or meshes(self.program.effects):
            return True
        return any([c.__class__ in SHARDED for c in self.captured])

    def slim(self) -> Program:
        """Return the program without what no result needs, including unused inputs."""
        return self._slim or in_turn(self._turn, self._make_slim)

    def _make_slim(self) -> Program:
        if self._slim is None:
            self._slim = self._new_slim()
        return self._slim

    def _new_slim(self) -> Program:
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
        kept = [i for i in range(own) if used[i]]
        self.kept = None if len(kept) == own else kept
        self.constants = [c for c, u in zip(constants, used[own:], strict=True) if u]
        return Program(inputs, prepared.equations, prepared.outputs, prepared.name)

    def _lower(self) -> Text:
        slim = self.slim()
        inputs = slim.inputs
        kept = range(len(self.names)) if self.kept is None else self.kept
        donated = [k for k, i in enumerate(kept) if self.donated and self.donated[i]]
        on_devices = self._on_devices()
        if on_devices:  # what has no sharding is copied to the devices
            donated = [k for k in donated if self.ins and self.ins[kept[k]] is not None]
        aliases = aliases_of(slim, donated)
        if self.outs:
            aliases = {
                k: out
                for k, out in aliases.items()
                if self.outs[out] is None or self.outs[out] == self.ins[kept[k]]
            }
        self.taken = frozenset(aliases)
        self.placement = self._placement_of(slim, kept, aliases) if on_devices else None
        text = lower(for_platform(slim, self.placement), aliases, self.placement)
        idle = [k for k in donated if k not in aliases and inputs[k].type.size]
        if idle:
            what = ", ".join(f"{self.names[kept[k]]} ({inputs[k].type})" for k in idle)
            warnings.warn(
                f"Some donated buffers were not usable: {self.program.name}: no result can have "
                f"the memory of the donated {what}, so nothing was donated there; results have the "
                f"types {', '.join(map(repr, self.out_types))}",
                stacklevel=user_stack_level(),
            )
        return text

    def _placement_of(
        self, slim: Program, kept: Sequence[int], aliases: dict[int, int]
    ) -> Placement | None:
        """Return where it runs; a result with an argument's memory lies where that does."""
        ins = [self.ins[i] if self.ins else None for i in kept]
        names = [self.names[i] for i in kept]
        ins += [xla.sharded.sharding_if_any(c) for c in self.constants]
        names += ["a captured array"] * len(self.constants)
        outs = list(self.outs) or [None] * len(slim.outputs)
        for i, k in aliases.items():
            if outs[k] is None:
                outs[k] = ins[i]
        return xla.sharded.placement_of(slim, ins, outs, names)

    def compile(self, options: Options) -> Executable:
        """Compile the program with these options."""
        start = time.perf_counter()
        text = self._whole_text()
        lowered = time.perf_counter()
        executable: Executable
        if self.placement is None:
            executable = cache.compile_cached(text, self.out_types, options)
        else:
            executable = xla.sharded.compile_cached(text, self.out_types, self.placement, options)
        self._log(executable, lower=lowered - start, compile=time.perf_counter() - lowered)
        return executable

    def _whole_text(self) -> Text:
        """Return the text, if it can be compiled by itself."""
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
        return self.executable or in_turn(self._turn, self._compile_once)

    def _compile_once(self) -> Executable:
        if self.executable is not None:
            return self.executable
        return self._compile_quickly() if config.tiers else self._run_by(self.compile(self.options))

    def _run_by(self, executable: Executable) -> Executable:
        """Have calls run by this executable."""
        self.executable, self.runner = executable, self.runner_of(executable)
        return executable

    def runner_of(self, executable: Executable) -> Runner:
        """Return what runs calls by an executable of this program."""
        inner: BufferRunner | PlacedRunner
        if self.placement is not None:
            inner = PlacedRunner(cast("PlacedExecutable", executable), self.placement)
        elif executable.on_arrays is not None and not self.taken:
            return executable.on_arrays
        else:
            inner = BufferRunner(executable, self.out_types)
        if not self.taken:
            return inner
        named = functools.partial(_name_of_passed, self.names, self.kept)
        return DonatingRunner(inner, self.taken, self.program.name, named)

    # Tiers

    def _compile_quickly(self) -> Executable:
        """Compile quickly, and have the program optimized in the background."""
        start = time.perf_counter()
        text = self._whole_text()
        if self.placement is not None:
            return self._run_by(self.compile(self.options))
        lowered = time.perf_counter()
        executable, quick = cache.compiled_quickly(text, self.out_types, self.options)
        took = {"quick compile" if quick else "compile": time.perf_counter() - lowered}
        self._log(executable, lower=lowered - start, **took)
        self.quick = quick
        self._run_by(executable)
        if quick:
            # What nobody can call any more, as after ``clear_caches``, is not worth optimizing.
            this = weakref.ref(self)
            xla.background.in_background(lambda: _optimize(this()))
        return executable

    def optimized(self) -> Executable:
        """Return the optimized executable; wait if the background is at work on that."""
        if self.quick or self.executable is None:
            return in_turn(self._turn, self._optimize_once)
        return self.executable

    def _optimize_once(self) -> Executable:
        if self.executable is not None and not self.quick:
            return self.executable
        executable = self._run_by(self.compile(self.options))
        self.quick = False  # last: no record is made of the quick one
        return executable

    def run(self, arrays: Sequence[Array], executable: Executable | None = None) -> Any:
        """Run on the arrays of the arguments, and build the result."""
        if self.kept is not None:
            arrays = [arrays[i] for i in self.kept]
        passed: Sequence[Array] = [*arrays, *self.constants]
        runner = self.runner if executable is None else self.runner_of(executable)
        results = self._first_results(passed) if runner is None else runner(passed)
        return results[0] if self.single else tree.unflatten(self.out_structure, results)

    def _first_results(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the results of a call that comes before there is a runner."""
        if self.later:
            self.later = False
            results = xla.background.begin(self.program.name, self.prepare, arrays, self.out_types)
            if results is not None:
                return results
        return self.runner_of(self.prepare())(arrays)

    def run_on(self, default: OnDevice, arrays: Sequence[Array]) -> Any:
        """Run under ``default_device``: what is nowhere in particular goes to that."""
        entry = self
        if not (self.ins or self.outs or meshes(self.program.effects)):
            entry = self.with_shardings((default.sharding,) * len(self.names))
        entry.decide()
        result = entry.run(arrays)
        return default.put(result) if self.single else tree.map(default.put, result)

    def with_shardings(self, ins: Sequence[Sharding | None]) -> Entry:
        """Return the entry of the same program for arguments with these shardings."""
        ins = tuple(ins)
        if ins == tuple(self.ins):
            return self
        entry = self._on.get(ins)
        if entry is not None:
            return entry
        entry = Entry(
            program=self.program,
            out_structure=self.out_structure,
            captured=self.captured,
            names=self.names,
            donated=self.donated,
            keep_unused=self.keep_unused,
            options=self.options,
            signature=self.signature,
            seconds=self.seconds,
            ins=ins,
            outs=self.outs,
            uses=self.uses,
        )
        return self._on.setdefault(ins, entry)


def _name_of_passed(names: Sequence[str], kept: Sequence[int] | None, k: int) -> str:
    """Return what messages call the k-th of the values passed."""
    own = len(names) if kept is None else len(kept)
    if k >= own:
        return "a captured array"
    return names[k if kept is None else kept[k]]


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
    """Return the output that takes over the memory of each donated input, ``{input: output}``.

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


class Runner(Protocol):
    """Gives the results of a program, for the arrays passed to it."""

    def __call__(self, arrays: Sequence[Array], /) -> list[Array]: ...


class BufferRunner:
    """Runs an executable on buffers of the default device."""

    __slots__ = ("executable", "out_types")

    def __init__(self, executable: Executable, out_types: Sequence[ArrayType]) -> None:
        self.executable, self.out_types = executable, out_types

    def __call__(self, arrays: Sequence[Array], /) -> list[Array]:
        return self.results(self.executable(buffers_of(arrays)))

    def ready(self, arrays: Sequence[Array]) -> Sequence[Array]:
        """Return the arrays where the executable takes them."""
        return arrays

    def results(self, buffers: Sequence[Any]) -> list[Array]:
        """Return arrays for the buffers that the executable gave."""
        return [Array(None, t, b) for t, b in zip(self.out_types, buffers, strict=True)]


class PlacedRunner:
    """Runs an executable on the devices that its program says."""

    __slots__ = ("executable", "placement")

    def __init__(self, executable: PlacedExecutable, placement: Placement) -> None:
        self.executable, self.placement = executable, placement

    def __call__(self, arrays: Sequence[Array], /) -> list[Array]:
        return self.results(self.executable(buffers_of(self.ready(arrays))))

    def ready(self, arrays: Sequence[Array]) -> Sequence[Array]:
        """Return the arrays, put where the executable takes them."""
        return xla.sharded.all_placed(arrays, self.placement)

    def results(self, buffers: Sequence[Any]) -> list[Array]:
        """Return arrays for the buffers that the executable gave."""
        return xla.sharded.results_of(self.executable, buffers)


class DonatingRunner:
    """Runs an executable whose results take over the memory of some of the arrays passed.

    Args:
        inner: runs the executable otherwise.
        taken: the positions of those arrays.
        name: what messages call the program.
        name_of: what they call the array at a position.
    """

    __slots__ = ("_inner", "_name", "_name_of", "_taken")

    def __init__(
        self,
        inner: BufferRunner | PlacedRunner,
        taken: frozenset[int],
        name: str,
        name_of: Callable[[int], str],
    ) -> None:
        self._inner, self._taken, self._name, self._name_of = inner, taken, name, name_of

    def __call__(self, arrays: Sequence[Array], /) -> list[Array]:
        arrays = self._inner.ready(arrays)
        self._refuse_shared(arrays)
        xla.background.wait_for_all()  # those that have not run may read what is taken here
        position = user_position()
        donated: list[tuple[Array, Any]] = []
        buffers = []
        try:
            for k, array in enumerate(arrays):
                if k in self._taken:
                    buffers.append(array.to_give())
                    donated.append((array, array.kept()))  # before the array gives it up
                    array.donate(Donated(self._name, self._name_of(k), position))
                else:
                    buffers += buffers_of([array])
            return self._inner.results(self._inner.executable(buffers))
        except BaseException:
            for array, kept in donated:
                array.take_back(kept)
            raise

    def _refuse_shared(self, arrays: Sequence[Array]) -> None:
        """Raise ``ValueError`` if an array is donated and also passed as another argument."""
        ids = [id(a) for a in arrays]
        if len(set(ids)) == len(ids):
            return
        for k in self._taken:
            if ids.count(ids[k]) > 1:
                other = next(j for j, i in enumerate(ids) if i == ids[k] and j != k)
                raise ValueError(
                    f"{self._name}: one array was passed as {self._name_of(k)}, which is donated, "
                    f"and as {self._name_of(other)}; its memory cannot be taken and read at once: "
                    f"pass a copy, snp.copy(...), as one of them"
                )


def buffers_of(arrays: Sequence[Array]) -> list[Any]:
    """Return the buffers of arrays where they are."""
    return [a.to_give() if a.__class__ in SHARDED else a.to_buffer() for a in arrays]


_MOST_COMPARED = 1 << 20
"""The most bytes of an array that is compared with others."""

_MOST_BYTES = 1 << 22
"""The most bytes of a result that is larger than its operands."""

_MOST_KEPT = 1 << 26
"""The most bytes of all results together, which live as long as the signature."""

_VIEWS = (BroadcastInDim, Reshape, Slice, Transpose)
"""Operations that XLA does while reading, at no cost."""


def beforehand(program: Program, captured: Sequence[Any]) -> tuple[Program, Sequence[Any]]:
    """Give the program without work that depends on no argument, and the values of its last inputs.

    ``captured`` are the values of the last inputs of ``program``. The first inputs, the arguments,
    stay as they are.
    """
    if not captured and all([e.inputs for e in program.equations]):
        return program, captured
    steps = _worthwhile(_constant(program, len(captured)))
    if not steps:
        return program, captured
    done = set(steps)
    rest = [e for e in program.equations if e not in done]
    read = {a for e in rest for a in e.inputs}.union(program.outputs)
    results = [v for e in steps for v in e.outputs if v in read]
    if sum([bytes_of(v.type) for v in results]) > _MOST_KEPT:
        return program, captured
    own = len(program.inputs) - len(captured)
    outside = program.inputs[own:]
    first = Program(outside, steps, results, program.name)
    values = holding(state, "interpreter", EAGER, evaluate, first, captured)
    remaining = Program([*program.inputs, *results], rest, program.outputs, program.name)
    used = [*([True] * own), *used_inputs(remaining)[own:]]
    everything = [*captured, *values]
    kept = [x for x, u in zip(everything, used[own:], strict=True) if u]
    return with_inputs(remaining, used), kept


def with_equal_ones_merged(program: Program, captured: Sequence[Any]) -> Program:
    """Give the program, reading the first of equal captured arrays in place of all; same inputs."""
    outside = program.inputs[len(program.inputs) - len(captured) :]
    first: dict[Any, Var] = {}
    renamed: dict[Atom, Atom] = {}
    alike = Counter([v.type for v in outside])
    for v, value in zip(outside, captured, strict=True):
        if alike[v.type] > 1 and bytes_of(v.type) <= _MOST_COMPARED:
            same = first.setdefault((v.type, value.to_host().tobytes()), v)
            if same is not v:
                renamed[v] = same
    if not renamed:
        return program
    equations = [
        e
        if renamed.keys().isdisjoint(e.inputs)
        else Equation(e.primitive, [renamed.get(a, a) for a in e.inputs], e.outputs, e.place)
        for e in program.equations
    ]
    outputs = [renamed.get(a, a) for a in program.outputs]
    return Program(program.inputs, equations, outputs, program.name)


def _constant(program: Program, captured: int) -> list[Equation]:
    """Return the equations that depend on no argument, with results small enough to keep."""
    known: set[Atom] = set(program.inputs[len(program.inputs) - captured :])
    constant = []
    for e in program.equations:
        if e.inputs and known.isdisjoint(e.inputs):
            continue
        if any([a not in known and type(a) is Var for a in e.inputs]):
            continue
        primitive: Any = e.primitive
        if primitive.effects or primitive.calls_python or primitive.holds_programs:
            continue
        if primitive.by_platform:
            continue
        if _size(e.outputs) <= max(_MOST_BYTES, _size(e.inputs)):
            known.update(e.outputs)
            constant.append(e)
    return constant


def _worthwhile(steps: Sequence[Equation]) -> list[Equation]:
    """Give the steps without final ones that are no slower than reading their results would be."""
    costs: dict[Atom, int] = {}  # bytes to read in order to compute each value while fused
    for e in steps:
        for v in e.outputs:
            fused = _fused(e) and not isinstance(e.primitive, Constant)
            inputs = [costs.get(a, bytes_of(a.type)) for a in set(e.inputs) if type(a) is Var]
            costs[v] = sum(inputs) if fused else bytes_of(v.type)
    read: set[Atom] = set()
    kept = []
    for e in reversed(steps):
        if read.isdisjoint(e.outputs) and _fused(e):
            (out,) = e.outputs
            if isinstance(e.primitive, (Constant, *_VIEWS)) or bytes_of(out.type) > costs[out]:
                continue
        read.update(e.inputs)
        kept.append(e)
    return kept[::-1]


def _fused(equation: Equation) -> bool:
    """Say if XLA fuses it into what reads the result."""
    primitive: Any = equation.primitive
    if not primitive.light or len(equation.outputs) != 1:
        return False
    if isinstance(primitive, Elementwise):
        return bool(primitive.accepts & INTEGRAL)
    types = [a.type for a in equation.inputs]
    outs = [v.type for v in equation.outputs]
    return primitive.work(types, outs) <= 4 * max([t.size for t in (*types, *outs)])


def _size(atoms: Iterable[Atom]) -> int:
    return sum([bytes_of(a.type) for a in atoms if type(a) is Var])
