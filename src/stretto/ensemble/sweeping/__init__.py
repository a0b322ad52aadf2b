"""Many configurations of hyperparameters and architectures, trained as one ensemble.

``sweep``: which configurations, who takes each of their values, and their training · ``halving``
drops those that are behind · ``results``: the table, and what was best · ``picture``.
"""

from stretto.ensemble.sweeping.results import Sweep
from stretto.ensemble.sweeping.sweep import sweep

__all__ = ["Sweep", "sweep"]

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto.ensemble.sweeping import picture

exports(__name__)
