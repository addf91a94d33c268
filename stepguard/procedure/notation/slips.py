"""Explain why the grammar refuses a text: what stands there, what could stand there, and the remedy.

Most slips are habits from other notations (``:=``, ``elif``, ``end``, words without quotes); each has its own sentence.
For everything else the place is named, with what could have stood there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final, get_args

from lark import Token
from lark.exceptions import UnexpectedInput, UnexpectedToken

from stepguard.core.patterns import lazy_pattern
from stepguard.core.verdicts import shorten
from stepguard.errors import ExpressionError, ProcedureError
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.terms.operands import TERM_SIGNS
from stepguard.language.value_types import Kind

_STRINGS: Final = lazy_pattern(r'"(?:[^"\\\n]|\\.)*"')
_COMMENT: Final = lazy_pattern(r"#.*")
_MAX_SHOWN: Final = 1000
_KINDS: Final = get_args(Kind)
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_WORDS_FIRST: Final = lazy_pattern(
    rf"(?:[0-9]+[.)]\s*)?(?P<words>[^\"=:]*[^\W\d_]{{2}}[^\"=:]*):\s*(?!(?:{'|'.join(_KINDS)}|list of)\b)"
    rf"(?P<step>`?{_NAME}\s*(?::[^=]*)?=(?!=).*)"
)
_FORMULA: Final = lazy_pattern(
    rf"(?:[0-9]+[.)]\s*)?{_NAME}\s*(?::[^=\"]*)?=(?!=)\s*(?:by code\s)?(?P<formula>[^\"]*)\Z"
)

_WORDS_ALONE: Final = lazy_pattern(
    rf"(?:[0-9]+[.)]\s*)?(?P<name>{_NAME}\s*(?::[^=]*)?)=\s*(?P<words>"
    r"(?!(?:by code|ask|tool|function|call|sum|count|min|max|all|any|first)\b)"
    r"[A-Za-z]+(?:'[a-z]+)?(?: (?!(?:if|in|and|or|mod|not)\b)[A-Za-z]+(?:'[a-z]+)?){3,}[.?!]?)\Z"
)

_CHECK_ALONE: Final = r"check\s*:(?![^()=]*(?:\([^()]*\)\s*)?=)"
"""No step that is called `check`: behind its type stands an equals sign."""

_Slip = tuple[re.Pattern[str], str]
_SLIPS: Final[tuple[_Slip, ...]] = tuple(
    (re.compile(pattern), remedy)
    for pattern, remedy in (
        (_CHECK_ALONE, "a check stands behind its step, in the same line: `t = x + 1  {line}`"),
        (rf"(?:[0-9]+[.)]\s*)?{_NAME}\s*:=", "write = for :="),
        (
            rf"(?:[0-9]+[.)]\s*)?(?P<name>{_NAME})\s*==(?P<rest>.*)",
            "write = for ==, or give the comparison a name: `ok = {line}`",
        ),
        (r"(?:answer|name)\s*:\s*\Z", "nothing follows"),
        (r"[^\"=]*=.*\bif\b(?!.*\belse\b)", "a choice names both values: `a if x > 3 else b`"),
        (r"inputs\s*:.*,\s*(?:,|\Z)", "leave out the comma that has no name beside it"),
        (
            rf"(?:.*=.*(?:[-+*/(,]|\belse\b)\s*|(?:(?:else\s+)?if|repeat|for\s+each|answer)\b.*|"
            rf".*=\s*(?=\w+\s+{_NAME}\s*\([^()]*\)\s*[-+*/<>=]))\b(?P<call>(?:tool|function|call)\s+{_NAME})\s*\(",
            "a call is a step of its own, and what is made of it another one: `x = {call}(...)`",
        ),
        (rf".*=\s*(?:tool|function|call)\s+(?P<name>{_NAME})\s*\(", "what is passed has names: `{name}(amount=total)`"),
        (
            r"(?:(?:else\s+)?if|repeat)\b[^:]*[^=<>!:\u2264\u2265\u2260]=(?!=)[^=:]*:",
            "two values are compared with ==: `if x == 3:`",
        ),
        (
            r"[^\"]*=[^\"]*(?:\b(?!working\b)[A-Za-z_]\w*|[\])])\s+"
            r"(?P<unit>(?:working\s+)?(?:day|week|month|year|hour|minute)s?)\b",
            "a number of them is a product: `n * 1 {unit}`",
        ),
        (r".*[:=].*;", "a step stands in a line of its own"),
        (
            r".*\b(?:sum|count|min|max|all|any|first) of (?![\w.]+ for\b)[^()]* for\s+\w+\s+in\b",
            "what is taken of the items stands in brackets: `sum of (item.a * 2) for item in items`",
        ),
        (
            r".*\b(?:sum|count|min|max|all|any|first) of (?!.*\bfor\b).*\bwhere\b",
            "a condition needs a name for the items: `count of x for x in xs where x > 3`",
        ),
        (r"```", "a fence of Markdown: leave it out; `stepguard import` reads Markdown"),
        (r"(?:\*\*\s*)?[Ss]tep\s+[0-9]+", "a step is numbered by its number alone: `3. t = x + 1`"),
        (r"[-*\u2022]\s", "a step begins with its name, or with a number such as `3.`, not with a sign"),
        (r".*\u2026|.*\.\.\.\s*\Z", "something is left out here: write all of it"),
        (
            r"(?:end|done|fi|pass|endif|end\s?(?:if|for|repeat|loop|while))\b(?!\s*[:=(.])",
            "a block ends where the indentation ends: leave this line out",
        ),
        (
            r"(?:el(?:se)?\s?if|elif|elsif|elseif)\b(?!\s*[:=(.])",
            "write `else if CONDITION:`, with a colon, in line with its `if`",
        ),
        (r"(?:[Oo]therwise|ELSE|Else|default)\b(?!\s*[=(.])", "write `else:`, in line with its `if`"),
        (r"else\b.*", "`else:` stands alone in its line, below a block of `if` and in line with it"),
        (
            r"(?:If|IF|when|When|unless|Unless|WHEN)\b(?!\s*[=(.])",
            "write a condition as `if x > 3:`, its steps indented below; `else:` for the other case",
        ),
        (r"if\b[^:]*\Z", "a colon ends the condition of `if`: `if x > 3:`"),
        (r"if\b.*\bthen\b", "write `if x > 3:` with a colon for `then`"),
        (
            r"(?:[Ww]hile|WHILE|until|Until|loop|do)\b(?!\s*[:=(.])",
            "write a loop with its bound: `repeat at most 60 times until balance <= 0:`",
        ),
        (
            r".*\b(?:sum|count|min|max|all|any|first) of [\w.]+ for\s+\w+\s+in\b",
            "among other values it stands in brackets: `(count of x for x in xs where x > 3) > 2`",
        ),
        (
            r".*[<>\u2264\u2265](?:(?!\b(?:and|or|if|else|in|where|for)\b)[^<>\u2264\u2265,:])*[<>\u2264\u2265]",
            "a comparison has two sides: `x > 0 and x < 10`",
        ),
        (
            r"(?:(?:else\s+)?if|repeat\b.*\buntil|.*\bwhere)\b.*\b"
            r"(?:is|are|equals?|exceeds?|greater|less|larger|smaller|more|above|below|under|over|contains?|between)\b",
            "a comparison is written with a sign: `x == 3`, `x != 3`, `x > 3`, `x in [1, 2]`",
        ),
        (
            r"repeat\s+at\s+most\b",
            "write a loop as `repeat at most 60 times until balance <= 0:`, its steps indented below",
        ),
        (
            r"[Rr]epeat\b(?!\s*[:=(.])",
            "a loop needs its bound and its end: `repeat at most 60 times until balance <= 0:`",
        ),
        (r"for\s+each\b", "write `for each item in items:`, its steps indented below"),
        (
            r"(?:For|for|FOR|foreach|Foreach|loop over)\b(?!\s*[:=(.])",
            "write `for each item in items:`, its steps indented below",
        ),
        (r"(?:return|Return|output|result)\b\s+[^=:]*\Z", "the result is declared as `answer: total`"),
        (
            r"(?:inputs?|Inputs?|INPUTS?|given|Given)\s*:",
            "inputs are declared as `inputs: x, y: integer`, or one a line, indented below",
        ),
        (r"(?:Name|NAME|title|Title|procedure)\s*:[^=]*\Z", "the name is declared as `name: invoice`"),
        (r"(?:Answer|ANSWER|Result|output|Output)\s*:[^=]*\Z", "the answer is declared as `answer: total`"),
        (
            r"(?:let|set|var|const|Let|Set|def|compute|calc)\s+(?P<name>[A-Za-z_]\w*)\s*=",
            "leave the word in front of `{name} =` out",
        ),
        (
            rf"(?:[0-9]+[.)]\s*)?{_NAME}\s*(?:[-+*/])=",
            "write what is added: `total = before + x`; only `repeat` may set a value again",
        ),
        (rf"(?:[0-9]+[.)]\s*)?{_NAME}\s*(?:<-|\u2190|->|\u2192)", "write = between the name and what it is"),
        (rf"(?:[0-9]+[.)]\s*)?{_NAME}\s*(?::[^=]*)?=\s*(?:#.*)?\Z", "nothing follows the equals sign"),
        (rf"(?:[0-9]+[.)]\s*)?{_NAME}\s*(?::[^=]*)?=\s*'", "words stand in double quotes"),
        (rf"(?:[0-9]+[.)]\s*)?{_NAME}\s*(?::[^=]*)?=\s*`", "a formula stands without backticks"),
        (rf"(?:[0-9]+[.)]\s*)?{_NAME}\s*\(.*\)\s*\Z", "a call sets a variable: `receipt = tool pay(amount=total)`"),
    )
)
"""Common mistakes, as patterns on a line without its quotes and comments; the first that matches is reported."""

_EXPECTED: Final[tuple[tuple[frozenset[str], str], ...]] = tuple(
    (frozenset(names.split()), words)
    for names, words in (
        ("_INDENT", "a block, indented below"),
        ("TYPE", "a type, such as `decimal(2)`"),
        ("READS", "`(reads ...)`"),
        ("CHECK", "`check: ...`"),
        ("STRING", "words in quotes"),
        ("NUMBER NAME LPAR", "a value"),
        ("SIGN TIMES COMPARISON", "an operator"),
        ("NAME", "a name"),
        ("EQUAL", "`=`"),
        ("COLON", "a colon"),
        ("COMMA", "a comma"),
        ("RPAR", "a closing bracket"),
        ("RSQB", "`]`"),
        ("RBRACE", "`}`"),
        ("IN", "`in`"),
        ("_NL", "the end of the line"),
    )
)
_KEYWORDS: Final = ("if", "else", "repeat", "for", "inputs", "answer", "name", "record", "table", "procedure", "check")


def explain(text: str, error: UnexpectedInput) -> ProcedureError:
    """The error for a refused text, with its line and the remedy."""
    lines = text.split("\n")
    token = getattr(error, "token", None)
    number = error.line if isinstance(error.line, int) and error.line > 0 else len(lines)
    # At the end of the text the fault is in the last line that holds something.
    if isinstance(token, Token) and token.type == "$END":
        number = max((at for at, line in enumerate(lines, 1) if line.strip()), default=1)
        if not any(line.strip() and not line.lstrip().startswith("#") for line in lines):
            return ProcedureError("no step found: write one step a line, such as `t1 = x + y`", line=1)
    if isinstance(token, Token) and token.type in ("_NL", "_INDENT", "_DEDENT") and token.line is not None:
        number = token.line + (token.type == "_INDENT") * (token.count("\n") if token.type == "_NL" else 1)
    # An open bracket swallows the line ends behind it, so the parser stops lines below the mistake.
    if (opened := _open_bracket(lines, number)) is not None:
        return ProcedureError(f"{opened[1]!r} is not closed", line=opened[0])
    if isinstance(token, Token) and token.type == "_INDENT":
        number = next((at for at in range(number, len(lines) + 1) if _code_of(lines[at - 1])), number)
        if re.match(_CHECK_ALONE, _code_of(lines[number - 1])) is None:
            above = shorten(lines[(token.line or 1) - 1].strip(), 40)
            return ProcedureError(
                f"the line is indented, and {above!r} above it opens no block: begin it where the line above begins",
                line=number,
            )
    line = lines[number - 1].strip()
    if ":" not in _code_of(line) and _block_above(lines, number).startswith("table "):
        row = f"{shorten(line, 60)!r} is no row of a table: write `DE: 28`, `home, excellent: 1.2` or `otherwise: 30`"
        return ProcedureError(row, line=number)
    if (block := _block_above(lines, number)).startswith("record ") and "=" not in _code_of(line):
        field = f"{shorten(line, 60)!r} is no field of a {block.rstrip(':')}: write a name and one type, `phone: text`"
        return ProcedureError(field, line=number)
    return ProcedureError(_sentence(line, error, lines[number - 1]), line=number)


def explain_term(text: str, error: UnexpectedInput) -> str:
    """The message for a refused expression, with the remedy."""
    # The parser of plain arithmetic has better messages.
    if not TERM_SIGNS.search(text):
        try:
            parse_expression(text)
        except ExpressionError as refused:
            return refused.message
    plain = _code_of(text)[:_MAX_SHOWN]
    return explain_place(repr(shorten(text, 60)), plain, error, text.split("\n")[0])


def _code_of(line: str) -> str:
    return _COMMENT.sub("", _STRINGS.sub('""', line)).strip()


def _block_above(lines: list[str], number: int) -> str:
    """The line that opens the block in which a line stands, empty where it stands in none."""
    indent = len(lines[number - 1]) - len(lines[number - 1].lstrip())
    above = (line for line in reversed(lines[: number - 1]) if _code_of(line))
    return next((line.strip() for line in above if len(line) - len(line.lstrip()) < indent), "")


def _open_bracket(lines: list[str], number: int) -> tuple[int, str] | None:
    """The line and the sign of a bracket that is still open where a line begins."""
    stack: list[tuple[int, str]] = []
    for at, line in enumerate(lines[: number - 1], 1):
        for sign in re.findall(r"[()\[\]{}]", _code_of(line)):
            if sign in "([{":
                stack.append((at, sign))
            elif stack:
                stack.pop()
    return stack[-1] if stack else None


def _sentence(line: str, error: UnexpectedInput, raw: str) -> str:
    shown = repr(shorten(line, 60))
    plain = _code_of(line)[:_MAX_SHOWN]  # whatever a line holds, its begin tells what was meant
    if '"' in _COMMENT.sub("", _STRINGS.sub("", line)):
        return "the quoted words are not closed"
    for pattern, remedy in _SLIPS:
        if (match := pattern.match(plain)) is not None:
            return f"{shown}: {remedy.format(line=shorten(plain, 60), **match.groupdict())}"
    if (words := _WORDS_FIRST.match(plain)) is not None:
        step = words["step"].replace("`", "")
        return f'words stand in quotes: write `{step}  "{words["words"].strip()}"`'
    if (words := _WORDS_ALONE.match(plain)) is not None:
        return f'words stand in quotes: `{words["name"]} = "{words["words"]}"`'
    formula = _FORMULA.match(plain)
    if formula is not None and formula["formula"] and not TERM_SIGNS.search(formula["formula"]):
        try:
            parse_expression(formula["formula"])
        except ExpressionError as refused:
            return str(refused)
    return _expected(shown, plain, error) or explain_place(shown, plain, error, raw)


def _allowed(error: UnexpectedInput) -> set[str]:
    if isinstance(error, UnexpectedToken):
        return set(error.accepts or error.expected)
    return set(getattr(error, "allowed", None) or ())


def _expected(shown: str, plain: str, error: UnexpectedInput) -> str | None:
    """The message for a line that is wrong as a whole, None where only a place in it is."""
    if "_INDENT" in _allowed(error):
        return f"{shown} is not indented, and a block begins above it: indent what stands in it"
    first = re.match(r"[A-Za-z]+", plain)
    near = get_close_matches(first[0].lower(), _KEYWORDS, n=1, cutoff=0.75) if first is not None else []
    if near and first is not None and near[0] != first[0] and "=" not in plain.partition(":")[0]:
        return f"{shown} is not understood: did you mean `{near[0]}`?"
    if "=" not in plain and not (near and first is not None and near[0] == first[0]):
        return f'{shown} is neither a formula (`t1 = x + y`) nor words in quotes (`total: number = "Read the total."`)'
    return None


def explain_place(
    shown: str, plain: str, error: UnexpectedInput, raw: str, expected: Iterable[tuple[frozenset[str], str]] = _EXPECTED
) -> str:
    """The place, and what could have stood there: `expected` has words for what the grammar names."""
    token = getattr(error, "token", None)
    column = error.column if isinstance(error.column, int) and error.column > 0 else 1
    allowed = _allowed(error)
    if isinstance(error, UnexpectedToken):
        token_text = (
            "the end of the line" if token is None or token.type in ("_NL", "$END", "_DEDENT") else repr(str(token))
        )
    else:
        token_text = repr(raw[column - 1 : column])
    if token_text in ("'and'", "'or'") and {"and", "or"} <= set(plain.split()):
        return f"'and' and 'or' together in {shown}: put brackets around what belongs together"
    if ("SIGN" in allowed and token_text.strip("'").isidentifier()) or token_text[1:2].isdigit():
        near = get_close_matches(token_text.strip("'"), ("and", "or", "not", "in", "if", "else", "check"), n=1)
        hint = f" (did you mean `{near[0]}`?)" if near else ": write multiplication with *, and words in quotes"
        return f"{token_text} is not expected here in {shown}{hint}"
    alternatives = [words for names, words in expected if names <= allowed]
    tail = f": {' or '.join(alternatives[:4])} may stand here" if alternatives else ""
    return f"{token_text} at column {column} of {shown} is not expected{tail}"
