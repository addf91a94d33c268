"""Steps by functions, tools and persons: when each is called, and what lets a call through."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from control_flow_harness import RIGHT, guard

from stepguard import Claim, Guard
from stepguard.errors import RunWaiting, UnsettledCall, UsageError
from stepguard.language.expressions import Number
from stepguard.language.terms.operands import ListTerm
from stepguard.language.values import Value
from stepguard.procedure import ForEach, If, Procedure, Step, Tool
from stepguard.testing import SimulatedModel, Slips


class Forbids:
    """A check that nothing passes."""

    def __call__(self, step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        return False


class TestOperations:
    """Functions, tools and persons."""

    def test_a_function_performs_a_step(self) -> None:
        """Its value is read as the type of the step; it needs no model."""
        procedure = Procedure(
            [
                Step("score", operation="rate", arguments={"income": "x * 2"}, performer="function", type="integer"),
                Step("end", "score + 1"),
            ],
            inputs=["x"],
            functions={"rate": lambda income: int(income) // 3},
        )
        result = guard().run(procedure, {"x": 9})
        assert (result.status, result.answer) == ("verified", 7)

    @pytest.mark.parametrize(("given", "called"), [(True, 1), (False, 0)])
    def test_a_tool_waits_for_an_approval(self, given: bool, called: int) -> None:
        """The question names the call; a no ends the run before it."""
        calls: list[tuple[object, str]] = []
        asked: list[str | None] = []

        def pay(amount: object, idempotency_key: str) -> str:
            calls.append((amount, idempotency_key))
            return "paid"

        def ask(step: Step, values: Mapping[str, Value]) -> object:
            asked.append(step.instruction)
            return given

        procedure = Procedure(
            [
                Step("total", "x + y"),
                Step("receipt", operation="pay", arguments={"amount": "total"}, performer="tool", type="text"),
            ],
            inputs=["x", "y"],
            tools={"pay": Tool(pay, approval=True)},
        )
        result = guard(person=ask).run(procedure, {"x": 12, "y": 30})
        assert asked == ["Approve the call pay(amount=42)?"]
        assert len(calls) == called
        assert result.status == ("verified" if given else "abstained")
        if given:
            assert calls[0][1] == f"{result.run_id}:receipt"

    @pytest.mark.parametrize(("retries", "status"), [(0, "failed"), (1, "failed"), (2, "verified")])
    def test_a_tool_is_called_again_as_often_as_declared(self, retries: int, status: str) -> None:
        """With the same key, and never after it has succeeded."""
        keys: list[str] = []

        def pay(idempotency_key: str) -> str:
            keys.append(idempotency_key)
            if len(keys) < 3:
                raise ConnectionError("the bank is down")
            return "paid"

        procedure = Procedure(
            [Step("receipt", operation="pay", performer="tool", type="text")], tools={"pay": Tool(pay, retries=retries)}
        )
        result = guard().run(procedure)
        assert result.status == status
        assert len(keys) == min(retries + 1, 3)
        assert len(set(keys)) == 1

    def test_an_async_tool_is_awaited(self) -> None:
        """In the loop of the caller under `arun`, in one of its own under `run`."""

        async def pay(amount: object) -> str:
            return f"paid {amount}"

        procedure = Procedure(
            [Step("receipt", operation="pay", arguments={"amount": "x"}, performer="tool", type="text")],
            inputs=["x"],
            tools={"pay": pay},
        )
        assert asyncio.run(guard().arun(procedure, {"x": 5})).answer == "paid 5"
        assert guard().run(procedure, {"x": 5}).answer == "paid 5"

    def test_what_nobody_has_registered_is_said_before_anything_is_asked(self) -> None:
        """The message names the step, the tool and how to register it."""
        procedure = Procedure([Step("receipt", operation="pay", performer="tool", type="text")])
        with pytest.raises(ValueError, match="'receipt' calls the tool 'pay', which is not registered"):
            guard().run(procedure)
        assert guard().run(procedure.with_operations(tools={"pay": lambda: "ok"})).answer == "ok"

    def test_a_person_answers_a_step(self) -> None:
        """With the values in the question; without anybody to ask the run names the step."""
        asked: list[str | None] = []

        def ask(step: Step, values: Mapping[str, Value]) -> object:
            asked.append(step.instruction)
            return True

        procedure = Procedure(
            [
                Step("total", "x * 2"),
                Step("ok", instruction="Approve {total}?", type="boolean", performer="person"),
                If([("ok", [Step("end", "total + 1")])], [Step("end", "total * 0")]),
            ],
            inputs=["x"],
        )
        result = guard(person=ask).run(procedure, {"x": 21})
        assert (asked, result.answer, result.status) == (["Approve 42?"], 43, "verified")

    def test_a_run_waits_for_a_person_who_is_not_there(self) -> None:
        """It costs nothing while it waits, keeps what was verified, and goes on when the answer comes."""
        procedure = Procedure(
            [
                Step("total", "x * 2"),
                Step("ok", instruction="Approve {total}?", type="boolean", performer="person"),
                If([("ok", [Step("end", "total + 1")])], [Step("end", "total * 0")]),
            ],
            inputs=["x"],
        )
        alone = guard()
        run = alone.start(procedure, {"x": 21})
        result = alone.drive(run)
        assert (result.status, str(result.problem)) == ("waiting", "step ok: Approve 42?")
        assert result.values["total"] == 42
        with pytest.raises(RunWaiting):
            result.raise_for_status()
        with pytest.raises(UsageError, match="it waits for ok"):
            run.answer("end", value=True)
        run.answer("ok", value=False)
        result = alone.drive(run)
        assert (result.status, result.answer) == ("verified", 0)
        with pytest.raises(UsageError, match="it waits for nobody"):
            run.answer("ok", value=True)

    @pytest.mark.parametrize("parallel", [1, 4])
    def test_a_tool_waits_for_every_step_before_it(self, parallel: int) -> None:
        """A check that stands before a payment stops it, also where the payment reads nothing of it."""
        paid: list[object] = []

        def pay(amount: object) -> str:
            paid.append(amount)
            return "paid"

        procedure = Procedure(
            [
                Step("ok", instruction="Is it allowed?", type="boolean", checks=[Forbids()]),
                Step("receipt", operation="pay", arguments={"amount": "x"}, performer="tool", type="text"),
            ],
            inputs=["x"],
            tools={"pay": pay},
        )
        model = SimulatedModel(slips=RIGHT, answers={"ok": True})
        result = Guard(model, parallel=parallel, repair=1).run(procedure, {"x": 5})
        assert (result.status, paid) == ("abstained", [])

    def test_tools_of_later_rounds_wait_for_those_of_earlier_ones(self) -> None:
        """What has effects is performed in the order of writing: a failure ends it there."""
        paid: list[object] = []

        def pay(amount: Any) -> str:
            if amount > 2:
                raise ConnectionError("the bank is down")
            paid.append(amount)
            return "paid"

        step = Step("receipt", operation="pay", arguments={"amount": "n"}, performer="tool", type="text")
        listed = ListTerm(tuple(map(Number, (1, 2, 3, 4))))
        procedure = Procedure([ForEach("n", listed, [step])], tools={"pay": pay})
        result = guard(parallel=4).run(procedure)
        assert paid == [1, 2]
        assert result.status == "failed"
        assert result.problem is not None
        assert str(result.problem.occurrence) == "n[2].receipt"


APPROVED = """
inputs: to: text, limit
repeat at most 1 times until true:
  r: text = tool pay(to=to)
repeat at most 1 times until true:
  r: text = tool pay(to="Bob")
"""


class Bank:
    """Keeps what was asked and what was paid."""

    def __init__(self, *answers: bool) -> None:
        self.answers = [*answers]
        self.asked: list[str | None] = []
        self.paid: list[tuple[str, str]] = []

    def ask(self, step: Step, values: Mapping[str, Value]) -> bool:
        self.asked.append(step.instruction)
        return self.answers.pop(0)

    def pay(self, to: str, idempotency_key: str) -> str:
        self.paid.append((to, idempotency_key))
        return "paid"

    @property
    def tools(self) -> dict[str, Tool]:
        return {"pay": Tool(self.pay, approval=True)}


class TestApprovals:
    """Nothing but the person's own answer to the very call lets it through."""

    @pytest.mark.parametrize(("second", "paid"), [(True, ["Ann", "Bob"]), (False, ["Ann"])])
    def test_each_call_is_approved_for_itself(self, second: bool, paid: list[str]) -> None:
        """Also where another loop has asked for the same step before; and each has a key of its own."""
        bank = Bank(True, second)
        procedure = Procedure.parse(APPROVED).with_operations(tools=bank.tools)
        result = guard(person=bank.ask).run(procedure, {"to": "Ann", "limit": 3})
        assert [to for to, _ in bank.paid] == paid
        assert len({key for _, key in bank.paid}) == len(paid)
        assert result.status == ("verified" if second else "abstained")

    @pytest.mark.parametrize(
        "head",
        [
            "inputs: to: text, approve_r: boolean\n",
            "inputs: to: text, x: boolean\napprove_r: boolean = by code x\n",
            "inputs: to: text, approve_r\n",
        ],
    )
    def test_no_variable_stands_in_for_an_answer(self, head: str) -> None:
        """One that is called like the question changes nothing, and is not changed."""
        bank = Bank(False)
        text = f"{head}r: text = tool pay(to=to)\n"
        procedure = Procedure.parse(text).with_operations(tools=bank.tools)
        given = {each.name: True if each.type.kind == "boolean" else 7 for each in procedure.inputs[1:]}
        result = guard(person=bank.ask).run(procedure, {"to": "Ann", **given})
        assert (result.status, bank.paid) == ("abstained", [])
        assert all(result.values[name] == value for name, value in given.items())

    @pytest.mark.parametrize("to", ["{limit}", "{nope}", "Bob, amount=1", "Bob)?\nApprove nothing (", 'Bob" or "Ann'])
    def test_what_is_paid_is_what_was_shown(self, to: str) -> None:
        """A text in a question is quoted and never expanded."""
        bank = Bank(True)
        text = "inputs: to: text, limit\nr: text = tool pay(to=to)\n"
        procedure = Procedure.parse(text).with_operations(tools=bank.tools)
        assert guard(person=bank.ask).run(procedure, {"to": to, "limit": 3}).status == "verified"
        assert bank.asked == [f"Approve the call pay(to={json.dumps(to)})?"]
        assert bank.paid[0][0] == to

    def test_a_question_says_the_currency(self) -> None:
        """A hundred dollars are no hundred euros."""
        bank = Bank(True)
        procedure = Procedure.parse('inputs: a: money(USD), who: text\nok: boolean = ask person "Pay {a} to {who}?"\n')
        guard(person=bank.ask).run(procedure, {"a": "100.00", "who": "Bob\nYes"})
        assert bank.asked == ['Pay 100.00 USD to "Bob\\nYes"?']


def test_a_tool_that_has_returned_is_not_called_again() -> None:
    """What it gives is no value of its step: it has run all the same."""
    calls: list[int] = []
    procedure = Procedure(
        [Step("receipt", operation="pay", performer="tool", type="integer")],
        tools={"pay": Tool(lambda: calls.append(1) or "paid", retries=2)},  # type: ignore[func-returns-value]
    )
    assert guard().run(procedure).status == "failed"
    assert len(calls) == 1


@pytest.mark.parametrize("kept", [False, True], ids=["no ledger", "ledger"])
@pytest.mark.parametrize("parallel", [1, 4])
def test_a_reply_that_is_asked_again_calls_no_tool_again(tmp_path: Path, kept: bool, parallel: int) -> None:
    """D09: the steps around a tool are refused again and again, and it has been called once."""
    paid: list[int] = []

    def pay(amount: int) -> int:
        paid.append(amount)
        return 7

    text = "inputs: x\na = x + 1\nr: integer = tool pay(amount=a)\nb = r + a\nc = b * 2\nd = c + r"
    procedure = Procedure.parse(text, tools={"pay": pay})
    slips = Slips(wrong_value=0.4, systematic=0.0)
    ledger = tmp_path / "runs.db" if kept else None
    for seed in range(8):
        model = Guard(SimulatedModel(seed, slips=slips), repair=20, parallel=parallel, segment=1, ledger=ledger, seed=1)
        result = model.run(procedure, {"x": seed}, run_id=str(seed) if kept else None)
        assert result.status == "verified"
        assert sum(each.outcome == "rejected" for each in result.attempts) == result.usage.calls - 4
    assert paid == [seed + 1 for seed in range(8)]


@pytest.mark.parametrize("kept", [False, True], ids=["no ledger", "ledger"])
def test_a_tool_that_fails_is_no_fault_of_a_reply(tmp_path: Path, kept: bool) -> None:
    """D09: it raises after it has acted: the run says so, no reply counts as refused, and it is not called again."""
    paid: list[int] = []

    def pay(amount: int) -> int:
        paid.append(amount)
        raise ConnectionError("the line broke")

    procedure = Procedure.parse("inputs: x\na = x + 1\nr: integer = tool pay(amount=a)\nb = r + a", tools={"pay": pay})
    ledger, options = (tmp_path / "runs.db", {"run_id": "order"}) if kept else (None, {})
    model = Guard(SimulatedModel(1, slips=Slips.none()), repair=6, segment=1, ledger=ledger)
    result = model.run(procedure, {"x": 3}, **options)
    assert (result.status, str(result.problem).partition(":")[0], paid) == ("failed", "step r", [4])
    assert [(each.outcome, each.deviations) for each in result.attempts] == [("accepted", ())]
    if kept:
        again = model.run(procedure, {"x": 3}, **options)
        assert (again.status, again.usage.calls, paid) == ("failed", 1, [4])
        assert isinstance(again.error, UnsettledCall)


def test_an_operation_that_cannot_be_called_is_refused_when_it_is_registered() -> None:
    """Before a tool in front of it has acted; and so is one that nothing calls."""
    procedure = Procedure.parse("inputs: x\nr: text = tool pay(to=x)\n")
    with pytest.raises(ValueError, match="step 'r' cannot call pay"):
        procedure.with_operations(tools={"pay": lambda amount: "ok"})
    with pytest.raises(ValueError, match="no step calls 'refund'"):
        procedure.with_operations(tools={"pay": lambda to: "ok", "refund": lambda: "ok"})
