"""The rows in Stretto, as a process with virtual devices."""

from __future__ import annotations

import numpy as np

import stretto as st
import stretto.numpy as snp
from benchmarks.devices import cases as rows
from benchmarks.devices.table import COUNTS
from benchmarks.worker import Registry, serve

st.config.num_cpu_devices = max(COUNTS)
cases = Registry()
rows.register(
    cases,
    st,
    snp,
    lambda n, name: st.sharding.Mesh(np.array(st.devices()[:n]), (name,)),
    st.shard_map,
    st.tree.leaves,
)


if __name__ == "__main__":
    serve("stretto", ["stretto", "jaxlib", "numpy"], "import stretto", cases)
