"""Expressions from text: an allow-list over tokens, and nothing here evaluates Python.

What could be read in two ways is refused with the remedy: a percentage that is added, a sign that may be a remainder, a
point that may be a decimal one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, cast

from stepguard.core.patterns import lazy_pattern
from stepguard.errors import ExpressionError
from stepguard.language.currencies import SIGNS
from stepguard.language.digits import Exact, exact
from stepguard.language.expressions import (
    FUNCTIONS,
    RESERVED,
    TRUTHS,
    Call,
    Chain,
    Compare,
    Expression,
    Logic,
    Name,
    Negate,
    Not,
    Number,
    Power,
    format_expression,
)
from stepguard.language.typeset import OPERATORS, join_blank_groups
from stepguard.language.values import ROUNDINGS, Rounding

MAX_LENGTH: Final = 10_000
"""The longest expression in characters, blanks not counted (printing adds some); with them, four times as many."""
MAX_DEPTH: Final = 40  # far below Python's own limit on recursion, with what calls this in between
MAX_LITERAL_DIGITS: Final = 1000  # converting digits takes time with their square

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
_SYMBOLS = str.maketrans({**OPERATORS, **dict.fromkeys("\u00a0\u202f\u2009", " ")})
_SPELLINGS: Final = {"≤": "<=", "≥": ">=", "≠": "!="}
# A raised dot between digits is a product to some and a decimal point to others: `0·5`.
_POINTS: Final = lazy_pattern("(?<=[0-9])[\u00b7\u22c5](?=[0-9])")
_GOES_ON: Final = lazy_pattern(r"(?:if|else|and|or|in|for|where|unless|only|to)\b")
"""Words of the language that a value may stand in front of."""
_OPERAND: Final = lazy_pattern(r"[\w.(\[]")
_COMPARISONS: Final = frozenset({"<", "<=", ">", ">=", "==", "!="})
_PRODUCT: Final = frozenset({"*", "/", "//", "%"})
_SIGN_APART: Final = lazy_pattern(r"\s*[+-]\s")  # `10 % + y` is ten percent and y for most readers

ExpressionToken = tuple[str, str, int]  # kind, text, offset


def parse_expression(text: str, *, commas_separate: bool = False) -> Expression:
    """Parse one expression.

    Digits may be grouped by no-break and thin blanks, and by commas outside the arguments of a function
    (``1,200 * 3``).

    Args:
        commas_separate: whether it is the working of a model, of which only what it comes to matters. ``max(1,200)``,
            where the comma could group digits, then has two arguments, ``17%5`` is a remainder and ``6·7`` a product;
            otherwise they are refused.

    Raises:
        ExpressionError: the text is not an expression of the language, or passes its limits on length, depth or
            digits.
    """
    # The quick comparison first: blanks are only taken out of a text that may be too long.
    if len(text) > MAX_LENGTH and (len(text) > 4 * MAX_LENGTH or len("".join(text.split())) > MAX_LENGTH):
        raise ExpressionError(f"too long: {len(text)} characters, at most {MAX_LENGTH}", text=text, position=MAX_LENGTH)
    plain = text
    if not text.isascii():
        if not commas_separate and (point := _POINTS.search(text)) is not None:
            raise ExpressionError(
                f"{point[0]!r} between digits could be a decimal point: write a point, or * for a product",
                text=text,
                position=point.start(),
            )
        plain = join_blank_groups(text).translate(_SYMBOLS)
    if not commas_separate and (date := find_date(text)) is not None:
        raise ExpressionError(
            f"{date[0]} looks like a date: write one as 2026-01-31, and blanks around signs of arithmetic",
            text=text,
            position=date.start(),
        )
    return _Parser(text, plain, commas_separate).parse()


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
_WORDS: Final = frozenset({"and", "or", "not"})
_KEYWORDS: Final = RESERVED - FUNCTIONS.keys()
_CHOICES: Final = frozenset({"if", "else"})
_DATE: Final = lazy_pattern(
    r"(?<![\w.])(?:[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}|[0-9]{1,2}([-/])[0-9]{1,2}\1[0-9]{4})(?![\w.])"
)


def _no_choice(word: str) -> str:
    return f"there is no {word!r} in arithmetic: `(a if c else b)` is a choice in a procedure, min and max a bound"


class _Parser:
    def __init__(self, text: str, plain: str, commas_separate: bool) -> None:
        self.text = text
        self.commas_separate = commas_separate
        self.tokens = self._tokenize(plain)
        self.at = 0
        self.depth = 0

    def parse(self) -> Expression:
        tree = self._truth()
        kind, found, position = self.tokens[self.at]
        if kind != "end":
            raise self._unexpected(found, position)
        return tree

    def _error(self, message: str, position: int) -> ExpressionError:
        return ExpressionError(message, text=self.text, position=position)

    def _unexpected(self, found: str, position: int) -> ExpressionError:
        if found not in _WORDS and (found == "(" or found[:1].isalnum()):  # an operand right behind another one
            kind, name, _ = self.tokens[self.at - 1]
            # Before the remedy for a product: `foo(3)` is meant as a call, and `2(3)` as a product.
            if kind == "name" and found == "(":
                return self._error(f"{name!r} is not a function", position)
            if (word := found if found in _CHOICES else name if name in _CHOICES else None) is not None:
                return self._error(_no_choice(word), position)
            return self._error("write multiplication with *", position)
        if found in _COMPARISONS:
            return self._error("comparisons cannot be chained", position)
        return self._error(f"{found!r} is not expected here" if found else "something is missing", position)

    def _tokenize(self, plain: str) -> list[ExpressionToken]:
        if "," in plain:
            plain = self._ungroup(plain)
        tokens: list[ExpressionToken] = []
        match = _TOKEN.match
        at, end = 0, len(plain.rstrip())
        signs = self.text.translate(_SYMBOLS) if "%" in plain else plain  # with every blank where it was
        while at < end:
            found = match(plain, at)
            if found is None:
                at += len(plain[at:]) - len(plain[at:].lstrip())
                sign = self.text[at : at + 1]
                remedy = ": write an amount of money as `5 EUR`" if sign in SIGNS else ""
                refusal = f"{sign!r} is not allowed in an expression{remedy}"
                raise self._error(_no_choice(sign) if sign == "?" else refusal, at)
            kind = cast(str, found.lastgroup)
            token, start = found[kind], found.start(kind)
            # Compared with what was written, since the signs are translated one by one.
            if token in ("**", "//") and not self.text.startswith(token, start):  # `××` is no power
                raise self._error(f"{self.text[start : start + 2]!r} is not allowed in an expression", start)
            at = found.end()
            if token == "mod":
                kind, token = "operator", "%"
            elif self.commas_separate:  # the percentages of a working were rewritten before it came here
                pass
            elif kind == "number" and plain.startswith("%", at) and is_percentage(signs, at):
                token, at = f"{token}%", at + 1
            elif token == "%":
                check_remainder(signs, start)
            tokens.append((kind, _SPELLINGS.get(token, token), start))
        tokens.append(("end", "", len(self.text)))
        if "%" in plain and not self.commas_separate:
            check_percentages(tokens, self.text)
        return tokens

    def _ungroup(self, plain: str) -> str:
        """Join grouped digits; inside a call they are refused, since a comma separates arguments there."""
        pieces: list[str] = []
        brackets: list[bool] = []  # whether each open one belongs to a call
        calls = at = 0
        for found in _GROUPED.finditer(plain):
            if found["uneven"] is not None:
                if calls and not self.commas_separate:
                    raise self._error("blanks behind some commas only: digits may be grouped", found.start())
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
            elif not self.commas_separate:
                raise self._error("digits grouped by a comma among arguments: leave the comma out", found.start())
        return "".join([*pieces, plain[at:]])

    def _truth(self) -> Expression:
        """Parse operands joined by `and`, or by `or`; a mixture needs brackets."""
        operands = [self._negation()]
        joined = self.tokens[self.at][1]
        if joined not in ("and", "or"):
            return operands[0]
        while (word := self.tokens[self.at])[1] == joined:
            self._check_truth(operands[-1], word)
            self.at += 1
            operands.append(self._negation())
            self._check_truth(operands[-1], word)
        # Most people do not know which of the two binds tighter.
        if word[1] in ("and", "or"):
            raise self._error("'and' and 'or' together: put brackets around what belongs together", word[2])
        return Logic(joined, tuple(operands))

    def _negation(self) -> Expression:
        if self.tokens[self.at][1] != "not":
            return self._comparison()
        word = self.tokens[self.at]
        self.at += 1
        self._deeper()
        operand = self._negation()
        self.depth -= 1
        self._check_truth(operand, word)
        return Not(operand)

    def _check_truth(self, tree: Expression, word: ExpressionToken) -> None:
        if not isinstance(tree, (*TRUTHS, Name)):
            shown = format_expression(tree)[:40]
            raise self._error(f"{word[1]!r} takes truth values, and {shown!r} is none: compare it", word[2])

    def _comparison(self) -> Expression:
        left = self._sum()
        operator = self.tokens[self.at][1]
        if operator in _COMPARISONS:
            self.at += 1
            return Compare(operator, left, self._sum())
        return left

    def _chain(self, operand: Callable[[], Expression], allowed: frozenset[str] | str) -> Expression:
        first = operand()
        operator = self.tokens[self.at][1]
        if not operator or operator not in allowed:
            return first
        operands, operators = [first], []
        while operator and operator in allowed:
            self.at += 1
            operators.append(operator)
            operands.append(operand())
            operator = self.tokens[self.at][1]
        return Chain(tuple(operands), tuple(operators))

    def _sum(self) -> Expression:
        return self._chain(self._product, "+-")

    def _product(self) -> Expression:
        return self._chain(self._signed, _PRODUCT)

    def _signed(self) -> Expression:
        negative = False
        signs = 0
        while (sign := self.tokens[self.at][1]) == "-" or sign == "+":
            negative ^= sign == "-"
            self.at += 1
            signs += 1
        if signs > MAX_DEPTH:
            raise self._error(f"more than {MAX_DEPTH} signs in a row", self.tokens[self.at][2])
        tree = self._power()
        if not negative:
            return tree
        # A signed literal is one number, so that printing and parsing give equal trees.
        return tree.negated if type(tree) is Number else Negate(tree)

    def _power(self) -> Expression:
        base = self._atom()
        if self.tokens[self.at][1] in ("^", "**"):
            self.at += 1
            self._deeper()
            # The exponent takes a sign and further powers: 2^-3, and 2^3^2 is 2^(3^2).
            exponent = self._signed()
            self.depth -= 1
            return Power(base, exponent)
        return base

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH} levels", self.tokens[self.at][2])

    def _atom(self) -> Expression:
        kind, found, position = self.tokens[self.at]
        if kind == "number":
            self.at += 1
            return Number(self._number(found, position), found.endswith("%"))
        if kind == "name" and found not in (_WORDS if self.commas_separate else _KEYWORDS):
            self.at += 1
            if found not in FUNCTIONS:
                return Name(found)
            if self.tokens[self.at][1] != "(":
                raise self._error(f"{found!r} is a function and needs its arguments in parentheses", position)
            return self._call(found, position)
        # In a procedure a square bracket begins a list; only a working may use it for grouping.
        if found == "(" or (found == "[" and self.commas_separate):
            self.at += 1
            self._deeper()
            tree = self._truth()
            self._close(")" if found == "(" else "]")
            return tree
        raise self._unexpected(found, position)

    def _close(self, bracket: str = ")") -> None:
        if self.tokens[self.at][1] != bracket:
            kind, found, position = self.tokens[self.at]
            raise (
                self._error("a parenthesis is not closed", position)
                if kind == "end"
                else self._unexpected(found, position)
            )
        self.at += 1
        self.depth -= 1

    def _call(self, function: str, position: int) -> Expression:
        self.at += 1
        self._deeper()
        arguments: list[Expression] = []
        mode: str | None = None
        while True:
            kind, found, _ = self.tokens[self.at]
            # Only behind an argument: the first one may be a variable that is called like a mode.
            if function == "round" and kind == "name" and found in ROUNDINGS and arguments:
                self.at += 1
                mode = found
            else:
                arguments.append(self._truth())
            if mode is not None or self.tokens[self.at][1] != ",":
                break
            self.at += 1
        self._close()
        most = FUNCTIONS[function]
        if most is not None and len(arguments) > most:
            raise self._error(f"{function} does not take {len(arguments)} arguments", position)
        if function == "round":
            if len(arguments) > 2:
                raise self._error(f"the third argument of round is a mode: {', '.join(ROUNDINGS)}", position)
            places = arguments[1] if len(arguments) == 2 else Number(0)
            # A bounded literal, since a rounded value is not checked for its size when it is computed.
            if type(places) is not Number or type(places.value) is not int or abs(places.value) > 100:
                raise self._error("the places of round are a whole number from -100 to 100", position)
            return Call("round", (arguments[0], places), cast(Rounding, mode or "half_up"))
        return Call(function, tuple(arguments))

    def _number(self, digits: str, position: int) -> Exact:
        if digits.endswith("%"):
            return exact(Fraction(self._number(digits[:-1], position)) / 100)
        if digits.isdigit() and len(digits) <= MAX_LITERAL_DIGITS:  # no mutate: only faster
            return int(digits)
        mantissa, _, exponent = digits.lower().partition("e")
        whole, _, part = mantissa.partition(".")
        shift = int(exponent or 0) if len(exponent) <= 6 else MAX_LITERAL_DIGITS  # converting many digits takes long
        # The digits of the number written out, which is how it is printed.
        digits_before = max(len(whole.lstrip("0")) + shift, 1)
        digits_behind = max(len(part.rstrip("0")) - shift, 0)
        if len(whole) + len(part) > 2 * MAX_LITERAL_DIGITS or digits_before + digits_behind > MAX_LITERAL_DIGITS:
            raise self._error(f"number too long: at most {MAX_LITERAL_DIGITS} digits", position)
        return exact(Fraction(int(whole + part)) * Fraction(10) ** (shift - len(part)))


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
        if whole or before in _WORDS or (kind == "operator" and before not in (")", "]")):
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
    plain = line.translate(_SYMBOLS)
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
