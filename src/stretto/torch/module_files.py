"""Imported modules in files: their arrays and programs, which need no PyTorch to be loaded.

A file is in the safetensors format, with the programs as JSON in its metadata; loading one runs
nothing but the operations of the table, when the module is called.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from stretto import files
from stretto.torch.imported_module import Held, ImportedModule, Part, assembled, held_by
from stretto.torch.programs.torch_program import Program

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
