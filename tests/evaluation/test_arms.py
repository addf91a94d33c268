"""The arms of the benchmark: what each asks, what it vouches for, and how its outcomes are counted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tables import all_rows

from stepguard import Budget
from stepguard.backends.base import Completion, Request
from stepguard.cli import main
from stepguard.errors import BackendError, ConfigError
from stepguard.evaluation.arms import ARMS, ArmOptions, TaskOutcome, arm_named, kind_of
from stepguard.evaluation.families import Arithmetic, RunningSum, Task, family_named
from stepguard.evaluation.report.probes import conditioning, make_probes
from stepguard.evaluation.report.results_file import make_results
from stepguard.evaluation.runner import SimulatedTasks
from stepguard.evaluation.statistics import wilson
from stepguard.language.values import to_exact
from stepguard.testing import SimulatedModel, Slips

pytestmark = pytest.mark.once

FAMILY = Arithmetic()
TASK = FAMILY.make(1, 8)
NEVER = Slips.none()


class Talking:
    """A model whose replies a function makes; it keeps what it was asked."""

    name = "talking"

    def __init__(self, reply: Callable[[Request], str]) -> None:
        self.asked: list[Request] = []
        self._reply = reply

    def complete(self, request: Request) -> Completion:
        self.asked.append(request)
        return Completion(self._reply(request))


def run(arm: str, model: Any, task: Task = TASK, *, other: Task | None = None, **options: Any) -> TaskOutcome:
    made = ArmOptions(**{"segment": 4, **options})
    return asyncio.run(arm_named(arm).run(task, model, made, lambda: other or FAMILY.make(2, len(task.procedure))))


def lines(task: Task, **wrong: int) -> str:
    """A transcript of a task, some of its values wrong by so much, and everything after them following from them."""
    state = {name: int(to_exact(value)) for name, value in task.inputs.items()}
    rows = []
    for step in task.procedure.steps:
        assert step.formula is not None
        left, sign, right = (state.get(part, part) for part in step.formula.split())
        value = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}[str(sign)](int(left), int(right))
        state[step.id] = value + wrong.get(step.id, 0)
        rows.append(f"{step.id} = {step.formula} = {left} {sign} ({right}) = {state[step.id]}")
    return "\n".join([*rows, f"Answer: {state[task.procedure.answer]}"])


# Names and kinds


def test_an_arm_is_called_with_its_knobs() -> None:
    """The name of an arm, knobs included, means that arm."""
    for name in [*ARMS, "resample(k=3)", "guard(segment=2, checker=range)", "primed(rate=0.5, guarded=true)"]:
        assert arm_named(name).name == name
        assert arm_named(arm_named(name).name) == arm_named(name)


def test_what_an_arm_is_compared_as() -> None:
    """Only arms that ask a model and vouch for nothing are rivals of the guard."""
    unguarded = ["direct", "cot", "trace", "resample(k=3)", "chunk", "blind"]
    assert {kind_of(each) for each in unguarded} == {"unguarded"}
    assert [kind_of(each) for each in ("guard(checker=range)", "resample(checked=true)")] == ["guarded"] * 2
    assert [kind_of(each) for each in ("offload", "guess", "primed(rate=0.5)")] == ["by code", "floor", "probe"]


# One call


def test_direct_asks_for_nothing_but_the_answer() -> None:
    """The demonstration shows an answer line alone, and no step is judged."""
    model = Talking(lambda request: f"Answer: {TASK.answer}")
    outcome = run("direct", model)
    assert model.asked[0].messages[2].content == TASK.demonstration.answer.splitlines()[-1]
    assert (outcome.right, outcome.trace_right, outcome.judged, outcome.deviations) == (True, False, 0, {})
    assert run("direct", Talking(lambda request: str(TASK.answer))).right


def test_a_trace_is_one_structured_reply() -> None:
    """All steps are asked in one call with a schema, with the working of the free transcript, and read by name."""
    text = json.dumps(dict(line.split(" = ", 1) for line in lines(TASK).splitlines()[:-1]))
    model = Talking(lambda request: text)
    outcome = run("trace", model)
    (request,) = model.asked
    assert request.response_model is not None
    assert list(request.response_model.model_json_schema()["required"]) == list(TASK.truth)
    assert list(json.loads(request.messages[2].content)) == ["s1", "s2", "s3", "s4", "s5", "s6"]
    assert (outcome.right, outcome.trace_right, outcome.steps_right, outcome.prefix) == (True, True, 8, 8)


def test_slips_are_told_from_what_follows_from_them() -> None:
    """A transcript with one wrong step has one slip, and as many right steps as are right."""
    outcome = run("cot", Talking(lambda request: lines(TASK, t3=1)))
    assert (outcome.slips, outcome.misdone, outcome.prefix) == (1, 1, 2)
    assert outcome.steps_right < 8
    assert outcome.deviations["wrong_value"] == 1
    assert not outcome.right


def test_a_cut_transcript_is_counted_apart() -> None:
    """A reply that the token limit cut is truncated, one without an answer line has no answer, a wrong one neither."""
    cut = replace(Completion("\n".join(lines(TASK).splitlines()[:3])), finish_reason="length")

    class Cut:
        def complete(self, request: Request) -> Completion:
            return cut

    assert run("cot", Cut()).status == "truncated"
    without = run("cot", Talking(lambda request: lines(TASK).rpartition("\n")[0]))
    assert (without.status, without.right, without.right_lenient) == ("no_answer", False, True)
    assert run("cot", Talking(lambda request: lines(TASK, t8=1))).status == "completed"


# Several chains


def test_the_answer_of_most_chains_counts() -> None:
    """The first chain is greedy, the others are drawn with seeds of their own; a majority decides."""
    given = [lines(TASK, t8=5), lines(TASK), lines(TASK, t8=7), lines(TASK)]
    model = Talking(lambda request: given[len(model.asked) - 1])
    outcome = run("resample(k=4)", model)
    assert outcome.right
    assert outcome.calls == 4
    assert [request.temperature for request in model.asked] == [0.0, 0.8, 0.8, 0.8]
    assert len({request.seed for request in model.asked[1:]}) == 3
    first = [lines(TASK, t8=5), lines(TASK)]
    tied = Talking(lambda request: first[len(tied.asked) - 1])
    assert not run("resample(k=2)", tied).right


def test_checked_chains_are_taken_or_abstained_from() -> None:
    """With the checker the first chain that is right throughout is vouched for; without such it abstains."""
    given = [lines(TASK, t3=5), lines(TASK), lines(TASK)]
    model = Talking(lambda request: given[len(model.asked) - 1])
    outcome = run("resample(k=3, checked=true)", model)
    assert (outcome.right, outcome.verified, outcome.silent_errors, outcome.calls) == (True, True, 0, 2)
    outcome = run("resample(k=3, checked=true)", Talking(lambda request: lines(TASK, t3=5)))
    assert (outcome.right, outcome.verified, outcome.abstained, outcome.calls) == (False, False, True, 3)


# By code


def test_offload_asks_nobody() -> None:
    """An interpreter gets everything right without a call, and has nothing to interpret where words describe a step."""
    model = Talking(lambda request: "")
    outcome = run("offload", model)
    assert (outcome.right, outcome.trace_right, outcome.calls, model.asked) == (True, True, 0, [])
    task = family_named("returns_desk").make(0, 8)
    assert run("offload", model, task).status == "abstained"


@pytest.mark.parametrize("form", ["formula", "sentence"])
def test_a_program_is_written_by_the_model_and_run_by_code(form: str) -> None:
    """Formulas that are right give right values, also where the steps are asked in English."""
    task = family_named(f"arithmetic(form={form})").make(1, 8)
    formulas = "\n".join(f"{step.id} = {step.formula}" for step in TASK.procedure.steps)
    model = Talking(lambda request: f"```\n{formulas}\n```")
    outcome = run("program", model, task)
    assert (outcome.right, outcome.trace_right, outcome.calls) == (True, True, 1)
    assert model.asked[0].messages[2].content.splitlines()[0].split(" = ")[0] in ("s1", "t1")
    assert "=" in model.asked[0].messages[2].content


@all_rows("reply", ["I cannot.", "t1 = x +", "t1 = __import__('os')", "", "t1 = x"])
def test_a_program_that_cannot_be_run_is_no_answer(reply: str) -> None:
    """Nothing of it is executed or guessed; the run has no answer and says why."""
    outcome = run("program", Talking(lambda request: reply))
    assert (outcome.right, outcome.status) == (False, "no_answer")
    assert outcome.stopped_at


def test_a_family_without_formulas_has_no_program() -> None:
    """Where the demonstration has no formulas the model is not asked."""
    model = Talking(lambda request: "")
    assert run("program", model, family_named("word_lists").make(0, 5)).abstained
    assert model.asked == []


# Less than the guard


def test_blind_retries_where_the_guard_did_on_another_instance() -> None:
    """It makes the calls that the guard made there, wherever its own errors are, and vouches for nothing."""
    other = FAMILY.make(2, 8)
    slipping = SimulatedModel(4, slips=replace(NEVER, wrong_value=0.3, systematic=0.0))
    guarded = run("guard(retries=4)", slipping, other)
    outcome = run("blind", slipping, other=other)
    assert outcome.calls == guarded.calls > 2
    assert (outcome.verified, outcome.abstained, outcome.silent_errors) == (False, False, 0)
    assert run("blind", SimulatedModel(slips=NEVER)).calls == run("guard", SimulatedModel(slips=NEVER)).calls


def slipping(arm: str, n: int = 60, **slips: float) -> list[TaskOutcome]:
    model = SimulatedModel(1, slips=replace(NEVER, **slips))
    return [run(arm, model, FAMILY.make(seed, 8)) for seed in range(n)]


def test_an_adaptive_guard_chooses_the_length_of_its_segments() -> None:
    """Where nothing goes wrong it asks longer segments than the fixed ones, and tells so by its name."""
    task = FAMILY.make(1, 20)
    fixed, chosen = (run(arm, SimulatedModel(slips=Slips.none()), task) for arm in ("guard", "guard(adaptive=true)"))
    assert (fixed.calls, chosen.calls, chosen.arm, chosen.verified) == (5, 1, "guard(adaptive=true)", True)
    for arm, named in [("guard(adaptive=1)", "adaptive is true"), ("guard(adaptive=true, segment=2)", "segment out")]:
        with pytest.raises(ConfigError, match=named):
            arm_named(arm)


@pytest.mark.parametrize("arm", ["guard", "guard(checker=operands)"])
def test_guarded_arms_take_the_options_of_a_guard(arm: str) -> None:
    """A budget stops them, and an observer is notified, whoever judges their claims."""
    performed: list[str] = []
    outcome = run(
        arm,
        SimulatedModel(slips=Slips.none()),
        budget=Budget(calls=1),
        observer=lambda action, event: performed.append(type(action).__name__),
    )
    assert (outcome.status, outcome.calls, outcome.steps_right) == ("exhausted", 1, 4)
    assert performed == ["Ask", "CheckClaims", "Commit"]


@pytest.mark.slow
def test_the_full_checker_lets_nothing_pass() -> None:
    """The guard's wrong claims are counted by the truth, and none of them is accepted."""
    found = slipping("guard", wrong_value=0.2)
    assert sum(each.wrong_claims for each in found) > 50
    assert sum(each.wrong_accepted for each in found) == 0
    assert sum(each.silent_errors for each in found) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("knows", "slip"), [("operands", "wrong_operand"), ("range", ""), ("residue", "wrong_value")])
def test_a_limited_checker_catches_what_it_knows(knows: str, slip: str) -> None:
    """Each catches its own kind of error and lets others pass in silence, which the truth counts."""
    found = slipping(f"guard(checker={knows})", wrong_value=0.2)
    (row,) = make_probes(found)["checkers"]
    assert row["wrong_claims"] > 50
    assert row["silent_errors"] > 0 or knows == "residue"
    low, high = {"operands": (0.0, 0.0), "range": (0.0, 0.5), "residue": (0.7, 1.0)}[knows]
    assert low <= row["catch"] <= high
    if slip == "wrong_operand":
        caught = slipping("guard(checker=operands)", wrong_operand=0.2)
        assert sum(each.wrong_claims for each in caught) > 20
        assert sum(each.wrong_accepted for each in caught) == 0


@pytest.mark.slow
def test_a_noisy_checker_misses_as_often_as_it_is_said_to() -> None:
    """The share of wrong claims that it catches is its catch rate, and predicts its silent errors."""
    (row,) = make_probes(slipping("guard(checker=noisy, catch=0.5)", 120, wrong_value=0.1))["checkers"]
    assert 0.35 <= row["catch"] <= 0.65
    low, high = row["silent_interval"]
    assert low <= row["predicted_silent_errors"] <= high


# The floor


@pytest.mark.slow
@pytest.mark.parametrize("arm", ["guess", "copy"])
def test_a_model_that_knows_nothing_gets_nowhere(arm: str) -> None:
    """Neither guessing nor copying finishes a program, nothing wrong is vouched for, and no real model is asked."""
    model = Talking(lambda request: pytest.fail("the model was asked"))
    found = [run(arm, model, FAMILY.make(seed, 8)) for seed in range(8)]
    assert not any(each.right or each.verified or each.silent_errors for each in found)
    desk = [run(arm, model, family_named("returns_desk").make(seed, 16)) for seed in range(4)]
    assert not any(each.right or each.silent_errors for each in desk)


# Probes


def test_planted_errors_stand_in_the_context() -> None:
    """The first half is the model's own earlier turn, wrong at the rate; only the second half is judged."""
    model = Talking(lambda request: "")
    for rate, wrong in ((0.0, 0), (1.0, 4)):
        outcome = run(f"primed(rate={rate:g})" if rate else "primed", model)
        turn = next(each.content for each in model.asked[-1].messages[::-1] if each.role == "assistant")
        claimed = dict(line.split(" = ", 1) for line in turn.splitlines())
        values = {name: int(rest.rsplit(" = ", 1)[-1]) for name, rest in claimed.items()}
        assert list(values) == ["t1", "t2", "t3", "t4"]
        slips = run("cot", Talking(lambda request, turn=turn: turn)).slips  # type: ignore[misc]
        assert slips == wrong
        assert (outcome.judged, outcome.steps_right) == (4, 0)


def primed(rate: float, *, guarded: bool, dependence: float) -> list[TaskOutcome]:
    """Outcomes on a model that slips the more often the more wrong values stand in its context."""
    name = f"primed(rate={rate:g}, guarded={str(guarded).lower()})"
    found = []
    for seed in range(40):
        task = FAMILY.make(seed, 12)
        honest = SimulatedTasks(slips=NEVER).for_task(task)
        poor = SimulatedTasks(slips=replace(NEVER, wrong_value=dependence, systematic=0.0)).for_task(task)

        def reply(request: Request, task: Task = task, honest: Any = honest, poor: Any = poor) -> str:
            said = "\n".join(each.content for each in request.messages if each.role == "assistant")
            wrong = any(f"{name} = " in said for name in task.truth) and rate > 0
            return str((poor if wrong else honest).complete(request).text)

        found.append(run(name, Talking(reply), task))
    return found


@pytest.mark.slow
def test_self_conditioning_is_a_slope() -> None:
    """Step accuracy falls with the rate of planted errors without the guard, and does not with it."""
    outcomes = [
        each
        for guarded in (False, True)
        for rate in (0.0, 0.5)
        for each in primed(rate, guarded=guarded, dependence=0.3)
    ]
    plain, guarded = conditioning(outcomes)
    assert (plain["guarded"], guarded["guarded"]) == (False, True)
    assert plain["slope"] is not None
    assert plain["slope_interval"] is not None
    assert plain["slope_interval"][0] < plain["slope"] < plain["slope_interval"][1] < 0
    assert guarded["slope"] == 0


def test_knowing_is_told_from_doing() -> None:
    """A wrong result of the right working is one that the model knew how to do; a wrong operand is not."""
    wrong = lines(TASK).replace("t1 = ", "t1 = ", 1).splitlines()
    wrong[0] = f"t1 = {TASK.procedure.steps[0].formula} = 1 + 1 = 2"
    outcomes = [
        run("cot", Talking(lambda request: lines(TASK, t3=1))),
        replace(run("cot", Talking(lambda request: "\n".join(wrong))), seed=9),
    ]
    (row,) = make_probes(outcomes)["knowing"]
    assert row["misdone"] == 1
    assert row["slips"] >= 2


def test_a_running_sum_has_a_program() -> None:
    """Families of formulas demonstrate their program without anything of their own."""
    assert RunningSum().make(0, 3).demonstration.program is not None


# What makes a run repeatable


def test_the_models_that_answered_are_kept() -> None:
    """An endpoint that changes its model or its serving system on the way is told by the outcome."""

    class Changing:
        count = 0

        def complete(self, request: Request) -> Completion:
            self.count += 1
            made = SimulatedModel(slips=NEVER).complete(request)
            return replace(made, model="m-2026", fingerprint=f"fp_{self.count}")

    assert run("guard", Changing()).served_by == ("m-2026 fp_1", "m-2026 fp_2")
    assert run("cot", Changing()).served_by == ("m-2026 fp_1",)
    assert run("guess", Changing()).served_by == ()


def test_step_accuracy_has_an_interval_over_programs() -> None:
    """Steps of one program are not counted as independent: its interval is wider than that of so many steps alone."""
    whole = run("cot", Talking(lambda request: lines(TASK)))
    broken = run("cot", Talking(lambda request: lines(TASK, t1=1)))
    outcomes = [replace(whole if seed % 2 else broken, seed=seed) for seed in range(20)]
    (row,) = make_results(outcomes, {})["rows"]
    right = sum(each.steps_right for each in outcomes)
    low, high = wilson(right, 160)
    assert row["step_accuracy"] == right / 160
    assert row["step_interval"][0] < low < high < row["step_interval"][1]


def test_the_bench_command_runs_every_arm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All arms but `authors` stand in one run; probes stand apart from the table, and have a section of the report."""
    arms = [name for name in ARMS if name not in ("program", "authors", "primed")]
    arms += ["primed", "primed(rate=0.5)", "guard(checker=noisy, catch=0.5)"]
    command = ["bench", "--lengths", "6", "-n", "2", "--segment", "3", "--out", str(tmp_path), "--arms", ",".join(arms)]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "self-conditioning at 6 steps without the guard" in printed
    assert "primed" not in printed.split("Wilson")[0]
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert {row["arm"] for row in results["rows"]} == {arm_named(each).name for each in arms}
    assert {pair["baseline"] for pair in results["paired"]}.isdisjoint({"offload", "guess", "copy", "primed"})
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    for title in ("What the checker lets pass", "Self-conditioning", "The floor"):
        assert title in report


# One rule for all


def test_a_reply_that_was_cut_off_gets_more_room() -> None:
    """As in the guard, a cut reply is asked again with twice the limit; one that already has every step is not."""
    asked: list[int | None] = []

    class Short:
        def complete(self, request: Request) -> Completion:
            asked.append(request.max_tokens)
            text = lines(TASK)
            if len(asked) < 3:
                return Completion("\n".join(text.splitlines()[:3]), finish_reason="length")
            return Completion(text)

    outcome = run("cot", Short())
    assert (outcome.right, outcome.status, outcome.calls) == (True, "completed", 3)
    assert asked[0] is not None
    assert asked == [asked[0], 2 * asked[0], 4 * asked[0]]
    babble = replace(Completion(lines(TASK).rpartition("\n")[0] + "\nt9 = t8 + "), finish_reason="length")
    babbling = Talking(lambda request: "")
    babbling.complete = lambda request: babbling.asked.append(request) or babble  # type: ignore[method-assign, func-returns-value]
    outcome = run("cot", babbling)
    assert (outcome.calls, outcome.status, outcome.right, outcome.right_lenient) == (1, "truncated", False, True)


def test_a_chain_that_failed_makes_an_error_of_the_run() -> None:
    """With fewer chains it would be another arm: the run is an error, which a resumed benchmark tries again."""

    class Failing:
        count = 0

        def complete(self, request: Request) -> Completion:
            self.count += 1
            if self.count == 2:
                raise BackendError("no", retryable=False)
            return Completion(lines(TASK))

    outcome = run("resample(k=3)", Failing())
    assert outcome.status == "error"
    assert outcome.error is not None


def test_blind_meets_every_kind_of_slip_among_refused_values() -> None:
    """What its schedule refuses and what cannot be read come at the same steps, and end no run by an error."""
    model = SimulatedModel(slips=Slips.all(0.05))
    outcomes = [run("blind", model, FAMILY.make(seed, 12), other=FAMILY.make(seed + 1, 12)) for seed in range(12)]
    assert {outcome.error for outcome in outcomes} == {None}


def test_blind_is_bounded_as_the_guard_is() -> None:
    """What cannot be read is asked again as often as the guard does, and a neighbour that failed is an error."""
    broken = Talking(lambda request: "no JSON")
    guarded = run("guard(retries=4)", broken)
    calls = len(broken.asked)
    outcome = run("blind", broken)
    assert outcome.calls == guarded.calls == calls
    assert outcome.abstained

    class Dead:
        def complete(self, request: Request) -> Completion:
            raise BackendError("no", retryable=False)

    outcome = run("blind", Dead())
    assert outcome.error is not None
    assert "other instance" in outcome.error


def test_no_answer_costs_no_arm_a_wrong_one() -> None:
    """The score takes off wrong answers, not abstentions and not answers that are missing, in whatever arm."""
    silent = run("cot", Talking(lambda request: "I do not know."))
    abstained = run("guard", Talking(lambda request: "I do not know."))
    wrong = run("cot", Talking(lambda request: lines(TASK, t8=1)))
    for outcome, score in ((silent, 0.0), (abstained, 0.0), (wrong, -4.0)):
        (row,) = make_results([outcome], {})["rows"]
        assert row["scores"]["lambda_4"] == score


def test_a_wrong_value_without_working_shows_no_knowledge() -> None:
    """A slip counts as known but misdone only where its line works with the right operands."""
    bare = "\n".join(f"{name} = {value}" for name, value in {**TASK.truth, "t3": 7}.items())
    outcome = run("cot", Talking(lambda request: bare))
    assert outcome.slips > 0
    assert outcome.misdone == 0
