"""``stepguard import``: a text of a procedure in the language, with a note on every line that is not certain."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from stepguard.cli.text import printable, read_argument, shortened
from stepguard.procedure.importing import import_procedure

_LONGEST: Final = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the text: a numbered list, a checklist, Markdown; - for stdin")


def main(options: argparse.Namespace) -> int:
    """Print the procedure to standard output, and the notes to standard error.

    Raises ConfigError: the file cannot be read.
    """
    imported_procedure = import_procedure(read_argument(options.file, "file"))
    if imported_procedure.procedure is not None:
        sys.stdout.write(str(imported_procedure.procedure))
    for note in imported_procedure.notes:
        line = printable(shortened(note.text, _LONGEST))
        sys.stderr.write(f"line {note.line} {note.kind.replace('_', ' ')}: {line}\n    {printable(note.message)}\n")
    if imported_procedure.procedure is None:
        return 3
    return 0 if imported_procedure.complete else 1
