"""scikit-learn estimators."""

from polyfm.estimators.convex import ConvexFMClassifier, ConvexFMRegressor
from polyfm.estimators.fm import FMClassifier, FMRegressor
from polyfm.estimators.polynomial_network import (
    PolynomialNetworkClassifier,
    PolynomialNetworkRegressor,
)

__all__ = [
    "ConvexFMClassifier",
    "ConvexFMRegressor",
    "FMClassifier",
    "FMRegressor",
    "PolynomialNetworkClassifier",
    "PolynomialNetworkRegressor",
]
