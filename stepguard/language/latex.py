"""LaTeX in arithmetic, rewritten for the expression language from the inside out.

Every rewriting is as long as what it stands for, so that an offset in the result is one in the text; what is unknown,
or would need more room, stays as it is, so that it cannot be read by mistake.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from stepguard.core.patterns import lazy_pattern

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
_INTEGER_BEFORE: Final = lazy_pattern(r"(?<![\w.,)\]}])[0-9]{1,9}(?=(?:[ ~]|\\[,;: ])?\Z)")
_DECIMAL: Final = lazy_pattern(r"(?<![\w.,])[0-9]{1,12}\.[0-9]{0,12}\Z")
_DIGITS: Final = lazy_pattern(r"[0-9]{1,300}\Z")


def balanced(text: str) -> bool:
    depth = 0
    for found in _BRACE.finditer(text):
        depth += (found[0] == "{") - (found[0] == "}")
        if depth < 0:
            return False
    return depth == 0


def without_latex(text: str) -> str:
    """A text with its LaTeX rewritten, as long as it was."""
    text = _SUBSCRIPT.sub(_unbraced, text)
    # Before the commands, where a thin space between digits would become a blank.
    text = _LATEX_GROUPS.sub(lambda found: re.sub(r"\{,\}|\\,", ",", found[0]).rjust(len(found[0])), text)
    return _Latex(text).part(0, len(text), 0)


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


def _unbraced(found: re.Match[str]) -> str:
    name = f"_{found['index']}" if found["index"] else found["escaped"].replace("\\", "")
    return name.ljust(len(found[0]))


def _sign(sign: str) -> str | None:
    if sign in "%$*#&":
        return f" {sign}"
    return "; " if sign == "\\" else "  " if sign in "()[],;:! " else None
