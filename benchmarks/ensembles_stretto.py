"""The ensembles in Stretto: `vmap`, compiled, which is all that a user writes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import stretto as st
import stretto.numpy as snp
from benchmarks import workloads_ensembles as ensembles
from benchmarks.models import stretto_models as models
from benchmarks.worker import Case, Registry, Training

__all__ = ["ensemble", "flat", "register"]


def ensemble(task: ensembles.Task, compiler_options: dict[str, Any] | None = None) -> Case:
    """One row."""
    function, arguments = program(task)
    if task.kind == "step":
        return training(function, arguments, compiler_options)
    run = st.jit(function, compiler_options=compiler_options)
    return Case(lambda: st.block_until_ready(run(*arguments)), flat)


def program(task: ensembles.Task) -> tuple[Any, tuple[Any, ...]]:
    """The function of all members that is compiled, and its arguments."""
    axes = (0, 0 if task.batch == "own" else None)
    apply = models.APPLY[task.ensemble.model]
    params, x, target = st.tree.map(snp.asarray, ensembles.inputs(task.ensemble, task.batch))
    if task.kind == "forward":
        return st.vmap(apply, in_axes=axes), (params, x)
    if task.kind == "gradient":
        member = st.grad(partial(models.loss, apply))
        return st.vmap(member, in_axes=axes), (params, (x, target))
    first, second = st.tree.map(snp.asarray, ensembles.optimizer_state(params))
    count = snp.full(x.shape[0], ensembles.AdamW().count, snp.int32)
    adam, *others = models.optimizer().init(params)
    memory = adam._replace(count=count, mu=first, nu=second), *others
    data = x, snp.argmax(target, axis=-1)
    return st.vmap(partial(models.train_step, apply)), ((params, memory), data)


def training(
    step: Any, arguments: tuple[Any, ...], compiler_options: dict[str, Any] | None
) -> Case:
    """Steps of all members, each from the state that the step before returned."""
    state, data = arguments
    run: Any = st.jit(step, donate_argnums=0, compiler_options=compiler_options)
    one = Training(lambda state: st.block_until_ready(run(state, data)), state)

    def results(result: tuple[Any, Any]) -> list[Any]:
        (params, (adam, *_)), losses = result
        return flat((params, adam.mu, adam.nu, losses))

    return Case(one, results)


def flat(result: Any) -> list[Any]:
    """The leaves of a stacked result."""
    return [np.asarray(leaf) for leaf in st.tree.leaves(result)]


def register(cases: Registry) -> None:
    """Add every row."""
    for task in ensembles.all_tasks():
        cases.add(task.name)(partial(ensemble, task))
