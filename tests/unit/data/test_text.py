import gzip
import io
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import dump_svmlight_file

from polyfm.data import TextFormatError, load_libffm, load_svmlight
from polyfm.data._pieces import TextLayout, TextReader
from polyfm.data._sources import Opened
from polyfm.data.lines import Demands


@pytest.fixture
def write(tmp_path):
    def save(text, name="rows.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return save


def test_reads_rows_labels_and_values(write):
    X, y = load_svmlight(write("1 1:0.5 3:-2e1\n-1.5 2:+.25\n"))
    assert sp.isspmatrix_csr(X)
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X.toarray(), [[0.5, 0, -20], [0, 0.25, 0]])
    np.testing.assert_array_equal(y, [1, -1.5])


@settings(max_examples=25, deadline=None)
@given(
    dense=hnp.arrays(np.float64, (4, 5), elements=st.floats(-1e6, 1e6) | st.just(0.0)),
    zero_based=st.booleans(),
)
def test_reads_what_scikit_learn_writes(tmp_path_factory, dense, zero_based):
    path = tmp_path_factory.mktemp("written") / "rows.svm"
    y = np.arange(4.0)
    dump_svmlight_file(dense, y, str(path), zero_based=zero_based)
    X, labels = load_svmlight(path, n_features=5, zero_based=zero_based, dtype=np.float64)
    # scikit-learn writes 16 digits, one too few for some doubles.
    np.testing.assert_allclose(X.toarray(), dense, rtol=1e-15)
    np.testing.assert_array_equal(labels, y)


TOLERATED = {
    "double blanks and tabs": "1  1:2 \t 2:3  \n0 1:1\n",
    "Windows line ends": "1 1:2 2:3\r\n0 1:1\r\n",
    "comments": "# head\n1 1:2 2:3 # the first\n0 1:1#x\n",
    "blank lines": "\n1 1:2 2:3\n\n   \n0 1:1\n\n",
    "query ids": "1 qid:7 1:2 2:3\n0 qid:8 1:1\n",
    "byte order mark": "\ufeff1 1:2 2:3\n0 1:1\n",
    "no newline at the end": "1 1:2 2:3\n0 1:1",
    "unsorted ids": "1 2:3 1:2\n0 1:1\n",
    "repeated ids": "1 1:1.5 2:3 1:0.5\n0 1:1\n",
    "leading blanks and zeros": "  1 01:2 2:3\n0 1:1\n",
}


@pytest.mark.parametrize("text", TOLERATED.values(), ids=TOLERATED)
def test_tolerated(write, text):
    X, y = load_svmlight(write(text))
    np.testing.assert_array_equal(X.toarray(), [[2, 3], [1, 0]])
    np.testing.assert_array_equal(y, [1, 0])
    assert X.has_canonical_format


def test_compressed_files_are_known_by_content(write):
    path = write(gzip.compress(b"1 1:2\n0\n"), "rows.svm")
    X, y = load_svmlight(path)
    np.testing.assert_array_equal(X.toarray(), [[2], [0]])
    np.testing.assert_array_equal(y, [1, 0])


SVMLIGHT_FAULTS = {
    "1 1:1\n1 172:": (2, "172:", "missing value"),
    "1 3": (1, "3", "no colon.* a value of 1 must be written out"),
    "1 -4:1": (1, "-4:1", "negative index"),
    "1 1:2:3": (1, "1:2:3", "looks like a libffm file; read it with load_libffm"),
    "1 1:2:3:4": (1, "1:2:3:4", "3 colons"),
    "1 a:1": (1, "a:1", "the index is not a whole number"),
    "1 1.5:1": (1, "1.5:1", "the index is not a whole number"),
    "1 9223372036854775808:1": (1, "9223372036854775808:1", r"above 2\*\*63 - 1"),
    "1 " + 5000 * "9" + ":1": (1, 5000 * "9" + ":1", r"above 2\*\*63 - 1"),
    "\n\n1 1:nan": (3, "1:nan", "not finite"),
    "1 1:-inf": (1, "1:-inf", "not finite"),
    "1 1:0x10": (1, "1:0x10", "the value is not a number"),
    "1 1:1_0": (1, "1:1_0", "not a plain decimal number"),
    "1 1:1e999": (1, "inf", "too large for float32"),
    "0\n\n1 1:1 2:1e39": (3, "1e+39", "too large for float32"),
    "yes 1:1": (1, "yes", "the label is not a number"),
    "nan 1:1": (1, "nan", "the label is not finite"),
    "1e999 1:1": (1, "1e999", "the label is too large"),
    "1:1 2:1": (1, "1:1", "the label is missing"),
    "1 2:1 qid:3": (1, "qid:3", "index is not a whole number"),
    "1 0:1 9223372036854775807:1": (1, "9223372036854775807", "leaves no room"),
}


@pytest.mark.parametrize("text", SVMLIGHT_FAULTS, ids=lambda text: text.strip()[:20])
def test_faults_name_file_line_and_text(write, text):
    path = write(text)
    line, offending, problem = SVMLIGHT_FAULTS[text]
    with pytest.raises(TextFormatError, match=problem) as caught:
        load_svmlight(path)
    assert caught.value.line == line
    assert caught.value.text == offending
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert len(str(caught.value)) < len(str(path)) + 200


@pytest.mark.parametrize(("text", "problem"), [("", "is empty"), ("# c\n\n", "no rows")])
def test_nothing_to_read(write, text, problem):
    with pytest.raises(TextFormatError, match=problem) as caught:
        load_svmlight(write(text))
    assert caught.value.line is None


def test_the_largest_index_is_read(write):
    X, _ = load_svmlight(write("1 9223372036854775807:1"))
    assert X.shape == (1, 2**63 - 1)
    assert X.indices.tolist() == [2**63 - 2]


@pytest.mark.parametrize("largest", [63, 2**25 - 2, 2**25 - 1, 2**25, 2**40])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 39, 63, 64, 65, 200])
def test_unsorted_rows_are_sorted_and_repeated_entries_summed(write, n, largest):
    random = np.random.default_rng(n)
    rows = [largest - random.integers(0, min(4 * n, largest), n) for _ in range(3)]
    rows[0] = random.permutation(largest - np.arange(min(n, largest)))
    text = "\n".join(
        f"{k} " + " ".join(f"{j}:{t + 1}" for t, j in enumerate(row)) for k, row in enumerate(rows)
    )
    X, _ = load_svmlight(write(text), zero_based=False)
    for k, row in enumerate(rows):
        known: dict[int, int] = {}
        for t, j in enumerate(row.tolist()):
            known[j - 1] = known.get(j - 1, 0) + t + 1
        entries = slice(X.indptr[k], X.indptr[k + 1])
        assert X.indices[entries].tolist() == sorted(known)
        assert X.data[entries].tolist() == [known[j] for j in sorted(known)]


@pytest.mark.parametrize(
    ("first", "second", "zero_based", "columns"),
    [
        ("1 1:1", "1 3:1", "auto", ([0], [2])),
        ("1 1:1", "1 0:1 3:1", "auto", ([1], [0, 3])),
        ("1 1:1", "1 3:1", True, ([1], [3])),
        ("1 1:1", "1 3:1", False, ([0], [2])),
    ],
)
def test_the_first_index_is_decided_jointly(write, first, second, zero_based, columns):
    paths = [write(first, "a"), write(second, "b")]
    (X1, _), (X2, _) = load_svmlight(paths, zero_based=zero_based)
    assert X1.shape == X2.shape
    assert (X1.indices.tolist(), X2.indices.tolist()) == columns


def test_zero_in_a_file_that_starts_at_one(write):
    with pytest.raises(TextFormatError, match="line 2: index 0 in a file said to start at 1"):
        load_svmlight(write("1 1:1\n1 5:1 0:1"), zero_based=False)


@pytest.mark.parametrize(
    ("zero_based", "last", "beyond"), [(False, "5:1", "6"), (True, "4:1", "5")]
)
def test_number_of_columns_given(write, zero_based, last, beyond):
    X, _ = load_svmlight(write(f"1 {last}"), n_features=5, zero_based=zero_based)
    assert X.shape == (1, 5)
    path = write(f"1 1:1\n\n1 {beyond}:1")
    with pytest.raises(TextFormatError, match=f"line 3: index {beyond} is beyond n_features=5"):
        load_svmlight(path, n_features=5, zero_based=zero_based)


def test_labels_not_needed(write):
    X, y = load_svmlight(write("1:1\n0 2:1\nqid:4 3:1\n"), labels=False)
    assert y is None
    np.testing.assert_array_equal(X.toarray(), np.eye(3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"zero_based": "maybe"}, "zero_based must be True, False or 'auto'"),
        ({"n_features": 0}, "n_features must be at least 1"),
    ],
)
def test_bad_options(write, options, message):
    with pytest.raises(ValueError, match=message):
        load_svmlight(write("1 1:1"), **options)
    with pytest.raises(ValueError, match="list of paths is empty"):
        load_svmlight([])


def test_libffm_gives_a_field_per_column(write):
    X, y, fields = load_libffm(write("1 0:1:1 2:3:0.5\n0 0:2:1 2:5:1\n"))
    np.testing.assert_array_equal(X.toarray(), [[1, 0, 0.5, 0, 0], [0, 1, 0, 0, 1]])
    np.testing.assert_array_equal(y, [1, 0])
    assert fields.tolist() == [0, 0, 2, -1, 2]


def test_libffm_files_share_their_fields(write):
    paths = [write("1 0:1:1", "a"), write("1 1:2:1\n0 0:1:1", "b")]
    (X1, _, fields1), (X2, _, fields2) = load_libffm(paths)
    assert X1.shape == (1, 2)
    assert X2.shape == (2, 2)
    assert fields1.tolist() == fields2.tolist() == [0, 1]


def test_libffm_index_in_two_fields(write):
    path = write("1 0:1:1 1:2:1\n0 3:1:2\n")
    with pytest.raises(TextFormatError, match="line 2: index 1 occurs in field 3 and in field 0"):
        load_libffm(path)
    X, _, fields = load_libffm(path, shared_ids="mark")
    np.testing.assert_array_equal(X.toarray(), [[1, 1], [2, 0]])
    assert fields.tolist() == [-1, 1]
    with pytest.raises(ValueError, match="shared_ids must be"):
        load_libffm(path, shared_ids="ignore")


@pytest.mark.parametrize(
    ("token", "problem"),
    [
        ("4:1", "looks like a svmlight file; read it with load_svmlight"),
        ("4", "no colon; entries are written field:index:value"),
        ("-1:4:1", "negative field"),
        ("1:-4:1", "negative index"),
        ("1:4:", "missing value"),
        ("f:4:1", "the field is not a whole number"),
    ],
)
def test_libffm_faults(write, token, problem):
    with pytest.raises(TextFormatError, match=problem) as caught:
        load_libffm(write(f"1 0:1:1\n1 0:1:1 {token}\n"))
    assert (caught.value.line, caught.value.text) == (2, token)


def test_errors_travel_between_processes():
    error = TextFormatError("f.svm", 3, "bad", "x")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.line) == ("f.svm, line 3: bad", 3)


def test_one_bad_token_at_the_end_of_a_long_line(write):
    """Matching must not go back over the tokens before it."""
    line = "1 " + " ".join(f"{j}:0.123456789" for j in range(1, 50_001)) + " x"
    with pytest.raises(TextFormatError, match="'x': no colon"):
        load_svmlight(write(line))


@pytest.mark.parametrize(
    "text",
    ["1\n0 5:1 9:1\n1\n1 3:1\n0\n", "1\n0\n", "0 5:1 2:1\n1\n1 7:1 1:1\n", "1 0:1 4:1\n"],
    ids=["empty rows", "no entries", "out of order", "from 0"],
)
def test_the_range_of_a_piece(text):
    ids = [int(token.split(":")[0]) for token in text.split() if ":" in token]
    wanted = (min(ids, default=-1), max(ids, default=-1))
    demands = Demands(labelled=True, first=0, n_features=None, dtype=np.dtype(np.float32))
    opened = Opened("some.svm", io.BytesIO(text.encode()), None)
    (piece,) = TextReader(TextLayout(2), demands).pieces(opened)
    assert (piece.least, piece.largest) == wanted


@pytest.mark.parametrize(
    ("text", "n_fields"),
    [
        ("1 0:5:1 1:9:1\n0 0:6:1 1:8:1\n", 2),
        ("1 0:5:1 1:9:1\n0 0:6:1 2:8:1\n", 4),
        ("1 0:5:1 1:9:1\n0 0:6:1\n", 3),
        ("1 0:5:1\n0 0:6:1 0:7:1\n", 3),
        ("1\n0 0:6:1\n", 1),
        ("1\n0\n", 0),
    ],
    ids=["same", "another", "shorter", "longer", "none first", "none"],
)
def test_fields_that_begin_anew_in_each_row(text, n_fields):
    demands = Demands(labelled=True, first=0, n_features=None, dtype=np.dtype(np.float32))
    opened = Opened("some.ffm", io.BytesIO(text.encode()), None)
    (piece,) = TextReader(TextLayout(3), demands).pieces(opened)
    assert len(piece.cycle) == n_fields
    repeated = np.resize(piece.cycle, len(piece.ids))
    np.testing.assert_array_equal(repeated, piece.fields)


def test_fields_of_any_size(write):
    fields = [0, 127, 128, 32_767, 32_768, 2**31 - 1, 2**31, 2**62]
    text = "".join(f"1 {field}:{k + 1}:1\n" for k, field in enumerate(fields))
    table = load_libffm(write(text))[2]
    assert table.dtype == np.int64 and table.tolist() == fields
    with pytest.raises(TextFormatError, match=f"field 3 and in field {2**62}"):
        load_libffm(write(text + "0 3:8:1\n"))
    marked = load_libffm(write(text + "0 3:8:1\n"), shared_ids="mark")[2]
    assert marked.tolist() == [*fields[:-1], -1]
