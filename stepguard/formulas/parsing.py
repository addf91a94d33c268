"""Formulas as people and models write them, read into trees of our own; nothing here evaluates or simplifies.

This is the language of the symbolic checks (`stepguard.checks.formulas.equality`). The language of steps, which
computes, is `stepguard.language.expressions`.

=====================  ========================================================================================
numbers                ``2``, ``0.5`` and ``½``, always exact; ``2e3`` is refused (it could hold Euler's number)
``+ - * /``            also ``× · ÷ −``, ``\\cdot``, ``\\times``, ``\\frac{a}{b}``
``^`` or ``**``        power, right-associative, binds tighter than a leading minus; also ``x²``, ``x^{2}``
implicit product       ``2x``, ``3(x+1)``, ``(x+1)(x-2)``, ``2 sin(x)``, ``x(x+1)``; between words ``*`` is written
functions              ``sqrt cbrt abs exp log sin cos tan asin acos atan sinh cosh tanh factorial``; also ``ln``,
                       ``arcsin``, ``√2``, ``|x|``, ``n!``, ``log_2(x)``, ``log10(x)``, ``log(x, 2)``, ``sin^2(x)``
mixed numbers          ``3\\frac{1}{4}`` and ``3¼`` are 13/4
constants              ``pi`` and ``e``
=====================  ========================================================================================

``log`` and ``ln`` are the natural logarithm. Where two readings are usual, the text is refused: ``1/2x``, ``e^2x``,
``\\sqrt16``, ``sin x/2``, ``sin^-1(x)``, ``100,200``, ``n!!``, ``sec^2(x)``, ``x^3\\frac{1}{4}``, ``3\\frac{5}{4}``.
Infinities and ``nan`` are no numbers, and no symbols unless they are declared.

Names. Every name is a symbol, ``E``, ``I``, ``N``, ``S``, ``beta`` and ``lambda`` too; only ``e`` and ``pi`` are
constants, and they are symbols where they are declared. A name of several letters is one symbol; only where the
symbols are known, ``xy`` is read as ``x*y`` if `x` and `y` are among them and `xy` is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Final

from stepguard.formulas.tokens import (
    MATRIX_FUNCTIONS,
    MAX_DEPTH,
    NO_NUMBERS,
    Token,
    TokenReader,
    is_word,
    split_names,
    tokenize,
)
from stepguard.formulas.trees import (
    CallOf,
    Constant,
    Formula,
    PowerOf,
    Product,
    Sum,
    negative,
    product,
    quotient,
    root,
    total,
    walk,
)
from stepguard.language.digits import Exact
from stepguard.language.expressions import Name, Number

_MAX_EXPONENT: Final = 10**6  # nobody means more, and the power might be worked out


def parse_formula(
    text: str, *, declared: Iterable[str] = (), known: Iterable[str] | None = None, matrices: bool = False
) -> Formula:
    """Read one formula.

    Args:
        declared: names that are symbols even where they would be constants: ``e``, ``pi``.
        known: the symbols that can be meant, so that ``xy`` is read as a product where `xy` is none of them. None:
            every name is one symbol.
        matrices: whether ``det``, ``transpose``, ``inverse`` and ``trace`` are functions.

    Raises:
        ExpressionError: the text is no formula, can be read in two ways, or passes a limit.
    """
    parser = FormulaParser(text, tokenize(text), declared=declared, known=known, matrices=matrices)
    tree = parser.formula()
    parser.expect_end()
    return tree


def _rooted(tree: Formula) -> bool:
    """Whether a formula holds a root or another power that is no quotient of numbers."""
    return any(isinstance(node, PowerOf) and node.exponent != Number(-1) for node in walk(tree))


class FormulaParser(TokenReader):
    """Reads formulas from tokens; `stepguard.formulas.statements` reads relations and sets with it."""

    def __init__(
        self,
        text: str,
        tokens: tuple[Token, ...],
        *,
        declared: Iterable[str] = (),
        known: Iterable[str] | None = None,
        matrices: bool = False,
    ) -> None:
        super().__init__(text, tokens)
        self.declared = frozenset(declared)
        self.known = None if known is None else frozenset(known) | self.declared
        self.matrices = matrices
        # Computer algebra would calculate with them: oo - oo cancelled as any symbol does.
        for token in tokens:
            if token.kind == "name" and token.text.lower() in NO_NUMBERS and token.text not in self.declared:
                raise self.error(f"{token.text!r} is no number", token)
        self.tokens = tokens if self.known is None else split_names(text, tokens, self.known, self.declared)
        self.bars = 0

    def formula(self) -> Formula:
        """Read a sum, the loosest thing that is no relation."""
        terms: list[Formula] = []
        while True:
            sign = self.accept("+", "-") if terms else None
            if terms and sign is None:
                return total(terms) if len(terms) > 1 else terms[0]
            term = self._product()
            terms.append(negative(term) if sign == "-" else term)

    def _starts_factor(self) -> bool:
        token = self.token
        if token.kind in ("name", "function", "number"):
            return True
        # Inside |...| the next bar closes; elsewhere it opens an absolute value.
        return token.text in ("(", "\\frac") or (token.text == "|" and not self.bars)

    def _product(self) -> Formula:
        factors = [self._signed()]
        divided = False
        while True:
            before = self.tokens[self.at - 1]
            if sign := self.accept("*", "/"):
                divided = sign == "/"
                factor = self._signed()
                factors.append(PowerOf(factor, Number(-1)) if divided else factor)
            elif self._starts_factor():
                token = self.token
                # "(x+1)2", "2 3": a lost power, a lost sign or a product.
                if token.kind == "number":
                    raise self.error("a number behind another factor: write * between them")
                if token.kind == before.kind == "name" and (is_word(token.text) or is_word(before.text)):
                    raise self.error("write * between words")
                # 1/2x: (1/2)x or 1/(2x).
                if divided:
                    raise self.error("what is divided by can be read in two ways: use brackets, or *")
                match factors[-1]:
                    case PowerOf(Name(word)) if is_word(word):
                        raise self.error(f"{word!r} is not a function: write a product with *")
                if self._runs_on(factors[-1], before, token):
                    raise self.error("where the exponent ends can be read in two ways: use brackets, or *")
                factors.append(self._power())
            else:
                return factors[0] if len(factors) == 1 else product(factors)

    @staticmethod
    def _runs_on(last: Formula, before: Token, token: Token) -> bool:
        # e^2x is usually meant as e^(2x), and x^2y as x^2 y.
        plain = (
            isinstance(last, PowerOf) and isinstance(last.base, Constant | Number) and before.kind in ("number", "name")
        )
        return plain and token.start == before.end

    def _signed(self) -> Formula:
        minus = False
        signs = 0
        while sign := self.accept("-", "+"):
            minus ^= sign == "-"
            signs += 1
        if signs > MAX_DEPTH:
            raise self.error(f"more than {MAX_DEPTH} signs in a row")
        tree = self._power()
        return negative(tree) if minus else tree

    def _power(self) -> Formula:
        base = self._atom()
        if self.accept("!"):
            base = CallOf("factorial", base)
            # n!! is the double factorial or the factorial of a factorial.
            if self.token.text == "!":
                raise self.error("!! can be read in two ways: use brackets")
        return PowerOf(base, self._exponent()) if self.accept("^") else base

    # Braces end an exponent for certain; without them it is one signed power, so that x^2y is (x^2)*y.
    def _exponent(self) -> Formula:
        self.deeper()
        if self.accept("{"):
            exponent = self.formula()
            self.expect("}")
        else:
            # A signed power and no product: 2^-x, and x^y^z from the right.
            exponent = self._signed()
        self.depth -= 1
        if isinstance(exponent, Number) and not -_MAX_EXPONENT <= exponent.value <= _MAX_EXPONENT:
            raise self.error(f"the exponent is too large: at most {_MAX_EXPONENT}")
        return exponent

    def _inside(self, closing: str) -> Formula:
        self.deeper()
        bars, self.bars = self.bars, int(closing == "|")
        tree = self.formula()
        if closing == "|" and self.token.text == "|":
            self.at += 1
        else:
            self.expect(closing)
        self.bars = bars
        self.depth -= 1
        return tree

    def _atom(self) -> Formula:
        token = self.token
        self.at += 1
        if token.kind == "number":
            return self._mixed(token)
        if token.kind == "name":
            return self._symbol(token)
        if token.kind == "function":
            return self._call(token)
        if token.kind == "sign":
            if token.text == "(":
                return self._inside(")")
            if token.text == "|":
                return CallOf("abs", self._inside("|"))
            if token.text == "\\frac":
                return quotient(self._group(), self._group())
        self.at -= 1
        raise self.error("something is missing" if token.kind == "end" else f"{token.text!r} is not expected here")

    def _mixed(self, whole: Token) -> Formula:
        """A number, with the fraction of digits right behind it, which is added to it."""
        part = self._fraction_of_digits()
        if part is None:
            return Number(whole.value)
        # Back over signs, to see what the number belongs to.
        at = self.at - 2
        while self.tokens[at].text in ("+", "-") and at > 0:
            at -= 1
        before = self.tokens[at] if at >= 0 else whole
        if before.text == "^" and before.start == whole.start:  # x²½
            return Number(whole.value)
        alone = before.text not in ("^", "/", "\\frac") and before.kind != "function"
        over, under, behind = part
        ends = self.tokens[behind].text not in ("^", "!")
        if not whole.text.isdigit() or not 0 < over < under or not alone or not ends:
            raise self.error("a fraction behind a number: write a sign between them, or brackets")
        self.at = behind
        return Number(whole.value + Fraction(over, under))

    def _fraction_of_digits(self) -> tuple[Exact, Exact, int] | None:
        """Numerator and denominator of a fraction of numbers that begins here, and the place behind it.

        None where none begins. One of sums of numbers has the numerator zero: what it is behind a number is not clear.
        """
        if self.token.kind == "number" and isinstance(self.token.value, Fraction) and not self.token.text[0].isascii():
            return self.token.value.numerator, self.token.value.denominator, self.at + 1
        if self.token.text != "\\frac":
            return None
        start, depth = self.at, self.depth
        self.at += 1
        groups = self._group(), self._group()
        behind, self.at, self.depth = self.at, start, depth
        if not all(isinstance(group, Number) and type(group.value) is int for group in groups):
            # 3\frac{1+1}{4} may be a sum or a product; a fraction with names or roots in it can only be a factor.
            plain = all(isinstance(node, Number | Sum | Product | PowerOf) for group in groups for node in walk(group))
            return (0, 1, behind) if plain and not any(map(_rooted, groups)) else None
        over, under = (group.value for group in groups if isinstance(group, Number))
        return over, under, behind

    def _symbol(self, token: Token) -> Formula:
        name = token.text
        if name in ("e", "pi") and name not in self.declared:
            return Constant("e" if name == "e" else "pi")
        # f(x) with an unknown f is an application and no product, and so is every word in front of a bracket.
        applied = self.token.text == "(" and self.known is not None and name not in self.known
        if applied or self.token.text == "'" or (self.token.text == "(" and len(name) > 1):
            raise self.error(f"{name!r} is not a function")
        behind = self.tokens[self.at : self.at + 3]
        # x(y): a product, or a function of y.
        if [each.text for each in behind[::2]] == ["(", ")"] and behind[1].kind == "name":
            raise self.error(f"{name}({behind[1].text}) can be read in two ways: write a product with *", token)
        return Name(name)

    def _group(self) -> Formula:
        """The argument of a LaTeX command: braces, or one digit or letter."""
        if self.accept("{"):
            return self._inside("}")
        token = self.token
        if token.kind == "number" and len(token.text) == 1:
            self.at += 1
            return Number(token.value)
        if token.kind == "name" and len(token.text) == 1:
            return self._atom()
        raise self.error("'{' was expected")

    def _call(self, token: Token) -> Formula:
        function = token.text
        if function in MATRIX_FUNCTIONS and not self.matrices:
            raise self.error(f"{function} is only known of matrices", token)
        degree = 2
        if function == "sqrt" and self.accept("["):
            index = self._inside("]")
            degree = index.value if isinstance(index, Number) and isinstance(index.value, int) else 0
            if not 2 <= degree <= 100:
                raise self.error("the index of a root is a number from 2 to 100", token)
        exponent = None
        if self.accept("^"):
            exponent = self._exponent()
            # sin^-1(x) is the arcsine to some and 1/sin(x) to others.
            if not isinstance(exponent, Number) or type(exponent.value) is not int or exponent.value < 1:
                raise self.error(f"{function}^ is followed by a positive number, or write brackets", token)
        argument, base = self._argument(token)
        if token.base is not None:
            base = Number(token.base)
        if function == "sqrt":
            tree = CallOf("cbrt", argument) if degree == 3 else root(argument, degree)
        elif function == "exp":
            tree = PowerOf(Constant("e"), argument)
        else:
            tree = CallOf(function, argument)
        if base is not None:
            tree = quotient(tree, CallOf("log", base))
        return tree if exponent is None else PowerOf(tree, exponent)

    def _argument(self, token: Token) -> tuple[Formula, Formula | None]:
        """The argument of a function, and the base of a logarithm where one is given."""
        if self.token.text == "{" and self.token.kind == "sign":
            self.at += 1
            return self._inside("}"), None
        if self.accept("("):
            self.deeper()
            bars, self.bars = self.bars, 0
            argument = self.formula()
            base = self.formula() if token.text == "log" and token.base is None and self.accept(",") else None
            self.expect(")")
            self.bars = bars
            self.depth -= 1
            return argument, base
        if self.token.text == "|" and not self.bars:
            return self._atom(), None
        # Without brackets: a number, a name or both (sin 2x); what could still belong to it is refused.
        if self.token.kind not in ("number", "name"):
            raise self.error(f"{token.text} needs its argument in brackets", token)
        parts = [self._atom()]
        if isinstance(parts[0], Number) and self.token.kind == "name" and token.text != "sqrt":
            parts.append(self._atom())
        follows = self.token
        operand = follows.kind in ("number", "name") or follows.text in ("(", "^", "!", "\\frac")
        if operand or (follows.text == "/" and token.text != "sqrt"):
            raise self.error(f"where the argument of {token.text} ends can be read in two ways: use brackets", follows)
        return product(parts), None
