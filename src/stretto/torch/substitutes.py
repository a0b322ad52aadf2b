"""What PyTorch cannot export, replaced by what it can while a module is traced.

Distributions check their arguments by the values, which a trace has not; some draws have no
shapes for tracing; and PyTorch traces neither its own derivatives nor its own maps. For those an
operation is left in the graph that names their results and what these were computed from (``parts``
makes a subgraph of what lies between). ``exportable`` is the state in which modules are exported.
This module imports PyTorch. Next, read ``parts``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch._functorch import apis, eager_transforms  # pyright: ignore[reportMissingImports]
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols  # pyright: ignore[reportMissingImports]
from torch.distributions import Dirichlet, Distribution, Gamma  # pyright: ignore[reportMissingImports]
from torch.nn.utils.rnn import PackedSequence  # pyright: ignore[reportMissingImports]
from torch.overrides import TorchFunctionMode  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]

__all__ = ["exportable"]

_TRACING = threading.local()


@contextmanager
def exportable() -> Iterator[None]:
    """Trace modules with distributions that check no values, and with the substitutes.

    Gradients are on while it lasts, as they are when a module is called without more ado.
    """
    checked = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    originals = [(place, name, getattr(place, name)) for place, name, _ in _PATCHES]
    for (place, name, ours), (*_, theirs) in zip(_PATCHES, originals, strict=True):
        setattr(place, name, _while_tracing(ours, theirs))
    _TRACING.on, _TRACING.packed = True, {}
    try:
        with torch.enable_grad(), _Substitutes():
            yield
    finally:
        _TRACING.on, _TRACING.packed = False, {}
        for place, name, theirs in originals:
            setattr(place, name, theirs)
        Distribution.set_default_validate_args(checked)


def _while_tracing(ours: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Ours in the thread that traces, theirs in all others."""
    return lambda *args, **kwargs: (ours if getattr(_TRACING, "on", False) else theirs)(
        *args, **kwargs
    )


class _Substitutes(TorchFunctionMode):
    """Calls the substitutes in the place of what they stand for."""

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        substitute = _SUBSTITUTES.get(func)
        if substitute is None:
            return func(*args, **(kwargs or {}))
        return substitute(*args, **(kwargs or {}))


# Operations that the graph holds. They compute nothing in PyTorch.

_OWN = torch.library.Library("stretto", "FRAGMENT")


def _operation(schema: str, shape: Callable[..., Any]) -> None:
    """An operation with this rule for shapes, through which PyTorch sees that gradients pass."""
    _OWN.define(schema)
    name = "stretto::" + schema.partition("(")[0]
    torch.library.register_fake(name, shape, lib=_OWN)
    torch.library.register_autograd(name, _no_backward, lib=_OWN)


def _no_backward(*_: Any) -> Any:
    raise NotImplementedError("operations of stretto are differentiated by stretto alone")


def _alike(xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.empty_like(x) for x in xs]


def _steps(lengths: torch.Tensor, steps: int) -> torch.Tensor:
    return lengths.new_empty((steps, lengths.shape[0]), dtype=torch.bool)


def _batched(
    outputs: Sequence[torch.Tensor],
    examples: Sequence[torch.Tensor],
    operands: Sequence[torch.Tensor],
    in_dims: Sequence[int],
    out_dims: Sequence[int],
    randomness: str,
) -> list[torch.Tensor]:
    n = operands[0].shape[in_dims[0]]
    return [
        x.new_empty((*x.shape[: d % (x.ndim + 1)], n, *x.shape[d % (x.ndim + 1) :]))
        for x, d in zip(outputs, out_dims, strict=True)
    ]


_operation("binomial(Tensor count, Tensor prob) -> Tensor", lambda n, p: torch.empty_like(n + p))
_operation(
    "cross_entropy_loss(Tensor x, Tensor target, Tensor? weight, int reduction, "
    "SymInt ignore_index, float label_smoothing) -> Tensor",
    lambda x, target, weight, reduction, *_: (
        x.new_empty(()) if reduction else x.new_empty((*x.shape[:1], *x.shape[2:]))
    ),
)
_operation(
    "nll_loss_nd(Tensor x, Tensor target, Tensor? weight, int reduction, SymInt ignore_index)"
    " -> Tensor",
    lambda x, target, weight, reduction, *_: (
        x.new_empty(()) if reduction else x.new_empty((*x.shape[:1], *x.shape[2:]))
    ),
)
_operation("fresh(Tensor x) -> Tensor", torch.empty_like)
_operation(
    "example(Tensor x, int dim) -> Tensor",
    lambda x, dim: x.new_empty((*x.shape[:dim], *x.shape[dim + 1 :])),
)
_operation(
    "grad(Tensor[] outputs, Tensor[] inputs, Tensor?[] cotangents) -> Tensor[]",
    lambda outputs, inputs, cotangents: _alike(inputs),
)
_operation(
    "jvp(Tensor[] outputs, Tensor[] inputs, Tensor[] tangents) -> Tensor[]",
    lambda outputs, inputs, tangents: _alike(outputs),
)
_operation(
    "vmap(Tensor[] outputs, Tensor[] examples, Tensor[] operands, int[] in_dims, int[] out_dims, "
    "str randomness) -> Tensor[]",
    _batched,
)
_operation("steps(Tensor lengths, SymInt steps) -> Tensor", _steps)
_operation(
    "recurrent(Tensor data, Tensor mask, Tensor places, Tensor[] states, Tensor[] weights, "
    "str mode, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional)"
    " -> Tensor[]",
    lambda data, mask, places, states, weights, mode, biases, layers, dropout, train, both: [
        data.new_empty((data.shape[0], states[0].shape[-1] * (1 + both))),
        *_alike(states),
    ],
)
_OPS = torch.ops.stretto


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


def _random(x: torch.Tensor, *bounds: int, generator: Any = None, **named: Any) -> torch.Tensor:
    """``random_``, one of whose forms PyTorch cannot write down: ``from`` is a word of Python's."""
    low, high = named.get("from", 0), named.get("to")
    if bounds:
        low, high = bounds if len(bounds) == 2 else (low, bounds[0])
    return x.random_() if high is None else x.copy_(torch.randint_like(x, low, high))


def _binomial(count: torch.Tensor, prob: torch.Tensor, generator: Any = None) -> torch.Tensor:
    return _OPS.binomial(count, prob)


# Packed sequences. Their elements are what a mask of the steps of all sequences selects, step by step.


def _pack(
    input: torch.Tensor, lengths: torch.Tensor, batch_first: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """``torch._VF._pack_padded_sequence``: the elements, and how many sequences have each step."""
    x = input.transpose(0, 1) if batch_first else input
    steps = x.shape[0]
    known = _TRACING.packed
    for other, sizes, mask, places, _ in known.values():
        if other is lengths and _same_size(mask.shape[0], steps):
            return x.flatten(0, 1).index_select(0, places), sizes
    mask = _OPS.steps(lengths, steps)
    places = mask.flatten().nonzero().squeeze(1)
    some = mask.any(1).nonzero().squeeze(1)
    sizes = mask.sum(1).index_select(0, some)
    known[id(sizes)] = lengths, sizes, mask, places, some
    return x.flatten(0, 1).index_select(0, places), sizes


def _same_size(n: Any, m: Any) -> bool:
    """Whether two sizes are known to be equal, without asking."""
    return n is m or str(n) == str(m)


def _packed(sizes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The mask of a packed sequence, the places of its true elements, and the steps that are."""
    if id(sizes) not in _TRACING.packed:
        raise NotImplementedError(
            "from_torch: a packed sequence that pack_padded_sequence did not make inside of "
            "forward: pass the rectangle and the lengths, and pack them there"
        )
    return _TRACING.packed[id(sizes)][2:]


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
    if _of_values(total_length):
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
    data, *last = _OPS.recurrent(
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


# Losses of what a mask selects: PyTorch's own ask whether there is anything.


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
    return _OPS.cross_entropy_loss(input, target, weight, kind, ignore_index, label_smoothing)


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
    return _OPS.nll_loss_nd(input, target, weight, kind, ignore_index)


def _selected(x: torch.Tensor) -> bool:
    """Whether a size depends on values."""
    return any(map(_of_values, x.shape))


def _of_values(n: Any) -> bool:
    """Whether a size depends on values."""
    return not isinstance(n, int) and bool(free_unbacked_symbols(n))


# Derivatives


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, torch.Tensor) else tuple(x)


def _grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[torch.Tensor | None, ...]:
    """``torch.autograd.grad``."""
    outs, ins = _as_tuple(outputs), _as_tuple(inputs)
    cts = (None,) * len(outs) if grad_outputs is None else _as_tuple_or_none(grad_outputs)
    if is_grads_batched:
        given = [ct for ct in cts if ct is not None]

        def of_one(*some: torch.Tensor) -> Any:
            rest = iter(some)
            own = tuple([None if ct is None else next(rest) for ct in cts])
            return _grad(outs, ins, own, create_graph=create_graph, materialize_grads=True)

        return _vmap(of_one, 0, 0, "error", None, *given)
    for out, ct in zip(outs, cts, strict=True):
        if not out.requires_grad:
            raise RuntimeError(
                "torch.autograd.grad: an output does not require gradients: it is computed from "
                "nothing that does, or under torch.no_grad()"
            )
        if ct is None and out.numel() != 1:
            raise RuntimeError(
                f"torch.autograd.grad: an output of shape {tuple(out.shape)} is no scalar: give "
                f"grad_outputs, or sum it"
            )
    history = _history([out.grad_fn for out in outs])
    used = [any([x is out for out in outs]) or _of(x) in history for x in ins]
    if not all(used) and not (allow_unused or materialize_grads):
        raise RuntimeError(
            f"torch.autograd.grad: its input {used.index(False)} was not used to compute the "
            f"outputs: allow_unused=True gives None for it"
        )
    wanted = [x for x, u in zip(ins, used, strict=True) if u]
    found = iter(_OPS.grad(list(outs), wanted, list(cts)) if wanted else [])
    unused = torch.zeros_like if materialize_grads else lambda x: None
    grads = [next(found) if u else unused(x) for x, u in zip(ins, used, strict=True)]
    return tuple([g if create_graph or g is None else g.detach() for g in grads])


def _as_tuple_or_none(x: Any) -> tuple[Any, ...]:
    return (x,) if x is None else _as_tuple(x)


def _of(x: torch.Tensor) -> Any:
    """What stands for a tensor in the history of others."""
    return id(x) if x.grad_fn is None else x.grad_fn


def _history(nodes: Sequence[Any]) -> set[Any]:
    """The steps of autograd that lead to these, and the leaves that they begin with."""
    seen: set[Any] = set()
    waiting = [node for node in nodes if node is not None]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            seen.add(id(node.variable))
        waiting += [before for before, _ in node.next_functions if before is not None]
    return seen


def _backward(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError(
        "from_torch: backward() inside of forward adds to .grad, which a program has not: take "
        "torch.autograd.grad(output, inputs), which gives the gradients"
    )


def _fresh(tree: Any) -> Any:
    """The tensors of a tree as values of their own, by which derivatives are taken."""

    def own(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or not (x.is_floating_point() or x.is_complex()):
            return x
        made = _OPS.fresh(x)
        return made if made.requires_grad else made.requires_grad_()

    return pytree.tree_map(own, tree)


def _chosen(args: Sequence[Any], argnums: Any) -> tuple[tuple[int, ...], list[Any]]:
    """Which arguments, and all of them with those made fresh."""
    which = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    places = tuple([k % len(args) for k in which])
    return places, [_fresh(x) if k in places else x for k, x in enumerate(args)]


def _pulled_back(outs: Any, ins: Any, cts: Any) -> Any:
    """The gradients of a tree of tensors, as a tree like ``ins``."""
    leaves, spec = pytree.tree_flatten(ins)
    results, given = pytree.tree_leaves(outs), pytree.tree_leaves(cts)
    moving = [k for k, out in enumerate(results) if out.requires_grad]
    if not moving:
        return pytree.tree_map(torch.zeros_like, ins)
    chosen = [results[k] for k in moving]
    grads = _grad(
        chosen,
        leaves,
        [given[k] for k in moving],
        create_graph=True,
        materialize_grads=True,
    )
    return pytree.tree_unflatten(list(grads), spec)


def _grad_and_value(
    func: Callable[..., Any], argnums: Any, has_aux: bool, args: Any, kwargs: Any
) -> Any:
    """``torch.func.grad_and_value``."""
    places, own = _chosen(args, argnums)
    with torch.enable_grad():
        result = func(*own, **kwargs)
        value, aux = result if has_aux else (result, None)
        ins = own[places[0]] if isinstance(argnums, int) else tuple([own[k] for k in places])
        grads = _pulled_back(value, ins, torch.ones_like(value))
    return grads, ((value, aux) if has_aux else value)


def _func_grad(
    func: Callable[..., Any], argnums: Any, has_aux: bool, args: Any, kwargs: Any
) -> Any:
    """``torch.func.grad``."""
    grads, value = _grad_and_value(func, argnums, has_aux, args, kwargs)
    return (grads, value[1]) if has_aux else grads


def _vjp(
    func: Callable[..., Any], *primals: Any, argnums: Any = None, has_aux: bool = False
) -> Any:
    """``torch.func.vjp``, which those of Jacobians call, too."""
    places, own = _chosen(primals, tuple(range(len(primals))) if argnums is None else argnums)
    with torch.enable_grad():
        result = func(*own)
    value, aux = result if has_aux else (result, None)
    ins = own[places[0]] if isinstance(argnums, int) else tuple([own[k] for k in places])

    def pullback(cts: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        return _pulled_back(value, ins, cts)

    return (value, pullback, aux) if has_aux else (value, pullback)


def _jvp(
    func: Callable[..., Any],
    primals: Any,
    tangents: Any,
    argnums: Any = None,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """``torch.func.jvp``, which that of forward Jacobians calls, too."""
    places, own = _chosen(primals, tuple(range(len(primals))) if argnums is None else argnums)
    with torch.enable_grad():
        result = func(*own)
    value, aux = result if has_aux else (result, None)
    ins = pytree.tree_leaves([own[k] for k in places])
    outs, spec = pytree.tree_flatten(value)
    history = _history([out.grad_fn for out in outs])
    given = pytree.tree_leaves(tangents)
    used = [k for k, x in enumerate(ins) if _of(x) in history]
    moving = [k for k, out in enumerate(outs) if out.requires_grad] if used else []
    found = iter(
        _OPS.jvp([outs[k] for k in moving], [ins[k] for k in used], [given[k] for k in used])
        if moving
        else []
    )
    moved = [next(found) if k in moving else torch.zeros_like(out) for k, out in enumerate(outs)]
    both = value, pytree.tree_unflatten(moved, spec)
    return (*both, aux) if has_aux else both


# Maps


def _vmap(
    func: Callable[..., Any],
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """``torch.func.vmap``: the function is traced for one example."""
    leaves, spec = pytree.tree_flatten(args)
    dims = _dims(in_dims, args, spec)
    named, named_spec = pytree.tree_flatten(kwargs)
    dims += [0 if isinstance(x, torch.Tensor) else None for x in named]
    leaves += named
    mapped = [k for k, d in enumerate(dims) if d is not None]
    if not mapped:
        raise ValueError("vmap: at least one argument must be mapped")
    places = {k: dims[k] % leaves[k].ndim for k in mapped}
    own = [_OPS.example(x, places[k]) if k in places else x for k, x in enumerate(leaves)]
    examples = [own[k] for k in mapped]
    count = len(leaves) - len(named)
    result = func(
        *pytree.tree_unflatten(own[:count], spec),
        **pytree.tree_unflatten(own[count:], named_spec),
    )
    outs, out_spec = pytree.tree_flatten(result)
    wanted = pytree._broadcast_to_and_flatten(out_dims, out_spec)
    if wanted is None:
        raise ValueError(f"vmap: out_dims {out_dims} does not fit what the function gives")
    given = [k for k, d in enumerate(wanted) if d is not None]
    operands = [leaves[k] for k in mapped]
    in_axes, out_axes = [places[k] for k in mapped], [wanted[k] for k in given]
    batched = _OPS.vmap(
        [outs[k] for k in given], examples, operands, in_axes, out_axes, randomness
    )
    for k, x in zip(given, batched, strict=True):
        outs[k] = x
    return pytree.tree_unflatten(outs, out_spec)


def _dims(in_dims: Any, args: Any, spec: Any) -> list[int | None]:
    """For each leaf of the arguments the axis that is mapped."""
    whole = list(in_dims) if isinstance(in_dims, (list, tuple)) else in_dims
    found = pytree._broadcast_to_and_flatten(
        tuple(whole) if isinstance(whole, list) and isinstance(args, tuple) else whole, spec
    )
    if found is None:
        raise ValueError(f"vmap: in_dims {in_dims} does not fit the arguments")
    return list(found)


_FORWARDS = {
    "GRU": torch.nn.GRU.forward,
    "LSTM": torch.nn.LSTM.forward,
    "RNN_RELU": torch.nn.RNN.forward,
    "RNN_TANH": torch.nn.RNN.forward,
}
_SUBSTITUTES: dict[Any, Callable[..., Any]] = {
    torch._VF._pack_padded_sequence: _pack,
    torch._VF._pad_packed_sequence: _unpack,
    torch.autograd.backward: _backward,
    torch.autograd.grad: _grad,
    torch.binomial: _binomial,
    torch.nn.functional.cross_entropy: _cross_entropy,
    torch.nn.functional.nll_loss: _nll_loss,
    torch.Tensor.backward: _backward,
    torch.Tensor.random_: _random,
}
_PATCHES: list[tuple[Any, str, Callable[..., Any]]] = [
    (Dirichlet, "rsample", _dirichlet),
    (Gamma, "rsample", _gamma),
    (apis, "vmap_impl", _vmap),
    (eager_transforms, "_jvp_with_argnums", _jvp),
    (eager_transforms, "_vjp_with_argnums", _vjp),
    (eager_transforms, "grad_and_value_impl", _grad_and_value),
    (eager_transforms, "grad_impl", _func_grad),
    (torch._C, "_infer_size", torch.broadcast_shapes),  # theirs takes no sizes of any value
    (torch.nn.GRU, "forward", _recurrent),
    (torch.nn.LSTM, "forward", _recurrent),
    (torch.nn.RNN, "forward", _recurrent),
]
