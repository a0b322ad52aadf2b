"""Ensembles of models: one object, what its predictions say together, and what they are worth.

``ensemble`` holds and runs members. ``combination`` of predictions and ``selection`` of members and
weights; ``uncertainty`` and ``diversity`` of members; ``scores``, ``confusion``,
``calibration_error``, ``regression`` and ``detection``: what predictions are worth;
``calibration``, ``binning`` and ``conformal``: how to make their probabilities true, and
``intervals`` what is predicted of numbers. ``plots`` draws members, reliability and uncertainty.
``estimators`` are scikit-learn's; ``sweeping`` tries many configurations.
"""

from stretto._engine.core.lazy import imports_on_demand

with imports_on_demand(__name__):
    from stretto.ensemble import layers as layers, plots as plots
    from stretto.ensemble.averaging import AverageState as AverageState, EMA as EMA, SWA as SWA
    from stretto.ensemble.batch_statistics import update_batch_norm as update_batch_norm
    from stretto.ensemble.binning import (
        HistogramBinning as HistogramBinning,
        Isotonic as Isotonic,
        fit_histogram_binning as fit_histogram_binning,
        fit_isotonic as fit_isotonic,
    )
    from stretto.ensemble.calibration import (
        Platt as Platt,
        Temperature as Temperature,
        VectorScaling as VectorScaling,
        fit_platt as fit_platt,
        fit_temperature as fit_temperature,
        fit_vector_scaling as fit_vector_scaling,
    )
    from stretto.ensemble.calibration_error import (
        Binning as Binning,
        BrierParts as BrierParts,
        Reliability as Reliability,
        brier_decomposition as brier_decomposition,
        classwise_ece as classwise_ece,
        ece as ece,
        mce as mce,
        reliability as reliability,
    )
    from stretto.ensemble.combination import (
        geometric_mean as geometric_mean,
        log_mean as log_mean,
        logit_mean as logit_mean,
        majority_vote as majority_vote,
        maximum as maximum,
        mean as mean,
        median as median,
        product_of_experts as product_of_experts,
        trimmed_mean as trimmed_mean,
        vote_shares as vote_shares,
        weighted_mean as weighted_mean,
    )
    from stretto.ensemble.conformal import (
        ConformalSets as ConformalSets,
        fit_conformal as fit_conformal,
    )
    from stretto.ensemble.confusion import (
        balanced_accuracy as balanced_accuracy,
        confusion_matrix as confusion_matrix,
        f1 as f1,
    )
    from stretto.ensemble.detection import (
        aupr as aupr,
        auroc as auroc,
        fpr_at_tpr as fpr_at_tpr,
        ood_aupr as ood_aupr,
        ood_auroc as ood_auroc,
        ood_fpr as ood_fpr,
    )
    from stretto.ensemble.diversity import (
        cohen_kappa as cohen_kappa,
        pairwise_disagreement as pairwise_disagreement,
        q_statistic as q_statistic,
    )
    from stretto.ensemble.ensemble import Ensemble as Ensemble
    from stretto.ensemble.estimators.classifier import EnsembleClassifier as EnsembleClassifier
    from stretto.ensemble.estimators.regressor import EnsembleRegressor as EnsembleRegressor
    from stretto.ensemble.intervals import (
        ConformalIntervals as ConformalIntervals,
        VarianceScaling as VarianceScaling,
        fit_conformal_intervals as fit_conformal_intervals,
        fit_variance_scaling as fit_variance_scaling,
    )
    from stretto.ensemble.merging import (
        add_task_vectors as add_task_vectors,
        dare as dare,
        diagonal_fisher as diagonal_fisher,
        fisher_average as fisher_average,
        task_vector as task_vector,
        ties as ties,
    )
    from stretto.ensemble.paths import Barrier as Barrier, barrier as barrier
    from stretto.ensemble.regression import (
        crps_ensemble as crps_ensemble,
        crps_gaussian as crps_gaussian,
        gaussian_nll as gaussian_nll,
        interval_coverage as interval_coverage,
        mae as mae,
        pit_ensemble as pit_ensemble,
        pit_gaussian as pit_gaussian,
        r2 as r2,
        rmse as rmse,
    )
    from stretto.ensemble.scores import (
        accuracy as accuracy,
        brier as brier,
        nll as nll,
        nll_from_logits as nll_from_logits,
        top_k_accuracy as top_k_accuracy,
    )
    from stretto.ensemble.selection import (
        Selection as Selection,
        greedy_selection as greedy_selection,
        stacking_weights as stacking_weights,
    )
    from stretto.ensemble.snapshots import SnapshotState as SnapshotState, Snapshots as Snapshots
    from stretto.ensemble.soups import (
        Soup as Soup,
        greedy_soup as greedy_soup,
        uniform_soup as uniform_soup,
    )
    from stretto.ensemble.swag import SWAG as SWAG, SWAGState as SWAGState
    from stretto.ensemble.sweeping import Sweep as Sweep, sweep as sweep
    from stretto.ensemble.training import (
        Callback as Callback,
        Checkpoints as Checkpoints,
        ConsoleLogger as ConsoleLogger,
        CSVLogger as CSVLogger,
        DataOrder as DataOrder,
        Divergence as Divergence,
        DivergenceError as DivergenceError,
        DivergenceWarning as DivergenceWarning,
        EarlyStopping as EarlyStopping,
        Evaluator as Evaluator,
        Event as Event,
        Fitted as Fitted,
        Logger as Logger,
        TensorBoardLogger as TensorBoardLogger,
        TrackingLogger as TrackingLogger,
        TrainState as TrainState,
        Trainer as Trainer,
        divergences as divergences,
    )
    from stretto.ensemble.uncertainty import (
        TotalVariance as TotalVariance,
        confidence as confidence,
        disagreement as disagreement,
        energy_score as energy_score,
        expected_entropy as expected_entropy,
        margin as margin,
        mutual_information as mutual_information,
        pairwise_js as pairwise_js,
        pairwise_kl as pairwise_kl,
        predictive_entropy as predictive_entropy,
        total_variance as total_variance,
        variance as variance,
        variation_ratio as variation_ratio,
    )
