"""What a run gives back: status, values, history, JSON."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from harness import GOOD, P2, Hand, reply
from tables import all_rows

from stepguard import Budget, Guard, Input, Procedure, Result, Step, StepguardError, audit
from stepguard.auditing import Audit
from stepguard.engine.actions import Replied
from stepguard.errors import BudgetExhausted, RunError, RunFailed, RunUnverified, StepNotVerified
from stepguard.results.view import ResultView
from stepguard.testing import ScriptedBackend

WORDS = Procedure([Step("w", instruction="Name a colour.")])


def verified() -> Result:
    return Guard(ScriptedBackend(GOOD)).run(P2)


def unverified() -> Result:
    return Guard(ScriptedBackend({"w": {"work": "", "value": "red"}})).run(WORDS)


def abstained() -> Result:
    return Guard(ScriptedBackend({"a": "2 * 3 = 6", "b": "6 + 4 = 11"}), repair=0).run(P2)


def exhausted() -> Result:
    return Guard(ScriptedBackend({"a": "2 * 3 = 6"}), segment=1, budget=Budget(calls=1)).run(P2)


def failed() -> Result:
    def broken(messages: object) -> str:
        raise OSError("no route")

    return Guard(broken).run(P2)


STATUSES: list[tuple[Callable[[], Result], str, type[RunError] | None, str]] = [
    (verified, "verified", None, ""),
    (unverified, "unverified", RunUnverified, "w"),
    (abstained, "abstained", StepNotVerified, "step b: wrong_value"),
    (exhausted, "exhausted", BudgetExhausted, "step b: the budget of 1 calls"),
    (failed, "failed", RunFailed, "step a: .*no route"),
]


@pytest.mark.parametrize("make", [each[0] for each in STATUSES], ids=[each[1] for each in STATUSES])
def test_the_json_is_as_its_schema_says(make: Callable[[], Result]) -> None:
    """Of every status, also when it is read back."""
    jsonschema = pytest.importorskip("jsonschema")
    data = json.loads(make().to_json())
    jsonschema.validate(data, Result.json_schema())
    assert ResultView.model_validate(data).model_dump() == data


def test_the_json_of_an_audit_is_as_its_schema_says() -> None:
    """With an answer, a finding and their places."""
    jsonschema = pytest.importorskip("jsonschema")
    found = audit(P2, {}, "a = 2 * 3 = 7\nb = a + 4 = 11\nAnswer: 11")
    assert found.findings
    assert found.answer is not None
    jsonschema.validate(json.loads(found.to_json()), Audit.json_schema())


@pytest.mark.parametrize(("make", "status", "error", "message"), STATUSES, ids=[each[1] for each in STATUSES])
def test_raise_for_status(make: Callable[[], Result], status: str, error: type[RunError] | None, message: str) -> None:
    """A verified result is returned; every other status raises its own error, which names the step and the result."""
    result = make()
    assert result.status == status
    assert result.verified == (status == "verified")
    if error is None:
        assert result.raise_for_status() is result
        return
    with pytest.raises(error, match=message) as caught:
        result.raise_for_status()
    assert caught.value.result is result
    assert isinstance(caught.value, StepguardError)
    if status == "failed":
        assert caught.value.__cause__ is result.error


def test_the_weakest_strength_allows_every_completed_run() -> None:
    """A completed run with unchecked steps can be let through; a run that did not complete cannot."""
    result = unverified()
    assert result.raise_for_status(at_least="unverified") is result
    with pytest.raises(StepNotVerified):
        abstained().raise_for_status(at_least="unverified")


@pytest.mark.parametrize("make", [each[0] for each in STATUSES], ids=[each[1] for each in STATUSES])
def test_every_status_has_its_books_in_order(make: Callable[[], Result]) -> None:
    """Whatever the status: an answer only where it completed, a problem only where not, every attempt in the usage."""
    result = make()
    completed = result.status in ("verified", "unverified")
    assert (result.answer is not None) == completed
    assert (result.problem is None) == completed
    assert (result.completed == result.total) == completed
    assert len(result.steps) == result.completed
    assert result.attempts
    assert [attempt.number for attempt in result.attempts] == list(range(1, len(result.attempts) + 1))
    assert sum(attempt.usage.calls for attempt in result.attempts) == result.usage.calls
    assert sum(attempt.usage.tokens for attempt in result.attempts) == result.usage.tokens
    assert all(attempt.seconds >= 0 for attempt in result.attempts)
    assert all((attempt.text is None) == (attempt.outcome == "error") for attempt in result.attempts)


@pytest.mark.parametrize("make", [each[0] for each in STATUSES], ids=[each[1] for each in STATUSES])
def test_json_of_every_status(make: Callable[[], Result]) -> None:
    """`to_json` is one line of valid JSON that says the same as the result."""
    result = make()
    text = result.to_json()
    assert "\n" not in text
    assert text.isascii()
    found = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert found["status"] == result.status
    assert found["answer"] == result.answer
    assert len(found["attempts"]) == len(result.attempts)
    assert [each["step"] for each in found["steps"]] == [record.occurrence.step for record in result.steps]
    assert found["usage"]["calls"] == result.usage.calls


def test_json_keeps_every_digit() -> None:
    """Numbers that a reader of JSON would round are text; the others are numbers; truth values stay what they are."""
    steps = [
        Step("big", "x * 10"),
        Step("third", "1 / 3"),
        Step("price", "1 / 8", type="decimal(2)"),
        Step("small", "2 + 2"),
        Step("flag", "x > 1"),
    ]
    inputs = [Input("x", "integer"), Input("note", "text")]
    procedure = Procedure(steps, inputs=inputs)
    for step in steps:
        assert step.show_work
    replies = {
        "big": f"{10**400} * 10 = {10**401}",
        "third": "1 / 3 = 1/3",
        "price": "1 / 8 = 0.13",
        "small": "2 + 2 = 4",
        "flag": f"{10**400} > 1 = true",
    }
    result = Guard(ScriptedBackend(replies)).run(procedure, {"x": 10**400, "note": "caf\u00e9 \u2028"})
    assert result.status == "verified", result.problem
    assert dict(result.values) == {
        "x": 10**400,
        "note": "caf\u00e9 \u2028",
        "big": 10**401,
        "third": Fraction(1, 3),
        "price": Decimal("0.13"),
        "small": 4,
        "flag": True,
    }
    values = json.loads(result.to_json())["values"]
    assert values == {
        "x": str(10**400),
        "note": "caf\u00e9 \u2028",
        "big": str(10**401),
        "third": "1/3",
        "price": "0.13",
        "small": 4,
        "flag": True,
    }


@pytest.mark.parametrize("text", ['{"a": "\\ud800"}', "\ud800 \x00 \x1b[2J", "\U0001f600", '{"a": "2 * 3 = \ufeff6"}'])
def test_json_of_odd_characters(text: str) -> None:
    """Lone surrogates and control characters in a reply make no invalid JSON, and nothing that cannot be written."""
    result = Guard(lambda messages: text, repair=0).run(P2)
    written = result.to_json()
    assert written.encode("ascii")
    assert json.loads(written)["attempts"][0]["text"] == text


def test_a_result_cannot_be_changed() -> None:
    """Neither the result nor what it holds can be written to."""
    result = verified()
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.status = "failed"  # type: ignore[misc]
    values: Any = result.values
    with pytest.raises(TypeError):
        values["a"] = 7
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.steps[0].value = 7  # type: ignore[misc]
    given = dict(result.values)
    made = dataclasses.replace(result, values=given)
    given["a"] = 7
    assert made.values["a"] == 6


def test_the_values_of_a_run_are_a_copy() -> None:
    """What a caller does to the values it was shown does not reach the run."""
    hand = Hand(Guard(lambda messages: "", segment=1).start(P2))
    hand.answer({"a": "2 * 3 = 6"})
    values: Any = hand.run.values
    with pytest.raises(TypeError):
        values["a"] = 7
    asked: Any = hand.asks[0].request.values
    with pytest.raises(TypeError):
        asked["a"] = 7
    hand.answer({"b": "6 + 4 = 10"})
    assert "b" not in values
    assert hand.run.result().answer == 10


@pytest.mark.parametrize("make", [each[0] for each in STATUSES], ids=[each[1] for each in STATUSES])
def test_results_and_their_errors_survive_pickling_and_copying(make: Callable[[], Result]) -> None:
    """A result, and the error it raises, can be sent to another process and copied."""
    result = make()
    for other in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result), copy.copy(result)):
        assert other == result
        assert other.to_json() == result.to_json()
        values: Any = other.values
        with pytest.raises(TypeError):
            values["a"] = 7
    if not result.verified:
        with pytest.raises(RunError) as caught:
            result.raise_for_status()
        error = pickle.loads(pickle.dumps(caught.value))
        assert type(error) is type(caught.value)
        assert error.result == result


def test_a_limited_history_keeps_the_last_and_counts_all() -> None:
    """With `history` the result holds the last steps and calls; counts, usage and values are of the whole run."""
    procedure = Procedure([Step(f"t{number}", f"{number} + 1") for number in range(10)])
    script = [{f"t{number}": f"{number} + 1 = {number + 1}"} for number in range(10)]
    result = Guard(ScriptedBackend(*script), segment=1, history=3).run(procedure)
    assert result.status == "verified"
    assert [record.occurrence.step for record in result.steps] == ["t7", "t8", "t9"]
    assert [attempt.number for attempt in result.attempts] == [8, 9, 10]
    assert (result.completed, result.usage.calls, len(result.values)) == (10, 10, 10)


def test_a_limited_history_forgets_no_unverified_step() -> None:
    """A run with an unchecked step is unverified however long ago that step was."""
    steps = [Step("w", instruction="Name a colour."), *(Step(f"t{number}", f"{number} + 1") for number in range(5))]
    script: list[dict[str, object]] = [{"w": {"work": "", "value": "red"}}]
    script += [{f"t{number}": f"{number} + 1 = {number + 1}"} for number in range(5)]
    result = Guard(ScriptedBackend(*script), segment=1, history=1).run(Procedure(steps))
    assert result.status == "unverified"
    assert result.unverified == ("w",)


def test_a_run_that_is_not_done_has_a_result_so_far() -> None:
    """Before its end a run says that it has not ended, and what it has."""
    run = Guard(lambda messages: "", segment=1).start(P2)
    hand = Hand(run)
    hand.answer({"a": "2 * 3 = 6"})
    result = run.result()
    assert result.status == "failed"
    assert str(result.problem) == "step b: the run has not ended"
    assert dict(result.values) == {"a": 6}
    assert result.answer is None
    run.send(Replied(hand.asks[0].id, reply({"b": "6 + 4 = 10"})))
    hand.go()
    assert run.result().status == "verified"


def test_white_space_around_a_reply_is_not_kept() -> None:
    """A reply that ends in endless white space is accepted and kept without it."""
    text = '{"a": "2 * 3 = 6", "b": "6 + 4 = 10"}'
    result = Guard(ScriptedBackend("\n" * 20_000 + text + " \n" * 20_000)).run(P2)
    assert (result.status, result.attempts[0].text) == ("verified", text)


def test_attempts_tell_what_happened() -> None:
    """Each call is kept with its steps, way of asking, outcome, deviations, cost, text and time."""
    backend = ScriptedBackend("nope", {"a": "2 * 3 = 6", "b": "6 + 4 = 11"}, {"b": "6 + 4 = 10"})
    result = Guard(backend).run(P2)
    told = [
        (a.number, [each.step for each in a.steps], a.rung, a.outcome, a.committed, [d.kind for d in a.deviations])
        for a in result.attempts
    ]
    assert told == [
        (1, ["a", "b"], "ask", "rejected", 0, ["malformed"]),
        (2, ["a", "b"], "resample", "partly", 1, ["wrong_value"]),
        (3, ["b"], "resample", "accepted", 1, []),
    ]
    assert result.attempts[0].text == "nope"
    assert {attempt.finish_reason for attempt in result.attempts} == {"stop"}
    a, b = result.steps
    assert (a.tries, [each.kind for each in a.deviations]) == (2, ["malformed"])
    assert (b.tries, [each.kind for each in b.deviations]) == (2, ["wrong_value"])


@all_rows(
    "make, told",
    [
        (verified, "procedure: verified, answer 10 (2 of 2 steps, 1 call)"),
        (unverified, "procedure: unverified, answer red (1 of 1 steps, 1 call)"),
        (abstained, "procedure: abstained at step b: "),
        (exhausted, "procedure: exhausted at step b: "),
        (failed, "procedure: failed at step a: "),
    ],
)
def test_the_text_of_a_result_is_one_short_line(make: Callable[[], Result], told: str) -> None:
    """What a prompt or print shows of a result is its status, answer or problem, and how far it came."""
    result = make()
    assert str(result).startswith(told)
    assert "\n" not in str(result)
    assert len(str(result)) < 300
    assert repr(result) == f"<Result {result}>"
