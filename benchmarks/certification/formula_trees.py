"""Formulas of the benchmark's own: written in the ways of models, evaluated by mpmath with 40 digits.

Nothing of the package, and nothing of sympy's simplification, has a hand in what is equal here: two formulas are equal
where their values are at random points, and differ where one of them alone has a real value.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import mpmath  # type: ignore[import-untyped, unused-ignore]

__all__ = [
    "Node", "add", "at_points", "call", "changes", "derived", "div", "equal", "minus", "mul", "num", "power", "show",
    "styled", "sub", "value", "var",
]  # fmt: skip

_DIGITS: Final = 40
_CLOSE: Final = 1e-25
_POINTS: Final = 8


@dataclass(frozen=True, slots=True)
class Node:
    """A formula: ``n`` a number, ``v`` a name, ``f`` a function, or one of ``+ * / ^ -`` (the sign) over parts."""

    op: str
    parts: tuple[Node, ...] = ()
    number: Fraction = Fraction(0)
    name: str = ""


def num(number: int | Fraction | str) -> Node:
    """A number."""
    return Node("n", number=Fraction(number))


def var(name: str) -> Node:
    """A symbol, or one of the constants ``pi`` and ``e``."""
    return Node("v", name=name)


def add(*parts: Node) -> Node:
    """A sum."""
    return Node("+", parts)


def minus(part: Node) -> Node:
    """A formula with a minus in front."""
    return num(-part.number) if part.op == "n" else Node("-", (part,))


def sub(left: Node, right: Node) -> Node:
    """A difference."""
    return add(left, minus(right))


def mul(*parts: Node) -> Node:
    """A product."""
    return Node("*", parts)


def div(over: Node, under: Node) -> Node:
    """A quotient."""
    return Node("/", (over, under))


def power(base: Node, exponent: int | Fraction | Node) -> Node:
    """A power."""
    return Node("^", (base, exponent if isinstance(exponent, Node) else num(exponent)))


def call(name: str, part: Node) -> Node:
    """A function of something."""
    return Node("f", (part,), name=name)


# Values

_FUNCTIONS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "sqrt": mpmath.sqrt, "exp": mpmath.exp, "log": mpmath.log, "sin": mpmath.sin, "cos": mpmath.cos,
    "tan": mpmath.tan, "abs": abs, "atan": mpmath.atan,
}  # fmt: skip


def value(tree: Node, point: Mapping[str, Any]) -> Any:
    """The value at a point as an `mpf`, None where there is no real one."""
    with mpmath.workdps(max(_DIGITS, mpmath.mp.dps)):  # differences are taken with more digits
        try:
            found = _value(tree, point)
            if isinstance(found, mpmath.mpc):
                return None
            return found if mpmath.isfinite(found) else None
        except (ZeroDivisionError, ValueError, OverflowError, _NotReal):
            return None


class _NotReal(Exception):
    """A part has no real value."""


def _value(tree: Node, point: Mapping[str, Any]) -> Any:
    match tree.op:
        case "n":
            return mpmath.mpf(tree.number.numerator) / tree.number.denominator
        case "v":
            constants = {"pi": mpmath.pi, "e": mpmath.e}
            return +constants[tree.name] if tree.name in constants else point[tree.name]
        case "f":
            inside = _value(tree.parts[0], point)
            if (tree.name == "sqrt" and inside < 0) or (tree.name == "log" and inside <= 0):
                raise _NotReal
            return _FUNCTIONS[tree.name](inside)
        case "-":
            return -_value(tree.parts[0], point)
        case "+":
            return sum((_value(each, point) for each in tree.parts), mpmath.mpf(0))
        case "*":
            found = mpmath.mpf(1)
            for each in tree.parts:
                found *= _value(each, point)
            return found
        case "/":
            return _value(tree.parts[0], point) / _value(tree.parts[1], point)
        case _:
            base, exponent = (_value(each, point) for each in tree.parts)
            if base == 0 and exponent <= 0:
                raise ZeroDivisionError
            if base < 0 and exponent != int(exponent):
                raise _NotReal
            return base ** (int(exponent) if exponent == int(exponent) else exponent)


def names(tree: Node) -> set[str]:
    """The symbols in a formula."""
    own = {tree.name} - {"pi", "e"} if tree.op == "v" else set()
    return own.union(*(names(each) for each in tree.parts))


def at_points(symbols: set[str], seed: str) -> Iterator[dict[str, Any]]:
    """Random points, some on either side of zero and some far from it."""
    chance = random.Random(seed)
    for number in range(_POINTS * 2):
        scale = (3, 3, 3, 12)[number % 4]
        yield {name: mpmath.mpf(chance.randint(-scale * 997, scale * 997)) / 991 for name in sorted(symbols)}


def equal(one: Node, other: Node) -> bool:
    """Whether two formulas have the same values, where one of them has a real one."""
    seen = 0
    for point in at_points(names(one) | names(other), f"{one}{other}"):
        left, right = value(one, point), value(other, point)
        if (left is None) != (right is None):
            return False
        if left is None:
            continue
        seen += 1
        if abs(left - right) > _CLOSE * max(1, abs(left)):
            return False
    if not seen:
        raise ValueError(f"no point at which {show(one)} has a value")
    return True


def derived(tree: Node, name: str, point: Mapping[str, Any]) -> Any:
    """The derivative at a point, from differences; None where it has none."""

    def along(at: Any) -> Any:
        found = value(tree, {**point, name: at})
        if found is None:
            raise _NotReal
        return found

    with mpmath.workdps(_DIGITS):
        try:
            return mpmath.diff(along, point[name])
        except (_NotReal, ZeroDivisionError):
            return None


# Ways of writing


@dataclass(frozen=True, slots=True, kw_only=True)
class _Style:
    times: str = "*"
    power: str = "^"
    blank: str = " "
    implicit: bool = False
    latex: bool = False
    unicode: bool = False


_STYLES: Final = (
    _Style(),
    _Style(power="**"),
    _Style(blank=""),
    _Style(implicit=True),
    _Style(implicit=True, unicode=True),
    _Style(times=" * "),
    _Style(times="·", unicode=True),
    _Style(latex=True, times=" \\cdot "),
    _Style(latex=True, implicit=True, times=" \\times "),
)
_RAISED: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def show(tree: Node, style: _Style | None = None) -> str:
    """A formula as text."""
    return _text(tree, style or _STYLES[0])[0]


def styled(tree: Node, chance: random.Random) -> str:
    """A formula in one of the ways of models, perhaps with markup around it."""
    style = chance.choice(_STYLES)
    text = show(tree, style)
    wraps = (
        ["{}", "{}", "{}", "`{}`", "{}.", "$${}$$", "\\({}\\)"] if not style.latex else ["{}", "${}$", "\\boxed{{{}}}"]
    )
    return chance.choice(wraps).format(text)


_SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(5)


def _text(tree: Node, style: _Style) -> tuple[str, int]:
    match tree.op:
        case "n":
            return _number(tree.number, style)
        case "v":
            return (
                "\\pi" if style.latex else "π" if style.unicode else "pi"
            ) if tree.name == "pi" else tree.name, _ATOM
        case "f":
            inside = show(tree.parts[0], style)
            if style.latex:
                if tree.name == "abs":
                    return f"|{inside}|", _ATOM
                return f"\\{tree.name}{{{inside}}}" if tree.name == "sqrt" else f"\\{tree.name}({inside})", _ATOM
            return f"{tree.name}({inside})", _ATOM
        case "-":
            return f"-{_within(tree.parts[0], _PRODUCT, style)}", _SIGN
        case "+":
            return _sum(tree.parts, style), _SUM
        case "*":
            return _product(tree.parts, style), _PRODUCT
        case "/":
            over, under = tree.parts
            if style.latex:
                return f"\\frac{{{show(over, style)}}}{{{show(under, style)}}}", _ATOM
            left, right = _within(over, _SIGN, style), _within(under, _POWER, style)
            return f"{left}{style.blank}/{style.blank}{right}", _PRODUCT
        case _:
            base, exponent = tree.parts
            shown = show(exponent, style)
            below = _within(base, _ATOM, style)
            if style.unicode and exponent.op == "n" and exponent.number.denominator == 1:
                return below + shown.translate(_RAISED), _POWER
            if style.latex:
                return f"{below}^{{{shown}}}", _POWER
            return f"{below}{style.power}{shown if shown.isdigit() or shown.isalpha() else f'({shown})'}", _POWER


def _number(number: Fraction, style: _Style) -> tuple[str, int]:
    if number.denominator == 1:
        return str(number), _SIGN if number < 0 else _ATOM
    for places in range(1, 31):
        if (number * 10**places).denominator == 1 and (places > 3 or number.denominator in (10, 100, 1000)):
            digits = str(abs(number * 10**places)).rjust(places + 1, "0")
            sign = "-" if number < 0 else ""
            return f"{sign}{digits[:-places]}.{digits[-places:]}", _SIGN if sign else _ATOM
    if style.latex:
        sign = "-" if number < 0 else ""
        return f"{sign}\\frac{{{abs(number.numerator)}}}{{{number.denominator}}}", _SIGN if sign else _ATOM
    return f"{number.numerator}/{number.denominator}", _PRODUCT


def _within(tree: Node, level: int, style: _Style) -> str:
    text, own = _text(tree, style)
    return text if own >= level and not text.startswith("-") else f"({text})"


def _sum(parts: tuple[Node, ...], style: _Style) -> str:
    found = ""
    for each in parts:
        text, own = _text(each, style)
        if own == _SUM:
            text = f"({text})"
        sign, text = ("-", text[1:]) if text.startswith("-") else ("+", text)
        found += f"{style.blank}{sign}{style.blank}{text}" if found else ("-" * (sign == "-")) + text
    return found


def _product(parts: tuple[Node, ...], style: _Style) -> str:
    found = ""
    for each in parts:
        text = _within(each, _SIGN, style)
        if not found:
            found = text
            continue
        joins = style.implicit and (text[0].isalpha() or text[0] in "(\\")
        number = found[-1].isdigit() and found.replace(".", "").isdigit()
        bare = joins and number and not text.startswith("e") and each.op in ("v", "f", "^", "+")
        found += text if bare else f"{style.times}{text}"
    return found


# Slips


def changes(tree: Node, change: Callable[[Node], Iterator[Node]]) -> Iterator[Node]:
    """Every formula with one node changed."""
    yield from change(tree)
    for at, part in enumerate(tree.parts):
        for each in changes(part, change):
            yield replace(tree, parts=(*tree.parts[:at], each, *tree.parts[at + 1 :]))
