"""scikit-learn estimators."""

from polyfm.estimators.convex import ConvexFMClassifier, ConvexFMRegressor
from polyfm.estimators.difacto import DiFactoClassifier, DiFactoRegressor
from polyfm.estimators.fm import FMClassifier, FMRegressor
from polyfm.estimators.ftrl import FTRLClassifier, FTRLRegressor
from polyfm.estimators.hierarchical import HierarchicalFMClassifier, HierarchicalFMRegressor
from polyfm.estimators.polynomial_network import (
    PolynomialNetworkClassifier,
    PolynomialNetworkRegressor,
)
from polyfm.estimators.pqr import PQRClassifier, PQRRegressor

__all__ = [
    "ConvexFMClassifier",
    "ConvexFMRegressor",
    "DiFactoClassifier",
    "DiFactoRegressor",
    "FMClassifier",
    "FMRegressor",
    "FTRLClassifier",
    "FTRLRegressor",
    "HierarchicalFMClassifier",
    "HierarchicalFMRegressor",
    "PQRClassifier",
    "PQRRegressor",
    "PolynomialNetworkClassifier",
    "PolynomialNetworkRegressor",
]
