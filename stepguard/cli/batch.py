"""``stepguard run FILE --inputs ROWS --out RESULTS``: a procedure over many rows, gone on with by ``--resume``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Final

from stepguard.batches.rows import ROW_FILES, count_rows, read_rows
from stepguard.batches.running import BatchSummary, CostLimit, run_batch
from stepguard.cli.arguments import load_file, read_guard, read_price, read_values
from stepguard.cli.progress import ProgressContext, make_display
from stepguard.cli.text import printable
from stepguard.core.usage import Usage, to_amount
from stepguard.core.verdicts import STRENGTHS
from stepguard.engine.batch import RowResult
from stepguard.engine.budget import Budget
from stepguard.errors import ConfigError, InputError

BATCH_OPTIONS: Final = ("out", "resume", "key", "ignore", "ordered", "details")
"""What makes no sense with one run."""

_CODES: Final = {"invalid": 2, "abstained": 3, "exhausted": 4, "failed": 5, "waiting": 6}
_GRAVEST: Final = (5, 2, 4, 6, 3, 1)
"""Which exit code tells of a batch whose rows ended differently."""


def add_batch(parser: argparse.ArgumentParser) -> None:
    """Add the options of many runs."""
    group = parser.add_argument_group(
        "many runs", f"With --inputs ROWS ({', '.join(ROW_FILES)}): one run for each row, and a result for each."
    )
    group.add_argument(
        "--out",
        metavar="RESULTS",
        help="where the results go, a line each: .jsonl or .csv; RESULTS.resume beside it holds what --resume needs",
    )
    group.add_argument(
        "--resume",
        action="store_true",
        help="go on with RESULTS after a kill or an interrupt: rows that are done are left, replies that had come are "
        "not paid for again, failed rows get another try",
    )
    group.add_argument(
        "--concurrency", metavar="N", type=int, default=16, help="rows under way at a time (default: %(default)s)"
    )
    group.add_argument("--ordered", action="store_true", help="write results in the order of the rows")
    group.add_argument("--key", metavar="COLUMN", help="what a row is called in the results; it need be no input")
    group.add_argument("--ignore", metavar="A,B", default="", help="columns that are no inputs, and left out")
    group.add_argument("--details", action="store_true", help="write every step and call of each run (.jsonl)")


def is_batch(options: argparse.Namespace) -> bool:
    """Whether the arguments ask for many runs. Raises ConfigError: they ask for half of it."""
    rows = options.inputs is not None and Path(options.inputs).suffix.lower() in ROW_FILES
    if rows and options.out is None:
        raise ConfigError(f"{options.inputs} holds many rows: say where the results go with --out", option="out")
    if not rows:
        for name in BATCH_OPTIONS:
            if getattr(options, name):
                raise ConfigError(
                    f"--{name} goes with --inputs ROWS, a file that ends in {', '.join(ROW_FILES)}", option=name
                )
    return rows


def run_rows(options: argparse.Namespace) -> int:
    """Run all rows and return the exit code.

    Raises:
        StepguardError: nothing, or nothing more, was run.
        KeyboardInterrupt: interrupted; the message says how far the batch had come.
    """
    from stepguard.cli.models import choose_backend

    if options.learned is not None:
        raise ConfigError("--learned is kept for single runs: leave it out", option="learned")
    procedure = load_file(options.file)
    price = read_price(options.price, options.max_cost)
    most = None if options.max_cost is None else to_amount(options.max_cost, "--max-cost", option="max_cost")
    limit = None if most is None or price is None else CostLimit(most, price)
    per_step = None if options.max_step_calls is None else Budget(calls=options.max_step_calls)
    chosen = read_guard(options, seconds=options.max_seconds, cost=options.max_cost, price=price, per_step=per_step)
    chosen["seed"] = options.seed
    rows = _rows(options)
    backend, name = choose_backend(options, procedure)
    with ExitStack() as stack:
        if callable(close := getattr(backend, "close", None)):
            stack.callback(close)
        total = count_rows(options.inputs)
        progress = _RowProgress(f"{procedure.name} on {name}", total, quiet=options.quiet)
        with progress:
            summary = run_batch(
                procedure,
                backend,
                rows,
                options.out,
                resume=options.resume,
                concurrency=options.concurrency,
                ordered=options.ordered,
                key=options.key,
                details=options.details,
                limit=limit,
                progress=progress.add,
                taken_over=progress.begin,
                **chosen,
            )
    _print(summary, options, total)
    return _exit_code(summary, options.at_least)


def _rows(options: argparse.Namespace) -> Iterator[dict[str, object] | InputError]:
    """The rows of the file, with the inputs that are the same for all."""
    ignore = [name.strip() for name in options.ignore.split(",") if name.strip()]
    rows = read_rows(options.inputs, ignore=ignore)
    same = read_values(options.input)
    try:
        rows = chain([next(rows)], rows)  # a table without a usable header is refused before anything is made
    except StopIteration:
        raise InputError(f"{options.inputs} holds no rows") from None
    return (_joined(row, same) for row in rows) if same else rows


def _joined(row: dict[str, object] | InputError, same: Mapping[str, object]) -> dict[str, object] | InputError:
    if isinstance(row, InputError):
        return row
    if twice := row.keys() & same.keys():
        name = sorted(twice)[0]
        return InputError(f"{name!r} is given by the row and by --input: keep one", name=name)
    return {**row, **same}


class _RowProgress(ProgressContext):
    """Shows how many rows are done, how they ended, and how long it has taken."""

    def __init__(self, title: str, total: int, *, quiet: bool) -> None:
        super().__init__(make_display(printable(title), total, "row", facts=self.facts, quiet=quiet), total, "row")
        self._ends: Final[Counter[str]] = Counter()
        self._usage = Usage()
        self._started: Final = time.monotonic()

    def begin(self, done: int) -> None:
        """So many were done in earlier sessions."""
        if done:
            self.advance(done)

    def add(self, row: RowResult) -> None:
        """One more is done."""
        self._ends[row.status] += 1
        if row.result is not None:
            self._usage = self._usage + row.result.usage
        self.advance(self.done + 1)

    def facts(self) -> list[str]:
        """How rows have ended in this session, and what they took."""
        ends = [f"{count} {status}" for status, count in self._ends.most_common()]
        return [*ends, f"{self._usage.calls} calls", f"{time.monotonic() - self._started:.0f} s"]


def _print(summary: BatchSummary, options: argparse.Namespace, total: int) -> None:
    ends: Counter[str] = Counter()
    for (status, _), count in summary.counts.items():
        ends[status] += count
    if options.json:
        facts = {
            "rows": summary.rows,
            "taken_over": summary.taken_over,
            "statuses": dict(ends),
            "spent": {name: getattr(summary.spent, name) for name in Usage.__slots__},
            "replayed": {name: getattr(summary.replayed, name) for name in Usage.__slots__},
            "stopped": summary.stopped,
            "out": str(options.out),
        }
        sys.stdout.write(json.dumps(facts) + "\n")
        return
    spent = summary.spent
    ended = ", ".join(f"{count} {status}" for status, count in ends.most_common()) or "none"
    sys.stdout.write(
        f"{summary.rows} of {total} rows: {ended}\n"
        f"{spent.calls} calls, {spent.input_tokens} input and {spent.output_tokens} output tokens in this session"
        + (f"; {summary.taken_over} rows were taken over" if summary.taken_over else "")
        + f"\n{options.out}\n"
    )
    if summary.stopped:
        sys.stdout.write("stopped at --max-cost: the same command with --resume goes on\n")


def _exit_code(summary: BatchSummary, at_least: str) -> int:
    """The gravest of what the rows alone would have given."""
    codes = {4} if summary.stopped else set()
    for status, strength in summary.counts:
        weak = STRENGTHS.index(strength) < STRENGTHS.index(at_least)
        codes.add(_CODES.get(status, 1 if weak else 0))
    return next((code for code in _GRAVEST if code in codes), 0)
