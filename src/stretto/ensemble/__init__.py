"""Ensembles of models: one object, what its predictions say together, and what they are worth.

Layer 7. ``ensemble`` holds and runs members. ``combination`` of predictions and ``selection`` of
members and weights; ``uncertainty`` and ``diversity`` of members; ``scores``, ``confusion``,
``calibration_error``, ``regression`` and ``detection``: what predictions are worth;
``calibration``, ``binning`` and ``conformal``: how to make their probabilities true.
"""

# ruff: noqa: F403 (each file's __all__ says what it gives)

from stretto.ensemble import layers as layers
from stretto.ensemble.averaging import *
from stretto.ensemble.batch_statistics import *
from stretto.ensemble.binning import *
from stretto.ensemble.calibration import *
from stretto.ensemble.calibration_error import *
from stretto.ensemble.combination import *
from stretto.ensemble.conformal import *
from stretto.ensemble.confusion import *
from stretto.ensemble.detection import *
from stretto.ensemble.diversity import *
from stretto.ensemble.ensemble import *
from stretto.ensemble.merging import *
from stretto.ensemble.paths import *
from stretto.ensemble.regression import *
from stretto.ensemble.scores import *
from stretto.ensemble.selection import *
from stretto.ensemble.snapshots import *
from stretto.ensemble.soups import *
from stretto.ensemble.swag import *
from stretto.ensemble.training import Checkpoints as Checkpoints
from stretto.ensemble.training import DataOrder as DataOrder
from stretto.ensemble.training import Divergence as Divergence
from stretto.ensemble.training import DivergenceError as DivergenceError
from stretto.ensemble.training import DivergenceWarning as DivergenceWarning
from stretto.ensemble.training import EarlyStopping as EarlyStopping
from stretto.ensemble.training import Evaluator as Evaluator
from stretto.ensemble.training import Fitted as Fitted
from stretto.ensemble.training import Trainer as Trainer
from stretto.ensemble.training import TrainState as TrainState
from stretto.ensemble.training import divergences as divergences
from stretto.ensemble.uncertainty import *
