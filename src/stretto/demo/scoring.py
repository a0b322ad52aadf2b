"""Members, ensemble and soup, scored on the test images."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from rich.table import Table

import stretto as st
import stretto.numpy as snp
from stretto.demo.classifier import Member, Params, probabilities
from stretto.demo.data import Dataset, Labeled
from stretto.demo.training import predict
from stretto.ensemble.calibration_error import ece
from stretto.ensemble.scores import accuracy, nll

__all__ = ["Comparison", "Scores", "compare", "score", "score_table", "score_notes", "soup"]


class Scores(NamedTuple):
    """Three scores of one predictor, or the same of many along a leading axis."""

    accuracy: np.ndarray
    nll: np.ndarray
    ece: np.ndarray


class Comparison(NamedTuple):
    """The scores on the test images, and the predictions behind them."""

    members: Scores
    """The scores of each member."""
    best: int
    """The member with the lowest NLL on the validation images."""
    ensemble: Scores
    """The score of the mean of the members' probabilities."""
    soup: Scores
    """The score of one model with the mean of the members' weights."""
    member_probs: np.ndarray
    """(members, examples, classes)."""

    @property
    def mean_member(self) -> Scores:
        """The means over the members of their scores."""
        return Scores(*(values.mean() for values in self.members))

    @property
    def best_member(self) -> Scores:
        """The scores of the best member."""
        return Scores(*(values[self.best] for values in self.members))


def soup(params: Params) -> Params:
    """Return the uniform soup: the mean of the members' weights (Wortsman et al., 2022)."""
    return st.tree.mean(st.unstack(params))


def score(probs: st.Array | np.ndarray, labels: np.ndarray) -> Scores:
    """Accuracy, NLL in nats and ECE in 15 bins, of probabilities (..., examples, classes)."""
    return Scores(*(np.asarray(measure(probs, labels)) for measure in (accuracy, nll, ece)))


def compare(members: Member, data: Dataset) -> Comparison:
    """Choose the best member on the validation images; score all on the test images."""
    probs, labels = predict(members, data.test.images), data.test.labels
    return Comparison(
        members=score(probs, labels),
        best=int(np.argmin(_validation_nll(members, data.validation))),
        ensemble=score(probs.mean(axis=0), labels),
        soup=score(probabilities(soup(members.params), snp.asarray(data.test.images)), labels),
        member_probs=probs,
    )


def _validation_nll(members: Member, validation: Labeled) -> np.ndarray:
    return np.asarray(nll(predict(members, validation.images), validation.labels))


def score_table(comparison: Comparison, images: int) -> Table:
    """Return the four predictors, a row each."""
    table = Table(title=f"On {images:,} test images", title_justify="left")
    table.add_column("predictor")
    for heading in ("accuracy", "NLL", "ECE"):
        table.add_column(heading, justify="right")
    rows = {
        "mean member": comparison.mean_member,
        f"best member (number {comparison.best})": comparison.best_member,
        "ensemble mean": comparison.ensemble,
        "uniform soup": comparison.soup,
    }
    for name, scores in rows.items():
        style = "bold" if scores is comparison.ensemble else ""
        figures = f"{scores.accuracy:.2%}", f"{scores.nll:.4f}", f"{scores.ece:.4f}"
        table.add_row(name, *figures, style=style)
    return table


def score_notes(comparison: Comparison, validation_images: int) -> str:
    """Return what the rows mean, and why the soup is what it is."""
    notes = (
        "Mean member: the mean of the members' scores. Best member: the lowest NLL on "
        f"{validation_images:,} validation images. Ensemble mean: the mean of the members' "
        "probabilities. Uniform soup: one model with the mean of their weights. NLL in nats; ECE "
        "in 15 bins of equal width."
    )
    if comparison.soup.accuracy < comparison.mean_member.accuracy:
        notes += (
            " The soup is worse than its members because each started from its own key: they lie "
            "in different basins of the loss, and the mean of their weights lies in none. Soups "
            "need members that share a start."
        )
    return notes
