"""Expressions with operands: what they are worth, of which type, and what is refused."""

from __future__ import annotations

from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import event, given
from properties import examples
from tables import all_rows

from stepguard.errors import EvaluationError, InexactError, ProcedureError, TooLargeError, UndefinedError
from stepguard.language.evaluation import evaluate
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.expressions import (
    Chain,
    Compare,
    Expression,
    Logic,
    Name,
    Negate,
    Not,
    Number,
    format_expression,
)
from stepguard.language.periods import Period
from stepguard.language.quantities import Amount
from stepguard.language.records import Record, RecordType
from stepguard.language.terms.evaluation import evaluate_term
from stepguard.language.terms.literals import read_literal
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.terms.operands import (
    Aggregate,
    Choice,
    Field,
    Item,
    ListTerm,
    LiteralTerm,
    Member,
    RecordTerm,
    texts_in,
    variables_in,
)
from stepguard.language.terms.type_inference import type_of
from stepguard.language.terms.type_relations import fits, joined
from stepguard.language.values import Value
from stepguard.procedure.notation.parsing import parse_term

pytest.importorskip("pint")  # the harness makes quantities
from term_harness import TABLES, TYPES, Meaning, NoValue, as_python, parse, terms, values

N, X, Y = Name("n"), Name("x"), Name("y")


@examples(1500)
@given(terms, values)
def test_an_expression_comes_to_what_an_interpreter_of_its_own_says(meaning: Meaning, state: dict[str, Value]) -> None:
    """The value is the same, or there is none for both; its type is known before and holds it."""
    kind = type_of(meaning.tree, TYPES, TABLES)
    try:
        expected = meaning.of({name: as_python(value) for name, value in state.items()})
    except (NoValue, OverflowError):
        event("no value")
        with pytest.raises(EvaluationError):
            evaluate_term(meaning.tree, state, TABLES)
        return
    found = evaluate_term(meaning.tree, state, TABLES)
    assert as_python(found) == expected
    assert type(as_python(found)) is type(expected)
    assert as_python(kind.convert(found)) == expected
    event(kind.kind)


@all_rows("text", ["-7 // 2", "7 % -3", "2^-3", "round(5/3, 2)", "x + 10% * y", "max(x, y) - min(x, y)"])
def test_arithmetic_is_that_of_the_core(text: str) -> None:
    """An expression without operands has the value that it always had."""
    tree = parse_expression(text)
    state: dict[str, Value] = {"x": Decimal("2.50"), "y": Fraction(1, 3)}
    assert evaluate_term(tree, state) == evaluate(tree, state)


def literal(text: str) -> LiteralTerm:
    return read_literal(text)


def plus(left: Expression, right: Expression, sign: str = "+") -> Expression:
    return Chain((left, right), (sign,))


@all_rows(
    "text, value",
    [
        ("2026-01-31", date(2026, 1, 31)),
        ("14:30", time(14, 30)),
        ("30 days", timedelta(days=30)),
        ("1 h 30 min", timedelta(minutes=90)),
        ("3 months", Period(months=3)),
        ("5 working days", Period(working_days=5)),
        ("500 EUR", 500),
        ("1,500.50 EUR", Fraction(3001, 2)),
        ("5 kg", Amount(5, (("kilogram", 1),))),
        ("5 m", Amount(5, (("meter", 1),))),
    ],
)
def test_a_value_in_an_expression_is_what_it_says(text: str, value: Value) -> None:
    """Dates, times, spans, amounts of money and with units stand in expressions as people write them."""
    term = literal(text)
    assert term.value == value
    assert str(type_of(term, {})).split("(")[0] in {
        "date", "time", "duration", "period", "money", "quantity",
    }  # fmt: skip


@all_rows(
    "left, sign, right, expected",
    [
        ("2026-01-31", "+", "1 month", date(2026, 2, 28)),
        ("2024-02-29", "-", "1 year", date(2023, 2, 28)),
        ("2026-01-30", "+", "5 working days", date(2026, 2, 6)),
        ("2026-01-31", "-", "2026-01-01", timedelta(days=30)),
        ("30 days", "+", "2026-01-31", date(2026, 3, 2)),
        ("14:30", "+", "90 minutes", time(16)),
        ("16:00", "-", "14:30", timedelta(minutes=90)),
        *(("1 h", "/", "20 min", 3), ("7 days", "//", "2 days", 3)),
        ("7 days", "%", "2 days", timedelta(days=1)),
        ("1 month", "+", "10 days", Period(months=1, days=10)),
        ("1 kg", "+", "500 g", Amount(Fraction(3, 2), (("kilogram", 1),))),
        ("1 kg", "/", "500 g", 2),
        ("10 km", "/", "2 h", Amount(Fraction(1, 720), (("kilometer", 1), ("second", -1)))),
        ("6 mol/l", "*", "2 l", Amount(12, (("mole", 1),))),
    ],
)
def test_dates_spans_and_amounts_are_computed_with(left: str, sign: str, right: str, expected: Value) -> None:
    """As calendars and physics have it, exactly."""
    tree = plus(literal(left), literal(right), sign)
    assert evaluate_term(tree, {}) == expected
    assert type_of(tree, {}).convert(expected) == expected


ITEM = RecordType("Item", (("what", parse("text")), ("amount", parse("money(EUR)"))))
KINDS = {
    "n": parse("number"),
    "due": parse("date"),
    "span": parse("duration"),
    "mass": parse("quantity(kg)"),
    "warm": parse("quantity(°C)"),
    "eur": parse("money(EUR)"),
    "usd": parse("money(USD)"),
    "word": parse("text"),
    "flag": parse("boolean"),
    "size": parse("one_of(small, large)"),
    "items": parse("list of Item", records={"Item": ITEM}),
    "item": parse("Item", records={"Item": ITEM}),
    "paid": parse("list of money(EUR)"),
    "three": parse("period"),
}
FEES = {
    "fee": Table(
        "fee", {"size": "one_of(small, large)", "amount": "money(EUR)"}, "money(EUR)", [("small", "0 to 5", 1)]
    )
}


def name(text: str) -> Name:
    return Name(text)


@all_rows(
    "tree, reason",
    [
        (plus(name("due"), name("n")), "30 days"),
        (plus(name("due"), name("due")), "adds"),
        (plus(name("span"), Number(5)), "30 days"),
        (plus(name("mass"), name("n")), "give the number its unit"),
        (plus(name("mass"), literal("5 m")), "do not measure the same"),
        (plus(name("warm"), name("warm")), "quantity(K)"),
        (plus(name("eur"), name("usd")), "two currencies"),
        (plus(name("eur"), literal("5 USD")), "two currencies"),
        (Compare("<", name("eur"), name("usd")), "two currencies"),
        (Compare("<", name("due"), name("n")), "30 days"),
        (Compare("<", name("word"), name("word")), "no order"),
        (Compare("==", name("word"), name("n")), "give the text its type"),
        (Compare("==", name("size"), LiteralTerm("smal")), "options small, large (did you mean 'small'"),
        (Compare("<", name("three"), name("three")), "no order"),
        (Compare("==", name("three"), name("span")), "never equal"),
        (Choice(name("eur"), name("flag"), name("usd")), "two currencies"),
        (Choice(name("eur"), name("flag"), name("word")), "'eur' is money(EUR, 2, half_up) and 'word' is text: both"),
        (Choice(name("eur"), name("n"), name("eur")), "truth value"),
        (Field(name("item"), "amout"), "did you mean 'amount'"),
        (Field(name("word"), "amount"), "has no field"),
        (Item(name("word"), (Number(0),)), "has no items"),
        (Item(name("item"), (Number(0),)), "write `item.field`"),
        (Item(name("paid"), (name("word"),)), "one whole number"),
        (Item(name("fee"), (name("size"),)), "looked up by size, amount"),
        (Item(name("fee"), (name("size"), name("usd"))), "the key amount"),
        (Item(name("fee"), (LiteralTerm("huge"), name("eur"))), "none of the options"),
        (name("fee"), "say which row"),
        (name("itms"), "did you mean 'items'"),
        (Member(name("n"), name("word")), "takes a list"),
        (Member(name("word"), name("paid")), "can never be in"),
        (Member(name("size"), ListTerm((LiteralTerm("small"), LiteralTerm("larg")))), "did you mean 'large'"),
        (ListTerm(()), "no type"),
        (ListTerm((name("eur"), name("due"))), "one type"),
        (Aggregate("sum", name("items")), "nothing to add up"),
        (Aggregate("max", name("items")), "no order"),
        (Aggregate("all", name("paid")), "takes truth values"),
        (Aggregate("sum", name("eur")), "takes a list"),
        (Aggregate("sum", name("paid"), where=name("flag")), "a condition needs a name"),
        (Aggregate("sum", name("n"), "item", name("items")), "has a meaning already"),
        (Not(name("n")), "truth value"),
        (Not(ListTerm((name("flag"),))), "`count of x for x in [flag] where x`"),
        (Logic("and", (name("flag"), name("items"))), "any of"),
        (parse_expression("min(items, 3)"), "min of"),
        (parse_expression("sqrt(mass)"), "takes numbers"),
        (parse_expression("mass ^ n"), "whole number"),
        (parse_expression("-word"), "no negative"),
        (parse_expression("word + word"), "adds"),
        (parse_expression("three * three"), "multiplies"),
    ],
)
def test_what_can_have_no_value_is_refused_with_the_remedy(tree: Expression, reason: str) -> None:
    """Before anything runs: what is there, and what to write."""
    with pytest.raises(ProcedureError) as refused:
        type_of(tree, KINDS, FEES)
    assert reason in str(refused.value)


@all_rows(
    "tree, kind",
    [
        (plus(name("eur"), Number(5)), "money(EUR, 2, half_up)"),
        (parse_expression("eur * 2"), "number"),
        (parse_expression("min(eur, eur)"), "money(EUR, 2, half_up)"),
        (Aggregate("sum", Field(name("items"), "amount")), "money(EUR, 2, half_up)"),
        (Aggregate("count", name("items")), "integer"),
        (Aggregate("max", name("paid")), "money(EUR, 2, half_up)"),
        (parse_expression("mass / mass"), "number"),
        (parse_expression("mass ^ 2"), "quantity(kg^2)"),
        (parse_expression("1 / mass"), "quantity(kg^-1)"),
        (parse_expression("mass / span"), "quantity(kg/s)"),
        (parse_expression("due - due"), "duration"),
        (parse_expression("span * n"), "duration"),
        (Choice(LiteralTerm("a"), name("flag"), name("size")), "text"),
        (ListTerm((name("eur"), Number(0))), "list of money(EUR, 2, half_up)"),
        (Item(name("fee"), (name("size"), Number(3))), "money(EUR, 2, half_up)"),
        (Member(name("flag"), ListTerm((name("flag"),))), "boolean"),
    ],
)
def test_the_type_of_an_expression_is_known_before(tree: Expression, kind: str) -> None:
    """Money stays money where it is added, amounts have their unit, lists what they hold."""
    assert str(type_of(tree, KINDS, FEES)) == kind


SCALED = {
    "EUR": "eur * 2; eur * i; eur * p; eur * 19%; eur / 2; eur / i; eur // 2; eur % 2; eur * 2 * 3; 2 * eur; -eur * 2; "
    "(eur + eur) * 2; eur * (1 + p); 5 EUR * 2; eur * -2; round(eur * 2, 1); sum of paid * 2; paid[0] * 2; "
    "eur * 2 + eur",
    "USD": "eur * n + usd; min(eur * n, usd)",
    None: "eur * n; eur / n; eur / eur; eur / 1 EUR; eur * (1 + n); eur * n * 2; eur * (2 if flag else 3); 2 / eur; "
    "n * eur; "
    "eur * 3 / 1 EUR; eur * n / 1 USD; eur * usd / 1 USD; eur * 2 * usd; eur * count of paid",
    "refused": "eur * 3 / 1 USD; eur / 1 USD; eur // 1 USD; eur * 2 + usd; eur + 5 USD; eur / (2 USD); eur * 1 EUR; "
    "eur ^ 2; "
    "eur * eur; min(eur * 2, usd); 2 * eur == usd",
}


@all_rows("kind, text", [(kind, text) for kind, texts in SCALED.items() for text in texts.split("; ")])
def test_what_only_scales_an_amount_leaves_its_currency(kind: str | None, text: str) -> None:
    """Written numbers, percentages and whole numbers do; any other number may be a rate of exchange."""
    tree = parse_term(text)
    types = {**KINDS, "i": parse("integer"), "p": parse("percent")}
    if kind == "refused":
        with pytest.raises(ProcedureError):
            type_of(tree, types, into=parse("number"))
    else:
        assert type_of(tree, types, into=parse("number")).currency == kind


PRINTED = """
(a + b).c | a b |
-x^2 | x |
rec.a | rec |
xs[n - 1, 2] | xs n |
xs[0].a[1] | xs |
sum of xs * 2 | xs |
sum of xs.a | xs |
(sum of xs).a | xs |
(max of xs)[0] | xs |
(a if f else (b if g else c)) | f a g b c |
(x in ["a", "é"]) | x | é a
(x in rate) | x rate |
[1, x, "é\\""] | x | é"
[[1], []] | |
{a, b: x + 1} | a x |
{a: b} | b |
{a: "t", b: ["u"]}.a | | u t
"a b" == x | x | a b
d + 30 days < 2026-01-31 | d |
(sum of y for y in y) | y |
(count of y for y in (xs if f else ys)) | f xs ys |
(sum of y.a for y in xs where y.b > z and not y.c) | xs z |
(sum of (sum of z for z in y.zs where z > w) for y in xs) | xs w |
(first of y.a for y in xs where y.b == "c") | xs | c
min((x in xs), y) | x xs y |
"""


@all_rows("text, variables, texts", [map(str.strip, line.split("|")) for line in PRINTED.strip().split("\n")])
def test_an_expression_is_printed_as_it_is_written(text: str, variables: str, texts: str) -> None:
    """Read again it is the same; the variables that it reads and the texts that stand in it are known."""
    tree = parse_term(text)
    assert format_expression(tree) == text
    assert " ".join(variables_in(tree)) == variables
    assert " ".join(texts_in(tree)) == texts


@all_rows(
    "text, says",
    [
        ("sum of y for y in ns where y / 0 > 1", "division by zero: y / 0"),
        ("2 + 3 * (1 / (n - n) - 1)", "division by zero: 1 / (n - n)"),
        ("1 + 5 days / (n - n)", "division by zero: 5 days / (n - n)"),
        ("all of ns", "all of truth values only, not of a number: all of ns"),
        ("ns[1.5] + 1", "items of ns are counted in whole numbers, and this is a number: ns[1.5]"),
        ("ns[1, 2]", "an item of the list ns has one number, not 2: ns[1, 2]"),
        (
            "ns[-1]",
            "the list ns has no item -1: it has 2, counted from 0; the last one is `ns[count of ns - 1]`: ns[-1]",
        ),
        ("ns[2]", "the list ns has no item 2: it has 2, counted from 0: ns[2]"),
        ("n[0]", "n is a number and has no items: n[0]"),
        ("n.a", "n is a number and has no field 'a': n.a"),
        ("{a: 1}.b", "{a: 1} has no field 'b': it has a: {a: 1}.b"),
        ("n and flag", "n is a number and no truth value: n and flag"),
        (
            "first of y for y in ns where y > 5",
            "there is no value to take the first of: (first of y for y in ns where y > 5)",
        ),
        ("sum of n", "n is a number and no list: sum of n"),
        ("sum of y for y in n", "n is a number and no list: (sum of y for y in n)"),
        ('sqrt("a")', 'sqrt takes numbers, not a text: sqrt("a")'),
        ('min(1, "a") + 1', 'a text and a number cannot be compared with <: min(1, "a")'),
        ('n ^ "a"', 'an exponent is a number, and this one is a text: n^("a")'),
        ('"a" ^ n', 'a text has no powers: ("a")^n'),
        ("n in n", "a number cannot be in a number: (n in n)"),
    ],
)
def test_an_error_says_the_innermost_expression_once(text: str, says: str) -> None:
    """Whatever stands around it."""
    with pytest.raises(EvaluationError) as refused:
        evaluate_term(parse_term(text), {"n": 1, "ns": (1, 2), "flag": True})
    assert str(refused.value) == says


@all_rows(
    "tree, reason",
    [
        (Item(name("paid"), (Negate(Number(1)),)), "counted from 0; the last one is `paid[count of paid - 1]`"),
        (Item(name("paid"), (Number(2),)), "the list paid has no item 2: it has 2, counted from 0"),
        (Item(name("paid"), (Number(-3),)), "no item -3"),
        (Item(name("none"), (Number(0),)), "it is empty"),
        (Field(name("item"), "tip"), "item has no field 'tip': it has what, amount"),
        (Item(name("fee"), (name("word"),)), "the table fee has no row for zone nowhere"),
        (Aggregate("first", name("none")), "no value to take the first of: first of none"),
        (plus(literal("9999-12-31"), literal("1 day")), "outside the years"),
        (plus(literal("23:30"), literal("1 h")), "not on the same day"),
        (parse_expression("1 / (n - n)"), "division by zero"),
    ],
)
def test_an_error_of_the_data_names_what_is_missing_and_of_what(tree: Expression, reason: str) -> None:
    """The key, the field or the item, and the table, the record or the list."""
    state: dict[str, Value] = {
        "n": 1,
        "paid": (Decimal("1.00"), Decimal("2.00")),
        "none": (),
        "item": Record({"what": "taxi", "amount": Decimal("1.00")}),
        "word": "nowhere",
    }
    with pytest.raises(UndefinedError) as refused:
        evaluate_term(tree, state, {"fee": Table("fee", {"zone": "text"}, "number", {"near": 1})})
    assert reason in str(refused.value)


def test_what_is_not_needed_is_not_looked_at() -> None:
    """`and`, `or`, a choice and `first of` stop where the answer is known."""
    bad = parse_expression("1 / 0 > 1")
    assert evaluate_term(Logic("and", (Compare("==", Number(1), Number(2)), bad)), {}) is False
    assert evaluate_term(Logic("or", (Compare("==", Number(1), Number(1)), bad)), {}) is True
    assert evaluate_term(Choice(Number(1), LiteralTerm(True), parse_expression("1 / 0")), {}) == 1
    tree = Aggregate("first", plus(Number(6), name("i"), "/"), "i", ListTerm((Number(2), Number(0))))
    assert evaluate_term(tree, {}) == 3


def test_values_of_different_kinds_do_not_pass_for_each_other() -> None:
    """A truth value is no number, a number no text, and what has another kind is never equal to it."""
    for left, right in ((True, 1), ("1", 1), (date(2026, 1, 1), "2026-01-01"), ((), 0)):
        with pytest.raises(InexactError):
            evaluate_term(Compare("==", X, Y), {"x": left, "y": right})
    one, other = Record({"a": True, "b": 1}), Record({"b": Decimal("1.00"), "a": True})
    assert evaluate_term(Compare("==", X, Y), {"x": one, "y": other}) is True
    assert evaluate_term(Compare("==", X, Y), {"x": one, "y": Record({"a": 1, "b": 1})}) is False


def test_the_sum_of_nothing_is_nothing_of_every_kind() -> None:
    """An empty list of durations or amounts adds up to none of them, and can be added to and compared."""
    empty: dict[str, Value] = {"none": ()}
    total = Aggregate("sum", name("none"))
    assert parse("duration").convert(evaluate_term(total, empty)) == timedelta()
    assert parse("quantity(kg)").convert(evaluate_term(total, empty)) == Amount(0, (("kilogram", 1),))
    assert evaluate_term(plus(total, literal("5 kg")), empty) == Amount(5, (("kilogram", 1),))
    assert evaluate_term(Compare("<", total, literal("5 days")), empty) is True


def test_what_an_expression_costs_is_limited() -> None:
    """Nesting, work and the size of results end in an error, not in a stack or a memory that is full."""
    deep: Expression = N
    for _ in range(5000):
        deep = Not(deep)
    with pytest.raises(TooLargeError):
        evaluate_term(deep, {"n": True})
    with pytest.raises(ProcedureError):
        type_of(deep, {"n": parse("boolean")})
    many: dict[str, Value] = {"n": tuple(range(2000))}
    squares = Aggregate("sum", Aggregate("sum", plus(X, Y), "y", N), "x", N)
    with pytest.raises(TooLargeError):
        evaluate_term(squares, many)
    with pytest.raises(TooLargeError, match="operations"):
        evaluate_term(parse_term("count of (count of y for y in n) for x in n"), many)
    with pytest.raises(TooLargeError):
        evaluate_term(parse_expression("9^9^9"), {})


def test_nesting_is_limited_and_width_is_not() -> None:
    """Two hundred levels have a value, and one more has none, wherever the caller stands; a long sum has one."""
    deep: Expression = N
    for _ in range(199):
        deep = Negate(deep)
    assert evaluate_term(deep, {"n": 3}) == -3
    assert evaluate_term(Chain((N,) * 500, ("+",) * 499), {"n": 3}) == 1500
    with pytest.raises(TooLargeError) as refused:
        evaluate_term(Negate(deep), {"n": 3})
    assert str(refused.value) == "the expression is nested deeper than 200 levels"


def test_a_record_of_other_types_fits_where_its_fields_do() -> None:
    """What `{what, amount}` comes to is a value of the declared record, each field rounded as it declares."""
    tree = RecordTerm((("amount", parse_expression("10 / 3")), ("what", LiteralTerm("taxi"))))
    target = parse("Item", records={"Item": ITEM})
    assert fits(type_of(tree, {}), target)
    assert target.convert(evaluate_term(tree, {})) == Record({"what": "taxi", "amount": Decimal("3.33")})
    assert not fits(type_of(RecordTerm((("what", LiteralTerm("taxi")),)), {}), target)


@pytest.mark.parametrize(
    ("source", "target", "fitting"),
    [
        *(("number", "money(EUR)", True), ("money(USD)", "money(EUR)", False), ("duration", "period", True)),
        *(("period", "duration", False), ("quantity(g)", "quantity(kg)", True)),
        *(("quantity(m)", "quantity(kg)", False), ("list of integer", "list of number", True)),
        *(("text", "number", False), ("boolean", "number", False), ("one_of(a, b)", "one_of(c, d)", False)),
    ],
)
def test_which_values_may_be_set_where_a_type_is_declared(source: str, target: str, fitting: bool) -> None:
    """Numbers are rounded, amounts converted; currencies and dimensions are not mixed."""
    assert fits(parse(source), parse(target)) is fitting
    assert (joined(parse(source), parse(source))) == parse(source)


def rows(*given: Any) -> Table:
    return Table("fee", {"weight": "quantity(kg)", "zone": "text"}, "money(EUR)", given)


def test_a_table_is_looked_up_by_keys_ranges_and_otherwise() -> None:
    """The row that fits; a row of its own goes before `otherwise`, the first key before the second."""
    fee = rows(
        ("0 to 5 kg", "near", "4.90"),
        ("over 5 to 30 kg", "near", "9.90"),
        ("over 30 kg", "otherwise", "25"),
        ("otherwise", "far", "50"),
    )

    def amount(number: int, unit: str = "kilogram") -> Amount:
        return Amount(number, ((unit, 1),))

    assert fee.look_up((amount(5), "near")) == Decimal("4.90")
    assert fee.look_up((amount(5001, "gram"), "near")) == Decimal("9.90")
    assert fee.look_up((amount(31), "far")) == Decimal("25.00")
    assert fee.look_up((amount(1), "far")) == Decimal("50.00")
    with pytest.raises(UndefinedError, match=r"the table fee has no row for weight -1 kg, zone near"):
        fee.look_up((amount(-1), "near"))
    assert not fee.has_row((amount(1), "far"))
    assert Table("fee", dict(fee.keys), fee.value, fee.rows) == fee


@all_rows(
    "given, reason",
    [
        ([("0 to 5 kg", "a", 1), ("5 to 9 kg", "a", 2)], "'0 to 5 kg' and '5 to 9 kg' have keys in common"),
        ([("0 to 5 kg", "a", 1), ("3 kg", "a", 2)], "is in a range, too"),
        ([("5 kg", "a", 1), ("5000 g", "a", 2)], "has a row already"),
        ([("otherwise", "a", 1), ("otherwise", "a", 2)], "has a row already"),
        ([("over 5 kg", "a", 1), ("at least 7 kg", "otherwise", 2)], "keys in common"),
        ([("5 to 3 kg", "a", 1)], "ends before it begins"),
        ([("5 apples", "a", 1)], "row 1"),
        ([("5 kg", 1)], "2 parts instead of 3 (weight, zone, value; `otherwise` may be any key)"),
        ([("5 kg", "a", "1 USD")], "row 1"),
        ([], "no rows"),
    ],
)
def test_a_table_in_which_a_key_fits_two_rows_is_refused(given: Any, reason: str) -> None:
    """When it is made, as is one whose rows cannot be read."""
    with pytest.raises(ProcedureError) as refused:
        rows(*given)
    assert reason in str(refused.value)


def test_ranges_that_meet_in_one_key_and_not_in_the_other_are_no_overlap() -> None:
    """Two zones may cut weights differently."""
    fee = rows(("0 to 5 kg", "a", 1), ("3 to 9 kg", "b", 2), ("over 5 kg", "a", 3))
    assert [fee.look_up((Amount(4, (("kilogram", 1),)), zone)) for zone in "ab"] == [1, 2]


def test_a_table_is_read_from_csv() -> None:
    """The first line names the columns; the keys are looked up in the order in which they are declared."""
    text = '\ufeffage,"country",price\nunder 18,DE,1.00\n18 to 65,DE,2.50\n"over 65",DE,"1,000"\n\n'
    prices = Table.from_csv("prices", text, keys={"country": "text", "age": "integer"}, value="money(EUR)")
    assert prices.look_up(("DE", 70)) == Decimal("1000.00")
    assert Table.from_csv("sizes", "size,zone,fee\na,b,1\nb,a,2").look_up(("a", "b")) == "1"
    for bad in ("age\n1", "age,price\n", "age,age,price\n1,2,3", 'age,price\n"1,2'):
        with pytest.raises(ProcedureError):
            Table.from_csv("prices", bad)
    with pytest.raises(ProcedureError, match="no column 'ag'"):
        Table.from_csv("prices", text, keys={"ag": "integer"})
    with pytest.raises(ProcedureError, match="a column 'country' in front of the value: make it a key"):
        Table.from_csv("prices", text, keys={"age": "integer"})


def test_every_number_finds_the_one_range_that_holds_it() -> None:
    """Ends belong to one range each, however many there are."""
    bands = [("under 0", "b")] + [(f"{low} to under {low + 10}", "a") for low in range(0, 1000, 10)]
    table = Table("band", {"n": "number"}, "text", [*bands, ("from 1000", "c")])
    for number in range(-5, 1005):
        assert table.look_up((number,)) == ("b" if number < 0 else "a" if number < 1000 else "c")


def test_overlapping_ranges_of_a_first_key_are_bounded() -> None:
    """Ranges that overlap in the first key are compared by the second; more of them than can be is refused by name."""
    keys = {"weight": "number", "zone": "text"}
    table = Table("fee", keys, "number", [(f"{at} to {100 + at}", f"z{at}", at) for at in range(100)])
    assert table.look_up([50, "z7"]) == 7
    both = {"weight": "number", "size": "number"}
    wide = [("0 to 5" if at % 2 else "3 to 9", f"{2 * at} to {2 * at + 1}", at) for at in range(2000)]
    assert Table("fee", both, "number", wide).look_up([4, 21]) == 10
    with pytest.raises(ProcedureError, match="keys in common"):
        Table("fee", both, "number", [*wide, ("1 to 2", "6", 1)])
    with pytest.raises(ProcedureError, match="too many of its ranges overlap"):
        Table("fee", keys, "number", [(f"{at} to {9000 + at}", f"z{at}", at) for at in range(1000)])
