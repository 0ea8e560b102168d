"""train, predict and evaluate on rows that are read batch by batch."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import N, Run
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

from polyfm import Checkpoint, FMClassifier, FMRegressor, FTRLClassifier, load_model, load_pipeline
from polyfm.cli import _progress, _reading, _tables, _training_rows, main
from polyfm.data import (
    Dataset,
    Source,
    VocabularyEncoder,
    load_csv,
    load_libffm,
    load_svmlight,
    load_vw,
    table_streams,
)
from polyfm.online.streams import iter_batches
from polyfm.persistence.container import read_container

FAST = ["--max-iter", 3, "--tol", 0]


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of 37 rows, so that small files have several."""
    for module, name in (
        (_reading, "BATCH_ROWS"),
        (_tables, "BATCH_ROWS"),
        (_tables, "EVENT_ROWS"),
    ):
        monkeypatch.setattr(module, name, 37)


@pytest.fixture(scope="session")
def vw(folder: Path) -> Path:
    """The films as Vowpal Wabbit text, with importances."""
    path, lines = folder / "all.vw", []
    for k, line in enumerate((folder / "all.csv").read_text().splitlines()[1:]):
        user, film, _, liked, _ = line.split(",")
        label = 1 if liked == "yes" else -1
        lines.append(f"{label} {1 + k % 3} |u user{user} |f {film.replace(' ', '_')}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def models(folder: Path, vw: Path) -> dict[str, Path]:
    """A model of labels by the format of the file that it was trained on."""
    found = {}
    for layout in ("svm", "ffm", "vw", "csv"):
        found[layout] = folder / f"{layout}.model"
        words = ["train", folder / f"all.{layout}", "--model", found[layout], "--quiet", *FAST]
        more = {"csv": ["--target", "liked"], "vw": ["--n-bits", 10]}.get(layout, [])
        assert main([str(word) for word in [*words, *more]]) == 0
    return found


def tensors(path: Path | str) -> dict[str, Any]:
    return {name: array.copy() for name, array in read_container(Path(path))[0].items()}


def assert_same_model(one: Path | str, other: Path | str) -> None:
    first, second = tensors(one), tensors(other)
    assert first.keys() == second.keys() and len(first) > 1
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)


def column(text: str, place: int = -1) -> list[str]:
    return [row[place] for row in list(csv.reader(io.StringIO(text)))[1:]]


def matrix_of(layout: str, folder: Path, model: Any) -> Any:
    if layout == "svm":
        return load_svmlight(folder / "all.svm")[0]
    if layout == "ffm":
        return load_libffm(folder / "all.ffm")[0]
    if layout == "vw":
        return load_vw(folder / "all.vw", n_bits=10).X
    return load_pipeline(model).encoder.transform(load_csv(folder / "all.csv")[0])


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("layout", ["svm", "ffm", "vw", "csv"])
def test_predictions_are_those_of_the_whole_matrix_to_the_bit(
    layout: str, run: Run, folder: Path, models: dict[str, Path]
) -> None:
    model = load_model(models[layout])
    X = matrix_of(layout, folder, models[layout])
    regression = isinstance(model, FMRegressor)
    expected = model.predict(X) if regression else model.predict_proba(X)[:, 1]
    flags = [] if regression else ["--proba"]
    told = run("predict", folder / f"all.{layout}", "--model", models[layout], *flags)
    assert told.code == 0, told.err
    np.testing.assert_array_equal(np.array(column(told.out), expected.dtype), expected)

    notes = {key: load_pipeline(models[layout]).notes.get(key) for key in ("format", "zero_based")}
    encoder = load_pipeline(models[layout]).encoder
    kept = {} if encoder is None else {"encoder.json": encoder.to_json().encode()}
    Dataset.write("rows.data", [(X, None)], shard_rows=150, notes=notes, attachments=kept)
    again = run("predict", "rows.data", "--model", models[layout], *flags)
    assert again.code == 0, again.err
    assert again.out == told.out


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("layout", ["svm", "ffm", "vw", "csv"])
def test_a_pipe_is_not_copied(
    layout: str,
    run: Run,
    folder: Path,
    models: dict[str, Path],
    feed: Callable[[bytes], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = run("predict", folder / f"all.{layout}", "--model", models[layout])

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("a temporary file")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    feed((folder / f"all.{layout}").read_bytes())
    assert run("predict", "-", "--model", models[layout]) == expected
    feed((folder / f"all.{layout}").read_bytes())
    assert run("evaluate", "-", "--model", models[layout]).code == 0


@pytest.mark.usefixtures("small_batches")
def test_parquet_out_and_in(run: Run, folder: Path, models: dict[str, Path]) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(load_csv(folder / "all.csv")[0].to_native(), "t.parquet")
    expected = run("predict", folder / "all.csv", "--model", models["csv"], "--proba").out
    assert run("predict", "t.parquet", "--model", models["csv"], "--proba").out == expected
    told = run("predict", "t.parquet", "--model", models["csv"], "--proba", "--output", "p.parquet")
    assert told.code == 0 and f"{N} predictions written to p.parquet" in told.err
    table = pq.read_table("p.parquet")
    assert table.column_names == ["proba_no", "proba_yes"]
    np.testing.assert_array_equal(
        table.column("proba_yes").to_numpy(), np.array(column(expected), np.float32)
    )
    assert pq.ParquetFile("p.parquet").num_row_groups == -(-N // 37)
    run("predict", "t.parquet", "--model", models["csv"], "--output", "labels.parquet")
    labels = pq.read_table("labels.parquet").column("prediction").to_pylist()
    assert labels == column(run("predict", "t.parquet", "--model", models["csv"]).out)


@pytest.mark.usefixtures("small_batches")
def test_several_packed_files(run: Run, folder: Path, models: dict[str, Path]) -> None:
    lines = (folder / "all.svm").read_bytes().splitlines(keepends=True)
    Path("a.svm").write_bytes(b"".join(lines[:100]))
    Path("b.svm.gz").write_bytes(gzip.compress(b"".join(lines[100:])))
    expected = run("predict", folder / "all.svm", "--model", models["svm"])
    assert run("predict", "a.svm", "b.svm.gz", "--model", models["svm"]) == expected
    assert run("predict", "[ab].svm*", "--model", models["svm"]) == expected


@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("small_batches")
def test_no_half_output_is_left(run: Run, folder: Path, models: dict[str, Path]) -> None:
    Path("bad.svm").write_text((folder / "all.svm").read_text() + "1 1:x\n")
    Path("out.csv").write_text("before")
    told = run("predict", "bad.svm", "--model", models["svm"], "--output", "out.csv")
    assert told.code == 2 and f"line {N + 1}" in told.err
    assert Path("out.csv").read_text() == "before"
    assert sorted(os.listdir()) == ["bad.svm", "out.csv"]
    words = ["--output", "out.csv", "--on-error", "skip"]
    told = run("predict", "bad.svm", "--model", models["svm"], *words)
    assert told.code == 0 and "1 line was left out" in told.err
    assert column(Path("out.csv").read_text()) == column(
        run("predict", folder / "all.svm", "--model", models["svm"]).out
    )


@pytest.mark.usefixtures("small_batches")
def test_figures_of_a_stream(run: Run, vw: Path, models: dict[str, Path]) -> None:
    rows = load_vw(vw, n_bits=10)
    model = load_model(models["vw"])
    p = model.predict_proba(rows.X)[:, 1].astype(np.float64)
    weight = rows.weight
    assert weight is not None and len(np.unique(weight)) == 3
    figures = json.loads(run("evaluate", vw, "--model", models["vw"], "--json").out)
    assert figures["rows"] == N
    assert figures["log loss"] == pytest.approx(log_loss(rows.y, p, sample_weight=weight), rel=1e-6)
    assert figures["AUC"] == pytest.approx(roc_auc_score(rows.y, p, sample_weight=weight))
    right = accuracy_score(rows.y, model.predict(rows.X), sample_weight=weight)
    assert figures["accuracy"] == pytest.approx(right)


@pytest.mark.usefixtures("small_batches")
def test_the_row_of_an_unknown_label(run: Run, folder: Path, models: dict[str, Path]) -> None:
    lines = (folder / "all.svm").read_text().splitlines()
    lines[90] = "3 1:1"
    Path("odd.svm").write_text("\n".join(lines))
    told = run("evaluate", "odd.svm", "--model", models["svm"])
    assert told.code == 2 and "data row 91 has the label 3" in told.err


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_tables_that_a_stream_hashed(ending: str, run: Run, folder: Path) -> None:
    path = Path(f"t.{ending}")
    if ending == "parquet":
        pq = pytest.importorskip("pyarrow.parquet")
        pq.write_table(load_csv(folder / "all.csv")[0].to_native(), path)
    else:
        text = (folder / "all.csv").read_bytes()
        path.write_bytes(gzip.compress(text) if ending == "csv.gz" else text)
    words = ["--target", "liked", "--model", "fm", "--max-features", 4096, "--quiet"]
    numbers = [] if ending == "parquet" else ["--number", "rating"]
    told = run("online", path, *words, *numbers, "--output", "m")
    assert told.code == 0, told.err
    model = load_model("m")
    options = {"target": "liked", "numbers": [] if ending == "parquet" else ["rating"]}
    [batch] = iter_batches(path, N, **options)
    expected = model.predict_proba(batch.X)[:, 1]
    told = run("predict", path, "--model", "m", "--proba")
    assert told.code == 0, told.err
    np.testing.assert_array_equal(np.array(column(told.out), expected.dtype), expected)
    figures = json.loads(run("evaluate", path, "--model", "m", "--json").out)
    assert figures["accuracy"] == pytest.approx(np.mean(model.predict(batch.X) == batch.y))
    told = run("predict", folder / "all.svm", "--model", "m")
    assert told.code == 2 and "trained on names" in told.err


def test_a_hashing_model_from_python_takes_tables(run: Run, folder: Path) -> None:
    from polyfm import save_model

    frame, y, _ = load_csv(folder / "all.csv", target="liked")
    model = FMClassifier(max_features=1024, random_state=0).partial_fit(frame, y)
    save_model(model, "m")
    told = run("predict", folder / "all.csv", "--model", "m", "--proba")
    assert "names no target" in run("evaluate", folder / "all.csv", "--model", "m").err
    p = model.predict_proba(load_csv(folder / "all.csv")[0])[:, 1]
    np.testing.assert_array_equal(np.array(column(told.out), p.dtype), p)
    words = ["evaluate", folder / "all.csv", "--target", "liked", "--model", "m", "--json"]
    p = model.predict_proba(frame)[:, 1].astype(float)
    assert json.loads(run(*words).out)["log loss"] == pytest.approx(log_loss(y, p), rel=1e-6)


def test_indices_without_a_note_where_they_start(
    run: Run, folder: Path, feed: Callable[[bytes], None]
) -> None:
    from polyfm import save_model

    X, y, _ = load_libffm(folder / "all.ffm")
    model = FMRegressor(max_iter=2, random_state=0).fit(X, y)
    save_model(model, "m")
    expected = [str(value) for value in model.predict(X)]
    assert column(run("predict", folder / "all.ffm", "--model", "m").out) == expected
    feed((folder / "all.ffm").read_bytes())
    told = run("predict", "-", "--model", "m")
    assert told.code == 2 and "say --zero-based true" in told.err
    feed((folder / "all.ffm").read_bytes())
    assert column(run("predict", "-", "--model", "m", "--zero-based", "true").out) == expected


def test_training_from_a_dataset(run: Run, folder: Path) -> None:
    assert run("convert", folder / "all.svm", "d").code == 0
    told = run("train", "d", "--model", "m", *FAST)
    assert told.code == 0, told.err
    assert f"{N} rows, 21 features, classification of -1 (" in told.err
    expected = FMClassifier(max_iter=3, tol=0, random_state=0).fit(Dataset("d"))
    X, _ = load_svmlight(folder / "all.svm")
    np.testing.assert_array_equal(
        load_model("m").decision_function(X), expected.decision_function(X)
    )
    assert load_pipeline("m").notes == {
        "format": "svmlight", "zero_based": False, "task": "classification",
    }  # fmt: skip
    predicted = run("predict", folder / "all.svm", "--model", "m").out
    assert set(column(predicted)) == {"-1", "1"}
    assert run("predict", "d", "--model", "m").out == predicted


@pytest.mark.parametrize("kind", ["vocabulary", "hashing"])
def test_the_encoder_of_a_dataset_goes_with_the_model(kind: str, run: Run, folder: Path) -> None:
    bits = ["--n-bits", 9] if kind == "hashing" else []
    words = ["--target", "liked", "--encoder", kind, *bits]
    assert run("convert", folder / "all.csv", "d", *words).code == 0
    assert run("convert", folder / "test.csv", "t", *words).code == 0
    words = ["--validation", folder / "test.csv", "--target", "liked", *FAST]
    told = run("train", "d", "--model", "m", *words)
    assert told.code == 0 and "validation_loss" in told.err, told.err
    from_table = run("predict", folder / "all.csv", "--model", "m", "--proba")
    assert (
        from_table.code == 0
        and from_table.out == run("predict", "d", "--model", "m", "--proba").out
    )
    assert run("evaluate", "d", "--model", "m").code == 0
    told = run("predict", "t", "--model", "m")
    assert told.code == 2 and "was not made by the encoder of the model" in told.err


def test_penalties_by_the_names_of_fields(run: Run, folder: Path, vw: Path) -> None:
    assert run("convert", vw, "d", "--n-bits", 10).code == 0
    for name, data, bits in (("a", "d", []), ("b", vw, ["--n-bits", 10])):
        words = ["--beta", "u=3,f=5,=1", *bits, *FAST]
        told = run("train", data, "--model", name, *words)
        assert told.code == 0, told.err
    assert set(np.unique(load_model("b").fields)) == {"u", "f", ""}


def test_one_pass_over_text(run: Run, folder: Path, feed: Callable[[bytes], None]) -> None:
    words = ["--n-features", 30, "--max-iter", 1]
    told = run("train", folder / "all.svm", "--model", "m", *words)
    assert told.code == 0, told.err
    assert "in the first rows" in told.err and f"trained on {N} rows, each once" in told.err
    expected = FMClassifier(max_iter=1, random_state=0)
    expected.fit(Source(folder / "all.svm", n_features=30))
    X, _ = load_svmlight(folder / "all.svm", n_features=30)
    np.testing.assert_array_equal(
        load_model("m").decision_function(X), expected.decision_function(X)
    )
    feed((folder / "all.svm").read_bytes())
    assert run("train", "-", "--model", "p", "--format", "svmlight", *words).code == 0
    assert_same_model("m", "p")
    assert run("evaluate", folder / "all.svm", "--model", "p").code == 0


def test_one_pass_over_a_hashed_table(run: Run, folder: Path) -> None:
    words = ["--target", "liked", "--encoder", "hashing", "--bits", 10, "--max-iter", 1]
    told = run("train", folder / "all.csv", folder / "test.csv", "--model", "m", *words, "--quiet")
    assert told == (0, "", "")
    saved = load_pipeline("m")
    assert saved.notes["target"] == "liked" and saved.encoder.n_bits == 10
    assert saved.model.t_ == N + 50
    assert run("evaluate", folder / "all.csv", "--model", "m").code == 0


def test_large_files_are_converted_first(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_training_rows, "MOST_IN_MEMORY", 100)
    for layout in ("svm", "ffm", "csv"):
        flags = ["--target", "liked"] if layout == "csv" else []
        told = run("train", folder / f"all.{layout}", "--model", "m", *flags, *FAST)
        assert told.code == 0, told.err
        assert "from a temporary dataset that is written first" in told.err
        assert run("convert", folder / f"all.{layout}", f"{layout}.d", *flags).code == 0
        assert run("train", f"{layout}.d", "--model", "d", *flags, *FAST).code == 0
        assert_same_model("m", "d")
        assert load_pipeline("m").notes == load_pipeline("d").notes
        assert run("predict", folder / f"all.{layout}", "--model", "m").code == 0
    assert isinstance(load_pipeline("m").encoder, VocabularyEncoder)


def test_several_files_are_one(run: Run, folder: Path) -> None:
    for layout in ("svm", "ffm"):
        lines = (folder / f"all.{layout}").read_text().splitlines(keepends=True)
        Path(f"1.{layout}").write_text("".join(lines[:100]))
        Path(f"2.{layout}").write_text("".join(lines[100:]))
        words = ["--quiet", *FAST]
        assert run("train", f"1.{layout}", f"2.{layout}", "--model", "m", *words).code == 0
        assert run("train", folder / f"all.{layout}", "--model", "d", *words).code == 0
        assert_same_model("m", "d")


def test_solvers_that_need_all_rows_take_datasets(run: Run, folder: Path) -> None:
    assert run("convert", folder / "all.svm", "d").code == 0
    for flags in (["--solver", "lbfgs"], ["--estimator", "convex-fm"]):
        told = run("train", "d", "--model", "m", *flags, "--max-iter", 3)
        assert told.code == 0, told.err
        told = run("train", "d", "--model", "m", *flags, "--checkpoint", "c")
        assert told.code == 2 and "needs all rows at once" in told.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train {}/all.svm --model m --every 5", "name it by --checkpoint"),
        ("train {}/all.svm --model m --resume", "name it by --checkpoint"),
        ("train {}/all.svm --model m --checkpoint m", "need a file each"),
        ("train {}/all.svm --model m --checkpoint c --every 0", "--every must be at least 1"),
        ("train {}/all.svm --model m --max-memory 1kB", "more than max_memory"),
        ("train {}/all.svm --model m --max-memory many", "max_memory must be"),
        ("train {}/all.svm --model m --n-features 5", "line 1"),
        ("train {}/all.svm {}/all.csv --model m", "files of one format are needed"),
        ("train {}/all.svm {}/empty --model m --target y", "empty is empty"),
        ("train {}/empty.svm --model m", "the file is empty"),
        ("train {}/empty.svm --model m --n-features 3 --max-iter 1", "has no rows"),
        ("train {}/empty.svm --model m --checkpoint c", "no rows in it"),
        ("train {}/one.svm --model m --n-features 9 --max-iter 1", "rows all have the target 1"),
        ("train {}/bare.d --model m", "has no targets"),
        ("train {}/bare.d {}/all.svm --model m", "several datasets are not read as one"),
        ("train {}/svm.d --model m --n-features 5", "--n-features 5: there are 21 columns"),
        ("train {}/gone.svm --model m", "gone.svm: No such file"),
        ("train {}/gone.svm --model m --checkpoint c", "gone.svm: No such file"),
        ("predict {}/empty.svm --model {}/svm.model", "empty.svm: no rows in it"),
        ("predict {}/gone.svm --model {}/svm.model", "gone.svm: No such file"),
        ("predict {}/all.vw --model {}/svm.model", "power of 2"),
        ("predict {}/svm.d --model {}/csv.model", "was not made by the encoder"),
        ("predict {}/svm.d --model {}/ffm.model", "convert with --zero-based true"),
        ("predict {}/other.csv --model {}/csv.model", "no column 'film'"),
        ("predict {} --model {}/svm.model", "is no dataset"),
        ("evaluate {}/bare.d --model {}/svm.model", "bare.d has no targets"),
        ("evaluate {}/other.csv --model {}/csv.model", "no column"),
        ("evaluate {}/all.csv --model {}/csv.model --target nope", "no column 'nope'"),
    ],
)
def test_what_is_wrong_is_told(
    words: str, message: str, run: Run, folder: Path, models: dict[str, Path]
) -> None:
    (folder / "empty.svm").write_text("")
    (folder / "empty").write_text("")
    (folder / "one.svm").write_text("1 1:1\n1 2:1\n")
    (folder / "other.csv").write_text("user,seconds\n1,2\n")
    if not (folder / "svm.d").exists():
        assert main(["convert", str(folder / "all.svm"), str(folder / "svm.d"), "--quiet"]) == 0
        Dataset.write(folder / "bare.d", [(load_svmlight(folder / "all.svm")[0], None)])
    told = run(*(word.replace("{}", str(folder)) for word in words.split()))
    assert told.code == 2, told.err
    assert message in told.err.splitlines()[-1], told.err
    assert "unexpected" not in told.err and "Traceback" not in told.err


@pytest.mark.usefixtures("small_batches")
def test_a_file_that_changes_meanwhile(
    run: Run, folder: Path, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path("growing.svm")
    path.write_bytes((folder / "all.svm").read_bytes())
    learn = FMClassifier.predict

    def predict(self: Any, X: Any) -> Any:
        with path.open("a") as stream:
            stream.write("1 1:1\n")
        return learn(self, X)

    monkeypatch.setattr(FMClassifier, "predict", predict)
    told = run("predict", path, "--model", models["svm"], "--output", "out.csv")
    assert told.code == 2 and "growing.svm has changed while it was read" in told.err
    assert not Path("out.csv").exists()


@pytest.mark.filterwarnings("default")
def test_bad_lines_are_skipped_and_told(run: Run, folder: Path) -> None:
    lines = (folder / "all.svm").read_text().splitlines()
    Path("bad.svm").write_text("\n".join([*lines[:9], "1 1:x", *lines[9:], "no row"]))
    for name, flags in (("a", []), ("b", ["--n-features", 21])):
        words = ["--model", name, "--max-iter", 1, *flags]
        told = run("train", "bad.svm", *words)
        assert told.code == 2 and "line 10" in told.err
        told = run("train", "bad.svm", *words, "--on-error", "skip")
        assert told.code == 0 and "2 lines were left out" in told.err
        good = run("train", folder / "all.svm", "--model", "good", "--max-iter", 1, *flags)
        assert good.code == 0
        assert_same_model(name, "good")
    text = (folder / "all.csv").read_text()
    Path("bad.csv").write_text(text + "1,2\n")
    told = run("train", "bad.csv", "--target", "liked", "--model", "m", *FAST, "--on-error", "skip")
    assert told.code == 0 and "1 line was left out" in told.err


def test_an_interrupt_of_one_pass_saves_what_was_learnt(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn, calls = FTRLClassifier._partial_fit_classes, []

    def partial_fit(self: Any, *args: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return learn(self, *args)

    monkeypatch.setattr(FTRLClassifier, "_partial_fit_classes", partial_fit)
    monkeypatch.setattr(Source, "__init__", in_batches_of(100))
    words = ["--estimator", "ftrl", "--model", "m", "--n-features", 21, "--max-iter", 1]
    told = run("train", folder / "all.svm", *words, "--checkpoint", "c", "--every", 100)
    assert told.code == 130
    assert "after 200 rows was saved to m; --resume goes on from c" in told.err.splitlines()[-1]
    assert load_model("m").t_ == 200


def in_batches_of(n_rows: int) -> Any:
    make = Source.__init__

    def init(self: Source, *args: Any, **options: Any) -> None:
        make(self, *args, **{**options, "batch_rows": n_rows})

    return init


MORTAL = """
import os, signal, sys
from polyfm.cli import main
from polyfm.estimators import _out_of_core, checkpoints
from polyfm.persistence import container
from polyfm.data.source import Source

_out_of_core._PART_ROWS = 1024  # so that few rows have many parts
make = Source.__init__
Source.__init__ = lambda self, *args, **options: make(self, *args, **{**options, "batch_rows": 500})
left, when = int(sys.argv[1]), sys.argv[2]
save = checkpoints.Keeper.save
replace = os.replace

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def mortal(self):
    global left
    left -= 1
    if left == 0 and when == "before":
        os.replace = lambda *args: die()
    save(self)
    if left == 0:
        die()

if when != "never":
    checkpoints.Keeper.save = mortal
sys.exit(main(sys.argv[3:]))
"""


@pytest.mark.skipif(os.name == "nt", reason="no such signal")
@pytest.mark.parametrize("way", ["stream", "dataset"])
def test_kill_and_resume(way: str, tmp_path: Path, run: Run) -> None:
    random = np.random.default_rng(3)
    rows = random.integers(1, 40, (3_000, 4))
    labels = (rows[:, 0] + rows[:, 1]) % 2
    lines = (
        f"{label} " + " ".join(f"{j}:1" for j in sorted(set(row)))
        for label, row in zip(labels, rows.tolist(), strict=True)
    )
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    (tmp_path / "child.py").write_text(MORTAL)
    data: list[object] = ["rows.svm", "--n-features", 40, "--max-iter", 1]
    if way == "dataset":
        assert run("convert", "rows.svm", "rows.data", "--quiet").code == 0
        data = ["rows.data", "--max-iter", 3, "--tol", 0]

    def train(n: int, when: str, *flags: object) -> int:
        words = [sys.executable, "child.py", n, when, "train", *data, "--quiet", *flags]
        done = subprocess.run(
            [str(word) for word in words], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.stderr == ""
        return done.returncode

    assert train(0, "never", "--model", "whole.polyfm") == 0
    checkpoint = ["--checkpoint", "run.polyfm", "--every", 1, "--resume"]
    quiet = ["--model", "end.polyfm", *checkpoint]
    assert train(2, "after", *quiet) == -signal.SIGKILL
    first = tensors("run.polyfm")
    assert train(2, "before", *quiet) == -signal.SIGKILL
    second = tensors("run.polyfm")  # the first checkpoint of the second process, whole
    assert any((first[name] != array).any() for name, array in second.items() if name in first)
    assert not Path("end.polyfm").exists()
    assert train(0, "never", *quiet) == 0
    assert_same_model("whole.polyfm", "end.polyfm")


def test_a_checkpoint_of_other_rows(run: Run, folder: Path) -> None:
    words = ["--model", "m", "--checkpoint", "c", "--quiet", *FAST]
    assert run("train", folder / "all.svm", *words).code == 0
    assert Path("c").exists()
    lines = (folder / "all.svm").read_text().splitlines()
    Path("less.svm").write_text("\n".join(lines[:300]))
    told = run("train", "less.svm", *words, "--resume")
    assert told.code == 2 and "a training from other rows: leave out --resume" in told.err
    assert run("train", "less.svm", *words).code == 0


def test_public_names() -> None:
    assert repr(Checkpoint("run.polyfm", rows=10)).startswith("Checkpoint('run.polyfm', rows=10")
    assert Source("a.svm").layout == "svmlight"


@pytest.mark.parametrize("way", [[], ["--encoder", "hashing", "--bits", 12]])
def test_columns_that_change_their_kind(
    way: list[object], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_streams, "_BLOCK", 4096)
    lines = [f"{i % 2},{i % 5},{'x' if i % 2 else 'y'}" for i in range(4_000)]
    Path("ids.csv").write_text("click,id,device\n" + "\n".join([*lines, "1,k7,x"]) + "\n")
    words = ["--target", "click", "--model", "m", "--max-iter", 1, "--checkpoint", "c", *way]
    told = run("train", "ids.csv", *words)
    assert told.code == 2 and "say --text 'id' if it holds text" in told.err
    told = run("train", "ids.csv", *words, "--text", "id")
    assert told.code == 0, told.err
    assert "say --text 'id'" in run("evaluate", "ids.csv", "--model", "m").err
    figures = run("evaluate", "ids.csv", "--model", "m", "--text", "id", "--json").out
    assert json.loads(figures)["accuracy"] > 0.99
    assert "no column 'nope'" in run("predict", "ids.csv", "--model", "m", "--text", "nope").err


def test_online_learns_datasets_and_vowpal_wabbit_text(run: Run, folder: Path, vw: Path) -> None:
    assert run("convert", folder / "all.csv", "d", "--target", "liked").code == 0
    assert run("convert", vw, "v").code == 0
    for data in ("d", "v", vw):
        told = run("online", data, "--model", "fm", "--batch-size", 50, "--output", "m")
        assert told.code == 0, told.err
        assert "400 rows in all" in told.out
        rows = folder / "all.csv" if data == "d" else vw
        told = run("evaluate", rows, "--model", "m", "--json")
        assert told.code == 0, told.err
        assert json.loads(told.out)["AUC"] > 0.55
    assert run("predict", "d", "--model", "m").code == 2


@pytest.mark.usefixtures("small_batches")
def test_a_terminal_sees_bytes_and_a_rate(
    run: Run, folder: Path, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_progress, "_SECONDS_BETWEEN_DRAWS", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    for words in (
        ["predict", folder / "all.svm", "--model", models["svm"], "--output", "o.csv"],
        ["evaluate", folder / "all.csv", "--model", models["csv"]],
        ["train", folder / "all.svm", "--model", "m", "--n-features", 21, "--max-iter", 1],
        ["online", folder / "all.svm", "--model", "ftrl"],
    ):
        told = run(*words)
        assert told.code == 0, told.err
        drawn = [part for part in told.err.split("\r") if "MB/s" in part and "%" in part]
        assert any(f"{N} rows" in part and "100%" in part for part in drawn), told.err
        assert "%" not in run(*words, "--quiet").err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_named_pipes(run: Run, folder: Path, models: dict[str, Path]) -> None:
    content = (folder / "all.ffm").read_bytes()
    os.mkfifo("pipe")

    def through(*words: object) -> Any:
        writer = threading.Thread(target=lambda: Path("pipe").write_bytes(content))
        writer.start()
        told = run(*words)
        writer.join()
        return told

    told = run("predict", "pipe", "--model", models["ffm"])
    assert told.code == 2 and "name their format by --format" in told.err
    words = ["--format", "libffm"]
    predicted = through("predict", "pipe", "--model", models["ffm"], *words)
    assert predicted == run("predict", folder / "all.ffm", "--model", models["ffm"])
    assert through("train", "pipe", "--model", "m", *words, "--quiet", *FAST).code == 0
    assert_same_model("m", models["ffm"])
    once = ["--n-features", 30, "--max-iter", 1, "--quiet", "--zero-based", "true"]
    assert through("train", "pipe", "--model", "p", *words, *once).code == 0
    assert run("train", folder / "all.ffm", "--model", "f", *once).code == 0
    assert_same_model("p", "f")
