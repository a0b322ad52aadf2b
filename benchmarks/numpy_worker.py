"""The workloads in NumPy: the floor of eager overheads, and a third opinion on the results."""

from __future__ import annotations

import operator
from functools import partial

from benchmarks import ensembles_numpy, workloads
from benchmarks.worker import Case, Registry, serve

cases = Registry()


@cases.add("eager-add")
def eager_add() -> Case:
    """`x + y` on 4 floats."""
    return Case(partial(operator.add, *workloads.eager_add_inputs()))


@cases.add("eager-product")
def eager_product() -> Case:
    """`x @ x` on 4 integers."""
    x = workloads.eager_product_inputs()
    return Case(partial(operator.matmul, x, x))


@cases.add("eager-affine")
def eager_affine() -> Case:
    """`x @ W + b`."""
    x, weights, bias = workloads.affine_inputs()
    return Case(lambda: x @ weights + bias)


@cases.add("product")
def product() -> Case:
    """`x @ y` on square matrices."""
    return Case(partial(operator.matmul, *workloads.product_inputs()))


ensembles_numpy.register(cases)


if __name__ == "__main__":
    serve("numpy", ["numpy"], "import numpy", cases)
