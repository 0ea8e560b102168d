from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import Run

from polyfm import ConvexFMClassifier, ConvexFMRegressor, load_pipeline


def test_trains_a_convex_model(run: Run, folder: Path) -> None:
    flags = ("--estimator", "convex-fm", "--method", "greedy", "--max-rank", 3, "--no-diagonal")
    result = run("train", folder / "all.csv", "--target", "rating", *flags, "--model", "m")
    assert result.code == 0, result.err
    model = load_pipeline("m").model
    assert isinstance(model, ConvexFMRegressor)
    assert (model.method, model.max_rank, model.diagonal) == ("greedy", 3, False)
    predicted = run("predict", folder / "all.csv", "--model", "m")
    assert predicted.code == 0
    assert np.isfinite(np.array(predicted.out.split()[1:], dtype=float)).all()
    assert run("evaluate", folder / "all.csv", "--model", "m").code == 0
    assert run("inspect", "m").code == 0


def test_trains_online(run: Run, folder: Path) -> None:
    flags = ("--estimator", "convex-fm", "--method", "online", "--trace", 9, "--batch-size", 20)
    result = run("train", folder / "all.svm", *flags, "--max-iter", 2, "--model", "m")
    assert result.code == 0, result.err
    model = load_pipeline("m").model
    assert isinstance(model, ConvexFMClassifier)
    assert (model.size_, model.batch_size, model.n_iter_) == (9.0, 20, 2)
    assert run("predict", folder / "all.svm", "--model", "m").code == 0
    assert run("inspect", "m").code == 0


@pytest.mark.parametrize(
    ("flags", "flag"),
    [(("--method", "hazan"), "--method"), (("--trace", 3), "--trace")],
)
def test_its_flags_are_refused_elsewhere(
    run: Run, folder: Path, flags: tuple[str, ...], flag: str
) -> None:
    result = run("train", folder / "all.csv", "--target", "rating", *flags, "--model", "m")
    assert result.code != 0
    assert f"{flag} is for --estimator convex-fm" in result.err


def test_validation_rows_are_refused(run: Run, folder: Path) -> None:
    flags = ("--estimator", "convex-fm", "--validation", folder / "all.csv", "--model", "m")
    result = run("train", folder / "all.csv", "--target", "rating", *flags)
    assert result.code == 2
    assert "--validation is of no use to --estimator convex-fm" in result.err


def test_penalties_per_field_are_refused(run: Run, folder: Path) -> None:
    flags = ("--estimator", "convex-fm", "--alpha", "1,2", "--model", "m")
    result = run("train", folder / "all.csv", "--target", "rating", *flags)
    assert result.code == 2
    assert "alpha must be" in result.err


def test_labels_make_a_classifier(run: Run, folder: Path) -> None:
    flags = ("--estimator", "convex-fm", "--max-rank", 2, "--model", "m")
    result = run("train", folder / "all.csv", "--target", "liked", *flags)
    assert result.code == 0, result.err
    assert isinstance(load_pipeline("m").model, ConvexFMClassifier)
    assert "classification" in result.err
    proba = run("predict", folder / "all.csv", "--model", "m", "--proba")
    assert proba.code == 0, proba.err
