"""Training of ensembles: ``Ensemble.fit``, and its parts for training loops of your own.

``order``: which examples, when · ``state``: all that training has reached · ``losses step
trainer``: one compiled step · ``evaluation stopping divergence history`` · ``configuration
checkpoints`` · ``notebook progress`` · ``callbacks loggers`` · ``examples planning whole loop fit
fitted``.
"""

from stretto.ensemble.training.callbacks import Callback as Callback
from stretto.ensemble.training.callbacks import Event as Event
from stretto.ensemble.training.checkpoints import Checkpoints as Checkpoints
from stretto.ensemble.training.divergence import Divergence as Divergence
from stretto.ensemble.training.divergence import DivergenceError as DivergenceError
from stretto.ensemble.training.divergence import DivergenceWarning as DivergenceWarning
from stretto.ensemble.training.divergence import divergences as divergences
from stretto.ensemble.training.evaluation import Evaluator as Evaluator
from stretto.ensemble.training.fit import fit as fit
from stretto.ensemble.training.fitted import Fitted as Fitted
from stretto.ensemble.training.loggers import ConsoleLogger as ConsoleLogger
from stretto.ensemble.training.loggers import CSVLogger as CSVLogger
from stretto.ensemble.training.loggers import Logger as Logger
from stretto.ensemble.training.loggers import TensorBoardLogger as TensorBoardLogger
from stretto.ensemble.training.loggers import TrackingLogger as TrackingLogger
from stretto.ensemble.training.order import DataOrder as DataOrder
from stretto.ensemble.training.state import TrainState as TrainState
from stretto.ensemble.training.stopping import EarlyStopping as EarlyStopping
from stretto.ensemble.training.trainer import Trainer as Trainer
