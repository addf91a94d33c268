"""Types beyond numbers and texts: dates, spans, amounts with units, lists, records, classes of the user's."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from hypothesis import given
from properties import examples
from pydantic import AliasChoices, BaseModel, Field, RootModel, field_validator
from tables import all_rows

from stepguard.errors import ConfigError, InexactError, ValueRefused
from stepguard.language.models import to_python, value_type_of
from stepguard.language.periods import Period
from stepguard.language.quantities import Amount
from stepguard.language.records import Record, RecordType
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value, show_value

pytest.importorskip("pint")  # the harness makes quantities
from values_harness import typed_values

_T = TypeVar("_T")
parse = ValueType.parse
ITEM = RecordType("Item", (("what", parse("text")), ("amount", parse("money(EUR)")), ("spent", parse("date"))))
ITEMS = parse("list of Item", records={"Item": ITEM})
TAXI = {"what": "taxi", "amount": "12.50", "spent": "2026-01-02"}


@examples(400)
@given(typed_values)
def test_a_value_that_is_written_is_read_as_itself(pair: tuple[ValueType, Value]) -> None:
    """Of every type, what is written reads as the same value, is held, accepted and shown on one line."""
    kind, value = pair
    assert kind.holds(value)
    assert kind.read(kind.write(value)) == value
    assert kind.convert(value) == value
    assert pickle.loads(pickle.dumps(value)) == value == copy.deepcopy(value)
    assert hash(value) == hash(copy.deepcopy(value))
    if kind.structured:
        assert kind.accept(json.loads(kind.write(value))) == value
        assert "\n" not in kind.write(value)
        json.loads(show_value(value))


@examples(200)
@given(typed_values)
def test_the_notation_of_a_type_says_all_of_it(pair: tuple[ValueType, Value]) -> None:
    """A type as text, parsed again, is the same type; a record by its name."""
    kind = pair[0]
    inner = kind
    while inner.items is not None:
        inner = inner.items
    records = {} if inner.record is None else {inner.record.name: inner.record}
    assert parse(str(kind), records=records) == kind


@all_rows(
    "kind, text, value",
    [
        *(("date", "31 January 2026", date(2026, 1, 31)), ("date", "28/11/2026", date(2026, 11, 28))),
        *(("time", "2:30 pm", time(14, 30)), ("time", "12 am", time(0)), ("time", "23:59:58", time(23, 59, 58))),
        *(("duration", "1 h 30 min", timedelta(minutes=90)), ("duration", "P1W", timedelta(days=7))),
        *(("period", "1 year and 6 months", Period(months=18)), ("period", "5 business days", Period(working_days=5))),
        *(("period", "2 weeks", Period(days=14)), ("quantity(kg)", "5000 g", Amount(5, (("kilogram", 1),)))),
        ("quantity(ml, 1)", "2.5 mL", Amount(Fraction(5, 2), (("milliliter", 1),))),
        *(('quantity("IU")', "5 IU", Amount(5, (("'IU'", 1),))), ("list of integer", '[1, "2"]', (1, 2))),
        ("list of percent", '["28%", 5]', (Fraction(7, 25), Fraction(1, 20))),
        ("list of list of boolean", "[[true], []]", ((True,), ())),
    ],
)
def test_what_is_written_in_one_of_its_notations_is_read(kind: str, text: str, value: Value) -> None:
    """A value may be written in any notation that can be read in one way only."""
    assert parse(kind).read(text) == value


@all_rows(
    "kind, text, reason",
    [
        *(("date", "03/04/2026", "day first, or the month"), ("date", "2026-02-30", "no such day")),
        *(("date", "2026-01-31T10:00", "a date and a time"), ("time", "24:00", "no such time")),
        *(("time", "13 pm", "no 13"), ("time", "14", "such as 14:30"), ("time", "14:30Z", "such as 14:30")),
        *(("duration", "2 months", "no fixed length"), ("duration", "1:30", "a duration was expected")),
        *(("period", "5", "a period was expected"), ("period", "1 month 2 months", "each once")),
        *(("period", "1 working day 1 month", "large to small"), ("time", "9.05", "such as 14:30")),
        *(("period", "3 working months", "a period was expected"), ("quantity(kg)", "5", "with its unit")),
        ("quantity(kg)", "5 m", "do not measure the same"),
        *(("quantity(kg, 2)", "1.234 kg", "more than 2 decimal places"), ("list of integer", "1, 2", "JSON array")),
        *(("list of integer", '{"a": 1}', "a list was expected"), ("list of integer", "[1.5]", "[0]")),
        *(("list of integer", "[null]", "found null"), ("list of integer", "[true]", "found a truth value")),
        *(("list of date", "[20260131]", "found a number"), ("list of text", '["\\ud800"]', "half of a character")),
        *(("list of integer", "[NaN]", "JSON"), ("list of integer", "[1] [2]", "JSON")),
    ],
)
def test_what_could_be_read_in_two_ways_or_none_is_refused(kind: str, text: str, reason: str) -> None:
    """Nothing is guessed; the reason says what was found, in a list also where."""
    with pytest.raises(ValueRefused) as refused:
        parse(kind).read(text)
    assert reason in str(refused.value)


@all_rows(
    "change, reason",
    [
        ({"amount": None}, "found null"),
        ({"amount": "12.505"}, "[0].amount: 12.505 has more than 2 decimal places"),
        ({"amount": "12.50 USD"}, "an amount in EUR"),
        ({"spent": 20260102}, "[0].spent"),
        ({"tip": 1}, "Item has no field 'tip'"),
        ({"what": ["taxi"]}, "[0].what"),
    ],
)
def test_a_record_with_a_wrong_leaf_is_refused_with_its_place(change: dict[str, Any], reason: str) -> None:
    """A reply's record is taken with all its fields, each right, or not at all."""
    with pytest.raises(ValueRefused) as refused:
        ITEMS.read(json.dumps([{**TAXI, **change}]))
    assert reason in str(refused.value)


def test_a_field_that_is_missing_or_stands_twice_is_named() -> None:
    """No field of a record is left out, and none is silently the last of two."""
    with pytest.raises(ValueRefused, match=r"\[1\]: the field 'spent' of Item is missing"):
        ITEMS.read(json.dumps([TAXI, {"what": "bus", "amount": 2}]))
    with pytest.raises(ValueRefused, match="'what' stands twice"):
        ITEMS.read('[{"what": "a", "what": "b", "amount": 2, "spent": "2026-01-02"}]')


class Urgency(Enum):
    """How soon."""

    LOW = "low"
    HIGH = "high"


class Item(BaseModel):
    """An item of a claim."""

    what: str
    amount: Annotated[Decimal, "money(EUR)"]
    rate: Decimal = Field(decimal_places=3)
    spent: date
    share: float = Field(ge=0)

    @field_validator("what")
    @classmethod
    def known(cls, what: str) -> str:
        """Refuse what nobody pays for."""
        if what == "yacht":
            raise ValueError("nobody pays for that")
        return what.strip()


class Claim(BaseModel):
    """A claim."""

    applicant: str
    items: list[Item]
    urgency: Urgency
    route: tuple[str, ...]
    kind: Literal["travel", "other"]


@dataclass
class Visit:
    """A dataclass."""

    at: time
    lasted: timedelta


GIVEN = {
    "applicant": "Ann",
    "items": [{"what": "taxi ", "amount": 12.5, "rate": "0.125", "spent": "2026-01-02", "share": "0.1"}],
    "urgency": "high",
    "route": ["Lyon", "Paris"],
    "kind": "travel",
}


def test_a_pydantic_model_is_a_record_type_and_comes_out_as_its_instance() -> None:
    """Fields become typed fields; the value is exact, and the instance is the model's own."""
    kind = parse(Claim)
    value = kind.read(json.dumps(GIVEN))
    assert isinstance(value, Record)
    assert value["items"] == (
        Record(
            {
                "what": "taxi ",
                "amount": Decimal("12.50"),
                "rate": Decimal("0.125"),
                "spent": date(2026, 1, 2),
                "share": Fraction(1, 10),
            }
        ),
    )
    claim = to_python(kind, value)
    assert claim == Claim.model_validate(GIVEN)
    assert isinstance(claim, Claim)
    assert (claim.urgency, claim.items[0].what) == (Urgency.HIGH, "taxi")
    assert kind.accept(claim) == kind.accept(claim.model_dump())


def test_a_validator_of_the_model_is_one_more_check() -> None:
    """What the model does not take is no value of the type, read, accepted or computed."""
    kind = value_type_of(list[Item])
    right = {"what": "taxi", "amount": 1, "rate": "0.5", "spent": "2026-01-02", "share": 1}
    assert kind.read(json.dumps([right]))
    for change, reason in (({"what": "yacht"}, "nobody pays"), ({"share": -1}, "greater than or equal to 0")):
        with pytest.raises(ValueRefused) as refused:
            kind.read(json.dumps([{**right, **change}]))
        assert reason in str(refused.value)
        assert str(refused.value).count("[0]") == 1


def test_a_dataclass_is_a_record_type_too() -> None:
    """Its instances go in and come out."""
    kind = parse(Visit)
    visit = Visit(time(14, 30), timedelta(minutes=5))
    assert to_python(kind, kind.accept(visit)) == visit
    assert kind.write(kind.accept(visit)) == '{"at": "14:30", "lasted": "5 minutes"}'


class _Wrapped(BaseModel, Generic[_T]):
    """A generic model whose fields have other names in its data."""

    inner: _T = Field(alias="Inner")
    count: int = Field(validation_alias=AliasChoices("Count", "n"))


def test_a_model_is_given_its_fields_by_the_names_that_it_takes_them_by() -> None:
    """In a reply and in expressions they have those of Python."""
    kind = parse(_Wrapped[int])
    wrapped = to_python(kind, kind.read('{"inner": 5, "count": 2}'))
    assert wrapped == _Wrapped[int].model_validate({"Inner": 5, "n": 2})
    assert str(kind) == "Wrapped_int"


class _Tree(BaseModel):
    inner: list[_Tree]


class _Event(BaseModel):
    at: datetime


class _Note(BaseModel):
    text: str | None


class _Empty(BaseModel):
    pass


@all_rows(
    "annotation, reason",
    [
        (_Tree, "_Tree.inner: _Tree contains itself"),
        (_Event, "_Event.at: a datetime is a date and a time"),
        (_Note, "_Note.text: str | None may be one thing or another"),
        (_Empty, "0 fields"),
        (RootModel[list[int]], "use what is inside it"),
        (dict[str, int], "no value has the type dict[str, int]"),
        (complex, "no value has the type complex"),
        (list[bytes], "no value has the type bytes"),
    ],
)
def test_an_annotation_that_no_value_can_have_is_refused_by_name(annotation: Any, reason: str) -> None:
    """The class, the field and its annotation are named."""
    with pytest.raises(ConfigError) as refused:
        parse(annotation)
    assert reason in str(refused.value)


@all_rows(
    "kind, given, reason",
    [
        *(("date", datetime(2026, 1, 31, tzinfo=UTC), "give its .date()"), ("date", 20260131, "found int")),
        *(("time", time(14, 30, tzinfo=UTC), "no time zone"), ("duration", 90, "found int")),
        *(("quantity(kg)", 5, "needs its unit"), ("period", timedelta(hours=5), "not whole days")),
        *(("list of text", "abc", "JSON array"), ("list of text", {"a"}, "a list was expected, found set")),
        *(("list of integer", [True], "[0]"), ("list of percent", [0.5], "a ratio")),
    ],
)
def test_what_a_caller_gives_is_taken_for_what_it_is(kind: str, given: Any, reason: str) -> None:
    """A value of another kind is refused, and never converted by guess."""
    with pytest.raises(ValueRefused) as refused:
        parse(kind).accept(given)
    assert reason in str(refused.value)


@all_rows(
    "kind, value",
    [("date", "2026-01-31"), ("number", date(2026, 1, 31)), ("list of text", "a"), ("quantity(kg)", 5), ("text", ())],
)
def test_a_value_of_another_kind_is_not_converted(kind: str, value: Any) -> None:
    """What an expression comes to has the kind of the declared type."""
    with pytest.raises(InexactError, match="was expected"):
        parse(kind).convert(value)


def test_an_amount_is_converted_to_the_unit_of_its_type() -> None:
    """Exactly, and rounded where the type declares places."""
    grams = Amount(1234, (("gram", 1),))
    assert parse("quantity(kg)").convert(grams) == Amount(Fraction(617, 500), (("kilogram", 1),))
    assert parse("quantity(kg, 1)").write(parse("quantity(kg, 1)").convert(grams)) == "1.2 kg"


@all_rows(
    "text",
    ["list", "list of", "record", "quantity", "quantity()", "quantity(foo)", "quantity(kg,)", "date(2)", "list of Item",
     "list of " * 12 + "text", 'quantity("kg")'],
)  # fmt: skip
def test_a_text_that_is_no_type_is_refused(text: str) -> None:
    """A type that is not known, not complete or nested without end is an error of the procedure."""
    with pytest.raises(ConfigError):
        parse(text)


@pytest.mark.parametrize("fields", [(), (("a b", parse("text")),), (("a", parse("text")), ("a", parse("date")))])
def test_a_record_type_has_fields_with_names_of_their_own(fields: Any) -> None:
    """No field, an odd name, or one name for two fields is refused."""
    with pytest.raises(ConfigError):
        RecordType("Item", fields)
