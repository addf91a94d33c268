"""``stepguard runs``, ``answer``, ``verify`` and ``erase``: what people do with a ledger."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from stepguard.cli.arguments import load_file
from stepguard.cli.policies import load_policy
from stepguard.cli.text import printable, shortened
from stepguard.errors import ConfigError
from stepguard.ledger import KEPT_STATUSES, Ledger, RunSummary, verify_ledger

_LONGEST: Final = 60
_DAY: Final = 86_400.0


def _add_ledger(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ledger", metavar="LEDGER", help="the file, such as runs.db, or an address of Postgres")


def add_runs(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``stepguard runs``."""
    _add_ledger(parser)
    parser.add_argument("--status", choices=sorted(KEPT_STATUSES), help="list those alone")
    parser.add_argument("--limit", metavar="N", type=int, help="list so many, the newest first")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def add_answer(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``stepguard answer``."""
    _add_ledger(parser)
    parser.add_argument("run", metavar="RUN", help="the run_id")
    parser.add_argument("step", metavar="STEP", help="the step, as `stepguard runs` names it")
    parser.add_argument(
        "value", metavar="VALUE", nargs="?", help="the answer: yes or no to an approval, JSON for a list or record"
    )
    parser.add_argument(
        "--repeat", action="store_true", help="instead of a value: let the call of a tool be made again"
    )


def add_verify(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``stepguard verify``."""
    _add_ledger(parser)
    parser.add_argument("--head", metavar="HEAD", help="the head that was printed earlier and kept elsewhere")
    parser.add_argument(
        "--procedure",
        metavar="FILE",
        action="append",
        default=[],
        help="a procedure that the ledger does not hold as text; may be repeated",
    )
    parser.add_argument(
        "--policy",
        metavar="FILE",
        action="append",
        default=[],
        help="the policy of conversations, which are judged again then; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def add_erase(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``stepguard erase``."""
    _add_ledger(parser)
    parser.add_argument("runs", metavar="RUN", nargs="*", help="the run_ids")
    parser.add_argument(
        "--older-than", metavar="DAYS", type=float, help="every run that was not written to for so long"
    )


def main(options: argparse.Namespace) -> int:
    """Carry out one of the commands and return its exit code.

    Raises:
        StepguardError: nothing was done, because of the file or the arguments.
    """
    with Ledger(options.ledger, read_only=options.command in ("runs", "verify")) as ledger:
        match options.command:
            case "runs":
                return _list(ledger, options)
            case "answer":
                return _answer(ledger, options)
            case "verify":
                return _verify(ledger, options)
        return _erase(ledger, options)


def _list(ledger: Ledger, options: argparse.Namespace) -> int:
    runs = [each for each in ledger.runs() if options.status in (None, each.status)]
    runs = runs if options.limit is None else runs[: max(options.limit, 0)]
    if options.json:
        sys.stdout.write(json.dumps([asdict(run) for run in runs]) + "\n")
        return 0
    rows: list[tuple[str, ...]] = [("run", "procedure", "status", "steps", "calls", "tokens", "last written", "at")]
    rows += [_row(run) for run in runs]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        sys.stdout.write("  ".join([*cells, row[-1]]).rstrip() + "\n")
    return 0


def _row(run: RunSummary) -> tuple[str, ...]:
    steps = str(run.completed) if run.total is None else f"{run.completed} of {run.total}"
    written = datetime.fromtimestamp(run.updated, UTC).strftime("%Y-%m-%d %H:%M:%S")
    place = "" if run.place is None else printable(run.place)
    if run.reason is not None and run.status not in ("running", "interrupted"):
        place = f"{place}: {shortened(printable(run.reason), _LONGEST)}"
    named = shortened(printable(run.run_id), _LONGEST), shortened(printable(run.procedure), _LONGEST)
    return (*named, run.status, steps, str(run.calls), str(run.tokens), written, place)


def _answer(ledger: Ledger, options: argparse.Namespace) -> int:
    if options.repeat == (options.value is not None):
        raise ConfigError("give a value, or --repeat", option="value")
    if options.repeat:
        ledger.repeat(options.run, options.step)
    else:
        ledger.answer(options.run, options.step, _value(options.value))
    sys.stderr.write("stepguard: noted; run it again with its run_id, and it goes on\n")
    return 0


def _value(text: str) -> object:
    if text.lstrip()[:1] not in ("[", "{"):
        return text
    try:
        return json.loads(text, parse_float=Decimal)  # as it is written
    except (ValueError, RecursionError):
        return text


def _verify(ledger: Ledger, options: argparse.Namespace) -> int:
    procedures, policies = map(load_file, options.procedure), map(load_policy, options.policy)
    verified = verify_ledger(ledger, head=options.head, procedures=procedures, policies=policies)
    code = 3 if verified.faults else 1 if verified.unchecked else 0
    if options.json:
        facts: dict[str, Any] = {**asdict(verified), "right": verified.right}
        sys.stdout.write(json.dumps(facts) + "\n")
        return code
    for fault in verified.faults:
        sys.stdout.write(f"wrong: {printable(str(fault))}\n")
    for run_id, why in verified.unchecked.items():
        sys.stdout.write(f"not checked: run {printable(run_id)}: {printable(why)}\n")
    erased = f", {verified.erased} erased" if verified.erased else ""
    sys.stdout.write(f"{verified.records} records, {verified.rechecked} runs checked again{erased}\n")
    sys.stdout.write(f"head {verified.head}\n")
    return code


def _erase(ledger: Ledger, options: argparse.Namespace) -> int:
    names: list[str] = list(options.runs)
    if options.older_than is not None:
        names += ledger.older_than(options.older_than * _DAY)
    elif not names:
        raise ConfigError("name the runs, or give --older-than", option="runs")
    count = ledger.erase(dict.fromkeys(names))
    sys.stderr.write(f"stepguard: {count} erased\n")
    return 0
