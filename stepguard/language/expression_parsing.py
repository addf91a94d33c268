"""Expressions from text: an allow-list over tokens, and nothing here evaluates Python.

What could be read in two ways is refused with the remedy: a percentage that is added, a sign that may be a remainder, a
point that may be a decimal one.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final, cast

from stepguard.core.patterns import lazy_pattern
from stepguard.errors import ExpressionError
from stepguard.language.digits import Exact, exact
from stepguard.language.expression_tokens import SYMBOLS, WORDS, ExpressionToken, find_date, no_choice, tokenize
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
from stepguard.language.typeset import join_blank_groups
from stepguard.language.values import ROUNDINGS, Rounding

MAX_LENGTH: Final = 10_000
"""The longest expression in characters, blanks not counted (printing adds some); with them, four times as many."""
MAX_DEPTH: Final = 40  # far below Python's own limit on recursion, with what calls this in between
MAX_LITERAL_DIGITS: Final = 1000  # converting digits takes time with their square

# A raised dot between digits is a product to some and a decimal point to others: `0·5`.
_POINTS: Final = lazy_pattern("(?<=[0-9])[\u00b7\u22c5](?=[0-9])")
_COMPARISONS: Final = frozenset({"<", "<=", ">", ">=", "==", "!="})
_PRODUCT: Final = frozenset({"*", "/", "//", "%"})


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
        plain = join_blank_groups(text).translate(SYMBOLS)
    if not commas_separate and (date := find_date(text)) is not None:
        raise ExpressionError(
            f"{date[0]} looks like a date: write one as 2026-01-31, and blanks around signs of arithmetic",
            text=text,
            position=date.start(),
        )
    return _Parser(text, plain, commas_separate).parse()


_KEYWORDS: Final = RESERVED - FUNCTIONS.keys()
_CHOICES: Final = frozenset({"if", "else"})


class _Parser:
    def __init__(self, text: str, plain: str, commas_separate: bool) -> None:
        self.text = text
        self.commas_separate = commas_separate
        self.tokens = tokenize(text, plain, commas_separate=commas_separate)
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
        if found not in WORDS and (found == "(" or found[:1].isalnum()):  # an operand right behind another one
            kind, name, _ = self.tokens[self.at - 1]
            # Before the remedy for a product: `foo(3)` is meant as a call, and `2(3)` as a product.
            if kind == "name" and found == "(":
                return self._error(f"{name!r} is not a function", position)
            if (word := found if found in _CHOICES else name if name in _CHOICES else None) is not None:
                return self._error(no_choice(word), position)
            return self._error("write multiplication with *", position)
        if found in _COMPARISONS:
            return self._error("comparisons cannot be chained", position)
        return self._error(f"{found!r} is not expected here" if found else "something is missing", position)

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

    # One node for a whole level, however long: recursion is for brackets, powers and `not` alone, which are counted.
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
        if kind == "name" and found not in (WORDS if self.commas_separate else _KEYWORDS):
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
