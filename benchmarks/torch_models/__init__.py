"""Whole PyTorch models, imported by ``stretto.from_torch`` and trained beside PyTorch's own."""

from benchmarks.torch_models import operators as operators  # before anything imports torchvision
