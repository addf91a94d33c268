"""Money and the budget of one step: what they count, where they stop a run, and what they say."""

from __future__ import annotations

import decimal
import time
from decimal import Decimal
from typing import Any

import pytest
from harness import P2, Hand, ids, start
from tables import all_rows

from stepguard import Budget, Guard, Price, Procedure, RetryPolicy, Usage
from stepguard.backends import Completion
from stepguard.engine.actions import Clock, Failed, Replied, Woke
from stepguard.errors import BackendError, ConfigError
from stepguard.testing import ScriptedBackend

PRICE = Price(input="0.40", output=1.6, cached=Decimal("0.1"))


def costs(text: str, *, input_tokens: int = 0, output_tokens: int = 0) -> Completion:
    return Completion(text, usage=Usage(calls=1, input_tokens=input_tokens, output_tokens=output_tokens))


def test_a_price_is_for_a_million_tokens_and_exact() -> None:
    """Cached prompt tokens cost their own price, floats are the decimals they are printed as, nothing is rounded."""
    usage = Usage(calls=3, input_tokens=1_000_001, output_tokens=500_000, cached_tokens=1_000_000)
    assert PRICE.of(usage) == Decimal("0.1") + Decimal("0.0000004") + Decimal("0.8")
    assert Price(input=1, output=2).of(usage) == Decimal("2.000001")
    with decimal.localcontext(prec=2):
        assert Price(input="1.2345", output=0).of(Usage(input_tokens=1)) == Decimal("0.0000012345")


def test_cached_tokens_never_make_a_call_cheaper_than_nothing() -> None:
    """Where a provider counts cached tokens apart from the prompt, the prompt costs nothing, not less."""
    usage = Usage(calls=1, input_tokens=10, output_tokens=5, cached_tokens=1000)
    assert Price(input=1, output=1, cached=0).of(usage) == Decimal("0.000005")


@all_rows("amount", [-1, "x", float("nan"), "Infinity", "1e999999", True, None, [1]])
def test_an_amount_that_makes_no_sense_is_refused(amount: Any) -> None:
    """Prices and limits on the cost are finite numbers of 0 or more."""
    with pytest.raises(ConfigError):
        Price(input=amount, output=1)
    with pytest.raises(ConfigError):
        Price(input=1, output=amount)
    if amount is not None:
        with pytest.raises(ConfigError):
            Price(input=1, output=1, cached=amount)
        with pytest.raises(ConfigError):
            Budget(cost=amount, price=PRICE)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"cost": 1}, "price=Price"),
        ({"price": 1.5}, "Price"),
        ({"per_step": 3}, "per_step"),
        ({"per_step": Budget(per_step=Budget(calls=1))}, "per_step"),
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused(given: dict[str, Any], says: str) -> None:
    """A limit on the cost without a price, or on a step of a step, is refused when it is made."""
    with pytest.raises(ConfigError, match=says) as refused:
        Budget(**given)
    assert refused.value.option == "budget"


def test_the_result_says_what_the_run_cost() -> None:
    """With a price the result holds the cost of all attempts, failed ones included; without one it holds none."""
    script = [costs('{"a": "2 * 3 = 7"}', input_tokens=1000), costs('{"a": "2 * 3 = 6"}', output_tokens=100)]
    guard = Guard(ScriptedBackend(*script), budget=Budget(price=Price(input=2, output=10)))
    result = guard.run(Procedure.parse("a = 2 * 3"))
    assert result.cost == Decimal("0.003")
    assert result.to_dict()["cost"] == "0.003"
    assert Guard(ScriptedBackend({"a": "2 * 3 = 6"})).run(Procedure.parse("a = 2 * 3")).cost is None


def test_a_run_stops_when_its_money_is_spent() -> None:
    """No call is started once the cost is reached; what was verified is kept, and the reason names the limit."""
    backend = ScriptedBackend(costs('{"a": "2 * 3 = 6"}', output_tokens=1_000_000))
    guard = Guard(backend, segment=1, budget=Budget(cost="1.6", price=PRICE))
    result = guard.run(P2)
    assert (result.status, result.cost, dict(result.values)) == ("exhausted", Decimal("1.6"), {"a": 6})
    assert "1.6 cost is spent" in str(result.problem)


def test_calls_at_the_same_time_do_not_pass_the_money_together() -> None:
    """A second call is started only while what the first may cost at most leaves something."""
    procedure = Procedure.parse("inputs: x\nt1 = x + 1\nt2 = x + 2")
    dear = Budget(cost="0.0003", price=Price(input=1, output=1))
    hand = start(procedure, {"x": 1}, segment=1, parallel=2, budget=dear)
    assert len(hand.asks) == 1
    hand.answer({"t1": "1 + 1 = 2"})
    hand.answer({"t2": "1 + 2 = 3"})
    assert hand.run.result().status == "verified"
    rich = Budget(cost=1, price=Price(input=1, output=1))
    assert len(start(procedure, {"x": 1}, segment=1, parallel=2, budget=rich).asks) == 2


# One step


def test_the_calls_that_stop_at_a_step_are_limited() -> None:
    """A step may stop so many calls, wherever they began; then the run is exhausted and names the step."""
    hand = start(P2, repair=9, budget=Budget(per_step=Budget(calls=2)))
    hand.answer({"a": "2 * 3 = 6", "b": "6 + 4 = 11"})
    hand.answer({"b": "6 + 4 = 12"})
    result = hand.run.result()
    assert (result.status, result.usage.calls, dict(result.values)) == ("exhausted", 2, {"a": 6})
    assert result.problem is not None
    assert result.problem.occurrence.step == "b"
    assert result.problem.reason == "the budget of 2 calls for one step is spent"


def test_calls_that_bring_in_what_they_asked_count_for_no_step() -> None:
    """However many calls a run takes, only those that stop at a step are counted against it."""
    procedure = Procedure.parse("\n".join(f"t{n} = {n} + 1" for n in range(5)))
    hand = start(procedure, segment=1, budget=Budget(per_step=Budget(calls=1, tokens=1)))
    for n in range(5):
        hand.answer({f"t{n}": f"{n} + 1 = {n + 1}"})
    assert hand.run.result().status == "verified"


def test_what_one_step_spent_does_not_count_for_another() -> None:
    """Each step has its own budget."""
    hand = start(P2, segment=1, repair=9, budget=Budget(per_step=Budget(calls=2)))
    hand.answer({"a": "2 * 3 = 7"})
    hand.answer({"a": "2 * 3 = 6"})
    hand.answer({"b": "6 + 4 = 11"})
    hand.answer({"b": "6 + 4 = 10"})
    assert hand.run.result().status == "verified"


@pytest.mark.parametrize(
    ("limit", "reason"),
    [(Budget(tokens=30), "30 tokens"), (Budget(cost="0.00003", price=Price(input=1, output=1)), "0.00003 cost")],
)
def test_tokens_and_money_of_a_step_are_limited(limit: Budget, reason: str) -> None:
    """Two calls of 15 tokens that stop at a step spend 30."""
    hand = start(P2, segment=1, repair=9, budget=Budget(per_step=limit))
    hand.answer({"a": "2 * 3 = 7"})
    hand.answer({"a": "2 * 3 = 8"})
    assert hand.asks == []
    result = hand.run.result()
    assert result.status == "exhausted"
    assert reason in str(result.problem)


def test_a_step_of_nothing_is_not_asked() -> None:
    """With nothing to spend for a step no call is made; code costs nothing."""
    assert start(P2, budget=Budget(per_step=Budget(calls=0))).run.result().usage.calls == 0
    code = Procedure.parse("a = by code 2 * 3")
    assert start(code, budget=Budget(per_step=Budget(calls=0))).run.result().status == "verified"


def test_a_request_has_the_time_of_the_steps_it_asks() -> None:
    """Three steps of ten seconds make thirty; a step asked alone has what it has left."""
    procedure = Procedure.parse("t1 = 1 + 1\nt2 = 2 + 2\nt3 = 3 + 3")
    run = Guard(lambda m: "", repair=9, budget=Budget(per_step=Budget(seconds=10)), retry=RetryPolicy()).start(
        procedure
    )
    begun = time.monotonic()
    hand = Hand(run)
    assert hand.asks[0].request.timeout == 30
    run.send(Clock(begun + 6))
    hand.answer({"t1": "1 + 1 = 3"})
    timeout = hand.asks[0].request.timeout
    assert timeout is not None
    assert 3 < timeout < 4.1
    run.send(Clock(begun + 20))
    hand.answer({"t1": "1 + 1 = 4"})
    result = run.result()
    assert result.status == "exhausted"
    assert "10 seconds for one step" in str(result.problem)


def test_failed_calls_and_waits_count_for_the_step_that_led_them() -> None:
    """A step whose calls get no answer spends its calls and its time on that."""
    for budget, reason in [(Budget(calls=1), "1 calls"), (Budget(seconds=40), "40 seconds")]:
        hand = start(P2, budget=Budget(per_step=budget), retry=RetryPolicy(retries=9))
        begun = time.monotonic()
        hand.run.send(Failed(hand.asks.pop().id, BackendError("503")))
        hand.go()
        if hand.waits:
            hand.run.send(Clock(begun + 50))
            hand.run.send(Woke(hand.waits.pop().id))
            hand.go()
        assert hand.asks == []
        result = hand.run.result()
        assert result.status == "exhausted"
        assert reason in str(result.problem)


def test_what_is_in_flight_when_a_step_has_spent_its_budget_is_still_taken_in() -> None:
    """The other segment's reply is booked and committed."""
    procedure = Procedure.parse("inputs: x\nt1 = x + 1\nt2 = x + 2\nt3 = t1 + t2")
    hand = start(procedure, {"x": 1}, segment=1, parallel=2, budget=Budget(per_step=Budget(calls=1)))
    assert [ids(ask) for ask in hand.asks] == [["t1"], ["t2"]]
    hand.answer({"t1": "1 + 1 = 5"})
    assert not hand.run.done
    hand.run.send(Replied(hand.asks[0].id, costs('{"t2": "1 + 2 = 3"}')))
    hand.asks.clear()
    hand.go()
    result = hand.run.result()
    assert (result.status, dict(result.values)) == ("exhausted", {"x": 1, "t2": 3})
    assert result.problem is not None
    assert result.problem.occurrence.step == "t1"
