"""What the rungs of the ladder cost, and where they stop: budgets, drafts, caps, the same reply again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pytest
from harness import GOOD, P2
from ladder_harness import INPUTS, MINUS, Stubborn, never
from tables import all_rows

from stepguard import Budget, Guard, Ladder, Procedure, Step, Usage
from stepguard.backends import Completion, Request, ToolCall
from stepguard.core.verdicts import Claim
from stepguard.errors import ConfigError
from stepguard.evaluation.families import Arithmetic
from stepguard.language.values import Value
from stepguard.repair.rungs import Code, Draft, Question, Resample, Rewrite, Rung, Split, another_model
from stepguard.testing import ScriptedBackend, SimulatedModel, Slips

pytestmark = pytest.mark.once


# What it costs, and what it says


@pytest.mark.parametrize(
    ("budget", "outcomes"),
    [
        (Budget(calls=2), ["rejected"]),
        (Budget(per_step=Budget(calls=2)), ["rejected"]),
        (Budget(calls=3), ["rejected", "draft", "rejected"]),
        (Budget(tokens=200), ["rejected", "draft"]),
    ],
)
def test_a_draft_is_not_asked_for_where_the_reply_made_of_it_cannot_be(budget: Budget, outcomes: list[str]) -> None:
    """It takes two calls; other limits hold between them, too, and the draft is kept."""
    spent = Usage(calls=1, input_tokens=100)
    model = ScriptedBackend(*(Completion(text, usage=spent) for text in ('{"t1": "-96 - (-106) = 11"}', "9", "{}")))
    result = Guard(model, segment=1, repair=Ladder([Draft()]), budget=budget).run(MINUS, INPUTS)
    assert [attempt.outcome for attempt in result.attempts] == outcomes
    assert result.status == ("abstained" if len(outcomes) > 2 else "exhausted")


DRAFTS: list[tuple[Completion, str]] = [
    (Completion("  "), "empty"),
    (Completion("First, -96", finish_reason="length"), "truncated"),
    (Completion(None, refusal="no"), "refused"),
    (Completion("", finish_reason="content_filter"), "refused"),
]


@pytest.mark.parametrize(("draft", "kind"), DRAFTS)
def test_a_draft_that_is_none_is_not_used(draft: Completion, kind: str) -> None:
    """Working that is empty, cut off or declined is no ground for a reply."""
    model = ScriptedBackend({"t1": "-96 - (-106) = 11"}, *[draft] * 6)
    result = Guard(model, segment=1, repair=Ladder([Draft()])).run(MINUS, INPUTS)
    assert result.status == "abstained"
    assert next(each.kind for attempt in result.attempts[1:] for each in attempt.deviations) == kind
    assert all(request.reply_format is None for request in model.requests[1:])


@pytest.mark.parametrize(
    ("first", "drafts", "status"), [(Draft(), ["106 less 96 is"], "verified"), (Resample(), [], "abstained")]
)
def test_small_steps_are_asked_where_nothing_but_a_draft_ran_on(first: Rung, drafts: list[str], status: str) -> None:
    """Replies that run on behind the model's own text say nothing of small steps; those to the step itself do."""
    ran_on = Completion('{"t1": "' + "106 - 96 " * 60, finish_reason="length")
    replies = {"p1": "106 - 90 = 16", "t1": "16 - 6 = 10"}, {"t2": "10 * 3 = 30"}
    model = ScriptedBackend({"t1": "-96 - (-106) = 11"}, *drafts, ran_on, *replies)
    result = Guard(model, segment=1, repair=Ladder([first, Split()])).run(MINUS, INPUTS)
    assert result.status == status
    assert any(attempt.rung == "split" for attempt in result.attempts) == (status == "verified")


def test_the_working_of_a_draft_need_not_be_shown_again() -> None:
    """The value decides, with or without an end of the working beside it."""
    wrong, draft = {"t1": "-96 - (-106) = 11"}, "-96 + 106 is 10"
    for reply, status in (("10", "verified"), ("106 - 96 = 10", "verified"), ("11", "abstained")):
        model = ScriptedBackend(wrong, draft, {"t1": reply}, {"t2": "10 * 3 = 30"})
        assert Guard(model, segment=1, repair=Ladder([Draft()])).run(MINUS, INPUTS).status == status


@all_rows("condition", ["", "if base > 1%:\n  "])
@all_rows("reply, calls", [("0.5", 1), ("50%", 1), ("0.5%", 2), ("50", 2)])
def test_a_percentage_is_asked_as_a_number(condition: str, reply: str, calls: int) -> None:
    """``1 - 0.3 = 0.7%`` is what models write for it whenever they are asked for a percentage; it stays a wrong one."""
    text = f"inputs:\n  base: percent\n\n{condition}t: percent = base - 0.3\n"
    text += "else:\n  t: percent = base\nanswer: t\n" if condition else ""
    model = ScriptedBackend({"t": f"0.8 - 0.3 = {reply}"}, *[{"t": "0.8 - 0.3 = 0.5"}] * (calls - 1))
    with model:
        result = Guard(model).run(Procedure.parse(text), {"base": "80%"})
    assert (result.status, result.answer, result.usage.calls) == ("verified", Decimal("0.5"), calls)
    assert "percentage" not in model.requests[0].messages[-1].content
    assert result.steps[0].assistance == "none"


def test_a_draft_may_hold_anything() -> None:
    """Lone surrogates, control characters and endless working make the next request neither fail nor grow."""
    for draft in ("\ud800 is it", "x" * 100_000, "<think>hm</think>ten\x00"):
        model = ScriptedBackend({"t1": "-96 - (-106) = 11"}, draft, {"t1": "-96 - (-106) = 10"}, {"t2": "10 * 3 = 30"})
        with model:
            assert Guard(model, segment=1, repair=Ladder([Draft()])).run(MINUS, INPUTS).verified
        text = model.requests[2].messages[-1].content
        text.encode()
        assert len(text) < 5_000
        assert "<think>" not in text


def test_a_stand_in_that_fails_is_told_once() -> None:
    """What is wrong with a part is told as a deviation of the step, once, and nothing of it is taken."""
    with ScriptedBackend({"t1": "-96 - (-106) = 11"}, {"p1": "106 - 90 = 15", "t1": "15 - 6 = 9"}) as model:
        result = Guard(model, segment=1, repair=Ladder([Split()])).run(MINUS, INPUTS)
    assert result.status == "abstained"
    assert [(each.step, each.kind) for each in result.attempts[1].deviations] == [("t1", "wrong_value")]
    assert "p1" in result.attempts[1].deviations[0].reason


def test_a_wrong_part_cannot_make_a_right_step() -> None:
    """The parts are checked one by one: two errors that cancel are two errors."""
    with ScriptedBackend({"t1": "-96 - (-106) = 11"}, {"p1": "106 - 90 = 15", "t1": "15 - 6 = 10"}) as model:
        result = Guard(model, segment=1, repair=Ladder([Split()])).run(MINUS, INPUTS)
    assert result.status == "abstained"


def test_checks_of_yours_judge_what_a_stand_in_leads_to() -> None:
    """A check on the step is asked about its value, whichever way that was had."""
    seen: list[Value] = []

    def below(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        seen.append(values["t1"])
        return len(seen) > 2

    procedure = Procedure([Step("t1", "x - y", checks=[below])], inputs=["x", "y"])
    model = Stubborn(lambda request: True)
    result = Guard(model, repair=Ladder([Rewrite(), Split()])).run(procedure, INPUTS)
    assert result.verified
    assert seen == [10, 10, 10]
    assert result.steps[0].assistance == "split"


def test_an_observing_run_is_not_assisted() -> None:
    """It takes claims as they stand; a ladder that would help is refused when the guard is made."""
    with pytest.raises(ConfigError, match="observing"):
        Guard(Stubborn(never), observe=True, repair=Ladder())
    result = Guard(Stubborn(never), segment=1, observe=True).run(MINUS, INPUTS)
    assert (result.status, result.answer, result.assisted) == ("unverified", 33, {})


def test_a_run_says_where_the_form_costs_more_than_the_content() -> None:
    """A model that cannot keep to the form is told apart from one that is wrong."""
    procedure = Procedure.parse("a = 1 + 1\nb = a + 1\nc = b + 1")
    entries = {"a": "1 + 1 = 2", "b": "2 + 1 = 3", "c": "3 + 1 = 4"}
    replies: list[str | Mapping[str, object]] = []
    for name, entry in entries.items():
        replies += ["no JSON at all", {name: entry}]
    with ScriptedBackend(*replies) as model:
        result = Guard(model, segment=1).run(procedure)
    assert result.verified
    assert len(result.notes) == 1
    assert "malformed 3" in result.notes[0]
    assert "3 of 6 replies" in result.notes[0]
    assert Guard(SimulatedModel(slips=Slips.none())).run(procedure).notes == ()


def test_a_reply_that_was_cut_off_is_asked_again_in_the_same_way() -> None:
    """A question, a stand-in and another model get a higher cap where theirs was too low; none changes the segments."""
    cut = Completion('{"t1": "-96', finish_reason="length")
    for rung in (Question(), Rewrite(), another_model(ScriptedBackend(cut, {"t1": "-96 - (-106) = 10"}))):
        own: list[Completion | Mapping[str, object]] = [{"t1": "-96 - (-106) = 11"}]
        if rung.backend is None:
            own += [cut, {"t1": "106 - 96 = 10"}]
        model = ScriptedBackend(*own, {"t2": "10 * 3 = 30"})
        result = Guard(model, segment=1, repair=Ladder([rung])).run(MINUS, INPUTS)
        assert result.verified
        assert [attempt.rung for attempt in result.attempts] == ["ask", rung.name, rung.name, "ask"]


def test_a_reply_that_never_ends_is_asked_for_in_other_ways() -> None:
    """After two higher caps the ladder goes on: sampled, a model that loops may come to an end."""

    class Looping(Stubborn):
        def complete(self, request: Request) -> Completion:
            self.requests.append(request)
            if not request.temperature:
                return Completion('{"t1": "1 1 1 1', finish_reason="length")
            return self.right.complete(request)

    model = Looping(never)
    result = Guard(model, segment=1).run(Procedure.parse("inputs: x, y\nt1 = x - y"), INPUTS)
    assert result.verified
    assert [attempt.rung for attempt in result.attempts] == ["ask", "longer", "longer", "resample"]


def test_a_cap_is_not_raised_for_ever() -> None:
    """However many replies are cut off in a run, none is allowed more than sixteen times what it may take at first."""
    right = SimulatedModel(slips=Slips.none())
    caps: list[int] = []
    seen = 0

    class Cutting:
        def complete(self, request: Request) -> Completion:
            nonlocal seen
            seen += 1
            caps.append(request.max_tokens or 0)
            return Completion("{", finish_reason="length") if seen % 4 == 0 else right.complete(request)

    task = Arithmetic().make(1, 60)
    assert Guard(Cutting(), segment=4).run(task.procedure, task.inputs).verified
    assert max(caps) <= 16 * (64 + 96 * 4)


# The same reply again and again


WRONG_TOOL = Completion(None, "tool_calls", tool_calls=(ToolCall("final_answer", '{"a": "2 * 3 = 6"}'),))


@all_rows("said", [WRONG_TOOL, "I would rather talk about it.", {"answer": 10}, {"a": None}])
@all_rows("segment", [1, 2])
def test_the_same_reply_that_cannot_be_read_ends_the_climb(said: Any, segment: int) -> None:
    """What comes back in three ways of asking, word for word, is not asked for in the others."""
    with ScriptedBackend(*[said] * 3) as model:
        result = Guard(model, segment=segment).run(P2)
    assert (result.status, result.usage.calls) == ("abstained", 3)


@pytest.mark.parametrize("said", [lambda at: f"I would rather talk: {at}", lambda at: {"a": f"2 * 3 = {at}"}])
def test_replies_that_differ_climb_to_the_end(said: Callable[[int], object]) -> None:
    """Replies that cannot be read but differ, and wrong values, use the rungs that there are."""
    replies: Any = [said(7 + at % 2) for at in range(40)]
    result = Guard(ScriptedBackend(*replies), segment=1).run(P2)
    assert result.status == "abstained"
    assert result.usage.calls > 6


def test_behind_the_same_reply_others_are_asked() -> None:
    """A model that is deaf to every way of asking does not keep code from answering."""
    rungs = [Resample(), Question(), Draft(), Code()]
    result = Guard(ScriptedBackend(*["no"] * 3, GOOD), segment=2, repair=Ladder(rungs)).run(P2)
    assert result.attempts[2].rung == "question"
    assert result.values["a"] == 6
    assert result.assisted["code"] >= 1
