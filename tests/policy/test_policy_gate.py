"""The gate: which calls are let through, refused, asked about and handed over, and what the agent is told."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from policy_harness import NOW, ORDER, SHOP, Desk, days, kinds
from tables import all_rows

from stepguard import Policy
from stepguard.errors import ConfigError


def test_what_was_not_looked_up_is_looked_up_first() -> None:
    """A call whose rule needs a result is refused with the call that gets it; behind it the same call passes."""
    desk = Desk()
    refused = desk.offer("refund", order="A1", amount=20)
    assert refused.outcome == "refuse"
    assert kinds(refused) == ["unseen"]
    assert 'Call get_order(id="A1") first.' in refused.message
    desk.see()
    assert desk.offer("refund", order="A1", amount=20).allowed


BROKEN = [
    ({"customer": "C2"}, 20, "Only orders of this customer are paid back."),
    ({}, 150.01, "No more than what was paid."),
    ({"refunded": 140}, 20, "No more than what was paid."),
    ({}, 0, "may be called only if amount > 0 (policy line 24)"),
    ({}, -5, "may be called only if amount > 0 (policy line 24)"),
]


@all_rows("order, amount, words", BROKEN)
def test_a_relation_that_does_not_hold_refuses(order: dict[str, Any], amount: float, words: str) -> None:
    """Arguments, results and facts are compared exactly; the words of the rule are told, and no value."""
    desk = Desk()
    desk.see(**order)
    refused = desk.offer("refund", order="A1", amount=amount)
    assert kinds(refused) == ["broken"]
    assert words in refused.message
    assert "C2" not in refused.message
    assert "140" not in refused.message


MISSING = [
    *({"paid": None}, {"paid": "150 USD"}, {"paid": [150]}, {"customer": 7.5}, {"customer": None}, {"placed": "soon"})
]


@all_rows("changed", MISSING)
def test_a_value_that_is_missing_never_allows(changed: dict[str, Any]) -> None:
    """A field that is missing, null or of another type makes the call undecided, which refuses it."""
    desk = Desk()
    desk.see(**changed)
    desk.gate.learn("damaged", "A1", value=False)
    assert kinds(desk.offer("refund", order="A1", amount=20)) == ["undecided"]


@all_rows("result", [None, 5, "gone", [], '{"paid": 5, "paid": 500}', "{", {}])
def test_a_result_of_another_shape_never_allows(result: Any) -> None:
    """A result that is not of its type at all shows nothing."""
    desk = Desk()
    decision = desk.offer("get_order", id="A1")
    desk.gate.result(decision.call, result)
    assert kinds(desk.offer("refund", order="A1", amount=20)) == ["undecided"]


def test_the_clock_is_the_hosts() -> None:
    """What has passed since a moment counts by the time that the host gives; without any the rule is undecided."""
    desk = Desk()
    desk.see()
    placed = datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert desk.offer("refund", order="A1", amount=1, now=placed + days(30)).allowed
    assert kinds(desk.offer("refund", order="A1", amount=2, now=None)) == ["unanswered"]
    late = Desk()
    late.see()
    asked = late.offer("refund", order="A1", amount=1, now=placed + days(30) + timedelta(seconds=1))
    assert asked.outcome == "ask"  # it may be damaged
    untimed = Desk()
    untimed.see()
    untimed.gate.learn("damaged", "A1", value=False)
    assert kinds(untimed.offer("refund", order="A1", amount=2, now=None)) == ["undecided"]


def test_moments_without_a_zone_are_those_of_the_zone_that_the_host_names() -> None:
    """A moment is compared as a moment, wherever it was written."""
    text = "record O:\n  at: moment\ntool get() -> O reads\ntool act()\nbefore act:\n  seen get() as o\n"
    policy = Policy.parse(text + "  require now.at - o.at.at <= 1 hour")
    for zone, allowed in ((UTC, False), (ZoneInfo("America/New_York"), True)):
        desk = Desk(policy, zone=zone, facts={})
        desk.do("get", {"at": "2026-03-10T07:30:00"})
        assert desk.offer("act").allowed == allowed


def test_what_nobody_knows_yet_is_asked() -> None:
    """A fact that decides is asked with its question; the answer decides the same call when it is offered again."""
    desk = Desk()
    desk.see(placed="2026-01-01T10:00:00Z")
    asked = desk.offer("refund", order="A1", amount=20)
    assert asked.outcome == "ask"
    (question,) = asked.questions
    assert (question.fact, question.keys, question.words) == ("damaged", ("A1",), "Does the picture show damage?")
    desk.gate.learn("damaged", "A1", value=False)
    assert kinds(desk.offer("refund", order="A1", amount=20)) == ["broken"]
    desk.gate.learn("damaged", "A1", value=True, strength="grounded")
    assert desk.offer("refund", order="A1", amount=20).allowed


def test_a_judgement_that_nothing_checked_is_no_fact() -> None:
    """A weaker strength, another type, other keys and other names are refused where they are given."""
    gate = Desk().gate
    for arguments, options in (
        (("damaged", "A1"), {"value": True, "strength": "unverified"}),
        (("damaged", "A1"), {"value": "maybe"}),
        (("damaged",), {"value": True}),
        (("damagd", "A1"), {"value": True}),
    ):
        with pytest.raises(ConfigError):
            gate.learn(*arguments, **options)


def test_a_yes_is_for_this_very_call_and_counts_once() -> None:
    """What a person agreed to is neither another amount nor a second time."""
    desk = Desk()
    desk.see()
    asked = desk.offer("refund", order="A1", amount=120)
    assert (asked.outcome, asked.confirmations) == ("ask", ("manager",))
    with pytest.raises(ConfigError, match="manager is asked"):
        desk.gate.confirm(asked, by="user")
    assert desk.offer("refund", order="A1", amount=120).outcome == "ask"
    desk.gate.confirm(asked, by="manager")
    assert desk.offer("refund", order="A1", amount=121).outcome == "ask"
    allowed = desk.offer("refund", order="A1", amount=120)
    assert allowed.allowed
    desk.gate.result(allowed.call, {**ORDER, "refunded": 1})
    assert desk.offer("refund", order="A1", amount=120).outcome == "ask"
    desk.gate.confirm(asked, by="manager")
    desk.gate.withdraw(asked, by="manager")
    assert desk.offer("refund", order="A1", amount=120).outcome == "ask"


def test_a_result_is_stale_once_a_call_may_have_changed_it() -> None:
    """Behind a change the new result counts, or it has to be looked up again; before its answer nothing does."""
    desk = Desk()
    desk.see()
    first = desk.offer("refund", order="A1", amount=90)
    assert kinds(desk.offer("refund", order="A1", amount=90)) == ["unanswered"]
    desk.gate.result(first.call, {**ORDER, "refunded": 90})
    assert kinds(desk.offer("refund", order="A1", amount=90)) == ["broken"]
    second = desk.offer("refund", order="A1", amount=10)
    desk.gate.failed(second.call)  # a time-out: it may have been paid
    assert kinds(desk.offer("refund", order="A1", amount=10)) == ["stale"]
    assert kinds(Desk().offer("refund", order="A1", amount=10)) == ["unseen"]


def test_a_look_that_overlaps_a_change_shows_nothing() -> None:
    """What was read while a change was on its way may be from before it."""
    desk = Desk()
    desk.see()
    change = desk.offer("refund", order="A1", amount=90)
    look = desk.offer("get_order", id="A1")
    desk.gate.result(look.call, ORDER)
    desk.gate.failed(change.call)
    assert kinds(desk.offer("refund", order="A1", amount=90)) == ["stale"]


def test_a_call_that_did_nothing_costs_nothing() -> None:
    """Where the tool says that nothing was done, limits, results and yeses are as before."""
    desk = Desk(SHOP.replace("at most 2 times", "at most once"))
    desk.see()
    asked = desk.offer("refund", order="A1", amount=120)
    desk.gate.confirm(asked, by="manager")
    desk.gate.failed(desk.offer("refund", order="A1", amount=120).call, done=False)
    assert desk.offer("refund", order="A1", amount=120).allowed


def test_two_calls_at_once_do_not_use_a_limit_twice() -> None:
    """A call that was let through counts before it is answered; another order has a limit of its own."""
    policy = "tool pay(to: text, amount: money(EUR)) changes nothing\nbefore pay: at most once per to"
    desk = Desk(policy, facts={})
    assert desk.offer("pay", to="A", amount=1).allowed
    for other in ("A", "a", " A ", "\uff21"):
        assert kinds(desk.offer("pay", to=other, amount=2)) == ["spent"] or desk.gate.handed_over
    assert Desk(policy, facts={}).offer("pay", to="B", amount=1).allowed


def test_a_limit_counts_within_its_time() -> None:
    """What is older than the span does not count any more."""
    desk = Desk("tool pay(to: text) changes nothing\nbefore pay: at most 2 times per to within 24 hours", facts={})
    for hours, allowed in ((0, True), (1, True), (23, False), (24, True), (24.5, False), (25, True)):
        assert desk.offer("pay", to="A", now=NOW + timedelta(hours=hours)).allowed == allowed, hours


def test_sums_over_earlier_calls() -> None:
    """The arguments of earlier calls are a list, those on their way too."""
    text = "tool pay(to: text, amount: money(EUR)) changes nothing\nbefore pay:\n  earlier pay(to=to) as paid\n"
    desk = Desk(text + "  require amount + (sum of each.amount for each in paid) <= 100", facts={})
    outcomes = [desk.offer("pay", to=to, amount=amount).allowed for to, amount in (("A", 60), ("a", 50), ("A", 40))]
    assert outcomes == [True, False, True]


def test_an_order_of_calls() -> None:
    """`done` needs a call that succeeded with these arguments, `not done` none that was let through."""
    text = "tool verify(id: text)\ntool open(id: text)\ntool close(id: text)\nallow verify\n"
    desk = Desk(text + "before open(x):\n  done verify(x)\n  not done close(x)\nallow close", facts={})
    assert kinds(desk.offer("open", id="A")) == ["not_done"]
    waiting = desk.offer("verify", id="A")
    assert kinds(desk.offer("open", id="A")) == ["not_done"]
    desk.gate.result(waiting.call)
    assert desk.offer("open", id="A").allowed
    assert kinds(desk.offer("open", id="B")) == ["not_done"]
    desk.offer("close", id="a ")
    assert kinds(desk.offer("open", id="A")) == ["done_already"]


ARGUMENTS = [
    '{"order": "A1"}', '{"order": "A1", "amount": 5, "amount": 500}', '{"order": "A1", "amount": 5, "force": true}',
    '{"order": "A1", "amount": "5,00"}', '{"order": "A1", "amount": " 5.00"}', '{"order": "A1", "amount": "٥"}',
    '{"order": "A1", "amount": "1e1"}', '{"order": "A1", "amount": NaN}', '{"order": "A1", "amount": Infinity}',
    '{"order": "A1", "amount": true}', '{"order": "A1", "amount": [5]}', '{"order": "A1", "amount": null}',
    '{"order": "A1", "amount": "5 EUR"}', '{"order": "A1", "amount": 5.001}', '{"order": 1, "amount": 5}',
    '{"order": "a1", "amount": 5}', '{"order": " A1", "amount": 5}', '{"order": "A1\\u200b", "amount": 5}',
    '{"order": "Ａ１", "amount": 5}', '{"Order": "A1", "amount": 5}', '[{"order": "A1", "amount": 5}]', "order=A1", "",
    '{"order": "A1", "amount": 5} {}', '{"order": "\\ud800", "amount": 5}', '{"order": "A1", "amount": 1e999}',
]  # fmt: skip


@all_rows("arguments", ARGUMENTS)
def test_arguments_that_could_be_read_otherwise_are_refused(arguments: str) -> None:
    """Other spellings of a number, a name or an identifier do not pass a rule by."""
    desk = Desk()
    desk.see()
    refused = desk.offer("refund", arguments)
    assert not refused.allowed
    assert kinds(refused) in (["arguments"], ["broken"])


@all_rows("amount, passed", [("1e1", 10), ("10.00", 10), ('"10.00"', "10"), ("12.50", 12.5), ("0.1", 0.1)])
def test_a_tool_is_given_what_the_rules_have_read(amount: str, passed: object) -> None:
    """What is let through goes on in one spelling, which is that of the decision."""
    desk = Desk()
    desk.see()
    decision = desk.offer("refund", f'{{"amount": {amount}, "order": "A1"}}')
    assert decision.arguments == {"order": "A1", "amount": passed}


@all_rows("name", ["Refund", "refund ", "refund\u200b", "delete", "", "get_order(id)"])
def test_a_tool_that_is_not_declared_is_refused(name: str) -> None:
    """Only the declared names are let through, as they are spelt."""
    assert kinds(Desk().offer(name, order="A1", amount=1)) == ["unknown_tool"]


def test_what_is_forbidden_is_never_let_through() -> None:
    """The words of the rule are told."""
    refused = Desk().offer("close_account", customer="C1")
    assert kinds(refused) == ["forbidden"]
    assert "Accounts are closed by the office." in refused.message


def test_repeated_refusals_end_with_a_person() -> None:
    """After the third refusal of a tool a person takes over; looking things up goes on, changes wait for them."""
    desk = Desk(refusals=3)
    outcomes = [desk.offer("refund", order="A1", amount=1).outcome for _ in range(3)]
    assert outcomes == ["refuse", "refuse", "hand_over"]
    assert desk.offer("mail", to="x", words="y").outcome == "hand_over"
    desk.see()
    assert "A person" in desk.offer("refund", order="A1", amount=1).message
    desk.gate.take_back()
    assert desk.offer("refund", order="A1", amount=1).allowed


def test_the_same_call_is_not_made_twice() -> None:
    """Offered again before its answer a call has the same key; behind it, or with other arguments, it is refused."""
    gate = Desk().gate
    first = gate.offer("mail", '{"to": "a", "words": "b"}', id="1")
    assert gate.offer("mail", '{"words": "b", "to": "a"}', id="1") == first
    assert kinds(gate.offer("mail", '{"to": "c", "words": "b"}', id="1")) == ["repeated"]
    assert gate.offer("mail", '{"to": "a", "words": "b"}', id="2").key != first.key
    gate.result("1", "sent")
    assert kinds(gate.offer("mail", '{"to": "a", "words": "b"}', id="1")) == ["repeated"]
    for wrong in ("1", "3"):
        with pytest.raises(ConfigError, match="waits for its result"):
            gate.result(wrong, "sent")


def test_the_state_is_plain_data() -> None:
    """Saved as JSON and resumed at any place, a conversation goes on as if it had not been interrupted."""
    policy = Policy.parse(SHOP)

    def steps(desk: Desk) -> Any:
        desk.see()
        yield desk.offer("refund", order="A1", amount=120)
        yield (asked := desk.offer("refund", order="A1", amount=110.5))
        desk.gate.confirm(asked, by="manager")
        yield (paid := desk.offer("refund", order="A1", amount=110.5))
        yield desk.gate.pending
        desk.gate.result(paid.call, {**ORDER, "refunded": "110.50"})
        yield desk.offer("refund", order="A1", amount=40)
        desk.gate.learn("damaged", "A1", value=True)
        yield desk.offer("refund", order="A1", amount=39.5, now=NOW + days(90))
        yield desk.offer("refund", order="A1", amount=39.5, now=NOW + days(90))
        yield desk.gate.handed_over

    through = list(steps(Desk(policy)))
    desk = Desk(policy)
    resumed = []
    for each in steps(desk):
        resumed.append(each)
        desk.gate = policy.gate(state=json.loads(json.dumps(desk.gate.to_dict())))
    assert resumed == through
    assert [each.outcome for each in through if hasattr(each, "outcome")] == [
        *("ask", "ask", "allow", "refuse", "allow", "refuse")
    ]
    with pytest.raises(ConfigError, match="another policy"):
        Policy.parse(SHOP.replace("at most 2", "at most 9")).gate(state=desk.gate.to_dict())


def test_every_decision_is_recorded() -> None:
    """The record has the rule, the line and what was found, which the agent is not told."""
    desk = Desk()
    desk.see(customer="C-secret")
    desk.offer("refund", order="A1", amount=1)
    recorded = desk.gate.decisions[-1]
    (reason,) = recorded["reasons"]
    assert (recorded["outcome"], reason["kind"], reason["line"]) == ("refuse", "broken", 23)
    assert "C-secret" in reason["detail"]


def test_a_question_of_the_host_is_not_shown_to_the_agent() -> None:
    """The call that is to be made first leaves out what only the host knows."""
    text = "tool get(key: text) reads\ntool act()\nfact secret: text\nbefore act: seen get(secret)"
    refused = Desk(text, facts={"secret": "hush"}).offer("act")
    assert "get(key=...)" in refused.message
    assert "hush" not in json.dumps(refused.message)


WORDLESS = """
tool look(id: text) -> number reads
tool act(id: text, n: number) changes look(id)
tool check(id: text) changes nothing
tool drop(id: text)
fact quota: number
never drop

before act(id, n):
  {demand}
before check: require id != "" only if quota > 100
"""
WITHOUT_WORDS = [
    ("seen look(id)", 'act needs a current result of look, and there is none yet {line}. Call look(id="a") first.'),
    ("done check(id)", 'act is allowed only after check has succeeded {line}. Call check(id="a") first.'),
    ("not done act(id)", "act is not allowed once act has been called {line}."),
    ("require n < 3", "act may be called only if n < 3 {line}. Do not repeat it unchanged."),
    ("refuse if n > 3", "act must not be called if n > 3 {line}. Do not repeat it unchanged."),
    ("require n < quota", "A rule does not allow act here {line}. Do not repeat it unchanged."),
    ("most = quota + 1\n  require n < most", "A rule does not allow act here (policy line 11). Do not repeat it"),
    ("require 6 / (n - 4) > 1", "act cannot be checked: a value that its rule needs is missing or of another type"),
    (
        "at most 1 times per id within 2 hours",
        "act may be called at most once per id within 2 hours, and that limit is reached {line}.",
    ),
]


@all_rows("demand, words", WITHOUT_WORDS)
def test_a_demand_without_words_names_its_rule_what_is_missing_and_what_comes_first(demand: str, words: str) -> None:
    """In words of its own, which hold no value and no condition on what only the host knows."""
    desk = Desk(WORDLESS.format(demand=demand))
    desk.gate.learn("quota", value=3)
    if "once" in words:
        desk.do("act", id="a", n=1)
    message = desk.offer("act", id="a", n=4).message
    assert words.format(line="(policy line 10)") in message
    assert desk.offer("drop", id="a").message.endswith("drop must never be called (policy line 7).")
