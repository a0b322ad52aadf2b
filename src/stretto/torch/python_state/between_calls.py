"""Refuse what a PyTorch module keeps between calls in Python, unless losing it is harmless.

A program has no memory but buffers. What ``forward`` changes beside them (a counter, a list that
grows, a tensor that is assigned anew) would stay at the value that tracing found. Some of it is
never read (attention maps that are left for others), and some is a memo, of which the module would
compute the same again (tables of positions): these are harmless. To tell, the module is run, with
what a first call leaves behind and without.

The mode that a module is in is taken as it stands, part by part: dropout that was left on in an
evaluated module stays on, and batch normalization that was frozen in train mode stays frozen. The
other mode is what the module's own ``train()`` or ``eval()`` makes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]

from stretto.torch.python_state.holdings import Absent, Change, Snapshot, is_rebound, undone

_WAY_OUT_OF_MODES = {
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
                    f"program: {_WAY_OUT_OF_MODES[train]}"
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
    """Say whether a module has a ``train`` or an ``eval`` that is not PyTorch's."""
    plain: Any = torch.nn.Module
    held: Any = type(part)
    return held.train is not plain.train or held.eval is not plain.eval or "train" in vars(part)


def _is(module: torch.nn.Module, name: str, tensor: torch.Tensor, value: torch.Tensor) -> bool:
    """Say whether a tensor has its name in the module, and the elements that it had."""
    path, _, attribute = name.rpartition(".")
    try:
        held = getattr(module.get_submodule(path), attribute)
    except AttributeError:
        return False
    return held is tensor and torch.equal(tensor.detach().nan_to_num(), value.nan_to_num())


_WAY = (
    "a program keeps nothing between calls but buffers, so this would stay as it was in the trace. "
    "Make it a buffer (register_buffer), which may be assigned or written to, or an argument and "
    "a result; or take it out of forward"
)


@contextmanager
def watched(
    module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Iterator[None]:
    """Leave a module as it is, whatever it changes while it is exported in this context.

    Raises ``NotImplementedError``, by name, for state that a program would lose.
    """
    whole = Snapshot(module, elements=1)  # PyTorch computes with tensors of one element
    starts: list[Snapshot] = []
    changed: dict[str, Change] = {}

    def before(*_: Any) -> None:
        if starts:  # the trace before this one failed, and hooks do not run then
            starts.pop().restore()
        starts.append(Snapshot(module))

    def after(*_: Any) -> None:
        start = starts.pop()
        changed.update({change.place: change for change in start.changes()})
        start.restore()  # before a second trace, and before PyTorch looks at what was assigned

    hooks = [
        module.register_forward_pre_hook(before, prepend=True),
        module.register_forward_hook(after),
    ]
    failed: Exception | None = None
    try:
        yield
    except Exception as error:
        made = any([_is_made(change) for change in changed.values()])
        if not made and "is mutated in the forward method" not in str(error):
            raise
        failed = error
    finally:
        for hook in hooks:
            hook.remove()
        whole.restore()
    if changed or failed:
        _check(module, args, kwargs, changed, failed)


def _check(
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    changed: Mapping[str, Change],
    failed: Exception | None,
) -> None:
    caller = f"from_torch: this {type(module).__name__}"
    drawn = [place for place, change in changed.items() if change.kind == "random"]
    if drawn:
        raise NotImplementedError(
            f"{caller} draws random numbers from {', '.join(drawn)}, which would be the same in "
            f"each call: draw them by PyTorch's functions, which draw from nn.keys here"
        ) from failed
    made = [place for place, change in changed.items() if _is_made(change)]
    if made:
        raise NotImplementedError(
            f"{caller} makes {', '.join(made)} when it is first called: call it once before the "
            f"import, so that its parameters are there"
        ) from failed
    try:
        lost, first = _tried(module, args, kwargs)
    except Exception as error:  # the module does not run on the example, or not on another
        lost, first, failed = list(changed.values()), False, failed or error
    if lost:
        listed = ", ".join(dict.fromkeys([_words(change) for change in lost]))
        raise NotImplementedError(
            f"{caller} changes {listed} when it is called: {_WAY}"
        ) from failed
    if first:
        raise NotImplementedError(
            f"{caller} sets {', '.join(changed)} in its first call, and what it computes depends "
            f"on that: call it once before the import, or make that buffers (register_buffer)"
        ) from failed
    if failed:
        raise failed


def _is_made(change: Change) -> bool:
    """Say whether a call made a parameter, a buffer or a module that was not there."""
    made = isinstance(change.after, (torch.nn.Module, torch.nn.Parameter))
    absent = change.before is Absent or change.before is None
    return absent and (made or change.kind == "registered")


def _tried(
    module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Change], bool]:
    """Return what each call changes that is read or counts; and whether the first one differs."""
    registered = [*module.parameters(), *module.buffers()]
    values = [x.detach().clone() for x in registered]
    example = pytree.tree_map(_copy, (tuple(args), dict(kwargs)))
    other = pytree.tree_map(_another, example)

    def called(given: Any, seed: int) -> Any:
        given_args, given_kwargs = pytree.tree_map(_copy, given)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            result = module(*given_args, **given_kwargs)
        with torch.no_grad():
            for x, value in zip(registered, values, strict=True):
                x.copy_(value)
        return pytree.tree_map(_copy, result)

    with undone(module) as start:
        cold = called(other, 0)
        start.restore()
        called(example, 1)
        warm = Snapshot(module, elements=math.inf)
        depends = not _alike(cold, called(other, 0))
        lost = [x for x in warm.changes() if depends or not is_rebound(x.before, x.after)]
        lost += warm.writes()
    return lost, depends


def _copy(leaf: Any) -> Any:
    return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf


def _another(leaf: Any) -> Any:
    """Return a tensor of other values of the same range."""
    if not isinstance(leaf, torch.Tensor):
        return leaf
    turned = leaf.flip(tuple(range(leaf.ndim)))
    return turned * 0.75 if leaf.is_floating_point() or leaf.is_complex() else turned


def _alike(x: Any, y: Any) -> bool:
    first, others = pytree.tree_leaves(x), pytree.tree_leaves(y)
    return len(first) == len(others) and all(
        [_close(a, b) for a, b in zip(first, others, strict=True)]
    )


def _close(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return type(a) is type(b) and (not isinstance(a, (int, float, str)) or a == b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.is_floating_point() and not a.is_complex():
        return torch.equal(a, b)
    largest = float(a.abs().nan_to_num().max()) if a.numel() else 0.0
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5 * largest, equal_nan=True)


def _words(change: Change) -> str:
    if change.before is Absent or isinstance(change.after, torch.Tensor):
        return change.place
    if isinstance(change.before, (int, float, str)) and isinstance(change.after, (int, float, str)):
        return f"{change.place} (from {change.before!r} to {change.after!r})"
    return change.place
