"""Solutions of equations, systems and inequalities, and matrices: whole and right, or they fail."""

from __future__ import annotations

import pytest
from symbolic_harness import FAIL, OPEN, PASS, judge
from tables import all_rows

from stepguard.checks.formulas.matrices import SameMatrix
from stepguard.checks.formulas.solving import Solves, SolvesInequality, SolvesSystem

pytestmark = pytest.mark.once


@all_rows("equation, claim, outcome", [
    *(("x^2 - 5*x + 6 = 0", "2, 3", PASS), ("x^2 - 5*x + 6 = 0", "x = 3 or x = 2", PASS)),
        *(("x^2 - 5*x + 6 = 0", "{2, 3}", PASS), ("x^2 - 5*x + 6 = 0", "x_1 = 2, x_2 = 3", PASS)),
        *(("x^2 - 5*x + 6 = 0", "2", FAIL), ("x^2 - 5*x + 6 = 0", "2, 3, 4", FAIL)),
        *(("x^2 - 5*x + 6 = 0", "-2, -3", FAIL), ("x^2 - 5*x + 6 = 0", "2, 2", FAIL)),
        *(("x^2 - 5*x + 6 = 0", "2, 3, 4/2", FAIL), ("x^2 - 5*x + 6 = 0", "no solution", FAIL)),
        *(("x^2 - 5*x + 6 = 0", "y = 2, y = 3", "malformed"), ("x^2 - 5*x + 6 = 0", "x^2 - 5x + 6 = 0", "malformed")),
        *(("x^2 - 5*x + 6 = 0", "x", FAIL), ("x^2 = 9", "x = ±3", PASS), ("x^2 = 9", "3", FAIL)),
        *(("x^2 = 2", "±sqrt(2)", PASS), ("x^2 = 2", "±1.41421356", FAIL)),
        *(("x^2 - 2x - 1 = 0", "x = 1 ± sqrt(2)", PASS), ("x^2 - 2x - 1 = 0", "1 - sqrt(2), 1 + sqrt(2)", PASS)),
        *(("x^2 - 2x - 1 = 0", "1 + sqrt(2)", FAIL), ("x^2 + 1 = 0", "no solution", PASS)),
        *(("x^2 + 1 = 0", "x = ±1", FAIL), ("x^2 - 2x + 1 = 0", "1", PASS), ("x^2 - 2x + 1 = 0", "1, 1", FAIL)),
        *(("x^3 - x = 0", "-1, 0, 1", PASS), ("x^3 - x = 0", "-1, 1", FAIL), ("(x^2 - 1)/(x - 1) = 0", "-1", PASS)),
        *(("(x^2 - 1)/(x - 1) = 0", "-1, 1", FAIL), ("1/x = 0", "none", PASS), ("|x - 3| = 5", "-2, 8", PASS)),
        *(("|x - 3| = 5", "8", FAIL), ("|x| = -1", "no solution", PASS), ("|x| + |x - 1| = 3", "-1, 2", PASS)),
        *(("x = x", "all real numbers", PASS), ("x^2 = x", "all real numbers", FAIL), ("x = x", "0", FAIL)),
        *(("sqrt(x + 3) = x - 3", "6", PASS), ("sqrt(x + 3) = x - 3", "1, 6", FAIL), ("exp(x) = 2", "ln 2", PASS)),
        *(("exp(x) = -1", "no solution", PASS), ("2^x = 8", "x = 3", PASS), ("sin(x) = 0", "0", OPEN)),
        *(("x^3 = 2", "cbrt(2)", PASS), ("x^2 - x - 1 = 0", "(1 + sqrt(5))/2, (1 - sqrt(5))/2", PASS)),
    # Part of an answer, and an answer with something more, are wrong.
    *(("(x - 1331)*(x - 1728) = 0", claim, outcome) for claim, outcome in (
        ("1728, 1331", PASS), ("1728", FAIL), ("1728, 1331, 9", FAIL), ("1331 and 1728", PASS), ("1331,1728", PASS),
    )),
    # With other symbols there have to be as many solutions as the degree says.
    *(("a*x = b", "b/a", PASS), ("a*x = b", "a/b", FAIL), ("x^2 = a", "±sqrt(a)", PASS)),
        *(("x^2 = a", "sqrt(a)", OPEN), ("x^2 - (a + b)*x + a*b = 0", "a, b", PASS)),
        *(("x^2 - (a + b)*x + a*b = 0", "a", OPEN), ("x^2 - (a + b)*x + a*b = 0", "-a, -b", FAIL)),
        ("x^2 - 2*a*x + a^2 = 0", "a, a", FAIL),
])  # fmt: skip
def test_solutions_are_compared_as_whole_sets(equation: str, claim: str, outcome: str) -> None:
    """Every real solution has to be there, once, and nothing else."""
    verdict = judge(Solves(equation, "x"), claim)
    assert (verdict.kind if outcome == "malformed" else verdict.outcome) == outcome, verdict.reason


def test_one_solution_can_be_enough() -> None:
    """Where not all solutions are asked for, one is enough, a wrong one is none, and others could be right too."""
    check = Solves("x^2 - 5*x + 6 = 0", "x", all=False)
    verdict = judge(check, "2")
    assert (verdict.outcome, verdict.strength) == ("pass", "constrained")
    assert judge(check, "2, 4").outcome == "fail"
    assert judge(check, "no solution").outcome == "fail"
    assert judge(Solves("sin(x) = 0", "x", all=False), "pi").outcome == "pass"


def test_the_order_of_solutions_can_matter() -> None:
    """Where solutions have to be in ascending order, others fail."""
    check = Solves("x^2 - 2x - 1 = 0", "x", ordered=True)
    assert judge(check, "1 - sqrt(2), 1 + sqrt(2)").outcome == "pass"
    assert judge(check, "1 + sqrt(2), 1 - sqrt(2)").outcome == "fail"


@all_rows(
    "equations, claim, outcome",
    [
        *((["x + y = 3", "x - y = 1"], "x = 2, y = 1", PASS), (["x + y = 3", "x - y = 1"], "(2, 1)", PASS)),
        *((["x + y = 3", "x - y = 1"], "y = 1 and x = 2", PASS), (["x + y = 3", "x - y = 1"], "x = 1, y = 2", FAIL)),
        *((["x + y = 3", "x - y = 1"], "x = 2", "malformed"), (["x + y = 3", "x - y = 1"], "no solution", FAIL)),
        *((["x + y = 3", "x + y = 4"], "no solution", PASS), (["x + y = 3", "2x + 2y = 6"], "x = 1, y = 2", OPEN)),
        *((["x = 1", "x = 2", "y = 1"], "no solution", PASS), (["x*y = 2", "x + y = 3"], "(1, 2) or (2, 1)", OPEN)),
        (["x*y = 2", "x + y = 3"], "(1, 3)", FAIL),
    ],
)
def test_systems(equations: list[str], claim: str, outcome: str) -> None:
    """A solution of a system satisfies every equation."""
    verdict = judge(SolvesSystem(equations, ["x", "y"]), claim)
    assert (verdict.kind if outcome == "malformed" else verdict.outcome) == outcome, verdict.reason


@all_rows(
    "inequality, claim, outcome",
    [
        *(("2x - 1 < 5", "x < 3", PASS), ("2x - 1 < 5", "3 > x", PASS), ("2x - 1 < 5", "(-∞, 3)", PASS)),
        *(("2x - 1 < 5", "x <= 3", FAIL), ("2x - 1 < 5", "x > 3", FAIL), ("2x - 1 < 5", "x < 2", FAIL)),
        *(("-3x <= 9", "x >= -3", PASS), ("-3x <= 9", "x <= -3", FAIL), ("3x > 1", "x > 1/3", PASS)),
        *(("3x > 1", "x > 0.333333", FAIL), ("x^2 > 4", "x < -2 or x > 2", PASS)),
        *(("x^2 > 4", "(-∞, -2) ∪ (2, ∞)", PASS), ("x^2 > 4", "x > 2", FAIL), ("x^2 > 4", "-2 < x < 2", FAIL)),
        *(("x^2 > 4", "x > 2 and x < -2", FAIL), ("x^2 <= 2", "-sqrt(2) <= x <= sqrt(2)", PASS)),
        *(("x^2 <= 2", "[-sqrt(2), sqrt(2)]", PASS), ("x^2 <= 2", "-sqrt(2) < x < sqrt(2)", FAIL)),
        ("x^2 <= 2", "-1.4142135623730951 <= x <= 1.4142135623730951", FAIL),
        *(("x^2 >= 0", "all real numbers", PASS), ("x^2 > 0", "all real numbers", FAIL), ("x^2 > 0", "x != 0", PASS)),
        *(("x^2 > 0", "x < 0 or x > 0", PASS), ("x^2 < 0", "no solution", PASS), ("x^2 <= 0", "x = 0", PASS)),
        *(("x^2 <= 0", "no solution", FAIL), ("1/x > 0", "x > 0", PASS), ("1/x > 1", "0 < x < 1", PASS)),
        *(("1/x > 1", "x < 1", FAIL), ("(x - 1)/(x + 2) >= 0", "x < -2 or x >= 1", PASS)),
        *(("(x - 1)/(x + 2) >= 0", "x <= -2 or x >= 1", FAIL), ("|x - 3| < 5", "-2 < x < 8", PASS)),
        *(("|x - 3| < 5", "x < 8", FAIL), ("|x| >= 2", "(-∞, -2] ∪ [2, ∞)", PASS)),
        *(("1 < x^2 <= 4", "-2 <= x < -1 or 1 < x <= 2", PASS), ("1 < x^2 <= 4", "-2 <= x <= 2", FAIL)),
        *(("(x - 1)^2*(x - 3) <= 0", "x <= 3", PASS), ("(x - 1)^2*(x - 3) < 0", "x < 3 and x != 1", PASS)),
        *(("(x - 1)^2*(x - 3) < 0", "x < 3", FAIL), ("x^2 > 4", "x < -2, x > 2", "malformed")),
        *(("x^2 > 4", "y > 2", "malformed"), ("x < 5", "x < 5 or x < 3", PASS), ("exp(x) > 1", "x > 0", OPEN)),
        ("x > 5", "x > a", FAIL),
    ],
)
def test_inequalities(inequality: str, claim: str, outcome: str) -> None:
    """A range passes if it is the one in which the inequality holds, ends included."""
    verdict = judge(SolvesInequality(inequality, "x"), claim)
    assert (verdict.kind if outcome == "malformed" else verdict.outcome) == outcome, verdict.reason


A, B = "[[1, 2], [3, 4]]", "[[0, 1], [1, 0]]"


@all_rows(
    "matrix, claim, outcome",
    [
        *(("A*B", "[[2, 1], [4, 3]]", PASS), ("A*B", "[[3, 4], [1, 2]]", FAIL), ("B*A", "[[3, 4], [1, 2]]", PASS)),
        *(("A + 2*B", "[[1, 4], [5, 4]]", PASS), ("A - B", "[[1, 1], [2, 4]]", PASS)),
        *(("A^T", "[[1, 3], [2, 4]]", PASS), ("transpose(A)", "[[1, 2], [3, 4]]", FAIL)),
        *(("A^2", "[[7, 10], [15, 22]]", PASS), ("A^2", "[[1, 4], [9, 16]]", FAIL)),
        *(("inverse(A)", "[[-2, 1], [3/2, -1/2]]", PASS), ("A^-1", "[[-2, 1], [1.5, -0.5]]", PASS)),
        *(("inverse(A)", "[[1, 1/2], [1/3, 1/4]]", FAIL), ("det(A)", "-2", PASS), ("det(A)", "10", FAIL)),
        *(("trace(A)*A", "[[5, 10], [15, 20]]", PASS), ("A", "[[1, 2, 3], [3, 4, 5]]", FAIL)),
        *(("A", "[[1, 2], [3]]", "malformed"), ("A", "1, 2, 3, 4", "malformed")),
        ("A", r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", PASS),
    ],
)
def test_matrices(matrix: str, claim: str, outcome: str) -> None:
    """Matrices are compared entry by entry, and their products in order."""
    verdict = judge(SameMatrix(matrix, reads=("A", "B")), claim, A=A, B=B)
    assert (verdict.kind if outcome == "malformed" else verdict.outcome) == outcome, verdict.reason


def test_a_matrix_of_formulas() -> None:
    """Entries may be formulas, equal in any form."""
    check = SameMatrix("[[(x + 1)^2, 0], [1, sin(x)^2 + cos(x)^2]]")
    assert judge(check, "[[x^2 + 2x + 1, 0], [1, 1]]").outcome == "pass"
    assert judge(check, "[[x^2 + 1, 0], [1, 1]]").outcome == "fail"
