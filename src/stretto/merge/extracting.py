"""``extract_lora``: what a model was tuned by, as low-rank matrices in a folder of PEFT's."""

from __future__ import annotations

import fnmatch
import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core import system
from stretto._engine.core.files import checked_path
from stretto._engine.core.lazy import LazyModule
from stretto.files.file_elements import true_type
from stretto.files.save_files import save
from stretto.merge.adapters import PREFIX
from stretto.merge.checkpoints import Checkpoint, is_real
from stretto.merge.matrices import Matrices, truncated
from stretto.merge.recipes import DTYPES, nearest, raise_all
from stretto.merge.streams import Source, Stream

__all__ = ["Extracted", "extract_lora"]

json = LazyModule("json")

_NO_LINEAR = ("embed", "wte", "wpe", "lm_head")
"""Parts of the names of tables and heads, which have other adapters, or share their weights."""
_TURNED = ("gpt2", "openai-gpt", "imagegpt", "decision_transformer", "clvp")
"""Kinds of models whose linear layers have the inputs first."""
_BLOCK = 1 << 26


class Extracted(NamedTuple):
    """What ``extract_lora`` wrote.

    >>> import stretto as st
    >>> st.merge.Extracted._fields
    ('path', 'errors', 'left')
    """

    path: str
    """The adapter's folder."""
    errors: Mapping[str, float]
    """By module, the norm of what the adapter lacks, divided by that of the difference."""
    left: tuple[str, ...]
    """Tensors that differ from the base's, and are not in the adapter."""


def extract_lora(
    tuned: str | os.PathLike[str],
    base: str | os.PathLike[str],
    out: str | os.PathLike[str],
    rank: int,
    *,
    modules: Sequence[str] | None = None,
    dtype: str | None = None,
    inputs_first: bool | None = None,
) -> Extracted:
    """Write the difference of two models as a LoRA adapter, which PEFT and recipes read.

    For each weight of a linear layer it is the nearest matrix of that rank, B A, which is computed
    in float64 with one layer in memory, and the adapter itself. Nothing is at ``out`` until all of
    it is on the disk: what is stopped begins anew. What a kill leaves beside it,
    ``.OUT.extracting``, the next call removes.

    Args:
        tuned: the model: a file, a folder, or an index.
        base: the model that it was tuned from.
        out: the folder to write, absent or empty.
        rank: the rank; of a matrix with a shorter side, that side.
        modules: patterns of the names of linear layers, such as ``["*.q_proj", "*.v_proj"]``; by
            default of all that have a matrix as weight, but for embeddings and heads. What has not
            changed is left out.
        dtype: "float32", "bfloat16", "float16" or "float64"; by default the base's.
        inputs_first: whether weights are (inputs, outputs); by default if the configuration is of
            a kind that has them so, as GPT-2.

    Returns:
        An ``Extracted``, with what the adapter lacks.

    Raises:
        TypeError: a path is none.
        ValueError: the models differ in names or shapes; no linear layer has changed; an argument
            makes no sense; ``out`` is not empty. The message has all of it.
        OSError: a file cannot be read or written.

    Source: Hu et al., "LoRA: low-rank adaptation of large language models", 2021; Eckart and Young,
    "The approximation of one matrix by another of lower rank", 1936.

    >>> import os, tempfile, stretto as st, stretto.numpy as snp
    >>> folder = tempfile.mkdtemp()
    >>> a, b = (os.path.join(folder, f"{name}.safetensors") for name in "ab")
    >>> st.save(a, {"fc": {"weight": snp.zeros((3, 4))}})
    >>> st.save(b, {"fc": {"weight": snp.ones((3, 4))}})
    >>> found = st.merge.extract_lora(b, a, os.path.join(folder, "lora"), rank=1)
    >>> list(found.errors), found.errors["fc"] < 1e-6, found.left
    (['fc'], True, ())
    """
    place = os.path.abspath(checked_path(out, "extract_lora"))
    problems = []
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
        problems.append(f"rank must be a positive integer, got {rank!r}")
    if dtype is not None and dtype not in DTYPES:
        problems.append(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}")
    if os.path.lexists(place) and not (os.path.isdir(place) and not os.listdir(place)):
        problems.append(f"{place} is there already: name a folder that is not")
    raise_all(problems, "what was asked", "extract_lora")
    with Checkpoint(tuned) as ours, Checkpoint(base) as theirs:
        pairs = [(Source(ours, n), Source(theirs, n)) for n in theirs.stored if n in ours.stored]
        names = _chosen(ours, theirs, modules)
        said = theirs.configuration(theirs.components[0].folder) or {}
        turned = said.get("model_type") in _TURNED if inputs_first is None else inputs_first
        tensors: dict[str, Any] = {}
        errors: dict[str, float] = {}
        ranks: dict[str, int] = {}
        left = []
        for own, other in pairs:
            if not _differ(own, other):
                continue
            if own.name not in names:
                left.append(own.name)
                continue
            module = own.name.removesuffix(".weight")
            code = DTYPES[dtype] if dtype else other.stored.code
            down, up, errors[module] = _factors(own, other, rank, turned, code)
            tensors[f"{PREFIX}{module}.lora_A.weight"] = down
            tensors[f"{PREFIX}{module}.lora_B.weight"] = up
            ranks[module] = len(down)
        if not tensors:
            raise ValueError(
                f"extract_lora: no linear layer of {ours.path} differs from {theirs.path}"
                + (f"; what differs is {', '.join(left[:5])}" if left else "")
            )
        settings = _settings(theirs, ranks, rank, turned)
    _write(place, tensors, settings)
    return Extracted(place, errors, tuple(left))


def _chosen(ours: Checkpoint, theirs: Checkpoint, modules: Sequence[str] | None) -> set[str]:
    """Return the names of the weights of linear layers; raise for all that is wrong with them."""
    problems = []
    for name in sorted(ours.stored.keys() ^ theirs.stored.keys()):
        lacking = theirs if name in ours.stored else ours
        problems.append(f"{name} is missing in {lacking.path}")
    for name in ours.stored.keys() & theirs.stored.keys():
        mine, other = ours.stored[name], theirs.stored[name]
        if mine.shape != other.shape:
            problems.append(
                f"{name} has shape {list(mine.shape)} in {ours.path}, and "
                f"{list(other.shape)} in {theirs.path}"
            )
    linear = {
        name.removesuffix(".weight"): name
        for name, stored in theirs.stored.items()
        if name.endswith(".weight") and len(stored.shape) == 2 and is_real(stored)
    }
    if modules is None:
        found = {m for m in linear if not any(word in m for word in _NO_LINEAR)}
    else:
        found = set()
        for pattern in modules:
            matched = {m for m in linear if fnmatch.fnmatchcase(m, pattern)}
            if not matched:
                problems.append(f"no linear layer matches {pattern!r}" + nearest(pattern, linear))
            found |= matched
    raise_all(problems, "what was asked", "extract_lora")
    return {linear[m] for m in found}


def _differ(own: Source, other: Source) -> bool:
    """Say whether any element differs."""
    for block in Stream([own, other], _BLOCK):
        ours, theirs = (x[: block.size] for x in block.arrays)
        if not np.array_equal(ours, theirs):
            return True
    return False


def _factors(
    own: Source, other: Source, rank: int, turned: bool, code: str
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return A, B, and how much of the difference they lack."""
    delta = Matrices([own], other, [], {}, own.name).delta(0)
    delta = delta.T if turned else delta
    u, s, v = truncated(delta, min(rank, *delta.shape))
    root = np.sqrt(s)
    dtype = true_type(own.name, code, (), None).dtype
    down, up = np.ascontiguousarray((v * root).T.astype(dtype)), (u * root).astype(dtype)
    lacking = delta - up.astype(np.float64) @ down.astype(np.float64)
    return down, up, float(np.linalg.norm(lacking) / np.linalg.norm(delta))


def _settings(
    base: Checkpoint, ranks: Mapping[str, int], rank: int, turned: bool
) -> dict[str, Any]:
    """Return PEFT's configuration: α is the rank everywhere, so that nothing is scaled."""
    ends = {module.rpartition(".")[2] for module in ranks}
    modules = (n.removesuffix(".weight") for n in base.stored if n.endswith(".weight"))
    others = {m.rpartition(".")[2] for m in modules if m not in ranks}
    lower = {module: own for module, own in ranks.items() if own != rank}
    return {
        "peft_type": "LORA",
        "task_type": None,
        "base_model_name_or_path": base.path,
        "r": rank,
        "lora_alpha": rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": turned,
        "inference_mode": True,
        # An end of a name stands for all layers that have it.
        "target_modules": sorted(ranks if ends & others else ends),
        "rank_pattern": lower,
        "alpha_pattern": lower,
    }


def _write(place: str, tensors: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Write the folder, which is there when all of it is on the disk."""
    head, tail = os.path.split(place)
    stage = os.path.join(head, f".{tail}.extracting")
    shutil.rmtree(stage, ignore_errors=True)  # of a run that was killed
    try:
        os.makedirs(stage)
        save(os.path.join(stage, "adapter_model.safetensors"), dict(tensors), {"format": "pt"})
        with open(os.path.join(stage, "adapter_config.json"), "w", encoding="utf-8") as file:
            json.dump(settings, file, indent=2)
            file.flush()
            system.flush(file.fileno())
        system.flush_folder(stage)
        if os.path.isdir(place):
            os.rmdir(place)
        os.rename(stage, place)
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise
    system.flush_folder(head)
