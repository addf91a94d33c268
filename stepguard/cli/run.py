"""``stepguard run``: from the options to a procedure, a model and a guard, and from the result to an exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from stepguard.cli.arguments import (
    add_at_least,
    add_guard,
    add_inputs,
    add_ledger,
    add_limits,
    add_model,
    load_file,
    open_ledger,
    read_guard,
    read_inputs,
    read_price,
)
from stepguard.cli.batch import add_batch, is_batch, run_rows
from stepguard.core.profile import Profile
from stepguard.core.verdicts import Strength
from stepguard.engine.budget import Budget
from stepguard.errors import ConfigError, RunError
from stepguard.guard import Guard
from stepguard.results import Result, Status

EXIT_CODES: Final[Mapping[Status, int]] = {
    "verified": 0,
    "checked": 1,
    "unverified": 1,
    "abstained": 3,
    "exhausted": 4,
    "failed": 5,
    "waiting": 6,
}
"""By status, where nothing weaker than ``verified`` was asked for."""


def exit_code(result: Result, at_least: Strength) -> int:
    """The exit code for a run: 0 where every step is as strong as asked."""
    try:
        result.raise_for_status(at_least=at_least)
    except RunError:
        return EXIT_CODES[result.status]
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="the procedure: YAML or JSON by its suffix, otherwise text; - for stdin"
    )
    add_inputs(parser)
    add_batch(parser)
    model = parser.add_argument_group("the model", "Without any of these a simulated model is run.")
    add_model(
        model,
        "the model to ask, with its provider before a slash (groq/llama-3.3-70b-versatile, ollama/qwen2.5) or at "
        "OpenAI; the key is read from the provider's variable, such as GROQ_API_KEY or OPENAI_API_KEY. With --base-url "
        "the whole is the model's name there",
        "an OpenAI-compatible endpoint; its only model is taken where none is named",
    )
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
    add_ledger(guard, "keep the run in a ledger, where it goes on after a kill")
    guard.add_argument("--run-id", metavar="ID", help="the name of the run in the ledger (default: a new one)")
    guard.add_argument("--seed", metavar="N", type=int, help="make sampling repeatable, where the model allows it")
    output = parser.add_argument_group("output")
    add_at_least(output, "for exit code 0")
    output.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    output.add_argument("--quiet", action="store_true", help="no progress and no table, only the outcome")


def main(options: argparse.Namespace) -> int:
    """Carry out the command and return its exit code.

    Raises:
        StepguardError: nothing was run, because of the file, the inputs, the options or the model.
        KeyboardInterrupt: interrupted, after what there was of a result was printed; the message says how far the
            run had come.
    """
    from stepguard.cli.models import choose_backend
    from stepguard.cli.progress import RunProgress

    if is_batch(options):
        if options.ledger is not None or options.run_id is not None:
            raise ConfigError("--ledger keeps single runs: rows go on with --resume", option="ledger")
        return run_rows(options)
    procedure = load_file(options.file)
    inputs = read_inputs(options.input, procedure, options.inputs)
    price = read_price(options.price, options.max_cost)
    per_step = None if options.max_step_calls is None else Budget(calls=options.max_step_calls)
    chosen = read_guard(options, seconds=options.max_seconds, cost=options.max_cost, price=price, per_step=per_step)
    learned = None if options.learned is None else Path(options.learned)
    chosen["profile"] = _learned_profile(learned)
    chosen["seed"] = options.seed
    if options.run_id is not None and options.ledger is None:
        raise ConfigError("--run-id names a run in a ledger: add --ledger", option="run_id")
    backend, name = choose_backend(options, procedure)
    with ExitStack() as stack:
        if callable(close := getattr(backend, "close", None)):
            stack.callback(close)
        progress = RunProgress(procedure, name, quiet=options.quiet)
        chosen["observer"] = progress
        guard = Guard(backend, ledger=open_ledger(options), **chosen)
        under_way = guard.start(procedure, inputs, run_id=options.run_id)
        interrupted: KeyboardInterrupt | None = None
        try:
            try:
                with progress:
                    result = guard.drive(under_way)
            except KeyboardInterrupt as stop:  # what was verified is paid for
                interrupted, result = stop, under_way.result()
            if options.json:
                sys.stdout.write(result.to_json() + "\n")
            else:
                from stepguard.cli.report import print_result

                print_result(result, procedure, model=name, table=not options.quiet)
            sys.stdout.flush()
        finally:
            # It is paid for, also where the run was interrupted or nobody reads the result.
            if learned is not None:
                # Another run may have added to it meanwhile.
                (under_way.result().profile + (_learned_profile(learned) or Profile())).save(learned)
    if interrupted is not None:
        raise interrupted
    return exit_code(result, options.at_least)


def _learned_profile(learned: Path | None) -> Profile | None:
    """What earlier runs have shown, None where there is nothing."""
    if learned is None:
        return None
    try:
        if not learned.parent.is_dir():
            raise ConfigError(f"--learned: there is no folder {learned.parent}", option="learned")
        return Profile.load(learned) if learned.exists() else None
    except OSError as error:
        raise ConfigError(f"--learned: {learned} cannot be read: {error}", option="learned") from None
