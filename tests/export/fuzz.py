"""Damage files of JAX's, and read and call what is left: none may end this process.

``python -m tests.export.fuzz 100`` tries so many versions of each of some files, in minutes.
"""

import random
import sys
from collections import Counter

import numpy as np

import stretto as st
from stretto.files.names import Damaged
from tests.export.exchange import FILES

NAMES = ("sine_and_sum", "scanned", "two_platforms", "linear_algebra", "symbolic")


def damaged(rng: random.Random, content: bytes) -> bytes:
    """The bytes with some changed, in the module or anywhere; or without their end."""
    out, start = bytearray(content), content.find(b"ML\xefR")
    kind = rng.randrange(4)
    if kind == 0:
        return bytes(out[: rng.randrange(len(out))])
    first = start + 20 if kind > 1 else 0
    for _ in range(2):
        at = rng.randrange(first, len(out) - 4)
        if rng.random() < 0.2:
            out[at : at + 4] = rng.choice([b"\xff" * 4, b"\0" * 4, b"\xff\xff\xff\x7f"])
        else:
            out[at] = rng.randrange(256)
    return bytes(out)


def outcome(content: bytes) -> str:
    """What became of a file."""
    try:
        fun = st.export.load(content)
    except Damaged as error:
        return "ended the child" if "ended the process" in str(error) else "refused"
    if "stablehlo.while" in fun._module().text:
        return "read, and not called: its loop may have no end now"
    size = lambda n: n if isinstance(n, int) else 3
    arguments = st.tree.map(lambda s: np.ones([*map(size, s.shape)], s.dtype), fun.in_types)
    try:
        fun(*arguments[0], **arguments[1])
    except (TypeError, ValueError, RuntimeError) as error:
        return f"read, and refused when called: {type(error).__name__}"
    return "called"


def main() -> None:
    """Print the counts for each file."""
    most = int(sys.argv[1]) if sys.argv[1:] else 20
    for name in NAMES:
        rng, content = random.Random(name), (FILES / f"{name}.jax").read_bytes()
        counts = Counter([outcome(damaged(rng, content)) for _ in range(most)])
        print(name, dict(counts), flush=True)


if __name__ == "__main__":
    main()
