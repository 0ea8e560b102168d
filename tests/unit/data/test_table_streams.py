"""CSV and Parquet files in batches, against the whole files."""

import csv
import gzip
import io
import re
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyfm.data import (
    Batch,
    HashingEncoder,
    OneHotFieldEncoder,
    ReadReport,
    TextFormatError,
    VocabularyEncoder,
    encode,
    iter_csv,
    iter_parquet,
    load_csv,
    load_parquet,
    table_streams,
)

TEXT = "y,city,n,x\n" + "".join(
    f"{i % 2},c{i % 7},{i},{i / 4 if i % 5 else ''}\n" for i in range(100)
)


def stream(text):
    return io.BytesIO(text.encode() if isinstance(text, str) else text)


def joined(batches):
    batches = list(batches)
    return pa.concat_tables([b.X for b in batches]), np.concatenate([b.y for b in batches])


@pytest.fixture
def table():
    return pa.table(
        {"y": [i % 2 for i in range(100)], "c": [f"c{i % 7}" for i in range(100)], "w": [0.5] * 100}
    )


@pytest.mark.parametrize("rows", [1, 7, 50, 100, 1000])
def test_csv_batches_are_the_rows_of_the_file(rows, tmp_path):
    (tmp_path / "t.csv").write_text(TEXT)
    frame, y, _ = load_csv(tmp_path / "t.csv", target="y")
    batches = list(iter_csv(tmp_path / "t.csv", target="y", batch_rows=rows))
    assert [b.n_rows for b in batches[:-1]] == [rows] * (len(batches) - 1)
    X, labels = joined(batches)
    assert X.to_pydict() == pa.table(frame.to_native()).to_pydict() | {"x": X["x"].to_pylist()}
    np.testing.assert_array_equal(X["x"].to_pandas(), frame["x"].to_numpy())
    np.testing.assert_array_equal(labels, y)
    assert labels.dtype == np.int64


@pytest.mark.parametrize("n_bytes", [1, 40, 333, 10_000])
def test_batches_by_bytes(n_bytes):
    batches = list(iter_csv(stream(TEXT), target="y", types={"x": "number"}, batch_bytes=n_bytes))
    X, y = joined(batches)
    assert X["n"].to_pylist() == list(range(100))
    assert y.tolist() == [i % 2 for i in range(100)]
    assert len(batches) >= min(len(TEXT) // n_bytes, 100) / 3


CELLS = st.text(st.sampled_from("ab,\";\n\r ü'\\"), max_size=5)


@given(
    st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=12), st.integers(1, 30)
)
def test_quotes_and_line_ends_inside_cells(rows, n_bytes):
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([["u", "v"], *rows])
    kinds = {"u": "text", "v": "text"}
    batches = list(iter_csv(stream(out.getvalue()), types=kinds, batch_bytes=n_bytes))
    X = pa.concat_tables([b.X for b in batches])
    assert [[r["u"] or "", r["v"] or ""] for r in X.to_pylist()] == rows


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_bom_blank_lines_and_no_last_line_end(end):
    text = "\ufeff" + end.join(["a,b", "", "1,x", "", "2,"])
    [batch] = iter_csv(stream(text))
    assert batch.X.to_pydict() == {"a": [1, 2], "b": ["x", None]}
    assert batch.y is None


def test_files_without_header_and_other_separators():
    [batch] = iter_csv(stream("1;x\n2;y\n"), header=False, separator=";", target="x0")
    assert batch.X.to_pydict() == {"x1": ["x", "y"]}
    assert batch.y.tolist() == [1, 2]


def test_many_files_compressed_and_progress(tmp_path):
    for k in range(3):
        data = gzip.compress(TEXT.encode()) if k else TEXT.encode()
        (tmp_path / f"part{k}.csv").write_bytes(data)
    told, report = [], ReadReport()
    options = {"target": "y", "batch_rows": 150, "progress": told.append, "report": report}
    X, _ = joined(iter_csv(str(tmp_path / "part*.csv"), **options))
    assert X["n"].to_pylist() == list(range(100)) * 3
    assert sum(told) == sum(p.stat().st_size for p in tmp_path.iterdir())
    assert report.n_rows == 300
    (tmp_path / "other.csv").write_text("y,b\n1,2\n")
    with pytest.raises(TextFormatError, match=r"other.csv, line 1: the columns are .*'b'"):
        list(iter_csv([tmp_path / "part0.csv", tmp_path / "other.csv"], target="y"))


def test_types_are_those_of_the_first_block_or_as_told():
    text = "a,b,c,d\n1,2020-01-01,true,\n2,2020-01-02,false,\n"
    [batch] = iter_csv(stream(text))
    kinds = [str(t) for t in batch.X.schema.types]
    assert kinds == ["int64", "string", "string", "string"]
    [batch] = iter_csv(stream(text), types={"a": "text", "d": "number"})
    assert batch.X["a"].to_pylist() == ["1", "2"]
    assert str(batch.X.schema.field("d").type) == "double"


def test_weights():
    [batch] = iter_csv(stream("y,w,c\nno,1,a\nyes,2,b\n"), target="y", weight="w")
    assert batch.X.column_names == ["c"]
    assert batch.y.tolist() == ["no", "yes"]
    assert batch.y.dtype == object
    assert batch.weight.tolist() == [1.0, 2.0]
    assert batch.without(1).X.to_pydict() == {"c": ["b"]}


LONG = "y,n\n" + "1,2\n" * 3000
BAD = [
    (LONG + "1\n", 3002, "1 cells, but there are 2 columns", "1"),
    (LONG + '"a\nb",2,3\n', 3002, "3 cells", "a\nb,2,3"),
    (LONG + ",5\n", 3002, "'y' is missing", ",5"),
    (LONG.encode() + b"1,\xff\n", 3002, "not UTF-8 text", "1,\ufffd"),
    (LONG + '1,"z\n', 3002, "a quoted cell that does not end", '"z\n'),
    ("y,y\n1,2\n", 1, "column names occur twice: ['y']", ""),
    ("", None, "the file is empty", ""),
]


@pytest.mark.parametrize(("text", "line", "problem", "shown"), BAD)
@pytest.mark.parametrize("n_bytes", [50, None])
def test_errors_name_file_line_and_text(text, line, problem, shown, n_bytes, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(TextFormatError) as caught:
        list(iter_csv(path, target="y", batch_bytes=n_bytes))
    assert caught.value.path == str(path)
    assert caught.value.line == line
    assert problem in caught.value.problem
    assert caught.value.text == shown


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("z", "column 'n' is 'z', not a number; say types={'n': 'text'}"),
        ("0.5", "held whole numbers so far, here it is '0.5'; say types={'n': 'number'}"),
        ("1_0", "column 'n' is '1_0', not a number"),
    ],
)
def test_cells_of_another_kind_than_before(cell, problem):
    with pytest.raises(TextFormatError) as caught:
        list(iter_csv(stream(f"{LONG}1,{cell}\n"), target="y", batch_bytes=50))
    assert (caught.value.line, caught.value.text) == (3002, cell)
    assert problem in caught.value.problem


def test_a_bad_first_block_is_told_too():
    with pytest.raises(TextFormatError, match="line 3: 3 cells"):
        list(iter_csv(stream("y,n\n1,2\n1,2,3\n1,2\n"), target="y"))


@pytest.mark.parametrize("n_bytes", [20, None])
def test_skipped_records(n_bytes):
    good = "".join(f"{i},{i},c{i}\n" for i in range(50))
    text = f"y,n,c\n{good}1\n,3,x\n{good}7,zz,x\n".encode() + b"5,6,\xff\n" + good.encode()
    report = ReadReport()
    options = {"target": "y", "on_error": "skip", "report": report, "batch_bytes": n_bytes}
    with pytest.warns(UserWarning, match="4 lines were left out, the first: .*line 52: 1 cells"):
        X, y = joined(iter_csv(io.BytesIO(text), types={"n": "number"}, **options))
    assert y.tolist() == list(range(50)) * 3
    assert X["c"].to_pylist() == [f"c{i}" for i in range(50)] * 3
    assert (report.n_rows, report.n_skipped) == (150, 4)
    assert report.first_error.line == 52


@given(st.binary(max_size=60))
def test_any_bytes_end_in_a_table_or_an_error(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for policy in ("raise", "skip"):
            try:
                for batch in iter_csv(io.BytesIO(b"a,b\n" + data), on_error=policy, batch_bytes=16):
                    assert batch.X.num_columns == 2
            except TextFormatError:
                pass


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_rows": 0}, "batch_rows must be at least 1"),
        ({"batch_bytes": 0}, "batch_bytes must be at least 1"),
        ({"on_error": "warn"}, "on_error must be 'raise' or 'skip'"),
        ({"separator": ",,"}, "separator must be one character"),
        ({"types": {"n": "date"}}, r"types\['n'\] must be one of"),
        ({"target": "z"}, "no column 'z'; the columns are"),
        ({"types": {"z": "text"}}, "no column 'z'"),
    ],
)
def test_impossible_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        list(iter_csv(stream(TEXT), **options))


@pytest.mark.parametrize("rows", [1, 30, 100, 1000])
@pytest.mark.parametrize("n_bytes", [None, 100])
def test_parquet_batches(rows, n_bytes, table, tmp_path):
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=37)
    pq.write_table(table, tmp_path / "b.parquet")
    told, report = [], ReadReport()
    options = {"progress": told.append, "report": report, "batch_bytes": n_bytes}
    batches = list(
        iter_parquet(
            str(tmp_path / "*.parquet"), target="y", weight="w", batch_rows=rows, **options
        )
    )
    X, y = joined(batches)
    assert X.column_names == ["c"]
    assert X["c"].to_pylist() == table["c"].to_pylist() * 2
    assert y.tolist() == table["y"].to_pylist() * 2
    assert sum(b.weight.sum() for b in batches) == 100
    assert sum(told) == sum(p.stat().st_size for p in tmp_path.iterdir())
    assert report.n_rows == 200
    if n_bytes is None:
        assert {b.n_rows for b in batches[:-1]} <= {rows}


def test_parquet_from_a_stream(table):
    out = io.BytesIO()
    pq.write_table(table, out)
    [batch] = iter_parquet(io.BytesIO(out.getvalue()), target="y")
    assert batch.X.column_names == ["c", "w"]


def test_parquet_errors(table, tmp_path):
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a.parquet: no column 'z'; the columns are \['y'"):
        list(iter_parquet(tmp_path / "a.parquet", target="z"))
    (tmp_path / "t").write_text(TEXT)
    with pytest.raises(TextFormatError, match="t: not a Parquet file"):
        list(iter_parquet(tmp_path / "t"))
    with pytest.raises(FileNotFoundError, match="no file matches"):
        list(iter_parquet(str(tmp_path / "x*")))
    pq.write_table(pa.table({"y": [1, 2, None], "c": ["a"] * 3}), tmp_path / "gap")
    with pytest.raises(TextFormatError, match="gap: data row 3: 'y' is missing"):
        list(iter_parquet(tmp_path / "gap", target="y", batch_rows=2))
    with pytest.raises(TextFormatError, match="but those of the files before"):
        list(iter_parquet([tmp_path / "a.parquet", tmp_path / "gap"], target="y"))


def test_without_pyarrow(monkeypatch):
    monkeypatch.setattr("polyfm.data.table_streams.pyarrow_or_none", lambda: None)
    with pytest.raises(ImportError, match="CSV files batch by batch needs pyarrow"):
        iter_csv(stream(TEXT))
    with pytest.raises(ImportError, match="Parquet files batch by batch needs pyarrow"):
        iter_parquet(stream(TEXT))


def test_a_growing_vocabulary_encodes_batch_by_batch():
    encoder = VocabularyEncoder(numeric="standardize")
    batches = list(encode(iter_csv(stream(TEXT), target="y", batch_rows=4), encoder))
    widths = [b.X.shape[1] for b in batches]
    assert widths[0] < widths[1] == widths[2] == encoder.n_features_out_
    assert np.concatenate([b.y for b in batches]).tolist() == [i % 2 for i in range(100)]
    assert isinstance(batches[0], Batch)


@pytest.mark.parametrize(
    "encoder", [HashingEncoder(8), OneHotFieldEncoder(), VocabularyEncoder(growing=False)]
)
def test_other_encoders_learn_from_the_first_batch(encoder):
    whole, _ = joined(iter_csv(stream(TEXT), target="y"))
    batches = list(encode(iter_csv(stream(TEXT), target="y", batch_rows=30), encoder))
    parts = np.concatenate([b.X.toarray() for b in batches])
    np.testing.assert_array_equal(parts, encoder.transform(whole).toarray())
    again = list(encode(iter_csv(stream(TEXT), target="y", batch_rows=30), encoder))
    np.testing.assert_array_equal(np.concatenate([b.X.toarray() for b in again]), parts)


def test_columns_that_nobody_asked_for_play_no_part():
    lines = [b"y,a,b", b"1,x,1", b"0,y,2"]
    text = b"\n".join([*lines, *[b"0,z,words"] * 10]) + b"\n"
    options = {"target": "y", "batch_rows": 2, "batch_bytes": 16}
    with pytest.raises(ValueError, match="'b'"):
        list(iter_csv(io.BytesIO(text), **options))
    found = list(iter_csv(io.BytesIO(text), columns=["a"], **options))
    assert {tuple(batch.X.column_names) for batch in found} == {("a",)}
    assert sum(batch.n_rows for batch in found) == 12
    with pytest.raises(ValueError, match="no column 'c'"):
        list(iter_csv(io.BytesIO(text), columns=["a", "c"], **options))


def test_columns_of_parquet_are_read_alone(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"y": [1, 0], "a": ["u", "v"], "b": [3, 4]}), path)
    [batch] = iter_parquet(path, target="y", columns=["b"])
    assert batch.X.to_pydict() == {"b": [3, 4]} and batch.y.tolist() == [1, 0]
    with pytest.raises(ValueError, match="no column 'c'"):
        list(iter_parquet(path, columns=["c"]))


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64])
@pytest.mark.parametrize(
    "text",
    [
        b"y,u\r1,a\r0,b\r",
        b"y,u\r1,a\r\n0,b\r\n1,c\r\n",
        b"y,u\n1,a\r0,b\r\r1,c",
        b'y,"u\rv"\n1,a\n0,b\n',
        b'y,"u\rv"\r1,"a\rb"\r0,"c\nd"\r\n1,"e,\r\n"\r',
    ],
)
def test_returns_end_lines(text, block, tmp_path, monkeypatch):
    monkeypatch.setattr(table_streams, "_BLOCK", block)
    path = tmp_path / "a.csv"
    path.write_bytes(text)
    frame, y, _ = load_csv(path, target="y")
    batches = list(iter_csv(path, target="y"))
    assert np.concatenate([batch.y for batch in batches]).tolist() == y.tolist()
    cells = [cell for batch in batches for cell in batch.X.column(0).to_pylist()]
    assert cells == frame.to_native().column(0).to_pylist()


@pytest.mark.parametrize("end", [b"\r", b"\n", b"\r\n"])
@pytest.mark.parametrize("block", [3, 1 << 20])
def test_lines_are_counted_by_any_end(end, block, monkeypatch):
    monkeypatch.setattr(table_streams, "_BLOCK", block)
    for bad in (b"1,\xff", b"1", b"x,2"):
        text = end.join([b"y,u", b"1,a", b"", b"0,b", bad, b"1,c"])
        with pytest.raises(TextFormatError) as caught:
            list(iter_csv(io.BytesIO(text), target="y", types={"y": "number", "u": "text"}))
        assert caught.value.line == 5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1,1,a\n0,nan,b\n", "'w' is 'nan'; it must be finite and not negative"),
        ("1,1,a\n0,inf,b\n", "'w' is 'inf'; it must be finite and not negative"),
        ("1,1,a\n0,-2,b\n", "'w' is '-2'; it must be finite and not negative"),
        ("1,1,a\n0,heavy,b\n", "the weight 'w' is 'heavy', not a number"),
        ("1.5,1,a\nNaN,2,b\n", "'y' is 'NaN'; it must be finite"),
        ("1.5,1,a\n-inf,2,b\n", "'y' is '-inf'; it must be finite"),
        ("1,1,a\n,2,b\n", "'y' is missing"),
    ],
)
def test_targets_and_weights_that_are_none(text, problem):
    text += "1,3,c\n"
    with pytest.raises(TextFormatError) as caught:
        list(iter_csv(stream("y,w,u\n" + text), target="y", weight="w"))
    assert caught.value.line == 3
    assert caught.value.problem == problem
    report = ReadReport()
    with pytest.warns(UserWarning, match="1 line was left out"):
        [batch] = iter_csv(
            stream("y,w,u\n" + text), target="y", weight="w", on_error="skip", report=report
        )
    assert batch.X.column("u").to_pylist() == ["a", "c"]
    assert batch.weight.tolist() == [1, 3]
    assert report.n_skipped == 1


def test_labels_in_words_may_be_nan():
    [batch] = iter_csv(stream("y,u\nspam,a\nnan,b\n"), target="y")
    assert batch.y.tolist() == ["spam", "nan"]


def parquet_of(compression="none", **columns):
    out = io.BytesIO()
    pq.write_table(
        pa.table(columns), out, compression=compression, use_dictionary=False, row_group_size=1000
    )
    out.seek(0)
    return out


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"y": [1.0, np.nan], "w": [1, 2]}, "data row 2: 'y' is nan; it must be finite"),
        ({"y": [1.0, np.inf], "w": [1, 2]}, "data row 2: 'y' is inf; it must be finite"),
        ({"y": [1, None], "w": [1, 2]}, "data row 2: 'y' is missing"),
        ({"y": [1, 2], "w": [1, -2]}, "data row 2: 'w' is -2; it must be finite and not negative"),
        ({"y": [1, 2], "w": [1.0, np.nan]}, "data row 2: 'w' is nan; it must be finite and"),
        ({"y": [1, 2], "w": ["a", "b"]}, "the weight 'w' holds string, not numbers"),
    ],
)
def test_targets_and_weights_of_parquet(columns, problem):
    with pytest.raises(TextFormatError, match=re.escape(problem)):
        list(iter_parquet(parquet_of(**columns), target="y", weight="w"))


@pytest.mark.parametrize("reader", [iter_csv, iter_parquet])
def test_target_and_weight_are_two_columns(reader):
    with pytest.raises(ValueError, match="target and weight are the same column, 'y'"):
        reader(stream("y\n1\n"), target="y", weight="y")
    with pytest.raises(TypeError, match=r"columns must be a list of names, got 'u'"):
        reader(stream("y\n1\n"), columns="u")


def test_weights_are_numbers():
    with pytest.raises(ValueError, match="weight='w' must be a column of numbers"):
        iter_csv(stream("w\n1\n"), weight="w", types={"w": "text"})


def test_a_damaged_page_is_told_with_its_file(tmp_path):
    content = parquet_of("snappy", y=np.arange(5000.0)).getvalue()
    path = tmp_path / "a.parquet"
    path.write_bytes(content[:20000] + b"\xff" * 64 + content[20064:])
    with pytest.raises(TextFormatError, match=r"a\.parquet: cannot be read after data row \d+ "):
        list(iter_parquet(path, target="y", batch_rows=100))
    with pytest.raises(TextFormatError, match=r"a\.parquet: not a Parquet file, or a damaged one"):
        load_parquet(path, target="y")
