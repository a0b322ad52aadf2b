"""Is it a module that PyTorch can export, and does it take the example? Asked before an export.

An export follows types alone. It takes indices that are out of range and integers where floats are
wanted, and of what is no plain module it says little that helps.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]
from torch.utils._python_dispatch import is_traceable_wrapper_subclass  # pyright: ignore[reportMissingImports]

from stretto._engine.core.interpreter import Value
from stretto.torch.python_state.holdings import memory_of, undone
from stretto.torch.trace.substitutes import checks_kept


def unwrapped(module: Any) -> Any:
    """The module inside ``torch.compile``'s, ``DataParallel`` and the like, which compute the same.

    Whatever is no such wrapper is itself.
    """
    while isinstance(module, torch.nn.Module):
        inner = getattr(module, "_orig_mod", None)  # of torch.compile
        if inner is None and isinstance(
            module, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
        ):
            inner = module.module
        if not isinstance(inner, torch.nn.Module):
            break
        module = inner
    return module


def check_module(caller: str, module: torch.nn.Module) -> None:
    """Raise ``NotImplementedError`` or ``TypeError`` for what no export can follow, by name."""
    kind = type(module).__name__
    if isinstance(module, torch.fx.GraphModule) and "train" in vars(module):
        raise TypeError(
            f"{caller}: {kind} is what an ExportedProgram's module() gives, which has one mode and "
            f"cannot be exported again: give the ExportedProgram itself"
        )
    for path, part in module.named_modules():
        what = f"{caller}: {kind}" if part is module else f"{caller}: {kind}: {path}"
        if isinstance(part, torch.jit.ScriptModule):
            raise NotImplementedError(
                f"{what} is a module of TorchScript (torch.jit.script or torch.jit.trace), which "
                f"keeps no Python code for PyTorch to export: give the module it was made of, and "
                f"load its weights into that"
            )
        if type(part).__module__.startswith(("torch.ao.nn.quantized", "torch.nn.quantized")):
            raise NotImplementedError(
                f"{what} is a quantized {type(part).__name__}, whose weights are packed for one "
                f"kind of processor: import the module of floats that it was made of"
            )
        held = [*part._parameters.items(), *part._buffers.items()]
        for name, x in held:
            if x is not None:
                _check_tensor(f"{what}: {name}", x)
    if type(module).forward is torch.nn.Module.forward and "forward" not in vars(module):
        raise TypeError(
            f"{caller}: {kind} has no forward: put it into a module whose forward says what is "
            f"computed"
        )


def _check_tensor(what: str, x: Any) -> None:
    if torch.nn.parameter.is_lazy(x):
        raise TypeError(
            f"{what} is not initialized, since its shape comes from the first call: call the "
            f"module with the example once, and import it then"
        )
    if x.is_meta:
        raise TypeError(
            f"{what} has no elements, as it is on PyTorch's meta device: load the weights first "
            f"(load_state_dict(..., assign=True))"
        )
    if is_traceable_wrapper_subclass(x):
        raise NotImplementedError(
            f"{what} is a {type(x).__name__}, which holds other tensors in place of elements "
            f"(quantized, or in pieces on several devices): give a module with plain tensors"
        )


def check_example(
    caller: str, module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Call the module with the example, as PyTorch itself would, and leave all as it was.

    What PyTorch raises is raised with a note. If it only lacks a kernel for a dtype on this
    machine, nothing is known of the example, and nothing is raised.
    """
    for x in pytree.tree_leaves((tuple(args), dict(kwargs))):
        if isinstance(x, (np.ndarray, Value)):
            raise TypeError(
                f"{caller}: the example has a {type(x).__module__.partition('.')[0]} array: give "
                f"what the PyTorch module takes, such as torch.from_numpy(x)"
            )
    with (
        undone(module),
        checks_kept(),
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.random.fork_rng(),
        torch.compiler.set_stance("force_eager"),
        warnings.catch_warnings(action="ignore"),
    ):
        copied_args, copied_kwargs = pytree.tree_map(_copied, (tuple(args), dict(kwargs)))
        try:
            module(*copied_args, **copied_kwargs)
        except NotImplementedError:
            return
        except Exception as error:
            error.add_note(
                f"{caller}: PyTorch's own call of this {type(module).__name__} with the example "
                f"raises this."
            )
            raise


def apart(
    module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """An example, in which no tensor shares memory with another or with the module's.

    PyTorch exports an argument that is given twice as one, and a later call may give two.
    """
    place = lambda x: memory_of(x) or id(x)
    known = {place(x) for x in (*module.parameters(), *module.buffers())}

    def own(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if place(leaf) in known:
            return _copied(leaf)
        known.add(place(leaf))
        return leaf

    return pytree.tree_map(own, (tuple(args), dict(kwargs)))


def _copied(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.detach().clone().requires_grad_(leaf.requires_grad)
    return copy.deepcopy(leaf)
