"""Progressive validation is what a loop of predicting and learning gives."""

import csv
import gzip
import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import log_loss, roc_auc_score

from polyfm import FMClassifier, FTRLClassifier, FTRLRegressor
from polyfm.online import Progressive, iter_batches, progressive_validation
from polyfm.online.metrics import Sums


def clicks(n_rows=600, n_features=30, seed=0):
    random = np.random.default_rng(seed)
    X = sp.random(n_rows, n_features, 0.2, "csr", random_state=random)
    X.data[:] = 1.0
    return X, (X @ random.normal(size=n_features) + random.logistic(size=n_rows) > 0).astype(int)


def by_hand(model, X, y, size):
    """Probabilities of each row before it was learnt, from the second batch on."""
    shares = []
    for start in range(0, len(y), size):
        part = slice(start, start + size)
        if start:
            shares.append(model.predict_proba(X[part]))
        model.partial_fit(X[part], y[part], classes=[0, 1])
    return np.concatenate(shares)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_totals_are_those_of_a_loop(size):
    X, y = clicks()
    model = FTRLClassifier(alpha=0.1)
    p = by_hand(clone(model), X, y, size)
    found = progressive_validation(model, (X, y), batch_size=size, window=200, classes=[0, 1])
    judged = y[size:]
    assert found.n_rows == 600 and found.n_predicted == len(judged)
    assert found.total["log_loss"] == pytest.approx(log_loss(judged, p), rel=1e-12)
    assert found.total["accuracy"] == pytest.approx(np.mean(p.argmax(axis=1) == judged), rel=1e-12)
    assert found.total["auc"] == pytest.approx(roc_auc_score(judged, p[:, 1]), abs=1e-4)
    assert found.total["auc"] != 0.5


def test_windows_cover_the_stream():
    X, y = clicks()
    found = progressive_validation(
        FTRLClassifier(), (X, y), ["log_loss"], window=150, batch_size=50
    )
    assert [window["rows"] for window in found.windows] == [150, 300, 450, 600]
    sizes = np.array([100, 150, 150, 150])
    losses = np.array([window["log_loss"] for window in found.windows])
    assert sizes @ losses / sizes.sum() == pytest.approx(found.total["log_loss"], rel=1e-12)
    assert found.to_frame().shape == (4, 4)


def test_regression_with_weights():
    random = np.random.default_rng(0)
    X, weight = random.normal(size=(300, 4)), random.integers(0, 3, 300).astype(float)
    y = X[:, 0] + random.normal(size=300)
    model, errors = FTRLRegressor(), []
    for start in range(0, 300, 30):
        part = slice(start, start + 30)
        if start:
            errors.append(y[part] - model.predict(X[part]))
        model.partial_fit(X[part], y[part], weight[part])
    errors = np.concatenate(errors)
    found = progressive_validation(FTRLRegressor(), (X, y, weight), batch_size=30)
    assert found.total["rmse"] == pytest.approx(np.sqrt(np.average(errors**2, weights=weight[30:])))
    assert found.total["mae"] == pytest.approx(np.average(np.abs(errors), weights=weight[30:]))


def test_auc_in_bins_is_the_exact_one_where_no_two_rows_share_a_bin():
    random = np.random.default_rng(0)
    logit = random.permutation(np.linspace(-8, 8, 200))
    y = (logit + 4 * random.normal(size=200) > 0).astype(int)
    p = 1 / (1 + np.exp(-logit))
    weight = random.integers(1, 4, 200).astype(float)
    sums = Sums(["auc"])
    for part in (slice(0, 90), slice(90, 200)):
        sums.add(y[part], np.column_stack([1 - p, p])[part], weight[part])
    exact = roc_auc_score(y, p, sample_weight=weight)
    assert sums.values()["auc"] == pytest.approx(exact, rel=1e-12)


def test_auc_of_one_class_is_no_number():
    sums = Sums(["auc", "log_loss"])
    sums.add(np.ones(3, dtype=int), np.full((3, 2), 0.5), np.ones(3))
    assert np.isnan(sums.values()["auc"])
    assert sums.values()["log_loss"] == pytest.approx(np.log(2))


def test_a_state_goes_through_json():
    X, y = clicks()
    batches = list(iter_batches((X, y), 50))
    whole = Progressive(FTRLClassifier(), None, 120)
    for batch in batches:
        whole.take(batch)
    first = Progressive(FTRLClassifier(), None, 120)
    for batch in batches[:5]:
        first.take(batch)
    second = Progressive(first.model, None, 7)
    second.restore(json.loads(json.dumps(first.state(), allow_nan=False)))
    for batch in batches[5:]:
        second.take(batch)
    one, other = whole.result(), second.result()
    assert one.total == other.total
    assert [{**w, "seconds": 0} for w in one.windows] == [
        {**w, "seconds": 0} for w in other.windows
    ]


def test_an_interrupt_keeps_what_there_is():
    X, y = clicks()

    def stream():
        yield X[:100], y[:100]
        yield X[100:200], y[100:200]
        raise KeyboardInterrupt

    found = progressive_validation(FTRLClassifier(), stream())
    assert found.interrupted and found.n_rows == 200 and found.n_predicted == 100
    assert np.isfinite(found.total["log_loss"])


def test_a_line_for_each_window(capsys):
    X, y = clicks()
    progressive_validation(FTRLClassifier(), (X, y), window=300, batch_size=100, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and "300 rows" in lines[0] and "log_loss" in lines[0]


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (FTRLClassifier(), {"metrics": ["rmse"]}, "'rmse' is none for classification"),
        (FTRLClassifier(), {"window": 0}, "window must be at least 1"),
        (FTRLClassifier(), {"batch_size": 0}, "batch_size must be at least 1"),
    ],
)
def test_impossible_options(model, options, words):
    with pytest.raises(ValueError, match=words):
        progressive_validation(model, clicks(), **options)


def test_files_are_the_rows_they_hold(tmp_path):
    X, y = clicks(200, 12)
    lines = [
        f"{label} " + " ".join(f"{j + 1}:{v:g}" for j, v in zip(row.indices, row.data, strict=True))
        for label, row in zip(y, X, strict=True)
    ]
    (tmp_path / "a.svm").write_text("\n".join([*lines[:50], "# a comment", "", *lines[50:]]) + "\n")
    with gzip.open(tmp_path / "b.svm.gz", "wt") as stream:
        stream.write("\n".join(lines))
    wanted = progressive_validation(FTRLClassifier(), (X, y), batch_size=60)
    for name in ("a.svm", "b.svm.gz"):
        model = FTRLClassifier(max_features=12)
        found = progressive_validation(model, tmp_path / name, batch_size=60)
        assert found.total == wanted.total
    skipped = list(iter_batches(tmp_path / "a.svm", 60, skip=70))
    assert [batch.n_rows for batch in skipped] == [60, 60, 10]
    np.testing.assert_array_equal(np.concatenate([batch.y for batch in skipped]), y[70:])


def test_tables_are_dictionaries(tmp_path):
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows(
            [["town", "age", "y"], ["a", "31", "no"], ["", "40.5", "yes"], ["b", "", "no"]]
        )
    batches = list(iter_batches(path, 2, target="y", numbers=["age"]))
    assert batches[0].X == [{"town": "a", "age": 31.0}, {"age": 40.5}]
    assert batches[1].X == [{"town": "b"}] and batches[1].y.tolist() == ["no"]
    with pytest.raises(ValueError, match=r"t.csv, line 2: town is 'a', not a number"):
        list(iter_batches(path, target="y", numbers=["town"]))
    with pytest.raises(ValueError, match="name the column to predict"):
        list(iter_batches(path))
    with pytest.raises(ValueError, match="no column 'z'"):
        list(iter_batches(path, target="z"))


def test_parquet_is_read_in_pieces(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table({"town": ["a", None, "b"], "age": [1.0, 2.0, 3.0], "y": [0, 1, 0]})
    pq.write_table(table, tmp_path / "t.parquet")
    batches = list(iter_batches(tmp_path / "t.parquet", 2, target="y", skip=1))
    assert batches[0].X == [{"town": None, "age": 2.0}, {"town": "b", "age": 3.0}]
    assert batches[0].y.tolist() == [1, 0]


def test_batches_that_are_none():
    with pytest.raises(ValueError, match="yields \\(X, y\\)"):
        list(iter_batches([np.zeros((2, 2))]))
    with pytest.raises(ValueError, match="2 rows but 3 targets"):
        list(iter_batches([(np.zeros((2, 2)), [1, 2, 3])]))


def test_a_plot():
    plt = pytest.importorskip("matplotlib.pyplot")
    found = progressive_validation(
        FMClassifier(random_state=0), clicks(), window=200, batch_size=50
    )
    ax = found.plot("auc")
    assert len(ax.lines[0].get_xdata()) == 3
    plt.close(ax.figure)
    with pytest.raises(ValueError, match="was not measured"):
        found.plot("rmse")
