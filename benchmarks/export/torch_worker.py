"""PyTorch's own export of the networks, as a process: a file each, in the folder that is given.

python -m benchmarks.export.torch_worker FOLDER NAME BATCH ...
"""

from __future__ import annotations

import copy
import json
import logging
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.export.models import MEMBERS, MODELS, Model

logging.disable(logging.WARNING)
warnings.simplefilter("ignore")


class Vmapped(nn.Module):
    """Members as one module: their stacked parameters, vectorized over."""

    def __init__(self, members: list[nn.Module]) -> None:
        super().__init__()
        parameters, buffers = torch.func.stack_module_state(members)
        self.names = list(parameters), list(buffers)
        self.parts = nn.ParameterList(
            [
                nn.Parameter(v.detach(), requires_grad=False)
                for v in (*parameters.values(), *buffers.values())
            ]
        )
        self.base = [copy.deepcopy(members[0]).to("meta")]

    def forward(self, x: Any) -> Any:
        values = list(self.parts)
        count = len(self.names[0])
        parameters = dict(zip(self.names[0], values[:count]))
        buffers = dict(zip(self.names[1], values[count:]))

        def one(p: Any, b: Any) -> Any:
            return torch.func.functional_call(self.base[0], (p, b), (x,))

        return torch.func.vmap(one)(parameters, buffers)


def module(model: Model) -> nn.Module:
    """Return the network, ready for predictions."""
    if not model.ensemble:
        return model.make(nn).eval()
    return Vmapped([model.make(nn).eval() for _ in range(MEMBERS)]).eval()


def example(model: Model, batch: int) -> torch.Tensor:
    """Return an input."""
    shape = (batch, *model.shape)
    if model.tokens:
        return torch.zeros(shape, dtype=torch.int32)
    return torch.zeros(shape)


def main(arguments: list[str]) -> None:
    """Write the files, and print the seconds that each took as JSON lines."""
    folder, *names = arguments
    torch.set_num_threads(1)
    for name, batch in zip(names[::2], map(int, names[1::2])):
        model = MODELS[name]
        path = Path(folder) / f"torch-{name}-{batch}.onnx"
        line: dict[str, Any] = {"name": name, "batch": batch}
        begun = time.perf_counter()
        try:
            with torch.no_grad():
                torch.onnx.export(
                    module(model),
                    (example(model, batch),),
                    str(path),
                    dynamo=True,
                    external_data=False,
                    verbose=False,
                )
            line["seconds"] = time.perf_counter() - begun
        except Exception as error:
            line["error"] = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
        print("RESULT " + json.dumps(line), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
