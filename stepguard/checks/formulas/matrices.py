"""A check of steps whose value is a matrix.

::

    Step("C", instruction="Multiply A and B.", reads=["A", "B"], checks=[SameMatrix("A*B", reads=("A", "B"))])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from stepguard.checks.formulas.base import FormulaQuestion, SymbolicCheck, Unusable, is_variable
from stepguard.core.arguments import check_text
from stepguard.core.verdicts import Verdict
from stepguard.errors import ConfigError, ExpressionError
from stepguard.formulas.parsing import parse_formula
from stepguard.formulas.statements import parse_matrix
from stepguard.formulas.trees import (
    MAX_NODES,
    CallOf,
    Formula,
    PowerOf,
    Product,
    Sum,
    count_nodes,
    negative,
    product,
    quotient,
    symbols_in,
    total,
)
from stepguard.language.expressions import Name, Number

Matrix = tuple[tuple[Formula, ...], ...]
"""Rows of formulas."""

_MAX_INVERTED: Final = 4  # by cofactors the work grows with the factorial of the rows
_MAX_POWER: Final = 20  # entries in symbols grow with every product


@dataclass(frozen=True, slots=True)
class SameMatrix(SymbolicCheck):
    """The claim is a matrix, ``[[1, 2], [3, 4]]``, that equals another one entry by entry.

    Args:
        matrix: the matrix, or what it is worked out from: variables that the step reads and that hold matrices, with
            ``+ - *``, whole powers, ``A^T``, ``transpose(A)``, ``inverse(A)`` or ``A^-1``, and ``det(A)`` or
            ``trace(A)`` as numbers in it. A formula that is a number as a whole (``det(A)``) asks for a formula.

    Matrices that are inverted have at most 4 rows. Further options: see `stepguard.checks.formulas.base.SymbolicCheck`.

    Raises:
        ConfigError: an option cannot work.
    """

    matrix: str

    def __post_init__(self) -> None:
        self._check_options(self.matrix)
        check_text(self.matrix, "matrix", what="a matrix as text")
        try:
            if _is_literal(self.matrix):
                parse_matrix(self.matrix, declared=self._declared())
            elif not is_variable(self.matrix, self.symbols):
                tree = parse_formula(self.matrix, declared=self._declared(), matrices=True)
                # Without values every name is a symbol, and "A*B" would be compared as a product of two letters.
                if not symbols_in(tree) & set(self.reads):
                    raise ConfigError("list the variables that hold matrices in reads", option="reads")
        except ExpressionError as error:
            raise ConfigError(f"matrix: {error}", option="matrix") from None

    def _answer(self, question: FormulaQuestion) -> Verdict:
        wanted = self._expected(question)
        if not isinstance(wanted, tuple):
            claim = question.claimed_formula(wanted)
            return self._verdict_of(question.decider.equal(wanted, claim))
        known = question.known(*(entry for row in wanted for entry in row))
        found = parse_matrix(question.without_label(), declared=question.declared, known=known)
        if (len(found), len(found[0])) != (len(wanted), len(wanted[0])):
            reason = f"{len(wanted)} by {len(wanted[0])} was expected, not {len(found)} by {len(found[0])}"
            return self._verdict("fail", reason)
        undecided: Verdict | None = None
        for row, (left, right) in enumerate(zip(wanted, found, strict=True), 1):
            for column, (one, other) in enumerate(zip(left, right, strict=True), 1):
                finding = question.decider.equal(one, question.numbered(other))
                if finding.answer == "no":
                    return self._verdict("fail", f"row {row}, column {column}: {finding.reason}")
                # Go on: a later entry may still be wrong, and that decides.
                if finding.answer == "open" and undecided is None:
                    undecided = self._verdict("undecided", f"row {row}, column {column}: {finding.reason}")
        return undecided or self._verdict("pass")

    def _expected(self, question: FormulaQuestion) -> Matrix | Formula:
        text = self.matrix.strip()
        if _is_literal(text):
            return _filled(parse_matrix(text, declared=question.declared), question)
        try:
            tree = parse_formula(text, declared=question.declared, matrices=True)
            held: dict[str, Matrix | Formula] = {}
            for name in symbols_in(tree) & question.values.keys():
                value = question.values[name]
                if isinstance(value, str) and _is_literal(value):
                    held[name] = _filled(parse_matrix(value, declared=question.declared), question)
                elif name in question.values:
                    held[name] = question.formula(name)
        except ExpressionError as error:
            raise Unusable(str(error)) from None
        return _Algebra(held).value(tree)


def _is_literal(text: str) -> bool:
    head = "".join(text.split())[:20].lstrip("$\\").removeprefix("left")
    return head.startswith(("[[", "begin{"))


def _filled(matrix: Matrix, question: FormulaQuestion) -> Matrix:
    return tuple(tuple(question.numbered(entry) for entry in row) for row in matrix)


class _Algebra:
    """Works out a formula of matrices; the products and sums of their entries are left as formulas."""

    def __init__(self, held: Mapping[str, Matrix | Formula]) -> None:
        self._matrices = held

    def value(self, tree: Formula) -> Matrix | Formula:
        match tree:
            case Name(name):
                return self._matrices.get(name, tree)
            case Sum(terms):
                return self._sum([self.value(term) for term in terms])
            case Product(factors):
                return self._product([self.value(factor) for factor in factors])
            case PowerOf(base, exponent):
                return self._power(self.value(base), exponent)
            case CallOf(function, argument):
                return self._call(function, self.value(argument))
            case _:
                return tree

    def _sum(self, terms: Sequence[Matrix | Formula]) -> Matrix | Formula:
        matrices = [term for term in terms if isinstance(term, tuple)]
        if not matrices:
            return total(term for term in terms if not isinstance(term, tuple))
        first = matrices[0]
        if len(matrices) != len(terms) or any(_shape(matrix) != _shape(first) for matrix in matrices):
            raise Unusable("only matrices of one shape can be added")
        return tuple(
            tuple(total(matrix[row][column] for matrix in matrices) for column in range(len(first[0])))
            for row in range(len(first))
        )

    def _product(self, factors: Sequence[Matrix | Formula]) -> Matrix | Formula:
        scale = product(factor for factor in factors if not isinstance(factor, tuple))
        matrices = [factor for factor in factors if isinstance(factor, tuple)]
        if not matrices:
            return scale
        found = matrices[0]
        for matrix in matrices[1:]:
            found = _multiplied(found, matrix)
        return found if scale == Number(1) else tuple(tuple(product((scale, entry)) for entry in row) for row in found)

    def _power(self, base: Matrix | Formula, exponent: Formula) -> Matrix | Formula:
        if not isinstance(base, tuple):
            power = self.value(exponent)
            if isinstance(power, tuple):
                raise Unusable("a matrix is no exponent")
            return PowerOf(base, power)
        # A^T is the transpose; T is read as a name before the parser knows that A is a matrix.
        if exponent == Name("T"):
            return _transposed(base)
        whole = exponent.value if isinstance(exponent, Number) else None
        if not isinstance(whole, int) or not -_MAX_POWER <= whole <= _MAX_POWER or whole == 0:
            raise Unusable(f"a matrix has whole powers from -{_MAX_POWER} to {_MAX_POWER} without 0, or T")
        found = held = _inverted(base) if whole < 0 else base
        for _ in range(abs(whole) - 1):
            found = _multiplied(found, held)
        return found

    def _call(self, function: str, argument: Matrix | Formula) -> Matrix | Formula:
        if not isinstance(argument, tuple):
            if function in ("det", "transpose", "inverse", "trace"):
                raise Unusable(f"{function} is of a matrix")
            return CallOf(function, argument)
        match function:
            case "transpose":
                return _transposed(argument)
            case "inverse":
                return _inverted(argument)
            case "det":
                return _determinant(argument)
            case "trace":
                _check_square(argument)
                return total(argument[index][index] for index in range(len(argument)))
        raise Unusable(f"{function} is not of a matrix")


def _shape(matrix: Matrix) -> tuple[int, int]:
    return len(matrix), len(matrix[0])


def _check_square(matrix: Matrix) -> None:
    if len(matrix) != len(matrix[0]):
        raise Unusable("a square matrix was expected")


def _bounded(matrix: Matrix) -> Matrix:
    if any(count_nodes(entry) > MAX_NODES for row in matrix for entry in row):
        raise Unusable("the entries of the matrix are too large")
    return matrix


def _multiplied(left: Matrix, right: Matrix) -> Matrix:
    if len(left[0]) != len(right):
        raise Unusable(f"{len(left[0])} columns cannot be multiplied with {len(right)} rows")
    return _bounded(
        tuple(
            tuple(
                total(product((row[index], right[index][column])) for index in range(len(right)))
                for column in range(len(right[0]))
            )
            for row in left
        )
    )


def _transposed(matrix: Matrix) -> Matrix:
    return tuple(zip(*matrix, strict=True))


def _determinant(matrix: Matrix) -> Formula:
    """By cofactors of the first row."""
    _check_square(matrix)
    if len(matrix) > _MAX_INVERTED + 1:
        raise Unusable(f"determinants of more than {_MAX_INVERTED + 1} rows are not worked out")
    if len(matrix) == 1:
        return matrix[0][0]
    return total(_cofactors(matrix))


def _cofactors(matrix: Matrix) -> Iterator[Formula]:
    for column, entry in enumerate(matrix[0]):
        term = product((entry, _determinant(_minor(matrix, 0, column))))
        yield negative(term) if column % 2 else term


def _minor(matrix: Matrix, row: int, column: int) -> Matrix:
    return tuple(
        tuple(entry for index, entry in enumerate(held) if index != column)
        for number, held in enumerate(matrix)
        if number != row
    )


def _inverted(matrix: Matrix) -> Matrix:
    """The transposed cofactors divided by the determinant."""
    _check_square(matrix)
    size = len(matrix)
    if size > _MAX_INVERTED:
        raise Unusable(f"matrices of more than {_MAX_INVERTED} rows are not inverted")
    determinant = _determinant(matrix)
    if size == 1:
        return ((quotient(Number(1), determinant),),)
    rows: list[tuple[Formula, ...]] = []
    for row in range(size):
        entries = []
        for column in range(size):
            # Row and column are exchanged: the inverse holds the transposed cofactors.
            cofactor = _determinant(_minor(matrix, column, row))
            entries.append(quotient(negative(cofactor) if (row + column) % 2 else cofactor, determinant))
        rows.append(tuple(entries))
    return _bounded(tuple(rows))
