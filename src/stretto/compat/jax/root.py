"""``jax``: transformations and settings under JAX's names.

What is neither written nor imported here is found in ``stretto`` by the same name.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import stretto
from stretto._engine.api.autodiff.custom_gradient import custom_gradient
from stretto._engine.api.autodiff.derivatives import fwd_and_bwd
from stretto._engine.api.autodiff.jacobians import jacrev as jacobian
from stretto._engine.api.sharding.placement import copy_to_host_async
from stretto._engine.api.sharding.shard_map import smap
from stretto._engine.xla.device import default_backend
from stretto.compat.jax.avals import get_aval as typeof
from stretto.compat.jax.calls import (
    checkpoint, custom_jvp, custom_vjp, device_count, device_get, devices, eval_shape, grad,
    jit, linear_transpose, local_device_count, local_devices, make_mesh, named_call, pmap,
    pure_callback, remat, value_and_grad, vjp,
)  # fmt: skip
from stretto.compat.jax.jaxprs.making import make_jaxpr
from stretto.compat.jax.modules import names_of
from stretto.compat.jax.arrays import empty_ref, free_ref, new_ref
from stretto.compat.jax.shardings import reshard
from stretto.compat.jax.settings import block, config
from stretto.compat.jax.avals import Array
from stretto.debug import effects_barrier, live_arrays, print_environment_info
from stretto.distributed import process_count, process_index, process_indices
from stretto.sharding import (
    NamedSharding, make_array_from_callback, make_array_from_process_local_data,
    make_array_from_single_device_arrays, set_mesh,
)  # fmt: skip
from stretto.typing import Device, Ref

__all__: list[str]

__version__ = "0.10.2"
__version_info__ = (0, 10, 2)

check_tracer_leaks = checking_leaks = block("jax_check_tracer_leaks", True)
debug_infs = block("jax_debug_infs", True)
debug_key_reuse = block("jax_debug_key_reuse", True)
debug_nans = block("jax_debug_nans", True)
default_matmul_precision = block("jax_default_matmul_precision")
default_prng_impl = block("jax_default_prng_impl")
disable_jit = block("jax_disable_jit", True, "disable")
enable_checks = block("jax_enable_checks", True)
enable_custom_prng = block("jax_enable_custom_prng", True)
enable_x64 = block("jax_enable_x64", True, "new_val")
explain_cache_misses = block("jax_explain_cache_misses", True)
legacy_prng_key = block("jax_legacy_prng_key")
log_compiles = block("jax_log_compiles", True)
no_tracing = block("jax_no_tracing", True)
numpy_dtype_promotion = block("jax_numpy_dtype_promotion")
numpy_rank_promotion = block("jax_numpy_rank_promotion")
softmax_custom_jvp = block("jax_softmax_custom_jvp", True)
threefry_partitionable = block("jax_threefry_partitionable", True)
transfer_guard = block("jax_transfer_guard")
transfer_guard_device_to_device = block("jax_transfer_guard_device_to_device")
transfer_guard_device_to_host = block("jax_transfer_guard_device_to_host")
transfer_guard_host_to_device = block("jax_transfer_guard_host_to_device")

array_ref = new_ref

host_count, host_id = process_count, process_index
ArrayRef = Ref

ShapeDtypeStruct = stretto.ShapeDtypeStruct

_get, _names = names_of("stretto")


def __dir__() -> list[str]:
    return sorted({*globals(), *_names()} - {"SimpleNamespace", "annotations", "block", "names_of"})


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [n for n in __dir__() if not n.startswith("_")]
    if name == "checkpoint_policies":  # no module, so that it cannot be imported from
        policies: Any = stretto.checkpoint_policies
        return SimpleNamespace(**{n: getattr(policies, n) for n in policies.__all__})
    return _get(name)
