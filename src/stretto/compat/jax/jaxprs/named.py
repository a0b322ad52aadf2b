"""Every primitive that ``jax.extend.core.primitives`` names, and those of ``jax.lax``.

One without a counterpart here is there to be compared with, and says so when it is applied.
"""

from __future__ import annotations

from typing import Any, NoReturn

from stretto.compat.jax.jaxprs import arrays, control  # noqa: F401 (which have most of them)
from stretto.compat.jax.jaxprs.primitive import (
    CallPrimitive,
    KnownPrimitive,
    Primitive,
    find_primitive,
    known,
)

__all__ = ["NAMES", "primitive_of"]

NAMES = [
    "abs",
    "acos",
    "acosh",
    "add",
    "add_jaxvals",
    "after_all",
    "all_gather",
    "all_to_all",
    "and",
    "approx_top_k",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "atan2",
    "atan",
    "atanh",
    "axis_index",
    "bessel_i0e",
    "bessel_i1e",
    "bitcast_convert_type",
    "broadcast_in_dim",
    "call",
    "cbrt",
    "ceil",
    "cholesky",
    "clamp",
    "closed_call",
    "clz",
    "complex",
    "concatenate",
    "cond",
    "conj",
    "conv_general_dilated",
    "convert_element_type",
    "copy",
    "cos",
    "cosh",
    "create_token",
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "custom_jvp_call",
    "custom_lin",
    "custom_vjp_call",
    "device_put",
    "digamma",
    "div",
    "dot_general",
    "dynamic_slice",
    "dynamic_update_slice",
    "eig",
    "eigh",
    "empty2",
    "eq",
    "eq_to",
    "erf_inv",
    "erf",
    "erfc",
    "exp2",
    "exp",
    "expm1",
    "fft",
    "floor",
    "gather",
    "ge",
    "get",
    "gt",
    "hessenberg",
    "householder_product",
    "igamma_grad_a",
    "igamma",
    "igammac",
    "imag",
    "integer_pow",
    "iota",
    "is_finite",
    "jit",
    "le",
    "le_to",
    "lgamma",
    "linear_solve",
    "log1p",
    "log",
    "logistic",
    "lt",
    "lt_to",
    "lu",
    "max",
    "min",
    "mul",
    "name",
    "ne",
    "neg",
    "nextafter",
    "not",
    "or",
    "pad",
    "pmax",
    "pmin",
    "polygamma",
    "population_count",
    "pow",
    "ppermute",
    "psum",
    "qr",
    "ragged_all_to_all",
    "random_bits",
    "random_fold_in",
    "random_gamma",
    "random_seed",
    "random_split",
    "real",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce",
    "reduce_precision",
    "reduce_prod",
    "reduce_sum",
    "reduce_window_max",
    "reduce_window_min",
    "reduce_window",
    "reduce_window_sum",
    "reduce_xor",
    "regularized_incomplete_beta",
    "rem",
    "remat",
    "reshape",
    "rev",
    "rng_bit_generator",
    "rng_uniform",
    "round",
    "rsqrt",
    "scan",
    "scatter_add",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter",
    "schur",
    "select_and_gather_add",
    "select_and_scatter_add",
    "select_and_scatter",
    "select_n",
    "sharding_constraint",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "sin",
    "sinh",
    "slice",
    "sort",
    "sqrt",
    "square",
    "squeeze",
    "stop_gradient",
    "sub",
    "svd",
    "swap",
    "tan",
    "tanh",
    "threefry2x32",
    "top_k",
    "transpose",
    "triangular_solve",
    "tridiagonal",
    "tridiagonal_solve",
    "while",
    "xor",
    "zeta",
]
"""Their names, without the ``_p`` at the end."""

_OTHERWISE = {
    "add_jaxvals": "add_any",
    "linear_solve": "custom_linear_solve",
    "remat": "remat2",
    "scatter_add": "scatter-add",
    "scatter_max": "scatter-max",
    "scatter_min": "scatter-min",
    "scatter_mul": "scatter-mul",
    "scatter_sub": "scatter-sub",
}
"""The names of primitives in programs that are not those of the objects."""

_CALLS = {"call", "closed_call"}


def _absent(name: str) -> Primitive:
    def build(params: dict[str, Any], types: Any) -> NoReturn:
        raise NotImplementedError(
            f"{name}: Stretto has no such operation, so its programs never contain it, and it "
            f"cannot be applied: call the function of jax.numpy or jax.lax that means it"
        )

    return CallPrimitive(name) if name in _CALLS else KnownPrimitive(name, build)


def primitive_of(name: str) -> Primitive:
    """Return the primitive that JAX calls ``<name>_p``.

    Raises:
        AttributeError: there is none.
    """
    called = _OTHERWISE.get(name, name)
    found = find_primitive(called)
    if found is None and name in NAMES:
        found = known(called, lambda: _absent(called))
    if found is None:
        raise AttributeError(f"no primitive is called {name}_p")
    return found
