"""Surveys against plain counts of the whole; likely mistakes are told, and only those."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from polyfm.data import Batch, survey
from polyfm.data.mistakes import likely_mistakes, likely_mistakes_of_columns
from polyfm.data.survey import Survey


def surveyed(X, y=None, fields=None, size=37):
    found = Survey(fields)
    X = sp.csr_matrix(X)
    for start in range(0, X.shape[0], size):
        part = slice(start, start + size)
        found.add(Batch(X[part], None if y is None else y[part]))
    return found


def one_hot(n_rows, sizes, seed=0):
    """Rows of one column per field."""
    random = np.random.default_rng(seed)
    starts = np.cumsum([0, *sizes[:-1]])
    columns = np.stack([random.integers(n, size=n_rows) for n in sizes], axis=1) + starts
    ends = np.arange(n_rows + 1) * len(sizes)
    X = sp.csr_matrix((np.ones(columns.size, np.float32), columns.ravel(), ends))
    return X, np.repeat(np.arange(len(sizes)), sizes)[: X.shape[1]]


def test_counts_are_those_of_the_whole():
    X = sp.random(500, 40, 0.05, "csr", random_state=0)
    X.data = np.round(X.data * 9 - 4)
    X.eliminate_zeros()
    y = np.arange(500) % 3
    fields = np.arange(40) % 4
    fields[7] = -1
    found = surveyed(X, y, fields)
    counts = np.bincount(X.indices, minlength=40)
    lengths = np.diff(X.indptr)
    assert (found.n_rows, found.nnz) == (500, X.nnz)
    assert found.n_empty == np.count_nonzero(lengths == 0) > 0
    assert (found.shortest, found.longest) == (0, lengths.max())
    assert (found.least, found.most) == (X.data.min(), X.data.max())
    assert found.all_whole
    assert not found.all_ones
    assert found.used_columns.tolist() == np.flatnonzero(counts).tolist()
    assert found.frequencies().tolist() == sorted(counts[counts > 0], reverse=True)
    assert found.labels.counts == {0: 167, 1: 167, 2: 166}
    told = found.fields()
    for f in range(4):
        own = X[:, fields == f]
        assert told.columns[f] == len(np.unique(own.indices))
        assert told.rows[f] == np.count_nonzero(np.diff(own.indptr))
        assert told.entries[f] == own.nnz
    dense = X.toarray()
    assert found.n_duplicates == 500 - len(np.unique(dense, axis=0))
    assert found.sample.toarray().tolist() == dense.tolist()


def test_fields_may_become_known_as_rows_come():
    X, fields = one_hot(100, [4, 6])
    found = Survey()
    found.add(Batch(X[:50, :5], None))
    found.tell_fields(fields[:5])
    found.add(Batch(X[:50, :5], None))
    found.tell_fields(fields)
    found.add(Batch(X[50:], None))
    told = found.fields()
    assert told.columns.tolist() == [4, 6]
    assert told.rows[0] == 100


def test_far_columns_are_counted_together():
    far = [0, 5, 2**40, 2**40 + 1, 2**50]
    X = sp.csr_matrix((np.ones(5), np.array(far), np.arange(6)), shape=(5, 2**50 + 1))
    found = surveyed(X)
    assert found.is_folded
    assert found.n_used == 5
    assert found.largest_column == 2**50
    assert found.used_columns.tolist() == [0, 5]


def test_quantiles_of_more_targets_than_are_kept(monkeypatch):
    monkeypatch.setattr(survey, "_QUANTILES_OF", 2000)
    labels = survey.LabelSurvey()
    y = np.random.default_rng(0).permutation(20_000).astype(float)
    for start in range(0, len(y), 777):
        labels.add(y[start : start + 777])
    assert labels.counts is None
    found = labels.quantiles([0.1, 0.5, 0.9])
    np.testing.assert_allclose(found, [2000, 10_000, 18_000], atol=1000)
    # The first and the last targets have the same chance: a stream in order must not mislead.
    labels = survey.LabelSurvey()
    for start in range(0, 20_000, 777):
        labels.add(np.arange(start, min(start + 777, 20_000), dtype=float))
    np.testing.assert_allclose(labels.quantiles([0.1, 0.5, 0.9]), [2000, 10_000, 18_000], atol=1000)


def test_exact_quantiles_of_few():
    labels = survey.LabelSurvey()
    labels.add(np.arange(101.0))
    assert labels.quantiles([0, 0.25, 1]).tolist() == [0, 25, 100]


def test_nothing_is_said_of_good_rows():
    X, fields = one_hot(2000, [900, 50, 700])
    assert likely_mistakes(surveyed(X, np.arange(2000) % 2, fields)) == []
    random = np.random.default_rng(0)
    assert likely_mistakes(surveyed(random.normal(size=(300, 5)), random.normal(size=300))) == []


def test_no_rows_are_a_mistake():
    [sentence] = likely_mistakes(Survey())
    assert sentence.startswith("There are no rows")


def codes():
    return np.random.default_rng(0).integers(1, 9, (400, 3)).astype(float)


def numbers(column):
    X = np.random.default_rng(0).normal(size=(400, 3))
    X[:, 1] = column
    return X


def with_a_far_column():
    X, _ = one_hot(1000, [300, 50])
    X.resize(1000, 3_000_000)
    X.indices[0] = 2_999_999
    return X


BINARY = np.arange(400) % 2


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (numbers(0.5), np.ones(400), "All labels are 1.0"),
        (numbers(0.5), BINARY + 1, "labels are 1 and 2"),
        (numbers(0.5), np.where(np.arange(400) == 7, 9, BINARY), "Labels that occur once: 9"),
        (with_a_far_column(), None, "1 of 340 column numbers are far beyond the rest"),
        (codes(), BINARY, "columns 0, 1, 2 are small whole numbers"),
        (numbers(1.5e9 + np.arange(400)), BINARY, "columns 1 look like times"),
        (numbers(1.5e12 + 1000 * np.arange(400)), BINARY, "columns 1 look like times"),
        (numbers(123_456 + 7 * np.arange(400)), BINARY, "columns 1 look like identifiers"),
        (numbers(1e7 + np.arange(400) / 8), BINARY, "Columns 1 have values up to"),
        (np.eye(400)[:, :300], BINARY, "25.0% of the rows have no entry"),
        (np.zeros((400, 3)), BINARY, "No row has an entry"),
        (
            np.tile(np.random.default_rng(0).normal(size=(40, 3)), (10, 1)),
            BINARY,
            "90% of the rows",
        ),
    ],
)
def test_what_looks_wrong_is_told(X, y, words):
    told = likely_mistakes(surveyed(X, y))
    assert any(words in sentence for sentence in told), told


def test_columns_that_would_need_hashing():
    used = np.random.default_rng(0).integers(0, 2**44, 1000)
    X = sp.csr_matrix((np.ones(1000), used, np.arange(1001)), shape=(1000, 2**44))
    assert any("hash or renumber" in sentence for sentence in likely_mistakes(surveyed(X)))


def a_column(name="user", columns=12, rows=1000):
    return {"field": name, "columns": columns, "rows": rows}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ([a_column(), a_column("id", columns=990)], "value of its own in id"),
        ([a_column(), a_column("id", columns=1)], "same value in all rows: id"),
        ([a_column(), a_column("id", 0, 0)], "without any value: id"),
        ([a_column("39"), a_column(" Male")], "called 39: is there no line of names?"),
    ],
)
def test_what_looks_wrong_in_a_table(columns, words):
    (told,) = likely_mistakes_of_columns(columns, 1000)
    assert words in told


def test_nothing_is_said_of_a_good_table():
    # A flag that is there or not has one value, and says something.
    good = [a_column(), a_column("flag", columns=1, rows=300)]
    assert likely_mistakes_of_columns(good, 1000) == []
