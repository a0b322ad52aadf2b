"""Layers with dropout as members: Masksembles, whose masks are drawn once, and ``mc_dropout``.

In Masksembles each member sees its own part of the features. Fewer shared features make members
more independent, as in a deep ensemble, and more make them alike, as with one network; masks do not
change after they are drawn. Source: Durasov, Bagautdinov, Baque and Fua, "Masksembles for
uncertainty estimation", 2021.

``mc_dropout`` makes an ensemble of one model by dropping out when it predicts. Source: Gal and
Ghahramani, "Dropout as a Bayesian approximation: representing model uncertainty in deep learning",
2016.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import Tracer, constant
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, Tree
from stretto._engine.higher_order.loops import positive as positive_chunk
from stretto._engine.ops.convert import convert
from stretto.ensemble.layers.members_in_batch import by_member, merged, spread
from stretto.nn import activations
from stretto.nn.functional.checks import positive, refuse
from stretto.nn.module import Module
from stretto.numpy.dtypes import as_dtype
from stretto.random.keys import as_key, key_data, split
from stretto.random.streams import keys as stream
from stretto.random.streams import next_key
from stretto.torch.imported_module import ImportedModule
from stretto.torch.table.aten_randomness import TABLE as RANDOM

__all__ = ["Masksembles1d", "Masksembles2d", "masksembles_masks", "mc_dropout"]

_TRIES = 10_000


def masksembles_masks(
    channels: int, num_estimators: int, scale: float, *, key: Key | None = None
) -> Array:
    """Draw masks of 0 and 1 in which each channel is used, all with equally many ones.

    Ones are put at random among more places than there are channels, and places that no mask uses
    are left out; that is done until just ``channels`` are left.

    Args:
        channels: how many.
        num_estimators: how many masks.
        scale: how little they overlap, from 1 to 100: with 1 they are all ones, with more they
            share less (the expected share of a mask in another is 1 / scale).
        key: a key; ``None`` draws from the ambient stream.

    Returns:
        (num_estimators, channels), float32.

    Raises:
        ValueError: ``scale`` is out of range, or no such masks are found.
        TracedValueError: ``key`` is traced.

    Source: Durasov et al., 2021, section 3.

    >>> import stretto as st
    >>> masks = st.ensemble.layers.masksembles_masks(8, 4, 2.0, key=st.random.PRNGKey(0))
    >>> masks.shape, bool((masks.sum(0) > 0).all())
    ((4, 8), True)
    """
    caller = "masksembles_masks"
    positive(caller, channels=channels, num_estimators=num_estimators)
    if not 1 <= scale <= 100:
        raise ValueError(f"{caller}: scale must be between 1 and 100, got {scale!r}")
    key = key_data(next_key(caller) if key is None else as_key(key, caller))
    if isinstance(key, Tracer):
        raise TracedValueError(
            f"{caller}: masks are drawn once, outside transformations; the key is traced: "
            f"{key.origin()}. Draw the masks, or make the layer, before"
        )
    # Of m·s places, a mask uses m, and the masks together m·s (1 − (1 − 1/s)ⁿ).
    used = scale * (1 - (1 - 1 / scale) ** num_estimators)
    ones = min(channels, math.ceil(round(channels / used, 6)))
    places = max(channels, round(ones * scale))
    random = np.random.default_rng(np.asarray(key))
    for _ in range(_TRIES):
        order = random.random((num_estimators, places)).argsort(axis=1)
        masks = order < ones
        alive = masks.any(axis=0)
        if alive.sum() == channels:
            return constant(masks[:, alive].astype(np.float32))
    raise ValueError(
        f"{caller}: found no {num_estimators} masks of {ones} ones that use just {channels} "
        "channels; "
        f"take another scale than {scale}, or more channels"
    )


class _Masksembles(Module):
    _tiled: ClassVar[int]
    _channels: ClassVar[int]

    masks: Any

    def __init__(
        self,
        channels: int,
        num_estimators: int,
        scale: float,
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.num_estimators = num_estimators
        self.scale = scale
        masks = masksembles_masks(channels, num_estimators, scale, key=key)
        self.register_buffer("masks", masks if dtype is None else convert(masks, as_dtype(dtype)))

    def forward(self, input: ArrayLike) -> Array:
        """Set to 0 what each member's mask leaves out of its input; keep the layout."""
        x, tiled = by_member(self, input, self.num_estimators, self._tiled)
        if x.shape[self._channels] != self.masks.shape[1]:
            refuse(self, f"with {self.masks.shape[1]} channels", x)
        out = x * spread(self.masks, x.ndim, self._channels)
        return merged(out) if tiled else out

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"num_estimators={self.num_estimators}, scale={self.scale}"


class Masksembles1d(_Masksembles):
    """Features masked for each member: a layer to put where dropout would be.

    ``masks`` is a buffer. The input is tiled, (num_estimators × batch, channels), or split,
    (num_estimators, batch, ..., channels), and so is the output.

    Args:
        channels: of the input.
        num_estimators: how many members.
        scale: how little the masks overlap; see ``masksembles_masks``.
        key: a key; ``None`` draws from the ambient stream.
        dtype: of the masks; float32 by default.

    Raises:
        ValueError: as for ``masksembles_masks``; or, when called, the input does not match.

    >>> import stretto as st
    >>> from stretto.ensemble.layers import Masksembles1d
    >>> layer = Masksembles1d(16, num_estimators=4, scale=2.0, key=st.random.PRNGKey(0))
    >>> layer(st.numpy.ones((20, 16))).shape
    (20, 16)
    """

    _tiled = 2
    _channels = -1


@described_like(Masksembles1d)
class Masksembles2d(_Masksembles):
    """Channels of images masked for each member; see ``Masksembles1d``.

    The input is tiled, (num_estimators × batch, channels, height, width), or split.

    >>> import stretto as st
    >>> from stretto.ensemble.layers import Masksembles2d
    >>> layer = Masksembles2d(16, num_estimators=4, scale=2.0, key=st.random.PRNGKey(0))
    >>> layer(st.numpy.ones((4, 5, 16, 3, 3))).shape
    (4, 5, 16, 3, 3)
    """

    _tiled = 4
    _channels = 2


_DROPPING = (
    activations.AlphaDropout,
    activations.Dropout,
    activations.Dropout1d,
    activations.Dropout2d,
    activations.Dropout3d,
    activations.FeatureAlphaDropout,
)


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
    """Return the probability with which a layer drops out."""
    p = getattr(module, "p" if isinstance(module, _DROPPING) else "dropout", 0)
    return p if isinstance(p, (int, float)) else 0


def _draws(module: ImportedModule) -> bool:
    """Say whether its evaluation program draws random numbers."""
    program = module.evaluation_program
    return program is not None and any(node.op in RANDOM for node in program.graph.walk())


@partial(jit, static_argnums=0)
def _runs(chunk_size: int | str | None, model: Callable[..., Any], args: Tree, keys: Tree) -> Tree:
    def run(key: Key) -> Tree:
        with stream(key):
            return model(*args)

    return vmap(run, chunk_size=chunk_size)(keys)
