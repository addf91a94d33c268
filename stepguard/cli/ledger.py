"""``stepguard runs``, ``answer``, ``verify`` and ``erase``: what people do with a ledger."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from stepguard.backends.reply_store import ReplyStore
from stepguard.cli.arguments import load_file
from stepguard.cli.policies import load_policy
from stepguard.cli.text import printable, shortened
from stepguard.errors import ConfigError
from stepguard.ledger import (
    KEPT_STATUSES,
    Ledger,
    PersonNames,
    PersonTraces,
    RunSummary,
    erase_person,
    find_person,
    verify_ledger,
)
from stepguard.ledger.register import no_run

_LONGEST: Final = 60
_DAY: Final = 86_400.0


def _add_ledger(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ledger", metavar="LEDGER", help="the file, such as runs.db, or an address of Postgres")


def _add_person(parser: argparse.ArgumentParser, what: str) -> None:
    whom = "an e-mail address, a customer's number or a name, as it is written; may be repeated"
    parser.add_argument("--person", metavar="NAME", action="append", default=[], help=f"{what}: {whom}")


def add_runs(parser: argparse.ArgumentParser) -> None:
    _add_ledger(parser)
    parser.add_argument("--status", choices=sorted(KEPT_STATUSES), help="list those alone")
    parser.add_argument("--limit", metavar="N", type=int, help="list so many, the newest first")
    _add_person(parser, "list those that hold something about a person")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def add_answer(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _add_ledger(parser)
    add("run", metavar="RUN", help="the run_id")
    add("step", metavar="STEP", help="the step, as `stepguard runs` names it")
    add("value", metavar="VALUE", nargs="?", help="the answer: yes or no to an approval, JSON for a list or record")
    add("--repeat", action="store_true", help="instead of a value: let the call of a tool be made again")


def add_verify(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _add_ledger(parser)
    add("--head", metavar="HEAD", help="the head that was printed earlier and kept elsewhere")
    add(
        "--procedure",
        metavar="FILE",
        action="append",
        default=[],
        help="a procedure that the ledger does not hold as text; may be repeated",
    )
    add(
        "--policy",
        metavar="FILE",
        action="append",
        default=[],
        help="the policy of conversations, which are judged again then; may be repeated",
    )
    add("--json", action="store_true", help="print one JSON document")


def add_erase(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _add_ledger(parser)
    add("runs", metavar="RUN", nargs="*", help="the run_ids")
    add("--older-than", metavar="DAYS", type=float, help="every run that was not written to for so long")
    _add_person(parser, "every run, and conversation of a gate, that holds something about a person")
    add(
        "--replies",
        metavar="FILE",
        action="append",
        default=[],
        help="with --person: a file of recorded replies, or the RESULTS.resume of a batch, from which theirs are taken "
        "as well; may be repeated",
    )
    add("--dry-run", action="store_true", help="only say what would be erased")


def main(options: argparse.Namespace) -> int:
    """Carry out one of the commands and return its exit code.

    Raises StepguardError: nothing was done, because of the file or the arguments.
    """
    with Ledger(options.ledger, read_only=_reads(options)) as ledger:
        match options.command:
            case "runs":
                return _list(ledger, options)
            case "answer":
                return _answer(ledger, options)
            case "verify":
                return _verify(ledger, options)
        return _erase(ledger, options)


def _reads(options: argparse.Namespace) -> bool:
    return options.command in ("runs", "verify") or bool(getattr(options, "dry_run", False))


def _list(ledger: Ledger, options: argparse.Namespace) -> int:
    runs = [each for each in ledger.runs() if options.status in (None, each.status)]
    if options.person:
        traces = find_person(ledger, options.person)
        runs = [each for each in runs if each.run_id in traces.runs]
        _tell_doubtful(traces)
    runs = runs if options.limit is None else runs[: max(options.limit, 0)]
    if options.json:
        sys.stdout.write(json.dumps([asdict(run) for run in runs]) + "\n")
        return 0
    rows: list[tuple[str, ...]] = [("run", "procedure", "status", "steps", "calls", "tokens", "last written", "at")]
    rows += [_row(run) for run in runs]
    # The last column may be of any length, and needs no padding.
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
    if options.person:
        if names or options.older_than is not None:
            raise ConfigError("--person finds the runs: name none, and give no --older-than", option="person")
        return _erase_person(ledger, options)
    if options.replies:
        raise ConfigError("--replies needs a --person, of whom they are", option="replies")
    if options.older_than is not None:
        names += ledger.older_than(options.older_than * _DAY)
    elif not names:
        raise ConfigError("name the runs, or give --older-than or --person", option="runs")
    if options.dry_run:
        names = [name for name in dict.fromkeys(names) if _is_there(ledger, name)]
        sys.stdout.write("".join(f"{printable(name)}\n" for name in names))
        sys.stderr.write(f"stepguard: {len(names)} would be erased\n")
        return 0
    count = ledger.erase(dict.fromkeys(names))
    _forget_queued(ledger, names)
    sys.stderr.write(f"stepguard: {count} erased\n")
    return 0


def _forget_queued(ledger: Ledger, run_ids: Iterable[str]) -> None:
    from stepguard.integrations.dbos.jobs import forget_queued  # with the guard, which no other command here needs

    forget_queued(ledger, run_ids)


def _is_there(ledger: Ledger, run_id: str) -> bool:
    run = ledger.summary(run_id)
    if run is None:
        raise no_run(ledger.file, run_id)
    return run.status != "erased"


def _erase_person(ledger: Ledger, options: argparse.Namespace) -> int:
    with ExitStack() as stack:
        opened = (_open_replies(path, read_only=options.dry_run) for path in options.replies)
        return _erase_with(ledger, [stack.enter_context(closing(store)) for store in opened], options)


def _erase_with(ledger: Ledger, replies: Sequence[ReplyStore], options: argparse.Namespace) -> int:
    person = PersonNames(options.person)
    kept = [(store, store.find(lambda text: person.find(text) is True)) for store in replies]
    traces = find_person(ledger, person)
    for run_id, where in traces.runs.items():
        sys.stdout.write(f"{printable(run_id)}: {_places(where)}\n")
    for path, (_, keys) in zip(options.replies, kept, strict=True):
        sys.stdout.write(f"{path}: {len(keys)} {'reply' if len(keys) == 1 else 'replies'}\n")
    _tell_doubtful(traces)
    if options.dry_run:
        sys.stderr.write(f"stepguard: {len(traces.runs)} would be erased\n")
        return 0
    for store, keys in kept:
        store.erase(keys)
    left = erase_person(ledger, person, forget=lambda run_ids: _forget_queued(ledger, run_ids)).runs
    sys.stderr.write(f"stepguard: {len(traces.runs.keys() - left.keys())} erased\n")
    for run_id in left:
        sys.stderr.write(f"stepguard: not erased: {printable(run_id)} is under way; erase again when it has ended\n")
    return 1 if left else 0


def _open_replies(path: str, *, read_only: bool) -> ReplyStore:
    if not Path(path).is_file():
        raise ConfigError(f"there are no replies at {path}", option="replies")
    return ReplyStore(path, read_only=read_only)


def _tell_doubtful(traces: PersonTraces) -> None:
    for run_id, where in traces.doubtful.items():
        sys.stderr.write(f"stepguard: only inside longer words, left: {printable(run_id)}: {_places(where)}\n")


def _places(where: Mapping[str, int]) -> str:
    return ", ".join(name if count == 1 else f"{name} ({count})" for name, count in where.items())
