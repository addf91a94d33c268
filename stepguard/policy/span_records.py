"""Read OpenTelemetry records in JSON lines, as far as the conventions for generative AI name their parts.

A line is a span or log record as the Python SDK writes it, or an export of OTLP with many of them, as the Collector's
file exporter does. Of other spans nothing is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from stepguard.errors import ConfigError
from stepguard.language.strict_json import JsonObject

_MAX_LINE: Final = 50_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PREFIX: Final = "gen_ai."
# When it happened; else when it was seen.
_MOMENTS: Final = ("timeUnixNano", "timestamp", "observedTimeUnixNano", "observed_timestamp")
_EXPORTS: Final[Mapping[str, tuple[str, str]]] = {
    "resourceSpans": ("scopeSpans", "spans"), "resourceLogs": ("scopeLogs", "logRecords"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """A span, an event of one, or a log record.

    Attributes:
        line: where it stands in the file, from 1.
        name: its name.
        trace: its trace.
        span: the span itself, or the one that an event belongs to.
        parent: the span above it.
        start: when it began.
        end: when it ended.
        attributes: its attributes by name, with structured ones as data; empty where none is one of the conventions.
        failed: whether it says that what it stands for failed.
        remote: whether it is the other side of a call, of which the caller has a span, too.
        event: whether it is an event of a span, and no span itself.
    """

    line: int
    name: str
    trace: str
    span: str
    parent: str
    start: datetime
    end: datetime
    attributes: Mapping[str, Any]
    failed: bool = False
    remote: bool = False
    event: bool = False


def is_span_line(line: str) -> bool:
    """Whether a line is a record, or an export of records, and no conversation."""
    return _decoded(line) is not None


def read_records(lines: Iterable[str]) -> Iterator[SpanRecord]:
    """The records of a file, in its order. Raises ConfigError: a line holds none, or one without its time."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        data = _decoded(line)
        if data is None:
            raise refused_record(number, "a span, a log record or an export of OTLP as JSON was expected")
        exported = [(each, data[each]) for each in _EXPORTS if each in data]
        if not exported:
            yield from _records(data, number)
        for name, resources in exported:
            scopes, records = _EXPORTS[name]
            for resource in _objects(resources, number):
                for scope in _objects(resource.get(scopes), number):
                    for record in _objects(scope.get(records), number):
                        yield from _records(record, number)


def _records(data: Mapping[str, Any], line: int) -> Iterator[SpanRecord]:
    if isinstance(data, JsonObject) and data.repeated:
        raise refused_record(line, f"{min(data.repeated)[:60]!r} stands twice in a record")
    attributes = _attributes(data.get("attributes"), line)
    given_context = data.get("context")
    context = given_context if isinstance(given_context, dict) else {}
    trace = _id(data.get("traceId") or data.get("trace_id") or context.get("trace_id"))
    span = _id(data.get("spanId") or data.get("span_id") or context.get("span_id"))
    parent = _id(data.get("parentSpanId") or data.get("parent_id"))
    name, kind = str(data.get("name") or data.get("eventName") or data.get("event_name") or ""), data.get("kind")
    # OTLP writes kinds as numbers or names, the Python SDK as members of its enum.
    remote = kind in (2, "SPAN_KIND_SERVER", "SpanKind.SERVER")
    own = [each for each in attributes if each.startswith(_PREFIX)]
    start = _time(data, ("startTimeUnixNano", "start_time", *_MOMENTS), line)
    end = _time(data, ("endTimeUnixNano", "end_time", *_MOMENTS), line)
    failed = "error.type" in attributes or _status(data.get("status"))
    event = {"endTimeUnixNano", "end_time"}.isdisjoint(data)
    yield SpanRecord(line, name, trace, span, parent, start, end, attributes if own else {}, failed, remote, event)
    for each in _objects(data.get("events"), line):
        given = _attributes(each.get("attributes"), line)
        if not any(key.startswith(_PREFIX) for key in given):
            continue
        at = _time(each, _MOMENTS, line)
        if "gen_ai.conversation.id" in attributes:  # an event may leave out what stands on its span
            given.setdefault("gen_ai.conversation.id", attributes["gen_ai.conversation.id"])
        yield SpanRecord(line, str(each.get("name")), trace, span, parent, at, at, given, remote=remote, event=True)


def _attributes(given: object, line: int) -> dict[str, Any]:
    if given is None:
        return {}
    read = given
    if not isinstance(read, JsonObject):
        read = JsonObject([(str(each.get("key")), _value(each.get("value"))) for each in _objects(given, line)])
    if read.repeated:
        raise refused_record(line, f"the attribute {min(read.repeated)[:60]!r} stands twice in a record")
    return read


def _value(given: object) -> Any:
    """A value of OTLP as data."""
    if not isinstance(given, dict):
        return given
    for name in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        if name in given:
            return given[name]
    if "intValue" in given:
        text = str(given["intValue"])
        # OTLP's JSON writes 64-bit integers as text.
        return int(text) if text.lstrip("-").isdecimal() and len(text) < 30 else text
    for name in ("arrayValue", "kvlistValue"):
        if name in given:
            values = given[name].get("values") if isinstance(given[name], dict) else None
            listed = [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []
            if name == "arrayValue":
                return [_value(each) for each in listed]
            return JsonObject([(str(each.get("key")), _value(each.get("value"))) for each in listed])
    return None


def _status(given: object) -> bool:
    code = given.get("code", given.get("status_code")) if isinstance(given, dict) else None
    return code in (2, "STATUS_CODE_ERROR", "ERROR")


def _time(data: Mapping[str, Any], names: tuple[str, ...], line: int) -> datetime:
    for name in names:
        given = data.get(name)
        text = str(given)
        # OTLP writes 0 for a time that is not known.
        if given in (None, 0, "0") or isinstance(given, bool):
            continue
        try:
            if text.isdecimal():
                # Cut first, since the number may be of any length; nanoseconds become what datetime holds.
                return _EPOCH + timedelta(microseconds=int(text[:25]) // 1000)
            moment = datetime.fromisoformat(text)
        except (ValueError, OverflowError):
            continue
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    raise refused_record(line, "a record has no time, so that its place among the others is not known")


def _id(given: object) -> str:
    return str(given or "").removeprefix("0x").lower()


def _objects(given: object, line: int) -> list[dict[str, Any]]:
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise refused_record(line, "it is no export of OTLP as JSON: a list of objects was expected")
    return given


def _decoded(line: str) -> dict[str, Any] | None:
    """A record, or an export of records; None where the line is neither."""
    try:
        data = json.loads(line, object_pairs_hook=JsonObject) if len(line) <= _MAX_LINE else None
    except (ValueError, RecursionError):
        return None
    known = isinstance(data, dict) and not {"attributes", *_EXPORTS}.isdisjoint(data) and "messages" not in data
    return data if known else None


def refused_record(line: int, reason: str) -> ConfigError:
    """The error for a record that cannot be replayed, with its line."""
    return ConfigError(f"line {line}: {reason}", option="conversations")
