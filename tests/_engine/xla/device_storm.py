"""Steps over devices without a wait, and placements that make no sense: ``make device-storm``.

Some minutes of two processors, so it is not among the tests. Every run is a process of its own with
eight virtual devices, which takes 10,000 steps of data-parallel training, each launched before the
last one is done; and then puts arrays of random shapes by random specifications, of which each must
have its values, or be a Python error. Exit status 1 where a run is stuck, dies, or gives something
else.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

__all__ = ["main"]

WORK = """
import sys
import numpy as np
import stretto as st, stretto.numpy as snp
from stretto import P
from stretto.sharding import NamedSharding
steps, placements, seed = map(int, sys.argv[1:])
mesh = st.make_mesh((8,), ("data",))
rng = np.random.default_rng(seed)
x, y = rng.standard_normal((64, 4)).astype("f4"), rng.standard_normal(64).astype("f4")

def loss(w, x, y):
    return ((x @ w - y) ** 2).mean()

def train(x, y):
    step = st.jit(lambda w, x, y: w - 1e-3 * st.grad(loss)(w, x, y))
    w = st.device_put(np.zeros(4, "f4"), NamedSharding(mesh, P()))
    for _ in range(steps):
        w = step(w, x, y)
    return w

split = st.device_put((x, y), NamedSharding(mesh, P("data")))
gram, moment = 2 * x.T.astype(float) @ x / 64, 2 * x.T.astype(float) @ y / 64
w = np.zeros(4)
for _ in range(steps):
    w = w - 1e-3 * (gram @ w - moment)
np.testing.assert_allclose(train(*split), w, rtol=1e-3, atol=1e-5)

square = st.make_mesh((2, 4), ("a", "b"))
names, good, bad = [None, "a", "b", ("a", "b"), ("b", "a"), "c"], 0, 0
for _ in range(placements):
    shape = tuple(rng.integers(0, 9, rng.integers(0, 4)))
    value = rng.standard_normal(shape).astype("f4")
    parts = [names[i] for i in rng.integers(0, 6, rng.integers(0, 4))]
    try:
        put = st.device_put(value, NamedSharding(square, P(*parts)))
        sum_of = st.jit(lambda v: (v * 2).sum())(put)
        moved = st.device_put(put, NamedSharding(square, P()))
    except (ValueError, TypeError):
        bad += 1
        continue
    good += 1
    np.testing.assert_array_equal(put, value)
    np.testing.assert_array_equal(moved, value)
    np.testing.assert_allclose(sum_of, 2 * value.sum(dtype=float), rtol=1e-4, atol=1e-4)
print(good, "placed and", bad, "refused")
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="make device-storm", description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--placements", type=int, default=50, help="in each run")
    parser.add_argument("--patience", type=float, default=600, help="seconds that a run may take")
    options = parser.parse_args(arguments)
    environment = {**os.environ, "STRETTO_NUM_CPU_DEVICES": "8"}
    failed = 0
    for seed in range(options.runs):
        start = time.monotonic()
        command = [sys.executable, "-c", WORK]
        command += map(str, (options.steps, options.placements, seed))
        try:
            done = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=options.patience,
            )
            said, status = (done.stdout + done.stderr).strip(), done.returncode
        except subprocess.TimeoutExpired:
            said, status = "stuck", 1
        failed += status != 0
        print(f"run {seed}: {said} in {time.monotonic() - start:.0f} s", flush=True)
    print(f"{failed} of {options.runs} runs failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
