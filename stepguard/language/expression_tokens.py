"""The tokens of an expression: an allow-list of numbers, names and signs, grouped digits joined, percent signs decided.

Each ``%`` is a percentage or a remainder for every reader, or it is refused with what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, cast

from stepguard.core.patterns import lazy_pattern
from stepguard.errors import ExpressionError
from stepguard.language.currencies import SIGNS
from stepguard.language.typeset import OPERATORS

_TOKEN = lazy_pattern(
    r"\s*(?:(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<operator>\*\*|//|==|!=|<=|>=|[-+*/%^()<>,≤≥≠\[\]]))"
)
# `uneven`: `max(1,000, x)` has a blank behind one comma only, and would silently be max(1, 0, x).
_GROUPED = lazy_pattern(
    r"(?P<group>(?<![0-9A-Za-z_.,])[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9A-Za-z_]|,\S))"
    r"|(?P<uneven>,\s+[0-9.]+,(?=[0-9])|(?<=[0-9]),[0-9.]+(?=,\s))|(?P<call>[A-Za-z0-9_]\s*\()|(?P<open>\()|\)"
)
SYMBOLS = str.maketrans({**OPERATORS, **dict.fromkeys("\u00a0\u202f\u2009", " ")})
_SPELLINGS: Final = {"≤": "<=", "≥": ">=", "≠": "!="}
_GOES_ON: Final = lazy_pattern(r"(?:if|else|and|or|in|for|where|unless|only|to)\b")
"""Words of the language that a value may stand in front of."""
_OPERAND: Final = lazy_pattern(r"[\w.(\[]")
_SIGN_APART: Final = lazy_pattern(r"\s*[+-]\s")  # `10 % + y` is ten percent and y for most readers
ExpressionToken = tuple[str, str, int]  # kind, text, offset
_DATE: Final = lazy_pattern(
    r"(?<![\w.])(?:[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}|[0-9]{1,2}([-/])[0-9]{1,2}\1[0-9]{4})(?![\w.])"
)


def no_choice(word: str) -> str:
    """Why a word or a sign of a choice is refused."""
    return f"there is no {word!r} in arithmetic: `(a if c else b)` is a choice in a procedure, min and max a bound"


def tokenize(text: str, plain: str, *, commas_separate: bool) -> list[ExpressionToken]:
    """The tokens of an expression, behind them one of the kind ``end``.

    Args:
        text: the expression as it was written, for what is refused.
        plain: the same with its signs translated, one character for one.
        commas_separate: see `stepguard.language.expression_parsing.parse_expression`.

    Raises:
        ExpressionError: a sign is none of the language, or could be read in two ways.
    """
    if "," in plain:
        plain = _ungroup(text, plain, commas_separate=commas_separate)
    tokens: list[ExpressionToken] = []
    match = _TOKEN.match
    at, end = 0, len(plain.rstrip())
    signs = text.translate(SYMBOLS) if "%" in plain else plain  # with every blank where it was
    while at < end:
        found = match(plain, at)
        if found is None:
            at += len(plain[at:]) - len(plain[at:].lstrip())
            sign = text[at : at + 1]
            remedy = ": write an amount of money as `5 EUR`" if sign in SIGNS else ""
            refusal = f"{sign!r} is not allowed in an expression{remedy}"
            raise ExpressionError(no_choice(sign) if sign == "?" else refusal, text=text, position=at)
        kind = cast(str, found.lastgroup)
        token, start = found[kind], found.start(kind)
        # Compared with what was written, since the signs are translated one by one.
        if token in ("**", "//") and not text.startswith(token, start):  # `××` is no power
            raise ExpressionError(
                f"{text[start : start + 2]!r} is not allowed in an expression", text=text, position=start
            )
        at = found.end()
        if token == "mod":
            kind, token = "operator", "%"
        elif commas_separate:  # the percentages of a working were rewritten before it came here
            pass
        elif kind == "number" and plain.startswith("%", at) and is_percentage(signs, at):
            token, at = f"{token}%", at + 1
        elif token == "%":
            check_remainder(signs, start)
        tokens.append((kind, _SPELLINGS.get(token, token), start))
    tokens.append(("end", "", len(text)))
    if "%" in plain and not commas_separate:
        check_percentages(tokens, text)
    return tokens


def _ungroup(text: str, plain: str, *, commas_separate: bool) -> str:
    """Join grouped digits; inside a call they are refused, since a comma separates arguments there."""
    pieces: list[str] = []
    brackets: list[bool] = []  # whether each open one belongs to a call
    calls = at = 0
    for found in _GROUPED.finditer(plain):
        if found["uneven"] is not None:
            if calls and not commas_separate:
                raise ExpressionError(
                    "blanks behind some commas only: digits may be grouped", text=text, position=found.start()
                )
        elif found["group"] is None:
            if found[0] != ")":
                brackets.append(found["call"] is not None)
                calls += brackets[-1]
            elif brackets:
                calls -= brackets.pop()
        elif not calls:
            # Blanks keep every later offset true; in front, since a decimal part may follow.
            digits = found[0].replace(",", "")
            pieces += [plain[at : found.start()], " " * (len(found[0]) - len(digits)), digits]
            at = found.end()
        elif not commas_separate:
            raise ExpressionError(
                "digits grouped by a comma among arguments: leave the comma out", text=text, position=found.start()
            )
    return "".join([*pieces, plain[at:]])


def find_date(text: str) -> re.Match[str] | None:
    """Find digits that a reader takes for a date, and arithmetic for a difference or a quotient."""
    return _DATE.search(text) if "-" in text or "/" in text else None


def check_grouping(text: str) -> None:
    """Refuse a whole number with points in it, or with decimals that nobody writes: ``1.000``.

    Raises ExpressionError: a number in `text` is one.
    """
    # Most texts have none, and the pattern below need not run on them.
    if ".000" not in text:
        return
    # Text in quotes is no number; blanks of the same length keep the offset of the error.
    plain = _QUOTED.sub(lambda found: " " * len(found[0]), text)
    if (grouped := _THOUSANDS.search(plain)) is not None:
        raise ExpressionError(
            f"{grouped[0]!r} may group thousands: write it without .000, or without points",
            text=text,
            position=grouped.start(),
        )


_QUOTED: Final = lazy_pattern(r'"(?:[^"\\\n]|\\.)*"')
_THOUSANDS: Final = lazy_pattern(r"(?<![\w.,])[1-9][0-9]{0,2}(?:\.[0-9]{3})*\.000(?![\w.,]?[0-9])")
WORDS: Final = frozenset({"and", "or", "not"})


def check_percentages(tokens: Sequence[ExpressionToken], text: str) -> None:
    """Refuse a percentage that is added to something else: for some readers 50 + 10% is 55, for others 50.1.

    Raises ExpressionError: one of the tokens of `text` is such a percentage.
    """
    for at, (_, sign, position) in enumerate(tokens):
        if at < 2 or not sign.endswith("%") or sign == "%" or tokens[at - 1][1] not in ("+", "-"):
            continue
        kind, before, _ = tokens[at - 2]
        # `1 - 10%` is read in one way, as is `5% + 10%`; in `x * 1 + 10%` the 1 is not a whole.
        alone = at < 3 or tokens[at - 3][1] in ("(", "[", ",")
        whole = kind == "number" and (before.endswith("%") or (before == "1" and alone))
        if whole or before in WORDS or (kind == "operator" and before not in (")", "]")):
            continue
        # In `x + 10% * y` the percentage says what it is of.
        if tokens[at + 1][1] not in ("*", "/", "//", "%", "^", "**"):
            raise ExpressionError(
                "a percentage of what? write `x + x * 10%`, or `x + 0.1`", text=text, position=position
            )


def is_percentage(plain: str, at: int) -> bool:
    """Whether the sign right behind a number makes it a percentage: nothing follows that could be divided by.

    Raises ExpressionError: it could be one as well as a remainder.
    """
    behind = plain[at + 1 : at + 80].lstrip()
    if behind[:1] != "%" and (_OPERAND.match(behind) is None or _GOES_ON.match(behind)):
        return True
    raise ExpressionError(
        "a % between two values: write `a % b` for a remainder, `10% * x` for a percentage", text=plain, position=at
    )


def check_remainder(plain: str, at: int) -> None:
    """Refuse a `%` that touches only one of its two values, or has nothing behind it.

    Raises ExpressionError: the sign at `at` is no remainder for every reader.
    """
    before, behind = plain[at - 1 : at].isspace(), plain[at + 1 : at + 2].isspace()
    rest = plain[at + 1 :].lstrip()[:1]
    if not rest or rest in "*/%^)],<>=!≤≥≠":
        problem = "a percentage is written as a number with its sign, such as 10%, or as x / 100"
    elif _SIGN_APART.match(plain, at + 1):
        problem = "a % in front of a sign: write `10% + y` for a percentage, `a % (-b)` for a remainder"
    elif before != behind:
        problem = "a remainder has blanks on both sides of its sign: `a % b`"
    else:
        return
    raise ExpressionError(problem, text=plain, position=at)


def check_percent_signs(line: str) -> None:
    """Refuse an ambiguous `%` in a line that may hold more than arithmetic.

    Raises ExpressionError: one of them is neither a percentage nor a remainder for certain.
    """
    plain = line.translate(SYMBOLS)
    tokens: list[ExpressionToken] = []
    at = 0
    while at < len(plain):
        match = _TOKEN.match(plain, at)
        if match is None:
            # What is no arithmetic, such as a quote or a brace, only has to end an operand here.
            tokens += [] if plain[at].isspace() else [("operator", plain[at], at)]
            at += 1
            continue
        kind, at = cast(str, match.lastgroup), match.end()
        token, start = match[kind], match.start(kind)
        if kind == "number" and plain.startswith("%", at) and is_percentage(plain, at):
            token, at = f"{token}%", at + 1
        elif token == "%":
            check_remainder(plain, start)
        tokens.append((kind, token, start))
    check_percentages([*tokens, ("end", "", len(line))], line)
