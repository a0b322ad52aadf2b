"""For which dtypes onnxruntime has a kernel of each operator that is written.

The standard allows more: of the operators here most have no kernel for bfloat16, some none for
float64 or for narrow integers. What has none is computed in a dtype that holds all its values.
Measured with onnxruntime 1.32 on CPUs, operator by operator.
"""

from __future__ import annotations

import numpy as np
from ml_dtypes import bfloat16

_CODES = {
    "d": np.dtype(np.float64),
    "f": np.dtype(np.float32),
    "e": np.dtype(np.float16),
    "b": np.dtype(bfloat16),
    "l": np.dtype(np.int64),
    "i": np.dtype(np.int32),
    "h": np.dtype(np.int16),
    "c": np.dtype(np.int8),
    "L": np.dtype(np.uint64),
    "I": np.dtype(np.uint32),
    "H": np.dtype(np.uint16),
    "C": np.dtype(np.uint8),
    "?": np.dtype(bool),
}

_FLOATS = "dfe"
_NARROW = "fe"
_INTEGERS = "lihcLIHC"
_ALL = "dfeblihcLIHC?"

_TABLE = {
    **dict.fromkeys(("Abs", "Sign"), _FLOATS + _INTEGERS),
    "Neg": _FLOATS + "lihc",
    **dict.fromkeys(
        ("Floor", "Ceil", "Round", "Exp", "Log", "Sqrt", "Reciprocal", "Sigmoid", "Tanh"), _FLOATS
    ),
    **dict.fromkeys(("Sin", "Cos"), _FLOATS),
    **dict.fromkeys(
        ("Erf", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh"), _NARROW
    ),
    "Relu": _FLOATS + "ic",
    **dict.fromkeys(("Gelu", "HardSwish", "Softplus"), _NARROW),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Mod"), _FLOATS + _INTEGERS),
    **dict.fromkeys(("Max", "Min"), _FLOATS + "licLIC"),
    "Pow": _FLOATS + "li",
    "Clip": _FLOATS + "licLIC",
    "Equal": _FLOATS + _INTEGERS + "?",
    **dict.fromkeys(("Less", "Greater", "LessOrEqual", "GreaterOrEqual"), _FLOATS + _INTEGERS),
    **dict.fromkeys(("And", "Or", "Xor", "Not"), "?"),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"), _INTEGERS),
    "BitShift": "LIHC",
    **dict.fromkeys(("IsNaN", "IsInf"), _FLOATS + "b"),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _FLOATS),
    **dict.fromkeys(
        ("ReduceSum", "ReduceProd", "ReduceMean", "ReduceSumSquare", "CumSum"), _FLOATS + "li"
    ),
    **dict.fromkeys(("ReduceMax", "ReduceMin"), _FLOATS + "licC?"),
    **dict.fromkeys(("ArgMax", "ArgMin"), _FLOATS + "licC"),
    "CumProd": _FLOATS + "liLI",
    "TopK": _FLOATS + "lihcC",
    "Where": _FLOATS + "licIC",
    "MatMul": _FLOATS + "liLI",
    "Gemm": _FLOATS,
    **dict.fromkeys(("Conv", "ConvTranspose", "AveragePool"), _NARROW),
    "MaxPool": _FLOATS + "cC",
    "Expand": "dfelihcLIHC?",
    "Pad": "dfelicLIC?",
    "Det": _NARROW,
    "DFT": _FLOATS,
    "LayerNormalization": _FLOATS,
}
"""Operators that are not here have a kernel for each dtype."""

KERNELS = {op: frozenset([_CODES[c] for c in codes]) for op, codes in _TABLE.items()}

_WIDER = {
    "b": "fd",
    "e": "fd",
    "f": "d",
    "d": "f",
    "?": "Cil",
    "c": "hil",
    "h": "il",
    "i": "l",
    "C": "HILil",
    "H": "IiLl",
    "I": "lL",
    "L": "l",
    "l": "",
}
"""The dtypes, in order, that stand in for another. Those of the last resort keep fewer bits, or
other values of the same bits: float32 for float64, int64 for uint64."""

_LOSES = {("d", "f"), ("L", "l")}


def stand_in(op: str, dtype: np.dtype) -> np.dtype | None:
    """Return the dtype to compute an operator in; None where only one that loses digits is left."""
    having = KERNELS.get(op)
    if having is None or dtype in having:
        return dtype
    code = next(c for c, known in _CODES.items() if known == dtype)
    for other in _WIDER[code]:
        if _CODES[other] in having:
            return None if (code, other) in _LOSES else _CODES[other]
    return None
