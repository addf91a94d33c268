"""Writes and reads the records of a run, which are JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import blake2b
from typing import Any, Final

from stepguard.core.redaction import error_text, redact
from stepguard.core.usage import Usage
from stepguard.core.verdicts import Claim, Deviation
from stepguard.engine.actions import Commit, OperationCall
from stepguard.engine.journal import KeptStep, place_of, step_digest
from stepguard.language.value_json import from_data, to_data
from stepguard.language.values import Value
from stepguard.results import Attempt, Occurrence, Result

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True)
"""One for all: making it takes as long as using it."""
_CERTAIN: Final = 16
"""What has so many characters or digits is no longer than `_SHORT` as JSON, whatever is escaped in it."""
_SHORT: Final = 200
"""Characters of a value as JSON, above which a step that reads it keeps only a digest: it stands where it was set."""


def as_json(data: object) -> str:
    return _ENCODER.encode(data)


def storable(text: str) -> str:
    """A text that a file and a database can hold: what is no character is escaped, and so is NUL."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def now_text() -> str:
    """The time of the wall clock, for people: nothing is decided by it."""
    return datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")


def step_records(commit: Commit, known: Mapping[str, KeptStep]) -> list[tuple[str, str]]:
    """The bodies of the steps of a commit, by their places, without those that are `known` to be durable so.

    One that was durable and no longer passed may have been answered anew, with the same definition.
    """
    values = dict(commit.values)
    at, bodies = now_text(), []
    for record, step, claim in zip(commit.records, commit.steps, commit.claims, strict=True):
        place, digest = place_of(record.occurrence), step_digest(step, values)
        kept = known.get(place)
        if kept is None or (kept.digest, kept.value, kept.claim) != (digest, record.value, claim):
            body = {
                "place": place,
                **_where(record.occurrence),
                "digest": digest,
                "at": at,
                "value": to_data(record.value),
                "claim": None if claim is None else [list(claim.work), claim.value, claim.text],
                "strength": record.strength,
                "support": record.support,
                "tries": record.tries,
                "assistance": record.assistance,
                "deviations": [[entry.kind, entry.step, entry.reason] for entry in record.deviations],
                "checks": [[verdict.check, verdict.outcome, verdict.strength] for verdict in record.verdicts],
                "step": [step.performer, step.operation or step.formula, step.instruction, str(step.type)],
                "reads": {name: _short(values[name]) for name in step.reads if name in values},
            }
            bodies.append((place, as_json(body)))
        # Later steps of the same commit read it.
        values[step.id] = record.value
    return bodies


def _short(value: Value) -> Any:
    data = to_data(value)
    if (isinstance(data, str) and len(data) <= _CERTAIN) or (isinstance(data, int) and abs(data) < 10**_CERTAIN):
        return data
    text = as_json(data)
    return data if len(text) <= _SHORT else {"digest": blake2b(text.encode(), digest_size=16).hexdigest()}


def _where(occurrence: Occurrence) -> dict[str, Any]:
    return {"path": str(occurrence), "index": occurrence.index, "id": occurrence.step}


def read_step(body: Mapping[str, Any]) -> tuple[str, KeptStep]:
    """A durable step and its place."""
    claim = body["claim"]
    return body["place"], KeptStep(
        digest=body["digest"],
        value=from_data(body["value"]),
        claim=None if claim is None else Claim(body["id"], tuple(claim[0]), claim[1], claim[2]),
        strength=body["strength"],
        tries=body["tries"],
        assistance=body["assistance"],
        deviations=tuple(Deviation(*entry) for entry in body["deviations"]),
    )


def call_record(call: OperationCall) -> str:
    """The body of a call of a tool."""
    value = None if call.value is None else to_data(call.value)
    facts = {"key": call.key, "operation": call.operation, "digest": call.digest, "at": now_text()}
    return as_json({**facts, **_where(call.occurrence), "returned": call.returned, "value": value})


def read_call(body: Mapping[str, Any]) -> OperationCall:
    """A call of a tool."""
    where = Occurrence(body["index"], body["id"], body["path"])
    value = None if body["value"] is None else from_data(body["value"])
    if body["returned"] is not (value is not None):
        raise ValueError("a call has a value where it has returned, and no other")
    return OperationCall(body["key"], body["operation"], where, body["digest"], body["returned"], value)


def attempt_record(attempt: Attempt, *, replies: bool) -> str:
    """The body of a model call; with the prompt that it holds, and with the text of the reply where that is kept."""
    usage = attempt.usage
    body: dict[str, Any] = {
        "number": attempt.number,
        "steps": [[where.index, where.step, where.path, where.site] for where in attempt.steps],
        "rung": attempt.rung,
        "outcome": attempt.outcome,
        "committed": attempt.committed,
        "deviations": [[entry.kind, entry.step, entry.reason] for entry in attempt.deviations],
        "usage": [getattr(usage, name) for name in Usage.__slots__],
        "seconds": round(attempt.seconds, 3),
        "finish_reason": attempt.finish_reason,
        "error": attempt.error,
        "backend": attempt.backend,
        "at": now_text(),
    }
    if replies and attempt.text is not None:
        body["text"] = redact(attempt.text)
    if attempt.prompt is not None:
        body["prompt"] = [[role, redact(text)] for role, text in attempt.prompt]
    return as_json(body)


def read_attempt(body: Mapping[str, Any]) -> Attempt:
    """A model call."""
    facts = {name: value for name, value in body.items() if name != "at"}
    return Attempt(
        **{
            **facts,
            "steps": tuple(Occurrence(*place) for place in body["steps"]),
            "deviations": tuple(Deviation(*entry) for entry in body["deviations"]),
            "usage": Usage(*body["usage"]),
            "prompt": None if (sent := body.get("prompt")) is None else tuple(map(tuple, sent)),
        }
    )


def read_end(body: Mapping[str, Any]) -> dict[str, Any]:
    """How a run has ended; the problem as its place and the reason."""
    names = "status", "answer", "completed", "total", "problem", "cost"
    end = {name: body[name] for name in names}
    if (problem := end["problem"]) is not None:
        end["problem"] = Occurrence(problem["index"], problem["id"], problem["path"]), problem["reason"]
    if end["cost"] is not None:
        end["cost"] = Decimal(end["cost"])
    return end


def end_record(result: Result) -> str:
    """The body of how a run has ended, or for whom it waits."""
    problem, answer = result.problem, result.answer
    return as_json(
        {
            "status": result.status,
            "answer": None if answer is None else to_data(answer),
            "strength": result.strength,
            "completed": result.completed,
            "total": result.total,
            "problem": None if problem is None else {**_where(problem.occurrence), "reason": problem.reason},
            "error": None if result.error is None else error_text(result.error),
            "usage": asdict(result.usage),
            "cost": None if result.cost is None else f"{result.cost:f}",
            "at": now_text(),
        }
    )
