"""The modules of JAX that have names of other modules alone: a table.

A row is the path of a module below ``jax``, with the modules that its names come from: those of
``stretto.compat.jax`` after a point, ``primitives`` for operations as jaxprs name them. ``a>b`` is
``a`` under the name ``b``, and ``*`` every name that no other source has. What has code of its own
is a file of ``presented``.
"""

from __future__ import annotations

import functools
import importlib
from types import ModuleType
from typing import Any

from stretto.compat.jax.jaxprs.tables.named import primitive_of
from stretto.compat.jax.naming import names_of

__all__ = ["ROWS", "module_of"]

_TABLE = """
_src.ad_util
    .jaxprs.ad: SymbolicZero Zero add_jaxvals add_jaxvals_p zeros_like_aval
        instantiate_zeros>instantiate
    primitives: stop_gradient_p
_src.checkify
    .checks: *
_src.core
    .presented.extend.core: *
    .presented.core: *
_src.dispatch
    stretto.debug: effects_barrier>wait_for_tokens
_src.earray
    stretto.random.key_arrays: KeyArray>EArray
_src.pjit
    .calls: jit jit>pjit
    .presented.lax: with_sharding_constraint
    primitives: jit_p jit_p>pjit_p sharding_constraint_p
_src.state
    stretto._engine.higher_order.refs: View>TransformedRef
    .avals: AbstractRef
_src.state.types
    stretto._engine.higher_order.refs: View>TransformedRef
    .avals: AbstractRef
_src.traceback_util
    .traceback: _exclude_paths api_boundary include_frame register_exclusion
_src.tree_util
    .trees: ENTRIES>_registry
    .presented.tree_util: *
_src.xla_bridge
    stretto._engine.xla.device: default_backend process_index
    .calls: device_count devices local_devices
    .host_devices: STARTED>_backends
    .presented.extend.backend: backends get_backend
ad_checkpoint
    stretto: checkpoint_policies
    stretto._engine.api.autodiff.checkpoint: checkpoint print_saved_residuals checkpoint>remat
    stretto._engine.ops.identities: checkpoint_name
custom_batching
    stretto._engine.higher_order.custom_vmap: custom_vmap sequential_vmap
custom_derivatives
    stretto._engine.api.autodiff.custom_gradient: closure_convert custom_gradient
    stretto._engine.higher_order.linear_call: linear_call
    stretto._engine.higher_order.symbolic_zeros: CustomVJPPrimal custom_vjp_primal_tree_values
        zero_from_primal
    .custom_functions: custom_jvp custom_vjp
    .jaxprs.ad: SymbolicZero
    primitives: custom_jvp_call_p custom_vjp_call_p
experimental.checkify
    .checks: *
experimental.hijax
    .avals: AbstractRef AbstractValue ShapedArray
    .hijax: AvalMutableQDD AvalQDD HiPrimitive HiPspec HiType MutableHiType VJPHiPrimitive
        aval_method aval_property control_flow_allowed_effects register_hitype
    .jaxprs.ad: Zero instantiate_zeros is_undefined_primal
    stretto._engine.higher_order.refs: View>TransformedRef
experimental.jet
    stretto: jet
experimental.ode
    .ode: odeint
experimental.pjit
    .calls: jit>pjit
    stretto.lax: with_sharding_constraint
extend.linear_util
    .linear_util: *
extend.source_info_util
    .traceback: register_exclusion
interpreters.ad
    .jaxprs.ad: *
interpreters.batching
    .jaxprs.batching: *
interpreters.mlir
    .jaxprs.mlir: *
interpreters.partial_eval
    .jaxprs.partial: *
lib
    .presented.version: __version__
lib.xla_extension
    .trees: PyTreeDef
    builtins: RuntimeError>XlaRuntimeError
numpy.linalg
    stretto.numpy.linalg: *
ops
    stretto._engine.ops.index.segments: segment_max segment_min segment_prod segment_sum
stages
    stretto._engine.api.jit.jitted: Jitted>Wrapped
    stretto._engine.api.jit.stages: ArgInfo Compiled Lowered TracedCall>Traced
    collections.abc: Mapping>CompilerOptions
test_util
    .gradients: check_grads check_jvp check_vjp
tree
    .presented.tree_util: flatten_one_level tree_all>all tree_broadcast>broadcast
        tree_flatten>flatten tree_flatten_with_path>flatten_with_path tree_leaves>leaves
        tree_leaves_with_path>leaves_with_path tree_map>map tree_map_with_path>map_with_path
        tree_reduce>reduce tree_reduce_associative>reduce_associative tree_structure>structure
        tree_transpose>transpose tree_unflatten>unflatten
    stretto.tree: static
"""


def _rows() -> dict[str, dict[str, list[str]]]:
    rows: dict[str, dict[str, list[str]]] = {}
    row: dict[str, list[str]] = {}
    names: list[str] = []
    for line in _TABLE.split("\n"):
        if line and line[0] != " ":
            row = rows[line] = {}
        for word in line.split() if line[:1] == " " else ():
            if word[-1] == ":":
                names = row[f"{__package__}{word[:-1]}" if word[0] == "." else word[:-1]] = []
            else:
                names.append(word)
    return rows


ROWS = _rows()
"""By path: the names that come from each module."""


@functools.cache
def module_of(path: str) -> ModuleType | None:
    """Make the module of a row; None where the table has none.

    >>> module_of("experimental.jet").jet.__name__
    'jet'
    """
    row = ROWS.get(path)
    if row is None:
        return None
    module = ModuleType(f"{__package__}.presented.{path}", f"``jax.{path}``.")
    homes = {
        new or old: (source, old)
        for source, names in row.items()
        for old, _, new in [name.partition(">") for name in names if name != "*"]
    }
    stars = [source for source, names in row.items() if "*" in names]
    rest, others = names_of(*stars) if stars else (_nothing, list)

    def get(name: str) -> Any:
        if name == "__all__" and not stars:
            return [name for name in homes if not name.startswith("_")]
        if name not in homes:
            return rest(name)
        source, old = homes[name]
        if source == "primitives":
            value = primitive_of(old.removesuffix("_p"))
        else:
            value = getattr(importlib.import_module(source), old)
        vars(module)[name] = value
        return value

    vars(module).update(__getattr__=get, __dir__=lambda: sorted({*homes, *others()}))
    return module


def _nothing(name: str) -> Any:
    raise AttributeError(name)
