"""Entries that state no single value: hedges, two values, units, other scripts, broken notation.

The number in them is the right one wherever that is possible: a reader who took what is familiar out of the text would
accept them. `right_elsewhere` values are those that another notation would make right.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from certification.cases import Case
from certification.truth import number_text
from certification.wrong_entries import Wrong, wrong_kind, wrong_value

__all__: list[str] = []


def _texts(name: str, *ways: str) -> None:
    """Register ways of saying a number (``{}``) or another one (``{other}``) that state no value."""

    @wrong_kind(name)
    def made(case: Case) -> Wrong | None:
        number = case.number
        if number is None:
            return None
        way = case.chance.choice(ways)
        other = case.spec.write(number + case.chance.choice([1, -1, 10]))
        value = way.replace("{other}", other).replace("{}", case.plain)
        # A power of ten, and a fraction of LaTeX with a bare digit, which are numbers.
        if value.lstrip("-") in ("10\u00b9", "10^1") or ("frac" in value and case.plain == "1"):
            return None
        return Wrong(case.with_work(case.work(), value), "statement")


_texts("about it", "about {}", "approximately {}", "~{}", "ca. {}", "roughly {}", "{} (approx.)", "{}-ish", "almost {}")
_texts("a hedge", "maybe {}", "{}?", "{}, I think", "probably {}", "{} (not sure)", "{}!", "it should be {}")
_texts(
    "two values", "{} or {other}", "{} and {other}", "{}, {other}", "{} to {other}", "{}..{other}", "{} / {other}.0.0"
)
_texts(
    "a choice",
    "either {} or {other}",
    "{other}|{}",
    "[{}, {other}]",
    "{{}, {other}}",
    "({other}; {})",
    "{}±1",
    "{} +- 1",
)
_texts(
    "taken back",
    "{other}, wait, {}",
    "{other}. No, {}",
    "{other} (correction: {})",
    "{other} sorry {}",
    "~~{other}~~ {}",
)
_texts(
    "a relation", "> {}", "< {}", ">= {other}", "not {}", "!= {other}", "at least {}", "{} == {other}", "{} < {other}"
)
_texts(
    "no number", "NaN", "nan", "inf", "Infinity", "-Infinity", "\u221e", "undefined", "None", "null", "n/a", "?", "x"
)
_texts(
    "a word", "the answer", "nineteen", "a dozen", "result", "same as above", "t1", "see above", "{} apples", "{} kg"
)
_texts("a unit", "{} kg", "{} m", "{}\u00b0", "{} USD EUR", "#{}", "{} hours", "No. {}", "{}x", "{}k", "{} million")
_texts(
    "broken digits",
    "{}_000",
    "{},0000",
    "0x{}",
    "{}e",
    "{}e+",
    "--{}",
    "+-{}",
    "- -{}",
    "{}-",
    "{}+",
    "{} {}",
    "{}.{}.{}",
)
_texts("broken grouping", "{},00", "1,{},0", ",{}", "{},", "{}'000", "{}.000.00", "0,{}00", "{} 000,0", "{};0")
_texts("an open bracket", "({}", "{})", "[{}", "{}]", "{{}", "\\frac{{}}", "\\frac{{}}{}", "\\frac{}{{}}", "\\sqrt{{}")
_texts(
    "an operation",
    "{} +",
    "+ {} +",
    "{} * 1",
    "{} - 0",
    "{}/1/1",
    "{}/0",
    "{}^1",
    "1 * {}",
    "{} mod",
    "sqrt({})",
    "-({})",
)
_texts("a superscript", "{}\u00b2", "{}\u2070", "{}\u00b9", "\u00b2{}", "{}\u2081", "{}\u00bd\u00bd", "{}\u00aa")
_texts(
    "text around it", "{} (estimated)", "{}; done", "value={}{}", "{}\u200b1", "{}\n{other}", "{}\t{other}", "{} // ok"
)
_texts(
    "hidden characters",
    "{}\u0000",
    "\u202e{}",
    "{}\u200b",
    "\ufeff{}0\ufeff",
    "{}\u0301",
    "\u2066{}\u2069",
    "{}\x1b[0m",
)
_texts(
    "code",
    "int({})",
    "{}.__class__",
    "lambda: {}",
    "__import__('os')",
    "{}if 1 else 0",
    "f'{}'",
    "eval('{}')",
    "{}L",
    "{}j",
)
_texts("nothing", "", " ", "-", "+", ".", "%", "$", "**", "``", "()", "\\(\\)", "{}"[:0], "\u2014", "=")


_SCRIPTS = ("\u0660", "\u06f0", "\u0966", "\uff10", "\u09e6", "\u0e50", "\U0001d7ce", "\u2460")


@wrong_kind("digits of another script")
def _script(case: Case) -> Wrong | None:
    if case.number is None:
        return None
    zero = ord(case.chance.choice(_SCRIPTS))
    text = case.plain.translate({ord("0") + digit: zero + digit for digit in range(10)})
    mixed = text[:1] + case.plain[1:] if case.chance.random() < 0.3 and text[:1] != case.plain[:1] else text
    return Wrong(case.with_work(case.work(), mixed), "statement")


@wrong_kind("a decimal comma")
def _comma(case: Case) -> Wrong | None:
    text = case.plain
    if case.number is None or "." not in text:
        return None
    written = text.replace(".", ",")
    read = written.replace(",", "")  # what grouping would make of it
    value = Fraction(read.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if case.spec.kind == "percent" and not case.spec.wrong(value, case.made.exact):
        return None
    return Wrong(case.with_work(case.work(), written), "statement")


@wrong_kind("a point that groups thousands")
def _point(case: Case) -> Wrong | None:
    number = case.number
    if number is None or number.denominator != 1 or not abs(number) >= 1000 or case.spec.kind == "percent":
        return None
    written = f"{int(number):,}".replace(",", ".")
    value = Fraction(written) if written.count(".") == 1 else None
    if value is not None and not case.spec.wrong(value, case.made.exact):
        return None
    return Wrong(case.with_work(case.work(), written), "statement")


@wrong_kind("a comma moved")
def _comma_moved(case: Case) -> Wrong | None:
    number = case.number
    if number is None or number.denominator != 1 or abs(number) < 1000 or case.spec.kind == "percent":
        return None
    digits = str(abs(int(number)))
    at = case.chance.choice([place for place in range(1, len(digits)) if (len(digits) - place) % 3])
    return Wrong(case.with_work(case.work(), f"{'-' * (number < 0)}{digits[:at]},{digits[at:]}"), "statement")


@wrong_kind("a percent sign too many or too few")
def _percent(case: Case) -> Wrong | None:
    number = case.number
    if number is None:
        return None
    if case.spec.kind == "percent":
        ratio = number_text(number)
        return wrong_value(case, number / 100, text=case.chance.choice([ratio, f"{ratio}%"]))
    return wrong_value(case, number / 100, text=f"{case.plain}{case.chance.choice(['%', ' %', ' percent'])}")


_MARKS = {"USD": "$", "EUR": "\u20ac", "GBP": "\u00a3", "JPY": "\u00a5", "KWD": "KWD "}


@wrong_kind("another currency")
def _currency(case: Case) -> Wrong | None:
    if case.spec.kind not in ("money", "percent") or case.number is None:
        return None
    code = case.chance.choice([each for each in _MARKS if each != case.spec.currency])
    text = case.plain.removesuffix("%")
    return Wrong(
        case.with_work(case.work(), case.chance.choice([f"{_MARKS[code]}{text}", f"{text} {code}"])), "statement"
    )


@wrong_kind("no truth value")
def _truth(case: Case) -> Wrong | None:
    truth = case.made.truth
    if not isinstance(truth, bool):
        return None
    said = str(truth).lower()
    ways = (
        *(
            "yes" if truth else "no",
            "1" if truth else "0",
            "T" if truth else "F",
            f"{said} or {not truth}",
            f"not {not truth}",
        ),
        *(
            f"{said}?",
            f"probably {said}",
            f"{said} {said}",
            "",
            "maybe",
            f"{said}, {not truth}",
            "\u2713",
            f"{said[:-1]}",
        ),
    )
    return Wrong(case.with_work(case.work(), case.chance.choice(ways)), "statement")


@wrong_kind("no single option")
def _options(case: Case) -> Wrong | None:
    options = case.spec.options
    if not options:
        return None
    right = case.plain
    other = case.chance.choice([each for each in options if each != right])
    ways = (
        *(
            f"{right} or {other}",
            f"{right}, {other}",
            f"probably {right}",
            f"{right}?",
            f"not {other}",
            f"{right}!",
            "",
        ),
        *(
            f"{right}{other}",
            f"{right} {right}",
            right[:-1],
            f"the {right} one",
            f"{other} -> {right}",
            f"[{right}]",
            "1",
        ),
    )
    return Wrong(case.with_work(None, case.chance.choice(ways)), "statement")


_FIELDS: tuple[Callable[[Case], object], ...] = (
    lambda case: None,
    lambda case: [case.right()],
    lambda case: {"value": case.plain},
    lambda case: {"work": case.work() or "", "value": case.plain, "note": "sure"},
    lambda case: {"work": case.work() or "", "value": None},
    lambda case: {"work": [case.work() or ""], "value": case.plain},
    lambda case: [],
    lambda case: {},
    lambda case: {case.made.id: case.right()},
    lambda case: f'{{"work": "", "value": ["{case.plain}"]}}',
)


@wrong_kind("a field of another shape")
def _shape(case: Case) -> Wrong:
    return Wrong(case.chance.choice(_FIELDS)(case), "statement")
