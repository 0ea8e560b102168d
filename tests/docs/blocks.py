"""Code blocks of Markdown pages."""

import pathlib
import re
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(?P<language>[\w-]+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`(src/polyfm/[\w/]+\.py)`[^`\n]*(?:`__all__`)?:\n\n$")


class Block(NamedTuple):
    code: str
    line: int
    """Of the page, of the first line of code; from 1."""
    file: str
    """Which file of the package the text before the block says that it belongs to, or ''."""

    def run(self, page, namespace):
        """Run the code such that errors point into the page."""
        padding = "\n" * (self.line - 1)
        exec(compile(padding + self.code, str(page), "exec"), namespace)


def blocks(page, language):
    """Return the blocks of a page that are in a language, in their order."""
    text = page.read_text(encoding="utf-8")
    found = [match for match in _BLOCK.finditer(text) if match["language"] == language]
    return [_block(text, match) for match in found]


def python_blocks(page):
    return blocks(page, "python")


def _block(text, match):
    named = _FILE.search(text[: match.start()])
    line = text.count("\n", 0, match.start("code")) + 1
    return Block(match["code"], line, named[1] if named else "")
