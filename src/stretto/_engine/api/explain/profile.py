"""The time that a function takes, by the user's line: ``profile``.

The function is compiled and run; times are those of the compiled program's kernels, by XLA's
profiler, and operations are counted in the program.
"""

from __future__ import annotations

import dataclasses
import importlib
import time
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

import numpy as np

from stretto._engine.api.explain.explain import Memory, memory_of, near, operations
from stretto._engine.api.jit.entry import Entry
from stretto._engine.api.jit.jit import Jitted, jit
from stretto._engine.api.sharding.placement import block_until_ready
from stretto._engine.core.boundary import boundary
from stretto._engine.core.cards import size
from stretto._engine.core.config import config
from stretto._engine.core.program import Equation, Program
from stretto._engine.ops.broadcast import ReduceSum
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.reducing.reduce import Reduction
from stretto._engine.xla.kernels import Kernel, kernels_of, limits_of, memory_over_time

_ROUNDS = 5
_MOST = 20
"""The most lines that are printed."""

_UNKNOWN = "of no line"


@dataclasses.dataclass(frozen=True)
class LineProfile:
    """The time that a call of the compiled program spends on one line of the user's code."""

    line: str
    """The file, as seen from the current folder, and the line."""
    seconds: float
    """The time of its kernels, each until the next begins; what several lines are fused into counts
    for one of them."""
    kernels: int
    """The number of kernels run; 0 where all of it is fused into those of other lines."""
    flops: float
    """Operations by its own formula: two for each multiply-add of a product, one for each element
    of what is element-wise, or added up. Those of other operations are not counted."""
    bytes: int
    """The bytes that its kernels read and wrote."""
    share: float | None
    """The part of the machine's limit that it reaches, the larger of: operations a second, against
    those of a large product; bytes a second, as against those of a large sum. None where no kernel
    is of the line.
    What lies in caches can be read faster than that."""


@dataclasses.dataclass(frozen=True)
class Profile:
    """The time that a function takes; it prints itself as a table."""

    function: str
    seconds: float
    """The median time of a call, without the profiler."""
    trace_seconds: float
    """The seconds that tracing, lowering and compiling it take anew."""
    lower_seconds: float
    compile_seconds: float
    lines: tuple[LineProfile, ...]
    """The lines, those first that take longest."""
    memory: Memory
    """The memory that a call takes at its peak, as XLA states it."""
    timeline: tuple[tuple[float, int, str], ...]
    """The bytes alive after each kernel of a call: seconds, bytes, and the line. Results that XLA
    lets share memory count twice."""

    def __str__(self) -> str:
        inside = sum(one.seconds for one in self.lines)
        head = (
            f"{self.function}: {_time(self.seconds)} a call, {_time(inside)} of it in kernels; "
            f"compiled in {_time(self.compile_seconds)}, traced in {_time(self.trace_seconds)}, "
            f"lowered in {_time(self.lower_seconds)}"
        )
        rows = [("time", "share", "kernels", "operations", "read, written", "of limit", "line")]
        for one in self.lines[:_MOST]:
            limit = "" if one.share is None else f"{one.share:.0%}"
            rows.append(
                (
                    _time(one.seconds) if one.kernels else "fused",
                    f"{one.seconds / inside:.0%}" if inside else "",
                    str(one.kernels),
                    _count(one.flops),
                    size(one.bytes),
                    limit,
                    one.line,
                )
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([*[x.rjust(w) for x, w in zip(row[:-1], widths, strict=False)], row[-1]])
            for row in rows
        ]
        if len(self.lines) > _MOST:
            lines.append(f"and {len(self.lines) - _MOST} more lines")
        memory = self.memory
        peak = f"memory: {size(memory.peak)} at most, {size(memory.temporaries)} of temporaries"
        return "\n".join([head, *lines, peak])

    __repr__ = __str__

    def plot(self, path: str | None = None) -> Any:
        """Draw the time by line, and the memory over time; needs matplotlib.

        Args:
            path: where to write the picture; by default it is only returned.

        Returns:
            The figure of matplotlib.

        Raises:
            ImportError: matplotlib is not installed.
        """
        try:
            figures: Any = importlib.import_module("matplotlib.figure")
        except ImportError as error:
            raise ImportError(
                "Profile.plot draws with matplotlib, which is not installed: pip install matplotlib"
            ) from error
        figure = figures.Figure(figsize=(9, 6), layout="constrained")
        upper, lower = figure.subplots(2)
        top = self.lines[:10][::-1]
        upper.barh([one.line for one in top], [one.seconds * 1e3 for one in top])
        upper.set_xlabel("ms in kernels")
        upper.set_title(f"{self.function}: {_time(self.seconds)} a call")
        times = [0.0, *[t * 1e3 for t, _, _ in self.timeline]]
        alive = [self.memory.arguments / 1e6, *[n / 1e6 for _, n, _ in self.timeline]]
        lower.step(times, alive, where="post")
        lower.set_xlabel("ms")
        lower.set_ylabel("MB in use")
        if path is not None:
            figure.savefig(path)
        return figure


def profile(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Profile:
    """Compile a function, run it some times, and say where its time goes, by your line.

    The time of a call is measured without a profiler; then the times of kernels with XLA's, in the
    median call of a few. The compiler fuses operations of several lines into one kernel, whose time
    is that of the line of its last operation.

    Args:
        fun: a function of trees of arrays, jitted or not; it is run about a dozen times.
        *args: its arguments. Those that are donated are copied.
        **kwargs: the same, by name.

    Returns:
        The profile, which prints itself as a table, and draws itself: ``.plot()``.

    Raises:
        RuntimeError: another profile is being taken.
        TypeError: ``fun`` is not a function.

    >>> import stretto as st, stretto.numpy as snp
    >>> def layer(w, x):
    ...     y = x @ w
    ...     return snp.tanh(y).sum()
    >>> print(st.profiler.profile(layer, snp.ones((256, 256)), snp.ones((64, 256))))
    layer: ... a call, ... of it in kernels; compiled in ..., traced in ..., lowered in ...
    ...
    memory: ... at most, ... of temporaries
    """
    with boundary:
        if isinstance(fun, MethodType) and isinstance(fun.__func__, Jitted):
            fun, args = fun.__func__, (fun.__self__, *args)
        if not callable(fun):
            raise TypeError(f"profile: expected a function, got {type(fun).__name__}")
        jitted = fun if isinstance(fun, Jitted) else jit(fun)
        # Anew, to see how long that takes; nothing is donated, so that it can be run again.
        nothing: Any = type(jitted._donated)((), ())
        how = jitted._static, nothing, jitted._keep_unused, jitted._inline, jitted._options
        fresh = Jitted(jitted._fun, *how, jitted._shardings)
        return _profiled(fresh, args, kwargs)


def _profiled(fun: Jitted[..., Any], args: Any, kwargs: Any) -> Profile:
    with config(disk_cache=False, interpret_small=False, tiers=False):
        start = time.perf_counter()
        traced = fun.trace(*args, **kwargs)
        at_traced = time.perf_counter()
        lowered = traced.lower()
        at_lowered = time.perf_counter()
        executable = lowered.compile()._executable
        at_compiled = time.perf_counter()

        def run() -> None:
            block_until_ready(fun(*args, **kwargs))

        run()
        seconds = float(np.median([_seconds(run) for _ in range(_ROUNDS)]))
        calls = kernels_of(executable, run, _ROUNDS)
    calls.sort(key=lambda kernels: sum(k.seconds for k in kernels if not k.contains))
    middle = calls[len(calls) // 2]
    entry: Entry = traced._entry
    return Profile(
        traced.fun_name,
        seconds,
        at_traced - start,
        at_lowered - at_traced,
        at_compiled - at_lowered,
        _lines(entry.slim(), middle),
        memory_of(executable),
        tuple([(t, n, _line(f, k)) for t, n, f, k in memory_over_time(executable, middle)]),
    )


def _seconds(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _lines(program: Program, kernels: Sequence[Kernel]) -> tuple[LineProfile, ...]:
    """Return what was spent, by line."""
    limits = limits_of()
    flops: dict[str, float] = {}
    for equation, count in operations(program, 1):
        position = equation.position
        line = _UNKNOWN if position is None else _line(position.file, position.line)
        flops[line] = flops.get(line, 0.0) + count * _flops(equation)
    by_line: dict[str, list[Kernel]] = {line: [] for line, n in flops.items() if n}
    for kernel in kernels:
        if not kernel.contains:
            by_line.setdefault(_line(kernel.file, kernel.line), []).append(kernel)
    found = []
    for line, own in by_line.items():
        seconds = sum(k.seconds for k in own)
        moved = sum(k.bytes for k in own)
        n = flops.get(line, 0.0)
        share = None
        if seconds:
            share = max(n / seconds / limits.flops, moved / seconds / limits.bytes)
        found.append(LineProfile(line, seconds, len(own), n, moved, share))
    return tuple(sorted(found, key=lambda one: -one.seconds))


def _flops(equation: Equation) -> float:
    """Return the operations on numbers that an equation stands for."""
    primitive: Any = equation.primitive
    types, outs = [a.type for a in equation.inputs], [v.type for v in equation.outputs]
    if isinstance(primitive, (DotGeneral, ConvGeneralDilated)):
        return 2.0 * primitive.work(types, outs)
    if isinstance(primitive, Elementwise):
        return float(outs[0].size)
    adds = isinstance(primitive, (Reduction, ReduceSum))
    return float(types[0].size) if adds else 0.0


def _line(file: str, line: int) -> str:
    return f"{near(file)}:{line}" if file else _UNKNOWN


def _time(seconds: float) -> str:
    """Return a time in words: ``3.4 ms``."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def _count(number: float) -> str:
    """Return a number in words: ``3.4 G``."""
    for unit, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= scale:
            return f"{number / scale:.3g} {unit}"
    return f"{number:.0f}"
