from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from commands import N, Result, Run

from polyfm.cli import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*argv: object) -> Result:
        capsys.readouterr()
        code = main([str(word) for word in argv])
        return Result(code, *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small files of every format: whether a film is liked, and its rating."""
    folder = tmp_path_factory.mktemp("files")
    random = np.random.default_rng(0)
    user, film = random.integers(0, 12, N), random.integers(0, 9, N)
    seconds = random.integers(0, 10**6, N)
    liked = (user + film) % 2 == 0
    rating = 3.0 + liked + 0.1 * random.normal(size=N)
    lines = [
        f"{u},film {f},{t},{'yes' if good else 'no'},{r:.3f}"
        for u, f, t, good, r in zip(user, film, seconds, liked, rating, strict=True)
    ]
    header = "user,film,seconds,liked,rating"
    (folder / "all.csv").write_text("\n".join([header, *lines]) + "\n")
    (folder / "test.csv").write_text("\n".join([header, *lines[:50]]) + "\n")
    svm = [
        f"{2 * good - 1} {u + 1}:1 {f + 13}:1" for u, f, good in zip(user, film, liked, strict=True)
    ]
    (folder / "all.svm").write_text("\n".join(svm) + "\n")
    ffm = [f"{r:.3f} 0:{u}:1 1:{f + 12}:1" for u, f, r in zip(user, film, rating, strict=True)]
    (folder / "all.ffm").write_text("\n".join(ffm) + "\n")
    return folder


@pytest.fixture(scope="session")
def liked(folder: Path) -> Path:
    """A model of labels on a table."""
    path = folder / "liked.polyfm"
    code = main(
        ["train", str(folder / "all.csv"), "--target", "liked", "--model", str(path), "--quiet"]
    )
    assert code == 0
    return path


@pytest.fixture(scope="session")
def clicks(folder: Path) -> Path:
    """A model of labels on numbered features."""
    path = folder / "clicks.polyfm"
    assert main(["train", str(folder / "all.svm"), "--model", str(path), "--quiet"]) == 0
    return path


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Give bytes to standard input."""

    def give(content: bytes) -> None:
        buffer = io.BufferedReader(io.BytesIO(content))  # type: ignore[arg-type]
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(buffer))

    return give


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(tmp_path)
    yield
    os.chdir(before)
