"""Derivatives that a PyTorch module gives by itself, kept while it is traced.

``torch.export`` drops the ``backward`` of an ``autograd.Function``, hooks of tensors, and what
``inference_mode`` and ``requires_grad_`` are for. Inside ``kept`` a trace has them, by marks and by
what export does keep (``set_grad_enabled``, ``detach_``), and what it cannot have is refused by
name. The marks compute nothing of their own: ``with_backward`` stands for results whose derivative
is had from the gradients that it names, which are computed from ``cotangent``s, and ``hooked`` says
by what the gradient of a tensor is replaced.

Hooks of modules that run on the way forward are traced as anything else. Those of the way back are
looked at before the export, which drops them without a word: a parameter's become rules, and others
are refused; so are those of all modules at once, which would run for the exporter's own modules.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch._dynamo.variables.ctx_manager import InferenceModeVariable  # pyright: ignore[reportMissingImports]
from torch._dynamo.variables.misc import AutogradFunctionVariable  # pyright: ignore[reportMissingImports]
from torch._dynamo.variables.tensor import TensorVariable  # pyright: ignore[reportMissingImports]
from torch.autograd.function import FunctionCtx, _SingleLevelFunction  # pyright: ignore[reportMissingImports]
from torch.autograd.graph import saved_tensors_hooks  # pyright: ignore[reportMissingImports]
from torch.nn.modules import module as modules  # pyright: ignore[reportMissingImports]
from torch.utils import checkpoint  # pyright: ignore[reportMissingImports]

from stretto._engine.core.threads import RLock
from stretto.torch.export.failures import current_line

_MARKS = torch.library.Library("stretto", "FRAGMENT")
_MARKS.define("cotangent(Tensor x) -> Tensor")
_MARKS.define(
    "with_backward(str name, bool once, Tensor[] inputs, Tensor[] outputs, Tensor[] cotangents,"
    " Tensor[] gradients) -> Tensor[]"
)
_MARKS.define("hooked(str name, Tensor x, Tensor cotangent, Tensor gradient) -> Tensor")
_MARKS.impl("cotangent", torch.empty_like, "CompositeExplicitAutograd")
_MARKS.impl(
    "with_backward",
    lambda name, once, inputs, outputs, *_: [x.clone() for x in outputs],
    "CompositeExplicitAutograd",
)
_MARKS.impl("hooked", lambda name, x, *_: x.clone(), "CompositeExplicitAutograd")
torch.fx.node.has_side_effect(torch.ops.stretto.hooked.default)


class Unfit(NotImplementedError):
    """Says what of a module cannot come in, while it is traced."""


def is_traced(x: Any) -> bool:
    """Say whether this is a tensor of a trace."""
    return isinstance(x, torch._subclasses.FakeTensor)


def is_smooth(x: Any) -> bool:
    """Say whether this is a tensor that may have a gradient."""
    return isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex())


def name_of(thing: Any) -> str:
    """Return the name of a class or a function, or else of its class."""
    return getattr(thing, "__qualname__", type(thing).__name__).replace("<locals>.", "")


def fitted(name: str, given: Any, inputs: Sequence[Any]) -> list[Any]:
    """Return the gradients of a ``backward``, in the shapes and dtypes of the inputs."""
    gradients = list(given) if isinstance(given, (tuple, list)) else [given]
    while len(gradients) > len(inputs) and gradients[-1] is None:
        gradients.pop()
    if len(gradients) != len(inputs):
        raise ValueError(f"{name} has {len(inputs)} inputs, and backward gave {len(gradients)}")
    found = []
    for x, gradient in zip(inputs, gradients, strict=True):
        if gradient is None or not is_smooth(x):
            found.append(None)
            continue
        if gradient.is_complex() and not x.is_complex():
            gradient = gradient.real
        found.append(gradient.sum_to_size(x.shape).to(x.dtype))
    return found


_INSIDE = ("torch._", "torch.masked.", "torch.nested.")
"""The modules where PyTorch has Functions of its own that are no part of a module's work."""

_ONCE = torch.autograd.function.once_differentiable(lambda: None).__code__


class _Context(FunctionCtx):
    """Holds for ``backward`` what ``forward`` leaves."""

    def __init__(self, of: type, args: Sequence[Any]) -> None:
        self._forward_cls = of
        self.to_save: tuple[Any, ...] = ()
        self.dirty_tensors: tuple[Any, ...] = ()
        self.non_differentiable: tuple[Any, ...] = ()
        self.needs_input_grad = tuple([is_smooth(x) for x in args])

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """Return the tensors that ``save_for_backward`` was given."""
        return tuple(self.to_save)


class _Rule(torch.autograd.Function):
    """Makes results of a traced Function, with its own ``backward`` for who differentiates here."""

    @staticmethod
    def forward(ctx: Any, make: Callable[[], Any], back: Callable[..., Any], *_: Any) -> Any:
        ctx.back = back
        return tuple(make())

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        return (None, None, *ctx.back(cotangents))


def _original(cls: Any, *args: Any, **kwargs: Any) -> Any:
    return super(_SingleLevelFunction, cls).apply(*args, **kwargs)


def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply a Function; its ``backward`` is traced beside it, and ``with_backward`` joins them."""
    if cls is checkpoint.CheckpointFunction:  # it recomputes, and has the function's gradient
        return args[0](*args[2:])
    if cls is _Rule or cls.__module__.startswith(_INSIDE):
        return _original(cls, *args, **kwargs)
    apart = cls.setup_context is not _SingleLevelFunction.setup_context
    args = _bound(cls.forward, () if apart else (None,), args, kwargs)
    context = _Context(cls, args)
    before = [x.clone() if is_smooth(x) else x for x in args]  # forward may write into its inputs
    with torch.no_grad():
        if apart:
            results = cls.forward(*args)
            cls.setup_context(context, args, results)
        else:
            results = cls.forward(context, *args)
    if not torch.is_grad_enabled():
        return results
    dirty, fixed = _identities(context.dirty_tensors), _identities(context.non_differentiable)
    inputs = [b if id(x) in dirty else x for x, b in zip(args, before, strict=True)]
    parts = results if isinstance(results, tuple) else (results,)
    moving = [k for k, x in enumerate(parts) if is_smooth(x) and id(x) not in fixed]
    kept_results = _joined(cls, context, inputs, parts, moving)
    if not isinstance(results, tuple):
        return _given(parts[0], kept_results.get(0), dirty)
    return tuple([_given(x, kept_results.get(k), dirty) for k, x in enumerate(parts)])


def _bound(
    forward: Callable[..., Any], lead: tuple[Any, ...], args: tuple[Any, ...], kwargs: Any
) -> tuple[Any, ...]:
    """Return all arguments of a ``forward`` by position, but for those before them."""
    if not kwargs:
        return args
    bound = inspect.signature(forward).bind(*lead, *args, **kwargs)
    if bound.kwargs:  # behind one that was left out
        bound.apply_defaults()
    return bound.args[len(lead) :]


def _identities(tensors: Sequence[Any]) -> set[int]:
    return {id(x) for x in tensors}


def _given(plain: Any, joined: Any, dirty: set[int]) -> Any:
    """Return a result as the caller gets it."""
    if joined is None:
        fresh = isinstance(plain, torch.Tensor) and id(plain) not in dirty
        return plain.detach() if fresh else plain
    return plain.copy_(joined) if id(plain) in dirty else joined


def _joined(
    cls: Any, context: Any, inputs: Sequence[Any], results: Sequence[Any], moving: Sequence[int]
) -> dict[int, Any]:
    """Return the results that have a derivative, by their numbers."""
    smooth = [k for k, x in enumerate(inputs) if is_smooth(x)]
    if not smooth or not moving:
        return {}
    detached = {k: results[k].detach() for k in moving}
    seeds = {k: torch.ops.stretto.cotangent(x) for k, x in detached.items()}
    cotangents = [
        seeds[k].clone()  # which backward may write into
        if k in seeds
        else torch.zeros_like(x)
        if isinstance(x, torch.Tensor)
        else None
        for k, x in enumerate(results)
    ]
    name = name_of(cls)
    backward = cls.backward if cls.backward is not torch.autograd.Function.backward else cls.vjp

    def back(cotangents: Sequence[Any]) -> list[Any]:
        given = [list(cotangents)] if cls.boxed_grads_call else cotangents
        return fitted(name, backward(context, *given), inputs)

    try:
        gradients = back(cotangents)
    except Unfit:
        raise
    except Exception as error:
        raise Unfit(
            f"from_torch: the backward of the autograd.Function {name}, applied in "
            f"{current_line()}, "
            f"cannot be traced, and without it the gradients would be others than PyTorch's: "
            f"{type(error).__name__}: {error}. Write it with PyTorch's operations on what "
            f"ctx.saved_tensors and the gradients hold, or apply the Function under torch.no_grad()"
        ) from error
    pairs = [(inputs[k], gradients[k]) for k in smooth if gradients[k] is not None]
    if not pairs:
        return {}
    arguments = (
        name,
        _is_once(backward),
        [x for x, _ in pairs],
        [results[k] for k in moving],
        [seeds[k] for k in moving],
        [gradient for _, gradient in pairs],
    )

    def all_results(cts: Sequence[Any]) -> list[Any]:
        full = list(cotangents)
        for k, ct in zip(moving, cts, strict=True):
            full[k] = ct
        slopes = back(full)
        return [slopes[k] for k in smooth]

    made = _original(
        _Rule,
        lambda: torch.ops.stretto.with_backward(*arguments),
        all_results,
        *[inputs[k] for k in smooth],
    )
    return dict(zip(moving, made, strict=True))


def _is_once(function: Any) -> bool:
    """Say whether a ``backward`` must not be differentiated (``once_differentiable``)."""
    while function is not None:
        if getattr(function, "__code__", None) is _ONCE:
            return True
        function = getattr(function, "__wrapped__", None)
    return False


def refuse_transformed(cls: Any, *_: Any, **__: Any) -> Any:
    """Refuse a Function that is applied where ``torch.func`` transforms."""
    raise Unfit(
        f"from_torch: the autograd.Function {name_of(cls)} is applied inside a transformation "
        f"of torch.func, in {current_line()}: its derivative cannot come in from there; apply it "
        f"outside"
    )


_LOCK = RLock()


@contextmanager
def kept() -> Iterator[None]:
    """Have derivatives that a module gives by itself traced; gradients are on, as in training."""
    replaced: list[tuple[Any, str, Any]] = [
        (_SingleLevelFunction, "apply", classmethod(apply)),
        (torch.autograd.function, "custom_function_call", refuse_transformed),
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
        _mark_hook(x, hook, f"a tensor, registered in {current_line()}")

        def remove() -> None:
            raise Unfit(
                f"from_torch: a hook of a tensor is removed in {current_line()}: what it did until "
                f"then cannot come in; register it only where it is to act"
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
        f"from_torch: a hook is registered to run after gradients are accumulated, in "
        f"{current_line()}: "
        f"gradients are values here, and accumulate nowhere; do what it does after stretto.grad"
    )


def _enter_saved_hooks(context: Any) -> None:
    kind = type(context)
    if kind is saved_tensors_hooks or not kind.__module__.startswith("torch."):
        raise Unfit(
            f"from_torch: hooks on what is saved for the backward pass "
            f"(torch.autograd.graph.saved_tensors_hooks) are entered in {current_line()}: they can "
            f"change gradients, and cannot come in; leave them out of what is imported"
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
                f"from_torch: a hook of a grad_fn is registered in {current_line()}, and cannot "
                f"come in: register it at a tensor, tensor.register_hook(hook)"
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
            f"from_torch: .data gets a tensor of another shape or dtype in {current_line()}; give "
            f"the new one a name of its own"
        )


def _enter_inference(mode: Any) -> None:
    """Turn gradients off or on, which the trace has."""
    mode.before = torch.is_grad_enabled()
    torch.set_grad_enabled(not mode.mode)


def _exit_inference(mode: Any, *_: Any) -> None:
    torch.set_grad_enabled(mode.before)


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
