"""predict, evaluate, inspect."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from commands import N, Run
from sklearn.metrics import log_loss, roc_auc_score

from polyfm import FMRegressor, load_pipeline, save_model
from polyfm.cli import main
from polyfm.data import load_csv, load_svmlight


def cells(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_predictions_equal_those_of_python(run: Run, folder: Path, liked: Path) -> None:
    saved = load_pipeline(liked)
    X = saved.encoder.transform(load_csv(folder / "test.csv")[0])
    rows = cells(run("predict", folder / "test.csv", "--model", liked).out)
    assert rows[0] == ["prediction"]
    assert [row[0] for row in rows[1:]] == saved.model.predict(X).tolist()
    rows = cells(run("predict", folder / "test.csv", "--model", liked, "--proba").out)
    assert rows[0] == ["proba_no", "proba_yes"]
    p = np.array(rows[1:], dtype=np.float32)
    np.testing.assert_array_equal(p, saved.model.predict_proba(X))


def test_output_file_without_target_column(run: Run, folder: Path, liked: Path) -> None:
    lines = (folder / "test.csv").read_text().splitlines()
    Path("new.csv").write_text(
        "\n".join(",".join([*line.split(",")[:3], line.split(",")[4]]) for line in lines)
    )
    result = run("predict", "new.csv", "--model", liked, "--output", "out.csv")
    assert result.code == 0 and result.out == ""
    assert "50 predictions written to out.csv" in result.err
    expected = run("predict", folder / "test.csv", "--model", liked).out
    assert Path("out.csv").read_text() == expected


def test_labels_in_svmlight_are_never_needed(
    run: Run, folder: Path, clicks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = "\n".join(
        line.split(" ", 1)[1] for line in (folder / "all.svm").read_text().splitlines()
    )
    Path("bare.txt").write_text(bare + "\n")
    with_labels = run("predict", folder / "all.svm", "--model", clicks).out
    assert run("predict", "bare.txt", "--model", clicks).out == with_labels
    with open("bare.txt") as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert run("predict", "-", "--model", clicks).out == with_labels


def test_unknown_indices_are_ignored_and_told(run: Run, clicks: Path) -> None:
    Path("new.svm").write_text("1 1:1 14:1 999:5\n-1 2:1 14:1\n")
    Path("known.svm").write_text("1 1:1 14:1\n-1 2:1 14:1\n")
    result = run("predict", "new.svm", "--model", clicks, "--proba")
    assert "1 entries with indices that the model does not know" in result.err
    assert result.out == run("predict", "known.svm", "--model", clicks, "--proba").out


def test_evaluation_of_labels(run: Run, folder: Path, clicks: Path) -> None:
    X, y = load_svmlight(folder / "all.svm")
    p = load_pipeline(clicks).model.predict_proba(X)[:, 1].astype(float)
    figures = json.loads(run("evaluate", folder / "all.svm", "--model", clicks, "--json").out)
    assert figures["rows"] == N
    assert figures["log loss"] == pytest.approx(log_loss(y, p), rel=1e-6)
    assert figures["AUC"] == pytest.approx(roc_auc_score(y, p))
    assert figures["accuracy"] == pytest.approx(np.mean((p > 0.5) == (y > 0)))
    table = run("evaluate", folder / "all.svm", "--model", clicks).out
    assert [line.split()[0] for line in table.splitlines()] == ["rows", "log", "AUC", "accuracy"]


def test_evaluation_of_numbers(run: Run, folder: Path) -> None:
    run("train", folder / "all.csv", "--target", "rating", "--model", "m", "--quiet")
    saved = load_pipeline("m")
    frame, y, _ = load_csv(folder / "test.csv", target="rating")
    error = saved.model.predict(saved.encoder.transform(frame)).astype(float) - y
    figures = json.loads(run("evaluate", folder / "test.csv", "--model", "m", "--json").out)
    assert figures["RMSE"] == pytest.approx(np.sqrt(np.mean(error**2)))
    assert figures["MAE"] == pytest.approx(np.mean(np.abs(error)))
    assert figures["R2"] == pytest.approx(1 - np.sum(error**2) / np.sum((y - y.mean()) ** 2))


def test_one_class_has_no_auc(run: Run, clicks: Path) -> None:
    Path("one.svm").write_text("1 1:1 14:1\n1 2:1 14:1\n")
    assert "AUC        undefined" in run("evaluate", "one.svm", "--model", clicks).out
    assert json.loads(run("evaluate", "one.svm", "--model", clicks, "--json").out)["AUC"] is None


def test_several_classes(run: Run, folder: Path) -> None:
    words = ["--target", "film", "--model", "m", "--max-iter", 2, "--quiet"]
    assert run("train", folder / "all.csv", *words).code == 0
    figures = json.loads(run("evaluate", folder / "all.csv", "--model", "m", "--json").out)
    assert 0.5 < figures["AUC"] <= 1.0
    header = cells(run("predict", folder / "all.csv", "--model", "m", "--proba").out)[0]
    assert header == [f"proba_film {k}" for k in range(9)]
    told = run("inspect", "m", "--class", "film 3", "--degree", 2, "--top", 2).out
    assert "for film 3" in told
    assert "--class 'x' is not among" in run("inspect", "m", "--class", "x").err


@pytest.mark.parametrize("ending", ["parquet", "tsv", "csv.unknown"])
def test_other_tables(run: Run, folder: Path, liked: Path, ending: str) -> None:
    path = Path(f"t.{ending}")
    text = (folder / "test.csv").read_text()
    if ending == "parquet":
        pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        pq.write_table(load_csv(folder / "test.csv")[0].to_native(), path)
    else:
        path.write_text(text.replace(",", "\t") if ending == "tsv" else text)
    expected = run("predict", folder / "test.csv", "--model", liked).out
    assert run("predict", path, "--model", liked).out == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("predict {}/all.csv --model {}/all.csv", "not a polyfm model file"),
        ("predict {}/all.csv --model gone", "gone: No such file"),
        ("predict {}/all.svm --model {}/liked.polyfm", "trained on the columns"),
        ("predict {}/all.csv --model {}/clicks.polyfm", "has no encoder"),
        ("predict {}/all.csv --model {}/liked.polyfm --output gone/o", "no such folder"),
        ("evaluate {}/all.csv --model {}/liked.polyfm --target user", "columns missing"),
        ("evaluate {}/other.svm --model {}/clicks.polyfm", "row 2 has the label 7"),
        ("evaluate {}/bad.svm --model {}/clicks.polyfm", "line 1"),
        ("inspect {}/liked.polyfm --degree 0", "degree must be"),
        ("inspect {}/liked.polyfm --min-count 3", "min_count needs X"),
    ],
)
def test_errors_take_one_line(
    run: Run, folder: Path, liked: Path, clicks: Path, words: str, message: str
) -> None:
    (folder / "other.svm").write_text("1 1:1\n7 2:1\n")
    (folder / "bad.svm").write_text("1 1:x\n")
    result = run(*(word.replace("{}", str(folder)) for word in words.split()))
    assert result.code == 2
    (line,) = result.err.splitlines()
    assert line.startswith("polyfm ") and message in line


def test_probabilities_of_numbers_are_refused(run: Run, folder: Path) -> None:
    X = load_svmlight(folder / "all.svm")[0]
    save_model(FMRegressor(max_iter=1).fit(X, np.arange(float(N))), "m")
    assert (
        "--proba is for labels" in run("predict", folder / "all.svm", "--model", "m", "--proba").err
    )


def test_inspect(run: Run, folder: Path, liked: Path) -> None:
    out = run("inspect", liked, "--data", folder / "all.csv", "--min-count", 1, "--top", 3).out
    for part in ("FMClassifier", "columns      user, film", "classes      no, yes", "order 2"):
        assert part in out
    singles, pairs = out.split("strongest ")[1:]
    assert singles.count(" rows)") == pairs.count(" rows)") == 3
    assert pairs.startswith("interactions of 2 features, for yes") and "  x  " in pairs


def test_every_command_has_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("demo", "train", "predict", "evaluate", "inspect"):
        assert main([command, "--help"]) == 0
        text = capsys.readouterr().out
        assert "example" in text and f"  polyfm {command}" in text
        assert "--quiet" in text and "--debug" in text
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("polyfm 0.")
    assert main([]) == 2
    assert main(["dance"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_inspect_beyond_the_order(run: Run, liked: Path) -> None:
    result = run("inspect", liked, "--degree", 5)
    assert result.code == 2
    assert "--degree 5 is beyond the model's order, 2: train with --order 5" in result.err
