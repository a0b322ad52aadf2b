"""The boundary to jaxlib: StableHLO text in, executables out, buffers both ways.

``clients`` starts the runtime when the first program is compiled. Nothing global is set, so that
other users of jaxlib in the process are not disturbed.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from stretto._engine import xla
from stretto._engine.core.errors import ConfigError
from stretto._engine.core.types import ArrayType
from stretto._engine.lowering.text import Text
from stretto._engine.xla.clients import (
    Runtime,
    in_use,
    left_behind,
    load_jaxlib,
    mlir,
    refuse_fork,
    runtime,
)
from stretto._engine.xla.memory import (
    LARGE,
    RunIfRoom,
    bytes_needed,
    explanation_of,
    refuse_huge,
)
from stretto._engine.xla.options import (
    LIBRARY,
    SMALL_LOOPS,
    Options,
    asks_for_dumps,
    quick_options,
    with_option,
)
from stretto._engine.xla.patience import LongRun, elsewhere, end_threads, patient, unusual

T = TypeVar("T")


class _Aval:
    """Holds what jaxlib needs to know about an abstract value."""

    __slots__ = ("dtype", "ndim", "shape", "weak_type")

    def __init__(self, type: ArrayType) -> None:
        self.shape, self.dtype, self.ndim, self.weak_type = type.shape, type.dtype, type.ndim, False


@functools.lru_cache(4096)
def aval(type: ArrayType) -> _Aval:
    """Return what jaxlib needs to know about values of this type."""
    return _Aval(type)


@functools.lru_cache(4096)
def _handler(type: ArrayType, at: Runtime) -> Any:
    return at.jax.array_result_handler(aval(type), at.sharding, True, *at.skip_checks)


def to_device(array: np.ndarray, type: ArrayType, own: bool, at: Runtime | None = None) -> Any:
    """Return a device buffer with the contents of a NumPy array.

    ``own`` promises that nobody will write to the array any more: then its memory is used without a
    copy, if it is aligned.
    """
    at = at or runtime()
    if unusual:
        end_threads()
    if not array.flags.c_contiguous:
        array, own = np.ascontiguousarray(array).reshape(array.shape), True
    if own:
        return at.put(aval(type), at.sharding, [array], [at.device], True, enable_x64=True)
    return at.put(
        aval(type),
        at.sharding,
        [array],
        [at.device],
        True,
        host_buffer_semantics=at.copies,
        enable_x64=True,
    )


def to_host(buffer: Any) -> np.ndarray:
    """Return a read-only NumPy view of a buffer, once it is computed.

    It uses Python's buffer protocol; jaxlib's own method tries to import jax at each call.
    """
    wait(buffer)  # the protocol ends the process where the computation has failed
    try:
        return np.asarray(memoryview(buffer))
    except BufferError:  # the protocol has no code for bfloat16 and the like, nor for GPUs
        return _read_without_jax(buffer)


def _import_but_jax(name: str, *args: Any) -> Any:
    """Import as ``__import__``, but for ``jax``, which reading an array must not load."""
    if name.partition(".")[0] == "jax":
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return builtins.__import__(name, *args)


def without_jax(function: Callable[[Any], T]) -> Callable[[Any], T]:
    """Return the function, of an argument alone, so that jaxlib cannot import jax in it.

    What C code imports goes by the builtins of the function that calls it, so that other threads,
    which may import jax, see nothing of this.
    """
    code: Any = function.__code__
    return FunctionType(code, {"__builtins__": {"__import__": _import_but_jax}})


_read_without_jax = without_jax(
    lambda buffer: buffer._single_device_array_to_np_array_did_copy()[0]
)
"""jaxlib's own way to NumPy."""


def buffer_of(host: np.ndarray, at: Runtime) -> Any | None:
    """Return the buffer of this runtime that ``to_host`` gave the view of.

    It is None if it is no such view.
    """
    view = host.base
    buffer: Any = view.obj if isinstance(view, memoryview) else None
    if getattr(buffer, "_sharding", None) is not at.sharding:
        return None
    whole = buffer.aval.shape == host.shape and buffer.aval.dtype == host.dtype
    return buffer if whole else None


def to_dlpack(buffer: Any) -> Any:
    """Return a DLPack capsule of a buffer's memory, to which its consumer may write."""
    wait(buffer)
    return runtime().jax.buffer_to_dlpack_managed_tensor(buffer)


def from_dlpack(capsule: Any) -> np.ndarray:
    """Return a read-only NumPy view of a DLPack capsule's memory, of any dtype of XLA's."""
    at = runtime()
    return to_host(at.jax.dlpack_managed_tensor_to_buffer(capsule, at.device, None))


def wait(buffer: Any) -> None:
    """Wait until the buffer is computed; raise the errors of the computation."""
    if left_behind and not buffer.is_ready():
        refuse_fork()
    if unusual:
        end_threads()
    patient((buffer,))
    try:
        buffer.block_until_ready()
    except RuntimeError as error:
        failure = explanation_of(error)
    else:
        return
    raise failure  # outside the except clause, which would set its __context__


def wait_for_all(buffers: Sequence[Any]) -> None:
    """Wait for several buffers; the first error is raised."""
    if left_behind:
        for buffer in buffers:
            wait(buffer)
        return
    if unusual:
        end_threads()
    patient(buffers)
    try:
        runtime().jax.batched_block_until_ready([*buffers])
    except RuntimeError as error:
        failure = explanation_of(error)
    else:
        return
    raise failure


def is_failure(error: RuntimeError) -> bool:
    """Say whether the error is a computation's, or the runtime's, and no signal handler's."""
    return isinstance(error, runtime().jax.JaxRuntimeError)


def tidy() -> None:
    """Free what the runtime keeps about past calls: it notes where each was made.

    Otherwise every call and every wait would keep some 90 bytes; the ``jax`` package has Python's
    garbage collector free them.
    """
    runtime().jax.collect_garbage()


def ready(buffer: Any) -> bool:
    """Say whether the buffer is computed."""
    return buffer.is_ready()


def runner(
    loaded: Any, out_types: Sequence[ArrayType], text: Text, parts: int = 1
) -> Callable[..., Any]:
    """Return what runs the program on buffers: its ``execute_sharded``, or more around it.

    ``parts`` is how many devices share this machine's memory, each with a part of the program.
    """
    run = loaded.execute_sharded
    if parts * bytes_needed(loaded) > LARGE:
        run = RunIfRoom(run, loaded, text.facts.name, parts)
    if out_types and text.facts.may_take_long:
        sizes = [type.size * type.dtype.itemsize for type in out_types]
        run = LongRun(run, sizes.index(min(sizes)))
    return run


class Executable:
    """A compiled program: ``run(buffers).consume_with_handlers(handlers)`` is the call."""

    __slots__ = ("__weakref__", "from_disk", "handlers", "loaded", "run", "text")

    on_arrays: Callable[[Sequence[Any]], list[Any]] | None = None
    """Runs it on arrays, and gives arrays, where that is better than buffers for buffers."""

    def __init__(
        self, loaded: Any, out_types: Sequence[ArrayType], text: Text, at: Runtime | None = None
    ) -> None:
        self.loaded = loaded
        self.text = text
        self.from_disk = False
        self.run = runner(loaded, out_types, text)
        self.handlers = [_handler(t, at or runtime()) for t in out_types]

    def __call__(self, buffers: Sequence[Any]) -> list[Any]:
        """Run on these buffers; return the buffers of the outputs."""
        tidy()
        if unusual:
            return elsewhere(self._run, buffers)
        return self.run(buffers).consume_with_handlers(self.handlers)

    def _run(self, buffers: Sequence[Any]) -> list[Any]:
        return self.run(buffers).consume_with_handlers(self.handlers)

    def as_text(self) -> str:
        """Return the optimized HLO."""
        return "\n\n".join(m.to_string() for m in self.loaded.hlo_modules())

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimate: ``flops``, ``bytes accessed`` and more."""
        return dict(self.loaded.cost_analysis())

    def memory_analysis(self) -> Any:
        """Return sizes in bytes of arguments, outputs, temporaries and code."""
        return self.loaded.get_compiled_memory_stats()


def run_to_the_end(executable: Executable, buffers: Sequence[Any]) -> list[Any]:
    """Return the buffers of the outputs, once the program has ended, also if it has none."""
    tidy()
    if unusual:
        end_threads()
    results = executable.loaded.execute_sharded(buffers, with_tokens=True)
    token = results.consume_token()
    outs = results.consume_with_handlers(executable.handlers)
    token.block_until_ready()
    wait_for_all(outs)
    return outs


_PROBLEM = re.compile(r"No such compile option: '(.*?)'|While setting option (.*?),.*? value")


def compile_text(
    text: Text,
    out_types: Sequence[ArrayType],
    options: Options = (),
    callbacks: Sequence[Callable[..., Any]] = (),
    at: Runtime | None = None,
) -> Executable:
    """Compile StableHLO text, which calls ``callbacks`` by number with NumPy arrays.

    Raises ``ConfigError`` for an option that XLA does not have, or a value that it does not take.
    """
    at = at or runtime()
    return Executable(load(at, text, options, callbacks), out_types, text, at)


def load(
    at: Runtime,
    text: Text,
    options: Options,
    callbacks: Sequence[Callable[..., Any]] = (),
    devices: Sequence[Any] = (),
) -> Any:
    """Return the runtime's form of the compiled text, for these devices; see ``compile_text``.

    A program in which the library would misread a broadcast is compiled again without it. The text
    has barriers where it multiplies by what is a broadcast there; XLA finds others. So is one whose
    kernel of a loop would call for threads, which are not to be had in it: ``options.most_bytes``
    knows the kinds found so far.
    """
    if at.breaks_on_huge:
        refuse_huge(text.facts)
    ours: Options = ()
    try:
        result = _load(at, text, options, callbacks, devices)
    except at.jax.JaxRuntimeError as error:
        if not text.facts.has_loops or "Failed to materialize symbols" not in str(error):
            raise
        ours = ((SMALL_LOOPS, 0),)
        result = _load(at, text, options, callbacks, devices, ours)
    goes_to_library = text.facts.products or text.facts.has_reductions
    if goes_to_library and any([misreads(m.to_string()) for m in result.hlo_modules()]):
        ours = with_option(ours, LIBRARY, "")
        result = _load(at, text, options, callbacks, devices, ours)
        if at.unknown.intersection(ours):
            raise RuntimeError(
                f"jaxlib {at.jaxlib} would compute a product with a broadcast array wrongly, and "
                f"does not know the option {LIBRARY}, by which its library is left out: install "
                f"another version of jaxlib"
            )
    return result


def _load(
    at: Runtime,
    text: Text,
    options: Options,
    callbacks: Sequence[Callable[..., Any]],
    devices: Sequence[Any],
    ours: Options = (),
) -> Any:
    """Compile with these options, and with some of ours before them."""
    if unusual:
        end_threads()
    at.provide(text.facts)
    targets = at.list_of(devices)

    def run(chosen: Any) -> Any:
        given = (
            (at.parse(text), targets, chosen, callbacks) if callbacks else (text, targets, chosen)
        )
        return xla.background.watch(text.facts.name, lambda: at.client.compile_and_load(*given))

    return _with_options(at, text, options, devices, ours, run)


def _with_options(
    at: Runtime,
    text: Text,
    options: Options,
    devices: Sequence[Any],
    ours: Options,
    run: Callable[[Any], T],
) -> T:
    """Return ``run(chosen)``, given XLA's options without those of ours that it does not know.

    Which it does not know is found by failing, which takes 5 ms once: a question beforehand would
    take that in every process. Raises ``ConfigError`` for one that is the user's.
    """
    users = dict(options).keys() - dict(set(options).intersection(quick_options(at.version)))
    while True:
        chosen = at.compile_options(
            text.facts, tuple({**dict(options), **dict(ours)}.items()), devices
        )
        if at.unknown:
            chosen.env_option_overrides = [
                pair
                for pair in chosen.env_option_overrides
                if pair[0] in users or pair not in at.unknown
            ]
        try:
            return run(chosen)
        except at.jax.JaxRuntimeError as error:
            problem = _PROBLEM.search(str(error))
            if problem is None:
                raise
        name = problem[1] or problem[2]
        refused = [pair for pair in chosen.env_option_overrides if pair[0] == name]
        if name in users or not refused:
            raise ConfigError(
                f"compiler_options: {problem[0]}; they are XLA's flags by name, such as "
                f"{{'xla_cpu_enable_fast_math': True}}"
            )
        at.unknown.update(refused)


def quick() -> Options:
    """Return the options with which the runtime compiles quickly, to slower programs."""
    return quick_options(runtime().version)


def conditions(
    text: Text, options: Options, devices: Sequence[Any] = (), at: Runtime | None = None
) -> bytes | None:
    """Return all but text and processor that decides what the text is compiled to.

    That is: the devices, if they are several; XLA's options, including those it took from
    ``XLA_FLAGS``; the version and build of the runtime; and its number of threads. ``None`` if XLA
    is asked to dump what it compiles, since then it has to compile.
    """
    at = at or runtime()
    chosen = at.compile_options(text.facts, options, devices)
    flags = chosen.executable_build_options.debug_options
    if asks_for_dumps(flags, options):
        return None
    return f"{at.conditions()}\n".encode() + chosen.SerializeAsString()


def serialize(executable: Executable) -> bytes | None:
    """Return a compiled program as bytes; ``None`` if the runtime cannot serialize it."""
    try:
        return executable.loaded.serialize()
    except runtime().jax.JaxRuntimeError:
        return None


def deserialize(
    content: bytes,
    text: Text,
    options: Options,
    devices: Sequence[Any] = (),
    at: Runtime | None = None,
    callbacks: Sequence[Callable[..., Any]] = (),
) -> Any | None:
    """Load the program of the bytes of ``serialize``; ``None`` if the runtime refuses them.

    It calls ``callbacks`` by number.

    They are native code that will be run, so nobody else must have been able to write them.
    """
    at = at or runtime()
    at.provide(text.facts)
    more = (callbacks,) if callbacks else ()

    def run(chosen: Any) -> Any:
        return at.client.deserialize_executable(content, at.list_of(devices), chosen, *more)

    try:
        return _with_options(at, text, options, devices, (), run)
    except at.jax.JaxRuntimeError:
        return None


def _module_of(text: str) -> Any:
    """Return the HLO module of StableHLO text."""
    mlir = runtime().jax.mlir
    return mlir.mlir_module_to_xla_computation(text, False, False).get_hlo_module()


def hlo_of_text(text: str) -> str:
    """Return StableHLO text as HLO, before it is optimized."""
    return _module_of(text).to_string()


def cost_of_text(text: str) -> dict[str, float]:
    """Return XLA's estimate of the cost of StableHLO text before it is optimized."""
    at = runtime()
    return dict(at.jax.hlo_module_cost_analysis(at.client, _module_of(text)))


# Portable artifacts: StableHLO as bytes that other versions of the runtime read


def portable_artifact(text: str, version: str) -> bytes:
    """Return StableHLO text as a portable artifact of a version of the dialect, such as 1.13.7.

    Raises ``ValueError`` if the text has what that version cannot say.
    """
    try:
        return load_jaxlib()[1].mlir.serialize_portable_artifact(text, version)
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def module_of_artifact(content: bytes) -> tuple[Any, Any]:
    """Return jaxlib's bindings of MLIR, and the module that the bytes of an artifact hold.

    Bytes from elsewhere may end the process. Raises ``ValueError`` if they hold no module.
    """
    ir, context = mlir()
    try:
        with context, ir.Location.unknown():
            module = load_jaxlib()[1].mlir.deserialize_portable_artifact(content, context)
        return ir, module
    except (RuntimeError, ValueError) as error:
        raise ValueError(str(error)) from None


def with_fixed_shapes(text: str) -> tuple[Any, Any]:
    """Return a module, given as text, with all shapes fixed that follow from those of ``main``.

    What is returned is as in ``module_of_artifact``.

    Raises ``ValueError`` if they do not follow, or an assertion about them does not hold.
    """
    ir, context = mlir()
    try:
        with context, ir.Location.unknown():
            content = ir.Module.parse(text, context).operation
            refined = load_jaxlib()[1].mlir.refine_polymorphic_shapes(str(content).encode())
            return ir, ir.Module.parse(refined, context)
    except Exception as error:
        raise ValueError(str(error)) from None


def profiler() -> Any:
    """Return jaxlib's profiler, a module."""
    runtime()  # first, since the part of jaxlib that is loaded first decides what is logged
    return importlib.import_module("jaxlib._profiler")


def start_profile(name: str) -> Any:
    """Start profiling; return the session.

    Its ``stop_and_export(folder)`` ends it, and writes to ``plugins/profile/name``.
    """
    options = profiler().ProfileOptions()
    options.python_tracer_level = 0
    options.session_id = name
    return profiler().ProfilerSession(options)


def live_executables() -> list[Any]:
    """Return all compiled programs that exist, as the runtime has them."""
    return [loaded for at in in_use() for loaded in at.client.live_executables()]


# What YNNPACK computes wrongly, found in XLA's own text of the optimized program


_FUSED = re.compile(r'calls=%([\w.\-]+),.*"kind":"__ynn_fusion"')
_INSTRUCTION = re.compile(r"(?:ROOT )?%([\w.\-]+) = \S+ ([\w\-]+)\(([^()]*)\)")
_OPERAND = re.compile(r"%([\w.\-]+)")
_MIXES = {"reduce", "reduce-window", "dot", "convolution"}
_MOVES = {"bitcast", "reshape", "copy", "transpose"}


def misreads(hlo: str) -> bool:
    """Return whether optimized HLO has YNNPACK compute what it was seen to compute wrongly.

    Its kernels read other elements than those of a broadcast (jaxlib 0.10.2), and 98 % of a
    result's elements were wrong:

    - where a product has the broadcast on the right. On the left, or as a factor or term of an
      operand, it is read rightly. What is computed from broadcasts alone counts as one, since XLA
      moves broadcasts behind element-wise work.
    - where it is the first operand of element-wise work beside a sum that is repeated along the
      axis of its terms, all in one kernel, as in ``x * sum(x * y, -1, keepdims=True)`` of one ``x``
      for all members. As a second operand it is read rightly.
    """
    calls = {*_FUSED.findall(hlo)}
    return bool(calls) and any(
        [
            _multiplies_by_broadcast(lines) or _repeats_sum_beside_broadcast(lines)
            for lines in _computations(hlo, calls)
        ]
    )


def _computations(hlo: str, names: set[str]) -> Iterator[list[str]]:
    """Yield the instructions of each of these computations, as lines."""
    lines: list[str] | None = None
    for line in hlo.split("\n"):
        if line.startswith("%"):
            lines = [] if line[1:].partition(" ")[0] in names else None
        elif line.startswith("}"):
            if lines is not None:
                yield lines
            lines = None
        elif lines is not None:
            lines.append(line)


def _instructions(lines: Sequence[str]) -> Iterator[tuple[str, str, list[str], str]]:
    """Yield name, operation, operands and line of each instruction."""
    for line in lines:
        match = _INSTRUCTION.match(line.strip())
        if match is not None:
            name, operation, written = match.groups()
            yield name, operation, _OPERAND.findall(written), line


def _multiplies_by_broadcast(lines: Sequence[str]) -> bool:
    """Say whether a product in a computation has a broadcast on the right."""
    repeated: set[str] = set()
    for name, operation, operands, line in _instructions(lines):
        if operation == "dot" and operands[1] in repeated:
            return True
        if (
            operation == "broadcast"
            or (operation == "constant" and "[]" not in line.partition("constant(")[0])
            or (operands and operation != "dot" and repeated.issuperset(operands))
        ):
            repeated.add(name)
    return False


def _repeats_sum_beside_broadcast(lines: Sequence[str]) -> bool:
    """Say whether a sum is repeated where a broadcast is the first operand of work."""
    sums: set[str] = set()
    repeated: set[str] = set()
    is_first = sum_is_repeated = False
    for name, operation, operands, line in _instructions(lines):
        of_sum = not sums.isdisjoint(operands)
        if operation == "broadcast" and "dimensions={}" not in line:
            sum_is_repeated |= of_sum
            if not of_sum:
                repeated.add(name)
        elif operation in _MOVES:
            if not repeated.isdisjoint(operands):
                repeated.add(name)
        elif operands and operation not in _MIXES:
            is_first |= operands[0] in repeated
        if of_sum or operation in _MIXES:
            sums.add(name)
    return is_first and sum_is_repeated
