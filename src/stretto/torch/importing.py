"""``from_torch``: PyTorch's modules as modules here; ``from_state_dict``: their weights alone.

Layers of ``nn`` have PyTorch's names, shapes and layouts, so that names need no translation; the
weights go back with ``to_state_dict``. A shared submodule has its tensors under several names, and
makes two inputs of its exported program out of each; PyTorch cannot decompose a program that writes
to one of them, so they are merged. This file works on PyTorch's objects, and imports it only where
it must.
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
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto.torch import export
from stretto.torch.imported_module import Held, ImportedModule, assembled
from stretto.torch.programs.buffers import guarded
from stretto.torch.programs.signature import WAYS, with_written
from stretto.torch.programs.torch_graph import Graph
from stretto.torch.programs.torch_program import Program


def from_torch(
    module: Any,
    example_args: Any = (),
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_batch: bool | None = None,
    dynamic_shapes: Tree = None,
    train: bool = False,
    writes: str = "refuse",
) -> ImportedModule:
    """Make a module here of a PyTorch module, with its weights.

    PyTorch exports it once (``torch.export``), and from there on it runs here, in every
    transformation; PyTorch is not needed again. Weights are copied: training one does not change
    the other.

    Args:
        module: the PyTorch module, on the CPU or not; or an ``ExportedProgram``, which knows its
            own arguments.
        example_args: a tuple of arguments of the module, as PyTorch takes them; or the only one.
            Their shapes and dtypes matter, and the values of what is no tensor.
        example_kwargs: those by name.
        dynamic_batch: let axis 0 of arguments have any size from one on, where the module allows it
            and the example has a size of two or more; the default, without ``dynamic_shapes``.
        dynamic_shapes: which axes may have any size, instead, as ``torch.export.export`` takes
            them: ``{"x": {0: Dim.AUTO, 1: Dim("length", max=512)}}``.
        train: import the program of train mode, too, so that ``.train()`` may be called.
        writes: what becomes of what the module writes into an argument, such as a cache:
            ``"refuse"`` the module, unless its result has it; ``"return"`` it, so that calls give
            a pair, the result and a dictionary of the arguments that are written into; or
            ``"ignore"`` it.

    Returns:
        The module, in evaluation mode. Its arrays have the names of ``module.state_dict()``.

    Raises:
        NotImplementedError: the module has operations that have no function here; all are named.
            Or it writes into an argument, or changes what is no buffer whenever it is called, or it
            uses a tensor that requires gradients and is none of its parameters.
        TypeError: it is no PyTorch module, or both ``dynamic_batch`` and ``dynamic_shapes`` are
            given.
        ValueError: there is no such way for ``writes``.

    The mode that the PyTorch module is in is imported as it stands, part by part: dropout that was
    left on in an evaluated module, as after ``module.eval()`` and ``module.drop.train()``, stays on
    (and draws from ``nn.keys``); batch normalization that was frozen in train mode, as after
    ``module.train()`` and ``module.norm.eval()``, stays frozen. The other mode is what the module's
    own ``train()`` or ``eval()`` makes. Its parts here show their modes, and keep them.

    PyTorch's own errors are raised where it cannot export the module.

    >>> import stretto as st
    >>> st.from_torch(lambda x: x)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    TypeError: from_torch: expected a torch.nn.Module, got a function...
    """
    (made,) = imported(
        "from_torch",
        [module],
        example_args,
        example_kwargs,
        dynamic_batch=dynamic_batch,
        dynamic_shapes=dynamic_shapes,
        train=train,
        writes=writes,
    )
    return made


def imported(
    caller: str,
    modules: Sequence[Any],
    example_args: Any,
    example_kwargs: Mapping[str, Any] | None,
    *,
    dynamic_batch: bool | None,
    dynamic_shapes: Any,
    train: bool,
    writes: str,
) -> list[ImportedModule]:
    """Make modules as ``from_torch`` makes one; those that are alike share programs.

    Raises as ``from_torch`` does.
    """
    if dynamic_batch is not None and dynamic_shapes is not None:
        raise TypeError(
            f"{caller}: dynamic_shapes says which axes have any size, axis 0 too; give it without "
            f"dynamic_batch"
        )
    if writes not in WAYS:
        raise ValueError(f"{caller}: writes is one of {', '.join(WAYS)}; got {writes!r}")
    for i, module in enumerate(modules):
        if not is_torch(module, "nn.Module") and not is_torch(module, "export.ExportedProgram"):
            if isinstance(module, (str, os.PathLike)):
                raise TypeError(
                    f"{caller}: expected a torch.nn.Module, got the path {os.fspath(module)!r}: "
                    f"PyTorch's loader of exported programs may run what a file holds; if you "
                    f"trust this one, give torch.export.load(path)"
                )
            which = f" as member {i}" if len(modules) > 1 else ""
            raise TypeError(
                f"{caller}: expected a torch.nn.Module, got a {type(module).__name__}{which}"
                f"{_instead(module)}"
            )
    modules = [export.before_export.unwrapped(module) for module in modules]
    for module in modules:
        if is_torch(module, "nn.Module"):
            export.before_export.check_module(caller, module)
    several = type(example_args) in (tuple, list)  # a named tuple is one argument
    args = tuple(example_args) if several else (example_args,)
    kwargs = dict(example_kwargs or {})
    programs: dict[Any, tuple[Program | None, ...]] = {}
    buffers: dict[Any, list[str]] = {}
    modes: dict[Any, dict[str, tuple[bool, bool]]] = {}
    made = []
    for module, like in zip(modules, _likenesses(modules), strict=True):
        whole, kind = module, type(module).__name__
        key = like, _values(module, buffers.get(like, ()))
        if key not in programs:
            if is_torch(module, "export.ExportedProgram"):
                found = [export.capture.read(module)]
            else:
                export.before_export.check_example(caller, module, args, kwargs)
                own_args, own_kwargs = export.before_export.apart(module, args, kwargs)
                found = [
                    export.capture.capture(
                        module,
                        own_args,
                        own_kwargs,
                        train=mode,
                        dynamic_batch=dynamic_batch is not False,
                        dynamic_shapes=dynamic_shapes,
                    )
                    for mode in ([False, True] if train else [False])
                ]
            own = [_program_of(each, writes, f"{caller}: {kind}") for each in found]
            buffers[like] = sorted(guarded([x.graph for x in own]))
            key = like, _values(module, buffers[like])
            programs[key] = (*own, None)[:2]
            modes[key] = _modes(found[0].modes, found[-1].modes if train else {})
        if is_torch(module, "export.ExportedProgram"):
            whole = module.module()
        made.append(_module_of(caller, whole, kind, modes[key], *programs[key]))
    return made


def _program_of(found: export.capture.Captured, writes: str, what: str) -> Program:
    """Return the program that was captured, with a function for each of its operations."""
    graph, signature = with_written(found.graph, found.signature, writes, what)
    program = Program(graph, signature, found.constants)
    if found.single is not None:
        program = program.with_single(_program_of(found.single, writes, what))
    program.check(what)
    return program


def _likenesses(modules: Sequence[Any]) -> list[Any]:
    """Return what modules of one program share, before an export may change what they hold.

    An exported program is like no other.
    """
    if len(modules) == 1:
        return [None]
    alike = export.before_export.Likeness()
    return [alike.of(x) if is_torch(x, "nn.Module") else object() for x in modules]


def _values(module: Any, names: Sequence[str]) -> tuple[bytes, ...]:
    """Return the values of buffers of a module for which its program is made."""
    if not names:
        return ()
    held = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    return tuple(
        [stretto.torch.crossing.to_numpy(held[name], "from_torch").tobytes() for name in names]
    )


def _modes(
    evaluation: Mapping[str, bool], training: Mapping[str, bool]
) -> dict[str, tuple[bool, bool]]:
    """Return the modes of the parts that are not always in that of the whole, in its two modes."""
    both = {path: (mode, training.get(path, True)) for path, mode in evaluation.items()}
    return {path: modes for path, modes in both.items() if modes != (False, True)}


def _instead(given: Any) -> str:
    """Return what to give in place of something that is no module of PyTorch's."""
    if isinstance(given, Mapping):
        return "; weights alone are read by st.torch.from_state_dict"
    if isinstance(given, type):
        return f", the class {given.__name__}; make a module of it first"
    return "; put a function of PyTorch in the forward of a module"


def _module_of(
    caller: str,
    module: Any,
    kind: str,
    modes: Mapping[str, tuple[bool, bool]],
    evaluation: Program | None,
    training: Program | None,
) -> ImportedModule:
    """Return the module with the arrays of PyTorch's."""
    used = {
        x.name
        for program in (evaluation, training)
        if program
        for x in program.graph.inputs
        if x.kind in ("parameter", "buffer")
    }
    ties, seen = [], {}
    arrays: dict[str, Held] = {}
    saved = set(module.state_dict())
    for name, tensor in module.named_parameters(remove_duplicate=False):
        first = seen.setdefault(identity(tensor), name)
        if first != name:
            ties.append((name, first))
        else:
            role = "parameter" if tensor.requires_grad else "buffer"
            arrays[name] = Held(role, stretto.torch.crossing.to_numpy(tensor, caller))
    seen = {}
    for name, tensor in module.named_buffers(remove_duplicate=False):
        if name in used or name in saved:
            first = seen.setdefault(identity(tensor), name)
            if first != name:
                ties.append((name, first))
            else:
                array = stretto.torch.crossing.to_numpy(
                    stretto.torch.crossing.dense(tensor), caller
                )
                arrays[name] = Held("buffer", array, name in saved)
    whose = f"{caller}: {kind}"
    if not warn_of_64_bits(whose, [held.array for held in arrays.values()]):
        warn_of_64_bits_inside(whose, [x.graph for x in (evaluation, training) if x])
    kinds = {path: type(part).__name__ for path, part in module.named_modules() if path}
    return assembled(kind, evaluation, training, tuple(ties), arrays, kinds, modes)


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
