"""Statements made of formulas: equations, sets of solutions and matrices, as people and models write them.

=============  ==================================================================================================
relation       ``a = b``, ``x <= 3``, ``1 < x <= 3``, ``a = b = c``
solutions      ``2, 3``, ``{2, 3}``, ``x = 2 or x = 3``, ``x_1 = 2, x_2 = 3``, ``x = ±3``, ``x = 1 ± sqrt(2)``,
               ``no solution``, ``all real numbers``; of several unknowns ``x = 1, y = 2`` and ``(1, 2)``,
               alternatives joined by ``or`` or ``;``
matrix         ``[[1, 2], [3, 4]]``, ``\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}``
=============  ==================================================================================================

Where a comma could group digits (``100,200``), the text is refused. Ranges are in `stepguard.formulas.ranges`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from stepguard.errors import ExpressionError
from stepguard.formulas.parsing import FormulaParser
from stepguard.formulas.tokens import MAX_LENGTH, Token, tokenize, unwrap
from stepguard.formulas.trees import Formula
from stepguard.language.expressions import Name

MAX_ITEMS: Final = 50
"""The most solutions, ranges, rows or columns that are read."""

_RELATIONS: Final = ("=", "<", "<=", ">", ">=", "!=")
# All that people write for "no solution": each must be the whole statement.
NONE: Final = re.compile(
    r"(?:(?:there (?:is|are) )?no(?: real)? (?:solutions?|roots?)(?: exists?)?|none|no values?|\{\s*\}|∅|\\emptyset"
    r"|\\varnothing|the empty set|empty set|\\\{\s*\\\})\Z",
    re.IGNORECASE,
)
ALL: Final = re.compile(
    r"(?:(?P<name>[A-Za-z])\s*(?:∈|\\in|in)\s*)?"
    r"(?:all(?: the)? real(?: numbers)?|all reals|every real number"
    r"|any real number|ℝ|\\mathbb\{R\}|\\R"
    r"|\(-(?:∞|\\infty|oo), ?(?:∞|\\infty|oo)\))\Z",
    re.IGNORECASE,
)
# The brackets of both ends must be of one kind.
_ENVIRONMENT: Final = re.compile(r"\\begin\{([bpB]?matrix)\}(.*)\\end\{\1\}\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Relation:
    """Formulas compared with each other, left to right; one operator fewer than sides."""

    operators: tuple[str, ...]
    sides: tuple[Formula, ...]

    @property
    def equation(self) -> bool:
        return self.operators == ("=",)


@dataclass(frozen=True, slots=True)
class Solutions:
    """The solutions that are claimed: the values in the order they are written, or every real number."""

    values: tuple[Formula, ...]
    everything: bool = False


def parse_relation(
    text: str, *, declared: Iterable[str] = (), known: Iterable[str] | None = None
) -> Relation | Formula:
    """Read a relation, or a formula where there is none. Raises ExpressionError: the text is neither."""
    return read_relation(parser_of(text, tokenize(text), declared, known))


def parser_of(
    text: str, tokens: Sequence[Token], declared: Iterable[str], known: Iterable[str] | None
) -> FormulaParser:
    end = Token("end", "", tokens[-1].end, tokens[-1].end) if tokens else Token("end", "", 0, 0)
    return FormulaParser(
        text, (*(token for token in tokens if token.kind != "end"), end), declared=declared, known=known
    )


def read_relation(parser: FormulaParser) -> Relation | Formula:
    sides = [parser.formula()]
    operators: list[str] = []
    while operator := parser.accept(*_RELATIONS):
        operators.append(operator)
        sides.append(parser.formula())
        if len(sides) > 6:
            raise parser.error("a chain of more than 6 sides")
    parser.expect_end()
    return Relation(tuple(operators), tuple(sides)) if operators else sides[0]


def _check_groups(text: str, tokens: Sequence[Token]) -> None:
    """Refuse a comma that could group digits."""
    for left, comma, right in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if comma.text == "," and left.kind == right.kind == "number" and left.end + 1 == right.start:
            digits = right.text.partition(".")[0]
            if len(digits) == 3 and len(left.text) <= 3 and "." not in left.text:
                raise ExpressionError(
                    "a comma that could group digits: leave it out, or write a blank behind it",
                    text=text,
                    position=comma.start,
                )


def split_at(tokens: Sequence[Token], *signs: str) -> list[list[Token]]:
    """Parts between signs that stand outside every bracket."""
    return split_where(tokens, lambda token, before: token.text in signs and token.kind in ("sign", "word"))


def split_where(tokens: Sequence[Token], divides: Callable[[Token, str], bool]) -> list[list[Token]]:
    """Parts between tokens that stand outside every bracket.

    `divides` says of a token, and of the text of the one before it in its part, whether it stands between two parts.
    """
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.kind == "end":
            continue
        if token.kind == "sign":
            depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if depth == 0 and divides(token, parts[-1][-1].text if parts[-1] else ""):
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def enclosed(tokens: Sequence[Token], opening: str, closing: str) -> list[Token] | None:
    """The tokens between two brackets that enclose everything, None where they do not."""
    held = [each for each in tokens if each.kind != "end"]
    if len(held) < 2 or held[0].text != opening or held[-1].text != closing:
        return None
    depth = 0
    for index, token in enumerate(held):
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if depth == 0 and index < len(held) - 1:
            return None
    return held[1:-1]


def behind_in(tokens: Sequence[Token], variable: str) -> Sequence[Token]:
    """The tokens behind ``x ∈``, or all of them."""
    if len(tokens) > 2 and tokens[0].text == variable and tokens[1].text in ("∈", "in"):
        return tokens[2:]
    return tokens


def parse_solutions(
    text: str, variable: str, *, declared: Iterable[str] = (), known: Iterable[str] | None = None
) -> Solutions:
    """Read the solutions of an equation in one unknown.

    Raises ExpressionError: the text names another unknown, can be read in two ways, or is no set of solutions.
    """
    body = unwrap(text)
    if NONE.match(body):
        return Solutions(())
    everything = ALL.match(body)
    if everything and everything["name"] in (None, variable):
        return Solutions((), everything=True)
    tokens: Sequence[Token] = behind_in(tokenize(text), variable)
    _check_groups(text, tokens)
    tokens = _named_set(_without_list_commas(tokens), variable)
    inner = enclosed(tokens, "{", "}")
    items = split_at(inner if inner is not None else tokens, ",", ";", "or", "and")
    if len(items) > MAX_ITEMS:
        raise ExpressionError(f"more than {MAX_ITEMS} solutions", text=text, position=0)
    # Only after the split: in "x = ±3, 4" the sign belongs to its own item.
    signed = (each for item in items for each in _signs(item, text))
    return Solutions(tuple(read_solution(parser_of(text, each, declared, known), variable) for each in signed))


def _without_list_commas(tokens: Sequence[Token]) -> list[Token]:
    """Without the comma in ``1, 2, and 3``."""
    return [
        token
        for token, behind in zip(tokens, [*tokens[1:], tokens[-1]], strict=True)
        if token.text != "," or behind.kind != "word"
    ]


def _named_set(tokens: Sequence[Token], variable: str) -> Sequence[Token]:
    """The tokens behind ``x =`` where that is a set in braces, or all of them."""
    if len(tokens) > 3 and tokens[0].text == variable and [token.text for token in tokens[1:3]] == ["=", "{"]:
        return tokens[2:]
    return tokens


def _signs(tokens: Sequence[Token], text: str) -> list[list[Token]]:
    """An item with ± as two items."""
    places = [index for index, token in enumerate(tokens) if token.text == "±"]
    if not places:
        return [list(tokens)]
    if len(places) > 1:
        raise ExpressionError("more than one ± in a solution", text=text, position=tokens[places[1]].start)
    at = places[0]
    mark = tokens[at]
    return [[*tokens[:at], Token("sign", sign, mark.start, mark.end), *tokens[at + 1 :]] for sign in ("+", "-")]


def read_solution(parser: FormulaParser, variable: str) -> Formula:
    relation = read_relation(parser)
    if not isinstance(relation, Relation):
        return relation
    if not relation.equation:
        raise parser.error("a solution is a value, or an equation such as x = 2")
    left, right = relation.sides
    if _is_unknown(left, variable):
        return right
    if _is_unknown(right, variable):
        return left
    raise parser.error(f"a value of {variable} was expected")


def _is_unknown(tree: Formula, variable: str) -> bool:
    """Whether a formula is the unknown, or one of its numbered values: ``x_1``, ``x1``."""
    if not isinstance(tree, Name):
        return False
    behind = tree.name.removeprefix(variable)
    return tree.name == variable or (
        behind != tree.name and len(behind) <= 3 and behind.removeprefix("_").isdigit() and behind.isascii()
    )


def parse_systems(
    text: str, variables: Sequence[str], *, declared: Iterable[str] = (), known: Iterable[str] | None = None
) -> tuple[tuple[Formula, ...], ...]:
    """Read the solutions of equations in several unknowns, each as the values of the unknowns in their order.

    Raises ExpressionError: a solution lacks an unknown or names one twice, or the text is none.
    """
    body = unwrap(text)
    if NONE.match(body):
        return ()
    tokens: Sequence[Token] = tokenize(text)
    _check_groups(text, tokens)
    inner = enclosed(tokens, "{", "}")
    alternatives = split_at(inner if inner is not None else tokens, "or", ";")
    # (1, 2), (3, 4): commas between pairs in brackets separate solutions, not values.
    if len(alternatives) == 1:
        parts = split_at(alternatives[0], ",", "and")
        if len(parts) > 1 and all(enclosed(part, "(", ")") is not None for part in parts):
            alternatives = parts
    if len(alternatives) > MAX_ITEMS:
        raise ExpressionError(f"more than {MAX_ITEMS} solutions", text=text, position=0)
    return tuple(_assignment(alternative, text, variables, declared, known) for alternative in alternatives)


def _assignment(
    tokens: Sequence[Token], text: str, variables: Sequence[str], declared: Iterable[str], known: Iterable[str] | None
) -> tuple[Formula, ...]:
    wrong = ExpressionError(
        f"a value of each of {', '.join(variables)} was expected", text=text, position=tokens[0].start if tokens else 0
    )
    names = [token.text for token in tokens[: 2 * len(variables) + 2]]
    # The tokens of "(x, y) =".
    head = ["(", *(sign for name in variables for sign in (name, ","))]
    head[-1:] = [")", "="]
    if names == head:  # (x, y) = (1, 2)
        tokens = tokens[len(head) :]
    inner = enclosed(tokens, "(", ")")
    parts = split_at(inner if inner is not None else tokens, ",", "and")
    assigned: dict[str, Formula] = {}
    bare: list[Formula] = []
    for part in parts:
        value = read_relation(parser_of(text, part, declared, known))
        if isinstance(value, Relation):
            name = value.sides[0]
            if not value.equation or not isinstance(name, Name) or name.name not in variables or name.name in assigned:
                raise wrong
            assigned[name.name] = value.sides[1]
        else:
            bare.append(value)
    if inner is not None and not assigned and len(bare) == len(variables):
        return tuple(bare)
    if bare or len(assigned) != len(variables):
        raise wrong
    return tuple(assigned[name] for name in variables)


def parse_matrix(
    text: str, *, declared: Iterable[str] = (), known: Iterable[str] | None = None
) -> tuple[tuple[Formula, ...], ...]:
    """Read a matrix, as its rows. Raises ExpressionError: the text is no matrix, or its rows are not of one length."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"too long: {len(text)} characters, at most {MAX_LENGTH}", text=text, position=MAX_LENGTH)
    body = unwrap(text).replace("\\left", "").replace("\\right", "")
    environment = _ENVIRONMENT.match(body)
    if environment:
        lines = environment[2].strip().removesuffix("\\\\").split("\\\\")
        cells = [[tokenize(cell) for cell in line.split("&")] for line in lines]
        rows = [[[token for token in cell if token.kind != "end"] for cell in row] for row in cells]
    else:
        inner = enclosed(tokenize(body), "[", "]")
        if inner is None:
            raise ExpressionError("a matrix such as [[1, 2], [3, 4]] was expected", text=text, position=0)
        rows = []
        for part in split_at(inner, ",", ";"):
            row = enclosed(part, "[", "]")
            if row is None:
                raise ExpressionError(
                    "a row in brackets was expected", text=text, position=part[0].start if part else 0
                )
            _check_groups(text, row)
            rows.append(split_at(row, ","))
    if len(rows) > MAX_ITEMS or any(len(row) != len(rows[0]) or len(row) > MAX_ITEMS for row in rows):
        raise ExpressionError("the rows are not of one length", text=text, position=0)
    found: list[tuple[Formula, ...]] = []
    for cells_of_row in rows:
        entries = []
        for cell in cells_of_row:
            parser = parser_of(text, cell, declared, known)
            entries.append(parser.formula())
            parser.expect_end()
        found.append(tuple(entries))
    return tuple(found)
