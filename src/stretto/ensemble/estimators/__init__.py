"""Ensembles of networks for tables, as estimators of scikit-learn.

``classifier`` and ``regressor`` are what users meet · ``estimator``: what they have in common ·
``bases``: scikit-learn's classes, or stand-ins where it is not installed · ``table_members``: the
rows of a table, weighted and standardized, and the members with their losses ·
``estimator_files``.
"""

from stretto.ensemble.estimators.classifier import EnsembleClassifier
from stretto.ensemble.estimators.regressor import EnsembleRegressor

__all__ = ["EnsembleClassifier", "EnsembleRegressor"]
