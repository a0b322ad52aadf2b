"""``trees``: the methods of merging on trees of arrays that are in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.config import enable_x64
from stretto._engine.core.interpreter import constant
from stretto._engine.core.tree import leaves, unflatten
from stretto._engine.core.typing import Tree
from stretto.files.file_elements import code_of, restored, stored, true_type
from stretto.files.file_parts import aligned
from stretto.files.names import leaf_names
from stretto.merge.checkpoints import Checkpoint, Component, Stored
from stretto.merge.methods import METHODS, Beside
from stretto.merge.planning import Planning
from stretto.merge.recipes import read_recipe
from stretto.merge.running import equal_blocks, merged_blocks
from stretto.tree.members import Alike, of_members

__all__ = ["trees"]

_MEMORY = 1 << 28


class _Held(Checkpoint):
    """A tree, as a checkpoint."""

    def __init__(self, path: str, arrays: Mapping[str, np.ndarray]) -> None:
        self.path, self.folder, self.is_folder = path, "", False
        self.components = (Component("", "tree", ()),)
        self.metadata, self._arrays = {}, arrays
        self._files = {}
        self.stored = {
            name: Stored(code_of(x.dtype), x.shape, "", 0, x.nbytes) for name, x in arrays.items()
        }

    def read_into(self, name: str, begin: int, out: memoryview) -> None:
        """Copy bytes of an array."""
        flat = self._arrays[name].reshape(-1).view(np.uint8)
        np.frombuffer(out, np.uint8)[...] = flat[begin : begin + len(out)]


def _whole(leaf: Any, name: str) -> np.ndarray:
    """Return a leaf as an array of the format, in one piece."""
    array = stored(leaf, name, "trees").array
    return array if isinstance(array, np.ndarray) else np.asarray(leaf)


def trees(
    method: str,
    models: Sequence[Any],
    base: Tree = None,
    *,
    seed: int = 0,
    integers: str = "equal",
    **settings: Any,
) -> Tree:
    """Merge trees of arrays, by any method that merges checkpoints.

    Args:
        method: the method's name, one of ``merge.METHODS``.
        models: trees, all alike, or an ``Ensemble``.
        base: the tree that they were tuned from, where the method has one.
        seed: for methods that draw.
        integers: "equal" where all models must have the same, but for counters of batches; "first"
            to take the base's or the first model's.
        **settings: as in a recipe: a number, a list over layers, or cases by name; and for what
            each model has of its own also a tuple with one for each model. A setting whose name is
            a word of Python, ``lambda``, is written with an underscore behind it. What a method has
            beside the models, ``fisher`` or ``grams``, is a list with a tree for each, by the names
            of theirs.

    Returns:
        A tree like the base, or else the first model, in its dtypes.

    Raises:
        ValueError: the trees differ, with the member and the path; or something is wrong with the
            settings, all of which the message has.
        TypeError: ``models`` is no sequence of trees.

    >>> import stretto as st, stretto.numpy as snp
    >>> base = {"w": snp.zeros(3)}
    >>> tuned = [{"w": snp.array([3.0, -1.0, 0.1])}, {"w": snp.array([1.0, 2.0, 0.1])}]
    >>> st.merge.trees("ties", tuned, base, weight=1.0, density=0.67)
    {'w': Array([2., 2., 0.], dtype=float32)}
    """
    members: Any = of_members(models, "trees")
    listed = list(models if members is None else members)
    alike = Alike("trees")
    everyone = [*listed] if base is None else [base, *listed]
    rows = [alike.row(tree, i) for i, tree in enumerate(everyone)]
    names = leaf_names(everyone[0], "trees") if everyone else []
    held: list[dict[str, Any]] = [_arrays(names, row) for row in rows]
    paths = [f"model {i + 1}" for i in range(len(listed))]
    shared = {name.removesuffix("_"): value for name, value in settings.items()}
    own: list[dict[str, Any]] = [{"path": path} for path in paths]
    kind = METHODS[method].beside if method in METHODS else None
    beside = {} if kind is None else _beside(kind, shared.pop(kind.key, None), own)
    for name in [n for n, value in shared.items() if isinstance(value, tuple)]:
        values = shared.pop(name)
        if len(values) != len(own):
            raise ValueError(
                f"trees: expected {name} of each of {len(own)} models, got {len(values)}"
            )
        for model, value in zip(own, values, strict=True):
            model[name] = value
    said: dict[str, Any] = {"method": method, "models": own, "parameters": shared, "seed": seed}
    said["integers"] = integers
    if base is not None:
        said["base"] = "the base"
        paths.insert(0, "the base")
    recipe = read_recipe(said)
    by_path = dict(zip(paths, held, strict=True)) | beside
    opened = {(path, None): _Held(path, arrays) for path, arrays in by_path.items()}
    plan = Planning(recipe, None, opened).plan()
    found: dict[str, tuple[Any, Any]] = {}
    with enable_x64():
        for step in plan.steps:
            out = aligned(step.nbytes)
            done = 0
            blocks = (
                equal_blocks(step, _MEMORY) if step.copied else merged_blocks(plan, step, _MEMORY)
            )
            for data in blocks:
                out[done : done + len(data)] = np.frombuffer(data, np.uint8)
                done += len(data)
            type = true_type(step.name, step.code, step.shape, None)
            found[step.name] = constant(np.asarray(restored(out, type, "numpy", step.name, [])))
    return unflatten(alike.structure, [found[name] for name in names])


def _arrays(names: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    return {name: _whole(x, name) for name, x in zip(names, row, strict=True)}


def _beside(kind: Beside, trees: Any, own: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the arrays beside the models, by a path that each model is given for them."""
    if not isinstance(trees, (list, tuple)) or len(trees) != len(own):
        raise ValueError(
            f"trees: expected {kind.key}=, a list with a tree for each of {len(own)} models: "
            f"{kind.words}; got {trees!r:.80}"
        )
    found = {}
    for i, (tree, model) in enumerate(zip(trees, own, strict=True), 1):
        path = model[kind.key] = f"{kind.key} {i}"
        found[path] = _arrays(leaf_names(tree, "trees"), leaves(tree))
    return found
