"""Batches of tables to batches of matrices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from polyfm.data._table_encoder import no_rows
from polyfm.data.batches import Batch

__all__ = ["encode"]


def encode(batches: Iterable[Batch], encoder: Any) -> Iterator[Batch]:
    """Encode batches of tables one by one.

    Parameters
    ----------
    batches : iterable of Batch
        Their X are tables: frames, or lists of dictionaries.
    encoder : VocabularyEncoder, HashingEncoder or OneHotFieldEncoder
        One that is not fitted learns from the first batch, and a growing vocabulary learns from
        each before it encodes it: values that a batch brings have columns in it already.

    Yields
    ------
    Batch
        X is a CSR matrix. With a growing vocabulary it is as wide as the vocabulary was then. A
        batch without rows, before there is one to learn from, has no columns, unless the encoder
        knows how many there will be.

    Examples
    --------
    >>> from polyfm.data import Batch, VocabularyEncoder, encode
    >>> tables = [Batch([{"user": "a"}, {"user": "b"}], None), Batch([{"user": "c"}], None)]
    >>> [batch.X.toarray().tolist() for batch in encode(tables, VocabularyEncoder())]
    [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0, 1.0]]]
    """
    for batch in batches:
        if not hasattr(encoder, "field_names_") and batch.n_rows == 0:
            yield batch._replace(X=no_rows(encoder))
            continue
        if not hasattr(encoder, "field_names_"):
            encoder.fit(batch.X)
        elif getattr(encoder, "growing", False):
            encoder.partial_fit(batch.X)
        yield batch._replace(X=encoder.transform(batch.X))
