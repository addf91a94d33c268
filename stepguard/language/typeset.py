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
from stepguard.language.latex import TEXT, balanced, without_latex

OPERATORS: Final = {
    **dict.fromkeys(MINUS_SIGNS, "-"),
    **dict.fromkeys("\u00d7\u00b7\u22c5\u2217\u2715\u2716\u2a2f\u2a09\ufe61\uff0a", "*"),
    **dict.fromkeys("\u00f7\u2215\u2797\uff0f", "/"),
    **dict.fromkeys("\u2795\ufe62\uff0b", "+"),
    **dict.fromkeys("\u2796\u02d7", "-"),
}
"""Sign of an operation -> the one that the expression language uses."""

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
_BLANK_GROUPS: Final = lazy_pattern(
    "(?<![0-9A-Za-z_.,])[1-9][0-9]{0,2}(?:[\u00a0\u2009\u202f][0-9]{3})+(?![0-9A-Za-z_,]|[\u00a0\u2009\u202f][0-9])"
)
_DIGITS_AND_SIGNS: Final = lazy_pattern("[-0-9 .,()+*/=]*")
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
                if left not in inside and (right != "}" or balanced(inside)):
                    text, changed = inside.strip(), True
    return text


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
        body = without_latex(body)
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
    return (_WORD_OPERATORS[found.lastgroup] if found.lastgroup else " *").ljust(len(found[0]))
