"""Stretto: write for one array, one example, one model; transform, compile, and run ensembles.

What users import: ``import stretto as st`` and ``import stretto.numpy as snp``.
``docs/architecture.md`` leads through the code. Names under ``TYPE_CHECKING`` are loaded when first
used, for the reasons in ``docs/decisions/0029-loaded-when-first-used.md``.
"""

from typing import TYPE_CHECKING

import gc

_collects = gc.isenabled()
try:
    gc.disable()  # nothing that is loaded becomes garbage, and looking for it takes long
    from stretto import wiring
    from stretto._engine.core.config import (
        config as config,
        disable_jit as disable_jit,
        enable_x64 as enable_x64,
    )
    from stretto._engine.core.lazy import exports
    from stretto._engine.core.position import named_scope as named_scope
    from stretto._engine import VERSION as __version__
    from stretto._engine.xla.array import Array as Array
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
        as_jax as as_jax, checkpoint_policies as checkpoint_policies, curvature as curvature,
        debug as debug,
        distributed as distributed, dtypes as dtypes, ensemble as ensemble, errors as errors,
        export as export, fft as fft, files as files, func as func, image as image, lax as lax,
        linalg as linalg, merge as merge, nn as nn, numpy as numpy, optim as optim,
        profiler as profiler, random as random, scipy as scipy, sharding as sharding,
        special as special, torch as torch, tree as tree, typing as typing,
    )  # fmt: skip
    from stretto._engine.api.autodiff.checkpoint import checkpoint as checkpoint
    from stretto._engine.api.autodiff.custom_gradient import closure_convert as closure_convert
    from stretto._engine.api.jit.jit import (
        ensure_compile_time_eval as ensure_compile_time_eval,
        jit as jit,
        clear_caches as clear_caches,
    )
    from stretto._engine.api.varying_sizes.sizes import (
        Buckets as Buckets,
        dynamic_size as dynamic_size,
    )
    from stretto._engine.api.varying_sizes.ragged import Ragged as Ragged, ragged as ragged
    from stretto._engine.api.sharding.placement import (
        default_device as default_device,
        make_mesh as make_mesh,
        block_until_ready as block_until_ready,
    )
    from stretto._engine.api.autodiff.derivatives import (
        grad as grad, jvp as jvp, linearize as linearize, value_and_grad as value_and_grad,
        vjp as vjp,
    )  # fmt: skip
    from stretto._engine.api.explain.explain import explain as explain
    from stretto._engine.api.explain.recompilations import (
        explain_recompilation as explain_recompilation,
    )
    from stretto._engine.api.explain.shapes import explain_shapes as explain_shapes
    from stretto._engine.api.graph import (
        ShapeDtypeStruct as ShapeDtypeStruct,
        eval_shape as eval_shape,
        make_graph as make_graph,
    )
    from stretto._engine.api.autodiff.jacobians import hvp as hvp
    from stretto._engine.api.autodiff.jacobians import (
        hessian as hessian,
        jacfwd as jacfwd,
        jacrev as jacrev,
    )
    from stretto._engine.api.autodiff.derivatives import jet as jet
    from stretto._engine.api.autodiff.linear_functions import linear_transpose as linear_transpose
    from stretto._engine.api.sharding.placement import (
        device_get as device_get,
        device_put as device_put,
    )
    from stretto._engine.api.sharding.shard_map import shard_map as shard_map
    from stretto._engine.api.vectorize import vmap as vmap
    from stretto._engine.higher_order.callback import (
        io_callback as io_callback,
        pure_callback as pure_callback,
    )
    from stretto._engine.higher_order.custom_derivatives import (
        custom_jvp as custom_jvp,
        custom_vjp as custom_vjp,
    )
    from stretto._engine.higher_order.custom_vmap import custom_vmap as custom_vmap
    from stretto._engine.higher_order.refs import freeze as freeze, new_ref as new_ref
    from stretto._engine.higher_order.user_primitive import primitive as primitive
    from stretto._engine.core.mesh import P as P
    from stretto._engine.ops.identities import checkpoint_name as checkpoint_name
    from stretto._engine.xla.device import devices as devices
    from stretto.ensemble.ensemble import Ensemble as Ensemble
    from stretto.files import load as load, save as save
    from stretto.torch.exporting import to_torch as to_torch
    from stretto.torch.importing import from_torch as from_torch
    from stretto.tree import concat as concat, stack as stack, take as take, unstack as unstack

exports(
    __name__,
    """
    .: as_jax checkpoint_policies curvature debug distributed dtypes ensemble errors export fft
        files func image lax linalg merge nn numpy optim profiler random scipy sharding special
        torch tree typing
    ._engine.api.autodiff.checkpoint: checkpoint
    ._engine.api.autodiff.custom_gradient: closure_convert
    ._engine.api.jit.jit: ensure_compile_time_eval jit clear_caches
    ._engine.api.varying_sizes.sizes: Buckets dynamic_size
    ._engine.api.varying_sizes.ragged: Ragged ragged
    ._engine.api.sharding.placement: default_device make_mesh block_until_ready device_get
        device_put
    ._engine.api.autodiff.derivatives: grad jvp linearize value_and_grad vjp jet
    ._engine.api.explain.explain: explain
    ._engine.api.explain.recompilations: explain_recompilation
    ._engine.api.explain.shapes: explain_shapes
    ._engine.api.graph: ShapeDtypeStruct eval_shape make_graph
    ._engine.api.autodiff.jacobians: hvp hessian jacfwd jacrev
    ._engine.api.autodiff.linear_functions: linear_transpose
    ._engine.api.sharding.shard_map: shard_map
    ._engine.api.vectorize: vmap
    ._engine.higher_order.callback: io_callback pure_callback
    ._engine.higher_order.custom_derivatives: custom_jvp custom_vjp
    ._engine.higher_order.custom_vmap: custom_vmap
    ._engine.higher_order.refs: freeze new_ref
    ._engine.higher_order.user_primitive: primitive
    ._engine.core.mesh: P
    ._engine.ops.identities: checkpoint_name
    ._engine.xla.device: devices
    .ensemble.ensemble: Ensemble
    .files: load save
    .torch.exporting: to_torch
    .torch.importing: from_torch
    .tree: concat stack take unstack
    """,
)
