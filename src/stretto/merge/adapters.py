"""Models with low-rank matrices beside them, as PEFT's LoRA keeps them, read as one."""

from __future__ import annotations

import math
import os
import re
from typing import Any, NamedTuple

import numpy as np

from stretto.merge.checkpoints import Checkpoint, read_table, shown
from stretto.merge.recipes import pattern_problem

__all__ = ["PREFIX", "Adapted"]

PREFIX = "base_model.model."
"""What PEFT puts before the names of a model's modules."""
_KINDS = (".lora_A.weight", ".lora_B.weight")


class _Pair(NamedTuple):
    """What is added to a weight: ``scale`` times B A."""

    down: np.ndarray
    """A, of shape (rank, inputs)."""
    up: np.ndarray
    """B, of shape (outputs, rank)."""
    scale: float
    turned: bool
    """Whether the weight has the inputs first, as GPT-2's."""


class Adapted(Checkpoint):
    """A checkpoint to whose weights an adapter is added while they are read: W + (α/r) B A.

    Args:
        model: the checkpoint.
        adapter: a folder with ``adapter_config.json`` and ``adapter_model.safetensors``.

    Raises:
        ValueError: the adapter is no LoRA, or it is for weights that the model does not have.

    Source: Hu et al., "LoRA: low-rank adaptation of large language models", 2021.
    """

    def __init__(self, model: Checkpoint, adapter: str) -> None:
        self.__dict__.update(vars(model))  # the same open files
        self._model = model  # which closes them when it goes
        self.adapter = Checkpoint(adapter)
        said = _settings(adapter)
        self._pairs = _pairs(self.adapter, said, self.stored, adapter)
        self.path = f"{model.path} + {adapter}"

    def read_into(self, name: str, begin: int, out: memoryview) -> None:
        """Read bytes of a tensor, with what the adapter adds to it."""
        super().read_into(name, begin, out)
        pair = self._pairs.get(name)
        if pair is None or not len(out):
            return
        stored = self.stored[name]
        dtype = stored.dtype
        row = stored.shape[-1]
        first, count = begin // dtype.itemsize, len(out) // dtype.itemsize
        top, bottom = first // row, -(-(first + count) // row)
        if pair.turned:
            added = pair.down[:, top:bottom].T @ pair.up.T
        else:
            added = pair.up[top:bottom] @ pair.down
        flat = (pair.scale * added).reshape(-1)[first - top * row :][:count]
        elements = np.frombuffer(out, dtype)
        elements[...] = (elements.astype(np.float32) + flat).astype(dtype)

    def identity(self) -> list[list[Any]]:
        """Return what tells these files from others."""
        return [*super().identity(), *self.adapter.identity()]

    def close(self) -> None:
        """Close the files."""
        super().close()
        self.adapter.close()


def _settings(folder: str) -> dict[str, Any]:
    path = os.path.join(folder, "adapter_config.json")
    if not os.path.isfile(path):
        raise ValueError(f"merge: {folder} is no LoRA adapter: it has no adapter_config.json")
    said = read_table(path, "merge: ")
    if said.get("peft_type", "LORA") != "LORA":
        raise ValueError(
            f"merge: {folder} is no LoRA adapter: its adapter_config.json has "
            f"{shown(said['peft_type'])}"
        )
    unknown = [k for k in _REFUSED if said.get(k)]
    start = said.get("init_lora_weights")
    if isinstance(start, str) and start.lower().startswith(_OF_OTHER_WEIGHTS):
        unknown.append(f"init_lora_weights={shown(start)} (its model has other weights)")
    if unknown or said.get("bias", "none") != "none":
        raise ValueError(
            f"merge: the adapter {folder} has {', '.join(unknown) or 'biases'}, which is not "
            f"supported: merge it into its model with PEFT first"
        )
    return said


_REFUSED = (
    "use_dora", "lora_bias", "modules_to_save", "trainable_token_indices", "use_qalora",
    "layer_replication", "target_parameters", "alora_invocation_tokens", "use_bdlora",
    "arrow_config", "kasa_config",
)  # fmt: skip
"""What makes an adapter more, or something else, than low-rank matrices."""

_OF_OTHER_WEIGHTS = ("pissa", "olora", "corda", "loftq", "lora_ga")
"""Ways to begin that take something off the model's weights, which the adapter gives back."""


def _pairs(adapter: Checkpoint, said: dict[str, Any], stored: Any, path: str) -> dict[str, _Pair]:
    rank, alpha = (_of(None, "", said.get(key, 8), path, key) for key in ("r", "lora_alpha"))
    turned = bool(said.get("fan_in_fan_out"))
    names = {n.removesuffix(_KINDS[0]) for n in adapter if n.endswith(_KINDS[0])}
    strange = [
        n
        for n in adapter
        if not n.endswith(_KINDS) or n.removesuffix(_KINDS[1]).removesuffix(_KINDS[0]) not in names
    ]
    if strange or not names:
        raise ValueError(
            f"merge: the adapter {path} has what is no pair of low-rank matrices: {strange[:3]}; "
            f"merge it into its model with PEFT first"
        )
    found = {}
    for name in sorted(names):
        weight = name.removeprefix(PREFIX) + ".weight"
        if weight not in stored:
            raise ValueError(f"merge: the adapter {path} is for {weight}, which the model lacks")
        down, up = (np.asarray(adapter[name + kind], np.float32) for kind in _KINDS)
        own = _of(said.get("rank_pattern"), weight, rank, path, "rank_pattern")
        scale = _of(said.get("alpha_pattern"), weight, alpha, path, "alpha_pattern") / (
            math.sqrt(own) if said.get("use_rslora") else own
        )
        shape = down.shape[1:] + up.shape[:1] if turned else up.shape[:1] + down.shape[1:]
        if (
            down.ndim != 2
            or up.ndim != 2
            or up.shape[1] != down.shape[0]
            or stored[weight].shape != shape
        ):
            raise ValueError(
                f"merge: the adapter {path} has matrices of shapes {down.shape} and {up.shape} for "
                f"{weight} of shape {stored[weight].shape}"
            )
        if stored[weight].code not in ("F64", "F32", "F16", "BF16"):
            raise ValueError(
                f"merge: the adapter {path} is for {weight}, which is {stored[weight]}: expected "
                f"floats of 16 bits or more"
            )
        found[weight] = _Pair(down, up, float(scale), turned)
    return found


def _of(patterns: Any, weight: str, value: Any, path: str, what: str) -> float:
    """Return a number, or that of the first pattern that is the end of the module's name."""
    if patterns is not None and not isinstance(patterns, dict):
        raise ValueError(f"merge: the adapter {path} has {what} {shown(patterns)}, and not a table")
    for pattern, own in (patterns or {}).items():
        problem = pattern_problem(pattern)
        if problem:
            raise ValueError(f"merge: the adapter {path} has in {what} {problem}")
        if re.fullmatch(rf"(?:.*\.)?(?:{pattern})", weight.removesuffix(".weight")):
            value = own
            break
    good = isinstance(value, (int, float)) and -1e300 < value < 1e300
    if not good or (what in ("r", "rank_pattern") and value <= 0):
        raise ValueError(f"merge: the adapter {path} has {what} {shown(value)}, and not a number")
    return float(value)
