"""``polyfm online``: metrics as the stream goes by, checkpoints, and runs that go on."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import log_loss

from polyfm import FTRLClassifier, load_model
from polyfm.cli import online
from polyfm.data import load_svmlight
from polyfm.persistence.container import read_container

MODELS = ["ftrl", "fm", "hierarchical-fm", "pqr"]


def numbers_of(path):
    """All arrays of a model file."""
    return {name: array.copy() for name, array in read_container(Path(path))[0].items()}


def test_the_last_line_is_the_progressive_loss(run, folder):
    done = run("online", folder / "all.svm", "--batch-size", 50, "--window", 100, "--alpha", 0.5)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines] == ["100", "200", "300", "400", "400"]
    X, y = load_svmlight(folder / "all.svm", dtype=np.float64)
    model, shares = FTRLClassifier(alpha=0.5), []
    for start in range(0, 400, 50):
        part = slice(start, start + 50)
        if start:
            shares.append(model.predict_proba(X[part]))
        model.partial_fit(X[part], y[part])
    assert f"log_loss {log_loss(y[50:], np.concatenate(shares)):.5f}" in lines[-1]


@pytest.mark.parametrize("kind", MODELS)
def test_a_run_that_was_killed_goes_on_to_the_same_bits(kind, run, folder, monkeypatch):
    options = ["--model", kind, "--batch-size", 30, "--window", 70, "--every", 100]
    if kind == "pqr":
        options += ["--order", 4, "--warmup", 60]
    whole = run("online", folder / "all.svm", *options, "--output", "whole.polyfm")
    assert whole.code == 0, whole.err

    save, n_saved = online._save, []

    def save_and_die(*args):
        save(*args)
        n_saved.append(1)
        if len(n_saved) == 2:
            raise RuntimeError("killed")

    monkeypatch.setattr(online, "_save", save_and_die)
    options += ["--checkpoint", "run.polyfm"]
    killed = run("online", folder / "all.svm", *options)
    assert killed.code == 2 and "killed" in killed.err
    monkeypatch.setattr(online, "_save", save)
    resumed = run("online", folder / "all.svm", *options, "--resume", "--output", "resumed.polyfm")
    assert resumed.code == 0 and "going on after 210 rows" in resumed.err
    one, other = numbers_of("whole.polyfm"), numbers_of("resumed.polyfm")
    assert one.keys() == other.keys() and len(one) > 1
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)
    # Metrics, which are over all rows, and the windows from there on.
    speechless = [line.rpartition("  ")[0] for line in whole.out.splitlines()]
    rest = [line.rpartition("  ")[0] for line in resumed.out.splitlines()]
    assert rest == speechless[-len(rest) :] and len(rest) >= 2


def test_a_table_is_hashed(run, folder):
    done = run(
        "online", folder / "all.csv", "--target", "liked", "--model", "fm", "--batch-size", 20,
        "--output", "m.polyfm", "--max-features", 4096, "--number", "rating", "--metrics", "auc",
    )  # fmt: skip
    assert done.code == 0, done.err
    model = load_model("m.polyfm")
    assert model.n_features_in_ == 4096 and model.classes_.tolist() == ["no", "yes"]
    assert model.predict_one({"user": "3", "film": "film 2", "rating": 4.1}) in ("no", "yes")
    assert float(done.out.split()[-3]) > 0.6


def test_an_interrupt_leaves_a_checkpoint(run, folder, monkeypatch):
    take = online.Progressive.take

    def interrupted(self, batch):
        if self.n_rows == 100:
            raise KeyboardInterrupt
        return take(self, batch)

    monkeypatch.setattr(online.Progressive, "take", interrupted)
    options = ["--batch-size", 50, "--checkpoint", "run.polyfm"]
    done = run("online", folder / "all.svm", *options)
    assert done.code == 130 and "after 100 rows" in done.err and "--resume" in done.err
    monkeypatch.undo()
    assert run("online", folder / "all.svm", *options, "--resume").code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--resume"], "name it by --checkpoint"),
        (["--every", 0], "--every must be at least 1"),
        (["--rank", 3], "--rank is not for --model ftrl"),
        (["--metrics", "speed"], "'speed' is none for classification"),
        (["--max-features", 5], "raise max_features"),
        (["--zero-based", "--format", "csv"], "name the column to predict"),
    ],
)
def test_what_cannot_be(options, words, run, folder):
    done = run("online", folder / "all.svm", *options)
    assert done.code == 2
    assert words in done.err and len(done.err.splitlines()) == 1


def test_other_rows_than_before(run, folder):
    options = ["--checkpoint", "run.polyfm", "--every", 100, "--quiet"]
    assert run("online", folder / "all.svm", "--batch-size", 50, *options).code == 0
    done = run("online", folder / "all.svm", "--batch-size", 40, *options, "--resume")
    assert done.code == 2 and "batch_size was 50 and is 40 now" in done.err
