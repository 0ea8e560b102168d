"""The machinery of the experiments on projective quadratic regression, on small draws."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from polyfm.experiments import hindsight, online_clicks, projective
from polyfm.experiments.figures import cells


def test_synthetic_clicks_have_one_id_per_field_and_follow_zipf() -> None:
    X, y = online_clicks.synthetic_clicks(2000)
    assert np.all(np.diff(X.indptr) == 22)
    fields = X.indices.reshape(2000, 22)
    assert np.all(np.diff(fields, axis=1) > 0)
    assert 0.1 < y.mean() < 0.6
    first = fields[:, -1].min()
    most, least = (fields[:, -1] == first).sum(), (fields[:, -1] == first + 1000).sum()
    assert most > 20 * max(least, 1)
    again, _ = online_clicks.synthetic_clicks(2000)
    np.testing.assert_array_equal(again.indices, X.indices)


def test_clicks_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = online_clicks.synthetic_clicks(20_000)
    sets = [online_clicks._cut("small", X, y)]
    monkeypatch.setattr(online_clicks, "_sets", lambda n: iter(sets))
    monkeypatch.setattr(online_clicks, "_RATES", (0.01, 0.1))
    rows = cells(online_clicks.pqr_ctr())
    assert [row["model"] for row in rows][:3] == ["LR", "FM", "DiFacto"]
    assert rows[0]["time / LR"] == "1.00"
    assert all(row["log loss"] < np.log(2) and row["AUC"] > 0.5 for row in rows)
    sizes = [int(row["non-zeros"].replace(",", "")) for row in rows]
    assert sizes[0] < sizes[3] < sizes[5]


def test_ratings_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs carry the target, so that models of pairs beat the linear one."""
    random = np.random.default_rng(0)
    left, right = random.integers(0, 4, 15_000), random.integers(0, 4, 15_000)
    X = sp.csr_matrix(np.hstack([np.eye(4)[left], np.eye(4)[right]]).astype(np.float32))
    y = np.where((left + right) % 2 == 0, 1.0, -1.0) + 0.1 * random.normal(size=15_000)
    cuts = [slice(0, 12_000), slice(12_000, 13_500), slice(13_500, 15_000)]
    data = projective._Data([X[cut] for cut in cuts], [y[cut] for cut in cuts], 3.0)
    monkeypatch.setattr(projective, "_data", lambda size: data)
    monkeypatch.setattr(projective, "_RUNS", 2)
    rows = cells(projective.pqr_ratings())
    assert len(rows) == 2 * len(projective._entrants())
    found = {row["model"]: row for row in rows if row["data"] == "MovieLens 100K"}
    assert found["LR"]["RMSE"] > 0.9
    assert found["PQR 1000"]["RMSE"] < 0.6
    assert found["PQR 1000"]["paper"] == 1.0215
    assert found["FM"]["std"] != "-"
    assert found["LR"]["std"] == "-"


def test_regret_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    X = sp.csr_matrix(np.eye(5)[random.integers(0, 5, 400)])
    y = (random.random(400) < 0.2 + 0.6 * (X.indices % 2)).astype(np.int64)
    monkeypatch.setattr(hindsight, "_sets", lambda: [("small", X, y, True)])
    monkeypatch.setattr(hindsight, "_CHECKPOINTS", [50, 400])
    monkeypatch.setattr(hindsight, "_RATE", 1.0)
    rows = cells(hindsight.regret_curves())
    assert [row["rows"] for row in rows] == [50, 400, 50, 400]
    for early, late in (rows[:2], rows[2:]):
        assert 0 < late["regret / rows"] < early["regret / rows"]
        assert late["regret / rows"] < late["bound / rows"]
