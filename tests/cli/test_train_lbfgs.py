"""``polyfm train --solver lbfgs`` on every format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import Run

from polyfm import load_pipeline
from polyfm.data import load_svmlight


@pytest.mark.parametrize(
    ("name", "options"),
    [("all.csv", ["--target", "rating"]), ("all.svm", []), ("all.ffm", [])],
)
def test_trains_predicts_and_evaluates(
    run: Run, folder: Path, name: str, options: list[str]
) -> None:
    result = run(
        "train", folder / name, *options, "--solver", "lbfgs", "--max-iter", 15, "--model", "m"
    )
    assert result.code == 0 and "objective" in result.err
    model = load_pipeline("m").model
    objective = model.history_["objective"]
    assert model.solver == "lbfgs" and 1 <= len(objective) <= 15
    assert np.all(np.diff(objective) <= 0)
    assert run("predict", folder / name, "--model", "m").code == 0
    assert run("evaluate", folder / name, "--model", "m").code == 0


def test_a_model_for_predictions_alone(run: Run, folder: Path) -> None:
    options = ["--solver", "lbfgs", "--max-iter", 5, "--quiet"]
    run("train", folder / "all.svm", *options, "--model", "whole")
    run("train", folder / "all.svm", *options, "--model", "part", "--predict-only")
    X = load_svmlight(folder / "all.svm")[0]
    whole, part = (load_pipeline(m).model.decision_function(X) for m in ("whole", "part"))
    np.testing.assert_array_equal(whole, part)


def test_what_it_cannot_learn_is_told(run: Run, folder: Path) -> None:
    result = run(
        "train", folder / "all.svm", "--solver", "lbfgs", "--penalty", "l1", "--model", "m"
    )
    assert result.code != 0 and "needs a penalty without corners" in result.err


def test_help_names_it(run: Run) -> None:
    text = " ".join(run("train", "--help").out.split())
    assert "{adagrad,sgd,ftrl,cd,lbfgs}" in text and "(L-BFGS)" in text
