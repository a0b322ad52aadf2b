"""Stretto: write for one array, one example, one model; transform, compile, and run ensembles.

Layer 8. What users import: ``import stretto as st`` and ``import stretto.numpy as snp``. The way
through the code is told in ``docs/architecture.md``.
"""

from stretto import wiring  # noqa: F401, I001 (the base interpreter comes first)
from stretto import ensemble, lax, nn, numpy, random, tree
from stretto.api.derivatives import grad, jvp, linearize, value_and_grad, vjp
from stretto.api.jacobians import hessian, jacfwd, jacrev
from stretto.api.graph import ShapeDtypeStruct, eval_shape, make_graph
from stretto.api.jit import clear_caches, jit
from stretto.api.vectorise import vmap
from stretto.api.waiting import block_until_ready
from stretto.control.custom import custom_jvp
from stretto.core import errors
from stretto.core.config import config, enable_x64
from stretto.runtime.array import Array
from stretto.tree import concat, stack, take, unstack

__all__ = [
    "Array",
    "ShapeDtypeStruct",
    "block_until_ready",
    "clear_caches",
    "concat",
    "config",
    "custom_jvp",
    "enable_x64",
    "ensemble",
    "errors",
    "eval_shape",
    "grad",
    "hessian",
    "jacfwd",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linearize",
    "make_graph",
    "nn",
    "numpy",
    "random",
    "stack",
    "take",
    "tree",
    "unstack",
    "value_and_grad",
    "vjp",
    "vmap",
]

__version__ = "0.1.0"
