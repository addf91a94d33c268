"""Programs of the language at their edges: what they come to, as a careful reader would work it out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest
from tables import all_rows

from stepguard import Guard, Procedure
from stepguard.errors import ProcedureError
from stepguard.testing import SimulatedModel

NESTED = (
    "record Order:\n  items: list of Item\nrecord Item:\n  n: integer\ninputs: o: Order\nt: integer = sum of o.items.n"
)
RATES = (
    "inputs: r: percent\ntable fee: r: percent -> percent\n  up to 5%: 1%\n  over 5% to 10%: 3%\nf: percent = fee[r]"
)
CLOCK = "inputs: t: time\ntable n: t: time -> number\n  00:00 to under 08:00: 1\n  from 08:00: 2\nx = n[t]"

PROGRAMS: dict[str, tuple[str, Mapping[str, object], str]] = {
    # `and` and `or` look no further than they need, in a step as in a condition.
    "and": ("inputs: n, t\nx: boolean = n > 0 and t / n > 5", {"n": 0, "t": 3}, "false"),
    "or": ("inputs: n, t\nx: boolean = n == 0 or t / n > 5", {"n": 0, "t": 3}, "true"),
    "all": ("inputs: fs: list of boolean\nx: boolean = all of fs", {"fs": [True, False]}, "false"),
    "any": ("inputs: fs: list of boolean\nx: boolean = any of fs", {"fs": [True, False]}, "true"),
    "largest": ("inputs: xs: list of number\nx = max of xs", {"xs": [1, 3, 2]}, "3"),
    "first": ("inputs: xs: list of number\nx = first of xs", {"xs": [1, 3, 2]}, "1"),
    # Nothing at all.
    "no spans": ("inputs: xs: list of duration\nx: duration = by code sum of xs", {"xs": []}, "0 days"),
    "nothing to do": ("inputs: xs: list of integer\nfor each n in xs:\n  y = n * 2\nanswer: y", {"xs": []}, "[]"),
    # What stands in the text.
    "thousands": ("inputs: m: money(EUR)\nx: money(EUR) = m + 1,234.50 EUR", {"m": 1}, "1235.50"),
    "rate": ("inputs: p = 50, r: percent = 19%\nx = p * r", {}, "9.5"),
    "rates": ("inputs: rs: list of percent = [5%, -10%]\nx: percent = sum of rs", {}, "-5%"),
    "share": ("inputs: f: boolean\nx: percent = 5% if f else 0.7", {"f": False}, "70%"),
    "option": ('inputs: n\nif n > 1:\n  level: one_of(low, high) = "high"\nelse:\n  level: one_of(low, high) = "low"',
               {"n": 3}, "high"),
    "limit": ("inputs: limit = 1,500 EUR, n = 2\nx: money(EUR) = limit * n", {}, "3000.00"),
    "records in any order": (NESTED, {"o": {"items": [{"n": 1}, {"n": 2}]}}, "3"),
    "ranges of rates": (RATES, {"r": "5%"}, "1%"),
    "the range above": (RATES, {"r": "5.1%"}, "3%"),
    "hours": (CLOCK, {"t": "08:00"}, "2"),
    "a key and a range around it": (
        'inputs: w: text\ntable f: n: number, k: text -> number\n  5, x: 1\n  0 to 10, y: 2\nt = by code f[5, w]',
        {"w": "y"}, "2"),
    "ranges that overlap under other keys": (
        'inputs: w: text\ntable f: n: number, k: text, j: text -> number\n  0 to 5, a, x: 1\n  3 to 8, a, y: 2\n'
        't = by code f[4, "a", w]', {"w": "y"}, "2"),
    # What is set in a later round alone.
    "rounds": ("inputs: n\nrepeat at most 3 times until n >= 3:\n  n = by code n + 1\n  if n > 1:\n"
               "    b = by code n * 2\nanswer: n", {"n": 0}, "3"),
}  # fmt: skip

AMOUNTS: dict[str, tuple[str, Mapping[str, object], str]] = {
    # Nothing at all, in the unit of what is added up.
    "no amounts": ("inputs: xs: list of quantity(kg)\nx: quantity(g) = sum of xs", {"xs": []}, "0 g"),
    "no rounds": ("inputs: xs: list of quantity(kg)\nfor each w in xs:\n  d: quantity(kg) = w * 2\n"
                  "x: quantity(kg) = sum of d", {"xs": []}, "0 kg"),
    # Amounts are rounded as declared, whoever works them out.
    "places": ("inputs: w: quantity(kg)\nx: quantity(kg, 2) = w / 3", {"w": "1 kg"}, "0.33 kg"),
    "places by code": ("inputs: w: quantity(kg)\nx: quantity(kg, 2) = by code w / 3", {"w": "1 kg"}, "0.33 kg"),
    # An argument is in the unit of its input, and exact.
    "arguments": ("procedure f:\n  inputs: w: quantity(g), v: quantity(kg, 1)\n  u = by code w / 1 g + v / 1 kg\n"
                  "inputs: w: quantity(kg)\nc = call f(w=w, v=w)\nanswer: c", {"w": "2.5 kg"}, "2502.5"),
    # What stands in the text.
    "degrees": ("inputs: t: quantity(degC)\nx: boolean = t > 38 °C", {"t": "38.5 °C"}, "true"),
    "grams": ("inputs: w: quantity(kg)\nx: boolean = w > 1,500 g", {"w": "2 kg"}, "true"),
}  # fmt: skip


def _comes_to(text: str, inputs: Mapping[str, object], answer: str) -> None:
    """Proved, from the text as it was written and as it is printed."""
    for written in (text, str(Procedure.parse(text))):
        procedure = Procedure.parse(written)
        result = Guard(SimulatedModel()).run(procedure, dict(inputs))
        assert result.status == "verified", result.problem
        assert result.answer is not None
        assert procedure.answer_type.write(result.answer) == answer


@all_rows("program", list(PROGRAMS))
def test_a_program_comes_to_what_a_reader_works_out(program: str) -> None:
    """The answer is the one that was worked out by hand."""
    _comes_to(*PROGRAMS[program])


@all_rows("program", list(AMOUNTS))
def test_a_program_of_amounts_comes_to_what_a_reader_works_out(program: str) -> None:
    """The same where values have units."""
    pytest.importorskip("pint")
    _comes_to(*AMOUNTS[program])


@all_rows("text, inputs", [
    ("inputs: x, n\na = x / n", {"x": 3, "n": 0}),
    ("inputs: d: date\na: date = d + 36 hours", {"d": "2026-01-31"}),
    ("inputs: d: date\na: date = d + 1 day", {"d": "9999-12-31"}),
    ("inputs: t: time\na: time = t + 10 hours", {"t": "22:45"}),
])  # fmt: skip
def test_a_step_without_a_value_costs_no_call(text: str, inputs: Mapping[str, object]) -> None:
    """No reply could be right, so nobody is asked; the reason says what is wrong with the values."""
    _costs_no_call(text, inputs)


def test_a_division_by_no_amount_costs_no_call() -> None:
    """The same for a quotient of amounts."""
    pytest.importorskip("pint")
    _costs_no_call("inputs: w: quantity(kg), v: quantity(kg)\na = w / v", {"w": "1 kg", "v": "0 g"})


def _costs_no_call(text: str, inputs: Mapping[str, object]) -> None:
    result = Guard(SimulatedModel()).run(Procedure.parse(text), dict(inputs))
    assert (result.status, result.usage.calls) == ("abstained", 0)
    assert result.problem is not None
    assert "value" in result.problem.reason


@all_rows("text, says", [
    ("rate: percent = 19", "write 19%"),
    ("inputs: f: boolean\nrate: percent = 0.5 if f else 7", "7 is 700%: write 7%"),
    ('level: one_of(low, high) = "hgih"', "did you mean 'high'?"),
    ('level: one_of(low, high) = "High"', 'write "high"'),
    ('ok: boolean = "true"', "write true"),
    ('n: integer = "5"', "write 5"),
    ("inputs: r: percent = 0.19\nx = r * 2", "without its sign"),
    ("inputs: m: money(EUR)\nx: boolean = m > 1.000 EUR", "group thousands"),
    ("inputs: m: money(EUR)\nx: boolean = m > 2.500 EUR", "group thousands"),
    ("table f: a -> number\n  x: 1\nr = f", "is a table: say which row"),
    ("table f: n: number -> number\n  <5: 1\nr = f[3]", "a range is `0 to 5`"),
    ("table f: m: money(EUR) -> number\n  up to 1,000 EUR: 1\nr = f[3]", "leave the comma"),
    ("record A:\n  b: list of A\ninputs: i: A\nx: text = \"Say it.\" (reads i)", "holds itself"),
])  # fmt: skip
def test_what_could_be_read_in_two_ways_is_refused(text: str, says: str) -> None:
    """When the procedure is made, with the remedy."""
    with pytest.raises(ProcedureError, match=says.replace("(", r"\(")):
        Procedure.parse(text)


def test_a_percentage_keeps_its_sign_where_it_is_printed() -> None:
    """Printed and read again, a step and a default are the same."""
    procedure = Procedure.parse("inputs: r: percent = 7.5%, f: boolean\nx: percent = 19% if f else 7%\ny = x * r")
    assert "r: percent = 7.5%" in str(procedure)
    assert "(19% if f else 7%)" in str(procedure)
    assert procedure.inputs[0].default == Fraction(3, 40)
    assert str(Procedure.parse(str(procedure))) == str(procedure)
