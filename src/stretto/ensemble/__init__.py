"""Ensembles of models: what their predictions are worth.

Layer 7. ``scores``: accuracy, negative log-likelihood, Brier score, calibration, uncertainty.
"""

from stretto.ensemble.scores import (
    Reliability,
    accuracy,
    brier,
    ece,
    mutual_information,
    nll,
    predictive_entropy,
    reliability,
)

__all__ = [
    "accuracy",
    "nll",
    "brier",
    "ece",
    "Reliability",
    "reliability",
    "predictive_entropy",
    "mutual_information",
]
