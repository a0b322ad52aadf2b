"""Pictures of ensembles: curves of members, reliability diagrams, bands of uncertainty.

They need matplotlib, ``pip install 'stretto[plots]'``, which is imported when the first is drawn.
Each draws into ``ax``, or into a new figure, and returns the ``Axes``; none shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.functions import described_like
from stretto._engine.core.lazy import exports
from stretto._engine.core.typing import ArrayLike
from stretto.ensemble.optional import axes_of
from stretto.ensemble.score_arguments import of_members
from stretto.ensemble.scores import Binning, ece, reliability
from stretto.ensemble.uncertainty import total_variance

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["member_curves", "reliability_diagram", "uncertainty_band"]

_MEMBER: dict[str, Any] = {"linewidth": 0.8, "alpha": 0.35}
_BAND: dict[str, Any] = {"alpha": 0.2, "linewidth": 0}


def member_curves(
    x: ArrayLike,
    values: ArrayLike,
    *,
    label: str | None = None,
    color: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a thin line for each member, their mean, and a band of a standard deviation around it.

    Where a member has NaN, as one that has stopped, mean and band are of the others.

    Args:
        x: (points,), such as the steps of a history.
        values: (points, members), such as its losses.
        label: what the legend calls the mean.
        color: of all of it; by default the next of the axes' cycle.
        ax: where to draw; by default in a new figure.

    Returns:
        The axes.

    Raises:
        ValueError: the shapes do not match.
        ModuleNotFoundError: matplotlib is not installed.

    >>> import numpy as np, stretto as st
    >>> losses = np.array([[1.0, 2.0], [0.5, 1.0], [0.4, np.nan]])
    >>> ax = st.ensemble.plots.member_curves([10, 20, 30], losses, label="loss")
    >>> len(ax.lines)
    3
    """
    x, values = np.asarray(x), np.asarray(values)
    if x.ndim != 1 or values.ndim != 2 or len(x) != len(values):
        raise ValueError(
            f"member_curves: expected x of shape (points,) and values of shape (points, members), "
            f"got {x.shape} and {values.shape}"
        )
    ax = axes_of(ax, "member_curves")
    known = np.isfinite(values)
    count = known.sum(1)
    some = count > 0
    here = np.where(known, values, 0).astype(np.float64)
    mean = here.sum(1)[some] / count[some]
    variance = (np.where(known[some], here[some] - mean[:, None], 0) ** 2).sum(1) / count[some]
    marker = "o" if some.sum() == 1 else None  # a line of one point is not seen
    (line,) = ax.plot(x[some], mean, color=color, label=label, linewidth=2, marker=marker)
    if values.shape[1] > 1:
        ax.plot(x, np.where(known, values, np.nan), color=line.get_color(), **_MEMBER)
        low, high = mean - np.sqrt(variance), mean + np.sqrt(variance)
        ax.fill_between(x[some], low, high, color=line.get_color(), **_BAND)
    if label is not None:
        ax.legend()
    return ax


def reliability_diagram(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int = 15,
    binning: Binning = "width",
    label: str | None = None,
    color: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against confidence, bin by bin (DeGroot and Fienberg, 1983).

    On the diagonal confidence is deserved; below it, too high. Probabilities of members are drawn
    as thin lines, and their mean, the ensemble's prediction, as a thick one, whose expected
    calibration error is in the legend. Bins without examples are left out.

    Args:
        probs: (examples, classes), or (members, examples, classes).
        labels: (examples,), integers.
        bins: how many bins.
        binning: ``"width"`` or ``"mass"``; see ``reliability``.
        label: what the legend calls it.
        color: of all of it; by default the next of the axes' cycle.
        ax: where to draw; by default in a new figure. A diagram into the axes of another is drawn
            beside it.

    Returns:
        The axes.

    Raises:
        ValueError: shapes do not match, a label is out of range, no bins, an unknown binning.
        TypeError: labels are not integers.
        ModuleNotFoundError: matplotlib is not installed.

    >>> import numpy as np, stretto as st
    >>> probs = np.array([[0.75, 0.25], [0.75, 0.25], [1.0, 0.0], [0.0, 1.0]], np.float32)
    >>> ax = st.ensemble.plots.reliability_diagram(probs, np.array([0, 1, 0, 1]), bins=4)
    >>> [x.tolist() for x in ax.lines[1].get_data()], ax.get_legend_handles_labels()[1]
    ([[0.75, 1.0], [0.5, 1.0]], ['ECE 0.125'])
    """
    shape = np.shape(probs)
    if len(shape) not in (2, 3):
        raise ValueError(
            f"reliability_diagram: expected probs of shape (examples, classes) or (members, "
            f"examples, classes), got {shape}"
        )
    members = np.asarray(of_members("reliability_diagram", probs)).reshape(-1, *shape[-2:])
    mean = members.mean(0)
    curve = reliability(mean, labels, bins, binning)
    error = float(ece(mean, labels, bins, binning))
    each = reliability(members, labels, bins, binning)
    ax = axes_of(ax, "reliability_diagram")
    if not ax.has_data():
        ax.plot([0, 1], [0, 1], color="grey", linewidth=1, linestyle="--")
        ax.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1), ylim=(0, 1))
    share, confidence, accuracy = (np.asarray(a) for a in curve)
    text = f"ECE {error:.3f}" if label is None else f"{label}: ECE {error:.3f}"
    x, y = confidence[share > 0], accuracy[share > 0]
    (line,) = ax.plot(x, y, color=color, label=text, linewidth=2, marker="o")
    if len(members) > 1:
        for share, confidence, accuracy in zip(*(np.asarray(a) for a in each), strict=True):
            x, y = confidence[share > 0], accuracy[share > 0]
            ax.plot(x, y, color=line.get_color(), **_MEMBER)
    ax.legend()
    return ax


@described_like(member_curves)
def uncertainty_band(
    x: ArrayLike,
    predictions: ArrayLike,
    variances: ArrayLike | None = None,
    *,
    deviations: float = 2.0,
    label: str | None = None,
    color: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean prediction of a regression, and what the ensemble does not know.

    The inner band is as many standard deviations of the members' predictions around their mean;
    with ``variances``, an outer one is of the total variance: that of the members, and the mean of
    what each gives.

    Args:
        x: (examples,), in any order.
        predictions: (members, examples): the mean that each member predicts.
        variances: of the same shape: the variance that each predicts.
        deviations: how many standard deviations the bands reach on either side.

    Raises:
        ValueError: the shapes do not match, or a variance is negative.
        ModuleNotFoundError: matplotlib is not installed.

    >>> import numpy as np, stretto as st
    >>> predictions = np.array([[1.0, 2.0, 4.0], [1.0, 4.0, 8.0]])
    >>> ax = st.ensemble.plots.uncertainty_band(np.array([0, 2, 1]), predictions)
    >>> [x.tolist() for x in ax.lines[0].get_data()]
    [[0, 1, 2], [1.0, 6.0, 3.0]]
    """
    means = of_members("uncertainty_band", predictions, "predictions", "examples")
    if np.shape(x) != means.shape[1:] or means.ndim != 2:
        raise ValueError(
            f"uncertainty_band: expected x of shape (examples,) and predictions of shape (members, "
            f"examples), got {np.shape(x)} and {means.shape}"
        )
    noise = snp.zeros_like(means) if variances is None else variances
    order = np.argsort(np.asarray(x), kind="stable")
    parts = total_variance(means, noise)
    mean, disagreement, total = (
        np.asarray(a)[order] for a in (parts.mean, parts.epistemic, parts.total)
    )
    places = np.asarray(x)[order]
    ax = axes_of(ax, "uncertainty_band")
    (line,) = ax.plot(places, mean, color=color, label=label, linewidth=2)
    for variance in (disagreement,) if variances is None else (disagreement, total):
        width = deviations * np.sqrt(variance)
        ax.fill_between(places, mean - width, mean + width, color=line.get_color(), **_BAND)
    if label is not None:
        ax.legend()
    return ax


exports(__name__)
