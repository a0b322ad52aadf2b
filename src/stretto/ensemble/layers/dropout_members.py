"""``mc_dropout``: one model as an ensemble, by dropping out when it predicts.

Source: Gal and Ghahramani, "Dropout as a Bayesian approximation: representing model uncertainty in
deep learning", 2016.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.typing import Key, Tree
from stretto._engine.higher_order.chunks import positive as positive_chunk
from stretto.nn.activations import (
    AlphaDropout,
    Dropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
    FeatureAlphaDropout,
)
from stretto.nn.functional.checks import positive
from stretto.nn.module import Module
from stretto.random.keys import as_key, split
from stretto.random.streams import keys as stream
from stretto.torch.imported_module import ImportedModule
from stretto.torch.table.aten_randomness import TABLE as RANDOM

__all__ = ["mc_dropout"]

_DROPPING = (AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout)


def mc_dropout(
    model: Module, args: Tree, key: Key, samples: int, *, chunk_size: int | str | None = None
) -> Tree:
    """Run a model several times, each with other units dropped.

    Dropout is in train mode, and all else in evaluation mode: the layers of ``nn`` that are dropout
    or have a ``dropout`` setting (``MultiheadAttention`` and the like). The model stays as it is.
    The runs are one compiled program. A module from PyTorch has dropout in its evaluation program
    if it is imported from an ``ExportedProgram`` of a module whose dropout layers were in train
    mode.

    Args:
        model: a module.
        args: its only argument, or a tuple of them.
        key: a key, split between the runs.
        samples: how many runs.
        chunk_size: runs at a time, as for ``st.vmap``, to save memory.

    Returns:
        The outputs, stacked along a new axis 0: (samples, ...).

    Raises:
        TypeError: ``model`` is not a module, or ``key`` is not a key.
        ValueError: the model has no dropout.

    >>> import stretto as st
    >>> from stretto import nn
    >>> from stretto.ensemble.layers import mc_dropout
    >>> model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 3))
    >>> outputs = mc_dropout(model, st.numpy.ones((4, 8)), st.random.PRNGKey(0), samples=10)
    >>> outputs.shape, bool((outputs.std(0) > 0).all())
    ((10, 4, 3), True)
    """
    if not isinstance(model, Module):
        raise TypeError(f"mc_dropout: expected a module, got {type(model).__name__}")
    positive("mc_dropout", samples=samples)
    if chunk_size not in (None, "auto"):
        chunk_size = positive_chunk(chunk_size, "mc_dropout: chunk_size")
    copy = model.clone().eval()
    dropping = [module for module in copy.modules() if _probability(module) > 0]
    imported = [module for module in copy.modules() if isinstance(module, ImportedModule)]
    if not dropping and not any(_draws(module) for module in imported):
        way = (
            "; of a module from PyTorch, put its dropout layers alone in train mode before the "
            "import"
        )
        raise ValueError(
            f"mc_dropout: {type(model).__name__} has no dropout, so all runs would be the same"
            + (way if imported else "")
        )
    for module in dropping:
        module.training = True
    arguments = args if isinstance(args, tuple) else (args,)
    return _runs(chunk_size, copy, arguments, split(as_key(key, "mc_dropout"), samples))


def _probability(module: Module) -> float:
    """The probability with which a layer drops out."""
    p = getattr(module, "p" if isinstance(module, _DROPPING) else "dropout", 0)
    return p if isinstance(p, (int, float)) else 0


def _draws(module: ImportedModule) -> bool:
    """Whether its evaluation program draws random numbers."""
    program = module.evaluation_program
    return program is not None and any(node.op in RANDOM for node in program.graph.walk())


@partial(jit, static_argnums=0)
def _runs(chunk_size: int | str | None, model: Callable[..., Any], args: Tree, keys: Tree) -> Tree:
    def run(key: Key) -> Tree:
        with stream(key):
            return model(*args)

    return vmap(run, chunk_size=chunk_size)(keys)
