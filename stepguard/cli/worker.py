"""``stepguard worker``, ``enqueue`` and ``cancel``: runs in queues, see `stepguard.integrations.dbos`."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from stepguard.cli.arguments import (
    add_guard,
    add_inputs,
    add_keep,
    add_limits,
    add_log_level,
    add_model,
    load_file,
    open_ledger,
    read_guard,
    read_inputs,
)
from stepguard.errors import ConfigError
from stepguard.guard.guard import Guard

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepguard.procedure.procedure import Procedure


def add_enqueue(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _add_ledger(parser)
    add("file", metavar="FILE", help="the procedure")
    add("--run-id", metavar="ID", required=True, help="the name of the run in the ledger")
    add("--queue", metavar="NAME", default="stepguard", help="its queue (default: %(default)s)")
    add("--priority", metavar="N", type=int, default=100, help="1 comes first (default: %(default)s)")
    add_inputs(parser)


def add_cancel(parser: argparse.ArgumentParser) -> None:
    _add_ledger(parser)
    parser.add_argument("run", metavar="RUN", help="the run_id")


def _add_ledger(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ledger", metavar="LEDGER", help="the ledger: an address of Postgres, or a file on one machine")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_ledger(parser)
    parser.add_argument(
        "--procedures", metavar="DIR", help="a folder with procedures that the ledger does not hold whole"
    )
    queue = parser.add_argument_group("the queue")
    queue.add_argument("--queue", metavar="NAME", default="stepguard", help="its name (default: %(default)s)")
    queue.add_argument("--runs", metavar="N", type=int, default=8, help="so many at a time here (default: %(default)s)")
    queue.add_argument("--total", metavar="N", type=int, help="so many at a time over all workers of the queue")
    queue.add_argument("--rate", metavar="N/S", help="so many calls of each model in so many seconds, over all workers")
    add_keep(parser)
    add_log_level(parser, "warning")
    model = parser.add_argument_group("the model", "Without any of these a simulated model is run.")
    add_model(model)
    add_limits(model)
    add_guard(parser.add_argument_group("the guard, for every run"))


def main(options: argparse.Namespace) -> int:
    """Carry out one of the commands and return its exit code.

    Raises StepguardError: nothing was done, because of the ledger, the arguments or a missing package.
    """
    if options.command == "worker":
        return _work(options)
    from stepguard.integrations.dbos import Jobs

    if options.command == "cancel":
        with Jobs(options.ledger) as jobs:
            if jobs.cancel(options.run):
                sys.stdout.write(f"{options.run} is cancelled\n")
                return 0
            raise ConfigError(f"the run {options.run!r} is neither queued nor under way", option="run")
    procedure = load_file(options.file)
    inputs = read_inputs(options.input, procedure, options.inputs)
    with Jobs(options.ledger) as jobs:
        jobs.enqueue(procedure, inputs, run_id=options.run_id, queue=options.queue, priority=options.priority)
    sys.stdout.write(f"{options.run_id} is queued\n")
    return 0


def _work(options: argparse.Namespace) -> int:
    from stepguard.cli.listening import log_to_stderr
    from stepguard.cli.models import choose_backend
    from stepguard.integrations.dbos import Worker

    chosen = read_guard(options, seconds=options.max_seconds)
    rate = _rate(options.rate)
    procedures = _procedures(options.procedures)
    log_to_stderr(options.log_level.upper())
    # `choose_backend` reads it, and a worker has no such option.
    options.seed = None
    backend, name = choose_backend(options)
    worker = Worker(
        Guard(backend, ledger=open_ledger(options), **chosen),
        procedures,
        queue=options.queue,
        runs=options.runs,
        total=options.total,
        rate=rate,
    )
    sys.stdout.write(f"stepguard carries out {options.queue} with {name} as {worker.name}\n")
    sys.stdout.flush()
    worker.serve()
    if worker.driving:  # a thread that waits for a model would be waited for; another worker goes on with the run
        sys.stdout.flush()
        os._exit(0)
    return 0


def _procedures(folder: str | None) -> Iterable[Procedure]:
    if folder is None:
        return ()
    from stepguard.procedure.folder import load_procedures

    return load_procedures(folder).values()


def _rate(text: str | None) -> tuple[int, float] | None:
    """``60/60``: so many model calls in so many seconds."""
    if text is None:
        return None
    calls, _, seconds = text.partition("/")
    try:
        return int(calls), float(seconds)
    except ValueError:
        raise ConfigError(f"--rate is a number of calls and of seconds, such as 60/60, not {text!r:.40}") from None
