"""Reading text line by line, slowly: what the compiled readers have to agree with."""

import numpy as np

from polyfm.data.lines import Demands, TextFormatError, read_line


def slow_rows(text, read, comments=True):
    """Rows (label, weight, fields, ids, values) and line numbers, and the lines refused."""
    rows, lines, refused = [], [], []
    for number, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not (line.partition(b"#")[0] if comments else line).strip(b" \t\n\r\f\v"):
            continue
        try:
            rows.append(read(number, line))
            lines.append(number)
        except TextFormatError as error:
            refused.append((number, str(error)))
    return rows, lines, refused


def text_reader(parts, *, labelled=True, first=0, n_features=None, dtype=np.float64):
    """A function that reads a line of svmlight (2 parts) or libffm (3 parts)."""
    demands = Demands(labelled, first, n_features, np.dtype(dtype))
    return lambda number, line: read_line("<BytesIO>", number, line, parts, demands)


def as_dictionaries(rows, first=0):
    """The entries of each row by column, repeated ones summed."""
    result = []
    for row in rows:
        entries = {}
        for index, value in zip(row.ids, row.values, strict=True):
            entries[index - first] = entries.get(index - first, 0.0) + value
        result.append(entries)
    return result


def rows_of(X):
    """The same of a CSR matrix, whose rows must be in canonical order."""
    result = []
    for start, stop in zip(X.indptr, X.indptr[1:], strict=False):
        ids = X.indices[start:stop].tolist()
        assert ids == sorted(set(ids))
        result.append(dict(zip(ids, X.data[start:stop].tolist(), strict=True)))
    return result


def is_plain(data):
    """Say whether bytes do not begin as compressed files do."""
    return not data.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd"))
