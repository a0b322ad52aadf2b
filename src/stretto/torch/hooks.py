"""The hooks that a PyTorch module and its parameters hold, looked at before it is exported.

Those of modules that run on the way forward are traced as anything else. On the way back PyTorch's
export drops them without a word, so a parameter's become rules, and others are refused; so are
those of all modules at once, which would run for the exporter's own modules, too. Like ``capture``
this imports PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch  # pyright: ignore[reportMissingImports]
from torch.nn.modules import module as modules  # pyright: ignore[reportMissingImports]

from stretto.torch.derivatives import apply_hooks
from stretto.torch.marks import Unfit, name_of

__all__ = ["hooked"]


@contextmanager
def hooked(module: torch.nn.Module) -> Iterator[None]:
    """Have the hooks of a module's parameters applied when it runs.

    Raises ``Unfit`` if there are others that cannot come in.
    """
    _check(module)
    hooks = {
        name: tuple(parameter._backward_hooks.values())
        for name, parameter in module.named_parameters()
        if parameter._backward_hooks
    }
    if not hooks:
        yield
        return
    every = list(module.named_parameters(remove_duplicate=False))
    held = dict(module.named_parameters())
    for name in hooks:
        names = [other for other, parameter in every if parameter is held[name]]
        if len(names) > 1:
            raise Unfit(
                f"from_torch: the parameter {name} has a hook, and is {', '.join(names[1:])} as "
                f"well: the hook would see their gradients apart. Remove it before the import, and "
                f"do what it does to what stretto.grad gives"
            )
    handle = module.register_forward_pre_hook(
        lambda traced, _: apply_hooks(hooks, dict(traced.named_parameters())), prepend=True
    )
    try:
        yield
    finally:
        handle.remove()


_OF_ALL = (
    modules._global_forward_pre_hooks,
    modules._global_forward_hooks,
    modules._global_backward_pre_hooks,
    modules._global_backward_hooks,
)


def _check(module: torch.nn.Module) -> None:
    for table in _OF_ALL:
        for hook in table.values():
            raise Unfit(
                f"from_torch: the hook {name_of(hook)} of all modules cannot come in: it would run "
                f"for PyTorch's exporter, too, and on the way back not at all. Remove it before "
                f"the import (its handle's remove()); a forward hook of one module comes in"
            )
    tables = []
    for path, part in module.named_modules():
        what = f"{path or 'the module'} ({type(part).__name__})"
        tables += [(part._backward_hooks, what), (part._backward_pre_hooks, what)]
    for table, what in tables:
        for hook in table.values():
            raise Unfit(
                f"from_torch: the backward hook {name_of(hook)} of {what} cannot come in: "
                f"PyTorch's export drops it, and gradients would be others. Remove it before the "
                f"import (its handle's remove()); an autograd.Function in forward, or a hook of a "
                f"tensor there, comes in"
            )
    for name, parameter in module.named_parameters():
        for hook in (parameter._post_accumulate_grad_hooks or {}).values():
            raise Unfit(
                f"from_torch: the hook {name_of(hook)} of the parameter {name} runs after "
                f"gradients are accumulated, and cannot come in: gradients are values here. Remove "
                f"it before the import (its handle's remove()), and do what it does after "
                f"stretto.grad"
            )
    for name, buffer in module.named_buffers():
        for hook in (buffer._backward_hooks or {}).values():
            raise Unfit(
                f"from_torch: the buffer {name} has a hook, {name_of(hook)}, which cannot come in: "
                f"make it a parameter, or remove the hook before the import"
            )
