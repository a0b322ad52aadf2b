"""Operations that hold a part of a graph, and arithmetic of sizes.

``with_backward`` is no operation of PyTorch's: ``trace.derivative_marks`` marks with it where a
module gives a derivative by itself, and ``export.capture`` makes a graph of the rule. The others
are control flow, what ``torch.autograd.grad`` and ``torch.func`` do inside of a module, and what
masks select whose values decide on its size (``programs.subgraphs``). An operation asks whether
buffers are as they were imported.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto import lax, random
from stretto._engine.api.autodiff.derivatives import jvp, vjp
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.errors import SizeError
from stretto._engine.core.interpreter import Tracer, Value, as_value
from stretto._engine.core.recorder import record
from stretto._engine.core.size_guards import known_sizes, varying_sizes
from stretto._engine.core.sizes import Size, SizeVariable, at_least, at_most, greater, size_of
from stretto._engine.core.types import ArrayType
from stretto._engine.higher_order.custom_derivatives import custom_jvp, custom_vjp
from stretto._engine.higher_order.sized_call import SizedCall
from stretto.numpy.unique import starts_of_runs
from stretto.random.streams import next_key
from stretto.torch.table.aten_indexing import readable

_OF_PYTHON = [
    "add",
    "and_",
    "eq",
    "floordiv",
    "ge",
    "getitem",
    "gt",
    "le",
    "lt",
    "mod",
    "mul",
    "ne",
    "neg",
    "not_",
    "or_",
    "pos",
    "pow",
    "sub",
    "truediv",
]


def _conditional(
    predicate: Any, true: Callable[..., Any], false: Callable[..., Any], operands: Sequence[Any]
) -> Any:
    if isinstance(predicate, bool):
        return tuple((true if predicate else false)(*operands))
    branches = [lambda *xs, f=f: tuple(f(*xs)) for f in (true, false)]
    return lax.cond(predicate.reshape(()), *branches, *operands)


def _loop(
    condition: Callable[..., Any], body: Callable[..., Any], carried: Sequence[Any], more: Any = ()
) -> Any:
    """``torch.while_loop``: ``more`` is what condition and body read and do not change."""
    return lax.while_loop(
        lambda xs: condition(*xs, *more)[0].reshape(()),
        lambda xs: tuple(body(*xs, *more)),
        tuple(carried),
    )


def _without_gradient(enabled: bool, function: Callable[..., Any], *operands: Any) -> Any:
    results = function(*operands)
    return tuple(results if enabled else map(lax.stop_gradient, results))


def _as_imported(buffer: Any, values: Sequence[Any], name: str) -> Any:
    """Say whether a buffer is as it was imported; raise where it is known that it is not."""
    expected = np.asarray(values, buffer.dtype).reshape(buffer.shape)
    if isinstance(buffer, Tracer):
        return snp.array_equal(buffer, expected, equal_nan=buffer.dtype.kind in "fc")
    if not np.array_equal(np.asarray(buffer), expected, equal_nan=buffer.dtype.kind in "fc"):
        raise ValueError(
            f"the program of this imported module is made for the values that its buffer {name} "
            f"had, as the module makes a number of Python of it (.item(), int(), if): import the "
            f"module anew with these values"
        )
    return True


def _where_as_imported(same: Any, x: Any) -> Any:
    """Return a result, or NaN (-1 of an integer) where a program is not made for a buffer."""
    if same is True or x.dtype.kind == "b":
        return x
    return snp.where(same, x, snp.asarray(-1 if x.dtype.kind in "iu" else snp.nan, x.dtype))


def _with_backward(
    name: str,
    once: bool,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    residuals: Sequence[Any],
    gradients: Callable[..., Sequence[Any]],
) -> tuple[Any, ...]:
    """Return the outputs, whose derivative by the inputs is had from ``gradients``.

    ``gradients`` takes the outputs' cotangents and the residuals. Where a residual is an output,
    as of ``save_for_backward(y)``, its own derivative is this one as well.
    """
    kept = [k for k, x in enumerate(residuals) if isinstance(x, Value)]
    same = {n: j for n, k in enumerate(kept) for j, y in enumerate(outputs) if residuals[k] is y}

    def plain(inputs: Sequence[Any], outputs: Sequence[Any], arrays: Sequence[Any]) -> Any:
        return tuple(outputs)

    def forward(inputs: Sequence[Any], outputs: Sequence[Any], arrays: Sequence[Any]) -> Any:
        made = rule(inputs, outputs, arrays)
        saved = [made[same[n]] if n in same else x for n, x in enumerate(arrays)]
        return made, saved

    def backward(arrays: Sequence[Any], cotangents: Sequence[Any]) -> Any:
        if once:
            arrays, cotangents = _once(name, arrays, cotangents)
        known = list(residuals)
        for k, x in zip(kept, arrays, strict=True):
            known[k] = x
        # complex cotangents are the conjugates of PyTorch's
        results = gradients(*map(snp.conj, cotangents), *known)
        return tuple(map(snp.conj, results)), None, None

    plain.__name__ = plain.__qualname__ = name
    rule = custom_vjp(plain)
    rule.defvjp(forward, backward)
    return rule(tuple(inputs), tuple(outputs), [residuals[k] for k in kept])


def _once(name: str, arrays: Sequence[Any], cotangents: Sequence[Any]) -> Any:
    """Return the same values, which may not be differentiated."""

    def refuse(*_: Any) -> Any:
        raise NotImplementedError(
            f"{name}: its backward is once_differentiable in PyTorch, and a second derivative is "
            f"taken through it"
        )

    same = custom_jvp(lambda arrays, cotangents: (arrays, cotangents))
    same.defjvp(refuse)
    return same(list(arrays), list(cotangents))


def _grad(
    part: Callable[..., Any], free: Sequence[Any], inputs: Sequence[Any], cotangents: Sequence[Any]
) -> tuple[Any, ...]:
    """Return the gradients of a part by its inputs; a missing cotangent is of ones."""
    outs, pull_back = vjp(lambda *xs: tuple(part(*xs, *free)), *inputs)
    given = [
        snp.ones_like(out) if ct is None else snp.broadcast_to(ct, out.shape).astype(out.dtype)
        for out, ct in zip(outs, cotangents, strict=True)
    ]
    return tuple(pull_back(tuple(given)))


def _jvp(
    part: Callable[..., Any], free: Sequence[Any], inputs: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, ...]:
    moving = tuple([dx.astype(x.dtype) for x, dx in zip(inputs, tangents, strict=True)])
    return tuple(jvp(lambda *xs: tuple(part(*xs, *free)), tuple(inputs), moving)[1])


def _vmap(
    part: Callable[..., Any],
    free: Sequence[Any],
    examples: Sequence[Any],
    operands: Sequence[Any],
    in_dims: Sequence[int],
    out_dims: Sequence[int],
    randomness: str,
) -> tuple[Any, ...]:
    """Return the results of a part for each example along these axes of the operands."""
    axes = tuple(in_dims)
    if randomness == "error":  # nothing is drawn
        mapped = vmap(lambda *xs: tuple(part(*xs, *free)), axes, tuple(out_dims))
        return tuple(mapped(*operands))

    def with_key(key: Any, *xs: Any) -> tuple[Any, ...]:
        with random.keys(key):
            return tuple(part(*xs, *free))

    key, own = next_key("vmap"), None
    if randomness == "different":
        key, own = random.split(key, operands[0].shape[axes[0]]), 0
    return tuple(vmap(with_key, (own, *axes), tuple(out_dims))(key, *operands))


def _selected(
    part: Callable[..., Any], masks: Sequence[Any], free: Sequence[Any], some: Sequence[bool]
) -> Any:
    """Return the results of a part, for the places of the true elements of each mask.

    ``some`` says of which masks an element is true wherever they have any. With the numbers of true
    elements known, the places are as many as that. Otherwise there is one for each element of a
    mask, and their number is a size that varies.
    """
    flat = [(mask != 0).reshape(-1) for mask in masks]
    if not any([isinstance(x, Tracer) for x in flat]):
        return tuple(part(*[np.flatnonzero(np.asarray(x)) for x in flat], *free))
    most = [at_most(x.shape[0]) for x in flat]
    if any(map(math.isinf, most)):
        raise SizeError(
            "what a mask selects is bounded by its size, which is known only while the program "
            "runs: call the module without dynamic_axes, and outside of vmap over ragged arrays"
        )
    bounds = [int(n) for n in most]
    counts = [snp.sum(x, dtype=np.int32) for x in flat]
    places = [_room(snp.argsort(~x, stable=True).astype(np.int32), n) for x, n in zip(flat, bounds)]
    with varying_sizes() as mark:
        least = [min(at_least(x.shape[0]), s) for x, s in zip(flat, some, strict=True)]
        variables = [
            SizeVariable(f"u{k}{mark}", *span) for k, span in enumerate(zip(least, bounds))
        ]
    sizes: list[Any] = [size_of(v) for v in variables]
    types = [x.type.with_shape((n,)) for x, n in zip(places, sizes, strict=True)]

    def flat_part(*own: Any) -> tuple[list[Any], None]:
        return [as_value(x, "from_torch") for x in part(*own, *free)], None

    try:
        with varying_sizes(), known_sizes(None, of_examples=True):
            program, _, captured = record(flat_part, types, (), "selected")
    except SizeError as error:
        error.add_note(
            "How many elements a mask selects, or how many are distinct, is known only while "
            "compiled code runs, and a mask may select none: call the imported module outside of "
            "it, or compute with torch.where(mask, x, value), which has the mask's size."
        )
        raise
    for type in program.out_types:
        if _sizes_in(type) & set(variables):
            raise SizeError(
                f"a result of the imported module is {type}, whose size depends on the values of "
                f"a mask, or on how many elements are distinct: call the module outside of "
                f"compiled code, where they are known, or let it give what has a fixed size, such "
                f"as torch.where(mask, x, 0), torch.unique(x, return_inverse=True)[1], or "
                f"pad_packed_sequence(…, total_length=…)"
            )
    call = SizedCall(program, tuple(variables), tuple([max(n, 1) for n in bounds]))
    return tuple(call(*counts, *places, *captured))


def _room(x: Any, most: int) -> Any:
    """Return a vector at the beginning of one of so many elements."""
    return x if x.shape[0] == most else snp.concatenate([x, snp.zeros(most - x.shape[0], x.dtype)])


def _sizes_in(type: ArrayType) -> set[SizeVariable]:
    """Return the variables of which the sizes of a type depend."""
    return {v for n in type.shape if isinstance(n, Size) for v in n.variables()}


def _nonzero(places: Any, mask: Any) -> Any:
    if not mask.ndim:
        return snp.zeros((places.shape[0], 0), snp.int32)
    return snp.stack(_unravelled(places, mask.shape), -1)


def _unravelled(places: Any, shape: Sequence[int]) -> list[Any]:
    """Return the indices along each axis of places in an array that is laid out in rows."""
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    return [
        places // snp.asarray(greater(s, 1)) % snp.asarray(greater(n, 1))
        for s, n in zip(strides, shape, strict=True)
    ]


def _index(places: Any, x: Any, indices: Sequence[Any]) -> Any:
    """Return ``x[..., mask, ...]``, where the mask may be one of several indices."""
    found: list[Any] = []
    for index in indices:
        if index is None:
            found.append(slice(None))
        elif isinstance(index, Value) and index.dtype.kind == "b":
            found += _unravelled(places, index.shape)
        else:
            found.append(index)
    for axis, index in enumerate(found):
        if isinstance(index, Value):
            x, found[axis] = readable(x, axis, index)
    return x[tuple(found)]


def _masked_select(places: Any, x: Any, mask: Any) -> Any:
    values, shaped = snp.broadcast_arrays(x, mask)
    if shaped.shape != mask.shape:
        raise NotImplementedError(
            f"masked_select: a mask of shape {mask.shape} for a tensor of shape {x.shape}: "
            f"expand the mask to the tensor's shape, mask.expand_as(x)"
        )
    return snp.take(*readable(values.reshape(-1), 0, places))


# What is distinct


def _runs(x: Any, axis: int | None, is_sorted: bool) -> tuple[Any, Any, Any]:
    """Give where runs of equal elements or slices begin, their order, and the run of each.

    They are in ascending order, or in that of ``x``. NaN is equal to nothing.
    """
    parts = x.reshape(-1) if axis is None else snp.moveaxis(x, axis, 0)
    n = parts.shape[0]
    order = snp.arange(n)
    if is_sorted:
        width = math.prod(parts.shape[1:])
        rows = parts.reshape(n, width)
        order = snp.lexsort([rows[:, k] for k in reversed(range(width))]) if width else order
    begins = starts_of_runs(snp.take(*readable(parts, 0, order), 0), equal_nan=False)
    number = snp.cumsum(begins.astype(snp.int32)) - 1
    inverse = number if not is_sorted else snp.zeros_like(number).at[order].set(number)
    return begins, order, inverse.reshape(x.shape) if axis is None else inverse


def _distinct(x: Any, axis: int | None, order: Any, places: Any) -> Any:
    """Give the first element or slice of each run."""
    first = snp.take(*readable(order, 0, places[:, 0]))
    parts = x.reshape(-1) if axis is None else x
    return snp.take(*readable(parts, axis or 0, first), axis or 0)


def _counts(inverse: Any, places: Any) -> Any:
    """Give how long each run is."""
    return snp.zeros(places.shape[0], snp.int32).at[inverse.reshape(-1)].add(1)


TABLE: dict[str, Callable[..., Any]] = {
    **{f"operator.{name}": getattr(operator, name) for name in _OF_PYTHON},
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.trunc": math.trunc,
    "builtins.round": round,
    "aten.sym_numel.default": lambda x: x.size,
    "aten.sym_size.int": lambda x, axis: x.shape[axis],
    "torch.sym_float": float,
    "torch.sym_int": int,
    "torch.sym_ite": lambda predicate, true, false: true if predicate else false,
    "torch.sym_max": max,
    "torch.sym_min": min,
    "torch.sym_not": operator.not_,
    "cond": _conditional,
    "while_loop": _loop,
    "wrap_with_autocast": lambda device, dtype, enabled, cached, f, *xs: tuple(f(*xs)),
    "wrap_with_set_grad_enabled": _without_gradient,
    "stretto.as_imported.default": _as_imported,
    "stretto.where_as_imported.default": _where_as_imported,
    "stretto.with_backward.default": _with_backward,
    "stretto.example.default": lambda x, dim: snp.take(x, 0, dim),
    "stretto.fresh.default": lambda x: x,
    "stretto.grad.default": _grad,
    "stretto.jvp.default": _jvp,
    "stretto.vmap.default": _vmap,
    "stretto.counts": _counts,
    "stretto.distinct": _distinct,
    "stretto.index.Tensor": _index,
    "stretto.masked_select.default": _masked_select,
    "stretto.nonzero.default": _nonzero,
    "stretto.runs": _runs,
    "stretto.selected": _selected,
}
