"""Shapes that change in Stretto: sizes that vary, and ragged arrays under `vmap`.

Besides, for comparison, what a user without these would write: calls of arrays that are of their
bucket's size already ("full"), and rectangles padded to the longest, with masks ("longest").
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

import stretto as st
import stretto.numpy as snp
from benchmarks import workloads_shapes as shapes
from benchmarks.shapes_padded import Padded
from benchmarks.worker import Case, Registry
from stretto import lax, nn

__all__ = ["ONE", "called", "called_full", "ragged", "register"]

Function: TypeAlias = Callable[..., Any]

COMPILED = partial(st.config, interpret_small=False)
"""A context in which jitted functions are compiled, however small."""


def cube(x: Any) -> Any:
    """The third power."""
    return x * x * x


def attend(q: Any, k: Any, v: Any, x: Any) -> Any:
    """Self-attention with one head."""
    scores = (x @ q) @ (x @ k).T * shapes.WIDTH**-0.5
    return nn.functional.softmax(scores, -1) @ (x @ v)


def attention(weights: Any, x: Any) -> Any:
    """Self-attention with several heads, of one example."""
    shape = (x.shape[0], shapes.HEADS, shapes.WIDTH // shapes.HEADS)
    q, k, v = [(x @ weights[name]).reshape(shape) for name in "qkv"]
    scores = snp.einsum("nhd,mhd->hnm", q, k) * shape[-1] ** -0.5
    mixed = snp.einsum("hnm,mhd->nhd", nn.functional.softmax(scores, -1), v)
    return mixed.reshape(x.shape) @ weights["o"]


def norm(x: Any, scale: Any, bias: Any) -> Any:
    """Layer norm of the features."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / snp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + bias


def mlp(weights: Any, x: Any) -> Any:
    """Two layers with GELU between."""
    hidden = nn.functional.gelu(x @ weights["w1"] + weights["b1"])
    return hidden @ weights["w2"] + weights["b2"]


def block(weights: Any, x: Any) -> Any:
    """A transformer's block, norms first, of one example."""
    w = weights
    x = x + attention(w, norm(x, w["scale1"], w["bias1"]))
    return x + mlp(w, norm(x, w["scale2"], w["bias2"]))


def lstm(weights: Any, x: Any) -> Any:
    """The hidden state after the last element of one example."""
    inputs = x @ weights["input"] + weights["bias"]

    def step(state: Any, row: Any) -> Any:
        h, c = state
        i, f, g, o = snp.split(row + h @ weights["hidden"], 4)
        c = nn.functional.sigmoid(f) * c + nn.functional.sigmoid(i) * snp.tanh(g)
        return (nn.functional.sigmoid(o) * snp.tanh(c), c), None

    zeros = snp.zeros(shapes.WIDTH)
    (h, _), _ = lax.scan(step, (zeros, zeros), inputs)
    return h


def pool(weights: Any, x: Any) -> Any:
    """The MLP of one example's mean."""
    return mlp(weights, x.mean(0))


ONE: dict[str, Function] = {"attention": attention, "block": block, "lstm": lstm, "pool": pool}
"""The models, of one example."""

PADDED = Padded(snp, lax.scan, nn.functional.softmax, nn.functional.gelu, nn.functional.sigmoid)


def function_of(name: str) -> tuple[Function, tuple[Any, ...]]:
    """A function that is called with arrays of many lengths, and its first arguments."""
    if name == "cube":
        return cube, ()
    return attend, tuple(map(snp.asarray, shapes.call_weights()))


def called(name: str, warm: bool) -> Case:
    """Calls with arrays of any length, each result awaited."""
    fun, given = function_of(name)
    xs = [snp.asarray(x) for x in shapes.call_inputs(name)]

    def new() -> Function:
        st.clear_caches()
        return st.jit(fun, dynamic_axes=(*[None] * len(given), {0: "n"}))

    def run(f: Function) -> Any:
        return [f(*given, x).block_until_ready() for x in xs]

    if warm:
        return Case(partial(run, new()), shapes.summary, within=COMPILED)
    return Case(run, shapes.summary, fresh=new, within=COMPILED)


def called_full(name: str) -> Case:
    """As many calls of the plainly compiled function, with arrays of their buckets' sizes.

    What is compared with the others are the function's results for the true lengths.
    """
    fun, given = function_of(name)
    xs, buckets = shapes.call_inputs(name), st.Buckets()
    whole: dict[int, Any] = {}
    for x in sorted(xs, key=len):
        shape = (buckets.size(len(x)), *x.shape[1:])
        whole.setdefault(shape[0], snp.asarray(np.resize(x, shape)))
    arrays = [whole[buckets.size(len(x))] for x in xs]
    f = st.jit(fun)
    return Case(
        lambda: [f(*given, x).block_until_ready() for x in arrays],
        lambda _: shapes.summary([fun(*given, snp.asarray(x)) for x in xs]),
        within=COMPILED,
    )


def ragged(task: shapes.RaggedTask) -> Case:
    """`vmap` over ragged examples, compiled."""
    one, r = ONE[task.model], st.ragged(shapes.parts(task.batch))
    weights = st.tree.map(snp.asarray, shapes.weights(task.model))
    every = st.vmap(one, in_axes=(None, 0))
    if task.kind == "gradient":
        square = lambda weights, x: (one(weights, x) ** 2).mean()
        loss = lambda weights, r: st.vmap(square, in_axes=(None, 0))(weights, r).mean()
        run = st.jit(st.grad(loss))
        return Case(lambda: st.block_until_ready(run(weights, r)), leaves)
    run = st.jit(every)
    return Case(lambda: st.block_until_ready(run(weights, r)), valid)


def padded(task: shapes.RaggedTask) -> Case:
    """The rectangle up to the longest, with masks by hand."""
    arrays = shapes.parts(task.batch)
    x, lengths = snp.asarray(shapes.as_rectangle(arrays)), np.array(task.batch.lengths(), np.int32)
    weights = st.tree.map(snp.asarray, shapes.weights(task.model))
    sizes = snp.asarray(lengths)
    if task.kind == "gradient":
        run = st.jit(st.grad(PADDED.loss(task.model)))
        return Case(lambda: st.block_until_ready(run(weights, x, sizes)), leaves)
    run = st.jit(PADDED.apply(task.model))
    return Case(
        lambda: st.block_until_ready(run(weights, x, sizes)),
        lambda out: shapes.valid_of(np.asarray(out), lengths),
    )


def valid(result: Any) -> list[Any]:
    """The elements of a ragged result, one example behind the other; other results as they are."""
    return [np.asarray(result.values if isinstance(result, st.Ragged) else result)]


def leaves(result: Any) -> list[Any]:
    """The leaves of a tree."""
    return [np.asarray(leaf) for leaf in st.tree.leaves(result)]


def register(cases: Registry) -> None:
    """Add every row."""
    for name in shapes.CALLS:
        cases.add(f"sizes-{name}-first")(partial(called, name, warm=False))
        cases.add(f"sizes-{name}-warm")(partial(called, name, warm=True))
        cases.add(f"sizes-{name}-warm", "full")(partial(called_full, name))
    for task in shapes.ragged_tasks():
        cases.add(task.name)(partial(ragged, task))
        cases.add(task.name, "longest")(partial(padded, task))
