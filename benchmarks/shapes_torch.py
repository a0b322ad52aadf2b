"""Shapes that change in PyTorch: eagerly and compiled for sizes that vary; rectangles with masks.

Besides, what PyTorch has for examples of different lengths: nested tensors, and packed sequences.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.nn import functional

from benchmarks import workloads_shapes as shapes
from benchmarks.worker import Case, Registry

__all__ = ["register"]

Function: TypeAlias = Callable[..., Any]
Tensors: TypeAlias = dict[str, torch.Tensor]

HEAD = shapes.WIDTH // shapes.HEADS


def cube(x: torch.Tensor) -> torch.Tensor:
    """The third power."""
    return x * x * x


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Self-attention with one head."""
    heads = [(x @ one)[None, None] for one in (q, k, v)]
    return functional.scaled_dot_product_attention(*heads)[0, 0]


def called(name: str, warm: bool, compiles: bool) -> Case:
    """Calls with arrays of many lengths."""
    xs = [torch.from_numpy(x) for x in shapes.call_inputs(name)]
    given = () if name == "cube" else tuple(map(torch.from_numpy, shapes.call_weights()))
    fun = cube if name == "cube" else attend

    def new() -> Function:
        if not compiles:
            return fun
        torch.compiler.reset()
        return torch.compile(fun, dynamic=True)

    def run(f: Function) -> Any:
        with torch.inference_mode():
            return [f(*given, x) for x in xs]

    with_nothing_kept = torch.compiler.config.patch(force_disable_caches=True)
    if warm:
        return Case(partial(run, new()), shapes.summary, within=lambda: with_nothing_kept)
    return Case(run, shapes.summary, fresh=new, within=lambda: with_nothing_kept)


def attention(weights: Tensors, x: Any, mask: Any) -> Any:
    """Self-attention with several heads, of a rectangle or of a nested tensor."""
    q, k, v = [
        (x @ weights[name]).unflatten(-1, (shapes.HEADS, HEAD)).transpose(1, 2) for name in "qkv"
    ]
    mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return mixed.transpose(1, 2).flatten(-2) @ weights["o"]


def mlp(weights: Tensors, x: Any) -> Any:
    """Two layers with GELU between."""
    hidden = functional.gelu(x @ weights["w1"] + weights["b1"])
    return hidden @ weights["w2"] + weights["b2"]


def block(weights: Tensors, x: Any, mask: Any) -> Any:
    """A transformer's block, norms first."""
    norm = partial(functional.layer_norm, normalized_shape=(shapes.WIDTH,))
    w = weights
    x = x + attention(w, norm(x, weight=w["scale1"], bias=w["bias1"]), mask)
    return x + mlp(w, norm(x, weight=w["scale2"], bias=w["bias2"]))


def differentiated(loss: Function, weights: Tensors) -> Case:
    """The gradient of a loss without arguments by the weights, by the tape."""
    parameters = list(weights.values())
    for one in parameters:
        one.requires_grad_()
    return Case(
        lambda: torch.autograd.grad(loss(), parameters),
        lambda slopes: [slope.numpy() for slope in slopes],
    )


def forward(run: Function, arrays: Function) -> Case:
    """What a function without arguments returns, without a tape."""

    def call() -> Any:
        with torch.inference_mode():
            return run()

    return Case(call, arrays)


def tensors(model: str) -> Tensors:
    """The weights by name, in the order of the names."""
    return {name: torch.from_numpy(w) for name, w in sorted(shapes.weights(model).items())}


def padded(task: shapes.RaggedTask, compiles: bool) -> Case:
    """The rectangle up to the longest, with masks."""
    weights, lengths = tensors(task.model), np.array(task.batch.lengths())
    x = torch.from_numpy(shapes.as_rectangle(shapes.parts(task.batch)))
    sizes = torch.from_numpy(lengths)

    def apply(weights: Tensors, x: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        inside = torch.arange(x.shape[1])[None] < sizes[:, None]
        if task.model == "pool":
            total = torch.where(inside[..., None], x, 0).sum(1)
            return mlp(weights, total / sizes[:, None])
        model = {"attention": attention, "block": block}[task.model]
        return model(weights, x, inside[:, None, None])

    def loss(weights: Tensors, x: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        squares = (apply(weights, x, sizes) ** 2).mean(-1)
        if task.model == "pool":
            return squares.mean()
        inside = torch.arange(x.shape[1])[None] < sizes[:, None]
        return (torch.where(inside, squares, 0).sum(-1) / sizes).mean()

    fun = apply if task.kind == "forward" else loss
    run = partial(torch.compile(fun, dynamic=False) if compiles else fun, weights, x, sizes)
    if task.kind == "gradient":
        return differentiated(run, weights)
    return forward(run, lambda out: shapes.valid_of(out.numpy(), lengths))


def nested(task: shapes.RaggedTask) -> Case:
    """A nested tensor: its layers compute no padding."""
    weights, arrays = tensors(task.model), shapes.parts(task.batch)
    x: Any = torch.nested.nested_tensor(list(map(torch.from_numpy, arrays)), layout=torch.jagged)

    def apply() -> Any:
        if task.model == "pool":
            return mlp(weights, x.mean(dim=1))
        model = {"attention": attention, "block": block}[task.model]
        return model(weights, x, None).values()

    # Of the mean over examples of the mean over elements.
    lengths = task.batch.lengths()
    share = torch.from_numpy(
        np.repeat(1 / np.array(lengths, np.float32), lengths) / np.float32(len(lengths))
    )

    def loss() -> torch.Tensor:
        squares = (apply() ** 2).mean(-1)
        return squares.mean() if task.model == "pool" else squares @ share

    if task.kind == "gradient":
        return differentiated(loss, weights)
    return forward(apply, lambda out: [out.numpy()])


def recurrent(task: shapes.RaggedTask, packed: bool) -> Case:
    """PyTorch's LSTM: of the rectangle, or of a packed sequence."""
    given = shapes.weights("lstm")
    layer = torch.nn.LSTM(shapes.WIDTH, shapes.WIDTH, batch_first=True)
    with torch.no_grad():
        layer.weight_ih_l0.copy_(torch.from_numpy(given["input"].T))
        layer.weight_hh_l0.copy_(torch.from_numpy(given["hidden"].T))
        layer.bias_ih_l0.copy_(torch.from_numpy(given["bias"]))
        layer.bias_hh_l0.zero_()
    x = torch.from_numpy(shapes.as_rectangle(shapes.parts(task.batch)))
    lengths = torch.tensor(task.batch.lengths())
    sequences: Any = x
    if packed:
        pack = torch.nn.utils.rnn.pack_padded_sequence
        sequences = pack(x, lengths, batch_first=True, enforce_sorted=False)

    def apply() -> Any:
        states, (last, _) = layer(sequences)
        return last[0] if packed else states[torch.arange(len(x)), lengths - 1]

    if task.kind == "forward":
        return forward(apply, lambda out: [out.numpy()])
    parameters = [layer.bias_ih_l0, layer.weight_hh_l0, layer.weight_ih_l0]
    return Case(
        lambda: torch.autograd.grad((apply() ** 2).mean(), parameters),
        lambda slopes: [np.ascontiguousarray(slope.numpy().T) for slope in slopes],
    )


def register(cases: Registry) -> None:
    """Add every row; compiling takes a compiler for C++."""
    can_compile = shutil.which("g++") is not None
    for name in shapes.CALLS:
        for warm, row in ((False, f"sizes-{name}-first"), (True, f"sizes-{name}-warm")):
            cases.add(row)(partial(called, name, warm, compiles=False))
            if can_compile:
                cases.add(row, "compile")(partial(called, name, warm, compiles=True))
    for task in shapes.ragged_tasks():
        if task.model == "lstm":
            cases.add(task.name)(partial(recurrent, task, packed=False))
            cases.add(task.name, "packed")(partial(recurrent, task, packed=True))
            continue
        cases.add(task.name)(partial(padded, task, compiles=False))
        if can_compile:
            cases.add(task.name, "compile")(partial(padded, task, compiles=True))
        cases.add(task.name, "nested")(partial(nested, task))
