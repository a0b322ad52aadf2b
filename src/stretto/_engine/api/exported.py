"""Trace a function for a file: its program, and names for what goes in and out.

A function that is itself a tree, as a module or an ensemble, has its arrays apart from its
arguments, by their path: they become the weights in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.api import argument_leaves
from stretto._engine.api.graph import types_of
from stretto._engine.api.varying_sizes.dynamic_axes import as_axes, sized_types
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.errors import ExportError
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import Tracer, as_value, is_array_like
from stretto._engine.core.program import Program
from stretto._engine.core.recorder import record
from stretto._engine.core.rewriting import live
from stretto._engine.core.size_guards import Guard, known_sizes, varying_sizes
from stretto._engine.core.sizes import SizeVariable, is_size
from stretto._engine.core.types import ArrayType
from stretto._engine.higher_order.refs import Ref
from stretto._engine.passes.simplify import simplify


class Exported(NamedTuple):
    """A program with all that a file says of it."""

    name: str
    program: Program
    """Its inputs are the arguments' leaves, then the weights."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: tuple[tuple[str, np.ndarray], ...]
    """What the function has or captured, by name."""
    sizes: Mapping[SizeVariable, int]
    """The sizes that vary, with those of the examples."""
    guards: tuple[Guard, ...]
    """What was taken to hold of these sizes while the function was traced."""
    in_structure: Any
    out_structure: Any

    @property
    def in_types(self) -> tuple[ArrayType, ...]:
        """The types of the arguments' leaves."""
        return self.program.in_types[: len(self.inputs)]


def names_of(result: Any, args: Sequence[Any], arguments: Sequence[str]) -> list[str]:
    """Return a name for each leaf of a result: those of a dictionary are its keys.

    What has the structure and types of an argument, as the new state of a training step, is named
    after it: ``new_params['w']``.
    """
    if type(result) is dict and result and all(isinstance(key, str) for key in result):
        return [path for key in sorted(result) for path in tree.paths(result[key], key)]
    if type(result) is not tuple:
        return tree.paths(result, _replaced(result, args, arguments) or "out")
    left = [*range(len(args))]
    names: list[str] = []
    for place, part in enumerate(result):
        name = _replaced(part, [args[k] for k in left], [arguments[k] for k in left])
        if name is not None:
            left.remove(arguments.index(name.removeprefix("new_")))
        names += tree.paths(part, name or f"out[{place}]")
    return names


def _replaced(part: Any, args: Sequence[Any], arguments: Sequence[str]) -> str | None:
    """Return the name of a result that could stand in for an argument, a tree like it."""
    leaves, structure = tree.flatten(part)
    if structure == tree.structure(0) or not leaves:
        return None
    for arg, name in zip(args, arguments, strict=True):
        others, other = tree.flatten(arg)
        if other == structure and all(map(_of_one_type, leaves, others)):
            return f"new_{name}"
    return None


def _of_one_type(x: Any, y: Any) -> bool:
    # Descriptions of arrays, which a file's are, are no values.
    types = [v if hasattr(v, "dtype") else as_value(v, "export", "the result") for v in (x, y)]
    return types[0].shape == types[1].shape and types[0].dtype == types[1].dtype


def _check_outputs(outputs: Any, caller: str) -> None:
    """Refuse what is not a dictionary of functions."""
    if outputs is None:
        return
    expected = f"{caller}: outputs must be a dictionary from names to functions of the result"
    if not isinstance(outputs, Mapping):
        raise TypeError(f"{expected}, as {{'mean': st.ensemble.mean}}; got {outputs!r}")
    for name, made in outputs.items():
        if not callable(made):
            raise TypeError(f"{expected}; got {made!r} for {name!r}")
        if not isinstance(name, str):
            raise TypeError(f"{expected}; got the name {name!r}")


def _check_examples(leaves: Sequence[Any], names: Sequence[str], caller: str) -> None:
    """Refuse what is no array, and say where settings and objects go."""
    for x, name in zip(leaves, names, strict=True):
        if is_array_like(x) or hasattr(x, "dtype") or isinstance(x, (list, tuple, Ref)):
            continue
        raise TypeError(
            f"{caller}: {name} must be an array or a number; got {type(x).__module__}."
            f"{type(x).__qualname__}. Settings are part of the function, as in "
            f"lambda x: f(x, mode='fast'); a class that has arrays is a tree of them once it is "
            f"registered, by stretto.tree.register_dataclass"
        )


def _named(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return what names the arguments: of a module its ``forward``, of an ensemble its members'."""
    inner = getattr(type(fun), "_named_by", None)
    return fun if inner is None else _named(inner(fun))


def trace(
    fun: Callable[..., Any],
    args: Sequence[Any],
    dynamic_axes: Any,
    outputs: Mapping[str, Callable[[Any], Any]] | None,
    caller: str,
    known: Mapping[SizeVariable, int] = MappingProxyType({}),
    *,
    derivatives: bool = False,
) -> Exported:
    """Return the program of ``fun`` for arguments like these, with names.

    With ``outputs`` it gives what these functions make of its result, under their names. ``known``
    are the sizes of variables that shapes of ``args`` have already. With ``derivatives`` it keeps
    what only matters to them, and is not simplified.
    """
    if not callable(fun):
        ours = callable(getattr(fun, "function", None))
        way = ": export what its function() gives" if ours else ""
        raise TypeError(f"{caller}: expected a function or a module, got {type(fun).__name__}{way}")
    _check_outputs(outputs, caller)
    args = tuple(args)
    own, own_structure = tree.flatten(fun)
    is_tree = not (len(own) == 1 and own[0] is fun)
    if not is_tree:
        own = []
    arrays = [i for i, x in enumerate(own) if hasattr(x, "dtype") and hasattr(x, "shape")]
    leaves, structure = tree.flatten(args)
    arguments = argument_leaves.argument_names(_named(fun), len(args))
    names = [path for n, arg in zip(arguments, args, strict=True) for path in tree.paths(arg, n)]
    own_names = tree.paths(fun) if is_tree else []
    _check_examples(leaves, names, caller)
    types = types_of(leaves, caller, lambda: names)
    axes = tree.prefix_leaves(as_axes(dynamic_axes, caller), args, caller, "dynamic_axes")
    sized, sizes = sized_types(types, axes, caller, lambda: names)
    sizes = {**known, **sizes}
    own_types = types_of([own[i] for i in arrays], caller, lambda: [own_names[i] for i in arrays])

    def flat(*values: Any) -> Any:
        given, weights = values[: len(leaves)], values[len(leaves) :]
        call = fun
        if is_tree:
            parts = [*own]
            for i, w in zip(arrays, weights, strict=True):
                parts[i] = w
            call = tree.unflatten(own_structure, parts)
        own_args = tree.unflatten(structure, given)
        result = call(*own_args)
        if outputs is not None:
            result = {name: made(result) for name, made in outputs.items()}
        outs, out_structure = argument_leaves.values_of_tree(result, caller, "the result")
        return outs, (out_structure, names_of(result, own_args, arguments))

    with boundary, varying_sizes(), known_sizes([sizes] if sizes else None) as found:
        program, (out_structure, paths), captured = record(
            flat, (*sized, *own_types), (*names, *[own_names[i] for i in arrays]), name_of(fun)
        )
    for value in captured:
        if isinstance(value, Tracer):
            raise ExportError(f"{caller}: the function uses a value that is being traced: {value}")
    weights = [(own_names[i].lstrip("."), np.asarray(own[i])) for i in arrays]
    weights += [(f"captured_{k}", np.asarray(value)) for k, value in enumerate(captured)]
    varies = any([is_size(n) for t in sized for n in t.shape])
    program = live(program) if varies or derivatives else simplify(live(program))
    return Exported(
        name_of(fun),
        program,
        tuple(names),
        tuple(paths),
        tuple(weights),
        sizes,
        tuple(dict.fromkeys(found)),
        structure,
        out_structure,
    )
