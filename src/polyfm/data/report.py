"""What reading a file has come across, beside its rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from polyfm.data.lines import TextFormatError

__all__ = ["ReadReport"]


class ReadReport:
    """What reading has come across; give one to a reader, which keeps it up to date.

    Attributes
    ----------
    n_rows : int
        Rows read.
    n_skipped : int
        Lines left out, with ``on_error="skip"``.
    first_error : TextFormatError or None
        What was wrong with the first of them.

    Examples
    --------
    >>> import io
    >>> from polyfm.data import ReadReport, iter_svmlight
    >>> report = ReadReport()
    >>> lines = io.BytesIO(b"1 1:0.5\\n0 2:x\\n1 2:2\\n")
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     batches = list(iter_svmlight(lines, on_error="skip", report=report))
    >>> report
    ReadReport(n_rows=2, n_skipped=1)
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.n_skipped = 0
        self.first_error: TextFormatError | None = None
        self._fields: Callable[[], NDArray[np.int64]] | None = None
        self._field_names: Callable[[], list[str]] | None = None

    def __repr__(self) -> str:
        return f"ReadReport(n_rows={self.n_rows}, n_skipped={self.n_skipped})"

    @property
    def fields(self) -> NDArray[np.int64] | None:
        """Field of each column met so far, -1 for several or none; None without fields."""
        return None if self._fields is None else self._fields()

    @property
    def field_names(self) -> list[str] | None:
        """Names of the fields met so far; None for formats that number them."""
        return None if self._field_names is None else self._field_names()

    def follow(
        self,
        fields: Callable[[], NDArray[np.int64]],
        field_names: Callable[[], list[str]] | None = None,
    ) -> None:
        """Take fields from where the reader keeps them."""
        self._fields, self._field_names = fields, field_names

    def skip(self, error: TextFormatError) -> None:
        """Count a line that is left out."""
        self.n_skipped += 1
        self.first_error = self.first_error or error
