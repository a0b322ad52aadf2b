"""What storms over kernels share: the loop over drawn cases, and the command.

Each level of vectors that this processor has runs in a process of its own, with one thread and with
two, whose bits must be equal. ``--minutes`` and ``--cases`` say when to end, ``--seed`` which comes
first. The exit status is 1 after any disagreement, each printed with its seed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import stretto as st
from stretto._engine.kernels import LEVEL, WITHOUT, kernels

__all__ = ["Storm", "check_by", "find_wrong_numbers", "main"]


_QUICKLY = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
"""XLA's own code is not what is tested, and takes most of the time to compile."""


class Storm(NamedTuple):
    """A storm over kernels."""

    module: str
    things: str
    check: Callable[[int], tuple[str, str, Sequence[np.ndarray]]]
    """Runs the case of a seed: what is wrong, or nothing; the case in words; its results."""


def check_by(
    draw_case: Callable[[int], Any],
    operands: Callable[[Any], Any],
    results: Callable[[Any, Any], list[np.ndarray]],
    disagreement: Callable[[Any, Sequence[np.ndarray], Any], str],
) -> Callable[[int], tuple[str, str, Sequence[np.ndarray]]]:
    """Return what runs the program of a seed, compiled however small it is, and compares it."""

    def check(seed: int) -> tuple[str, str, Sequence[np.ndarray]]:
        case = draw_case(seed)
        arrays = operands(case)
        with st.config(interpret_small=False):
            got = results(case, arrays)
            return disagreement(case, got, arrays), case.words, got

    return check


def find_wrong_numbers(
    disagreement: Callable[[list[np.ndarray]], str],
    got: Sequence[np.ndarray],
    names: Mapping[int, str],
    much: float,
) -> None:
    """Assert that a storm finds numbers that are off by so many times the largest, and NaN.

    The results, by place, are called by these names.
    """
    assert disagreement([*got]) == ""
    for k, name in names.items():
        wrong = [np.array(a) for a in got]
        wrong[k].flat[-1] += 1 + much * abs(wrong[k]).max()
        assert disagreement(wrong).startswith(name)
        wrong[k].flat[-1] = np.nan
        assert "not finite" in disagreement(wrong)


def main(storm: Storm, arguments: Sequence[str] | None = None) -> int:
    """Run each level of vectors, with two threads and with one."""
    parser = argparse.ArgumentParser(prog=storm.module.rpartition(".")[2])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--cases", type=int, default=None, help="end after so many")
    parser.add_argument("--here", action="store_true", help="run in this process, at one level")
    given = parser.parse_args(arguments)
    if WITHOUT:
        print(f"{parser.prog}: {WITHOUT}", file=sys.stderr)
        return 1
    if given.here:
        return int(_run(storm, given.seed, given.minutes, given.cases) > 0)
    return int(sum([_level(storm, level, given) for level in kernels.levels()]) > 0)


def _level(storm: Storm, level: str, given: argparse.Namespace) -> bool:
    """Run a level; say whether anything was wrong."""
    failed, digests, count = False, [], given.cases
    for threads in ("2", "1"):
        environment = {**os.environ, "STRETTO_KERNELS_LEVEL": level, "NPROC": threads}
        environment.setdefault("XLA_FLAGS", _QUICKLY)
        # The second time as many as the first.
        minutes = given.minutes / 4 / len(kernels.levels()) * (2 if threads == "2" else 40)
        command = [sys.executable, "-m", storm.module, "--here", "--seed", str(given.seed)]
        command += ["--minutes", str(minutes)]
        command += [] if count is None else ["--cases", str(count)]
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=False
        )
        print(done.stdout, end="", flush=True)
        last = done.stdout.strip().rpartition("\n")[2].split()
        failed |= bool(done.returncode) or last[:1] != ["bits"]
        if last[:1] == ["bits"]:
            count = int(last[1])
            digests.append(last[2])
    if len({*digests}) != 1:
        failed = True
        print(f"{level}: the bits differ between one thread and two")
    return failed


def _run(storm: Storm, seed: int, minutes: float, cases: int | None) -> int:
    """Print each disagreement, a summary, and a digest of all bits; return how many there were."""
    start, count, wrong = time.monotonic(), 0, 0
    bits = hashlib.sha256()
    while time.monotonic() - start < 60 * minutes and count != cases:
        with st.enable_x64(), st.config(disk_cache=False):
            said, words, got = storm.check(seed + count)
        for array in got:
            # The bits of NaN are not ours to decide.
            bits.update(np.where(np.isnan(array), 0, array).tobytes())
        if said:
            wrong += 1
            print(f"{LEVEL}: {seed + count}: {said}\n    {words}", flush=True)
        count += 1
        if not count % 100:
            st.clear_caches()
    took = time.monotonic() - start
    print(f"{LEVEL}: {count} {storm.things}, {wrong} disagreements, {took:.0f} s", flush=True)
    print(f"bits {count} {bits.hexdigest()}", flush=True)
    return wrong
