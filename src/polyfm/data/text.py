"""Readers of svmlight (libsvm) and libffm text files.

Notes
-----
One row per line, ``label index:value index:value ...`` in svmlight, ``label
field:index:value ...`` in libffm.  ``#`` starts a comment, ``qid:7`` after the label is skipped,
blank lines do not count, a label alone is a row of zeros.  An index without a value is an error,
never a silent 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from polyfm.data._collect import FieldTable
from polyfm.data._pieces import TextLayout
from polyfm.data._reading import Cut, Reading, demands, iterate, load
from polyfm.data._sources import Progress, StrPath, is_single
from polyfm.data.batches import Batch
from polyfm.data.report import ReadReport

__all__ = ["iter_libffm", "iter_svmlight", "load_libffm", "load_svmlight"]

Paths = list[Any] | tuple[Any, ...]  # not Sequence: a str is a sequence of str
Labelled = tuple[sp.csr_matrix, NDArray[np.float64] | None]
WithFields = tuple[sp.csr_matrix, NDArray[np.float64] | None, NDArray[np.int64]]


@overload
def load_svmlight(
    path: Paths,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    labels: bool = True,
    dtype: DTypeLike = np.float32,
    on_error: str = "raise",
    report: ReadReport | None = None,
    progress: Progress | None = None,
) -> list[Labelled]: ...
@overload
def load_svmlight(
    path: StrPath | Any,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    labels: bool = True,
    dtype: DTypeLike = np.float32,
    on_error: str = "raise",
    report: ReadReport | None = None,
    progress: Progress | None = None,
) -> Labelled: ...
def load_svmlight(
    path: Any,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    labels: bool = True,
    dtype: DTypeLike = np.float32,
    on_error: str = "raise",
    report: ReadReport | None = None,
    progress: Progress | None = None,
) -> Labelled | list[Labelled]:
    """Read svmlight (libsvm) files.

    Parameters
    ----------
    path : path, address, binary file object, or list of these
        gzip and Zstandard files are known by their content.  A path with wildcards stands for
        the rows of all files that match, in the order of their names; ``"-"`` is standard input;
        an address such as ``"s3://..."`` is opened by fsspec.  Members of one list share the
        number of columns and the decision of ``zero_based="auto"``, so give train and test
        together.
    n_features : int, default=None
        Number of columns.  A larger index is an error; columns without entries are empty.  None
        takes the largest index found in all the files.
    zero_based : bool or "auto", default="auto"
        Whether the first column is written 0 or 1.  "auto" says 0 if any file holds an index 0.
    labels : bool, default=True
        False makes the label optional and ignores it: y is None.
    dtype : dtype, default=numpy.float32
        Type of the values, ``float32`` or ``float64``.
    on_error : {"raise", "skip"}, default="raise"
        What to do with a line that cannot be read: "skip" leaves it out and warns, once for a
        file, of how many there were and what was wrong with the first.
    report : ReadReport, optional
        Is told how many rows were read and lines left out.
    progress : callable, optional
        Called with the number of bytes read since the last call, counted as they lie, compressed
        or not.

    Returns
    -------
    X : scipy.sparse.csr_matrix of shape (n_samples, n_features)
        Sorted indices, of 32 bits where they fit; repeated indices of a row are summed.
    y : ndarray of float64 of shape (n_samples,) or None
        The labels.  For a list of paths, a list of (X, y) is returned.

    Raises
    ------
    TextFormatError
        A ValueError that names file, line, column and the offending text: also for negative
        indices, those above ``2**63 - 1``, NaN, infinity, and values too large for ``dtype``.
    OSError
        If a file cannot be opened.
    ImportError
        If fsspec or a decompressor is needed and not installed.

    Notes
    -----
    Numbers are rounded correctly, to the last bit, whatever their number of digits.  The memory
    needed is about that of the result.

    Examples
    --------
    >>> import io
    >>> from polyfm.data import load_svmlight
    >>> X, y = load_svmlight(io.BytesIO(b"1 1:0.5 3:2"))
    >>> X.toarray(), y
    (array([[0.5, 0. , 2. ]], dtype=float32), array([1.]))
    """
    asked = demands(labels, zero_based, n_features, dtype, auto=True)
    reading = Reading(TextLayout(2), asked, on_error, report, progress).checked()
    loaded, _ = load(path, reading, None)
    pairs = [(one.X, one.y) for one in loaded]
    return pairs[0] if is_single(path) else pairs


@overload
def load_libffm(
    path: Paths,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    labels: bool = True,
    shared_ids: str = "error",
    dtype: DTypeLike = np.float32,
    on_error: str = "raise",
    report: ReadReport | None = None,
    progress: Progress | None = None,
) -> list[WithFields]: ...
@overload
def load_libffm(
    path: StrPath | Any,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    labels: bool = True,
    shared_ids: str = "error",
    dtype: DTypeLike = np.float32,
    on_error: str = "raise",
    report: ReadReport | None = None,
    progress: Progress | None = None,
) -> WithFields: ...
def load_libffm(
    path: Any,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    labels: bool = True,
    shared_ids: str = "error",
    dtype: DTypeLike = np.float32,
    on_error: str = "raise",
    report: ReadReport | None = None,
    progress: Progress | None = None,
) -> WithFields | list[WithFields]:
    """Read libffm files, whose indices carry a field.

    Parameters
    ----------
    path : path, address, binary file object, or list of these
        As of :func:`load_svmlight`; those of one list are read jointly.
    n_features : int, default=None
        Number of columns; None takes the largest index found.
    zero_based : bool or "auto", default="auto"
        Whether the first column is written 0 or 1.  Fields are kept as they are written.
    labels : bool, default=True
        False makes the label optional and ignores it: y is None.
    shared_ids : {"error", "mark"}, default="error"
        What to do if an index occurs in several fields (hashed indices do): refuse, or read it
        as one column all the same and give it the field -1.
    dtype : dtype, default=numpy.float32
        Type of the values, ``float32`` or ``float64``.
    on_error : {"raise", "skip"}, default="raise"
        What to do with a line that cannot be read: "skip" leaves it out and warns, once for a
        file.  An index in several fields is no matter of a line.
    report : ReadReport, optional
        Is told how many rows were read and lines left out.
    progress : callable, optional
        Called with the number of bytes read since the last call.

    Returns
    -------
    X : scipy.sparse.csr_matrix of shape (n_samples, n_features)
        Sorted indices; repeated indices of a row are summed.
    y : ndarray of float64 of shape (n_samples,) or None
        The labels.
    fields : ndarray of int64 of shape (n_features,)
        Field of each column, -1 for columns that no file uses.  For a list of paths, a list of
        (X, y, fields) is returned, with the same fields.

    Raises
    ------
    TextFormatError
        A ValueError that names file, line, column and the offending text.
    OSError
        If a file cannot be opened.
    """
    asked = demands(labels, zero_based, n_features, dtype, auto=True)
    table = FieldTable(_may_share(shared_ids))
    reading = Reading(TextLayout(3), asked, on_error, report, progress).checked()
    loaded, first = load(path, reading, table)
    fields = table.fields(first, loaded[0].X.shape[1])
    if report is not None:
        report.follow(lambda: fields)
    triples = [(one.X, one.y, fields) for one in loaded]
    return triples[0] if is_single(path) else triples


def iter_svmlight(
    source: Any,
    *,
    batch_rows: int = 65_536,
    batch_bytes: int | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    labels: bool = True,
    dtype: DTypeLike = np.float32,
    skip: int = 0,
    on_error: str = "raise",
    report: ReadReport | None = None,
    progress: Progress | None = None,
) -> Iterator[Batch]:
    """Read svmlight (libsvm) files in batches, without ever holding a whole file.

    Parameters
    ----------
    source : path, address, binary file object, or list of these
        As of :func:`load_svmlight`; all of a list are read one after the other, as one file.
    batch_rows : int, default=65536
        Rows of a batch.
    batch_bytes : int, optional
        Bytes of text of a batch, uncompressed: it ends where either number is reached, but has
        at least one row.
    n_features : int, default=None
        Number of columns; None makes each batch as wide as its largest index.
    zero_based : bool, default=False
        Whether the first column is written 0 or 1.  An index 0 where it is 1 is an error; what
        comes later in a stream cannot be known, so that there is no "auto".
    labels : bool, default=True
        False makes the label optional and ignores it.
    dtype : dtype, default=numpy.float32
        Type of the values, ``float32`` or ``float64``.
    skip : int, default=0
        Rows to leave out at the start.
    on_error : {"raise", "skip"}, default="raise"
        What to do with a line that cannot be read: "skip" leaves it out and warns, once for a
        file, of how many there were and what was wrong with the first.
    report : ReadReport, optional
        Is told how many rows were read and lines left out.
    progress : callable, optional
        Called with the number of bytes read since the last call, counted as they lie, compressed
        or not.

    Yields
    ------
    Batch
        X is a scipy.sparse.csr_matrix with sorted indices and no repeated ones.

    Raises
    ------
    TextFormatError
        A ValueError that names file, line, column and the offending text.
    OSError
        If a file cannot be opened.

    Examples
    --------
    >>> import io
    >>> from polyfm.data import iter_svmlight
    >>> lines = io.BytesIO(b"1 1:0.5\\n0 2:1\\n1 1:1\\n")
    >>> [batch.n_rows for batch in iter_svmlight(lines, batch_rows=2, n_features=2)]
    [2, 1]
    """
    asked = demands(labels, zero_based, n_features, dtype, auto=False)
    reading = Reading(TextLayout(2), asked, on_error, report, progress).checked()
    return iterate(source, reading, None, Cut(batch_rows, batch_bytes).checked(), skip)


def iter_libffm(
    source: Any,
    *,
    batch_rows: int = 65_536,
    batch_bytes: int | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    labels: bool = True,
    shared_ids: str = "mark",
    dtype: DTypeLike = np.float32,
    skip: int = 0,
    on_error: str = "raise",
    report: ReadReport | None = None,
    progress: Progress | None = None,
) -> Iterator[Batch]:
    """Read libffm files in batches, without ever holding a whole file.

    Parameters
    ----------
    source : path, address, binary file object, or list of these
        As of :func:`load_svmlight`; all of a list are read one after the other, as one file.
    batch_rows, batch_bytes, n_features, zero_based, labels, dtype, skip, on_error, progress
        As of :func:`iter_svmlight`.
    shared_ids : {"error", "mark"}, default="mark"
        Whether an index in several fields is an error, or gets the field -1.
    report : ReadReport, optional
        Is told how many rows were read and lines left out, and the field of each column.

    Yields
    ------
    Batch
        The rows; their fields are in ``report.fields``.

    Raises
    ------
    TextFormatError
        A ValueError that names file, line, column and the offending text.
    OSError
        If a file cannot be opened.
    """
    asked = demands(labels, zero_based, n_features, dtype, auto=False)
    shared = _may_share(shared_ids)
    reading = Reading(TextLayout(3), asked, on_error, report, progress).checked()
    table = None if shared and report is None else FieldTable(shared)
    if report is not None and table is not None:
        report.follow(lambda: table.fields(int(not zero_based), n_features))
    return iterate(source, reading, table, Cut(batch_rows, batch_bytes).checked(), skip)


def _may_share(shared_ids: str) -> bool:
    if shared_ids not in ("error", "mark"):
        raise ValueError(f"shared_ids must be 'error' or 'mark', got {shared_ids!r}")
    return shared_ids == "mark"
