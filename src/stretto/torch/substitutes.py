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
from torch.distributions import Distribution  # pyright: ignore[reportMissingImports]
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
    _TRACING.on = True
    try:
        with torch.enable_grad(), _Substitutes():
            yield
    finally:
        _TRACING.on = False
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

_OWN = torch.library.Library("stretto", "DEF")


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
_OPS = torch.ops.stretto


# Draws


def _dirichlet(concentration: torch.Tensor, generator: Any = None) -> torch.Tensor:
    """Gamma numbers over their sum: ``_sample_dirichlet`` has no shape for tracing."""
    drawn = torch._standard_gamma(concentration)
    return drawn / drawn.sum(-1, keepdim=True)


def _binomial(count: torch.Tensor, prob: torch.Tensor, generator: Any = None) -> torch.Tensor:
    return _OPS.binomial(count, prob)


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
    return any([bool(free_unbacked_symbols(n)) for n in x.shape if not isinstance(n, int)])


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


_SUBSTITUTES: dict[Any, Callable[..., Any]] = {
    torch._sample_dirichlet: _dirichlet,
    torch.autograd.backward: _backward,
    torch.autograd.grad: _grad,
    torch.binomial: _binomial,
    torch.nn.functional.cross_entropy: _cross_entropy,
    torch.nn.functional.nll_loss: _nll_loss,
    torch.Tensor.backward: _backward,
}
_PATCHES: list[tuple[Any, str, Callable[..., Any]]] = [
    (apis, "vmap_impl", _vmap),
    (eager_transforms, "_jvp_with_argnums", _jvp),
    (eager_transforms, "_vjp_with_argnums", _vjp),
    (eager_transforms, "grad_and_value_impl", _grad_and_value),
    (eager_transforms, "grad_impl", _func_grad),
]
