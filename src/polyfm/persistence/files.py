"""Saving and loading estimators."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import polyfm
from polyfm import estimators
from polyfm.data import HashingEncoder, OneHotFieldEncoder, VocabularyEncoder
from polyfm.data._table_encoder import TableEncoder
from polyfm.persistence.codec import Decoder, Encoder
from polyfm.persistence.consistency import check_consistent
from polyfm.persistence.container import ModelFileError, read_container, write_container
from polyfm.persistence.frozen import frozen

FORMAT_VERSION = 1
StrPath = str | os.PathLike[str]
_ENCODERS: dict[str, type[TableEncoder]] = {
    encoder.__name__: encoder for encoder in (OneHotFieldEncoder, VocabularyEncoder, HashingEncoder)
}


class SavedModel(NamedTuple):
    """What a model file holds."""

    encoder: TableEncoder | None
    """Turns a table into the model's features; None if the file has none."""
    model: Any
    """The estimator."""
    notes: dict[str, Any]
    """What the caller of :func:`save_model` noted."""


def save_model(
    model: Any,
    path: StrPath,
    *,
    include_state: bool = True,
    encoder: TableEncoder | None = None,
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Write a fitted estimator to a file.

    Parameters
    ----------
    model : FMRegressor or FMClassifier
        A fitted estimator.
    path : path
        The file, by custom ``*.polyfm``. A file of this name is replaced.
    include_state : bool, default=True
        Whether to keep what the update rule remembers, so that ``partial_fit`` and a warm start go
        on as if there had been no file. Without it the file is smaller, predicts the same and
        cannot be trained further.
    encoder : OneHotFieldEncoder, VocabularyEncoder or HashingEncoder, optional
        The fitted encoder of the model's features, stored beside it for :func:`load_pipeline`.
    notes : dict of str, optional
        Anything of yours that JSON can hold.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If ``model`` is not fitted.
    TypeError
        If ``model`` is no estimator of polyfm, or a parameter holds an object of your own, such as
        a loss that polyfm does not export.
    OSError
        If the file cannot be written. A file of this name is then as it was before.

    Notes
    -----
    The file has the safetensors format: the numbers as tensors, everything else as JSON. It is
    written beside its place and moved there when it is whole.

    Examples
    --------
    >>> import polyfm
    >>> polyfm.save_model(model, "ratings.polyfm")  # doctest: +SKIP
    >>> polyfm.load_model("ratings.polyfm").predict(X)  # doctest: +SKIP
    """
    write_model(model, Path(path), include_state=include_state, encoder=encoder, notes=notes)


def write_model(
    model: Any,
    path: Path,
    *,
    include_state: bool = True,
    encoder: OneHotFieldEncoder | None = None,
    notes: Mapping[str, Any] | None = None,
    training: dict[str, Any] | None = None,
) -> None:
    """Do what :func:`save_model` says; ``training`` is what a checkpoint needs besides."""
    if type(model) not in _estimators().values():
        raise TypeError(
            f"save_model takes {' or '.join(_estimators())}, got {type(model).__name__}. A "
            "pipeline is saved as its last step, with its encoder of tables given by encoder=."
        )
    model._check_is_fitted()
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(path.parent))
    codec = Encoder()
    description = {
        "params": codec.encode(model.get_params(deep=False), "params"),
        "attributes": codec.encode(_attributes(model, include_state), "fitted"),
        "encoder": None if encoder is None else codec.encode(_json_array(encoder), "encoder"),
        "notes": dict(notes or {}),
        "training": codec.encode(training, "training"),
    }
    texts = {
        "format": "polyfm",
        "format_version": str(FORMAT_VERSION),
        "polyfm_version": polyfm.__version__,
        "class": type(model).__name__,
        "description": json.dumps(description, allow_nan=False),
    }
    write_container(path, codec.tensors, texts)


def load_model(path: StrPath) -> Any:
    """Read an estimator that :func:`save_model` wrote.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    FMRegressor or FMClassifier
        It predicts the same bits as the one that was saved.

    Raises
    ------
    ModelFileError
        A ValueError: if the file is no model file, is damaged, or comes from a newer polyfm.
    OSError
        If the file cannot be read.

    Notes
    -----
    Nothing in the file is executed: it can only choose among polyfm's own classes, and shapes are
    checked before compiled code sees them.
    """
    return load_pipeline(path).model


def load_pipeline(path: StrPath) -> SavedModel:
    """Read an estimator with the encoder and the notes that were saved with it.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    SavedModel
        A named tuple ``(encoder, model, notes)``; ``encoder`` is None if there is none.

    Raises
    ------
    ModelFileError
        A ValueError: if the file is no model file, is damaged, or comes from a newer polyfm.
    OSError
        If the file cannot be read.
    """
    return _read(Path(path))[0]


def read_model(path: Path) -> tuple[Any, dict[str, Any] | None]:
    """Return an estimator and, if the file is a checkpoint, what its training needs to go on."""
    saved, training = _read(path)
    return saved.model, training


def _read(path: Path) -> tuple[SavedModel, dict[str, Any] | None]:
    tensors, texts = read_container(path)
    _check_format(path, texts)
    try:
        description = json.loads(texts["description"])
        codec = Decoder(tensors)
        model = _estimators()[texts["class"]](**codec.decode(description["params"]))
        model.__dict__.update(codec.decode(description["attributes"]))
        check_consistent(model)
        encoder = _encoder(codec.decode(description["encoder"]))
        training = codec.decode(description["training"])
        return SavedModel(encoder, model, description["notes"]), training
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except (
        KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError,
    ) as error:  # fmt: skip
        raise ModelFileError(
            f"{path} is a damaged model file, or one of another version of polyfm "
            f"({type(error).__name__}: {error})."
        ) from error


def _estimators() -> dict[str, Any]:
    return {name: getattr(estimators, name) for name in estimators.__all__}


def _attributes(model: Any, include_state: bool) -> dict[str, Any]:
    """What fitting has left on an estimator."""
    parameters = model.get_params(deep=False)
    fitted = {name: value for name, value in vars(model).items() if name not in parameters}
    if not include_state:
        fitted["_learners"] = [frozen(learner) for learner in fitted["_learners"]]
        if "_waiting" in fitted:
            fitted["_waiting"] = None
    return fitted


def _json_array(encoder: TableEncoder) -> Any:
    if type(encoder) not in _ENCODERS.values():
        raise TypeError(
            f"encoder must be one of {', '.join(_ENCODERS)}, got {type(encoder).__name__}."
        )
    return np.frombuffer(encoder.to_json().encode(), dtype=np.uint8)


def _encoder(state: Any) -> TableEncoder | None:
    if state is None:
        return None
    return encoder_of(state.tobytes().decode())


def encoder_of(text: str) -> TableEncoder:
    """Build the encoder that has written itself as JSON."""
    return _ENCODERS[json.loads(text)["encoder"]].from_json(text)


def _check_format(path: Path, texts: Mapping[str, str]) -> None:
    if texts.get("format") != "polyfm":
        raise ModelFileError(f"{path} is a safetensors file, but no polyfm model.")
    version = texts.get("format_version", "")
    if not version.isdecimal() or int(version) > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {version or 'unknown'}, written by polyfm "
            f"{texts.get('polyfm_version', '?')}; this is polyfm {polyfm.__version__}, which reads "
            f"versions up to {FORMAT_VERSION}. Upgrade polyfm: pip install -U polyfm"
        )
    if texts.get("class") not in _estimators():
        raise ModelFileError(
            f"{path} holds a {texts.get('class')!r}, which this polyfm ({polyfm.__version__}) does "
            f"not know; it knows {', '.join(_estimators())}."
        )
