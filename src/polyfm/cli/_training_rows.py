"""Rows to train on: in memory, in a dataset, or learnt as they are read."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polyfm.cli._encoding import HASH_BITS, TableEncoding, check_encoding, numeric, sets
from polyfm.cli._files import TABLES, on_disk, whole_numbers
from polyfm.cli._models import encoder_in, kept_notes, say
from polyfm.cli._progress import Progress
from polyfm.cli._reading import VW_BITS, is_dataset, one_format, reading, size_of, unchanged
from polyfm.cli._tables import in_flags, separator_of, types_of
from polyfm.cli._targets import Targets
from polyfm.cli.convert import convert_rows
from polyfm.data import (
    Dataset,
    HashingEncoder,
    OneHotFieldEncoder,
    TextFormatError,
    VocabularyEncoder,
    load_csv,
    load_libffm,
    load_parquet,
    load_svmlight,
    load_vw,
)
from polyfm.data._table_encoder import TableEncoder
from polyfm.data._writing import SHARD_ROWS
from polyfm.data.frames import read_table
from polyfm.data.lines import starts_at_zero
from polyfm.data.source import COMPRESSED, ENDINGS, Batches, Source, is_pipe
from polyfm.estimators._out_of_core import learns_in_one_pass

MOST_IN_MEMORY = 256_000_000
"""Bytes of text; files beyond are learnt in parts."""
_PACKED = (*COMPRESSED, *ENDINGS["parquet"])
_PACKED_TIMES = 4
_ROWS_AT_ONCE = 1 << 20


class Rows(NamedTuple):
    """Rows to learn from, and how they were made."""

    X: Any
    """A matrix, or where rows come from."""
    target: NDArray[Any] | None
    """Of a matrix; a source has its own."""
    weight: NDArray[np.float64] | None
    targets: Targets
    """What they are; of a stream, the first ones."""
    n_rows: int | None
    n_features: int
    encoder: TableEncoder | None
    notes: dict[str, Any]
    fields: NDArray[np.int64] | None = None
    """The field of each feature, where the file tells it."""
    field_names: list[str] | None = None


def takes_sources(kinds: Mapping[str, type]) -> bool:
    """Whether estimators learn from datasets and streams."""
    estimator: Any = kinds["regression"]
    return "checkpoint" in inspect.signature(estimator.fit).parameters


@contextlib.contextmanager
def training_rows(
    args: argparse.Namespace, kinds: Mapping[str, type], progress: Progress
) -> Iterator[Rows]:
    """Provide the rows of ``args.files`` in the way that suits them and the estimator.

    Raises
    ------
    ValueError
        For files that cannot be learnt from.
    """
    names = args.files
    if len(names) == 1 and is_dataset(names[0]):
        check_encoding(args, "dataset")
        yield _of_dataset(args, Dataset(names[0]), kinds)
        return
    layout = one_format(names, args.format)
    check_encoding(args, layout)
    if layout in TABLES and args.target is None:
        raise ValueError(f"{names[0]} is a table: name the column to predict by --target.")
    if not any(map(is_pipe, names)):
        with _of_files(args, names, layout, kinds, progress) as rows:
            yield rows
        return
    if len(names) > 1:
        raise ValueError("a pipe is read alone, without other files.")
    if _asks_for_one_pass(args) and _may_stream(args, kinds, _source(args, names, layout)):
        yield _of_stream(args, names, layout, progress)
        return
    with on_disk(names[0]) as path, _of_files(args, [path], layout, kinds, progress) as rows:
        yield rows


@contextlib.contextmanager
def _of_files(
    args: argparse.Namespace,
    names: Sequence[str],
    layout: str,
    kinds: Mapping[str, type],
    progress: Progress,
) -> Iterator[Rows]:
    progress.total = size_of(names)
    if not takes_sources(kinds) or not _has_to_be_in_parts(args, names, layout):
        yield _in_memory(args, names, layout)
        return
    if _may_stream(args, kinds, _source(args, names, layout)):
        yield _of_stream(args, names, layout, progress)
        return
    with tempfile.TemporaryDirectory(prefix="polyfm-") as folder:
        path = Path(folder) / "rows"
        _convert(args, names, path, progress)
        yield _of_dataset(args, Dataset(path), kinds)


def _has_to_be_in_parts(args: argparse.Namespace, names: Sequence[str], layout: str) -> bool:
    if args.checkpoint is not None or args.max_memory is not None or _asks_for_one_pass(args):
        return True
    if layout in TABLES and (len(names) > 1 or args.on_error == "skip" or types_of(args)):
        return True
    packed = any(name.lower().endswith(_PACKED) for name in names)
    size = size_of(names)
    if size is None:
        return any("://" in name for name in names)
    return size * (_PACKED_TIMES if packed else 1) > MOST_IN_MEMORY


def _asks_for_one_pass(args: argparse.Namespace) -> bool:
    return args.n_features is not None and getattr(args, "max_iter", None) == 1


def _may_stream(args: argparse.Namespace, kinds: Mapping[str, type], source: Source) -> bool:
    """Say whether rows can be learnt as they are read: once, into columns that are known."""
    estimator: Any = kinds["regression"]
    own = inspect.signature(estimator).parameters
    if not takes_sources(kinds) or "max_iter" not in own or args.validation is not None:
        return False
    wanted = {
        name: getattr(args, name, own[name].default if name in own else None)
        for name in ("max_iter", "max_features")
    }
    return learns_in_one_pass(SimpleNamespace(**wanted), source)


class _Told(Source):
    """A source that tells how far it is."""

    told: Progress

    def batches(
        self, skip: int = 0, progress: Callable[[int], None] | None = None
    ) -> Iterator[Any]:
        """Read the rows after the first ``skip``."""
        self.told.restart()
        batches = in_flags(super().batches(skip, progress or self.told.add_bytes))
        for batch in unchanged(self.path, batches):
            yield batch
            self.told.add_rows(batch.n_rows)
        self.told.erase()


def _source(args: argparse.Namespace, names: Sequence[str], layout: str) -> _Told:
    """Make a source; that of a table has no encoder yet."""
    path = names[0] if len(names) == 1 else list(names)
    source = _Told(
        path, layout=layout, n_features=args.n_features, zero_based=_base(args.zero_based),
        target=args.target, on_error=args.on_error, n_bits=args.n_bits or VW_BITS,
        separator=separator_of(args.separator, names[0]), types=types_of(args),
    )  # fmt: skip
    source.told = Progress.silent()
    if layout in TABLES and args.encoder == "hashing":
        source.n_features = 2 ** (args.n_bits or HASH_BITS)
    elif layout in TABLES:
        source.n_features = None
    return source


def _base(zero_based: Any) -> bool | str:
    """Return what a flag says of the first index.

    Raises
    ------
    ValueError
        If it is neither true nor false nor auto.
    """
    known: dict[str, bool | str] = {"true": True, "false": False, "auto": "auto"}
    word = str(zero_based).lower()
    if word not in known:
        raise ValueError(f"zero_based must be true, false or auto, got {zero_based!r}.")
    return known[word]


def _of_stream(
    args: argparse.Namespace, names: Sequence[str], layout: str, progress: Progress
) -> Rows:
    """Look at the first rows, and leave the others to come."""
    source, encoder = _source(args, names, layout), None
    batches: Any = source.batches()
    first = next(batches, None)
    if first is None:
        raise ValueError(f"{source.name} has no rows.")
    if layout in TABLES:
        encoding = TableEncoding(args)
        encoding.learn(first.X)
        encoder = source.encoder = encoding.encoder
        first = first._replace(X=encoder.transform(first.X))
    notes: dict[str, Any] = {"format": layout}
    if layout in TABLES:
        notes["target"] = args.target
    elif layout != "vw":
        notes["zero_based"] = source.zero_based is True
    X: Any = source
    if source.is_repeatable:
        batches.close()
    else:
        # The first rows of a pipe cannot be read again.
        X = Batches(itertools.chain([first], _counted(batches, progress, first.n_rows)))
        X.n_features, X.name, X.reads_ahead = source.n_features, source.name, False
    source.told = progress
    n_features = source.n_features or first.X.shape[1]
    targets = Targets.of([whole_numbers(first.targets)])
    if targets.only_one is not None:
        raise ValueError(
            f"the first {targets.n_rows:,} rows all have the target {targets.only_one}, so that "
            "one pass over the rows in this order learns little: shuffle them, or convert them and "
            "train on the dataset."
        )
    return Rows(X, None, None, targets, None, n_features, encoder, notes)


def _counted(batches: Iterator[Any], progress: Progress, n_rows: int) -> Iterator[Any]:
    progress.add_rows(n_rows)
    for batch in batches:
        yield batch
        progress.add_rows(batch.n_rows)
    progress.erase()


def _convert(
    args: argparse.Namespace, names: Sequence[str], path: Path, progress: Progress
) -> None:
    """Write a temporary dataset."""
    say(args, "the rows are learnt in parts, from a temporary dataset that is written first")
    settings = {
        "files": names, "out": str(path), "rows_per_shard": SHARD_ROWS, "overwrite": False,
        "unlabelled": False, "zero_based": str(_base(args.zero_based)).lower(),
        "encoder": "hashing" if args.encoder == "hashing" else "vocabulary",
    }  # fmt: skip
    options = argparse.Namespace(**{**vars(args), **settings})
    stream = reading(options, names, TableEncoding(options))
    try:
        convert_rows(options, stream, progress)
    finally:
        progress.erase()
    say(args, f"written in {progress.seconds:.1f} s ({progress.rate})")
    progress.restart()


def _of_dataset(args: argparse.Namespace, dataset: Dataset, kinds: Mapping[str, type]) -> Rows:
    if dataset.n_rows == 0 or not dataset.has_targets:
        raise ValueError(f"{dataset.path} has no {'targets' if dataset.n_rows else 'rows'}.")
    if args.n_features not in (None, dataset.n_features):
        raise ValueError(f"--n-features {args.n_features}: there are {dataset.n_features} columns.")
    encoder, notes = encoder_in(dataset), kept_notes(dataset)
    X, target, weight = dataset, None, None
    if not takes_sources(kinds):
        X, target, weight = dataset.rows(0, dataset.n_rows)
    starts = range(0, dataset.n_rows, _ROWS_AT_ONCE)
    ends = (min(start + _ROWS_AT_ONCE, dataset.n_rows) for start in starts)
    parts = (dataset.rows(start, end).targets for start, end in zip(starts, ends, strict=True))
    names = dataset.notes.get("field_names")
    return Rows(
        X, target, weight, Targets.of(parts), dataset.n_rows, dataset.n_features, encoder, notes,
        dataset.fields, names,
    )  # fmt: skip


def _in_memory(args: argparse.Namespace, names: Sequence[str], layout: str) -> Rows:
    read = _table_in_memory if layout in TABLES else _text_in_memory
    rows = read(args, names, layout)
    if rows.n_rows == 0:
        raise ValueError(f"{names[0]} has no rows.")
    return rows


def _table_in_memory(args: argparse.Namespace, names: Sequence[str], layout: str) -> Rows:
    [name] = names
    if layout == "parquet":
        frame, y, _ = load_parquet(name, target=args.target)
    else:
        separator = separator_of(args.separator, name)
        frame, y, _ = load_csv(name, target=args.target, separator=separator)
    target = whole_numbers(y) if y is not None else np.empty(0)
    encoder = _encoder(args, frame)
    X = encoder.fit_transform(frame)
    notes = {"format": layout, "target": args.target}
    return Rows(
        X, target, None, Targets.of([target]), X.shape[0], X.shape[1], encoder, notes,
        encoder.fields_, list(encoder.field_names_),
    )  # fmt: skip


def _encoder(args: argparse.Namespace, rows: Any) -> TableEncoder:
    how = numeric(args.numeric, read_table(rows).columns)
    common: dict[str, Any] = {"numeric": how, "n_bins": args.n_bins, "sets": sets(args.sets)}
    if args.encoder == "hashing":
        if args.min_count != 1:
            raise ValueError(
                "--min-count is for --encoder onehot and vocabulary: a hash needs no list."
            )
        return HashingEncoder(args.n_bits or HASH_BITS, **common)
    kind = VocabularyEncoder if args.encoder == "vocabulary" else OneHotFieldEncoder
    return kind(min_count=args.min_count, **common)


def _text_in_memory(args: argparse.Namespace, names: Sequence[str], layout: str) -> Rows:
    if layout == "vw":
        return _vw_in_memory(args, names)
    base = _base(args.zero_based)
    try:
        X, y, fields = _load(args, names, layout, False if base == "auto" else base)
    except TextFormatError as error:
        if base != "auto" or not starts_at_zero(error):
            raise
        base = True
        X, y, fields = _load(args, names, layout, base)
    target, notes = whole_numbers(y), {"format": layout, "zero_based": base is True}
    n_rows, n_features = X.shape
    return Rows(X, target, None, Targets.of([target]), n_rows, n_features, None, notes, fields)


def _vw_in_memory(args: argparse.Namespace, names: Sequence[str]) -> Rows:
    bits = args.n_bits or VW_BITS
    X, y, weight, fields, spaces = load_vw(list(names), n_bits=bits, on_error=args.on_error)
    target = whole_numbers(np.asarray(y))
    targets, (n_rows, n_features) = Targets.of([target]), X.shape
    notes = {"format": "vw"}
    return Rows(X, target, weight, targets, n_rows, n_features, None, notes, fields, spaces)


def _load(
    args: argparse.Namespace, names: Sequence[str], layout: str, zero_based: bool | str
) -> tuple[Any, Any, Any]:
    """Read svmlight or libffm files as one."""
    options: dict[str, Any] = {
        "zero_based": zero_based, "n_features": args.n_features, "on_error": args.on_error,
    }  # fmt: skip
    if layout == "svmlight":
        parts = [(X, y, None) for X, y in load_svmlight(list(names), **options)]
    else:
        parts = load_libffm(list(names), shared_ids="mark", **options)
    X = parts[0][0] if len(parts) == 1 else sp.vstack([part[0] for part in parts], format="csr")
    return X, np.concatenate([part[1] for part in parts]), parts[0][2]
