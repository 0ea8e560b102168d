"""``polyfm train``."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import sys
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from polyfm.cli import _flags
from polyfm.cli._encoding import add_encoding, numeric, sets
from polyfm.cli._files import (
    TABLES,
    Source,
    add_source,
    as_wide_as,
    check_writable,
    opened,
    read_sparse,
    read_table,
    size_of,
)
from polyfm.cli._models import say
from polyfm.data import HashingEncoder, OneHotFieldEncoder, VocabularyEncoder
from polyfm.data._table_encoder import TableEncoder
from polyfm.data.frames import read_table as as_table
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
from polyfm.persistence import save_model

_FAMILIES: dict[str, dict[str, type]] = {
    "fm": {"regression": FMRegressor, "classification": FMClassifier},
    "polynomial-network": {
        "regression": PolynomialNetworkRegressor,
        "classification": PolynomialNetworkClassifier,
    },
    "convex-fm": {"regression": ConvexFMRegressor, "classification": ConvexFMClassifier},
    "ftrl": {"regression": FTRLRegressor, "classification": FTRLClassifier},
    "hierarchical-fm": {
        "regression": HierarchicalFMRegressor,
        "classification": HierarchicalFMClassifier,
    },
    "pqr": {"regression": PQRRegressor, "classification": PQRClassifier},
    "difacto": {"regression": DiFactoRegressor, "classification": DiFactoClassifier},
}
# With a default seed the same command gives the same model.
_DEFAULTS = {"random_state": 0}
_EPILOG = """examples:
  polyfm train income.csv --target income --model income.polyfm
  polyfm train ratings.csv --target rating --numeric user=category --rank 16 --model r.polyfm
  polyfm train movies.csv --target rating --sets 'genres=|' --model m.polyfm
  polyfm train train.svm --task classification --validation valid.svm --order 3 --model c.polyfm

Tables (CSV, Parquet): text columns become one feature per category, sets one per element. Columns
of whole numbers with five rows or more per distinct number are taken as categories, too (codes,
identifiers, ages); other numbers are cut into 10 quantile bins, which neither outliers nor missing
cells can harm. --numeric says otherwise for one column or for all. The encoder is kept in the
model file.

Penalties: --alpha and --beta take one number, or one for each field (column of the table, field of
the libffm file): --beta 10,auto,30 in the order of the columns, --beta 'user=10,film=30' by name.

Task: auto means classification for text, truth values and targets of exactly two values, else
regression.

Estimators: what --help says of a flag is about fm. The other estimators have flags of the same
names, with defaults of their own, and the flags whose help names them.

Validation: rows are held out as --early-stopping and --validation-fraction say, unless
--validation names a file. Ctrl-C ends training and saves what was learnt so far.
"""


class Data(NamedTuple):
    """Rows to learn from, and how they were made."""

    X: Any
    target: NDArray[Any]
    encoder: TableEncoder | None
    notes: dict[str, Any]
    fields: NDArray[np.int64] | None
    """The field of each feature, where the file tells it."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add description and arguments."""
    parser.description = "Train a factorization machine on a file and save it."
    parser.epilog = _EPILOG
    add_source(parser)
    parser.add_argument("--target", metavar="COLUMN", help="what to predict, in a table")
    parser.add_argument(
        "--task", choices=("auto", "regression", "classification"), default="auto",
        help="numbers or labels (default: auto, see below)",
    )  # fmt: skip
    parser.add_argument("--model", required=True, metavar="MODEL", help="the file to write")
    parser.add_argument("--validation", metavar="FILE", help="rows to judge each epoch by")
    parser.add_argument(
        "--predict-only", action="store_true",
        help="keep in the model file what predictions need and no more: about half the size",
    )  # fmt: skip
    encoding = parser.add_argument_group("encoding of tables")
    add_encoding(encoding)
    encoding.add_argument(
        "--encoder", choices=("onehot", "vocabulary", "hashing"), default="onehot",
        help="a feature for each category, in a table that is complete, or one that can take more "
        "later; or a hash of it (default: onehot)",
    )  # fmt: skip
    encoding.add_argument(
        "--bits", "--n-bits", type=int, default=20, metavar="B", dest="n_bits",
        help="of --encoder hashing, so that there are 2^B features (default: 20)",
    )  # fmt: skip
    encoding.add_argument(
        "--zero-based", type=_flags.value_of, default="auto", metavar="{auto,true,false}",
        help="whether indices of svmlight and libffm files start at 0 (default: auto)",
    )  # fmt: skip
    group = parser.add_argument_group("model and training")
    group.add_argument(
        "--estimator", choices=tuple(_FAMILIES), default="fm",
        help="the kind of model (default: fm)",
    )  # fmt: skip
    _flags.add_flags(group, _FAMILIES["fm"], _DEFAULTS)
    told = set(_flags.documented(FMRegressor)) | set(_flags.documented(FMClassifier))
    for family, estimators in _FAMILIES.items():
        own = {family: estimators["regression"]}
        _flags.add_flags(group, own, _DEFAULTS, besides=told)
        told |= set(_flags.documented(estimators["regression"]))


def run(args: argparse.Namespace) -> None:
    """Train."""
    check_writable(args.model, args.file, args.validation)
    try:
        _train(args)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(str(stop) or "no model was saved") from None


def _train(args: argparse.Namespace) -> None:
    data = _read(args)
    model = _estimator(args, data.target).set_params(**_fields(args, data))
    data.notes["task"] = "classification" if is_classifier(model) else "regression"
    say(
        args,
        f"{data.X.shape[0]:,} rows, {data.X.shape[1]:,} features, "
        f"{data.notes['task']}{_classes(model, data.target)}",
    )
    validation = _read_validation(args, data)
    started = time.perf_counter()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            model.fit(data.X, data.target, **validation)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_saved_part(args, model, data)) from None
    _save(args, model, data)
    say(args, f"trained {_outcome(model)} in {time.perf_counter() - started:.1f} s")
    say(args, f"saved to {args.model} ({size_of(args.model)})")


def _read(args: argparse.Namespace) -> Data:
    with opened(args.file, args.format, args.separator) as source:
        if source.format not in TABLES:
            content, zero_based = read_sparse(
                source._replace(zero_based=args.zero_based), labels=True
            )
            notes = {"format": source.format, "zero_based": zero_based}
            return Data(
                content.rows, _labelled(source, content.target), None, notes, content.fields
            )
        if args.target is None:
            raise ValueError(f"{source.path} is a table: name the column to predict by --target.")
        content = read_table(source, args.target)
        encoder = _encoder(args, content.rows)
        X = encoder.fit_transform(content.rows)
        notes = {"format": source.format, "target": args.target}
        return Data(X, _labelled(source, content.target), encoder, notes, encoder.fields_)


def _encoder(args: argparse.Namespace, rows: Any) -> TableEncoder:
    how = numeric(args.numeric, as_table(rows).columns)
    common: dict[str, Any] = {"numeric": how, "n_bins": args.n_bins, "sets": sets(args.sets)}
    if args.encoder == "hashing":
        if args.min_count != 1:
            raise ValueError(
                "--min-count is for --encoder onehot and vocabulary: a hash needs no list."
            )
        return HashingEncoder(args.n_bits, **common)
    kind = VocabularyEncoder if args.encoder == "vocabulary" else OneHotFieldEncoder
    return kind(min_count=args.min_count, **common)


def _labelled(source: Source, target: NDArray[Any] | None) -> NDArray[Any]:
    if target is None or len(target) == 0:
        raise ValueError(f"{source.path} has no rows.")
    return target


def _read_validation(args: argparse.Namespace, data: Data) -> dict[str, Any]:
    if args.validation is None:
        return {}
    estimator: Any = _FAMILIES[args.estimator][data.notes["task"]]
    if "X_val" not in inspect.signature(estimator.fit).parameters:
        raise ValueError(
            f"--validation is of no use to --estimator {args.estimator}, which stops by its "
            "duality gap: judge the model with polyfm evaluate."
        )
    with opened(args.validation, args.format, args.separator) as source:
        if (source.format in TABLES) != (data.encoder is not None):
            raise ValueError(f"{source.path} has another kind of format than {args.file}.")
        if data.encoder is not None:
            content = read_table(source, args.target)
            X = data.encoder.transform(content.rows)
        else:
            base = data.notes["zero_based"]
            content, _ = read_sparse(source._replace(zero_based=base), labels=True)
            X, _ = as_wide_as(content.rows, data.X.shape[1])
        return {"X_val": X, "y_val": _labelled(source, content.target)}


def _estimator(args: argparse.Namespace, target: NDArray[Any]) -> Any:
    task = "classification" if _is_classification(args.task, target) else "regression"
    family = _FAMILIES[args.estimator]
    _refuse_foreign_flags(args, task)
    parameters = _flags.given(args, task, family)
    return family[task](**parameters, verbose=int(not args.quiet))


def _refuse_foreign_flags(args: argparse.Namespace, task: str) -> None:
    """Raise a ValueError for a flag that only another estimator has."""
    own = _flags.documented(_FAMILIES[args.estimator][task])
    owners: dict[str, list[str]] = {}
    for family, estimators in _FAMILIES.items():
        for name in _flags.documented(estimators[task]):
            owners.setdefault(name, []).append(family)
    for name, families in owners.items():
        if name not in own and name not in _DEFAULTS and hasattr(args, name):
            raise ValueError(
                f"--{name.replace('_', '-')} is for --estimator {' or '.join(families)}, but the "
                f"estimator is {args.estimator}."
            )


def _fields(args: argparse.Namespace, data: Data) -> dict[str, Any]:
    """Return the parameter ``fields`` if there are penalties per field."""
    given = [type(getattr(args, name, None)) for name in ("alpha", "beta")]
    takes_fields = "fields" in inspect.signature(_FAMILIES[args.estimator]["regression"]).parameters
    if not takes_fields or (list not in given and dict not in given):
        return {}
    if data.fields is None:
        raise ValueError(
            f"{args.file} has no fields, as tables and libffm files have (hashed tables do not): "
            "give --alpha and --beta one number."
        )
    if dict not in given:
        return {"fields": data.fields}
    if data.encoder is None:
        return {"fields": data.fields.astype(str)}
    return {"fields": np.array(data.encoder.field_names_)[data.fields]}


def _is_classification(task: str, target: NDArray[Any]) -> bool:
    if task != "auto":
        return task == "classification"
    return target.dtype.kind not in "iuf" or len(np.unique(target)) == 2


def _classes(model: Any, target: NDArray[Any]) -> str:
    if not is_classifier(model):
        return f" of {np.mean(target):.4g} on average" if target.dtype.kind in "iuf" else ""
    labels, counts = np.unique(target, return_counts=True)
    if len(labels) > 5:
        return f" of {len(labels)} classes"
    named = (f"{label} ({count:,})" for label, count in zip(labels, counts, strict=True))
    return f" of {', '.join(named)}"


def _save(args: argparse.Namespace, model: Any, data: Data) -> None:
    model.set_params(verbose=0)
    save_model(
        model,
        args.model,
        include_state=not args.predict_only,
        encoder=data.encoder,
        notes=data.notes,
    )


def _saved_part(args: argparse.Namespace, model: Any, data: Data) -> str:
    """Save what an interrupted training has learnt; return what to say about it."""
    if not getattr(model, "n_iter_", 0):
        return "no epoch was complete, so no model was saved"
    _save(args, model, data)
    return f"the model as it was after epoch {model.n_iter_} was saved to {args.model}"


def _outcome(model: Any) -> str:
    validated = [name for name in model.history_ if name.startswith("validation_")]
    if not validated:
        return f"{model.n_iter_} epochs, training loss {model.history_['loss'][-1]:.5f}"
    name = validated[0].removeprefix("validation_").replace("_", " ")
    return (
        f"{model.n_iter_} epochs, the best is {model.best_iteration_} "
        f"with a validation {name} of {model.best_score_:.5f}"
    )
