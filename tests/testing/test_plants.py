"""Planted failures: each is found as what it is, where it was planted, as often as it was planted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, get_args

import pytest
from harness import P2
from tables import all_rows

from stepguard import Guard, Procedure, Result, RetryPolicy, Step, Verdict
from stepguard.backends import Message, Request
from stepguard.core.verdicts import Claim, Deviation, DeviationKind
from stepguard.errors import BackendError, BackendRejected, BackendTimeout, ConfigError, RateLimited
from stepguard.language.values import Value
from stepguard.replies.formats import EquationFormat
from stepguard.testing import Plant, SimulatedModel, Slips

KINDS: tuple[DeviationKind, ...] = tuple(kind for kind in get_args(DeviationKind) if kind != "undecided")
SURPLUS = ("extra_step", "premature_answer", "wrong_order")
WHOLE = ("truncated", "empty", "refused", "wrong_order")
NO_WAIT = RetryPolicy(first_wait=0)
pytestmark = pytest.mark.once

INPUTS = {"x": 12, "y": 7}


def is_lyon(step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict | bool:
    """A check of the caller's own, which only the right value passes."""
    return Verdict("pass", "city", strength="proved") if claim.value == "Lyon" else False


def is_mild(step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict | bool:
    """Another one, of a step with few values."""
    return Verdict("pass", "weather", strength="proved") if claim.value == "mild" else False


STEPS = Procedure(
    [
        Step("t1", "x + y"),
        Step("t2", "t1 * 3"),
        Step("rounded", "t2 / 7", type="decimal(2)"),
        Step("truth", "t2 > t1"),
        Step("constant", "2 ^ 3 - 1"),
        Step("copied", "x"),
        Step("least", "min(t1, t2)"),
        Step("near", "t1 * 1000 / 7", type="number(within 10%)"),
        Step("share", "t1 / 57", type="percent(1)"),
        Step("ratio", "y / 25", type="percent"),
        Step("price", "t1 * share", type="money(EUR)"),
        Step("silent", "t2 - t1", show_work=False),
        Step("words", instruction="Name the city.", checks=[is_lyon]),
        Step("choice", instruction="How warm is it?", type="one_of(cold, mild)", checks=[is_mild]),
        Step("last", "x - t2"),
    ],
    inputs=["x", "y"],
)
IDS = [step.id for step in STEPS.steps]
NO_WORKING = ("silent", "words", "choice")
ANSWERS = {"words": "Lyon", "choice": "mild"}


def run(*plants: Plant, procedure: Procedure = STEPS, **options: Any) -> Result:
    """A run in which nothing fails but what is planted, and all of that comes to pass."""
    with SimulatedModel(plants=plants, answers=ANSWERS) as model:
        inputs = {each.name: INPUTS[each.name] for each in procedure.inputs}
        return Guard(model, retry=NO_WAIT, **options).run(procedure, inputs)


def found(result: Result) -> list[Deviation]:
    """All deviations of a run, in order."""
    return [deviation for attempt in result.attempts for deviation in attempt.deviations]


def cases() -> list[tuple[DeviationKind, str, int]]:
    """Every kind at every step that can show it, asked alone, with some others, and with all."""
    return [
        (kind, step, segment)
        for kind in KINDS
        for step in IDS
        for segment in (1, 4, len(IDS))
        if not (kind in ("wrong_operand", "unfaithful_work") and step in NO_WORKING)
        and not (kind == "wrong_order" and segment == 1)
        and not (kind == "self_correction" and step in ("words", "choice") and segment == 1)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "step", "segment"), cases())
def test_a_planted_failure_is_found_as_what_it_is(kind: DeviationKind, step: str, segment: int) -> None:
    """The guard finds one deviation of the kind that was planted, at its step or in the reply that was asked for it."""
    result = run(Plant(step, kind), segment=segment)
    (deviation,) = found(result)
    whole = kind in WHOLE or (kind == "self_correction" and step in ("words", "choice"))
    places = {"extra_step": "extra1", "premature_answer": "final_answer"}
    assert (deviation.kind, deviation.step) == (kind, None if whole else places.get(kind, step))
    (attempt,) = [attempt for attempt in result.attempts if attempt.deviations]
    assert step in [str(occurrence) for occurrence in attempt.steps]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "step", "segment"), cases())
def test_after_a_planted_failure_the_run_ends_as_the_guard_promises(
    kind: DeviationKind, step: str, segment: int
) -> None:
    """What is asked again comes right; a refusal, and a second guess at one of few values, end the run at the step."""
    result = run(Plant(step, kind), segment=segment)
    if kind == "refused" or (kind, step) == ("wrong_value", "choice"):
        assert result.status == "abstained"
        assert result.problem is not None
        assert result.problem.deviation == found(result)[0]
    else:
        assert (result.status, result.answer) == ("verified", -45)
        tries = {record.occurrence.step: record.tries for record in result.steps}
        assert sum(tries.values()) == len(IDS) + (kind not in SURPLUS)


@all_rows("kind", ["missing_step", "duplicate_step", "malformed", "wrong_value", "wrong_operand"])
def test_the_first_tries_fail(kind: DeviationKind) -> None:
    """With `times` that many tries of the step fail, and the next one is right."""
    result = run(Plant("rounded", kind, times=2), segment=5)
    record = result.steps[2]
    assert result.verified
    assert (record.tries, [deviation.kind for deviation in record.deviations]) == (3, [kind] * 2)


def test_failures_of_one_step_come_in_turn() -> None:
    """Several plants at a step follow each other in the order in which they are given."""
    kinds: list[DeviationKind] = ["wrong_value", "missing_step", "unfaithful_work"]
    result = run(*(Plant("t2", kind) for kind in kinds))
    assert [deviation.kind for deviation in result.steps[1].deviations] == kinds


@pytest.mark.parametrize("segment", [1, 2, 3, 10])
def test_failures_of_many_steps_all_come_to_pass(segment: int) -> None:
    """However the steps are cut into calls, no failure hides another."""
    plants = [
        Plant("t1", "extra_step"),
        Plant("t2", "wrong_value", times=2),
        Plant("rounded", "truncated"),
        Plant("constant", RateLimited("slow down")),
        Plant("constant", "empty"),
        Plant("last", "premature_answer"),
    ]
    result = run(*plants, segment=segment)
    assert result.verified
    assert sorted(each.kind for each in found(result)) == sorted(
        ["extra_step", "wrong_value", "wrong_value", "truncated", "empty", "premature_answer"]
    )


def test_surplus_of_many_steps_stands_in_one_reply() -> None:
    """What is said too much spoils nothing, so it can come all at once, beside what spoils the reply."""
    plants: list[Plant] = [Plant("t1", "wrong_order"), Plant("t2", "extra_step"), Plant("rounded", "premature_answer")]
    first = run(*plants, Plant("truth", "missing_step")).attempts[0]
    assert {each.kind for each in first.deviations} == {"wrong_order", "extra_step", "premature_answer", "missing_step"}
    assert first.committed == 3


@all_rows(
    "error", [RateLimited("slow down", retry_after=0), BackendTimeout("no answer"), BackendError("503", status=503)]
)
@all_rows("driver", ["run", "arun"])
def test_a_failure_of_the_transport_can_be_planted(error: BackendError, driver: str) -> None:
    """An error is raised instead of the reply that asks the step, and the guard sends the request again."""
    with SimulatedModel(plants=[Plant("b", error, times=2)]) as model:
        guard = Guard(model, segment=1, retry=NO_WAIT)
        result = guard.run(P2) if driver == "run" else asyncio.run(guard.arun(P2))
    assert result.verified
    assert [attempt.outcome for attempt in result.attempts] == ["accepted", "error", "error", "accepted"]


def test_a_planted_error_keeps_its_facts() -> None:
    """What the run reports is an error of the same kind, with the same facts; the planted one stays untouched."""
    error = BackendRejected("wrong key", status=401)
    result = run(Plant("t2", error), segment=1)
    assert isinstance(result.error, BackendRejected)
    assert (result.status, result.error.status, str(result.error)) == ("failed", 401, "wrong key")
    assert error.__traceback__ is None


@pytest.mark.parametrize("driver", ["run", "arun", "threads"])
def test_a_plant_comes_as_often_as_it_was_planted(driver: str) -> None:
    """Parallel segments and many threads share the count."""
    plants = [Plant(step, "wrong_value", times=2) for step in ("t1", "constant", "copied")]
    model = SimulatedModel(plants=plants, answers=ANSWERS)
    guard = Guard(model, segment=1, parallel=4)
    if driver == "run":
        results = [guard.run(STEPS, INPUTS)]
    elif driver == "arun":
        results = [asyncio.run(guard.arun(STEPS, INPUTS))]
    else:
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(lambda _: guard.run(STEPS, INPUTS), range(8)))
    model.assert_planted()
    assert [each.kind for result in results for each in found(result)] == ["wrong_value"] * 6


def test_what_follows_a_planted_value_rests_on_it() -> None:
    """In the same reply later steps are worked out from the wrong value, as a model would go on."""
    result = run(Plant("t1", "wrong_value"), observe=True)
    assert [each.kind for record in result.steps for each in record.deviations] == ["wrong_value"]
    assert result.values["t2"] == 3 * 20


def test_what_never_came_to_pass_is_reported() -> None:
    """Leaving the block names what was planted in vain, how often it came and how often its step was asked."""
    plants = [Plant("a", "missing_step"), Plant("b", "extra_step", times=3), Plant("nowhere", "empty")]
    told = r"extra_step at 'b' came 1 of 3 times \(.* 2 times\); empty at 'nowhere' came 0 of 1 times \(.* 0 times\)"
    with pytest.raises(AssertionError, match=told), SimulatedModel(plants=plants) as model:
        assert Guard(model).run(P2).verified
    with pytest.raises(AssertionError, match="nowhere"):
        model.assert_planted()


def test_an_error_in_the_block_goes_before_what_was_planted() -> None:
    """A failure that was not reached does not cover up the error that kept it from coming."""
    with pytest.raises(ZeroDivisionError), SimulatedModel(plants=[Plant("a", "empty")]):
        raise ZeroDivisionError


@all_rows("driver", ["run", "arun"])
@all_rows(
    "step, kind, why",
    [
        *(("silent", "wrong_operand", "read as wrong_value"), ("silent", "unfaithful_work", "read as right")),
        *(("words", "wrong_operand", "no formula"), ("words", "unfaithful_work", "read as right")),
        *(("words", "self_correction", "read as wrong_value"), ("t1", "wrong_order", "asked together with others")),
    ],
)
def test_what_a_step_cannot_show_is_an_error(step: str, kind: DeviationKind, why: str, driver: str) -> None:
    """Where no reply would be read as the failure, the test is told so and no other failure takes its place."""
    model = SimulatedModel(plants=[Plant(step, kind)], answers=ANSWERS)
    guard = Guard(model, segment=1)
    with pytest.raises(AssertionError, match=f"{kind} at '{step}' cannot be planted: .*{why}"):
        _ = guard.run(STEPS, INPUTS) if driver == "run" else asyncio.run(guard.arun(STEPS, INPUTS))


def test_a_wrong_value_needs_something_that_refuses_it() -> None:
    """In a step in words that no check vouches for, no value is wrong."""
    procedure = Procedure([Step("words", instruction="Name the city.")])
    with pytest.raises(
        AssertionError,
        match=r"wrong_value at 'words' cannot be planted: .*Lyon\?.* read as right; the step needs a check",
    ):
        run(Plant("words", "wrong_value"), procedure=procedure)


def test_a_step_that_fails_by_itself_is_named() -> None:
    """Where an answer before the planted failure is refused anyway, the error says which one and why."""
    steps = [Step("count", instruction="How many?", type="integer"), Step("twice", "count * 2")]
    with pytest.raises(AssertionError, match=r"missing_step at 'twice' cannot be planted: .* malformed at 'count'"):
        run(Plant("twice", "missing_step"), procedure=Procedure(steps))


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_may_be_called_anything(kind: DeviationKind) -> None:
    """Ids that look like what is planted do not get in its way."""
    steps = [Step("final_answer", "x + y"), Step("answer", "x - y"), Step("answer_extra", "x"), Step("wait", "y + 0")]
    for step in steps:
        run(Plant(step.id, kind), procedure=Procedure(steps, inputs=["x", "y"]))


@all_rows("formula", ["x == y", "x != y", "x > 1000", "x <= 12", "0 * x", "x ^ 0", "x / y", "-x", "0"])
@all_rows("kind", ["wrong_operand", "unfaithful_work", "wrong_value", "self_correction"])
def test_any_formula_can_fail(formula: str, kind: DeviationKind) -> None:
    """Also where many operands give the same value, another one is found that does not."""
    assert found(run(Plant("t", kind), procedure=Procedure([Step("t", formula)], inputs=["x", "y"])))[0].kind == kind


def test_another_reply_format_shows_planted_failures() -> None:
    """Entries are written by the format of the request, and read by it."""

    class Bracketed(EquationFormat):
        def answer(self, step: Step, work: str, value: str) -> object:
            return [super().answer(step, work, value)]

        def claim(self, step: Step, field: object) -> Claim | Deviation:
            return super().claim(step, field[0] if isinstance(field, list) else field)

    result = run(Plant("t2", "wrong_value"), reply_format=Bracketed())
    assert result.attempts[0].text is not None
    assert '"t2": ["19 * 3 = 58"]' in result.attempts[0].text
    assert result.verified


def test_a_model_with_plants_slips_only_where_it_is_told() -> None:
    """Without `slips` nothing but what is planted goes wrong; with them the other replies slip as ever."""
    missing = Plant("t1", "missing_step")
    quiet = Guard(SimulatedModel(plants=[missing], answers=ANSWERS), segment=1).run(STEPS, INPUTS)
    assert quiet.usage.calls == len(IDS) + 1
    slips = replace(Slips.none(), extra_step=1.0)
    loud = Guard(SimulatedModel(plants=[missing], slips=slips, answers=ANSWERS), segment=1).run(STEPS, INPUTS)
    assert [each.kind for each in found(loud)] == ["missing_step"] + ["extra_step"] * len(IDS)


def test_free_text_is_not_met_by_plants() -> None:
    """A request without a reply format is none of a guard's, and the failure waits for one that is."""
    model = SimulatedModel(plants=[Plant("a", "empty")])
    request = Request((Message("user", "?"),), tuple(P2.steps))
    assert model.complete(request).text == "a = 2 * 3 = 6\nb = 6 + 4 = 10\nAnswer: 10"
    assert model.complete(replace(request, reply_format=EquationFormat())).text == ""


# What a model with answers says


def test_steps_in_words_get_their_answers() -> None:
    """What is said for a step that only words describe is given beforehand; later steps are worked out from it."""
    steps = [
        Step("count", instruction="How many?", type="integer", checks=[lambda *_: True]),
        Step("twice", "count * 2"),
    ]
    result = Guard(SimulatedModel(slips=Slips.none(), answers={"count": 21})).run(Procedure(steps))
    assert (result.status, result.answer) == ("checked", 42)


def test_an_answer_for_a_formula_is_refused() -> None:
    """A step with a formula is carried out, so an answer for it is a mistake of the test."""
    with pytest.raises(ConfigError, match="step 'a' has a formula"):
        Guard(SimulatedModel(answers={"a": 7})).run(P2)


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        ("text", "Lyon", "Lyon"),
        ("percent", "28%", Fraction(7, 25)),
        ("money(USD)", 3, Decimal("3.00")),
        *(("one_of(low, high)", "high", "high"), ("boolean", True, True)),
    ],
)
def test_an_answer_is_given_as_an_input_is(kind: str, given: object, value: Value) -> None:
    """An answer is a value of its step's type, in Python or as text, and is written as replies write it."""
    procedure = Procedure([Step("words", instruction="Say it.", type=kind, checks=[lambda *_: True])])
    result = Guard(SimulatedModel(slips=Slips.none(), answers={"words": given})).run(procedure)
    assert (result.status, result.answer) == ("checked", value)


@pytest.mark.parametrize("answer", [1.5, None, ["Lyon"], "many"])
def test_an_answer_of_another_type_is_refused(answer: object) -> None:
    """What the step cannot hold is a mistake of the test, and is named by the id of the step."""
    procedure = Procedure([Step("words", instruction="How many?", type="integer")])
    with pytest.raises(ConfigError, match="the answer for 'words' is no integer"):
        Guard(SimulatedModel(answers={"words": answer})).run(procedure)


# Plant


def plant(step: Any, failure: Any, times: Any = 1) -> Callable[[], object]:
    """The making of a plant that a type checker would refuse."""
    return lambda: Plant(step, failure, times)


REFUSED: Sequence[tuple[str, Callable[[], object], str]] = [
    ("failure", plant("t1", "undecided"), "only a check is"),
    ("failure", plant("t1", "wrong_step"), "'wrong_step' cannot be planted: use a BackendError or missing_step"),
    ("failure", plant("t1", ValueError("no")), "cannot be planted"),
    ("times", plant("t1", "empty", 0), "1 or more"),
    ("times", plant("t1", "empty", True), "1 or more"),
    ("step", plant("", "empty"), "id of a step"),
    ("step", plant(1, "empty"), "id of a step"),
    ("plants", lambda: SimulatedModel(plants=["empty"]), "is a Plant, not "),  # type: ignore[list-item]
    ("slips", lambda: SimulatedModel(slips=0), "is a Slips such as"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("option", "make", "why"), REFUSED)
def test_what_cannot_be_planted_is_refused_at_once(option: str, make: Callable[[], object], why: str) -> None:
    """Kinds that no reply shows, and counts and ids that are none, never get as far as a run."""
    with pytest.raises(ConfigError, match=why) as caught:
        make()
    assert caught.value.option == option
