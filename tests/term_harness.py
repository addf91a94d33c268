"""Random expressions with operands, each with what it means as a Python function: an interpreter of its own."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Any, Final

from hypothesis import strategies as st

from stepguard.language.expressions import Call, Chain, Compare, Expression, Logic, Name, Negate, Not, Number
from stepguard.language.quantities import Amount
from stepguard.language.records import Record, RecordType
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.terms.operands import Aggregate, Choice, Field, Item, ListTerm, LiteralTerm, Member, RecordTerm
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value

parse = ValueType.parse
ITEM: Final = RecordType(
    "Item", (("what", parse("text")), ("amount", parse("number")), ("spent", parse("date")), ("late", parse("boolean")))
)
TYPES: Final[dict[str, ValueType]] = {
    "n": parse("number"),
    "m": parse("integer"),
    "flag": parse("boolean"),
    "word": parse("text"),
    "due": parse("date"),
    "span": parse("duration"),
    "mass": parse("quantity(kg)"),
    "paid": parse("list of number"),
    "items": parse("list of Item", records={"Item": ITEM}),
    "item": parse("Item", records={"Item": ITEM}),
}
WORDS: Final = ("DE", "FR", "taxi")
RATES: Final = {"DE": 28, "FR": 35}
TABLES: Final = {
    "rate": Table("rate", {"country": "text"}, "number", RATES),
    "band": Table(
        "band",
        {"amount": "number"},
        "text",
        [("under 0", "low"), ("0 to 10", "mid"), ("over 10 to 100", "high"), ("otherwise", "top")],
    ),
}
_SMALL: Final = st.integers(-12, 12)
_DAYS: Final = st.integers(0, 20000).map(lambda days: date(1990, 1, 1) + timedelta(days=days))
_SPANS: Final = st.integers(-400, 400).map(lambda days: timedelta(days=days))


class NoValue(Exception):
    """The expression has no value for these data."""


State = Mapping[str, Any]


@dataclass(frozen=True)
class Meaning:
    """An expression, and what it comes to: numbers as Fraction, amounts in grams, records as dicts."""

    tree: Expression
    of: Callable[[State], Any]


def _record(what: str, amount: int, spent: date, late: bool) -> Record:
    return Record({"what": what, "amount": amount, "spent": spent, "late": late})


_records = st.builds(_record, st.sampled_from(WORDS), _SMALL, _DAYS, st.booleans())

values = st.fixed_dictionaries(
    {
        "n": st.fractions(-20, 120, max_denominator=4).map(lambda n: n.numerator if n.denominator == 1 else n),
        "m": _SMALL,
        "flag": st.booleans(),
        "word": st.sampled_from(WORDS),
        "due": _DAYS,
        "span": _SPANS,
        "mass": _SMALL.map(lambda kilos: Amount(kilos, (("kilogram", 1),))),
        "paid": st.lists(_SMALL, max_size=4).map(tuple),
        "items": st.lists(_records, max_size=4).map(tuple),
        "item": _records,
    }
)
"""Values of `TYPES`."""


def as_python(value: Value) -> Any:
    """A value as the interpreter here has it."""
    if isinstance(value, Record):
        return {key: as_python(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [as_python(each) for each in value]
    if isinstance(value, Amount):
        return Fraction(value.value) * {"kilogram": 1000, "gram": 1}[(value.unit or ())[0][0]]
    return Fraction(value) if type(value) in (int, Fraction) else value  # type: ignore[arg-type]


def _variable(name: str) -> st.SearchStrategy[Meaning]:
    return st.just(Meaning(Name(name), lambda state: state[name]))


def _both(
    make: Callable[[Expression, Expression], Expression], work: Callable[[Any, Any], Any], one: Any, other: Any
) -> st.SearchStrategy[Meaning]:
    return st.builds(
        lambda left, right: Meaning(make(left.tree, right.tree), lambda state: work(left.of(state), right.of(state))),
        one,
        other,
    )


def _chain(sign: str, work: Callable[[Any, Any], Any], one: Any, other: Any) -> st.SearchStrategy[Meaning]:
    return _both(lambda left, right: Chain((left, right), (sign,)), work, one, other)


def _divide(left: Fraction, right: Fraction) -> Fraction:
    if right == 0:
        raise NoValue
    return left / right


def _look_up(state_word: str) -> Fraction:
    if state_word not in RATES:
        raise NoValue
    return Fraction(RATES[state_word])


def _band(amount: Fraction) -> str:
    return "low" if amount < 0 else "mid" if amount <= 10 else "high" if amount <= 100 else "top"


def _nth(listed: list[Any], index: Fraction) -> Any:
    if index.denominator != 1 or not 0 <= index < len(listed):
        raise NoValue
    return listed[int(index)]


def _nonempty(work: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def worked(listed: list[Any]) -> Any:
        if not listed:
            raise NoValue
        return work(listed)

    return worked


def _aggregate(function: Any, work: Callable[[list[Any]], Any], of: Any) -> st.SearchStrategy[Meaning]:
    return of.map(lambda each: Meaning(Aggregate(function, each.tree), lambda state: work(each.of(state))))  # type: ignore[no-any-return]


def _choice(kind: Any, truth: Any) -> st.SearchStrategy[Meaning]:
    return st.builds(
        lambda then, condition, otherwise: Meaning(
            Choice(then.tree, condition.tree, otherwise.tree),
            lambda state: (then if condition.of(state) else otherwise).of(state),
        ),
        kind,
        truth,
        kind,
    )


_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def _compared(one: Any) -> st.SearchStrategy[Meaning]:
    return st.sampled_from(sorted(_COMPARE)).flatmap(
        lambda sign: _both(lambda left, right: Compare(sign, left, right), _COMPARE[sign], one, one)
    )


def _over(function: Any, work: Callable[[list[Any]], Any], value: Any, where: Any) -> st.SearchStrategy[Meaning]:
    """An aggregate over the items, under a name that its parts may read as they read the record `item`."""

    def make(taken: Meaning, condition: Meaning) -> Meaning:
        def worked(state: State) -> Any:
            inner = [{**state, "item": each} for each in state["items"]]
            return work([taken.of(each) for each in inner if condition.of(each)])

        tree = Aggregate(function, _renamed(taken.tree), "it", Name("items"), _renamed(condition.tree))
        return Meaning(tree, worked)

    return st.builds(make, value, where)


def _renamed(tree: Expression) -> Expression:
    """A field of the record `item` as one of `it`; the strategies below give no more than that."""
    match tree:
        case Field(Name("item"), key):
            return Field(Name("it"), key)
        case Compare(sign, left, right):
            return Compare(sign, _renamed(left), _renamed(right))
        case Chain(operands, signs):
            return Chain(tuple(map(_renamed, operands)), signs)
        case Not(operand):
            return Not(_renamed(operand))
    return tree


def _field(key: str) -> st.SearchStrategy[Meaning]:
    return st.just(Meaning(Field(Name("item"), key), lambda state: state["item"][key]))


def _strategies(depth: int) -> dict[str, st.SearchStrategy[Meaning]]:
    literal = _SMALL.map(lambda number: Meaning(Number(number), lambda _state: Fraction(number)))
    plain: dict[str, list[st.SearchStrategy[Meaning]]] = {
        "number": [_variable("n"), _variable("m"), literal, _field("amount")],
        "truth": [_variable("flag"), _field("late")],
        "text": [
            _variable("word"),
            _field("what"),
            st.sampled_from(WORDS).map(lambda word: Meaning(LiteralTerm(word), lambda _state: word)),
        ],
        "date": [_variable("due"), _field("spent")],
        "span": [_variable("span"), _SPANS.map(lambda span: Meaning(LiteralTerm(span), lambda _state: span))],
        "mass": [
            _variable("mass"),
            _SMALL.map(lambda n: Meaning(LiteralTerm(Amount(n, (("gram", 1),))), lambda _state: Fraction(n))),
        ],
        "numbers": [
            _variable("paid"),
            st.just(Meaning(Field(Name("items"), "amount"), lambda state: [each["amount"] for each in state["items"]])),
        ],
        "truths": [
            st.just(Meaning(Field(Name("items"), "late"), lambda state: [each["late"] for each in state["items"]]))
        ],
        "record": [_variable("item")],
    }
    if depth == 0:
        return {kind: st.one_of(each) for kind, each in plain.items()}
    inner = _strategies(depth - 1)
    number, truth, text, day, span, mass = (inner[kind] for kind in ("number", "truth", "text", "date", "span", "mass"))
    small = st.one_of(plain["number"])
    more: dict[str, list[st.SearchStrategy[Meaning]]] = {
        "number": [
            _chain("+", operator.add, number, number),
            _chain("-", operator.sub, number, number),
            _chain("*", operator.mul, number, number),
            _chain("/", _divide, number, number),
            _chain("/", _divide, mass, mass),
            _chain("/", lambda left, right: _divide(Fraction(left.days), Fraction(right.days)), span, span),
            number.map(lambda each: Meaning(Negate(each.tree), lambda state: -each.of(state))),
            _both(lambda left, right: Call("min", (left, right)), min, number, number),
            _both(lambda left, right: Call("max", (left, right)), max, number, number),
            text.map(lambda key: Meaning(Item(Name("rate"), (key.tree,)), lambda state: _look_up(key.of(state)))),
            _both(lambda left, right: Item(left, (right,)), _nth, inner["numbers"], small),
            _aggregate("sum", lambda listed: sum(listed, Fraction(0)), inner["numbers"]),
            _aggregate("count", lambda listed: Fraction(len(listed)), inner["numbers"]),
            _aggregate("min", _nonempty(min), inner["numbers"]),
            _aggregate("max", _nonempty(max), inner["numbers"]),
            _aggregate("first", _nonempty(lambda listed: listed[0]), inner["numbers"]),
            _over("sum", lambda listed: sum(listed, Fraction(0)), _field("amount"), _field("late")),
            _over("first", _nonempty(lambda listed: listed[0]), _field("amount"), _compared(_field("amount"))),
        ],
        "truth": [
            _compared(number),
            _compared(day),
            _compared(span),
            _compared(mass),
            _both(lambda left, right: Compare("==", left, right), operator.eq, text, text),
            _both(lambda left, right: Compare("==", left, right), operator.eq, inner["record"], inner["record"]),
            _both(lambda left, right: Compare("!=", left, right), operator.ne, inner["numbers"], inner["numbers"]),
            st.lists(truth, min_size=2, max_size=3).map(
                lambda each: Meaning(
                    Logic("and", tuple(one.tree for one in each)), lambda state: all(one.of(state) for one in each)
                )
            ),
            st.lists(truth, min_size=2, max_size=3).map(
                lambda each: Meaning(
                    Logic("or", tuple(one.tree for one in each)), lambda state: any(one.of(state) for one in each)
                )
            ),
            truth.map(lambda each: Meaning(Not(each.tree), lambda state: not each.of(state))),
            _both(lambda left, right: Member(left, right), lambda left, right: left in right, number, inner["numbers"]),
            _both(lambda left, right: Member(left, right), lambda left, right: left in right, text, text),
            text.map(lambda key: Meaning(Member(key.tree, Name("rate")), lambda state: key.of(state) in RATES)),
            _aggregate("all", all, inner["truths"]),
            _aggregate("any", any, inner["truths"]),
        ],
        "text": [
            number.map(lambda key: Meaning(Item(Name("band"), (key.tree,)), lambda state: _band(key.of(state)))),
            _choice(text, truth),
        ],
        "date": [_chain("+", operator.add, day, span), _chain("-", operator.sub, day, span), _choice(day, truth)],
        "span": [_chain("-", operator.sub, day, day), _chain("+", operator.add, span, span)],
        "mass": [
            _chain("+", operator.add, mass, mass),
            _chain("-", operator.sub, mass, mass),
            _chain("*", operator.mul, small, mass),
        ],
        "numbers": [
            st.lists(number, min_size=1, max_size=3).map(
                lambda each: Meaning(
                    ListTerm(tuple(one.tree for one in each)), lambda state: [one.of(state) for one in each]
                )
            )
        ],
        "truths": [],
        "record": [
            st.builds(
                lambda amount, spent: Meaning(
                    RecordTerm(
                        (("what", Name("word")), ("amount", amount.tree), ("spent", spent.tree), ("late", Name("flag")))
                    ),
                    lambda state: {
                        "what": state["word"],
                        "amount": amount.of(state),
                        "spent": spent.of(state),
                        "late": state["flag"],
                    },
                ),
                number,
                day,
            )
        ],
    }
    more["number"].append(_choice(number, truth))
    return {kind: st.one_of([*plain[kind], *more[kind]]) for kind in plain}


terms: Final = st.one_of(list(_strategies(3).values()))
"""Expressions of every kind over `TYPES` and `TABLES`."""
