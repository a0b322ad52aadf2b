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
    axes = (0, 0 if task.batch == "own" else None)
    apply = models.APPLY[task.ensemble.model]
    params, x, target = st.tree.map(snp.asarray, ensembles.inputs(task.ensemble, task.batch))
    if task.kind == "step":
        step = partial(models.train_step, apply)
        return training(step, params, x, target, compiler_options)
    if task.kind == "gradient":
        member, data = st.grad(partial(models.loss, apply)), (x, target)
    else:
        member, data = apply, x
    run = st.jit(st.vmap(member, in_axes=axes), compiler_options=compiler_options)
    return Case(lambda: st.block_until_ready(run(params, data)), flat)


def training(
    step: Any, params: Any, x: Any, target: Any, compiler_options: dict[str, Any] | None
) -> Case:
    """Steps of all members, each from the state that the step before returned."""
    first, second = st.tree.map(snp.asarray, ensembles.optimizer_state(params))
    count = snp.full(x.shape[0], ensembles.AdamW().count, snp.int32)
    adam, *others = models.optimizer().init(params)
    memory = adam._replace(count=count, mu=first, nu=second), *others
    data = x, snp.argmax(target, axis=-1)
    run = st.jit(st.vmap(step), donate_argnums=0, compiler_options=compiler_options)
    one = Training(lambda state: st.block_until_ready(run(state, data)), (params, memory))

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
