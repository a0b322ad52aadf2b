"""A long run over random programs and chains: ``make sweep ARGS="--minutes 10 --seed 0"``.

Each chain runs with settings of its own, drawn like the rest (see ``settings``), or with those that
``--settings`` names. Prints what it covers, and each failure as a program that runs by itself. Exit
status 1 after any.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
import time
import warnings
from collections.abc import Sequence

import stretto as st
from tests.property.chains import Failure, draw_chain, run_chain
from tests.property.settings import SETTINGS, draw_settings
from tests.property.shrinking import shrink
from tests.property.writer import draw_program

__all__ = ["main", "sweep"]

MOST_SHRUNK = 20

ABOUT = {"": 8, "long loops": 2, "large arrays": 1}
"""What programs are about, and how often."""


def sweep(
    seed: int, minutes: float, programs: int | None, size: int, chains: int, settings: str = ""
) -> int:
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
        about = random.Random(f"about {at}").choices([*ABOUT], [*ABOUT.values()])[0]
        program, way = draw_program(at, size, about)
        for k in range(chains):
            steps = draw_chain(chains * at + k, way, 2 if about else 4)
            chosen = SETTINGS[settings] if settings else draw_settings(chains * at + k)
            counts["chains"] += 1
            try:
                outcome = run_chain(program, way, steps, at, chosen)
            except Failure as failure:
                counts["failures"] += 1
                if counts["failures"] <= MOST_SHRUNK:
                    failure = shrink(failure, program, way, steps, at, chosen)
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
    parser.add_argument("--settings", choices=SETTINGS, help="of all chains; else at random")
    args = parser.parse_args(arguments)
    warnings.simplefilter("error")
    with st.enable_x64():
        return min(sweep(**vars(args)), 1)


if __name__ == "__main__":
    sys.exit(main())
