"""The mode that each part of a PyTorch module is in while it is exported.

The mode that a module is in is taken as it stands, part by part: dropout that was left on in an
evaluated module stays on, and batch normalization that was frozen in train mode stays frozen. The
other mode is what the module's own ``train()`` or ``eval()`` makes. Like ``capture`` this works on
PyTorch's objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stretto.torch.holdings import undone

__all__ = ["in_mode"]

_WAY = {
    True: "import it without train=True",
    False: "put all its parts in the mode they are to have, and set its training to False",
}


@contextmanager
def in_mode(module: torch.nn.Module, train: bool) -> Iterator[None]:
    """Have a module in train or evaluation mode in this context; then as it was.

    Raises ``NotImplementedError`` if its ``train()`` or ``eval()`` changes parameters or buffers.
    """
    if module.training == train:  # it is taken as it stands
        yield
        return
    modes = [(part, part.training) for part in module.modules()]
    own = any([_has_own(part) for part in module.modules()])
    tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())} if own else {}
    values = {name: x.detach().clone() for name, x in tensors.items()}
    with undone(module) if own else nullcontext():
        try:
            module.train() if train else module.eval()
            name = f"{type(module).__name__}.{'train' if train else 'eval'}()"
            if module.training != train:
                raise NotImplementedError(
                    f"from_torch: {name} does not put the module in that mode, so there is no such "
                    f"program: {_WAY[train]}"
                )
            changed = [key for key in values if not _is(module, key, tensors[key], values[key])]
            if changed:
                raise NotImplementedError(
                    f"from_torch: {name} changes {', '.join(changed)}, and both modes have the "
                    f"same arrays here: put the module in the mode to import, and import it "
                    f"without train=True"
                )
            yield
        finally:
            for part, mode in modes:
                part.training = mode


def _has_own(part: torch.nn.Module) -> bool:
    """Whether a module has a ``train`` or an ``eval`` that is not PyTorch's."""
    plain: Any = torch.nn.Module
    held: Any = type(part)
    return held.train is not plain.train or held.eval is not plain.eval or "train" in vars(part)


def _is(module: torch.nn.Module, name: str, tensor: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether a tensor has its name in the module, and the elements that it had."""
    path, _, attribute = name.rpartition(".")
    try:
        held = getattr(module.get_submodule(path), attribute)
    except AttributeError:
        return False
    return held is tensor and torch.equal(tensor.detach().nan_to_num(), value.nan_to_num())
