"""Training from files: mapped datasets against memory, text as it comes, memory of a big file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import process
from polyfm._jit import jit
from polyfm.data import Dataset, iter_svmlight
from polyfm.data.source import Source

_ENTRIES, _COLUMNS = 39, 1 << 22
_BLOCK_ROWS = 250_000
_ZERO, _SPACE, _COLON, _LINE_END = b"0 :\n"
Lines = list[tuple[str, float, float | None]]

_BIG = """
import sys, time
from process import peak_bytes
from polyfm import FMClassifier
from polyfm.data.source import Source
source = Source(sys.argv[1], n_features=int(sys.argv[2]))
start = time.perf_counter()
FMClassifier(rank=8, max_iter=1, random_state=0).fit(source, max_memory="1.2GB")
seconds = time.perf_counter() - start
print(seconds, peak_bytes() / 1e9)
"""


def measure(rounds: int, quick: bool) -> Lines:
    folder = Path(tempfile.mkdtemp(prefix="polyfm-bench-"))
    try:
        n_rows = 50_000 if quick else 1_000_000
        lines = _mapped(folder, n_rows, rounds)
        block = folder / "block.svm"
        _write(block, 20_000 if quick else _BLOCK_ROWS)
        lines += _text(block, rounds)
        return lines + _big(folder, *((20_000, (1, 2, 3)) if quick else (_BLOCK_ROWS, (1, 10, 30))))
    finally:
        shutil.rmtree(folder)


def _rows(n_rows: int, seed: int = 0) -> tuple[sp.csr_matrix, Any]:
    """Rows as of clicks: an entry in each of 39 ranges of columns, some far more often."""
    random = np.random.default_rng(seed)
    width = _COLUMNS // _ENTRIES
    within = (width * random.random((n_rows, _ENTRIES)) ** 4).astype(np.int32)
    columns = within + width * np.arange(_ENTRIES, dtype=np.int32)
    ends = np.arange(n_rows + 1, dtype=np.int32) * _ENTRIES
    values = np.ones(columns.size, dtype=np.float32)
    X = sp.csr_matrix((values, columns.ravel(), ends), shape=(n_rows, _COLUMNS))
    return X, random.integers(0, 2, n_rows).astype(np.float64)


def _write(path: Path, n_rows: int, seed: int = 1, mode: str = "wb") -> None:
    """Write rows as svmlight text."""
    X, y = _rows(n_rows, seed)
    columns = X.indices.reshape(n_rows, _ENTRIES) + 1
    room = n_rows * (2 + _ENTRIES * (len(f" {_COLUMNS}:1")))
    text = np.empty(room, dtype=np.uint8)
    with path.open(mode) as stream:
        stream.write(text[: _fill(y.astype(np.uint8), columns, text)].data)


@jit
def _fill(labels, columns, text):
    """Write rows of ones as text; return how many bytes they take."""
    n = 0
    for i in range(labels.size):
        text[n] = _ZERO + labels[i]
        n += 1
        for j in columns[i]:
            text[n] = _SPACE
            n_digits = 1
            while j >= 10**n_digits:
                n_digits += 1
            for place in range(n + n_digits, n, -1):
                text[place] = _ZERO + j % 10
                j //= 10
            n += n_digits + 3
            text[n - 2], text[n - 1] = _COLON, _ZERO + 1
        text[n] = _LINE_END
        n += 1
    return n


def _model(**settings: Any) -> Any:
    from polyfm import FMClassifier

    fixed = {"rank": 8, "tol": 0.0, "early_stopping": False, "random_state": 0}
    return FMClassifier(**{**fixed, **settings})


def _best(contestants: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the least wall time of each; they take turns."""
    times = dict.fromkeys(contestants, np.inf)
    for _ in range(rounds):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            times[name] = min(times[name], time.perf_counter() - start)
    return times


def _mapped(folder: Path, n_rows: int, rounds: int) -> Lines:
    X, y = _rows(n_rows)
    dataset = Dataset.write(folder / "rows", [(X, y)])
    few = Dataset.write(folder / "few", [(X[:2000], y[:2000])])
    for n_jobs in (1, 2):
        _model(max_iter=1, n_jobs=n_jobs).fit(few)
        _model(max_iter=1, n_jobs=n_jobs).fit(X[:2000], y[:2000])
    times = _best(
        {
            "memory": lambda: _model(max_iter=3).fit(X, y),
            "mapped": lambda: _model(max_iter=3).fit(dataset),
            "two threads": lambda: _model(max_iter=3, n_jobs=2).fit(dataset),
        },
        rounds,
    )
    return [
        ("fit, mapped dataset / memory", times["mapped"] / times["memory"], -1.15),
        ("fit of a dataset, one thread / two", times["mapped"] / times["two threads"], 1.6),
        ("fit of a dataset, rows/s", 3 * n_rows / times["mapped"], None),
    ]


def _text(block: Path, rounds: int) -> Lines:
    batches = list(iter_svmlight(block, n_features=_COLUMNS))

    def train() -> None:
        _model(max_iter=1).fit(Source(block, n_features=_COLUMNS))

    def parse() -> None:
        for _ in iter_svmlight(block, n_features=_COLUMNS):
            pass

    def learn() -> None:
        model = _model(max_iter=1)
        for batch in batches:
            model.partial_fit(batch.X, batch.y)

    learn()
    times = _best({"train": train, "parse": parse, "learn": learn}, rounds)
    size = block.stat().st_size / 1e6
    return [
        (
            "from text / the longer of parsing and learning",
            times["train"] / max(times["parse"], times["learn"]),
            -1.5,
        ),
        ("from text, MB/s", size / times["train"], None),
        ("parsing alone, MB/s", size / times["parse"], None),
        ("learning alone, MB/s of text", size / times["learn"], None),
    ]


def _big(folder: Path, block_rows: int, sizes: tuple[int, int, int]) -> Lines:
    """Train from a file of more and more blocks, none like another, in processes of their own."""
    path, n_blocks, found = folder / "big.svm", 0, []
    for n_wanted in sizes:
        for block in range(n_blocks, n_wanted):
            _write(path, block_rows, 100 + block, "ab")
        n_blocks = n_wanted
        if not found:
            _train_apart(path)  # has code to compile
        found.append((path.stat().st_size / 1e9, *_train_apart(path)))
    (small, first, _), (middle, second, _), (large, third, memory) = found
    slopes = (second - first) / (middle - small), (third - second) / (large - middle)
    return [
        (f"from text, s of {small:.2f} GB", first, None),
        (f"from text, s of {middle:.2f} GB", second, None),
        (f"from text, s of {large:.2f} GB", third, None),
        (f"resident memory at {large:.2f} GB of text, GB", memory, -1.2),
        (f"time per byte, {large:.2f} GB / {small:.2f} GB", third / large / (first / small), -1.2),
        (
            f"time per further byte, beyond {middle:.2f} GB / beyond {small:.2f} GB",
            slopes[1] / slopes[0],
            -1.2,
        ),
    ]


def _train_apart(path: Path) -> tuple[float, float]:
    """Return the seconds of a training in a process of its own, and its memory in GB."""
    command = [sys.executable, "-c", _BIG, str(path), str(_COLUMNS)]
    folders = [str(Path(process.__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    output = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment
    ).stdout
    seconds, memory = map(float, output.split())
    return seconds, memory
