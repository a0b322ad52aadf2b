"""Merge as one writes it by hand: a loop over the tensors, with PyTorch and safetensors.

    python -m benchmarks.merging.torch_loop RECIPE OUT SHARD

The recipe is JSON, as of ``cases``, by ``linear`` or ``ties``.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

__all__ = ["linear", "main", "ties"]


class Model:
    """The tensors of a folder of shards, read when asked for."""

    def __init__(self, folder: str, stack: contextlib.ExitStack) -> None:
        index = json.loads((Path(folder) / "model.safetensors.index.json").read_text())
        self.places: Mapping[str, str] = index["weight_map"]
        self._files = {
            name: stack.enter_context(safe_open(str(Path(folder) / name), "pt"))
            for name in sorted(set(self.places.values()))
        }

    def __getitem__(self, name: str) -> torch.Tensor:
        return self._files[self.places[name]].get_tensor(name)


def linear(tensors: list[torch.Tensor], weights: list[float]) -> torch.Tensor:
    """Return the weighted mean."""
    total = weights[0] * tensors[0].float()
    for weight, x in zip(weights[1:], tensors[1:], strict=True):
        total += weight * x.float()
    return total / sum(weights)


def ties(
    base: torch.Tensor, tensors: list[torch.Tensor], weights: list[float], density: float
) -> torch.Tensor:
    """Trim, elect a sign, and average what has it."""
    start = base.float()
    kept = []
    for weight, x in zip(weights, tensors, strict=True):
        delta = x.float() - start
        size = delta.abs().flatten()
        count = max(1, int(density * size.numel()))
        least = size.kthvalue(size.numel() - count + 1).values
        kept.append(torch.where(delta.abs() >= least, delta * weight, 0.0))
    positive = sum(kept[1:], kept[0]) >= 0
    total, share = torch.zeros_like(start), torch.zeros_like(start)
    for weight, x in zip(weights, kept, strict=True):
        agrees = torch.where(positive, x > 0, x < 0)
        total += torch.where(agrees, x, 0.0)
        share += torch.where(agrees, weight, 0.0)
    return start + total / torch.where(share == 0, 1.0, share)


def _numbered(k: int, count: int) -> str:
    return f"model-{k:05d}-of-{count:05d}.safetensors"


def main(arguments: list[str]) -> int:
    """Merge by a recipe."""
    recipe: dict[str, Any] = json.loads(Path(arguments[0]).read_text())
    out, most = Path(arguments[1]), int(arguments[2])
    out.mkdir(parents=True)
    weights = [m["parameters"]["weight"] for m in recipe["models"]]
    with contextlib.ExitStack() as stack:
        models = [Model(m["model"], stack) for m in recipe["models"]]
        base = Model(recipe["base_model"], stack) if "base_model" in recipe else None
        dtype = getattr(torch, recipe["out_dtype"])
        pending: dict[str, torch.Tensor] = {}
        places: dict[str, str] = {}
        number = size = 0

        def flush() -> None:
            nonlocal number, size
            number += 1
            name = f"model-{number:05d}.safetensors"
            save_file(pending, str(out / name), {"format": "pt"})
            places.update(dict.fromkeys(pending, name))
            pending.clear()
            size = 0

        for name in models[0].places:
            tensors = [m[name] for m in models]
            if base is None:
                result = linear(tensors, weights)
            else:
                result = ties(base[name], tensors, weights, recipe["parameters"]["density"])
            result = result.to(dtype)
            if pending and size + result.nbytes > most:
                flush()
            pending[name] = result
            size += result.nbytes
        flush()
    for k in range(1, number + 1):  # as transformers names them
        (out / f"model-{k:05d}.safetensors").rename(out / _numbered(k, number))
    places = {name: _numbered(int(file[6:11]), number) for name, file in places.items()}
    index = {"metadata": {}, "weight_map": places}
    (out / "model.safetensors.index.json").write_text(json.dumps(index))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
