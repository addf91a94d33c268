"""What is asked of a procedure with branches, loops and calls: which steps, in which words, over which values."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import pytest
from control_flow_harness import RIGHT, run_watched

from stepguard import Guard, Procedure
from stepguard.checks import Holds
from stepguard.language.expressions import Name, Number
from stepguard.language.terms.operands import Aggregate, ListTerm
from stepguard.procedure import ForEach, Step
from stepguard.procedure.notation.parsing import parse_term
from stepguard.testing import SimulatedModel


class Case(NamedTuple):
    """A procedure with its inputs; what is asked, a request a paragraph; the values that stand there."""

    text: str
    inputs: Mapping[str, object]
    asked: str
    values: Mapping[str, object]


CASES = {
    "fields, rows of tables and sides of choices": Case(
        """
record Item:
  amount: money(EUR)
  late: boolean
inputs: items: list of Item, country: text
table daily: country: text -> money(EUR)
  DE: 28
  FR: 35
for each item in items:
  paid: money(EUR) = min(item.amount, daily[country])
  twice: money(EUR) = paid * 2 if item.late else paid + 1
total: money(EUR) = sum of paid
most: money(EUR) = max of twice
number: integer = count of paid
top = total * 2 + items[1].amount - paid[1]
all_late: boolean = all of items.late
""",
        {"items": [{"amount": "30.00", "late": True}, {"amount": "5.00", "late": False}], "country": "DE"},
        """
paid_0 = min(item_0_amount, daily_country)
twice_0 = paid_0 * 2
paid_1 = min(item_1_amount, daily_country)
twice_1 = paid_1 + 1
total = paid_0 + paid_1
most = max(twice_0, twice_1)

top = total * 2 + items_1_amount - paid_1_
""",
        {
            "item_0_amount": 30,
            "daily_country": 28,
            "item_1_amount": 5,
            "items_1_amount": 5,
            "total": Decimal("33.00"),
            "paid_1_": 5,
        },
    ),
    "rounds of loops in loops, and of calls": Case(
        """
procedure fee:
  inputs: amount, rate = 2
  for each n in [1, 2]:
    part = amount * n * rate
  answer: sum of part
inputs: xs: list of number
for each x in xs:
  for each y in [x, 10]:
    a = x + y
  s = sum of a
  c = call fee(amount=s)
out = c[0] + 1
""",
        {"xs": [3, 4]},
        """
a_0_0 = x_0 + y_0_0
a_0_1 = x_0 + y_0_1
s_0 = a_0_0 + a_0_1
a_1_0 = x_1 + y_1_0
a_1_1 = x_1 + y_1_1
s_1 = a_1_0 + a_1_1

part_0_c_0 = amount_0_c * n_0_c_0 * rate_0_c
part_0_c_1 = amount_0_c * n_0_c_1 * rate_0_c
part_1_c_0 = amount_1_c * n_1_c_0 * rate_1_c
part_1_c_1 = amount_1_c * n_1_c_1 * rate_1_c

out = c_0 + 1
""",
        {
            "x_0": 3,
            "y_0_0": 3,
            "y_0_1": 10,
            "x_1": 4,
            "y_1_0": 4,
            "y_1_1": 10,
            "amount_0_c": 19,
            "amount_1_c": 22,
            "n_0_c_0": 1,
            "n_0_c_1": 2,
            "n_1_c_0": 1,
            "n_1_c_1": 2,
            "rate_0_c": 2,
            "rate_1_c": 2,
            "c_0": 114,
        },
    ),
    "rounds of a loop that carries over": Case(
        """
k = 0
repeat at most 5 times until k >= 2:
  k = k + 1
  if k > 1:
    z = k * 7
  else if k > 5:
    z = k * 8
  else:
    z = k * 9
repeat at most 5 times until k >= 3:
  k = k + 1
out = k + z
""",
        {},
        """
k_0 = k + 1

z_0 = k_0 * 9
k_1 = k_0 + 1

z_1 = k_1 * 7
k_b0 = k_1 + 1

out = k_b0 + z_1
""",
        {"k": 0, "k_0": 1, "k_1": 2, "k_b0": 3, "z_1": 14},
    ),
    "names that nothing else has": Case(
        """
record Line:
  what: text
  days: list of number
inputs: b: Line, bs: list of Line, paid_1, word: text, w: list of text, f: boolean
table rate: what: text -> number
  a b: 2
  c: 3
for each n in [4, 9]:
  paid = n * rate[b.what] + b.days[1]
  same = rate[b.what]
  other = paid + b.days[count of b.days - 1]
  logical: boolean = (word in w) or not f
  long = n + bs[0].days[0] + (sum of bs[0].days) + (count of day for day in bs[0].days where day > 1 and day < n)
m = min of paid
q = (sum of other) / (count of other) + paid_1 - 5
some: boolean = any of logical
every: boolean = all of logical
code = rate["c"] + rate["a b"]
""",
        {
            "b": {"what": "a b", "days": [7, 8]},
            "bs": [{"what": "c", "days": [7, 8]}],
            "paid_1": 9,
            "word": "x",
            "w": ["x", "y"],
            "f": True,
        },
        """
paid__0 = n__0 * rate_b_what + b_days_1
other__0 = paid__0 + b_days_count_of_b_days_1__0
logical__0 = word_in_w or not f
long__0 = n__0 + bs_0_days_0 + sum_of_bs_0_days__0 + count_of_day_for_day_in_bs_0_days_where_
paid__1 = n__1 * rate_b_what + b_days_1
other__1 = paid__1 + b_days_count_of_b_days_1__1
logical__1 = word_in_w or not f
long__1 = n__1 + bs_0_days_0 + sum_of_bs_0_days__1 + count_of_day_for_day_in_bs_0_days_where__
m = min(paid__0, paid__1)

q = (other__0 + other__1) / count_of_other + paid_1 - 5
some = logical__0 or logical__1
every = logical__0 and logical__1
code = rate_c + rate_a_b
""",
        {
            "n__0": 4,
            "n__1": 9,
            "rate_b_what": 2,
            "b_days_1": 8,
            "b_days_count_of_b_days_1__0": 8,
            "word_in_w": True,
            "f": True,
            "b_days_count_of_b_days_1__1": 8,
            "bs_0_days_0": 7,
            "sum_of_bs_0_days__0": 15,
            "sum_of_bs_0_days__1": 15,
            "count_of_day_for_day_in_bs_0_days_where_": 0,
            "count_of_day_for_day_in_bs_0_days_where__": 2,
        },
    ),
    "what is there already is not asked": Case(
        """
record Item:
  amount: number
  days: duration
inputs: xs: list of number, f: boolean, p: percent, i: Item, d: date, word: text
for each x in xs:
  y = x * 2
e = sum of y
most = max of y
side = e if f else 1 / 0
same: percent = p
field = i.amount
number = i.days / 1 day
word2: text = word
said: text = "yes" if f else "no"
five = 5
due: date = d
rounded: decimal(0) = i.amount
""",
        {"xs": [3], "f": True, "p": "5%", "i": {"amount": "2.5", "days": "36 hours"}, "d": "2026-01-31", "word": "a"},
        """
y_0 = x_0 * 2
rounded = i_amount
""",
        {"x_0": 3, "i_amount": Fraction(5, 2)},
    ),
    "names that are given behind those of steps": Case(
        """
record Rate:
  n_2: number
inputs: r: Rate, xs: list of number, f: boolean, ds: list of duration
a = r.n_2 * 2
m: boolean = (5 in xs) or not f
for each _n in [1, 2, 3]:
  r_n = _n + a
for each x in ds:
  y = x / 1 day
e = a + (sum of y) * 2
none: duration = sum of ds
""",
        {"r": {"n_2": 7}, "xs": [5, 6], "f": True, "ds": []},
        """
a = r_n_2_ * 2
m = v5_in_xs or not f
r_n_0 = _n_0 + a
r_n_1 = _n_1 + a
r_n_2 = _n_2 + a
e = a + 0 * 2
""",
        {"r_n_2_": 7, "v5_in_xs": True, "_n_2": 3},
    ),
    "arithmetic as it is written": Case(
        """
inputs: e, f: boolean, p: percent, over: duration
neg = -e ^ 2 + round(e / 3, 1) + sqrt(4) - e // 4 % 3
logic: boolean = not (f and e > 3) or e == 6
rest: percent = 1 - p
share: percent = e / (e + 1)
days = over / 1 days * 2 + e
hours = e * 2 / (over / 1 hour)
""",
        {"e": 6, "f": True, "p": "5%", "over": "3 days"},
        """
neg = -e^2 + round(e / 3, 1, half_up) + sqrt(4) - e // 4 % 3
logic = not (f and e > 3) or e == 6
rest = 1 - p
share = e / (e + 1)
days = over_in_days * 2 + e
hours = e * 2 / over_in_hour
""",
        {"e": 6, "f": True, "p": Fraction(1, 20), "over_in_days": 3, "over_in_hour": 72},
    ),
    "dates, texts and what is said in words": Case(
        """
inputs: start: date, word: text, xs: list of number
for each n in [1, 2]:
  late: boolean = start > 2026-01-31 and n > 1
  long = n * 2
  note: text = "Say {word}, {long} and {n}, {word}." (reads word, long, n)
  other: boolean = late or word == "no"
pair: list of number = [long[0], 3]
same: list of number = xs
""",
        {"start": "2026-01-01", "word": "so", "xs": [5]},
        """
late_0: Work out start > 2026-01-31 and n_0 > 1.
other_0: Work out late_0 or word == "no".
late_1: Work out start > 2026-01-31 and n_1 > 1.
other_1: Work out late_1 or word == "no".

long_0 = n_0 * 2
long_1 = n_1 * 2

note_0: Say {word}, long_0 and n_0, {word}.
note_1: Say {word}, long_1 and n_1, {word}.
""",
        {"word": "so", "long_0": 2, "long_1": 4, "n_1": 2},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_step_is_asked_over_plain_variables_with_their_values(name: str) -> None:
    """The guard looks up what can be looked up; each value has a name that nothing else has."""
    case = CASES[name]
    result, requests, values = run_watched(case.text, case.inputs)
    assert result.problem is None
    assert requests == [each.strip().split("\n") for each in case.asked.strip().split("\n\n")]
    assert {key: values[key] for key in case.values} == case.values


def test_a_name_is_given_again_when_what_had_it_is_over() -> None:
    """Rounds whose values would be called alike take turns: no name grows with their number."""
    long = "the_numbers_that_are_added_up_in_each_of_the_rounds"
    text = f"inputs: {long}: list of number\nk = 0\nrepeat at most 30 times until k >= 24:\n  k = k + {long}[k]\n"
    result, requests, values = run_watched(text, {long: [1, 2, 3] * 9})
    assert (result.status, result.answer) == ("verified", 24)
    assert len(requests) == 16
    assert {name for name in values if name.startswith("the")} == {long[:40], f"{long[:40]}_"}
    body = f"for each n in at:\n  k = n + {long}[n]\nanswer: count of k\n"
    text = f"inputs: {long}: list of number, at: list of integer\n{body}"
    _, _, values = run_watched(text, {long: [5] * 150, "at": [*range(150)]}, segment=8)
    assert len([name for name in values if name.startswith("the")]) < 150


def test_rounds_that_are_over_make_room_for_later_ones() -> None:
    """A request holds steps of as many rounds as can be walked, whatever others had nothing to do."""
    text = """
inputs: xs: list of integer
for each x in xs:
  if x > 0:
    a = x * 2
    if a > 3:
      b = a * 3
answer: count of xs
"""
    _, requests, _ = run_watched(text, {"xs": [0, 1] * 20})
    assert [len(each) for each in requests] == [20]
    _, requests, _ = run_watched(text, {"xs": [*range(1, 41)]})
    assert [len(each) for each in requests] == [32, 39, 8]


def test_amounts_are_given_as_numbers_of_units_where_they_are_one() -> None:
    """A density is none: it is worked out in words."""
    pytest.importorskip("pint")
    text = """
inputs: w: quantity(kg), h: quantity(h)
a = w / 1 kg * 2
b: quantity(kg/l) = w / 1 l
c = w / 500 g + 1
d = 6 % 4 / 1 + h / 1 h
"""
    _, requests, values = run_watched(text, {"w": "5 kg", "h": "2 h"})
    assert requests == [
        ["a = w_in_kg * 2", "d = 6 % 4 / 1 + h_in_h"],
        ["b: Work out w / 1 l.", "c: Work out w / 500 g + 1."],
    ]
    assert {values[name] for name in ("w_in_kg", "h_in_h")} == {5, 2}


def test_a_check_reads_the_values_of_its_round() -> None:
    """What it reads is verified before its step is asked, and is that of the round."""
    chosen = parse_term("n * 3 if a > 0 else 1 / 0")
    body = [Step("a", "n * 2"), Step("b", chosen, checks=[Holds("b > a")])]
    listed = ListTerm((Number(1), Number(2)))
    procedure = Procedure([ForEach("n", listed, body), Step("c", Aggregate("sum", Name("b")))])
    result = Guard(SimulatedModel(slips=RIGHT)).run(procedure)
    assert (result.status, result.answer) == ("verified", 9)


def test_an_argument_is_what_was_given_as_the_type_of_its_input() -> None:
    """Truth values, texts, options, dates and lists as they are, numbers exactly."""
    text = """
procedure f:
  inputs: b: boolean, t: text, o: one_of(x, y), p: percent, m: money(EUR), i: integer, d: date, ns: list of decimal(1)
  unused = by code i
  answer: {b, t, o, p, m, i, d, ns}
inputs: f: boolean, z: text, p: percent, n, day: date, ns: list of number
c = call f(b=f, t=z, o=z, p=p, m=n, i=n * 2, d=day, ns=ns)
answer: c
"""
    given = {"f": True, "z": "x", "p": "5%", "n": "2.5", "day": "2026-01-31", "ns": [1, 2.5]}
    result, _, _ = run_watched(text, given)
    assert result.problem is None
    assert result.answer is not None
    assert Procedure.parse(text).answer_type.write(result.answer) == (
        '{"b": true, "t": "x", "o": "x", "p": "5%", "m": "2.50", "i": "5", "d": "2026-01-31", "ns": ["1.0", "2.5"]}'
    )
    for name, wrong in (("n", "2.505"), ("n", "2.7"), ("z", "q"), ("ns", [1.25])):
        result, _, _ = run_watched(text, {**given, name: wrong})
        assert (result.status, str(result.problem).partition(":")[0]) == ("failed", "step c")
