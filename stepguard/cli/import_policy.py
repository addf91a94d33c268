"""``stepguard import-policy``: a written policy as a draft of rules, and a list of what is none."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from stepguard.cli.text import printable, read_argument, shortened
from stepguard.policy.prose import draft_policy
from stepguard.policy.tool_schemas import declare_tools

_LONGEST: Final = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the written policy, as text or Markdown; - for stdin")
    parser.add_argument(
        "--tools",
        metavar="FILE",
        help="the tools of the agent as JSON, as OpenAI, Anthropic or an MCP server have them: without them no "
        "argument is known",
    )


def main(options: argparse.Namespace) -> int:
    """Print the draft to standard output, and what is no rule of it to standard error.

    Raises ConfigError: a file cannot be read.
    """
    tools = None if options.tools is None else declare_tools(read_argument(options.tools, "tools"))
    name = "policy" if options.file == "-" else " ".join(Path(options.file).stem.split()) or "policy"
    drafted = draft_policy(read_argument(options.file, "file"), tools, name=name)
    sys.stdout.write(drafted.text)
    for note in drafted.notes:
        where = "" if note.line is None else f"line {note.line} "
        words = printable(shortened(note.text, _LONGEST))
        sys.stderr.write(f"{where}{note.kind.replace('_', ' ')}: {words}\n    {printable(note.reason)}\n")
    others = sum(note.line is not None for note in drafted.notes)
    sys.stderr.write(f"{drafted.rules} sentences are rules of the draft, {others} are not: a person has to take each\n")
    if drafted.rules == 0:
        return 3
    return 0 if not drafted.notes else 1
