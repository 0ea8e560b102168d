"""``polyfm inspect``."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from polyfm.cli._models import ModelRows, is_classifier
from polyfm.cli._reading import add_layout, add_on_error
from polyfm.estimators._pqr import ProjectiveQuadratic
from polyfm.inspection import strongest_interactions
from polyfm.persistence import SavedModel, load_pipeline

_EPILOG = """examples:
  polyfm inspect income.polyfm
  polyfm inspect income.polyfm --degree 3 --top 20
  polyfm inspect income.polyfm --data train.csv --min-count 100

With --data the table says in how many rows the features of an interaction occur together, and
--min-count leaves out the rare ones. Features of one column of a table are not combined.
"""
_MOST_DEGREES = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Add description and arguments."""
    parser.description = "Sum up a model file, and name the strongest interactions."
    parser.epilog = _EPILOG
    parser.add_argument("model", metavar="MODEL", help="a model file, from polyfm train")
    parser.add_argument(
        "--top", type=int, default=10, metavar="N", help="interactions to name (default: 10)"
    )
    parser.add_argument(
        "--degree", type=int, metavar="N", help="features in each (default: 1 to the order, or 3)"
    )
    parser.add_argument("--class", dest="label", metavar="LABEL", help="of more than two classes")
    data = parser.add_argument_group("rows to count in")
    data.add_argument("--data", metavar="FILE", help="a file like that of the training")
    data.add_argument("--min-count", type=int, default=0, metavar="N", help="rows to occur in")
    add_layout(data)
    add_on_error(data)


def run(args: argparse.Namespace) -> None:
    """Inspect."""
    saved = load_pipeline(args.model)
    if isinstance(saved.model, ProjectiveQuadratic):
        _inspect_crosses(saved, args)
        return
    for name, value in _summary(saved).items():
        print(f"{name:<12} {value}")
    X = None
    if args.data is not None:
        X = ModelRows(args, [args.data], saved, labels=False).whole().X
    output = _output(saved.model, args.label)
    highest = _highest_degree(saved.model)
    is_bounded = saved.model.kernel != "all-subsets"
    if is_bounded and args.degree is not None and args.degree > highest:
        raise ValueError(
            f"--degree {args.degree} is beyond the model's order, {highest}: train with "
            f"--order {args.degree} to learn interactions of so many features."
        )
    degrees = range(1, min(highest, _MOST_DEGREES) + 1)
    for degree in degrees if args.degree is None else [args.degree]:
        _print_strongest(saved, X, degree, output, args)


def _inspect_crosses(saved: SavedModel, args: argparse.Namespace) -> None:
    """Sum up a projective quadratic regression, whose crosses have weights of their own."""
    model, output = saved.model, _output(saved.model, args.label)
    if args.degree not in (None, 2) or args.data is not None:
        raise ValueError(
            "this model has weights of single pairs of features: inspect it without --data, and "
            "without a --degree other than 2."
        )
    print(f"{'model':<12} {type(model).__name__}, order {model.order_:,}")
    print(f"{'features':<12} {model.n_features_in_:,}")
    print(f"{'non-zeros':<12} {model.count_nonzero():,}")
    print(f"{'rows visited':<12} {model.t_:,}")
    pairs = model.pair_weights_
    pairs = pairs[output] if isinstance(pairs, list) else pairs
    names = None if saved.encoder is None else saved.encoder.get_feature_names_out()
    print(f"\nstrongest interactions of 2 features{_meaning(model, output)}")
    for place in np.argsort(-np.abs(pairs.data), kind="stable")[: args.top]:
        columns = (int(pairs.row[place]), int(pairs.col[place]))
        told = [str(j) if names is None else str(names[j]) for j in columns]
        print(f"{pairs.data[place]:>12.6g}  {' x '.join(told)}")


def _summary(saved: SavedModel) -> dict[str, str]:
    model = saved.model
    lines = {"model": type(model).__name__, "kernel": f"{model.kernel}, order {model.order}"}
    lines["features"] = f"{model.n_features_in_:,}"
    if saved.encoder is not None:
        lines["columns"] = ", ".join(saved.encoder.field_names_)
    if is_classifier(model):
        lines["classes"] = ", ".join(map(str, model.classes_))
    if "target" in saved.notes:
        lines["target"] = str(saved.notes["target"])
    # A convex model has found its rank by itself.
    rank = model.rank if hasattr(model, "rank") else model.weights_[2].shape[-1]
    lines["rank"] = f"{rank} per matrix"
    lines["parameters"] = f"{_n_parameters(model):,}"
    lines["loss"] = str(model.loss)
    if hasattr(model, "best_iteration_"):
        lines["epochs"] = f"{model.n_iter_}, best {model.best_iteration_}"
        lines["best score"] = f"{model.best_score_:.6g}"
    if hasattr(model, "t_"):
        lines["rows visited"] = f"{model.t_:,}"
    return lines


def _n_parameters(model: Any) -> int:
    if hasattr(model, "lifted_factors_"):
        factors = [model.lifted_factors_, model.lifted_dummy_factors_]
    else:
        factors = [*model.factors_.values(), *model.dummy_factors_.values()]
    return sum(np.size(block) for block in [model.intercept_, model.coef_, *factors])


def _highest_degree(model: Any) -> int:
    return _MOST_DEGREES if model.kernel == "all-subsets" else int(model.order)


def _output(model: Any, label: str | None) -> int:
    """Return the number of the output that stands for a label."""
    if label is None:
        return 0
    labels = [str(one) for one in getattr(model, "classes_", [])]
    if label not in labels:
        raise ValueError(f"--class {label!r} is not among the classes {labels}.")
    return labels.index(label) if len(labels) > 2 else 0


def _print_strongest(
    saved: SavedModel, X: Any, degree: int, output: int, args: argparse.Namespace
) -> None:
    encoder = saved.encoder
    found = strongest_interactions(
        saved.model,
        args.top,
        degree,
        X,
        class_index=output,
        min_count=args.min_count,
        fields=None if encoder is None else encoder.fields_,
        feature_names=None if encoder is None else list(encoder.get_feature_names_out()),
    )
    what = "features" if degree == 1 else f"interactions of {degree} features"
    print(f"\nstrongest {what}{_meaning(saved.model, output)}")
    print(str(found) if found else "none")


def _meaning(model: Any, output: int) -> str:
    if not is_classifier(model):
        return ", in the unit of the target"
    label = model.classes_[1] if len(model.classes_) == 2 else model.classes_[output]
    return f", for {label}"
