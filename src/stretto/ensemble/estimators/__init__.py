"""Ensembles of networks for tables, as estimators of scikit-learn.

``classifier`` and ``regressor`` are what users meet; ``estimator`` has what they have in common.
"""
