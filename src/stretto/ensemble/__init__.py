"""Ensembles of models: one object, what its predictions say together, and what they are worth.

``ensemble`` holds and runs members. ``combination`` makes one prediction of theirs, and has weights
that are fitted; ``uncertainty`` says how members differ; ``scores``, ``regression_scores`` and
``detection`` say what predictions are worth; ``calibration`` makes their probabilities true, and
``conformal`` sets and intervals. ``plots`` draws members, reliability and uncertainty.
``estimators`` are scikit-learn's; ``sweeping`` tries many configurations.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:
    from stretto.ensemble import layers as layers, plots as plots
    from stretto.ensemble.anchoring import *
    from stretto.ensemble.averaging import *
    from stretto.ensemble.batch_statistics import *
    from stretto.ensemble.bayesian_regression import *
    from stretto.ensemble.calibration import *
    from stretto.ensemble.combination import *
    from stretto.ensemble.conformal import *
    from stretto.ensemble.convergence import *
    from stretto.ensemble.detection import *
    from stretto.ensemble.ensemble import *
    from stretto.ensemble.estimators.classifier import *
    from stretto.ensemble.estimators.pipelines import *
    from stretto.ensemble.estimators.regressor import *
    from stretto.ensemble.gaussian import *
    from stretto.ensemble.group_scores import *
    from stretto.ensemble.laplace import *
    from stretto.ensemble.linearised import *
    from stretto.ensemble.merging import *
    from stretto.ensemble.regression_scores import *
    from stretto.ensemble.scores import *
    from stretto.ensemble.snapshots import *
    from stretto.ensemble.sweeping import *
    from stretto.ensemble.uncertainty import *
    from stretto.ensemble.training.checkpoints import Checkpoints as Checkpoints
    from stretto.ensemble.training.evaluation import Evaluator as Evaluator
    from stretto.ensemble.training.executors.engines import Workers as Workers
    from stretto.ensemble.training.fit_callbacks import Callback as Callback, Event as Event
    from stretto.ensemble.training.fitted import Fitted as Fitted
    from stretto.ensemble.training.loggers import (
        ConsoleLogger as ConsoleLogger, CSVLogger as CSVLogger, Logger as Logger,
        TensorBoardLogger as TensorBoardLogger, TrackingLogger as TrackingLogger,
    )  # fmt: skip
    from stretto.ensemble.training.fit_callbacks import (
        Divergence as Divergence, DivergenceError as DivergenceError,
        DivergenceWarning as DivergenceWarning, EarlyStopping as EarlyStopping,
        divergences as divergences,
    )  # fmt: skip
    from stretto.ensemble.training.train_state import TrainState as TrainState
    from stretto.ensemble.training.trainer import Trainer as Trainer
    from stretto.ensemble.training.training_data import DataOrder as DataOrder
    from stretto.ensemble import ensemble_files, explaining, laplace_files

exports(
    __name__,
    """
    .: layers plots
    .anchoring: randomised_map
    .averaging: EMA SWA SWAG AverageState SWAGState
    .batch_statistics: update_batch_norm
    .bayesian_regression: BayesianRegression fit_bayesian_regression
    .calibration: HistogramBinning Isotonic Platt Temperature VectorScaling fit_histogram_binning
        fit_isotonic fit_platt fit_temperature fit_vector_scaling
    .combination: Selection geometric_mean greedy_selection log_mean logit_mean majority_vote
        maximum mean median product_of_experts stacking_weights trimmed_mean vote_shares
        weighted_mean
    .conformal: ConformalIntervals ConformalSets VarianceScaling fit_conformal
        fit_conformal_intervals fit_variance_scaling
    .convergence: ess rhat
    .detection: aupr auroc aurc excess_aurc fpr_at_tpr ood_aupr ood_auroc ood_fpr
    .ensemble: Ensemble
    .estimators.classifier: EnsembleClassifier
    .estimators.pipelines: pipeline_function
    .estimators.regressor: EnsembleRegressor
    .gaussian: Gaussian
    .group_scores: GroupScores by_group
    .laplace: Laplace fit_laplace
    .linearised: LinearisedEnsemble
    .merging: Barrier Soup add_task_vectors barrier dare diagonal_fisher fisher_average greedy_soup
        input_grams task_vector ties uniform_soup
    .regression_scores: crps_ensemble crps_gaussian energy_score_ensemble gaussian_nll
        interval_coverage interval_score mae pinball_loss pit_ensemble pit_gaussian r2 rmse
    .scores: Binning BrierParts Reliability accuracy balanced_accuracy brier brier_decomposition
        classwise_ece confusion_matrix ece f1 mce nll nll_from_logits reliability top_k_accuracy
    .snapshots: SnapshotState Snapshots
    .sweeping: Sweep sweep
    .uncertainty: TotalVariance cohen_kappa confidence disagreement energy_score expected_entropy
        margin mutual_information pairwise_disagreement pairwise_js pairwise_kl predictive_entropy
        q_statistic total_variance variance variation_ratio
    .training.checkpoints: Checkpoints
    .training.evaluation: Evaluator
    .training.executors.engines: Workers
    .training.fit_callbacks: Callback Event Divergence DivergenceError DivergenceWarning
        EarlyStopping divergences
    .training.fitted: Fitted
    .training.loggers: ConsoleLogger CSVLogger Logger TensorBoardLogger TrackingLogger
    .training.train_state: TrainState
    .training.trainer: Trainer
    .training.training_data: DataOrder
    """,
)
