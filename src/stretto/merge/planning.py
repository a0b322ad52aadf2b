"""From a recipe to a plan: which tensors of which files make each tensor of the result, and how.

Only headers are read. All that is wrong is found before anything is written, and told together.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.types import is_inexact
from stretto.files.file_elements import item_size
from stretto.files.names import DESCRIPTION
from stretto.merge import adapters
from stretto.merge.checkpoints import Checkpoint, Component, is_real
from stretto.merge.matrices import memory_of
from stretto.merge.methods import REQUIRED
from stretto.merge.recipes import Model, Part, Recipe, Value, nearest, raise_all, read_recipe
from stretto.merge.streams import Source

__all__ = ["Plan", "Step", "plan"]

json = LazyModule("json")

_LAYER = re.compile(r"(?:^|\.)(\d{1,6})(?=\.)")
_FIRST = ("embed", "wte", "wpe", "patch", "conv_in", "stem")
"""Parts of the names of what comes before the layers."""


_COUNTERS = ("num_batches_tracked", "n_averaged")
"""Integers that models need not have alike, and that are the base's or the first model's.

They count what a training has done: batches that batch normalization has seen, models in PyTorch's
averages. Two networks that were trained apart never have the same, a merged one was not trained for
any number of steps, and in inference nothing reads them. Other integers, such as positions and
indices, mean something, and half of two meanings is none.
"""


class Step(NamedTuple):
    """A tensor of the result."""

    name: str
    code: str
    """The format's code of its dtype."""
    shape: tuple[int, ...]
    models: tuple[Source, ...]
    base: Source | None
    settings: Mapping[str, Any]
    """The numbers of the method's settings; empty for what is copied."""
    copied: bool
    """Whether the bytes are those of the first model, and must be those of all."""
    beside: tuple[Source, ...] = ()
    """What the files beside the models have for this tensor."""
    whole: bool = False
    """Whether the method needs all of it at once."""

    @property
    def sources(self) -> tuple[Source, ...]:
        """Return all that is read."""
        return *self.models, *self.beside, *([self.base] if self.base else [])

    @property
    def memory(self) -> int:
        """Return about how many bytes it takes to have all of it at once, where that is needed."""
        return memory_of(self.sources) if self.whole else 0

    @property
    def nbytes(self) -> int:
        """Return the bytes of the result."""
        return math.prod(self.shape) * item_size(self.name, self.code)


class Shard(NamedTuple):
    """A file of the result."""

    path: str
    """Relative to the result's folder."""
    steps: tuple[Step, ...]


class Plan(NamedTuple):
    """What a recipe will do: steps by file, and what is copied beside them.

    >>> import stretto as st
    >>> st.merge.Plan._fields[:2]
    ('recipe', 'checkpoints')
    """

    recipe: Recipe
    """What it was made of."""
    checkpoints: tuple[Checkpoint, ...]
    """The open models, the base first."""
    shards: tuple[Shard, ...]
    """The files of the result, with what is in them."""
    copied_files: tuple[tuple[str, str], ...]
    """Configuration and tokenizer files: from where, and to which path of the result."""
    written_files: tuple[tuple[str, bytes], ...]
    """Configurations that change, and indexes."""
    metadata: Mapping[str, str]
    """Words in the headers of the files."""
    seed: int
    """The seed of random choices."""
    dtype: str | None
    """The dtype of the arithmetic, as the format's code; by default float32, or float64 where a
    model has it."""

    @property
    def steps(self) -> list[Step]:
        """Return all steps, in the order in which they are taken."""
        return [step for shard in self.shards for step in shard.steps]

    @property
    def nbytes(self) -> int:
        """Return how many bytes the result's tensors take."""
        return sum(step.nbytes for step in self.steps)

    @property
    def is_folder(self) -> bool:
        """Return whether the result is a folder, rather than one file."""
        return self.checkpoints[0].is_folder or len(self.shards) > 1

    def digest(self) -> str:
        """Return what tells this plan, on these very files, from others.

        Returns:
            64 hexadecimal digits.
        """
        said = [
            self.recipe.method, self.seed, self.dtype, self.recipe.as_mergekit,
            [c.identity() for c in self.checkpoints],
            [[shard.path, [_said(step) for step in shard.steps]] for shard in self.shards],
            [[name, hashlib.sha256(text).hexdigest()] for name, text in self.written_files],
            sorted(self.metadata.items()),
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(said, default=plain).encode()).hexdigest()

    def __str__(self) -> str:
        merged = [step for step in self.steps if not step.copied]
        lines = [
            f"{self.recipe.method}: {len(merged)} tensor{'s' * (len(merged) != 1)} merged, "
            f"{len(self.steps) - len(merged)} copied, {self.nbytes:,} bytes in "
            f"{len(self.shards)} file{'s' * (len(self.shards) > 1)}"
        ]
        kinds = Counter(json.dumps(step.settings, default=plain) for step in merged)
        for text, count in kinds.most_common(12):
            lines.append(f"  {count} tensor{'s' * (count != 1)} with {text}")
        if len(kinds) > 12:
            lines.append(f"  and {len(kinds) - 12} more kinds of settings")
        whole = [step for step in merged if step.whole]
        if whole:
            most = max(step.memory for step in whole)
            lines.append(f"  {len(whole)} matrices as wholes, in up to {most:,} bytes of memory")
        return "\n".join(lines)

    def close(self) -> None:
        """Close the files."""
        for checkpoint in self.checkpoints:
            checkpoint.close()


def _said(step: Step) -> list[Any]:
    return [
        step.name, step.code, step.shape, [[s.checkpoint.path, s.name] for s in step.sources],
        step.base is not None, step.settings, step.copied, step.whole,
    ]  # fmt: skip


def plain(x: object) -> object:
    """Return a number or a list for what JSON does not know."""
    if isinstance(x, np.ndarray):
        return x.tolist()
    if isinstance(x, np.generic):
        return x.item()
    return str(x)


def plan(recipe: Any, *, shard_size: int | None = None) -> Plan:
    """Return what a recipe will do, from the headers of the files alone.

    Args:
        recipe: the path of a TOML or JSON file, or of a YAML file of mergekit's; or a dictionary.
        shard_size: the most bytes of a file of the result; by default all are in one.

    Returns:
        A ``Plan``; its ``str`` is a summary, its ``steps`` are the tensors.

    Raises:
        ValueError: something is wrong with the recipe, the files, or both: the message has all.
        OSError: a file cannot be opened.

    >>> import os, tempfile, stretto as st, stretto.numpy as snp
    >>> folder = tempfile.mkdtemp()
    >>> paths = [os.path.join(folder, f"{name}.safetensors") for name in "ab"]
    >>> for path in paths:
    ...     st.save(path, {"w": snp.ones(4)})
    >>> print(st.merge.plan({"method": "linear", "models": paths}))
    linear: 1 tensor merged, 0 copied, 16 bytes in 1 file
      1 tensor with {"weight": [1.0, 1.0], "normalize": true}
    """
    return Planning(read_recipe(recipe), shard_size).plan()


class Planning:
    """Makes a plan, and collects what is wrong."""

    def __init__(
        self, recipe: Recipe, shard_size: int | None, opened: Mapping[Any, Checkpoint] | None = None
    ) -> None:
        self.recipe, self.how = recipe, recipe.how
        self.shard_size = shard_size
        self.problems: list[str] = []
        self.opened: dict[tuple[str, str | None], Checkpoint] = dict(opened or {})
        self.lacking: dict[str, list[str]] = {}
        """Settings that were not given, with the tensors that lack them."""

    def plan(self) -> Plan:
        try:
            return self._planned()
        except BaseException:
            for checkpoint in self.opened.values():
                checkpoint.close()
            raise

    def _planned(self) -> Plan:
        for model in self.recipe.all_models:
            if (model.path, model.adapter) in self.opened:
                continue
            try:
                opened = Checkpoint(model.path)
                if model.adapter is not None:
                    opened = adapters.Adapted(opened, model.adapter)
                self.opened[model.path, model.adapter] = opened
            except OSError as error:
                words = error.strerror or str(error)
                said = words.removeprefix("Checkpoint: ")
                where = error.filename or model.path
                if isinstance(error, FileNotFoundError):
                    said += "; models are paths, and nothing is downloaded"
                self.problems.append(said if where in said else f"{where}: {said}")
            except ValueError as error:
                self.problems.append(str(error).removeprefix("merge: "))
        self.open_beside()
        raise_all(self.problems, "the recipe with its files")
        steps = list(self.steps_of_parts() if self.recipe.parts else self.steps_of_models())
        for what, lacking in self.lacking.items():
            some = f", for {lacking[0]}" + (f" and {len(lacking) - 1} more" if lacking[1:] else "")
            self.problems.append(f"{self.how.name} needs {what}{some}")
        self.check_filters()
        raise_all(self.problems, "the recipe with its files")
        first = self.checkpoint(self.recipe.all_models[0])
        shards = tuple(self.shards(first, steps))
        return Plan(
            self.recipe, tuple(self.opened.values()), shards,
            *self.files(first, shards), self.words(first, shards),
            self.recipe.seed, self.recipe.dtype,
        )  # fmt: skip

    def open_beside(self) -> None:
        """Open the files that the method needs beside the models."""
        beside = self.how.beside
        if beside is None:
            return
        recipe = self.recipe
        for model in (*recipe.models, *(m for p in recipe.parts for m in p.models)):
            if model.beside is None:
                self.problems.append(
                    f"{self.how.name} needs {beside.key} for {model.path}: the path of a file with "
                    f"{beside.words}"
                )
            elif (model.beside, None) not in self.opened:
                try:
                    self.opened[model.beside, None] = Checkpoint(model.beside)
                except (ValueError, OSError) as error:
                    self.problems.append(str(error))

    def checkpoint(self, model: Model) -> Checkpoint:
        return self.opened[model.path, model.adapter]

    # Tensors

    def steps_of_models(self) -> Iterator[Step]:
        recipe = self.recipe
        base = recipe.base
        models = [m for m in recipe.models if not self.is_base(m, base)]
        first = self.checkpoint(base or models[0])
        layers = _Layers(first)
        names = dict.fromkeys(first.stored)
        for model in models:
            for name in self.checkpoint(model).stored:
                if (
                    name not in names
                    and not self.tied_to(self.checkpoint(model), name)
                    and not _is_buffer(self.checkpoint(model), name)
                ):
                    self.problems.append(f"{name} is in {model.path} and not in {first.path}")
        for name in names:
            if _is_buffer(first, name) and any(
                name not in self.checkpoint(m).stored for m in models
            ):
                everyone = [Source(self.checkpoint(m), name) for m in recipe.all_models]
                having = [s for s in everyone if s.name in s.checkpoint.stored]
                code, shape = first.stored[name][:2]
                yield Step(name, code, shape, tuple(having), None, {}, True)
                continue
            sources = [self.source(m, name) for m in models]
            found = None if base is None else self.source(base, name)
            if None in sources or (base is not None and found is None):
                continue
            yield from self.step(
                name, sources, found, models, [recipe.settings],
                0.0 if recipe.as_mergekit and layers.number(name) is None else layers.depth(name),
            )  # fmt: skip

    def is_base(self, model: Model, base: Model | None) -> bool:
        """Say whether a model is the base, which needs no other mention."""
        same = base is not None and (model.path, model.adapter) == (base.path, base.adapter)
        return same and self.how.base != "none"

    def source(self, model: Model, name: str) -> Source | None:
        checkpoint = self.checkpoint(model)
        if name in checkpoint.stored:
            return Source(checkpoint, name)
        tied = self.tied_to(checkpoint, name)
        if tied is None:
            self.problems.append(f"{name} is missing in {model.path}")
            return None
        return Source(checkpoint, tied)

    def tied_to(self, checkpoint: Checkpoint, name: str) -> str | None:
        """Return the embedding that a head shares its weights with, as the configuration says."""
        component = next((c for c in checkpoint.components if name.startswith(c.prefix)), None)
        if component is None or not name.endswith(("lm_head.weight", "embed_out.weight")):
            return None
        said = checkpoint.configuration(component.folder) or {}
        if said.get("tie_word_embeddings") is False or not said:
            return None
        ends = (
            "shared.weight",
            "embed_tokens.weight",
            "wte.weight",
            "embed_in.weight",
            "word_embeddings.weight",
        )
        return next((n for n in checkpoint.stored if n.endswith(ends)), None)

    def steps_of_parts(self) -> Iterator[Step]:
        """Put layers together, renumbered; what is no layer comes as in the first part's models."""
        parts = self.recipe.parts
        start = 0
        outside: set[str] = set()
        for number, part in enumerate(parts):
            base = part.base or self.recipe.base
            layers = [_Layers(self.checkpoint(m)) for m in part.models]
            count = part.layers[0][1] - part.layers[0][0]
            for (_, end), model, each in zip(part.layers, part.models, layers, strict=True):
                if end > each.count:
                    self.problems.append(
                        f"slices[{number}]: {model.path} has {each.count} layers, got {end}"
                    )
                    return
            last = number == len(parts) - 1
            if number == 0:
                yield from self.outside(part, base, layers, outside, before=True)
            for k in range(count):
                places = [first + k for first, _ in part.layers]
                for name in layers[0].names(places[0]):
                    yield from self.layer_step(
                        part, base, layers, places, name, start + k, count, k
                    )
            start += count
            if last:
                yield from self.outside(part, base, layers, outside, before=False)

    def layer_step(
        self, part: Part, base: Model | None, layers: Sequence[_Layers], places: Sequence[int],
        name: str, out: int, count: int, k: int,
    ) -> Iterator[Step]:  # fmt: skip
        theirs = [each.renumbered(name, place) for each, place in zip(layers, places, strict=True)]
        pairs = zip(part.models, theirs, places, strict=True)
        sources, models, found = [], [], None
        for model, their_name, _ in pairs:
            source = self.source(model, their_name)
            if source is None:
                return
            if self.is_base(model, base):
                found = source
            else:
                sources.append(source)
                models.append(model)
        if base is not None and found is None and self.how.base != "none":
            found = self.source(base, name)
            if found is None:
                return
        yield from self.step(
            layers[0].renumbered(name, out), sources, found, models,
            [part.settings, self.recipe.settings], k / max(count - 1, 1),
        )  # fmt: skip

    def outside(
        self, part: Part, base: Model | None, layers: Sequence[_Layers], done: set[str], *,
        before: bool,
    ) -> Iterator[Step]:  # fmt: skip
        for name in layers[0].outside():
            is_first = any(word in name for word in _FIRST)
            if name in done or is_first != before:
                continue
            done.add(name)
            models = [m for m in part.models if not self.is_base(m, base)]
            sources = [self.source(m, name) for m in models]
            found = (
                self.source(base, name) if base is not None and self.how.base != "none" else None
            )
            if None not in sources:
                yield from self.step(
                    name, sources, found, models,
                    [part.settings, self.recipe.settings],
                    0.0 if before or self.recipe.as_mergekit else 1.0,
                )  # fmt: skip

    def step(
        self, name: str, sources: Sequence[Any], base: Source | None,
        models: Sequence[Model], shared: Sequence[Mapping[str, Value]], depth: float,
    ) -> Iterator[Step]:  # fmt: skip
        own: Sequence[Mapping[str, Value]] = [m.settings for m in models]
        base = None if self.how.base == "none" else base
        if base is not None and self.how.base == "first":
            sources, base, own = [base, *sources], None, [{}, *own]
        everyone = [*sources, *([base] if base else [])]
        leading = everyone[-1] if base else everyone[0]
        stored = leading.stored
        wrong = [s for s in everyone if s.stored.shape != stored.shape]
        if wrong:
            self.problems.append(
                f"{name}: {wrong[0]} has shape {list(wrong[0].stored.shape)}, and {leading} has "
                f"{list(stored.shape)}"
            )
            return
        try:
            floats = [is_inexact(s.stored.dtype) for s in everyone]
        except ValueError as error:
            self.problems.append(f"{name}: {error}")
            return
        if any(s.stored.dtype.kind == "c" for s in everyone):
            self.problems.append(f"{name} is complex, which no method is for")
            return
        if any(floats) != all(floats):
            kinds = ", ".join(f"{s.stored.code} in {s.checkpoint.path}" for s in everyone)
            self.problems.append(f"{name}: expected numbers of one kind, got {kinds}")
            return
        if floats[0] and any(s.stored.dtype.itemsize == 1 for s in everyone):
            self.problems.append(
                f"{name} is quantised ({stored.code}), and its scales are elsewhere: merge the "
                f"models before they are quantised"
            )
            return
        if not floats[0]:
            any_will_do = self.recipe.integers == "first" or name.endswith(_COUNTERS)
            agreeing = [leading] if any_will_do else everyone
            yield Step(name, stored.code, stored.shape, tuple(agreeing), None, {}, True)
            return
        settings = self.numbers(name, own, shared, depth, len(sources))
        beside = None if settings is None else self.beside(name, sources, models, settings)
        if settings is not None and beside is not None:
            code = self.recipe.out_dtype or stored.code
            yield Step(
                name, code, stored.shape, tuple(sources), base, settings, False, beside,
                self.is_whole(stored.shape, settings, beside),
            )  # fmt: skip

    def is_whole(
        self, shape: Sequence[int], settings: Mapping[str, Any], beside: Sequence[Source]
    ) -> bool:
        """Say whether the method needs all of a tensor: with a matrix beside it, or any matrix."""
        if self.how.matrix is None:
            return False
        return bool(beside) if self.how.beside else len(shape) == 2 and settings["decompose"]

    def beside(
        self, name: str, sources: Sequence[Source], models: Sequence[Model],
        settings: Mapping[str, Any],
    ) -> tuple[Source, ...] | None:  # fmt: skip
        """Return what is beside the models for a tensor; ``None`` where something is wrong."""
        kind = self.how.beside
        if kind is None:
            return ()
        files = [self.opened[str(m.beside), None] for m in models]
        there = [f for f, s in zip(files, sources, strict=True) if s.name in f.stored]
        if not there and kind.of_inputs:
            return ()
        shape = expected = sources[0].stored.shape
        if kind.of_inputs:
            if len(shape) != 2:
                self.problems.append(
                    f"{name} of shape {list(shape)} has a matrix in {there[0].path}, which is for "
                    f"matrices alone"
                )
                return None
            expected = (shape[0 if settings["inputs_first"] else 1],) * 2
        found = []
        for file, source in zip(files, sources, strict=True):
            own = file.stored.get(source.name)
            if own is None:
                self.problems.append(f"{source.name} is missing in {file.path}")
            elif own.shape != expected:
                self.problems.append(
                    f"{source.name} of {file.path} has shape {list(own.shape)}; expected "
                    f"{list(expected)}, as {name} has shape {list(shape)}"
                )
            elif not is_real(own):
                self.problems.append(f"{source.name} of {file.path} is {own.code}, and no float")
            else:
                found.append(Source(file, source.name))
        return tuple(found) if len(found) == len(files) else None

    # Settings

    def numbers(
        self, name: str, own: Sequence[Mapping[str, Value]], shared: Sequence[Mapping[str, Value]],
        depth: float, count: int,
    ) -> dict[str, Any] | None:  # fmt: skip
        found: dict[str, Any] = {}
        for setting in self.how.settings:
            sources = own if setting.each else [{}]
            values = [
                self.number(name, setting.name, [mine, *shared], depth, setting.default)
                for mine in sources
            ]
            if any(v is REQUIRED for v in values):
                model = f" for model {values.index(REQUIRED) + 1}" if setting.each else ""
                self.lacking.setdefault(setting.name + model, []).append(name)
                return None
            found[setting.name] = (
                np.asarray(values, np.float64) if setting.each
                else values[0] if setting.kind is not float else np.float64(values[0])
            )  # fmt: skip
        weights = found.get("weight")
        divides = found.get("normalize", found.get("normalize_weights"))
        divides = divides or self.how.beside is not None
        if weights is not None and divides and abs(weights.sum()) < 1e-8 and count:
            self.problems.append(f"{name}: the weights {weights.tolist()} add up to 0")
            return None
        if "rescale" in found and found["rescale"] and not self.recipe.as_mergekit:
            found["rescale"] = "density" if self.how.name.startswith("dare") else True
        if "epsilon" in found and self.how.name.startswith("della"):
            wrong = [
                (d, e) for d, e in zip(found["density"], found["epsilon"], strict=True)
                if 0 < d < 1 and not (d - e > 0 and d + e < 1)
            ]  # fmt: skip
            if wrong:
                self.problems.append(
                    f"{name}: density - epsilon and density + epsilon must be between 0 and 1, got "
                    f"density {wrong[0][0]:g} and epsilon {wrong[0][1]:g}"
                )
                return None
        return found

    def number(
        self, name: str, setting: str, levels: Sequence[Mapping[str, Value]], depth: float,
        default: Any,
    ) -> Any:  # fmt: skip
        for level in levels:
            for case in level.get(setting, ()):
                if case.matches(name):
                    return case.at(depth)
        return default

    def check_filters(self) -> None:
        """Note patterns that match no tensor."""
        recipe = self.recipe
        levels = [recipe.settings, *(p.settings for p in recipe.parts)]
        levels += [
            m.settings for m in (*recipe.models, *(m for p in recipe.parts for m in p.models))
        ]
        names = {n for c in self.opened.values() for n in c.stored}
        for level in levels:
            for setting, value in level.items():
                for case in value:
                    if case.match is not None and not any(case.matches(n) for n in names):
                        self.problems.append(
                            f"{setting}: no tensor matches {case.match!r}"
                            + nearest(case.match, names)
                        )

    # Files

    def shards(self, first: Checkpoint, steps: Sequence[Step]) -> Iterator[Shard]:
        for component in first.components:
            own = (
                [s for s in steps if s.name.startswith(component.prefix)]
                if component.prefix
                else steps
            )
            groups: list[list[Step]] = [[]]
            size = 0
            for step in own:
                if self.shard_size and groups[-1] and size + step.nbytes > self.shard_size:
                    groups.append([])
                    size = 0
                groups[-1].append(step)
                size += step.nbytes
            for i, group in enumerate(groups, 1):
                name = component.stem + (
                    f"-{i:05d}-of-{len(groups):05d}" if len(groups) > 1 else ""
                )
                path = os.path.join(component.folder, f"{name}.safetensors")
                yield Shard(path, tuple(group))

    def words(self, first: Checkpoint, shards: Sequence[Shard]) -> dict[str, str]:
        """Return the words of the first model's header that are true of the result's."""
        kept = {k: v for k, v in first.metadata.items() if not k.startswith("stretto.")}
        if len(shards) > 1 or {s.name for s in shards[0].steps} != set(first.stored):
            kept.pop(DESCRIPTION, None)  # of another tree
        return {"format": "pt", **kept} if first.is_folder else kept

    def files(
        self, first: Checkpoint, shards: Sequence[Shard]
    ) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, bytes], ...]]:
        copied, written = [], []
        if first.is_folder:
            places = dict.fromkeys(
                ["", *(c.folder for c in first.components), *_folders_of_words(first.folder)]
            )
            for folder in places:
                for name in sorted(os.listdir(os.path.join(first.folder, folder))):
                    path = os.path.abspath(os.path.join(first.folder, folder, name))
                    out = os.path.join(folder, name)
                    if name == "config.json":
                        written.append((out, self.configuration(first, folder)))
                    elif (
                        os.path.isfile(path)
                        and name.endswith(_BESIDE)
                        and not name.endswith(".index.json")  # of the files that it has there
                    ):
                        copied.append((path, out))
        for component in first.components:
            own = [s for s in shards if os.path.dirname(s.path) == component.folder]
            if len(own) > 1:
                written.append(
                    (os.path.join(component.folder, f"{component.stem}.safetensors.index.json"),
                     _index(component, own))
                )  # fmt: skip
        return tuple(copied), tuple(written)

    def configuration(self, first: Checkpoint, folder: str) -> bytes:
        said: Any = first.configuration(folder)
        if self.recipe.out_dtype:
            word = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64"}
            for key in ("torch_dtype", "dtype"):
                if key in said:
                    said[key] = word[self.recipe.out_dtype]
        if self.recipe.parts and not folder:
            count = sum(p.layers[0][1] - p.layers[0][0] for p in self.recipe.parts)
            for key in ("num_hidden_layers", "n_layer", "num_layers", "n_layers"):
                if key in said:
                    said[key] = count
            for key in [k for k in said if k.endswith("layer_types")]:
                said[key] = list(self.layer_words(key))
        return json.dumps(said, indent=2).encode() + b"\n"

    def layer_words(self, key: str) -> Iterator[Any]:
        """Give what configurations say of each layer of the result, such as its attention."""
        for part in self.recipe.parts:
            theirs: Any = self.checkpoint(part.models[0]).configuration("") or {}
            begin, end = part.layers[0]
            words = theirs.get(key)
            yield from words[begin:end] if isinstance(words, list) else ()


_BESIDE = (".json", ".txt", ".model", ".jinja", ".md", ".tiktoken", ".py.txt")
"""Endings of what is copied with a model: configurations and tokenizers, no code."""


def _folders_of_words(folder: str) -> list[str]:
    """Return the folders that have nothing but such files, as that of a tokenizer."""
    found = []
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if os.path.isdir(path) and not name.startswith("."):
            files = [os.path.join(path, n) for n in os.listdir(path)]
            if all(f.endswith(_BESIDE) and os.path.isfile(f) for f in files):  # and no weights
                found.append(name)
    return found


def _is_buffer(checkpoint: Checkpoint, name: str) -> bool:
    """Say whether a tensor is no weight, so that some versions of a library write it.

    Such as positions that count up, and the frequencies of rotary embeddings.
    """
    code = checkpoint.stored[name].code
    return code.startswith(("I", "U", "BOOL")) or name.endswith(".inv_freq")


def _index(component: Component, shards: Sequence[Shard]) -> bytes:
    places = {
        step.name.removeprefix(component.prefix): os.path.basename(shard.path)
        for shard in shards
        for step in shard.steps
    }
    total = sum(step.nbytes for shard in shards for step in shard.steps)
    said = {"metadata": {"total_size": total}, "weight_map": dict(sorted(places.items()))}
    return json.dumps(said, indent=2).encode() + b"\n"


class _Layers:
    """The numbered layers of a checkpoint: of all numbers in names, those that count most."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        groups: dict[str, Counter[int]] = {}
        self._names = list(checkpoint.stored)
        for name in self._names:
            match = _LAYER.search(name)
            if match:
                groups.setdefault(name[: match.start(1)], Counter())[int(match[1])] += 1
        self.prefix = max(groups, key=lambda p: (len(groups[p]), groups[p].total()), default=None)
        own = groups.get(self.prefix or "", ())
        self.count = next(n for n in itertools.count() if n not in own)

    def number(self, name: str) -> int | None:
        """Return the number of the layer that a tensor is in."""
        if self.prefix is None or not name.startswith(self.prefix):
            return None
        head = name[len(self.prefix) :].partition(".")[0]
        return int(head) if head.isdecimal() and len(head) < 7 else None

    def names(self, number: int) -> list[str]:
        """Return the tensors of a layer."""
        return [name for name in self._names if self.number(name) == number]

    def outside(self) -> list[str]:
        """Return the tensors that are in none."""
        return [name for name in self._names if self.number(name) is None]

    def renumbered(self, name: str, number: int) -> str:
        """Return the name of the same tensor of another layer."""
        if self.number(name) is None or self.prefix is None:
            return name
        rest = name[len(self.prefix) :].partition(".")[2]
        return f"{self.prefix}{number}.{rest}"

    def depth(self, name: str) -> float:
        """Return how deep a tensor is: 0 at and before the first layer, 1 at and after the last."""
        number = self.number(name)
        if number is None:
            return 0.0 if any(word in name for word in _FIRST) else 1.0
        return min(number / max(self.count - 1, 1), 1.0)


def room_for(out: str, nbytes: int) -> str | None:
    """Say that the disk is too small, if it is."""
    folder = os.path.dirname(os.path.abspath(out))
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    free = shutil.disk_usage(folder).free
    if nbytes > free:
        return f"the result takes {nbytes:,} bytes, and {folder} has room for {free:,}"
    return None
