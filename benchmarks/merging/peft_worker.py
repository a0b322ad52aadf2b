"""Make a model with two LoRA adapters, and merge them with PEFT.

    python -m benchmarks.merging.peft_worker FOLDER DTYPE

writes ``base.safetensors``, the adapters ``first`` and ``second``, the model with one of them
merged into it, ``with-first.safetensors``, and with a combination of both, ``cat.safetensors``;
where PEFT combines the matrices of adapters one by one, these: ``matrices-ties.safetensors``.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file

from benchmarks.merging.cases import ALPHA, BOTH, DENSITY, MATRICES, RANK

__all__ = ["main"]


class Net(torch.nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.up = torch.nn.Linear(96, 320, bias=False)
        self.down = torch.nn.Linear(320, 96, bias=False)


def weights_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the tensors, each of its own."""
    return {name: x.detach().clone().contiguous() for name, x in model.state_dict().items()}


def main(arguments: list[str]) -> int:
    """Write all files."""
    folder, dtype = Path(arguments[0]), getattr(torch, arguments[1])
    torch.manual_seed(0)
    net = Net().to(dtype)
    save_file(weights_of(net), str(folder / "base.safetensors"))
    config = LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=["up", "down"])
    model: Any = get_peft_model(net, config, adapter_name="first", autocast_adapter_dtype=False)
    model.add_adapter("second", config, autocast_adapter_dtype=False)
    for name, x in model.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(x, std=0.05)
    model.save_pretrained(str(folder))  # in folders first and second
    alone = copy.deepcopy(model).merge_and_unload(adapter_names=["first"])
    save_file(weights_of(alone), str(folder / "with-first.safetensors"))
    for how, weights in {"cat": BOTH, **MATRICES}.items():
        each = copy.deepcopy(model)
        density = {} if how in ("cat", "linear") else {"density": DENSITY}
        each.add_weighted_adapter(["first", "second"], list(weights), "both", how, **density)
        if how == "cat":
            merged = each.merge_and_unload(adapter_names=["both"])
            save_file(weights_of(merged), str(folder / f"{how}.safetensors"))
            continue
        found = {
            name.replace(".both", ""): x
            for name, x in weights_of(each).items()
            if name.endswith(".both.weight")
        }
        save_file(found, str(folder / f"matrices-{how}.safetensors"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
