"""Values, tracers, and the one current interpreter that every operation is handed to.

Each thread has its own ``state.interpreter``. At rest it is the eager one, which runs operations
(``eager/interpreter``, installed by ``wiring``). A transformation puts its own interpreter in place
while the user's function runs, and passes the operations that it makes of each to the interpreter
that it was called under; that is why transformations nest.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from stretto._engine.core.errors import EscapedTracerError, RefError, TracedValueError
from stretto._engine.core.integers import narrow, shown
from stretto._engine.core.position import Place, Position, place
from stretto._engine.core.program import repeated
from stretto._engine.core.types import ArrayType, array_type, canonical_dtype, kind_of, scalar_dtype

if TYPE_CHECKING:
    from stretto._engine.core.primitive import Primitive
    from stretto.numpy.methods import ArrayMethods
else:
    ArrayMethods = object


class Value(ArrayMethods):
    """A value that operations take and give: an ``Array``, or a tracer that stands for one.

    Operators and methods are attached where the package is wired together.
    """

    __slots__ = ()

    type: ArrayType

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.type.shape

    @property
    def dtype(self) -> np.dtype:
        """The element type."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.type.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.type.size

    @property
    def weak_type(self) -> bool:
        """Say whether the dtype is that of a Python scalar, and gives way in promotion."""
        return self.type.weak_type

    if TYPE_CHECKING:  # methods of arrays or of tracers only; ``__class__`` tells which it is

        def host(self) -> np.ndarray | None: ...
        def to_host(self) -> np.ndarray: ...
        def origin(self) -> str: ...


class Interpreter:
    """Decides what an operation does: it is run, recorded, differentiated or vectorized."""

    __slots__ = ("_began",)

    at_rest: ClassVar[bool] = False
    """Says whether it runs operations: nothing is being traced."""
    recorder: Any = None
    """The recorder that the operations handed to this interpreter end up in, if there is one."""
    parent: Any = None
    """The interpreter that it was made under; None for those at rest."""
    borrows: ClassVar[bool] = False
    """Says whether it records a body, in which references from outside have values of their own."""
    passes_writes: ClassVar[bool] = True
    """Says whether values that are none of its own may be written to references from outside."""
    maps: ClassVar[str] = "traced"
    """Names its values, in words for messages."""
    instead: ClassVar[str] = "return the value, and write it to the reference outside"
    """Says what to do instead of writing such a value to a reference from outside."""

    _began: tuple[str, Place | None]

    def begin(self, fun: Any) -> None:
        """Note, for messages, which function (or its name) is transformed, and for which line."""
        # Only the name is kept: the function may hold tracers of this interpreter, in a cycle.
        name = fun if fun.__class__ is str else getattr(fun, "name", None)
        self._began = name or getattr(fun, "__name__", "a function"), place()

    def began(self) -> str:
        """Say which function is transformed, and where the user asked for it, for a message."""
        name, user_place = getattr(self, "_began", ("", None))
        return f", while {name} was transformed for {Position(*user_place)}" if user_place else ""

    def process(self, primitive: Primitive, args: Sequence[Any]) -> Any:
        """Apply the primitive; return a value, or a tuple of them if it is ``multiple``."""
        raise NotImplementedError


class _State(threading.local):
    """The current interpreter of this thread; the class attribute is the eager one, for all."""

    interpreter: Any = None
    eager: ClassVar[Any] = None
    maker: Any = None
    """Makes constants: the eager interpreter, or what notes them (``recorder.closing_over``)."""
    stand_ins: Mapping[int, Any] = {}
    """The values that stand in, while a user's derivative rule runs, for the tracers it captured,
    whose own trace has ended, by the tracers' ids; see ``higher_order/custom_function``."""
    residuals: list[Any] | None = None
    """Takes what derivatives keep, while somebody asks for it; see ``api/explain/explain``."""


state = _State()


def form_of(value: Any) -> Form | None:
    """Return what formula a value is known to be that of."""
    return value._form if isinstance(value, Tracer) else None


def install_eager(interpreter: Interpreter) -> None:
    """Make this the interpreter at rest, in every thread; ``wiring`` calls it once."""
    _State.interpreter = _State.eager = _State.maker = interpreter


class Form:
    """Hold what formula a value is known to be that of: its kind, and the values in it.

    Rules of primitives make and read these (``Primitive.formed``).
    """

    __slots__ = ("kind", "of")

    def __init__(self, kind: str, *of: Any) -> None:
        self.kind = kind
        self.of = of


class Tracer(Value):
    """Stands for a value while a transformation runs the user's function."""

    __slots__ = ("__weakref__", "interpreter", "position", "type")

    _form: Any = None
    """The formula that it is known to be the value of; tracers that note it have their own."""
    interpreter: Any
    position: Position | None

    def origin(self) -> str:
        """Say where the value comes from, in words for messages."""
        return f"made at {self.position}" if self.position else "traced"

    def concrete(self) -> Any:
        """Return the concrete array behind this, if Python may look at it; otherwise None."""
        return None

    def escaped(self) -> NoReturn:
        """Raise the error for use after the transformation that made this tracer has ended."""
        raise EscapedTracerError(
            f"a traced value of type {self.type} outlived the transformation that made it "
            f"({self.origin()}{self.interpreter.began()}): a function being transformed stored it "
            f"in an outer list, attribute or global; return it from the function instead"
        )

    def _need_concrete(self, what: str, remedy: str) -> Any:
        if self.interpreter.ended:
            self.escaped()
        concrete = self.concrete()
        if concrete is None:
            raise TracedValueError(
                f"{what} needs a concrete value, but this {self.type} is traced: {self.origin()}. "
                f"{remedy}"
            )
        return concrete

    def __bool__(self) -> bool:
        return bool(
            self._need_concrete(
                "bool() (as in `if`, `while`, `and`, `not`)",
                "Use stretto.lax.cond or snp.where to choose by value, stretto.lax.while_loop to "
                "loop, or name the argument in static_argnums if it is a setting.",
            )
        )

    def __index__(self) -> int:
        return self._need_concrete(
            "a Python index, a length or a range",
            "Shapes, ranges and list indices must be known while tracing: name the argument in "
            "static_argnums, or index an array (snp.array(...)[i]) instead of a list.",
        ).__index__()

    def __int__(self) -> int:
        return int(self._need_concrete("int()", self._CONVERT.format("int32")))

    def __float__(self) -> float:
        return float(self._need_concrete("float()", self._CONVERT.format("float32")))

    def __complex__(self) -> complex:
        return complex(self._need_concrete("complex()", self._CONVERT.format("complex64")))

    _CONVERT = (
        "A traced value has no Python number: use x.astype(snp.{0}), keep it an array, or name the "
        "argument in static_argnums."
    )

    def item(self, *index: int) -> Any:
        """Return the element as a Python number, if there is a concrete value behind this."""
        return self._need_concrete("item()", self._CONVERT.format("float32")).item(*index)

    def tolist(self) -> Any:
        """Return the elements as Python lists, if there is a concrete value behind this."""
        return self._need_concrete("tolist()", "Return the array and convert it outside.").tolist()

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        shown = f"x:{spec}" if self.type.size == 1 else "x"
        remedy = (
            f'Use stretto.debug.print("{{{shown}}}", x=x), which prints the value when the '
            f"function is run, or return it and format it outside; without a format this shows the "
            f"type."
        )
        return format(self._need_concrete(f"the format {spec!r}", remedy), spec)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise TracedValueError(
            f"NumPy was given a traced value of type {self.type} ({self.origin()}): NumPy cannot "
            f"trace; use the function of the same name in stretto.numpy (snp)"
        )

    def __dlpack__(self, **options: Any) -> Any:
        raise TracedValueError(
            f"DLPack was asked for the memory of a traced value of type {self.type} "
            f"({self.origin()}), which has none: return it from the function that is transformed"
        )

    def __dlpack_device__(self) -> Any:
        return self.__dlpack__()

    def __copy__(self) -> Tracer:
        return self  # values never change, so there is no need for a copy

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TracedValueError(
            f"a traced value of type {self.type} cannot be pickled ({self.origin()}): it stands "
            f"for an array only while a function is transformed; return it from that function, and "
            f"pickle the array that the call returns"
        )

    def __repr__(self) -> str:
        return f"<traced {self.type}>"

    def __hash__(self) -> int:
        raise TypeError("arrays are not hashable; a value that must be hashed has to be static")


class Linear:
    """Stands for an argument in which the operation is linear, in transpose rules.

    Such an argument has a type but no value: the rule is to compute its cotangent, or the sum so
    far with that added, where there is one. Only a primitive that ``accumulates`` is given a sum.

    Args:
        type: its type.
        so_far: the sum of the cotangents that other operations have given it, if any.
        masked: whether the cotangent may be a ``Masked`` one (``autodiff/masked``).

    >>> Linear(array_type((3,), np.dtype("float32"))).shape
    (3,)
    """

    __slots__ = ("masked", "so_far", "type")

    def __init__(self, type: ArrayType, so_far: Any = None, masked: bool = False) -> None:
        self.type = type
        self.so_far = so_far
        self.masked = masked

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.type.shape

    @property
    def dtype(self) -> np.dtype:
        """The element type."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.type.ndim


_SCALARS = (bool, int, float, complex)


ARRAY_METHODS = ["__stretto_array__"]
"""The methods by which an object gives an array, or a traced value, to take in its place."""


def as_value(x: Any, caller: str = "this function", argument: str = "x") -> Any:
    """Return the value for an array, a NumPy array or a Python scalar.

    A Python scalar gets the default dtype of its kind, weakly. A NumPy array is copied. Raises
    ``TypeError`` for a list or anything else, with the way out, and ``OverflowError`` for integers
    that do not fit.
    """
    if isinstance(x, Value):
        return x
    python_type: Any = type(x)
    if python_type in _SCALARS:
        dtype = scalar_dtype(python_type)
        _check_fits(x, dtype, caller)
        return constant(scalar_array(x, dtype), python_type is not bool)
    if isinstance(x, (np.ndarray, np.generic)):
        if python_type is not np.ndarray:
            refuse_masked(x, caller, argument)
        kind_of(x.dtype)  # refuses strings, objects, dates
        dtype = canonical_dtype(x.dtype)
        if dtype is not x.dtype and dtype.kind in "iu":
            return constant(narrow(x, dtype, caller, argument), False)
        with np.errstate(over="ignore"):
            return constant(np.array(x, dtype, order="C", copy=True, subok=False), False)
    if isinstance(x, (list, tuple)):
        raise TypeError(
            f"{caller}: {argument} must be an array or a number; got a {python_type.__name__}. "
            f"Wrap it: stretto.numpy.array({argument})"
        )
    for name in ARRAY_METHODS:
        if hasattr(x, name):
            return as_value(getattr(x, name)(), caller, argument)
    for scalar in _SCALARS:
        if isinstance(x, scalar):  # a subclass, such as an enumeration
            number: Any = x
            return as_value(scalar(number), caller, argument)
    words = getattr(x, "_no_array", None)
    if words is not None:
        raise RefError(f"{caller}: {argument} must be an array or a number; got {words}")
    if hasattr(x, "__array__"):
        return as_value(np.asarray(x), caller, argument)
    raise TypeError(
        f"{caller}: {argument} must be an array or a number; got {python_type.__module__}."
        f"{python_type.__qualname__}"
    )


def is_array_like(x: Any) -> bool:
    """Say whether ``as_value`` may take it: an array, a number, or what makes itself an array."""
    if isinstance(x, (Value, np.ndarray, np.generic, *_SCALARS)):
        return True
    is_class = isinstance(x, type)  # whose attributes are those of its instances
    return not is_class and (gives_array(x) or hasattr(x, "__array__"))


def gives_array(x: Any) -> bool:
    """Say whether it has a method that gives an array or a traced value for it."""
    return any([hasattr(x, name) for name in ARRAY_METHODS])


def type_of(x: Any, caller: str = "this function", argument: str = "x") -> ArrayType:
    """Return the type of anything ``as_value`` takes, or that merely has a shape and a dtype."""
    if isinstance(x, Value):
        return x.type
    shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
    if isinstance(shape, tuple) and isinstance(dtype, np.dtype):
        kept = canonical_dtype(dtype)  # refuses strings, objects, dates
        return array_type(shape, kept, bool(getattr(x, "weak_type", False)))
    return as_value(x, caller, argument).type


def refuse_masked(x: Any, caller: str, argument: str) -> None:
    """Raise ``TypeError`` for NumPy's masked array, whose mask would be lost."""
    # Until it is loaded, which another thread may be about to do, nobody can have a masked array.
    masked: Any = sys.modules.get("numpy.ma")
    if isinstance(x, getattr(masked, "MaskedArray", ())):
        count = masked.count_masked(x)
        raise TypeError(
            f"{caller}: {argument} is a NumPy masked array, "
            f"{x.dtype}[{','.join(map(str, x.shape))}] with {count} masked, and Stretto's arrays "
            f"have no mask: pass {argument}.filled(value), or its data and mask as two arrays"
        )


_LARGE = 3.4e38  # just below the largest float32
_EXACT = 1 << 53  # up to here, float64 represents every integer


def scalar_array(x: Any, dtype: np.dtype) -> np.ndarray:
    """Return a Python number as an array of rank 0.

    A float that is too large silently becomes infinite.

    Raises ``OverflowError`` for an integer that does not fit.
    """
    # The first two ways are the fast ones: no error is possible, so no error state is needed.
    if dtype.itemsize >= 4 and type(x) is not complex and -_LARGE < x < _LARGE:
        if dtype.kind == "f" and -_EXACT < x < _EXACT:  # exact as float64, so rounded only once
            return np.array(x, dtype)
        return np.asarray(x).astype(dtype)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(x).astype(dtype)
    except OverflowError:
        raise OverflowError(_misfit(x, dtype)) from None


def _misfit(x: Any, dtype: np.dtype) -> str:
    return f"the Python integer {shown(x)} does not fit in {dtype.name}"


def _check_fits(x: Any, dtype: np.dtype, caller: str) -> None:
    if dtype.kind == "i":
        bounds = np.iinfo(dtype)
        if not bounds.min <= x <= bounds.max:
            raise OverflowError(f"{caller}: {_misfit(x, dtype)}")


def constant(array: np.ndarray, weak_type: bool = False) -> Any:
    """Return the value that holds this NumPy array, which must not be written to afterwards."""
    return state.maker.constant(array, array_type(array.shape, array.dtype, weak_type))


def splat(element: Any, type: ArrayType) -> Any:
    """Return the value of this type, each of whose elements is this number."""
    if type.varies:  # such an array is a constant of a program alone
        return state.interpreter.recorder.splat(element, type)
    # The cache cannot tell zeros of different sign apart, since they are equal.
    if type.size > 1 and (element.__class__ is int or (element.__class__ is float and element)):
        return state.maker.constant(_repeated(element, type), type)
    one = scalar_array(element, type.dtype)
    return state.maker.constant(repeated(one, type.shape) if type.shape else one, type)


@functools.lru_cache(4096)
def _repeated(element: float, type: ArrayType) -> np.ndarray:
    """Return the array behind a splat, shared by all values that need it.

    It takes one element of memory, and is never handed to a device as it is: devices need every
    element in memory.
    """
    return repeated(scalar_array(element, type.dtype), type.shape)
