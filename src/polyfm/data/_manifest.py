"""The manifest of a dataset: what its folder holds, as JSON with a checksum of its own."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polyfm.data._sections import DatasetError, finish

NAME = "manifest.json"
COLUMNS = "columns.pfm"
FORMAT, VERSION = "polyfm dataset", 1
_SHARD, _ATTACHMENT = "shard-", "attached-"


def shard_name(number: int) -> str:
    """Return the name of a shard's file."""
    return f"{_SHARD}{number:05d}.pfm"


def attachment_name(name: str) -> str:
    """Return the name of the file of an attachment."""
    return f"{_ATTACHMENT}{name}"


def is_own(name: str) -> bool:
    """Whether a file of a dataset may be called so."""
    return name in (NAME, COLUMNS) or name.startswith((_SHARD, _ATTACHMENT))


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the manifest, and so declare that all other files of the folder are whole.

    Raises
    ------
    TypeError, ValueError
        For notes that JSON cannot hold.
    """
    full = {"format": FORMAT, "version": VERSION, **content}
    full["checksum"] = _checksum(full)
    draft = folder / f"{NAME}.tmp"
    stream = draft.open("wb")
    stream.write(json.dumps(full, indent=1, allow_nan=False).encode())
    finish(stream)
    draft.replace(folder / NAME)


def _checksum(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"{zlib.crc32(text.encode()):08x}"


def fingerprint(content: Mapping[str, Any]) -> str:
    """Return what tells the rows of a dataset from others, by the checksums of its shards."""
    return _checksum({name: content[name] for name in ("rows", "features", "labels", "shards")})


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a folder.

    Raises
    ------
    DatasetError
        If there is none that this version can read.
    """
    path = folder / NAME
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise _missing(folder) from None
    except NotADirectoryError:
        raise DatasetError(
            folder, "is a file; a dataset is a folder, which polyfm convert writes."
        ) from None
    except (ValueError, RecursionError):
        raise DatasetError(path, "is damaged (no JSON); write the dataset again.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DatasetError(path, "is no manifest of a polyfm dataset.")
    if not isinstance(content.get("version"), int) or content["version"] > VERSION:
        raise DatasetError(
            path,
            f"format version {content.get('version')} is newer than this polyfm, which reads "
            f"{VERSION}: pip install -U polyfm",
        )
    checksum = content.pop("checksum", None)
    if checksum != _checksum(content):
        raise DatasetError(path, "is damaged (its checksum differs); write the dataset again.")
    return content


def _missing(folder: Path) -> DatasetError:
    former = folder.with_name(f".{folder.name}.former")
    if not folder.exists() and former.exists():
        # A system that cannot exchange folders was stopped between two renames.
        return DatasetError(
            folder, f"writing was stopped at the end; rename {former} to have the former dataset."
        )
    if not folder.exists():
        return DatasetError(folder, "there is no such dataset; polyfm convert writes one.")
    return DatasetError(folder, f"has no {NAME}, so it is no dataset; polyfm convert writes one.")
