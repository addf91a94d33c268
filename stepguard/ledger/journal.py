"""The journals of a run and of a gate in a ledger: what is read when one goes on, and what is written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from stepguard.core.usage import Usage
from stepguard.engine.actions import Commit, OperationCall
from stepguard.engine.journal import KeptStep, place_of
from stepguard.errors import LedgerError
from stepguard.language.value_json import from_data
from stepguard.language.values import Value
from stepguard.ledger.records import (
    as_json,
    attempt_record,
    call_record,
    end_record,
    now_text,
    read_attempt,
    read_call,
    read_end,
    read_step,
    step_records,
    storable,
)
from stepguard.ledger.shapes import check_shape
from stepguard.ledger.store import LedgerStore
from stepguard.ledger.writer import RunWriter
from stepguard.results import Attempt, Result


@dataclass(slots=True)
class KeptRun:
    """What the records of one run come to.

    Attributes:
        run_id: its name.
        inputs: its inputs, as JSON data; none where they were erased.
        steps: the verified steps by their places, the newest of each.
        calls: the calls of tools by their keys.
        answers: what persons have answered while it was parked: question and value, by the text of the place.
        attempts: the model calls.
        times: when each of them was written down, as text.
        usage: what they cost.
        conversation: of a gate: what the keys of its calls are made of; None of a run of a procedure.
        changes: of a gate: what has happened at it, in order.
        options: of a gate: its options in every process, without repetitions.
        end: how it ended last, None while it is under way or was killed.
        numbers: the numbers of the records of the steps, by their places, of the ``end``, and of every ``change N``.
        listed: how the run has to be listed by its records; what is not there cannot be told from them.
        standings: the statuses that it can be listed with.
        epoch: how often it was continued, at least.
        answered: of a gate: the numbers of the calls of which is known what came of them.
    """

    run_id: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    steps: dict[str, KeptStep] = field(default_factory=dict)
    calls: dict[str, OperationCall] = field(default_factory=dict)
    answers: dict[str, tuple[str, Value]] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    times: list[object] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    conversation: str | None = None
    changes: list[Mapping[str, Any]] = field(default_factory=list)
    options: list[Mapping[str, Any]] = field(default_factory=list)
    end: Mapping[str, Any] | None = None
    numbers: dict[str, int] = field(default_factory=dict)
    listed: dict[str, Any] = field(default_factory=dict)
    standings: frozenset[str] = frozenset()
    epoch: int = 0
    answered: set[int] = field(default_factory=set)


def load_run(file: LedgerStore, run: int) -> KeptRun:
    """Everything that is durable of a run.

    Raises LedgerError: a record cannot be read; it is named. Or no record says that the run was begun.
    """
    kept = KeptRun()
    rows = file.read("select number, kind, body from records where run = ? order by number", run)
    if all(kind != "begin" for _, kind, _ in rows):
        raise LedgerError(f"no record of the ledger {file.path} says that the run was begun: they were taken out")
    for number, kind, body in rows:
        if body is None:
            continue
        try:
            data = json.loads(body)
            check_shape(kind, data)
            # First: what is new shows by comparison with what was there before.
            _list(kept, kind, data)
            _take_in(kept, kind, data, number)
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
            raise LedgerError(
                f"record {number} of the ledger {file.path} cannot be read ({type(error).__name__}: {error}): "
                "`stepguard verify` tells what was altered"
            ) from error
    return kept


def _take_in(kept: KeptRun, kind: str, body: Mapping[str, Any], number: int) -> None:
    match kind:
        case "begin":
            kept.run_id, kept.end = body["run"], None
            kept.inputs = body.get("inputs", kept.inputs) or {}  # they stand where it was begun first
            kept.conversation = body.get("conversation", kept.conversation)
            if body.get("options") is not None and body["options"] not in kept.options:
                kept.options.append(body["options"])
        case "gate":
            kept.numbers[f"change {len(kept.changes)}"] = number
            kept.changes.append(body)
        case "step":
            place, step = read_step(body)
            kept.steps[place], kept.numbers[place] = step, number
        case "call":
            call = read_call(body)
            kept.calls[call.key] = call
        case "repeat":
            kept.calls.pop(str(body["key"]), None)
        case "answer":
            kept.answers[str(body["path"])] = str(body["question"]), from_data(body["value"])
        case "attempt":
            attempt = read_attempt(body)
            kept.attempts.append(attempt)
            kept.times.append(body.get("at"))
            kept.usage += attempt.usage
        case "end":
            kept.end, kept.numbers["end"] = read_end(body), number


def _list(kept: KeptRun, kind: str, body: Mapping[str, Any]) -> None:
    """How a record changes what a run is listed as: what its writer does beside writing it."""
    match kind:
        case "begin":
            if not kept.listed:
                kept.listed |= {"completed": 0, "place": None, "reason": None}
                kept.listed |= {name: body[name] for name in ("title", "total", "started") if name in body}
            kept.epoch = max(kept.epoch, body.get("epoch", 0))
            gated = kept.conversation is not None or body.get("conversation") is not None
            kept.standings = frozenset({"open" if gated else "running" if body.get("queue") is None else "queued"})
        case "step":
            fresh = body["place"] not in kept.steps
            kept.listed |= {"completed": kept.listed["completed"] + fresh, "place": body["path"]}
        case "gate":
            kept.answered.update(_answered(body))
            kept.listed |= {"completed": len(kept.answered), **_last_decision(body)}
        case "answer" | "repeat" | "call":
            kept.standings |= {"answered"}
        case "end":
            kept.listed |= _ended(read_end(body))
            # One that is answered in the process that parked it runs on without another record; see `RunWriter.reopen`.
            kept.standings = frozenset({body["status"], *(["running"] if body["status"] == "waiting" else [])})


def _ended(end: Mapping[str, Any]) -> dict[str, Any]:
    """How a run is listed that has ended so."""
    place, reason = (None, None) if end["problem"] is None else end["problem"]
    stopped = {"place": place and str(place), "reason": reason and storable(reason)}
    return {"completed": end["completed"], "total": end["total"], **stopped}


def _last_decision(change: Mapping[str, Any]) -> dict[str, Any]:
    """How a gate is listed behind a change in which it has decided something."""
    if not change.get("decisions"):
        return {}
    decision = change["decisions"][-1]
    words = None if decision["outcome"] == "allow" else storable(" ".join(_words(decision)))
    return {"place": storable(decision["tool"]), "reason": words}


class RunJournal:
    """Writes one run into a ledger; see `stepguard.engine.journal.Journal`."""

    def __init__(self, writer: RunWriter, kept: KeptRun, *, replies: bool, prompts: bool) -> None:
        self._writer: Final = writer
        self._kept: Final = kept
        self._replies: Final = replies
        self.prompts: Final = prompts

    @property
    def steps(self) -> Mapping[str, KeptStep]:
        return self._kept.steps

    @property
    def calls(self) -> Mapping[str, OperationCall]:
        return self._kept.calls

    @property
    def answers(self) -> Mapping[str, tuple[str, Value]]:
        return self._kept.answers

    @property
    def attempts(self) -> Sequence[Attempt]:
        return self._kept.attempts

    @property
    def usage(self) -> Usage:
        return self._kept.usage

    def commit(self, commit: Commit) -> None:
        if commit.call is not None:
            self._writer.write([("call", call_record(commit.call))])
            return
        bodies = step_records(commit, self._kept.steps)
        if not bodies:
            return
        fresh = sum(place not in self._kept.steps for place, _ in bodies)
        written = {place for place, _ in bodies}
        last = next(record for record in reversed(commit.records) if place_of(record.occurrence) in written)
        steps = [("step", body) for _, body in bodies]
        self._writer.write(steps, {"completed = completed + ?": fresh, "place = ?": str(last.occurrence)})

    def book(self, attempts: Sequence[Attempt]) -> None:
        usage = sum((attempt.usage for attempt in attempts), Usage())
        records = [("attempt", attempt_record(attempt, replies=self._replies)) for attempt in attempts]
        listed = {"calls = calls + ?": usage.calls, "tokens = tokens + ?": usage.tokens}
        # The sync of the step that follows serves for these, too.
        self._writer.write(records, listed, synced=False)

    def close(self, result: Result) -> None:
        problem = result.problem
        place, reason = (None, None) if problem is None else (str(problem.occurrence), storable(problem.reason))
        listed = {
            **{"status = ?": result.status, "completed = ?": result.completed, "total = ?": result.total},
            **{"place = ?": place, "reason = ?": reason},
        }
        try:
            self._writer.write([("end", end_record(result))], listed, synced=False, last=True)
        except LedgerError:
            if not isinstance(result.error, LedgerError):  # the result does not say it already
                raise
        finally:
            self._writer.give_up()

    def settle(self) -> None:
        self._writer.settle()

    def reopen(self) -> None:
        self._writer.reopen()


class ConversationJournal:
    """Writes what happens at a gate into a ledger; see `stepguard.policy.journal.GateJournal`."""

    def __init__(self, writer: RunWriter, kept: KeptRun) -> None:
        self._writer: Final = writer
        self._kept: Final = kept

    @property
    def conversation(self) -> str:
        return str(self._kept.conversation)

    @property
    def changes(self) -> Sequence[Mapping[str, Any]]:
        return self._kept.changes

    def write(self, change: Mapping[str, Any]) -> None:
        self._kept.answered.update(_answered(change))
        listed: dict[str, object] = {"completed = ?": len(self._kept.answered)}
        listed |= {f"{name} = ?": value for name, value in _last_decision(change).items()}
        self._writer.write([("gate", as_json({**change, "at": now_text()}))], listed)

    def close(self) -> None:
        self._writer.give_up()


def _answered(change: Mapping[str, Any]) -> list[int]:
    """The numbers of the calls of which a change says what came of them."""
    return [call["number"] for call in change.get("calls", ()) if call["status"] != "pending"]


def _words(decision: Mapping[str, Any]) -> dict[str, None]:
    return dict.fromkeys(reason["words"] for reason in decision["reasons"])
