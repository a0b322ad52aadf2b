"""Estimators as safetensors files: members, scales, and the parameters as JSON among the metadata.

Nothing in such a file is run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import stretto.numpy as snp
from stretto import random
from stretto._engine.core.files import checked_path
from stretto.ensemble.estimators.table_members import Scale
from stretto.files.load_files import load, load_header
from stretto.files.save_files import save

if TYPE_CHECKING:  # it is above, and saved by this
    from stretto.ensemble.estimators.estimator import EnsembleEstimator


EstimatorT = TypeVar("EstimatorT", bound="EnsembleEstimator")

_ENTRY = "stretto.estimator"
_VERSION = 1


def write(estimator: EnsembleEstimator, path: str | os.PathLike[str]) -> None:
    """Save the estimator; its parameters that are not plain values are named as left out."""
    params, left_out = {}, []
    for name, x in estimator.get_params(deep=False).items():
        x = x.item() if isinstance(x, np.generic) else x
        try:
            json.dumps(x)
        except TypeError:
            left_out.append(name)
        else:
            params[name] = x
    if "random_state" in left_out:  # a generator, which is used up
        left_out.remove("random_state")
    record: dict[str, Any] = {
        "version": _VERSION,
        "class": type(estimator).__name__,
        "params": params,
        "left_out": left_out,
        "members": len(estimator.ensemble_),
        "features": int(estimator.n_features_in_),
        "seed": estimator._seed,
        "steps": estimator._steps,
        "one": getattr(estimator, "_one", True),
    }
    names = getattr(estimator, "feature_names_in_", None)
    record["names"] = None if names is None else names.tolist()
    classes = getattr(estimator, "classes_", None)
    if classes is not None:
        if classes.dtype == object and not all(isinstance(c, str) for c in classes):
            raise ValueError(
                f"{type(estimator).__name__}: classes are saved if they are numbers, booleans or "
                f"strings; got objects: {classes.tolist()}"
            )
        record["classes"] = {"dtype": classes.dtype.str, "values": classes.tolist()}
    arrays: dict[str, Any] = {"members": estimator.ensemble_.state_dict()}
    arrays["fitted"] = {n: np.asarray(getattr(estimator, n)) for n in estimator._kept}
    arrays["history"] = dict(getattr(estimator, "history_", {}))
    save(path, arrays, {_ENTRY: json.dumps(record)})


def read(
    cls: type[EstimatorT], path: str | os.PathLike[str], params: Mapping[str, Any]
) -> EstimatorT:
    """The estimator of a file, with these parameters instead of its own."""
    caller = f"{cls.__name__}.load: {checked_path(path, f'{cls.__name__}.load')}"
    text = load_header(path).metadata.get(_ENTRY)
    if text is None:
        raise ValueError(f"{caller}: not the file of an estimator")
    try:
        record = json.loads(text)
        if record["version"] != _VERSION:
            raise ValueError(
                f"it is of version {record['version']!r}, and this Stretto knows {_VERSION}"
            )
        kind, own = str(record["class"]), dict(record["params"])
        missing = [str(n) for n in record["left_out"] if n not in params]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{caller}: its description is damaged: {error}") from None
    if kind != cls.__name__:
        raise ValueError(f"{caller}: it has an {kind}; load it with {kind}.load")
    if missing:
        raise ValueError(
            f"{caller}: functions are not saved; give {', '.join(f'{n}=' for n in missing)}"
        )
    arrays = load(path)
    try:
        if "hidden" in own:
            own["hidden"] = tuple(own["hidden"])
        estimator: Any = cls(**{**own, **params})
        estimator.n_features_in_ = int(record["features"])
        if record["names"] is not None:
            estimator.feature_names_in_ = np.asarray(record["names"], object)
        if "classes" in record:
            kept = record["classes"]
            estimator.classes_ = np.asarray(kept["values"], np.dtype(str(kept["dtype"])))
        for name in cls._kept:
            x = np.asarray(arrays["fitted"][name])
            setattr(estimator, name, Scale(*x) if name.endswith("scale_") else x)
        estimator.history_ = {n: np.asarray(x) for n, x in arrays["history"].items()}
        estimator._seed, estimator._steps = int(record["seed"]), int(record["steps"])
        if hasattr(cls, "_uncalibrated"):
            estimator._one = bool(record["one"])
        members = [{n: snp.asarray(x) for n, x in g.items()} for g in arrays["members"]]
        count = int(record["members"])
        if any(x.shape[:1] != (count,) for g in members for x in g.values()):
            raise ValueError(f"its arrays are not those of {count} members")
        like = estimator._made(random.key(0), count)
        estimator.ensemble_ = like.replace(members).eval()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{caller}: it does not describe an {kind}: {error}") from None
    return estimator
