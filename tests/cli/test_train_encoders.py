"""polyfm train --encoder, and the commands that take its model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import Run

from polyfm import load_pipeline
from polyfm.data import HashingEncoder, OneHotFieldEncoder, VocabularyEncoder, load_csv

KINDS = {"onehot": OneHotFieldEncoder, "vocabulary": VocabularyEncoder, "hashing": HashingEncoder}


@pytest.mark.parametrize("kind", KINDS)
def test_every_command_takes_a_model_with_its_encoder(kind: str, run: Run, folder: Path) -> None:
    bits = ["--bits", 12] if kind == "hashing" else []
    flags = ["--encoder", kind, *bits, "--numeric", "seconds=log2", "--max-iter", 3]
    options = ["--target", "liked", "--model", "m", *flags, "--validation", folder / "test.csv"]
    assert run("train", folder / "all.csv", *options).code == 0
    saved = load_pipeline("m")
    assert type(saved.encoder) is KINDS[kind]
    assert saved.model.n_features_in_ == saved.encoder.n_features_out_
    X = saved.encoder.transform(load_csv(folder / "test.csv")[0])
    lines = run("predict", folder / "test.csv", "--model", "m").out.split()
    assert lines[1:] == saved.model.predict(X).tolist()
    judged = json.loads(run("evaluate", folder / "test.csv", "--model", "m", "--json").out)
    assert judged["rows"] == X.shape[0]
    assert np.isfinite(judged["log loss"])
    assert "user" in run("inspect", "m").out


def test_bits_are_the_width(run: Run, folder: Path) -> None:
    flags = ["--encoder", "hashing", "--bits", 6, "--max-iter", 1, "--tol", 0]
    result = run("train", folder / "all.csv", "--target", "liked", "--model", "m", *flags)
    assert "64 features" in result.err


def test_the_vocabulary_is_that_of_one_hot(run: Run, folder: Path) -> None:
    for kind in ("onehot", "vocabulary"):
        flags = ["--encoder", kind, "--min-count", 3, "--max-iter", 2, "--tol", 0]
        run("train", folder / "all.csv", "--target", "liked", "--model", kind, *flags)
    one_hot, words = (load_pipeline(kind) for kind in ("onehot", "vocabulary"))
    names = [saved.encoder.get_feature_names_out().tolist() for saved in (one_hot, words)]
    assert names[0] == names[1]
    np.testing.assert_array_equal(one_hot.model.coef_, words.model.coef_)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--encoder", "hashing", "--min-count", 2], "--min-count is for --encoder onehot and"),
        (["--encoder", "hashing", "--bits", 40], "n_bits must be an integer of at most 30"),
        (["--encoder", "hashing", "--beta", "user=1"], "hashed tables do not"),
    ],
)
def test_impossible_flags(flags: list[object], message: str, run: Run, folder: Path) -> None:
    result = run("train", folder / "all.csv", "--target", "liked", "--model", "m", *flags)
    assert result.code != 0
    assert message in result.err
