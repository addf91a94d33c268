"""Claims of matrices; judged entry by entry in fractions."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from certification.families import Family, Problem, Said
from stepguard.checks.formulas.matrices import SameMatrix

__all__: list[str] = []

Rows = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True, slots=True)
class _Asked:
    wanted: Rows | Fraction
    near: tuple[Rows | Fraction, ...]
    """What slips lead to."""


def _random(chance: random.Random, rows: int, columns: int) -> Rows:
    return tuple(tuple(Fraction(chance.randint(-6, 9)) for _ in range(columns)) for _ in range(rows))


def _times(left: Rows, right: Rows) -> Rows:
    return tuple(
        tuple(
            sum((a * b for a, b in zip(row, column, strict=True)), Fraction(0)) for column in zip(*right, strict=True)
        )
        for row in left
    )


def _both(left: Rows, right: Rows, apply: Callable[[Fraction, Fraction], Fraction]) -> Rows:
    return tuple(tuple(map(apply, one, other)) for one, other in zip(left, right, strict=True))


def _turned(rows: Rows) -> Rows:
    return tuple(zip(*rows, strict=True))


def _scaled(rows: Rows, factor: Fraction) -> Rows:
    return tuple(tuple(factor * each for each in row) for row in rows)


def _determinant(rows: Sequence[Sequence[Fraction]]) -> Fraction:
    if len(rows) == 1:
        return rows[0][0]
    parts = (
        (-1) ** at * each * _determinant([[*row[:at], *row[at + 1 :]] for row in rows[1:]])
        for at, each in enumerate(rows[0])
    )
    return sum(parts, Fraction(0))


def _inverse(rows: Rows) -> Rows | None:
    """By elimination beside the unit matrix."""
    size = len(rows)
    held = [[*row, *(Fraction(at == column) for column in range(size))] for at, row in enumerate(rows)]
    for column in range(size):
        pivot = next((at for at in range(column, size) if held[at][column]), None)
        if pivot is None:
            return None
        held[column], held[pivot] = held[pivot], held[column]
        held[column] = [each / held[column][column] for each in held[column]]
        for at in range(size):
            if at != column:
                held[at] = [a - held[at][column] * b for a, b in zip(held[at], held[column], strict=True)]
    return tuple(tuple(row[size:]) for row in held)


def _entry(value: Fraction) -> str:
    return str(value)


def _plain(rows: Rows) -> str:
    lines = [f"[{', '.join(map(_entry, row))}]" for row in rows]
    return f"[{', '.join(lines)}]"


def _problem(chance: random.Random) -> Problem:
    size = chance.choice([2, 2, 3])
    a, b = _random(chance, size, size), _random(chance, size, size)
    wide = _random(chance, size, chance.choice([2, 3, 4]))
    inverse = _inverse(a)
    product, other = _times(a, b), _times(b, a)
    each = _both(a, b, lambda one, two: one * two)
    total = _both(a, b, lambda one, two: one + two)
    cases: list[tuple[str, Rows, _Asked]] = [
        ("A*B", b, _Asked(product, (other, each, _turned(product)))),
        ("A*B", wide, _Asked(_times(a, wide), (wide, _scaled(_times(a, wide), Fraction(2))))),
        ("A + B", b, _Asked(total, (_both(a, b, lambda one, two: one - two), a, product))),
        ("2*A - B", b, _Asked(_both(a, b, lambda one, two: 2 * one - two), (_both(a, b, lambda x, y: x - y), total))),
        ("A^T", b, _Asked(_turned(a), (a, tuple(row[::-1] for row in a), a[::-1]))),
        ("A^2", b, _Asked(_times(a, a), (_both(a, a, lambda one, two: one * two), _scaled(a, Fraction(2)), a))),
        ("det(A)", b, _Asked(_determinant(a), (-_determinant(a), a[0][0] * a[1][1] + a[0][1] * a[1][0], a[0][0]))),
        ("trace(A*B)", b, _Asked(sum((product[at][at] for at in range(size)), Fraction(0)), (_determinant(product),))),
    ]
    if inverse is not None:
        adjugate = _scaled(inverse, _determinant(a))
        flipped = tuple(tuple(1 / each if each else each for each in row) for row in a)
        slips = (adjugate, flipped, _turned(inverse), _scaled(inverse, Fraction(-1)), a)
        cases += [("inverse(A)", b, _Asked(inverse, slips)), ("A^-1", b, _Asked(inverse, slips))]
    text, second, asked = chance.choice(cases)
    reads = {"A": _plain(a), "B": _plain(second)}
    check = SameMatrix(text, reads=("A", "B") if "B" in text else ("A",))
    return Problem((check,), asked, {name: reads[name] for name in check.reads})


MATRIX = Family("SameMatrix", _problem, lambda problem, value: value == problem.truth.wanted)


def _say(chance: random.Random, value: Rows | Fraction) -> Said:
    if isinstance(value, Fraction):
        return Said(_entry(value), value)
    body = " \\\\ ".join(" & ".join(map(_entry, row)) for row in value)
    kind = chance.choice(["pmatrix", "bmatrix"])
    ways = [
        _plain(value),
        _plain(value).replace(" ", ""),
        _plain(value).replace("], [", "],\n ["),
        f"\\begin{{{kind}}} {body} \\end{{{kind}}}",
        f"$\\begin{{{kind}}}{body}\\end{{{kind}}}$",
        f"t = {_plain(value)}",
    ]
    if any(len(_entry(each)) > 2 for row in value for each in row):
        del ways[1]  # a comma could group digits
    return Said(chance.choice(ways), value)


@MATRIX.put("right", "the matrix")
def _right(chance: random.Random, problem: Problem) -> Said | None:
    return _say(chance, problem.truth.wanted)


def _kind(name: str, change: Callable[[random.Random, Rows], Rows | None]) -> None:
    @MATRIX.put("wrong", name)
    def kind(chance: random.Random, problem: Problem) -> Said | None:
        wanted = problem.truth.wanted
        found = change(chance, ((wanted,),) if isinstance(wanted, Fraction) else wanted)
        if found is None:
            return None
        return _say(chance, found[0][0] if isinstance(wanted, Fraction) else found)


def _one_entry(chance: random.Random, rows: Rows, change: Callable[[Fraction], Fraction]) -> Rows:
    row, column = chance.randrange(len(rows)), chance.randrange(len(rows[0]))
    return tuple(
        tuple(change(each) if (at, place) == (row, column) else each for place, each in enumerate(held))
        for at, held in enumerate(rows)
    )


def _swapped(chance: random.Random, rows: Rows) -> Rows | None:
    flat = [each for row in rows for each in row]
    if len(flat) < 2:
        return None
    one, two = chance.sample(range(len(flat)), 2)
    flat[one], flat[two] = flat[two], flat[one]
    width = len(rows[0])
    return tuple(tuple(flat[at : at + width]) for at in range(0, len(flat), width))


_kind("an entry off by one", lambda chance, rows: _one_entry(chance, rows, lambda each: each + chance.choice([-1, 1])))
_kind("an entry's sign", lambda chance, rows: _one_entry(chance, rows, lambda each: -each))
_kind(
    "an entry rounded", lambda chance, rows: _one_entry(chance, rows, lambda each: Fraction(str(round(float(each), 3))))
)
_kind(
    "an entry off by very little",
    lambda chance, rows: _one_entry(chance, rows, lambda each: each + Fraction(1, 10**15)),
)
_kind("two entries swapped", _swapped)
_kind("transposed", lambda chance, rows: _turned(rows))
_kind("rows in another order", lambda chance, rows: rows[::-1] if len(rows) > 1 else None)
_kind("all signs", lambda chance, rows: _scaled(rows, Fraction(-1)))
_kind("a row left out", lambda chance, rows: rows[:-1] if len(rows) > 1 else None)
_kind("a column left out", lambda chance, rows: tuple(row[:-1] for row in rows) if len(rows[0]) > 1 else None)
_kind("a row too many", lambda chance, rows: (*rows, (Fraction(0),) * len(rows[0])) if len(rows) > 1 else None)


@MATRIX.put("wrong", "what a slip leads to")
def _slip(chance: random.Random, problem: Problem) -> Said | None:
    return _say(chance, chance.choice(problem.truth.near))


@MATRIX.put("wrong", "no matrix, or the question repeated")
def _nothing(chance: random.Random, problem: Problem) -> Said | None:
    wanted = problem.truth.wanted
    ways = ["", "[]", "[[]]", "A*B", "A", "[[1, 2], [3]]", "1, 2, 3, 4", "[[1, 2], [3, 4]", "a matrix"]
    if not isinstance(wanted, Fraction):
        ways += [
            f"{_plain(wanted)} or {_plain(wanted)}",
            _plain(wanted)[1:-1],
            f"[{_plain(wanted)}]",
            f"{_plain(wanted)}^2",
        ]
    return Said(chance.choice(ways))
