"""The worked examples of CONTRIBUTING.md run as they stand: outside the package and inside it."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from blocks import ROOT, python_blocks

import polyfm
from polyfm._jit.cache import cache_folder

BLOCKS = python_blocks(ROOT / "CONTRIBUTING.md")
NEW_FILES = {b.file: b.code for b in BLOCKS if b.file and not b.file.endswith("__init__.py")}
EXPORTS = {b.file: b.code for b in BLOCKS if b.file.endswith("__init__.py")}
USES = [b for b in BLOCKS if not b.file]
BESIDE = [b for b in USES if "once it is exported there" in b.code]
BY_NAME = [b for b in USES if b not in BESIDE]
PACKAGES = ("losses", "kernels", "updates")


def run_in_process(code, folder, path, cache):
    """Run a script of ``folder`` with ``path`` searched first."""
    script = folder / "script.py"
    script.write_text(code, encoding="utf-8")
    # Ours comes second: a copy of the package goes first, and we may be no installed package.
    searched = os.pathsep.join([str(path), str(pathlib.Path(polyfm.__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": searched, "POLYFM_JIT_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        env=environment, cwd=folder, capture_output=True, text=True, timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def write_pieces(folder):
    for file, code in NEW_FILES.items():
        (folder / pathlib.Path(file).name).write_text(code, encoding="utf-8")


def package_with_pieces(folder):
    """Copy the package to ``folder`` and add what CONTRIBUTING says to add."""
    source = pathlib.Path(polyfm.__file__).parent
    root = folder / "src" / "polyfm"
    shutil.copytree(source, root, ignore=shutil.ignore_patterns("__pycache__", "_files"))
    for file, code in NEW_FILES.items():
        assert not (folder / file).exists()
        (folder / file).write_text(code, encoding="utf-8")
    for file, line in EXPORTS.items():
        add_export(folder / file, line)
    return root.parent


def add_export(path, line):
    text = path.read_text(encoding="utf-8")
    name = line.split()[-1]
    changed = text.replace("\n__all__ = [", f"{line}\n__all__ = [{name!r}, ", 1)
    assert changed != text
    path.write_text(changed, encoding="utf-8")


def test_there_is_an_example_of_each_kind():
    for package in PACKAGES:
        assert sum(file.startswith(f"src/polyfm/{package}/") for file in NEW_FILES) == 1
        (line,) = EXPORTS[f"src/polyfm/{package}/__init__.py"].splitlines()
        assert re.fullmatch(rf"from polyfm\.{package}\.\w+ import \w+", line)
    assert len(BESIDE) == len(PACKAGES)
    assert len(BY_NAME) == 1


@pytest.mark.parametrize("block", BESIDE, ids=PACKAGES)
def test_a_piece_beside_a_script(block, tmp_path):
    write_pieces(tmp_path)
    # Kept between runs, but apart from the machine code of polyfm alone.
    run_in_process(block.code, tmp_path, tmp_path, cache_folder() / "contributing")


def test_pieces_in_the_package_are_known_by_name(tmp_path):
    path = package_with_pieces(tmp_path)
    said_where = f"{BY_NAME[0].code}\nimport polyfm\nprint(polyfm.__file__)\n"
    shown = run_in_process(said_where, tmp_path, path, tmp_path / "cache")
    assert pathlib.Path(shown.strip()).is_relative_to(path)


def test_pieces_of_a_script_leave_the_code_of_other_processes_alone(tmp_path):
    """Types of a script cannot be unpickled elsewhere; they must not be in a shared index."""
    cache, elsewhere = tmp_path / "cache", tmp_path / "elsewhere"
    elsewhere.mkdir()
    write_pieces(tmp_path)
    plain = """
        import numpy as np
        from polyfm._jit import compile_count
        from polyfm.losses import Huber
        from polyfm.losses.evaluate import mean_loss
        {}
        ones = np.ones(3)
        assert mean_loss({}, 2 * ones, ones, ones) > 0
        print(compile_count())
    """.replace("\n        ", "\n")
    without = plain.format("", "Huber()")
    with_piece = plain.format("from log_cosh import LogCosh", "LogCosh()")
    assert int(run_in_process(without, elsewhere, elsewhere, cache)) > 0
    assert int(run_in_process(with_piece, tmp_path, tmp_path, cache)) > 0
    assert int(run_in_process(without, elsewhere, elsewhere, cache)) == 0
    assert int(run_in_process(with_piece, tmp_path, tmp_path, cache)) == 0
