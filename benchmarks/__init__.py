"""Stretto measured against JAX, PyTorch and NumPy; run with ``python -m benchmarks``.

Read `workloads` for what is measured, then `measure` for how.
"""
