"""Derivatives that a PyTorch module gives by itself, kept while it is traced.

``torch.export`` drops the ``backward`` of an ``autograd.Function``, hooks of tensors, and what
``inference_mode`` and ``requires_grad_`` are for. Inside ``kept`` a trace has them, by marks and by
what export does keep (``set_grad_enabled``, ``detach_``), and what it cannot have is refused by
name. Like ``capture`` this imports PyTorch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch._dynamo.variables.ctx_manager import InferenceModeVariable  # pyright: ignore[reportMissingImports]
from torch._dynamo.variables.misc import AutogradFunctionVariable  # pyright: ignore[reportMissingImports]
from torch._dynamo.variables.tensor import TensorVariable  # pyright: ignore[reportMissingImports]
from torch.autograd.function import _SingleLevelFunction  # pyright: ignore[reportMissingImports]
from torch.autograd.graph import saved_tensors_hooks  # pyright: ignore[reportMissingImports]

from stretto.torch import functions
from stretto.torch.marks import Unfit, fitted, is_traced, line, name_of

__all__ = ["apply_hooks", "kept"]

_LOCK = threading.RLock()


@contextmanager
def kept() -> Iterator[None]:
    """Have derivatives that a module gives by itself traced; gradients are on, as in training."""
    replaced: list[tuple[Any, str, Any]] = [
        (_SingleLevelFunction, "apply", classmethod(functions.apply)),
        (torch.autograd.function, "custom_function_call", functions.refuse_transformed),
        (torch.Tensor, "register_hook", _register_hook),
        (torch.Tensor, "register_post_accumulate_grad_hook", _refuse_accumulation),
        (torch.Tensor, "requires_grad_", _requires_grad_),
        (torch.Tensor, "requires_grad", property(_GETS["requires_grad"], _set_requires_grad)),
        (torch.Tensor, "data", property(_data, _set_data)),
        (torch.inference_mode, "__enter__", _enter_inference),
        (torch.inference_mode, "__exit__", _exit_inference),
        (torch.Tensor, "grad_fn", property(_grad_fn)),
        (saved_tensors_hooks, "__enter__", _enter_saved_hooks),
    ]
    in_branches: list[Unfit] = []
    replaced += [
        (owner, name, _reporting(in_branches, vars(owner)[name], what))
        for owner, name, what in _IN_BRANCHES
    ]
    with _LOCK, torch.inference_mode(False), torch.enable_grad():
        own = [(owner, name, vars(owner).get(name)) for owner, name, _ in replaced]
        try:
            for owner, name, value in replaced:
                setattr(owner, name, value)
            yield
        except Exception as error:
            raise (in_branches or [error])[0] from error.__cause__
        else:
            if in_branches:
                raise in_branches[0]
        finally:
            for owner, name, value in own:
                if value is None:
                    delattr(owner, name)
                else:
                    setattr(owner, name, value)


def apply_hooks(hooks: Mapping[str, Sequence[Any]], parameters: Mapping[str, torch.Tensor]) -> None:
    """Apply hooks of a module's parameters, by name, to what stands for these in a trace."""
    for name, of_one in hooks.items():
        for hook in of_one:
            _mark_hook(parameters[name], hook, f"the parameter {name}")


# Hooks


_REGISTER = torch.Tensor.register_hook


def _register_hook(x: Any, hook: Callable[[Any], Any]) -> Any:
    with torch._C.DisableTorchFunction():  # whose modes would call this anew
        handle = _REGISTER(x, hook)
    if is_traced(x):
        _mark_hook(x, hook, f"a tensor, registered in {line()}")

        def remove() -> None:
            raise Unfit(
                f"from_torch: a hook of a tensor is removed in {line()}: what it did until then "
                f"cannot come in; register it only where it is to act"
            )

        handle.remove = remove
    return handle


def _mark_hook(x: Any, hook: Callable[[Any], Any], of: str) -> None:
    name = name_of(hook)
    with torch.enable_grad():
        ct = torch.ops.stretto.cotangent(x.detach())
        try:
            gradient = hook(ct.clone())
            if gradient is not None:
                (gradient,) = fitted(name, gradient, [x])
        except Unfit:
            raise
        except Exception as error:
            raise Unfit(
                f"from_torch: the hook {name} of {of}, cannot be traced: {type(error).__name__}: "
                f"{error}. Write it with PyTorch's operations, or remove it before the import"
            ) from error
        if gradient is None:
            raise Unfit(
                f"from_torch: the hook {name} of {of}, gives no gradient: it only looks at one, "
                f"and what it does with that cannot come in. Remove it before the import; the "
                f"gradient by any value is had from stretto.grad"
            )
        torch.ops.stretto.hooked(name, x, ct, gradient)


def _refuse_accumulation(x: Any, hook: Any) -> Any:
    raise Unfit(
        f"from_torch: a hook is registered to run after gradients are accumulated, in {line()}: "
        f"gradients are values here, and accumulate nowhere; do what it does after stretto.grad"
    )


def _enter_saved_hooks(context: Any) -> None:
    kind = type(context)
    if kind is saved_tensors_hooks or not kind.__module__.startswith("torch."):
        raise Unfit(
            f"from_torch: hooks on what is saved for the backward pass "
            f"(torch.autograd.graph.saved_tensors_hooks) are entered in {line()}: they can change "
            f"gradients, and cannot come in; leave them out of what is imported"
        )
    _ENTER_SAVED(context)


_ENTER_SAVED = saved_tensors_hooks.__enter__


class _Node:
    """A node of PyTorch's record, whose hooks are refused."""

    def __init__(self, node: Any) -> None:
        self._node = node

    def __getattr__(self, name: str) -> Any:
        if name in ("register_hook", "register_prehook"):
            raise Unfit(
                f"from_torch: a hook of a grad_fn is registered in {line()}, and cannot come in: "
                f"register it at a tensor, tensor.register_hook(hook)"
            )
        return getattr(self._node, name)


def _grad_fn(x: Any) -> Any:
    node = _GETS["grad_fn"](x)
    return node if node is None or not is_traced(x) else _Node(node)


# Branches and bodies of loops: PyTorch's compiler reads these, and runs none of the above.

_IN_BRANCHES = [
    (AutogradFunctionVariable, "call_apply", "an autograd.Function is applied"),
    (TensorVariable, "_method_register_hook", "a hook of a tensor is registered"),
    (InferenceModeVariable, "enter", "torch.inference_mode is entered"),
]


def _reporting(found: list[Unfit], original: Callable[..., Any], what: str) -> Callable[..., Any]:
    def reported(self: Any, *args: Any, **kwargs: Any) -> Any:
        name = name_of(self.fn_cls) if hasattr(self, "fn_cls") else ""
        found.append(
            Unfit(
                f"from_torch: {what}{name and f', {name},'} inside a branch of torch.cond or the "
                f"body of a loop of PyTorch's: what it does to gradients is lost there; compute "
                f"both branches and choose by torch.where, or do it outside"
            )
        )
        return original(self, *args, **kwargs)

    return reported


# Modes and flags

_GETS = {name: getattr(torch.Tensor, name).__get__ for name in ("data", "grad_fn", "requires_grad")}
_SETS = {name: getattr(torch.Tensor, name).__set__ for name in ("data", "requires_grad")}
_REQUIRES = torch.Tensor.requires_grad_


def _requires_grad_(x: Any, requires_grad: bool = True) -> Any:
    if not requires_grad and is_traced(x) and x.requires_grad and x.is_leaf:
        return x.detach_()  # which the trace has
    return _REQUIRES(x, requires_grad)


def _set_requires_grad(x: Any, value: bool) -> None:
    if not value and is_traced(x) and x.requires_grad and x.is_leaf:
        x.detach_()
    else:
        _SETS["requires_grad"](x, value)


def _data(x: Any) -> Any:
    return x.detach() if is_traced(x) else _GETS["data"](x)


def _set_data(x: Any, value: Any) -> None:
    if not is_traced(x):
        _SETS["data"](x, value)
    elif value.shape == x.shape and value.dtype == x.dtype:
        with torch.no_grad():
            x.copy_(value)
    else:
        raise Unfit(
            f"from_torch: .data gets a tensor of another shape or dtype in {line()}; give the new "
            f"one a name of its own"
        )


def _enter_inference(mode: Any) -> None:
    """Turn gradients off or on, which the trace has."""
    mode.before = torch.is_grad_enabled()
    torch.set_grad_enabled(not mode.mode)


def _exit_inference(mode: Any, *_: Any) -> None:
    torch.set_grad_enabled(mode.before)
