"""``from_state_dict`` and ``to_state_dict``: weights alone, PyTorch's here and ours there.

Layers of ``nn`` have PyTorch's names, shapes and layouts, so that names need no translation. A
shared submodule has its tensors under several names, and makes two inputs of its exported program
out of each; PyTorch cannot decompose a program that writes to one of them, so they are merged.
This file works on PyTorch's objects, and imports it only where it must.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import stretto.torch
from stretto import files
from stretto._engine.core.config import config
from stretto._engine.core.files import checked_path
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.position import user_stack_level
from stretto._engine.core.typing import Array, ArrayLike
from stretto.torch.programs.torch_graph import Graph


def identity(tensor: Any) -> tuple[Any, ...]:
    """Return what two names of one tensor have in common, and no two tensors.

    Tensors that are sparse or without elements have no memory to share, so each is itself alone.
    """
    if not tensor.numel() or str(tensor.layout) != "torch.strided":
        return (id(tensor),)
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype


def merge_inputs(exported: Any) -> None:
    """Keep one input of an exported program for all names of a tensor, in place."""
    signature = exported.graph_signature
    tensors = {**exported.constants, **exported.state_dict}
    placeholders = {x.name: x for x in exported.graph.nodes if x.op == "placeholder"}
    first, kept = {}, []
    for spec in signature.input_specs:
        tensor = tensors.get(spec.target) if spec.kind.name in ("PARAMETER", "BUFFER") else None
        if tensor is None:
            kept.append(spec)
            continue
        node = placeholders[spec.arg.name]
        same = first.setdefault((spec.kind, identity(tensor)), node)
        if same is node:
            kept.append(spec)
        else:
            node.replace_all_uses_with(same)
            exported.graph.erase_node(node)
    if len(kept) < len(signature.input_specs):
        exported._graph_signature = dataclasses.replace(signature, input_specs=kept)
        exported.graph_module.recompile()


def sharing(tensors: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the names of different tensors of which one begins in the memory of the other."""
    known: dict[Any, tuple[str, Any]] = {}
    for name, tensor in _with_memory(tensors.items()):
        other, its = known.setdefault(tensor.untyped_storage().data_ptr(), (name, tensor))
        if its is not tensor:
            yield other, name


def _with_memory(named: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    return ((name, x) for name, x in named if hasattr(x, "untyped_storage") and x.numel())


def from_state_dict(source: Mapping[str, Any] | str | os.PathLike[str]) -> dict[str, Array]:
    """Read the weights of a PyTorch module, for ``load_state_dict`` of a module here.

    Layers of ``stretto.nn`` call their arrays as PyTorch's do and keep them in the same layout
    (``weight``, ``running_mean``, ``weight_ih_l0``, ``in_proj_weight``), so a module made of them
    under the same names takes the dictionary as it is. ``load_state_dict`` assigns all arrays or
    none, and lists names that are missing or unexpected and shapes that differ.

    Args:
        source: what ``state_dict()`` of the PyTorch module gives; or a file: one of
            ``torch.save(module.state_dict(), path)``, from which PyTorch reads tensors and plain
            containers and unpickles nothing else, or, if its name ends so, a ``.safetensors``
            file, which is read without PyTorch.

    Returns:
        Copies of the arrays by name, in the same dtypes; those of 64 bits become those of 32 while
            ``enable_x64`` is off, with a warning where floats lose digits.

    Raises:
        TypeError: it is neither a path nor a dictionary of tensors and arrays by name.
        ValueError: the file is damaged, or holds more than tensors.
        OverflowError: integers of 64 bits do not fit into 32.
        OSError: there is no such file, or it is a folder or the like.

    >>> import numpy as np, stretto as st
    >>> weights = {"weight": np.ones((1, 2), np.float32), "bias": np.zeros(1, np.float32)}
    >>> weights = st.torch.from_state_dict(weights)
    >>> st.nn.Linear(2, 1).load_state_dict(weights)
    LoadedKeys(missing_keys=[], unexpected_keys=[])
    """
    caller = "torch.from_state_dict"
    if isinstance(source, Mapping):
        found: Any = source
    else:
        path = checked_path(source, caller)
        is_ours = path.endswith(".safetensors")
        found = files.load(path) if is_ours else stretto.torch.crossing.read(path, caller)
        caller = f"{caller}: {path}"
    if not isinstance(found, Mapping):
        raise TypeError(
            f"{caller}: expected a dictionary of tensors by name, got a {type(found).__name__}"
        )
    held = {name: _held(caller, name, value) for name, value in found.items()}
    warn_of_64_bits(caller, [x for x in held.values() if isinstance(x, np.ndarray)])
    return {name: as_value(x, caller, name) for name, x in held.items()}


def _held(caller: str, name: object, value: Any) -> Any:
    """Return an entry as an array, ours or NumPy's."""
    if isinstance(name, str):
        if is_torch(value, "Tensor"):
            return stretto.torch.crossing.to_numpy(value, f"{caller}: {name}")
        if isinstance(value, Value):
            return value
        if isinstance(value, (np.ndarray, np.generic, bool, int, float, complex)):
            return np.asarray(value)
    raise TypeError(
        f"{caller}: expected tensors by name, got a {type(value).__name__} under {name!r}; of a "
        f"checkpoint with other entries give the dictionary that has the tensors alone, such as "
        f'torch.load(path, weights_only=True)["model"]'
    )


def to_state_dict(arrays: Mapping[str, ArrayLike]) -> dict[str, Any]:
    """Make PyTorch's tensors of arrays by name, for ``load_state_dict`` of a PyTorch module.

    Args:
        arrays: what ``state_dict()`` of a module gives here; or any arrays by name.

    Returns:
        Tensors by name, on the CPU: copies, bit for bit. One array under two names is one tensor.

    Raises:
        TypeError: it is not a dictionary of arrays, or PyTorch has no such dtype.

    >>> import stretto as st
    >>> st.torch.to_state_dict(st.nn.Linear(2, 1))
    Traceback (most recent call last):
    TypeError: torch.to_state_dict: expected a dictionary of arrays by name, got a Linear; give...
    """
    caller = "torch.to_state_dict"
    if not isinstance(arrays, Mapping):
        raise TypeError(
            f"{caller}: expected a dictionary of arrays by name, got a {type(arrays).__name__}; "
            f"give the state_dict() of a module"
        )
    made: dict[int, tuple[Any, Any]] = {}
    for name, x in arrays.items():
        if id(x) not in made:
            array = x if isinstance(x, np.ndarray) else np.asarray(as_value(x, caller, str(name)))
            made[id(x)] = x, stretto.torch.crossing.to_torch(array, f"{caller}: {name}")
    return {name: made[id(x)][1] for name, x in arrays.items()}


def is_torch(x: Any, name: str) -> bool:
    """Say whether it is an object of this class of PyTorch's, if that is loaded at all."""
    found: Any = sys.modules.get("torch")
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is not None and isinstance(x, found)


def warn_of_64_bits(whose: str, arrays: Sequence[np.ndarray]) -> bool:
    """Warn where floats of 64 bits lose digits, as 64-bit types are off; say whether it did."""
    wide = [a for a in arrays if a.dtype in (np.float64, np.complex128)]
    if not wide or config.enable_x64:
        return False
    warnings.warn(
        f"{whose} has {len(wide)} arrays of {wide[0].dtype}, which become those of half the "
        f"precision while 64-bit types are off; set stretto.config.enable_x64 = True first to "
        f"keep them",
        stacklevel=user_stack_level(),
    )
    return True


def warn_of_64_bits_inside(whose: str, graphs: Sequence[Graph]) -> None:
    """Warn where operations of a module compute with floats of 64 bits, and these are off.

    A number of Python is a tensor of no axes and 64 bits among them, and loses nothing that counts.
    """
    if config.enable_x64:
        return
    for node in [node for graph in graphs for node in graph.walk()]:
        if any([x and x.dtype in ("float64", "complex128") and x.shape for x in node.types]):
            warnings.warn(
                f"{whose} computes in 64 bits ({node.op} in {node.place}), which become 32 while "
                f"64-bit types are off; set stretto.config.enable_x64 = True first to keep them",
                stacklevel=user_stack_level(),
            )
            return
