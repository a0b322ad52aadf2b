"""What must be equal for a training to be resumed from its checkpoints, in words."""

from __future__ import annotations

import re
import zlib
from typing import Any

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.config import config
from stretto._engine.core.typing import Tree
from stretto.ensemble.training.examples import checksum
from stretto.ensemble.training.state import TrainState
from stretto.ensemble.training.trainer import Trainer
from stretto.random.keys import key_data

__all__ = ["configuration_of"]

_ADDRESS = re.compile("0x[0-9a-f]+")


def configuration_of(
    trainer: Trainer,
    state: TrainState,
    examples: list[Any],
    each: bool,
    data: Tree,
    validation: Tree,
    **settings: Any,
) -> dict[str, str]:
    """What must be equal for a training to be resumed, in words.

    The program of a step stands for the loss, the optimizer and the members.
    """
    texts = {n: str(x) for n, x in settings.items()}
    texts["key"] = str(np.asarray(key_data(state.key)).tolist())
    texts["on_divergence"] = trainer.on_divergence
    texts["enable_x64"] = str(config.enable_x64)
    texts["threefry_partitionable"] = str(config.threefry_partitionable)
    for name, x in (("data", data), ("validation", validation)):
        if x is not None:
            texts[name] = f"{', '.join(str(v.type) for v in tree.leaves(x))}, CRC {checksum(x):08x}"
    for g, (pack, sums, example) in enumerate(zip(state.packs, state.sums, examples, strict=True)):
        texts[f"architecture {g}"] = f"{pack.group.size} members at {list(pack.group.places)}"
        for name, x in zip(pack.group.names, pack.arrays(), strict=True):
            texts[f"architecture {g}, {name}"] = str(x.type)
        text = trainer.program(pack, sums, example, each)
        digest = zlib.crc32(_ADDRESS.sub("", text).encode())
        texts[f"architecture {g}, program of a step (loss, optimizer, model)"] = f"{digest:08x}"
        own = (pack.rows.extra, getattr(pack.rows.optimizer, "hyperparams", None))
        texts[f"architecture {g}, hyperparameters"] = f"CRC {checksum(own):08x}"
    return texts
