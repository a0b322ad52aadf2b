"""``ImportedModule``: a PyTorch module here, a tree of its arrays under PyTorch's names; its files.

A file is in the safetensors format, with the programs as JSON in its metadata. Loading one needs no
PyTorch, and runs nothing but the operations of the table, when the module is called.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np

from stretto import files
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto.nn import updating
from stretto.nn.module import Module, Parameter
from stretto.torch.programs.torch_program import Program


class Held(NamedTuple):
    """An array of an imported module.

    Args:
        role: ``"parameter"`` or ``"buffer"``.
        array: the array.
        persistent: whether ``state_dict`` has it.
    """

    role: str
    array: Any
    persistent: bool = True


class Part(Module):
    """A module inside an imported one: it holds arrays, and its work is part of the whole's.

    Args:
        kind: the name of its class in PyTorch.

    >>> import stretto as st
    >>> st.torch.Part("Linear")
    Linear()
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.modes: tuple[bool, bool] | None = None

    def __setattr__(self, name: str, value: object) -> None:
        if name == "training" and self.__dict__.get("modes"):
            value = self.__dict__["modes"][bool(value)]
        super().__setattr__(name, value)

    def train(self, mode: bool = True) -> Self:
        """Put this module, and all inside it, in train mode, as they were imported.

        Args:
            mode: False for evaluation mode.

        Returns:
            This module.

        Raises:
            RuntimeError: it is a part that was imported in the other mode.
        """
        super().train(mode)
        if self.training != mode:
            raise RuntimeError(_other_mode(f"this {self.kind}", self.training))
        return self

    def forward(self, *args: Any, **kwargs: Any) -> Tree:
        """Refuse: the program is that of the whole module.

        Args:
            *args: whatever it is called with.
            **kwargs: the same, by name.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            f"this {self.kind} is a part of an imported PyTorch module, whose program is one: call "
            f"the whole, or import the part by itself with stretto.from_torch"
        )

    def _get_name(self) -> str:
        return self.kind

    def _renew(self, name: str, value: Array) -> None:
        """Give a buffer its next value, or a parameter that PyTorch writes to in its forward."""
        if self._roles[name] == "buffer":
            self.update_buffer(name, value)
        else:
            updating.check(self, name)
            self.__dict__[name] = value


class ImportedModule(Part):
    """A module that ``from_torch`` made of PyTorch's.

    Its parts, parameters and buffers have the names that they have in PyTorch, and it is called as
    there. What is not trained there, ``requires_grad=False``, is a buffer here. Weights that are
    tied are one array, under the first of their names; ``state_dict`` has all.

    Args:
        kind: the name of its class in PyTorch.
        evaluation: its program in evaluation mode; None if it was imported in train mode alone.
        training: its program in train mode, likewise.
        ties: the second names of tied arrays, each with the first.

    >>> import stretto as st
    >>> st.torch.ImportedModule("Net", None, None)
    Net()
    """

    def __init__(
        self,
        kind: str,
        evaluation: Program | None,
        training: Program | None,
        ties: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(kind)
        self.evaluation_program = evaluation
        self.training_program = training
        self.ties = ties
        self.training = evaluation is None

    def forward(self, *args: Any, **kwargs: Any) -> Tree:
        """Compute what the PyTorch module computes.

        Random numbers, such as those of dropout in train mode, come from the ambient stream: call
        it inside ``with nn.keys(key):``. Buffers are updated as by any module.

        Args:
            *args: what the PyTorch module takes.
            **kwargs: the same, by name.

        Returns:
            What the PyTorch module gives, in the same tuples, lists and dictionaries; an object of
            a class of its own becomes a named tuple with the same fields.

        Raises:
            RuntimeError: it was not imported in this mode, or a part of it was not, or an update of
                a buffer would be lost.
            TypeError: the arguments are not those that it was imported with.
            ValueError: they have other shapes, where these are part of the program.
        """
        program = self._program()
        places = updating.named_arrays(self)
        places |= {name: places[first] for name, first in self.ties}
        results, updates = program(self.kind, lambda name: places[name][2], args, kwargs)
        for name, value in updates.items():
            module, attribute, _ = places[name]
            module._renew(attribute, value)
        return results

    def _named_by(self) -> Callable[..., Tree]:
        """Return what names the arguments of a call, as PyTorch does."""

        def forward(*args: Any) -> Tree:
            return self.forward(*args)

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        taken = self._program().signature.arguments
        vars(forward)["__signature__"] = inspect.Signature(
            [inspect.Parameter(argument.name, kind) for argument in taken]
        )
        return forward

    def is_setting(self, place: int | str) -> bool:
        """Say whether numbers in an argument are part of the program, and not inputs of it.

        Args:
            place: the argument's position in a call, or its name.

        Returns:
            Whether they are, as flags and factors are; an ensemble does not trace them.
        """
        return self._program().signature.is_setting(place)

    def _program(self) -> Program:
        """Return the program of the mode it is in."""
        program = self.training_program if self.training else self.evaluation_program
        if program is None:
            mode, way = (
                ("train", "train=True") if self.training else ("evaluation", "its module itself")
            )
            raise RuntimeError(
                f"{self.kind} was not imported in {mode} mode: give from_torch {way}, or call "
                f".{'eval' if self.training else 'train'}() for the mode that it has"
            )
        for path, part in self.named_modules():
            modes = part.modes if isinstance(part, Part) else None
            if part.training != (modes[self.training] if modes else self.training):
                raise RuntimeError(_other_mode(f"{self.kind}.{path}", not part.training))
        return program

    def state_dict(self, prefix: str = "") -> dict[str, Array]:
        """Collect parameters and persistent buffers by their names in PyTorch.

        Args:
            prefix: what names begin with.

        Returns:
            The arrays by name; one that is tied is under all its names.
        """
        lead = f"{prefix}." if prefix else ""
        found = super().state_dict(prefix)
        return found | {lead + name: found[lead + first] for name, first in self.ties}

    def load_state_dict(
        self, state_dict: Mapping[str, ArrayLike], strict: bool = True
    ) -> updating.LoadedKeys:
        """Assign arrays by their names in PyTorch: all of them, or none.

        Args:
            state_dict: arrays by dotted name.
            strict: whether the names must be the same; second names of tied arrays may be missing.

        Returns:
            The names ``(missing_keys, unexpected_keys)``.

        Raises:
            TypeError: ``state_dict`` is not a dictionary.
            ValueError: shapes differ, or names do while ``strict``.
        """
        known = dict(self.ties)
        if isinstance(state_dict, Mapping):
            state_dict = {k: v for k, v in state_dict.items() if k not in known}
        return super().load_state_dict(state_dict, strict)


def _other_mode(what: str, training: bool) -> str:
    was, other = ("train", "eval") if training else ("evaluation", "train")
    return (
        f"{what} was imported in {was} mode, and is part of a program that is one: call .{other}() "
        f"of that part in PyTorch, and import the whole anew"
    )


def held_by(part: Part, path: str = "") -> Iterator[tuple[str, Held]]:
    """Yield the arrays of a module and all inside it, by name, in the order of attributes."""
    lead = f"{path}." if path else ""
    for name, role in part._roles.items():
        value = part.__dict__[name]
        if role == "module":
            yield from held_by(value, lead + name)
        elif role != "static":
            yield lead + name, Held(role, value, name not in part._unsaved)


def assembled(
    kind: str,
    evaluation: Program | None,
    training: Program | None,
    ties: tuple[tuple[str, str], ...],
    arrays: Mapping[str, Held],
    kinds: Mapping[str, str],
    modes: Mapping[str, tuple[bool, bool]] = MappingProxyType({}),
) -> ImportedModule:
    """Return the module with these arrays, by dotted name.

    ``kinds`` are the classes of its parts, and ``modes`` whether they are in train mode where that
    is not always the mode of the whole, while that is in evaluation and in train mode.
    """
    whole = ImportedModule(kind, evaluation, training, ties)
    for name, held in arrays.items():
        *path, attribute = name.split(".")
        holder = _part(whole, path, kinds)
        if held.role == "parameter":
            holder.register_parameter(attribute, Parameter(held.array))
        else:
            holder.register_buffer(attribute, held.array, held.persistent)
    for name, both in modes.items():
        _part(whole, name.split("."), kinds).modes = both
    return whole.train(evaluation is None)


def _part(whole: Part, path: Sequence[str], kinds: Mapping[str, str]) -> Part:
    """Return the part at this path, made if it is not there."""
    holder = whole
    for k, name in enumerate(path):
        if name not in holder._roles:
            holder.register_module(name, Part(kinds.get(".".join(path[: k + 1]), "Module")))
        holder = holder.__dict__[name]
    return holder


_KEY = "stretto.torch"
_FORM = 2


def save(path: str | os.PathLike[str], module: ImportedModule) -> None:
    """Write an imported module to a file, its arrays and its programs.

    Args:
        path: the file; one that is there is replaced when the new one is complete.
        module: the module.

    Raises:
        TypeError: it is not an imported module.

    >>> import stretto as st
    >>> st.torch.save("net.safetensors", 3)
    Traceback (most recent call last):
    TypeError: torch.save: expected a module that from_torch made, got a int; ...
    """
    if not isinstance(module, ImportedModule):
        raise TypeError(
            f"torch.save: expected a module that from_torch made, got a {type(module).__name__}; "
            f"stretto.save writes other trees"
        )
    held = dict(held_by(module))
    about = [[name, one.role, one.persistent] for name, one in held.items()]
    programs = {"evaluation": module.evaluation_program, "training": module.training_program}
    description = {
        "form": _FORM,
        "kind": module.kind,
        "arrays": about,
        "ties": module.ties,
        "kinds": [
            [place, part.kind]
            for place, part in module.named_modules()
            if place and isinstance(part, Part)
        ],
        "modes": [
            [place, *part.modes]
            for place, part in module.named_modules()
            if isinstance(part, Part) and part.modes
        ],
        "programs": {mode: p and p.to_json() for mode, p in programs.items()},
    }
    arrays = {name: one.array for name, one in held.items()}
    constants = {mode: dict(p.constants) if p else {} for mode, p in programs.items()}
    files.save(path, {"state": arrays, "constants": constants}, {_KEY: json.dumps(description)})


def load(path: str | os.PathLike[str]) -> ImportedModule:
    """Read an imported module from a file that ``save`` wrote.

    Args:
        path: the file.

    Returns:
        The module, in evaluation mode if it has that.

    Raises:
        NotImplementedError: it has operations that this version has no function for.
        ValueError: it is another file, or damaged.

    >>> import os, tempfile, stretto as st
    >>> path = os.path.join(tempfile.mkdtemp(), "other.safetensors")
    >>> st.save(path, {"a": st.numpy.ones(2)})
    >>> st.torch.load(path)
    Traceback (most recent call last):
    ValueError: ...other.safetensors: no imported module was saved in this file; ...
    """
    where = os.fspath(path)
    text = files.load_header(path).metadata.get(_KEY)
    if text is None:
        raise ValueError(
            f"{where}: no imported module was saved in this file; stretto.load reads other trees"
        )
    try:
        about = json.loads(text)
        if about["form"] != _FORM:
            raise ValueError(f"it is of form {about['form']}, and this version reads {_FORM}")
        tree: Any = files.load(path)
        state, constants = tree["state"], tree["constants"]
        held = {
            str(name): Held(_role(role), state[name], bool(persistent))
            for name, role, persistent in about["arrays"]
        }
        programs = {
            mode: data and Program.from_json(data, _as_numpy(constants[mode]))
            for mode, data in about["programs"].items()
        }
        ties = tuple([(str(name), str(first)) for name, first in about["ties"]])
        kinds = {str(place): str(kind) for place, kind in about["kinds"]}
        modes = {str(place): (bool(a), bool(b)) for place, a, b in about["modes"]}
        module = assembled(
            str(about["kind"]),
            programs["evaluation"],
            programs["training"],
            ties,
            held,
            kinds,
            modes,
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{where}: the imported module in this file is damaged: {error}"
        ) from error
    for program in programs.values():
        if program:
            program.check(f"torch.load: {module.kind}")
    return module


def _role(role: str) -> str:
    if role not in ("parameter", "buffer"):
        raise ValueError(f"there is no role {role!r}")
    return role


def _as_numpy(arrays: Any) -> dict[str, np.ndarray]:
    return {str(name): np.asarray(array) for name, array in (arrays or {}).items()}
