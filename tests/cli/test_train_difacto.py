from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import Run

from polyfm import DiFactoClassifier, DiFactoRegressor, load_pipeline


def test_trains_on_tables(run: Run, folder: Path) -> None:
    flags = ("--estimator", "difacto", "--ranks", "2,4", "--thresholds", "20,120", "--alpha", 0.1)
    result = run("train", folder / "all.csv", *flags, "--target", "rating", "--model", "m")
    assert result.code == 0, result.err
    model = load_pipeline("m").model
    assert isinstance(model, DiFactoRegressor)
    assert list(model.ranks) == [2, 4] and list(model.thresholds) == [20, 120]
    np.testing.assert_array_equal(model.ranks_ >= 2, (model.counts_ > 20) & (model.ranks_ > 0))
    assert {2, 4} <= set(model.ranks_)
    assert run("predict", folder / "all.csv", "--model", "m").code == 0
    told = run("inspect", "m")
    assert told.code == 0, told.err
    assert " x " in told.out


def test_trains_on_labels(run: Run, folder: Path) -> None:
    result = run("train", folder / "all.svm", "--model", "m", "--estimator", "difacto")
    assert result.code == 0, result.err
    assert isinstance(load_pipeline("m").model, DiFactoClassifier)


@pytest.mark.parametrize("estimator", ["fm", "pqr"])
def test_its_flags_are_refused_elsewhere(run: Run, folder: Path, estimator: str) -> None:
    flags = ("--estimator", estimator, "--thresholds", "3,12", "--target", "rating")
    result = run("train", folder / "all.csv", *flags, "--model", "m")
    assert result.code != 0
    assert "--thresholds is for --estimator difacto" in result.err
