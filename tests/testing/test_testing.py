"""The doubles that users get: a script, and a model that slips."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from harness import GOOD, P2, PAIR
from tables import all_rows

from stepguard import Guard, Procedure, RetryPolicy, Step, Usage
from stepguard.backends import Completion, Message, Request
from stepguard.core.verdicts import DEVIATION_KINDS
from stepguard.engine.actions import Ask
from stepguard.errors import BackendError, ConfigError, RateLimited
from stepguard.replies.formats import EquationFormat
from stepguard.testing import ScriptedBackend, ScriptedSteps, SimulatedModel, Slips

STEPS = Procedure.parse("inputs: x, y\nt1 = x + y\nt2 = t1 * 3\nt3: decimal(2) = t2 / 7\nt4 = t1 - t2")
INPUTS = {"x": 12, "y": 7}


def requests_of(procedure: Procedure = STEPS, *, segment: int = 2) -> list[Request]:
    """The requests of a right run."""
    kept: list[Request] = []
    right = SimulatedModel(slips=Slips.none())

    class Keeping:
        def complete(self, request: Request) -> Completion:
            kept.append(request)
            return right.complete(request)

    assert Guard(Keeping(), segment=segment).run(procedure, INPUTS).status == "verified"
    return kept


# ScriptedBackend


def test_a_script_takes_every_kind_of_entry() -> None:
    """Text, a mapping, a completion, an error and a function each make one reply."""
    completion = Completion(json.dumps({"b": "6 + 4 = 10"}), usage=Usage(calls=1, input_tokens=3, output_tokens=2))
    with ScriptedBackend("nope", BackendError("no", retryable=False)) as backend:
        assert Guard(backend).run(P2).status == "failed"
    with ScriptedBackend(lambda request: json.dumps({request.steps[0].id: "2 * 3 = 6"}), completion) as backend:
        result = Guard(backend, segment=1).run(P2)
    assert result.status == "verified"
    assert result.attempts[1].usage == completion.usage
    assert [len(request.steps) for request in backend.requests] == [1, 1]


@pytest.mark.parametrize("entry", [["a", "b"], 3, None])
def test_what_cannot_be_a_reply_is_refused(entry: Any) -> None:
    """A list of replies is no reply: they stand one after the other."""
    with pytest.raises(ConfigError, match=r"reply 2 of the script is a .*: ScriptedBackend\('...', '...'\)"):
        ScriptedBackend("a", entry)


def test_a_script_that_is_not_used_up_is_an_error() -> None:
    """Leaving the context asserts that every entry was asked for."""
    with pytest.raises(AssertionError, match="1 of 2 scripted replies"), ScriptedBackend(GOOD, GOOD) as backend:
        Guard(backend).run(P2)
    with pytest.raises(AssertionError):
        ScriptedBackend("unused").assert_finished()


@pytest.mark.parametrize("driver", ["run", "arun"])
def test_a_call_that_is_not_in_the_script_is_an_error(driver: str) -> None:
    """One call too many raises through the guard and names the steps that were asked."""
    guard = Guard(ScriptedBackend({"a": "2 * 3 = 6"}), segment=1)
    with pytest.raises(AssertionError, match=r"call 2 \(b\)"):
        _ = guard.run(P2) if driver == "run" else asyncio.run(guard.arun(P2))


def test_an_error_in_the_block_is_not_hidden() -> None:
    """An unused script does not cover up the error that left it unused."""
    with pytest.raises(ZeroDivisionError), ScriptedBackend(GOOD):
        raise ZeroDivisionError


def test_a_script_is_followed_in_order_under_arun() -> None:
    """With parallel segments entries are taken in the order in which the calls start."""
    with ScriptedBackend({"t1": "1 + 1 = 2"}, {"t2": "2 + 2 = 4"}, {"t3": "2 * 4 = 8"}) as backend:
        result = asyncio.run(Guard(backend, segment=1, parallel=2).arun(PAIR, {"x": 1, "y": 2}))
    assert result.status == "verified"


def test_threads_share_a_script() -> None:
    """However many threads ask at once, every entry is given exactly once."""
    count = 200
    with ScriptedBackend(*map(str, range(count))) as backend, ThreadPoolExecutor(8) as pool:
        requests = [Request((Message("user", "?"),))] * count
        given = list(pool.map(lambda request: backend.complete(request).text, requests))
    assert sorted(given, key=str) == sorted(map(str, range(count)))


# ScriptedSteps

ANSWERS = {
    "t1": ["12 + 7 = 18", "12 + 7 = 19"],
    "t2": "19 * 3 = 57",
    "t3": "57 / 7 = 8.14",
    "t4": ["19", "19 - 57 = -38"],
}


@all_rows("driver", ["run", "arun"])
@all_rows("parallel", [1, 3])
@all_rows("segment", [1, 2, 3, 4])
def test_a_script_by_step_does_not_depend_on_segments(segment: int, parallel: int, driver: str) -> None:
    """However the steps are cut into calls, each gets its answers in turn, and the run ends in the same way."""
    with ScriptedSteps(ANSWERS) as backend:
        guard = Guard(backend, segment=segment, parallel=parallel)
        result = guard.run(STEPS, INPUTS) if driver == "run" else asyncio.run(guard.arun(STEPS, INPUTS))
    assert (result.status, result.answer) == ("verified", -38)
    assert {record.occurrence.step: record.tries for record in result.steps} == {"t1": 2, "t2": 1, "t3": 1, "t4": 2}


def test_one_script_by_step_serves_many_runs() -> None:
    """Answers are told by the try and not used up, so runs in many threads may share them."""
    backend = ScriptedSteps(ANSWERS)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda segment: Guard(backend, segment=segment).run(STEPS, INPUTS), [1, 2, 3, 4] * 5))
    assert all(result.verified for result in results)
    backend.assert_finished()


def test_a_step_in_words_is_answered_by_its_value() -> None:
    """For a step that only words describe, text in the script is the value; working is not needed."""
    steps = [Step("city", instruction="Name the city.", checks=[lambda step, values, claim: claim.value == "Lyon"])]
    with ScriptedSteps({"city": ["Paris", {"work": "as the note says", "value": "Lyon"}]}) as backend:
        result = Guard(backend).run(Procedure(steps))
    assert (result.status, result.answer) == ("checked", "Lyon")


def test_other_data_in_a_script_goes_out_as_it_is() -> None:
    """An entry that is no text stands in the reply as JSON, right or not."""
    with ScriptedSteps({"a": [None, {"no": "equation"}, "2 * 3 = 6"], "b": "6 + 4 = 10"}) as backend:
        result = Guard(backend, segment=1).run(P2)
    assert result.attempts[0].text == '{"a": null}'
    assert [deviation.kind for deviation in result.steps[0].deviations] == ["malformed", "malformed"]


def test_an_exception_in_a_script_comes_before_the_answer_behind_it() -> None:
    """Failures of the transport are raised once each, and the same try is answered afterwards."""
    script = {"a": "2 * 3 = 6", "b": [BackendError("503"), RateLimited("slow down"), "6 + 4 = 10"]}
    with ScriptedSteps(script) as backend:
        result = Guard(backend, retry=RetryPolicy(first_wait=0)).run(P2)
    assert [attempt.outcome for attempt in result.attempts] == ["error", "error", "accepted"]


@pytest.mark.parametrize("driver", ["run", "arun"])
def test_answers_that_are_used_up_name_their_step(driver: str) -> None:
    """One try too many raises through the guard and says which step, which try and what the script holds."""
    guard = Guard(ScriptedSteps({"a": ["2 * 3 = 5", "2 * 3 = 7"], "b": "6 + 4 = 10"}))
    with pytest.raises(AssertionError, match="step 'a' is asked for try 3, and its script holds 2"):
        _ = guard.run(P2) if driver == "run" else asyncio.run(guard.arun(P2))


def test_a_step_that_is_not_in_the_script_is_an_error() -> None:
    """A step without answers is named, with those that have some."""
    with pytest.raises(AssertionError, match=r"step 'b' is asked and not in the script \(it holds a\)"):
        Guard(ScriptedSteps({"a": "2 * 3 = 6"})).run(P2)


def test_answers_that_are_left_over_name_their_steps() -> None:
    """Leaving the block reports unused answers, exceptions that were not raised and steps that were never asked."""
    script = {"a": ["2 * 3 = 6", "2 * 3 = 7"], "b": ["6 + 4 = 10", BackendError("503")], "c": "1 + 1 = 2"}
    left = r"'a' \(answers: 1 of 2\), 'b' \(exceptions: 1\), 'c' \(answers: 1 of 1\)"
    with pytest.raises(AssertionError, match=left), ScriptedSteps(script) as backend:
        Guard(backend).run(P2)


@pytest.mark.parametrize("answer", [[], (), {1, 2}, ["1 + 1 = 2", object()]])
def test_a_script_by_step_holds_answers(answer: Any) -> None:
    """What cannot be an answer is refused when the script is made, with its step."""
    with pytest.raises(ConfigError, match="'t1'") as caught:
        ScriptedSteps({"t1": answer})
    assert caught.value.option == "script"


# Slips


@pytest.mark.parametrize("given", [{"wrong_value": -0.1}, {"empty": 1.1}, {"refused": True}, {"malformed": "often"}])
def test_slips_are_probabilities(given: dict[str, float]) -> None:
    """A rate outside 0 to 1 is refused, by name."""
    with pytest.raises(ConfigError) as caught:
        Slips(**given)
    assert caught.value.option in given


KINDS = [name for name in Slips.__slots__ if name != "systematic"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_slip_is_found_as_what_it_is(kind: str) -> None:
    """A model that always slips in one way leads to deviations of exactly that kind, and to nothing wrong accepted."""
    slips = replace(Slips.none(), **{kind: 1.0})
    assert kind in DEVIATION_KINDS
    for seed in range(40):
        result = Guard(SimulatedModel(seed, slips=slips), segment=4, repair=0, seed=seed).run(STEPS, INPUTS)
        first = result.attempts[0]
        assert {deviation.kind for deviation in first.deviations} == {kind}, (seed, first)
        harmless = kind in ("extra_step", "premature_answer", "wrong_order")
        assert (result.status == "verified") == harmless or kind == "wrong_order"


def test_slips_cover_every_deviation_but_indecision() -> None:
    """There is a slip for each kind of deviation that a model alone can cause."""
    assert set(KINDS) == set(DEVIATION_KINDS) - {"undecided"}


@all_rows("step", [Step("t", "x > y"), Step("t", "min(x, y)"), Step("t", "x")])
@all_rows("kind", ["wrong_value", "wrong_operand", "unfaithful_work"])
def test_no_slip_about_a_step_is_accepted(step: Step, kind: str) -> None:
    """Whatever the step, a slip in its value or working is not verified."""
    procedure = Procedure([step], inputs=["x", "y", "z"])
    for seed in range(20):
        slips = replace(Slips.none(), **{kind: 1.0})
        result = Guard(SimulatedModel(seed, slips=slips), repair=0).run(procedure, {"x": 12, "y": 7, "z": 90})
        right = {"x > y": True, "min(x, y)": 7, "x": 12}[str(step.formula)]
        assert result.answer in (None, right)


def test_no_slips_is_right_in_free_text_as_well() -> None:
    """Without a reply format it writes lines of working and an answer."""
    request = replace(requests_of(segment=4)[0], reply_format=None)
    text = SimulatedModel(slips=Slips.none()).complete(request).text
    assert text == ("t1 = 12 + 7 = 19\nt2 = 19 * 3 = 57\nt3 = 57 / 7 = 8.14\nt4 = 19 - 57 = -38\nAnswer: -38")


# SimulatedModel

TYPED = Procedure.parse(
    "inputs: x, y, level: one_of(low, mid, high)\n"
    "share: percent = x / y\nfee: money(EUR) = x * share\nsame: one_of(low, mid, high) = level"
)


@pytest.mark.parametrize("kind", ["none", "wrong_value"])
def test_values_are_written_as_their_types_are(kind: str) -> None:
    """Percentages, money and options are right where nothing slips, and wrong values of their type where it does."""
    slips = Slips.none() if kind == "none" else replace(Slips.none(), wrong_value=1.0)
    for seed in range(20):
        guard = Guard(SimulatedModel(seed, slips=slips), segment=1, observe=True)
        result = guard.run(TYPED, {"x": 1, "y": 8, "level": "mid"})
        found = [deviation.kind for record in result.steps for deviation in record.deviations]
        assert found == ([] if kind == "none" else ["wrong_value"] * 3)


def test_a_reply_depends_on_the_request_alone() -> None:
    """The same request gets the same reply, in whatever order and however often requests come."""
    requests = requests_of(segment=1)
    slips = Slips.all(0.3)
    model = SimulatedModel(7, slips=slips)
    forward = [model.complete(request) for request in requests]
    backward = [SimulatedModel(7, slips=slips).complete(request) for request in reversed(requests)]
    assert forward == backward[::-1]
    assert forward == [model.complete(request) for request in requests]


def test_a_seed_goes_on_giving_the_same_reply() -> None:
    """Recorded results rest on seeds, so what a seed says does not change between releases."""
    request = Request((Message("user", "carry this out"),), tuple(STEPS.steps), {"x": 12, "y": 7}, EquationFormat())
    texts = [SimulatedModel(seed, slips=Slips.all(0.1)).complete(request).text for seed in (0, 1, 4)]
    assert texts == [
        '{"t1": "12 + 7 = -19", "t2": "-19 * 3 = -57", "t3": "-57 / 7 = -8.14", "t4": "-19 - (-57) = 38"}',
        '{"t1": "12 + 7 = 19", "t2": "36 + 0 = 37, wait, 36", "t3": "36 / 7 = 4.14", "t4": "-17 + 0 = -17"}',
        '{"t2": "19 * 3 = 57", "t1": "12 + 7 = 38, wait, 19", "t4": "19 - 57 = 32, wait, -38"}',
    ]


def test_sampling_needs_a_temperature() -> None:
    """At temperature 0 the seed of a request changes nothing; above it does."""
    request = requests_of(segment=4)[0]
    model = SimulatedModel(7, slips=Slips.all(0.3))

    def replies(temperature: float) -> set[str | None]:
        return {model.complete(replace(request, temperature=temperature, seed=seed)).text for seed in range(20)}

    assert len(replies(0.0)) == 1
    assert len(replies(0.8)) > 5


def test_seeds_are_different_models() -> None:
    """Another seed slips elsewhere."""
    request = requests_of(segment=4)[0]
    assert len({SimulatedModel(seed, slips=Slips.all(0.3)).complete(request).text for seed in range(20)}) > 5


def test_a_systematic_slip_repeats() -> None:
    """What is systematic comes back however often the same step is asked; the rest does not."""
    request = replace(requests_of(segment=1)[1], temperature=0.8)

    def replies(systematic: float) -> set[str | None]:
        slips = replace(Slips.none(), wrong_value=1.0, systematic=systematic)
        model = SimulatedModel(1, slips=slips)
        return {model.complete(replace(request, seed=seed)).text for seed in range(20)}

    assert len(replies(1.0)) == 1
    assert len(replies(0.0)) > 5


def test_it_knows_only_what_a_prompt_says() -> None:
    """A simulated model reads the verified values of the request, right or not."""
    run = Guard(lambda messages: "", segment=1).start(P2)
    (ask,) = run.actions()
    assert isinstance(ask, Ask)
    request = replace(ask.request, steps=(P2.steps[1],), values={"a": 100})
    assert SimulatedModel(slips=Slips.none()).complete(request).text == '{"b": "100 + 4 = 104"}'


def test_it_answers_in_the_format_that_is_asked() -> None:
    """Another reply format gets entries of its own."""

    class Shouting(EquationFormat):
        def answer(self, step: Step, work: str, value: str) -> object:
            return f"{work} = {value}".upper() + "!"

    request = replace(requests_of(segment=1)[0], reply_format=Shouting())
    assert SimulatedModel(slips=Slips.none()).complete(request).text == '{"t1": "12 + 7 = 19!"}'


@pytest.mark.parametrize("make", [lambda: ScriptedBackend(GOOD), lambda: SimulatedModel(slips=Slips.none())])
def test_doubles_count_tokens(make: Callable[[], ScriptedBackend | SimulatedModel]) -> None:
    """Every reply has a usage that grows with what was sent."""
    result = Guard(make()).run(P2)
    assert result.usage.calls == 1
    assert result.usage.input_tokens > result.usage.output_tokens > 0
