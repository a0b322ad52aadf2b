"""``jax._src.ad_util``, as far as libraries use it."""

from stretto.compat.jax.jaxprs.ad import (
    SymbolicZero,
    Zero,
    add_jaxvals,
    add_jaxvals_p,
    zeros_like_aval,
)
from stretto.compat.jax.jaxprs.ad import (
    instantiate_zeros as instantiate,
)
from stretto.compat.jax.jaxprs.tables.named import primitive_of

__all__ = [
    "SymbolicZero",
    "Zero",
    "add_jaxvals",
    "add_jaxvals_p",
    "instantiate",
    "stop_gradient_p",
    "zeros_like_aval",
]

stop_gradient_p = primitive_of("stop_gradient")
