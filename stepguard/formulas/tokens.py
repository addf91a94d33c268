"""The tokens of a formula: what `stepguard.formulas.parsing` and `stepguard.formulas.statements` read.

Unicode signs, superscripts and the LaTeX that models write become the same few tokens: ``x²``, ``x^{2}`` and ``x**2``
are one thing. Everything that is not listed here is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from stepguard.errors import ExpressionError
from stepguard.language import typeset as markup
from stepguard.language.digits import VULGAR, Exact, exact, vulgar_fraction
from stepguard.language.latex import COMMANDS, FRACTIONS, SPACING, TEXT
from stepguard.language.typeset import OPERATORS

MAX_LENGTH: Final = 2000
"""The longest formula that is read, in characters."""
MAX_DEPTH: Final = 30
"""How deep brackets, powers and functions may be nested in a formula that is read."""
MAX_DIGITS: Final = 300
"""The longest number in a formula, in digits."""

FUNCTIONS: Final = frozenset({
    "sqrt", "cbrt", "abs", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
    "factorial",
})  # fmt: skip
MATRIX_FUNCTIONS: Final = frozenset({"det", "transpose", "inverse", "trace"})
NO_NUMBERS: Final = frozenset({"oo", "zoo", "inf", "infinity", "infty", "nan", "undefined", "complexinfinity"})
"""Names, in lower case, that computer algebra calculates with although they are no numbers."""

TokenKind = Literal["number", "name", "function", "sign", "word", "end"]


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a formula. `start` and `end` are offsets in the text as it was written; `value` is that of a number.

    `base` is the number under the ``log`` that ``log_2`` or ``log10`` is.
    """

    kind: TokenKind
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
    **OPERATORS, "**": "^", "==": "=", "\uff1d": "=", "≤": "<=", "≥": ">=", "≠": "!=", "\u2228": "or", "∪": "or",
    "\u2227": "and", "\u2019": "'", "\u2032": "'", "⩽": "<=", "⩾": ">=", "\u2219": "*", "\u2022": "*",
}  # fmt: skip
_LATEX: Final = {
    **COMMANDS, "ne": "!=", "neq": "!=", "pm": "±", "infty": "∞", "emptyset": "∅", "varnothing": "∅", "cup": "or",
    "lor": "or", "land": "and", "in": "∈", "lvert": "|", "rvert": "|", "vert": "|", "lbrace": "{", "rbrace": "}",
    "mathbb": "",
}  # fmt: skip
_WORDS: Final = frozenset({"or", "and", "in"})
_SUPER: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SUB: Final = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_TEXT: Final = re.compile(rf"\\(?:{'|'.join(sorted(TEXT - {'boxed', 'fbox'}))})\s*\{{\s*([A-Za-z ]{{1,30}}?)\s*\}}")
_TOKEN: Final = re.compile(
    r"(?P<blank>[\s\u00a0\u2009\u202f\u2061\u2062]+|\\[,;:! ]|~)|(?P<number>[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9]*(?:_[A-Za-z0-9]+|_\{[A-Za-z0-9]{1,20}\}|[₀-₉]+)*)"
    # \log_2, \log_10, \log_{10}; TeX takes one digit without braces, so \log_123 is not read.
    r"|(?P<latex>\\log_(?:[0-9](?![0-9])|10(?![0-9])|\{[0-9]{1,6}\})|\\[A-Za-z]+)|(?P<brace>\\[{}|])"
    r"|(?P<super>[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+)"
    rf"|(?P<vulgar>[{VULGAR}])"
    r"|(?P<greek>[αβγδεθκλμνρστφωπΔ])|(?P<root>√)"
    rf"|(?P<sign>\*\*|<=|>=|==|!=|[-+*/^()\[\]{{}}|,;=<>!±∪∞∅∈'{''.join(_SIGNS).replace('*', '')}])"
)
_BARE_FRACTION: Final = re.compile(r"\s*([0-9])\s*([0-9])(?![0-9.])")  # \frac12: TeX takes one digit for each argument
_BARE_ROOT: Final = re.compile(r"\s*[0-9]\s*[0-9.]")  # \sqrt16: to TeX a root of 1 with a 6 behind it
_SCIENTIFIC: Final = re.compile(r"[eE][-+]?[0-9]")  # 2e-3: two thousandths, or twice Euler's number less three
_LOG_BASE: Final = re.compile(r"log_?([0-9]{1,6})\Z")


def unwrap(text: str) -> str:
    """A formula without the markup around it and a full stop behind it."""
    if len(text) > MAX_LENGTH:
        return text.strip()  # it is refused anyway
    body = markup.unwrap(text)
    while len(body) > 1 and body.endswith(".") and not body.endswith(".."):  # digits may go on: 0.75...
        body = markup.unwrap(body[:-1])
    return body


def tokenize(text: str) -> tuple[Token, ...]:
    """The tokens of a formula or a statement, the last of kind ``"end"``.

    Raises ExpressionError: the text holds something that is in no formula, or passes a limit.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"too long: {len(text)} characters, at most {MAX_LENGTH}", text=text, position=MAX_LENGTH)
    body = unwrap(text)
    body = _TEXT.sub(lambda match: f" {match[1]} ", body)
    if body.startswith("~"):
        raise ExpressionError("'~' in front says about, and a formula is exact", text=body, position=0)
    tokens: list[Token] = []
    at = 0
    while at < len(body):
        match = _TOKEN.match(body, at)
        if match is None:
            raise ExpressionError(f"{body[at]!r} is not allowed in a formula", text=body, position=at)
        _add(tokens, match, body)
        at = match.end()
        if match[0] == "\\sqrt" and _BARE_ROOT.match(body, at):
            raise ExpressionError("where the root ends can be read in two ways: use braces", text=body, position=at)
        if tokens and tokens[-1].text == "\\frac" and (digits := _BARE_FRACTION.match(body, at)):  # \frac12
            tokens += [_number(digits[each], body, digits.start(each), digits.end(each)) for each in (1, 2)]
            at = digits.end()
    tokens.append(Token("end", "", len(body), len(body)))
    return tuple(tokens)


def _add(tokens: list[Token], match: re.Match[str], body: str) -> None:
    kind, piece, start, end = match.lastgroup, match[0], match.start(), match.end()
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
            tokens.append(Token("number", piece, start, end, vulgar_fraction(piece)))
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
    if command in SPACING:
        return
    sign = _LATEX.get(command)
    if sign is not None:
        if sign:
            tokens.append(Token("word" if sign in _WORDS else "sign", sign, start, end))
    elif command in FRACTIONS:
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
        # Looked for behind the number: the pattern of numbers stops in front of the "e".
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


def is_word(name: str) -> bool:
    """Whether a name is a word, which nobody multiplies by juxtaposition."""
    return len(name) > 1 and name.isalpha() and name not in GREEK


def split_names(
    text: str, tokens: Iterable[Token], known: frozenset[str], declared: frozenset[str]
) -> tuple[Token, ...]:
    """The tokens of a text with names of several letters as products of known symbols.

    Raises ExpressionError: what an exponent is could be read in two ways.
    """
    # Euler's number counts as a letter: `xe` is x*e where x is known.
    letters = {name for name in known if len(name) == 1} | ({"e"} - declared)
    split: list[Token] = []
    for token in tokens:
        name = token.text
        splits = (
            token.kind == "name"
            # Longer ones are words whose letters happen to be symbols.
            and 1 < len(name) <= 8
            and name not in known
            and name != "pi"
            and all(letter in letters for letter in name)
        )
        if not splits:
            split.append(token)
            continue
        # x^ab could be x^(ab) as well as (x^a)b.
        if split and split[-1].text == "^":
            raise ExpressionError(
                f"write the exponent {name!r} in brackets, or with *", text=text, position=token.start
            )
        split += [
            Token("name", letter, token.start + index, token.start + index + 1) for index, letter in enumerate(name)
        ]
    return tuple(split)


class TokenReader:
    """A place in the tokens of a text; behind the last one stands one of the kind ``end``."""

    def __init__(self, text: str, tokens: tuple[Token, ...]) -> None:
        self.text = text
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    def error(self, message: str, token: Token | None = None) -> ExpressionError:
        """An error at a token (the next one by default)."""
        return ExpressionError(message, text=self.text, position=(token or self.token).start)

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.at]

    def accept(self, *signs: str) -> str | None:
        """Take the next token if it is one of these signs or words."""
        if self.token.kind in ("sign", "word") and self.token.text in signs:
            self.at += 1
            return self.tokens[self.at - 1].text
        return None

    def expect(self, sign: str) -> None:
        """Take a sign, or raise where another one follows."""
        if self.accept(sign) is None:
            raise self.error(f"{sign!r} was expected")

    def expect_end(self) -> None:
        """Raise unless the text ends here."""
        if self.token.kind == "end":
            return
        if self.token.text in ("=", "<", ">", "<=", ">=", "!="):
            raise self.error("a relation is not a formula")
        raise self.error(f"{self.token.text!r} is not expected here")

    def deeper(self) -> None:
        """Go one level deeper. Raises ExpressionError: it is too deep."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"nested deeper than {MAX_DEPTH} levels")
