from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import Run

from polyfm import (
    FTRLClassifier,
    FTRLRegressor,
    HierarchicalFMClassifier,
    HierarchicalFMRegressor,
    load_pipeline,
)


@pytest.mark.parametrize(
    ("flags", "kind"),
    [
        (("--estimator", "ftrl", "--damping", 0.5, "--penalty", "l1"), FTRLRegressor),
        (
            ("--estimator", "hierarchical-fm", "--batch-size", 4, "--power", 0.7),
            HierarchicalFMRegressor,
        ),
    ],
)
def test_trains_on_tables(run: Run, folder: Path, flags: tuple[str, ...], kind: type) -> None:
    result = run("train", folder / "all.csv", "--target", "rating", *flags, "--model", "m")
    assert result.code == 0, result.err
    model = load_pipeline("m").model
    assert isinstance(model, kind)
    for name, value in zip(flags[2::2], flags[3::2], strict=True):
        given = getattr(model, name.removeprefix("--").replace("-", "_"))
        assert given == value
    predicted = run("predict", folder / "all.csv", "--model", "m")
    assert predicted.code == 0
    assert np.isfinite(np.array(predicted.out.split()[1:], dtype=float)).all()


@pytest.mark.parametrize(
    ("name", "kind"), [("ftrl", FTRLClassifier), ("hierarchical-fm", HierarchicalFMClassifier)]
)
def test_trains_on_labels(run: Run, folder: Path, name: str, kind: type) -> None:
    result = run("train", folder / "all.svm", "--model", "m", "--estimator", name)
    assert result.code == 0, result.err
    assert isinstance(load_pipeline("m").model, kind)
    assert run("inspect", "m").code == 0


def test_flags_of_another_estimator_are_refused(run: Run, folder: Path) -> None:
    result = run("train", folder / "all.svm", "--model", "m", "--batch-size", 4)
    assert result.code != 0
    assert "--batch-size is for --estimator convex-fm or hierarchical-fm" in result.err
