"""Bytes from paths, wildcards, compressed files, file objects, standard input and addresses."""

import gzip
import io
import os
import sys
import zlib

import numpy as np
import pytest

from polyfm.data import TextFormatError, iter_svmlight, load_svmlight
from polyfm.data._sources import open_sources

TEXT = b"1 1:0.5 3:2\n0 2:1\n" * 50


def rows(source, **options):
    X, y = load_svmlight(source, **options)
    return X.shape, float(X.sum()), y.tolist()


EXPECTED = ((100, 3), 175.0, [1.0, 0.0] * 50)


def zstd(data):
    pa = pytest.importorskip("pyarrow")
    return pa.compress(data, codec="zstd", asbytes=True)


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "rows.svm"
    file.write_bytes(TEXT)
    return file


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstd], ids=["plain", "gzip", "zstd"])
def test_compression_is_known_by_content(tmp_path, compress):
    path = tmp_path / "rows.txt"
    path.write_bytes(compress(TEXT))
    told = []
    assert rows(path, progress=told.append) == EXPECTED
    assert sum(told) == path.stat().st_size
    (opened,) = open_sources(path)
    assert (opened.name, opened.size) == (str(path), path.stat().st_size)
    assert rows(io.BytesIO(compress(TEXT))) == EXPECTED
    assert rows(str(path)) == EXPECTED


@pytest.mark.parametrize("compress", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_several_compressed_parts_in_one_file(tmp_path, compress):
    path = tmp_path / "rows.gz"
    path.write_bytes(compress(TEXT[: len(TEXT) // 2]) + compress(TEXT[len(TEXT) // 2 :]))
    assert rows(path) == EXPECTED


@pytest.mark.parametrize("compress", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_damaged_files_are_an_error_in_words(tmp_path, compress):
    noise = np.random.default_rng(0).integers(0, 10, 40_000).astype(str)
    packed = compress(b"1 1:" + b"\n1 1:".join(n.encode() for n in noise))
    path = tmp_path / "cut"
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(TextFormatError, match="cut: the compressed data are damaged or cut off"):
        load_svmlight(path)
    path.write_bytes(packed[:20] + b"\x00" * 50 + packed[70:])
    with pytest.raises(TextFormatError, match=r"damaged or cut off|line 1"):
        load_svmlight(path)


def test_no_decompressor(tmp_path, monkeypatch):
    path = tmp_path / "rows.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + b"\x00" * 20)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        ImportError, match=r"compressed by Zstandard.*pip install 'polyfm\[arrow\]'"
    ):
        load_svmlight(path)


def test_wildcards_are_taken_in_the_order_of_names(tmp_path):
    for name, label in (("b.svm", 2), ("a.svm", 1), ("c.svm", 3)):
        (tmp_path / name).write_bytes(b"%d 1:1\n" % label)
    X, y = load_svmlight(tmp_path / "*.svm")
    assert y.tolist() == [1, 2, 3]
    assert X.shape == (3, 1)
    with pytest.raises(FileNotFoundError, match=r"no file matches .*x[*]"):
        load_svmlight(tmp_path / "x*")
    (tmp_path / "[d].svm").write_bytes(b"4 1:1\n")
    assert load_svmlight(tmp_path / "[d].svm")[1].tolist() == [4]


def test_lists_give_one_result_each_and_batches_go_on(path, tmp_path):
    other = tmp_path / "other.svm.gz"
    other.write_bytes(gzip.compress(b"5 9:1\n"))
    (X1, _), (X2, y2) = load_svmlight([path, other])
    assert (X1.shape, X2.shape, y2.tolist()) == ((100, 9), (1, 9), [5])
    assert [b.n_rows for b in iter_svmlight([path, other])] == [101]


def test_file_objects_are_left_open(path):
    with path.open("rb") as file:
        assert rows(file) == EXPECTED
        assert not file.closed
    with path.open("r") as file, pytest.raises(ValueError, match="open it in the mode 'rb'"):
        load_svmlight(file)

    class Text:
        def read(self, n):
            return "1 1:1"

    with pytest.raises(ValueError, match="gives str, not bytes"):
        load_svmlight(Text())


def test_an_object_that_only_reads():
    class Source:
        def __init__(self):
            self._stream = io.BytesIO(TEXT)

        def read(self, n):
            return self._stream.read(min(n, 7))

    assert rows(Source()) == EXPECTED


def test_standard_input(monkeypatch):
    read, write = os.pipe()
    with os.fdopen(write, "wb") as file:
        file.write(TEXT)
    with os.fdopen(read, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert rows("-") == EXPECTED


def test_errors_name_the_source(tmp_path):
    (tmp_path / "a.svm").write_bytes(b"1 1:1\n")
    (tmp_path / "b.svm").write_bytes(b"1 1:1\n2 x\n")
    with pytest.raises(TextFormatError, match=r"b\.svm, line 2: 'x'"):
        load_svmlight(tmp_path / "?.svm")
    with pytest.raises(TextFormatError, match=r"^<BytesIO>, line 1: "):
        load_svmlight(io.BytesIO(b"x"))
    with pytest.raises(FileNotFoundError):
        list(iter_svmlight(tmp_path / "none.svm"))


def test_files_are_closed(path):
    sources = open_sources(path)
    opened = next(sources)
    assert opened.stream.read(1) == b"1"
    sources.close()
    batches = iter_svmlight(path, batch_rows=1)
    next(batches)
    batches.close()


def test_addresses(path):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe("/readers/a.svm", TEXT[:90])
    memory.pipe("/readers/b.svm.gz", gzip.compress(TEXT[90:]))
    try:
        told = []
        assert rows("memory://readers/*.svm*", progress=told.append) == EXPECTED
        assert sum(told) == 90 + len(gzip.compress(TEXT[90:]))
        with pytest.raises(FileNotFoundError):
            load_svmlight("memory://readers/none*")
    finally:
        memory.rm("/readers", recursive=True)
    assert rows(path.as_uri()) == EXPECTED


def test_addresses_without_fsspec(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ImportError, match=r"needs fsspec: pip install 'polyfm\[remote\]'"):
        load_svmlight("s3://bucket/rows.svm")


def test_a_zlib_error_is_in_words(tmp_path):
    data = bytearray(gzip.compress(TEXT))
    data[30] ^= 0xFF
    path = tmp_path / "rows.gz"
    path.write_bytes(bytes(data))
    with pytest.raises((TextFormatError, zlib.error)) as caught:
        load_svmlight(path)
    assert isinstance(caught.value, TextFormatError)
