"""Feature interactions on sparse data: factorization machines of any order."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from polyfm.estimators import (
        ConvexFMClassifier,
        ConvexFMRegressor,
        DiFactoClassifier,
        DiFactoRegressor,
        FMClassifier,
        FMRegressor,
        FTRLClassifier,
        FTRLRegressor,
        HierarchicalFMClassifier,
        HierarchicalFMRegressor,
        PolynomialNetworkClassifier,
        PolynomialNetworkRegressor,
        PQRClassifier,
        PQRRegressor,
    )
    from polyfm.estimators.checkpoints import Checkpoint
    from polyfm.exceptions import DivergenceError
    from polyfm.persistence import ModelFileError, load_model, load_pipeline, save_model

# Public names are imported when they are first used: `import polyfm` costs next to nothing.
_HOMES = {
    "Checkpoint": "polyfm.estimators.checkpoints",
    "ConvexFMClassifier": "polyfm.estimators",
    "ConvexFMRegressor": "polyfm.estimators",
    "DiFactoClassifier": "polyfm.estimators",
    "DiFactoRegressor": "polyfm.estimators",
    "DivergenceError": "polyfm.exceptions",
    "FMClassifier": "polyfm.estimators",
    "FMRegressor": "polyfm.estimators",
    "FTRLClassifier": "polyfm.estimators",
    "FTRLRegressor": "polyfm.estimators",
    "HierarchicalFMClassifier": "polyfm.estimators",
    "HierarchicalFMRegressor": "polyfm.estimators",
    "ModelFileError": "polyfm.persistence",
    "PQRClassifier": "polyfm.estimators",
    "PQRRegressor": "polyfm.estimators",
    "PolynomialNetworkClassifier": "polyfm.estimators",
    "PolynomialNetworkRegressor": "polyfm.estimators",
    "load_model": "polyfm.persistence",
    "load_pipeline": "polyfm.persistence",
    "save_model": "polyfm.persistence",
}
_PACKAGES = (
    *("data", "datasets", "inspection", "kernels", "losses", "online", "penalties"),
    *("persistence", "updates"),
)

__all__ = [
    "Checkpoint",
    "ConvexFMClassifier",
    "ConvexFMRegressor",
    "DiFactoClassifier",
    "DiFactoRegressor",
    "DivergenceError",
    "FMClassifier",
    "FMRegressor",
    "FTRLClassifier",
    "FTRLRegressor",
    "HierarchicalFMClassifier",
    "HierarchicalFMRegressor",
    "ModelFileError",
    "PQRClassifier",
    "PQRRegressor",
    "PolynomialNetworkClassifier",
    "PolynomialNetworkRegressor",
    "__version__",
    "load_model",
    "load_pipeline",
    "save_model",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _PACKAGES:
        return importlib.import_module(f"polyfm.{name}")
    raise AttributeError(f"module 'polyfm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])
