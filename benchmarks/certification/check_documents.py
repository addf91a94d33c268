"""Claims about amounts as a reader sees them in a document, and about units whose names look alike."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction

from certification.families import NOTHING, Family, Problem, Said
from stepguard.checks.grounding import Grounded
from stepguard.checks.units import Quantity

__all__: list[str] = []

_CODES = {"USD": "$", "EUR": "€", "GBP": "£"}
_STRUCK = (
    "~~{}~~", "<s>{}</s>", "<del>{}</del>", r"\sout{{{}}}", "[deleted: {}]", "<!-- {} -->", "{} (struck out)",
    "<span style='display:none'>{}</span>", "<p hidden>{}</p>", "{{--{}--}}", "[-{}-]", "[s]{}[/s]",
)  # fmt: skip
_UNSTATED = (
    "about {}", "approx. {}", "~{}", "{} or so", "{} ± 5", "e.g. {}", "Example: {}", "void: {}", "{} (cancelled)",
    "(was {})", "formerly {}", "no fee of {}", "if paid late, {}", "{} if paid late", "maybe {}", "{}?",
)  # fmt: skip
_STROKES = "\u0335\u0336\u0337\u0338"


@dataclass(frozen=True, slots=True)
class _Seen:
    """A document in which one amount stands for what is asked, and another one that is not to be taken for it."""

    right: Fraction
    wrong: Fraction


def _amount(chance: random.Random) -> Fraction:
    return Fraction(chance.randint(100, 999_999), 100)


def _put(amount: Fraction) -> str:
    return f"{amount.numerator * 100 // amount.denominator / 100:,.2f}"


def _problem(document: str, right: Fraction, wrong: Fraction, code: str) -> Problem:
    return Problem((Grounded("letter"),), _Seen(right, wrong), {"letter": document}, type=f"money({code})")


def _columns(chance: random.Random) -> Problem:
    """Two currencies in two columns: the amount of the other one is wrong."""
    code, other = chance.sample(list(_CODES), 2)
    right, wrong = _amount(chance), _amount(chance)
    heads, cells = [code, other], [_put(right), _put(wrong)]
    if chance.random() < 0.5:
        heads, cells = heads[::-1], cells[::-1]
    if chance.random() < 0.3:
        heads = [_CODES[each] for each in heads]
    elif chance.random() < 0.3:
        heads = [f"Price ({each})" for each in heads]
    rows = [["Item", *heads], ["Net", *cells], ["Tax", "", ""]]
    match chance.randrange(6):
        case 0:
            rows.insert(1, ["---"] * 3)
            document = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        case 1:
            document = "\n".join("\t".join(row) for row in rows[:2])
        case 2:
            document = "\n".join(";".join(row) for row in rows[:2])
        case 3:
            document = "\n".join("".join(f"{cell:>18}" for cell in row) for row in rows[:2])
        case 4:
            table = chance.choice([" ", "\n"]).join(f"{' & '.join(row)} \\\\" for row in rows[:2])
            document = f"\\begin{{tabular}}{{lrr}} {table} \\end{{tabular}}"
        case _:
            tags = [("th", rows[0]), ("td", rows[1])]
            lines = ("".join(f"<{tag}>{cell}</{tag}>" for cell in row) for tag, row in tags)
            document = f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
    return _problem(f"Offer of today\n\n{document}\n", right, wrong, code)


def _struck(chance: random.Random) -> Problem:
    """An amount that is struck out or hidden, and the one that was written instead."""
    code = chance.choice(list(_CODES))
    right, wrong = _amount(chance), _amount(chance)
    old = chance.choice(["{}", "{} " + code, code + " {}", _CODES[code] + "{}"]).format(_put(wrong))
    if chance.random() < 0.2:
        gone = "".join(char + chance.choice(_STROKES) for char in old)
    else:
        gone = chance.choice(_STRUCK).format(old)
    document = f"Rent: {gone} {_put(right)} {code} a month, see {chance.choice(['below', 'page two', 'the list'])}."
    return _problem(document, right, wrong, code)


def _signed(chance: random.Random) -> Problem:
    """A loss as accountants write it: the amount without its sign is wrong."""
    code = chance.choice(list(_CODES))
    amount = _amount(chance)
    inside = chance.choice(["{}", _CODES[code] + "{}", code + " {}"]).format(_put(amount))
    line = chance.choice(["| Loss | ({}) |", "Loss\t({})", "Loss     ({})", "| Loss | -{} |", "Loss: −{}", "-**{}**"])
    return _problem(line.format(inside), -amount, amount, code)


def _unstated(chance: random.Random) -> Problem:
    """An amount that is guessed, void, old or on a condition, beside the one that the document states."""
    code = chance.choice(list(_CODES))
    right, wrong = _amount(chance), _amount(chance)
    written = chance.choice(["{} " + code, code + " {}", _CODES[code] + "{}"])
    line = chance.choice(_UNSTATED).format(written.format(_put(wrong)))
    lines = [f"Total: {written.format(_put(right))}", f"{line[0].upper()}{line[1:]}" if chance.random() < 0.5 else line]
    chance.shuffle(lines)
    return _problem(chance.choice(["\n", "\n\n", "; "]).join(lines), right, wrong, code)


def _scaled(chance: random.Random) -> Problem:
    """An amount with its scale beside or above it: the bare number is wrong."""
    code = chance.choice(list(_CODES))
    amount = _amount(chance)
    power, words = chance.choice([(3, ("thousand", "thousands")), (6, ("million", "millions"))])
    ways = [
        "Sales {c} {n} {w}",
        "Sales of {c} {n} **{w}**",
        "(in {c} {s})\nSales   {n}",
        "| Item | {c} {s} |\n| Net | {n} |",
    ]
    document = chance.choice(ways).format(c=code, n=_put(amount), w=words[0], s=words[1])
    return _problem(document, amount * 10**power, amount, code)


def _headed(chance: random.Random) -> Problem:
    """A bare amount in the currency of a heading, and another one with its own: the bare one is wrong."""
    code, other = chance.sample(list(_CODES), 2)
    right, wrong = _amount(chance), _amount(chance)
    head = chance.choice(["Invoice ({})", "All amounts in {}", "Currency: {}", "Prices in {}", "{} price list"]).format(
        other
    )
    document = f"{head}\n\nTotal {_put(wrong)}\nDeposit {_put(right)} {code}\n"
    return _problem(document, right, wrong, code)


def _denied(chance: random.Random) -> Problem:
    """An amount that is denied, or only shared, and the one that holds."""
    code = chance.choice(list(_CODES))
    right, wrong = _amount(chance), _amount(chance)
    words = chance.choice(
        ["not {} but {}", "{1}, not {0}", "{1} instead of {0}", "half of {0}: {1}", "{1} rather than {0}"]
    )
    words = words.replace("{} but {}", "{0} but {1}").format(f"{_put(wrong)} {code}", f"{_put(right)} {code}")
    return _problem(f"The fee is {words} this year.", right, wrong, code)


SEEN = Family("Grounded as seen", _columns, lambda problem, value: value == problem.truth.right, share=12)

for _name, _make in (
    ("columns", _columns),
    ("struck out", _struck),
    ("signs", _signed),
    ("scales", _scaled),
    ("not stated", _unstated),
    ("headings", _headed),
    ("denials", _denied),
):

    @SEEN.put("right", _name)
    def _stands(chance: random.Random, problem: Problem, make=_make) -> Said | None:  # type: ignore[no-untyped-def]
        made = make(chance)
        return Said(str(float(made.truth.right)), made.truth.right, made)

    @SEEN.put("wrong", _name)
    def _stands_not(chance: random.Random, problem: Problem, make=_make) -> Said | None:  # type: ignore[no-untyped-def]
        made = make(chance)
        return Said(str(float(made.truth.wrong)), made.truth.wrong, made)


_SAME = (
    ("min", "Min"), ("mile/hour", "mph"), ("km/h", "kph"), ("cm^3", "cc"), ("kWh", "kW·h"), ("mmol/L", "mM"),
    ("fluid ounce", "fl oz"), ("foot^3", "cu ft"), ("kg", "kilos"), ("megabit/s", "Mb/s"), ("t", "metric tons"),
    ("µg", "mcg"), ("hour", "hrs"), ("m^2", "square metres"), ("pound", "lbs"), ("nautical mile", "nmi"),
)  # fmt: skip
_ALIKE = (
    ("min", "Minch"), ("mile/hour", "mpg"), ("km/h", "kps"), ("MB/s", "Mb/s"), ("mg", "Mg"), ("ms", "Ms"), ("mW", "MW"),
    ("fl oz", "oz"), ("foot^3", "foot^2"), ("kg", "kilopascals"), ("t", "tons"), ("µg", "mg"), ("mmol/L", "mmol"),
    ("count", "units"), ("kbit", "kb"), ("mbar", "mb"), ("pascal", "pas"), ("m", "M"), ("day", "dad"), ("pint", "pet"),
    ("hour", "hat"), ("inch", "inn"), ("IU", "mIU"), ("minute", "mi"), ("second", "S"), ("liter", "lit"),
)  # fmt: skip


def _unit(chance: random.Random) -> Problem:
    unit = chance.choice([one for one, _ in (*_SAME, *_ALIKE)])
    number = Fraction(chance.randint(2, 5000), chance.choice([1, 2, 4]))
    check = Quantity(f"{float(number)} {unit}", units=["IU"])
    return Problem((check,), (number, unit))


NAMES = Family("Quantity by name", _unit, lambda problem, value: value == problem.truth)


@NAMES.put("right", "the same unit under another name")
def _same(chance: random.Random, problem: Problem) -> Said | None:
    number, unit = problem.truth
    names = dict(_SAME)
    return Said(f"{float(number)} {names[unit]}", problem.truth) if unit in names else None


@NAMES.put("wrong", "a unit whose name looks alike")
def _alike(chance: random.Random, problem: Problem) -> Said | None:
    number, unit = problem.truth
    names = [other for one, other in _ALIKE if one == unit]
    return Said(f"{float(number)} {chance.choice(names)}", NOTHING) if names else None
