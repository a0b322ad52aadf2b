"""Replace what PyTorch cannot export by what it can, while a module is traced.

Distributions check their arguments by the values, which a trace has not; some draws have no shapes
for tracing, and some losses ask whether there is anything. Some shapes depend on values in PyTorch,
though for what modules use of the results they need not (``traceable``), and the momentum of batch
normalization with plain means is a number that no program can compute (``counting``).
``exportable`` is the state in which modules are exported, with all substitutes.
"""

from __future__ import annotations

import builtins
import functools
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch._export.passes import replace_set_grad_with_hop_pass as passes  # pyright: ignore[reportMissingImports]
from torch._subclasses import fake_impls  # pyright: ignore[reportMissingImports]
from torch.distributions import Dirichlet, Distribution, Gamma, VonMises, Wishart  # pyright: ignore[reportMissingImports]
from torch.fx import GraphModule  # pyright: ignore[reportMissingImports]
from torch.overrides import TorchFunctionMode  # pyright: ignore[reportMissingImports]

from stretto.torch.gradients.derivative_marks import Unfit
from stretto.torch.programs.buffers import COUNTED
from stretto.torch.source_lines import current_line
from stretto.torch.trace import inner_transforms, recurrent_layers
from stretto.torch.trace import sparse_tensors as sparse
from stretto.torch.trace.sparse_tensors import Densely, check_layout
from stretto.torch.trace.stand_ins import OPS, of_values

_ATEN = torch.ops.aten


@contextmanager
def traceable() -> Iterator[None]:
    """Let PyTorch trace these operations."""
    known = fake_impls.op_implementations_dict
    before = {op: known[op] for op in _SHAPES if op in known}
    known.update({op: _shaped(shape, before.get(op)) for op, shape in _SHAPES.items()})
    try:
        yield
    finally:
        for op in _SHAPES:
            known.pop(op, None)
        known.update(before)


def _with_lengths(loss: Callable[..., Any]) -> Callable[..., Any]:
    """A loss that is given its lengths as tensors: numbers it turns into some that have no data."""

    def with_lengths(
        log_probs: Any,
        targets: Any,
        input_lengths: Any,
        target_lengths: Any,
        *more: Any,
        **how: Any,
    ) -> Any:
        lengths = [torch.as_tensor(n) for n in (input_lengths, target_lengths)]
        return loss(log_probs, targets, *lengths, *more, **how)

    return with_lengths


CALLED: dict[Any, Callable[..., Any]] = {
    torch.ctc_loss: _with_lengths(torch.ctc_loss),
    torch.nn.functional.ctc_loss: _with_lengths(torch.nn.functional.ctc_loss),
}
"""The substitutes of what makes tensors of numbers, which have no data while a trace lasts."""


def _shaped(shape: Callable[..., Any], otherwise: Any) -> Callable[..., Any]:
    """PyTorch's form of a rule for shapes; where ours gives None, PyTorch's own holds."""

    def shaped(mode: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        found = shape(*args, **kwargs)
        if found is None and otherwise is not None:
            return otherwise(mode, func, *args, **kwargs)
        return found

    return shaped


def _ctc_loss(
    log_probs: torch.Tensor, targets: torch.Tensor, *_: Any, **__: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    batch = log_probs.shape[1:2] if log_probs.ndim == 3 else ()
    return log_probs.new_empty(batch), log_probs.new_empty(0)


def _lstsq(
    a: torch.Tensor, b: torch.Tensor, rcond: Any = None, *, driver: str | None = None
) -> tuple[torch.Tensor, ...]:
    rows, columns = a.shape[-2:]
    vector = b.ndim == a.ndim - 1
    batch = a.shape[:-2]
    several = () if vector else b.shape[-1:]
    real = a.real.dtype if a.is_complex() else a.dtype
    some = driver in ("gels", "gelsd", "gelss") and rows > columns
    singular = driver in ("gelsd", "gelss")
    return (
        b.new_empty((*batch, columns, *several)),
        b.new_empty((*batch, *(several or (1,))) if some else (0,)),
        b.new_empty((0,) if driver == "gels" else batch, dtype=torch.int64),
        b.new_empty((*batch, min(rows, columns)) if singular else (0,), dtype=real),
    )


def _bincount(
    x: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0
) -> torch.Tensor | None:
    """Return as many counts as ``minlength`` says."""
    if not minlength:
        return None
    if weights is None:
        return x.new_empty(minlength, dtype=torch.int64)
    kept = weights.dtype is torch.float32
    return x.new_empty(minlength, dtype=torch.float32 if kept else torch.float64)


_SHAPES: dict[Any, Callable[..., Any]] = {
    _ATEN._ctc_loss.default: _ctc_loss,
    _ATEN._ctc_loss.Tensor: _ctc_loss,
    _ATEN.bincount.default: _bincount,
    _ATEN.linalg_lstsq.default: _lstsq,
}


@contextmanager
def counting(module: torch.nn.Module) -> Iterator[None]:
    """Mark layers whose statistics are plain means over batches (``momentum=None``).

    PyTorch computes their momentum from the count as a number of Python, which no program can.
    """
    plain = [
        part
        for part in module.modules()
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and part.momentum is None
    ]
    for part in plain:
        part.momentum = COUNTED
    try:
        yield
    finally:
        for part in plain:
            part.momentum = None


_WHOLE = passes.replace_set_grad_with_hop_pass
_WRITE = GraphModule.recompile
_LATER = threading.local()


def _set_apart(module: Any, signature: Any) -> Any:
    _LATER.on = True
    try:
        module, signature = _WHOLE(module, signature)
    finally:
        _LATER.on = False
    for part in module.modules():
        if isinstance(part, GraphModule):
            part.recompile()
    return module, signature


def _written(module: Any) -> Any:
    return None if getattr(_LATER, "on", False) else _WRITE(module)


PATCHED = [
    (passes, "replace_set_grad_with_hop_pass", _set_apart),
    (GraphModule, "recompile", _written),
]
"""What stands in PyTorch's modules and classes while a module is exported, and where."""


_TRACING = threading.local()
_LENGTH = len


@contextmanager
def exportable(densely: bool = False) -> Iterator[None]:
    """Trace modules with distributions that check no values, and with the substitutes.

    ``sparse_tensors`` says that dense tensors stand in for sparse ones, of which code may ask.
    Gradients are on while it lasts, as they are when a module is called without more ado.
    """
    originals = [(place, name, getattr(place, name)) for place, name, _ in _PATCHES]
    for (place, name, ours), (*_, theirs) in zip(_PATCHES, originals, strict=True):
        setattr(place, name, _while_tracing(ours, theirs))
    _TRACING.on = True
    try:
        with (
            torch.enable_grad(),
            unchecked(),
            recurrent_layers.packing(),
            traceable(),
            _Substitutes(densely),
            _lengths(),
        ):
            yield
    finally:
        _TRACING.on = False
        for place, name, theirs in originals:
            setattr(place, name, theirs)


@contextmanager
def _lengths() -> Iterator[None]:
    """Have ``len`` give what a tensor says: Python makes a number of it, the example's.

    It is called too often to ask for the thread, and of all other tensors it is the same.
    """

    def length(x: Any) -> Any:
        return x.shape[0] if isinstance(x, torch.Tensor) and x.ndim else _LENGTH(x)

    builtins.len = length
    try:
        yield
    finally:
        builtins.len = _LENGTH


@contextmanager
def unchecked() -> Iterator[None]:
    """Have distributions check no values meanwhile, which tracers have not.

    What PyTorch traces itself, such as ``torch.cond``, leaves them so.
    """
    with checks_kept():
        Distribution.set_default_validate_args(False)
        yield


@contextmanager
def checks_kept() -> Iterator[None]:
    """Leave distributions as they are: PyTorch's own call of ``torch.cond`` ends their checks."""
    checked = Distribution._validate_args
    try:
        yield
    finally:
        Distribution.set_default_validate_args(checked)


def _while_tracing(ours: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Ours in the thread that traces, theirs in all others; the arguments are called as theirs."""

    @functools.wraps(theirs)
    def either(*args: Any, **kwargs: Any) -> Any:
        return (ours if getattr(_TRACING, "on", False) else theirs)(*args, **kwargs)

    return either


class _Substitutes(TorchFunctionMode):
    """Calls the substitutes in the place of what they stand for, on dense tensors."""

    def __init__(self, densely: bool) -> None:
        super().__init__()
        self._densely = densely
        self._in_full = Densely()

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if self._densely:
            check_layout(func, sys._getframe(1))
        substitute: Any = _SUBSTITUTES.get(func, func)
        args = [self._in_full(x) for x in args]
        return substitute(*args, **{k: self._in_full(x) for k, x in (kwargs or {}).items()})


# Draws


def _dirichlet(own: Dirichlet, sample_shape: Any = ()) -> torch.Tensor:
    """``Dirichlet.rsample``: gamma numbers over their sum."""
    drawn = torch._standard_gamma(own.concentration.expand(own._extended_shape(sample_shape)))
    return drawn / drawn.sum(-1, keepdim=True)


def _gamma(own: Gamma, sample_shape: Any = ()) -> torch.Tensor:
    """``Gamma.rsample``, whose least number it writes in without the slope noticing."""
    shape = own._extended_shape(sample_shape)
    drawn = torch._standard_gamma(own.concentration.expand(shape)) / own.rate.expand(shape)
    still = drawn.detach()
    return drawn + (still.clamp(min=torch.finfo(drawn.dtype).tiny) - still)


def _wishart(own: Wishart, sample_shape: Any = (), max_try_correction: Any = None) -> torch.Tensor:
    """``Wishart.rsample``, which draws anew where rounding makes a matrix singular."""
    return own._bartlett_sampling(torch.Size(sample_shape))


def _von_mises(own: VonMises, sample_shape: Any = ()) -> torch.Tensor:
    raise NotImplementedError(
        "from_torch: VonMises.sample() draws until enough is accepted, which depends on values: "
        "draw the angles outside of forward, and give them as an argument; its densities come in"
    )


def _random(x: torch.Tensor, *bounds: int, generator: Any = None, **named: Any) -> torch.Tensor:
    """``random_``, one of whose forms PyTorch cannot write down: ``from`` is a word of Python's."""
    low, high = named.get("from", 0), named.get("to")
    if bounds:
        low, high = bounds if len(bounds) == 2 else (low, bounds[0])
    return x.random_() if high is None else x.copy_(torch.randint_like(x, low, high))


def _binomial(count: torch.Tensor, prob: torch.Tensor, generator: Any = None) -> torch.Tensor:
    return OPS.binomial(count, prob)


# Functions of what a mask selects: PyTorch's own ask whether there is anything.


def _cross_entropy(
    input: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> torch.Tensor:
    arguments = (input, target, weight, size_average, ignore_index, reduce, reduction)
    if size_average is not None or reduce is not None or not _selected(input):
        return torch.nn.functional.cross_entropy(*arguments, label_smoothing)
    kind = ["none", "mean", "sum"].index(reduction)
    return OPS.cross_entropy_loss(input, target, weight, kind, ignore_index, label_smoothing)


def _nll_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> torch.Tensor:
    arguments = (input, target, weight, size_average, ignore_index, reduce, reduction)
    if size_average is not None or reduce is not None or not _selected(input):
        return torch.nn.functional.nll_loss(*arguments)
    kind = ["none", "mean", "sum"].index(reduction)
    return OPS.nll_loss_nd(input, target, weight, kind, ignore_index)


def _cdist(x1: torch.Tensor, x2: torch.Tensor, p: float = 2.0, compute_mode: Any = None) -> Any:
    if not _selected(x1) and not _selected(x2):
        return torch.cdist(x1, x2, p, compute_mode or "use_mm_for_euclid_dist_if_necessary")
    return OPS.cdist(x1, x2, p)


def _selected(x: torch.Tensor) -> bool:
    """Whether a size depends on values."""
    return any(map(of_values, x.shape))


# Modules that are moved, as by ``self.layer.to(x.device)``


def _unmoved(own: torch.nn.Module, fn: Callable[..., Any], recurse: bool = True) -> Any:
    """``Module._apply``, which does nothing to tensors that are already as it makes them."""
    for x in (*own.parameters(recurse), *own.buffers(recurse)):
        found = fn(x)
        if (found.dtype, found.device) != (x.dtype, x.device):
            raise Unfit(
                f"from_torch: this {type(own).__name__} is converted from {x.dtype} on {x.device} "
                f"to {found.dtype} on {found.device} in forward ({current_line()}): convert it "
                f"before the import"
            )
    return own


_SUBSTITUTES: dict[Any, Callable[..., Any]] = {
    **inner_transforms.CALLED,
    **sparse.CALLED,
    **recurrent_layers.CALLED,
    **CALLED,
    torch.binomial: _binomial,
    torch.cdist: _cdist,
    torch.nn.functional.cross_entropy: _cross_entropy,
    torch.nn.functional.nll_loss: _nll_loss,
    torch.Tensor.random_: _random,
}
_PATCHES: list[tuple[Any, str, Callable[..., Any]]] = [
    *inner_transforms.PATCHED,
    *recurrent_layers.PATCHED,
    *PATCHED,
    (torch.nn.Module, "_apply", _unmoved),
    (Dirichlet, "rsample", _dirichlet),
    (Gamma, "rsample", _gamma),
    (VonMises, "sample", _von_mises),
    (Wishart, "rsample", _wishart),
    (torch._C, "_infer_size", torch.broadcast_shapes),  # theirs takes no sizes of any value
]
