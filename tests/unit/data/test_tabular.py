import builtins

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polyfm.data import OneHotFieldEncoder, TextFormatError, load_csv, load_parquet

CSV = "city,age,note,y\nb,30,,1\na,2.5,long,0\n,,x y,1\n"


@pytest.fixture
def write(tmp_path):
    def save(text, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return save


@pytest.fixture
def no_pyarrow(monkeypatch):
    genuine = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.split(".")[0] == "pyarrow":
            raise ImportError(name)
        return genuine(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)


def test_csv_types_gaps_and_target(write):
    frame, y, names = load_csv(write(CSV), target="y")
    assert isinstance(frame, nw.DataFrame)
    assert names == ["city", "age", "note"] == frame.columns
    assert y.tolist() == [1, 0, 1]
    assert y.dtype == np.int64
    assert frame["city"].to_list() == ["b", "a", None]
    np.testing.assert_array_equal(frame["age"].to_numpy(), [30, 2.5, np.nan])


def test_csv_without_pyarrow_encodes_alike(write, no_pyarrow):
    frame, y, names = load_csv(write(CSV), target="y")
    assert isinstance(frame, dict)
    assert names == list(frame) == ["city", "age", "note"]
    assert y.tolist() == [1, 0, 1]
    X = OneHotFieldEncoder().fit_transform(frame).toarray()
    np.testing.assert_array_equal(X[:, :5], [[0, 1, 0, 30, 0], [1, 0, 0, 2.5, 0], [0, 0, 1, 0, 1]])


def test_csv_with_and_without_pyarrow_agree(write, monkeypatch):
    with_arrow, _, _ = load_csv(write(CSV))
    expected = OneHotFieldEncoder().fit(with_arrow)
    monkeypatch.setattr("polyfm.data.tabular._pyarrow", lambda: None)
    plain, _, _ = load_csv(write(CSV))
    np.testing.assert_array_equal(
        OneHotFieldEncoder().fit_transform(plain).toarray(),
        expected.transform(with_arrow).toarray(),
    )


@pytest.mark.parametrize(
    ("text", "values", "kind"),
    [
        ("1\n-2\n", [1, -2], "i"),
        ("1\n2.0\n", [1.0, 2.0], "f"),
        ("9223372036854775808\n1\n", [2.0**63, 1.0], "f"),
        ("1_000\n2\n", ["1_000", "2"], "O"),
        ("a\n1\n", ["a", "1"], "O"),
        ("True\nFalse\n", ["True", "False"], "O"),
    ],
)
def test_csv_recognises_numbers(write, text, values, kind):
    _, y, _ = load_csv(write(text), header=False, target="x0")
    assert y.tolist() == values
    assert y.dtype.kind == kind


def test_csv_layouts(write):
    quoted = load_csv(write('a;b\n"x;y";1\n'), separator=";")[0]
    assert quoted["a"].to_list() == ["x;y"]
    marked = load_csv(write("\ufeffa,b\r\n1,2\r\n"))
    assert marked[2] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a,b\n1,2\n3\n", 3, "1 cells, but the first line has 2"),
        ("a,b\n1,2\n\n3,4,5\n", 4, "3 cells, but the first line has 2"),
        ("a,a\n1,2\n", 1, r"column names occur twice: \['a'\]"),
        (b"a\n\xff\n", None, "not UTF-8 text .*byte 0xff"),
        ("", None, "the file is empty"),
        ("a,b\n", None, "a header but no rows"),
    ],
)
def test_csv_faults(write, text, line, problem):
    with pytest.raises(TextFormatError, match=problem) as caught:
        load_csv(write(text))
    assert caught.value.line == line


def test_target_faults(write):
    with pytest.raises(ValueError, match=r"no column 'z' to predict; the columns are \['a', 'b'\]"):
        load_csv(write("a,b\n1,2\n"), target="z")
    with pytest.raises(ValueError, match="data row 2: the target 'b' is missing"):
        load_csv(write("a,b\n1,2\n1,\n"), target="b")
    with pytest.raises(ValueError, match="data row 1: the target 'b' is missing"):
        load_csv(write("a,b\n1,\nx,t\n"), target="b")


def test_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"c": ["u", None], "g": [["a"], ["b", "a"]], "y": ["n", "j"]}), path)
    frame, y, names = load_parquet(path, target="y")
    assert names == ["c", "g"]
    assert y.tolist() == ["n", "j"]
    assert y.dtype == object
    X = OneHotFieldEncoder().fit_transform(frame).toarray()
    np.testing.assert_array_equal(X, [[1, 0, 1, 0], [0, 1, 0.5, 0.5]])


def test_parquet_faults(write, tmp_path):
    with pytest.raises(TextFormatError, match="not a Parquet file"):
        load_parquet(write("a,b\n"))
    with pytest.raises(FileNotFoundError):
        load_parquet(tmp_path / "none.parquet")


def test_parquet_without_pyarrow(write, no_pyarrow):
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'polyfm\[arrow\]'"):
        load_parquet(write("x"))
