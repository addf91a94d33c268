"""The command line: ``stepguard run``, ``show``, ``audit``, ``import``, ``bench``, ``serve``, ``mcp`` and a few more.

Results go to stdout, everything else to stderr. Exit codes:

===  ==============================================================================
0    verified, or as strong as ``--at-least`` asks; audit: nothing is wrong; serve and mcp: ended from outside
1    completed, but weaker than that (checked or unverified); audit and verify: something could not be judged
2    nothing was run: a wrong command line, file, input or option, or no such model
3    abstained: a step could not be verified; audit and verify: something is wrong
4    exhausted: a budget stopped the run; bench: --max-cost did
5    failed: a backend, tool or procedure error stopped the run
70   a fault of stepguard itself; the traceback is on stderr
74   the result could not be written
130  interrupted
141  the reader of stdout has gone away
143  terminated: as 130, by SIGTERM
===  ==============================================================================

Nothing heavy is imported until a command needs it.
"""

from __future__ import annotations

import argparse
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from stepguard.cli.streams import Ending, drop, ended_by_signals, usable_streams
from stepguard.errors import StepguardError

__all__ = ["main"]

# 2 is argparse's, 70 and 74 are of sysexits.h; the others are what a shell says of SIGINT, SIGPIPE and SIGTERM.
_USAGE = 2
_FAULT = 70
_UNWRITTEN = 74
_INTERRUPTED = 130
_PIPE = 141
_TERMINATED = 143
_ENDED_BY_THEMSELVES = ("serve", "mcp", "ui", "worker")


@dataclass(frozen=True, slots=True)
class _Command:
    """A command: what the list of commands and its own help say of it, and where it lives.

    Attributes:
        module: it has `main(options)`, and what is named by `add`.
        about: a line of the list.
        description: what the help of the command begins with; by default the same.
        epilog: what the help ends with.
        add: the function of the module that adds the arguments to a parser.
    """

    module: str
    about: str
    description: str = "{about}"
    epilog: str | None = None
    add: str = "add_arguments"


_COMMANDS: Final[Mapping[str, _Command]] = {
    "run": _Command(
        "run",
        "run a procedure from a file",
        "Run a procedure from a file and print every step, the outcome and what it cost.",
        "exit codes: 0 verified (or as strong as --at-least asks), 1 completed but weaker, 2 nothing was run, "
        "3 abstained at a step, 4 a budget was spent, 5 failed",
    ),
    "show": _Command(
        "show",
        "draw a procedure, and a run on it, in the terminal or as a page",
        "Draw a procedure: its steps, branches, loops, calls and tables, who performs each step and what checks it; "
        "with --run the way that a run of it took.",
    ),
    "audit": _Command(
        "audit",
        "say what went wrong in a transcript of an unguarded run",
        "Judge every step of a transcript against the procedure, and say what else went wrong in it.",
        "exit codes: 0 nothing is wrong, 1 something could not be judged, 2 nothing was audited, 3 something is wrong",
    ),
    "replay-policy": _Command(
        "replay_policy",
        "say which recorded calls of an agent a policy would have refused",
        "Judge every call of recorded conversations by what was known when it was made, and say which rule would have "
        "refused it, and where.",
        "exit codes: 0 all would have been let through, 1 some would have waited for somebody, 2 nothing was replayed, "
        "3 some would have been refused",
    ),
    "import": _Command(
        "importing",
        "write a procedure as people write them in the language of procedures",
        "Print the procedure that a text comes to, and a note on every line that is not certain.",
        "exit codes: 0 every line was understood, 1 some were not, or are put to the model in words, 2 the file cannot "
        "be read, 3 nothing came of it",
    ),
    "import-policy": _Command(
        "import_policy",
        "draft the rules of a policy from how people wrote it",
        "Print a draft of rules: the sentences that can be read in one way only. All others are listed, and nothing is "
        "a rule until a person has taken it.",
        "exit codes: 0 every sentence is a rule of the draft, 1 some are not, or something was assumed, 2 a file "
        "cannot be read, 3 none is a rule",
    ),
    "bench": _Command(
        "bench.bench", "measure models with and without the guard, on bundled tasks or your own procedure"
    ),
    "serve": _Command(
        "serve",
        "an OpenAI-compatible endpoint in front of another, which runs procedures through the guard",
        "Serve {about}; all other requests are passed on (extra: serve).",
        "STEPGUARD_SERVE_KEY: a key that callers must show; STEPGUARD_UPSTREAM_KEY: the key that the upstream is asked "
        "with then. Without them the key of each caller goes to the upstream.",
    ),
    "ui": _Command(
        "ui",
        "the runs of a ledger as pages in a browser, which change nothing",
        "Serve {about} (extra: serve).",
        "STEPGUARD_UI_TOKEN: what a browser must show as its password; without it only this machine is served.",
    ),
    "mcp": _Command(
        "mcp", "an MCP server: agents verify steps, run procedures and audit transcripts", "Serve {about} (extra: mcp)."
    ),
    "mcp-gate": _Command(
        "mcp_gate",
        "a policy before an MCP server: calls of its tools are judged, everything else passes",
        "Put {about}.",
    ),
    "runs": _Command(
        "ledger",
        "list the runs of a ledger: status, progress, spend, where each stands and who is waited for",
        "{About}.",
        add="add_runs",
    ),
    "answer": _Command(
        "ledger",
        "answer the question for which a run waits, or settle a call of a tool that was cut off",
        "{About}.",
        add="add_answer",
    ),
    "verify": _Command(
        "ledger",
        "check a ledger without a model: that nothing was altered, and that every run is right",
        "{About}.",
        add="add_verify",
    ),
    "erase": _Command(
        "ledger", "take what runs hold out of a ledger; that they were stays", "{About}.", add="add_erase"
    ),
    "worker": _Command(
        "worker", "carry out the runs of a queue, on as many machines as you like (extra: dbos)", "{About}."
    ),
    "enqueue": _Command("worker", "have workers run a procedure", "{About}.", add="add_enqueue"),
    "cancel": _Command(
        "worker", "take a run out of its queue, or have its worker end it", "{About}.", add="add_cancel"
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; it never raises for what a user can do wrong.

    Args:
        argv: the arguments without the program's name; `sys.argv` by default.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    served = bool(arguments) and arguments[0] in _ENDED_BY_THEMSELVES
    with usable_streams(), nullcontext(Ending()) if served else ended_by_signals() as ending:
        if sys.stdout is None:  # before anything is paid for
            return _complain("error: stdout is closed, so the result could not be written: open it", _USAGE)
        try:
            code = _dispatch(arguments)
            sys.stdout.flush()
            return code
        except SystemExit as stop:  # argparse, which has said why
            return stop.code if isinstance(stop.code, int) else _USAGE
        except KeyboardInterrupt as stop:
            return _complain(str(stop) or "interrupted", _TERMINATED if ending.terminated else _INTERRUPTED)
        except BrokenPipeError:
            drop(sys.stdout)
            return _PIPE
        except StepguardError as error:
            return _complain(f"error: {error}", _USAGE)
        except OSError as error:
            drop(sys.stdout)
            what = "the result" if error.filename is None else error.filename
            return _complain(f"error: cannot write {what}: {error.strerror or error}", _UNWRITTEN)
        except Exception:  # noqa: BLE001 - left alone it would exit with 1, which says "unverified"
            traceback.print_exc()
            return _FAULT


def _dispatch(arguments: list[str]) -> int:
    parser, chosen = _parser(arguments[0] if arguments else "")
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        from difflib import get_close_matches

        known = re.findall(r"(?<![\w-])--?[a-z][\w-]*", chosen.format_usage())
        meant = get_close_matches(unknown[0].partition("=")[0], known, n=1)
        hint = f"; did you mean {meant[0]}?" if meant else ""
        chosen.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    if options.command is None:
        parser.print_help()
        return 0
    from stepguard.cli.arguments import declared_limits

    with declared_limits(options):
        code: int = _module_of(options.command).main(options)
    return code


def _module_of(command: str) -> Any:
    return import_module(f"stepguard.cli.{_COMMANDS[command].module}")


def _parser(chosen: str) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """The parser, and that of the command, whose arguments are only registered where they are wanted."""
    parser = argparse.ArgumentParser(
        prog="stepguard",
        description="Run procedures on language models: every step verified, or the exact step named that was not.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    own = parser
    for name, command in _COMMANDS.items():
        about = command.about
        description = command.description.format(about=about, About=f"{about[0].upper()}{about[1:]}")
        taking = commands.add_parser(
            name, help=about, description=description, epilog=command.epilog, allow_abbrev=False
        )
        if name == chosen:
            own = taking
            getattr(_module_of(name), command.add)(taking)
    return parser, own


class _Version(argparse.Action):
    """Like argparse's own, but the version is looked up only when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        sys.stdout.write(f"stepguard {version('stepguard')}\n")
        parser.exit()


def _complain(message: str, code: int) -> int:
    # Plain text on purpose: what failed may be the pretty printing itself.
    sys.stderr.write(f"stepguard: {message}\n")
    return code
