"""Show a distribution: its parameters, its methods, and the curve of its density."""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core import pictures
from stretto._engine.core.cards import Card, line
from stretto.scipy.stats.distribution import Distribution


def card_of(distribution: Distribution) -> Card:
    """A distribution; the density is drawn where its standard form has no parameters."""
    parameters = [*distribution.shapes, *[f"{n}={v}" for n, v in distribution.placing.items()]]
    body = (
        line(f"parameters: {', '.join(parameters) or 'none'}"),
        line(f"methods: {', '.join(distribution.methods)}"),
    )
    facts: tuple[str, ...] = ()
    picture = ""
    if not distribution.shapes:
        low, high = [float(edge) for edge in distribution.support()]  # type: ignore[arg-type]
        facts = (f"support from {low:g} to {high:g}",)
        picture = _density(distribution, low, high)
    return Card(f"distribution {distribution.name}", facts, body, picture=picture)


def _density(distribution: Distribution, low: float, high: float) -> str:
    """The curve of the standard form's density, over most of the support."""
    pdf: Any = getattr(distribution, "pdf", None)
    if pdf is None:
        return ""
    start, stop = max(low, -5.0 if high > 0 else -10.0), min(high, 5.0 if low < 0 else 8.0)
    margin = 0.1 * (stop - start)
    places = np.linspace(start - margin, stop + margin, 200, dtype=np.float32)
    return pictures.curve(np.asarray(pdf(places), np.float64))
