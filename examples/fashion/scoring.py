"""What members and ensembles are worth: scores, combinations, calibration, unknown inputs.

Next, read ``__main__``.
"""

from typing import Any, NamedTuple

import numpy as np

import stretto as st
import stretto.numpy as snp
from examples.fashion.data import Part
from stretto import nn
from stretto.ensemble import (
    accuracy,
    brier,
    confidence,
    disagreement,
    ece,
    fit_temperature,
    geometric_mean,
    log_mean,
    mean,
    mutual_information,
    nll,
    ood_auroc,
    predictive_entropy,
    stacking_weights,
    vote_shares,
    weighted_mean,
)

__all__ = ["SCORES", "Row", "combined", "detection", "of_members", "of_one", "predict"]

SCORES = {"accuracy": accuracy, "NLL": nll, "Brier": brier, "ECE": ece}
RESAMPLES = 200


class Row(NamedTuple):
    """A line of a table: what, and for each score a value and its spread."""

    name: str
    values: dict[str, tuple[float, float]]


_forward = st.jit(lambda ensemble, x: ensemble(x))


def predict(ensemble: st.Ensemble, images: np.ndarray, at_once: int = 500) -> np.ndarray:
    """Logits (members, examples, classes) of an ensemble in evaluation mode."""
    parts = [images[i : i + at_once] for i in range(0, len(images), at_once)]
    return np.concatenate([np.asarray(_forward(ensemble, x)) for x in parts], axis=1)


def of_members(name: str, probs: Any, labels: np.ndarray) -> Row:
    """Scores of each member: their mean, and their standard deviation over the members."""
    values = {n: np.asarray(score(probs, labels)) for n, score in SCORES.items()}
    return Row(name, {n: (float(x.mean()), float(x.std(ddof=1))) for n, x in values.items()})


@st.jit
def _resampled(probs: Any, labels: Any, rows: Any) -> dict[str, Any]:
    """Each score on every resample: ``rows`` is (resamples, examples)."""

    def one(rows: Any) -> dict[str, Any]:
        return {n: score(probs[rows], labels[rows]) for n, score in SCORES.items()}

    return st.lax.map(one, rows)


def of_one(name: str, probs: Any, labels: np.ndarray) -> Row:
    """Scores of one prediction, and their standard error: over bootstraps of the examples."""
    draw = np.random.default_rng(0)
    rows = draw.integers(len(labels), size=(RESAMPLES, len(labels)), dtype=np.int32)
    spread = _resampled(snp.asarray(probs), snp.asarray(labels), rows)
    return Row(
        name,
        {
            n: (float(score(probs, labels)), float(np.std(np.asarray(spread[n]), ddof=1)))
            for n, score in SCORES.items()
        },
    )


def combined(
    logits_fit: np.ndarray, fit: Part, logits: np.ndarray, labels: np.ndarray
) -> list[Row]:
    """Members, and all ways to combine them; weights and temperatures are fitted on ``fit``."""
    probs, probs_fit = nn.softmax(logits, -1), nn.softmax(logits_fit, -1)
    each = fit_temperature(logits_fit, fit.labels)
    pooled = fit_temperature(log_mean(logits_fit), fit.labels)
    weights = stacking_weights(probs_fit, fit.labels)
    used = int((np.asarray(weights) > 0.01).sum())
    return [
        of_members("a member", probs, labels),
        of_members("a member, calibrated", each(logits), labels),
        of_one("mean", mean(probs), labels),
        of_one("mean of log probabilities", geometric_mean(probs), labels),
        of_one("vote shares", vote_shares(probs), labels),
        of_one(
            f"stacking weights ({used} members above 1 %)", weighted_mean(probs, weights), labels
        ),
        of_one("mean of calibrated members", mean(each(logits)), labels),
        of_one(
            f"mean, calibrated as a whole (T = {float(pooled.temperature):.2f})",
            pooled(log_mean(logits)),
            labels,
        ),
    ]


def detection(known: np.ndarray, unknown: np.ndarray) -> list[tuple[str, float, float]]:
    """AUROC of telling unknown inputs from known ones, by logits of both.

    Name, value, and the standard deviation where it is over members (else NaN).
    """
    inside, outside = nn.softmax(known, -1), nn.softmax(unknown, -1)
    # The entropy of each member alone: that of an ensemble of one.
    entropy = st.vmap(lambda probs: predictive_entropy(probs[None]))
    members = np.asarray(ood_auroc(entropy(inside), entropy(outside)))
    rows = [("entropy of a member", float(members.mean()), float(members.std(ddof=1)))]
    scores = {
        "entropy of the mean": predictive_entropy,
        "mutual information": mutual_information,
        "1 − confidence": lambda probs: 1 - confidence(probs),
        "disagreement of votes": disagreement,
    }
    for name, score in scores.items():
        rows.append((name, float(ood_auroc(score(inside), score(outside))), float("nan")))
    return rows
