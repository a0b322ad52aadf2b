"""The networks in Stretto, as a process."""

from __future__ import annotations

import stretto as st
from benchmarks.networks import cases_stretto
from benchmarks.worker import Registry, serve

cases = Registry()
cases_stretto.register(cases)


if __name__ == "__main__":
    serve(
        "stretto",
        ["stretto", "jaxlib", "numpy"],
        "import stretto, stretto.numpy",
        cases,
        config=repr(st.config),
    )
