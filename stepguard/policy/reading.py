"""Read arguments and results as values: arguments strictly, since an agent wrote them; results as far as declared.

An argument is taken as the one value that it says, and goes on to the tool as this policy has read it. What could be
read in two ways is refused by name: text for a truth value, digits that are no plain decimal, further arguments. Of a
result the declared fields are read, and one that is missing or of another type is not there for any rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from typing import Any, Final, NoReturn, cast
from unicodedata import normalize

from stepguard.errors import EvaluationError, ValueRefused
from stepguard.language.digits import format_exact
from stepguard.language.records import Record
from stepguard.language.strict_json import JsonNumber, JsonObject, decode
from stepguard.language.unseen import has_unseen, without_unseen
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value, encodable, show_value, to_exact
from stepguard.policy.moments import MOMENT, read_moment

# What an agent writes as text: no exponent, no plus sign and no leading zero, which the tool may read otherwise.
_PLAIN_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,29})(?:\.[0-9]{1,30})?")
# What stands as a number in JSON; bounded, since its digits may be an agent's.
_NUMBER: Final = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][-+]?[0-9]{1,3})?")
_CLOCK_FORMS: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    "date": (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), "2026-01-31"),
    "time": (re.compile(r"[0-9]{2}:[0-9]{2}(?::[0-9]{2})?"), "14:30"),
}
"""How an agent writes dates and times, with an example."""
_ALIKE: Final = {
    **dict.fromkeys((*range(0x2010, 0x2016), 0x2212), "-"), **dict.fromkeys((0x2018, 0x2019, 0x2BC), "'"), 0x2800: None,
}  # fmt: skip
"""Dashes, apostrophes and blanks that look like the plain ones, but that NFKC does not normalise."""
_MAX_POWER: Final = 30
"""A number of ten to this power, or to as little, is no amount of anything."""
_MAX_DEPTH: Final = 12
_MAX_TEXT: Final = 100_000

Defaults = Mapping[str, Mapping[str, Value]]
"""For each record by its name, the fields that may be missing, with what holds then."""


def result_data(given: object) -> object:
    """Decode a tool's result as JSON whose numbers are still text; text that is no JSON stays text."""
    if isinstance(given, str):
        try:
            return decode(given)
        except ValueError:
            return given
    return given


def folded(value: Value) -> Value:
    """A value as it is counted: texts that a reader takes for the same are one."""
    if isinstance(value, str):
        # The same as below for plain text, many times faster.
        if value.isascii() and value.isprintable():
            return value.lower().replace(" ", "")
        return "".join(without_unseen(normalize("NFKC", value)).translate(_ALIKE).casefold().split())
    if isinstance(value, tuple):
        return tuple(map(folded, value))
    if isinstance(value, Record):
        return Record({key: folded(value[key]) for key in value.keys()})  # noqa: SIM118 - one that lacks fields refuses
    return cast(Value, to_exact(value))


class PartialRecord(Record):
    """A record of a result that lacks a declared field: its fields can be read, and as a whole it equals nothing."""

    __slots__ = ()

    def keys(self) -> NoReturn:
        """Refuse what would compare it. Raises EvaluationError: always."""
        raise EvaluationError("a record is compared that lacks a field, or holds one of another type")

    def __eq__(self, other: object) -> bool:
        return self.keys()

    def __hash__(self) -> int:
        return self.keys()


def is_whole(value: Value | None) -> bool:
    """Whether a result is a value of its type in which nothing that is declared is missing."""
    if isinstance(value, tuple):
        return all(map(is_whole, value))
    if isinstance(value, Record):
        return type(value) is not PartialRecord and all(is_whole(value[key]) for key in value)
    return value is not None


class Reader:
    """Reads JSON data as values of declared types.

    Args:
        defaults: the fields of records that may be missing.
        zone: the time zone of moments that name none.
    """

    def __init__(self, defaults: Defaults, zone: tzinfo) -> None:
        self.defaults = defaults
        self.zone = zone

    def argument(self, kind: ValueType, given: object, place: str = "", depth: int = 0) -> tuple[Value, object]:
        """The value of an argument, or of a part of one at a place, and the JSON data that the tool is given for it.

        Raises ValueRefused: it is none of this type, or says it in a way that could be read in another one.
        """
        if depth > _MAX_DEPTH:
            raise ValueRefused("nested too deeply", text=place)
        if isinstance(given, Enum):
            given = given.value
        if kind == MOMENT:
            if not isinstance(given, str) or isinstance(given, JsonNumber):
                raise _refused(place, "a date and a time such as 2026-01-31T14:30:00Z was expected")
            moment = read_moment(given, self.zone)
            written = datetime.fromisoformat(given)
            # The tool is not left to choose the zone of one that names none.
            return moment, given if written.tzinfo is not None else written.replace(tzinfo=self.zone).isoformat()
        if kind.items is not None:
            if not isinstance(given, list | tuple):
                raise _refused(place, f"a list was expected, found {_kind_of_data(given)}")
            pairs = [self.argument(kind.items, each, f"{place}[{at}]", depth + 1) for at, each in enumerate(given)]
            return tuple(value for value, _ in pairs), [data for _, data in pairs]
        if kind.record is not None:
            return self._record_argument(kind, given, place, depth)
        return self._plain_argument(kind, given, place)

    def _record_argument(self, kind: ValueType, given: object, place: str, depth: int) -> tuple[Value, object]:
        assert kind.record is not None
        if not isinstance(given, Mapping):
            raise _refused(place, f"an object was expected, found {_kind_of_data(given)}")
        if isinstance(given, JsonObject) and given.repeated:
            raise _refused(place, f"{min(given.repeated)!r} stands twice")
        known = self.defaults.get(kind.record.name, {})
        values: dict[str, Value] = {}
        data: dict[str, object] = {}
        for key in given:
            if not isinstance(key, str) or kind.record.get(key) is None:
                raise _refused(place, f"{str(key)[:40]!r} is no field of it")
        for key, inner in kind.record.fields:
            if key in given:
                values[key], data[key] = self.argument(inner, given[key], f"{place}.{key}", depth + 1)
            elif key in known:
                values[key] = known[key]
            else:
                raise _refused(place, f"{key!r} is missing")
        return Record(values), data

    def _plain_argument(self, kind: ValueType, given: object, place: str) -> tuple[Value, object]:
        number = _number_text(given)
        try:
            if kind.numeric:
                if number is not None:
                    value = kind.accept(f"{number}%" if kind.kind == "percent" else number)
                    return value, _json_number(kind, value)
                sign = "%" if kind.kind == "percent" else ""
                if (
                    isinstance(given, str)
                    and given.endswith(sign)
                    and _PLAIN_NUMBER.fullmatch(given.removesuffix(sign))
                ):
                    value = kind.accept(given)
                    _json_number(kind, value)  # text, too, is a number to the tool
                    return value, given if sign else format_exact(cast(Any, to_exact(value)))
                raise _refused(place, f"a number such as 12.50 was expected, found {_kind_of_data(given)}")
            if kind.kind == "boolean":
                if not isinstance(given, bool):
                    raise _refused(place, f"true or false was expected, found {_kind_of_data(given)}")
                return given, given
            if not isinstance(given, str) or isinstance(given, JsonNumber):
                raise _refused(place, f"text was expected, found {_kind_of_data(given)}")
            given = str.__str__(given)  # a class of texts may show them otherwise
            if len(given) > _MAX_TEXT or not encodable(given):
                raise _refused(place, "the text is too long, or holds half of a character")
            if kind.kind == "text":
                if has_unseen(given):
                    raise _refused(place, "the text holds a character that cannot be seen")
                return given, given
            if kind.kind == "one_of":
                if given not in kind.options:
                    raise _refused(place, f"one of {', '.join(kind.options)} was expected")
                return given, given
            pattern, example = _CLOCK_FORMS.get(kind.kind, (None, ""))
            if pattern is not None and not pattern.fullmatch(given):
                raise _refused(place, f"a {kind.kind} such as {example} was expected")
            if not given.isascii():
                raise _refused(place, "plain letters and digits were expected")
            value = kind.accept(given)
        except ValueRefused as error:
            raise _refused(place, error.reason) from None
        return value, kind.write(value)

    def result(self, kind: ValueType, given: object, depth: int = 0) -> Value | None:
        """Read the declared part of a result; None where it is no value of its type."""
        if given is None or depth > _MAX_DEPTH:
            return None
        if kind == MOMENT:
            try:
                return read_moment(given, self.zone)
            except ValueRefused:
                return None
        if kind.items is not None:
            return self._list_result(kind.items, given, depth)
        if kind.record is not None:
            if not isinstance(given, Mapping) or (isinstance(given, JsonObject) and given.repeated):
                return None
            known = self.defaults.get(kind.record.name, {})
            values: dict[str, Value] = {}
            left_out = 0
            for key, inner in kind.record.fields:
                # Null, too: many APIs write what is not there so.
                if given.get(key) is None and key in known:
                    values[key] = known[key]
                    left_out += 1
                elif (value := self.result(inner, given.get(key), depth + 1)) is not None:
                    values[key] = value
            if len(values) == len(kind.record.fields):
                return Record(values)
            return PartialRecord(values) if len(values) > left_out else None  # of an error nothing is read
        return _plain_result(kind, given)

    def _list_result(self, kind: ValueType, given: object, depth: int) -> Value | None:
        keyed = kind.record is not None and kind.record.get("key") is not None and isinstance(given, Mapping)
        # A repeated key would silently drop a record.
        if keyed and not (isinstance(given, JsonObject) and given.repeated):
            assert isinstance(given, Mapping)
            # A mapping by identifiers, as many APIs have it, read as a list whose records have a `key`.
            given = [{**each, "key": key} if isinstance(each, Mapping) else None for key, each in given.items()]
        if not isinstance(given, list | tuple):
            return None
        read = [self.result(kind, each, depth + 1) for each in given]
        # One bad item spoils the list: without it, a sum or a count over the rest would be wrong.
        return None if any(each is None for each in read) else tuple(cast("list[Value]", read))


def _plain_result(kind: ValueType, given: object) -> Value | None:
    try:
        number = _number_text(given)
        if number is not None:
            if kind.kind == "text":
                # Some tools send identifiers as numbers; one such as 1.0 could be written in several ways.
                return str(given) if str(given).isdecimal() else None
            # A bare number for a percentage: 5 may be 5% or 500%.
            if not kind.numeric or kind.kind == "percent":
                return None
            return kind.accept(Decimal(number))
        # A datetime is a date to Python: its time and zone would be dropped.
        if isinstance(given, datetime):
            return None
        if kind.kind == "text":
            return given if isinstance(given, str) else None
        if kind.kind == "one_of":
            return given if isinstance(given, str) and given in kind.options else None
        if isinstance(given, bool):
            return given if kind.kind == "boolean" else None
        if isinstance(given, str):
            return None if kind.kind == "boolean" else kind.accept(given)
        return kind.accept(given) if isinstance(given, date | time | timedelta) else None
    except ValueRefused:
        return None


def _number_text(given: object) -> str | None:
    """The digits of a JSON number, None for anything else."""
    if isinstance(given, bool):
        return None
    if isinstance(given, JsonNumber):
        text = str(given)
    elif isinstance(given, int):
        text = str(given) if abs(given) < 10**_MAX_POWER else ""
    elif isinstance(given, float | Decimal):
        text = str(given)
    else:
        return None
    if not _NUMBER.fullmatch(text) or abs((number := Decimal(text)).adjusted()) >= _MAX_POWER:
        raise ValueRefused("no number that is read here", text=text[:40])
    return format_exact(cast(Any, to_exact(number))) if "e" in text.lower() else text


def _json_number(kind: ValueType, value: Value) -> object:
    exact = to_exact(value)
    # A percentage goes back as the number that came: 100% is 1 to the rules, and 100 to the tool.
    if type(exact) is int:
        return exact if kind.kind != "percent" else exact * 100
    text = kind.write(value).rstrip("%") if kind.kind == "percent" else format_exact(cast(Any, exact))
    # A fraction has no number in JSON, so the tool gets text.
    if "/" in text:
        return text
    number = json.loads(text)
    if isinstance(number, float) and Decimal(str(number)) != Decimal(text):  # 99.99999999999999999 would become 100
        raise ValueRefused("more digits than a number of JSON keeps", text=text[:40])
    return number


def json_value(kind: ValueType, value: Value) -> object:
    """A plain value of a declared type as a tool is given it."""
    if isinstance(value, bool | str):
        return value
    return _json_number(kind, value) if kind.numeric else kind.write(value)


def _refused(place: str, reason: str) -> ValueRefused:
    where = place.removeprefix(".")
    return ValueRefused(f"{where}: {reason}" if where else reason, text="")


def _kind_of_data(data: object) -> str:
    if data is None:
        return "null"
    if isinstance(data, bool):
        return "a truth value"
    if isinstance(data, JsonNumber | int | float | Decimal):
        return "a number"
    if isinstance(data, str):
        return "text"
    return "a list" if isinstance(data, list | tuple) else "an object"


def shown_argument(value: Value) -> str:
    """A value as it stands in the call that an agent is told to make."""
    shown = show_value(value)
    return json.dumps(shown, ensure_ascii=False) if isinstance(value, str) else shown
