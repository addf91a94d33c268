"""Rewrites arithmetic as people and models typeset it into the notation of the expression language.

One reader for the working in replies, for transcripts and, with its tables, for formulas. `plain` keeps the length of a
text, so that every offset in the result is an offset in the original; `as_expression` rewrites what needs more room.
What is not understood is left as it is, so that it cannot be read by mistake.

======================  =======================================================================================
signs                   ``× · ÷ ⁄ − ＋ ＝`` and the other full-width ones, ``10x3``, ``10 x 3``
words                   ``plus``, ``minus``, ``times``, ``multiplied by``, ``divided by``, ``10% of 50``
LaTeX                   ``\\times``, ``\\frac{a}{b}``, ``\\sqrt{a}``, ``x^{2}``, ``t_{1}``, ``1{,}200``, ``\\boxed{7}``,
                        ``\\text{...}``; ``3\\frac{1}{4}`` is 13/4, ``3.\\overline{3}`` is 10/3
Markdown                ``**12** + `7` ``
by `as_expression`      ``½``, ``3¼``, ``3 1/4``, ``6²``, ``√36``, ``6 • 7``, ``10:3``
======================  =======================================================================================
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final
from unicodedata import normalize

from stepguard.core.patterns import lazy_pattern
from stepguard.language.digits import MINUS_SIGNS, VULGAR, vulgar_fraction

OPERATORS: Final = {
    **dict.fromkeys(MINUS_SIGNS, "-"),
    **dict.fromkeys("\u00d7\u00b7\u22c5\u2217\u2715\u2716\u2a2f\u2a09\ufe61\uff0a", "*"),
    **dict.fromkeys("\u00f7\u2215\u2797\uff0f", "/"),
    **dict.fromkeys("\u2795\ufe62\uff0b", "+"),
    **dict.fromkeys("\u2796\u02d7", "-"),
}
"""Sign of an operation -> the one that the expression language uses."""
COMMANDS: Final = {
    **dict.fromkeys(("times", "cdot", "ast"), "*"),
    "div": "/",
    **dict.fromkeys(("ne", "neq"), "\u2260"),
    **dict.fromkeys(("le", "leq", "leqslant"), "<="),
    **dict.fromkeys(("ge", "geq", "geqslant"), ">="),
    "lt": "<",
    "gt": ">",
}
"""LaTeX commands for operations and relations."""
FRACTIONS: Final = frozenset({"frac", "dfrac", "tfrac", "cfrac", "sfrac", "nicefrac"})
TEXT: Final = frozenset({
    "text", "textbf", "textit", "textrm", "mathrm", "mathbf", "mathit", "operatorname", "boxed", "fbox",
})  # fmt: skip
"""LaTeX commands that only change how their argument looks."""
SPACING: Final = frozenset({
    "left", "right", "big", "Big", "bigl", "bigr", "quad", "qquad", "displaystyle", "limits",
})  # fmt: skip
"""LaTeX commands without a meaning of their own."""

_SIGNS: Final = str.maketrans({
    # The full-width comma stays: it ends a clause, and groups no digits.
    **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if code != 0xFF0C},
    **OPERATORS, "\u2044": "/", "`": " ", "\u2019": "'", **dict.fromkeys("\u2243\u2245", "\u2248"),
    **dict.fromkeys("\u00a0\u202f\u2009\u3000\t", " "),
    **dict.fromkeys("\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", "\n"),
})  # fmt: skip
_DOUBLED: Final = lazy_pattern(
    r"((?=[*/]*[^*/])[*/\u00d7\u00b7\u22c5\u2217\u2715\u2716\u2a2f\u2a09\ufe61\uff0a\u00f7\u2215\u2797\uff0f\u2044]{2,})"
)
_STRUCTURE: Final = {
    **{command: f" {sign}" for command, sign in COMMANDS.items()},
    **dict.fromkeys(SPACING, " "),
    **dict.fromkeys(("approx", "simeq", "sim"), "\u2248"),
    **dict.fromkeys(("Rightarrow", "implies", "therefore", "Longrightarrow", "newline"), ";"),
    **dict.fromkeys(("rightarrow", "to"), "\u2192"),
    **dict.fromkeys(("dots", "ldots"), "..."),
    **dict.fromkeys(("bmod", "mod"), "mod"),
    "hline": " ",
}
_BLANK_GROUPS: Final = lazy_pattern(
    "(?<![0-9A-Za-z_.,])[1-9][0-9]{0,2}(?:[\u00a0\u2009\u202f][0-9]{3})+(?![0-9A-Za-z_,]|[\u00a0\u2009\u202f][0-9])"
)
_LATEX_GROUPS: Final = lazy_pattern(r"(?<![0-9.,])[0-9]{1,3}(?:(?:\{,\}|\\,)[0-9]{3})+(?![0-9])")
_LATEX: Final = lazy_pattern(
    r"\\(?:(?P<command>[A-Za-z]{1,20})(?P<environment>(?<=\\begin)\{[a-z]{1,12}\*?\}|(?<=\\end)\{[a-z]{1,12}\*?\})?"
    r"|(?P<sign>[^A-Za-z\s]))|(?P<raised>\^)(?=\{)"
)
_BRACE: Final = lazy_pattern(r"\\.|[{}\n]")
_DEEPEST: Final = 20  # it recurses, and braces may be nested as deep as a text is long
_SUBSCRIPT: Final = lazy_pattern(
    r"(?<=[A-Za-z])_\{(?P<index>[A-Za-z0-9]{1,20})\}|(?<=[A-Za-z0-9])(?P<escaped>(?:\\_[A-Za-z0-9]+)+)"
)
_DIGITS_AND_SIGNS: Final = lazy_pattern("[-0-9 .,()+*/=]*")
_INTEGER_BEFORE: Final = lazy_pattern(r"(?<![\w.,)\]}])[0-9]{1,9}(?=(?:[ ~]|\\[,;: ])?\Z)")
_DECIMAL: Final = lazy_pattern(r"(?<![\w.,])[0-9]{1,12}\.[0-9]{0,12}\Z")
_DIGITS: Final = lazy_pattern(r"[0-9]{1,300}\Z")
_SUBSCRIPTS: Final = str.maketrans("\u2080\u2081\u2082\u2083\u2084\u2085\u2086\u2087\u2088\u2089", "0123456789")
_INDEX: Final = lazy_pattern(r"(?<=[A-Za-z])[\u2080-\u2089]+")  # not that of a number, which is its base
_BOLD: Final = lazy_pattern(r"\*\*|__(?=\S)|(?<=\S)__")
# X between numbers is a product only where it cannot be a variable.
_CROSS: Final = lazy_pattern(
    r"(?<![\w.])([0-9][0-9.,]{0,40})[xX](?=\(?\$?[0-9])"
    r"|(?<=\))[xX](?=\()|(?<=[0-9)\]$\u20ac\u00a3%]) [xX] (?=[($\u20ac\u00a3-]{0,9}[-.0-9])"
)
_WORDS: Final = lazy_pattern(
    r"(?<=[\w)] )(?:(?P<plus>plus)|(?P<minus>minus)|(?P<times>times|multiplied by)|(?P<over>divided by))(?=[ ]"
    r"(?:[-0-9($.]|[A-Za-z](?:\w*[0-9_]\w*)?(?:[ ]?[-+*/^)=.,;\n]|[ ]?\Z)|[A-Za-z]\w*[ ]?[-+*/^)=]))"
    r"|(?<=%) of (?=[$0-9(])",
    re.IGNORECASE,
)
_AMPERSAND: Final = lazy_pattern(r"&(?=[ ]{0,3}=)|(?<==)&")  # where LaTeX aligns equations
_WORD_OPERATORS: Final = {"plus": "+", "minus": "-", "times": "*", "over": "/"}

_MIXED: Final = lazy_pattern(
    rf"(?<![\w.,)\]^])(?<![0-9)\]] )(?:(?P<whole>[0-9]{{1,9}}) ?)?(?P<vulgar>[{VULGAR}])(?!\w| ?(?:\^|\*\*|!))"
    r"|(?<![\w.,)\]/^])(?<![0-9)\]/^] )(?P<sum>[0-9]{1,9}) (?P<over>[1-9][0-9]?)/(?P<under>[1-9][0-9]{0,2})"
    r"(?![\w.,/]| ?(?:\^|\*\*|!|/))"
)
_SIGN_BETWEEN: Final = lazy_pattern("[:\u2236\u2022\u2219]")  # a quick look before the slow pattern below
_DOT: Final = lazy_pattern("[\u2022\u2219]")
_BETWEEN: Final = lazy_pattern(
    r"(?<=[0-9)\]%]) ?(?:[\u2022\u2219]|(?<![0-9]:[0-9])(?<![0-9]:[0-9]{2})(?<![0-9]:[0-9]{3})[:\u2236]) ?"
    r"(?=-?[$\u20ac\u00a3]?[0-9(\[])(?!0[0-9]|[0-9]{1,9}:)"
)
"""A bullet or a colon between two numbers is a product or a quotient; ``1:2:3`` and ``10:05`` are none."""
_RAISED: Final = lazy_pattern(r"(?<=[0-9a-z_)\]])[⁻⁺]?[⁰¹²³⁴-⁹]+(?!\s*(?:\^|\*\*))")
# A root over more than a number needs brackets: nobody sees where the bar would end.
_ROOT: Final = lazy_pattern(r"√(?=\()|√([0-9]+(?:\.[0-9]+)?)(?![\w.,]|\s*(?:\^|\*\*|!))")
_AROUND: Final = (
    ("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$"), ("$", "$"), ("**", "**"), ("`", "`"),
    *((f"\\{each}{{", "}") for each in sorted(TEXT)),
)  # fmt: skip
_FIRST: Final = frozenset(left[0] for left, _ in _AROUND)


def unwrap(text: str) -> str:
    """Remove markup that encloses the whole text: ``$...$``, ``**...**``, ``\\boxed{...}``."""
    text = text.strip()
    changed = text[:1] in _FIRST
    while changed:
        changed = False
        for left, right in _AROUND:
            if len(text) > len(left) + len(right) and text.startswith(left) and text.endswith(right):
                inside = text[len(left) : -len(right)]
                # `$a$ = $b$` and `\text{a} + \text{b}` begin and end alike, but are not enclosed.
                if left not in inside and (right != "}" or _balanced(inside)):
                    text, changed = inside.strip(), True
    return text


def _balanced(text: str) -> bool:
    depth = 0
    for found in _BRACE.finditer(text):
        depth += (found[0] == "{") - (found[0] == "}")
        if depth < 0:
            return False
    return depth == 0


def join_blank_groups(text: str) -> str:
    """Join digits that no-break and thin blanks group, keeping the length of the text."""
    return _BLANK_GROUPS.sub(lambda group: re.sub("[^0-9]", "", group[0]).rjust(len(group[0])), text)


def plain(text: str, *, crosses: bool = True) -> str:
    """Rewrite LaTeX, Markdown and words for operations for the expression language, keeping the length of the text.

    Args:
        crosses: whether an ``x`` between numbers is a sign; not where a variable may be called so.
    """
    if _DIGITS_AND_SIGNS.fullmatch(text) is not None and "**" not in text:
        return text  # by far the most frequent
    body = text
    if not body.isascii():
        # Before the blanks are translated, which tell digits that are grouped from two numbers.
        body = _INDEX.sub(lambda found: found[0].translate(_SUBSCRIPTS), join_blank_groups(body))
    if not body.isascii() or "`" in body or "\t" in body:
        # Two signs such as `\u00d7\u00d7` are no power, and stay what they are.
        runs = _DOUBLED.split(body)
        body = "".join(each if at % 2 else each.translate(_SIGNS) for at, each in enumerate(runs))
    if "\r" in body:
        body = body.replace("\r", " ") if "\n" in body else body.replace("\r", "\n")
    if "\\" in body or "{" in body:
        body = _SUBSCRIPT.sub(_unbraced, body)
        # Before the commands, where a thin space between digits would become a blank.
        body = _LATEX_GROUPS.sub(lambda found: re.sub(r"\{,\}|\\,", ",", found[0]).rjust(len(found[0])), body)
        body = _Latex(body).part(0, len(body), 0)
    if "&" in body:
        body = _AMPERSAND.sub(" ", body)
    if "**" in body or "__" in body:
        body = _without_bold(body)
    if crosses:
        body = _CROSS.sub(_times, body)
    return _WORDS.sub(_spoken_operator, body)


def as_expression(text: str) -> str:
    """Rewrite mixed numbers, roots and raised digits for the expression language; the length may change."""
    if _SIGN_BETWEEN.search(text):
        text = _BETWEEN.sub(lambda sign: "*" if _DOT.search(sign[0]) else "/", text)
    if "/" in text or not text.isascii():
        text = _MIXED.sub(_mixed, text)
    if text.isascii():
        return text
    text = _ROOT.sub(lambda found: f"sqrt({found[1]})" if found[1] else "sqrt", text)
    return _RAISED.sub(lambda found: f"^{normalize('NFKC', found[0])}", text)


def _mixed(found: re.Match[str]) -> str:
    if found["vulgar"]:
        part = vulgar_fraction(found["vulgar"])
    else:
        part = Fraction(int(found["over"]), int(found["under"]))
        # `3 5/4` is not how anybody writes a mixed number.
        if part >= 1:
            return found[0]
    value = int(found["whole"] or found["sum"] or 0) + part
    return f"({value.numerator}/{value.denominator})"


class _Latex:
    """Rewrites LaTeX from the inside out, keeping the length of the text."""

    def __init__(self, body: str) -> None:
        self.body = body
        self.closing: dict[int, int] = {}
        opened: list[int] = []
        for found in _BRACE.finditer(body):
            if found[0] == "{":
                opened.append(found.start())
            elif found[0] == "}" and opened:
                self.closing[opened.pop()] = found.start()
            elif found[0] == "\n":  # a group ends in its line
                opened.clear()

    def part(self, start: int, end: int, depth: int) -> str:
        """The part of the text from `start` to `end`."""
        if depth > _DEEPEST:
            return self.body[start:end]
        pieces: list[str] = []
        at = start
        while (found := _LATEX.search(self.body, at, end)) is not None:
            first, last = found.span()
            written: str | None = None
            if (command := found["command"]) is not None:
                first, last, written = self.command(command, found, at, end, depth)
            elif found["raised"]:
                if (group := self.groups(last, end, 1)) is not None:
                    (inside,), last = group
                    written = f"^({self.part(*inside, depth + 1)})"
            else:
                written = _sign(found["sign"])
            room = last - first
            pieces.append(self.body[at:first])
            # What is unknown or does not fit stays as it is: half a rewriting could be read by mistake.
            if written is None or len(written) > room:
                first, last, written = *found.span(), found[0]
                pieces[-1] = self.body[at:first]
            pieces.append(written.ljust(last - first))
            at = last
        pieces.append(self.body[at:end])
        return "".join(pieces)

    def command(self, command: str, found: re.Match[str], at: int, end: int, depth: int) -> tuple[int, int, str | None]:
        """The span of a command with its arguments, and its replacement."""
        first, last = found.span()
        if command in _STRUCTURE or found["environment"]:
            return first, last, _STRUCTURE.get(command, " ")
        group = self.groups(last, end, 2 if command in FRACTIONS else 1)
        if group is None:
            return first, last, None
        insides, last = group
        shown = [self.part(*inside, depth + 1).strip() for inside in insides]
        if command in FRACTIONS:
            whole = _INTEGER_BEFORE.search(self.body, max(at, first - 12), first)
            if whole is not None and (mixed := self.mixed(whole, shown, last)) is not None:
                return whole.start(), last, mixed.rjust(last - whole.start())
            under = shown[1] if _DIGITS.match(shown[1]) else f"({shown[1]})"
            return first, last, f"(({shown[0]})/{under})".rjust(last - first)
        if command in TEXT:
            return first, last, f"{self.part(*insides[0], depth + 1)} ".rjust(last - first)
        if command == "sqrt":
            return first, last, f"sqrt({shown[0]})"
        if command == "overline" and _DIGITS.match(shown[0]):
            number = _DECIMAL.search(self.body, max(at, first - 26), first)
            if number is not None and len(shown[0]) <= 12:
                return number.start(), last, _repeating(number[0], shown[0])
        return first, last, None

    def groups(self, at: int, end: int, count: int) -> tuple[list[tuple[int, int]], int] | None:
        """The spans of a command's arguments, groups in braces or single digits, and where the last one ends; None
        where there are fewer."""
        found: list[tuple[int, int]] = []
        for _ in range(count):
            at += self.body[at : at + 1] == " "
            closing = self.closing.get(at)
            if closing is not None and closing < end:
                found.append((at + 1, closing))
                at = closing + 1
            elif self.body[at : at + 1] in set("0123456789") and at < end:
                found.append((at, at + 1))
                at += 1
            else:
                return None
        return found, at

    def mixed(self, whole: re.Match[str], shown: list[str], end: int) -> str | None:
        """The value of a mixed number as a fraction; None where a product may be meant."""
        if not all(map(_DIGITS.match, shown)) or not 0 < int(shown[0]) < int(shown[1]):
            return None
        before = self.body[max(whole.start() - 9, 0) : whole.start()].rstrip(" ~")
        if before.endswith(("/", "^", "\\sqrt")) or self.body[end : end + 2].lstrip()[:1] in ("^", "!"):
            return None
        return f"({int(whole[0]) * int(shown[1]) + int(shown[0])}/{shown[1]})"


def _repeating(digits: str, period: str) -> str:
    """A repeating decimal as a fraction: ``3.`` with the period ``3`` is 10/3."""
    whole, _, part = digits.partition(".")
    scale = 10 ** len(part)
    value = Fraction(int(whole + part), scale) + Fraction(int(period), scale * (10 ** len(period) - 1))
    return f"({value.numerator}/{value.denominator})"


def _pad(text: str, found: re.Match[str]) -> str:
    return text.ljust(len(found[0]))


def _unbraced(found: re.Match[str]) -> str:
    return _pad(f"_{found['index']}" if found["index"] else found["escaped"].replace("\\", ""), found)


def _sign(sign: str) -> str | None:
    if sign in "%$*#&":
        return f" {sign}"
    return "; " if sign == "\\" else "  " if sign in "()[],;:! " else None


def _without_bold(body: str) -> str:
    def replaced(found: re.Match[str]) -> str:
        # Between letters and digits it may be part of a name: a__b.
        if found[0] == "__":
            before, after = body[max(found.start() - 1, 0) : found.start()], body[found.end() : found.end() + 1]
            return found[0] if before.isalnum() and after.isalnum() else "  "
        before = body[max(found.start() - 2, 0) : found.start()]
        after = body[found.end() : found.end() + 2]
        # `2**3` and `2 ** 3` are powers; `**12** + 7` is bold, with a blank on one side only.
        even = before.endswith(" ") == after.startswith(" ")
        left, right = before.strip(" ")[-1:], after.strip(" ")[:1]  # a line break is neither
        power = even and (left.isalnum() or left == ")") and (right.isalnum() or right in ("(", "-"))
        return "**" if power else "  "

    return _BOLD.sub(replaced, body)


def _times(found: re.Match[str]) -> str:
    number = found[1]
    if number is None:
        return found[0].lower().replace("x", "*")
    return found[0] if number == "0" else f"{number}*"  # 0x10 is no product


def _spoken_operator(found: re.Match[str]) -> str:
    return _pad(_WORD_OPERATORS[found.lastgroup] if found.lastgroup else " *", found)
