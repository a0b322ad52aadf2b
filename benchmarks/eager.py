"""Operations outside of ``jit`` on arrays of ten to ten million elements, beside NumPy.

For each row, dtype and size four ways take turns, call by call: NumPy; Stretto with nothing
compiled (``eager_compiled`` off); one compiled program; and Stretto as it is. Each call of Stretto
gets arrays that no device has seen. Figures are the least times, by the clock and of all cores
together: a ratio is the lesser of both, and says how many times as long as NumPy it takes.

With ``--primitives`` it measures, for each element-wise primitive, what ``_engine/ops/thresholds``
holds: nanoseconds an element, and milliseconds to compile.

    python -m benchmarks.eager --only 'sum*,sort' --sizes 1e5,1e6
"""

from __future__ import annotations

import argparse
import gc
import inspect
import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import stretto as st
import stretto.numpy as snp
from benchmarks.eager_rows import DTYPES, ROWS, Row
from stretto._engine.core.config import config
from stretto._engine.core.primitive import PRIMITIVES
from stretto._engine.core.types import array_type, kind_of
from stretto._engine.eager.interpreter import quiet
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.special import bessel, error_functions, gamma, incomplete
from stretto._engine.xla.array import Array
from stretto._engine.xla.cache import run_primitive

__all__ = ["main", "measured"]

WAYS = ("numpy", "reference", "compiled", "ours")
LOADED = (bessel, error_functions, gamma, incomplete)
"""Modules of primitives that are otherwise loaded when first used."""

Times = tuple[float, float]
"""Least seconds of a call: by the clock, and of all cores."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command: 1 where a row raised an error, 0 whatever the ratios are."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.eager", description=__doc__)
    parser.add_argument("--only", default="*", help="names of rows, or patterns, with commas")
    parser.add_argument("--dtypes", default=",".join(DTYPES), help="dtypes, with commas")
    parser.add_argument("--sizes", default="1e1,1e2,1e3,1e4,1e5,1e6,1e7", help="with commas")
    parser.add_argument("--rounds", type=int, default=15, help="calls of each way, at least")
    parser.add_argument("--seconds", type=float, default=0.5, help="for a row and size, at most")
    parser.add_argument("--worst", type=int, default=30, help="rows of the table, the worst first")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    parser.add_argument("--primitives", action="store_true", help="the costs of primitives")
    options = parser.parse_args(arguments)
    options.sizes = [int(float(size)) for size in options.sizes.split(",")]
    warnings.simplefilter("ignore")
    with np.errstate(all="ignore"), config(recompilation_warning=0):
        entries = primitives(options) if options.primitives else functions(options)
    if options.json is not None:
        options.json.write_text(json.dumps(entries, indent=1) + "\n")
    failed = [entry for entry in entries if "error" in entry]
    for entry in failed:
        print(f"{entry['row']}, {entry['dtype']}, {entry['size']}: {entry['error']}")
    return 1 if failed else 0


@dataclass(frozen=True)
class Way:
    """A function, what makes its arguments, and the settings that it runs under."""

    function: Callable[..., Any]
    arguments: Callable[[], Sequence[Any]]
    settings: dict[str, Any] = field(default_factory=dict)

    def __call__(self) -> None:
        """Run once."""
        with config(**self.settings):
            self.function(*self.arguments())

    def timed(self, count: int) -> Times:
        """Seconds for each of this many calls, whose arguments are made beforehand."""
        calls, function = [self.arguments() for _ in range(count)], self.function
        with config(**self.settings):
            cores, start = time.process_time(), time.perf_counter()
            for arguments in calls:
                function(*arguments)
            wall = time.perf_counter() - start
            cores = time.process_time() - cores
        return wall / count, cores / count


# Functions


def functions(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure the rows, and show those that are slowest beside NumPy."""
    entries, dtypes = [], options.dtypes.split(",")
    for row in ROWS:
        if not any(fnmatchcase(row.name, pattern) for pattern in options.only.split(",")):
            continue
        for dtype in [d for d in row.dtypes if d in dtypes]:
            for size in [n for n in options.sizes if n <= row.most]:
                entries.append(_entry(row, dtype, size, options))
                if sys.stderr.isatty():
                    sys.stderr.write(f"\r{row.name} {dtype} {size}".ljust(60))
    done = [entry for entry in entries if "error" not in entry]
    table = Table("row", "dtype", "size", "NumPy (us)", *[f"{way} / NumPy" for way in WAYS[1:]])
    for e in sorted(done, key=lambda e: -e["ratios"]["ours"])[: options.worst]:
        ratios = [f"{e['ratios'][way]:.2f}" for way in WAYS[1:]]
        micro = f"{1e6 * e['seconds']['numpy'][0]:.1f}"
        table.add_row(e["row"], e["dtype"], f"{e['size']:.0e}", micro, *ratios)
    Console().print(table)
    over = [e for e in done if e["size"] >= 10**5 and e["ratios"]["ours"] > 1.1]
    large = [e for e in done if e["size"] >= 10**5]
    print(f"{len(over)} of {len(large)} with 1e5 elements or more take over 1.1 of NumPy's time")
    return entries


def _entry(row: Row, dtype: str, size: int, options: argparse.Namespace) -> dict[str, Any]:
    entry: dict[str, Any] = {"row": row.name, "dtype": dtype, "size": size}
    try:
        seconds = measured(row, dtype, size, options.rounds, options.seconds)
    except Exception as error:  # reported, and the others go on
        return {**entry, "error": f"{type(error).__name__}: {error}"}
    wall, cores = seconds["numpy"]
    ratios = {way: min(t / wall, c / max(cores, 1e-9)) for way, (t, c) in seconds.items()}
    return {**entry, "seconds": seconds, "ratios": ratios}


def measured(row: Row, dtype: str, size: int, rounds: int, limit: float) -> dict[str, Times]:
    """The least times of each way."""
    random = np.random.default_rng(0)
    hosts = [maker(random, size, DTYPES[dtype]) for maker in row.makers]
    program = st.jit(lambda *xs: row.function(snp, *xs))
    fresh = lambda: _fresh(hosts)
    eager = lambda *xs: _complete(row.function(snp, *xs))
    ways = {
        "numpy": Way(lambda *xs: row.function(np, *xs), lambda: hosts),
        "reference": Way(eager, fresh, {"eager_compiled": False}),
        "compiled": Way(lambda *xs: _complete(program(*xs)), fresh, {"interpret_small": False}),
        "ours": Way(eager, fresh),
    }
    try:
        ways["compiled"]()
    except (TypeError, ValueError):  # the shape of the result depends on values
        ways["compiled"] = ways["ours"]
    return _least(ways, rounds, limit)


def _fresh(hosts: Sequence[NDArray[Any]]) -> list[Array]:
    """Arrays as operations in NumPy leave them: no device has a copy."""
    return [Array(host, array_type(host.shape, host.dtype)) for host in hosts]


def _complete(result: Any) -> Any:
    if isinstance(result, (tuple, list)):
        for part in result:
            _complete(part)
    elif isinstance(result, Array):
        result.block_until_ready()
    return result


def _order(names: list[str], turn: int) -> list[str]:
    """Another order at each turn, since what ran before leaves its state in caches and memory."""
    at = turn // 2 % len(names)
    names = names[at:] + names[:at]
    return names[::-1] if turn % 2 else names


def _least(ways: dict[str, Way], rounds: int, limit: float) -> dict[str, Times]:
    """The least times of calls that take turns; several short calls are timed together."""
    counts = {}
    for name, way in ways.items():
        way()
        start = time.perf_counter()
        way()
        counts[name] = max(1, int(3e-5 / max(time.perf_counter() - start, 1e-9)))
    least: dict[str, Times] = dict.fromkeys(ways, (float("inf"), float("inf")))
    gc.disable()
    try:
        end, done = time.perf_counter() + limit, 0
        while done < 3 or (done < rounds and time.perf_counter() < end):
            for name in _order(list(ways), done):
                wall, cores = ways[name].timed(counts[name])
                least[name] = min(least[name][0], wall), min(least[name][1], cores)
            done += 1
    finally:
        gc.enable()
    return least


# Primitives


def primitives(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure element-wise primitives on 200,000 elements: what thresholds are made of."""
    size, entries = 200_000, []
    dtypes = {**DTYPES, "float64": np.dtype(float), "complex128": np.dtype(complex)}
    table = Table("primitive", "dtype", "NumPy (ns)", "compiled (ns)", "compile (ms)", "ratio")
    for cls in PRIMITIVES:
        chosen = any(fnmatchcase(cls.name, pattern) for pattern in options.only.split(","))
        if not (chosen and issubclass(cls, Elementwise)):
            continue
        for name, dtype in dtypes.items():
            if kind_of(dtype) not in cls.accepts or name not in options.dtypes.split(","):
                continue
            try:
                numpy, compiled, compiling = _cost(cls(), dtype, size, options)
            except TypeError:  # it has parameters, or does not take the dtype after all
                continue
            costs = {"numpy": numpy, "compiled": compiled, "compiling": compiling}
            entries.append({"row": cls.name, "dtype": name, "size": size, **costs})
            figures = [f"{numpy:.2f}", f"{compiled:.2f}", f"{compiling:.0f}"]
            table.add_row(cls.name, name, *figures, f"{numpy / compiled:.2f}")
    Console().print(table)
    return entries


def _cost(
    primitive: Any, dtype: np.dtype[Any], size: int, options: argparse.Namespace
) -> tuple[float, float, float]:
    """Nanoseconds an element in NumPy and compiled, of all cores, and milliseconds to compile."""
    random, count = np.random.default_rng(0), _arity(primitive)
    hosts = [
        (random.random(size) * 0.9 + 0.05).astype(dtype)
        if dtype.kind not in "iub"
        else random.integers(0, 2, size).astype(dtype)
        for _ in range(count)
    ]
    types = tuple(array_type(host.shape, host.dtype) for host in hosts)
    outs = primitive.out_types(types)
    run = Way(
        lambda *xs: _complete(run_primitive(primitive, types, outs, xs)), lambda: _fresh(hosts)
    )
    start = time.perf_counter()
    with config(disk_cache=False):
        run()
    first = time.perf_counter() - start
    plain = Way(lambda *xs: quiet.run(primitive.reference, *xs), lambda: hosts)
    times = _least({"numpy": plain, "compiled": run}, options.rounds, options.seconds)
    numpy, compiled = (1e9 * max(times[way]) / size for way in ("numpy", "compiled"))
    return numpy, compiled, 1e3 * (first - max(times["compiled"]))


def _arity(primitive: Any) -> int:
    """How many operands it takes."""
    if hasattr(primitive, "formula"):
        return len(inspect.signature(primitive.formula).parameters)
    reference = primitive.reference
    return (
        reference.nin
        if isinstance(reference, np.ufunc)
        else len(inspect.signature(reference).parameters)
    )


if __name__ == "__main__":
    sys.exit(main())
