"""How long each kind of check takes for one claim.

    python benchmarks/check_times.py [--repeat 5]

The first call of a kind is shown apart: it loads what the check needs (pint, jsonschema, sympy in its own process).
Printed are medians over the repetitions, in microseconds.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from decimal import Decimal

from pydantic import BaseModel

from stepguard import Claim, Step
from stepguard.checks import Check, judge_claims
from stepguard.checks.constraints import Distinct, Holds, Range, Requires
from stepguard.checks.dates import DateHolds, DateIs, DaysBetween
from stepguard.checks.durations import DurationIs
from stepguard.checks.formulas.equality import Derivative, Equivalent, Integral, Substituted
from stepguard.checks.formulas.matrices import SameMatrix
from stepguard.checks.formulas.solving import Solves, SolvesInequality, SolvesSystem
from stepguard.checks.grounding import Grounded
from stepguard.checks.schema import Schema
from stepguard.checks.text import Forbidden, Length, OneOf, Pattern
from stepguard.checks.units import Measured, Quantity
from stepguard.language.values import Value

LETTER = "Dear Ms Ito,\nyour order A-1234 of 3 March 2026 comes to\nTotal: 1,234.50 EUR, due in 30 days.\n" * 20
"""A document of two thousand characters."""

Case = tuple[Step, Claim, Mapping[str, Value]]


class Line(BaseModel):
    """A document with one key."""

    a: int


def words(check: Check, claimed: str, *, type: str = "text", **values: Value) -> Case:
    """A claim of a step in words."""
    step = Step("t", instruction="Say it.", type=type, reads=list(values), checks=[check])
    return step, Claim("t", (), claimed, claimed), values


def sums(expression: str, work: str, value: str, *, type: str = "number", **values: Value) -> Case:
    """A claim of a step with an expression."""
    return Step("t", expression, type=type), Claim("t", (work,), value, f"{work} = {value}"), values


CASES: Mapping[str, Callable[[], Case]] = {
    "arithmetic: a sum": lambda: sums("x + y", "12 + 7", "19", x=12, y=7),
    "arithmetic: rewritten": lambda: sums("x - y", "-96 + 106", "10", x=-96, y=-106),
    "arithmetic: rounded": lambda: sums(
        "x * 8.25 / 100", "74.7 * 8.25 / 100", "6.16", type="decimal(2)", x=Decimal("74.7")
    ),
    "range": lambda: words(Range(0, 100), "28", type="integer"),
    "holds": lambda: words(Holds("t == a + b"), "30", type="integer", a=10, b=20),
    "requires": lambda: words(Requires("a > 0"), "30", type="integer", a=10),
    "distinct": lambda: words(Distinct("a"), "30", type="integer", a=10),
    "date_is": lambda: words(DateIs("start + 30 days"), "2 April 2026", start="2026-03-03"),
    "date_holds": lambda: words(DateHolds("t > start"), "2 April 2026", start="2026-03-03"),
    "days_between": lambda: words(DaysBetween("a", "b"), "30", type="integer", a="2026-03-03", b="2026-04-02"),
    "duration_is": lambda: words(DurationIs("a + 30 minutes"), "1 h 30 min", a="1 h"),
    "quantity": lambda: words(Quantity("5 km", convert=True), "5000 m"),
    "measured": lambda: words(Measured("km", least=1), "5 km"),
    "grounded: a number": lambda: words(Grounded("letter"), "1234.5", type="number", letter=LETTER),
    "grounded: a date": lambda: words(Grounded("letter", kind="date"), "2026-03-03", letter=LETTER),
    "grounded: a name": lambda: words(Grounded("letter"), "Ms Ito", letter=LETTER),
    "pattern": lambda: words(Pattern(r"[A-Z]-[0-9]{4}"), "A-1234"),
    "one_of": lambda: words(OneOf("north", "south"), "north"),
    "forbidden": lambda: words(Forbidden("guarantee"), "We hope so."),
    "length": lambda: words(Length(1, 100), "We hope so."),
    "schema": lambda: words(Schema({"type": "object", "required": ["a"]}), '{"a": 1}'),
    "schema: a model": lambda: words(Schema(Line), '{"a": 1}'),
    "equivalent: a polynomial": lambda: words(Equivalent("(x + 1)^2"), "x^2 + 2x + 1"),
    "equivalent: expanded": lambda: words(Equivalent("(x + 1)^2", form="expanded"), "x^2 + 2x + 1"),
    "equivalent: factored": lambda: words(Equivalent("x^2 - 5x + 6", form="factored"), "(x - 2)(x - 3)"),
    "equivalent: a number": lambda: words(Equivalent("1/2 + 1/3", form="number"), "5/6"),
    "equivalent: an equation": lambda: words(Equivalent("2x + 1 = y"), "y = 2x + 1"),
    "equivalent: refuted": lambda: words(Equivalent("sin(2x)"), "2 sin(x)"),
    "equivalent: by sympy": lambda: words(Equivalent("tan(x)"), "sin(2x)/(1 + cos(2x))"),
    "derivative": lambda: words(Derivative("x^3 sin(x)", "x"), "3x^2 sin(x) + x^3 cos(x)"),
    "integral: without limits": lambda: words(Integral("2x", "x"), "x^2 + C"),
    "integral: of a polynomial": lambda: words(Integral("x^2", "x", low="0", high="3"), "9"),
    "integral: by sympy": lambda: words(Integral("cos(x)", "x", low="0", high="1"), "sin(1)"),
    "substituted": lambda: words(Substituted("x^2 + y", {"x": "a + 1"}), "(a + 1)^2 + y"),
    "solves: a polynomial": lambda: words(Solves("x^2 - 5x + 6 = 0", "x"), "x = 2 or x = 3"),
    "solves: by sympy": lambda: words(Solves("sqrt(x + 6) = x", "x"), "x = 3"),
    "solves_system": lambda: words(SolvesSystem(["x + y = 3", "x - y = 1"], ["x", "y"]), "x = 2, y = 1"),
    "solves_inequality": lambda: words(SolvesInequality("x^2 - 4 > 0", "x"), "x < -2 or x > 2"),
    "same_matrix: a product": lambda: words(
        SameMatrix("A*B", reads=("A", "B")), "[[19, 22], [43, 50]]", A="[[1, 2], [3, 4]]", B="[[5, 6], [7, 8]]"
    ),
    "same_matrix: an inverse": lambda: words(
        SameMatrix("inverse(A)", reads=("A",)), "[[-2, 1], [3/2, -1/2]]", A="[[1, 2], [3, 4]]"
    ),
}


def microseconds(make: Callable[[], Case], repeat: int) -> tuple[float, float, str]:
    """The first call, the median of the others, and the outcome."""
    step, claim, values = make()

    def once() -> tuple[float, str]:
        started = time.perf_counter()
        (judgement,) = judge_claims([step], [claim], values)
        seconds = time.perf_counter() - started
        verdict = judgement.verdict
        return 1e6 * seconds, "not applicable" if verdict is None else verdict.outcome

    first, outcome = once()
    times = [once()[0] for _ in range(max(20, 200 * repeat) if first < 10_000 else 5 * repeat)]
    return first, statistics.median(times), outcome


def print_times(repeat: int) -> None:
    """Measure every kind and print one line for each."""
    print(f"{'check':<28} {'first':>12} {'then':>12}  outcome")
    for name, make in CASES.items():
        first, then, outcome = microseconds(make, repeat)
        print(f"{name:<28} {first:>9,.0f} us {then:>9,.1f} us  {outcome}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    print(f"{platform.system()} {platform.machine()}, Python {platform.python_version()}")
    print_times(args.repeat)


if __name__ == "__main__":
    main()
