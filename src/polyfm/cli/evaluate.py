"""``polyfm evaluate``."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.cli._models import ModelRows, add_files, add_model, is_classifier, load
from polyfm.cli._progress import Progress
from polyfm.cli._reading import add_layout, add_on_error
from sklearn import metrics

_EPILOG = """examples:
  polyfm evaluate test.csv --model income.polyfm
  polyfm evaluate day_1.svm day_2.svm --model clicks.polyfm --json

The rows are read and predicted batch by batch; 16 bytes for each, or fewer, are kept (with more
than two labels, 4 or 8 for each label). Rows count by their weights, where a dataset or Vowpal
Wabbit text has some.
"""
_DIGITS = 5


def configure(parser: argparse.ArgumentParser) -> None:
    """Add description and arguments."""
    parser.description = (
        "Measure predictions of rows whose targets are known: log loss, AUC and accuracy for\n"
        "labels; RMSE, MAE and R2 for numbers."
    )
    parser.epilog = _EPILOG
    add_files(parser)
    add_layout(parser)
    add_on_error(parser)
    add_model(parser)
    parser.add_argument(
        "--target", metavar="COLUMN", help="column of the target (default: that of the training)"
    )
    parser.add_argument("--json", action="store_true", help="write JSON instead of a table")


def run(args: argparse.Namespace) -> None:
    """Evaluate."""
    saved = load(args)
    rows = ModelRows(args, args.files, saved, labels=True, target=args.target)
    judge: Any = Labels(saved.model) if is_classifier(saved.model) else Numbers(saved.model)
    progress = Progress(args, rows.n_bytes)
    try:
        for batch in rows.batches(progress):
            judge.take(batch.X, batch.target, batch.weight)
    finally:
        progress.erase()
    rows.tell_lost(args)
    figures = {"rows": judge.n_rows, **judge.figures()}
    if args.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        shown = f"{value:,}" if isinstance(value, int) else _rounded(value)
        print(f"{name:<9} {shown:>10}")


def _rounded(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.{_DIGITS}f}"


class _Kept:
    """What is kept of each batch, by name."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._parts: dict[str, list[NDArray[Any]]] = {}

    def keep(self, weight: NDArray[np.float64] | None, **columns: NDArray[Any]) -> None:
        """Keep some columns of the rows of a batch; weights from the first one that has some."""
        n = len(next(iter(columns.values())))
        if weight is not None and "weight" not in self._parts and self.n_rows:
            self._parts["weight"] = [np.ones(self.n_rows)]
        if weight is not None or "weight" in self._parts:
            columns["weight"] = np.ones(n) if weight is None else weight
        for name, column in columns.items():
            self._parts.setdefault(name, []).append(column)
        self.n_rows += n

    def __getitem__(self, name: str) -> NDArray[Any]:
        parts = self._parts[name]
        if len(parts) > 1:
            parts[:] = [np.concatenate(parts)]
        return parts[0]

    @property
    def weight(self) -> NDArray[np.float64] | None:
        """The weights; None where all are 1."""
        return self["weight"] if "weight" in self._parts else None


class Labels:
    """Judges a model of labels.

    Parameters
    ----------
    model : estimator
        The model.
    """

    def __init__(self, model: Any) -> None:
        self._model, self._kept = model, _Kept()
        self._order = {label: place for place, label in enumerate(model.classes_.tolist())}

    @property
    def n_rows(self) -> int:
        """Number of rows so far."""
        return self._kept.n_rows

    def take(self, X: Any, y: Any, weight: NDArray[np.float64] | None) -> None:
        """Predict and judge some rows."""
        places = self._places(y)
        p = self._model.predict_proba(X)
        self._kept.keep(
            weight,
            place=places,
            own=p[np.arange(len(places)), places],
            right=self._model.predict(X) == self._model.classes_[places],
            scores=p[:, 1] if p.shape[1] == 2 else p,
        )

    def _places(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return the place of each label among the classes.

        Raises
        ------
        ValueError
            For a label that the model does not know.
        """
        labels, codes = np.unique(y, return_inverse=True)
        known = np.array([self._order.get(label, -1) for label in labels.tolist()])
        smallest = np.int8 if len(self._order) < 128 else np.int32
        places: NDArray[Any] = known[codes].astype(smallest)
        if (places < 0).any():
            row = int(np.argmax(places < 0))
            raise ValueError(
                f"data row {self.n_rows + row + 1} has the label {y.tolist()[row]!r}, which the "
                f"model does not know; it knows {self._model.classes_.tolist()}."
            )
        return places

    def figures(self) -> dict[str, float | None]:
        """Return the measures of all rows."""
        kept, weight = self._kept, self._kept.weight
        return {
            "log loss": _mean(-np.log(kept["own"].astype(np.float64)), weight),
            "AUC": _auc(kept["place"], kept["scores"], len(self._order), weight),
            "accuracy": _mean(kept["right"], weight),
        }


def _mean(values: NDArray[Any], weight: NDArray[np.float64] | None) -> float:
    return float(np.average(values, weights=weight))


def _auc(
    places: NDArray[Any], p: NDArray[Any], n_classes: int, weight: NDArray[np.float64] | None
) -> float | None:
    """Return the area under the ROC curve; the mean over the classes where there are several."""
    present = np.unique(places)
    if len(present) < n_classes:
        return None
    if p.ndim == 1:
        return float(metrics.roc_auc_score(places, p, sample_weight=weight))
    scores = [
        metrics.roc_auc_score(places == k, p[:, k], sample_weight=weight) for k in range(n_classes)
    ]
    return float(np.mean(scores))


class Numbers:
    """Judges a model of numbers.

    Parameters
    ----------
    model : estimator
        The model.
    """

    def __init__(self, model: Any) -> None:
        self._model, self._kept = model, _Kept()

    @property
    def n_rows(self) -> int:
        """Number of rows so far."""
        return self._kept.n_rows

    def take(self, X: Any, y: Any, weight: NDArray[np.float64] | None) -> None:
        """Predict and judge some rows."""
        try:
            target = np.asarray(y, dtype=np.float64)
        except ValueError:
            raise ValueError(f"the target is no number, but for example {y[0]!r}.") from None
        self._kept.keep(weight, target=target, predicted=self._model.predict(X))

    def figures(self) -> dict[str, float | None]:
        """Return the measures of all rows."""
        y, weight = self._kept["target"], self._kept.weight
        given = (y, self._kept["predicted"].astype(np.float64))
        return {
            "RMSE": float(metrics.root_mean_squared_error(*given, sample_weight=weight)),
            "MAE": float(metrics.mean_absolute_error(*given, sample_weight=weight)),
            "R2": float(metrics.r2_score(*given, sample_weight=weight)) if len(y) > 1 else None,
        }
