"""The command line: ``polyfm COMMAND ...``."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

__all__ = ["main"]

COMMANDS = {
    "demo": "show in under a minute what the package does, on data that it brings along",
    "train": "train a model on files or a dataset",
    "convert": "write files into a dataset, which is read without parsing",
    "describe": "say what is in a file, and what looks like a mistake",
    "online": "learn a stream of rows, and judge the model as it goes by",
    "predict": "predict the rows of files or a dataset, as they are read",
    "evaluate": "measure how well a model predicts files or a dataset",
    "inspect": "say what a model has learnt",
    "reproduce": "run an experiment on real data and print its table",
}
"""Each is the module of its name in this package, with ``configure(parser)`` and ``run(args)``."""

_BAD_INPUT, _INTERRUPTED, _BROKEN_PIPE = 2, 130, 141


class Parser(argparse.ArgumentParser):
    """A parser whose errors take one line."""

    def error(self, message: str) -> NoReturn:
        """Write what is wrong and where to read on; exit with code 2."""
        self.exit(_BAD_INPUT, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process if None.

    Returns
    -------
    int
        0; 2 after an error, which took one line on standard error; 130 after Ctrl-C; 141 when the
        reader of the output has gone.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        args = _parser(argv).parse_args(argv)
    except SystemExit as stop:  # after --help, or after an error that has been told
        return int(stop.code or 0)
    with warnings.catch_warnings():
        if not args.debug:
            warnings.showwarning = _show_warning
        return _run(args)


def _parser(argv: list[str]) -> Parser:
    """Make the parser; only the module of the command at hand is imported."""
    from polyfm import __version__

    parser = Parser(prog="polyfm", description="Learn feature interactions from sparse data.")
    parser.add_argument("--version", action="version", version=f"polyfm {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    asked = next((word for word in argv if not word.startswith("-")), None)
    for name, line in COMMANDS.items():
        own = commands.add_parser(
            name, help=line, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if name == asked:
            _module(name).configure(own)
        own.add_argument("--quiet", action="store_true", help="write nothing but results")
        own.add_argument("--debug", action="store_true", help="show where an error comes from")
    return parser


def _module(command: str) -> Any:
    return importlib.import_module(f"polyfm.cli.{command}")


def _run(args: argparse.Namespace) -> int:
    try:
        _module(args.command).run(args)
        sys.stdout.flush()
        return 0
    except KeyboardInterrupt as stop:
        if args.debug:
            raise
        return _tell(args, f"interrupted{f': {stop}' if str(stop) else ''}", _INTERRUPTED)
    except BrokenPipeError:
        # What is still in the buffer must not raise again when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except (
        ValueError, OSError, ImportError, ArithmeticError, TypeError, MemoryError,
    ) as error:  # fmt: skip
        if args.debug:
            raise
        return _tell(args, f"error: {_words(error)}", _BAD_INPUT)
    except Exception as error:
        if args.debug:
            raise
        kind = type(error).__name__
        return _tell(args, f"unexpected {kind}: {_words(error)}; --debug shows more", _BAD_INPUT)


def _words(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


def _tell(args: argparse.Namespace, message: str, code: int) -> int:
    if code == _INTERRUPTED and sys.stderr.isatty():
        print(file=sys.stderr)  # after ^C and what is left of a progress bar
    print(f"polyfm {args.command}: {message}", file=sys.stderr)
    return code


def _show_warning(
    message: Any, category: Any, filename: Any, lineno: Any, file: Any = None, line: Any = None
) -> None:
    print(f"polyfm: warning: {' '.join(str(message).split())}", file=sys.stderr)
