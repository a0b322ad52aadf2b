"""``Array``: a concrete, immutable value, held as a NumPy array, a device buffer, or both.

Eager operations read the NumPy array and compiled programs the buffer; whichever is missing is made
when it is first needed. In the place of a buffer there may be something that says why there is none
(``Absent``). ``wiring`` attaches operators and methods.

Memory is shared with other libraries by the DLPack protocol. NumPy reads and writes its structures,
and jaxlib those for dtypes that NumPy does not know, such as bfloat16.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import CodeType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from stretto._engine import xla
from stretto._engine.core.errors import DonatedArrayError
from stretto._engine.core.interpreter import Value, refuse_masked
from stretto._engine.core.lazy import shown
from stretto._engine.core.types import ArrayType, array_type
from stretto._engine.native import native
from stretto._engine.xla import pjrt

if TYPE_CHECKING:
    from stretto._engine.core.position import Position
    from stretto._engine.xla.device import Device

CPU_PAIR = (1, 0)
"""DLPack's device type for the CPU, and the device's number."""

UNSAID: Any = object()
"""Stands for an argument of ``__dlpack__`` that was not passed."""


class _Holder:
    """The base class of ``Array``: three slots; the C extension has its own version of it."""

    __slots__ = ("_buffer", "_host", "type")

    _host: np.ndarray | None
    _buffer: Any
    type: ArrayType

    def __init__(self, host: np.ndarray | None, type: ArrayType, buffer: Any = None) -> None:
        self._host = host
        self._buffer = buffer
        self.type = type


if TYPE_CHECKING:
    Holder = _Holder
else:
    Holder = _Holder if native is None else native.Holder


class Absent:
    """Stands where a buffer was, or will be."""

    __slots__ = ()

    def arrived(self, type: ArrayType) -> Any:
        """Return the buffer, once it is there; an error if it will not be."""
        raise NotImplementedError


class Donated(Absent):
    """Takes the place of an array's buffer once a call has taken that; says so at each use.

    ``function`` is the call that took it, or None if the array was deleted.
    """

    __slots__ = ("argument", "function", "position")

    def __init__(
        self, function: str | None, argument: str = "", position: Position | None = None
    ) -> None:
        self.function = function
        self.argument = argument
        self.position = position

    def arrived(self, type: ArrayType) -> NoReturn:
        """Raise ``DonatedArrayError``, which names the call."""
        if self.function is None:
            raise DonatedArrayError(
                f"this {type} was deleted by its delete(): use it before, or delete a copy of it"
            )
        where = f" at {self.position}" if self.position else ""
        raise DonatedArrayError(
            f"this {type} was donated to {self.function} as its argument {self.argument}{where}, "
            f"and its memory holds a result of that call now: use the result; or donate a copy, "
            f"{self.function}(snp.copy(...)); or leave {self.argument} out of donate_argnums and "
            f"donate_argnames"
        )


# Arrays


SHARDED: list[type] = []
"""The class of arrays with a sharding, once there may be any; see ``sharded``."""


class _StoodFor(type):
    """The metaclass of ``Array``: makes ``isinstance`` true for tracers, which stand for arrays."""

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Value)


@shown("stretto._engine.xla.printing", "card_of")
class Array(Holder, Value, metaclass=_StoodFor):
    """An immutable array of numbers; make one with ``stretto.numpy.array``.

    ``isinstance(x, Array)`` holds for traced values as well, so that functions that check it behave
    the same while they are transformed; ``x.__class__ is Array`` holds only for concrete ones.

    Raises ``DonatedArrayError`` if the elements are read after the array was donated to a jitted
    call, or deleted.

    >>> import stretto.numpy as snp
    >>> snp.array([[1, 2], [3, 4]]) @ snp.array([1, 1])
    Array([3, 7], dtype=int32)
    """

    __slots__ = ("__weakref__",)

    __array_priority__ = 1000

    def host(self) -> np.ndarray | None:
        """Give the NumPy face where it is at hand: not to be written, nor handed to users.

        Returns:
            The NumPy array, or None where the elements lie on the device alone.

        Raises:
            DonatedArrayError: the array was donated to a jitted call, or deleted.
        """
        host = self._host
        if host is None and self._buffer.__class__ is Donated:
            self._buffer.arrived(self.type)
        return host

    def to_host(self) -> np.ndarray:
        """Give the NumPy face, fetched if need be: not to be written, nor handed to users.

        Returns:
            The NumPy array.

        Raises:
            DonatedArrayError: the array was donated to a jitted call, or deleted.
        """
        host = self._host
        if host is None:
            host = self._host = pjrt.to_host(self.to_buffer())
        return host

    def to_buffer(self) -> Any:
        """Give the device buffer, made if need be.

        Returns:
            The buffer.

        Raises:
            DonatedArrayError: the array was donated to a jitted call, or deleted.
        """
        buffer = self._buffer
        if buffer is None:
            assert self._host is not None
            buffer = self._buffer = pjrt.to_device(self._host, self.type, own=True)
        elif isinstance(buffer, Absent):
            buffer = self._buffer = buffer.arrived(self.type)
        return buffer

    def to_give(self) -> Any:
        """Give the buffer, to be handed over; see ``donate``.

        Memory that a NumPy face shares is not overwritten while that face, or a view of it, lives:
        the runtime then copies.

        Returns:
            The buffer.

        Raises:
            DonatedArrayError: the array was donated to a jitted call, or deleted.
        """
        buffer = self._buffer
        if buffer is None:
            assert self._host is not None
            buffer = pjrt.to_device(self._host, self.type, own=False)
        elif isinstance(buffer, Absent):
            buffer = self._buffer = buffer.arrived(self.type)
        return buffer

    def donate(self, to: Donated) -> None:
        """Forget the elements, and remember what took them.

        Args:
            to: what took the buffer.
        """
        self._buffer, self._host = to, None

    def kept(self) -> Any:
        """Give what to keep of the array while it is donated, for ``take_back``: one face.

        The device face where there is one, since the NumPy face would keep its memory from use.

        Returns:
            The device buffer, or the NumPy array where there is none.
        """
        return self._host if self._buffer is None else self._buffer

    def take_back(self, kept: Any) -> None:
        """Undo ``donate``, where the call did not come to take the buffer.

        Args:
            kept: what ``kept`` gave before.
        """
        if isinstance(kept, np.ndarray):
            self._host, self._buffer = kept, None
        elif kept.__class__ is not Donated and not kept.is_deleted():
            self._buffer = kept

    def delete(self) -> None:
        """Free the elements, which cannot be used any more; views and copies of them can.

        >>> import stretto.numpy as snp
        >>> x = snp.ones(2)
        >>> x.delete()
        >>> x.is_deleted()
        True
        """
        if not self.is_deleted():
            self._buffer, self._host = Donated(None), None

    def is_deleted(self) -> bool:
        """Say whether the array was deleted, or donated to a call, and cannot be used any more.

        Returns:
            A Python boolean.
        """
        return self._buffer.__class__ is Donated

    def is_ready(self) -> bool:
        """Say whether it is computed, so that its elements can be had without waiting.

        Returns:
            A Python boolean.

        Raises:
            DonatedArrayError: the array was donated to a jitted call, or deleted.

        >>> import stretto.numpy as snp
        >>> snp.ones(2).block_until_ready().is_ready()
        True
        """
        return self.host() is not None or pjrt.ready(self._buffer)

    def block_until_ready(self) -> Array:
        """Wait until it is computed; errors of the computation are raised here.

        Returns:
            The array itself.

        Raises:
            DonatedArrayError: the array was donated to a jitted call, or deleted.
        """
        if self._host is None:
            pjrt.wait(self.to_buffer())
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        host = self.to_host()
        if dtype is not None and np.dtype(dtype) != host.dtype:
            if copy is False:
                raise ValueError(f"converting {self.type} to {dtype} needs a copy")
            return host.astype(dtype)
        if copy:
            return host.copy()
        return read_only(host)

    def __bool__(self) -> bool:
        if self.type.size != 1:
            raise ValueError(f"the truth value of {self.type} is ambiguous: use .any() or .all()")
        return bool(self.to_host().reshape(())[()])

    def __int__(self) -> int:
        return int(self._real("int"))

    def __float__(self) -> float:
        return float(self._real("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if self.type.ndim or self.type.kind not in ("int", "uint"):
            raise TypeError(f"only integer arrays of rank 0 are indices; got {self.type}")
        return int(self.to_host()[()])

    def _scalar(self, what: str) -> Any:
        if self.type.size != 1:
            raise TypeError(f"{what}() needs an array of one element; got {self.type}")
        return self.to_host().reshape(())[()]

    def _real(self, what: str) -> Any:
        if self.type.kind == "complex":
            raise TypeError(f"{what}() of a complex array, {self.type}: take .real first")
        return self._scalar(what)

    def item(self, *index: int) -> Any:
        """Give one element as a Python number.

        Args:
            *index: its place, as one integer for each axis, or one in all; none for the
                only element.

        Returns:
            The number.

        Raises:
            IndexError: the index is out of bounds.
            ValueError: there is no index, and not just one element.
        """
        return self.to_host().item(*index)

    def tolist(self) -> Any:
        """List the elements as Python numbers, nested as the axes are.

        Returns:
            A list of lists; a number where there are no axes.
        """
        return self.to_host().tolist()

    def __len__(self) -> int:
        if not self.type.shape:
            raise TypeError("len() of an array of rank 0")
        return self.type.shape[0]

    def __hash__(self) -> int:
        raise TypeError("arrays are not hashable; a value that must be hashed has to be static")

    def __repr__(self) -> str:
        return xla.printing.brief_text(self)

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if self.type.size == 1:
            number = self.to_host().reshape(())[()]
            return format(number if self.type.dtype.isbuiltin == 1 else number.item(), spec)
        try:
            return format(str(self), spec)  # alignment and width are those of any text
        except ValueError:
            raise TypeError(
                f"the format {spec!r} is for one number, but this is an array of shape "
                f"{self.type.shape}: use snp.array_str(x, precision=2) for its text, format "
                f"x[i].item() for one element, or set precision for all arrays with "
                f"snp.printoptions(precision=2)"
            ) from None

    def __str__(self) -> str:
        return str(self.to_host())

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (np.array(self.to_host()), self.type)

    def __copy__(self) -> Array:
        # A new array that shares memory with this one, and stays usable if this one is donated.
        return Array(self.to_host(), self.type)

    def __deepcopy__(self, memo: Any) -> Array:
        return self.__copy__()

    def __dlpack__(
        self,
        *,
        stream: Any = UNSAID,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = UNSAID,
        copy: bool | None = UNSAID,
    ) -> Any:
        caller = sys._getframe(1).f_code
        host = self.to_host()
        return export_dlpack(host, self.type, stream, max_version, dl_device, copy, caller)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU_PAIR

    if TYPE_CHECKING:  # attached in wiring, with the rest of ``numpy/methods``

        @property
        def device(self) -> Device: ...
        def devices(self) -> set[Device]: ...
        def to_device(self, device: Device | str, /, *, stream: None = None) -> Array: ...


def _restore(host: np.ndarray, type: ArrayType) -> Array:
    if not host.flags.owndata:  # memory of an out-of-band buffer, which others may write to
        host = np.array(host)
    return Array(host, array_type(type.shape, host.dtype, type.weak_type))


def wait_for_all(values: Iterable[Any]) -> None:
    """Wait until those values that are arrays are computed; raise the errors of computations."""
    buffers, placed = [], []
    for x in values:
        if (x.__class__ is Array or x.__class__ in SHARDED) and x._host is None:
            if x.__class__ is Array:
                buffers.append(x.to_buffer())
            else:
                placed.append(x)
    if buffers:
        pjrt.wait_for_all(buffers)
    for x in placed:
        x.block_until_ready()


# Memory shared with other libraries, by the DLPack protocol


_READ_ONLY_SINCE = (1, 0)  # the first version that can mark memory as read-only


def export_dlpack(
    host: np.ndarray,
    type: ArrayType,
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
    caller: CodeType,
) -> Any:
    """Return a capsule of the protocol, as ``__dlpack__`` of the array API standard returns it.

    It holds a copy, marked as one, unless the array's own memory can be shared, marked read-only:
    with NumPy, which respects the mark, and with callers that pass ``copy=False``. Others may write
    to shared memory, as PyTorch does. ``caller`` is the code that called ``__dlpack__``. Raises
    ``ValueError`` for a stream, ``BufferError`` for another device, or if ``copy=False`` and a copy
    is needed.
    """
    by_numpy = _is_numpy(stream, dl_device, copy, caller)
    stream = None if stream is UNSAID else stream
    dl_device = None if dl_device is UNSAID else dl_device
    copy = None if copy is UNSAID else copy
    if stream is not None:
        raise ValueError(f"__dlpack__: stream must be None on the CPU; got {stream!r}")
    if dl_device is not None and tuple(map(int, dl_device)) != CPU_PAIR:
        raise BufferError(f"__dlpack__: the array is on the CPU, {CPU_PAIR}; got {dl_device}")
    foreign = host.dtype.isbuiltin != 1  # a dtype of ml_dtypes
    markable = max_version is not None and max_version >= _READ_ONLY_SINCE
    if copy is False and (foreign or not markable):
        raise BufferError(
            f"__dlpack__: {type} cannot be shared without a copy: "
            + ("NumPy cannot export its dtype" if foreign else
               "the consumer asks for a version that cannot mark memory as read-only")
        )  # fmt: skip
    if foreign:
        return pjrt.to_dlpack(pjrt.to_device(np.array(host), type, own=True))
    if copy is False or (copy is None and by_numpy and markable):
        return read_only(host).__dlpack__(max_version=max_version)
    return host.__dlpack__(max_version=max_version, copy=True)


def _is_numpy(stream: Any, dl_device: Any, copy: Any, caller: CodeType) -> bool:
    """Say whether the caller is NumPy's ``from_dlpack``.

    It passes its own arguments on, ``None`` or not, while others leave out what their users did;
    and it is written in C, so the calling Python code does not contain the method's name.
    """
    like_numpy = stream is UNSAID and dl_device is not UNSAID and copy is not UNSAID
    return like_numpy and "__dlpack__" not in caller.co_names


def read_only(host: np.ndarray) -> np.ndarray:
    """Return a view that is read-only and cannot be made writable.

    NumPy allows a view to be made writable if any array that it is a view of is writable, so all of
    them are made read-only.
    """
    owner: Any = host
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            owner.flags.writeable = False
        owner = owner.base
    return host.view()


def _unchanging(x: Any) -> bool:
    """Say whether memory marked read-only really never changes.

    NumPy marks only the view: the array that it is a view of may be writable.
    """
    while isinstance(x, np.ndarray):
        if x.flags.writeable:
            return False
        x = x.base
        if x is None or isinstance(x, bytes):
            return True
        if not isinstance(x, np.ndarray):
            return False  # memory of something else, which may change it
    return True


def import_dlpack(x: Any, copy: bool | None) -> np.ndarray:
    """Return the elements of another library's array, in memory that nobody else writes to.

    They are copied, unless the memory is marked read-only, or ``copy=False``, in which case later
    writes show through. Raises ``BufferError`` for another device, or if ``copy=False`` and a copy
    is needed.
    """
    refuse_masked(x, "from_dlpack", "x")
    kind, number = x.__dlpack_device__()
    if int(kind) != CPU_PAIR[0]:
        raise BufferError(
            f"from_dlpack: expected an array on the CPU, device {CPU_PAIR}; got "
            f"{type(x).__module__}.{type(x).__qualname__} on device {(int(kind), number)}: move it "
            f"to the CPU first"
        )
    try:
        shared = np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError) as error:
        if copy is False:
            raise BufferError(f"from_dlpack: memory cannot be shared: {error}") from None
        return np.array(pjrt.from_dlpack(x.__dlpack__()))
    if copy is False or (copy is None and not shared.flags.writeable and _unchanging(x)):
        return shared
    return np.array(shared)
