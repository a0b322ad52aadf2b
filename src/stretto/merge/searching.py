"""Searching for what to merge, by a score: evolution of a recipe's settings, and greedy soups.

Models are merged file to file, one at a time, and each result is given to the score as a
``Checkpoint``: it reads what it needs, or loads the file or folder at its ``path``. Scores are
kept beside the place of the result, so that a search that was stopped goes on where it was.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core import system
from stretto._engine.core.files import checked_path
from stretto._engine.core.lazy import LazyModule
from stretto.merge.checkpoints import Checkpoint
from stretto.merge.planning import Planning
from stretto.merge.recipes import (
    Case,
    Model,
    Recipe,
    Value,
    nearest,
    raise_all,
    read_recipe,
    seed_problem,
)
from stretto.merge.running import check_place, run

__all__ = ["Evolved", "GreedySoup", "Optimum", "cma_es", "evolve", "greedy_soup"]

cmaes = LazyModule("cmaes")
json = LazyModule("json")


class Optimum(NamedTuple):
    """What ``cma_es`` found.

    >>> import stretto as st
    >>> st.merge.Optimum._fields
    ('point', 'score', 'history')
    """

    point: np.ndarray
    """The best point."""
    score: float
    """Its score."""
    history: tuple[float, ...]
    """The best score until then: of the start, and after each generation."""


def cma_es(
    score: Callable[[np.ndarray], Any],
    start: Sequence[float] | np.ndarray,
    spread: float = 0.25,
    *,
    bounds: tuple[float, float] | None = None,
    generations: int = 30,
    population: int | None = None,
    seed: int = 0,
) -> Optimum:
    """Maximize a function without derivatives, by the evolution of a normal distribution.

    Each generation is drawn from it. The better half moves its mean; all of it shapes its
    covariance. It is done by the package ``cmaes``, which ``pip install 'stretto[evolve]'`` brings.

    Args:
        score: of a point, a vector in float64: a number, larger is better. NaN is the worst.
        start: the first mean, which is scored, too.
        spread: the first standard deviation, about a quarter of the range that matters.
        bounds: the least and the largest value of each element.
        generations: how many there are.
        population: how many points a generation has, by default 4 + ⌊3 ln n⌋.
        seed: of the draws.

    Returns:
        An ``Optimum``, with the best of all points.

    Raises:
        ValueError: an argument makes no sense.
        ModuleNotFoundError: ``cmaes`` is not installed.

    Source: Hansen, "The CMA evolution strategy: a tutorial", 2016.

    >>> import stretto as st
    >>> found = st.merge.cma_es(lambda x: -((x - [1.0, 2.0]) ** 2).sum(), [0.0, 0.0])
    >>> found.point.round(2), found.score > -1e-4
    (array([1., 2.]), True)
    """
    _check_package("cma_es")
    mean = np.array(start, np.float64)
    n = mean.size
    low, high = bounds or (-math.inf, math.inf)
    count = 4 + int(3 * math.log(max(n, 1))) if population is None else population
    problems = []
    if mean.ndim != 1 or not n:
        problems.append(f"start must be a vector, got shape {mean.shape}")
    if not low < high:
        problems.append(f"bounds must be (least, largest), got {bounds}")
    elif not bool(((low <= mean) & (mean <= high)).all()):
        problems.append(f"start must be within {low:g} and {high:g}, got {mean.tolist()}")
    if not spread > 0:
        problems.append(f"spread must be positive, got {spread}")
    if count < 4:
        problems.append(f"population must be 4 or more, got {count}")
    if generations < 1:
        problems.append(f"generations must be 1 or more, got {generations}")
    if problem := seed_problem(seed):
        problems.append(problem)
    raise_all(problems, "what was asked", "cma_es")
    state = cmaes.CMA(
        mean, spread, seed=seed, population_size=count,
        bounds=None if bounds is None else np.array([bounds] * n, np.float64),
    )  # fmt: skip
    best, most = mean.copy(), _number(score(mean.copy()))
    history = [most]
    for _ in range(generations):
        points = [state.ask() for _ in range(count)]
        scores = np.array([_number(score(point.copy())) for point in points])
        state.tell([(point, -value) for point, value in zip(points, scores, strict=True)])
        top = int(scores.argmax())
        if scores[top] > most:
            best, most = points[top], float(scores[top])
        history.append(most)
    return Optimum(best, most, tuple(history))


def _check_package(caller: str) -> None:
    if find_spec("cmaes") is None:
        raise ModuleNotFoundError(
            f"{caller} needs the package cmaes: pip install 'stretto[evolve]'", name="cmaes"
        )


def _number(score: Any) -> float:
    value = float(score)
    return -math.inf if math.isnan(value) else value


# Recipes


class Evolved(NamedTuple):
    """What ``evolve`` found, and wrote.

    >>> import stretto as st
    >>> st.merge.Evolved._fields
    ('path', 'recipe', 'score', 'history')
    """

    path: str
    """Where the result is."""
    recipe: Recipe
    """With the settings that were found."""
    score: float
    """The score of the result."""
    history: tuple[float, ...]
    """The best score until then: of the start, and after each generation."""


def evolve(
    recipe: Any,
    score: Callable[[Checkpoint], Any],
    out: str | os.PathLike[str],
    *,
    search: Mapping[str, tuple[float, float]] | None = None,
    points: int = 1,
    generations: int = 20,
    population: int | None = None,
    seed: int = 0,
    memory: int | str = "256MB",
    resume: bool = True,
) -> Evolved:
    """Search for the settings of a recipe whose result has the best score, and write that result.

    The settings evolve by ``cma_es``, a quarter of their range at first. Each candidate is merged
    beside ``out``, scored, and removed. When it was stopped, the same call goes on with the scores
    that it has.

    Args:
        recipe: as ``plan`` takes it. Where it has a number for what is searched, that is the start;
            otherwise the middle of the range.
        score: of a result, as a ``Checkpoint``: a number, larger is better.
        out: as ``run`` takes it.
        search: by the name of a setting, its least and its largest value; by default each model's
            ``weight`` from 0 to 1.
        points: values over the layers, from the first to the last, for each setting.
        generations: how many there are.
        population: how many results a generation has; by default 4 + ⌊3 ln n⌋ for n numbers.
        seed: of the search.
        memory: as ``run`` takes it.
        resume: whether to go on with the scores of a search that was stopped, which must be those
            of the same function.

    Returns:
        An ``Evolved``.

    Raises:
        TypeError: a path is none.
        ValueError: something is wrong with the recipe, the files, ``out``, or an argument.
        OSError: a file cannot be read or written.
        ModuleNotFoundError: the package ``cmaes`` is not installed, as for ``cma_es``.

    Source: Akiba et al., "Evolutionary optimization of model merging recipes", 2024.

    >>> import os, tempfile, stretto as st, stretto.numpy as snp
    >>> folder = tempfile.mkdtemp()
    >>> paths = [os.path.join(folder, f"{name}.safetensors") for name in "ab"]
    >>> for i, path in enumerate(paths):
    ...     st.save(path, {"w": snp.full(4, 2.0 * i, "float32")})
    >>> score = lambda model: -float(snp.sum((model["w"] - 1.5) ** 2))
    >>> recipe = {"method": "linear", "models": paths}
    >>> found = st.merge.evolve(recipe, score, os.path.join(folder, "best.safetensors"))
    >>> st.load(found.path)["w"].round(2)
    Array([1.5, 1.5, 1.5, 1.5], dtype=float32)
    """
    _check_package("evolve")
    read = read_recipe(recipe)
    ranges = {"weight": (0.0, 1.0)} if search is None else dict(search)
    _check_search(read, ranges, points)
    places = list(_places(read, ranges))
    place = checked_path(out, "evolve")
    start = []
    for model, name in places:
        low, high = ranges[name]
        value = _own(read, model, name)
        start += [0.5 if value is None else min(max((value - low) / (high - low), 0), 1)] * points

    def with_settings(point: np.ndarray) -> Recipe:
        found: dict[tuple[Any, str], Value] = {}
        for (model, name), shares in zip(places, point.reshape(-1, points), strict=True):
            low, high = ranges[name]
            found[model, name] = (Case(tuple((low + (high - low) * shares).tolist())),)
        return _with(read, found)

    first = with_settings(np.array(start))
    with _Trials(place, first, score, memory, resume) as trials:
        best = cma_es(
            lambda point: trials.score(with_settings(point)), start, bounds=(0, 1),
            generations=generations, population=population, seed=seed,
        )  # fmt: skip
        result = with_settings(best.point)
        run(result, place, memory=memory)
        trials.remove()
    return Evolved(place, result, best.score, best.history)


def _check_search(recipe: Recipe, ranges: Mapping[str, tuple[float, float]], points: int) -> None:
    settings = {s.name: s for s in recipe.how.settings}
    problems = []
    if not ranges:
        problems.append("search must name a setting, got none")
    for name, ends in ranges.items():
        setting = settings.get(name)
        if setting is None or setting.kind is not float:
            numbers = [s.name for s in settings.values() if s.kind is float]
            problems.append(
                f"{recipe.method} has no setting {name!r} that is a number"
                + (nearest(name, numbers) if numbers else "")
            )
        elif len(ends) != 2 or not ends[0] < ends[1]:
            problems.append(f"search: {name} must be (least, largest), got {ends!r}")
        else:
            wrong = (setting.problem(end) for end in ends)
            problems += [f"search: {name} {problem}" for problem in wrong if problem]
    if points < 1:
        problems.append(f"points must be 1 or more, got {points}")
    raise_all(problems, "what was asked", "evolve")


def _places(recipe: Recipe, names: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """Give what is searched: (part, model) and setting, or (None, None) where all share it."""
    for setting in recipe.how.settings:
        if setting.name not in names:
            continue
        if not setting.each:
            yield (None, None), setting.name
            continue
        groups: list[tuple[int | None, Sequence[Model], Model | None]] = [
            (None, recipe.models, recipe.base),
            *((i, p.models, p.base or recipe.base) for i, p in enumerate(recipe.parts)),
        ]
        for part, models, base in groups:
            for number, model in enumerate(models):
                is_base = base is not None and model.path == base.path
                if not is_base or recipe.how.base == "none":
                    yield (part, number), setting.name


def _own(recipe: Recipe, place: tuple[int | None, int | None], name: str) -> float | None:
    """Return the number that a recipe has for a setting, if it is one for all tensors."""
    part, number = place
    levels = [recipe.settings]
    if number is not None:
        models = recipe.models if part is None else recipe.parts[part].models
        levels.insert(0, models[number].settings)
    for level in levels:
        for case in level.get(name, ()):
            plain = case.match is None and len(case.values) == 1
            return float(case.values[0]) if plain else None
    return None


def _with(recipe: Recipe, found: Mapping[tuple[Any, str], Value]) -> Recipe:
    """Return the recipe with other settings."""

    def of(part: int | None, models: Sequence[Model]) -> tuple[Model, ...]:
        return tuple(
            m._replace(settings={**m.settings, **mine((part, i))}) for i, m in enumerate(models)
        )

    def mine(place: tuple[int | None, int | None]) -> dict[str, Value]:
        return {name: value for (where, name), value in found.items() if where == place}

    parts = tuple(
        p._replace(
            models=of(i, p.models),
            settings={k: v for k, v in p.settings.items() if k not in mine((None, None))},
        )
        for i, p in enumerate(recipe.parts)
    )
    shared = {**recipe.settings, **mine((None, None))}
    return recipe._replace(models=of(None, recipe.models), parts=parts, settings=shared)


class _Trials:
    """Merges to a folder beside the place of the result, and keeps scores there."""

    def __init__(
        self, place: str, first: Recipe, score: Callable[[Checkpoint], Any], memory: int | str,
        resume: bool,
    ) -> None:  # fmt: skip
        self.function, self.memory, self.resume = score, memory, resume
        with contextlib.closing(Planning(first, None).plan()) as ready:
            check_place(place, ready)
            self.name = "candidate" if ready.is_folder else "candidate.safetensors"
        head, tail = os.path.split(os.path.abspath(place))
        self.folder = os.path.join(head, f".{tail}.searching")

    def __enter__(self) -> _Trials:
        os.makedirs(self.folder, exist_ok=True)
        self._file = open(os.path.join(self.folder, "scores.jsonl"), "a+", encoding="utf-8")
        if not system.take_over(self._file):
            self._file.close()
            raise ValueError(f"merge: another process is searching in {self.folder}: wait for it")
        if not self.resume:
            self._file.truncate(0)
        self._file.seek(0)
        self.known: dict[str, float] = {}
        for line in self._file.read().split("\n")[:-1]:  # a kill may have cut the last one
            with contextlib.suppress(ValueError, KeyError, TypeError):
                said = json.loads(line)
                self.known[said["plan"]] = float(said["score"])
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def score(self, recipe: Recipe) -> float:
        """Return the score of a recipe's result; that of files that are the same is kept."""
        with contextlib.closing(Planning(recipe, None).plan()) as ready:
            digest = ready.digest()
        if digest in self.known:
            return self.known[digest]
        place = os.path.join(self.folder, self.name)
        self._clear(place)
        run(recipe, place, memory=self.memory, nonfinite="keep")
        with Checkpoint(place) as result:
            value = float(self.function(result))
        self._clear(place)
        self.known[digest] = value
        self._file.write(json.dumps({"plan": digest, "score": value}) + "\n")
        self._file.flush()
        system.flush(self._file.fileno())
        return value

    def _clear(self, place: str) -> None:
        if os.path.isdir(place):
            shutil.rmtree(place)
        elif os.path.exists(place):
            os.unlink(place)

    def remove(self) -> None:
        """Remove the folder, when all is done."""
        self._file.close()
        shutil.rmtree(self.folder, ignore_errors=True)


# Soups


class GreedySoup(NamedTuple):
    """What ``greedy_soup`` found, and wrote.

    >>> import stretto as st
    >>> st.merge.GreedySoup._fields
    ('path', 'members', 'score', 'scores')
    """

    path: str
    """Where the average is."""
    members: tuple[int, ...]
    """The models that are averaged, in the order in which they were added."""
    score: float
    """The score of the average."""
    scores: tuple[float, ...]
    """The score of each model alone."""


def greedy_soup(
    models: Sequence[str | os.PathLike[str]],
    score: Callable[[Checkpoint], Any],
    out: str | os.PathLike[str],
    *,
    memory: int | str = "256MB",
    resume: bool = True,
) -> GreedySoup:
    """Add models on disk to an average, best first, as long as its score gets no worse.

    Each average is merged beside ``out``, scored, and removed; what the score loads is
    all that is in memory. ``st.ensemble.greedy_soup`` does the same with trees. When it was
    stopped, the same call goes on with the scores that it has.

    Args:
        models: their paths.
        score: of a ``Checkpoint``, on held-out data: a number, larger is better. NaN is the worst.
        out: as ``run`` takes it.
        memory: as ``run`` takes it.
        resume: as ``evolve`` takes it.

    Returns:
        A ``GreedySoup``.

    Raises:
        TypeError: a path is none.
        ValueError: there is no model, something is wrong with the files or with ``out``, or the
            score of every model is NaN.
        OSError: a file cannot be read or written.

    Source: Wortsman et al., "Model soups", 2022, recipe 1.

    >>> import os, tempfile, stretto as st, stretto.numpy as snp
    >>> folder = tempfile.mkdtemp()
    >>> paths = [os.path.join(folder, f"{name}.safetensors") for name in "abc"]
    >>> for path, w in zip(paths, (3.0, -1.0, 40.0)):
    ...     st.save(path, {"w": snp.full(1, w, "float32")})
    >>> score = lambda model: -abs(float(model["w"][0]) - 1.5)
    >>> soup = st.merge.greedy_soup(paths, score, os.path.join(folder, "soup.safetensors"))
    >>> soup.members, soup.score, st.load(soup.path)["w"]
    ((0, 1), -0.5, Array([1.], dtype=float32))
    """
    if not models:
        raise ValueError("greedy_soup: expected at least one model, got none")

    def of(members: Sequence[int]) -> Recipe:
        return read_recipe({"method": "linear", "models": [models[i] for i in members]})

    place = checked_path(out, "greedy_soup")
    with _Trials(place, of(range(len(models))), score, memory, resume) as trials:
        alone = tuple(trials.score(of([i])) for i in range(len(models)))
        order = sorted(range(len(models)), key=lambda i: _number(alone[i]), reverse=True)
        if math.isnan(alone[order[0]]):
            raise ValueError("greedy_soup: the score of every model is NaN")
        members, best = order[:1], alone[order[0]]
        for i in order[1:]:
            value = trials.score(of([*members, i]))
            if value >= best:
                members, best = [*members, i], value
        run(of(members), place, memory=memory)
        trials.remove()
    return GreedySoup(place, tuple(members), best, alone)
