"""Fifty processes that compile one program at once, on nothing kept: ``make cache-storm``.

Two minutes of two processors, so it is not among the tests. Exit status 1 where results differ, a
process fails, or more is left than one file.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

from stretto._engine.xla import store

__all__ = ["main"]

WORK = """
import sys
import numpy as np
import stretto as st, stretto.numpy as snp
from stretto._engine.xla import pjrt
pjrt.runtime()
print("ready", flush=True)
sys.stdin.read(1)
def loss(w, x):
    return snp.sum(snp.linalg.cholesky(x @ x.T + 9 * snp.eye(8)) @ snp.tanh(w))
with st.config(log_compiles=True):
    out = st.jit(st.value_and_grad(loss))(snp.ones((8, 4)), snp.arange(64.0).reshape(8, 8) / 64)
print([np.asarray(x).tobytes().hex() for x in st.tree.leaves(out)])
"""


def main() -> int:
    """Run; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=50)
    count = parser.parse_args().processes
    with tempfile.TemporaryDirectory() as base:
        for name in ("cold", "warm"):
            start = time.perf_counter()
            environment = {**os.environ, "STRETTO_CACHE_DIR": base}
            pipe = subprocess.PIPE
            processes = [
                subprocess.Popen(
                    [sys.executable, "-c", WORK],
                    env=environment,
                    stdin=pipe,
                    stdout=pipe,
                    stderr=pipe,
                )
                for _ in range(count)
            ]
            for process in processes:  # all are to compile at the same time
                assert process.stdout is not None
                process.stdout.readline()
            for process in processes:
                assert process.stdin is not None
                process.stdin.write(b"x")
                process.stdin.flush()
            said = [process.communicate() for process in processes]
            failed = sum(process.returncode != 0 for process in processes)
            results = len({out for out, _ in said})
            loaded = sum(b"loaded from disk" in err for _, err in said)
            left = os.listdir(os.path.join(base, "programs"))
            kept = len(store.list_kept(os.path.join(base, "programs")))
            print(
                f"{name}: {count} processes, {failed} failed, {results} different results, "
                f"{loaded} loaded what another compiled, {kept} file of {len(left)} names, "
                f"{time.perf_counter() - start:.1f} s"
            )
            whole = all(not name.endswith(".beside") for name in left)
            if (
                failed
                or results != 1
                or kept != 1
                or not whole
                or (name == "warm") > (loaded == count)
            ):
                print(next((err.decode() for _, err in said if err), ""), file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
