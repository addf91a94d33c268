"""What of a reply is kept where one step of it is not accepted, and what is not asked at all."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest
from tables import all_rows

from stepguard import Guard, Procedure, Step
from stepguard.backends import Completion, Request
from stepguard.checks import Grounded
from stepguard.core.completions import STOPPED_EARLY
from stepguard.core.verdicts import Claim
from stepguard.procedure import If, Input
from stepguard.testing import ScriptedBackend, SimulatedModel, Slips

ROUNDS = Procedure.parse("""
record Item:
  x: integer
  y: integer

inputs:
  items: list of Item

for each item in items:
  a: integer = item.x - item.y
  b: integer = a * 2
total: integer = sum of b
""")
ITEMS = [{"x": 9, "y": 4}, {"x": 8, "y": 1}]
TOTAL = {"total": "10 + 14 = 24"}
LAST = json.dumps({"b_0": "5 * 2 = 10", **TOTAL})


def asked(model: ScriptedBackend) -> list[list[str]]:
    return [[step.id for step in request.steps] for request in model.requests]


def test_right_claims_behind_a_wrong_one_are_kept() -> None:
    """Those that do not read it are right whatever it is; what rests on it is asked again with it or behind it."""
    first = {"a_0": "9 - 4 = 6", "b_0": "6 * 2 = 12", "a_1": "8 - 1 = 7", "b_1": "7 * 2 = 14", **TOTAL}
    model = ScriptedBackend(json.dumps(first), '{"a_0": "9 - 4 = 5"}', LAST)
    result = Guard(model).run(ROUNDS, {"items": ITEMS})
    assert (result.status, result.answer) == ("verified", 24)
    assert asked(model) == [["a_0", "b_0", "a_1", "b_1", "total"], ["a_0"], ["b_0", "total"]]
    assert [attempt.outcome for attempt in result.attempts] == ["partly", "accepted", "accepted"]
    assert (result.attempts[0].committed, str(result.attempts[0].refused[0])) == (2, "items[0].a")
    assert {str(record.occurrence): record.tries for record in result.steps}["items[1].b"] == 1


def test_a_claim_that_rests_on_a_refused_one_is_not_judged() -> None:
    """Not even where it happens to be right: what it was worked out from was not."""
    first = {"a_0": "9 - 4 = 6", "b_0": "5 * 2 = 10", "a_1": "8 - 1 = 7", "b_1": "7 * 2 = 14", **TOTAL}
    model = ScriptedBackend(json.dumps(first), '{"a_0": "9 - 4 = 5"}', LAST)
    result = Guard(model).run(ROUNDS, {"items": ITEMS})
    assert result.status == "verified"
    assert asked(model)[2] == ["b_0", "total"]


def test_two_wrong_claims_of_one_reply_are_both_asked_again() -> None:
    """The first climbs its ladder, the other one is asked as if for the first time."""
    first = {"a_0": "9 - 4 = 6", "b_0": "6 * 2 = 12", "a_1": "8 - 1 = 6", "b_1": "6 * 2 = 12", **TOTAL}
    model = ScriptedBackend(
        json.dumps(first),
        '{"a_0": "9 - 4 = 5"}',
        '{"b_0": "5 * 2 = 10", "a_1": "8 - 1 = 7", "b_1": "7 * 2 = 14"}',
        TOTAL,
    )
    result = Guard(model).run(ROUNDS, {"items": ITEMS})
    assert (result.status, result.answer) == ("verified", 24)
    assert asked(model)[2] == ["b_0", "a_1", "b_1", "total"]


def test_every_refused_claim_is_told_and_counted() -> None:
    """Of an attempt all of them, of a step how often it was refused, wherever it stood in a reply."""
    first = {"a_0": "9 - 4 = 6", "b_0": "6 * 2 = 12", "a_1": "8 - 1 = 6", "b_1": "6 * 2 = 12", **TOTAL}
    second = {"b_0": "5 * 2 = 10", "a_1": "8 - 1 = 7", "b_1": "7 * 2 = 14", **TOTAL}
    result = Guard(ScriptedBackend(json.dumps(first), '{"a_0": "9 - 4 = 5"}', second)).run(ROUNDS, {"items": ITEMS})
    assert [each.step for each in result.attempts[0].deviations] == ["a_0", "a_1"]
    assert [str(where) for where in result.attempts[0].refused] == ["items[0].a", "items[1].a"]
    records = {str(record.occurrence): (record.tries, len(record.deviations)) for record in result.steps}
    assert (records["items[0].a"], records["items[1].a"], records["items[1].b"]) == ((2, 1), (2, 1), (1, 0))
    assert result.profile.asked.made - result.profile.asked.well == 2


def test_what_was_kept_counts_for_its_own_kind() -> None:
    """What is learned of a model is learned of the steps that it got right, not of those beside them."""
    text = "inputs:\n  x: integer\n\nif x > 0:\n  p: integer = x - 9\n  q: integer = x * 2\n"
    text += "else:\n  p: integer = 0\n  q: integer = 0\n"
    model = ScriptedBackend('{"p": "5 - 9 = 4", "q": "5 * 2 = 10"}', '{"p": "5 - 9 = -4"}')
    profile = Guard(model).run(Procedure.parse(text), {"x": 5}).profile
    counted = {kind.partition(" ")[0]: (tries.made, tries.well) for kind, tries in profile.kinds.items()}
    assert counted == {"-": (1, 0), "*": (1, 1)}


def test_a_step_is_not_refused_behind_others_for_ever() -> None:
    """The third time its own ladder begins, so that nobody guesses at it as often as at all steps before it."""
    text = "inputs:\n  xs: list of integer\n\nfor each x in xs:\n  a: integer = x + 1\n"

    def reply(wrong: int, *rounds: int) -> str:
        return json.dumps({f"a_{each}": f"{each} + 1 = {each + 1 + wrong}" for each in rounds})

    model = ScriptedBackend(
        reply(1, 0, 1, 2, 3, 4),
        reply(0, 0),
        reply(2, 1, 2, 3, 4),
        reply(0, 1),
        reply(3, 2, 3, 4),
        *(reply(0, each) for each in (2, 3, 4)),
    )
    result = Guard(model, segment=5).run(Procedure.parse(text), {"xs": [0, 1, 2, 3, 4]})
    assert result.status == "verified"
    assert asked(model)[4:] == [["a_2", "a_3", "a_4"], ["a_2"], ["a_3"], ["a_4"]]
    assert [record.tries for record in result.steps] == [2, 3, 4, 4, 4]


class Stoppable(ScriptedBackend):
    """A scripted model that is heard while it writes."""

    can_stop = True

    def complete(self, request: Request) -> Completion:
        """The reply as far as it is of use."""
        text = super().complete(request).text or ""
        for end in range(len(text)):
            if request.stop is not None and request.stop(text[:end]):
                return Completion(text[:end], finish_reason=STOPPED_EARLY)
        return Completion(text)


def test_a_reply_is_stopped_where_nothing_behind_is_kept() -> None:
    """Right claims behind a wrong one are heard to the end; what rests on it is not."""
    first = {"a_0": "9 - 4 = 6", "b_0": "6 * 2 = 12", "a_1": "8 - 1 = 7", "b_1": "7 * 2 = 15", **TOTAL}
    model = Stoppable(
        json.dumps(first), '{"a_0": "9 - 4 = 5"}', '{"b_0": "5 * 2 = 10", "b_1": "7 * 2 = 14", "total": "10 + 14 = 24"}'
    )
    result = Guard(model, stop_early=True).run(ROUNDS, {"items": ITEMS})
    assert (result.status, result.answer) == ("verified", 24)
    assert [(attempt.committed, "total" in (attempt.text or "")) for attempt in result.attempts] == [
        (1, False),
        (1, False),
        (3, True),
    ]


class Careless:
    """A model that gets each claim of a reply wrong with a chance of its own."""

    def __init__(self, seed: int) -> None:
        self._chance, self._right = random.Random(seed), SimulatedModel(slips=Slips.none())

    def complete(self, request: Request) -> Completion:
        """The right reply, with wrong numbers in it."""
        right = self._right.complete(request)
        if not request.steps or request.reply_format is None:  # it works in free text first
            return right
        entries: dict[str, Any] = json.loads(right.text or "{}")
        for name, entry in entries.items():
            if isinstance(entry, str) and self._chance.random() < 0.4:
                entries[name] = f"{entry.rpartition(' = ')[0]} = {self._chance.randint(0, 99)}"
        return Completion(json.dumps(entries))


@all_rows("seed", range(25))
def test_whatever_is_kept_is_right(seed: int) -> None:
    """Every committed value is the true one, however many claims of a reply were wrong."""
    chance = random.Random(seed)
    items = [{"x": chance.randint(0, 90), "y": chance.randint(0, 90)} for _ in range(6)]
    result = Guard(Careless(seed), seed=seed).run(ROUNDS, {"items": items})
    differences = [each["x"] - each["y"] for each in items]
    for record in result.steps:
        name, index = record.occurrence.step.partition("_")[0], record.occurrence.step.partition("_")[2]
        right = sum(differences) * 2 if name == "total" else differences[int(index)] * (2 if name == "b" else 1)
        assert record.value == right
    assert result.status in ("verified", "abstained")


COPIES = """
inputs:
  member: boolean
  kind: one_of(book, toy)
  bought: date
  share: percent

table rates: kind -> percent
  book: 100%
  toy: 80%

rate: percent = rates[kind]
taken: percent = rate if member else share
due: date = bought
name: text = "a toy" if kind == "toy" else "a book"
long: boolean = true
"""


def test_what_is_there_already_is_asked_of_nobody() -> None:
    """A row, an input, a constant, the side of a choice: looked up, in every type, as conditions and fields are."""
    inputs = {"member": True, "kind": "toy", "bought": "2026-03-01", "share": "50%"}
    model = ScriptedBackend()
    result = Guard(model).run(Procedure.parse(COPIES), inputs)
    assert result.status == "verified", result.problem
    assert [str(record.value) for record in result.steps] == ["4/5", "4/5", "2026-03-01", "a toy", "True"]
    assert {record.assistance for record in result.steps} == {"code"}
    assert result.usage.calls == 0


def test_a_copy_of_what_is_asked_splits_no_segment() -> None:
    """It is looked up when that is there, and what does not read it is asked beside it."""
    text = "inputs:\n  xs: list of integer\n\nfor each x in xs:\n  a: integer = x * 2\n"
    text += "  b: integer = a\n  c: integer = b + 1\n"
    model = ScriptedBackend('{"a_0": "3 * 2 = 6", "a_1": "4 * 2 = 8"}', '{"c_0": "6 + 1 = 7", "c_1": "8 + 1 = 9"}')
    result = Guard(model).run(Procedure.parse(text), {"xs": [3, 4]})
    assert (result.status, result.answer) == ("verified", (7, 9))


def test_a_copy_that_changes_the_value_is_asked() -> None:
    """Rounding is work, and so is what a check is for."""
    text = "inputs:\n  x: decimal(3)\n  on: boolean\n\nif on:\n  y: decimal(1) = x\nelse:\n  y: decimal(1) = 0.0\n"
    model = ScriptedBackend('{"y": "1.25 = 1.3"}')
    result = Guard(model).run(Procedure.parse(text), {"x": "1.250", "on": True})
    assert (result.status, str(result.steps[0].value)) == ("verified", "1.3")
    assert asked(model) == [["y"]]


def test_a_straight_copy_is_asked_as_before() -> None:
    """A procedure without decisions is carried out step by step, as it is written."""
    model = ScriptedBackend('{"t1": "1 + 2 = 3", "t2": "t1 = 3"}')
    result = Guard(model).run(Procedure([Step("t1", "1 + 2"), Step("t2", "t1")], name="straight"), {})
    assert result.status == "verified"
    assert asked(model) == [["t1", "t2"]]


def is_large(step: Step, values: Mapping[str, Any], claim: Claim) -> bool:
    return bool(values[step.id] == (values["x"] > 5))


NAME = Step("name", instruction="Copy the name.", type="text", reads=["letter"], checks=[Grounded("letter")])
LARGE = Step("large", instruction="Is x above 5?", type="boolean", reads=["x"], checks=[is_large])
DESK = Procedure(
    [If([("x > 0", [NAME, LARGE])])], inputs=[Input("letter", "text"), Input("x", "integer")], answer="x", name="desk"
)
STRAIGHT_DESK = Procedure([NAME, LARGE], inputs=[Input("letter", "text"), Input("x", "integer")], name="desk")
LETTER = {"letter": "Dear Ann", "x": 7}


def said(name: str, large: str) -> str:
    return json.dumps({"name": {"work": "copied", "value": name}, "large": {"work": "7 > 5", "value": large}})


@pytest.mark.parametrize("desk", [DESK, STRAIGHT_DESK], ids=["branching", "straight"])
def test_a_wrong_guess_behind_a_refused_step_is_none_to_repeat(desk: Procedure) -> None:
    """Of two values the other one would be left: whoever tosses a coin gets one toss, wherever the step stands."""
    model = ScriptedBackend(said("Bob", "false"))
    result = Guard(model).run(desk, LETTER)
    assert result.status == "abstained"
    assert result.problem is not None
    assert str(result.problem.occurrence) == "large"
    kept = ScriptedBackend(said("Bob", "true"), '{"name": {"work": "copied", "value": "Ann"}}')
    result = Guard(kept).run(desk, LETTER)
    assert result.status == "checked"
    assert asked(kept) == [["name", "large"], ["name"]]


def test_a_straight_line_of_readings_keeps_what_does_not_rest_on_a_refused_one() -> None:
    """One field of a receipt that is not accepted takes no other along, and a formula behind it only where it reads it.

    A straight line of formulas alone is a chain: there the next reply begins at the refused one.
    """
    names = ("shop", "net", "tax")
    read = [Step(name, instruction=f"Copy the {name}.", type="text" if name == "shop" else "decimal(2)",
                 reads=["receipt"], checks=[Grounded("receipt")]) for name in names]  # fmt: skip
    steps = [*read, Step("twice", "net * 2"), Step("sum", "net + tax")]
    first = {"shop": {"work": "", "value": "ACME"}, "net": {"work": "", "value": "9.50"}}
    first |= {"tax": {"work": "", "value": "7"}, "twice": "9.50 * 2 = 19.00", "sum": "9.50 + 7 = 16.50"}  # type: ignore[dict-item]
    model = ScriptedBackend(
        json.dumps(first), '{"tax": {"work": "", "value": "0.95"}}', '{"sum": "9.50 + 0.95 = 10.45"}'
    )
    result = Guard(model).run(Procedure(steps, inputs=[Input("receipt", "text")]), {"receipt": "ACME\n9.50\n0.95"})
    assert result.status == "checked"
    assert asked(model) == [[*names, "twice", "sum"], ["tax"], ["sum"]]
    chain = ScriptedBackend('{"a": "1 + 1 = 3", "b": "2 + 2 = 4"}', '{"a": "1 + 1 = 2"}', '{"b": "2 + 2 = 4"}')
    Guard(chain).run(Procedure([Step("a", "1 + 1"), Step("b", "2 + 2")]), {})
    assert asked(chain) == [["a", "b"], ["a"], ["b"]]


@pytest.mark.parametrize("branching", [False, True])
@pytest.mark.parametrize(
    "ways", [("Take the smaller of x and y and", "double it."), ("Take the smaller one.", "Double the result.")]
)
def test_words_that_rest_on_a_refused_step_are_not_kept(ways: tuple[str, str], branching: bool) -> None:
    """What leads on from other words, or names nothing that it reads, goes where the step before it goes."""
    smaller = Step("s", instruction=ways[0], type="integer", reads=["x", "y"], checks=[_is_smaller])
    steps = [smaller, Step("d", instruction=ways[1], type="integer"), Step("e", "d + 1")]
    procedure = Procedure([If([("x > 0", steps)])] if branching else steps, inputs=["x", "y"], answer="x")
    first, second = [{"s": words(s), "d": words(d), "e": f"{d} + 1 = {d + 1}"} for s, d in ((9, 18), (4, 8))]
    model = ScriptedBackend(*[json.dumps(first)], *[json.dumps(second)] * 3)
    result = Guard(model).run(procedure, {"x": 4, "y": 9})
    assert [record.value for record in result.steps] == [4, 8, 9]


def words(value: int) -> dict[str, str]:
    return {"work": "as I see it", "value": str(value)}


def _is_smaller(step: Step, values: Mapping[str, Any], claim: Claim) -> bool:
    return bool(values[step.id] == min(values["x"], values["y"]))
