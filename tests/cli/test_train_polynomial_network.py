from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import Run

from polyfm import PolynomialNetworkClassifier, PolynomialNetworkRegressor, load_pipeline


@pytest.mark.parametrize("lifted", ["--lifted", "--no-lifted"])
def test_trains_on_tables(run: Run, folder: Path, lifted: str) -> None:
    result = run(
        "train", folder / "all.csv", "--target", "rating", "--estimator", "polynomial-network",
        "--kernel", "anova", "--order", 3, "--rank", 2, "--max-iter", 3, lifted, "--model", "m",
    )  # fmt: skip
    assert result.code == 0, result.err
    model = load_pipeline("m").model
    assert isinstance(model, PolynomialNetworkRegressor)
    assert (model.kernel, model.order, model.rank) == ("anova", 3, 2)
    assert model.lifted == (lifted == "--lifted")
    predicted = run("predict", folder / "all.csv", "--model", "m")
    assert predicted.code == 0
    assert np.isfinite(np.array(predicted.out.split()[1:], dtype=float)).all()


def test_trains_on_labels(run: Run, folder: Path) -> None:
    given = ("--estimator", "polynomial-network", "--max-iter", 2)
    result = run("train", folder / "all.svm", "--model", "m", *given)
    assert result.code == 0, result.err
    assert isinstance(load_pipeline("m").model, PolynomialNetworkClassifier)
    assert run("inspect", "m").code == 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--lifted",), "--lifted is for --estimator polynomial-network"),
        (("--estimator", "polynomial-network", "--penalty", "l1"), "--penalty is for"),
        (("--estimator", "polynomial-network", "--solver", "sgd"), "lifted=False"),
    ],
)
def test_flags_of_another_estimator_are_refused(
    run: Run, folder: Path, flags: tuple[str, ...], words: str
) -> None:
    result = run("train", folder / "all.svm", "--model", "m", *flags)
    assert result.code != 0
    assert words in result.err


def test_help_names_the_estimator_of_a_flag(run: Run) -> None:
    text = " ".join(run("train", "--help").out.split())
    assert "--estimator {fm,polynomial-network" in text
    assert "For polynomial-network: Whether the factors of a product are different" in text
