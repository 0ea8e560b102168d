"""Publicly reported faults of other programs: installed, but not found.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import polyfm

PACKAGE = pathlib.Path(polyfm.__file__).parent
PROGRAM = """
import polyfm, sys
assert polyfm.__file__.startswith(sys.argv[1]), polyfm.__file__
model = polyfm.FMRegressor(max_iter=2, rank=1).fit([[0.0, 1.0], [1.0, 0.0]], [1.0, 2.0])
print(model.predict([[0.0, 1.0]]).shape)
"""


@pytest.mark.parametrize("form", ["folder", "zip"])
def test_case_201_the_package_can_be_moved(tmp_path, form):
    """Copied to a folder with a blank in its name, or zipped: it finds all of its parts."""
    place = tmp_path / "site packages"
    shutil.copytree(PACKAGE, place / "polyfm", ignore=shutil.ignore_patterns("__pycache__"))
    if form == "zip":
        place = pathlib.Path(shutil.make_archive(str(tmp_path / "all"), "zip", place))
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(place)],
        env={**os.environ, "PYTHONPATH": str(place), "NUMBA_DISABLE_JIT": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr[-2000:]
    assert found.stdout == "(1,)\n"
