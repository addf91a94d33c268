"""The guard's prompts without one of their decisions, as ``guard(without=...)`` and ``chunk(without=...)`` ask."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType

import pytest
from tables import all_rows

from stepguard.backends import Completion, Request
from stepguard.backends.recorded import RecordedBackend
from stepguard.engine.prompts import Wording
from stepguard.errors import ConfigError
from stepguard.evaluation.arms import ArmOptions, TaskOutcome, arm_named
from stepguard.evaluation.arms.wording import DECISIONS
from stepguard.evaluation.families import Arithmetic, Task
from stepguard.testing import ModelSlips, SimulatedModel, Slips, no_real_requests
from stepguard.testing.profiles import QWEN_1_5B

pytestmark = pytest.mark.once

TASK = Arithmetic().make(7, 12)


@dataclass
class Listening:
    """A simulated model that keeps what it was asked."""

    slips: Slips
    asked: list[Request] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    async def acomplete(self, request: Request) -> Completion:
        self.asked.append(request)
        completion = SimulatedModel(3, slips=self.slips).complete(request)
        self.said.append(completion.text or "")
        return completion

    @property
    def prompts(self) -> list[str]:
        return ["\n".join(f"[{each.role}] {each.content}" for each in request.messages) for request in self.asked]


def run(
    arm: str, slips: Slips | None = None, task: Task = TASK, *, prompts: Wording = "full"
) -> tuple[Listening, TaskOutcome]:
    model = Listening(slips or Slips.none())
    outcome = asyncio.run(arm_named(arm).run(task, model, ArmOptions(segment=4, prompts=prompts), lambda: task))
    return model, outcome


@all_rows("decision", DECISIONS)
@all_rows("arm", ["guard", "chunk"])
def test_a_model_that_never_slips_comes_to_the_same(arm: str, decision: str) -> None:
    """The steps, the segments and what is accepted stay; a decision that is left out changes words alone."""
    plain, as_it_is = run(arm)
    model, outcome = run(f"{arm}(without={decision})")
    assert outcome.arm == f"{arm}(without={decision})"
    assert (outcome.right, outcome.trace_right, outcome.calls) == (True, True, as_it_is.calls)
    changed = model.prompts[-1] != plain.prompts[-1]
    assert changed == (decision != "fresh_retries")  # nothing is refused here


@pytest.mark.slow
@pytest.mark.parametrize("decision", DECISIONS)
def test_a_model_that_slips_is_checked_as_ever(decision: str) -> None:
    """No wrong step is accepted, whatever the prompt lacks."""
    for seed in range(6):
        task = Arithmetic().make(seed, 12)
        _, outcome = run(f"guard(without={decision})", Slips(wrong_value=0.3, malformed=0.1), task)
        assert outcome.error is None
        assert (outcome.wrong_accepted, outcome.silent_errors) == (0, 0)


def test_each_decision_leaves_out_what_it_says() -> None:
    """The prompts lack exactly that part."""
    plain = run("guard")[0].prompts[1]
    assert "[system]" in plain
    assert plain.count("[assistant]") == 1
    assert re.search(r"\n\[user\] Values:\n.*\nSteps:\nt5 = .*   \(", plain, re.DOTALL)
    prompts = {decision: run(f"guard(without={decision})")[0].prompts[1] for decision in DECISIONS}
    assert "[system]" not in prompts["instructions"]
    assert prompts["instructions"] == plain[plain.index("[user]") :]
    assert "[assistant]" not in prompts["demonstration"]
    assert prompts["demonstration"].partition("[user]")[2] == plain.rpartition("[user]")[2]
    assert re.search(r"\n1\. t5 = .*\n2\. t6 = ", prompts["names"])
    assert '{"s1": "-14 + 36 = 22"' in prompts["names"]
    assert '{"s1": "22", "s2": "66", "s3": "-36"' in prompts["working"]
    assert prompts["operands"] == re.sub(r"   \(.*\)$", "", plain, flags=re.MULTILINE)
    assert "Values:" not in prompts["values"]
    assert "   (" in prompts["values"]
    whole = prompts["excerpt"].rpartition("[user] ")[2].partition("\n\n")[0]
    assert [line.split(" = ")[0] for line in whole.splitlines()[1:]] == [step.id for step in TASK.procedure.steps]
    assert prompts["fresh_retries"] == plain


@all_rows("arm", ["guard", "chunk"])
def test_what_brief_prompts_do_not_hold_cannot_be_left_out(arm: str) -> None:
    """The error says how they are asked that hold it."""
    model, outcome = run(f"{arm}(without=values)", prompts="brief")
    assert (outcome.status, model.asked) == ("error", [])
    assert outcome.error == "what can be left out are decisions of full prompts: give --prompts full"


def test_replies_keyed_by_place_are_asked_and_read_by_place() -> None:
    """Without names the form of the reply has places, and what comes back belongs to the steps at those places."""

    forms: list[list[str]] = []

    class ByPlace:
        async def acomplete(self, request: Request) -> Completion:
            assert request.response_model is not None
            forms.append(list(request.response_model.model_json_schema()["properties"]))
            text = SimulatedModel(slips=Slips.none()).complete(request).text or ""
            for at, step in enumerate(request.steps, 1):
                text = text.replace(f'"{step.id}":', f'"s{at}":')
            return Completion(text)

    arm = arm_named("guard(without=names)")
    outcome = asyncio.run(arm.run(TASK, ByPlace(), ArmOptions(segment=4, prompts="full"), lambda: TASK))
    assert forms[0] == ["s1", "s2", "s3", "s4"]
    assert outcome.verified
    assert outcome.right


def test_earlier_segments_stay_as_far_as_they_were_accepted() -> None:
    """Without fresh segments the conversation goes on, and holds no value that was refused."""
    model, outcome = run("guard(retries=4, without=fresh_segments)", Slips(wrong_value=0.25, systematic=0.0))
    assert outcome.verified
    last = model.asked[-1].messages
    assert len(last) > 4
    assert [each.role for each in last[1:]] == ["user", "assistant"] * (len(last) // 2 - 1) + ["user"]
    shown = "\n".join(each.content for each in last[3:-1] if each.role == "assistant")
    for step, value in TASK.truth.items():
        found = re.search(rf'"{step}": "[^"]*= (-?[0-9]+)"', shown)
        assert found is None or int(found[1]) == value


def test_a_refused_reply_stays_and_is_called_wrong() -> None:
    """Without fresh retries the model sees what it said, and that it was not accepted; never what would be right."""
    model, outcome = run("guard(retries=4, without=fresh_retries)", Slips(wrong_value=0.3, systematic=0.0))
    assert outcome.verified
    retried = [at for at, request in enumerate(model.asked) if request.attempt > 1]
    assert retried
    for at in retried:
        request = model.asked[at]
        assert model.said[at - 1] in [each.content for each in request.messages if each.role == "assistant"]
        assert f"Your entry for {request.steps[0].id} was not accepted. Answer again." in request.messages[-1].content
    firsts = [request for request in model.asked if request.attempt == 1]
    assert all("not accepted" not in each.content for request in firsts for each in request.messages)


def test_replies_keyed_by_place_are_not_stopped() -> None:
    """Whoever watches a reply looks for names in it, so that the option would do nothing."""
    with pytest.raises(ConfigError, match="leave stop_early out"):
        arm_named("guard(without=names, stop_early=true)")


@pytest.mark.parametrize("arm", ["guard(without=nothing)", "chunk(without=3)", "chunk(without=true)"])
def test_what_is_no_decision_is_refused(arm: str) -> None:
    """The error names the decisions that there are."""
    with pytest.raises(ConfigError, match=r"without is one of 'instructions', 'demonstration', .*, not"):
        arm_named(arm)


# What recorded replies to each wording came to

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


@pytest.fixture
def wording(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark that compares the wordings."""
    monkeypatch.syspath_prepend(str(RESULTS.parent))
    import wording

    return wording


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "failed"), [("qwen2.5-coder-0.5b-wording", None), ("qwen2.5-coder-1.5b-wording", "1.5b-rungs")]
)
def test_recorded_effects_are_made_again(wording: ModuleType, folder: str, failed: str | None) -> None:
    """From the recorded replies alone, the table of wordings and of retries comes out as it is written down."""
    recorded = json.loads((RESULTS / folder / "wording.json").read_text(encoding="utf-8"))
    outcomes, meta = wording.read_recording(RESULTS / folder)
    effects = wording.effects(outcomes, meta)
    assert [asdict(each) for each in effects] == [{**each, "more": tuple(each["more"])} for each in recorded["effects"]]
    steps = wording.failed_steps(outcomes, meta)
    if failed is not None:
        steps = wording.read_failed(RESULTS / f"qwen2.5-coder-{failed}" / "failed.jsonl")
    with no_real_requests():
        again = asyncio.run(wording.retry(RecordedBackend(RESULTS / folder / "retries.jsonl"), steps, 1))
    assert [asdict(each) for each in again] == recorded["retries"]


def test_a_model_slips_without_a_decision_as_much_more_as_was_seen(wording: ModuleType) -> None:
    """Odds are multiplied, a model that never slips does not begin to, and an effect of nothing changes nothing."""
    (plain, *rest) = wording.read_effects(RESULTS / "qwen2.5-coder-1.5b-wording" / "wording.json")
    assert {each.decision for each in rest} == set(DECISIONS)
    for slips in (QWEN_1_5B, ModelSlips(wrong_value=0.3, systematic=1.0)):
        assert wording.worded(slips, plain) == slips
    for effect in rest:
        assert wording.worded(Slips.none(), effect) == ModelSlips.none()
        made = wording.worded(ModelSlips(wrong_value=0.2, wrong_operand=0.5), effect)
        assert made.wrong_value / (1 - made.wrong_value) == pytest.approx(effect.odds / 4)
        assert made.wrong_operand / (1 - made.wrong_operand) == pytest.approx(effect.odds)
