"""A long run over random programs and chains: ``make sweep ARGS="--minutes 10 --seed 0"``.

Prints what it covers, and each failure as a program that runs by itself. Exit status 1 after any.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
import warnings
from collections.abc import Sequence

import stretto as st
from tests.property.chains import Failure, draw_chain, run_chain
from tests.property.shrinking import shrink
from tests.property.writer import draw_program

__all__ = ["main", "sweep"]

MOST_SHRUNK = 20


def sweep(seed: int, minutes: float, programs: int | None, size: int, chains: int) -> int:
    """Run; print a summary; the number of failures."""
    counts: collections.Counter[str] = collections.Counter()
    discards: collections.Counter[str] = collections.Counter()
    start = said = time.monotonic()

    def summary() -> str:
        rate = counts["discards"] / max(counts["chains"], 1)
        return (
            f"{counts['programs']} programs, {counts['chains']} chains, {counts['links']} links, "
            f"{counts['discards']} discards ({rate:.1%}: {dict(discards)}), "
            f"{counts['failures']} failures, {time.monotonic() - start:.0f} s"
        )

    while time.monotonic() - start < 60 * minutes and counts["programs"] != programs:
        at = seed + counts["programs"]
        counts["programs"] += 1
        program, way = draw_program(at, size)
        for k in range(chains):
            steps = draw_chain(chains * at + k, way)
            counts["chains"] += 1
            try:
                outcome = run_chain(program, way, steps, at)
            except Failure as failure:
                counts["failures"] += 1
                if counts["failures"] <= MOST_SHRUNK:
                    failure = shrink(failure, program, way, steps, at)
                print(
                    f"program {at}, chain {[s.name for s in steps]}\n{failure.reproducer()}",
                    flush=True,
                )
                continue
            counts["links"] += outcome.links
            if outcome.discarded:
                counts["discards"] += 1
                discards[outcome.discarded] += 1
        if not counts["programs"] % 50:
            st.clear_caches()
        if time.monotonic() - said > 60:
            said = time.monotonic()
            print(f"at {at}: {summary()}", flush=True)
    print(summary(), flush=True)
    return counts["failures"]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--programs", type=int, help="stop after so many")
    parser.add_argument("--size", type=int, default=8, help="most operations of a program")
    parser.add_argument("--chains", type=int, default=2, help="chains for each program")
    args = parser.parse_args(arguments)
    warnings.simplefilter("error")
    with st.enable_x64():
        return min(sweep(args.seed, args.minutes, args.programs, args.size, args.chains), 1)


if __name__ == "__main__":
    sys.exit(main())
