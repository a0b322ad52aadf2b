"""Recipes of mergekit, in YAML: the same models, settings and meaning as there.

Its names of methods and settings are ours. What differs is said in the recipe that is returned:
filters are parts of names, and deltas that are dropped at random are scaled to keep their L1 norm.
What it can and Stretto cannot is refused by name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from stretto._engine.core.lazy import LazyModule
from stretto.merge.checkpoints import shown
from stretto.merge.methods import METHODS, Method, Setting
from stretto.merge.recipes import (
    Case,
    Model,
    Part,
    Reading,
    Recipe,
    Value,
    nearest,
)

__all__ = ["read"]

yaml = LazyModule("yaml")

_KNOWN = ("models", "slices", "merge_method", "base_model", "parameters", "dtype", "out_dtype")
_REFUSED = {
    "modules": "models of several modules",
    "tokenizer": "making a tokenizer; without it that of the base, or the first model, is copied",
    "tokenizer_source": "making a tokenizer; without it that of the base, or the first model, is "
    "copied",
    "chat_template": "chat templates; without it that of the base, or the first model, is copied",
    "experts": "mixtures of experts",
    "gate_mode": "mixtures of experts",
    "merges": "merges of merges",
}
_IGNORED = ("int8_mask",)  # how much memory masks take there


def read(text: str, folder: str) -> Recipe:
    """Return the recipe that a YAML document is; paths that exist there are relative to the folder.

    Raises ``ValueError`` with all that is wrong, ``ModuleNotFoundError`` without PyYAML.
    """
    if find_spec("yaml") is None:
        raise ModuleNotFoundError(
            "merge: recipes in YAML need PyYAML: pip install 'stretto[yaml]'; or write the recipe "
            "in TOML"
        )
    try:
        documents = [d for d in yaml.safe_load_all(text) if d is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"merge: the recipe is no YAML: {error!s:.300}") from None
    if len(documents) != 1 or not isinstance(documents[0], Mapping):
        raise ValueError(
            f"merge: expected one table in the recipe, got {len(documents)} documents: merges of "
            f"merges are not supported; run one after the other"
        )
    return _Reading(folder).recipe(documents[0])


class _Reading(Reading):
    """Reads a recipe of mergekit's."""

    def recipe(self, said: Mapping[str, Any]) -> Recipe:
        self.only(said, _KNOWN, "the recipe")
        name = said.get("merge_method")
        how = METHODS.get(name) if isinstance(name, str) else None
        if how is None:
            self.problems.append(
                "merge_method is missing" if name is None
                else f"merge_method {shown(name)} is unknown" + nearest(str(name), METHODS)
            )  # fmt: skip
        base = self.model(said["base_model"]) if said.get("base_model") else None
        settings = self.settings(said.get("parameters"), how, "parameters")
        models = tuple(
            self.source(m, how, f"models[{i}]") for i, m in enumerate(self.listed(said, "models"))
        )
        parts = tuple(
            self.part(p, how, f"slices[{i}]") for i, p in enumerate(self.listed(said, "slices"))
        )
        self.either(models, parts)
        dtype, out_dtype = (self.dtype(said.get(key), key) for key in ("dtype", "out_dtype"))
        self.finish(how, models, base, parts)
        return Recipe(
            str(name), models, base, settings, parts, None, out_dtype or dtype, 0, as_mergekit=True
        )

    def only(self, said: Mapping[str, Any], known: Sequence[str], where: str) -> None:
        for key in said:
            if key in _REFUSED and said[key] is not None:
                self.problems.append(f"{where}: {key} is not supported: {_REFUSED[key]}")
            elif key not in known and key not in _REFUSED:
                self.problems.append(
                    f"{where}: the key {shown(key)} is unknown" + nearest(str(key), known)
                )

    def listed(self, said: Mapping[str, Any], key: str) -> Sequence[Any]:
        found = said.get(key) or []
        if not isinstance(found, list):
            self.problems.append(f"{key} must be a list, got {shown(found)}")
            return []
        return found

    def model(self, said: Any) -> Model:
        """Return a model, which may be written ``model+adapter``."""
        if not isinstance(said, str):
            self.problems.append(f"a model must be a path, got {shown(said)}")
            return Model("")
        path, _, adapter = said.partition("+")
        return Model(self.path(path), {}, self.path(adapter) if adapter else None)

    def path(self, text: str) -> str:
        beside = os.path.join(self.folder, text)
        return beside if os.path.exists(beside) else text

    def source(self, said: Any, how: Method | None, where: str) -> Model:
        if not isinstance(said, Mapping):
            self.problems.append(f"{where} must be a table, got {shown(said)}")
            return Model("")
        self.only(said, ("model", "parameters", "layer_range"), where)
        model = self.model(said.get("model"))
        return model._replace(settings=self.settings(said.get("parameters"), how, where))

    def part(self, said: Any, how: Method | None, where: str) -> Part:
        if not isinstance(said, Mapping):
            self.problems.append(f"{where} must be a table, got {shown(said)}")
            return Part((), ())
        self.only(said, ("sources", "parameters", "base_model"), where)
        sources = self.listed(said, "sources")
        models = tuple(self.source(m, how, f"{where}.sources[{i}]") for i, m in enumerate(sources))
        found = [each.get("layer_range") if isinstance(each, Mapping) else None for each in sources]
        ranges = [self.layers(each, f"{where}: layer_range") for each in found]
        layers = [each for each in ranges if each != (0, 0)]
        if len({b - a for a, b in layers}) > 1:
            self.problems.append(f"{where}: its sources have different numbers of layers")
        base = self.model(said["base_model"]) if said.get("base_model") else None
        return Part(tuple(layers), models, self.settings(said.get("parameters"), how, where), base)

    def settings(self, said: Any, how: Method | None, where: str) -> dict[str, Value]:
        if said is None or how is None:
            return {}
        if not isinstance(said, Mapping):
            self.problems.append(f"{where} must be a table, got {shown(said)}")
            return {}
        known = {s.name: s for s in how.settings}
        found = {}
        for name, value in said.items():
            if name in _IGNORED:
                continue
            if name not in known:
                self.problems.append(
                    f"{where}: {how.name} has no setting {shown(name)}" + nearest(str(name), known)
                )
            else:
                found[name] = self.value(value, known[name], f"{where}: {name}")
        return found

    def value(self, said: Any, setting: Setting, where: str) -> Value:
        listed = [said] if isinstance(said, Mapping) else said
        conditional = isinstance(listed, list) and any(isinstance(e, Mapping) for e in listed)
        cases = []
        for each in listed if conditional else [said]:
            match, values = None, each
            if isinstance(each, Mapping):
                self.only(each, ("filter", "value"), where)
                match, values = each.get("filter"), each.get("value")
                match = None if match == "*" else match
                if match is not None and not isinstance(match, str):
                    self.problems.append(f"{where}: a filter must be text, got {shown(match)}")
                    match = None
            values = values if isinstance(values, list) and values else [values]
            numbers = [self.number(v, setting) for v in values]
            for v in numbers:
                problem = setting.problem(v)
                if problem:
                    self.problems.append(f"{where} {problem}")
            cases.append(Case(tuple(numbers), match, "part"))
        return tuple(cases)

    def number(self, said: Any, setting: Setting) -> Any:
        """Return a number also where YAML has text, as for 1e-5."""
        if isinstance(said, str) and setting.kind is not bool:
            try:
                return float(said)
            except ValueError:
                return said
        return said
