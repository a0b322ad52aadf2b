"""Models of PyTorch Geometric: messages along the edges of a graph."""

from __future__ import annotations

from functools import partial

import torch
from torch_geometric.nn import models

from benchmarks.torch_models.model import Call, Model

__all__ = ["MODELS"]


def _made(name: str) -> Call:
    module = getattr(models, name)(8, 16, num_layers=2, out_channels=4)
    return Call(module, (torch.randn(20, 8), torch.randint(0, 20, (2, 60))))


MODELS = [
    Model(f"geometric/{name.lower()}", partial(_made, name), compiled=False)
    for name in ("GCN", "GAT", "GraphSAGE", "GIN")
]
