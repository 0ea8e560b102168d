"""One file per compiled signature, so that processes that compile at once cannot mix them up.

Numba's own store numbers its data files through a shared index. Two processes that compile
different signatures of one function at the same time can take the same number, and from then on
the index leads to the machine code of the other signature: a fit for one loss runs another's code.
Here a file's name follows from what it holds, and the whole key is inside, to be compared.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import pickle
import tempfile
from typing import Any

import numba
from numba.core.serialize import dumps


class Store:
    """Compiled code in a folder, by key; a drop-in for the part of Numba's cache that holds files.

    ``load`` returns None for what is absent, damaged or names what this process does not know;
    other errors of the file system are raised as OSError.
    """

    def __init__(self, folder: str, prefix: str) -> None:
        self._folder = pathlib.Path(folder)
        self._prefix = prefix

    def path(self, key: Any) -> pathlib.Path:
        name = hashlib.sha256(repr((numba.__version__, key)).encode()).hexdigest()[:24]
        return self._folder / f"{self._prefix}.{name}.bin"

    def load(self, key: Any) -> Any:
        try:
            stored, data = pickle.loads(self.path(key).read_bytes())
        except FileNotFoundError:
            return None
        except (
            pickle.UnpicklingError,
            EOFError,
            AttributeError,
            ImportError,
            ValueError,
            TypeError,
        ):
            return None
        return pickle.loads(data) if stored == key else None

    def save(self, key: Any, data: Any) -> None:
        """Write under a temporary name first: no process ever sees half a file."""
        handle, temporary = tempfile.mkstemp(dir=self._folder, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(dumps((key, dumps(data))))
            os.replace(temporary, self.path(key))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
