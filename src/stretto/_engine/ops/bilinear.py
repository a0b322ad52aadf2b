"""The bilinear family, and the settings that its products share: precision and accumulation.

A precision names how precisely products and functions are to be computed. On a CPU every precision
gives what the highest gives; the names are for devices that trade digits for speed, and for code
that is written for both.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from stretto._engine.core.config import settings, under
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.primitive import Primitive, leibniz
from stretto._engine.core.types import is_inexact, kind_of, promote, short_name
from stretto._engine.ops.convert import convert, dtype_argument

_ALIASES = {
    "default": 0,
    "fastest": 0,
    "bfloat16": 0,
    "high": 1,
    "bfloat16_3x": 1,
    "tensorfloat32": 1,
    "highest": 2,
    "float32": 2,
}


class Precision(enum.Enum):
    """The precision of a product's factors: also ``"default"``, ``"high"`` or ``"highest"``.

    ``"fastest"`` and ``"bfloat16"`` are ``DEFAULT``, ``"bfloat16_3x"`` and ``"tensorfloat32"`` are
    ``HIGH``, ``"float32"`` is ``HIGHEST``, and None is ``DEFAULT``.

    >>> import stretto as st
    >>> st.lax.Precision("float32"), st.lax.Precision(None)
    (<Precision.HIGHEST: 2>, <Precision.DEFAULT: 0>)
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        name = value.lower() if isinstance(value, str) else None
        if value is not None and name not in _ALIASES:
            return None
        return cls(_ALIASES[name or "default"])

    def __str__(self) -> str:
        return self.name


class DotAlgorithm(NamedTuple):
    """Say how ``dot_general`` may compute: the types of factors and sum, and how many of them.

    Args:
        lhs_precision_type: the dtype that the elements of the first operand are rounded to.
        rhs_precision_type: the dtype that those of the second are rounded to.
        accumulation_type: the dtype of the sum.
        lhs_component_count: how many numbers of that dtype stand for an element of the first.
        rhs_component_count: how many stand for one of the second.
        num_primitive_operations: how many products of these are added up.
        allow_imprecise_accumulation: whether the sum may be less exact than its dtype.

    Source: StableHLO, ``dot_general``.
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Algorithms by name: types of the factors and of the sum, and the number of products.

    >>> import stretto as st, stretto.numpy as snp
    >>> x = snp.ones((2, 2))
    >>> st.lax.dot(x, x, precision=st.lax.DotAlgorithmPreset.F32_F32_F32)
    Array([[2., 2.],
           [2., 2.]], dtype=float32)
    """

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __str__(self) -> str:
        return self.name


_BF16, _F16 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)
_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)


class Algorithm(NamedTuple):
    """A preset that CPUs have: the dtypes of its operands, the first by default, and of its sum."""

    operands: tuple[np.dtype, ...]
    accumulation: np.dtype
    definition: DotAlgorithm


def _preset(operands: tuple[np.dtype, ...], factor: np.dtype, total: np.dtype, n: int) -> Algorithm:
    definition = DotAlgorithm(factor, factor, total, num_primitive_operations=n)
    return Algorithm(operands, total, definition)


ALGORITHMS = {
    "F16_F16_F16": _preset((_F16,), _F16, _F16, 1),
    "BF16_BF16_F32": _preset((_BF16, _F32), _BF16, _F32, 1),
    "BF16_BF16_F32_X3": _preset((_F32,), _BF16, _F32, 3),
    "BF16_BF16_F32_X6": _preset((_F32,), _BF16, _F32, 6),
    "F32_F32_F32": _preset((_F32,), _F32, _F32, 1),
    "F64_F64_F64": _preset((_F64,), _F64, _F64, 1),
}
"""The presets that XLA computes on a CPU."""


def algorithm_name(precision: Any, caller: str) -> str | None:
    """Return the preset requested; None for a ``Precision``, or the device's own choice.

    Raises ``ValueError`` for one that CPUs do not have.
    """
    if isinstance(precision, DotAlgorithm):
        definition = precision._replace(
            lhs_precision_type=np.dtype(precision.lhs_precision_type),
            rhs_precision_type=np.dtype(precision.rhs_precision_type),
            accumulation_type=np.dtype(precision.accumulation_type),
        )
        names = [name for name, a in ALGORITHMS.items() if a.definition == definition]
        name = names[0] if names else repr(precision)
    elif isinstance(precision, DotAlgorithmPreset):
        if precision is DotAlgorithmPreset.DEFAULT:
            return None
        name = precision.name
    elif isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return algorithm_name(DotAlgorithmPreset[precision], caller)
    else:
        return None
    if name not in ALGORITHMS:
        raise ValueError(
            f"{caller}: precision {name} is not one that a CPU computes; there are "
            f"{', '.join(ALGORITHMS)}, and DEFAULT, HIGH and HIGHEST"
        )
    return name


class AccuracyMode(enum.Enum):
    """The accuracy of functions such as ``exp``: the device's best, or its own choice.

    >>> import stretto as st
    >>> st.lax.exp(0.0, accuracy=st.lax.AccuracyMode.HIGHEST)
    Array(1., dtype=float32, weak_type=True)
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """The error allowed of a function: absolute, relative, and in units in the last place.

    Args:
        atol: the absolute error.
        rtol: the relative error.
        ulps: the error in units in the last place.

    Raises:
        ValueError: one of them is negative, or all are 0.

    >>> import stretto as st
    >>> st.lax.exp(0.0, accuracy=st.lax.Tolerance(ulps=2))
    Array(1., dtype=float32, weak_type=True)
    """

    __slots__ = ("atol", "rtol", "ulps")

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> None:
        if min(atol, rtol, ulps) < 0 or not (atol or rtol or ulps):
            raise ValueError(
                f"Tolerance: atol, rtol and ulps must not be negative, nor all zero; got {atol}, "
                f"{rtol} and {ulps}"
            )
        self.atol, self.rtol, self.ulps = atol, rtol, ulps

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


def check_accuracy(caller: str, accuracy: Tolerance | AccuracyMode | None) -> None:
    """Raise ``TypeError`` unless this is an accuracy; a CPU computes each function in one way."""
    if accuracy is not None and not isinstance(accuracy, (Tolerance, AccuracyMode)):
        raise TypeError(
            f"{caller}: accuracy must be None, a Tolerance or an AccuracyMode, got {accuracy!r}"
        )


# The bilinear family


class Bilinear(Primitive, abstract=True):
    """Linear in each of two operands: its derivative is itself, with a tangent for one of them."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """d B(x, y) = B(dx, y) + B(x, dy)."""
        (x, y), (dx, dy) = primals, tangents
        out = self(x, y)
        if not is_inexact(out.dtype):
            return out, None
        first = None if dx is None else self(dx, y)
        if dy is None:
            return out, first
        second = self(x, dy)
        return out, second if first is None else first + second

    def taylor(self, k: int, out: Any, x: Any, y: Any) -> Any:
        return leibniz(self, k, x, y)


@functools.cache
def accumulator(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which sums of this dtype accumulate: float32 for narrower floats."""
    kind = kind_of(dtype)
    if kind == "float" and dtype.itemsize < 4:
        return np.dtype(np.float32)
    return np.dtype(np.int32) if dtype.kind == "V" and kind in ("int", "uint") else dtype


def precision_name(precision: Any, caller: str) -> str | tuple[str, str] | None:
    """Return the name of a precision, or one for each operand; None leaves it to the compiler.

    By default it is ``config.default_matmul_precision``. Raises ``ValueError`` for anything that
    does not name a precision.
    """
    if precision is None:
        precision = settings.key.precision
        if precision is None:
            return None
    if isinstance(precision, (tuple, list)) and len(precision) == 2:
        first, second = (
            "DEFAULT" if one is None else precision_name(one, caller) for one in precision
        )
        return first if first == second else (str(first), str(second))
    try:
        # Other enumerations with these names, such as JAX's, are accepted too.
        return Precision(getattr(precision, "name", precision)).name
    except ValueError:
        raise ValueError(
            f"{caller}: precision must be None, a Precision, 'default', 'high' or 'highest', or a "
            f"pair of these; got {precision!r}"
        ) from None


def precision_config(precision: str | tuple[str, str] | None, platform: str) -> str:
    """Return the attribute for both operands, with a comma in front; empty for None on a CPU.

    GPUs multiply float32 in TF32, with 11 bits of precision, unless they are told not to.
    """
    if precision is None and platform == "cpu":
        return ""
    precision = precision or "HIGHEST"
    if isinstance(precision, str) and precision in ALGORITHMS:
        algorithm = ALGORITHMS[precision].definition
        types = [short_name(np.dtype(t)) for t in algorithm[:3]]
        values = [*types, *algorithm[3:6], str(algorithm[6]).lower()]
        fields = zip(algorithm._fields, values, strict=True)
        return (
            f", algorithm = #stablehlo.dot_algorithm<{', '.join(f'{k} = {v}' for k, v in fields)}>"
        )
    each = (precision, precision) if isinstance(precision, str) else precision
    names = ", ".join(f"#stablehlo<precision {name}>" for name in each)
    return f", precision_config = [{names}]"


def preferred_dtype(preferred: Any, operand: np.dtype, caller: str) -> np.dtype | None:
    """Return the dtype requested for the output; None where it is the operands' own.

    Raises ``TypeError`` if it is of a different kind from theirs, or narrower.
    """
    if preferred is None:
        return None
    dtype = dtype_argument(preferred, caller, "preferred_element_type")
    if dtype == operand:
        return None
    kinds = kind_of(operand), kind_of(dtype)
    same = kinds[0] == kinds[1] or {*kinds} <= {"int", "uint", "bool"}
    if not same or dtype.itemsize < operand.itemsize:
        raise TypeError(
            f"{caller}: preferred_element_type must be of the operands' kind and no narrower: got "
            f"{dtype} for {operand} operands; convert the result with .astype(...)"
        )
    return dtype


def accumulated(
    caller: str, x: Any, y: Any, preferred: Any, product: Callable[[Any, Any, np.dtype | None], Any]
) -> Any:
    """Return ``product(x, y, dtype)`` in the dtype ``preferred``, or in the operands' own.

    Where floats are requested of integers, the operands are converted first. Where narrower floats
    are requested, the result is converted from the dtype in which it accumulated. Raises
    ``TypeError`` for any other change of kind.
    """
    if preferred is None:
        return product(x, y, None)
    dtype, own = dtype_argument(preferred, caller, "preferred_element_type"), x.dtype
    kinds = kind_of(own), kind_of(dtype)
    if is_inexact(dtype) and not is_inexact(own):
        return product(convert(x, dtype), convert(y, dtype), None)
    wide = accumulator(own)
    if kinds == ("float", "float") and (dtype.itemsize < own.itemsize or dtype != own != wide):
        return convert(product(x, y, wide if wide != own else None), dtype)
    return product(x, y, preferred_dtype(dtype, own, caller))


def promote_dtypes_of(*values: Any) -> np.dtype:
    """Return the dtype that these values promote to."""
    return promote([(v.type.dtype, v.type.weak_type) for v in values])[0]


def cotangent_and_known(ct: Any, known: Any) -> tuple[Any, Any]:
    """Return both in one dtype: a cotangent has the dtype in which products accumulated.

    They are promoted even where the user asked for strict promotion: the difference is not theirs.
    """
    if ct.type.dtype is known.type.dtype:
        return ct, known
    dtype = under({"numpy_dtype_promotion": "standard"}, promote_dtypes_of, ct, known)
    return convert(ct, dtype), convert(known, dtype)


def promote_dtypes(caller: str, x: Any, y: Any, preferred: Any = None) -> tuple[Any, Any]:
    """Return both as values of one dtype, each of its own shape.

    Two floats of 8 bits have no dtype in common: they are multiplied in the preferred one.
    """
    x, y = as_value(x, caller, "x"), as_value(y, caller, "y")
    tx, ty = x.type, y.type
    if tx.dtype is ty.dtype and tx.weak_type == ty.weak_type:
        return x, y
    if preferred is not None and all(
        [t.kind == "float" and t.dtype.itemsize == 1 for t in (tx, ty)]
    ):
        dtype = dtype_argument(preferred, caller, "preferred_element_type")
        return convert(x, dtype), convert(y, dtype)
    dtype, weak = promote([(tx.dtype, tx.weak_type), (ty.dtype, ty.weak_type)], caller)
    return convert(x, dtype, weak), convert(y, dtype, weak)
