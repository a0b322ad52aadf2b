"""A Laplace posterior in one safetensors file: network, curvature, prior and noise, by name."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, cast

import stretto.numpy as snp
from stretto import tree
from stretto._engine import VERSION
from stretto._engine.core.files import checked_path
from stretto._engine.core.typing import Tree
from stretto.curvature.likelihoods import likelihood_of
from stretto.ensemble.ensemble import Ensemble
from stretto.ensemble.groups import ties_of
from stretto.ensemble.laplace import Laplace, Posterior, model_of
from stretto.ensemble.precisions import precision_without_arrays, shapes_of
from stretto.files.load_files import load, load_header
from stretto.files.names import leaf_names
from stretto.files.save_files import save

_ENTRY = "stretto.laplace"
_VERSION = 1
_NAMES = ("categorical", "bernoulli", "gaussian", "heteroscedastic")


def write(path: str | os.PathLike[str], laplace: Laplace) -> None:
    """Save the arrays by name, and what else there is among the metadata."""
    record = {"version": _VERSION, "stretto": VERSION, **described(laplace)}
    model = laplace.model
    record["members"] = len(model) if isinstance(model, Ensemble) else None
    arrays = {"model": by_name(model), "posterior": by_name(laplace._posterior)}
    save(path, arrays, {_ENTRY: json.dumps(record, separators=(",", ":"))})


def described(laplace: Laplace) -> dict[str, Any]:
    """Return what of a posterior is not arrays, as JSON has it."""
    return {
        "likelihood": laplace.likelihood.name,
        "structure": laplace.structure,
        "weights": None if callable(laplace.weights) else laplace.weights,
        "targets": laplace._targets,
        "shapes": shapes_of(laplace._posterior.precision),
    }


def by_name(root: Tree) -> dict[str, Any]:
    """Return the arrays of a tree by name."""
    return dict(zip(leaf_names(root, "Laplace.save"), tree.leaves(root), strict=True))


def posterior_of(caller: str, record: Mapping[str, Any], arrays: Tree) -> Posterior:
    """Return the posterior that is described, with these arrays."""
    shapes = tuple([_hashable(x) for x in record["shapes"]])
    zeros = dict.fromkeys([n for n, *_ in shapes], 0)
    precision = precision_without_arrays(record["structure"], shapes)
    empty: Any = Posterior(precision, *cast("Any", (0, zeros, 0, zeros, 0)))
    return _filled(caller, empty, arrays, False)


def _hashable(x: Any) -> Any:  # noqa: ANN401 (what JSON has)
    return tuple([_hashable(y) for y in x]) if isinstance(x, list) else x


def read(path: str | os.PathLike[str], like: Tree) -> Laplace:
    """Return the posterior of a file, of a network as that which is here."""
    caller = f"Laplace.load: {checked_path(path, 'Laplace.load')}"
    text = load_header(path).metadata.get(_ENTRY)
    if text is None:
        raise ValueError(f"{caller}: not the file of a Laplace")
    given = like if isinstance(like, Laplace) else None
    model = model_of(like, "Laplace.load") if given is None else given.model
    arrays = load(path)
    try:
        record = json.loads(text)
        if record["version"] != _VERSION:
            raise ValueError(
                f"it is of version {record['version']!r}, and this Stretto knows {_VERSION}"
            )
        name, weights, members = record["likelihood"], record["weights"], record["members"]
        structure, targets = record["structure"], record["targets"]
        posterior = posterior_of(caller, record, arrays["posterior"])
        own = arrays["model"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{caller}: its description is damaged: {error}") from None
    if given is not None:
        _refuse_other(caller, "likelihood", name, given.likelihood.name)
        likelihood, weights = given.likelihood, given.weights if weights is None else weights
    elif weights is None or name not in _NAMES:
        raise ValueError(
            f"{caller}: its likelihood or weights were given as a function, which is not saved; "
            f"load it with like= a Laplace that has them"
        )
    else:
        likelihood = likelihood_of(name)
    if isinstance(model, Ensemble) != (members is not None):
        found = "one network" if members is None else f"an ensemble of {members} members"
        raise ValueError(
            f"{caller} does not match `like`: it has {found}, `like` is a {type(model).__name__}"
        )
    ties = ties_of(model) if given is None else given._ties
    if members is not None:
        model = model[[0] * members]
    model = _filled(caller, model, own, True)
    return Laplace(model, posterior, likelihood, structure, _hashable(weights), targets, ties)


def _refuse_other(caller: str, what: str, here: object, there: object) -> None:
    if here != there:
        raise ValueError(
            f"{caller} does not match `like`: its {what} is {here!r}, that of `like` {there!r}"
        )


def _filled(caller: str, root: Tree, arrays: Tree, checked: bool) -> Tree:
    """Return a tree with arrays in place of its leaves; ``checked``, of their shapes."""
    names = leaf_names(root, "Laplace.load")
    if not isinstance(arrays, dict) or set(arrays) != set(names):
        found = ", ".join(map(str, arrays)) if isinstance(arrays, dict) else "none"
        raise ValueError(
            f"{caller} does not match `like`: it has the arrays {found}, expected "
            f"{', '.join(names)}"
        )
    for name, leaf in zip(names, tree.leaves(root), strict=True):
        if checked:
            _refuse_other(caller, f"shape of {name}", snp.shape(arrays[name]), snp.shape(leaf))
    return tree.unflatten(tree.structure(root), [snp.asarray(arrays[n]) for n in names])
