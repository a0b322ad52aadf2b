"""The hot paths that are counted; `counts_worker` goes along them."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import stretto as st
import stretto.numpy as snp
from benchmarks import workloads

__all__ = ["PATHS", "Path"]

Work: TypeAlias = Callable[[], Any]
Maker: TypeAlias = Callable[[int], Work]

COMPILED = partial(st.config, interpret_small=False)


@dataclass(frozen=True)
class Path:
    """One way through the package.

    `make(n)` gets ready to go it `n` times, and returns the function that does. `hold(n)` is the
    same, but its function returns all that came out. `times` is how often makes a steady count.
    """

    name: str
    title: str
    times: int
    make: Maker
    hold: Maker
    within: Callable[[], AbstractContextManager[Any]] = nullcontext


def _call(
    name: str,
    title: str,
    times: int,
    call: Callable[[], Any],
    within: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Path:
    """A path that is one call, its result dropped before the next."""

    def make(times: int) -> Work:
        def work() -> None:
            for _ in range(times):
                call()

        return work

    return Path(name, title, times, make, lambda n: lambda: [call() for _ in range(n)], within)


def _operations(name: str, title: str, times: int, make: Maker) -> Path:
    """A path along a program of this many operations, which is what comes out."""
    return Path(name, title, times, make, make)


def _paths() -> list[Path]:
    x, y = map(snp.asarray, workloads.eager_add_inputs())
    xs, weights, bias = map(snp.asarray, workloads.transformed_inputs())
    z = xs[0]
    arrays = st.tree.map(snp.asarray, workloads.dict_inputs())
    small = lambda x: snp.tanh(x @ weights + bias)
    loss = lambda x: snp.sum(small(x))
    affine = st.jit(lambda x, weights, bias: x @ weights + bias)
    twice = st.jit(lambda arrays: st.tree.map(lambda x: x + x, arrays))
    members = [{"weights": weights + i, "bias": bias} for i in range(3)]
    ensemble = st.Ensemble(lambda p, x: snp.tanh(x @ p["weights"] + p["bias"]), members)
    return [
        _call("eager-add", "eager add, 4 floats", 1000, lambda: x + y),
        _call("eager-affine", "eager x @ W + b, 4×2", 500, lambda: z @ weights + bias),
        _call("eager-sum", "eager sum of 4 floats", 500, lambda: snp.sum(x)),
        _call("eager-vmap", "eager vmap of tanh(x @ W + b)", 50, lambda: st.vmap(small)(xs)),
        _call("eager-grad", "eager grad of its sum", 50, lambda: st.grad(loss)(z)),
        _call("jitted", "jitted x @ W + b, 4×2", 500, lambda: affine(z, weights, bias)),
        _call(
            "jitted-compiled",
            "the same, compiled for certain",
            500,
            lambda: affine(z, weights, bias),
            COMPILED,
        ),
        _call(
            "jitted-dict",
            "jitted, compiled, 20 arrays in a dict",
            100,
            lambda: twice(arrays),
            COMPILED,
        ),
        _call("ensemble", "an Ensemble of 3 called", 50, lambda: ensemble(z)),
        _operations("trace", "one operation of a trace", 500, partial(_trace, z)),
        _operations("lower", "one operation lowered", 500, partial(_lower, z)),
    ]


def _trace(x: Any, operations: int) -> Work:
    """The trace of a function with this many operations."""
    return lambda: st.jit(_function(operations)).trace(x)


def _lower(x: Any, operations: int) -> Work:
    """The StableHLO of such a function."""
    traced = st.jit(_function(operations)).trace(x)

    def lower() -> Any:
        lowered = traced.lower()
        return lowered, lowered.as_text()

    return lower


def _function(operations: int) -> Callable[[Any], Any]:
    """Operations of four kinds, in an order without a pattern, each on the result before."""
    kinds = random.Random(operations).choices(
        [snp.add, snp.multiply, snp.maximum, snp.subtract], k=operations
    )

    def function(x: Any) -> Any:
        y = x
        for kind in kinds:
            y = kind(y, x)
        return y

    return function


PATHS: list[Path] = _paths()
