"""scikit-learn estimators."""

from polyfm.estimators.fm import FMClassifier, FMRegressor
from polyfm.estimators.polynomial_network import (
    PolynomialNetworkClassifier,
    PolynomialNetworkRegressor,
)

__all__ = [
    "FMClassifier",
    "FMRegressor",
    "PolynomialNetworkClassifier",
    "PolynomialNetworkRegressor",
]
