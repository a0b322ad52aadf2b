"""``jax.experimental.hijax``."""

from stretto.compat.jax.avals import AbstractRef, AbstractValue, ShapedArray
from stretto.compat.jax.hijax import (
    AvalMutableQDD,
    AvalQDD,
    HiPrimitive,
    HiPspec,
    HiType,
    MutableHiType,
    VJPHiPrimitive,
    aval_method,
    aval_property,
    control_flow_allowed_effects,
    register_hitype,
)
from stretto.compat.jax.presented._src.ad_util import Zero
from stretto.compat.jax.presented._src.state import TransformedRef
from stretto.compat.jax.presented.interpreters.ad import instantiate_zeros, is_undefined_primal

__all__ = [
    "AbstractRef",
    "AbstractValue",
    "AvalMutableQDD",
    "AvalQDD",
    "HiPrimitive",
    "HiPspec",
    "HiType",
    "MutableHiType",
    "ShapedArray",
    "TransformedRef",
    "VJPHiPrimitive",
    "Zero",
    "aval_method",
    "aval_property",
    "control_flow_allowed_effects",
    "instantiate_zeros",
    "is_undefined_primal",
    "register_hitype",
]
