"""Entries of `numpy/signals.py`; and why files and text have none."""

import numpy as np

from tests.functions.table import UNARY, call, entry, without_entry, x

for name in ("bartlett", "blackman", "hamming", "hanning"):
    entry(f"numpy.{name}", getattr(np, name), [call(n) for n in (0, 1, 2, 7)])
entry(
    "numpy.kaiser",
    lambda M, beta: np.kaiser(M, beta).astype(np.float32),
    [call(7, x(low=0.5, high=9)), call(1, x()), call(0, 2.0), call(6, 14)],
)
entry("numpy.i0", np.i0, [*UNARY[:2], call(x(5, low=-12, high=12))])
without_entry(
    "it reads or writes a file: tests/numpy/test_files.py",
    "numpy.load",
    "numpy.save",
    "numpy.savez",
    "numpy.savez_compressed",
    "numpy.fromfile",
)
without_entry(
    "it takes no arrays: tests/numpy/test_files.py",
    "numpy.frombuffer",
    "numpy.fromiter",
    "numpy.fromstring",
)
without_entry(
    "it gives no arrays: tests/numpy/test_printing.py",
    "numpy.array_repr",
    "numpy.array_str",
    "numpy.get_printoptions",
    "numpy.printoptions",
    "numpy.set_printoptions",
)
