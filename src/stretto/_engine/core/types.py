"""Array types (shape, dtype, weak type), how they promote, and whether their ranks may differ.

Promotion follows the lattice of JAX's type promotion semantics: Python scalars are weak and take
the dtype of what they meet; other types go to their least upper bound.

``config.numpy_rank_promotion`` says whether arrays of different ranks may broadcast. The functions
of ``ops/broadcast`` check their arguments by ``check_ranks``. Fast paths that skip the check are
taken only where ``differ`` says that there is nothing to report.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from stretto._engine.core.config import config, settings
from stretto._engine.core.errors import TypePromotionError
from stretto._engine.core.position import user_stack_level
from stretto._engine.core.sizes import Size, at_least

float0 = np.dtype([("float0", np.void, 0)])
"""The dtype of the tangent of an integer or boolean: no information."""

_SMALL_FLOATS = tuple(
    np.dtype(getattr(ml_dtypes, name))
    for name in (
        "float4_e2m1fn",
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
    )
)
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_INT4 = tuple(np.dtype(getattr(ml_dtypes, name)) for name in ("int2", "uint2", "int4", "uint4"))

_KINDS = {
    **dict.fromkeys((*_SMALL_FLOATS, _BFLOAT16), "float"),
    **{dtype: "uint" if dtype.name.startswith("u") else "int" for dtype in _INT4},
    np.dtype(bool): "bool",
    **{np.dtype(f"i{n}"): "int" for n in (1, 2, 4, 8)},
    **{np.dtype(f"u{n}"): "uint" for n in (1, 2, 4, 8)},
    **{np.dtype(f"f{n}"): "float" for n in (2, 4, 8)},
    **{np.dtype(f"c{n}"): "complex" for n in (8, 16)},
}

DTYPES = {dtype.name: dtype for dtype in _KINDS}
"""The dtypes of arrays, by name."""


def is_packed(dtype: np.dtype) -> bool:
    """Say whether several elements lie in a byte.

    >>> is_packed(np.dtype(ml_dtypes.int4))
    True
    """
    return dtype in _INT4


def kind_of(dtype: np.dtype) -> str:
    """Return one of ``bool``, ``int``, ``uint``, ``float``, ``complex``."""
    try:
        return _KINDS[dtype]
    except KeyError:
        raise TypeError(
            f"dtype {dtype} is not one of the numeric types of arrays: "
            f"{', '.join(sorted(d.name for d in _KINDS))}"
        ) from None


def is_float0(x: Any) -> bool:
    """Say whether this is the tangent of an integer or a boolean."""
    return getattr(x, "dtype", None) == float0


def is_inexact(dtype: np.dtype) -> bool:
    """Say whether the dtype is floating or complex: what derivatives are taken of."""
    return _KINDS.get(dtype) in ("float", "complex")


def is_complex(dtype: np.dtype) -> bool:
    """Say whether the dtype is complex."""
    return dtype.kind == "c"


def real_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of the real part: of half the width where the dtype is complex."""
    return np.dtype(f"f{dtype.itemsize // 2}") if is_complex(dtype) else dtype


@functools.cache
def short_name(dtype: np.dtype) -> str:
    """Return the dtype as programs print it: ``f32``, ``i8``, ``bf16``, ``c64``, ``bool``."""
    if dtype == _BFLOAT16:
        return "bf16"
    if dtype in _SMALL_FLOATS:
        return dtype.name.replace("float", "f")
    kind = kind_of(dtype)
    if kind == "bool":
        return "bool"
    return (
        dtype.name.replace("uint", "u")
        .replace("int", "i")
        .replace("float", "f")
        .replace("complex", "c")
    )


class ArrayType:
    """Shape, dtype and weakness of a value; equal types are one object, so ``is`` compares them.

    Make one with ``array_type``. A weak type is that of a Python scalar: it gives way to the dtype
    of what it meets.
    """

    __slots__ = ("dtype", "kind", "ndim", "shape", "size", "varies", "weak_type")

    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool
    kind: str
    ndim: int
    size: int
    varies: bool
    """Says whether the size of an axis is known only while a program runs."""

    def __repr__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"

    def short(self) -> str:
        """Return the type as programs print it: ``f32[2,3]``, with ``*`` after a weak dtype."""
        star = "*" if self.weak_type else ""
        return f"{short_name(self.dtype)}{star}[{','.join(map(str, self.shape))}]"

    def with_shape(self, shape: tuple[int, ...]) -> ArrayType:
        """Return the same dtype and weakness, another shape."""
        return array_type(shape, self.dtype, self.weak_type)

    @property
    def least(self) -> ArrayType:
        """The type with the least that each size can be, for estimates of work."""
        if not self.varies:
            return self
        return self.with_shape(tuple([at_least(n) for n in self.shape]))

    def __reduce__(self) -> tuple[Any, ...]:
        return array_type, (self.shape, self.dtype, self.weak_type)


_INTERNED: dict[tuple[tuple[int, ...], np.dtype, bool], ArrayType] = {}


def array_type(shape: tuple[int, ...], dtype: np.dtype, weak_type: bool = False) -> ArrayType:
    """Return the one ``ArrayType`` with this shape, dtype and weakness."""
    key = (shape, dtype, weak_type)
    existing = _INTERNED.get(key)
    if existing is not None:
        return existing
    new = ArrayType()
    new.shape = tuple([n if n.__class__ is Size else int(n) for n in shape])
    new.dtype, new.weak_type = dtype, weak_type
    new.kind = "float0" if dtype == float0 else kind_of(dtype)
    new.ndim = len(shape)
    new.varies = any([n.__class__ is Size for n in new.shape])
    new.size = 1
    for n in new.shape:
        new.size *= n
    return _INTERNED.setdefault((new.shape, dtype, weak_type), new)


# 64 bits or 32

_NARROW = {np.dtype(f"{kind}{n}"): np.dtype(f"{kind}{n // 2}") for kind, n in
           (("i", 8), ("u", 8), ("f", 8), ("c", 16))}  # fmt: skip


def canonical_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype as stored: 64-bit types become 32-bit ones without ``config.enable_x64``."""
    narrow = _NARROW.get(dtype)
    return dtype if narrow is None or config.enable_x64 else narrow


def named_dtype(dtype: Any) -> np.dtype:
    """Return NumPy's dtype for this type, name or scalar class; ``TypeError`` if there is none."""
    try:
        return np.dtype(dtype)
    except TypeError:
        module, _, name = str(dtype).partition(".")
        if module == "torch":
            raise TypeError(f"expected a dtype, got {dtype}; use snp.{name}") from None
        if isinstance(dtype, int):
            raise TypeError(
                f"expected a dtype such as 'float32', got {dtype}; a shape is one argument, as in "
                f"snp.zeros((2, 3))"
            ) from None
        raise
    except Exception as error:  # NumPy parses strings as lists of fields, and may raise anything
        raise TypeError(f"expected a dtype such as 'float32', got {dtype!r}") from error


def as_dtype(dtype: Any) -> np.dtype:
    """Return the canonical dtype that a user asked for, by type, name or scalar class.

    Asking for 64 bits while ``enable_x64`` is off gives 32, with one warning for each place.
    """
    if isinstance(dtype, type) and dtype in _DEFAULTS:
        return scalar_dtype(dtype)
    requested = named_dtype(dtype)
    kind_of(requested)
    stored = canonical_dtype(requested)
    if stored is not requested:
        warnings.warn(
            f"dtype {requested} was asked for, but 64-bit types are off, so this is {stored}; "
            f"set stretto.config.enable_x64 = True, or use `with stretto.enable_x64():`",
            stacklevel=user_stack_level(),
        )
    return stored


_DEFAULTS = {
    bool: (np.dtype(bool),) * 2,
    int: (np.dtype(np.int32), np.dtype(np.int64)),
    float: (np.dtype(np.float32), np.dtype(np.float64)),
    complex: (np.dtype(np.complex64), np.dtype(np.complex128)),
}


_PYTHON_TYPES = {"bool": bool, "int": int, "uint": int, "float": float, "complex": complex}


def scalar_dtype(python_type: type) -> np.dtype:
    """Return the dtype of a Python ``bool``, ``int``, ``float`` or ``complex``."""
    return _DEFAULTS[python_type][config.enable_x64]


def default_dtype(kind: str) -> np.dtype:
    """Return a kind's default dtype: ``int32``, ``float32``, or 64 bits with ``enable_x64``."""
    return scalar_dtype(_PYTHON_TYPES[kind])


def inexact_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype that functions such as ``sin`` compute in: for integers the default."""
    return dtype if is_inexact(dtype) else scalar_dtype(float)


# Promotion


class _Node(NamedTuple):
    dtype: np.dtype | None
    weak: str = ""


def _bounds(above: dict[_Node, list[_Node]]) -> dict[_Node, frozenset[_Node]]:
    """Return every node's upper bounds, itself among them, of the nodes just above each."""

    @functools.cache
    def bounds(n: _Node) -> frozenset[_Node]:
        return frozenset({n}).union(*(bounds(m) for m in above[n]))

    return {n: bounds(n) for n in above}


def _lattice() -> dict[_Node, frozenset[_Node]]:
    """Return the upper bounds in the usual promotion."""
    node = {name: _Node(np.dtype(name)) for name in ("bool", "i1", "i2", "i4", "i8", "u1", "u2",
            "u4", "u8", "f2", "f4", "f8", "c8", "c16")}  # fmt: skip
    bf = _Node(_BFLOAT16)
    i, f, c = (_Node(None, kind) for kind in ("int", "float", "complex"))
    narrow_floats = [_Node(dtype) for dtype in _SMALL_FLOATS]
    narrow_ints = [_Node(dtype) for dtype in _INT4]
    above: dict[_Node, list[_Node]] = {
        node["bool"]: [i],
        i: [node["u1"], node["i1"], *narrow_ints],
        node["u1"]: [node["u2"], node["i2"]],
        node["u2"]: [node["u4"], node["i4"]],
        node["u4"]: [node["u8"], node["i8"]],
        node["u8"]: [f],
        node["i1"]: [node["i2"]],
        node["i2"]: [node["i4"]],
        node["i4"]: [node["i8"]],
        node["i8"]: [f],
        f: [bf, node["f2"], c, *narrow_floats],
        bf: [node["f4"]],
        node["f2"]: [node["f4"]],
        node["f4"]: [node["f8"], node["c8"]],
        node["f8"]: [node["c16"]],
        c: [node["c8"]],
        node["c8"]: [node["c16"]],
        node["c16"]: [],
        **{n: [] for n in (*narrow_floats, *narrow_ints)},
    }
    return _bounds(above)


_BOUNDS = _lattice()


@functools.cache
def _strict_lattice() -> dict[_Node, frozenset[_Node]]:
    """Return the upper bounds in the strict one: only what is weak goes anywhere.

    A weak int becomes any int, or a weak float; a weak float any float, or a weak complex.
    """
    strong = [n for n in _BOUNDS if n.dtype is not None]
    kinds = ("int", "float", "complex")
    above: dict[_Node, list[_Node]] = {n: [] for n in strong}
    for kind, next_kind in zip(kinds, (*kinds[1:], None), strict=True):
        own = [n for n in strong if n.dtype is not None and kind_of(n.dtype).lstrip("u") == kind]
        above[_Node(None, kind)] = [*own, *([_Node(None, next_kind)] if next_kind else [])]
    return _bounds(above)


def promote(
    types: Iterable[tuple[np.dtype, bool]], caller: str = "promotion"
) -> tuple[np.dtype, bool]:
    """Return the dtype and weakness of what values with these dtypes and weaknesses combine to.

    Raises ``TypePromotionError`` where two dtypes have no common type (float8 kinds, int4 with
    others) and, under ``numpy_dtype_promotion="strict"``, where they differ otherwise than by
    weakness, or a weak one is of a higher kind than the other.
    """
    key = tuple(dict.fromkeys(types))
    if len(key) == 1:
        return key[0]
    return _promote(key, caller, settings.key)


@functools.lru_cache(4096)
def _promote(
    key: tuple[tuple[np.dtype, bool], ...], caller: str, _: object
) -> tuple[np.dtype, bool]:
    strict = config.numpy_dtype_promotion == "strict"
    bounds = _strict_lattice() if strict else _BOUNDS
    all_weak = all(weak for _, weak in key)
    nodes = {
        _Node(None, k)
        if weak and (strict or not all_weak) and (k := kind_of(d).lstrip("u")) != "bool"
        else _Node(d)
        for d, weak in key
    }
    common = frozenset.intersection(*(bounds[n] for n in nodes))
    least = [n for n in common if bounds[n] == common]
    if len(least) != 1:
        names = ", ".join(sorted(f"{'weak ' * weak}{d.name}" for d, weak in key))
        problem = "differ, and promotion is strict" if strict else "have no implicit common type"
        raise TypePromotionError(
            f"{caller}: types {names} {problem}; convert them with .astype(...)"
        )
    (n,) = least
    if n.dtype is None:
        return default_dtype(n.weak), True
    return canonical_dtype(n.dtype), all_weak


def has_rows(type: ArrayType) -> bool:
    """Say whether the size of the first axis varies."""
    return type.shape[:1] != () and type.shape[0].__class__ is Size


def bytes_of(type: ArrayType) -> int:
    """Return the bytes that the elements of an array of this type take."""
    return type.size * type.dtype.itemsize


def differ(*shapes: tuple[int, ...]) -> bool:
    """Say whether shapes, but for rank 0, differ in rank, and the setting objects to it."""
    return settings.ranks != "allow" and len({len(shape) for shape in shapes if shape}) > 1


def check_ranks(caller: str, *shapes: tuple[int, ...]) -> None:
    """Warn, or raise ``ValueError``, where the shapes ``differ``."""
    if settings.ranks == "allow" or not differ(*shapes):
        return
    shape_list = " and ".join(map(str, shapes))
    message = (
        f"{caller}: shapes {shape_list} differ in rank, and config.numpy_rank_promotion is "
        f"{config.numpy_rank_promotion!r}; give them one rank first, such as by x[None, :] or "
        f"snp.expand_dims(x, axis)"
    )
    if config.numpy_rank_promotion == "raise":
        raise ValueError(message)
    warnings.warn(message, stacklevel=user_stack_level())
