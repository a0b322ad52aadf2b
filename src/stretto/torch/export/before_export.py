"""Questions before an export: can PyTorch export a module, and does it take the example?

An export follows types alone. It takes indices that are out of range and integers where floats are
wanted, and of what is no plain module it says little that helps.

Exporting takes seconds, and what is exported depends on all that a module holds: its classes, its
settings, its hooks, tensors that are neither parameters nor buffers. A ``Likeness`` writes all of
that down, with the weights by name: modules of equal likeness have one program.
"""

from __future__ import annotations

import copy
import io
import pickle
import types
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]
from torch.utils._python_dispatch import is_traceable_wrapper_subclass  # pyright: ignore[reportMissingImports]

from stretto._engine.core.interpreter import Value
from stretto.torch.crossing import to_numpy
from stretto.torch.python_state.holdings import memory_of, undone
from stretto.torch.trace.substitutes import checks_kept


def unwrapped(module: Any) -> Any:
    """Return the module inside ``torch.compile``'s, ``DataParallel``'s and their like.

    Whatever is no such wrapper is itself.
    """
    while isinstance(module, torch.nn.Module):
        inner = getattr(module, "_orig_mod", None)  # of torch.compile
        if inner is None and isinstance(
            module, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
        ):
            inner = module.module
        if not isinstance(inner, torch.nn.Module):
            break
        module = inner
    return module


def check_module(caller: str, module: torch.nn.Module) -> None:
    """Raise ``NotImplementedError`` or ``TypeError`` for what no export can follow, by name."""
    kind = type(module).__name__
    if isinstance(module, torch.fx.GraphModule) and "train" in vars(module):
        raise TypeError(
            f"{caller}: {kind} is what an ExportedProgram's module() gives, which has one mode and "
            f"cannot be exported again: give the ExportedProgram itself"
        )
    for path, part in module.named_modules():
        what = f"{caller}: {kind}" if part is module else f"{caller}: {kind}: {path}"
        if isinstance(part, torch.jit.ScriptModule):
            raise NotImplementedError(
                f"{what} is a module of TorchScript (torch.jit.script or torch.jit.trace), which "
                f"keeps no Python code for PyTorch to export: give the module it was made of, and "
                f"load its weights into that"
            )
        if type(part).__module__.startswith(("torch.ao.nn.quantized", "torch.nn.quantized")):
            raise NotImplementedError(
                f"{what} is a quantized {type(part).__name__}, whose weights are packed for one "
                f"kind of processor: import the module of floats that it was made of"
            )
        held = [*part._parameters.items(), *part._buffers.items()]
        for name, x in held:
            if x is not None:
                _check_tensor(f"{what}: {name}", x)
    if type(module).forward is torch.nn.Module.forward and "forward" not in vars(module):
        raise TypeError(
            f"{caller}: {kind} has no forward: put it into a module whose forward says what is "
            f"computed"
        )


def _check_tensor(what: str, x: Any) -> None:
    if torch.nn.parameter.is_lazy(x):
        raise TypeError(
            f"{what} is not initialized, since its shape comes from the first call: call the "
            f"module with the example once, and import it then"
        )
    if x.is_meta:
        raise TypeError(
            f"{what} has no elements, as it is on PyTorch's meta device: load the weights first "
            f"(load_state_dict(..., assign=True))"
        )
    if is_traceable_wrapper_subclass(x):
        raise NotImplementedError(
            f"{what} is a {type(x).__name__}, which holds other tensors in place of elements "
            f"(quantized, or in pieces on several devices): give a module with plain tensors"
        )


def check_example(
    caller: str, module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Call the module with the example, as PyTorch itself would, and leave all as it was.

    What PyTorch raises is raised with a note. If it only lacks a kernel for a dtype on this
    machine, nothing is known of the example, and nothing is raised.
    """
    for x in pytree.tree_leaves((tuple(args), dict(kwargs))):
        if isinstance(x, (np.ndarray, Value)):
            raise TypeError(
                f"{caller}: the example has a {type(x).__module__.partition('.')[0]} array: give "
                f"what the PyTorch module takes, such as torch.from_numpy(x)"
            )
    with (
        undone(module),
        checks_kept(),
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.random.fork_rng(),
        torch.compiler.set_stance("force_eager"),
        warnings.catch_warnings(action="ignore"),
    ):
        copied_args, copied_kwargs = pytree.tree_map(_copied, (tuple(args), dict(kwargs)))
        try:
            module(*copied_args, **copied_kwargs)
        except NotImplementedError:
            return
        except Exception as error:
            error.add_note(
                f"{caller}: PyTorch's own call of this {type(module).__name__} with the example "
                f"raises this."
            )
            raise


def apart(
    module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return an example, in which no tensor shares memory with another or with the module's.

    PyTorch exports an argument that is given twice as one, and a later call may give two.
    """
    place = lambda x: memory_of(x) or id(x)
    known = {place(x) for x in (*module.parameters(), *module.buffers())}

    def own(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if place(leaf) in known:
            return _copied(leaf)
        known.add(place(leaf))
        return leaf

    return pytree.tree_map(own, (tuple(args), dict(kwargs)))


def _copied(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.detach().clone().requires_grad_(leaf.requires_grad)
    return copy.deepcopy(leaf)


class Likeness:
    """Describes modules; those of one description have one program.

    Where it cannot describe one, or is not sure, no other module's description is equal.
    """

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._kept: list[Any] = []  # what is known by its identity must live on

    def of(self, module: torch.nn.Module) -> Any:
        """Return the description of a module, to be compared: bytes, or an object of its own."""
        written = io.BytesIO()
        try:
            _Writer(written, module, self._number).dump(module)
        except Exception:  # whatever the module holds may refuse to be written, in its own way
            return object()
        return written.getvalue()

    def _number(self, obj: Any) -> int:
        """Return the number of a string, or of the one object that this is."""
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
        """Return what is written in place of an object, if anything is."""
        if isinstance(obj, (type, types.FunctionType)) or type(obj) is str:
            return self._number(obj)
        if isinstance(obj, torch.Tensor):
            name = self._names.get(id(obj))
            hooks = [tuple((table or {}).values()) for table in _hook_tables(obj)]
            elements = name is None and (self._part(obj) or _elements(obj))
            return type(obj), name, vars(obj), _type_of(obj), elements, hooks
        return None

    def _part(self, obj: torch.Tensor) -> tuple[Any, ...]:
        """Return which part of a parameter or a buffer a tensor is, as in the program, too."""
        name, whole = self._memory.get(memory_of(obj), ("", obj))
        at = obj.storage_offset() - whole.storage_offset() if name else 0
        return (name, at, obj.is_leaf, obj._base is whole) if name else ()

    def reducer_override(self, obj: Any) -> Any:
        """Return the whole state of modules, whatever they would leave out of a file.

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
