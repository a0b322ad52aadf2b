"""The rows in the vocabulary that Stretto and JAX share; each worker gives its own modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.devices.table import COUNTS, DATA, MEMBERS, RATE, batch, initial, small
from benchmarks.worker import Case, Registry

__all__ = ["register"]

_MEMBERS = 8


def _arrays(tree: Any, leaves: Any) -> Sequence[Any]:
    return [np.asarray(x) for x in leaves(tree)]


def register(cases: Registry, f: Any, np_: Any, mesh_of: Any, shard_map: Any, leaves: Any) -> None:
    """Add the rows; ``f`` is the framework, ``np_`` its NumPy, and ``mesh_of`` makes meshes."""
    sharding = f.sharding.NamedSharding
    spec = f.sharding.PartitionSpec
    ready = f.block_until_ready

    def loss(params: Any, x: Any, y: Any) -> Any:
        for w, b in params[:-1]:
            x = np_.tanh(x @ w + b)
        w, b = params[-1]
        return ((x @ w + b - y) ** 2).mean()

    def step(params: Any, x: Any, y: Any) -> Any:
        value, grads = f.value_and_grad(loss)(params, x, y)
        return value, f.tree.map(lambda p, g: p - RATE * g, params, grads)

    def call(n: int) -> Case:
        x = f.device_put(small(), sharding(mesh_of(n, "i"), spec("i")))
        add = f.jit(lambda x: x + 1)
        return Case(lambda: ready(add(x)))

    def call_of_ten(n: int) -> Case:
        where = sharding(mesh_of(n, "i"), spec("i"))
        xs = [f.device_put(small() + i, where) for i in range(10)]
        add = f.jit(lambda *xs: [x + y for x, y in zip(xs, xs[1:] + xs[:1], strict=True)])
        return Case(lambda: ready(add(*xs)), lambda out: _arrays(out, leaves))

    def put(n: int) -> Case:
        host, where = small(), sharding(mesh_of(n, "i"), spec("i"))
        return Case(lambda: ready(f.device_put(host, where)))

    def move(n: int) -> Case:
        mesh = mesh_of(n, "i")
        x = f.device_put(small(), sharding(mesh, spec("i")))
        where = sharding(mesh, spec(None, "i"))
        return Case(lambda: ready(f.device_put(x, where)))

    def data_step(n: int) -> Case:
        mesh = mesh_of(n, "data")
        params = f.device_put(initial(DATA), sharding(mesh, spec()))
        x, y = f.device_put(batch(DATA), sharding(mesh, spec("data")))
        run = f.jit(step)
        return Case(lambda: ready(run(params, x, y)), lambda out: _arrays(out, leaves))

    def members_step(n: int, mapped: bool) -> Case:
        mesh = mesh_of(n, "members")
        rows = spec("members")
        values = initial(MEMBERS, _MEMBERS), *batch(MEMBERS, _MEMBERS)
        params, x, y = f.device_put(values, sharding(mesh, rows))
        every = f.vmap(step)
        if mapped:
            every = shard_map(every, mesh=mesh, in_specs=rows, out_specs=rows)
        run = f.jit(every)
        return Case(lambda: ready(run(params, x, y)), lambda out: _arrays(out, leaves))

    for n in COUNTS:
        makers = {"call": call, "call-of-ten": call_of_ten, "put": put, "move": move}
        makers["data-step"] = data_step
        for name, make in makers.items():
            cases.add(f"{name}-{n}")(lambda make=make, n=n: make(n))
        cases.add(f"members-step-{n}")(lambda n=n: members_step(n, True))
        if f.__name__ == "jax":
            cases.add(f"members-step-{n}", "partitioned")(lambda n=n: members_step(n, False))
