"""The operations that files may name: where their classes are, and why others are refused.

A file names an operation, and never a module or a class. Its class is looked up here, and its
module is loaded when the first file names it, since most programs need few.
"""

from __future__ import annotations

import functools
import typing
from importlib import import_module
from typing import Any

from stretto._engine.core.primitive import PRIMITIVES, Primitive

_HOMES = """
_engine.ops.arithmetic: abs add div mul neg rem sign square sub
_engine.ops.bitcast: bitcast_convert_type
_engine.ops.bits: and clz mulhi not or population_count reduce_precision shift_left
    shift_right_arithmetic shift_right_logical xor
_engine.ops.broadcast: broadcast_in_dim reduce_sum
_engine.ops.comparison: eq ge gt le lt ne select
_engine.ops.complex_parts: complex conj imag real
_engine.ops.contract: dot_general
_engine.ops.convert: convert_element_type
_engine.ops.convolution.general: conv_general_dilated
_engine.ops.exponential: cbrt exp exp2 expm1 integer_pow log log1p logistic logistic_slope pow rsqrt
    sqrt
_engine.ops.extrema: clamp max min
_engine.ops.fft: fft
_engine.ops.identities: example name optimization_barrier
_engine.ops.index.dynamic: dynamic_slice dynamic_update_slice
_engine.ops.index.gather_scatter: scatter_max scatter_min scatter_mul
_engine.ops.index.primitives: gather scatter scatter_add scatter_sub
_engine.ops.inverse_trigonometric: acos acosh asin asinh atan atan2 atanh
_engine.ops.iota: constant iota size_of
_engine.ops.platform_number: platform_number
_engine.ops.layout: reshape transpose
_engine.ops.linalg.eigenvalues: eig eigh hessenberg schur triangular_sylvester
_engine.ops.linalg.lu: determinant log_determinant lu lu_solve pivots_to_permutation
_engine.ops.linalg.qr: geqp3 geqrf householder_product ormqr pivoted_qr qr
_engine.ops.linalg.svd: pinv svd
_engine.ops.linalg.triangular: cholesky cholesky_update triangular_solve tridiagonal_reduction
    tridiagonal_solve
_engine.ops.random_bits: random_bits rng_bit_generator threefry2x32 unit_float wide_remainder
_engine.ops.reducing.cumulative: cumlogsumexp cummax cummin cumprod cumsum linear_recurrence
_engine.ops.reducing.reduce: argmax argmin reduce_and reduce_max reduce_min reduce_or reduce_prod
    reduce_xor
_engine.ops.reducing.window: reduce_window_and reduce_window_max reduce_window_min reduce_window_or
    reduce_window_prod reduce_window_sum reduce_window_xor select_and_gather_add
    select_and_scatter_add window_place
_engine.ops.rounding: ceil floor is_finite nextafter round round_away
_engine.ops.shape: concatenate pad rev slice
_engine.ops.sort: sort top_k
_engine.ops.special.bessel: bessel_i0 bessel_i0e bessel_i1 bessel_i1e
_engine.ops.special.error_functions: erf erf_inv erfc
_engine.ops.special.gamma: complex_gamma digamma gamma lgamma polygamma zeta zeta_slope
_engine.ops.special.incomplete: beta_density betainc_grad_a gamma_density igamma igamma_grad_a
    igammac random_gamma_grad regularized_incomplete_beta
_engine.ops.trigonometric: cos cosh sech_squared sin sinh tan tanh
_engine.higher_order.checkpoint: checkpoint
_engine.higher_order.cond: cond
_engine.higher_order.custom_derivatives: custom_jvp custom_vjp custom_vjp_forward
_engine.higher_order.custom_vmap: custom_vmap
_engine.higher_order.family: call
_engine.higher_order.implicit: custom_linear_solve custom_root
_engine.higher_order.linear_call: linear_call
_engine.higher_order.reduce: reduce reduce_window
_engine.higher_order.scan: scan
_engine.higher_order.sized_call: sized_call
_engine.higher_order.stop_gradient: stop_gradient
_engine.higher_order.while_loop: while
_engine.passes.formulations.mapped: mapped
random.truncated: normal_tail
special.bessel: bessel_j hyp1f1 hyp1f1_slope hyp2f1 hyp2f1_slope normalized_legendre
special.errors: dawsn dawsn_slope erfcx erfcx_slope log_ndtr ndtr ndtri owens_t wofz
special.gammas: beta binomial log_beta poch riemann_zeta
special.integrals: cosine_integral exp1 expi expn fresnel_cosine fresnel_sine sine_integral spence
"""

_AXIS = "it works across a named axis, which the file has no vmap for: put the vmap inside"
_MESH = "it is for the devices of a mesh, which another machine lacks: export it without a mesh"
_COMPILED = "it is made where a program is compiled: save the program before that"
_PYTHON = "it calls a Python function: return the value, and call the function outside"

REFUSED = {
    **dict.fromkeys(
        ("all_gather", "all_to_all", "axis_index", "ppermute", "psame", "psum", "psum_same",
         "psum_scatter", "pvary", "totals_together"), _AXIS
    ),
    **dict.fromkeys(("shard_map", "sharding_constraint"), _MESH),
    **dict.fromkeys(("debug_callback", "io_callback", "pure_callback"), _PYTHON),
    **dict.fromkeys(
        ("after", "fused_attention", "fused_gather", "fused_product", "fused_rows", "fused_scan",
         "fused_updates"), _COMPILED
    ),
    "module_call": "it is a module of StableHLO from a file: keep that file, and load it there",
    "user_primitive": "it is a Python function, and is written as the program that it computes",
}  # fmt: skip
"""The operations that no file has, by name, each with the reason and the way out."""

FORMER: dict[str, str] = {}
"""What operations were called in files of earlier versions, and their names now."""

FORMER_PARAMETERS: dict[tuple[str, str], str] = {}
"""The same of parameters, by the operation's name now, and the former one."""


def _homes() -> dict[str, str]:
    homes, home = {}, ""
    for word in _HOMES.split():
        if word[-1] == ":":
            home = f"stretto.{word[:-1]}"
        else:
            homes[word] = home
    return homes


HOMES = _homes()
"""The module of each operation, by name."""


@functools.cache
def class_of(name: str) -> type[Primitive] | None:
    """Return the class of an operation that files may have; None for any other name."""
    home = HOMES.get(name)
    if home is None:
        return None
    import_module(home)
    return next(p for p in PRIMITIVES if p.name == name and p.__module__ == home)


@functools.cache
def parameters_of(cls: type[Any]) -> dict[str, Any]:
    """Return the annotations of an operation's parameters, or of a record's fields, by name."""
    hints = typing.get_type_hints(cls)
    is_static = lambda hint: typing.get_origin(hint) is typing.ClassVar
    return {name: hint for name, hint in hints.items() if not is_static(hint)}
