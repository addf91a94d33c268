"""The language of procedures: what it reads, what it refuses and how, and that printing and reading agree."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from tables import all_rows

from stepguard import Guard, Procedure, Step
from stepguard.checks import Holds, Length, OneOf, Pattern, Range
from stepguard.errors import ExpressionError, ProcedureError
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.expressions import Call, Chain, Compare, Expression, Logic, Name, Not, Power, format_expression
from stepguard.language.terms.operands import (
    Aggregate,
    Choice,
    Field,
    Item,
    ListTerm,
    LiteralTerm,
    Member,
    Operand,
    RecordTerm,
)
from stepguard.procedure.notation import parse_term
from stepguard.procedure.notation.building import build
from stepguard.procedure.notation.parsing import parse_items
from stepguard.procedure.statements import Body, ForEach, If, Repeat, Statement
from stepguard.testing import SimulatedModel, Slips

CALLED = "procedure p:\n  inputs: x\n  t = x + 1\n"
REFUSED: dict[str, tuple[str, int, str]] = {
    **{
        f"row {row}": (f"inputs: c\ntable daily: c -> number\n  DE: 28\n  {row}\nx = daily[c]", 4, "no row of a table")
        for row in ("FR | 44", "| FR | 44 |", "FR = 44", "FR -> 44", "FR, 44", "otherwise 44", "FR 44")
    },
    **{
        f"field {field}": (f"record R:\n  name: text\n  {field}\nt = 1", 3, "no field of a record R: write a name")
        for field in ("phone: text or none", "phone", "phone - text", "optional phone: text")
    },
    "prose": ("t = x\nTake off the fee.", 2, "neither a formula"),
    "words in front": ("Take off the fee: t = x - 3", 1, '`t = x - 3  "Take off the fee"`'),
    "words behind the sign": ("t: text = Name the country of it", 1, "words stand in quotes"),
    "quotes": ('t: text = "Name it', 1, "not closed"),
    "single quotes": ("t = 'Name it'", 1, "double quotes"),
    "assignment": ("t := x", 1, "write = for :="),
    "comparison for a value": ("t == x", 1, "write = for =="),
    "addition": ("t = x\nt += 1", 2, "`total = before + x`"),
    "let": ("let t = x", 1, "in front of `t =`"),
    "nothing": ("t = ", 1, "nothing follows"),
    "no steps": ("# a comment\n\n", 1, "no step found"),
    "label of words": ("Step 3: t = x", 1, "`3. t = x + 1`"),
    "list sign": ("- t = x", 1, "not with a sign"),
    "fence": ("```\nt = x\n```", 1, "stepguard import"),
    "heading": ("## Fees\nt = x", 1, "looks like a heading"),
    "If": ("If x > 3: t = x", 1, "`if x > 3:`"),
    "colon": ("if x > 3\n  t = x", 1, "a colon ends the condition"),
    "then": ("if x > y then\n  t = x", 1, "a colon"),
    "elif": ("if x > 3:\n  t = 1\nelif x > 2:\n  t = 2", 3, "`else if CONDITION:`"),
    "otherwise": ("if x > 3:\n  t = 1\notherwise:\n  t = 2", 3, "`else:`"),
    "lonely else": ("else:\n  t = 1", 1, "below a block of `if`"),
    "end": ("if x > 3:\n  t = 1\nend", 3, "leave this line out"),
    "no block": ("if x > 3:\nt = 1", 2, "not indented"),
    "a block for nothing": ("t = x\n  u = t", 2, "opens no block"),
    "block between": ("if x > 3:\n    t = 1\n  u = 2", 3, "none of the blocks"),
    "tab": ("if x > 3:\n\tt = 1", 2, "a tab"),
    "while": ("while x > 3:\n  t = 1", 1, "repeat at most 60 times"),
    "unbounded": ("repeat until x > 3:\n  t = 1", 1, "needs its bound"),
    "bound of nothing": ("repeat at most 0 times until x > 3:\n  t = 1", 1, "from 1 on"),
    "bound in parts": ("repeat at most 2.5 times until x > 3:\n  t = 1", 1, "whole number"),
    "for": ("for item in items:\n  t = 1", 1, "`for each item in items:`"),
    "misspelt": ("answr: t", 1, "did you mean `answer`"),
    "header": ("Answer: t", 1, "`answer: total`"),
    "header of inputs": ("Inputs: x\nt = x", 1, "`inputs: x"),
    "comma": ("inputs: x,, y\nt = x", 1, "leave out the comma"),
    "return": ("t = x\nreturn t", 2, "`answer: total`"),
    "bracket": ("t = min(x,\nu = 3", 1, "'(' is not closed"),
    "call": ("pay(x)", 1, "a call sets a variable"),
    "call by place": ("t = tool pay(x)", 1, "`pay(amount=total)`"),
    "half a choice": ("t = x if y > 3", 1, "`a if x > 3 else b`"),
    "question mark": ("t = x ? 1 : 2", 1, "choice"),
    "product": ("t = 2(x)", 1, "multiplication with *"),
    "unit": ("t = 2 x", 1, "multiplication with *"),
    "day": ("t = 2026-02-30", 1, "no such day"),
    "day of one digit": ("t = 2026-1-31", 1, "looks like a date"),
    "day of two": ("t = x - 31/12/2026", 1, "looks like a date"),
    "day in a choice": ("t = 1 if x > 31-12-2026 else 2", 1, "looks like a date"),
    "day and more": ("t = 2026-01-31-02", 1, "looks like a date"),
    "many nots": (f"t = {'not ' * 50}a", 1, "nested deeper"),
    "missing": ("t = x +", 1, "missing"),
    "chained": ("t = 1 < x < 3", 1, "chained"),
    "joints": ("t = a and b or c", 1, "brackets around"),
    "joints of a truth value": ("ok: boolean = a > 1 or b > 1 and c > 1", 1, "brackets around"),
    "one equals sign": ("if a > 1 and x = 3:\n  t = 1", 1, "compared with =="),
    "two steps": ("if x > 3: t = 1; u = 2", 1, "a line of its own"),
    "sum of a product": ("t = sum of x * 2 for x in xs", 1, "stands in brackets"),
    "sum among other values": ("if (x > 1) or count of y for y in ys where y > 1 > 2:\n  t = 1", 1, "(count of x for"),
    "items without a name": ("t = count of xs where xs > 3", 1, "needs a name"),
    "sign of a currency": ("t: boolean = x > \u20ac5", 1, "`5 EUR`"),
    "truth": ("t = a[0] and b + 1", 1, "takes truth values"),
    "function": ("t = [min]", 1, "needs its arguments"),
    "percent": ("t = 10 % of x.y", 1, "not expected"),
    "percent added": ("t = x.y + 10%", 1, "a percentage of what?"),
    "percent glued": ("t = x.y %3", 1, "blanks on both sides"),
    "point of print": ("t = x.y * 0\u00b75", 1, "decimal point"),
    "grouped": ("t = [1,200]", 1, "leave the comma out"),
    "unseen": ("t\u200b = x", 1, "U+200B"),
    "unseen in a comment": ("t = x  # all \u202e of it", 1, "U+202E"),
    "label": ("2. t = x\n1. u = x", 2, "must increase"),
    "twice": ("answer: t\nt = 1\nanswer: t", 3, "already declared"),
    "deep": (f"t = {'[' * 50}x{']' * 50}", 1, "nested deeper"),
    "a number of months": ("t: date = day + n months", 1, "`n * 1 months`"),
    "a number of days": ("t: date = day + n[0] working days", 1, "`n * 1 working days`"),
    "zeros in front": ('t = ["a", 007]', 1, 'leave them out, or write "007"'),
    "zeros of an argument": ("t: text = tool pay(to=007)", 1, 'write "007"'),
    "default of digits": ("inputs: z: text = 1.10\nt = 1", 1, "a text is meant: write it in quotes"),
    "defaults of digits": ('inputs: z: list of text = ["a", 5]\nt = 1', 1, "5 is a number, and a text is meant"),
    "default without quotes": ("inputs: z: one_of(a, b) = a\nt = 1", 1, "stands in quotes"),
    "unknown type": ("t = 1\nu: intger = t", 2, "unknown type"),
    "unknown check": ('t: text = "a"  check: lenght(2)', 1, "unknown check"),
    "option twice": ('t: text = "a"  check: length(most=2, most=3)', 1, "stands twice"),
    "call of itself": ("procedure p:\n  inputs: x\n  t = call p(x=x)\nu = call p(x=1)", 3, "calls itself"),
    "call of nothing": ("t = call p(x=1)", 1, "no procedure 'p'"),
    "call of another type": (f"{CALLED}t: money(EUR) = call p(x=1)", 4, "'p' is number: leave the type out"),
    "call with a check": (f"{CALLED}t = call p(x=1)  check: range(above=0)", 4, "stand behind the step of 'p'"),
    "call in a sum": ("t = call p(x=1) + 1", 1, "of its own, and what is made of it another one: `x = call p(...)`"),
    "call behind a sign": ("t = 2 * tool p(x=1)", 1, "`x = tool p(...)`"),
    "call in a choice": ("t = 2 if a > 1 else function p(x=1)", 1, "`x = function p(...)`"),
    "call in a condition": ("if a > 1 and function p(x=1) > 2:\n  t = 1", 1, "`x = function p(...)`"),
    "chained condition": ("if 1 < x <= 3:\n  t = 1", 1, "`x > 0 and x < 10`"),
    "words for a sign": ("if x is 3:\n  t = 1", 1, "written with a sign"),
    "words for a bound": ("repeat at most 3 times until x exceeds 3:\n  x = x + 1", 1, "written with a sign"),
}  # fmt: skip


@all_rows("text, line, message", REFUSED.values())
def test_a_slip_is_named_with_its_line_and_the_remedy(text: str, line: int, message: str) -> None:
    """What the grammar does not have is refused, and the message says what to write."""
    with pytest.raises(ProcedureError) as refused:
        build(parse_items(text))
    assert refused.value.line == line
    assert message in refused.value.message


def test_a_default_of_two_units_is_told_what_can_be_written() -> None:
    """`2 m/s` is no value of an input, and the message shows one that is."""
    pytest.importorskip("pint")
    with pytest.raises(ProcedureError, match="a measure such as"):
        Procedure.parse("inputs: z: quantity(m/s) = 2 m/s\nt = 1")


def body_of(text: str) -> Body:
    """The statements of a text."""
    return tuple(build(parse_items(text)).body)


@all_rows(
    "text, statement",
    [
        ("t = x + 1", Step("t", "x + 1")),
        ('t = x + 1  "Add one."', Step("t", "x + 1", instruction="Add one.")),
        ('"Add one.": t = x + 1', Step("t", "x + 1", instruction="Add one.")),
        ('t = "Name it." (reads x, y)', Step("t", instruction="Name it.", reads=["x", "y"])),
        ("12. t: decimal(2) = by code x / 3  # a third", Step("t", "x / 3", type="decimal(2)", performer="code")),
        ("answer: integer = 3", Step("answer", "3", type="integer")),
        ('name: text = "Who?"', Step("name", instruction="Who?")),
        ("inputs = 3", Step("inputs", "3")),
        ("1. inputs: integer = 3", Step("inputs", "3", type="integer")),
        ("step = tool + sum + by + each", Step("step", "tool + sum + by + each")),
        (
            't: text = "Name it."  check: length(1, 3); one_of(a, "b c"); pattern("[a-z]{1,3}")',
            Step("t", instruction="Name it.", checks=[Length(1, 3), OneOf("a", "b c"), Pattern("[a-z]{1,3}")]),
        ),
        (
            't: number = "Add." (reads a)  check: holds(t == a + 1); range(least=0, below=2.5)',
            Step(
                "t",
                instruction="Add.",
                type="number",
                reads=["a"],
                checks=[Holds("t == a + 1"), Range(least=0, below="2.5")],
            ),
        ),
        ("if a > 1: t = 1", If(((parse_expression("a > 1"), (Step("t", "1"),)),))),
        (
            "3. if a > 1:\n     t = 1\n   else if b:\n     t = 2\n   else:\n     t = 3",
            If(
                ((parse_expression("a > 1"), (Step("t", "1"),)), (Name("b"), (Step("t", "2"),))), (Step("t", "3"),)
            ),
        ),
        ("if a > 9:00: t = 1", If(((Compare(">", Name("a"), LiteralTerm(time(9), "9:00")), (Step("t", "1"),)),))),
        ("for each i in xs:\n\n  # one\n  t = i * 2\n", ForEach("i", Name("xs"), (Step("t", "i * 2"),))),
        (
            "repeat at most 9 times until b <= 0:\n  b = b - 1",
            Repeat(9, (Step("b", "b - 1"),), until=parse_expression("b <= 0")),
        ),
    ],
)  # fmt: skip
def test_a_line_is_read_as_it_is_written(text: str, statement: Statement) -> None:
    """Each construct gives its node, and words of the language may be variables where they mean nothing."""
    assert body_of(text) == (statement,)


@all_rows("change", [
    lambda text: text.replace("\n", "\r\n"),
    lambda text: text.replace("\n", "\r"),
    lambda text: "\ufeff" + text,
    lambda text: "\n".join(f"   {line}\t" for line in text.split("\n")),
    lambda text: text.replace("\n", "\n  # a comment\n\n"),
])  # fmt: skip
def test_line_ends_and_margins_do_not_matter(change: Callable[[str], str]) -> None:
    """Windows and old line ends, a byte order mark, a margin, comments and empty lines change nothing."""
    text = "1. t = min(x,\n   3)\n2. if t > 1:\n     u = 1\n   else:\n     u = 2\nv = u"
    assert body_of(change(text)) == body_of(text)


TERMS: dict[str, Expression] = {
    "item.amount": Field(Name("item"), "amount"),
    "daily[country, -1]": Item(Name("daily"), (Name("country"), parse_expression("-1"))),
    "sum of paid": Aggregate("sum", Name("paid")),
    "(sum of i.a for i in xs where i.b) + 1": parse_expression("s + 1"),
    "a if c else b": Choice(Name("a"), Name("c"), Name("b")),
    'country in ["DE", "FR"]': Member(Name("country"), ListTerm((LiteralTerm("DE"), LiteralTerm("FR")))),
    "{applicant, total: net + tax}": RecordTerm(
        (("applicant", Name("applicant")), ("total", parse_expression("net + tax")))
    ),
    "1,200 * x.y": parse_expression("1200 * z"),
    "x.y * 10%": parse_expression("z * 10%"),
    "a.b // 2 % 3 mod 4": parse_expression("z // 2 % 3 mod 4"),
    "2026-01-31 + 30 days": parse_expression("a + b"),
    "500 EUR": LiteralTerm(500, "500 EUR"),
    "true": LiteralTerm(True),
}  # fmt: skip


@all_rows("text", TERMS)
def test_a_term_prints_as_what_reads_as_it(text: str) -> None:
    """Fields, items, aggregates, choices, lists, records, dates and amounts read and print to equal trees."""
    tree = parse_term(text)
    assert parse_term(format_expression(tree)) == tree
    if isinstance(TERMS[text], Operand):
        assert isinstance(tree, type(TERMS[text]))
        assert format_expression(tree) == format_expression(TERMS[text])
    else:
        assert type(tree) is type(TERMS[text])


@all_rows("text", ["sum of a * b for a in c", "x.5", "a.b.", "{}", "a in b in c", "x if y", "[1,]", "a[]"])
def test_what_is_no_term_is_refused(text: str) -> None:
    """What could be read in two ways, or in none, is refused."""
    with pytest.raises(ExpressionError):
        parse_term(text)


pieces = st.lists(
    st.sampled_from([
        *("x", "y", "12", "3", "0.5", "1,200", "2.", ".5", "1e3", "10%", "5 %", "+", "-", "*", "/", "//", "%", "mod"),
        *("^", "**", "(", ")", "[", "]", ",", "<", "<=", "==", "!=", "and", "or", "not", "min(", "round(", "half_up"),
        *(" ", "  ", "\u00d7", "\u2212", "\u00b7", "\u2264", "1\u00a0200", "abs(x)", "2026-01-31", "if", "(x)", "sqrt"),
    ]),
    min_size=1,
    max_size=9,
)  # fmt: skip


def outcome(read: Callable[[str], Expression], text: str) -> Expression | None:
    """What a reader makes of a text, None where it refuses it."""
    try:
        return read(text)
    except ExpressionError:
        return None


@given(pieces, st.sampled_from(["", " "]))
@examples(1000)
def test_arithmetic_means_the_same_to_both_readers(words: list[str], joint: str) -> None:
    """Whatever arithmetic reads, the language reads as an equal tree; what arithmetic refuses is none of it."""
    text = joint.join(words)
    expected, found = outcome(parse_expression, text), outcome(parse_term, text)
    if expected is not None or found is None:
        assert found == expected
    else:  # more than arithmetic
        assert re.search(r"\[|if|2026-01-31|\w\.[A-Za-z_]", text)


names = st.sampled_from(
    ["x", "y", "total", "name", "answer", "step", "sum", "of", "each", "tool", "E", "half_up", "t_1"]
)
numbers = st.sampled_from(["1", "2.5", "10%", "1/3", "1200"]).map(parse_expression)
literals = st.sampled_from(
    ["2026-01-31", "14:30", "30 days", "3 months", "5 working days", "500 EUR", "5 kg", "true"]
).map(parse_term) | st.text(max_size=6).map(LiteralTerm)
leaves = names.map(Name) | numbers | literals


def _deeper(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    truths = st.builds(Compare, st.sampled_from(["<", "==", ">="]), inner, inner) | st.builds(Member, inner, inner)
    conditions = truths | names.map(Name)
    keys = st.sampled_from(["amount", "total", "for_each", "sum"])
    return st.one_of(
        st.builds(Chain, st.tuples(inner, inner), st.tuples(st.sampled_from("+-*/%"))),
        st.builds(Power, inner, inner),
        st.builds(lambda items: Call("min", items), st.tuples(inner, inner)),
        truths,
        st.builds(Logic, st.sampled_from(["and", "or"]), st.tuples(conditions, conditions)),
        st.builds(Not, conditions),
        st.builds(Field, inner, keys),
        st.builds(Item, inner, st.tuples(inner) | st.tuples(inner, inner)),
        st.builds(Aggregate, st.sampled_from(["sum", "count", "first"]), inner),
        st.builds(Aggregate, st.sampled_from(["max", "any"]), inner, names, inner, st.none() | conditions),
        st.builds(Choice, inner, conditions, inner),
        st.builds(ListTerm, st.lists(inner, max_size=3).map(tuple)),
        st.builds(
            RecordTerm, st.lists(st.tuples(keys, inner), min_size=1, max_size=3, unique_by=lambda f: f[0]).map(tuple)
        ),
    )


terms = st.recursive(leaves, _deeper, max_leaves=5)


@st.composite
def term_texts(draw: st.DrawFn) -> str:
    """The text of some term."""
    return format_expression(draw(terms))


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@given(term_texts())
@examples(400)
def test_every_term_prints_as_a_text_that_reads_as_one(text: str) -> None:
    """Reading the text of a term and printing that gives the same text, which reads as an equal tree."""
    pytest.importorskip("pint")  # `5 kg` is among them
    tree = parse_term(text)
    assert format_expression(tree) == text
    assert parse_term(format_expression(tree)) == tree


def test_a_percentage_stands_in_front_of_a_word_of_the_language() -> None:
    """`70% if late else 80%` is a choice between percentages; in front of a name a sign is still refused."""
    procedure = Procedure.parse("inputs: late: boolean\nr: percent = 70% if late else 80%\n")
    assert Guard(SimulatedModel(slips=Slips.none())).run(procedure, {"late": True}).answer == Fraction(7, 10)
    with pytest.raises(ProcedureError, match="a % between two values"):
        Procedure.parse("inputs: iffy\nr = 70% iffy\n")
