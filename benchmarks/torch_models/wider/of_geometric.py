"""Layers and models of PyTorch Geometric, whose graphs are lists of edges."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric import nn as gnn

from benchmarks.torch_models.model import Call, Model

__all__ = ["MODELS"]

NODES, EDGES = 20, 60


def _edges() -> torch.Tensor:
    return torch.randint(0, NODES, (2, EDGES))


class _Two(nn.Module):
    """Two layers, and what their edges are told."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: torch.Tensor, edges: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        return self.second(F.elu(self.first(x, edges, *rest)), edges, *rest)


def _two(name: str, *rest: Callable[[], torch.Tensor], **options: Any) -> Call:
    layer = getattr(gnn, name)
    module = _Two(layer(8, 8, **options), layer(8, 4, **options))
    return Call(module, (torch.randn(NODES, 8), _edges(), *[make() for make in rest]))


def _one(make: Callable[[], nn.Module], *rest: Callable[[], torch.Tensor]) -> Call:
    return Call(make(), (torch.randn(NODES, 8), _edges(), *[other() for other in rest]))


def _then(first: nn.Module, second: nn.Module) -> Call:
    return Call(_Two(first, second), (torch.randn(NODES, 8), _edges()))


def _pna() -> Call:
    kinds = ["mean", "min", "max", "std"], ["identity", "amplification", "attenuation"]
    degrees = torch.tensor([1, 4, 6, 5, 3, 1])
    return _one(lambda: gnn.PNAConv(8, 4, *kinds, degrees))


def _gps() -> Call:
    inner = gnn.GINConv(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)))
    return Call(gnn.GPSConv(8, inner, heads=2), (torch.randn(NODES, 8), _edges()))


class _Whole(nn.Module):
    """A number for each graph of a batch."""

    def __init__(self, pool: nn.Module) -> None:
        super().__init__()
        self.conv, self.pool, self.head = gnn.GraphConv(8, 8), pool, nn.LazyLinear(3)

    def forward(self, x: torch.Tensor, edges: torch.Tensor, of: torch.Tensor) -> torch.Tensor:
        return self.head(self.pool(self.conv(x, edges).relu(), of, dim_size=4))


def _pooled(pool: nn.Module, size: int) -> Call:
    module = _Whole(pool)
    module.head = nn.Linear(size, 3)
    of = torch.arange(NODES) // 5
    return Call(module, (torch.randn(NODES, 8), _edges(), of))


def _numbers() -> torch.Tensor:
    return torch.rand(EDGES, 3)


def _weights() -> torch.Tensor:
    return torch.rand(EDGES)


def _types() -> torch.Tensor:
    return torch.randint(0, 3, (EDGES,))


_MAKERS: dict[str, Callable[[], Call]] = {
    "gatv2": partial(_two, "GATv2Conv", heads=2, concat=False, add_self_loops=False),
    "transformer": partial(_two, "TransformerConv", _numbers, heads=2, concat=False, edge_dim=3),
    "cheb": partial(_two, "ChebConv", K=3),
    "arma": partial(_two, "ARMAConv"),
    "tag": partial(_two, "TAGConv"),
    "sg": partial(_two, "SGConv", K=2),
    "graph_conv": partial(_two, "GraphConv", _weights),
    "leconv": partial(_two, "LEConv"),
    "resgated": partial(_two, "ResGatedGraphConv"),
    "gen": partial(_two, "GENConv", norm="layer"),
    "film": partial(_two, "FiLMConv"),
    "mf": partial(_two, "MFConv", max_degree=4),
    "cluster_gcn": partial(_two, "ClusterGCNConv"),
    "rgcn": partial(_two, "RGCNConv", _types, num_relations=3),
    "fast_rgcn": partial(_two, "FastRGCNConv", _types, num_relations=3, num_bases=2),
    "rgat": partial(_two, "RGATConv", _types, num_relations=3),
    "nnconv": lambda: _one(lambda: gnn.NNConv(8, 4, nn.Linear(3, 32)), _numbers),
    "spline_free_gmm": lambda: _one(lambda: gnn.GMMConv(8, 4, dim=3, kernel_size=2), _numbers),
    "appnp": lambda: _then(gnn.GraphConv(8, 4), gnn.APPNP(K=3, alpha=0.1)),
    "gated_graph": lambda: _one(lambda: gnn.GatedGraphConv(8, num_layers=2)),
    "edge_conv": lambda: _one(lambda: gnn.EdgeConv(nn.Sequential(nn.Linear(16, 4), nn.ReLU()))),
    "cg": lambda: _one(lambda: gnn.CGConv(8, dim=3), _numbers),
    "pna": _pna,
    "gps": _gps,
    "softmax_pool": lambda: _pooled(gnn.SoftmaxAggregation(learn=True), 8),
    "median_pool": lambda: _pooled(gnn.MedianAggregation(), 8),
    "attention_pool": lambda: _pooled(gnn.AttentionalAggregation(nn.Linear(8, 1)), 8),
    "set2set": lambda: _pooled(gnn.Set2Set(8, processing_steps=2), 16),
    "sort_pool": lambda: _pooled(gnn.SortAggregation(k=3), 24),
}

MODELS = [Model(f"geometric/{name}", make, batched=False) for name, make in _MAKERS.items()]
