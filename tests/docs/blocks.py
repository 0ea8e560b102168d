"""Code blocks of Markdown pages."""

import pathlib
import re
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
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


def python_blocks(page):
    text = page.read_text(encoding="utf-8")
    blocks = []
    for found in _BLOCK.finditer(text):
        if found["language"] == "python":
            named = _FILE.search(text[: found.start()])
            line = text.count("\n", 0, found.start("code")) + 1
            blocks.append(Block(found["code"], line, named[1] if named else ""))
    return blocks
