from __future__ import annotations

import contextlib
import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import N, Run

from polyfm.data import Dataset, load_libffm, load_svmlight


@pytest.fixture
def svm(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    lines = [
        f"{random.normal():.3f} "
        + " ".join(
            f"{j}:{random.normal():.4g}" for j in np.flatnonzero(random.random(30) < 0.2) + 1
        )
        for _ in range(200)
    ]
    path = tmp_path / "rows.svm"
    path.write_text("\n".join(lines) + "\n")
    return path


def same(dataset: Dataset, X, y) -> bool:
    rows = dataset.rows(0, dataset.n_rows)
    return (
        rows.X.shape == X.shape
        and abs(rows.X - X).nnz == 0
        and rows.X.data.tobytes() == X.data.tobytes()
        and np.array_equal(rows.y, y)
    )


def test_a_file_becomes_a_dataset_of_the_same_bits(run: Run, svm: Path, tmp_path: Path) -> None:
    done = run("convert", svm, tmp_path / "d", "--rows-per-shard", "64")
    assert done.code == 0, done.err
    assert done.out == ""
    assert "200 rows x 30 columns" in done.err
    dataset = Dataset(tmp_path / "d")
    dataset.verify()
    assert [shard.n_rows for shard in dataset.shards] == [64, 64, 64, 8]
    assert same(dataset, *load_svmlight(svm))
    assert not dataset.has_weights
    assert dataset.notes == {"format": "svmlight", "zero_based": False, "files": [str(svm)]}
    assert run("convert", svm, tmp_path / "e", "--quiet").err == ""


def test_indices_from_zero_are_noticed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "r.svm"
    path.write_text("1 3:1\n" * 100 + "0 0:1 2:5\n")
    assert run("convert", path, tmp_path / "d").code == 0
    dataset = Dataset(tmp_path / "d")
    assert dataset.notes["zero_based"] is True
    assert same(dataset, *load_svmlight(path))
    done = run("convert", path, tmp_path / "e", "--zero-based", "false")
    assert done.code == 2
    assert "line 101" in done.err
    assert not (tmp_path / "e").exists()


def test_several_files_and_packed_ones(run: Run, svm: Path, tmp_path: Path) -> None:
    packed = tmp_path / "more.svm.gz"
    packed.write_bytes(gzip.compress(svm.read_bytes()))
    assert run("convert", svm, packed, tmp_path / "d").code == 0
    dataset, (X, y) = Dataset(tmp_path / "d"), load_svmlight(svm)
    assert dataset.n_rows == 400
    assert np.array_equal(dataset.targets, np.concatenate([y, y]))
    assert abs(dataset.rows(200, 400).X - X).nnz == 0


def test_fields_are_kept(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "r.ffm"
    path.write_text("1 0:1:1 1:4:1\n0 0:2:1 1:5:1\n1 0:1:1 1:1:1\n")
    assert run("convert", path, tmp_path / "d").code == 0
    dataset = Dataset(tmp_path / "d")
    X, y, fields = load_libffm(path, shared_ids="mark")
    assert same(dataset, X, y)
    assert dataset.fields.tolist() == fields.tolist()


def test_standard_input(run: Run, svm: Path, tmp_path: Path, feed) -> None:
    feed(svm.read_bytes())
    assert run("convert", "-", tmp_path / "d", "--format", "svmlight").code == 0
    assert same(Dataset(tmp_path / "d"), *load_svmlight(svm))
    feed(b"1 0:1\n")
    done = run("convert", "-", tmp_path / "e", "--format", "svmlight")
    assert done.code == 2
    assert "--zero-based true" in done.err


def test_what_exists_is_replaced_on_demand_only(run: Run, svm: Path, tmp_path: Path) -> None:
    assert run("convert", svm, tmp_path / "d").code == 0
    done = run("convert", svm, tmp_path / "d")
    assert done.code == 2
    assert "exists" in done.err
    assert run("convert", svm, tmp_path / "d", "--overwrite").code == 0
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    assert run("convert", svm, tmp_path / "mine", "--overwrite").code == 2
    assert (tmp_path / "mine" / "file").exists()


def test_a_bad_line_leaves_no_dataset(run: Run, svm: Path, tmp_path: Path) -> None:
    before = sorted(os.listdir(tmp_path))
    svm.write_text(svm.read_text() + "1 7:x\n")
    done = run("convert", svm, tmp_path / "d")
    assert done.code == 2
    assert "line 201" in done.err
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["none.svm", "d"], "none.svm"),
        (["{svm}", "-"], "standard output"),
        (["{svm}", "none/d"], "no such folder"),
        (["{folder}", "d"], "convert takes files"),
        (["{svm}", "other.ffm", "d"], "one format"),
        (["{svm}", "d", "--rows-per-shard", "0"], "at least 1"),
    ],
)
def test_what_cannot_be_done_is_told(
    run: Run, svm: Path, tmp_path: Path, monkeypatch, words: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [word.format(svm=svm, folder=tmp_path) for word in words]
    done = run("convert", *given)
    assert done.code == 2
    assert told in done.err
    assert not (tmp_path / "d").exists()


def test_an_empty_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "r.svm").write_text("")
    done = run("convert", tmp_path / "r.svm", tmp_path / "d")
    assert done.code == 2
    assert not (tmp_path / "d").exists()


def test_in_a_pipe(svm: Path, tmp_path: Path) -> None:
    """As a command of its own, fed by another."""
    with svm.open("rb") as stream:
        done = subprocess.run(
            [sys.executable, "-m", "polyfm.cli", "convert", "-", tmp_path / "d"],
            stdin=stream, capture_output=True, text=True, timeout=200,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert same(Dataset(tmp_path / "d"), *load_svmlight(svm))


def _stop(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal until it is heard: numba drops one that comes while it loads a function."""
    for _ in range(20):
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
            return
    raise AssertionError("the signal is not heard")


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_stopped_in_the_middle(svm: Path, tmp_path: Path, number: int) -> None:
    """What was there stays, and nothing of the new one is taken for a dataset."""
    X, y = load_svmlight(svm)
    Dataset.write(tmp_path / "d", [(X, y)])
    words = [sys.executable, "-m", "polyfm.cli", "convert", "-", "d", "--overwrite"]
    with subprocess.Popen(
        [*words, "--format", "svmlight"], cwd=tmp_path, stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stderr is not None
        # More than a pipe holds: when all is written, the command is in the middle of it.
        for _ in range(40):
            process.stdin.write(b"1 1:1 2:1\n" * 20_000)
        _stop(process, number)
        told = process.stderr.read().decode()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert "interrupted: no dataset was written" in told
        assert sorted(os.listdir(tmp_path)) == ["d", "rows.svm"]
    dataset = Dataset(tmp_path / "d")
    dataset.verify()
    assert same(dataset, X, y)


def test_a_table_is_encoded_on_the_way(run: Run, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from polyfm.data import VocabularyEncoder

    done = run("convert", folder / "all.csv", tmp_path / "d", "--target", "liked")
    assert done.code == 0, done.err
    dataset = Dataset(tmp_path / "d")
    assert dataset.n_rows == N
    assert set(dataset.label_names) == {"yes", "no"}
    encoder = VocabularyEncoder.from_json(dataset.attachment("encoder.json").decode())
    assert encoder.get_feature_names_out().tolist() == dataset.feature_names.tolist()
    assert encoder.fields_.tolist() == dataset.fields.tolist()
    assert dataset.notes["target"] == "liked"
    assert "user=3" in dataset.feature_names
    done = run(
        "convert", folder / "all.csv", tmp_path / "h", "--target", "liked",
        "--encoder", "hashing", "--n-bits", "10",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert Dataset(tmp_path / "h").n_features == 1024


def test_rare_values_take_a_pass_of_counting(run: Run, tmp_path: Path, feed) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.csv"
    path.write_text("user,y\n" + "a,1\nb,0\n" * 5 + "c,1\n")
    done = run("convert", path, tmp_path / "d", "--target", "y", "--min-count", "2")
    assert done.code == 0, done.err
    dataset = Dataset(tmp_path / "d")
    assert dataset.feature_names.tolist() == ["user=a", "user=b"]
    assert dataset.rows(0, 11).X.sum() == 10  # the rows before a value is frequent count as well
    feed(path.read_bytes())
    words = ["--target", "y", "--min-count", "2", "--format", "csv"]
    done = run("convert", "-", tmp_path / "e", *words)
    assert done.code == 2
    assert "standard input is read once" in done.err


TABLE_FLAGS = [
    ("--encoder", "hashing"),
    ("--encoder", "vocabulary"),
    ("--numeric", "bin"),
    ("--n-bins", "3"),
    ("--sets", "a=|"),
    ("--min-count", "2"),
]


@pytest.mark.parametrize("flags", TABLE_FLAGS)
def test_flags_of_tables_are_refused_for_others(
    flags: tuple[str, str], run: Run, svm: Path, tmp_path: Path
) -> None:
    message = f"{flags[0]} is for tables (CSV, Parquet); the rows are"
    done = run("convert", svm, tmp_path / "d", *flags)
    assert done.code == 2
    assert f"{message} svmlight." in done.err
    assert not (tmp_path / "d").exists()
    done = run("train", svm, "--model", tmp_path / "m", *flags)
    assert f"{message} svmlight." in done.err
    assert run("convert", svm, tmp_path / "d").code == 0
    done = run("train", tmp_path / "d", "--model", tmp_path / "m", *flags)
    assert f"{message} dataset." in done.err


@pytest.mark.parametrize("spelling", ["--bits", "--n-bits"])
def test_bits(spelling: str, run: Run, svm: Path, folder: Path, tmp_path: Path) -> None:
    message = "--bits is for --encoder hashing of tables, and for Vowpal Wabbit text."
    table, vw = folder / "all.csv", tmp_path / "a.vw"
    vw.write_text("1 |u tom\n-1 |u ann\n")
    for files in ([svm], [table, "--target", "liked"]):
        flags = [*files, spelling, "7"]
        assert message in run("train", *flags, "--model", tmp_path / "m").err
        assert message in run("convert", *flags, tmp_path / "d").err
    hashed = [table, "--target", "liked", "--encoder", "hashing", spelling, "7"]
    for flags in (hashed, [vw, spelling, "7"]):
        done = run("convert", *flags, tmp_path / "d", "--overwrite")
        assert done.code == 0, done.err
        assert Dataset(tmp_path / "d").n_features == 2**7
