"""All models that are compared, by package."""

from __future__ import annotations

from benchmarks.torch_models import (
    of_diffusers,
    of_geometric,
    of_timm,
    of_torchvision,
    of_transformers,
    written,
)

__all__ = ["MODELS"]

MODELS = [
    model
    for package in (of_torchvision, of_timm, of_transformers, of_diffusers, of_geometric, written)
    for model in package.MODELS
]
