"""The file itself: tensors and short texts in the safetensors format, written all or nothing.

The format is eight bytes of header length, a JSON header that gives type, shape and place of each
tensor, and the numbers (https://github.com/huggingface/safetensors). Writing it here instead of by
the library keeps one tensor in memory at a time, lets operating system errors through as such and
leaves the access rights to the user's umask.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

TENSOR_TYPES = {
    "float32": "F32",
    "float64": "F64",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "bool": "BOOL",
}
_ALIGNMENT = 8


class ModelFileError(ValueError):
    """A file that is no model file, is damaged, or was written by a newer polyfm."""


def write_container(
    path: Path, tensors: Mapping[str, NDArray[Any]], texts: Mapping[str, str]
) -> None:
    """Write a safetensors file, so that ``path`` names a whole file or what it named before."""
    with _replacing(path) as stream:
        header = _header(tensors, texts)
        stream.write(len(header).to_bytes(8, "little"))
        stream.write(header)
        for array in tensors.values():
            stream.write(_little_endian(array).reshape(-1).view(np.uint8).data)


def read_container(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Read all tensors and texts of a safetensors file.

    Raises
    ------
    ModelFileError
        If the file has another format or is cut off.
    OSError
        If it cannot be opened.
    """
    with path.open("rb"):  # the library's errors do not name the file
        pass
    try:
        with safe_open(path, framework="numpy") as file:
            texts = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ModelFileError(
            f"{path} is not a polyfm model file, or it is cut off or damaged ({error})."
        ) from None
    return tensors, texts


def _header(tensors: Mapping[str, NDArray[Any]], texts: Mapping[str, str]) -> bytes:
    header: dict[str, Any] = {"__metadata__": dict(texts)}
    place = 0
    for name, array in tensors.items():
        header[name] = {
            "dtype": TENSOR_TYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [place, place + array.nbytes],
        }
        place += array.nbytes
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % _ALIGNMENT)


def _little_endian(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file beside ``path`` that takes its place when all went well."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    stream = draft.open("xb")
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
