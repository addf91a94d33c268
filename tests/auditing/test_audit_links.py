"""Equalities in free text: what is called false is false, and what is doubtful is left alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import all_rows

from stepguard.auditing import check_links, false_links

pytestmark = pytest.mark.once

FALSE = {
    "3 + 4 = 8": ("3 + 4", "8"),
    "so he has 3 + 4 = 8 apples left": ("3 + 4", "8"),
    "He pays 48/2=<<48/2=25>>24 dollars": ("48/2", "25"),
    "A = (1 + 2) = 4": ("(1 + 2)", "4"),
    "**2 + 3** = **6**": ("2 + 3** ", "6"),
    "\\[ 2 \\times 3 = 7 \\]": ("2 \\times 3", "7"),
    "1. 3 + 4 = 8": ("3 + 4", "8"),
    "Step 3: 3 + 4 = 8": ("3 + 4", "8"),
    "10/3 = 3.43": ("10/3", "3.43"),
    "(since 3 + 4 = 8)": ("3 + 4", "8"),
    "The total is 1,200 + 300 = 1,600.": ("1,200 + 300", "1,600"),
    "3 + 4\n= 8": ("3 + 4", "8"),
    "She drives a total of 20 + 25 = 55 miles": ("20 + 25", "55"),
    "-9 - (-4) = -13": ("-9 - (-4)", "-13"),
    "50% * 40 = 30": ("50% * 40", "30"),
    "5 x 3 = 16": ("5 x 3", "16"),
}

NOT_FALSE = [
    *("3 + 4 = 7", "10/3 = 3.33", "10/3 = 3.3", "2/3 = 0.67", "2/3 = 0.66", "10/3 = 3.333..."),
    *("800/3 = 266.6666666666667", "1/3*5 = 1.6666666666666665", "Half of 3 + 4 = 3.5", "half of\n3 + 4 = 3.5"),
    *("twice 3 + 4 = 14", "The average of 4 + 6 = 5", "5 feet 3 + 2 = 5 feet 5", "10 apples - 4 = 6"),
    *("7 + 8 = 3 (mod 12)", "11 + 4 = 3 o'clock", "9 + 8 = 5 pm", "1 + 1 = 10 in binary", "1 + 1 + 1 = 11 in binary"),
    *("25 + 75 = 1 dollar", "25 + 75 = $1", "60 + 60 = 2 hours", "10 / 3 = 3 r 1", "10 / 3 = 3 remainder 1"),
    *("1,5 + 2,5 = 4", "1.500 + 500 = 2.000", "1,500 + 2,500 = 4", "100 + 20% = 120", "20/80 = 25%"),
    *("20/80 * 100 = 25%", "3/6 = 50%", "500 + 500 = 1 thousand", "1000 + 500 = 1.5k", "f(2) = 4", "2x + 3 = 7"),
    *("2x + 180 - x = 304 humps", "3! = 6", "120 = 5!", "5² = 25", "10² + 3 = 103", "\u221a9 + 1 = 4", "|-3| = 3"),
    *("C(5,2) = 10", "log(100) = 2", "a[3] = 4", "3:30 + 1:30 = 5:00", "see ?id=3&x=4=5"),
    *("2 + 2 != 5, 2 + 2 \u2260 5, 2 + 2 <= 5, 2 + 2 == 5", "if 2 + 2 = 5 then", "it is not true that 2 + 2 = 5"),
    *("2^3^2 = 64", "-2^2 = 4", "0x10 = 16", "3 * 12 = 3 dozen", "1 1/2 + 1/2 = 2", "there are 2 hours = 120 minutes"),
    *("Day 1 = 10", "3 + 4 * 2\n+ 6 = 17", "10 = 7\n+ 3", "x = 5, y = 3", "1 foot = 12 inches", "5 choose 2 = 10"),
    *("10 is 1/2 of 25 - 5 = 10", "from 10, subtract 3 + 4 = 3", "add 2 to 3 + 4 = 9", "12 cm + 3 mm = 123 mm"),
    *("\\frac{1}{2+3} = 1/5", "\\sqrt{16} + 1 = 5", "===\nTitle\n=====", "ratio 2: 3 = 4: 6", "version 1.2 = 1.20"),
    *("40 people / 4 = 10 people", "x = 3 = 3", "3 + 4 \u2248 8"),
]


@all_rows("text", FALSE)
def test_a_false_link_is_found_with_its_sides(text: str) -> None:
    """A false equality is found once, with both sides, where they stand."""
    (link,) = false_links(text)
    left, right = FALSE[text]
    assert (link.left.strip(" *"), link.right) == (left.strip(" *"), right)
    assert text[link.place.start : link.place.end].startswith(link.left[:1])
    assert link.left_value != link.right_value


@all_rows("text", NOT_FALSE)
def test_what_may_be_right_is_not_called_false(text: str) -> None:
    """Units, scales, other notations, words that change a number, and roundings raise no false alarm."""
    assert false_links(text) == ()


@pytest.mark.parametrize("text", ["10/3 = 3.33", "2/3 = 0.66", "2/3=<<2/3=0.6666666666666666>>0.67", "7/2 = 4 boxes"])
def test_a_rounding_is_told_apart(text: str) -> None:
    """A number that is the other side rounded or cut off is neither true nor false."""
    assert {link.verdict for link in check_links(text)} == {"rounded"}


def test_links_are_judged_one_by_one() -> None:
    """In a chain every link has its own verdict, and a side that cannot be read spoils only its own links."""
    text = "A = (2 * 3) + 1 = 6 + 1 = 8 = 4 * 2 = b = 9"
    assert [link.verdict for link in check_links(text)] == ["unread", "true", "false", "true", "unread", "unread"]


def test_a_link_says_where_it_stands() -> None:
    """Offsets and lines are those of the text."""
    text = "First.\nThen 2 + 2 = 4.\nSo it is 2 + 3 = 6."
    (link,) = false_links(text)
    assert link.place.line == 3
    assert text[link.place.start : link.place.end] == "2 + 3 = 6"
    assert json.loads(json.dumps(link.to_dict()))["verdict"] == "false"


@given(st.text(alphabet="0123456789+-*/=() .,%$x\n<>abhl\\{}^&", max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    """No text makes the reading raise, and every link lies within it."""
    for link in check_links(text):
        assert 0 <= link.place.start <= link.place.end <= len(text)


@given(st.integers(-999, 999), st.integers(-999, 999), st.integers(-30, 30))
def test_a_sum_is_false_exactly_where_it_is(left: int, right: int, off: int) -> None:
    """A plain sum is called false if and only if it is."""
    text = f"{left} + ({right}) = {left + right + off}"
    assert bool(false_links(text)) == (off != 0)
