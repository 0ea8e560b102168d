"""How the documentation is built: ``sphinx-build -W docs docs/_build``."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import polyfm  # noqa: E402

project = "polyfm"
author = "The polyfm developers"
copyright = "2026, The polyfm developers"
release = version = polyfm.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "auto_examples/*.ipynb", "auto_examples/*.py", "auto_examples/*.zip"]
suppress_warnings = ["config.cache"]  # the sorter of the gallery is no plain value

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # numpydoc says the types in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": r"\.py$",
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1e9,
}

html_theme = "pydata_sphinx_theme"
html_title = "polyfm"
html_show_sourcelink = False
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}


def setup(app):
    app.connect("autodoc-process-docstring", escape_shapes, priority=900)


def escape_shapes(app, what, name, obj, options, lines):
    """Keep ``(n_rows, n_features_out_)`` from being read as a link."""
    lines[:] = [
        re.sub(r"_(?=[,)])", r"\\_", line) if "of shape (" in line else line for line in lines
    ]
