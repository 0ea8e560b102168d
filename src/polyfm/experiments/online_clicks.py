"""Clicks learnt online: projective quadratic regression, linear models, factorization machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics import log_loss, roc_auc_score

from polyfm.datasets import fetch_avazu_mini, fetch_criteo_mini, fetch_frappe
from polyfm.estimators import DiFactoClassifier, FMClassifier, FTRLClassifier, PQRClassifier
from polyfm.exceptions import DivergenceError
from polyfm.experiments.figures import dots
from polyfm.experiments.report import Report

_ROWS_TO_TUNE = 100_000
_RATES = (0.03, 0.1, 0.3)
_ORDERS = (200, 1000, 2000)
_SYNTHETIC_ROWS, _SYNTHETIC_FIELDS, _SYNTHETIC_IDS = 2_000_000, 22, 50_000
_BATCH = 10_000

Settings = dict[str, Any]
_PAPER = {
    "Avazu": {"LR": 1.0, "FM": 58.5, "DiFacto": 58.0, "PQR 2000": 3.3},
    "Criteo": {"LR": 1.0, "FM": 20.1, "DiFacto": 20.6, "PQR 200": 17.1, "PQR 1000": 19.2},
}
"""Training times relative to LR that the paper has for the full sets."""


class _Clicks(NamedTuple):
    """Rows to learn, to choose settings by, and to judge by; clicks are 1."""

    name: str
    X: Sequence[sp.csr_matrix]
    y: Sequence[NDArray[np.int64]]

    def head(self) -> _Clicks:
        """Return the set with no more rows to learn from than choosing settings needs."""
        n = _ROWS_TO_TUNE
        return self._replace(X=[self.X[0][:n], *self.X[1:]], y=[self.y[0][:n], *self.y[1:]])


class _Outcome(NamedTuple):
    loss: float
    auc: float
    seconds: float
    n_nonzero: int


def pqr_ctr() -> Report:
    """Clicks in one pass: AUC, log loss, relative time and non-zeros of LR, FM, DiFacto and PQR."""
    report = Report(
        "Clicks learnt in one pass",
        ("data", "model", "AUC", "log loss", "time / LR", "paper's", "non-zeros", "settings"),
        notes=[
            "80/10/10 at random, one pass in one order, in batches of "
            f"{_BATCH:,} rows; learning rate, of {_RATES}, with the best log loss on the second "
            f"part, after {_ROWS_TO_TUNE:,} rows at most. LR, PQR: FTRL-Proximal; FM: online "
            "gradient descent with L1, rank 8; DiFacto: ranks 4 and 16 from 10 and 1,000 rows on. "
            "One thread, processor time of learning alone.",
            "Criteo: its first 20,000 rows; Avazu: 15,000 rows; Frappe: the rebuilt training file "
            f"with its negatives. Synthetic: {_SYNTHETIC_ROWS:,} rows, "
            f"{_SYNTHETIC_FIELDS} fields of {_SYNTHETIC_IDS:,} ids in all that "
            "follow Zipf's law, clicks of a planted factorization machine.",
            "The paper's times are those of its authors' programs on the full sets.",
        ],
    )
    for clicks in _sets(_SYNTHETIC_ROWS):
        of_linear = np.nan
        for name, make in _entrants().items():
            chosen = _best_settings(make, clicks.head())
            outcome = _outcome(make(**chosen), clicks, 2)
            of_linear = outcome.seconds if name == "LR" else of_linear
            said = ", ".join(f"{key} {value:g}" for key, value in chosen.items())
            report.add(
                clicks.name, name, outcome.auc, outcome.loss,
                f"{outcome.seconds / of_linear:.2f}",
                f"{_PAPER.get(clicks.name, {}).get(name, np.nan):g}".replace("nan", "-"),
                f"{outcome.n_nonzero:,}", said,
            )  # fmt: skip
    report.draw = dots(report, group="data", label="model", value="log loss")
    return report


def _sets(n_synthetic: int) -> Iterator[_Clicks]:
    for name, bundle in (
        ("Avazu", fetch_avazu_mini()), ("Criteo", fetch_criteo_mini()), ("Frappe", fetch_frappe()),
    ):  # fmt: skip
        yield _cut(name, bundle.X, (bundle.y > 0).astype(np.int64))
    yield _cut("synthetic", *synthetic_clicks(n_synthetic))


def _cut(name: str, X: sp.csr_matrix, y: NDArray[np.int64]) -> _Clicks:
    order = np.random.default_rng(0).permutation(len(y))
    parts = np.split(order, [8 * len(y) // 10, 9 * len(y) // 10])
    return _Clicks(name, [X[part] for part in parts], [y[part] for part in parts])


def synthetic_clicks(n_rows: int, seed: int = 0) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
    """Draw one id per field by Zipf's law, and clicks of a planted factorization machine."""
    random = np.random.default_rng(seed)
    sizes = np.geomspace(2, _SYNTHETIC_IDS, _SYNTHETIC_FIELDS)
    sizes = np.maximum(sizes / sizes.sum() * _SYNTHETIC_IDS, 2).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    ids = np.empty((n_rows, _SYNTHETIC_FIELDS), dtype=np.int32)
    for field, size in enumerate(sizes):
        # The inverse of the distribution function of the density 1 / x.
        drawn = np.exp(random.random(n_rows) * np.log(size + 1.0)) - 1.0
        ids[:, field] = starts[field] + np.minimum(drawn.astype(np.int64), size - 1)
    linear = 0.25 * random.normal(size=starts[-1])
    factors = 0.12 * random.normal(size=(starts[-1], 4))
    score = np.full(n_rows, -1.5)
    for first in range(0, n_rows, _BATCH):
        rows = ids[first : first + _BATCH]
        z = factors[rows]
        pairs = (z.sum(axis=1) ** 2 - (z**2).sum(axis=1)).sum(axis=1) / 2
        score[first : first + _BATCH] += linear[rows].sum(axis=1) + pairs
    y = (random.random(n_rows) < 1.0 / (1.0 + np.exp(-score))).astype(np.int64)
    indptr = np.arange(n_rows + 1) * _SYNTHETIC_FIELDS
    X = sp.csr_matrix(
        (np.ones(ids.size, dtype=np.float32), ids.ravel(), indptr), (n_rows, starts[-1])
    )
    return X, y


def _entrants() -> dict[str, Callable[..., Any]]:
    def descent(learning_rate: float) -> FMClassifier:
        return FMClassifier(
            solver="sgd", penalty="l1", schedule="invscaling", power_t=0.25, init_scale=0.05,
            learning_rate=learning_rate, random_state=0,
        )  # fmt: skip

    def difacto(learning_rate: float) -> DiFactoClassifier:
        return DiFactoClassifier(
            learning_rate=learning_rate, factor_learning_rate=learning_rate, random_state=0
        )

    entrants: dict[str, Callable[..., Any]] = {
        "LR": lambda **settings: FTRLClassifier(penalty="l1", **settings),
        "FM": descent,
        "DiFacto": difacto,
    }
    for order in _ORDERS:
        entrants[f"PQR {order}"] = _pqr_of(order)
    entrants["PQR auto"] = _pqr_of("auto")
    return entrants


def _pqr_of(order: int | str) -> Callable[..., Any]:
    return lambda **settings: PQRClassifier(order=order, penalty="l1", **settings)


def _best_settings(make: Callable[..., Any], clicks: _Clicks) -> Settings:
    grid = [{"learning_rate": rate} for rate in _RATES]
    return grid[int(np.argmin([_outcome(make(**each), clicks, 1).loss for each in grid]))]


def _outcome(model: Any, clicks: _Clicks, part: int) -> _Outcome:
    X, y = clicks.X[0], clicks.y[0]
    seconds = 0.0
    try:
        for first in range(0, len(y), _BATCH):
            rows = slice(first, first + _BATCH)
            batch = X[rows]
            started = process_time()
            model.partial_fit(batch, y[rows], classes=[0, 1])
            seconds += process_time() - started
    except DivergenceError:
        return _Outcome(np.inf, np.nan, np.nan, 0)
    p = model.predict_proba(clicks.X[part])[:, 1]
    truth = clicks.y[part]
    return _Outcome(
        float(log_loss(truth, p)), float(roc_auc_score(truth, p)), seconds, _n_nonzero(model)
    )


def _n_nonzero(model: Any) -> int:
    if hasattr(model, "count_nonzero"):
        return int(model.count_nonzero())
    blocks = [np.atleast_1d(model.intercept_), model.coef_, *model.factors_.values()]
    return sum(int(np.count_nonzero(block)) for block in blocks)
