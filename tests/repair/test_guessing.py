"""What no way of asking a judgement again may do: let a guess through, or tell what was refused."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from evidence_harness import CLAUSE, POLICY, SIZES, FunctionModel, choice, reply, verdict

from stepguard import Guard, Ladder, Procedure, Step
from stepguard.backends import Request
from stepguard.checks import Cites
from stepguard.language.values import Value
from stepguard.procedure import Input
from stepguard.repair.rungs import Resample, another_model, person


def _guesses(seed: int, procedure: Procedure) -> tuple[bool, int, str]:
    """Whether a model that guesses at random was committed, after how many calls, and how."""
    chance = random.Random(seed)

    def guess(step: Step, request: Request) -> object:
        choices = ("true", "false") if step.type.kind == "boolean" else step.type.options
        return reply(chance.choice(choices) if choices else CLAUSE, f'"{CLAUSE}"')

    result = Guard(FunctionModel(guess), seed=seed).run(procedure, {"policy": POLICY})
    return bool(result.steps), result.usage.calls, result.attempts[-1].rung


@pytest.mark.parametrize("cited", [False, True])
def test_a_coin_is_not_tossed_until_it_falls_right(cited: bool) -> None:
    """A guessed truth value is committed as often as the first guess is right, and never later."""
    checks = [Cites("policy")] if cited else []
    decides: Any = lambda step, values, claim: values["ok"] is True  # noqa: E731
    step = Step("ok", instruction="Is it?", type="boolean", reads=["policy"], checks=[*checks, decides])
    procedure = Procedure([step], inputs=[Input("policy", "text")])
    ends = [_guesses(seed, procedure) for seed in range(60)]
    assert {end[1:] for end in ends} == {(1, "ask")}
    assert 10 < sum(end[0] for end in ends) < 50


def test_a_step_of_many_options_is_not_given_up_for_a_guess() -> None:
    """Of ten options nine are left behind a wrong one: that is no reason, and none is told, where the retries end."""
    result = Guard(FunctionModel(lambda step, request: reply("o1", "")), repair=2).run(
        choice(*(f"o{number}" for number in range(10)), right="o7"), {"policy": POLICY}
    )
    assert (result.status, result.usage.calls) == ("abstained", 3)
    assert "left" not in str(result.problem)


@pytest.mark.slow
def test_who_guesses_among_options_gains_no_more_than_the_bound() -> None:
    """Three options are had by guessing each in one case of eight, less than the one of four that is allowed."""
    ends = [_guesses(seed, choice(*SIZES, right="large")) for seed in range(400)]
    late = [end for end in ends if end[0] and end[1] > 1]
    assert {end[2] for end in late} <= {"eliminate"}
    assert len(late) < 400 * 2 / 3 / 4


@pytest.mark.parametrize("kind", ["boolean", "one_of(small, medium, large)", "one_of(a, b, c, d, e, f)"])
def test_a_model_that_turns_every_answer_is_never_committed(kind: str) -> None:
    """Whatever way it is asked in, what it says is wrong, and no wrong value is taken."""

    def turned(step: Step, request: Request) -> object:
        if step.type.kind == "boolean":
            if step.id == "ok":
                return reply("false", f'"{CLAUSE}"')
            return reply(str('"medium"' not in str(step.instruction) and '"b"' not in str(step.instruction)).lower())
        return reply(step.type.options[0] if step.type.options else CLAUSE, f'"{CLAUSE}"')

    right = {"boolean": True}.get(kind, "medium" if "medium" in kind else "b")
    procedure = verdict(kind, lambda step, values, claim: values["ok"] == right)
    result = Guard(FunctionModel(turned)).run(procedure, {"policy": POLICY})
    assert (result.status, result.steps) == ("abstained", ())


def test_no_request_depends_on_what_was_refused() -> None:
    """Whichever wrong option came first, what is asked behind it is the same to the letter."""

    def asked(first: str) -> list[str]:
        def answer(step: Step, request: Request) -> object:
            return reply(first if step.id == "size" else CLAUSE if step.type.kind == "text" else "true")

        model = FunctionModel(answer)
        assert Guard(model).run(choice(*SIZES, right="large"), {"policy": POLICY}).status == "abstained"
        return model.prompts

    small, medium = asked("small"), asked("medium")
    assert small == medium
    assert len(small) > 1


def test_somebody_else_who_errs_is_not_asked_until_it_fits() -> None:
    """A second answer of another model or a person to a yes or no would be known to be the other one."""
    step = Step("ok", instruction="Is it?", type="boolean", checks=[lambda step, values, claim: False])
    asked: list[str] = []

    def ask(step: Step, values: Mapping[str, Value]) -> object:
        asked.append(step.id)
        return True

    helper = FunctionModel(lambda step, request: reply("false"))
    model = FunctionModel(lambda step, request: reply("true"))
    ladder = Ladder([Resample(), another_model(helper, times=3), person(ask, times=3)])
    assert Guard(model, repair=ladder).run(Procedure([step])).status == "abstained"
    assert (len(model.requests), len(helper.requests), asked) == (1, 1, ["ok"])


@pytest.mark.parametrize(
    ("fields", "claim"),
    [
        ("ok: boolean", {"ok": True}),
        ("a: One\n  b: One", {"a": {"ok": True}, "b": {"ok": True}}),
        ("a: One\n  ok: one_of(x, y)", {"a": {"ok": True}, "ok": "x"}),
    ],
)
def test_a_record_of_truth_values_is_not_tossed_either(fields: str, claim: dict[str, object]) -> None:
    """A record that has few values gets no second guess, nor do its fields, which may be such records."""
    text = f'record One:\n  ok: boolean\n\nrecord R:\n  {fields}\n\nr: R = "Is it?"'
    record = Procedure.parse(text).steps[0].type
    step = Step("r", instruction="Is it?", type=record, checks=[lambda step, values, claim: False])
    model = FunctionModel(lambda step, request: reply(claim if step.id == "r" else {"ok": True}))
    assert Guard(model).run(Procedure([step])).usage.calls == len(model.requests) == 1
