"""Publicly reported faults of other programs that concern reading and encoding.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import os

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from polyfm.data import (
    OneHotFieldEncoder,
    TextFormatError,
    load_csv,
    load_libffm,
    load_svmlight,
)


@pytest.fixture
def write(tmp_path):
    def save(text, name="rows.txt"):
        path = tmp_path / name
        path.write_text(text, newline="")
        return path

    return save


def dense(text, write, **options):
    X, _ = load_svmlight(write(text), dtype=np.float64, **options)
    return X.toarray()


def test_case_11_missing_values_are_refused_by_column_name():
    """A frame with gaps: the error names the first column that has one, and the row."""
    frame = pd.DataFrame(np.arange(24.0).reshape(6, 4), columns=list("abcd"))
    frame.loc[[2, 4, 5], "c"] = np.nan
    with pytest.raises(ValueError, match="column 'c', row 2: missing value"):
        OneHotFieldEncoder(missing="error").fit(frame)


def test_case_13_repeated_features_of_a_row_are_summed(write):
    """A field:index pair listed three times with value 1 counts 3."""
    others = " ".join(f"1:{j}:0.5" for j in range(200, 250))
    line = f"1 13:172:1 13:172:1 13:172:1 {others}\n"
    X, _, fields = load_libffm(write(line * 10), zero_based=True)
    assert X.nnz == 10 * 51
    assert (X[:, [172]].toarray() == 3).all()
    assert fields[172] == 13


def test_case_70_files_without_labels_can_be_read(write):
    """Rows to predict need no made-up label; one that is there is ignored."""
    with_labels, y = load_svmlight(write("1 1:2\n0 2:1\n", "a"), labels=False)
    without, none = load_svmlight(write("1:2\n2:1\n", "b"), labels=False)
    assert y is None
    assert none is None
    assert (with_labels != without).nnz == 0


def test_case_82_repeated_entries_equal_their_sum(write):
    """'a:1 a:1 b:1' and 'a:2 b:1' are the same row."""
    apart = "1 1:1 1:1 2:1\n0 3:1 2:2 3:4\n"
    summed = "1 1:2 2:1\n0 2:2 3:5\n"
    np.testing.assert_array_equal(dense(apart, write), dense(summed, write))


def test_case_87_a_line_with_only_a_label_is_a_row_of_zeros(write):
    """It is a row like others, with its label."""
    X, y = load_svmlight(write("0 3:.1 67:.5\n1\n1 1:.9 23:.8\n"))
    assert X.shape == (3, 67)
    assert np.diff(X.indptr).tolist() == [2, 0, 2]
    assert y.tolist() == [0, 1, 1]


def test_case_95_dictionary_rows_with_text_and_numbers():
    """Text becomes 'name=value' columns, numbers pass, keys that are absent give nothing."""
    encoder = OneHotFieldEncoder()
    X = encoder.fit_transform([{"device": "d1", "ad": "a1"}, {"ad": "a2", "n": 5}])
    assert encoder.get_feature_names_out().tolist() == ["ad=a1", "ad=a2", "device=d1", "n"]
    np.testing.assert_array_equal(X.toarray(), [[1, 0, 1, 0], [0, 1, 0, 5]])


def test_case_97_four_dictionary_rows():
    """User and item as text beside a numeric age: one-hot blocks and the age itself."""
    ages = [19, 33, 55, 20]
    users, items = ["1", "2", "3", "1"], ["5", "43", "20", "10"]
    rows = [{"user": u, "item": i, "age": a} for u, i, a in zip(users, items, ages, strict=True)]
    X = OneHotFieldEncoder().fit_transform(rows)
    assert sp.isspmatrix_csr(X)
    assert X.shape == (4, 1 + 4 + 3)
    assert X[:, [0]].toarray().ravel().tolist() == ages
    assert (X[:, 1:].sum(axis=1) == 2).all()


def test_case_98_the_index_of_a_frame_plays_no_part():
    """Rows count by position, and the column names are kept."""
    frame = pd.DataFrame({"c": ["u", "v", "u"], "n": [1.0, 2.0, 3.0]})
    shuffled = frame.set_axis([7, 7, -1])
    encoder = OneHotFieldEncoder().fit(frame)
    assert encoder.feature_names_in_.tolist() == ["c", "n"]
    assert (encoder.transform(shuffled) != encoder.transform(frame)).nnz == 0


def test_case_101_indices_beyond_those_of_training_are_errors(write):
    """With the width of the model given, a larger index in a test file names its line."""
    train, _, _ = load_libffm(write("1 0:1:1 12:90:1\n", "train"))
    test = write("1 0:1:1\n0 13:15897:1\n", "test")
    with pytest.raises(TextFormatError, match="line 2: index 15897 is beyond n_features=90"):
        load_libffm(test, n_features=train.shape[1])


def test_case_102_a_code_that_training_did_not_have():
    """An unseen code has no entry, or an error that names column and code."""
    train, test = {"g": [33, 34], "x": [1, 2]}, {"g": [35, 34], "x": [1, 1]}
    encoder = OneHotFieldEncoder(numeric="category").fit(train)
    np.testing.assert_array_equal(encoder.transform(test).toarray(), [[0, 0, 1, 0], [0, 1, 1, 0]])
    encoder.set_params(handle_unknown="error")
    with pytest.raises(ValueError, match=r"column 'g', row 0: category .*35.* was not seen"):
        encoder.transform(test)


def test_case_103_a_test_file_with_fewer_columns(write):
    """The width comes from the model: columns that a file does not use are zeros."""
    train, _ = load_svmlight(write("1 5:1 2:1\n", "train"))
    test, _ = load_svmlight(write("0 3:1\n", "test"), n_features=train.shape[1])
    np.testing.assert_array_equal(test.toarray(), [[0, 0, 1, 0, 0]])


def test_case_105_an_index_at_the_declared_width(write):
    """Index 100 in a file that counts from 0 does not fit 100 columns; the line is named."""
    path = write("1 0:1 99:1\n0 100:1\n")
    with pytest.raises(TextFormatError, match="line 2: index 100 is beyond n_features=100") as bad:
        load_svmlight(path, n_features=100)
    assert bad.value.line == 2


def test_case_107_a_user_known_only_by_features():
    """An unknown id leaves its block empty, the side features stay."""
    encoder = OneHotFieldEncoder().fit({"user": ["a", "b"], "age": [20.0, 30.0]})
    X = encoder.transform({"user": ["new", None], "age": [40.0, 50.0]})
    np.testing.assert_array_equal(X.toarray(), [[0, 0, 40], [0, 0, 50]])


@pytest.mark.parametrize("n_rows, n_columns", [(1000, 20), (15_000, 12)])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("ends", [True, False])
def test_case_109_numeric_tables_of_any_shape(write, n_rows, n_columns, newline, header, ends):
    """Well-formed CSV is read, whatever its size, line ends and last line."""
    table = np.random.default_rng(0).integers(0, 2, (n_rows, n_columns))
    lines = [",".join(map(str, row)) for row in table.tolist()]
    if header:
        lines.insert(0, ",".join(f"c{j}" for j in range(n_columns)))
    text = newline.join(lines) + newline * ends
    frame, _, _ = load_csv(write(text), header=header)
    np.testing.assert_array_equal(frame.to_numpy(), table)


def test_case_109_malformed_tables_name_the_line(write):
    """A row with a cell too few."""
    with pytest.raises(TextFormatError, match="line 3: 1 cells, but the first line has 2"):
        load_csv(write("a,b\n1,2\n3\n"))


@pytest.mark.parametrize(
    ("line", "problem"),
    [("1 54:2 172:", "'172:': missing value"), ("1 54:2 172", "'172': no colon")],
)
def test_case_110_bad_lines_deep_inside_a_file(write, line, problem):
    """The error names file and line number."""
    path = write("1 1:1\n" * 5000 + line + "\n" + "1 1:1\n" * 10)
    with pytest.raises(ValueError, match=problem) as caught:
        load_svmlight(path)
    assert f"{path}, line 5001: " in str(caught.value)


def test_case_110_blanks_are_tolerated(write):
    """Two blanks between tokens and one at the end mean nothing."""
    X = dense("1 54:2  172:.1 ", write)
    assert X[0, [53, 171]].tolist() == [2, 0.1]


def test_case_111_unsorted_indices_are_accepted(write):
    """The order inside a line is free; the matrix has sorted indices."""
    X, _ = load_svmlight(write("1 7:1 3:2\n"))
    assert X.indices.tolist() == [2, 6]
    assert X.data.tolist() == [2, 1]


def test_case_111_indices_out_of_range(write):
    """Negative and beyond 64 bits: refused with the line; beyond 32 bits: read."""
    for token, problem in [("-1:1", "negative"), ("99999999999999999999:1", "above 2")]:
        with pytest.raises(TextFormatError, match=f"line 1: '{token}'.*{problem}"):
            load_svmlight(write(f"1 {token}\n"))
    X, _ = load_svmlight(write("1 4294967296:1\n"))
    assert X.indices.tolist() == [4294967295]


def test_case_113_the_other_format_is_recognised(write):
    """A svmlight file in the libffm reader, and the other way round."""
    with pytest.raises(TextFormatError, match="looks like a svmlight file"):
        load_libffm(write("1 1:0.5\n"))
    with pytest.raises(TextFormatError, match="looks like a libffm file"):
        load_svmlight(write("1 0:1:0.5\n"))


@pytest.mark.parametrize("load", [load_svmlight, load_libffm, load_csv])
def test_case_114_files_that_cannot_be_opened(load, write, tmp_path):
    """Each kind of failure has Python's own error, an empty file one in words."""
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "no" / "such" / "file")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    with pytest.raises(ValueError, match="empty"):
        load(write(""))


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything"
)
def test_case_114_no_permission(write):
    """PermissionError."""
    path = write("1 1:1\n")
    path.chmod(0)
    with pytest.raises(PermissionError):
        load_svmlight(path)


def test_case_117_an_index_without_value_is_refused(write):
    """It never silently means 1; the message says how to write a 1."""
    with pytest.raises(TextFormatError, match=r"'3': no colon.*a value of 1 must be written out"):
        load_svmlight(write("1 2:10 3 7:0.5\n"))


def test_case_119_files_that_start_at_zero_and_at_one(write):
    """Alone each is guessed by its smallest index; together they are read alike."""
    a, b = write("1 1:1 2:1\n", "a"), write("1 0:1 2:1\n", "b")
    (alone, _), (other, _) = load_svmlight(a), load_svmlight(b)
    assert (alone.indices.tolist(), other.indices.tolist()) == ([0, 1], [0, 2])
    (jointly, _), (_, _) = load_svmlight([a, b])
    assert jointly.indices.tolist() == [1, 2]
    assert load_svmlight(b, zero_based=True)[0].shape == (1, 3)


def test_case_119_one_index_in_two_fields(write):
    """Hashed indices collide: such files can be read, with the column marked."""
    X, _, fields = load_libffm(write("1 0:5:1 1:6:1\n1 1:5:1\n"), shared_ids="mark")
    assert X.shape == (2, 6)
    assert fields[[4, 5]].tolist() == [-1, 1]
