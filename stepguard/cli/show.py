"""``stepguard show``: a procedure, and a run on it, as text or as a page; also of a ledger."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stepguard.cli.arguments import load_file
from stepguard.cli.text import read_text
from stepguard.errors import ConfigError
from stepguard.results import Attempt, Result
from stepguard.show.page import draw_html
from stepguard.show.text import GLYPHS, TextLine, call_lines, draw_lines

if TYPE_CHECKING:
    from stepguard.ledger import RunReading

_LEAST: Final = 40  # narrower, nothing of a step would be readable
_MOST: Final = 120  # lines that are longer are hard to follow
_ELSEWHERE: Final = 80  # a pipe or a file has no width
_STYLES: Final = {
    "head": "bold",
    "control": "bold",
    "good": "green",
    "weak": "yellow",
    "bad": "bold red",
    "quiet": "dim",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", help="the procedure, as text, YAML or JSON, - for stdin; with --ledger the run_id")
    add("--ledger", metavar="LEDGER", help="draw a run of this ledger, such as runs.db")
    add("--procedure", metavar="FILE", help="the procedure of that run, where the ledger does not hold it as text")
    add(
        "--run", metavar="RESULT", help="a run of it to draw on it: what `stepguard run --json` printed, or - for stdin"
    )
    add(
        "--calls",
        action="store_true",
        help="behind it every model call of that run, with its prompt and its reply where the ledger keeps them",
    )
    add("--html", metavar="OUT", help="write one self-contained page instead of printing text")
    add("--width", metavar="N", type=int, help="characters of a line (default: those of the terminal)")
    add("--ascii", action="store_true", help="draw with ASCII alone (default where no more can be shown)")


def main(options: argparse.Namespace) -> int:
    """Draw a procedure.

    Raises:
        StepguardError: nothing was drawn, because of the files or the options.
        OSError: the page cannot be written.
    """
    run: Result | Mapping[str, Any] | None
    standing = None
    if options.calls and (options.ledger is None or options.html is not None):
        raise ConfigError("--calls are printed as text, of a run with --ledger (pages: `stepguard ui`)", option="calls")
    calls: tuple[Attempt, ...] = ()
    if options.ledger is not None:
        reading = _read_kept(options)
        if reading.procedure is None:
            if options.html is not None:
                raise ConfigError("the calls of an agent are printed as text: leave out --html", option="html")
            from stepguard.ledger.conversations import conversation_lines

            _print(conversation_lines(reading))
            return 0
        procedure, run, standing = reading.procedure, reading.result, reading.standing
        calls = reading.result.attempts if options.calls and reading.result is not None else ()
    elif options.procedure is not None:
        raise ConfigError("--procedure is that of a run in a ledger: add --ledger", option="procedure")
    else:
        procedure = load_file(options.file)
        run = None if options.run is None else _read_json(options.run)
    if options.html is not None:
        if options.width is not None or options.ascii:
            raise ConfigError("--width and --ascii are about text: leave them out beside --html", option="html")
        Path(options.html).write_text(draw_html(procedure, run, standing=standing), encoding="utf-8")
        return 0
    width = options.width
    if width is None:
        width = max(_LEAST, min(shutil.get_terminal_size().columns, _MOST)) if sys.stdout.isatty() else _ELSEWHERE
    lines = draw_lines(procedure, run, standing=standing, width=width, ascii_only=options.ascii or not _drawable())
    _print(chain(lines, call_lines(calls)))
    return 0


def _read_kept(options: argparse.Namespace) -> RunReading:
    from stepguard.ledger import Ledger, read_run

    if options.run is not None:
        raise ConfigError("with --ledger the run is named in the place of the procedure", option="run")
    given = [] if options.procedure is None else [load_file(options.procedure)]
    with Ledger(options.ledger, read_only=True) as ledger:
        return read_run(ledger, options.file, procedures=given)


def _read_json(path: str) -> Mapping[str, Any]:
    try:
        text = read_text(path)
    except OSError as error:
        raise ConfigError(f"--run: cannot read {path}: {error.strerror or error}", option="run") from None
    except ValueError:  # no UTF-8, or no path
        raise ConfigError(f"--run: {path} is not UTF-8 text", option="run") from None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"--run: {path} is no JSON ({error}); `stepguard run {{FILE}} --json` prints it", option="run"
        ) from None
    if not isinstance(data, dict):
        raise ConfigError(f"--run: {path} is no result: it is no JSON object", option="run")
    return data


def _drawable() -> bool:
    try:
        GLYPHS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _print(lines: Iterable[TextLine]) -> None:
    from rich.text import Text

    from stepguard.cli.console import ResultConsole

    if not sys.stdout.isatty():
        for line in lines:
            sys.stdout.write(f"{line.text}\n")
        return
    console = ResultConsole()
    for line in lines:
        console.print(Text(line.text, style=_STYLES.get(line.kind, "")), soft_wrap=True)
