"""``polyfm train``."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from polyfm.cli import _flags
from polyfm.cli._encoding import add_encoding
from polyfm.cli._files import TABLES, check_writable, size_of
from polyfm.cli._models import ModelRows, add_files, say
from polyfm.cli._progress import Progress
from polyfm.cli._reading import add_layout, add_on_error, is_dataset, one_format
from polyfm.cli._training_rows import Rows, takes_sources, training_rows
from polyfm.data.source import Source
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
from polyfm.persistence import SavedModel, save_model

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
  polyfm train clicks.data --model c.polyfm --checkpoint run.polyfm --every 10000000 --resume
  zcat day_*.svm.gz | polyfm train - --n-features 4194304 --max-iter 1 --model c.polyfm

Size: files of more than 256 MB (64 MB of packed ones) are learnt in parts, as a dataset of polyfm
convert is. Without a dataset, they are first written to a temporary one; not so with --max-iter 1
and columns whose number is known (--n-features; --encoder hashing; Vowpal Wabbit text), which are
learnt as they are read, and may come from a pipe. --checkpoint and --max-memory ask for parts, too.
In parts, --encoder onehot, which has to see a whole table first, gives way to vocabulary.

Checkpoints: FILE is a model file, replaced as a whole every so many rows. A training that was
killed goes on from it with --resume, to the same model as if it had not been.

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


def configure(parser: argparse.ArgumentParser) -> None:
    """Add description and arguments."""
    parser.description = "Train a factorization machine on a file and save it."
    parser.epilog = _EPILOG
    add_files(parser)
    add_layout(parser)
    add_on_error(parser)
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
        "--encoder", choices=("onehot", "vocabulary", "hashing"),
        help="a feature for each category, in a table that is complete, or one that can take more "
        "later; or a hash of it (default: onehot)",
    )  # fmt: skip
    encoding.add_argument(
        "--bits", "--n-bits", type=int, metavar="B", dest="n_bits",
        help="there are 2^B features by --encoder hashing (default: 20) or in Vowpal Wabbit text "
        "(default: 18)",
    )  # fmt: skip
    _add_size(parser.add_argument_group("data of any size"))
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


def _add_size(group: Any) -> None:
    group.add_argument(
        "--n-features", type=int, metavar="N",
        help="number of columns of svmlight and libffm files, where it is known",
    )  # fmt: skip
    group.add_argument("--checkpoint", metavar="FILE", help="where to save what is done so far")
    group.add_argument(
        "--every", type=int, metavar="ROWS",
        help="rows from one checkpoint to the next (default: one every 10 minutes)",
    )  # fmt: skip
    group.add_argument(
        "--resume", action="store_true", help="go on from the checkpoint, if there is one"
    )
    group.add_argument(
        "--max-memory", metavar="SIZE",
        help="what training may take, as in 2GB: parameters, copies and rows in memory",
    )  # fmt: skip


def run(args: argparse.Namespace) -> None:
    """Train."""
    _check(args)
    try:
        _train(args)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(str(stop) or "no model was saved") from None


def _check(args: argparse.Namespace) -> None:
    check_writable(args.model, *args.files, args.validation)
    if args.checkpoint is not None:
        check_writable(args.checkpoint, *args.files, args.validation)
        if Path(args.checkpoint).absolute() == Path(args.model).absolute():
            raise ValueError("--checkpoint and --model need a file each.")
    for name in ("every", "resume"):
        if getattr(args, name) and args.checkpoint is None:
            raise ValueError(f"--{name} is about a checkpoint: name it by --checkpoint.")
    if args.every is not None and args.every < 1:
        raise ValueError(f"--every must be at least 1, got {args.every}.")
    for name in ("checkpoint", "max_memory"):
        if getattr(args, name) is not None and not takes_sources(_FAMILIES[args.estimator]):
            flag = name.replace("_", "-")
            raise ValueError(
                f"--{flag} is of no use to --estimator {args.estimator}, which needs all rows at "
                "once."
            )


def _train(args: argparse.Namespace) -> None:
    progress = Progress(args, None)
    with training_rows(args, _FAMILIES[args.estimator], progress) as data:
        model = _estimator(args, data).set_params(**_fields(args, data))
        data.notes["task"] = "classification" if is_classifier(model) else "regression"
        _tell(args, data)
        options = {**_validation(args, data), **_for_sources(args, data)}
        progress.restart()
        try:
            with contextlib.redirect_stdout(sys.stderr):
                if data.target is None:
                    model.fit(data.X, **options)
                elif data.weight is None:
                    model.fit(data.X, data.target, **options)
                else:
                    model.fit(data.X, data.target, data.weight, **options)
        except ValueError as error:
            told = str(error).replace("say resume=False", "leave out --resume")
            raise (error if told == str(error) else ValueError(told)) from None
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_saved_part(args, model, data)) from None
        finally:
            progress.erase()
    _save(args, model, data)
    say(args, f"trained {_outcome(model, progress)} in {progress.seconds:.1f} s")
    say(args, f"saved to {args.model} ({size_of(args.model)})")


def _tell(args: argparse.Namespace, data: Rows) -> None:
    task = data.notes["task"]
    words = data.targets.words(task == "classification")
    if data.n_rows is None:
        say(args, f"{data.n_features:,} features, {task}{words} in the first rows")
    else:
        say(args, f"{data.n_rows:,} rows, {data.n_features:,} features, {task}{words}")


def _for_sources(args: argparse.Namespace, data: Rows) -> dict[str, Any]:
    """Return what ``fit`` is told about rows that come from a source."""
    if data.target is not None:
        return {}
    options: dict[str, Any] = {"max_memory": args.max_memory}
    if args.checkpoint is not None:
        if not isinstance(data.X, Source) and not hasattr(data.X, "fingerprint"):
            raise ValueError("--checkpoint needs rows that can be read again, not a pipe.")
        options["checkpoint"] = Checkpoint(args.checkpoint, rows=args.every, resume=args.resume)
        if args.resume and not Path(args.checkpoint).exists():
            say(args, f"{args.checkpoint} does not exist yet: training begins anew")
    return options


def _validation(args: argparse.Namespace, data: Rows) -> dict[str, Any]:
    if args.validation is None:
        return {}
    estimator: Any = _FAMILIES[args.estimator][data.notes["task"]]
    if "X_val" not in inspect.signature(estimator.fit).parameters:
        raise ValueError(
            f"--validation is of no use to --estimator {args.estimator}, which stops by its "
            "duality gap: judge the model with polyfm evaluate."
        )
    if not is_dataset(args.validation):
        layout = one_format([args.validation], args.format)
        if (layout in TABLES) != (data.encoder is not None):
            names = " ".join(args.files)
            raise ValueError(f"{args.validation} has another kind of format than {names}.")
    like = SimpleNamespace(n_features_in_=data.n_features)
    saved = SavedModel(data.encoder, like, data.notes)
    rows = ModelRows(args, [args.validation], saved, labels=True, target=args.target).whole()
    given = {"X_val": rows.X, "y_val": rows.target}
    return given if rows.weight is None else {**given, "sample_weight_val": rows.weight}


def _estimator(args: argparse.Namespace, data: Rows) -> Any:
    task = args.task
    if task == "auto":
        task = "classification" if data.targets.are_labels else "regression"
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


def _fields(args: argparse.Namespace, data: Rows) -> dict[str, Any]:
    """Return the parameter ``fields`` if there are penalties per field."""
    given = [type(getattr(args, name, None)) for name in ("alpha", "beta")]
    takes_fields = "fields" in inspect.signature(_FAMILIES[args.estimator]["regression"]).parameters
    if not takes_fields or (list not in given and dict not in given):
        return {}
    if data.fields is None:
        raise ValueError(
            f"{' '.join(args.files)} has no fields, as tables and libffm files have (hashed tables "
            "do not, nor rows that are learnt as they are read): give --alpha and --beta one "
            "number."
        )
    if dict not in given:
        return {"fields": data.fields}
    if data.field_names is None:
        return {"fields": data.fields.astype(str)}
    # Columns of no field, or of several, have the number -1.
    return {"fields": np.array([*data.field_names, ""])[data.fields]}


def _save(args: argparse.Namespace, model: Any, data: Rows) -> None:
    model.set_params(verbose=0)
    save_model(
        model,
        args.model,
        include_state=not args.predict_only,
        encoder=data.encoder,
        notes=data.notes,
    )


def _saved_part(args: argparse.Namespace, model: Any, data: Rows) -> str:
    """Save what an interrupted training has learnt; return what to say about it."""
    told = "no epoch was complete, so no model was saved"
    if getattr(model, "n_iter_", 0):
        _save(args, model, data)
        told = f"the model as it was after epoch {model.n_iter_} was saved to {args.model}"
    elif data.n_rows is None and hasattr(model, "t_"):
        _save(args, model, data)
        told = f"the model as it was after {model.t_:,} rows was saved to {args.model}"
    if args.checkpoint is not None and Path(args.checkpoint).exists():
        told += f"; --resume goes on from {args.checkpoint}"
    return told


def _outcome(model: Any, progress: Progress) -> str:
    if not model.history_:
        return f"on {progress.n_rows:,} rows, each once ({progress.rate}),"
    validated = [name for name in model.history_ if name.startswith("validation_")]
    if not validated:
        return f"{model.n_iter_} epochs, training loss {model.history_['loss'][-1]:.5f}"
    name = validated[0].removeprefix("validation_").replace("_", " ")
    return (
        f"{model.n_iter_} epochs, the best is {model.best_iteration_} "
        f"with a validation {name} of {model.best_score_:.5f}"
    )
