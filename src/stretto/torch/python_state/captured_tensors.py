"""Tensors that a PyTorch module reaches beside its attributes, as what they are: its parameters.

While a module is traced its parameters and buffers are stand-ins, in its attributes. A list, a
closure or a default of an argument still has the tensors themselves, which would become constants:
trained no more, and one for all members of an ensemble. Here each is exchanged for the stand-in
when it is used, or for the same part of that, and what requires gradients and is no parameter is
refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch  # pyright: ignore[reportMissingImports]
from torch.overrides import TorchFunctionMode  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]

from stretto.torch.python_state.holdings import is_real, memory_of, place_of, trained

_Way = Callable[[Any], Any]
"""A way to have a part from the whole, be that a tensor or an array of NumPy."""

_DATA = torch.Tensor.data.__get__

_QUESTIONS = {"__get__", "dim", "size", "stride", "numel", "is_floating_point", "is_complex"}
"""Functions that ask a tensor about itself, or may: ``__get__`` is of all its properties."""


@contextmanager
def exchanged(module: torch.nn.Module) -> Iterator[None]:
    """Have what a module reaches exchanged for what is traced, in this context.

    Raises ``NotImplementedError`` for a tensor that requires gradients and is no parameter.
    """
    _check_buffers(module)
    mode = _Exchange(module)

    def enter(traced: torch.nn.Module, _: Any) -> None:
        mode.stand_ins = _named(traced)

    def leave(*_: Any) -> None:
        mode.stand_ins = None

    hooks = [
        module.register_forward_pre_hook(enter, prepend=True),
        module.register_forward_hook(leave),
    ]
    try:
        with mode:
            yield
    except Exception:
        if mode.refused:
            raise NotImplementedError(mode.refused) from None
        raise
    finally:
        for hook in hooks:
            hook.remove()
    if mode.refused:
        raise NotImplementedError(mode.refused)


def check_constants(
    exported: torch.export.ExportedProgram, module: torch.nn.Module | None = None
) -> None:
    """Raise ``NotImplementedError`` if a constant of a program is, or should be, a parameter.

    These are in branches of ``torch.cond``, or in a program that was exported elsewhere.
    """
    held = {memory_of(x): place for place, x in trained(module)} if module else {}
    registered = {memory_of(x): name for name, x in exported.state_dict.items()}
    registered.pop(None, None)
    buffers = set(exported.graph_signature.inputs_to_buffers.values())
    for name, x in exported.constants.items():
        if name in buffers or not isinstance(x, torch.Tensor):
            continue
        same = registered.get(memory_of(x))
        if same is not None:
            raise NotImplementedError(
                f"from_torch: the program has {same} as a constant, too, {name}, which would not "
                f"be trained with it: use it in forward as an attribute of its module"
            )
        if x.requires_grad or memory_of(x) in held:
            raise NotImplementedError(_unregistered(held.get(memory_of(x)) or name))


def _named(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    both = [
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ]
    return dict(both)


def _check_buffers(module: torch.nn.Module) -> None:
    for name, x in module.named_buffers():
        if x.grad_fn is not None:
            raise NotImplementedError(
                f"from_torch: the buffer {name} was computed from what requires gradients, which "
                f"an array has no memory of: compute it in forward, or register its .detach()"
            )


def _unregistered(place: str) -> str:
    return (
        f"from_torch: {place} requires gradients and is no parameter of the module, so it would "
        f"not be trained: register it (self.name = nn.Parameter(...), nn.ParameterList, "
        f"nn.ModuleList for a list of modules), compute it in forward if it comes of parameters, "
        f"or give it .requires_grad_(False) if it is a constant"
    )


def _is_size(x: Any) -> bool:
    return isinstance(x, torch.Size)


class _Exchange(TorchFunctionMode):
    """Exchanges the tensors themselves for stand-ins, in each call of a function of PyTorch."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.stand_ins: dict[str, torch.Tensor] | None = None
        self.refused = ""
        self._module = module
        self._tensors = _named(module)
        self._names = {id(x): name for name, x in self._tensors.items()}
        self._by_memory: dict[int, list[str]] = {}
        for name, x in self._tensors.items():
            memory = memory_of(x)
            if memory is not None:
                self._by_memory.setdefault(memory, []).append(name)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of PyTorch with stand-ins, but in branches of ``torch.cond``."""
        stand_ins = self.stand_ins
        if torch.compiler.is_dynamo_compiling() or stand_ins is None:
            return func(*args, **(kwargs or {}))
        asks = getattr(func, "__name__", "") in _QUESTIONS and not _gives_data(func)
        exchange = lambda x: self._exchanged(x, stand_ins, asks)
        # A size would come back as a tuple, of which ``new`` makes data.
        args, kwargs = pytree.tree_map(exchange, (args, kwargs), is_leaf=_is_size)
        if func == _DATA:  # PyTorch's export does not see what this gives
            func = torch.Tensor.detach
        return func(*args, **(kwargs or {}))

    def _exchanged(self, x: Any, stand_ins: Mapping[str, Any], asks: bool) -> Any:
        if not is_real(x):
            return x
        name = self._names.get(id(x))
        if name is not None:
            return stand_ins[name]
        if asks:
            return x
        for name in self._by_memory.get(memory_of(x) or -1, ()):
            whole = self._tensors[name]
            if x.requires_grad and x._base is not whole:
                continue
            part = _part(stand_ins[name], whole, x)
            if part is not None:
                return part if x.requires_grad or not whole.requires_grad else part.detach()
        if x.requires_grad:
            self._refuse(_unregistered(place_of(self._module, x)))
        if memory_of(x) in self._by_memory:
            names = ", ".join(self._by_memory[memory_of(x) or -1])
            self._refuse(
                f"from_torch: {place_of(self._module, x)} shares memory with {names}, and is no "
                f"part of one of these that can be computed: compute it in forward"
            )
        return x

    def _refuse(self, words: str) -> None:
        self.refused = self.refused or words  # the module may catch what is raised
        raise NotImplementedError(words)


def _gives_data(func: Any) -> bool:
    """Say whether this is a property of a tensor that gives its elements."""
    of = getattr(func, "__self__", None)
    name = getattr(of, "__name__", getattr(getattr(of, "fget", None), "__name__", ""))
    return name.strip("_") in {"T", "mT", "H", "mH", "real", "imag", "data"}


# Parts of tensors. PyTorch's own functions would be traced; the numbers of elements are NumPy's.


def _part(stand_in: torch.Tensor, whole: torch.Tensor, x: torch.Tensor) -> torch.Tensor | None:
    """Return what ``x``, in the memory of ``whole``, is of the tensor in its place; or None."""
    of, its = _layout(whole), _layout(x)
    if whole.is_complex() and not x.is_complex():  # its real and imaginary parts
        stand_in, of = torch.view_as_real(stand_in), _as_real(of)
    elif x.dtype != whole.dtype:
        return None
    if x.is_conj() or x.is_neg() or whole.is_conj() or not x.numel():
        return None
    if of == its:
        return stand_in
    addresses, wanted = _addresses(of), _addresses(its)
    for way in (_block, _slices, _elements):
        found = way(of, its)
        if found is not None and _is_right(found, addresses, wanted):
            return found(stand_in)
    return None


class _Layout(NamedTuple):
    """Says how the elements of a tensor lie in memory."""

    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def order(self) -> list[int]:
        """The axes, from that of the longest stride."""
        return sorted(range(len(self.shape)), key=lambda axis: -self.strides[axis])


def _layout(x: torch.Tensor) -> _Layout:
    return _Layout(x.storage_offset(), tuple(x.shape), tuple(x.stride()))


def _as_real(of: _Layout) -> _Layout:
    return _Layout(2 * of.start, (*of.shape, 2), (*[2 * step for step in of.strides], 1))


def _addresses(of: _Layout) -> np.ndarray:
    """Return where in its memory each element is."""
    found = np.array(of.start)
    for n, step in zip(of.shape, of.strides, strict=True):
        found = found[..., None] + np.arange(n) * step
    return found


def _is_right(found: _Way, addresses: np.ndarray, wanted: np.ndarray) -> bool:
    try:
        return np.array_equal(found(addresses), wanted)
    except (ValueError, IndexError):
        return False


def _permuted(x: Any, axes: Sequence[int]) -> Any:
    return x.transpose(axes) if isinstance(x, np.ndarray) else x.permute(*axes)


def _block(of: _Layout, its: _Layout) -> _Way | None:
    """Return a part that is one block of memory, in any shape: rows, another view, a transpose."""
    start, outer, inner = its.start - of.start, of.order, its.order
    back = sorted(range(len(inner)), key=inner.__getitem__)
    shape, total = tuple([its.shape[axis] for axis in inner]), math.prod(its.shape)

    def found(x: Any) -> Any:
        flat = _permuted(x, outer).reshape(-1)
        if total != math.prod(of.shape):
            flat = flat[start : start + total]
        return _permuted(flat.reshape(shape), back)

    return found if start >= 0 else None


def _slices(of: _Layout, its: _Layout) -> _Way | None:
    """Return a part that is cut out along some axes, in any order of these."""
    rest, starts = its.start - of.start, {}
    for axis in of.order:
        step = of.strides[axis]
        starts[axis] = rest // step if step else 0
        rest -= starts[axis] * step
    axes: dict[int, tuple[int, int]] = {}
    for n, step in zip(its.shape, its.strides, strict=True):
        fits = [
            axis
            for axis in of.order
            if axis not in axes
            and of.strides[axis]
            and step % of.strides[axis] == 0
            and starts[axis] + (n - 1) * (step // of.strides[axis]) < of.shape[axis]
        ]
        if not fits:
            return None
        axes[fits[0]] = n, step // of.strides[fits[0]] or 1

    def found(x: Any) -> Any:
        for axis in range(len(of.shape)):
            start, (length, step) = starts[axis], axes.get(axis, (1, 1))
            cut = slice(start, start + (length - 1) * step + 1, step)
            x = x[(slice(None),) * axis + (cut,)]
        others = [axis for axis in range(len(of.shape)) if axis not in axes]
        return _permuted(x, [*axes, *others]).reshape(its.shape)

    return found


def _elements(of: _Layout, its: _Layout) -> _Way:
    """Return any part: its elements, by their numbers."""
    addresses = _addresses(of).reshape(-1)
    order = np.argsort(addresses, kind="stable")
    at = np.searchsorted(addresses[order], _addresses(its).reshape(-1))
    numbers = order[np.minimum(at, len(order) - 1)]

    def found(x: Any) -> Any:
        own = numbers if isinstance(x, np.ndarray) else torch.tensor(numbers)
        return x.reshape(-1)[own].reshape(its.shape)

    return found
