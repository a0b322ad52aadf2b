"""Training of ensembles: ``Ensemble.fit``, and its parts for training loops of your own.

``training_data``: which examples, when · ``train_state``: all that training has reached · ``step``
and ``trainer``: one compiled step · ``evaluation``, ``stopping`` and ``checkpoints`` beside it ·
``fit_callbacks`` and ``loggers`` · ``fit_arguments``, ``fit`` and what it gives, ``fitted``.
"""

from stretto.ensemble.training.fit_callbacks import Callback as Callback, Event as Event
from stretto.ensemble.training.checkpoints import Checkpoints as Checkpoints
from stretto.ensemble.training.stopping import (
    Divergence as Divergence,
    DivergenceError as DivergenceError,
    DivergenceWarning as DivergenceWarning,
    divergences as divergences,
)
from stretto.ensemble.training.evaluation import Evaluator as Evaluator
from stretto.ensemble.training.fit import fit as fit
from stretto.ensemble.training.fitted import Fitted as Fitted
from stretto.ensemble.training.loggers import (
    CSVLogger as CSVLogger,
    ConsoleLogger as ConsoleLogger,
    Logger as Logger,
    TensorBoardLogger as TensorBoardLogger,
    TrackingLogger as TrackingLogger,
)
from stretto.ensemble.training.training_data import DataOrder as DataOrder
from stretto.ensemble.training.train_state import TrainState as TrainState
from stretto.ensemble.training.stopping import EarlyStopping as EarlyStopping
from stretto.ensemble.training.trainer import Trainer as Trainer
