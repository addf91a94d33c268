"""Which operation has a value, of which type: of every two kinds of values, and of every one."""

from __future__ import annotations

import re
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Final

import pytest
from tables import all_rows

from stepguard.errors import EvaluationError, ProcedureError
from stepguard.language.expressions import Expression
from stepguard.language.periods import Period
from stepguard.language.quantities import Amount
from stepguard.language.records import Record, RecordType
from stepguard.language.terms.evaluation import evaluate_term
from stepguard.language.terms.measure_arithmetic import same_value
from stepguard.language.terms.type_inference import type_of
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value
from stepguard.procedure.notation.parsing import parse_term

pytest.importorskip("pint")

parse = ValueType.parse
SINGLE: Final[dict[str, tuple[ValueType, Value]]] = {
    "n": (parse("number"), 4),
    "eur": (parse("money(EUR)"), Decimal("2.50")),
    "usd": (parse("money(USD)"), Decimal("1.00")),
    "day": (parse("date"), date(2026, 1, 31)),
    "clock": (parse("time"), time(8, 30)),
    "span": (parse("duration"), timedelta(hours=1)),
    "months": (parse("period"), Period(months=2)),
    "kg": (parse("quantity(kg)"), Amount(5, (("kilogram", 1),))),
    "g": (parse("quantity(g)"), Amount(50, (("gram", 1),))),
    "m": (parse("quantity(m)"), Amount(2, (("meter", 1),))),
    "warm": (parse("quantity(°C)"), Amount(20, (("degree_Celsius", 1),))),
    "word": (parse("text"), "small"),
    "size": (parse("one_of(small, large)"), "small"),
    "flag": (parse("boolean"), True),
    "ns": (parse("list of number"), (1, 2, 3, 4, 5)),
    "days": (parse("list of date"), (date(2026, 1, 31),)),
    "rec": (ValueType(kind="record", record=RecordType("Rec", (("a", parse("number")),))), Record({"a": 1})),
}
TYPES: Final = {name: kind for name, (kind, _) in SINGLE.items()} | {
    f"{name}_list": ValueType(kind="list", items=kind) for name, (kind, _) in SINGLE.items()
}
VALUES: Final = {name: value for name, (_, value) in SINGLE.items()} | {
    f"{name}_list": (value, value) for name, (_, value) in SINGLE.items()
}
NAMES: Final = {str(kind): name for name, (kind, _) in SINGLE.items()} | {"integer": "count", "boolean": "truth"}
"""Types are told in the tables below by the name of their variable."""

UNITS: Final = "kg g m"
LIKE: Final = "n n, n eur, n usd, eur n, eur eur, usd n, usd usd"
PAIRS: Final[dict[str, dict[str, str]]] = {
    "+": {
        "n": "n n", "eur": "n eur, eur n, eur eur", "usd": "n usd, usd n, usd usd",
        "day": "day span, day months, span day, months day", "clock": "clock span, span clock", "span": "span span",
        "months": "span months, months span, months months", "kg": "kg kg, kg g", "g": "g kg, g g", "m": "m m",
    },
    "-": {
        "n": "n n", "eur": "n eur, eur n, eur eur", "usd": "n usd, usd n, usd usd",
        "day": "day span, day months", "clock": "clock span", "span": "day day, clock clock, span span",
        "months": "span months, months span, months months", "kg": "kg kg, kg g", "g": "g kg, g g", "m": "m m",
    },
    "*": {
        "n": "n n, n eur, n usd, eur n, eur usd, usd n, usd eur", "span": "n span, span n",
        "months": "n months, months n", "kg": "n kg, kg n", "g": "n g, g n", "m": "n m, m n",
        "quantity(kg*s)": "span kg, kg span", "quantity(g*s)": "span g, g span", "quantity(m*s)": "span m, m span",
        "quantity(kg^2)": "kg kg", "quantity(g*kg)": "kg g, g kg", "quantity(kg*m)": "kg m, m kg",
        "quantity(g^2)": "g g", "quantity(g*m)": "g m, m g", "quantity(m^2)": "m m",
    },
    "/": {
        "n": f"{LIKE}, eur usd, usd eur, span span, kg kg, kg g, g kg, g g, m m", "span": "span n",
        "kg": "kg n", "g": "g n", "m": "m n",
        "quantity(kg^-1)": "n kg", "quantity(g^-1)": "n g", "quantity(m^-1)": "n m",
        "quantity(s/kg)": "span kg", "quantity(s/g)": "span g", "quantity(s/m)": "span m",
        "quantity(kg/s)": "kg span", "quantity(g/s)": "g span", "quantity(m/s)": "m span",
        "quantity(kg/m)": "kg m", "quantity(g/m)": "g m", "quantity(m/kg)": "m kg", "quantity(m/g)": "m g",
    },
    "//": {"n": f"{LIKE}, span span, kg kg, kg g, g kg, g g, m m"},
    "%": {
        "n": "n n, n eur, n usd", "eur": "eur n, eur eur", "usd": "usd n, usd usd", "span": "span span",
        "kg": "kg kg, kg g", "g": "g kg, g g", "m": "m m",
    },
    "^": {"n": "n n"},
    "<": {
        "truth": f"{LIKE}, day day, clock clock, span span, kg kg, kg g, g kg, g g, m m, warm warm",
    },
    "==": {
        "truth": f"{LIKE}, day day, clock clock, span span, kg kg, kg g, g kg, g g, m m, warm warm, months months, "
        "word word, word size, size word, size size, flag flag, ns ns, days days, rec rec",
    },
    "in": {"truth": "n ns, eur ns, usd ns, day days, word word, word size, size word, size size"},
    "max": {
        "n": "n n", "eur": "n eur, eur n, eur eur", "usd": "n usd, usd n, usd usd", "day": "day day",
        "clock": "clock clock", "span": "span span", "kg": "kg kg, kg g", "g": "g kg, g g", "m": "m m",
        "warm": "warm warm",
    },
    "if": {
        "n": "n n", "eur": "n eur, eur n, eur eur", "usd": "n usd, usd n, usd usd", "day": "day day",
        "clock": "clock clock", "span": "span span", "months": "span months, months span, months months",
        "kg": "kg kg, kg g", "g": "g kg, g g", "m": "m m", "warm": "warm warm", "size": "size size",
        "word": "word word, word size, size word", "truth": "flag flag", "ns": "ns ns", "days": "days days",
        "rec": "rec rec",
    },
}  # fmt: skip
"""Operator -> type -> the pairs of which it gives a value of that type; of all others it gives none."""

ORDERED: Final = "n eur usd day clock span kg g m warm"
EACH: Final[dict[str, dict[str, str]]] = {
    "-x": {"each": "n eur usd span months kg g m"},
    "abs(x)": {"each": "n eur usd span kg g m"},
    "round(x, 1)": {"each": "n eur usd kg g m"},
    "trunc(x)": {"each": "n eur usd kg g m"},
    "floor(x)": {"each": "n eur usd kg g m"},
    "ceil(x)": {"each": "n eur usd kg g m"},
    "sqrt(x ^ 2)": {"n": "n eur usd"},
    "x ^ 2": {"n": "n", "quantity(kg^2)": "kg", "quantity(g^2)": "g", "quantity(m^2)": "m"},
    "x ^ n": {"n": "n"},
    "2 ^ x": {"n": "n"},
    "not x": {"truth": "flag"},
    "x or flag": {"truth": "flag"},
    "1 if x else 2": {"n": "flag"},
    "{a: x}.a": {"each": " ".join(SINGLE)},
    "[x][0]": {"each": " ".join(SINGLE)},
    "x_list[0]": {"each": " ".join(SINGLE)},
    "x.a": {"n": "rec"},
    "x[0]": {"n": "ns", "day": "days"},
    "ns[x]": {"n": "n"},
    "x_list.a": {"ns": "rec"},
    "sum of x_list": {"each": "n eur usd span kg g m"},
    "sum of (y * 2) for y in x_list": {"n": "n eur usd", "span": "span", "kg": "kg", "g": "g", "m": "m"},
    "count of x_list": {"count": " ".join(SINGLE)},
    "count of y for y in x_list where y": {"count": "flag"},
    "min of x_list": {"each": ORDERED},
    "max of x_list": {"each": ORDERED},
    "min(x, x, x)": {"each": ORDERED},
    "all of x_list": {"truth": "flag"},
    "any of x_list": {"truth": "flag"},
    "first of x_list": {"each": " ".join(SINGLE)},
    "x in x_list": {"truth": " ".join(SINGLE)},
    "x_list == x_list": {"truth": " ".join(SINGLE)},
    "x_list < x_list": {},
    "sum of x": {"n": "ns"},
}
"""Expression -> type -> the variables with which it is of that type, `each` its own; with all others it is none."""


def check(text: str, wanted: str | None, *, known_to_types_alone: bool) -> None:
    """Hold the type and the value of an expression against the type that it is to have, None for none."""
    tree = parse_term(text)
    if wanted is not None:
        kind = type_of(tree, TYPES)
        assert NAMES.get(str(kind), str(kind)) == wanted
        found = [value for days in (0, 2) if (value := _evaluated(tree, days)) is not None]
        if "months" not in text and text != "ns[eur]":  # an hour is no period, and there is no item 2.5
            assert found
            assert all(same_value(kind.convert(value), value) for value in found)
        return
    with pytest.raises(ProcedureError):
        type_of(tree, TYPES)
    assert known_to_types_alone or _evaluated(tree, 0) is None is _evaluated(tree, 2)


def _evaluated(tree: Expression, days: int) -> Value | None:
    """The value where the duration is an hour, or so many days, of which there is a sum with a date."""
    span = timedelta(days=days) if days else VALUES["span"]
    try:
        return evaluate_term(tree, {**VALUES, "span": span})
    except EvaluationError:
        return None


@pytest.mark.parametrize("sign", PAIRS)
@pytest.mark.parametrize("left", SINGLE)
def test_an_operation_on_two_values_has_the_type_of_the_table_or_none(sign: str, left: str) -> None:
    """What is of no type has no value either, but for what the values do not say: their currency."""
    wanted = {pair: kind for kind, pairs in PAIRS[sign].items() for pair in pairs.split(", ")}
    written = {"max": "max({}, {})", "if": "{} if flag else {}"}.get(sign, f"{{}} {sign} {{}}")
    for right in SINGLE:
        # A number to a power, a list of another kind and a choice have values that are known beforehand to be none.
        alone = sign in ("^", "if") or bool({"eur", "usd"} & {left, right}) or {left, right} == {"ns", "days"}
        check(written.format(left, right), wanted.get(f"{left} {right}"), known_to_types_alone=alone)


@pytest.mark.parametrize("text", EACH)
def test_an_operation_on_one_value_has_the_type_of_the_table_or_none(text: str) -> None:
    """The same of functions, powers, aggregates, items and fields."""
    wanted = {name: name if kind == "each" else kind for kind, names in EACH[text].items() for name in names.split()}
    wanted = {name: "truth" if kind == "flag" else kind for name, kind in wanted.items()}
    for name in SINGLE:
        alone = name in ("eur", "usd", "warm") or text in ("x ^ 2", "x ^ n")
        check(re.sub(r"\bx(?=\b|_)", name, text), wanted.get(name), known_to_types_alone=alone)


_COUNTS = ": say what the number counts, such as `30 days`"
_MEASURE = ": give the measure as a number, such as `(due - today) / 1 day` or `weight / 1 kg`"
_OFFSET = (
    "'warm' is a temperature in °C, which is compared and not computed with, since its zero is not nothing: "
    "use quantity(K)"
)
WITH_KELVINS = ("{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} // {}", "{} % {}")
CLASHES = (
    (
        "kg",
        "+",
        "5",
        "adds 'kg', which is quantity(kg), and '5', which is number: give the number its unit, such as `5 kg`",
    ),
    (
        "5",
        "-",
        "g",
        "subtracts '5', which is number, and 'g', which is quantity(g): give the number its unit, such as `5 g`",
    ),
    (
        "kg",
        "-",
        "m",
        "subtracts 'kg', which is quantity(kg), and 'm', which is quantity(m): they do not measure the same",
    ),
    ("day", "*", "2", f"multiplies 'day', which is date, and '2', which is number{_COUNTS} or `n * 1 day`"),
    (
        *("span", "//", "2"),
        f"divides 'span', which is duration, and '2', which is number{_COUNTS}, or divide "
        "the duration, `(due - today) / 1 day`",
    ),
    ("eur", "/", "kg", f"divides 'eur', which is {TYPES['eur']}, and 'kg', which is quantity(kg){_MEASURE}"),
    ("span", "*", "usd", f"multiplies 'span', which is duration, and 'usd', which is {TYPES['usd']}{_MEASURE}"),
    (
        "word",
        "%",
        "n",
        "divides 'word', which is text, and 'n', which is number: give the text its type where it is set",
    ),
    (
        "flag",
        "+",
        "flag",
        "adds 'flag', which is boolean, and 'flag', which is boolean: join truth values with `and` or `or`",
    ),
    ("word", "+", "word", "adds 'word', which is text, and 'word', which is text"),
)


@all_rows(
    "text, says",
    [
        ("day.year", "'day' is date, which has no field 'year': compare dates, such as `born + 18 years <= today`"),
        ("n.a", "'n' is number, which has no field 'a'"),
        ("rec.zz", "'rec' has no field 'zz': it has a"),
        ("rec.aa", "'rec' has no field 'aa': it has a (did you mean 'a'?)"),
        ("max(ns, n)", "'ns' is a list: write `max of ns`"),
        ("max(word, word)", "max of 'word', which is text and has no order"),
        ("word[0]", "'word' is text, which has no items"),
        ("rec[0]", "'rec' is Rec, which has no items: write `rec.field`"),
        ("n and flag", "a truth value is needed, and 'n' is number: compare it with something"),
        ("ns and flag", "a truth value is needed, and 'ns' is list of number: say `any of` or `all of` it"),
        ("words", "'words' is no input, no table, and set by no step before (did you mean 'word'?)"),
        ("sqrt(day)", "sqrt takes numbers, and 'day' is date"),
        *(
            (text, f"{text!r}: a unit of too many factors, or of too high a power")
            for text in ("kg^10", "(kg^3)^4", "kg^5 * kg^5", "1 / kg^5 / kg^5", "g * m^(-9) / m")
        ),
        ("kg^2.5", "the power of 'kg', which is quantity(kg), is a whole number such as 2"),
        ("day in n", "'day' is date and 'n' is number: `in` takes a list, a table, or two texts"),
        *((f"{one} {sign} {other}", f"'{one} {sign} {other}' {does}") for one, sign, other, does in CLASHES),
        *((text.format(*pair), _OFFSET) for text in WITH_KELVINS for pair in (("warm", "5 K"), ("5 K", "warm"))),
    ],
)
def test_what_is_of_no_type_is_refused_with_what_to_write(text: str, says: str) -> None:
    """The message names both sides with their types, and the remedy where there is one."""
    with pytest.raises(ProcedureError) as refused:
        type_of(parse_term(text), TYPES)
    assert refused.value.message == says


@all_rows(
    "text, kind",
    [
        *(
            (text, "number")
            for text in ("-i", "-p", "i + i", "i % i", "abs(i)", "round(i)", "min(i, i)", "p * 2", "i ^ 2", "sum of ps")
        ),
        *(
            (text, "integer")
            for text in ("i if flag else i", "first of [i]", "sum of [i]", "max of [i]", "count of ps", "[i][0]")
        ),
        *((text, "percent") for text in ("p if flag else p", "min of ps", "ps[i]", "{a: p}.a")),
        *(("n if flag else p", "number"), ("[i, n]", "list of number"), ("{a: i}", "record"), ("i in ps", "boolean")),
    ],
)
def test_numbers_that_are_computed_with_are_numbers(text: str, kind: str) -> None:
    """What is only passed on stays an integer or a percentage; a sum of integers is one."""
    types = {**TYPES, "i": parse("integer"), "p": parse("percent"), "ps": parse("list of percent")}
    assert str(type_of(parse_term(text), types)) == kind
