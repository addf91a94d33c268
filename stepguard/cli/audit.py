"""``stepguard audit``: what went wrong in a transcript of an unguarded run."""

from __future__ import annotations

import argparse
import codecs
import sys
from collections import Counter
from pathlib import Path
from typing import Final

from stepguard.auditing import Audit, Finding, StepAudit, audit
from stepguard.cli.arguments import add_inputs, load_file, read_inputs
from stepguard.cli.text import printable, shortened
from stepguard.errors import ConfigError
from stepguard.language.values import show_value
from stepguard.procedure.procedure import Procedure

_RIGHT: Final = 0
_NOT_JUDGED: Final = 1
_WRONG: Final = 3
_LONGEST: Final = 200
_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # it begins as the next one
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF32_BE, "utf-32"),
)
_MOST_UNREADABLE: Final = 0.1
"""The share of characters that may be unreadable in a text, in the wrong encoding, say."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the procedure, as text, YAML or JSON")
    parser.add_argument("transcript", metavar="TRANSCRIPT", help="what the model wrote: a file, or - for stdin")
    add_inputs(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")


def main(options: argparse.Namespace) -> int:
    """Audit a transcript and print what was found.

    Raises StepguardError: nothing was audited, because of the files or the inputs.
    """
    procedure = load_file(options.file)
    inputs = read_inputs(options.input, procedure, options.inputs)
    audited = audit(procedure, inputs, _transcript(options.transcript))
    if options.json:
        sys.stdout.write(audited.to_json() + "\n")
    else:
        _print(audited, procedure)
    if audited.wrong:
        return _WRONG
    return _RIGHT if audited.ok else _NOT_JUDGED


def _transcript(path: str) -> str:
    try:
        if path == "-" and sys.stdin is None:
            raise ConfigError("cannot read -: stdin is closed; TRANSCRIPT may be a file instead", option="transcript")
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror or error}; TRANSCRIPT is the path of a text, or - for stdin",
            option="transcript",
        ) from error
    return _text(data, path)


def _text(data: bytes, path: str) -> str:
    """A transcript as text: UTF-8 but for a few bytes, or in the encoding that its first bytes name."""
    marked = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    try:
        text = data.decode(marked or "utf-8-sig", errors="strict" if marked else "replace")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text or text.count("\ufffd") > len(text) * _MOST_UNREADABLE:
        raise ConfigError(f"{path} is no text that can be read: save it as UTF-8", option="transcript")
    return text


def _print(audited: Audit, procedure: Procedure) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from stepguard.cli.console import ResultConsole

    console = ResultConsole()
    table = Table(box=SIMPLE_HEAD, title=Text(_cell(procedure.name)), title_justify="left", pad_edge=False)
    for column in ("step", "line", "claimed", "right", "verdict"):
        table.add_column(column, overflow="fold", justify="right" if column in ("line", "claimed", "right") else "left")
    colours = {"right": "green", "not_judged": "yellow"}
    for step in audited.steps:
        line = "" if step.place is None else str(step.place.line)
        verdict = Text(_verdict(step), style=colours.get(step.verdict, "red"))
        table.add_row(
            Text(_cell(step.step)), line, Text(_cell(step.claimed or "")), Text(_cell(step.expected or "")), verdict
        )
    console.print(table)
    for finding in audited.findings:
        console.print(Text(_finding(finding)), soft_wrap=True)
    console.print(Text(_summary(audited)), soft_wrap=True)


def _verdict(step: StepAudit) -> str:
    verdict = step.verdict.replace("_", " ")
    if step.verdict == "not_judged" and step.reason:
        return f"{verdict}: {_cell(step.reason)}"
    return verdict if step.kind in (None, "missing_step") else f"{verdict}: {step.kind}"


def _finding(finding: Finding) -> str:
    where = "" if finding.place is None else f"line {finding.place.line}: "
    step = "" if finding.step is None else f" at {_cell(finding.step)}"
    return f"{where}{finding.kind}{step}: {_cell(finding.reason)}"


def _summary(audited: Audit) -> str:
    counts = Counter(step.verdict for step in audited.steps)
    steps = ", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in counts.items())
    answer = "none marked"
    if audited.answer is not None:
        judged = {True: "right", False: "wrong", None: "not judged"}[audited.answer_right_lenient]
        value = audited.answer.value
        answer = f"{_cell(audited.answer.text if value is None else show_value(value))}, {judged}"
    total = "1 step" if len(audited.steps) == 1 else f"{len(audited.steps)} steps"
    return f"{total}: {steps}; answer: {answer}"


def _cell(text: str) -> str:
    return shortened(printable(text), _LONGEST)
