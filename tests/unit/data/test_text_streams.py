"""svmlight and libffm in batches, by bytes and rows; whatever the bytes, never a wrong row."""

import io
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from slow_reading import as_dictionaries, is_plain, rows_of, slow_rows, text_reader

from polyfm.data import (
    ReadReport,
    TextFormatError,
    iter_libffm,
    iter_svmlight,
    load_libffm,
    load_svmlight,
)
from polyfm.data._pieces import TextLayout
from polyfm.data._reading import Cut, Reading, demands, iterate

SMALL = (
    b"\xef\xbb\xbf1 1:0.5 3:-2e1 # one\r\n\n  # nothing\n-1.5 qid:3 2:+.25 1:1 2:2\n"
    b"0\n7 9:1234567.125 4:0.1234567890123456789"
)
"""A mark of byte order, comments, CRLF, blank lines, a query, repeats, no end of the last line."""


def read_skipping(read, text, **options):
    """All rows, the line numbers of errors, with bad lines left out."""
    report = ReadReport()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batches = list(read(io.BytesIO(text), on_error="skip", report=report, **options))
    return batches, report


def stacked(batches):
    """Rows and labels of all batches."""
    labels = [label for batch in batches for label in batch.y.tolist()]
    return [row for batch in batches for row in rows_of(batch.X)], labels


FUZZ = st.lists(
    st.sampled_from(
        [b"1", b"0", b"-1", b"2.5", b"17", b"1e3", b":", b"1:1", b"2:0.5", b"3:2:1", b"0:1:4", b" ",
         b"  ", b"\t", b"\n", b"\n", b"\r\n", b"#", b"qid:3", b"nan", b"x", b".", b"-", b"\x00",
         b"\xff", b"\xef\xbb\xbf", b"12345678", b"123456789:1", b"99999999999999999999:1",
         b"9223372036854775807:1", b"0000000000000000000000004:1", b"1:1e400", b"1:1e-400",
         b"5:0.12345678901234567", b"5:4.35e-310", b"1:9007199254740993", b"e", b"+"]
    ),
    max_size=40,
).map(b"".join) | st.binary(max_size=60).filter(is_plain)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(FUZZ, st.sampled_from([2, 3]), st.booleans())
def test_any_bytes_give_the_rows_that_slow_reading_gives(text, parts, labelled):
    read = iter_svmlight if parts == 2 else iter_libffm
    batches, report = read_skipping(
        read, text, zero_based=True, labels=labelled, dtype=np.float64, batch_rows=3
    )
    rows, _, refused = slow_rows(text, text_reader(parts, labelled=labelled))
    found = [row for batch in batches for row in rows_of(batch.X)]
    assert found == as_dictionaries(rows)
    assert all(batch.n_rows == 3 for batch in batches[:-1])
    if labelled:
        assert [y for batch in batches for y in batch.y] == [row.label for row in rows]
    assert (report.n_rows, report.n_skipped) == (len(rows), len(refused))
    if refused:
        assert str(report.first_error) == refused[0][1]


@settings(max_examples=100, deadline=None)
@given(FUZZ)
def test_the_first_bad_line_is_the_error(text):
    _, _, refused = slow_rows(text, text_reader(2))
    try:
        list(iter_svmlight(io.BytesIO(text), zero_based=True, dtype=np.float64))
    except TextFormatError as error:
        assert str(error) == refused[0][1]
    else:
        assert not refused


class Dripping(io.RawIOBase):
    """A stream that gives so many bytes at a time."""

    def __init__(self, data, n):
        self._data, self._n = io.BytesIO(data), n

    def readable(self):
        return True

    def readinto(self, buffer):
        return self._data.readinto(memoryview(buffer)[: self._n])


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 20])
def test_wherever_the_stream_is_cut_the_rows_are_the_same(block):
    expected = as_dictionaries(slow_rows(SMALL, text_reader(2))[0])
    assert len(expected) == 4
    asked = demands(True, True, None, np.float64, auto=False)
    for n in range(1, len(SMALL) + 1):
        reading = Reading(TextLayout(2), asked, block=block)
        batches = list(iterate(Dripping(SMALL, n), reading, None, Cut(100, None), 0))
        assert stacked(batches) == (expected, [1.0, -1.5, 0.0, 7.0])


def test_a_line_longer_than_a_block():
    n = 300_000
    text = b"1 " + b" ".join(b"%d:%d" % (j, j) for j in range(1, n)) + b"\n0 5:1"
    X, _ = load_svmlight(io.BytesIO(text), dtype=np.float64)
    assert X.shape == (2, n - 1)
    np.testing.assert_array_equal(X[:1].toarray()[0], np.arange(1, n))


def lines_of(n):
    return b"".join(b"%d %d:1 %d:2\n" % (k % 2, k + 1, k + 2) for k in range(n))


@pytest.mark.parametrize("skip", [0, 1, 4, 7, 10, 99])
def test_batches_of_rows(skip):
    batches = list(iter_svmlight(io.BytesIO(lines_of(10)), batch_rows=4, skip=skip))
    sizes = [batch.n_rows for batch in batches]
    left = max(10 - skip, 0)
    assert sizes == [4] * (left // 4) + [left % 4] * (left % 4 > 0)
    if left:
        X, y = load_svmlight(io.BytesIO(lines_of(10)))
        assert np.concatenate([batch.y for batch in batches]).tolist() == y[skip:].tolist()
        assert [row for b in batches for row in rows_of(b.X)] == rows_of(X[skip:])


def test_batches_of_bytes():
    text = b"1 1:1\n" * 5 + b"1 1:1 2:1 3:1 4:1\n" + b"0\n" * 3
    sizes = [b.n_rows for b in iter_svmlight(io.BytesIO(text), batch_bytes=13)]
    assert sizes == [2, 2, 1, 1, 3]
    asked = demands(True, False, None, np.float32, auto=False)
    for block in (1, 5, 30):  # wherever the blocks end
        reading = Reading(TextLayout(2), asked, block=block)
        again = iterate(io.BytesIO(text), reading, None, Cut(100, 13), 0)
        assert [b.n_rows for b in again] == sizes


def test_batches_go_on_over_files(tmp_path):
    for k in range(3):
        (tmp_path / f"{k}.svm").write_bytes(lines_of(5))
    paths = sorted(tmp_path.iterdir())
    sizes = [b.n_rows for b in iter_svmlight(paths, batch_rows=6)]
    assert sizes == [6, 6, 3]
    assert [b.n_rows for b in iter_svmlight(tmp_path / "*.svm", batch_rows=6)] == sizes


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_bit_equal_to_scikit_learn(seed, zero_based):
    rng = np.random.default_rng(seed)
    X = sp.random(20, 30, 0.3, format="csr", random_state=rng)
    X.data = rng.normal(size=X.nnz) * 10.0 ** rng.integers(-8, 8, X.nnz)
    stream = io.BytesIO()
    dump_svmlight_file(X, rng.normal(size=20), stream, zero_based=zero_based)
    for dtype in (np.float32, np.float64):
        options = {"zero_based": zero_based, "dtype": dtype, "n_features": 30}
        known, labels = load_svmlight_file(io.BytesIO(stream.getvalue()), **options)
        found, y = load_svmlight(io.BytesIO(stream.getvalue()), **options)
        assert found.data.tobytes() == known.data.tobytes()
        np.testing.assert_array_equal(found.indices, known.indices)
        np.testing.assert_array_equal(found.indptr, known.indptr)
        assert y.tobytes() == labels.tobytes()


def test_long_rows_out_of_order():
    rng = np.random.default_rng(0)
    for n in (63, 64, 65, 1000):
        ids = rng.integers(1, n, n).tolist()
        values = rng.normal(size=n).tolist()
        line = "1 " + " ".join(f"{j}:{v!r}" for j, v in zip(ids, values, strict=True))
        X, _ = load_svmlight(io.BytesIO(line.encode()), dtype=np.float64)
        expected = {}
        for j, v in zip(ids, values, strict=True):
            expected[j - 1] = expected.get(j - 1, 0.0) + v
        assert rows_of(X) == [expected]


@pytest.mark.parametrize(
    ("largest", "kind"), [(2**31, np.int32), (2**31 + 1, np.int64), (2**40, np.int64)]
)
def test_indices_are_as_wide_as_needed(largest, kind):
    X, _ = load_svmlight(io.BytesIO(f"1 1:1\n0 {largest}:2 3:1\n".encode()))
    assert X.shape == (2, largest)
    assert X.indices.tolist() == [0, 2, largest - 1]
    assert X.indices.dtype == (np.int64 if largest > 2**31 - 1 else kind)


def test_indices_of_two_to_the_forty_each():
    text = b"".join(b"1 %d:1 %d:1\n" % (2**40 + k, 2**40 - k) for k in range(1, 50))
    (batch,) = iter_svmlight(io.BytesIO(text), n_features=2**41)
    assert batch.X.shape == (49, 2**41)
    assert batch.X.indices[:2].tolist() == [2**40 - 2, 2**40]
    with pytest.raises(TextFormatError, match="does not fit into memory; hash the indices"):
        load_libffm(io.BytesIO(b"1 0:1:1 1:%d:1\n" % 2**45))


def test_zero_comes_late():
    """Rows read as starting at 1 move when an index 0 turns up."""
    text = lines_of(60_000) + b"1 0:5\n"
    X, _ = load_svmlight(io.BytesIO(text))
    assert X[0].indices.tolist() == [1, 2]
    assert X[60_000].indices.tolist() == [0]
    with pytest.raises(TextFormatError, match="line 60001: index 0 in a file said to start at 1"):
        list(iter_svmlight(io.BytesIO(text)))
    with pytest.raises(TextFormatError, match="line 1: index 2 is beyond n_features=2"):
        load_svmlight(io.BytesIO(b"1 2:1\n1 0:1\n"), n_features=2)
    X, _ = load_svmlight(io.BytesIO(b"1 2147483648:1\n1 0:1\n"))
    assert X.indices.tolist() == [2147483648, 0]


def test_skipped_lines_are_counted_and_told(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_bytes(b"1 1:1\n1 2:x\n0 3:1\nyes 1:1\n\n1 5:1\n")
    report = ReadReport()
    with pytest.warns(UserWarning, match="2 lines were left out, the first: .*line 2: '2:x'"):
        X, y = load_svmlight(path, on_error="skip", report=report)
    assert y.tolist() == [1, 0, 1]
    assert rows_of(X) == [{0: 1}, {2: 1}, {4: 1}]
    assert (report.n_rows, report.n_skipped) == (3, 2)
    assert (report.first_error.line, report.first_error.column) == (2, 3)
    with pytest.warns(UserWarning, match="1 line was left out"):
        load_svmlight(io.BytesIO(b"1 9:1\n1 2:1\n"), n_features=5, on_error="skip")


def test_a_file_of_bad_lines_only():
    with (
        pytest.warns(UserWarning, match="2 lines"),
        pytest.raises(TextFormatError, match="no rows"),
    ):
        load_svmlight(io.BytesIO(b"a\nb\n"), on_error="skip")


@pytest.mark.parametrize(
    ("text", "column"),
    [(b"1 1:1 2:x", 7), (b"  z 1:1", 3), (b"1\t\t-5:1", 4), (b"1 1:1 \xc3\xa9\xc3\xa9 2", 7)],
)
def test_errors_name_the_column(text, column):
    with pytest.raises(TextFormatError, match=rf"\(column {column}\)$") as caught:
        load_svmlight(io.BytesIO(text))
    assert caught.value.column == column


def test_sums_that_are_too_large():
    with pytest.raises(TextFormatError, match="line 2: the values of index 4 add up"):
        load_svmlight(io.BytesIO(b"1 1:1\n1 4:3e38 1:1 4:3e38\n"))
    X, _ = load_svmlight(io.BytesIO(b"1 4:3e38 4:-3e38 4:3e38"))
    assert X.data.tolist() == [np.float32(3e38)]


def test_the_largest_value_of_single_precision():
    for text, fine in ((b"1 1:3.40282356779733e38", True), (b"1 1:3.40282356779734e38", False)):
        if fine:
            assert load_svmlight(io.BytesIO(text))[0].data[0] == np.finfo(np.float32).max
        else:
            with pytest.raises(TextFormatError, match="too large for float32"):
                load_svmlight(io.BytesIO(text))


def test_fields_as_they_come():
    report = ReadReport()
    text = b"1 0:1:1 2:3:1\n0 1:3:1 7:2:1\n"
    batches = iter_libffm(io.BytesIO(text), batch_rows=1, report=report)
    next(batches)
    assert report.fields.tolist() == [0, -1, 2]
    next(batches)
    assert report.fields.tolist() == [0, 7, -1]
    assert report.field_names is None
    with pytest.raises(TextFormatError, match=r"line 2: index 3 occurs in field 1 .* 2.*column 3"):
        list(iter_libffm(io.BytesIO(text), shared_ids="error"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_rows": 0}, "batch_rows must be at least 1"),
        ({"batch_bytes": 0}, "batch_bytes must be at least 1"),
        ({"zero_based": "auto"}, "zero_based must be True or False"),
        ({"on_error": "ignore"}, "on_error must be 'raise' or 'skip'"),
        ({"dtype": np.int32}, "dtype must be float32 or float64"),
        ({"n_features": 0}, "n_features must be at least 1"),
    ],
)
def test_bad_options_are_refused_at_once(options, message):
    with pytest.raises(ValueError, match=message):
        iter_svmlight(io.BytesIO(b"1 1:1"), **options)
