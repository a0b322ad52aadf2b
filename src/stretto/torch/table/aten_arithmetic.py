"""Element by element: arithmetic, comparison, bits, calculus, activations; and softmaxes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import stretto.numpy as snp
from stretto import lax, special
from stretto.nn import functional as F
from stretto.torch import slopes


def _divided(x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode == "floor":
        return snp.floor_divide(x, y)
    if rounding_mode is None:
        return snp.true_divide(x, y)
    dtype = snp.result_type(x, y)
    if dtype.kind in "iub":
        quotient, rest = snp.divmod(x, y)
        return quotient + ((rest != 0) & ((snp.asarray(x) < 0) != (snp.asarray(y) < 0)))
    return snp.trunc(snp.true_divide(x, y))


def _clamped(x: Any, min: Any = None, max: Any = None) -> Any:
    """Apply the lower bound first, so that the upper one holds where they cross.

    At a bound the derivative is that of ``x``; NaN stays, without one, as in PyTorch.
    """
    still = lax.stop_gradient(x)
    if min is not None:
        x, still = snp.where(x >= min, x, snp.maximum(still, min)), snp.maximum(still, min)
    return x if max is None else snp.where(still <= max, x, snp.minimum(lax.stop_gradient(x), max))


def _logit(x: Any, eps: float | None = None) -> Any:
    if eps is not None:
        x = _clamped(x, eps, 1 - eps)
    return slopes.logit(x)


def _without_nan(
    x: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Any:
    return snp.nan_to_num(x, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


def _sign(x: Any) -> Any:
    return x if x.dtype == bool else snp.sign(x)


def _fill(x: Any, value: Any) -> Any:
    return snp.broadcast_to(snp.asarray(value, dtype=x.dtype), x.shape)


_OF_ONE: dict[str, Callable[..., Any]] = {
    "abs": snp.abs,
    "acos": snp.arccos,
    "acosh": snp.arccosh,
    "alias": lambda x: x,
    "angle": slopes.angle,
    "asin": snp.arcsin,
    "asinh": snp.arcsinh,
    "atan": snp.arctan,
    "atanh": snp.arctanh,
    "bitwise_not": snp.invert,
    "ceil": snp.ceil,
    "conj": snp.conj,
    "_conj": snp.conj,
    "_conj_physical": snp.conj,
    "conj_physical": snp.conj,
    "cos": snp.cos,
    "cosh": snp.cosh,
    "deg2rad": snp.deg2rad,
    "detach": lax.stop_gradient,
    "digamma": special.digamma,
    "erf": special.erf,
    "erfc": special.erfc,
    "erfinv": special.erfinv,
    "exp": snp.exp,
    "exp2": snp.exp2,
    "expm1": snp.expm1,
    "floor": snp.floor,
    "frac": lambda x: x - snp.trunc(x),
    "i0": special.i0,
    "imag": snp.imag,
    "isinf": snp.isinf,
    "isnan": snp.isnan,
    "isneginf": snp.isneginf,
    "isposinf": snp.isposinf,
    "lgamma": special.gammaln,
    "log": snp.log,
    "log10": snp.log10,
    "log1p": snp.log1p,
    "log2": snp.log2,
    "logical_not": snp.logical_not,
    "logit": _logit,
    "nan_to_num": _without_nan,
    "neg": snp.negative,
    "rad2deg": snp.rad2deg,
    "real": snp.real,
    "reciprocal": snp.reciprocal,
    "round": snp.round,
    "rsqrt": lambda x: 1 / snp.sqrt(x) if x.dtype.kind != "f" else lax.rsqrt(x),
    "sgn": _sign,
    "sigmoid": special.expit,
    "sign": _sign,
    "signbit": snp.signbit,
    "sin": snp.sin,
    "sinc": snp.sinc,
    "sinh": snp.sinh,
    "special_entr": slopes.entropy,
    "special_erfcx": special.erfcx,
    "special_i0e": special.i0e,
    "special_i1": special.i1,
    "special_i1e": special.i1e,
    "special_log_ndtr": special.log_ndtr,
    "special_ndtri": special.ndtri,
    "sqrt": snp.sqrt,
    "tan": snp.tan,
    "tanh": snp.tanh,
    "trunc": snp.trunc,
    "view_as_complex": lambda x: lax.complex(x[..., 0], x[..., 1]),
    "view_as_real": lambda x: snp.stack([snp.real(x), snp.imag(x)], -1),
}
"""Functions of one tensor, and numbers."""

_OF_TWO: dict[str, Callable[..., Any]] = {
    "atan2": slopes.arctan2,
    "complex": lax.complex,
    "copysign": snp.copysign,
    "fmax": slopes.fmax,
    "fmin": slopes.fmin,
    "gcd": snp.gcd,
    "heaviside": snp.heaviside,
    "hypot": snp.hypot,
    "igamma": special.gammainc,
    "igammac": special.gammaincc,
    "lcm": snp.lcm,
    "logaddexp": slopes.log_of_sum,
    "logaddexp2": snp.logaddexp2,
    "logical_and": snp.logical_and,
    "logical_or": snp.logical_or,
    "logical_xor": snp.logical_xor,
    "maximum": snp.maximum,
    "minimum": snp.minimum,
    "nextafter": snp.nextafter,
    "polar": lambda r, phi: lax.complex(r * snp.cos(phi), r * snp.sin(phi)),
    "special_xlog1py": slopes.xlog1py,
    "special_zeta": special.zeta,
    "xlogy": slopes.xlogy,
}
"""Functions of two tensors."""

_OF_TENSOR_OR_NUMBER: dict[str, Callable[..., Any]] = {
    "add": lambda x, y, alpha=1: snp.add(x, y if alpha == 1 else snp.multiply(alpha, y)),
    "bitwise_and": snp.bitwise_and,
    "bitwise_left_shift": snp.left_shift,
    "bitwise_or": snp.bitwise_or,
    "bitwise_right_shift": snp.right_shift,
    "bitwise_xor": snp.bitwise_xor,
    "copysign": snp.copysign,
    "div": _divided,
    "eq": snp.equal,
    "fmod": snp.fmod,
    "ge": snp.greater_equal,
    "gt": snp.greater,
    "le": snp.less_equal,
    "lt": snp.less,
    "mul": snp.multiply,
    "ne": snp.not_equal,
    "remainder": slopes.remainder,
    "rsub": lambda x, y, alpha=1: snp.subtract(y, snp.multiply(alpha, x)),
    "sub": lambda x, y, alpha=1: snp.subtract(x, y if alpha == 1 else snp.multiply(alpha, y)),
}
"""Functions of a tensor, and a tensor or a number."""


def _softmax(function: Callable[..., Any]) -> Callable[..., Any]:
    """PyTorch's third argument is a dtype, or whether to compute in float32."""

    def softmax(x: Any, dim: int, dtype: Any = None) -> Any:
        if isinstance(dtype, bool):
            dtype = snp.float32 if dtype else None
        x = x if dtype is None else x.astype(dtype)
        return function(x, dim) if x.ndim else function(x[None], 0)[0]

    return softmax


def _safe_softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    """Return the softmax, and 0 along lines of nothing but -inf."""
    x = x if dtype is None else x.astype(dtype)
    nothing = snp.all(x == -snp.inf, dim, keepdims=True)
    return snp.where(nothing, 0, F.softmax(snp.where(nothing, 0, x), dim))


def _elu(x: Any, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    negative = snp.expm1(snp.where(x > 0, 0, x) * input_scale) * (alpha * scale)
    return snp.where(x > 0, x * scale, negative)


def _prelu(x: Any, weight: Any) -> Any:
    """The weight is of one element, or of as many as the input has along axis 1."""
    if weight.size > 1:
        weight = weight.reshape([-1 if axis == 1 else 1 for axis in range(max(x.ndim, 2))])
        weight = weight.reshape(weight.shape[-x.ndim :])
    return snp.where(x > 0, x, weight * x)


TABLE: dict[str, Callable[..., Any]] = {
    **{f"aten.{name}.default": function for name, function in {**_OF_ONE, **_OF_TWO}.items()},
    **{
        f"aten.{name}.{kind}": function
        for name, function in _OF_TENSOR_OR_NUMBER.items()
        for kind in ("Tensor", "Scalar")
    },
    "aten.addcdiv.default": lambda x, a, b, value=1: x + value * (a / b),
    "aten.addcmul.default": lambda x, a, b, value=1: x + value * (a * b),
    "aten.clamp.default": _clamped,
    "aten.clamp.Tensor": _clamped,
    "aten.clamp_max.default": lambda x, max: _clamped(x, None, max),
    "aten.clamp_max.Tensor": lambda x, max: _clamped(x, None, max),
    "aten.clamp_min.default": _clamped,
    "aten.clamp_min.Tensor": _clamped,
    "aten.clone.default": lambda x, memory_format=None: x,
    "aten.copy.default": lambda x, y, non_blocking=False: snp.broadcast_to(y, x.shape),
    "aten.div.Scalar_mode": _divided,
    "aten.div.Tensor_mode": _divided,
    "aten.fill.Scalar": _fill,
    "aten.fill.Tensor": _fill,
    "aten.floor_divide.default": snp.floor_divide,
    "aten.lerp.Scalar": lambda x, y, weight: x + weight * (y - x),
    "aten.lerp.Tensor": lambda x, y, weight: x + weight * (y - x),
    "aten.lift_fresh.default": lambda x: x,
    "aten.lift_fresh_copy.default": lambda x: x,
    "aten.mvlgamma.default": special.multigammaln,
    "aten.polygamma.default": special.polygamma,
    "aten.pow.Scalar": snp.power,
    "aten.pow.Tensor_Scalar": snp.power,
    "aten.pow.Tensor_Tensor": snp.power,
    "aten.round.decimals": lambda x, *, decimals=0: snp.round(x, decimals),
    "aten._to_copy.default": lambda x, *, dtype=None, **_: x if dtype is None else x.astype(dtype),
    "aten.remainder.Scalar_Tensor": slopes.remainder,
    "aten.xlogy.Scalar_Other": slopes.xlogy,
    "aten.xlogy.Scalar_Self": slopes.xlogy,
    "aten.xlogy.Tensor": slopes.xlogy,
    "aten.celu.default": F.celu,
    "aten.elu.default": _elu,
    "aten.gelu.default": lambda x, *, approximate="none": F.gelu(x, approximate),
    "aten.glu.default": F.glu,
    "aten.hardsigmoid.default": F.hardsigmoid,
    "aten.hardswish.default": F.hardswish,
    "aten.hardtanh.default": F.hardtanh,
    "aten.leaky_relu.default": F.leaky_relu,
    "aten.log_sigmoid_forward.default": lambda x: (F.logsigmoid(x), snp.exp(-snp.abs(x))),
    "aten.log_softmax.int": _softmax(F.log_softmax),
    "aten._log_softmax.default": _softmax(F.log_softmax),
    "aten.mish.default": F.mish,
    "aten.prelu.default": _prelu,
    "aten._prelu_kernel.default": lambda x, weight: snp.where(x > 0, x, weight * x),
    "aten.relu.default": F.relu,
    "aten.relu6.default": F.relu6,
    "aten.selu.default": F.selu,
    "aten.silu.default": F.silu,
    "aten.softmax.int": _softmax(F.softmax),
    "aten._softmax.default": _softmax(F.softmax),
    "aten._safe_softmax.default": _safe_softmax,
    "aten.softplus.default": F.softplus,
    "aten.softshrink.default": F.softshrink,
    "aten.hardshrink.default": F.hardshrink,
    "aten.threshold.default": F.threshold,
}
