"""scikit-learn's base classes and checks; stand-ins that name the extra where it is missing.

So that the names exist everywhere, and only who makes an estimator needs scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

    multiclass: Any  # scikit-learn has no annotations, and what is inferred is not so
    utils: Any
    validation: Any
else:
    try:
        from sklearn import utils
        from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
        from sklearn.utils import multiclass, validation
    except ModuleNotFoundError as error:
        if error.name != "sklearn":  # it is there, and lacks something itself
            raise
        utils = multiclass = validation = None

        class BaseEstimator:
            """What an estimator is made from without scikit-learn: an error."""

            def __new__(cls, *args: Any, **kwargs: Any) -> BaseEstimator:
                """Raise the error."""
                raise ImportError(
                    f"{cls.__name__} is an estimator of scikit-learn, which is not installed: pip "
                    f"install 'stretto[sklearn]'"
                )

        class ClassifierMixin:
            """Nothing."""

        class RegressorMixin:
            """Nothing."""
