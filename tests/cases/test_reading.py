"""Publicly reported faults of other programs that concern reading text in batches.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import io

import numpy as np
import pytest

from polyfm.data import (
    ReadReport,
    TextFormatError,
    iter_libffm,
    iter_svmlight,
    iter_vw,
    load_svmlight,
)


def stream(text):
    return io.BytesIO(text.encode())


def test_case_110_bad_lines_can_be_left_out():
    """Three bad lines in a big file: counted, the first one named, all others read."""
    bad = "1 54:2 172:\n1 54:2 172\n1 x:2\n"
    text = "1 1:1\n" * 4000 + bad + "0 2:1  3:.1 \n" * 4000
    report = ReadReport()
    with pytest.warns(UserWarning, match="3 lines were left out, the first: .*line 4001: '172:'"):
        X, y = load_svmlight(stream(text), on_error="skip", report=report)
    assert X.shape == (8000, 3)
    assert y.sum() == 4000
    assert report.n_skipped == 3


def test_case_111_in_batches():
    """Unsorted indices are sorted; negative ones and those beyond 64 bits name their line."""
    (batch,) = iter_svmlight(stream("1 7:1 3:2\n"))
    assert batch.X.indices.tolist() == [2, 6]
    for token in ("-1:1", "99999999999999999999:1"):
        with pytest.raises(TextFormatError, match=f"line 2: '{token}'"):
            list(iter_svmlight(stream(f"1 1:1\n1 {token}\n")))


@pytest.mark.parametrize(
    ("read", "text", "problem"),
    [
        (iter_libffm, "1 1:0.5\n", "looks like a svmlight file"),
        (iter_svmlight, "1 0:1:0.5\n", "looks like a libffm file"),
        (iter_vw, "1 1:0.5\n", "no bar; features are written after a |"),
        (iter_svmlight, "1 | a b\n", "no colon; entries are written index:value"),
    ],
)
def test_case_113_each_format_in_the_reader_of_another(read, text, problem):
    """It is refused at the first line, with a hint."""
    with pytest.raises(TextFormatError, match=problem.replace("|", "[|]")):
        list(read(stream(text)))


@pytest.mark.parametrize("read", [iter_svmlight, iter_libffm, iter_vw])
def test_case_114_batches_of_files_that_cannot_be_opened(read, tmp_path):
    """Python's own errors; an empty file has no batches."""
    with pytest.raises(FileNotFoundError):
        list(read(tmp_path / "no" / "such" / "file"))
    with pytest.raises(IsADirectoryError):
        list(read(tmp_path))
    assert list(read(stream(""))) == []


def test_case_118_a_batch_smaller_than_a_row():
    """Fewer bytes than a row has: each batch is one row."""
    long = "1 " + " ".join(f"{j}:1" for j in range(1, 500)) + "\n"
    batches = list(iter_svmlight(stream(long * 3), batch_bytes=1))
    assert [batch.n_rows for batch in batches] == [1, 1, 1]
    assert all(batch.X.nnz == 499 for batch in batches)
    with pytest.raises(ValueError, match="batch_bytes must be at least 1"):
        iter_svmlight(stream(long), batch_bytes=0)


def test_case_119_batches_count_from_one_unless_told():
    """No batch is shifted against another: an index 0 is an error, or the first column in all."""
    text = "1 1:1\n" * 3 + "0 0:1\n"
    with pytest.raises(TextFormatError, match="line 4: index 0 in a file said to start at 1"):
        list(iter_svmlight(stream(text), batch_rows=2))
    batches = list(iter_svmlight(stream(text), batch_rows=2, zero_based=True, n_features=2))
    columns = np.concatenate([batch.X.indices for batch in batches])
    assert columns.tolist() == [1, 1, 1, 0]
