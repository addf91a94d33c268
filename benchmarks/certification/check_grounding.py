"""Claims about what stands in a document; documents are built from lines whose values are known."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction

from certification.check_constraints import written
from certification.check_dates import date_text, some_date
from certification.families import Family, Problem, Said
from certification.truth import decimal_text, number_text
from stepguard.checks.grounding import Grounded

__all__: list[str] = []

_NAMES = (
    "Ada Byron",
    "Jean-Luc Moreau",
    "O'Neill & Sons",
    "Müller GmbH",
    "Bank of the North",
    "Wei Chen",
    "van der Berg",
)
_ABSENT = ("Ad", "Byr", "Muller", "Neil", "Bank of the South", "Che", "Luc Moreau GmbH", "Sons of O'Neill", "Berg van")


@dataclass(frozen=True, slots=True)
class _Document:
    """What stands in a document: numbers with the word beside them, dates, names, and what is part of an id."""

    kind: str
    type: str
    numbers: dict[str, Fraction]
    dates: dict[str, date]
    names: tuple[str, ...]
    hidden: tuple[Fraction, ...]
    beside: str | None
    text: str

    def holds(self, value: object) -> bool:
        """Whether a value stands there, where it has to."""
        held: dict[str, object] = {**self.numbers} if self.kind == "number" else {**self.dates}
        if self.kind == "text":
            return value in self.names
        wanted = [held[self.beside]] if self.beside is not None else list(held.values())
        return value in wanted


def _number(chance: random.Random) -> Fraction:
    return Fraction(chance.randint(200, 999_999), chance.choice([1, 100, 100]))


def _put(chance: random.Random, value: Fraction) -> str:
    plain = number_text(value)
    head, point, tail = plain.partition(".")
    ways = [plain, f"{int(head):,}{point}{tail}", f"{plain}." if not point else plain]
    if value.denominator > 1:
        ways.append(decimal_text(value, 2))
    return chance.choice(ways)


def _document(chance: random.Random) -> Problem:
    kind = chance.choice(["number", "number", "date", "text"])
    words = chance.sample(["Net", "Tax", "Total", "Deposit"], 3)
    numbers = {word: _number(chance) for word in words}
    day = some_date(chance)
    dates = {word: day + timedelta(days=chance.randint(0, 300)) for word in words}
    names = tuple(chance.sample(_NAMES, 3))
    hidden = tuple(Fraction(chance.randint(1000, 9999)) for _ in range(12))
    one, two, three, four, five, six, seven, eight, nine, *more = (each.numerator for each in hidden)
    lines = [
        f"Invoice INV-{one} for order {two}-{three}, see A{four} and {five}B.",
        f"Version {six}.{seven}.1, phone 030/{eight}, key x_{one}",
        f"Was {nine}'500 or {more[0]}´125, {more[1]}⁄8 of it, {more[2]} lakh",
        f"From {names[0]} to {names[1]}; copied to {names[2]}.",
    ]
    if kind == "number":
        signs = [("", ""), ("$", ""), ("", " EUR"), ("€", "")]
        for word in words:
            before, behind = chance.choice(signs)
            lines.append(f"{word}: {before}{_put(chance, numbers[word]).rstrip('.')}{behind}")
    else:
        lines += [f"{word}: {date_text(chance, dates[word])}" for word in words]
    chance.shuffle(lines)
    beside = chance.choice([None, None, words[0]]) if kind != "text" else None
    type = "number" if kind == "number" and chance.random() < 0.7 else "text"
    text = "\n".join(lines)
    truth = _Document(kind, type, numbers, dates, names, hidden, beside, text)
    check = Grounded("letter", kind=kind if type == "text" else None, beside=beside)  # type: ignore[arg-type]
    return Problem((check,), truth, {"letter": text}, type=type)


GROUNDED = Family("Grounded", _document, lambda problem, value: problem.truth.holds(value), share=8)


def _say(chance: random.Random, document: _Document, value: object) -> Said:
    if isinstance(value, Fraction):
        return Said(written(chance, value), value)
    if isinstance(value, date):
        return Said(date_text(chance, value), value)
    return Said(str(value), value)


def _values(document: _Document) -> list[object]:
    match document.kind:
        case "number":
            return list(document.numbers.values())
        case "date":
            return list(document.dates.values())
        case _:
            return list(document.names)


@GROUNDED.put("right", "what stands there")
def _there(chance: random.Random, problem: Problem) -> Said | None:
    document: _Document = problem.truth
    right = [value for value in _values(document) if document.holds(value)]
    return _say(chance, document, chance.choice(right))


@GROUNDED.put("right", "a name in other letters or quotes")
def _quoted(chance: random.Random, problem: Problem) -> Said | None:
    document: _Document = problem.truth
    if document.kind != "text":
        return None
    name = chance.choice(document.names)
    return Said(chance.choice([name.upper(), f'"{name}"', name.replace(" ", "  "), f"{name}."]), name)


@GROUNDED.put("wrong", "on another line than beside the word")
def _elsewhere(chance: random.Random, problem: Problem) -> Said | None:
    document: _Document = problem.truth
    return None if document.beside is None else _say(chance, document, chance.choice(_values(document)))


@GROUNDED.put("wrong", "part of an id, a version or a word")
def _part(chance: random.Random, problem: Problem) -> Said | None:
    document: _Document = problem.truth
    if document.kind == "number":
        return _say(chance, document, chance.choice(document.hidden))
    return Said(chance.choice(_ABSENT)) if document.kind == "text" else None


@GROUNDED.put("wrong", "a near number or date")
def _near(chance: random.Random, problem: Problem) -> Said | None:
    document: _Document = problem.truth
    value = chance.choice(_values(document))
    if isinstance(value, Fraction):
        return _say(chance, document, value + chance.choice([-1, 1]) * Fraction(1, chance.choice([1, 10, 100, 1000])))
    if isinstance(value, date):
        return _say(chance, document, value + chance.choice([-1, 1, 7, 31, 365]) * timedelta(days=1))
    return None


@GROUNDED.put("wrong", "digits left out, doubled or swapped")
def _misread(chance: random.Random, problem: Problem) -> Said | None:
    document: _Document = problem.truth
    if document.kind != "number":
        return None
    digits = number_text(chance.choice(list(document.numbers.values())))
    at = chance.randrange(len(digits) - 1)
    pair = digits[at : at + 2]
    text = chance.choice([
        digits[:at] + digits[at + 1 :],
        digits[: at + 1] + digits[at:],
        digits[:at] + pair[::-1] + digits[at + 2 :],
        digits[1:],
        digits[:-1],
        "-" + digits,
        digits.replace(".", ""),
    ])  # fmt: skip
    try:
        return Said(text, Fraction(text))
    except ValueError:
        return None


@GROUNDED.put("wrong", "a percentage, or a sum of what stands there")
def _worked_out(chance: random.Random, problem: Problem) -> Said | None:
    document: _Document = problem.truth
    if document.kind != "number":
        return None
    one, two, _ = document.numbers.values()
    value = chance.choice([one + two, one - two, one * 2, one / 4])
    return _say(chance, document, value)


@GROUNDED.put("wrong", "day and month swapped")
def _swapped(chance: random.Random, problem: Problem) -> Said | None:
    document: _Document = problem.truth
    day = chance.choice(list(document.dates.values()))
    if document.kind != "date" or day.day > 12:
        return None
    return _say(chance, document, day.replace(day=day.month, month=day.day))


@GROUNDED.put("wrong", "a name cut off, joined or misspelt")
def _misspelt(chance: random.Random, problem: Problem) -> Said | None:
    document: _Document = problem.truth
    if document.kind != "text":
        return None
    name = chance.choice(document.names)
    at = chance.randrange(1, len(name) - 2)
    texts = [
        name[:-1],
        name[1:],
        name[:at] + name[at + 1 :],
        name[:at] + "e" + name[at:],
        f"{name} Ltd",
        f"Mr {name}",
        "".join(reversed(name)),
        f"{name} {chance.choice(document.names)}",
    ]
    text = chance.choice(texts)
    # A name can lose a letter at its end that is a sign of its own, such as a full stop: only letters count.
    squeezed = "".join(char for char in text.lower() if char.isalnum())
    whole = "".join(char for char in document.text.lower() if char.isalnum())
    return Said(text) if squeezed not in whole or text in (name[:-1], name[1:]) else None


@GROUNDED.put("wrong", "a question repeated, or nothing")
def _question(chance: random.Random, problem: Problem) -> Said | None:
    return Said(chance.choice(["", "letter", "unknown", "not given", "As asked.", "?", "null", "$", "the total"]))
