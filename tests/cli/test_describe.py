from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from commands import N, Run

from polyfm.cli import _curve
from polyfm.data import Dataset


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """300 rows of two fields; 3 columns in the first, up to 40 in the second."""
    random = np.random.default_rng(0)
    lines = [
        f"{random.integers(2)} 0:{1 + random.integers(3)}:1 1:{10 + random.integers(40)}:1"
        for _ in range(300)
    ]
    path = tmp_path / "rows.ffm"
    path.write_text("\n".join(lines) + "\n")
    return path


def as_svmlight(rows: Path) -> Path:
    path = rows.with_suffix(".svm")
    path.write_text(re.sub(r" [01]:(\d+:1)", r" \1", rows.read_text()))
    return path


def test_page(run: Run, rows: Path) -> None:
    done = run("describe", rows)
    assert done.code == 0, done.err
    assert done.err == ""
    lines = done.out.splitlines()
    assert lines[0].startswith(f"{rows}: libffm, ")
    assert lines[0].endswith("indices from 1")
    assert lines[1] == "rows      300 (2 each, 0 empty)"
    assert lines[2] == "columns   49 (43 of them used)"
    assert lines[3].startswith("entries   600 (density 0.0408")
    assert "values    all 1" in lines
    assert any(line.startswith("labels    ") and line.count("%") == 2 for line in lines)
    head = next(i for i, line in enumerate(lines) if line.startswith("field "))
    assert lines[head + 1].split() == ["0", "3", "100.00%"]
    assert lines[head + 2].split() == ["1", "40", "100.00%"]
    bars = [line for line in lines if "█" in line or "##" in line]
    assert [int(line.split()[0]) for line in bars] == [1, 2, 5, 10, 20, 43]
    lengths = [len(line.split()[2]) for line in bars]
    assert lengths == sorted(lengths, reverse=True)


def test_json_is_the_page_in_numbers(run: Run, rows: Path) -> None:
    found = json.loads(run("describe", rows, "--json").out)
    assert found["rows"] == 300
    assert found["entries"] == 600
    assert found["first index"] == 1
    assert found["columns used"] == 43
    assert sum(n for _, n in found["labels"]["counts"]) == 300
    assert [field["columns"] for field in found["fields"]] == [3, 40]
    assert found["compared rows"] == 300


def test_a_dataset_is_described_like_its_file(run: Run, rows: Path, tmp_path: Path) -> None:
    assert run("convert", rows, tmp_path / "rows.data").code == 0
    of_file = json.loads(run("describe", rows, "--json").out)
    of_dataset = json.loads(run("describe", tmp_path / "rows.data", "--json").out)
    for name in ("file", "format", "bytes", "first index"):
        del of_file[name], of_dataset[name]
    assert of_dataset == of_file


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input(run: Run, rows: Path, feed, packed: bool) -> None:
    svm = as_svmlight(rows)
    content = svm.read_bytes()
    feed(gzip.compress(content) if packed else content)
    found = json.loads(run("describe", "-", "--json").out)
    expected = json.loads(run("describe", svm, "--json").out)
    assert (found["format"], found["rows"]) == ("svmlight", 300)
    assert found["columns used"] == expected["columns used"] == 43


def test_numbers_as_labels(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "r.svm"
    path.write_text("".join(f"{k / 7} 1:1\n" for k in range(1, 102)))
    found = json.loads(run("describe", path, "--json").out)
    np.testing.assert_allclose(
        list(found["labels"]["quantiles"].values()), np.array([1, 26, 51, 76, 101]) / 7
    )
    assert "(least, quarters, most)" in run("describe", path).out


def test_mistakes_are_told(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "r.svm"
    path.write_text("1 0:1 5:2\n" * 200)
    out = run("describe", path, "--zero-based", "false").out
    assert "indices from 0" in out
    assert "said to start at 1" in out
    assert "All labels are 1" in out
    assert "99.5% of all rows" in out
    assert "nothing looks like a mistake" not in out
    path.write_text("1 1:1 5:2\n" * 200)
    assert "said to start at 0" in run("describe", path, "--zero-based", "true").out
    path.write_text("".join(f"{k % 3} {1 + k}:1.5 {500 + k}:1\n" for k in range(50)))
    assert "nothing looks like a mistake" in run("describe", path).out


def test_rows_without_labels(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "r.svm"
    path.write_text("1:1\n2:1\n")
    assert run("describe", path).code == 2
    found = json.loads(run("describe", path, "--unlabelled", "--json").out)
    assert found["labels"] is None
    assert found["rows"] == 2


def test_figure(run: Run, rows: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = run("describe", rows, "--figure", tmp_path / "f.png", "--quiet")
    assert done.code == 0, done.err
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


def test_vw(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "r.txt"
    path.write_text("1 |user ann |page sport:2\n-1 |user bob |page news\n")
    found = json.loads(run("describe", path, "--json").out)
    assert found["format"] == "vw"
    assert [field["field"] for field in found["fields"]] == ["user", "page"]
    assert found["values"]["range"] == [1, 2]


def test_what_cannot_be_read_is_told(run: Run, tmp_path: Path) -> None:
    done = run("describe", tmp_path / "none.svm")
    assert done.code == 2
    assert "none.svm" in done.err
    (tmp_path / "r.svm").write_text("1 1:1\n1 x:1\n")
    done = run("describe", tmp_path / "r.svm")
    assert done.code == 2
    assert "line 2" in done.err
    (tmp_path / "r").write_text("hello\n")
    assert "--format" in run("describe", tmp_path / "r").err
    (tmp_path / "folder").mkdir()
    assert "no dataset" in run("describe", tmp_path / "folder").err


def test_no_rows(run: Run, tmp_path: Path) -> None:
    Dataset.write(tmp_path / "d", [])
    done = run("describe", tmp_path / "d")
    assert done.code == 0
    assert "rows      0" in done.out


def test_values_and_density_of_a_dataset(run: Run, tmp_path: Path) -> None:
    X = sp.csr_matrix(np.array([[0, 2.5], [0, 0], [1, -3]]))
    Dataset.write(tmp_path / "d", [(X, np.array(["no", "yes", "no"]))])
    found = json.loads(run("describe", tmp_path / "d", "--json").out)
    assert found["values"] == {"all 1": False, "whole numbers": False, "range": [-3, 2.5]}
    assert found["labels"]["counts"] == [["no", 2], ["yes", 1]]
    assert found["empty rows"] == 1
    assert found["density"] == 0.5


def test_ranks_of_the_curve() -> None:
    assert _curve.ranks(1) == [1]
    assert _curve.ranks(2) == [1, 2]
    assert _curve.ranks(120) == [1, 2, 5, 10, 20, 50, 100, 120]
    (line,) = _curve.bars(np.array([7]), "ascii")
    assert line.endswith("#" * 50)
    assert "█" in next(_curve.bars(np.array([7]), "UTF-8"))


@pytest.mark.parametrize("layout", ["csv", "parquet"])
def test_tables(run: Run, folder: Path, tmp_path: Path, layout: str) -> None:
    csv = pytest.importorskip("pyarrow.csv")
    path = folder / "all.csv"
    if layout == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        path = tmp_path / "all.parquet"
        parquet.write_table(csv.read_csv(folder / "all.csv"), path)
    found = json.loads(run("describe", path, "--target", "liked", "--json").out)
    assert found["rows"] == N
    assert found["columns"] == 4
    fields = {field["field"]: field for field in found["fields"]}
    assert fields["user"] == {"field": "user", "columns": 12, "rows": N, "entries": N}
    assert fields["film"]["columns"] == 9
    assert dict(found["labels"]["counts"]).keys() == {"yes", "no"}
    assert any("value of its own in seconds" in sentence for sentence in found["mistakes"])
    page = run("describe", path, "--target", "liked").out
    assert "columns   4 (" in page
    assert "entries of the values" in page


def test_cells_that_are_missing_have_no_value(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.csv"
    path.write_text("a,b\nx,1\n,1\ny,1\n")
    found = json.loads(run("describe", path, "--json").out)
    assert [field["rows"] for field in found["fields"]] == [2, 3]
    assert [field["columns"] for field in found["fields"]] == [2, 1]
    assert found["mistakes"] == ["Columns that have the same value in all rows: b."]


@pytest.mark.parametrize("name", ["empty.svm", "empty.ffm", "empty.vw"])
def test_a_file_without_rows_is_a_likely_mistake(name: str, run: Run, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("# nothing\n" if name != "empty.vw" else "")
    done = run("describe", path)
    assert "rows      0" in done.out
    assert "- There are no rows: is this the file that was meant" in done.out
    assert "nothing looks like a mistake" not in done.out
    assert len(json.loads(run("describe", path, "--json").out)["mistakes"]) == 1


def test_a_damaged_shard_is_named(run: Run, tmp_path: Path) -> None:
    X = sp.random(50, 60, 0.2, "csr", random_state=0)
    dataset = Dataset.write(tmp_path / "d", [(X, np.arange(50) % 2)])
    [shard] = dataset.shards
    entry = shard.file._entries["indices"]
    with shard.path.open("r+b") as file:
        file.seek(entry.offset)
        file.write(np.int32(60).tobytes())
    for words in (
        ["describe", tmp_path / "d"],
        ["train", tmp_path / "d", "--model", tmp_path / "m"],
    ):
        done = run(*words)
        assert done.code == 2
        assert f"{shard.path}: is damaged (column numbers in rows" in done.err
