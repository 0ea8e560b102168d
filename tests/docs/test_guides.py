"""What README and the guide show is so: code runs, commands parse, links lead somewhere."""

import doctest
import importlib
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import pytest
from blocks import ROOT, blocks, python_blocks

import polyfm
from polyfm import cli
from polyfm.estimators._validation import ROWS_FOR_EARLY_STOPPING

GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = [ROOT / "README.md", *GUIDE]
PACKAGE = pathlib.Path(polyfm.__file__).parent
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")


def name_of(path):
    return str(path.relative_to(ROOT))


def commands(page):
    """The polyfm command lines in the shell blocks of a page."""
    code = "\n".join(block.code for block in blocks(page, "sh"))
    parts = re.split(r"&&|\||\n", re.sub(r"#.*", "", code))
    return [shlex.split(part)[1:] for part in parts if part.strip().startswith("polyfm ")]


def modules_with_examples():
    """Names of the modules of the package whose source holds a doctest."""
    paths = (path for path in PACKAGE.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))
    return sorted(
        ".".join(["polyfm", *path.relative_to(PACKAGE).with_suffix("").parts]) for path in paths
    )


@pytest.fixture(autouse=True)
def own_temporary_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_the_guide_is_there():
    assert len(GUIDE) >= 8


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_of_a_page(page):
    found, namespace = python_blocks(page), {"__name__": "__page__"}
    assert found
    for block in found:
        block.run(page, namespace)


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs/guide/command_line.md"])
def test_commands_of_a_page(page):
    found = commands(page)
    assert len(found) >= 4
    for argv in found:
        cli._parser(argv).parse_args(argv)


@pytest.mark.parametrize("page", [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *PAGES])
def test_links_inside_the_project(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{name_of(page)} links to {target}"


@pytest.mark.parametrize("name", ["first_steps", "learning"])
def test_rows_for_early_stopping(name):
    text = (ROOT / "docs" / "guide" / f"{name}.md").read_text(encoding="utf-8")
    assert f"{ROWS_FOR_EARLY_STOPPING:,} rows" in text


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_examples_run(path, run_python):
    shown = run_python(path.read_text(encoding="utf-8"), MPLBACKEND="Agg")
    assert shown


@pytest.mark.parametrize("module", modules_with_examples())
def test_examples_in_docstrings(module):
    failed, tried = doctest.testmod(importlib.import_module(module))
    assert tried > 0
    assert failed == 0


def test_the_documentation_builds(tmp_path):
    for name in ("sphinx", "myst_parser", "numpydoc", "sphinx_gallery", "pydata_sphinx_theme"):
        pytest.importorskip(name, reason=f"{name} is part of the extra [docs]")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-q", "-d", "doctrees", ROOT / "docs", "html"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
