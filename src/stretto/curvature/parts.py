"""A model as a function of the weights that are chosen, by dotted name.

Modules, functions of a tree and members of ensembles of functions come in; what leaves is one form,
which everything that computes curvature uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from stretto._engine.core import tree
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array, Tree
from stretto.files.names import covers, leaf_names
from stretto.func import functional_call
from stretto.nn.activations import _Dropping
from stretto.nn.module import Module
from stretto.nn.normalization import _BatchNorm, _Tracking
from stretto.torch.imported_module import ImportedModule
from stretto.tree.members import is_ensemble

__all__ = ["Parts", "parts_of"]

Choice: TypeAlias = str | Iterable[str] | Callable[[str], bool]
"""A choice of weights: patterns of dotted names, ``"last"``, or a function of a name."""


class Parts(NamedTuple):
    """A model as a function of the chosen weights."""

    apply: Callable[[dict[str, Array], Tree], Array]
    """From the weights and the inputs of a batch, examples along axis 0, to its outputs."""
    chosen: dict[str, Array]
    """The weights by dotted name, in the order of ``state_dict``: the weight before the bias."""
    names: tuple[str, ...]
    """The names, in the same order, which is that of flat vectors."""


def parts_of(model: Tree, weights: Choice = "*", caller: str = "parts_of") -> Parts:
    """Return a model as a function of the weights that are chosen; the others are constants.

    Args:
        model: a module that behaves as in evaluation; a pair ``(apply, params)`` of a function
            ``apply(params, x)`` and a tree; or a member of an ensemble. An input that is a tuple
            is given to the model as several arguments.
        weights: patterns of dotted names, as those of ``Ensemble(shared=)``, a function of a name,
            or ``"last"``: the parameters of the module that holds the last one. Buffers and what
            is not floating-point are never among them.
        caller: the function that was called, for messages.

    Returns:
        The function, the weights and their names: in the order of ``state_dict`` for a module, and
            of leaves for a tree.

    Raises:
        TypeError: ``model`` is none of these, or holds no floating-point parameters.
        ValueError: a pattern covers no weight; or a module is in train mode with a part that then
            mixes examples or draws.

    >>> import stretto as st
    >>> model = st.nn.Sequential(st.nn.Linear(3, 4), st.nn.Tanh(), st.nn.Linear(4, 2))
    >>> parts_of(model, "last").names
    ('2.weight', '2.bias')
    """
    if is_ensemble(model):
        raise TypeError(
            f"{caller}: got an Ensemble; write ensemble.vmap(lambda model: ...)() to have it for "
            f"every member, or give one member, ensemble[0]"
        )
    if isinstance(model, Module):
        _refuse_train_mode(model, caller)
        every = {n: x for n, x in model.named_parameters() if is_inexact(x.dtype)}
        names = _choose(weights, tuple(every), caller)

        def apply_module(chosen: dict[str, Array], x: Tree) -> Array:
            return _one_array(functional_call(model, chosen, x), caller)

        return Parts(apply_module, {n: every[n] for n in names}, names)
    function, params = function_and_params(model, caller)
    leaves, structure = tree.flatten(params)
    whole = dict(zip(leaf_names(params, caller), leaves, strict=True))
    every = {n: as_value(x, caller, n) for n, x in whole.items()}
    every = {n: x for n, x in every.items() if is_inexact(x.dtype)}
    names = _choose(weights, tuple(every), caller)

    def apply_function(chosen: dict[str, Array], x: Tree) -> Array:
        filled = tree.unflatten(structure, [chosen.get(n, leaf) for n, leaf in whole.items()])
        args = x if isinstance(x, tuple) else (x,)
        return _one_array(function(filled, *args), caller)

    return Parts(apply_function, {n: every[n] for n in names}, names)


def function_and_params(model: Tree, caller: str) -> tuple[Callable[..., Any], Tree]:
    """Return the two parts of a model that is a function of a tree."""
    if isinstance(model, tuple) and len(model) == 2 and callable(model[0]):
        return model
    function, params = (getattr(model, name, None) for name in ("function", "params"))
    if callable(function) and params is not None:  # a member of an ensemble
        return function, params
    raise TypeError(
        f"{caller}: expected a module, a pair (apply, params), or a member of an ensemble; got "
        f"{type(model).__name__}"
    )


def _one_array(out: Tree, caller: str) -> Array:
    """Return the outputs of a batch, which must be one array."""
    leaves = tree.leaves(out)
    if len(leaves) != 1:
        raise TypeError(
            f"{caller}: the model must return one array, (examples, ...); it returns "
            f"{len(leaves)} arrays: wrap it in a function that gives the one meant"
        )
    return as_value(leaves[0], caller, "the model's output")


def _choose(weights: Choice, names: tuple[str, ...], caller: str) -> tuple[str, ...]:
    """Return the names that a choice covers, in their order."""
    if not names:
        raise TypeError(f"{caller}: the model holds no floating-point parameters")
    if weights == "last":
        path, dot, _ = names[-1].rpartition(".")
        if not dot:
            raise ValueError(
                f'{caller}: weights="last" is the module or branch of the last parameter, but '
                f"{names[-1]} is in none; name the weights, which are {', '.join(names)}"
            )
        weights = f"{path}.*"
    if not callable(weights):
        weights = [weights] if isinstance(weights, str) else list(weights)
        for p in weights:
            if not any(covers(p, n) for n in names):
                raise ValueError(
                    f"{caller}: weights: the pattern {p!r} covers no weight; the weights are "
                    f"{', '.join(names)}"
                )
    chosen = tuple(n for n in names if covers(weights, n))
    if not chosen:
        raise ValueError(f"{caller}: weights covers none of {', '.join(names)}")
    return chosen


def _refuse_train_mode(model: Module, caller: str) -> None:
    """Raise ``ValueError`` where a part would mix examples, or draw."""
    for name, part in model.named_modules():
        where = f"{name}, " if name else ""
        tracks = isinstance(part, _Tracking) and part.running_mean is not None
        if (tracks and part.training) or (isinstance(part, _BatchNorm) and not tracks):
            what = "takes the statistics of its batch, which mixes examples"
        elif not part.training:
            continue
        elif isinstance(part, ImportedModule):
            what = "runs its program of train mode"
        elif (isinstance(part, _Dropping) and part.p > 0) or getattr(part, "dropout", 0):
            what = "drops numbers at random"
        else:
            continue
        raise ValueError(
            f"{caller}: {where}a {type(part).__name__}, {what}; curvature is that of a model whose "
            f"examples do not meet, as it predicts: call model.eval() first"
        )
