"""Ranges of one variable, as people and models write them.

``x < 1 or x >= 3``, ``-2 < x and x < 3``, ``1 < x <= 3``, ``(1, 3]``, ``(-∞, 1) ∪ [3, ∞)``, ``x != 2``, ``{1, 2}``,
``no solution``, ``all real numbers``. A comma between comparisons (``x < 1, x > 3``) could mean "and" as well as "or",
and is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from stepguard.errors import ExpressionError
from stepguard.formulas.parsing import FormulaParser
from stepguard.formulas.statements import (
    ALL,
    MAX_ITEMS,
    NONE,
    Relation,
    behind_in,
    enclosed,
    parser_of,
    read_relation,
    read_solution,
    split_at,
    split_where,
)
from stepguard.formulas.tokens import Token, tokenize, unwrap
from stepguard.formulas.trees import Formula
from stepguard.language.expressions import Name

_INFINITE: Final = frozenset({"∞", "oo", "inf", "infinity"})


@dataclass(frozen=True, slots=True)
class Condition:
    """One bound: the variable `operator` `bound`."""

    operator: str
    bound: Formula


@dataclass(frozen=True, slots=True)
class Region:
    """Alternatives, each of conditions that hold together: none is the empty set, an empty one every real number."""

    alternatives: tuple[tuple[Condition, ...], ...]


def parse_region(
    text: str, variable: str, *, declared: Iterable[str] = (), known: Iterable[str] | None = None
) -> Region:
    """Read a range of one variable. Raises ExpressionError: the text is no range, or can be read in two ways."""
    body = unwrap(text)
    if NONE.match(body):
        return Region(())
    everything = ALL.match(body)
    if everything and everything["name"] in (None, variable):
        return Region(((),))
    tokens: Sequence[Token] = behind_in(tokenize(text), variable)
    alternatives: list[tuple[Condition, ...]] = []
    for index, part in enumerate(split_where(tokens, _joins)):
        if index >= MAX_ITEMS:
            raise ExpressionError(f"more than {MAX_ITEMS} ranges", text=text, position=0)
        alternatives += _alternative(behind_in(part, variable), text, variable, declared, known)
    return Region(tuple(alternatives))


def _joins(token: Token, before: str) -> bool:
    """Whether a token stands between two alternatives: an ``or``, or the sign of a union behind an interval."""
    return (token.kind, token.text) == ("word", "or") or (
        (token.kind, token.text) == ("name", "U") and before in (")", "]")
    )


def _alternative(
    tokens: Sequence[Token], text: str, variable: str, declared: Iterable[str], known: Iterable[str] | None
) -> list[tuple[Condition, ...]]:
    interval = _interval(tokens, text, declared, known)
    if interval is not None:
        return [interval]
    inner = enclosed(tokens, "{", "}")
    if inner is not None:
        return [
            (Condition("=", read_solution(parser_of(text, item, declared, known), variable)),)
            for item in split_at(inner, ",")
        ]
    conditions: list[Condition] = []
    for part in split_at(tokens, "and"):
        parser = parser_of(text, part, declared, known)
        relation = read_relation(parser)
        if not isinstance(relation, Relation):
            raise parser.error("a range is a comparison such as x < 3, or an interval")
        conditions += _conditions(relation, parser, variable)
    return [tuple(conditions)]


def _conditions(relation: Relation, parser: FormulaParser, variable: str) -> list[Condition]:
    """``1 < x <= 3`` as conditions on x."""
    sides, operators = relation.sides, relation.operators
    places = [index for index, side in enumerate(sides) if side == Name(variable)]
    directions = {operator[0] for operator in operators}
    # A chain has the variable in the middle and one direction: 1 < x > 3 and 1 < 3 < x are refused.
    if len(places) != 1 or len(sides) > 3 or (len(sides) == 3 and (places != [1] or len(directions) != 1)):
        raise parser.error(f"a comparison of {variable} with a bound was expected")
    if len(sides) == 3 and not directions <= {"<", ">"}:
        raise parser.error("only a range such as 1 < x <= 3 has two bounds")
    at = places[0]
    conditions = []
    for index, operator in enumerate(operators):
        bound = sides[index] if at == index + 1 else sides[index + 1]
        conditions.append(Condition(_turned(operator) if at == index + 1 else operator, bound))
    return conditions


def _turned(operator: str) -> str:
    return {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)


def _interval(
    tokens: Sequence[Token], text: str, declared: Iterable[str], known: Iterable[str] | None
) -> tuple[Condition, ...] | None:
    # The shortest interval, (1,2), has five tokens.
    if len(tokens) < 5 or tokens[0].text not in ("(", "[") or tokens[-1].text not in (")", "]"):
        return None
    parts = split_at(tokens[1:-1], ",", ";")
    if len(parts) != 2 or not all(parts):
        return None
    conditions: list[Condition] = []
    for part, operator, sign in zip(parts, (">", "<"), ("-", "+"), strict=True):
        closed = (tokens[0] if operator == ">" else tokens[-1]).text in ("[", "]")
        words = [each.text for each in part]
        infinite = words[-1] in _INFINITE
        if infinite:
            # A lower end is -∞ with its sign, an upper one ∞ or +∞; neither is ever reached.
            if closed or words[:-1] not in ([[sign]] if sign == "-" else [[], [sign]]):
                raise ExpressionError("an infinite end is open, as in (-∞, 1]", text=text, position=part[0].start)
            continue
        parser = parser_of(text, part, declared, known)
        bound = parser.formula()
        parser.expect_end()
        conditions.append(Condition(f"{operator}=" if closed else operator, bound))
    return tuple(conditions)
