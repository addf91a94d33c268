"""How many steps are asked at once: fixed, or found by what a run shows."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from harness import P6
from tables import all_rows

from stepguard import Guard, Ladder, Procedure, Segments, Step, Usage
from stepguard.backends import Completion, Request
from stepguard.engine.actions import Ask
from stepguard.engine.segments import SegmentLength, best_length
from stepguard.evaluation.families import Arithmetic
from stepguard.repair.rungs import Question
from stepguard.testing import ScriptedBackend, SimulatedModel, Slips

pytestmark = pytest.mark.once

OVERHEAD, EACH = 300, 24
"""Tokens of what every prompt begins with, and of one step, asked and answered."""


def cost(
    length: Callable[[int], int], right: Callable[[int, int], bool], steps: int, meter: SegmentLength | None
) -> int:
    """Tokens of a run: a segment is asked, its first failure by itself, and so on behind it."""
    spent = done = 0
    while done < steps:
        asked = min(length(steps - done), steps - done)
        accepted = 0
        while accepted < asked and right(done + accepted, accepted):
            accepted += 1
        tokens = OVERHEAD + EACH * asked
        spent += tokens
        if meter is not None:
            usage = Usage(calls=1, input_tokens=OVERHEAD + 12 * asked, output_tokens=12 * asked)
            meter.add_reply(usage, steps=asked, accepted=accepted, fixed=OVERHEAD / usage.input_tokens)
        done += accepted
        if accepted < asked:
            spent += OVERHEAD + EACH
            done += 1
    return spent


ERRORS: dict[str, Callable[[int, int], float]] = {
    "hardly any": lambda step, place: 0.002,
    "few": lambda step, place: 0.01,
    "some": lambda step, place: 0.03,
    "many": lambda step, place: 0.1,
    "most": lambda step, place: 0.3,
    "nearly every second one": lambda step, place: 0.45,
    "more further back": lambda step, place: 0.004 * place,
    "hard in the middle": lambda step, place: 0.15 if 100 <= step < 200 else 0.01,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "steps"), [*((name, 300) for name in ERRORS), *((name, 50) for name in list(ERRORS)[:6])]
)
def test_the_length_that_is_found_is_near_the_best_in_hindsight(name: str, steps: int) -> None:
    """It costs at most a tenth more tokens than the best fixed length would have, also in a short run."""
    error = ERRORS[name]

    def spent(size: int | None) -> float:
        total = 0
        for seed in range(60):
            chance = random.Random(f"{size} {seed}")

            def right(step: int, place: int, chance: random.Random = chance) -> bool:
                return chance.random() >= error(step, place)

            meter = SegmentLength(Segments(size))
            total += cost(meter.size, right, steps, meter)
        return total / 60

    best = min(spent(size) for size in (1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 40))
    assert spent(None) <= 1.1 * best


@pytest.mark.parametrize(("error", "overhead"), [(0.001, 5.0), (0.01, 12.5), (0.05, 3.0), (0.3, 20.0)])
def test_the_best_length_is_the_cheapest(error: float, overhead: float) -> None:
    """The formula agrees with counting: no other length costs fewer tokens a step, by a simulation of many steps."""

    def tokens(size: int) -> float:
        chance = random.Random(1)
        spent = done = 0.0
        while done < 30_000:
            accepted = 0
            while accepted < size and chance.random() >= error:
                accepted += 1
            spent += overhead + size
            done += accepted
            if accepted < size:
                spent += overhead + 1
                done += 1
        return spent / done

    best = best_length(error, overhead)
    assert tokens(best) <= 1.02 * min(tokens(size) for size in (1, 2, 3, 5, 8, 13, 20, 30, 40))


def test_the_best_length_without_errors_is_the_longest() -> None:
    """Where nothing fails one call is cheapest, and where everything does one step is."""
    assert best_length(0.0, 10.0, longest=17) == 17
    assert best_length(1.0, 10.0) == 1


def run_sizes(segments: Segments | int | None, slips: Slips, length: int, seed: int = 1) -> list[int]:
    """The lengths of the segments of a run that asks plainly."""
    task = Arithmetic().make(seed, length)
    guard = Guard(SimulatedModel(seed, slips=slips), segment=segments, seed=seed)
    return [len(attempt.steps) for attempt in guard.run(task.procedure, task.inputs).attempts if attempt.rung == "ask"]


def test_segments_grow_where_nothing_fails_and_shrink_where_much_does() -> None:
    """From the first length on, clean segments make the next one longer, deviations shorter."""
    clean = run_sizes(None, Slips.none(), 95)
    assert clean[0] == 24  # 20, and a little more that saves a call
    assert clean[1] > 24
    failing = run_sizes(None, replace(Slips.none(), wrong_value=0.3, systematic=0.0), 95)
    assert min(failing[3:]) < 10
    assert max(failing) == failing[0] == 24


def test_a_number_keeps_the_length() -> None:
    """A fixed length is kept, whatever the run shows."""
    assert set(run_sizes(7, Slips.none(), 70)) == {7}
    assert max(run_sizes(7, replace(Slips.none(), wrong_value=0.3), 70)) == 7


def test_the_last_call_is_saved() -> None:
    """A rest that is a little longer than a segment is asked at once."""
    meter = SegmentLength(Segments())
    assert (meter.size(), meter.size(20), meter.size(25), meter.size(45), meter.size(60)) == (20, 20, 25, 23, 20)
    assert SegmentLength(Segments(20)).size(25) == 20


def test_a_profile_gives_the_first_length() -> None:
    """With a profile the first segment is as long as the step error that it holds asks for."""
    task = Arithmetic().make(1, 95)
    clean = Guard(SimulatedModel(slips=Slips.none())).run(task.procedure, task.inputs).profile
    failing = replace(Slips.none(), wrong_value=0.3, systematic=0.0)
    bad = Guard(SimulatedModel(1, slips=failing), seed=1).run(task.procedure, task.inputs).profile
    lengths = [SegmentLength(Segments(), profile).size() for profile in (bad, None, clean)]
    assert lengths[0] < lengths[1] < lengths[2]


def test_segments_fit_into_replies_and_contexts() -> None:
    """No segment is longer than what the model can write, or read and write, with room to spare."""
    usage = Usage(calls=1, input_tokens=OVERHEAD + 200, output_tokens=400)
    for bounds, most in [(Segments(output=300), 10), (Segments(context=700), 8), (Segments(context=10), 1)]:
        meter = SegmentLength(bounds)
        for _ in range(20):
            meter.add_reply(usage, steps=20, accepted=20, fixed=OVERHEAD / usage.input_tokens)
        assert meter.size() <= most
        assert meter.size(95) <= most


def test_a_reply_that_was_cut_off_halves_the_segments() -> None:
    """After a cut the bound is half of what was asked, also where the length is found."""
    for segments in (Segments(), Segments(20)):
        meter = SegmentLength(segments)
        meter.cut_off()
        assert meter.size() == 10
        for _ in range(9):
            meter.cut_off()
        assert meter.size() == 1


def test_backends_that_count_nothing_leave_the_length_at_the_first() -> None:
    """Where usage holds no tokens there is nothing to choose by."""
    task = Arithmetic().make(1, 60)
    right = SimulatedModel(slips=Slips.none())

    class Silent:
        def complete(self, request: Request) -> Completion:
            return replace(right.complete(request), usage=Usage(calls=1))

    result = Guard(Silent()).run(task.procedure, task.inputs)
    assert [len(attempt.steps) for attempt in result.attempts] == [20, 20, 20]


# Steps whose text needs the next one's

LIST = [
    Step("a", "x + 1", instruction="Take x, add 1:", with_next=True),
    Step("b", "a * 2", instruction="and double it"),
    Step("c", "b - 3"),
]
ANSWERS = {"a": "4 + 1 = 5", "b": "5 * 2 = 10", "c": "10 - 3 = 7"}


def asked_steps(model: ScriptedBackend) -> list[list[str]]:
    return [[step.id for step in request.steps] for request in model.requests]


def test_no_segment_ends_where_the_text_needs_the_next_step() -> None:
    """A step that leads into the next one takes it along, however short segments are."""
    with ScriptedBackend({key: ANSWERS[key] for key in "ab"}, {"c": ANSWERS["c"]}) as model:
        assert Guard(model, segment=1).run(Procedure(LIST, inputs=["x"]), {"x": 4}).verified
    assert asked_steps(model) == [["a", "b"], ["c"]]


def test_a_step_asked_again_shows_what_leads_into_it() -> None:
    """Where the step behind it fails, the text that leads into it is shown as done, in every way of asking."""
    wrong = {"a": ANSWERS["a"], "b": "5 * 2 = 11"}
    with ScriptedBackend(wrong, {"b": "5 * 2 = 12"}, {"b": ANSWERS["b"]}, {"c": ANSWERS["c"]}) as model:
        ladder = Ladder([Question(), Question(temperature=0.8)])
        assert Guard(model, segment=1, repair=ladder).run(Procedure(LIST, inputs=["x"]), {"x": 4}).verified
    assert asked_steps(model) == [["a", "b"], ["b"], ["b"], ["c"]]
    for request in model.requests[1:3]:
        assert "Done before:\nTake x, add 1:" in request.messages[-1].content
    assert "Done before" not in model.requests[3].messages[-1].content


def test_texts_that_lead_on_are_known_by_their_end() -> None:
    """A colon, a comma or a conjunction at the end leads on; what the caller says goes before."""
    for text in ("Take the list:", "Take it,", "Take it and", "Take it, then"):
        assert Step("a", instruction=text).with_next
        assert not Step("a", instruction=text, with_next=False).with_next
    assert not Step("a", instruction="Take the sand").with_next
    assert not Step("a", "1 + 1", instruction="Add:").with_next


def test_a_chain_without_an_end_is_cut() -> None:
    """However many steps lead on, a request stays bounded."""
    procedure = Procedure([Step(f"s{at}", instruction="Go on, then") for at in range(200)])
    model = SimulatedModel(slips=Slips.none())
    result = Guard(model, segment=2).run(procedure)
    assert result.completed == 200
    assert max(len(attempt.steps) for attempt in result.attempts) == 22


def test_no_step_is_joined_to_one_that_is_not_its_next() -> None:
    """With segments at the same time a step that leads on is not asked with a later one in place of the next."""
    steps = [Step("t0", "x + 1"), Step("s1", "x + 2", with_next=True), Step("s2", "t0 + 3"), Step("s3", "x + 4")]
    run = Guard(lambda messages: "", segment=1, parallel=2).start(Procedure(steps, inputs=["x"]), {"x": 1})
    asked = [[step.id for step in action.request.steps] for action in run.actions() if isinstance(action, Ask)]
    assert ["s1", "s3"] not in asked


@all_rows("limit", range(3, 16))
def test_a_lazy_procedure_that_forgets_its_past_ends_the_run_as_failed(limit: int) -> None:
    """A step that cannot be made again is the procedure's fault: nothing is raised, and what was done is kept."""
    made = 0

    def step_at(index: int) -> Step:
        nonlocal made
        made += 1
        if made > limit:
            raise OSError("the store is gone")
        return Step(f"s{index}", f"{f's{index - 1}' if index else 'x'} + 1")

    procedure = Procedure.lazy(step_at, 5, look_back=1, inputs=["x"])
    result = Guard(SimulatedModel(slips=Slips.none()), segment=1).run(procedure, {"x": 1})
    assert result.status == "failed"
    assert "store is gone" in str(result.problem)
    assert result.completed == len(result.steps)


def test_six_steps_take_one_call() -> None:
    """A short procedure is asked at once."""
    with ScriptedBackend(
        {
            "t1": "1 + 1 = 2",
            "t2": "2 * 2 = 4",
            "t3": "4 - 3 = 1",
            "t4": "1 + 2 = 3",
            "t5": "3 * 2 = 6",
            "t6": "6 - 2 = 4",
        }
    ) as model:
        assert Guard(model).run(P6, {"x": 1}).verified
