"""Stretto: write for one array, one example, one model; transform, compile, and run ensembles.

Layer 8. What users import: ``import stretto as st`` and ``import stretto.numpy as snp``. The way
through the code is told in ``docs/architecture.md``. Names under ``TYPE_CHECKING`` are loaded when
first used, as ``docs/decisions/0029-loaded-when-first-used.md`` tells.
"""

import gc
from typing import TYPE_CHECKING

_collects = gc.isenabled()
gc.disable()  # nothing of what is loaded is garbage, and to look for it takes a tenth of the time
try:
    from stretto import wiring  # noqa: F401, I001 (the base interpreter comes before the rest)
    from stretto import numpy
    from stretto.core import errors
    from stretto.core.config import config, disable_jit, enable_x64
    from stretto.core.lazy import names_on_demand
    from stretto.core.scope import named_call, named_scope
    from stretto.core.version import VERSION as __version__  # noqa: F401
    from stretto.runtime.array import Array
finally:
    if _collects:
        gc.enable()
del gc

if TYPE_CHECKING:
    from stretto import (
        custom_batching,
        custom_derivatives,
        debug,
        dtypes,
        ensemble,
        fft,
        files,
        flatten_util,
        func,
        image,
        lax,
        linalg,
        nn,
        ops,
        optim,
        profiler,
        random,
        scipy,
        special,
        tree,
        tree_util,
        typing,
    )
    from stretto.api.checkpoint import checkpoint, checkpoint_policies, remat
    from stretto.api.closure_convert import closure_convert
    from stretto.api.custom_gradient import custom_gradient
    from stretto.api.derivatives import grad, jvp, linearize, value_and_grad, vjp
    from stretto.api.graph import ShapeDtypeStruct, eval_shape, make_graph
    from stretto.api.hvp import hvp
    from stretto.api.jacobians import hessian, jacfwd, jacrev
    from stretto.api.jit import clear_caches, jit
    from stretto.api.linear_transpose import linear_transpose
    from stretto.api.vectorise import vmap
    from stretto.api.waiting import block_until_ready
    from stretto.control.callback import io_callback, pure_callback
    from stretto.control.custom_jvp import custom_jvp
    from stretto.control.custom_vjp import custom_vjp
    from stretto.control.custom_vmap import custom_vmap, sequential_vmap
    from stretto.ensemble.ensemble import Ensemble
    from stretto.files import load, load_header, save
    from stretto.ops.name import checkpoint_name
    from stretto.runtime.callbacks import effects_barrier
    from stretto.runtime.environment import print_environment_info
    from stretto.tree import concat, stack, take, unstack
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "stretto": "custom_batching custom_derivatives debug dtypes ensemble fft files "
            "flatten_util func image lax linalg nn ops optim profiler random scipy special "
            "tree tree_util typing",
            "stretto.api.checkpoint": "checkpoint checkpoint_policies remat",
            "stretto.api.closure_convert": "closure_convert",
            "stretto.api.custom_gradient": "custom_gradient",
            "stretto.api.derivatives": "grad jvp linearize value_and_grad vjp",
            "stretto.api.graph": "ShapeDtypeStruct eval_shape make_graph",
            "stretto.api.hvp": "hvp",
            "stretto.api.jacobians": "hessian jacfwd jacrev",
            "stretto.api.jit": "clear_caches jit",
            "stretto.api.linear_transpose": "linear_transpose",
            "stretto.api.vectorise": "vmap",
            "stretto.api.waiting": "block_until_ready",
            "stretto.control.callback": "io_callback pure_callback",
            "stretto.control.custom_jvp": "custom_jvp",
            "stretto.control.custom_vjp": "custom_vjp",
            "stretto.control.custom_vmap": "custom_vmap sequential_vmap",
            "stretto.ensemble.ensemble": "Ensemble",
            "stretto.files": "load load_header save",
            "stretto.ops.name": "checkpoint_name",
            "stretto.runtime.callbacks": "effects_barrier",
            "stretto.runtime.environment": "print_environment_info",
            "stretto.tree": "concat stack take unstack",
        },
    )

__all__ = [
    "Array",
    "Ensemble",
    "ShapeDtypeStruct",
    "block_until_ready",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "concat",
    "config",
    "custom_batching",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "custom_vmap",
    "debug",
    "disable_jit",
    "dtypes",
    "effects_barrier",
    "enable_x64",
    "ensemble",
    "errors",
    "eval_shape",
    "fft",
    "files",
    "flatten_util",
    "func",
    "grad",
    "hessian",
    "hvp",
    "image",
    "io_callback",
    "jacfwd",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linalg",
    "linear_transpose",
    "linearize",
    "load",
    "load_header",
    "make_graph",
    "named_call",
    "named_scope",
    "nn",
    "numpy",
    "ops",
    "optim",
    "print_environment_info",
    "profiler",
    "pure_callback",
    "random",
    "remat",
    "save",
    "scipy",
    "sequential_vmap",
    "special",
    "stack",
    "take",
    "tree",
    "tree_util",
    "typing",
    "unstack",
    "value_and_grad",
    "vjp",
    "vmap",
]
