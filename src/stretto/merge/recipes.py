"""Recipes: what is merged, by which method and settings; from TOML, JSON, or dictionaries.

    method = "ties"
    base = "models/base"
    out_dtype = "bfloat16"

    [parameters]
    lambda = 0.8

    [[models]]
    path = "models/math"
    weight = 0.5
    density = [0.2, 0.6]                        # over the layers, first to last

    [[models]]
    path = "models/code"
    weight = [{match = "*.mlp.*", value = 0.7}, {value = 0.3}]
    density = 0.4

Reading a recipe finds all that is wrong with it. What it says about tensors is for ``planning``,
which knows them.
"""

from __future__ import annotations

import difflib
import fnmatch
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from stretto._engine.core.files import checked_path, read_small
from stretto._engine.core.lazy import LazyModule
from stretto.files.names import refuse_twice
from stretto.merge.checkpoints import shown
from stretto.merge.methods import METHODS, Method, Setting

__all__ = ["Case", "Model", "Part", "Recipe", "Value", "read_recipe"]

json = LazyModule("json")

_LARGEST = 1 << 20  # bytes of a recipe
_MOST_REPEATS = 3
_MOST_FAULTS = 50  # that are shown; models of different kinds differ in each name
DTYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float64": "F64"}


class Case(NamedTuple):
    """A value for the tensors whose names match."""

    values: tuple[Any, ...]
    """One for all layers, or several from the first layer to the last."""
    match: str | None = None
    """``None`` matches every name."""
    kind: str = "glob"
    """What ``match`` is: "glob", "regex", or "part", which is anywhere in the name."""

    def matches(self, name: str) -> bool:
        """Say whether the value is for this tensor."""
        if self.match is None:
            return True
        if self.kind == "glob":
            return fnmatch.fnmatchcase(name, self.match)
        if self.kind == "regex":
            return re.search(self.match, name) is not None
        return self.match in name

    def at(self, depth: float) -> Any:
        """Return the value at a depth, from 0 for the first layer to 1 for the last."""
        last = len(self.values) - 1
        if not last:
            return self.values[0]
        place = depth * last
        if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in self.values):
            return self.values[int(place)]
        below = min(int(place), last - 1)
        part = place - below
        return (1 - part) * self.values[below] + part * self.values[below + 1]


Value = tuple[Case, ...]
"""What a setting is: the first case that matches counts."""


class Model(NamedTuple):
    """A model of a recipe."""

    path: str
    settings: Mapping[str, Value] = {}
    adapter: str | None = None
    """A folder of PEFT's whose low-rank matrices are added to the model."""
    beside: str | None = None
    """A file with more tensors for it, where the method has such files."""


class Part(NamedTuple):
    """Layers of the result, and whose layers they come from."""

    layers: tuple[tuple[int, int], ...]
    """For each model the first layer, and the one after the last."""
    models: tuple[Model, ...]
    settings: Mapping[str, Value] = {}
    base: Model | None = None


class Recipe(NamedTuple):
    """A recipe that was read."""

    method: str
    """The method's name."""
    models: tuple[Model, ...]
    """The models; empty where there are ``parts``."""
    base: Model | None = None
    """What the models were tuned from."""
    settings: Mapping[str, Value] = {}
    """The settings for all models."""
    parts: tuple[Part, ...] = ()
    """Where layers are put together from several models."""
    dtype: str | None = None
    """The dtype of the arithmetic, as the format's code."""
    out_dtype: str | None = None
    """The dtype of the result; the base's by default."""
    seed: int = 0
    """The seed of random choices."""
    as_mergekit: bool = False
    """Whether rules are mergekit's where ours are others: what is dropped at random is made up for
    by the L1 norm, rather than by the share that is kept; and all tensors that are in no layer are
    at the depth of the first."""
    integers: str = "equal"
    """Which integers are copied: "equal" for those that all models must have alike, "first" for the
    base's or the first model's."""

    @property
    def how(self) -> Method:
        """Return the method."""
        return METHODS[self.method]

    @property
    def all_models(self) -> tuple[Model, ...]:
        """Return all models, each once, the base first."""
        found = [self.base, *self.models, *(m for p in self.parts for m in (p.base, *p.models))]
        return tuple({(m.path, m.adapter): m for m in found if m is not None}.values())


def read_recipe(recipe: Any, folder: str | None = None) -> Recipe:
    """Return a recipe from a dictionary, or from a TOML, JSON or YAML file.

    Args:
        recipe: a dictionary, or the path of a file, whose ending says which kind it is; TOML unless
            it ends in ``.json``, ``.yaml`` or ``.yml``.
        folder: what paths in a dictionary are relative to; by default the process's folder. Those
            in a file are relative to its own.

    Returns:
        The recipe, in which all is checked that can be without the models.

    Raises:
        ValueError: there is something wrong, all of which the message lists.
        TypeError: ``recipe`` is neither a dictionary nor a path.
        OSError: the file cannot be read.

    >>> import stretto as st
    >>> st.merge.read_recipe({"method": "linear", "models": ["a", "b"]}).models[1].path
    'b'
    """
    if isinstance(recipe, Recipe):
        return recipe
    if isinstance(recipe, Mapping):
        return _Reading(folder).recipe(recipe)
    path = checked_path(recipe, "merge")
    raw = read_small(os.path.realpath(path), _LARGEST)
    if raw is None:
        raise ValueError(f"merge: {path} is no recipe: it is no regular file, or larger than any")
    if path.endswith((".yaml", ".yml")):
        from stretto.merge import mergekit_recipes  # noqa: PLC0415

        return mergekit_recipes.read(raw.decode(errors="replace"), os.path.dirname(path))
    try:
        text = raw.decode()
        if path.endswith(".json"):
            refuse_twice(raw)
        said = json.loads(text) if path.endswith(".json") else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"merge: {path} is no recipe: {error!s:.300}") from None
    if not isinstance(said, dict):
        raise ValueError(f"merge: {path} is no recipe: expected a table, got {shown(said)}")
    return _Reading(os.path.dirname(path)).recipe(said)


class Reading:
    """Reads a recipe, and collects what is wrong with it: what all forms of recipes share."""

    def __init__(self, folder: str | None) -> None:
        self.folder = folder or ""
        self.problems: list[str] = []

    def either(self, models: Sequence[Model], parts: Sequence[Part]) -> None:
        """Note where there are both models and slices, or none."""
        if bool(models) == bool(parts):
            self.problems.append(
                "expected either models or slices, got " + ("both" if models else "none")
            )

    def finish(
        self, how: Method | None, models: Sequence[Model], base: Model | None, parts: Sequence[Part]
    ) -> None:
        """Look at how many models there are, and raise ``ValueError`` with all that is wrong."""
        if how is not None:
            groups = [(models, base, "the recipe")] if models else []
            groups += [(p.models, p.base or base, f"slices[{i}]") for i, p in enumerate(parts)]
            for group, its_base, where in groups:
                self.problems += counted(how, group, its_base, where)
        raise_all(self.problems, "the recipe")

    def layers(self, found: Any, where: str) -> tuple[int, int]:
        """Return a range of layers, which ``where`` names; (0, 0) for what is none."""
        if (
            isinstance(found, Sequence) and len(found) == 2
            and all(type(n) is int for n in found) and 0 <= found[0] < found[1]
        ):  # fmt: skip
            return found[0], found[1]
        self.problems.append(f"{where} must be [first, after the last], got {shown(found)}")
        return 0, 0

    def dtype(self, said: Any, where: str) -> str | None:
        """Return the format's code of a dtype."""
        found = DTYPES.get(said) if isinstance(said, str) else None
        if said is not None and found is None:
            self.problems.append(f"{where} must be one of {', '.join(DTYPES)}, got {shown(said)}")
        return found


class _Reading(Reading):
    """Reads a recipe of ours."""

    def recipe(self, said: Mapping[str, Any]) -> Recipe:
        known = {
            "method", "models", "base", "parameters", "slices", "dtype", "out_dtype", "seed",
            "integers",
        }  # fmt: skip
        self.only(said, known, "the recipe")
        name = said.get("method")
        if not isinstance(name, str) or name not in METHODS:
            self.problems.append(
                "method is missing" if name is None else f"method {shown(name)} is unknown"
                + nearest(str(name), METHODS)
            )  # fmt: skip
        how = METHODS.get(name) if isinstance(name, str) else None
        settings = self.settings(said.get("parameters", {}), how, "parameters")
        models = tuple(self.models(said.get("models", []), how))
        base = self.model({"path": said["base"]}, how, "base") if "base" in said else None
        parts = tuple(self.parts(said.get("slices", []), how))
        self.either(models, parts)
        dtypes = [self.dtype(said.get(key), key) for key in ("dtype", "out_dtype")]
        seed = said.get("seed", 0)
        if problem := seed_problem(seed):
            self.problems.append(problem)
        integers = said.get("integers", "equal")
        if integers not in ("equal", "first"):
            self.problems.append(f'integers must be "equal" or "first", got {shown(integers)}')
        self.finish(how, models, base, parts)
        return Recipe(
            str(name), models, base, settings, parts, dtypes[0], dtypes[1], seed, integers=integers
        )

    def only(self, said: Mapping[str, Any], known: Iterable[str], where: str) -> None:
        for key in said:
            if key not in known:
                self.problems.append(
                    f"{where}: the key {shown(key)} is unknown" + nearest(str(key), known)
                )

    def models(self, said: Any, how: Method | None, where: str = "models") -> Iterator[Model]:
        if not isinstance(said, Sequence) or isinstance(said, str):
            self.problems.append(f"{where} must be a list, got {shown(said)}")
            return
        for i, each in enumerate(said):
            is_path = isinstance(each, (str, os.PathLike))
            yield self.model({"path": each} if is_path else each, how, f"{where}[{i}]")

    def model(self, said: Any, how: Method | None, where: str) -> Model:
        if not isinstance(said, Mapping) or not isinstance(said.get("path"), (str, os.PathLike)):
            self.problems.append(f"{where} must have a path, got {shown(said)}")
            return Model("")
        adapter = said.get("adapter")
        key = how.beside.key if how is not None and how.beside is not None else ""
        beside = said.get(key)
        if beside is not None and not isinstance(beside, (str, os.PathLike)):
            self.problems.append(f"{where}: {key} must be a path, got {shown(beside)}")
            beside = None
        if adapter is not None and not isinstance(adapter, (str, os.PathLike)):
            self.problems.append(f"{where}: adapter must be a path, got {shown(adapter)}")
            adapter = None
        if "layers" in said and "slices" not in where:
            self.problems.append(f"{where}: layers are for the models of slices")
        rest = {k: v for k, v in said.items() if k not in ("path", "adapter", "layers", key)}
        return Model(
            self.path(said["path"]),
            self.settings(rest, how, where, each=True),
            None if adapter is None else self.path(adapter),
            None if beside is None else self.path(beside),
        )

    def path(self, text: Any) -> str:
        return os.path.join(self.folder, os.fspath(text))

    def parts(self, said: Any, how: Method | None) -> Iterator[Part]:
        if not isinstance(said, Sequence) or isinstance(said, str):
            self.problems.append(f"slices must be a list, got {shown(said)}")
            return
        for i, each in enumerate(said):
            where = f"slices[{i}]"
            if not isinstance(each, Mapping) or not isinstance(each.get("models"), Sequence):
                self.problems.append(f"{where} must have a list of models, got {shown(each)}")
                continue
            self.only(each, {"models", "parameters", "base"}, where)
            models = tuple(self.models(each["models"], how, f"{where}.models"))
            layers = tuple(
                self.range(m, f"{where}.models[{j}]") for j, m in enumerate(each["models"])
            )
            if len({b - a for a, b in layers}) > 1:
                self.problems.append(f"{where}: its models have different numbers of layers")
            base = self.model({"path": each["base"]}, how, where) if "base" in each else None
            settings = self.settings(each.get("parameters", {}), how, f"{where}.parameters")
            yield Part(layers, models, settings, base)

    def range(self, said: Any, where: str) -> tuple[int, int]:
        found = said.get("layers") if isinstance(said, Mapping) else None
        return self.layers(found, f"{where}: layers")

    def settings(
        self, said: Any, how: Method | None, where: str, *, each: bool = False
    ) -> dict[str, Value]:
        if not isinstance(said, Mapping):
            self.problems.append(f"{where} must be a table, got {shown(said)}")
            return {}
        known = {s.name: s for s in how.settings if s.each or not each} if how else {}
        found = {}
        for name, value in said.items():
            if how is not None and name not in known:
                self.problems.append(
                    f"{where}: {how.name} has no setting {shown(name)}" + nearest(name, known)
                )
            elif how is not None:
                found[name] = self.value(value, known[name], f"{where}: {name}")
        return found

    def value(self, said: Any, setting: Setting, where: str) -> Value:
        cases = []
        listed = (
            said if isinstance(said, list) and said and isinstance(said[0], Mapping) else [said]
        )
        for each in listed:
            match, kind, values = None, "glob", each
            if isinstance(each, Mapping):
                self.only(each, {"match", "regex", "value"}, where)
                kind = "regex" if "regex" in each else "glob"
                match: Any = each.get("regex", each.get("match"))
                values = each.get("value")
                self.pattern(match, kind, where)
            values = values if isinstance(values, list) and values else [values]
            for v in values:
                problem = setting.problem(v)
                if problem:
                    self.problems.append(f"{where} {problem}")
            cases.append(Case(tuple(values), match, kind))
        return tuple(cases)

    def pattern(self, match: Any, kind: str, where: str) -> None:
        if match is not None and not isinstance(match, str):
            self.problems.append(f"{where}: a pattern must be text, got {shown(match)}")
        elif match is not None and kind == "regex" and (problem := pattern_problem(match)):
            self.problems.append(f"{where}: {problem}")


def seed_problem(seed: object) -> str | None:
    """Say what is wrong with a seed, or return ``None``."""
    if isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 1 << 32:
        return None
    return f"seed must be a whole number from 0 to 2^32 - 1, got {shown(seed)}"


def pattern_problem(text: str) -> str | None:
    """Say what is wrong with a regular expression, or return ``None``.

    One with a repeated group, or with many repetitions, may take for ever to match nothing.
    """
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        return f"{shown(text)} is no regular expression: {error}"
    if re.search(r"\)[*+{]", text) or len(re.findall(r"[*+{]", text)) > _MOST_REPEATS:
        return (
            f"{shown(text)} may take for ever: expected no repeated group, and at most "
            f"{_MOST_REPEATS} repetitions"
        )
    return None


def counted(how: Method, models: Sequence[Model], base: Model | None, where: str) -> Iterator[str]:
    """Say what is wrong with the number of models, and with there being a base or none."""
    if how.base in ("needed", "first") and base is None:
        its = _BASES.get(how.name, "the model that the others were tuned from")
        yield f"{where}: {how.name} needs a base, {its}"
    others = [
        m
        for m in models
        if how.base == "none" or not base or (m.path, m.adapter) != (base.path, base.adapter)
    ]
    count = len(others) + (how.base == "first" and base is not None)
    if count < how.fewest or (how.most is not None and count > how.most):
        most = (
            "" if how.most == how.fewest else " or more" if how.most is None else f" to {how.most}"
        )
        yield (
            f"{where}: {how.name} takes {how.fewest}{most} models"
            f"{' with the base' if how.base == 'first' else ''}, got {count}"
        )


_BASES = {"slerp": "the model that it starts from", "nearswap": "the model that is moved",
          "arcee_fusion": "the model that is moved"}  # fmt: skip


def nearest(word: str, known: Iterable[str]) -> str:
    """Return what to put behind a message about an unknown word: the nearest that is known."""
    near = difflib.get_close_matches(word, list(known), 1)
    if near:
        return f"; did you mean {near[0]!r}?"
    shown = sorted(known)[:30]
    return f"; known are {', '.join(shown)}" if shown else "; it has none"


def raise_all(problems: Sequence[str], what: str, caller: str = "merge") -> None:
    """Raise ``ValueError`` with all problems, if there are any."""
    if problems:
        each = list(dict.fromkeys(problems))
        if len(each) == 1:
            raise ValueError(f"{caller}: {each[0]}")
        shown = each if len(each) <= _MOST_FAULTS else [
            *each[:_MOST_FAULTS], f"and {len(each) - _MOST_FAULTS} more"
        ]  # fmt: skip
        raise ValueError(
            f"{caller}: {what} has {len(each):,} faults:" + "".join(f"\n  {p}" for p in shown)
        )
