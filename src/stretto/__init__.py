"""Stretto: write for one array, one example, one model; transform, compile, and run ensembles.

Layer 8. What users import: ``import stretto as st`` and ``import stretto.numpy as snp``.
``docs/architecture.md`` leads through the code. Names under ``TYPE_CHECKING`` are loaded when first
used, for the reasons in ``docs/decisions/0029-loaded-when-first-used.md``.
"""

import gc
from typing import TYPE_CHECKING

_collects = gc.isenabled()
try:
    gc.disable()  # nothing that is loaded becomes garbage, and looking for it takes long
    from stretto import wiring  # noqa: F401, I001 (the base interpreter comes before the rest)
    from stretto import numpy
    from stretto._engine.core.config import (
        config,
        default_matmul_precision,
        default_prng_impl,
        disable_jit,
        enable_x64,
        log_compiles,
        numpy_dtype_promotion,
        threefry_partitionable,
    )
    from stretto._engine.core.lazy import names_on_demand
    from stretto._engine.core.scope import named_call, named_scope
    from stretto._engine.core.types import float0
    from stretto._engine.core.version import VERSION as __version__  # noqa: F401
    from stretto._engine.runtime.array import Array
finally:
    if _collects:
        if not gc.get_freeze_count():
            # What was loaded is old at once: else the next object made has all of it looked at.
            gc.freeze()
            gc.unfreeze()
        gc.enable()
del gc

if TYPE_CHECKING:
    from stretto import (
        ad_checkpoint,
        custom_batching,
        custom_derivatives,
        debug,
        dtypes,
        ensemble,
        errors,
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
        stages,
        tree,
        tree_util,
        typing,
    )
    from stretto._engine.api.checkpoint import checkpoint, checkpoint_policies, remat
    from stretto._engine.api.closure_convert import closure_convert
    from stretto._engine.api.compile_time import ensure_compile_time_eval
    from stretto._engine.api.custom_gradient import custom_gradient
    from stretto._engine.api.derivatives import grad, jvp, linearize, value_and_grad, vjp
    from stretto._engine.api.forward_backward import fwd_and_bwd
    from stretto._engine.api.graph import (
        ShapeDtypeStruct,
        eval_shape,
        make_graph,
        make_jaxpr,
        typeof,
    )
    from stretto._engine.api.hvp import hvp
    from stretto._engine.api.jacobians import hessian, jacfwd, jacobian, jacrev
    from stretto._engine.api.jit import clear_caches, jit
    from stretto._engine.api.linear_transpose import linear_transpose
    from stretto._engine.api.placement import (
        copy_to_host_async,
        device_get,
        device_put,
        live_arrays,
    )
    from stretto._engine.api.vectorise import vmap
    from stretto._engine.api.waiting import block_until_ready
    from stretto._engine.control.callback import io_callback, pure_callback
    from stretto._engine.control.custom_jvp import custom_jvp
    from stretto._engine.control.custom_vjp import custom_vjp
    from stretto._engine.control.custom_vmap import custom_vmap, sequential_vmap
    from stretto._engine.ops.name import checkpoint_name
    from stretto._engine.runtime.callbacks import effects_barrier
    from stretto._engine.runtime.device import (
        Device,
        default_backend,
        device_count,
        devices,
        local_device_count,
        local_devices,
        process_count,
        process_index,
        process_indices,
    )
    from stretto._engine.runtime.environment import print_environment_info
    from stretto.ensemble.ensemble import Ensemble
    from stretto.files import load, load_header, save
    from stretto.tree import concat, stack, take, unstack
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "stretto": "ad_checkpoint custom_batching custom_derivatives debug dtypes ensemble "
            "errors fft files flatten_util func image lax linalg nn ops optim profiler random "
            "scipy special stages tree tree_util typing",
            "stretto._engine.api.checkpoint": "checkpoint checkpoint_policies remat",
            "stretto._engine.api.closure_convert": "closure_convert",
            "stretto._engine.api.compile_time": "ensure_compile_time_eval",
            "stretto._engine.api.custom_gradient": "custom_gradient",
            "stretto._engine.api.derivatives": "grad jvp linearize value_and_grad vjp",
            "stretto._engine.api.forward_backward": "fwd_and_bwd",
            "stretto._engine.api.graph": "ShapeDtypeStruct eval_shape make_graph make_jaxpr typeof",
            "stretto._engine.api.hvp": "hvp",
            "stretto._engine.api.jacobians": "hessian jacfwd jacobian jacrev",
            "stretto._engine.api.jit": "clear_caches jit",
            "stretto._engine.api.linear_transpose": "linear_transpose",
            "stretto._engine.api.placement": "copy_to_host_async device_get device_put live_arrays",
            "stretto._engine.api.vectorise": "vmap",
            "stretto._engine.api.waiting": "block_until_ready",
            "stretto._engine.control.callback": "io_callback pure_callback",
            "stretto._engine.control.custom_jvp": "custom_jvp",
            "stretto._engine.control.custom_vjp": "custom_vjp",
            "stretto._engine.control.custom_vmap": "custom_vmap sequential_vmap",
            "stretto.ensemble.ensemble": "Ensemble",
            "stretto.files": "load load_header save",
            "stretto._engine.ops.name": "checkpoint_name",
            "stretto._engine.runtime.callbacks": "effects_barrier",
            "stretto._engine.runtime.device": "Device default_backend device_count devices "
            "local_device_count local_devices process_count process_index process_indices",
            "stretto._engine.runtime.environment": "print_environment_info",
            "stretto.tree": "concat stack take unstack",
        },
        absent={
            "Ref empty_ref freeze new_ref": "there are no mutable references, and arrays do not "
            "change: return the new value, or carry it through lax.scan or lax.while_loop",
        },
    )

__all__ = [
    "Array",
    "Device",
    "Ensemble",
    "ShapeDtypeStruct",
    "ad_checkpoint",
    "block_until_ready",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "concat",
    "config",
    "copy_to_host_async",
    "custom_batching",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "custom_vmap",
    "debug",
    "default_backend",
    "default_matmul_precision",
    "default_prng_impl",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "dtypes",
    "effects_barrier",
    "enable_x64",
    "ensemble",
    "ensure_compile_time_eval",
    "errors",
    "eval_shape",
    "fft",
    "files",
    "flatten_util",
    "float0",
    "func",
    "fwd_and_bwd",
    "grad",
    "hessian",
    "hvp",
    "image",
    "io_callback",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linalg",
    "linear_transpose",
    "linearize",
    "live_arrays",
    "load",
    "load_header",
    "local_device_count",
    "local_devices",
    "log_compiles",
    "make_graph",
    "make_jaxpr",
    "named_call",
    "named_scope",
    "nn",
    "numpy",
    "numpy_dtype_promotion",
    "ops",
    "optim",
    "print_environment_info",
    "process_count",
    "process_index",
    "process_indices",
    "profiler",
    "pure_callback",
    "random",
    "remat",
    "save",
    "scipy",
    "sequential_vmap",
    "special",
    "stack",
    "stages",
    "take",
    "threefry_partitionable",
    "tree",
    "tree_util",
    "typeof",
    "typing",
    "unstack",
    "value_and_grad",
    "vjp",
    "vmap",
]
