"""A run that was killed goes on in another process: nothing verified is asked again, no tool is called twice."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from harness import P2
from ledger_harness import (
    CHAIN,
    CUT_OFF,
    LOOP,
    PAYMENT,
    SURE,
    Counting,
    Killed,
    Nobody,
    change_ledger,
    facts,
    kill,
    payment,
)

from stepguard import Claim, Guard, Input, Ladder, Procedure, Step, Verdict
from stepguard.backends import Completion, Request
from stepguard.engine.batch import RowResult
from stepguard.errors import ConfigError, RunConflict, UnsettledCall
from stepguard.ledger import Ledger, verify_ledger
from stepguard.ledger.journal import load_run
from stepguard.procedure import Tool
from stepguard.repair.rungs import Resample, Rung, another_model, person
from stepguard.testing import ScriptedBackend, SimulatedModel

pytestmark = pytest.mark.usefixtures("quick_collections")

PROCEDURES: dict[str, tuple[Procedure, dict[str, object]]] = {
    "straight": (CHAIN, {"x": 12}),
    "branching": (Procedure.parse(LOOP), {"items": [1, 2, 3, 2]}),
}


@pytest.mark.parametrize("name", PROCEDURES)
@pytest.mark.parametrize("options", [{"segment": 1}, {"segment": 2, "parallel": 3}])
def test_a_killed_run_goes_on(runs: Path | str, name: str, options: dict[str, Any]) -> None:
    """Wherever a run is killed, another process asks only what is missing, and comes to the same result."""
    procedure, inputs = PROCEDURES[name]
    whole = Guard(Counting(), **options).run(procedure, inputs)
    calls = whole.usage.calls
    assert calls > 2
    for at in range(1, calls + 1):
        model = Counting(die_at=at)
        run_id = f"run {at}"
        kill(Guard(model, ledger=runs, **options), procedure, inputs, run_id)
        gc.collect()  # the run of the dead process
        with Ledger(runs) as ledger:
            verified = {each.claim.step for each in load_run(ledger.file, at).steps.values() if each.claim is not None}
        second = Counting()
        result = Guard(second, ledger=runs, **options).run(procedure, inputs, run_id=run_id)
        assert facts(result) == facts(whole)
        assert not verified & {*second.asked}
        if "parallel" not in options:  # then a reply that had come may not have been judged
            assert result.usage.calls == calls
            assert [each.number for each in result.attempts] == [*range(1, calls + 1)]


def test_another_model_prompt_or_segment_keeps_what_is_verified(runs: Path | str) -> None:
    """Who answers, in segments of which length and with which repair is not asked of a verified step."""
    kill(Guard(Counting(die_at=3), segment=1, ledger=runs), CHAIN, {"x": 12}, "run")
    gc.collect()
    other = Counting()
    result = Guard(other, segment=4, repair=3, ledger=runs).run(CHAIN, {"x": 12}, run_id="run")
    assert result.status == "verified"
    assert {"t1", "t2"}.isdisjoint(other.asked)
    assert result.steps[0].claim == "12 + 1 = 13"


def test_a_finished_run_gives_its_result_again(runs: Path | str) -> None:
    """Running a finished run again costs nothing and gives the same, also where it had been repaired."""
    model = ScriptedBackend({"a": "2 * 3 = 6", "b": "6 + 4 = 11"}, {"b": "6 + 4 = 10"})
    first = Guard(model, repair=2, ledger=runs).run(P2, run_id="run")
    again = Guard(Nobody(), ledger=runs).run(P2, run_id="run")
    assert first.steps[1].deviations
    assert facts(again) == facts(first)
    assert (again.usage, len(again.attempts)) == (first.usage, len(first.attempts))
    assert [each.tries for each in again.steps] == [each.tries for each in first.steps]
    assert [each.deviations for each in again.steps] == [each.deviations for each in first.steps]


def test_a_step_that_no_longer_passes_is_asked_again(runs: Path | str) -> None:
    """What comes from a ledger is judged again before it is used: a stricter check has the step asked again."""
    allowed = [True]

    def small(_step: object, values: Any, _claim: object) -> Verdict:
        right = allowed[0] or values["t2"] < 20
        return Verdict("pass" if right else "fail", "small")

    def procedure() -> Procedure:
        steps = [Step("t1", "x + 1"), Step("t2", "t1 * 2", checks=[small]), Step("t3", "t2 + 1")]
        return Procedure(steps, inputs=["x"])

    guard = Guard(SURE, repair=1, ledger=runs)
    assert guard.run(procedure(), {"x": 12}, run_id="run").answer == 27
    allowed[0] = False
    result = guard.run(procedure(), {"x": 12}, run_id="run")
    assert result.status == "abstained"
    assert str(result.problem).startswith("step t2")
    assert "1 steps of the ledger no longer pass their checks and were asked again: t2" in result.notes[0]


def test_an_answer_that_takes_the_place_of_a_durable_one_is_durable(runs: Path | str) -> None:
    """Where a step no longer passed, the next process has what it was answered then."""
    path, right = runs, ["first"]

    def own(_step: object, _values: object, claim: Any) -> Verdict:
        return Verdict("pass" if right[0] in claim.value else "fail", "own")

    def procedure() -> Procedure:
        named = Step("name", instruction="Name one.", type="text", checks=[own])
        behind = Step("behind", instruction="Say it again.", type="text", reads=["name"])
        return Procedure([named, behind])

    for name in ("first", "second", "third"):
        right[0] = name
        model = SimulatedModel(answers={"name": name, "behind": name})
        asked = Guard(model, ledger=path).run(procedure(), run_id="run")
        again = Guard(Nobody(), ledger=path).run(procedure(), run_id="run")
        assert again.values == asked.values == {"name": name, "behind": name}
        assert again.notes == ()
    with Ledger(path) as ledger:
        assert ledger.runs()[0].completed == 2
        assert verify_ledger(ledger, procedures=[procedure()]).right


def test_a_call_that_returned_is_not_made_again(runs: Path | str) -> None:
    """D08: killed behind the call, a run goes on at the step after it, and has called once."""
    calls: list[tuple[Any, ...]] = []
    kill(Guard(Counting(die_at=2), ledger=runs, segment=1), payment(calls), {"x": 3}, "run")
    gc.collect()
    second = Counting()
    result = Guard(second, ledger=runs, segment=1).run(payment(calls), {"x": 3}, run_id="run")
    assert (result.status, result.values["receipt"]) == ("verified", "paid 6")
    assert ([*second.asked], calls) == (["last"], [(6,)])


@pytest.mark.parametrize("options", [pytest.param({}, id="D08"), {"idempotent": True}])
def test_a_call_in_flight_is_not_repeated_unless_it_may_be(runs: Path | str, options: dict[str, Any]) -> None:
    """A tool that died in its call is called again only where that is declared to be safe; else the run says so."""
    calls: list[tuple[Any, ...]] = []
    guard = Guard(SURE, ledger=runs)
    kill(guard, payment(calls, die=True, **options), {"x": 3}, "run")
    gc.collect()
    result = guard.run(payment(calls, **options), {"x": 3}, run_id="run")
    if options:
        assert (result.status, len(calls)) == ("verified", 2)
        return
    assert (result.status, len(calls)) == ("failed", 1)
    assert isinstance(result.error, UnsettledCall)
    assert "pay for receipt" in str(result.problem)
    with Ledger(runs) as ledger:
        ledger.answer("run", "receipt", "paid 6")
    result = guard.run(payment(calls), {"x": 3}, run_id="run")
    assert (result.status, result.values["receipt"], len(calls)) == ("verified", "paid 6", 1)


def test_a_call_may_be_made_again_where_a_person_says_so(runs: Path | str) -> None:
    """Who found out that a call had no effect lets it be made again."""
    calls: list[tuple[Any, ...]] = []
    guard = Guard(SURE, ledger=runs)
    kill(guard, payment(calls, die=True), {"x": 3}, "run")
    gc.collect()
    with Ledger(runs) as ledger:
        ledger.repeat("run", "receipt")
        with pytest.raises(ConfigError, match="no open call of a tool 'receipt'"):
            ledger.repeat("run", "receipt")
    assert guard.run(payment(calls), {"x": 3}, run_id="run").status == "verified"
    assert guard.run(payment(calls), {"x": 3}, run_id="run").status == "verified"
    assert len(calls) == 2


def test_keys_are_the_same_in_every_life(runs: Path | str) -> None:
    """A tool that takes an idempotency key is given the same one when its call is repeated."""
    keys: list[str] = []
    died = [False]

    def pay(amount: int, idempotency_key: str) -> str:
        keys.append(idempotency_key)
        if not died[0]:
            died[0] = True
            raise Killed
        return f"paid {amount}"

    procedure = Procedure.parse(PAYMENT, tools={"pay": Tool(pay)})
    guard = Guard(SURE, ledger=runs)
    kill(guard, procedure, {"x": 3}, "order 7")
    gc.collect()
    assert guard.run(procedure, {"x": 3}, run_id="order 7").status == "verified"
    assert keys == ["order 7:receipt"] * 2


def test_another_run_under_the_same_name_is_refused(tmp_path: Path, runs: Path | str) -> None:
    """A run_id belongs to one procedure and its inputs, and to one writer at a time."""
    guard = Guard(SURE, ledger=runs)
    guard.run(CHAIN, {"x": 12}, run_id="run")
    with pytest.raises(RunConflict, match=r"begun with other inputs \(x\)"):
        guard.run(CHAIN, {"x": 13}, run_id="run")
    with pytest.raises(RunConflict, match="begun with another procedure"):
        guard.run(Procedure.parse("inputs: x\nt1 = x + 1"), {"x": 12}, run_id="run")
    under_way = guard.start(CHAIN, {"x": 12}, run_id="other")
    link = tmp_path / "link.db"
    if isinstance(runs, Path):
        link.symlink_to(runs)
    places = (runs, link) if isinstance(runs, Path) else (runs,)
    for writer in (guard, *(Guard(SURE, ledger=place) for place in places)):
        with pytest.raises(RunConflict, match="is under way"):
            writer.run(CHAIN, {"x": 12}, run_id="other")
    assert guard.drive(under_way).status == "verified"


def test_a_writer_that_was_overtaken_writes_nothing(runs: Path | str) -> None:
    """Where the lock was lost, as on a network disk or with the connection, the first of two is refused at its next
    record."""
    first = Guard(SURE, segment=1, ledger=Ledger(runs))
    run = first.start(CHAIN, {"x": 12}, run_id="run")
    if isinstance(runs, Path):
        Path(f"{runs}-locks").unlink()
    else:
        change_ledger(runs, CUT_OFF)
    assert Guard(SURE, ledger=runs).run(CHAIN, {"x": 12}, run_id="run").verified
    result = first.drive(run)
    assert result.status == "failed"
    assert "taken over by another process" in str(result.problem)


@pytest.mark.parametrize("run_id", ["", " ", "a\nb", 7, "x" * 201])
def test_names_of_runs_are_lines_of_text(runs: Path | str, run_id: Any) -> None:
    """What cannot name a run is refused before anything is written."""
    with pytest.raises(ConfigError, match="run_id is a text"):
        Guard(SURE, ledger=runs).run(CHAIN, {"x": 12}, run_id=run_id)


def test_a_name_without_a_ledger_is_refused() -> None:
    """A run that is kept nowhere has no name that another process could go on with."""
    with pytest.raises(ConfigError, match="run_id names a run in a ledger"):
        Guard(SURE).run(CHAIN, {"x": 12}, run_id="run")
    with pytest.raises(ConfigError, match="an observing run verifies nothing"):
        Guard(SURE, observe=True, ledger="runs.db")


def test_many_async_runs_share_a_ledger(runs: Path | str) -> None:
    """Async runs in one file do not block the loop on the disk, and go on after a cancellation."""
    asyncio.run(_cancelled_runs(runs))


async def _cancelled_runs(runs: Path | str) -> None:
    class Slow:
        def __init__(self) -> None:
            self.model = SURE
            self.asked = 0

        async def acomplete(self, request: Request) -> Completion:
            self.asked += 1
            await asyncio.sleep(0)
            return self.model.complete(request)

    slow = Slow()
    guard = Guard(slow, segment=1, ledger=runs)
    tasks = [asyncio.create_task(guard.arun(CHAIN, {"x": number}, run_id=f"run {number}")) for number in range(4)]
    while slow.asked < 10:
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    results = await asyncio.gather(*(guard.arun(CHAIN, {"x": number}, run_id=f"run {number}") for number in range(4)))
    assert [result.answer for result in results] == [(2 * (3 * (x + 1) - 3)) - (x + 1) for x in range(4)]
    assert slow.asked <= 24 + 4  # a call in flight may be lost for each


def test_rows_are_kept_as_runs(runs: Path | str) -> None:
    """A batch with a name keeps every row as a run: what is finished is not asked again, and another row is refused."""

    def batch(model: Any, rows: list[dict[str, object]]) -> list[RowResult]:
        guard = Guard(model, ledger=runs)
        return [*guard.map(CHAIN, rows, key="id", run_id="night")]

    rows: list[dict[str, object]] = [{"id": f"r{number}", "x": number} for number in range(3)]
    model = Counting()
    assert [row.status for row in batch(model, rows[:2])] == ["verified"] * 2
    asked = len(model.asked)
    assert [row.status for row in batch(model, rows)] == ["verified"] * 3
    assert len(model.asked) == asked * 3 // 2
    (changed,) = batch(model, [{"id": "r1", "x": 9}])
    assert (changed.status, type(changed.error)) == ("failed", RunConflict)
    unnamed, right = batch(model, [{"id": "r\n1", "x": 9}, {"id": "r7", "x": 9}])
    assert (unnamed.status, right.status) == ("invalid", "verified")
    with Ledger(runs) as ledger:
        assert [each.run_id for each in ledger.runs()] == ["night/r7", "night/r2", "night/r1", "night/r0"]


def test_what_a_person_told_of_a_call_can_be_put_right(runs: Path | str) -> None:
    """A tool that has raised is not called again; where what a person told cannot be, it is asked for again."""
    calls: list[int] = []

    def pay(amount: int) -> int:
        calls.append(amount)
        raise OSError("the line is dead")

    text = "inputs: x\ntotal = x * 2\npaid: integer = tool pay(amount=total)\nlast = paid + 1"
    procedure = Procedure.parse(text, tools={"pay": Tool(pay)})
    guard = Guard(SURE, ledger=runs)
    assert "the line is dead" in str(guard.run(procedure, {"x": 3}, run_id="run").problem)
    assert isinstance(guard.run(procedure, {"x": 3}, run_id="run").error, UnsettledCall)
    with Ledger(runs) as ledger:
        ledger.answer("run", "paid", "six")
        assert "'six'" in str(guard.run(procedure, {"x": 3}, run_id="run").problem)
        ledger.answer("run", "paid", 6)
    assert guard.run(procedure, {"x": 3}, run_id="run").answer == 7
    assert calls == [6]


def test_an_answer_is_one_to_the_question_that_was_asked(runs: Path | str) -> None:
    """An answer that is none is asked for again, and one to other values than were shown does not count."""
    calls: list[tuple[Any, ...]] = []
    procedure = payment(calls, approval=True)
    guard = Guard(SURE, ledger=runs)
    with Ledger(runs) as ledger:
        assert guard.run(procedure, {"x": 3}, run_id="run").status == "waiting"
        ledger.answer("run", "approve_receipt", "perhaps")
        result = guard.run(procedure, {"x": 3}, run_id="run")
        assert (result.status, result.notes) == (
            "waiting",
            ("the answer to approve_receipt cannot be taken: 'perhaps': true or false was expected",),
        )
        ledger.answer("run", "approve_receipt", True)
        ledger.answer("run", "approve_receipt", "No")  # the newest counts
        refused = guard.run(procedure, {"x": 3}, run_id="run")
        assert (refused.status, calls) == ("abstained", [])
        with pytest.raises(ConfigError, match="None answers nothing"):
            ledger.answer("run", "approve_receipt", None)


def test_a_run_that_waits_goes_on_in_its_own_process_unless_another_did(runs: Path | str) -> None:
    """`Run.answer` goes on with a parked run; where another process has meanwhile, it is refused."""
    calls: list[tuple[Any, ...]] = []
    procedure = payment(calls, approval=True)
    guard = Guard(SURE, ledger=runs)
    for name in ("mine", "taken"):
        run = guard.start(procedure, {"x": 3}, run_id=name)
        assert guard.drive(run).status == "waiting"
        if name == "taken":
            with Ledger(runs) as ledger:
                ledger.answer(name, "approve_receipt", "yes")
            assert guard.run(procedure, {"x": 3}, run_id=name).verified
            with pytest.raises(RunConflict, match="taken over by another process"):
                run.answer("approve_receipt", True)
            continue
        run.answer("approve_receipt", True)
        assert guard.drive(run).verified
    assert len(calls) == 2


def test_a_procedure_is_the_same_however_a_version_writes_it(runs: Path | str) -> None:
    """A run goes on where the text of its procedure was written otherwise by another version, and says the same."""
    Guard(SURE, ledger=runs).run(CHAIN, {"x": 12}, run_id="run")
    from stepguard.ledger.procedures import digest_of_source

    with Ledger(runs) as ledger, ledger.file.writing() as transaction:
        ((source, operations),) = transaction.execute("select source, operations from procedures").fetchall()
        other = source.replace("t1 = x + 1", "t1  =  x  +  1")
        digest = digest_of_source(other, operations)
        transaction.execute("update procedures set source = ?, digest = ?", other, digest)
        transaction.execute("update runs set procedure = ?", digest)
    assert Guard(Nobody(), ledger=runs).run(CHAIN, {"x": 12}, run_id="run").verified


def test_what_functions_gave_and_persons_said_is_kept(runs: Path | str) -> None:
    """A function is not called again, and a person not asked again, for what they have given; types come back whole."""
    text = """\
inputs: x
rate: decimal(2) = function rate_of(x=x)
due: date = ask person "Which day is it due?"
days: list of date = function days_of(due=due)
total = x * 3
late = total + 1
"""
    calls: list[str] = []

    def rate_of(x: int) -> Decimal:
        calls.append("rate_of")
        return Decimal("0.50") * x

    def days_of(due: date) -> list[date]:
        calls.append("days_of")
        return [due, due + timedelta(days=1)]

    def said(*_: object) -> date:
        calls.append("person")
        return date(2024, 2, 28)

    def broken(**_: object) -> object:
        raise AssertionError("it was called again")

    procedure = Procedure.parse(text, functions={"rate_of": rate_of, "days_of": days_of})
    whole = Guard(SURE, person=said).run(procedure, {"x": 5})
    calls.clear()
    kill(Guard(Counting(die_at=2), segment=1, person=said, ledger=runs), procedure, {"x": 5}, "run")
    gc.collect()
    again = Procedure.parse(text, functions={"rate_of": broken, "days_of": broken})
    result = Guard(Counting(), segment=1, ledger=runs).run(again, {"x": 5}, run_id="run")
    assert facts(result) == facts(whole)
    assert sorted(calls) == ["days_of", "person", "rate_of"]


NAMES = """
record Policy:
  limit: integer
  rates: list of integer

inputs:
  policy: Policy
  xs: list of integer

for each x in xs:
  a: integer = x + policy.limit
  b: integer = a * policy.rates[0]
  n: integer = 0
  repeat at most 3 times until n > 1:
    c: integer = x + n
    n: integer = n + 1
"""


@pytest.mark.parametrize(("before", "after", "at"), [(None, 1, 3), (3, 3, 20), (1, 9, 30), (5, None, 7)])
def test_a_step_is_the_same_whenever_it_comes_up(
    runs: Path | str, before: int | None, after: int | None, at: int
) -> None:
    """What is looked up in every round has one name: neither the order of replies nor the end of a round changes it."""
    procedure = Procedure.parse(NAMES)
    inputs: dict[str, object] = {"policy": {"limit": 3, "rates": [2]}, "xs": [*range(40)]}
    kill(Guard(Counting(die_at=at), segment=before, ledger=runs), procedure, inputs, "run")
    gc.collect()
    model = Counting()
    result = Guard(model, segment=after, ledger=runs).run(procedure, inputs, run_id="run")
    assert (result.status, result.notes) == ("verified", ())
    with Ledger(runs) as ledger:
        assert verify_ledger(ledger).faults == ()


def _is_large(step: Step, values: Mapping[str, Any], claim: Claim) -> bool:
    return bool(values[step.id] == (values["x"] > 5))


def test_another_process_is_not_another_toss(runs: Path | str) -> None:
    """A wrong guess at a step of few values counts in every process; somebody else may answer it all the same."""
    large = Step("large", instruction="Is x above 5?", type="boolean", reads=["x"], checks=[_is_large])
    procedure = Procedure([Step("t", "x + 1"), large], inputs=[Input("x", "integer")], name="toss")
    said = '{"t": "7 + 1 = 8", "large": {"work": "as I see it", "value": "false"}}'
    first = Guard(ScriptedBackend(said), ledger=runs).run(procedure, {"x": 7}, run_id="r")
    assert (first.status, first.completed) == ("abstained", 1)
    for _ in range(3):
        again = Guard(Nobody(), ledger=runs).run(procedure, {"x": 7}, run_id="r")
        assert again.status == "abstained"
        assert again.problem is not None
        assert "1 value is left" in again.problem.reason
    ladder = Ladder([Resample(), person(lambda step, values: True)])
    last = Guard(Nobody(), ledger=runs, repair=ladder).run(procedure, {"x": 7}, run_id="r")
    assert (last.status, last.steps[-1].tries, dict(last.assisted)) == ("checked", 2, {"person": 1})


@pytest.mark.parametrize("who", [another_model, lambda asked: person(lambda step, values: asked([]) == "true")])
def test_somebody_else_has_no_other_toss_either(
    runs: Path | str, who: Callable[[Callable[[object], str]], Rung]
) -> None:
    """Who answers in the place of the model, and errs, is not asked again by the next process; the one behind is."""
    asked: Counter[str] = Counter()

    def answer(name: str, value: str) -> Callable[[object], str]:
        def reply(_: object) -> str:
            asked[name] += 1
            return value if who is not another_model else f'{{"large": {{"work": "so", "value": "{value}"}}}}'

        return reply

    large = Step("large", instruction="Is x above 5?", type="boolean", reads=["x"], checks=[_is_large])
    procedure = Procedure([large], inputs=[Input("x", "integer")], name="toss")
    others = [who(answer("first", "false")), who(answer("second", "false"))]
    for number in range(3):
        model = ScriptedBackend('{"large": {"work": "so", "value": "false"}}') if not number else Nobody()
        again = Guard(model, ledger=runs, repair=Ladder(others)).run(procedure, {"x": 7}, run_id="r")
        assert again.status == "abstained"
        assert asked == {"first": 1, "second": 1}
    ladder = Ladder([*others, who(answer("third", "true"))])
    last = Guard(Nobody(), ledger=runs, repair=ladder).run(procedure, {"x": 7}, run_id="r")
    assert (last.status, asked) == ("checked", {"first": 1, "second": 1, "third": 1})
