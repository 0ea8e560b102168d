"""Processes that compile different signatures of one function at once, into one folder."""

import os
import subprocess
import sys
import textwrap

import pytest

from polyfm._jit.store import Store

MODULE = """
from typing import NamedTuple
from polyfm._jit import jit

@jit
def apply(first, x):
    return first[0] * x
"""
PROGRAM = """
    import pathlib, sys, time
    from typing import NamedTuple
    sys.path.insert(0, sys.argv[1])
    import shared_function
    from polyfm._jit import compile_count
    chosen = [int(k) for k in sys.argv[2].split(",")]
    go = pathlib.Path(sys.argv[1], "go")
    pathlib.Path(sys.argv[1], f"ready{chosen[0]}").touch()
    while not go.exists():
        time.sleep(0.001)
    for k in chosen:  # a signature of its own for each length
        print(shared_function.apply((k + 0.5,) * k, 2.0))
    print(compile_count())
"""


def start(folder, chosen):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), str(folder), ",".join(map(str, chosen))],
        env={**os.environ, "POLYFM_JIT_CACHE": str(folder / "jit"), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_every_signature_finds_its_own_code(tmp_path):
    (tmp_path / "shared_function.py").write_text(MODULE)
    lengths = range(1, 7)
    racing = [start(tmp_path, [k]) for k in lengths]
    while not all((tmp_path / f"ready{k}").exists() for k in lengths):
        assert all(process.poll() is None for process in racing)
    (tmp_path / "go").touch()
    for k, process in zip(lengths, racing, strict=True):
        assert process.communicate(timeout=120)[0].split() == [str(2 * k + 1.0), "1"]
    later, _ = start(tmp_path, lengths).communicate(timeout=120)
    assert later.split() == [*(str(2 * k + 1.0) for k in lengths), "0"]


def test_interleaved_writers_keep_apart(tmp_path):
    """Two processes that both start from an empty folder: each key leads to its own data."""
    one, two = (Store(str(tmp_path), "f") for _ in range(2))
    assert one.load("a") is None
    assert two.load("b") is None
    two.save("b", "code of b")
    one.save("a", "code of a")
    for store in (one, two):
        assert store.load("a") == "code of a"
        assert store.load("b") == "code of b"


@pytest.mark.parametrize("damage", [b"", b"not a pickle", None])
def test_a_damaged_file_is_compiled_anew(tmp_path, damage):
    store = Store(str(tmp_path), "f")
    store.save("a", "code of a")
    whole = store.path("a").read_bytes()
    store.path("a").write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    assert store.load("a") is None
    store.save("a", "code of a")
    assert store.load("a") == "code of a"


def test_a_file_of_another_key_is_not_taken(tmp_path):
    store = Store(str(tmp_path), "f")
    store.save("a", "code of a")
    store.path("a").rename(store.path("b"))
    assert store.load("b") is None


def test_a_failed_write_leaves_nothing(tmp_path):
    store = Store(str(tmp_path), "f")
    with pytest.raises(TypeError):
        store.save("a", (k for k in "not to be pickled"))
    assert list(tmp_path.iterdir()) == []
