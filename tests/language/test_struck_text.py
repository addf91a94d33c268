"""Struck-out and hidden text is found, whatever marks it, and so are characters that nobody sees."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import all_rows

from stepguard.language.prose.struck_text import JOINT, struck_spans, without_struck
from stepguard.language.unseen import without_unseen

STROKES = "\u0335\u0336\u0337\u0338"
MARKS = [
    "~~{}~~", "~{}~", "<s>{}</s>", "<del class='x'>{}</del>", "<STRIKE>{}</STRIKE>", "<s>{}<s>1</s>2</s>",
    r"\sout{{{}}}", r"\st{{{}}}", r"\cancel{{{}}}", "#strike[{}]", "<!-- {} -->", "[deleted: {}]", "[s]{}[/s]",
    "{{--{}--}}", "[-{}-]", "<p hidden>{}</p>", '<b style="display: none">{}</b>', "<script>{}</script>",
    "<span class='price line-through'>{}</span>", "<w:del><w:t>{}</w:t></w:del>", "{} (struck out)", "{} [deleted]",
]  # fmt: skip


@pytest.mark.parametrize("mark", MARKS)
@given(struck=st.sampled_from(["80.00", "80.00 EUR", "Ann Lee"]), kept=st.sampled_from(["70.00", "Bob"]))
def test_what_is_struck_is_blanked_and_nothing_else(mark: str, struck: str, kept: str) -> None:
    """Each way of striking out takes away what it marks, keeps the rest, and leaves the length as it was."""
    text = f"Price: {mark.format(struck)} {kept}, paid"
    seen = without_struck(text)
    assert (len(seen), seen.split()) == (len(text), ["Price:", *f"{kept}, paid".split()])
    assert all(span.closed for span in struck_spans(text))


@pytest.mark.parametrize("stroke", STROKES)
def test_characters_with_a_stroke_through_them_are_struck(stroke: str) -> None:
    """A number with a stroke through every character is struck; a sign that a stroke turns into another one is not."""
    text = f"Price: {''.join(char + stroke for char in '80.00')} 70.00"
    assert without_struck(text).split() == ["Price:", "70.00"]
    assert without_struck("a =\u0338 b") == "a =\u0338 b"


@all_rows("opening", ["~~", "<s>", "<del>", "<!--", r"\sout{", "[deleted:", "{--", "<p hidden>", "[s]", "~~ a ~~ ~~"])
def test_a_mark_that_is_not_closed_strikes_what_follows(opening: str) -> None:
    """How far an unclosed mark reaches nobody can say, so that nothing behind it counts."""
    text = f"Price: 60.00 {opening}80.00 70.00"
    assert without_struck(text).split() == ["Price:", "60.00"]
    assert not struck_spans(text)[-1].closed


@all_rows(
    "text",
    ["~5 to ~6", "5~6 and 7~8", "~~~\ncode\n~~~", "a < b > c", "<b>5</b>", "[5] (6) {7}", "x -- y", "~/a ~/b", "<i>5"],
)
def test_what_strikes_nothing_is_left(text: str) -> None:
    """Tildes for about, ranges, fences, comparisons and other tags strike nothing."""
    assert without_struck(text) == text


@pytest.mark.parametrize(("text", "joined"), [("12~~3~~4", True), ("~~80~~70", False), ("(~~80~~70)", False)])
def test_what_stands_on_both_sides_of_a_struck_part_belongs_together(text: str, joined: bool) -> None:
    """Digits around a struck part are those of one number, as a reader sees them."""
    assert (JOINT in without_struck(text)) is joined


def test_no_character_of_format_is_left_but_those_with_a_shape() -> None:
    """Of all characters that only format text those stay that are drawn: signs of Arabic and Kaithi numbers."""
    kept = [char for char in map(chr, range(0x110000)) if unicodedata.category(char) == "Cf" and without_unseen(char)]
    assert all("ARABIC" in unicodedata.name(char) or "KAITHI" in unicodedata.name(char) for char in kept)
    assert without_unseen("s\ufe0fo\u3164r\u115fr\u180ey\u034f\U000e0100") == "sorry"
