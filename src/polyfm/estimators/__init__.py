"""scikit-learn estimators."""

from polyfm.estimators.fm import FMClassifier, FMRegressor

__all__ = ["FMClassifier", "FMRegressor"]
