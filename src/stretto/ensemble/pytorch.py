"""``Ensemble.from_torch``: PyTorch's modules as the members of an ensemble."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stretto._engine.core.typing import Tree
from stretto.ensemble.ensemble import Ensemble
from stretto.torch.imported_module import ImportedModule
from stretto.torch.importing import imported


def from_torch(
    modules: Iterable[Any],
    example_args: Tree = (),
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_batch: bool | None = None,
    dynamic_shapes: Tree = None,
    train: bool = False,
    writes: str = "refuse",
    **options: Any,
) -> Ensemble[ImportedModule]:
    """Make an ensemble of PyTorch modules, of one architecture or of several.

    Exporting takes seconds, so modules that are alike are exported once: those of one class whose
    states are equal but for the values of parameters and buffers. All that they hold counts: inner
    modules and their classes, settings, hooks, other tensors, names, shapes, dtypes, and which of
    these are one object. Where that is not certain, as with a function that each made for itself, a
    module is exported by itself; its program may still turn out to be equal. Members of equal
    programs form a group and run as one.

    Args:
        modules: the PyTorch modules, or ``ExportedProgram`` objects.
        example_args: arguments that all of them take, as in ``stretto.from_torch``.
        example_kwargs: those by name.
        dynamic_batch: let axis 0 of arguments have any size, where a module allows it.
        dynamic_shapes: which axes have any size, instead, as in ``stretto.from_torch``.
        train: import the programs of train mode, too, which ``fit`` needs.
        writes: what becomes of what a module writes into an argument: ``"refuse"``, ``"return"`` or
            ``"ignore"``, as in ``stretto.from_torch``.
        **options: as for ``Ensemble``.

    Returns:
        The ensemble, in evaluation mode.

    Raises:
        NotImplementedError: a module has operations that have no function here, or writes into an
            argument.
        TypeError: one is no PyTorch module, ``modules`` is a module and not a list of them, or both
            ``dynamic_batch`` and ``dynamic_shapes`` are given.
        ValueError: there are none, or there is no such way for ``writes``.

    PyTorch's own errors are raised where it cannot export a module.

    >>> import stretto as st
    >>> st.Ensemble.from_torch([len, abs])
    Traceback (most recent call last):
    TypeError: Ensemble.from_torch: expected a torch.nn.Module, got a builtin_function...
    """
    if callable(modules) or not isinstance(modules, Iterable):
        raise TypeError(
            f"Ensemble.from_torch: expected a list of PyTorch modules, got a "
            f"{type(modules).__name__}; put one module in a list, and give list(modules) of a "
            f"ModuleList"
        )
    listed = list(modules)
    if not listed:
        raise ValueError("Ensemble.from_torch: expected at least one module, got none")
    made = imported(
        "Ensemble.from_torch",
        listed,
        example_args,
        example_kwargs,
        dynamic_batch=dynamic_batch,
        dynamic_shapes=dynamic_shapes,
        train=train,
        writes=writes,
    )
    return Ensemble(made, **options)
