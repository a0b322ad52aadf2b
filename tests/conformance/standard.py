"""The Python array API standard 2024.12 as data: every function's signature and dtypes.

Source: https://data-apis.org/array-api/2024.12. A signature is written as Python writes one. The
dtypes are the kinds that a function must take; what it does with others is its own affair.
"""

import inspect

BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
REAL_FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
WIDE = ("int64", "uint64", "float64", "complex128")
"""What there is only with `enable_x64`."""

KINDS = {
    "bool": BOOL,
    "integer": SIGNED + UNSIGNED,
    "integer or bool": BOOL + SIGNED + UNSIGNED,
    "real": SIGNED + UNSIGNED + REAL_FLOATS,
    "real float": REAL_FLOATS,
    "complex": COMPLEX,
    "float": REAL_FLOATS + COMPLEX,
    "numeric": SIGNED + UNSIGNED + REAL_FLOATS + COMPLEX,
    "all": BOOL + SIGNED + UNSIGNED + REAL_FLOATS + COMPLEX,
}

PROMOTION = {
    # The standard's tables, one row for each dtype: what it and the dtypes after it give.
    **{(a, b): max(a, b, key=SIGNED.index) for a in SIGNED for b in SIGNED},
    **{(a, b): max(a, b, key=UNSIGNED.index) for a in UNSIGNED for b in UNSIGNED},
    # A signed and an unsigned integer give the least signed one that holds both.
    **{
        (a, b): SIGNED[max(SIGNED.index(a), UNSIGNED.index(b) + 1)]
        for a in SIGNED
        for b in UNSIGNED[:3]
    },
    **{(a, b): "float64" if "float64" in (a, b) else a for a in REAL_FLOATS for b in REAL_FLOATS},
    **{(a, b): "complex128" if "complex128" in (a, b) else a for a in COMPLEX for b in COMPLEX},
    **{
        (a, b): "complex64" if (a, b) == ("complex64", "float32") else "complex128"
        for a in COMPLEX
        for b in REAL_FLOATS
    },
    ("bool", "bool"): "bool",
}
PROMOTION |= {(b, a): out for (a, b), out in PROMOTION.items()}

UNARY, BINARY = "x, /", "x1, x2, /"

ELEMENTWISE = {
    # name: (signature, dtypes, what becomes of the dtype)
    "abs": (UNARY, "numeric", "real"),
    "acos": (UNARY, "float", "same"),
    "acosh": (UNARY, "float", "same"),
    "add": (BINARY, "numeric", "same"),
    "asin": (UNARY, "float", "same"),
    "asinh": (UNARY, "float", "same"),
    "atan": (UNARY, "float", "same"),
    "atan2": (BINARY, "real float", "same"),
    "atanh": (UNARY, "float", "same"),
    "bitwise_and": (BINARY, "integer or bool", "same"),
    "bitwise_invert": (UNARY, "integer or bool", "same"),
    "bitwise_left_shift": (BINARY, "integer", "same"),
    "bitwise_or": (BINARY, "integer or bool", "same"),
    "bitwise_right_shift": (BINARY, "integer", "same"),
    "bitwise_xor": (BINARY, "integer or bool", "same"),
    "ceil": (UNARY, "real", "same"),
    "clip": ("x, /, min=None, max=None", "real", "same"),
    "conj": (UNARY, "numeric", "same"),
    "copysign": (BINARY, "real float", "same"),
    "cos": (UNARY, "float", "same"),
    "cosh": (UNARY, "float", "same"),
    "divide": (BINARY, "float", "same"),
    "equal": (BINARY, "all", "bool"),
    "exp": (UNARY, "float", "same"),
    "expm1": (UNARY, "float", "same"),
    "floor": (UNARY, "real", "same"),
    "floor_divide": (BINARY, "real", "same"),
    "greater": (BINARY, "real", "bool"),
    "greater_equal": (BINARY, "real", "bool"),
    "hypot": (BINARY, "real float", "same"),
    "imag": (UNARY, "complex", "real"),
    "isfinite": (UNARY, "numeric", "bool"),
    "isinf": (UNARY, "numeric", "bool"),
    "isnan": (UNARY, "numeric", "bool"),
    "less": (BINARY, "real", "bool"),
    "less_equal": (BINARY, "real", "bool"),
    "log": (UNARY, "float", "same"),
    "log10": (UNARY, "float", "same"),
    "log1p": (UNARY, "float", "same"),
    "log2": (UNARY, "float", "same"),
    "logaddexp": (BINARY, "real float", "same"),
    "logical_and": (BINARY, "bool", "bool"),
    "logical_not": (UNARY, "bool", "bool"),
    "logical_or": (BINARY, "bool", "bool"),
    "logical_xor": (BINARY, "bool", "bool"),
    "maximum": (BINARY, "real", "same"),
    "minimum": (BINARY, "real", "same"),
    "multiply": (BINARY, "numeric", "same"),
    "negative": (UNARY, "numeric", "same"),
    "nextafter": (BINARY, "real float", "same"),
    "not_equal": (BINARY, "all", "bool"),
    "positive": (UNARY, "numeric", "same"),
    "pow": (BINARY, "numeric", "same"),
    "real": (UNARY, "numeric", "real"),
    "reciprocal": (UNARY, "float", "same"),
    "remainder": (BINARY, "real", "same"),
    "round": (UNARY, "numeric", "same"),
    "sign": (UNARY, "numeric", "same"),
    "signbit": (UNARY, "real float", "bool"),
    "sin": (UNARY, "float", "same"),
    "sinh": (UNARY, "float", "same"),
    "sqrt": (UNARY, "float", "same"),
    "square": (UNARY, "numeric", "same"),
    "subtract": (BINARY, "numeric", "same"),
    "tan": (UNARY, "float", "same"),
    "tanh": (UNARY, "float", "same"),
    "trunc": (UNARY, "real", "same"),
}

OTHERS = {
    # Creation
    "arange": "start, /, stop=None, step=1, *, dtype=None, device=None",
    "asarray": "obj, /, *, dtype=None, device=None, copy=None",
    "empty": "shape, *, dtype=None, device=None",
    "empty_like": "x, /, *, dtype=None, device=None",
    "eye": "n_rows, n_cols=None, /, *, k=0, dtype=None, device=None",
    "from_dlpack": "x, /, *, device=None, copy=None",
    "full": "shape, fill_value, *, dtype=None, device=None",
    "full_like": "x, /, fill_value, *, dtype=None, device=None",
    "linspace": "start, stop, /, num, *, dtype=None, device=None, endpoint=True",
    "meshgrid": "*arrays, indexing='xy'",
    "ones": "shape, *, dtype=None, device=None",
    "ones_like": "x, /, *, dtype=None, device=None",
    "tril": "x, /, *, k=0",
    "triu": "x, /, *, k=0",
    "zeros": "shape, *, dtype=None, device=None",
    "zeros_like": "x, /, *, dtype=None, device=None",
    # Dtypes
    "astype": "x, dtype, /, *, copy=True, device=None",
    "can_cast": "from_, to, /",
    "finfo": "type, /",
    "iinfo": "type, /",
    "isdtype": "dtype, kind",
    "result_type": "*arrays_and_dtypes",
    # Indexing
    "take": "x, indices, /, *, axis=None",
    "take_along_axis": "x, indices, /, *, axis=-1",
    # Inspection
    "__array_namespace_info__": "",
    # Linear algebra
    "matmul": BINARY,
    "matrix_transpose": UNARY,
    "tensordot": "x1, x2, /, *, axes=2",
    "vecdot": "x1, x2, /, *, axis=-1",
    # Manipulation
    "broadcast_arrays": "*arrays",
    "broadcast_to": "x, /, shape",
    "concat": "arrays, /, *, axis=0",
    "expand_dims": "x, /, axis",
    "flip": "x, /, *, axis=None",
    "moveaxis": "x, source, destination, /",
    "permute_dims": "x, /, axes",
    "repeat": "x, repeats, /, *, axis=None",
    "reshape": "x, /, shape, *, copy=None",
    "roll": "x, /, shift, *, axis=None",
    "squeeze": "x, /, axis",
    "stack": "arrays, /, *, axis=0",
    "tile": "x, repetitions, /",
    "unstack": "x, /, *, axis=0",
    # Searching
    "argmax": "x, /, *, axis=None, keepdims=False",
    "argmin": "x, /, *, axis=None, keepdims=False",
    "count_nonzero": "x, /, *, axis=None, keepdims=False",
    "nonzero": UNARY,
    "searchsorted": "x1, x2, /, *, side='left', sorter=None",
    "where": "condition, x1, x2, /",
    # Sets
    "unique_all": UNARY,
    "unique_counts": UNARY,
    "unique_inverse": UNARY,
    "unique_values": UNARY,
    # Sorting
    "argsort": "x, /, *, axis=-1, descending=False, stable=True",
    "sort": "x, /, *, axis=-1, descending=False, stable=True",
    # Statistics
    "cumulative_prod": "x, /, *, axis=None, dtype=None, include_initial=False",
    "cumulative_sum": "x, /, *, axis=None, dtype=None, include_initial=False",
    "max": "x, /, *, axis=None, keepdims=False",
    "mean": "x, /, *, axis=None, keepdims=False",
    "min": "x, /, *, axis=None, keepdims=False",
    "prod": "x, /, *, axis=None, dtype=None, keepdims=False",
    "std": "x, /, *, axis=None, correction=0.0, keepdims=False",
    "sum": "x, /, *, axis=None, dtype=None, keepdims=False",
    "var": "x, /, *, axis=None, correction=0.0, keepdims=False",
    # Utilities
    "all": "x, /, *, axis=None, keepdims=False",
    "any": "x, /, *, axis=None, keepdims=False",
    "diff": "x, /, *, axis=-1, n=1, prepend=None, append=None",
}

LINALG = {
    "linalg.cholesky": "x, /, *, upper=False",
    "linalg.cross": "x1, x2, /, *, axis=-1",
    "linalg.det": UNARY,
    "linalg.diagonal": "x, /, *, offset=0",
    "linalg.eigh": UNARY,
    "linalg.eigvalsh": UNARY,
    "linalg.inv": UNARY,
    "linalg.matmul": BINARY,
    "linalg.matrix_norm": "x, /, *, keepdims=False, ord='fro'",
    "linalg.matrix_power": "x, n, /",
    "linalg.matrix_rank": "x, /, *, rtol=None",
    "linalg.matrix_transpose": UNARY,
    "linalg.outer": BINARY,
    "linalg.pinv": "x, /, *, rtol=None",
    "linalg.qr": "x, /, *, mode='reduced'",
    "linalg.slogdet": UNARY,
    "linalg.solve": BINARY,
    "linalg.svd": "x, /, *, full_matrices=True",
    "linalg.svdvals": UNARY,
    "linalg.tensordot": "x1, x2, /, *, axes=2",
    "linalg.trace": "x, /, *, offset=0, dtype=None",
    "linalg.vecdot": "x1, x2, /, *, axis=-1",
    "linalg.vector_norm": "x, /, *, axis=None, keepdims=False, ord=2",
}

_ONE = "x, /, *, n=None, axis=-1, norm='backward'"
_SEVERAL = "x, /, *, s=None, axes=None, norm='backward'"
FFT = {
    "fft.fft": _ONE,
    "fft.fftfreq": "n, /, *, d=1.0, dtype=None, device=None",
    "fft.fftn": _SEVERAL,
    "fft.fftshift": "x, /, *, axes=None",
    "fft.hfft": _ONE,
    "fft.ifft": _ONE,
    "fft.ifftn": _SEVERAL,
    "fft.ifftshift": "x, /, *, axes=None",
    "fft.ihfft": _ONE,
    "fft.irfft": _ONE,
    "fft.irfftn": _SEVERAL,
    "fft.rfft": _ONE,
    "fft.rfftfreq": "n, /, *, d=1.0, dtype=None, device=None",
    "fft.rfftn": _SEVERAL,
}

FUNCTIONS = {name: row[0] for name, row in ELEMENTWISE.items()} | OTHERS | LINALG | FFT

CONSTANTS = ("e", "inf", "nan", "newaxis", "pi")

ATTRIBUTES = ("dtype", "device", "mT", "ndim", "shape", "size", "T")

METHODS = {
    "__array_namespace__": "*, api_version=None",
    "__bool__": "",
    "__complex__": "",
    "__dlpack__": "*, stream=None, max_version=None, dl_device=None, copy=None",
    "__dlpack_device__": "",
    "__float__": "",
    "__getitem__": "key, /",
    "__index__": "",
    "__int__": "",
    "__setitem__": "key, value, /",
    "to_device": "device, /, *, stream=None",
}

OPERATORS = {
    # symbol: (method, function)
    "+": ("add", "add"),
    "-": ("sub", "subtract"),
    "*": ("mul", "multiply"),
    "/": ("truediv", "divide"),
    "//": ("floordiv", "floor_divide"),
    "%": ("mod", "remainder"),
    "**": ("pow", "pow"),
    "@": ("matmul", "matmul"),
    "&": ("and", "bitwise_and"),
    "|": ("or", "bitwise_or"),
    "^": ("xor", "bitwise_xor"),
    "<<": ("lshift", "bitwise_left_shift"),
    ">>": ("rshift", "bitwise_right_shift"),
    "<": ("lt", "less"),
    "<=": ("le", "less_equal"),
    ">": ("gt", "greater"),
    ">=": ("ge", "greater_equal"),
    "==": ("eq", "equal"),
    "!=": ("ne", "not_equal"),
}
UNARY_OPERATORS = {"abs": "abs", "invert": "bitwise_invert", "neg": "negative", "pos": "positive"}

FINFO = ("bits", "eps", "max", "min", "smallest_normal", "dtype")
IINFO = ("bits", "max", "min", "dtype")


def signature_of(text: str) -> inspect.Signature:
    """The signature that is written so."""
    return inspect.signature(eval(f"lambda {text}: None"))
