"""Replace what PyTorch cannot export by what it can, while a module is traced.

Distributions check their arguments by the values, which a trace has not; some draws have no shapes
for tracing, and some losses ask whether there is anything. Some shapes depend on values in PyTorch,
though for what modules use of the results they need not (``traceable``), and the momentum of batch
normalization with plain means is a number that no program can compute (``counting``).
``exportable`` is the state in which modules are exported, with all substitutes.

PyTorch traces next to nothing of what it computes with sparse tensors. Their products, sums and
elements are those of dense ones, so these stand in for them: those that a module holds, and those
that it makes. What asks for the places of their elements is refused.

PyTorch finds the shapes of recurrent layers' results by unrolling a layer over the example's steps,
which fixes their number and takes time. The layers stay whole here, so shapes are computed instead.
How many elements packed sequences have depends on the lengths. They are what a mask of the steps of
all sequences selects, step by step, and recurrent networks run over the rectangle with that mask.
"""

from __future__ import annotations

import builtins
import functools
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch._C import DispatchKey  # pyright: ignore[reportMissingImports]
from torch._decomp import decomposition_table  # pyright: ignore[reportMissingImports]
from torch._export.passes import replace_set_grad_with_hop_pass as passes  # pyright: ignore[reportMissingImports]
from torch._subclasses import fake_impls  # pyright: ignore[reportMissingImports]
from torch.distributions import Dirichlet, Distribution, Gamma, VonMises, Wishart  # pyright: ignore[reportMissingImports]
from torch.fx import GraphModule  # pyright: ignore[reportMissingImports]
from torch.nn.utils.rnn import PackedSequence  # pyright: ignore[reportMissingImports]
from torch.overrides import TorchFunctionMode  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]
from torch.utils._python_dispatch import _disable_current_modes  # pyright: ignore[reportMissingImports]

from stretto.torch.crossing import dense
from stretto.torch.export.failures import current_line
from stretto.torch.programs.buffers import COUNTED
from stretto.torch.trace import stand_ins
from stretto.torch.trace.derivative_marks import Unfit
from stretto.torch.trace.stand_ins import OPS, of_values

_WAY = (
    "sparse tensors are dense in an imported module, where all elements have a place: hold indices "
    "and values as tensors of their own"
)


@contextmanager
def held_densely(module: torch.nn.Module) -> Iterator[bool]:
    """Let a module hold dense tensors in the place of its sparse ones; gives whether it has any.

    Raises ``NotImplementedError`` for a sparse parameter.
    """
    for name, parameter in module.named_parameters():
        if parameter.layout is not torch.strided:
            raise NotImplementedError(
                f"from_torch: the parameter {name} is of layout {parameter.layout}, and its "
                f"gradient would be of its own places alone: hold its values as a dense parameter, "
                f"and make torch.sparse_coo_tensor(indices, values, size) of them in forward"
            )
    changed = [
        (holder, name, tensor)
        for part in module.modules()
        for holder in (part._buffers, part.__dict__)
        for name, tensor in holder.items()
        if isinstance(tensor, torch.Tensor) and tensor.layout is not torch.strided
    ]
    for holder, name, tensor in changed:
        holder[name] = dense(tensor)
    try:
        yield bool(changed)
    finally:
        for holder, name, tensor in changed:
            holder[name] = tensor


def all_dense(tree: Any) -> Any:
    """Return the tensors of a tree, dense ones in the place of sparse ones."""
    return pytree.tree_map(lambda x: dense(x) if isinstance(x, torch.Tensor) else x, tree)


class Densely:
    """Gives a dense tensor for a sparse one, always the same, and everything else as it is."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Any]] = {}

    def __call__(self, x: Any) -> Any:
        """Return the argument of a function, or a list of arguments, with dense tensors."""
        if type(x) is list or type(x) is tuple:
            return type(x)(map(self, x))
        if not isinstance(x, torch.Tensor) or x.layout is torch.strided:
            return x
        if id(x) not in self._known:
            with _disable_current_modes():  # a function's own constant, which is not traced
                self._known[id(x)] = x, dense(x)
        return self._known[id(x)][1]


def check_layout(function: Any, frame: FrameType | None) -> None:
    """Raise ``NotImplementedError`` where code that is not PyTorch's, nor ours, asks for a layout.

    ``frame`` is what called the function, perhaps behind modes of PyTorch's exporter.
    """
    if function in _OF_LAYOUTS:
        while frame is not None and frame.f_code.co_name == "__torch_function__":
            frame = frame.f_back
        name = "torch" if frame is None else frame.f_globals.get("__name__", "")
        if name.partition(".")[0] not in ("torch", "stretto"):
            _OF_LAYOUTS[function]()


def _of_places(
    indices: Any, values: Any, size: Sequence[int] | None = None, **how: Any
) -> torch.Tensor:
    """``torch.sparse_coo_tensor``: values are added up where places repeat."""
    if size is None:
        raise NotImplementedError(
            "from_torch: torch.sparse_coo_tensor without a size has one that depends on values: "
            "give it the size"
        )
    values = torch.as_tensor(values, dtype=how.get("dtype"))
    rows = tuple(torch.as_tensor(indices).unbind(0))
    return values.new_zeros(tuple(size)).index_put(rows, values, accumulate=True)


def _of_rows(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, **how: Any
) -> torch.Tensor:
    """``torch.sparse_csr_tensor`` of a matrix."""
    if size is None or len(size) != 2:
        raise NotImplementedError(
            "from_torch: torch.sparse_csr_tensor is taken for matrices, with their size"
        )
    columns = torch.as_tensor(col_indices)
    ends = torch.as_tensor(crow_indices)[1:]
    rows = torch.bucketize(torch.arange(columns.shape[0]), ends, right=True)
    return _of_places(torch.stack([rows, columns]), values, size, **how)


def _product(a: torch.Tensor, b: torch.Tensor, reduce: str | None = None) -> torch.Tensor:
    if reduce not in (None, "sum"):
        raise NotImplementedError(f"from_torch: torch.sparse.mm with reduce={reduce!r}: {_WAY}")
    return torch.mm(a, b)


def _sum(x: torch.Tensor, dim: Any = None, dtype: Any = None) -> torch.Tensor:
    return torch.sum(x, dtype=dtype) if dim is None else torch.sum(x, dim, dtype=dtype)


def _same(x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return x


def _in_dtype(x: torch.Tensor, dtype: Any = None, **_: Any) -> torch.Tensor:
    return x if dtype is None else x.to(dtype)


def _refused(name: str) -> Callable[..., Any]:
    def refused(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"from_torch: {name} is not supported: {_WAY}")

    return refused


_TENSOR = torch.Tensor

SPARSE_CALLED: dict[Any, Callable[..., Any]] = {
    torch.sparse_coo_tensor: _of_places,
    torch.sparse_csr_tensor: _of_rows,
    torch.sparse.mm: _product,
    torch.spmm: _product,
    torch.sparse.addmm: torch.addmm,
    torch._sparse_sum: _sum,
    _TENSOR.coalesce: _same,
    _TENSOR.is_coalesced: lambda x: True,
    _TENSOR.to_dense: _in_dtype,
    _TENSOR.to_sparse: _same,
    _TENSOR.to_sparse_coo: _same,
    _TENSOR.to_sparse_csr: _same,
    **{
        getattr(torch.sparse, name): _refused(f"torch.sparse.{name}")
        for name in ("softmax", "log_softmax", "sampled_addmm", "spdiags")
    },
    **{
        getattr(_TENSOR, name): _refused(f"Tensor.{name}")
        for name in (
            "_indices",
            "_nnz",
            "_values",
            "ccol_indices",
            "col_indices",
            "crow_indices",
            "dense_dim",
            "indices",
            "row_indices",
            "sparse_dim",
            "sparse_mask",
            "values",
        )
    },
}
"""The functions of dense tensors that stand for those of sparse ones."""

_OF_LAYOUTS: dict[Any, Callable[..., Any]] = {
    getattr(_TENSOR, name).__get__: _refused(f"Tensor.{name}, where a module holds sparse tensors,")
    for name in ("is_sparse", "is_sparse_csr", "layout")
}
"""The functions that tell sparse tensors from dense ones."""


_KEY = DispatchKey.CompositeImplicitAutograd


@contextmanager
def not_unrolled() -> Iterator[None]:
    """Export recurrent layers by their shapes alone."""
    aten = torch.ops.aten
    known = {
        aten.lstm.input: _lstm,
        aten.gru.input: _one_state,
        aten.rnn_tanh.input: _one_state,
        aten.rnn_relu.input: _one_state,
    }
    before = [(op, op.py_kernels[_KEY], decomposition_table[op]) for op in known]
    for op, shapes in known.items():
        op.py_kernels[_KEY] = decomposition_table[op] = shapes
    try:
        yield
    finally:
        for op, kernel, decomposition in before:
            op.py_kernels[_KEY], decomposition_table[op] = kernel, decomposition


def _lstm(x: Any, states: Sequence[Any], *settings: Any) -> tuple[Any, Any, Any]:
    out, hidden = _one_state(x, states[0], *settings)
    return out, hidden, torch.empty_like(states[1])


def _one_state(
    x: Any,
    state: Any,
    weights: Any,
    has_biases: bool,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Any, Any]:
    """Return empty results: (…, directions · size of the state), and a state as it was."""
    size = (2 if bidirectional else 1) * state.shape[-1]
    return x.new_empty((*x.shape[:-1], size)), torch.empty_like(state)


_KNOWN = threading.local()


@contextmanager
def packing() -> Iterator[None]:
    """Remember the packed sequences that are made meanwhile."""
    _KNOWN.packed = {}
    try:
        yield
    finally:
        _KNOWN.packed = {}


def _pack(
    input: torch.Tensor, lengths: torch.Tensor, batch_first: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """``torch._VF._pack_padded_sequence``: the elements, and how many sequences have each step."""
    x = input.transpose(0, 1) if batch_first else input
    steps = x.shape[0]
    known = _KNOWN.packed
    for other, sizes, mask, places, _ in known.values():
        if other is lengths and _same_size(mask.shape[0], steps):
            return x.flatten(0, 1).index_select(0, places), sizes
    mask = OPS.steps(lengths, steps)
    places = mask.flatten().nonzero().squeeze(1)
    some = mask.any(1).nonzero().squeeze(1)
    sizes = mask.sum(1).index_select(0, some)
    known[id(sizes)] = lengths, sizes, mask, places, some
    return x.flatten(0, 1).index_select(0, places), sizes


def _same_size(n: Any, m: Any) -> bool:
    """Say whether two sizes are known to be equal, without asking."""
    return n is m or str(n) == str(m)


def _packed(sizes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the mask of a packed sequence, the places of its true elements, and its steps."""
    if id(sizes) not in _KNOWN.packed:
        raise NotImplementedError(
            "from_torch: a packed sequence that pack_padded_sequence did not make inside of "
            "forward: pass the rectangle and the lengths, and pack them there"
        )
    return _KNOWN.packed[id(sizes)][2:]


def _unpack(
    data: torch.Tensor,
    sizes: torch.Tensor,
    batch_first: bool,
    padding_value: float,
    total_length: Any = -1,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``torch._VF._pad_packed_sequence``: a rectangle, and the lengths.

    It is as long as it should be or, by default, as the longest.
    """
    mask, places, some = _packed(sizes)
    steps, count = mask.shape
    flat = data.new_full((steps * count, *data.shape[1:]), padding_value)
    rows = flat.index_put((places,), data)
    x = rows.unflatten(0, (steps, count))
    if of_values(total_length):
        x = x.index_select(0, some)
    elif not _same_size(total_length, steps):
        more = x.new_full((total_length - steps, *x.shape[1:]), padding_value)
        x = torch.cat([x, more])
    return (x.transpose(0, 1) if batch_first else x), mask.sum(0)


def _recurrent(network: Any, input: Any, hx: Any = None) -> Any:
    """``forward`` of recurrent networks."""
    if not isinstance(input, PackedSequence):
        return _FORWARDS[network.mode](network, input, hx)
    data, sizes, order, back = input
    mask, places, _ = _packed(sizes)
    lead = network.num_layers * (1 + network.bidirectional), mask.shape[1]
    own = [network.proj_size or network.hidden_size]
    if network.mode == "LSTM":
        own.append(network.hidden_size)
    if hx is None:
        states = [data.new_zeros((*lead, n)) for n in own]
    else:
        given = [hx] if isinstance(hx, torch.Tensor) else list(hx)
        states = [h if order is None else h.index_select(1, order) for h in given]
    data, *last = OPS.recurrent(
        data,
        mask,
        places,
        states,
        [getattr(network, name) for name in network._flat_weights_names],
        network.mode,
        network.bias,
        network.num_layers,
        network.dropout,
        network.training,
        network.bidirectional,
    )
    last = [h if back is None else h.index_select(1, back) for h in last]
    packed = PackedSequence(data, sizes, order, back)
    return packed, (tuple(last) if network.mode == "LSTM" else last[0])


_FORWARDS = {
    "GRU": torch.nn.GRU.forward,
    "LSTM": torch.nn.LSTM.forward,
    "RNN_RELU": torch.nn.RNN.forward,
    "RNN_TANH": torch.nn.RNN.forward,
}
RECURRENT_CALLED: dict[Any, Callable[..., Any]] = {
    torch._VF._pack_padded_sequence: _pack,
    torch._VF._pad_packed_sequence: _unpack,
}
RECURRENT_PATCHED: list[tuple[Any, str, Callable[..., Any]]] = [
    (torch.nn.GRU, "forward", _recurrent),
    (torch.nn.LSTM, "forward", _recurrent),
    (torch.nn.RNN, "forward", _recurrent),
]


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
    """Return a loss that gets its lengths as tensors: of numbers it makes some without data."""

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
    """Return PyTorch's form of a rule for shapes; where ours gives None, PyTorch's own holds."""

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
"""The places in PyTorch's modules and classes, and what stands there while a module is exported."""


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
            packing(),
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
    """Return ours for the thread that traces, theirs for others, with the signature of theirs."""

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
    """Say whether a size depends on values."""
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
    **stand_ins.CALLED,
    **SPARSE_CALLED,
    **RECURRENT_CALLED,
    **CALLED,
    torch.binomial: _binomial,
    torch.cdist: _cdist,
    torch.nn.functional.cross_entropy: _cross_entropy,
    torch.nn.functional.nll_loss: _nll_loss,
    torch.Tensor.random_: _random,
}
_PATCHES: list[tuple[Any, str, Callable[..., Any]]] = [
    *stand_ins.PATCHED,
    *RECURRENT_PATCHED,
    *PATCHED,
    (torch.nn.Module, "_apply", _unmoved),
    (Dirichlet, "rsample", _dirichlet),
    (Gamma, "rsample", _gamma),
    (VonMises, "sample", _von_mises),
    (Wishart, "rsample", _wishart),
    (torch._C, "_infer_size", torch.broadcast_shapes),  # theirs takes no sizes of any value
]
