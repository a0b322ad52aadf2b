"""Stretto: write for one array, one example, one model; transform, compile, and run ensembles.

What users import: ``import stretto as st`` and ``import stretto.numpy as snp``.
``docs/architecture.md`` leads through the code. Names under ``TYPE_CHECKING`` are loaded when first
used, for the reasons in ``docs/decisions/0029-loaded-when-first-used.md``.
"""

import gc

_collects = gc.isenabled()
try:
    gc.disable()  # nothing that is loaded becomes garbage, and looking for it takes long
    from stretto import wiring  # noqa: F401 (the base interpreter comes before the rest)
    from stretto._engine.core.config import (
        config as config,
        default_matmul_precision as default_matmul_precision,
        default_prng_impl as default_prng_impl,
        disable_jit as disable_jit,
        enable_x64 as enable_x64,
        log_compiles as log_compiles,
        numpy_dtype_promotion as numpy_dtype_promotion,
        threefry_partitionable as threefry_partitionable,
    )
    from stretto._engine.core.lazy import imports_on_demand
    from stretto._engine.core.scope import named_call as named_call, named_scope as named_scope
    from stretto._engine.core.types import float0 as float0
    from stretto._engine.core.version import VERSION as __version__  # noqa: F401
    from stretto._engine.xla.array import Array as Array
finally:
    if _collects:
        if not gc.get_freeze_count():
            # What was loaded is old at once: else the next object made has all of it looked at.
            gc.freeze()
            gc.unfreeze()
        gc.enable()
del gc

with imports_on_demand(
    __name__,
):
    from stretto import (
        ad_checkpoint as ad_checkpoint,
        as_jax as as_jax,
        checkpoint_policies as checkpoint_policies,
        custom_batching as custom_batching,
        custom_derivatives as custom_derivatives,
        debug as debug,
        distributed as distributed,
        dtypes as dtypes,
        ensemble as ensemble,
        errors as errors,
        fft as fft,
        files as files,
        flatten_util as flatten_util,
        func as func,
        image as image,
        lax as lax,
        linalg as linalg,
        multihost as multihost,
        nn as nn,
        numpy as numpy,
        ops as ops,
        optim as optim,
        profiler as profiler,
        random as random,
        scipy as scipy,
        sharding as sharding,
        special as special,
        stages as stages,
        torch as torch,
        tree as tree,
        tree_util as tree_util,
        typing as typing,
    )
    from stretto._engine.api.sharding.arrays_from_parts import (
        make_array_from_callback as make_array_from_callback,
        make_array_from_process_local_data as make_array_from_process_local_data,
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
    )
    from stretto._engine.api.autodiff.checkpoint import (
        checkpoint as checkpoint,
        remat as remat,
    )
    from stretto._engine.api.autodiff.custom_gradient import (
        closure_convert as closure_convert,
        custom_gradient as custom_gradient,
    )
    from stretto._engine.api.jit.compile_time import (
        ensure_compile_time_eval as ensure_compile_time_eval,
    )
    from stretto._engine.api.varying_sizes.buckets import (
        Buckets as Buckets,
        dynamic_size as dynamic_size,
    )
    from stretto._engine.api.varying_sizes.ragged import Ragged as Ragged, ragged as ragged
    from stretto._engine.api.sharding.default_device import default_device as default_device
    from stretto._engine.api.autodiff.derivatives import (
        fwd_and_bwd as fwd_and_bwd,
        grad as grad,
        jvp as jvp,
        linearize as linearize,
        value_and_grad as value_and_grad,
        vjp as vjp,
    )
    from stretto._engine.api.explain.explain import explain as explain
    from stretto._engine.api.explain.profile import profile as profile
    from stretto._engine.api.explain.recompilations import (
        explain_recompilation as explain_recompilation,
    )
    from stretto._engine.api.explain.shapes import explain_shapes as explain_shapes
    from stretto._engine.api.graph import (
        ShapeDtypeStruct as ShapeDtypeStruct,
        eval_shape as eval_shape,
        make_graph as make_graph,
        make_jaxpr as make_jaxpr,
        typeof as typeof,
    )
    from stretto._engine.api.autodiff.jacobians import (
        hessian as hessian,
        hvp as hvp,
        jacfwd as jacfwd,
        jacobian as jacobian,
        jacrev as jacrev,
    )
    from stretto._engine.api.autodiff.jet import jet as jet
    from stretto._engine.api.jit.jit import jit as jit
    from stretto._engine.api.jit.jitted import clear_caches as clear_caches
    from stretto._engine.api.autodiff.linear_transpose import linear_transpose as linear_transpose
    from stretto._engine.api.sharding.meshes import make_mesh as make_mesh
    from stretto._engine.api.sharding.placement import (
        copy_to_host_async as copy_to_host_async,
        device_get as device_get,
        device_put as device_put,
        live_arrays as live_arrays,
    )
    from stretto._engine.api.sharding.pmap import pmap as pmap
    from stretto._engine.api.sharding.shard_map import shard_map as shard_map, smap as smap
    from stretto._engine.api.vectorize import vmap as vmap
    from stretto._engine.api.waiting import block_until_ready as block_until_ready
    from stretto._engine.higher_order.callback import (
        io_callback as io_callback,
        pure_callback as pure_callback,
    )
    from stretto._engine.higher_order.custom_jvp import custom_jvp as custom_jvp
    from stretto._engine.higher_order.custom_vjp import custom_vjp as custom_vjp
    from stretto._engine.higher_order.custom_vmap import (
        custom_vmap as custom_vmap,
        sequential_vmap as sequential_vmap,
    )
    from stretto._engine.higher_order.refs import Ref as Ref, freeze as freeze, new_ref as new_ref
    from stretto._engine.higher_order.user_primitive import primitive as primitive
    from stretto._engine.core.mesh import P as P
    from stretto._engine.core.mesh_in_use import set_mesh as set_mesh
    from stretto._engine.core.shardings import NamedSharding as NamedSharding
    from stretto._engine.ops.identities import checkpoint_name as checkpoint_name
    from stretto._engine.xla.callbacks import effects_barrier as effects_barrier
    from stretto._engine.xla.device import (
        Device as Device,
        default_backend as default_backend,
        device_count as device_count,
        devices as devices,
        local_device_count as local_device_count,
        local_devices as local_devices,
        process_count as process_count,
        process_index as process_index,
        process_indices as process_indices,
    )
    from stretto._engine.xla.environment import print_environment_info as print_environment_info
    from stretto.ensemble.ensemble import Ensemble as Ensemble
    from stretto.files import load as load, load_header as load_header, save as save
    from stretto.torch.hosted.exporting import to_torch as to_torch
    from stretto.torch.importing import from_torch as from_torch
    from stretto.tree import concat as concat, stack as stack, take as take, unstack as unstack
