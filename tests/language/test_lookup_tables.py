"""Tables: which rows may stand together, and which of them a key finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from fractions import Fraction
from itertools import count, product
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from tables import all_rows

from stepguard.errors import InexactError, ProcedureError, UndefinedError
from stepguard.language.quantities import Amount
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.values import Value

POINTS: Final = tuple(Fraction(half, 2) for half in range(1, 10))
"""Keys to look up: the ends of ranges are whole numbers from 1 to 4, with a key between any two and on each side."""
WORDS: Final = ("DE", "FR", "elsewhere")


@dataclass(frozen=True)
class Key:
    """A key of a row as text, and which of the points it means; every one where it is `otherwise`."""

    text: str = field(compare=False)
    points: frozenset[Any]
    exact: bool = False
    otherwise: bool = False


Row = tuple[Key, ...]
OTHERWISE: Final = Key("otherwise", frozenset((*POINTS, *WORDS)), otherwise=True)
TYPES: Final[dict[str, tuple[Callable[[int], str], Callable[[Fraction], Value]]]] = {
    "number": (str, lambda point: point),
    "percent": (lambda end: f"{end}%", lambda point: point / 100),
    "time": (lambda end: f"0{end}:00", lambda point: time(int(point), int(point % 1 * 60))),
    "duration": (lambda end: f"{end} h", lambda point: timedelta(hours=1) * float(point)),
}
"""How an end of a range is written, and which value a point is, by the type of the key."""


@st.composite
def keys(draw: st.DrawFn, kind: str) -> Key:
    """Keys of rows: a word, one end, two ends, or `otherwise`."""
    if draw(st.integers(0, 4)) == 0:
        return OTHERWISE
    if kind == "text":
        word = draw(st.sampled_from(WORDS[:2]))
        return Key(word, frozenset({word}), exact=True)
    low, high = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    write = TYPES[kind][0]
    one, other = write(low), write(high)
    forms: dict[str, Callable[[Fraction], bool]] = {
        one: lambda point: point == low,
        f"over {one}": lambda point: point > low,
        f"at least {one}": lambda point: point >= low,
        f"from {one}": lambda point: point >= low,
        f"below {one}": lambda point: point < low,
        f"up to {one}": lambda point: point <= low,
        f"At most  {one}": lambda point: point <= low,
        f"{one} to {other}": lambda point: low <= point <= high,
        f"more than {one} to {other}": lambda point: low < point <= high,
        f"from {one} to under {other}": lambda point: low <= point < high,
        f"above {one} to less than {other}": lambda point: low < point < high,
    }
    text = draw(st.sampled_from(sorted(forms)))
    return Key(text, frozenset(filter(forms[text], POINTS)), exact=text == one)


def clash(one: Row, other: Row) -> bool:
    """Whether two rows could both be meant: where they part, neither says `otherwise`, and some keys fit both."""
    parted = [place for place, (mine, theirs) in enumerate(zip(one, other, strict=True)) if mine != theirs]
    if not parted:
        return True
    behind = list(zip(one, other, strict=True))[parted[0] :]
    if behind[0][0].otherwise or behind[0][1].otherwise:
        return False
    return all(mine.points & theirs.points for mine, theirs in behind)


def found(rows: Sequence[Row], point: tuple[Any, ...], *, own: bool = False) -> int | None:
    """The number of the row that some keys select, as the documentation has it."""
    fitting = [
        ([key.otherwise for key in row], number)
        for number, row in enumerate(rows)
        if all(each in key.points for key, each in zip(row, point, strict=True))
    ]
    if own:
        fitting = [(others, number) for others, number in fitting if not any(others)]
    return min(fitting)[1] if fitting else None


def made(kinds: Sequence[str], rows: Sequence[Row]) -> Table:
    given_rows = [(*(key.text for key in row), number) for number, row in enumerate(rows)]
    return Table("fee", {f"k{place}": kind for place, kind in enumerate(kinds)}, "integer", given_rows)


@st.composite
def candidates(draw: st.DrawFn) -> tuple[list[str], list[Row]]:
    """Types of keys, and rows that may clash."""
    kinds = draw(st.lists(st.sampled_from(["text", *TYPES]), min_size=1, max_size=3))
    return kinds, draw(st.lists(st.tuples(*map(keys, kinds)), min_size=1, max_size=9))


@examples(1000)
@given(candidates())
def test_a_table_finds_the_row_that_a_reader_finds_and_refuses_what_could_be_two(
    drawn: tuple[list[str], list[Row]],
) -> None:
    """Every key, in a table of any ranges, exact keys and `otherwise`; rows that clash are refused when it is made."""
    kinds, drawn_rows = drawn
    rows: list[Row] = []
    for row in drawn_rows:
        empty = not all(key.points for key in row)
        if not empty and not any(clash(row, each) for each in rows):
            rows.append(row)
            continue
        with pytest.raises(ProcedureError, match="before it begins" if empty else "keys in common|a row"):
            made(kinds, [*rows, row])
    if not rows:
        return
    table = made(kinds, rows)
    assert Table("fee", dict(table.keys), table.value, table.rows) == table
    values: list[dict[Any, Value]] = [
        {each: each for each in WORDS} if kind == "text" else {each: TYPES[kind][1](each) for each in POINTS}
        for kind in kinds
    ]
    for point in product(*values):
        looked_up = tuple(each[key] for each, key in zip(values, point, strict=True))
        expected = found(rows, point)
        assert table.has_row(looked_up) is (found(rows, point, own=True) is not None)
        if expected is None:
            with pytest.raises(UndefinedError, match="no row for k0 "):
                table.look_up(looked_up)
        else:
            assert table.look_up(looked_up) == expected


TEXTS = {"k": "text"}


@all_rows(
    "kind, written, key",
    [
        ("text", "DE", "DE"),
        ("text", ' "otherwise" ', "otherwise"),
        ("text", '"OTHERWISE"', "OTHERWISE"),
        ("text", '"  two blanks "', "  two blanks "),
        ("text", '"A or B"', "A or B"),
        ("text", '"say \\"no\\" \\u00e9"', 'say "no" é'),
        ("text", "left to right", "left to right"),
        ("text", "the  north", "the north"),
        ("text", "notable", "notable"),
        ("text", 'the "best"', 'the "best"'),
        ("one_of(otherwise, not all)", '"otherwise"', "otherwise"),
        ("one_of(otherwise, not all)", "not all", "not all"),
        ("boolean", "true", True),
        ("boolean", False, False),
        ("number", 2.5, Fraction(5, 2)),
        ("integer", "-3", -3),
        ("date", date(2026, 1, 31), date(2026, 1, 31)),
        ("date", "31 January 2026", date(2026, 1, 31)),
        ("percent", "5%", Fraction(1, 20)),
        ("money(EUR)", "1,000.00 EUR", 1000),
    ],
)
def test_a_key_of_a_row_is_the_value_that_it_says(kind: str, written: object, key: Value) -> None:
    """A value, as a reply would write it, or in quotes; the table that is made of its rows as text is the same."""
    table = Table("fee", {"k": kind}, "integer", {written: 1, "otherwise": 2})
    assert table.has_row((key,))
    assert table.look_up((key,)) == 1
    again = Table("fee", {"k": kind}, "integer", table.rows)
    assert again.has_row((key,))
    assert (again, hash(again)) == (table, hash(table))
    assert eval(repr(table), {"Table": Table}) == table


@all_rows(
    "kind, written, says",
    [
        *(
            ("text", text, "several keys")
            for text in ("A or B", "A oder B", "not A", "Any", "*", "all except A", "over 5")
        ),
        ("number", "lots", "a range is `0 to 5`"),
        ("date", "soon to 2026-01-31", "soon"),
        ("boolean", "0 to 5", "row 1"),
        ("percent", "5 to 10%", "needs its sign"),
        ("percent", "over 5", "needs its sign"),
        ("number", "5 to under 5", "ends before it begins"),
        ("number", "over 5 to 5", "ends before it begins"),
        ("number", "over a", "row 1"),
        ("one_of(a, b)", "c", "row 1"),
    ],
)
def test_a_key_that_cannot_be_read_is_refused(kind: str, written: str, says: str) -> None:
    """With the row that it stands in."""
    with pytest.raises(ProcedureError, match="table 'fee', row 1: ") as refused:
        Table("fee", {"k": kind}, "integer", [(written, 1)])
    assert says in str(refused.value)


@all_rows(
    "keys, rows, says",
    [
        ({}, [(1,)], "0 keys: 1 to 8 are possible"),
        ({f"k{place}": "text" for place in range(9)}, [("a",) * 10], "9 keys"),
        ({"k": "list of text"}, [("a", 1)], "its key 'k' is list of text"),
        ({"k": "period"}, [("1 month", 1)], "its key 'k' is period"),
        (TEXTS, {}, "no rows"),
        (TEXTS, [("a", "b", 1)], "3 parts instead of 2 (k, value; `otherwise` may be any key)"),
        (
            TEXTS,
            [("a", 1), ("up to 1", "000", 2)],
            "row 2: 3 parts instead of 2 (k, value; `otherwise` may be any key): leave the comma",
        ),
        (TEXTS, {"a": 1, ("b",): "x"}, "row 2"),
        (TEXTS, {"a": 1, '"a"': 1}, "row 2: the key a has a row already"),
        (
            {"n": "number", "k": "text"},
            [("5", "x", 1), ("0 to 10", "x", 2)],
            "the key 5 has a row and is in a range, too",
        ),
        (TEXTS, ((str(number), 1) for number in count()), "more than 100000 rows"),
    ],
)
def test_a_table_that_cannot_be_made_says_why(keys: dict[str, str], rows: Any, says: str) -> None:
    """Which row, key or number it is."""
    with pytest.raises(ProcedureError) as refused:
        Table("fee", keys, "integer", rows)
    assert says in str(refused.value)
    assert ("leave the comma" in str(refused.value)) is ("comma" in says)


@all_rows(
    "kind, key, says",
    [
        ("text", 5, "the key k of the table fee is text, not a number"),
        ("text", True, "not a truth value"),
        ("text", Amount(5, (("kilogram", 1),)), "is text, not an amount"),
        ("one_of(a, b)", 1, "is one_of(a, b), not a number"),
        ("number", "5", "is number, not a text"),
        ("number", True, "not a truth value"),
        ("boolean", 1, "is boolean, not a number"),
        ("date", "2026-01-31", "is date, not a text"),
        ("date", (), "is date, not a list"),
    ],
)
def test_a_key_of_another_type_finds_nothing(kind: str, key: Value, says: str) -> None:
    """Not even `otherwise`; a truth value is no number."""
    table = Table("fee", {"k": kind}, "integer", {"otherwise": 1})
    for ask in (table.look_up, table.has_row):
        with pytest.raises(InexactError) as refused:
            ask((key,))
        assert says in str(refused.value)


def test_a_row_has_as_many_keys_as_the_table() -> None:
    """No key is left out, and none is one too many."""
    table = Table("fee", {"k": "text", "n": "integer"}, "integer", {("a", 1): 5})
    assert table.look_up(("a", 1)) == 5
    for wrong in ((), ("a",), ("a", 1, 1)):
        with pytest.raises(InexactError, match=f"the table fee is looked up by k, n, not by {len(wrong)} keys"):
            table.look_up(wrong)
    with pytest.raises(UndefinedError, match="the table fee has no row for k b, n 1"):
        table.look_up(("b", 1))
    assert Table("fee", dict.fromkeys("abcdefgh", "text"), "integer", [(*"abcdefgh", 1)]).look_up("abcdefgh") == 1


def test_tables_are_the_same_where_all_of_them_is() -> None:
    """Name, keys, types and rows; nothing else is a table."""
    one = Table("fee", TEXTS, "integer", {"a": 1})
    assert one == Table("fee", TEXTS, "integer", [("a", 1)])
    assert Table("fee", TEXTS, "integer", {'"A or é"': 1}).rows == (('"A or é"', "1"),)
    for other in (
        Table("fees", TEXTS, "integer", {"a": 1}),
        Table("fee", {"key": "text"}, "integer", {"a": 1}),
        Table("fee", TEXTS, "number", {"a": 1}),
        Table("fee", TEXTS, "integer", {"a": 2}),
        (("fee",), one.keys, one.value, one.rows),
    ):
        assert one != other


def test_a_csv_file_has_names_and_rows() -> None:
    """Its first line names the columns; the keys have types and an order, and that of the value is given apart."""
    text = "\ufeff country , age,price\n\nDE,up to 5,1.50\n , ,\nDE,over 5,2"
    table = Table.from_csv("fee", text, keys={"country": "text", "age": "integer"}, value="number")
    assert table == Table(
        "fee", {"country": "text", "age": "integer"}, "number", [("DE", "up to 5", "1.5"), ("DE", "over 5", "2")]
    )
    assert Table.from_csv("fee", "k,v\na,b") == Table("fee", TEXTS, "text", {"a": "b"})
    for bad, keys, says in (
        (text, {"price": "number"}, "the file has no column 'price': it has country, age, price"),
        ("k,v", {}, "a CSV file has a line of names"),
        ("v\n1", {}, "a CSV file has a line of names"),
        ("k,k\na,b", {}, "two columns have the same name"),
        ('k,v\na,"b', {}, "it is no CSV"),
        ("k,v\na,b,c", TEXTS, "row 1: 3 parts instead of 2"),
        ("k,v\na", TEXTS, "row 1: 1 parts instead of 2"),
    ):
        with pytest.raises(ProcedureError, match=says):
            Table.from_csv("fee", bad, keys=keys)


def test_the_unit_of_a_range_may_stand_once() -> None:
    """At its end, for both; an amount in another unit is looked up in that of the key."""
    pytest.importorskip("pint")
    table = Table("fee", {"w": "quantity(kg)"}, "integer", {"-1.5 to 2 kg": 1, "over 2 kg to 3000 g": 2, "4000 g": 3})
    grams = (("gram", 1),)
    assert [table.look_up((Amount(number, grams),)) for number in (-1500, 2000, 2001, 3000, 4000)] == [1, 1, 2, 2, 3]
    for wrong in ("0 to 2", "over 3", "a to 2 kg"):
        with pytest.raises(ProcedureError, match="row 1"):
            Table("fee", {"w": "quantity(kg)"}, "integer", {wrong: 1})
    for other in (2, "2 kg", Amount(2, (("meter", 1),))):
        with pytest.raises(InexactError):
            table.look_up((other,))
