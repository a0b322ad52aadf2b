"""Numbers of Python that a module makes of its buffers and constants, known while it is traced.

``int(self.heads)`` or ``self.lengths.max().item()`` is the same in each call, unless the buffer
changes. While a module is traced, what it computes from such tensors alone is computed beside the
trace, and where it asks for a number it gets that one. What was asked for is remembered: a program
holds for these values of the buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch  # pyright: ignore[reportMissingImports]
from torch.overrides import TorchFunctionMode  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes  # pyright: ignore[reportMissingImports]

from stretto.torch.crossing import to_numpy
from stretto.torch.programs.buffers import with_guards
from stretto.torch.programs.torch_graph import Graph
from stretto.torch.python_state.holdings import is_real

_MOST = 1 << 14
"""The most elements of tensors of which something is computed beside the trace."""

_TENSOR = torch.Tensor
_NUMBERS = {
    getattr(_TENSOR, name)
    for name in ("__bool__", "__complex__", "__float__", "__index__", "__int__", "item", "tolist")
}
_REPEATS = {torch.repeat_interleave, _TENSOR.repeat_interleave}


@contextmanager
def numbers_fixed(module: torch.nn.Module) -> Iterator[FixedNumbers]:
    """Have numbers that a module makes of its buffers and constants known, in this context."""
    mode = FixedNumbers(module)

    def enter(traced: torch.nn.Module, _: Any) -> None:
        mode.begin(traced)

    def leave(*_: Any) -> None:
        mode.end()

    hooks = [
        module.register_forward_pre_hook(enter, prepend=True),
        module.register_forward_hook(leave),
    ]
    try:
        with mode:
            yield mode
    finally:
        mode.end()
        for hook in hooks:
            hook.remove()


class _Known(NamedTuple):
    """A tensor of the trace, its values, and the buffers that these come from."""

    traced: torch.Tensor
    values: torch.Tensor
    names: frozenset[str]


class FixedNumbers(TorchFunctionMode):
    """Gives the numbers, and remembers of which buffers they are: ``used``."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self._tensors = {name: x.detach() for name, x in _untrained(module).items()}
        self._known: dict[int, _Known] = {}
        self._of_buffers: set[int] = set()
        self._on = False
        self.used: set[str] = set()

    def begin(self, traced: torch.nn.Module) -> None:
        """Start a trace, in which this stands for the module."""
        stand_ins = _untrained(traced)
        self.used = set()
        self._known = {
            id(x): _Known(x, self._tensors[name], frozenset([name]))
            for name, x in stand_ins.items()
            if name in self._tensors and x.numel() <= _MOST and x.layout is torch.strided
        }
        self._of_buffers = set(map(_memory, self._known.values()))
        self._on = True

    def end(self) -> None:
        """Forget a trace, but for what was used."""
        self._known, self._on = {}, False

    def guarded(self, graph: Graph) -> Graph:
        """Return the graph of what was traced, for the values that its buffers have.

        Raises ``NotImplementedError`` if it writes to one of which a number was asked for.
        """
        written = sorted(self.used & {out.name for out in graph.outputs if out.kind == "buffer"})
        if written:
            raise NotImplementedError(
                f"from_torch: the module makes a number of Python of its buffer {written[0]} "
                f"(.item(), int(), if), and writes to it: the number would stay as it was in the "
                f"trace. Keep it a tensor, or choose by torch.where or torch.cond"
            )
        used = {name: to_numpy(self._tensors[name], "from_torch") for name in sorted(self.used)}
        return with_guards(graph, used)

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a function of PyTorch, and compute it beside the trace where all is known."""
        named = dict(kwargs or {})
        if not self._on or torch.compiler.is_dynamo_compiling():
            return func(*args, **named)
        if func in _NUMBERS:
            known = self._of(args[0])
            if known is not None:
                self.used |= known.names
                return _beside(func, known.values)
        if func in _REPEATS and named.get("output_size") is None:
            self._give_size(args, named)
        result = func(*args, **named)
        self._follow(func, args, named, result)
        return result

    def _of(self, x: Any) -> _Known | None:
        known = self._known.get(id(x))
        if known is None and is_real(x) and not x.requires_grad and x.numel() <= _MOST:
            return _Known(x, x, frozenset())  # a constant
        return known

    def _give_size(self, args: Sequence[Any], named: dict[str, Any]) -> None:
        repeats = named.get("repeats", args[-1 if len(args) == 1 else 1] if args else None)
        known = self._of(repeats) if isinstance(repeats, torch.Tensor) else None
        if known is not None and known.values.ndim:
            self.used |= known.names
            named["output_size"] = int(_beside(torch.sum, known.values))

    def _follow(
        self, func: Any, args: Sequence[Any], named: Mapping[str, Any], result: Any
    ) -> None:
        """Compute a result beside the trace, or forget what may have been written to."""
        outs = [x for x in pytree.tree_leaves(result) if isinstance(x, torch.Tensor)]
        given = pytree.tree_leaves((args, dict(named)))
        tensors = [x for x in given if isinstance(x, torch.Tensor)]
        known = {id(x): self._of(x) for x in tensors}
        open_ = any([isinstance(x, torch.SymInt | torch.SymFloat | torch.SymBool) for x in given])
        if _writes(func, named):
            self._forget([x for x in known.values() if x is not None])
            return
        if open_:  # the result may be a view, which may be written to; of buffers others know that
            self._forget([x for x in known.values() if x is not None], kept=self._of_buffers)
            return
        if "empty" in getattr(func, "__name__", ""):
            return
        if not outs or None in known.values() or sum([x.numel() for x in outs]) > _MOST:
            return
        names = frozenset().union(*[x.names for x in known.values() if x is not None])
        change = lambda x: known[id(x)].values if isinstance(x, torch.Tensor) else x  # type: ignore[union-attr]
        own, own_named = pytree.tree_map(change, (tuple(args), dict(named)))
        try:
            values = _beside(func, *own, **own_named)
        except Exception:  # it draws random numbers, or is of the trace alone
            return
        found = [x for x in pytree.tree_leaves(values) if isinstance(x, torch.Tensor)]
        if [(x.shape, x.dtype) for x in found] == [(x.shape, x.dtype) for x in outs]:
            new = zip(outs, found, strict=True)
            self._known |= {id(x): _Known(x, value, names) for x, value in new}

    def _forget(self, written: Sequence[_Known], *, kept: Set[int] = frozenset()) -> None:
        """Forget tensors, and those that share memory with them, but for some memory."""
        memory = {_memory(x) for x in written} - kept
        self._known = {key: x for key, x in self._known.items() if _memory(x) not in memory}


def _memory(known: _Known) -> int:
    return known.values.untyped_storage()._cdata


def _untrained(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the tensors of a module that no training changes."""
    both = [*module.named_parameters(), *module.named_buffers()]
    return {name: x for name, x in both if not x.requires_grad}


class _Deterministic(TorchDispatchMode):
    """Refuses what gives other values when it is computed again."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if torch.Tag.nondeterministic_seeded in func.tags:
            raise RuntimeError("not the same when it is computed again")
        return func(*args, **(kwargs or {}))


def _beside(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function beside the trace."""
    with (
        _disable_current_modes(),
        torch._C.DisableTorchFunction(),
        torch.no_grad(),
        _Deterministic(),
    ):
        return func(*args, **kwargs)


def _writes(func: Any, named: Mapping[str, Any]) -> bool:
    """Say whether a function may write to what it is given."""
    name = getattr(func, "__name__", "")
    if name.startswith("__"):
        return name in _IN_PLACE
    return name.endswith("_") or named.get("out") is not None or bool(named.get("inplace"))


_OPERATORS = "add and div floordiv lshift mod mul or pow rshift sub truediv xor"
_IN_PLACE = {"__set__", "__setitem__", *[f"__i{name}__" for name in _OPERATORS.split()]}
