"""PyTorch's pass that sets what runs without gradients apart, in time linear in the program.

It takes each part that runs with gradients back into the whole by itself, and writes the code of
the whole anew for each. Written once at the end, a loop with many such parts, as of an
``autograd.Function`` in each step, is exported in half the time. This module imports PyTorch.
"""

from __future__ import annotations

import threading
from typing import Any

from torch._export.passes import replace_set_grad_with_hop_pass as passes  # pyright: ignore[reportMissingImports]
from torch.fx import GraphModule  # pyright: ignore[reportMissingImports]

__all__ = ["PATCHED"]

_WHOLE = passes.replace_set_grad_with_hop_pass
_WRITE = GraphModule.recompile
_LATER = threading.local()


def _set_apart(module: Any, signature: Any) -> Any:
    _LATER.on = True
    try:
        module, signature = _WHOLE(module, signature)
    finally:
        _LATER.on = False
    for part in module.modules():
        if isinstance(part, GraphModule):
            part.recompile()
    return module, signature


def _written(module: Any) -> Any:
    return None if getattr(_LATER, "on", False) else _WRITE(module)


PATCHED = [
    (passes, "replace_set_grad_with_hop_pass", _set_apart),
    (GraphModule, "recompile", _written),
]
"""What stands in PyTorch's modules and classes while a module is exported, and where."""
