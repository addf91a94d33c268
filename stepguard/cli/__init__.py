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
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

from stepguard.cli.signals import Ending, ended_by_signals
from stepguard.cli.streams import drop, usable_streams
from stepguard.errors import StepguardError

__all__ = ["main"]

_USAGE = 2
_FAULT = 70
_UNWRITTEN = 74
_INTERRUPTED = 130
_PIPE = 141
_TERMINATED = 143
_ENDED_BY_THEMSELVES = ("serve", "mcp", "ui")
LEDGER_COMMANDS: Final[Mapping[str, str]] = {
    "runs": "list the runs of a ledger: status, progress, spend, where each stands and who is waited for",
    "answer": "answer the question for which a run waits, or settle a call of a tool that was cut off",
    "verify": "check a ledger without a model: that nothing was altered, and that every run is right",
    "erase": "take what runs hold out of a ledger; that they were stays",
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
    parser = _parser(arguments[0] if arguments else "")
    options = parser.parse_args(arguments)
    from stepguard.cli.arguments import declared_limits

    with declared_limits(options):
        return _carry_out(options, parser)


def _carry_out(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    if options.command == "run":
        from stepguard.cli.run import run

        return run(options)
    if options.command == "show":
        from stepguard.cli.show import main as show

        return show(options)
    if options.command == "bench":
        from stepguard.cli.bench.bench import main as bench

        return bench(options)
    if options.command == "audit":
        from stepguard.cli.audit import main as audit

        return audit(options)
    if options.command == "replay-policy":
        from stepguard.cli.replay_policy import main as replay_policy

        return replay_policy(options)
    if options.command == "import":
        from stepguard.cli.importing import main as import_file

        return import_file(options)
    if options.command == "import-policy":
        from stepguard.cli.import_policy import main as import_policy

        return import_policy(options)
    if options.command == "serve":
        from stepguard.cli.serve import main as serve

        return serve(options)
    if options.command == "ui":
        from stepguard.cli.ui import main as show_pages

        return show_pages(options)
    if options.command == "mcp":
        from stepguard.cli.mcp import main as mcp

        return mcp(options)
    if options.command == "mcp-gate":
        from stepguard.cli.mcp_gate import main as mcp_gate

        return mcp_gate(options)
    if options.command in LEDGER_COMMANDS:
        from stepguard.cli.ledger import main as ledger

        return ledger(options)
    parser.print_help()
    return 0


def _parser(command: str) -> argparse.ArgumentParser:
    """The parser; the arguments of all but `run` are only registered where they are wanted."""
    parser = argparse.ArgumentParser(
        prog="stepguard",
        description="Run procedures on language models: every step verified, or the exact step named that was not.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_run(commands, many=command == "run")
    about = "draw a procedure, and a run on it, in the terminal or as a page"
    showing = commands.add_parser(
        "show",
        help=about,
        description="Draw a procedure: its steps, branches, loops, calls and tables, who performs each step and what "
        "checks it; with --run the way that a run of it took.",
        allow_abbrev=False,
    )
    if command == "show":
        from stepguard.cli.show import add_arguments as add_show

        add_show(showing)
    about = "say what went wrong in a transcript of an unguarded run"
    auditing = commands.add_parser(
        "audit",
        help=about,
        description="Judge every step of a transcript against the procedure, and say what else went wrong in it.",
        epilog="exit codes: 0 nothing is wrong, 1 something could not be judged, 2 nothing was audited, 3 something is "
        "wrong",
        allow_abbrev=False,
    )
    if command == "audit":
        from stepguard.cli.audit import add_arguments as add_audit

        add_audit(auditing)
    about = "say which recorded calls of an agent a policy would have refused"
    replaying = commands.add_parser(
        "replay-policy",
        help=about,
        description="Judge every call of recorded conversations by what was known when it was made, and say which rule "
        "would have refused it, and where.",
        epilog="exit codes: 0 all would have been let through, 1 some would have waited for somebody, 2 nothing was "
        "replayed, 3 some would have been refused",
        allow_abbrev=False,
    )
    if command == "replay-policy":
        from stepguard.cli.replay_policy import add_arguments as add_replay

        add_replay(replaying)
    about = "write a procedure as people write them in the language of procedures"
    importing = commands.add_parser(
        "import",
        help=about,
        description="Print the procedure that a text comes to, and a note on every line that is not certain.",
        epilog="exit codes: 0 every line was understood, 1 some were not, or are put to the model in words, 2 the file "
        "cannot be read, 3 nothing came of it",
        allow_abbrev=False,
    )
    if command == "import":
        from stepguard.cli.importing import add_arguments as add_import

        add_import(importing)
    about = "draft the rules of a policy from how people wrote it"
    drafting = commands.add_parser(
        "import-policy",
        help=about,
        description="Print a draft of rules: the sentences that can be read in one way only. All others are listed, "
        "and nothing is a rule until a person has taken it.",
        epilog="exit codes: 0 every sentence is a rule of the draft, 1 some are not, or something was assumed, 2 a "
        "file cannot be read, 3 none is a rule",
        allow_abbrev=False,
    )
    if command == "import-policy":
        from stepguard.cli.import_policy import add_arguments as add_import_policy

        add_import_policy(drafting)
    about = "measure models with and without the guard, on bundled tasks or your own procedure"
    benchmark = commands.add_parser("bench", help=about, description=about, allow_abbrev=False)
    if command == "bench":
        from stepguard.cli.bench.bench import add_arguments

        add_arguments(benchmark)
    about = "an OpenAI-compatible endpoint in front of another, which runs procedures through the guard"
    serving = commands.add_parser(
        "serve",
        help=about,
        description=f"Serve {about}; all other requests are passed on (extra: serve).",
        epilog="STEPGUARD_SERVE_KEY: a key that callers must show; STEPGUARD_UPSTREAM_KEY: the key that the upstream "
        "is asked with then. Without them the key of each caller goes to the upstream.",
        allow_abbrev=False,
    )
    if command == "serve":
        from stepguard.cli.serve import add_arguments as add_serve

        add_serve(serving)
    about = "the runs of a ledger as pages in a browser, which change nothing"
    pages = commands.add_parser(
        "ui",
        help=about,
        description=f"Serve {about} (extra: serve).",
        epilog="STEPGUARD_UI_TOKEN: what a browser must show as its password; without it only this machine is served.",
        allow_abbrev=False,
    )
    if command == "ui":
        from stepguard.cli.ui import add_arguments as add_ui

        add_ui(pages)
    about = "an MCP server: agents verify steps, run procedures and audit transcripts"
    mcp = commands.add_parser("mcp", help=about, description=f"Serve {about} (extra: mcp).", allow_abbrev=False)
    if command == "mcp":
        from stepguard.cli.mcp import add_arguments as add_mcp

        add_mcp(mcp)
    about = "a policy before an MCP server: calls of its tools are judged, everything else passes"
    gating = commands.add_parser("mcp-gate", help=about, description=f"Put {about}.", allow_abbrev=False)
    if command == "mcp-gate":
        from stepguard.cli.mcp_gate import add_arguments as add_mcp_gate

        add_mcp_gate(gating)
    for name, about in LEDGER_COMMANDS.items():
        keeping = commands.add_parser(
            name, help=about, description=f"{about[0].upper()}{about[1:]}.", allow_abbrev=False
        )
        if command == name:
            from stepguard.cli.ledger import add_arguments as add_ledger

            add_ledger(name, keeping)
    return parser


def _add_run(commands: Any, *, many: bool) -> None:
    parser = commands.add_parser(
        "run",
        help="run a procedure from a file",
        description="Run a procedure from a file and print every step, the outcome and what it cost.",
        epilog="exit codes: 0 verified (or as strong as --at-least asks), 1 completed but weaker, 2 nothing was run, "
        "3 abstained at a step, 4 a budget was spent, 5 failed",
        allow_abbrev=False,
    )
    from stepguard.cli.arguments import add_at_least, add_guard, add_inputs, add_limits

    parser.add_argument("file", metavar="FILE", help="the procedure: YAML or JSON by its suffix, otherwise text")
    add_inputs(parser)
    if many:
        from stepguard.cli.batch import add_batch

        add_batch(parser)
    model = parser.add_argument_group("the model", "Without any of these a simulated model is run.")
    model.add_argument(
        "--model",
        metavar="NAME",
        help="the model to ask, with its provider before a slash (groq/llama-3.3-70b-versatile, ollama/qwen2.5) or at "
        "OpenAI; the key is read from the provider's variable, such as GROQ_API_KEY or OPENAI_API_KEY. With --base-url "
        "the whole is the model's name there",
    )
    model.add_argument(
        "--base-url", metavar="URL", help="an OpenAI-compatible endpoint; its only model is taken where none is named"
    )
    model.add_argument("--gguf", metavar="FILE", help='a model file to run here (needs "stepguard[local]")')
    add_limits(model)
    guard = parser.add_argument_group("the guard")
    add_guard(guard)
    guard.add_argument(
        "--learned",
        metavar="FILE",
        help="what earlier runs have shown of the model: read where it is there, and added to after the run",
    )
    guard.add_argument("--max-cost", metavar="AMOUNT", help="stop once this much money is spent; needs --price")
    guard.add_argument("--price", metavar="IN,OUT", help="what a million input and a million output tokens cost")
    guard.add_argument(
        "--max-step-calls", metavar="N", type=int, help="stop after this many calls that end at one step"
    )
    guard.add_argument("--ledger", metavar="FILE", help="keep the run in a ledger, where it goes on after a kill")
    guard.add_argument("--run-id", metavar="ID", help="the name of the run in the ledger (default: a new one)")
    guard.add_argument("--seed", metavar="N", type=int, help="make sampling repeatable, where the model allows it")
    output = parser.add_argument_group("output")
    add_at_least(output, "for exit code 0")
    output.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    output.add_argument("--quiet", action="store_true", help="no progress and no table, only the outcome")


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
