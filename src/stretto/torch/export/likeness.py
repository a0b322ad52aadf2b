"""Which PyTorch modules have one program: those whose state is the same but for their weights.

Exporting takes seconds, and what is exported depends on all that a module holds: its classes, its
settings, its hooks, tensors that are neither parameters nor buffers. A ``Likeness`` writes all of
that down, with the weights by name.
"""

from __future__ import annotations

import io
import pickle
import types
import weakref
from collections.abc import Callable
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stretto.torch.crossing import to_numpy
from stretto.torch.python_state.holdings import memory_of


class Likeness:
    """Describes modules; those of one description have one program.

    Where it cannot describe one, or is not sure, no other module's description is equal.
    """

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._kept: list[Any] = []  # what is known by its identity must live on

    def of(self, module: torch.nn.Module) -> Any:
        """The description of a module, to be compared: bytes, or an object of its own."""
        written = io.BytesIO()
        try:
            _Writer(written, module, self._number).dump(module)
        except Exception:  # whatever the module holds may refuse to be written, in its own way
            return object()
        return written.getvalue()

    def _number(self, obj: Any) -> int:
        """The number of a string, or of the one object that this is."""
        self._kept.append(obj)
        key = obj if type(obj) is str else id(obj)
        return self._numbers.setdefault(key, len(self._numbers))


class _Writer(pickle.Pickler):
    """Writes a module without its weights; what is written is compared and never read.

    Pickle follows every reference and writes down which of them lead to one object, so equal bytes
    are equal states. Classes and functions are known by their identity, since equal names may hide
    different code; strings by their characters, whichever of them are one object; parameters and
    buffers by name, type and shape.
    """

    def __init__(
        self, file: io.BytesIO, module: torch.nn.Module, number: Callable[[Any], int]
    ) -> None:
        super().__init__(file, protocol=5)
        named = [
            *module.named_parameters(remove_duplicate=False),
            *module.named_buffers(remove_duplicate=False),
        ]
        self._number, self._names = number, {id(tensor): name for name, tensor in named}
        self._memory = {memory_of(tensor): (name, tensor) for name, tensor in reversed(named)}
        self._memory.pop(None, None)

    def persistent_id(self, obj: Any) -> Any:
        """What is written in place of an object, if anything is."""
        if isinstance(obj, (type, types.FunctionType)) or type(obj) is str:
            return self._number(obj)
        if isinstance(obj, torch.Tensor):
            name = self._names.get(id(obj))
            hooks = [tuple((table or {}).values()) for table in _hook_tables(obj)]
            elements = name is None and (self._part(obj) or _elements(obj))
            return type(obj), name, vars(obj), _type_of(obj), elements, hooks
        return None

    def _part(self, obj: torch.Tensor) -> tuple[Any, ...]:
        """Which part of a parameter or a buffer a tensor is, which is one in the program, too."""
        name, whole = self._memory.get(memory_of(obj), ("", obj))
        at = obj.storage_offset() - whole.storage_offset() if name else 0
        return (name, at, obj.is_leaf, obj._base is whole) if name else ()

    def reducer_override(self, obj: Any) -> Any:
        """The whole state of modules, whatever they would leave out of a file.

        Pickle writes a method as a name of its object, behind which the class may have another; and
        an object that says itself how it is written may leave out what a module computes with.
        """
        if isinstance(obj, torch.nn.Module):
            return object.__new__, (type(obj),), object.__getstate__(obj)
        if isinstance(obj, weakref.ref):
            return weakref.ref, (obj(),)
        if isinstance(obj, types.MethodType):
            return types.MethodType, (obj.__func__, obj.__self__)
        if _says_how_it_is_written(obj):
            return tuple, ((type(obj), obj.__reduce_ex__(5), object.__getstate__(obj)),)
        return NotImplemented


def _says_how_it_is_written(obj: Any) -> bool:
    ways = [getattr(type(obj), name) for name in ("__reduce__", "__reduce_ex__", "__getstate__")]
    return any([isinstance(way, types.FunctionType) for way in ways])


def _hook_tables(x: torch.Tensor) -> tuple[Any, ...]:
    return x._backward_hooks, x._post_accumulate_grad_hooks


def _type_of(x: torch.Tensor) -> tuple[Any, ...]:
    strides = x.stride() if x.layout is torch.strided else ()
    return str(x.dtype), str(x.layout), str(x.device), tuple(x.shape), strides, x.requires_grad


def _elements(x: torch.Tensor) -> bytes:
    return to_numpy(x, "likeness").tobytes()
