"""Kill runs at random points, and go on, until so many are killed: the bytes are those of one run.

``python -m tests.merge.storm --kills 200`` takes some ten minutes; ``make merge-storm`` runs it. A
run is killed by SIGKILL after a random time, and the next goes on where it was, with another amount
of memory, until one comes to its end.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from tests.merge import models

CHILD = """
import json, os, sys
import stretto as st
from stretto.merge import running

running._BETWEEN = int(sys.argv[5])
print("ready", flush=True)
report = st.merge.run(json.loads(sys.argv[1]), sys.argv[2], memory=int(sys.argv[3]),
                      shard_size=int(sys.argv[4]) or None, verify=True)
print(report.resumed, flush=True)
"""


def written(folder: Path) -> dict[str, dict]:
    """Write models, and return recipes, by their names."""
    shapes = {
        f"model.layers.{i}.{n}.weight": s
        for i in range(12)
        for n, s in {"norm": (64,), "up": (300, 257), "down": (257, 300), "odd": (4097,)}.items()
    }
    rng = np.random.default_rng(0)
    tensors = {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    tensors["model.steps"] = np.arange(9)
    paths = {}
    for name in ("base", "a", "b"):
        paths[name] = models.as_folder(folder / name, tensors, shards=3)
        tensors = {
            n: x + 0.1 * rng.standard_normal(x.shape).astype(x.dtype) if x.dtype.kind == "f" else x
            for n, x in tensors.items()
        }
    tuned = [{"path": paths[n], "weight": 0.6} for n in "ab"]
    sparse = [model | {"density": 0.4} for model in tuned]
    return {
        "linear": {"method": "linear", "models": tuned},
        "sharded": {"method": "linear", "models": tuned, "out_dtype": "bfloat16"},
        "ties": {"method": "ties", "base": paths["base"], "models": sparse},
        "dare_ties": {"method": "dare_ties", "base": paths["base"], "models": sparse, "seed": 3},
        "karcher": {"method": "karcher", "models": [paths["a"], paths["b"]]},
    }


def digests(out: Path) -> dict[str, str]:
    """The checksum of each file."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(out.iterdir())}


def begun(recipe: dict, out: Path, rng: random.Random, shard_size: int) -> subprocess.Popen:
    """A run in a process of its own, that has everything it needs but the models."""
    memory = rng.choice([1, 1 << 20, 1 << 28])
    between = rng.choice([1, 1 << 16, 1 << 20])
    given = [json.dumps(recipe), str(out), str(memory), str(shard_size), str(between)]
    process = subprocess.Popen([sys.executable, "-c", CHILD, *given], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def ended(process: subprocess.Popen) -> int:
    """Wait for the end of a run, and return how many bytes were there before."""
    words, _ = process.communicate()
    assert process.returncode == 0, process.returncode
    return int(words)


def main(arguments: list[str] | None = None) -> int:
    """Run it; 0 if all results are the same."""
    parser = argparse.ArgumentParser(prog="python -m tests.merge.storm", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rng, counts, failed = random.Random(options.seed), Counter(), 0
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top)
        recipes = written(folder)
        whole, times = {}, {}
        for name, recipe in recipes.items():
            process = begun(recipe, folder / name, rng, 1 << 20 if name == "sharded" else 0)
            start = time.monotonic()
            ended(process)
            times[name] = time.monotonic() - start
            whole[name] = digests(folder / name)
        while counts["killed"] < options.kills:
            name = rng.choice(list(recipes))
            out = folder / f"out-{counts['whole']}"
            shard_size = 1 << 20 if name == "sharded" else 0
            while True:
                process = begun(recipes[name], out, rng, shard_size)
                try:
                    process.wait(rng.uniform(0, times[name]))
                except subprocess.TimeoutExpired:
                    os.kill(process.pid, signal.SIGKILL)
                if process.wait() == -signal.SIGKILL:
                    process.communicate()
                    if out.exists():
                        counts["killed after the rename"] += 1
                        break
                    counts["killed"] += 1
                    continue
                counts["resumed"] += ended(process) > 0
                break
            counts["whole"] += 1
            if digests(out) != whole[name]:
                failed += 1
                print(f"{name}: {out} has other bytes after kills, seed {options.seed}")
            if counts["whole"] % 10 == 0:
                print(dict(counts), flush=True)
    print(f"{dict(counts)}, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
