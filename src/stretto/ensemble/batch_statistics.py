"""``update_batch_norm``: running statistics computed again, for weights that no step has seen."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar, cast

import stretto.numpy as snp
from stretto import tree
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.typing import Key, Tree
from stretto.ensemble.ensemble import Ensemble
from stretto.nn.module import Module, stateful_call
from stretto.nn.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from stretto.random.keys import fold_in, split
from stretto.random.streams import keys, refusing
from stretto.torch.imported_module import ImportedModule
from stretto.torch.programs.buffers import with_plain_means

__all__ = ["update_batch_norm"]

T = TypeVar("T")

_LAYERS = (BatchNorm1d, BatchNorm2d, BatchNorm3d)
_BUFFERS = ("running_mean", "running_var", "num_batches_tracked")
_NO_KEY = "update_batch_norm was called without a key, and runs the model in train mode: pass key="


def update_batch_norm(model: T, data: Iterable[Any], *, key: Key | None = None) -> T:
    """Compute the running statistics of a model's batch normalization again, over ``data``.

    They are the plain means over the batches, whatever ``momentum`` is, with the model in train
    mode. An average of weights, or a sample of them, needs this before it is used: the running
    statistics of its members are those of other activations. ``model`` itself stays as it is.

    Args:
        model: a module, or an ``Ensemble`` of modules, all of whose members are run at once.
        data: batches; of a batch that is a tuple or list, the first part is the model's input.
        key: for layers that draw random numbers in train mode, such as dropout.

    Returns:
        A model like ``model``, with the new statistics.

    Raises:
        RuntimeError: a module of PyTorch's was imported without ``train=True``.
        TypeError: the model is not a module.
        ValueError: ``data`` has no batch.

    As PyTorch's ``torch.optim.swa_utils.update_bn``.

    >>> import stretto as st, stretto.numpy as snp
    >>> model = st.nn.Sequential(st.nn.BatchNorm1d(1))
    >>> batches = [snp.array([[0.0], [2.0]]), snp.array([[4.0], [6.0]])]
    >>> st.ensemble.update_batch_norm(model, batches)[0].running_mean
    Array([3.], dtype=float32)
    """
    if isinstance(model, Ensemble):
        return cast("T", _of_ensemble(model, data, key))
    if not isinstance(model, Module):
        raise TypeError(
            f"update_batch_norm: expected a module or an Ensemble of modules, got a "
            f"{type(model).__name__}; a function keeps its statistics itself"
        )
    (computed,) = _compute_statistics([model], [None], data, key)
    return cast("T", computed)


def _of_ensemble(ensemble: Ensemble, data: Iterable[Any], key: Key | None) -> Ensemble:
    groups = [list(group) for group in ensemble.groups]
    for members in groups:
        if not isinstance(members[0], Module):
            raise TypeError("update_batch_norm: expected an Ensemble of modules")
    stacked = [tree.stack(members) for members in groups]
    computed = _compute_statistics(stacked, [len(members) for members in groups], data, key)
    return ensemble.replace([_statistics(module) for module in computed])


def _statistics(module: Module) -> dict[str, Any]:
    """Return the buffers that were computed, by dotted name."""
    return {
        f"{path}.{name}" if path else name: getattr(layer, name)
        for path, layer in _tracking(module)
        for name in _BUFFERS
    }


def _tracking(module: Module) -> Iterator[tuple[str, Module]]:
    """Yield what keeps running statistics, by dotted name: layers, parts of imported modules."""
    for path, layer in module.named_modules():
        if isinstance(layer, _LAYERS) and layer.running_mean is not None:
            yield path, layer
        elif isinstance(layer, ImportedModule) and layer.training_program is not None:
            for name in with_plain_means(layer.training_program)[1]:
                yield ".".join([x for x in (path, name) if x]), layer.get_submodule(name)


def _compute_statistics(
    modules: list[Module], sizes: list[int | None], data: Iterable[Any], key: Key | None
) -> list[Module]:
    """Return the modules, of which one with a size is a stack of that many, with new statistics."""
    running = [_without_statistics(module) for module in modules]
    if not any(True for module in modules for _ in _tracking(module)):
        return modules
    count = 0
    for batch in data:
        x = batch[0] if isinstance(batch, (tuple, list)) else batch
        if snp.shape(x)[:1] == (0,):
            raise ValueError(
                f"update_batch_norm: batch {count} has no examples, of shape {x.shape}"
            )
        drawn = None if key is None else fold_in(key, count)
        running = [_after(m, x, drawn, n) for m, n in zip(running, sizes, strict=True)]
        count += 1
    if not count:
        raise ValueError("update_batch_norm: expected at least one batch of data, got none")
    return [_with_statistics(a, b) for a, b in zip(modules, running, strict=True)]


def _without_statistics(module: Module) -> Module:
    """Return a copy in train mode with no statistics yet, and plain means for running ones."""
    copy = module.clone().train()
    for _, layer in _tracking(copy):
        for name in _BUFFERS:
            make = snp.ones_like if name == "running_var" else snp.zeros_like
            layer.update_buffer(name, make(getattr(layer, name)))
    for layer in copy.modules():
        if isinstance(layer, _LAYERS):
            layer.momentum = None
        elif isinstance(layer, ImportedModule) and layer.training_program is not None:
            layer.training_program = with_plain_means(layer.training_program)[0]
        elif isinstance(layer, ImportedModule) and _has_statistics(layer):
            raise RuntimeError(
                f"update_batch_norm: {layer.kind} was not imported in train mode, which it runs "
                f"in: give from_torch train=True"
            )
    return copy


def _has_statistics(module: Module) -> bool:
    return any(name.rpartition(".")[2] == "running_mean" for name, _ in module.named_buffers())


@functools.partial(jit, static_argnums=3)
def _after(module: Module, x: Tree, key: Key | None, size: int | None) -> Module:
    """Return the module, or a stack of ``size`` of them, after one more batch."""

    def one(module: Module, key: Key | None) -> Module:
        with refusing(_NO_KEY) if key is None else keys(key):
            return stateful_call(module, x)[1]

    if size is None:
        return one(module, key)
    axis = None if key is None else 0
    return vmap(one, (0, axis))(module, None if key is None else split(key, size))


def _with_statistics(module: Module, computed: Module) -> Module:
    """Return a copy of the module with what was computed; modes and momenta are as before."""
    copy = module.clone()
    for (_, layer), (_, other) in zip(_tracking(copy), _tracking(computed), strict=True):
        for name in _BUFFERS:
            layer.update_buffer(name, getattr(other, name))
    return copy
