"""``Fitted``: what ``fit`` gives.

Next, read ``fit``.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Generic

import numpy as np

from stretto.ensemble.groups import M_co
from stretto.ensemble.training.divergence import Divergence
from stretto.ensemble.training.state import TrainState

if TYPE_CHECKING:  # it is above, and trains by this
    from stretto.ensemble.ensemble import Ensemble

__all__ = ["Fitted"]


@dataclasses.dataclass(frozen=True)
class Fitted(Generic[M_co]):
    """The result of a training."""

    ensemble: Ensemble[M_co]
    """The ensemble that was trained."""
    history: dict[str, np.ndarray]
    """``step`` and ``epoch`` of each entry; ``loss``, metrics, ``validation_loss``, … of shape
    (entries, members). Losses of training are means since the entry before; NaN for members that
    no longer trained."""
    stopped: dict[int, int]
    """The step at which members were stopped early, by member."""
    diverged: dict[int, Divergence]
    """Members that diverged: step, and path of the parameter."""
    state: TrainState[M_co]
    """All that was reached, to go on from."""
