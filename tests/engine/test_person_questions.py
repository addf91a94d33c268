"""What a person is asked: steps of the procedure, and calls of tools that need an approval."""

from __future__ import annotations

from collections.abc import Mapping

from control_flow_harness import RIGHT, places, run_watched

from stepguard import Guard, Procedure
from stepguard.procedure import Step, Tool
from stepguard.testing import SimulatedModel

ASKED = """
record Item:
  what: text
  price: money(EUR)
inputs: items: list of Item, total: money(USD), word: text
for each item in items:
  twice = item.price * 2
  label: text = by code item.what
  number = by code item.price
  fine: boolean = ask person "Is {label} for {number}, that is {twice}, of {total} or {word} fine?"
"""


def test_a_person_is_asked_with_the_values_of_the_round() -> None:
    """Amounts with their currency where they have one, and text that could be taken for more in quotes."""
    questions: list[str | None] = []

    def ask(step: Step, values: Mapping[str, object]) -> bool:
        questions.append(step.instruction)
        return True

    items = [{"what": "a pen", "price": "2.50"}, {"what": 'é?\n"', "price": "3"}]
    result, _, _ = run_watched(ASKED, {"items": items, "total": "9.00", "word": "yes"}, person=ask)
    assert result.status == "verified"
    assert questions == [
        "Is a pen for 2.50 EUR, that is 5.00 EUR, of 9.00 USD or yes fine?",
        r'Is "é?\n\"" for 3.00 EUR, that is 6.00 EUR, of 9.00 USD or yes fine?',
    ]


def test_an_argument_of_a_tool_is_shown_as_what_it_is() -> None:
    """Before the call is approved: amounts with their currency, however they are come by, and texts in quotes."""
    text = """
record Line:
  what: text
  price: money(EUR)
record Bare:
  price: number
inputs: items: list of money(EUR), who: text, lines: list of Line, rates: list of percent, dollars: list of money(USD)
procedure doubled:
  inputs: amount, bare: Bare
  sent: text = tool pay(amount=amount * 2, all=[amount], bare=bare)
for each item in items:
  kept = item * 2
  r: text = tool pay(amount=item, total=kept, third=item / 3, who=who, first=items[0], note="é", all=items)
for each line in lines:
  s: text = tool pay(amount=line.price if line.price > 0 EUR else 0 EUR, line=line, rate=rates[0], most=max of items)
if count of items > 1:
  for each x in items:
    t: text = tool pay(amount=x)
else:
  for each x in dollars:
    t: text = tool pay(amount=x)
last = call doubled(amount=dollars[0], bare={price: dollars[0] * 3})
answer: count of r
"""
    questions: list[tuple[str | None, str]] = []

    def ask(step: Step, values: Mapping[str, object]) -> bool:
        questions.append((step.instruction, step.id))
        return True

    def pay(**given: object) -> str:
        return "paid"

    procedure = Procedure.parse(text, tools={"pay": Tool(pay, approval=True)})
    given = {"items": ["1.00"], "who": "Ann", "lines": [{"what": "pen", "price": "2"}], "rates": ["5%"]}
    result = Guard(SimulatedModel(slips=RIGHT), person=ask).run(procedure, {**given, "dollars": ["3"]})
    assert result.status == "verified"
    first = 'amount=1.00 EUR, total=2.00 EUR, third=1/3 EUR, who="Ann", first=1.00 EUR, note="é", all=[1.00 EUR]'
    line = 'amount=2.00 EUR, line={"what": "pen", "price": 2.00 EUR}, rate=5%, most=1.00 EUR'
    assert questions == [
        (f"Approve the call pay({given})?", name)
        for given, name in (
            (first, "approve_r_0"),
            (line, "approve_s_b0"),
            ("amount=3.00 USD", "approve_t_c0"),
            ('amount=6.00 USD, all=[3.00 USD], bare={"price": 9.00 USD}', "approve_sent_last"),
        )
    ]
    assert [place for place in places(result) if place[0].startswith("items")] == [
        ("items[0].kept", "kept_0", "0.0"),
        ("items[0].approve_r", "approve_r_0", "0.1.approval"),
        ("items[0].r", "r_0", "0.1"),
    ]
