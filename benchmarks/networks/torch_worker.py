"""The networks in PyTorch, as a process."""

from __future__ import annotations

import torch

from benchmarks.networks import cases_torch
from benchmarks.worker import Registry, serve

cases = Registry()
cases_torch.register(cases)


if __name__ == "__main__":
    serve("torch", ["torch", "numpy"], "import torch", cases, threads=torch.get_num_threads())
