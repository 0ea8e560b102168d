"""Where data sets live, and how they get there.

A set is looked for in the folder that ``POLYFM_DATA`` names, then in the cache; if its owner
offers a direct download it is fetched into the cache, otherwise an error says what to do.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.error import URLError
from urllib.request import urlopen

__all__ = ["DatasetNotFoundError", "Download", "Source", "cache_folder", "find"]

_CHUNK = 1 << 16
_TIMEOUT = 60.0  # seconds without a byte


class DatasetNotFoundError(FileNotFoundError):
    """A data set is neither here nor to be had; the message says what to do."""


@dataclass(frozen=True)
class Download:
    """A file on its owner's page.

    Attributes
    ----------
    url : str
        Where it is.
    digest : str
        ``algorithm:hex``, checked after the download; empty if its owner publishes none.
    saved_as : str
        File name; empty takes the one at the end of the address.
    """

    url: str
    digest: str = ""
    saved_as: str = ""

    @property
    def name(self) -> str:
        """File name on this side."""
        return self.saved_as or PurePosixPath(self.url).name


@dataclass(frozen=True)
class Source:
    """A data set: its folder, its files and where they come from.

    Attributes
    ----------
    folder : str
        Name of its folder in a data home.
    files : tuple of tuple of str
        The files needed, each with its alternative names, the preferred one first.
    page : str
        Address for people.
    downloads : tuple of Download
        Archives (or single files) that hold all the files; empty if there is no direct download.
    """

    folder: str
    files: tuple[tuple[str, ...], ...]
    page: str
    downloads: tuple[Download, ...] = ()

    def inside(self, folder: Path) -> dict[str, Path] | None:
        """The files by preferred name, or None if one is not in the folder."""
        found = {}
        for names in self.files:
            path = next((folder / name for name in names if (folder / name).is_file()), None)
            if path is None:
                return None
            found[names[0]] = path
        return found


def cache_folder() -> Path:
    """Folder of downloaded data sets.

    Returns
    -------
    Path
        ``$POLYFM_CACHE/datasets``, or ``polyfm/datasets`` in the platform's cache folder.
    """
    if "POLYFM_CACHE" in os.environ:
        return Path(os.environ["POLYFM_CACHE"]) / "datasets"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return base / "polyfm" / "datasets"


def find(source: Source, *, download: bool = True) -> dict[str, Path]:
    """Files of a data set, downloaded if need be.

    Parameters
    ----------
    source : Source
        The data set.
    download : bool, default=True
        Whether the network may be used.

    Returns
    -------
    dict of str to Path
        The files by their preferred name.

    Raises
    ------
    DatasetNotFoundError
        If the files are not here and cannot be fetched.
    """
    for home in _homes():
        if found := source.inside(home / source.folder):
            return found
    if not (download and source.downloads):
        raise DatasetNotFoundError(_advice(source, "not found"))
    folder = cache_folder() / source.folder
    try:
        _fetch(source, folder)
    except (URLError, TimeoutError, ConnectionError) as error:
        raise DatasetNotFoundError(_advice(source, f"download failed ({error})")) from None
    found = source.inside(folder)
    if found is None:
        raise DatasetNotFoundError(_advice(source, "the download lacks files"))
    return found


def _homes() -> Iterator[Path]:
    if os.environ.get("POLYFM_DATA"):
        yield Path(os.environ["POLYFM_DATA"])
    yield cache_folder()


def _advice(source: Source, problem: str) -> str:
    names = ", ".join(names[0] for names in source.files)
    return (
        f"{source.folder}: {problem}; get {names} from {source.page} and put them into "
        f"{cache_folder() / source.folder}, or into a folder {source.folder} of the folder that "
        "the environment variable POLYFM_DATA names"
    )


def _fetch(source: Source, folder: Path) -> None:
    """Download everything next to ``folder``, and move it there when it is complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    wanted = {name for names in source.files for name in names}
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".part-") as part:
        for item in source.downloads:
            archive = Path(part) / item.name
            _download(item, archive)
            _unpack(archive, wanted)
        folder.mkdir(exist_ok=True)
        for path in Path(part).iterdir():
            if path.name in wanted:
                path.replace(folder / path.name)


def _download(item: Download, target: Path) -> None:
    with urlopen(item.url, timeout=_TIMEOUT) as answer, target.open("wb") as out:
        size = int(answer.headers.get("Content-Length") or 0)
        done = 0
        while chunk := answer.read(_CHUNK):
            out.write(chunk)
            _progress(item.name, done, done + len(chunk), size)
            done += len(chunk)
    print(file=sys.stderr)
    if size and done < size:
        raise ConnectionError(f"{item.url} broke off after {done} of {size} bytes")
    _verify(item, target)


def _progress(name: str, before: int, done: int, size: int) -> None:
    """Redraw the bar whenever a whole per cent (or megabyte) is full."""
    step = max(size // 100, 1) if size else 1 << 20
    if before // step == done // step and done != size:
        return
    filled = 30 * done // size if size else 0
    share = f"[{'#' * filled:.<30}] {done / size:4.0%} " if size else ""
    print(f"\r{name} {share}{done / 1e6:.1f} MB", end="", file=sys.stderr, flush=True)


def _verify(item: Download, path: Path) -> None:
    if not item.digest:
        return
    algorithm, expected = item.digest.split(":")
    with path.open("rb") as stream:
        # A checksum against broken downloads, not against attackers.
        digest = hashlib.file_digest(stream, lambda: hashlib.new(algorithm, usedforsecurity=False))
    if digest.hexdigest() != expected:
        raise DatasetNotFoundError(
            f"{item.url}: {algorithm} is {digest.hexdigest()}, expected {expected}; the download "
            "is damaged or the file has changed: try again, or fetch it by hand"
        )


def _unpack(archive: Path, wanted: set[str]) -> None:
    """Write the wanted members beside the archive, whatever folder they have inside it."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            for member in zipped.namelist():
                name = PurePosixPath(member).name
                if name in wanted:
                    _copy(zipped.open(member), archive.with_name(name))
    elif tarfile.is_tarfile(archive):
        with tarfile.open(archive) as tar:
            for entry in tar:
                name = PurePosixPath(entry.name).name
                if name in wanted and (stream := tar.extractfile(entry)):
                    _copy(stream, archive.with_name(name))


def _copy(stream: IO[bytes], path: Path) -> None:
    with stream, path.open("wb") as out:
        shutil.copyfileobj(stream, out)
