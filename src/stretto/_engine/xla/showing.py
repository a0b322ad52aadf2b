"""Show an array: its type, where it is, and a small picture of its values.

Large arrays are drawn by a sample.
"""

from __future__ import annotations

import numpy as np

from stretto._engine.core.showing import pictures
from stretto._engine.core.showing.cards import Card, Item, line, number, size
from stretto._engine.core.types import bytes_of
from stretto._engine.xla.array import Array
from stretto._engine.xla.printing import Sample, brief_text, gone, sample_of, sharding_if_any

_CURVE = 400
"""The longest row of values that is drawn one by one."""


def card_of(x: Array) -> Card:
    """Type, place and values of an array."""
    type = x.type
    facts = [f"{type!r}{', weak' if type.weak_type else ''}"]
    if x.is_deleted():
        return Card("Array", (*facts, gone(x).rsplit(", ", 1)[1].rstrip(">")))
    facts.append(size(bytes_of(type)))
    sharding = sharding_if_any(x)
    if sharding is not None:
        facts.append(str(sharding))
    if not type.size:
        return Card("Array", (*facts, "no elements"))
    if type.size == 1 and (sharding is None or sharding.is_fully_addressable):
        return Card("Array", tuple(facts), (line(str(x.to_host().reshape(())[()])),))
    sample = sample_of(x)
    if sample is None:
        return Card("Array", (*facts, "values not fetched"))
    body: list[Item] = [line(_statistics(sample, type.kind), "quiet")]
    picture = _picture(sample)
    if type.ndim and (sharding is None or sharding.is_fully_addressable) and sample.whole:
        text = tuple([line(row) for row in brief_text(x).split("\n")])
        body.append(Card("values", (), text, open=False))
    values = sample.values[sample.known]
    return Card("Array", tuple(facts), tuple(body), picture=picture, sketch=pictures.sketch(values))


def _picture(sample: Sample) -> str:
    """Return a curve of a row of values, colours of a matrix, and bars of anything else."""
    long = sample.values.reshape([n for n in sample.values.shape if n > 1])
    if long.ndim == 2:
        return pictures.matrix(long)
    if long.ndim == 1 and sample.whole and len(long) <= _CURVE:
        return pictures.curve(long)
    return pictures.bars(sample.values[sample.known])


def _statistics(sample: Sample, kind: str) -> str:
    """Least, mean and greatest, and how many are not finite."""
    values = sample.values[sample.known]
    finite = values[np.isfinite(values)]
    words = []
    if len(finite):
        scale = np.abs(finite).max() or 1.0
        mean = number(float((finite / scale).mean() * scale))
        what = "modulus, " if kind == "complex" else ""
        words.append(
            f"{what}least {number(finite.min())}, mean {mean}, greatest {number(finite.max())}"
        )
    for name, count in (("NaN", np.isnan(values).sum()), ("infinite", np.isinf(values).sum())):
        if count:
            words.append(f"{count:,} {name}")
    if not sample.whole:
        words.append(f"of a sample of {len(values):,}")
    return ", ".join(words)
