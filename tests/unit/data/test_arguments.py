"""Arguments of readers that cannot be, and tables too large for memory."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyfm.data import (
    ReadReport,
    TextFormatError,
    _memory,
    iter_csv,
    iter_libffm,
    iter_parquet,
    iter_svmlight,
    iter_vw,
    load_libffm,
    load_svmlight,
    load_vw,
)

LINE = {"svmlight": b"1 1:0.5\n", "libffm": b"1 0:1:0.5\n", "vw": b"1 |u tom\n"}
WITH_WIDTH = [load_svmlight, load_libffm, iter_svmlight, iter_libffm]
STREAMS = [iter_svmlight, iter_libffm, iter_vw, iter_csv, iter_parquet]


def source_for(reader: Callable[..., Any]) -> io.BytesIO:
    return io.BytesIO(LINE.get(reader.__name__.partition("_")[2], b"y\n1\n"))


@pytest.mark.parametrize("reader", WITH_WIDTH)
@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        (2**70, ValueError, r"n_features must be at most 2\*\*63 - 1, got 1180591620717411303424"),
        (0, ValueError, "n_features must be at least 1, got 0"),
        (2.5, TypeError, "n_features must be a whole number, got 2.5"),
        ("5", TypeError, "n_features must be a whole number, got '5'"),
        (True, TypeError, "n_features must be a whole number, got True"),
    ],
)
def test_widths(
    reader: Callable[..., Any], given: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        reader(source_for(reader), n_features=given)


def test_a_width_of_numpy() -> None:
    X, _ = load_svmlight(source_for(load_svmlight), n_features=np.int16(7))
    assert X.shape == (1, 7)


@pytest.mark.parametrize("reader", STREAMS)
@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"batch_rows": 1.5}, TypeError, "batch_rows must be a whole number, got 1.5"),
        ({"batch_rows": None}, TypeError, "batch_rows must be a whole number, got None"),
        ({"batch_bytes": "1MB"}, TypeError, "batch_bytes must be a whole number, got '1MB'"),
        ({"batch_bytes": 0}, ValueError, "batch_bytes must be at least 1, got 0"),
    ],
)
def test_sizes_of_batches(
    reader: Callable[..., Any], options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        reader(source_for(reader), **options)


@pytest.mark.parametrize("reader", [iter_svmlight, iter_libffm, iter_vw])
def test_rows_to_skip(reader: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="skip must be at least 0, got -1"):
        reader(source_for(reader), skip=-1)
    with pytest.raises(TypeError, match=r"skip must be a whole number, got 0.5"):
        reader(source_for(reader), skip=0.5)
    assert list(reader(source_for(reader), skip=3)) == []


@pytest.mark.parametrize("reader", [load_svmlight, load_libffm, load_vw, *STREAMS])
@pytest.mark.parametrize("source", [None, b"path", 7, [None], [b"a", b"b"]])
def test_sources_that_are_none(reader: Callable[..., Any], source: Any) -> None:
    with pytest.raises(TypeError, match=r"the source must be a path .*; got .* of type "):
        list(reader(source))


def test_bytes_are_told_from_paths() -> None:
    with pytest.raises(TypeError, match=r"wrap data in io\.BytesIO.*got b'1 1:1' of type bytes"):
        load_svmlight(b"1 1:1")


@pytest.mark.parametrize("reader", [load_svmlight, iter_svmlight, load_vw, iter_vw])
def test_types_of_values(reader: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="dtype must be float32 or float64, got 'single-ish'"):
        reader(source_for(reader), dtype="single-ish")


@pytest.mark.parametrize("bits", [2.0, "18", None])
def test_bits_are_whole(bits: Any) -> None:
    with pytest.raises(TypeError, match="n_bits must be a whole number"):
        load_vw(source_for(load_vw), n_bits=bits)


@pytest.fixture
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memory, "free_bytes", lambda: 1 << 30)


@pytest.mark.usefixtures("small_machine")
@pytest.mark.parametrize("bits", [31, 32])
def test_a_table_of_fields_is_not_begun_without_room(bits: int) -> None:
    wanted = f"all {2**bits:,} columns takes {24 * 2**bits >> 30} GiB, more memory than is free"
    with pytest.raises(ValueError, match=wanted):
        load_vw(source_for(load_vw), n_bits=bits)
    with pytest.raises(ValueError, match=wanted):
        iter_vw(source_for(iter_vw), n_bits=bits, report=ReadReport())
    [batch] = iter_vw(source_for(iter_vw), n_bits=bits)  # as the message advises
    assert batch.X.shape == (1, 2**bits)
    assert batch.X.data.tolist() == [1.0]


@pytest.mark.usefixtures("small_machine")
@pytest.mark.parametrize(
    "read", [load_libffm, lambda text: list(iter_libffm(text, report=ReadReport()))]
)
def test_a_large_index_is_refused_with_its_place(read: Callable[..., Any]) -> None:
    with pytest.raises(TextFormatError, match=r"line 2: a table of the fields .* not fit into"):
        read(io.BytesIO(b"1 0:1:1\n0 0:2000000000:1\n"))


@pytest.mark.usefixtures("small_machine")
def test_what_fits_is_read() -> None:
    rows = load_vw(source_for(load_vw), n_bits=24)
    assert np.flatnonzero(rows.fields + 1).tolist() == rows.X.indices.tolist()


def test_memory_of_this_machine() -> None:
    free = _memory.free_bytes()
    assert free is None or free > 1 << 20
    assert _memory.has_room(1)
    assert free is None or not _memory.has_room(2**62)


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({"/proc/meminfo": "MemTotal: 9 kB\nMemAvailable:   300 kB\n"}, 300 * 1024),
        (
            {
                "/proc/meminfo": "MemAvailable: 300 kB\n",
                "/sys/fs/cgroup/memory.max": "5000\n",
                "/sys/fs/cgroup/memory.current": "4000\n",
                "/sys/fs/cgroup/memory.stat": "anon 1\ninactive_file 500\n",
            },
            1500,
        ),
        (
            {
                "/proc/meminfo": "MemAvailable: 300 kB\n",
                "/sys/fs/cgroup/memory.max": "max\n",
                "/sys/fs/cgroup/memory.current": "4000\n",
            },
            300 * 1024,
        ),
    ],
)
def test_what_a_system_tells(
    files: dict[str, str], free: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_memory, "_text", lambda path: files.get(path, ""))
    assert _memory.free_bytes() == free


def test_a_path_is_still_a_path(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_bytes(LINE["svmlight"])
    for read in (load_svmlight, partial(load_svmlight, n_features=1)):
        assert read(path)[0].shape == (1, 1)
