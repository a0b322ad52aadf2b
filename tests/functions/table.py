"""One table of the public functions, and the checks that it drives.

An entry names a function, says what NumPy or SciPy function it is *like*, and lists calls of it:

    entry("numpy.sum", np.sum, [call(x(2, 3)), call(x(2, 3), axis=0, keepdims=True), call(x())])

An `x` is an array drawn at random, in each of the entry's dtypes in turn; everything else in a call
is static. For each entry

1. values: eagerly, each call gives what its like gives, in each dtype;
2. compiled: one program of all the calls gives the same, in the same types;
3. vmapped: over two examples of all arrays, and of the first alone, it is the loop;
4. gradients: in 64 bits, jvp and vjp along a random direction are the difference quotient;
5. settings: calls with arrays of one dtype succeed under strict promotion of dtypes, those with
   arrays of one rank where ranks may not differ;
6. edges: infinities, NaN, zeros of both signs and large numbers give at rest what XLA computes;
7. wide integers: NumPy's that do not fit in 32 bits are refused, or change nothing.

Where a check makes no sense for a function the entry says why: `unlike`, `uncompiled`, `unmapped`,
`undifferentiated`, `narrowed`. Entries are in `entries/`, a file a family; `checks.py` has the
checks, `test_functions.py` runs them, `form/test_complete.py` fails for a function without entry.
"""

import dataclasses
import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from stretto import random
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.types import kind_of

DTYPES = {
    "bool": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u32": np.uint32,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
}
WIDE = ("i64", "f64", "c128")
"""Dtypes that exist only with 64-bit types on."""

ENTRIES: dict[str, "Entry"] = {}
EXCEPTIONS: dict[str, str] = {}


@dataclasses.dataclass(frozen=True)
class Draw:
    """An array argument: its shape, the range to draw from, and its dtype where that is fixed.

    `handed` makes of the array what the function is given.
    """

    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0
    dtype: str | None = None
    values: Any = None
    form: Callable | None = None
    handed: Callable | None = None

    def make(self, rng: np.random.Generator, dtype: str) -> np.ndarray:
        """An array of this argument, in its own dtype or else in this one."""
        target = np.dtype(DTYPES[self.dtype or dtype])
        if self.values is not None:
            return np.asarray(self.values, target if self.dtype else None)
        kind = kind_of(target)
        if kind == "bool":
            out = rng.random(self.shape) < 0.5
        elif kind in ("int", "uint"):
            low = max(0, int(self.low)) if kind == "uint" else int(self.low)
            out = rng.integers(low, max(int(self.high), low) + 1, self.shape)
        else:
            out = rng.uniform(self.low, self.high, self.shape)
            if kind == "complex":
                out = out + 1j * rng.uniform(self.low, self.high, self.shape)
        out = np.asarray(out).astype(target)
        return out if self.form is None else np.asarray(self.form(out)).astype(target)


def x(*shape: int, low: float = -2.0, high: float = 2.0, dtype: str | None = None, form=None):
    """An array of this shape, drawn from [low, high]; `form` makes of it what is needed."""
    return Draw(shape, low, high, dtype, None, form)


def given(values: Any, dtype: str | None = None) -> Draw:
    """An array argument of these values, such as indices; in vmap the examples are equal."""
    return Draw(np.shape(values), dtype=dtype, values=values)


def key() -> Draw:
    """The words of a key for random numbers, others in each example."""
    return x(2, low=0, high=2**32 - 1, dtype="u32")


def typed_key() -> Draw:
    """A typed key, which is made of such words where the function is called."""
    return dataclasses.replace(key(), handed=random.wrap_key_data)


@dataclasses.dataclass(frozen=True)
class Call:
    """Positional and keyword arguments; those that are Draws become arrays."""

    args: tuple
    kwargs: dict


def call(*args: Any, **kwargs: Any) -> Call:
    """One call of the function: Draws, lists or tuples of them, and static arguments."""
    return Call(args, kwargs)


UNARY = [call(x()), call(x(2, 3)), call(x(0, 3))]
BINARY = [call(x(2, 3), x(3)), call(x(), x(2, 1)), call(x(0, 3), x(3)), call(x(2), 2)]
REDUCTION = [
    call(x(2, 3)),
    call(x(2, 3), axis=0),
    call(x(2, 3, 2), axis=(0, -1), keepdims=True),
    call(x()),
]


@dataclasses.dataclass(frozen=True)
class Entry:
    """A public function, what it is like, its calls, and what cannot be checked."""

    name: str
    like: Callable | None
    calls: tuple[Call, ...]
    dtypes: tuple[str, ...]
    unlike: str = ""
    uncompiled: str = ""
    unmapped: str = ""
    undifferentiated: str = ""
    narrowed: str = ""
    costly: str = ""
    tolerance: float = 1.0
    compare: Callable | None = None

    @property
    def function(self) -> Callable:
        """The function itself."""
        return resolve(self.name)


def entry(
    name: str,
    like: Callable | None,
    calls: list[Call],
    dtypes: str = "f32",
    *,
    unlike: str = "",
    uncompiled: str = "",
    unmapped: str = "",
    undifferentiated: str = "",
    narrowed: str = "",
    costly: str = "",
    tolerance: float = 1.0,
    compare: Callable | None = None,
) -> None:
    """Enter a function, named as below `stretto`: "numpy.sum".

    `like` takes the same arguments, as NumPy arrays; where there is none, `unlike` says why.
    `dtypes`: those in which the arrays are drawn, as "f32 i32 bool"; "f32+i32" gives the arrays of
    a call these dtypes in turn. `costly` says why only the first call is compiled, in the first
    dtype. `tolerance` multiplies the usual one, and needs a reason in a
    comment. `compare(ours, theirs)` replaces the comparison with the like, for results that are
    not unique, such as eigenvectors.
    """
    if name in ENTRIES:
        raise ValueError(f"there are two entries for {name}")
    if (like is None) != bool(unlike):
        raise ValueError(f"{name}: give a like, or say in `unlike` why there is none")
    ENTRIES[name] = Entry(
        name,
        like,
        tuple(calls),
        tuple(dtypes.split()),
        unlike,
        uncompiled,
        unmapped,
        undifferentiated,
        narrowed,
        costly,
        tolerance,
        compare,
    )


def without_entry(reason: str, *names: str) -> None:
    """Public functions that this table cannot call, and why (where they are tested instead)."""
    for name in names:
        EXCEPTIONS[name] = reason


def resolve(name: str) -> Any:
    """The object of this name below `stretto`: of a module, or of an object in one."""
    module, _, attribute = name.rpartition(".")
    try:
        owner = importlib.import_module(f"stretto.{module}")
    except ModuleNotFoundError:
        owner = resolve(module)
    return getattr(owner, attribute)


# Which functions there are


def public_functions(namespace: str) -> dict[str, Any]:
    """The functions of a namespace below `stretto`, by name: no classes, modules or primitives."""
    module = importlib.import_module(f"stretto.{namespace}")
    found = {}
    for name in getattr(module, "__all__", dir(module)):
        value = getattr(module, name)
        if name.startswith("_") or inspect.ismodule(value) or inspect.isclass(value):
            continue
        if callable(value) and not isinstance(value, Primitive):
            found[f"{namespace}.{name}"] = value
    return found


@functools.cache
def covered() -> frozenset[int]:
    """The identities of the functions that have an entry or an exception: aliases need no other."""
    return frozenset(id(resolve(name)) for name in (*ENTRIES, *EXCEPTIONS))
