"""What a gate with one fault would do otherwise: `benchmarks/gate_mutation.py` plants such faults."""

from __future__ import annotations

import json
from typing import Any

import pytest
from policy_harness import NOW, ORDER, Desk, kinds

from stepguard import Policy

HEAD = """
record Order:
  paid: money(EUR)
  placed: moment
tool get_order(id: text) -> Order reads
tool look_again(id: text) -> Order reads
tool refund(order: text, amount: money(EUR)) -> Order changes get_order(order), look_again(order)
tool pay(order: text, amount: money(EUR)) -> Order changes get_order(order)
tool charge()
tool mail_all(names: list of text) changes nothing
fact checked: boolean "Was it checked?"
allow charge
before mail_all(names):
  for each name in names:
    at most 2 times per name
"""
TAIL = """
before pay(id, amount):
  {pay}
before refund(id, amount):
  {refund}
"""
SEEN = "seen get_order(id) or look_again(id) as order\n  require amount <= order.paid"


def desk(refund: str = SEEN, pay: str = "require amount > 0 unless checked") -> Desk:
    """A desk with these rules."""
    return Desk(HEAD + TAIL.format(refund=refund, pay=pay))


def shown(paid: object) -> str:
    """What a look gives back."""
    return json.dumps({**ORDER, "paid": paid})


def refused(at: Desk, amount: int, tool: str = "refund") -> list[str]:
    """Why a call is not let through."""
    return kinds(at.offer(tool, order="A1", amount=amount))


def test_what_one_call_does_twice_counts_twice() -> None:
    """A limit in a loop holds for the items of one call as for those of many."""
    assert desk().offer("mail_all", names=["a", "a"]).allowed
    assert kinds(desk().offer("mail_all", names=["a", "a", "a"])) == ["spent"]


@pytest.mark.parametrize("tools", [("get_order", "look_again"), ("look_again", "get_order")])
def test_the_newest_of_several_looks_counts(tools: tuple[str, str]) -> None:
    """Whichever tool it was made with."""
    at = desk()
    for tool, paid in zip(tools, (150, 10), strict=True):
        at.do(tool, {**ORDER, "paid": paid}, id="A1")
    assert refused(at, 100) == ["broken"]


def test_of_two_looks_that_overlap_the_later_one_counts() -> None:
    """Whichever of them is answered last."""
    at = desk()
    first, second = (at.offer("get_order", id="A1") for _ in range(2))
    at.gate.result(second.call, shown(10))
    at.gate.result(first.call, shown(150))
    assert refused(at, 100) == ["broken"]
    assert refused(at, 10) == []


def test_seen_all_leaves_out_what_may_have_changed() -> None:
    """A result that a call has made stale is none of all."""
    at = desk("seen all get_order() as orders\n  require any of (one.paid >= amount) for one in orders")
    at.see()
    at.gate.failed(at.offer("pay", order="A1", amount=1).call)
    assert refused(at, 100) == ["broken"]
    at.see()
    assert refused(at, 100) == []


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("change", [("charge", {}), ("refund", {"order": "A1", "amount": 1})])
def test_a_look_while_a_change_is_on_its_way_is_stale_behind_it(
    change: tuple[str, dict[str, Any]], resumed: bool
) -> None:
    """It is not known which came first, be it a change of this or of everything, here or in an earlier process."""
    at = desk()
    at.see()
    tool, given = change
    changing = at.offer(tool, given)
    look = at.offer("get_order", id="A1")
    if resumed:
        at.gate = at.policy.gate(state=json.loads(json.dumps(at.gate.to_dict())))
    at.gate.failed(changing.call)
    at.gate.result(look.call, shown(150))
    assert refused(at, 10) == ["stale"]
    at.see()
    assert refused(at, 10) == []


def test_a_look_behind_a_resumption_knows_of_the_calls_before_it() -> None:
    """A change that was not answered before the process died is still on its way for a look of the next one."""
    at = desk()
    changing = at.offer("charge")
    at.gate = at.policy.gate(state=at.gate.to_dict())
    look = at.offer("get_order", id="A1")
    at.gate.result(look.call, shown(150))
    assert refused(at, 10) == ["unanswered"]
    at.gate.result(changing.call)
    assert refused(at, 10) == ["stale"]


def test_a_call_that_may_change_everything_makes_every_look_stale() -> None:
    """One without `changes`, whether it succeeded or failed."""
    at = desk()
    at.see()
    at.do("charge")
    assert refused(at, 10) == ["stale"]


def test_what_the_only_change_gives_back_is_the_new_state() -> None:
    """Of one changed thing it counts as a look; of two it is not known which, and both are looked up again."""
    at = desk(pay=f"{SEEN}\n  require amount > 0 unless checked")
    at.see()
    at.do("pay", {**ORDER, "paid": 20}, order="A1", amount=100)
    assert refused(at, 100, "pay") == ["broken"]
    at.do("pay", {**ORDER, "paid": 5}, order="A1", amount=10)
    at.do("refund", {**ORDER, "paid": 200}, order="A1", amount=5)
    assert refused(at, 5) == ["stale"]


def test_a_call_that_could_not_be_read_counts_as_done() -> None:
    """A gate that only observes lets one through, and nobody knows what it was about."""
    at = Desk(HEAD + TAIL.format(refund="not done refund(order=id)", pay="require checked"), observe=True)
    at.offer("refund", {"order": ["?"], "amount": 1})
    assert refused(at, 1) == ["done_already"]


def test_a_branch_that_hangs_on_what_is_not_known_is_not_taken() -> None:
    """Somebody is asked, where one branch would refuse and the other would not; so for `and`."""
    at = desk(
        "if checked:\n    require amount <= 60\n  else:\n    require amount <= 30", "require checked and amount < 50"
    )
    assert at.offer("refund", order="A1", amount=50).outcome == "ask"
    assert at.offer("pay", order="A1", amount=10).outcome == "ask"
    assert refused(at, 60, "pay") == ["broken"]
    at.gate.learn("checked", value=False)
    assert refused(at, 50) == ["broken"]
    assert refused(at, 30) == []


def test_each_role_says_yes_for_itself() -> None:
    """The yes of one is none of the other; it is kept by a resumption, and used by one call alone."""
    at = desk("confirmed by boss\n  confirmed by clerk", "confirmed by boss unless checked")
    asked = at.offer("refund", order="A1", amount=1)
    at.gate.confirm(asked, by="clerk")
    at.gate = at.policy.gate(state=at.gate.to_dict())
    assert at.offer("refund", order="A1", amount=1).confirmations == ("boss",)
    at.gate.confirm(asked, by="boss")
    assert refused(at, 1) == []
    assert at.offer("refund", order="A1", amount=1).confirmations == ("boss", "clerk")


def test_a_yes_that_may_not_have_been_needed_is_used_up() -> None:
    """Where nobody knows whether a demand counts, a call that keeps it uses the yes."""
    at = desk(pay="confirmed by boss unless checked")
    at.gate.confirm(at.offer("pay", order="A1", amount=1), by="boss")
    assert refused(at, 1, "pay") == []
    assert at.offer("pay", order="A1", amount=1).outcome == "ask"


def test_every_rule_of_a_tool_holds() -> None:
    """However many blocks they stand in."""
    at = Desk(
        Policy.parse(HEAD + TAIL.format(refund=SEEN, pay="require checked") + "before refund: require amount < 9")
    )
    at.see()
    assert refused(at, 9) == ["broken"]


def test_a_moment_with_a_zone_is_that_of_its_zone() -> None:
    """The zone of the host is that of moments which name none."""
    for placed, kind in (("11:00:00-05:00", ["broken"]), ("16:00:00+05:00", []), ("12:00:00", [])):
        at = desk("seen get_order(id) as order\n  require order.placed.at <= now.at")
        at.see(placed=f"{NOW.date()}T{placed}")
        assert refused(at, 1) == kind


def test_a_key_that_stands_twice_is_refused() -> None:
    """Nobody knows which of the two a tool takes."""
    assert kinds(desk().offer("pay", '{"order": "A1", "order": "B2", "amount": 1}')) == ["arguments"]


def test_what_failed_was_not_done() -> None:
    """A call that failed may have done something, and is none that the rule asks for."""
    at = desk("done charge")
    at.gate.failed(at.offer("charge").call)
    assert refused(at, 1) == ["not_done"]
    at.do("charge")
    assert refused(at, 1) == []


def test_what_was_done_or_seen_of_another_spelling_is_not_of_this() -> None:
    """A look at `a1` says nothing of `A1`, whatever a tool makes of it."""
    at = desk("seen get_order(id)", "done refund(order=id) unless checked")
    at.see(id="a1")
    assert refused(at, 1) == ["unseen"]
    at.do("refund", None, order="a1", amount=1)
    at.gate.learn("checked", value=False)
    assert refused(at, 1, "pay") == ["not_done"]


def test_a_limit_that_may_not_count_is_used_up() -> None:
    """Where nobody knows whether it counts, the calls within it pass, and the next one is asked about; so is `not`."""
    at = desk("at most once per id unless checked", "require not checked")
    assert refused(at, 1) == []
    assert at.offer("refund", order="A1", amount=1).outcome == "ask"
    assert at.offer("pay", order="A1", amount=1).outcome == "ask"
