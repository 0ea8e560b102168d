from __future__ import annotations

from pathlib import Path

import pytest
from commands import Run

from polyfm import PQRClassifier, PQRRegressor, load_pipeline


@pytest.mark.parametrize(("order", "value"), [(4, 4), ("auto", "auto")])
def test_trains_on_tables(run: Run, folder: Path, order: object, value: object) -> None:
    flags = ("--estimator", "pqr", "--order", order, "--damping", 0.5, "--target", "rating")
    result = run("train", folder / "all.csv", *flags, "--model", "m")
    assert result.code == 0, result.err
    model = load_pipeline("m").model
    assert isinstance(model, PQRRegressor)
    assert model.order == value and model.damping == 0.5
    assert run("predict", folder / "all.csv", "--model", "m").code == 0
    told = run("inspect", "m")
    assert told.code == 0, told.err
    assert f"order {model.order_}" in told.out
    assert (" x " in told.out) == (model.pair_weights_.nnz > 0)


def test_trains_on_labels(run: Run, folder: Path) -> None:
    result = run("train", folder / "all.svm", "--model", "m", "--estimator", "pqr")
    assert result.code == 0, result.err
    assert isinstance(load_pipeline("m").model, PQRClassifier)
    told = run("inspect", "m", "--top", 2)
    assert told.code == 0 and told.out.count(" x ") <= 2
    refused = run("inspect", "m", "--degree", 3)
    assert refused.code != 0 and "single pairs" in refused.err
