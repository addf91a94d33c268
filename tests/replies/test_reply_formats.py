"""How one entry of a reply is read: equations, copied texts, working with a value, and what the schema asks for."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError
from tables import all_rows

from stepguard.core.verdicts import Claim, Deviation
from stepguard.language.strict_json import decode
from stepguard.procedure.steps import Step
from stepguard.replies.formats import EquationFormat

SUM = Step("a", "x + y")
COUNT = Step("n", instruction="Count them.", type="number")
NAMED = Step("s", instruction="Name it.")
COLOUR = Step("c", instruction="Which colour?", type="one_of(red, dark blue)")
TEXT = Step("t", "name", type="text")


def claim(step: Step, field: object, decimal: str = ".") -> Claim:
    found = EquationFormat(decimal=decimal).claim(step, field)  # type: ignore[arg-type]
    assert isinstance(found, Claim), found
    return found


def refusal(step: Step, field: object) -> Deviation:
    found = EquationFormat().claim(step, field)
    assert isinstance(found, Deviation), found
    assert found.step == step.id
    return found


@all_rows(
    "field, work, value",
    [
        *(("$12 + 7 = 19$", ("12 + 7",), "19"), ("$$12 + 7 = 19$$", ("12 + 7",), "19")),
        *(("\\(12 + 7 = 19\\)", ("12 + 7",), "19"), ("\\[ 12 + 7 = 19 \\]", ("12 + 7",), "19")),
        *(("**12 + 7 = 19**", ("12 + 7",), "19"), ("`12 + 7 = 19` \n", ("12 + 7",), "19")),
        *(("`a: 12 + 7 = 19`", ("12 + 7",), "19"), ("a: 12 + 7 = 19", ("12 + 7",), "19")),
        *(("a : a = 12 + 7 = 19", ("12 + 7",), "19"), ("b: 12 + 7 = 19", ("b: 12 + 7",), "19")),
        *(("b = 12 + 7 = 19", ("b", "12 + 7"), "19"), ("a", (), "a"), ("a = 19", (), "19")),
        *(("$12 + $7 = $19", ("$12 + $7",), "$19"), ("$12 + 7 = $19$", ("$12 + 7",), "$19$")),
        *(("**12** + 7 = **19**", ("**12** + 7",), "**19**"), ("$$", (), "$$"), ("`6`", (), "6")),
        *(("12 + 7 <= 19", (), "12 + 7 <= 19"), ("12 + 7 != 18", (), "12 + 7 != 18")),
        *(("12 + 7 := 19", (), "12 + 7 := 19"), ("12 + 7 = 19 \t\r\n", ("12 + 7",), "19")),
    ],
)
def test_markup_around_an_equation_is_taken_off(field: str, work: tuple[str, ...], value: str) -> None:
    """Markup around the whole of an equation and the step's own name in front of it are no part of it."""
    found = claim(SUM, field)
    assert (found.step, found.work, found.value, found.text) == ("a", work, value, field)


def test_an_equation_has_a_hundred_sides_at_most() -> None:
    """A chain of a hundred links is read, a longer one refused."""
    assert claim(SUM, "=".join(["19"] * 100)).work == ("19",) * 99
    assert refusal(SUM, "=".join(["19"] * 101)).kind == "malformed"


@all_rows("char", ["\x00", "\x1f", "\t", "\n", "\x7f", "\x9f", "\ud800"])
def test_an_equation_is_one_printable_line(char: str) -> None:
    """A control character or half a surrogate pair inside an equation comes of bad escaping."""
    assert refusal(SUM, f"12 + {char}7 = 19").kind == "malformed"


@pytest.mark.parametrize("char", ["\u00a0", "\u2009", "é", "\u2212"])
def test_other_characters_may_stand_in_an_equation(char: str) -> None:
    """Typographic blanks and signs are left to the reading of the working."""
    assert claim(SUM, f"12 +{char}7 = 19").work == (f"12 +{char}7",)


@pytest.mark.parametrize(
    ("field", "work", "value"),
    [
        *(("t = name = Lyon", ("name",), "Lyon"), ("t=name=Lyon", ("name",), "Lyon")),
        *(("name = t = Lyon", ("name",), "t = Lyon"), ("t = t = Lyon", (), "t = Lyon"), ("t =  Lyon \n", (), "Lyon")),
        *(("  Lyon ", (), "  Lyon "), ("name", (), "name"), ("t", (), "t"), ("town = Lyon", (), "town = Lyon")),
        *(("t = ", (), ""), ("$Lyon$", (), "$Lyon$"), ("a\tb\r\nc", (), "a\tb\r\nc")),
    ],
)
def test_a_text_is_copied_verbatim(field: str, work: tuple[str, ...], value: str) -> None:
    """Behind the step's own name and its formula, each at most once and in this order, a text stands as it is."""
    found = claim(TEXT, field)
    assert (found.work, found.value, found.text) == (work, value, field)


@all_rows("step", [TEXT, NAMED])
@all_rows(
    "text", ["a\x00b", "\x08eta", "\x0crac", "\ud800", "a\rb", "2 \times 3", "\theta", "\text {a}", "\neq 3", "\nabla"]
)
def test_a_text_that_lost_a_backslash_is_refused(step: Step, text: str) -> None:
    """What JSON makes of LaTeX with single backslashes is no text."""
    assert refusal(step, text if step is TEXT else {"work": "", "value": text}).kind == "malformed"
    assert refusal(step, text if step is TEXT else {"work": text, "value": "x"}).kind == "malformed"


@all_rows("text", ["a\tb", "a\nb", "a\r\nb", "\nequal", "\ttext", "\tfraction"])
def test_lines_and_tabs_of_a_text_are_kept(text: str) -> None:
    """Ordinary line breaks and tabs are no lost backslashes."""
    assert claim(TEXT, text).value == text


@pytest.mark.parametrize(
    ("step", "value"), [(NAMED, "No, wait: actually"), (COLOUR, "sorry, red"), (TEXT, "Actually, no")]
)
def test_words_may_be_the_value_of_a_step_of_words(step: Step, value: str) -> None:
    """Where the value is text, words that take something back elsewhere are text."""
    assert claim(step, value if step is TEXT else {"work": "", "value": value}).value == value


def test_an_option_with_such_words_may_be_copied() -> None:
    """A listed option stands as it is behind the step's name and formula, whatever its words."""
    step = Step("k", "reply", type='one_of("no, thanks", yes)')
    assert claim(step, "k = reply = no, thanks").value == "no, thanks"


@pytest.mark.parametrize("value", ["18, no wait, 19", "18. Sorry, 19", "~~18~~ 19", "18 (should be 19)"])
def test_a_number_that_is_taken_back_is_no_value(value: str) -> None:
    """Where the value is a number, a correction of it is refused; in the working before it is harmless."""
    assert refusal(COUNT, {"work": "", "value": value}).kind == "self_correction"
    assert claim(COUNT, {"work": value, "value": "19"}).value == "19"


def test_a_claim_in_words_shows_its_working_and_value() -> None:
    """The text of a claim holds both parts of its entry; an empty working is none."""
    found = claim(COUNT, {"work": "one by one", "value": " 19\t"})
    assert (found.work, found.value, found.text) == (("one by one",), "19", "one by one =  19\t")
    assert claim(COUNT, {"work": "", "value": "19"}).work == ()


@all_rows(
    "field",
    [
        {}, {"work": "x"}, {"value": "x"}, {"work": "x", "value": "y", "unit": "z"}, {"Work": "x", "Value": "y"},
        {"work": None, "value": "x"}, {"work": "x", "value": None}, {"work": 1, "value": "x"}, ["x", "y"], "x", None,
    ],
)  # fmt: skip
def test_an_entry_in_words_is_exactly_work_and_value(field: object) -> None:
    """An entry that lacks one of the two texts, has more, or is no object is malformed."""
    assert refusal(NAMED, field).kind == "malformed"


@all_rows(
    "field, shown",
    [
        *((None, "null"), (True, "a truth value")),
        (decode("1.50"), "the bare number 1.50"),
        *(("1.50", "text"), ("[1]", "text")),
        (["x", "y"], "a list"),
        (1.5, "float"),
    ],
)
def test_what_is_found_instead_of_an_entry_is_named(field: object, shown: str) -> None:
    """A refusal says what JSON has in place of what was asked for."""
    assert refusal(NAMED, field).reason == f"an object with work and value was expected, found {shown}"
    assert refusal(SUM, {"work": "", "value": "19"}).reason == "text was expected, found an object"


@all_rows(
    "step, text, value",
    [
        (Step("f", "x > 1"), "true", "true"),
        (Step("f", "x > 1"), "false", "false"),
        (Step("f", "x > 1", show_work=False), "false", "false"),
        (Step("f", instruction="Is it?", type="boolean"), '{"work": "", "value": false}', "false"),
        *((SUM, "19", "19"), (SUM, "1.90e1", "1.90e1"), (COUNT, '{"work": "", "value": 19}', "19")),
    ],
)
def test_numbers_and_truth_values_of_json_are_values(step: Step, text: str, value: str) -> None:
    """A number, or for a truth value true and false, may stand in a reply without quotes."""
    found = claim(step, decode(text))
    assert (found.value, type(found.value)) == (value, str)


@pytest.mark.parametrize("field", [{"work": "", "value": 1.234}, json.dumps({"work": "", "value": 1.234})])
def test_a_number_of_json_has_a_point_however_it_is_wrapped(field: object) -> None:
    """With a decimal comma 1.234 without quotes is no thousand, also in an entry that was encoded twice."""
    assert claim(COUNT, decode(json.dumps(field)), ",").value == "1.234"
    assert claim(COUNT, {"work": "", "value": "1.234"}, ",").value == "1234"


def test_only_numbers_have_a_decimal_comma() -> None:
    """With a decimal comma a text and the working of a step in words stay as they are written."""
    assert claim(NAMED, {"work": "1.5 or so", "value": "v1.2.3"}, ",").value == "v1.2.3"
    assert claim(COUNT, {"work": "v1.2.3", "value": "1,5"}, ",").work == ("v1.2.3",)
    assert claim(SUM, "1,5 + 2 = 3,5", ",").work == ("1.5 + 2",)


@pytest.mark.parametrize(
    ("step", "answer"),
    [(SUM, "12 + 7 = 19"), (Step("a", "x + y", show_work=False), "19"), (COUNT, {"work": "12 + 7", "value": "19"})],
)
def test_a_demonstration_is_an_entry(step: Step, answer: object) -> None:
    """A right answer is shown as the entry that is asked for."""
    assert EquationFormat().answer(step, "12 + 7", "19") == answer
    assert EquationFormat().answer(SUM, "", "19") == "19"


def test_a_demonstration_has_the_configured_separator() -> None:
    """Numbers are shown with the separator that the model writes, other texts untouched."""
    comma = EquationFormat(decimal=",")
    assert comma.answer(SUM, "1.5 + 2", "3.5") == "1,5 + 2 = 3,5"
    assert comma.answer(NAMED, "v1.5", "v1.6") == {"work": "v1.5", "value": "v1.6"}
    assert comma.instructions.startswith(EquationFormat().instructions)
    assert "comma" in comma.instructions.removeprefix(EquationFormat().instructions)


CHOICE = Step("k", "colour", type="one_of(red, dark blue)", show_work=False)


def test_the_schema_lists_the_options_of_a_choice() -> None:
    """Where the options are known the schema allows nothing else as the value; an equation stays text."""
    steps = [SUM, CHOICE, COLOUR, Step("e", "colour", type="one_of(red, dark blue)"), NAMED]
    model = EquationFormat().response_model(steps)
    words = {"work": "", "value": "anything"}
    good = {"a": "1", "k": "red", "c": {"work": "", "value": "dark blue"}, "e": "colour = red", "s": words}
    model.model_validate(good)
    for key, bad in (
        ("k", "green"), ("k", "colour = red"), ("c", words), ("c", {"value": "red"}), ("c", "red"), ("s", "red"),
        ("s", {"value": "red"}), ("s", {**words, "x": ""}), ("c", {"work": "", "value": "red", "x": ""}), ("a", 1),
        ("a", words), ("z", "1"),
    ):  # fmt: skip
        with pytest.raises(ValidationError):
            model.model_validate({**good, key: bad})
    with pytest.raises(ValidationError):
        model.model_validate({key: good[key] for key in ("a", "k", "c", "e")})


def test_the_names_in_a_schema() -> None:
    """Providers see what a reply is called, and one name for every kind of entry in words."""
    schema = EquationFormat().response_model([SUM, COLOUR, NAMED, COUNT]).model_json_schema()
    assert schema["title"] == "Steps"
    assert [*schema["$defs"]] == ["WorkAndChoice1", "WorkAndValue"]


def test_the_schema_of_the_same_shape_is_the_same() -> None:
    """Steps of other names, kinds or options have another schema, the same ones the same."""
    model = EquationFormat().response_model
    assert model([SUM, COLOUR]) is model((Step("a", "y - x"), COLOUR))
    assert len({model([SUM]), model([NAMED]), model([COLOUR]), model([CHOICE]), model([Step("b", "x + y")])}) == 5
    assert [*model([SUM, COLOUR]).model_json_schema()["properties"]] == ["a", "c"]
