"""``stepguard audit``: what went wrong in a transcript of an unguarded run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Final

from stepguard.cli.arguments import load_file, read_inputs
from stepguard.cli.text import printable, shortened
from stepguard.errors import ConfigError
from stepguard.procedure import Procedure
from stepguard.transcripts import Audit, Finding, StepAudit, audit
from stepguard.values import show_value

__all__ = ["add_arguments", "main"]

_RIGHT: Final = 0
_NOT_JUDGED: Final = 1
_WRONG: Final = 3
_LONGEST: Final = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``stepguard audit``."""
    parser.add_argument("file", metavar="FILE", help="the procedure, as text, YAML or JSON")
    parser.add_argument("transcript", metavar="TRANSCRIPT", help="what the model wrote: a file, or - for stdin")
    parser.add_argument(
        "--input", metavar="NAME=VALUE", action="append", default=[], help="an input of the procedure; repeat for each"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")


def main(options: argparse.Namespace) -> int:
    """Audit a transcript and print what was found.

    Raises:
        StepguardError: nothing was audited, because of the files or the inputs.
    """
    procedure = load_file(options.file)
    inputs = read_inputs(options.input, procedure)
    found = audit(procedure, inputs, _transcript(options.transcript))
    if options.json:
        sys.stdout.write(found.to_json() + "\n")
    else:
        _print(found, procedure)
    if found.wrong:
        return _WRONG
    return _RIGHT if found.ok else _NOT_JUDGED


def _transcript(path: str) -> str:
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror or error}; TRANSCRIPT is the path of a text, or - for stdin",
            option="transcript",
        ) from error
    return data.decode("utf-8-sig", errors="replace")


def _print(found: Audit, procedure: Procedure) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, markup=False, emoji=False, highlight=False)
    table = Table(box=SIMPLE_HEAD, title=Text(_shown(procedure.name)), title_justify="left", pad_edge=False)
    for column in ("step", "line", "claimed", "right", "verdict"):
        table.add_column(column, overflow="fold", justify="right" if column in ("line", "claimed", "right") else "left")
    colours = {"right": "green", "not_judged": "yellow"}
    for step in found.steps:
        line = "" if step.place is None else str(step.place.line)
        verdict = Text(_verdict(step), style=colours.get(step.verdict, "red"))
        table.add_row(
            Text(_shown(step.step)), line, Text(_shown(step.claimed or "")), Text(_shown(step.expected or "")), verdict
        )
    console.print(table)
    for finding in found.findings:
        console.print(Text(_finding(finding)), soft_wrap=True)
    console.print(Text(_summary(found)), soft_wrap=True)


def _verdict(step: StepAudit) -> str:
    said = step.verdict.replace("_", " ")
    if step.verdict == "not_judged" and step.reason:
        return f"{said}: {_shown(step.reason)}"
    return said if step.kind in (None, "missing_step") else f"{said}: {step.kind}"


def _finding(finding: Finding) -> str:
    where = "" if finding.place is None else f"line {finding.place.line}: "
    step = "" if finding.step is None else f" at {_shown(finding.step)}"
    return f"{where}{finding.kind}{step}: {_shown(finding.reason)}"


def _summary(found: Audit) -> str:
    counts: dict[str, Any] = {}
    for step in found.steps:
        counts[step.verdict] = counts.get(step.verdict, 0) + 1
    steps = ", ".join(f"{counts[verdict]} {verdict.replace('_', ' ')}" for verdict in counts)
    answer = "none marked"
    if found.answer is not None:
        judged = {True: "right", False: "wrong", None: "not judged"}[found.answer_right_lenient]
        value = found.answer.value
        answer = f"{_shown(found.answer.text if value is None else show_value(value))}, {judged}"
    return f"{len(found.steps)} steps: {steps}; answer: {answer}"


def _shown(text: str) -> str:
    return shortened(printable(text), _LONGEST)
