"""Facts that only judgement can tell: a step of a guard's, kept with its strength, or asked of a person."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stepguard import Budget, Guard, Ladder, Policy
from stepguard.errors import ConfigError, PolicyError
from stepguard.integrations.tool_gate import ToolGate
from stepguard.policy import Decision, Fact, FactQuestion
from stepguard.repair.rungs import Vote
from stepguard.testing import ScriptedBackend

RULES = """
record Order:
  note: text
  days: integer
tool get_order(id: text) -> Order reads
tool refund(order: text) changes get_order(order)
fact broken[note: text]: boolean judged "Does the note say that the goods came broken?"
before refund(id):
  seen get_order(id) as order
  require order.days <= 30 or broken[order.note] "After 30 days only what came broken."
"""
NOTE = "The lid was cracked when I opened the box."


ODD = {"odd": {"work": "it is", "value": "true"}}


def said(value: str, quote: str = "lid was cracked when") -> dict[str, Any]:
    """What the model answers."""
    return {"broken": {"work": f'the note says "{quote}"', "value": value}}


def desk(backend: ScriptedBackend | None, *, days: int = 40, note: str = NOTE, **options: Any) -> ToolGate:
    """A gate that has looked the order up."""
    tools: dict[str, Any] = {"get_order": lambda id: {"note": note, "days": days}, "refund": lambda order: "paid back"}
    guard = None if backend is None else Guard(backend, **options.pop("guard", {}))
    gate = ToolGate(Policy.parse(RULES), tools, guard=guard, **options)
    gate.call("get_order", {"id": "A1"}, id="look")
    return gate


def test_a_judgement_is_made_by_the_guard_and_kept_with_its_strength() -> None:
    """Its model is asked once for the same note, and the strength goes into the state."""
    backend = ScriptedBackend(said("true"))
    gate = desk(backend)
    assert gate.call("refund", {"order": "A1"}, id="1") == "paid back"
    assert [each["strength"] for each in gate.gate.to_dict()["facts"]] == ["constrained"]
    gate.call("get_order", {"id": "A1"}, id="again")
    assert gate.call("refund", {"order": "A1"}, id="2") == "paid back"
    assert len(backend.requests) == 1
    assert NOTE in str(backend.requests[0])


def test_a_judgement_that_goes_the_other_way_refuses_the_call() -> None:
    """In the words of the rule."""
    gate = desk(ScriptedBackend(said("false")))
    assert "After 30 days only what came broken." in gate.call("refund", {"order": "A1"}, id="1")


def test_nothing_is_judged_that_the_rule_does_not_hang_on() -> None:
    """A condition that is decided without it costs no call."""
    backend = ScriptedBackend()
    assert desk(backend, days=3).call("refund", {"order": "A1"}, id="1") == "paid back"
    assert backend.requests == []


@pytest.mark.parametrize("quote", ["the lid is fine, thanks", "x"])
def test_what_is_not_verified_is_asked_of_a_person_and_not_paid_for_again(quote: str) -> None:
    """A quotation that does not stand in the note stands behind nothing."""
    asked: list[FactQuestion] = []

    def answer(decision: Decision, question: FactQuestion) -> object:
        asked.append(question)
        return None if len(asked) == 1 else True

    backend = ScriptedBackend(*[said("true", quote)] * 20)
    gate = desk(backend, answer=answer)
    assert "Does the note say that the goods came broken?" in gate.call("refund", {"order": "A1"}, id="1")
    spent = len(backend.requests)
    assert gate.call("refund", {"order": "A1"}, id="2") == "paid back"
    assert len(backend.requests) == spent > 0
    assert [(each.fact, each.keys, each.judged) for each in asked] == [("broken", (NOTE,), True)] * 2
    assert gate.gate.to_dict()["facts"][0]["strength"] == "proved"


def test_without_a_guard_a_person_is_asked() -> None:
    """As for any other fact; a guard that is none is refused."""
    gate = desk(None)
    assert "waiting for an answer" in gate.call("refund", {"order": "A1"}, id="1")
    gate.gate.learn("broken", NOTE, value=True, strength="agreed")
    assert gate.call("refund", {"order": "A1"}, id="2") == "paid back"
    with pytest.raises(ConfigError, match="a Guard"):
        ToolGate(Policy.parse(RULES), guard=ScriptedBackend())  # type: ignore[arg-type]


def test_async_tools_await_their_judgements() -> None:
    """By the guard's own twin."""
    gate = desk(ScriptedBackend(said("true")))
    assert asyncio.run(gate.acall("refund", {"order": "A1"}, id="1")) == "paid back"


def test_a_budget_that_is_spent_leaves_the_call_waiting() -> None:
    """What the guard may spend is the guard's."""
    gate = desk(ScriptedBackend(*[said("maybe")] * 9), guard={"budget": Budget(calls=1)})
    assert "waiting for an answer" in gate.call("refund", {"order": "A1"}, id="1")


def test_ever_new_judgements_do_not_spend_without_end() -> None:
    """Once the budget of the conversation is spent a person is asked, of a new note too; time has a limit elsewhere."""
    backend = ScriptedBackend(said("true"), said("false"))
    gate = desk(backend, budget=Budget(calls=2))
    answers = []
    for number, note in enumerate((NOTE, NOTE + "!", NOTE + "?")):
        gate.gate.result(gate.decide("get_order", {"id": "A1"}, id=f"look-{number}").call, {"note": note, "days": 40})
        answers.append(gate.call("refund", {"order": "A1"}, id=f"pay-{number}"))
    assert answers[0] == "paid back"
    assert "After 30 days only what came broken." in answers[1]
    assert "waiting for an answer" in answers[2]
    assert len(backend.requests) == 2
    with pytest.raises(ConfigError, match="time is limited for each judgement"):
        desk(ScriptedBackend(), budget=Budget(seconds=5))


def test_a_judgement_without_a_document_is_as_strong_as_the_guards_votes() -> None:
    """Of keys that are no text nothing can be quoted."""
    policy = Policy.parse(
        'tool act(n: integer)\nfact odd[n: integer]: boolean judged "Is it a strange number?"\n'
        "before act: require odd[n]"
    )

    def gate(repair: Ladder | None) -> ToolGate:
        return ToolGate(policy, {"act": lambda n: "done"}, guard=Guard(ScriptedBackend(*[ODD] * 9), repair=repair))

    lone, voted = gate(Ladder([])), gate(Ladder([Vote(ahead=2)]))
    assert "waiting for an answer" in lone.call("act", {"n": 7}, id="1")
    assert voted.call("act", {"n": 7}, id="1") == "done"
    assert voted.gate.to_dict()["facts"][0]["strength"] == "agreed"


@pytest.mark.parametrize(
    "declared",
    ["fact odd: boolean judged \"Is it?\"", "fact odd[n: integer]: boolean judged", "fact odd: boolean judged"],
)  # fmt: skip
def test_a_judgement_needs_something_to_judge_and_a_question(declared: str) -> None:
    """Otherwise nobody could make it."""
    with pytest.raises(PolicyError):
        Policy.parse(f"tool act(n: integer)\n{declared}\nbefore act: require odd" + ("[n]" if "[" in declared else ""))


def test_judged_facts_are_the_same_in_yaml_and_python() -> None:
    """And other policies than those with facts that are asked of people."""
    text = 'tool act(n: text)\nfact odd[n: text]: boolean judged "Is it?"\nbefore act: require odd[n]'
    document = (
        "tools: ['act(n: text)']\nfacts: ['odd[n: text]: boolean judged \"Is it?\"']\n"
        "rules: [{before: act, demand: ['require odd[n]']}]\n"
    )
    from stepguard.policy.yaml_format import parse_policy_yaml

    assert parse_policy_yaml(document) == Policy.parse(text)
    assert Policy.parse(text.replace(" judged", "")) != Policy.parse(text)
    policy = Policy.parse(text)
    fact = Fact("odd", "boolean", policy.signatures[1][0].keys, "Is it?", judged=True)
    assert Policy(policy.signatures[0], policy.rules, facts=[fact]) == policy
