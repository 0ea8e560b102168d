"""Model files: everything an estimator has learnt, in a form that cannot execute code."""

from polyfm.persistence.container import ModelFileError
from polyfm.persistence.files import SavedModel, load_model, load_pipeline, save_model

__all__ = ["ModelFileError", "SavedModel", "load_model", "load_pipeline", "save_model"]
