"""Ensembles of models: one object, what its predictions say together, and what they are worth.

``ensemble`` holds and runs members. ``combination`` of predictions and ``selection`` of members and
weights; ``uncertainty`` and ``diversity`` of members; ``scores``, ``confusion``,
``calibration_error``, ``regression`` and ``detection``: what predictions are worth;
``calibration``, ``binning`` and ``conformal``: how to make their probabilities true.
"""

# ruff: noqa: F403 (each file's __all__ says what it gives)

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import names_on_demand

if TYPE_CHECKING:
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
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "stretto.ensemble": "layers",
            "stretto.ensemble.averaging": "EMA SWA AverageState",
            "stretto.ensemble.batch_statistics": "update_batch_norm",
            "stretto.ensemble.binning": "HistogramBinning Isotonic fit_histogram_binning "
            "fit_isotonic",
            "stretto.ensemble.calibration": "Platt Temperature VectorScaling fit_platt "
            "fit_temperature fit_vector_scaling",
            "stretto.ensemble.calibration_error": "Binning BrierParts Reliability "
            "brier_decomposition classwise_ece ece mce reliability",
            "stretto.ensemble.combination": "geometric_mean log_mean logit_mean majority_vote "
            "maximum mean median product_of_experts trimmed_mean vote_shares weighted_mean",
            "stretto.ensemble.conformal": "ConformalSets fit_conformal",
            "stretto.ensemble.confusion": "balanced_accuracy confusion_matrix f1",
            "stretto.ensemble.detection": "aupr auroc fpr_at_tpr ood_aupr ood_auroc ood_fpr",
            "stretto.ensemble.diversity": "cohen_kappa pairwise_disagreement q_statistic",
            "stretto.ensemble.ensemble": "Ensemble",
            "stretto.ensemble.merging": "add_task_vectors dare diagonal_fisher fisher_average "
            "task_vector ties",
            "stretto.ensemble.paths": "Barrier barrier",
            "stretto.ensemble.regression": "crps_ensemble crps_gaussian gaussian_nll "
            "interval_coverage mae pit_ensemble pit_gaussian r2 rmse",
            "stretto.ensemble.scores": "accuracy brier nll nll_from_logits top_k_accuracy",
            "stretto.ensemble.selection": "Selection greedy_selection stacking_weights",
            "stretto.ensemble.snapshots": "SnapshotState Snapshots",
            "stretto.ensemble.soups": "Soup greedy_soup uniform_soup",
            "stretto.ensemble.swag": "SWAG SWAGState",
            "stretto.ensemble.training": "Checkpoints DataOrder Divergence DivergenceError "
            "DivergenceWarning EarlyStopping Evaluator Fitted Trainer TrainState divergences",
            "stretto.ensemble.uncertainty": "TotalVariance confidence disagreement energy_score "
            "expected_entropy margin mutual_information pairwise_js pairwise_kl "
            "predictive_entropy total_variance variance variation_ratio",
        },
    )
    __all__ = [name for name in __dir__() if not name.startswith("_")]
