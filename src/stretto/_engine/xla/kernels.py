"""Measure what a compiled program did when, and how long it takes.

Its kernels are read from XLA's profiler, each with the user's line. Times are those of runs on
random numbers; ``wiring`` gives them to ``passes/formulations/measured``.
"""

from __future__ import annotations

import functools
import gzip
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.program import Program
from stretto._engine.core.recorder import record
from stretto._engine.core.types import ArrayType, array_type, is_inexact
from stretto._engine.ops.arithmetic import ADD
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.xla import pjrt
from stretto._engine.xla.array import Array
from stretto._engine.xla.cache import executable
from stretto._engine.xla.instructions import Instruction, instructions_of, size_of
from stretto._engine.xla.pjrt import Executable

_CONTAINERS = ("call", "conditional", "while")
"""Instructions that take the time of others."""

_ALIASES = ("bitcast", "get-tuple-element", "opt-barrier", "tuple", "while")
"""Instructions whose results lie in the memory of their operands."""

_CALL = "stretto profile: a call"
_ROUNDS_OF_LIMITS = 12
_FORMAT = "*.trace.json.gz"


class Kernel(NamedTuple):
    """One run of one instruction."""

    name: str
    """XLA's name for the instruction."""
    file: str
    """The user's source file; empty if it is not known."""
    line: int
    start: float
    """The seconds from the start of the call on."""
    seconds: float
    """The seconds until the next began."""
    bytes: int
    """The size of its operands and results."""
    contains: bool
    """Says whether its time is that of other kernels, as a loop's is."""
    number: int
    """The instruction's."""


class Limits(NamedTuple):
    """Hold what the machine does at best, measured here."""

    flops: float
    """Operations on float32 a second, in a large matrix product."""
    bytes: float
    """Bytes read and written a second, in a sum of large arrays."""


def kernels_of(
    executable: Executable, run: Callable[[], Any], rounds: int = 1
) -> list[list[Kernel]]:
    """Return the kernels of each of so many calls of ``run``, in order of time.

    ``run`` must wait for the results. A kernel that other threads work on is entered in the
    profile for as long as it takes to hand out the work alone; so each lasts until the next begins,
    and the last until the results are there.

    Raises ``RuntimeError`` while another profile is being taken.
    """
    with tempfile.TemporaryDirectory() as folder:
        session = pjrt.start_profile("profile")
        try:
            for _ in range(rounds):
                with pjrt.profiler().TraceMe(_CALL):
                    run()
        finally:
            session.stop_and_export(folder)
        events = []
        for path in Path(folder).rglob(_FORMAT):
            with gzip.open(path, "rt", encoding="utf-8") as file:
                events += json.load(file)["traceEvents"]
    modules = {m.name for m in executable.loaded.hlo_modules()}
    by_number = {i.number: i for i in instructions_of(executable)}
    by_name = {i.name: i for i in by_number.values()}
    found = []
    for event in events:
        about = event.get("args", {})
        instruction = by_name.get(about.get("hlo_op", ""))
        if instruction is not None and about.get("hlo_module") in modules:
            found.append(_kernel(instruction, by_number, event))
    found.sort(key=lambda k: (k.start, not k.contains))
    calls = []
    for event in events:
        if event.get("name") == _CALL:
            start = event["ts"] * 1e-6
            end = start + event["dur"] * 1e-6
            calls.append(_lasting([k for k in found if start <= k.start <= end], start, end))
    return calls


def _lasting(kernels: list[Kernel], start: float, end: float) -> list[Kernel]:
    """Return the kernels of one call, each until the next begins."""
    starts = [k.start for k in kernels if not k.contains]
    lasting, done = [], 0
    for kernel in kernels:
        seconds = kernel.seconds
        if not kernel.contains:
            done += 1
            seconds = (starts[done] if done < len(starts) else end) - kernel.start
        lasting.append(kernel._replace(start=kernel.start - start, seconds=seconds))
    return lasting


def _kernel(instruction: Instruction, by_number: dict[int, Instruction], event: Any) -> Kernel:
    result = size_of(instruction.shape)
    operands = [size_of(by_number[n].shape) for n in instruction.operands if n in by_number]
    if not instruction.is_main:  # a step of a loop reads a slice of what is stacked
        operands = [min(n, result) for n in operands]
    return Kernel(
        instruction.name,
        instruction.file,
        instruction.line,
        event["ts"] * 1e-6,
        event.get("dur", 0.0) * 1e-6,
        result + sum(operands),
        instruction.opcode in _CONTAINERS and not instruction.is_loop,
        instruction.number,
    )


def memory_over_time(
    executable: Executable, kernels: list[Kernel]
) -> list[tuple[float, int, str, int]]:
    """Return what is alive after each kernel: seconds, bytes, and the user's file and line.

    A result lives from its kernel to the last that reads it, with those of the function's
    arguments; what kernels inside a loop make is counted as the loop's result. Where XLA lets two
    share memory they count twice.
    """
    every = {i.number: i for i in instructions_of(executable) if i.is_main}
    order = [k for k in kernels if k.number in every]
    holds: dict[int, set[int]] = {}

    def held(number: int) -> set[int]:
        """Return the instructions in whose memory a value lies."""
        if number not in holds:
            one = every[number]
            own = {number} if one.opcode not in _ALIASES else set()
            parts = [held(n) for n in one.operands if n in every] if not own else []
            holds[number] = own.union(*parts)
        return holds[number]

    last = {
        part: i
        for i, kernel in enumerate(order)
        for n in every[kernel.number].operands
        if n in every
        for part in held(n)
    }
    kept = {n for n, i in every.items() if i.opcode == "parameter"}
    alive = {n: size_of(every[n].shape) for n in kept}
    found = []
    for i, kernel in enumerate(order):
        for n in held(kernel.number):
            alive[n] = size_of(every[n].shape)
        end = kernel.start + kernel.seconds
        found.append((end, sum(alive.values()), kernel.file, kernel.line))
        for n in [n for n in alive if n not in kept and last.get(n, len(order)) <= i]:
            del alive[n]
    return found


@functools.cache
def limits_of() -> Limits:
    """Return what this machine does at best; measured once, in some tens of milliseconds."""
    size, length = 768, 1 << 22
    square, line = (array_type(s, np.dtype(np.float32)) for s in ((size, size), (length,)))
    product = DotGeneral(((1,), (0,)), ((), ()))
    multiply = record(lambda x, y: ([product(x, y)], None), (square, square))[0]
    add = record(lambda x, y: ([ADD(x, y)], None), (line, line))[0]
    fastest = [min(times_of(program, _ROUNDS_OF_LIMITS)) for program in (multiply, add)]
    return Limits(2 * size**3 / fastest[0], 3 * 4 * length / fastest[1])


# The time of a program


_ROUNDS = 5


def seconds_of(program: Program) -> float:
    """Return the median time of a run, in seconds, after one run to warm up."""
    return float(np.median(times_of(program, _ROUNDS)))


def times_of(program: Program, rounds: int) -> list[float]:
    """Return the times of so many runs, in seconds, after one run to warm up."""
    run = executable(program)
    random = np.random.default_rng(0)
    buffers = [Array(_numbers(t, random), t).to_buffer() for t in program.in_types]
    times = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        for out, type in zip(run(buffers), program.out_types, strict=True):
            Array(None, type, out).block_until_ready()
        times.append(time.perf_counter() - start)
    return times[1:]


def _numbers(type: ArrayType, random: np.random.Generator) -> np.ndarray:
    """Return small random numbers around zero; zeros for integers, which may be indices."""
    if not is_inexact(type.dtype):
        return np.zeros(type.shape, type.dtype)
    return (0.1 * random.standard_normal(type.shape)).astype(type.dtype)
