"""Opening the files of a dataset, and whether they belong together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from polyfm.data import _manifest
from polyfm.data._sections import DatasetError, SectionFile
from polyfm.data._shards import Shard

_ATTEMPTS = 3


class Files(NamedTuple):
    """The files of a dataset."""

    content: dict[str, Any]
    """What the manifest says."""
    shards: tuple[Shard, ...]
    columns: SectionFile | None
    """What is known of the columns."""


def open_files(folder: Path) -> Files:
    """Open all files; once more if the dataset is replaced meanwhile.

    Raises
    ------
    DatasetError
        If they are no dataset.
    """
    for _ in range(_ATTEMPTS):
        content = _manifest.read_manifest(folder)
        try:
            files = _mapped(folder, content)
            _check_together(folder, files)
            return files
        except (DatasetError, FileNotFoundError) as error:
            problem = error
            if _manifest.read_manifest(folder) == content:
                break
    if isinstance(problem, FileNotFoundError):
        raise DatasetError(problem.filename, "is gone; write the dataset again.") from None
    raise problem


def _mapped(folder: Path, content: dict[str, Any]) -> Files:
    try:
        entries, columns = content["shards"], content["columns"]
        labels = content["labels"]
        of_all = content["dtype"], content["targets"], None if labels is None else len(labels)
        shards = tuple(Shard(file_of(folder, entry["file"]), *of_all) for entry in entries)
        for shard, entry in zip(shards, entries, strict=True):
            _check_same(shard.file, entry)
        if columns is None:
            return Files(content, shards, None)
        file = SectionFile(file_of(folder, columns["file"]))
        _check_same(file, columns)
        return Files(content, shards, file)
    except (KeyError, TypeError) as error:
        raise DatasetError(folder / _manifest.NAME, f"lacks {error}.") from error


def file_of(folder: Path, name: str) -> Path:
    """Return the path of a file that the manifest names; it must be one of the folder's own."""
    if not _manifest.is_own(name) or Path(name).name != name:
        raise DatasetError(folder / _manifest.NAME, f"names a foreign file {name!r}.")
    return folder / name


def _check_same(file: SectionFile, entry: Mapping[str, Any]) -> None:
    if f"{file.checksum:08x}" != entry["checksum"] or file.size != entry["size"]:
        raise DatasetError(
            file.path, "is not the file that the manifest describes; write the dataset again."
        )


def _check_together(folder: Path, files: Files) -> None:
    content = files.content
    sums = sum(shard.n_rows for shard in files.shards), sum(shard.nnz for shard in files.shards)
    if sums != (content["rows"], content["nnz"]):
        raise DatasetError(
            folder,
            f"the shards have {sums[0]} rows and {sums[1]} entries, the manifest says "
            f"{content['rows']} and {content['nnz']}; write the dataset again.",
        )
    for shard in files.shards:
        if shard.largest >= content["features"]:
            problem = f"has a column {shard.largest}, but the dataset {content['features']}"
            raise DatasetError(shard.path, f"{problem} columns; write the dataset again.")
        if (shard.labels is None) != (content["targets"] is None):
            raise DatasetError(
                shard.path, "differs from the manifest on whether there are targets."
            )
