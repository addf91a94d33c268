"""The tokens of a formula: what `stepguard.formulas.formulas` and `stepguard.formulas.statements` read.

Unicode signs, superscripts and the LaTeX that models write become the same few tokens: ``x²``, ``x^{2}`` and ``x**2``
are one thing. Everything that is not listed here is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from stepguard.errors import ExpressionError
from stepguard.language.numerals import Exact, exact

__all__ = ["FUNCTIONS", "GREEK", "MATRIX_FUNCTIONS", "MAX_DIGITS", "MAX_LENGTH", "NO_NUMBERS", "Token", "tokenize"]

MAX_LENGTH: Final = 2000
"""The longest formula that is read, in characters."""
MAX_DIGITS: Final = 300
"""The longest number in a formula, in digits."""

FUNCTIONS: Final = frozenset({
    "sqrt", "cbrt", "abs", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
    "factorial",
})  # fmt: skip
MATRIX_FUNCTIONS: Final = frozenset({"det", "transpose", "inverse", "trace"})
NO_NUMBERS: Final = frozenset({"oo", "zoo", "inf", "infinity", "infty", "nan", "undefined", "complexinfinity"})
"""Names, in small letters, of what is no number, although computer algebra calculates with it."""

Kind = Literal["number", "name", "function", "sign", "word", "end"]


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a formula. `start` and `end` are offsets in the text as it was written; `value` is that of a number.

    `base` is the number under the ``log`` that ``log_2`` or ``log10`` is.
    """

    kind: Kind
    text: str
    start: int
    end: int
    value: Exact = 0
    base: int | None = None


_OTHER_NAMES: Final = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "ln": "log", "lg": "log10", "Abs": "abs",
}  # fmt: skip
_GREEK: Final = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "θ": "theta", "κ": "kappa", "λ": "lambda",
    "μ": "mu", "ν": "nu", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "phi", "ω": "omega", "π": "pi", "Δ": "Delta",
}  # fmt: skip
GREEK: Final = frozenset(_GREEK.values())
"""The names that Greek letters have."""

_SIGNS: Final = {
    "**": "^", "\u2212": "-", "\u2013": "-", "\u00d7": "*", "\u00b7": "*", "\u22c5": "*", "\u2217": "*",
    "\u00f7": "/", "\u2215": "/", "==": "=", "≤": "<=", "≥": ">=", "≠": "!=", "\u2228": "or", "∪": "or",
    "\u2227": "and", "\u2019": "'", "\u2032": "'", "⩽": "<=", "⩾": ">=",
}  # fmt: skip
_LATEX: Final = {
    "cdot": "*", "times": "*", "div": "/", "pm": "±", "le": "<=", "leq": "<=", "ge": ">=", "geq": ">=", "ne": "!=",
    "neq": "!=", "lt": "<", "gt": ">", "infty": "∞", "emptyset": "∅", "varnothing": "∅", "cup": "or", "lor": "or",
    "land": "and", "in": "∈", "lvert": "|", "rvert": "|", "vert": "|", "leqslant": "<=", "geqslant": ">=",
    "lbrace": "{", "rbrace": "}", "mathbb": "",
}  # fmt: skip
_LATEX_BLANK: Final = frozenset(
    {"left", "right", "quad", "qquad", "displaystyle", "big", "Big", "bigl", "bigr", "limits"}
)
_WORDS: Final = frozenset({"or", "and", "in"})
_SUPER: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SUB: Final = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_VULGAR: Final = {
    "½": (1, 2),
    "⅓": (1, 3),
    "⅔": (2, 3),
    "¼": (1, 4),
    "¾": (3, 4),
    "⅕": (1, 5),
    "⅙": (1, 6),
    "⅛": (1, 8),
}
_TEXT: Final = re.compile(r"\\(?:text|mathrm|operatorname|mathbf|mathit)\s*\{\s*([A-Za-z ]{1,30}?)\s*\}")
_TOKEN: Final = re.compile(
    r"(?P<blank>[\s\u00a0\u2009\u202f\u2061\u2062]+|\\[,;:! ]|~)"
    r"|(?P<number>[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9]*(?:_[A-Za-z0-9]+|_\{[A-Za-z0-9]{1,20}\}|[₀-₉]+)*)"
    r"|(?P<latex>\\log_(?:[0-9](?![0-9])|10(?![0-9])|\{[0-9]{1,6}\})|\\[A-Za-z]+)"
    r"|(?P<brace>\\[{}|])"
    r"|(?P<super>[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+)"
    r"|(?P<vulgar>[½⅓⅔¼¾⅕⅙⅛])"
    r"|(?P<greek>[αβγδεθκλμνρστφωπΔ])"
    r"|(?P<root>√)"
    r"|(?P<sign>\*\*|<=|>=|==|!=|[-+*/^()\[\]{}|,;=<>!±∪∞∅∈'\u2212\u2013\u00d7\u00b7\u22c5\u2217\u00f7\u2215≤≥≠⩽⩾"
    r"\u2227\u2228\u2019\u2032])"
)
_BARE_FRACTION: Final = re.compile(r"\s*([0-9])\s*([0-9])(?![0-9.])")
_SCIENTIFIC: Final = re.compile(r"[eE][-+]?[0-9]")
_WRAPPED: Final = (
    ("$$", "$$"),
    ("$", "$"),
    ("\\(", "\\)"),
    ("\\[", "\\]"),
    ("`", "`"),
    ("**", "**"),
    ("\\boxed{", "}"),
)
_LOG_BASE: Final = re.compile(r"log_?([0-9]{1,6})\Z")


def unwrap(text: str) -> str:
    """A formula without the markup around it and a full stop behind it."""
    body = text.strip()
    changed = len(body) <= MAX_LENGTH  # what is longer is refused anyway
    while changed and body:
        changed = False
        for left, right in _WRAPPED:
            if len(body) > len(left) + len(right) and body.startswith(left) and body.endswith(right):
                inner = body[len(left) : -len(right)].strip()
                if left not in inner and (right not in inner or right == "}"):
                    body, changed = inner, True
        if len(body) > 1 and body.endswith("."):
            body, changed = body[:-1].rstrip(), True
    return body


def tokenize(text: str) -> tuple[Token, ...]:
    """The tokens of a formula or a statement, the last of kind ``"end"``.

    Raises:
        ExpressionError: the text holds something that is in no formula, or passes a limit.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"too long: {len(text)} characters, at most {MAX_LENGTH}", text=text, position=MAX_LENGTH)
    body = unwrap(text)
    body = _TEXT.sub(lambda found: f" {found[1]} ", body)
    tokens: list[Token] = []
    at = 0
    while at < len(body):
        found = _TOKEN.match(body, at)
        if found is None:
            raise ExpressionError(f"{body[at]!r} is not allowed in a formula", text=body, position=at)
        _add(tokens, found, body)
        at = found.end()
        if tokens and tokens[-1].text == "\\frac" and (digits := _BARE_FRACTION.match(body, at)):  # \frac12
            tokens += [_number(digits[each], body, digits.start(each), digits.end(each)) for each in (1, 2)]
            at = digits.end()
    tokens.append(Token("end", "", len(body), len(body)))
    return tuple(tokens)


def _add(tokens: list[Token], found: re.Match[str], body: str) -> None:
    kind, piece, start, end = found.lastgroup, found[0], found.start(), found.end()
    match kind:
        case "blank":
            return
        case "number":
            tokens.append(_number(piece, body, start, end))
        case "name":
            tokens.append(_name(piece, start, end))
        case "greek":
            tokens.append(Token("name", _GREEK[piece], start, end))
        case "root":
            tokens.append(Token("function", "sqrt", start, end))
        case "vulgar":
            tokens.append(Token("number", piece, start, end, Fraction(*_VULGAR[piece])))
        case "super":
            tokens += _raised(piece, body, start, end)
        case "brace":
            tokens.append(Token("sign", piece[1], start, end))
        case "latex":
            _add_latex(tokens, piece[1:], body, start, end)
        case _:
            sign = _SIGNS.get(piece, piece)
            tokens.append(Token("word" if sign in _WORDS else "sign", sign, start, end))


def _add_latex(tokens: list[Token], command: str, body: str, start: int, end: int) -> None:
    if command.startswith("log_"):
        tokens.append(_name(command, start, end))
        return
    if command in _LATEX_BLANK:
        return
    sign = _LATEX.get(command)
    if sign is not None:
        if sign:
            tokens.append(Token("word" if sign in _WORDS else "sign", sign, start, end))
    elif command in ("frac", "dfrac", "tfrac", "nicefrac", "cfrac", "sfrac"):
        tokens.append(Token("sign", "\\frac", start, end))
    elif command in GREEK or command in FUNCTIONS or command in _OTHER_NAMES:
        tokens.append(_name(command, start, end))
    else:
        raise ExpressionError(f"\\{command} is not known", text=body, position=start)


def _name(piece: str, start: int, end: int) -> Token:
    digits = piece.rstrip("₀₁₂₃₄₅₆₇₈₉")
    if digits != piece:
        piece = f"{digits}_{piece[len(digits) :].translate(_SUB)}"
    piece = piece.replace("{", "").replace("}", "")
    piece = _OTHER_NAMES.get(piece, piece)
    if piece in _WORDS:
        return Token("word", piece, start, end)
    based = _LOG_BASE.match(piece)
    if based:
        return Token("function", "log", start, end, base=int(based[1]))
    known = piece in FUNCTIONS or piece in MATRIX_FUNCTIONS
    return Token("function" if known else "name", piece, start, end)


def _number(piece: str, body: str, start: int, end: int) -> Token:
    if len(piece) > MAX_DIGITS:
        raise ExpressionError(f"number too long: at most {MAX_DIGITS} digits", text=body, position=start)
    if _SCIENTIFIC.match(body, end):
        # 2e-3 is two thousandths, or twice Euler's number less three.
        raise ExpressionError(
            f"{body[start : end + 2]!r} can be read in two ways: write 2*10^3, or 2*e with a sign",
            text=body,
            position=start,
        )
    return Token("number", piece, start, end, exact(Fraction(piece)))


def _raised(piece: str, body: str, start: int, end: int) -> list[Token]:
    written = piece.translate(_SUPER)
    digits = written.lstrip("-+")
    if len(written) - len(digits) > 1 or not digits.isdigit() or len(digits) > MAX_DIGITS:
        raise ExpressionError(f"{piece[:9]!r} is no exponent", text=body, position=start)
    value = -int(digits) if written[0] == "-" else int(digits)
    return [Token("sign", "^", start, end), Token("number", written, start, end, value)]
