"""Operations that stand in a trace for what PyTorch cannot trace itself, as derivatives and maps.

They compute nothing in PyTorch: each has a rule for shapes, and the table has its function.

PyTorch traces neither ``torch.autograd.grad`` nor ``torch.func`` inside of a module's ``forward``.
Here each computes what it is of with ordinary tensors, one example for ``vmap``, and leaves an
operation that names results and what these were computed from; ``subgraphs`` makes a subgraph of
what lies between. This module imports PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch._functorch import apis, eager_transforms  # pyright: ignore[reportMissingImports]
from torch.autograd.function import _SingleLevelFunction  # pyright: ignore[reportMissingImports]
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]
from torch.utils._python_dispatch import TorchDispatchMode  # pyright: ignore[reportMissingImports]

_OWN = torch.library.Library("stretto", "FRAGMENT")


class _Passing(torch.autograd.Function):
    """Lets PyTorch see that gradients pass from the results of an operation to its operands."""

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Note it as PyTorch does, whatever is done with others' functions meanwhile."""
        return super(_SingleLevelFunction, cls).apply(*args)  # pyright: ignore

    @staticmethod
    def forward(ctx: Any, compute: Callable[[], Any], *operands: torch.Tensor) -> Any:
        """Compute the results, as a tuple where there are several."""
        results = compute()
        return tuple(results) if isinstance(results, list) else results

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:
        """Refuse: the trace is read, and not run."""
        raise NotImplementedError("operations of stretto are differentiated by stretto alone")


def _operation(schema: str, shape: Callable[..., Any]) -> None:
    """Define an operation with this rule for shapes, through which gradients are seen to pass."""
    _OWN.define(schema)
    name = schema.partition("(")[0]
    torch.library.register_fake(f"stretto::{name}", shape, lib=_OWN)
    operation = getattr(torch.ops.stretto, name).default

    def noted(*args: Any) -> Any:
        def compute() -> Any:
            with torch._C._AutoDispatchBelowAutograd():
                return operation(*args)

        operands = [x for x in pytree.tree_leaves(args) if isinstance(x, torch.Tensor)]
        if not torch.is_grad_enabled() or not any([x.requires_grad for x in operands]):
            return compute()
        results = _Passing.apply(compute, *operands)
        return list(results) if isinstance(results, tuple) else results

    _OWN.impl(name, noted, "Autograd")


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
    "cdist(Tensor x, Tensor y, float p) -> Tensor",
    lambda x, y, p: x.new_empty(
        (*torch.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-2])
    ),
)
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
OPS = torch.ops.stretto


def of_values(n: Any) -> bool:
    """Say whether a size depends on values."""
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
    history = _history([_step(out) for out in outs])
    used = [any([x is out for out in outs]) or _of(x) in history for x in ins]
    if not all(used) and not (allow_unused or materialize_grads):
        raise RuntimeError(
            f"torch.autograd.grad: its input {used.index(False)} was not used to compute the "
            f"outputs: allow_unused=True gives None for it"
        )
    wanted = [x for x, u in zip(ins, used, strict=True) if u]
    found = iter(OPS.grad(list(outs), wanted, list(cts)) if wanted else [])
    unused = torch.zeros_like if materialize_grads else lambda x: None
    grads = [next(found) if u else unused(x) for x, u in zip(ins, used, strict=True)]
    return tuple([g if create_graph or g is None else g.detach() for g in grads])


def _as_tuple_or_none(x: Any) -> tuple[Any, ...]:
    return (x,) if x is None else _as_tuple(x)


def _of(x: torch.Tensor) -> Any:
    """Return what stands for a tensor in the history of others."""
    step = _step(x)
    return id(x) if step is None else step


def _step(x: torch.Tensor) -> Any:
    """Return the step of autograd that gave a tensor, as PyTorch holds it."""
    with torch._C.DisableTorchFunction():
        return torch._C.TensorBase.grad_fn.__get__(x)


def _history(nodes: Sequence[Any]) -> set[Any]:
    """Return the steps of autograd that lead to these, and the leaves that they begin with."""
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
    """Return the tensors of a tree as values of their own, by which derivatives are taken."""

    def own(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or not (x.is_floating_point() or x.is_complex()):
            return x
        made = OPS.fresh(x)
        return made if made.requires_grad else made.requires_grad_()

    return pytree.tree_map(own, tree)


def _chosen(args: Sequence[Any], argnums: Any) -> tuple[tuple[int, ...], list[Any]]:
    """Return which arguments, and all of them with those made fresh."""
    which = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    places = tuple([k % len(args) for k in which])
    return places, [_fresh(x) if k in places else x for k, x in enumerate(args)]


def _pulled_back(outs: Any, ins: Any, cts: Any) -> Any:
    """Return the gradients of a tree of tensors, as a tree like ``ins``."""
    leaves, spec = pytree.tree_flatten(ins)
    results, given = pytree.tree_leaves(outs), pytree.tree_leaves(cts)
    moving = [k for k, out in enumerate(results) if out.requires_grad]
    if not moving:
        return pytree.tree_map(torch.zeros_like, ins)
    chosen = [results[k] for k in moving]
    grads = _grad(
        chosen, leaves, [given[k] for k in moving], create_graph=True, materialize_grads=True
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
    history = _history([_step(out) for out in outs])
    given = pytree.tree_leaves(tangents)
    used = [k for k, x in enumerate(ins) if _of(x) in history]
    moving = [k for k, out in enumerate(outs) if out.requires_grad] if used else []
    found = iter(
        OPS.jvp([outs[k] for k in moving], [ins[k] for k in used], [given[k] for k in used])
        if moving
        else []
    )
    moved = [next(found) if k in moving else torch.zeros_like(out) for k, out in enumerate(outs)]
    both = value, pytree.tree_unflatten(moved, spec)
    return (*both, aux) if has_aux else both


def _linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """``torch.func.linearize``: what its function gives is computed in each call."""
    return func(*primals), lambda *tangents: _jvp(func, primals, tangents)[1]


def _by_name(*_: Any, **__: Any) -> Any:
    raise NotImplementedError(
        "from_torch: linearize, imported by its name, traces its function, and is traced itself: "
        "call it as torch.func.linearize, or take torch.func.jvp"
    )


# Maps


class _Draws(TorchDispatchMode):
    """Refuses random numbers, as ``vmap`` does that is not told whether examples share them."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if torch.Tag.nondeterministic_seeded in func.tags:
            raise RuntimeError(
                f"torch.func.vmap: {func} draws random numbers inside: give vmap "
                f"randomness='different' or 'same', or draw them before"
            )
        return func(*args, **(kwargs or {}))


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
    own = [OPS.example(x, places[k]) if k in places else x for k, x in enumerate(leaves)]
    examples = [own[k] for k in mapped]
    count = len(leaves) - len(named)
    with _Draws() if randomness == "error" else nullcontext():
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
    batched = OPS.vmap([outs[k] for k in given], examples, operands, in_axes, out_axes, randomness)
    for k, x in zip(given, batched, strict=True):
        outs[k] = x
    return pytree.tree_unflatten(outs, out_spec)


def _dims(in_dims: Any, args: Any, spec: Any) -> list[int | None]:
    """Return for each leaf of the arguments the axis that is mapped."""
    whole = list(in_dims) if isinstance(in_dims, (list, tuple)) else in_dims
    found = pytree._broadcast_to_and_flatten(
        tuple(whole) if isinstance(whole, list) and isinstance(args, tuple) else whole, spec
    )
    if found is None:
        raise ValueError(f"vmap: in_dims {in_dims} does not fit the arguments")
    return list(found)


CALLED: dict[Any, Callable[..., Any]] = {
    torch.autograd.backward: _backward,
    torch.autograd.grad: _grad,
    torch.Tensor.backward: _backward,
}
PATCHED: list[tuple[Any, str, Callable[..., Any]]] = [
    (apis, "vmap_impl", _vmap),
    (torch.func, "linearize", _linearize),
    (eager_transforms, "lazy_dynamo_disallow", lambda function: function),
    (eager_transforms, "make_fx", _by_name),
    (eager_transforms, "_jvp_with_argnums", _jvp),
    (eager_transforms, "_vjp_with_argnums", _vjp),
    (eager_transforms, "grad_and_value_impl", _grad_and_value),
    (eager_transforms, "grad_impl", _func_grad),
]
