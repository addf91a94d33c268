"""R14: a model is down, declines or gives a step up, and the user has given another one."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import ChatServer, Received, Reply, completion_body
from harness import DRIVERS
from tables import all_rows

from stepguard import Budget, Guard, Ladder, Price, Procedure, Result, RetryPolicy, Usage
from stepguard.backends import AsyncBackend, Completion, Request
from stepguard.backends.circuit import CircuitBreaker
from stepguard.backends.openai import OpenAIBackend
from stepguard.batches import CostLimit, run_batch
from stepguard.cli import main
from stepguard.errors import BackendError, BackendRejected, ConfigError
from stepguard.repair.policy import Failures
from stepguard.repair.rungs import Resample, Rung, another_model, person
from stepguard.testing import ScriptedBackend, SimulatedModel, Slips

PROCEDURE = Procedure.parse("inputs: x, y\nt1 = x * y\nt2 = t1 + 5")
INPUTS = {"x": 6, "y": 7}
AFTER = '{"t2": "42 + 5 = 47"}'
GOOD = '{"t1": "6 * 7 = 42", "t2": "42 + 5 = 47"}'
AT_ONCE = RetryPolicy(retries=1, first_wait=0.0)


class Down:
    """A model that never answers."""

    name = "down"

    def __init__(self, error: BackendError | None = None) -> None:
        self.asked = 0
        self._error = error

    def complete(self, _: Request) -> Completion:
        self.asked += 1
        raise self._error or BackendError("connection refused")


class Named(ScriptedBackend):
    """A scripted model that has a name of its own."""

    name = ""


def named(name: str, *replies: str | Completion) -> ScriptedBackend:
    backend = Named(*replies)
    backend.name = name
    return backend


def run(guard: Guard, driver: str = "run") -> Result:
    return guard.run(PROCEDURE, INPUTS) if driver == "run" else asyncio.run(guard.arun(PROCEDURE, INPUTS))


@DRIVERS
def test_the_fallback_is_asked_where_a_model_is_down(driver: str) -> None:
    """The run goes on with it, keeps to it, and the attempts say who was asked."""
    down, second = Down(), named("second", '{"t1": "6 * 7 = 42"}', '{"t2": "42 + 5 = 47"}')
    result = run(Guard(down, segment=1, fallback=second, retry=AT_ONCE), driver)
    assert (result.status, down.asked) == ("verified", 2)
    assert [attempt.backend for attempt in result.attempts] == [None, None, "second", "second"]
    assert [each["backend"] for each in json.loads(result.to_json())["attempts"]] == [None, None, "second", "second"]


@DRIVERS
def test_fallbacks_come_in_their_order(driver: str) -> None:
    """The next one is asked where the one before it is down, too; where all are, the run fails with the last error."""
    first, second = Down(), Down(BackendRejected("no such model"))
    result = run(Guard(first, fallback=[second, named("third", GOOD)], retry=AT_ONCE), driver)
    assert (result.status, first.asked, second.asked) == ("verified", 2, 1)
    assert result.attempts[-1].backend == "third"
    failed = run(Guard(Down(), fallback=[Down(BackendRejected("no such model"))], retry=AT_ONCE), driver)
    assert failed.status == "failed"
    assert "no such model" in str(failed.problem)


@DRIVERS
def test_another_model_of_the_ladder_stands_in(driver: str) -> None:
    """R14: it was given for steps that are not accepted, and is asked before the run is given up; a person is not."""
    ladder = Ladder(rungs=(Resample(), another_model(named("other", GOOD))))
    assert run(Guard(Down(), repair=ladder, retry=AT_ONCE), driver).status == "verified"
    asked: list[str] = []
    ladder = Ladder(rungs=(person(lambda step, values: asked.append(step.id)),))
    assert run(Guard(Down(), repair=ladder, retry=AT_ONCE), driver).status == "failed"
    assert asked == []


@DRIVERS
def test_the_budget_binds_all_of_them_together(driver: str) -> None:
    """A fallback is asked only as far as the budget goes."""
    second = named("second", GOOD)
    result = run(Guard(Down(), fallback=second, retry=AT_ONCE, budget=Budget(calls=2)), driver)
    assert (result.status, result.usage.calls) == ("exhausted", 2)


def test_what_a_server_does_wrong_is_an_outage_too() -> None:
    """Replies that nobody can use, by no fault of the model, go to the fallback after one call."""
    call = json.dumps({"name": "Steps", "arguments": json.loads(GOOD)})
    result = run(Guard(named("first", f"<tool_call>{call}</tool_call>"), fallback=named("second", GOOD)))
    assert (result.status, result.usage.calls) == ("verified", 2)
    assert [attempt.outcome for attempt in result.attempts] == ["error", "accepted"]


def declining(name: str) -> ScriptedBackend:
    return named(name, *[Completion(None, refusal="I cannot help with that.")] * 9)


@DRIVERS
def test_a_model_that_declines_hands_over(driver: str) -> None:
    """The fallback is asked the same, goes on with the run, and the result says who declined."""
    second = named("second", '{"t1": "6 * 7 = 42"}', AFTER)
    result = run(Guard(declining("first"), segment=1, fallback=second), driver)
    assert result.verified
    assert [(attempt.backend, attempt.outcome) for attempt in result.attempts] == [
        (None, "rejected"),
        ("second", "accepted"),
        ("second", "accepted"),
    ]
    assert [(step.tries, [each.kind for each in step.deviations]) for step in result.steps] == [
        (2, ["refused"]),
        (1, []),
    ]


def test_a_run_in_which_everybody_declines_abstains() -> None:
    """Each is asked once; an observing run asks nobody else, since it shows what the model does."""
    result = run(Guard(declining("first"), fallback=[declining("second"), declining("third")]))
    assert (result.status, result.usage.calls) == ("abstained", 3)
    assert "refused" in str(result.problem)
    observed = run(Guard(declining("first"), fallback=named("second", GOOD), observe=True))
    assert {attempt.backend for attempt in observed.attempts} == {None}


class OneTooMany:
    """A policy of one's own, which asks once more."""

    def next(self, failures: Failures) -> Rung | None:
        return Resample() if len(failures.kinds) == 1 else None


@all_rows("repair", [None, 1, 0, OneTooMany(), Ladder([Resample(times=2)])])
@DRIVERS
def test_a_step_that_a_model_gives_up_goes_to_the_fallback(driver: str, repair: Any) -> None:
    """Behind whatever the guard tries, each of them is asked that step once; the run goes on with its own model."""

    def first(messages: list[dict[str, str]]) -> str:
        asked = messages[-1]["content"]
        return AFTER if "t2 = 42 + 5" in asked else '{"t1": "6 * 7 = 43", "t2": "43 + 5 = 48"}'

    second, third = named("second", '{"t1": "6 * 7 = 41"}'), named("third", '{"t1": "6 * 7 = 42"}')
    result = run(Guard(first, repair=repair, fallback=[second, third]), driver)
    assert (result.status, result.answer) == ("verified", 47)
    assert [attempt.backend for attempt in result.attempts][-3:] == ["second", "third", None]
    assert [step.assistance for step in result.steps] == ["model", "none"]
    abstained = run(Guard(first, repair=repair, fallback=named("second", '{"t1": "6 * 7 = 41"}')), driver)
    assert abstained.status == "abstained"
    assert abstained.problem is not None
    assert abstained.problem.occurrence.step == "t1"


def test_who_stands_in_for_the_model_is_no_second_opinion() -> None:
    """A model that was wrong about a truth value as the run's own is not asked again as another one: it would guess."""
    procedure = Procedure.parse("inputs: x\nt1 = x > 3")
    wrong, right = '{"t1": "5 > 3 = false"}', '{"t1": "5 > 3 = true"}'
    for ladder, listed in ((False, True), (True, False), (True, True)):
        other = named("other", wrong, right)
        rungs = (Resample(), another_model(other)) if ladder else (Resample(),)
        guard = Guard(Down(), repair=Ladder(rungs), fallback=other if listed else None, retry=AT_ONCE)
        result = guard.run(procedure, {"x": 5})
        assert (result.status, len(result.attempts)) == ("abstained", 3)


def test_a_fallback_that_erred_is_not_asked_again_in_another_process(tmp_path: Path) -> None:
    """A run that is gone on with remembers who was wrong about a truth value: each would guess."""
    procedure = Procedure.parse("inputs: x\nt1 = x > 3")
    wrong, right = '{"t1": "5 > 3 = false"}', '{"t1": "5 > 3 = true"}'
    first, second = named("first", wrong, right), named("second", wrong, right)
    for _ in range(2):
        guard = Guard(first, repair=Ladder([Resample()]), fallback=second, ledger=tmp_path / "runs.db")
        result = guard.run(procedure, {"x": 5}, run_id="k")
        assert (result.status, [each.backend for each in result.attempts]) == ("abstained", [None, "second"])


def test_a_fallback_that_is_down_is_not_asked_a_step_that_was_given_up() -> None:
    """It did not answer when it was to stand in, and is left alone from then on."""
    down = Down()
    result = run(Guard(Down(), fallback=[down, named("third", *[GOOD.replace("42", "41")] * 9)], retry=AT_ONCE))
    assert (result.status, down.asked) == ("abstained", 2)


def test_each_model_may_have_a_budget_and_a_circuit_of_its_own() -> None:
    """Where one has spent its calls over all runs, or is left alone for a while, the next one is asked."""
    first = CircuitBreaker(Down(), failures=1)
    second = CircuitBreaker(named("second", *[GOOD] * 2), calls=2)
    guard = Guard(first, fallback=[second, named("third", *[GOOD] * 9)], retry=RetryPolicy(retries=0))
    who = [row.result.attempts[-1].backend for row in guard.map(PROCEDURE, [INPUTS] * 3, concurrency=1) if row.result]
    assert who == ["second", "second", "third"]
    assert (first.spent.calls, second.spent.calls) == (1, 2)


def test_what_a_model_does_wrong_is_no_outage() -> None:
    """A wrong step is asked again of the same model first."""
    second = named("second", GOOD)
    result = run(Guard(named("first", GOOD.replace("42", "41"), '{"t1": "6 * 7 = 42"}', AFTER), fallback=second))
    assert result.status == "verified"
    assert {attempt.backend for attempt in result.attempts} == {None}


def test_calls_at_the_same_time_move_on_together(chat_server: ChatServer) -> None:
    """Flights whose model is down go to the one fallback, not each to a further one."""
    procedure = Procedure.parse("inputs: x, y\na = x * y\nb = x + y\nc = x - y\nt = a + b + c")
    rows = {"a": "6 * 7 = 42", "b": "6 + 7 = 13", "c": "6 - 7 = -1", "t": "42 + 13 + -1 = 54"}

    def answer(messages: list[dict[str, str]]) -> str:
        return json.dumps(
            {name: row for name, row in rows.items() if f"\n{name} = " in messages[-1]["content"]} or rows
        )

    chat_server.play(Reply({"error": {"message": "down"}}, 503))
    backend = OpenAIBackend("m", base_url=chat_server.url, api_key="k")
    guard = Guard(backend, segment=1, parallel=3, fallback=[answer, Down()], retry=RetryPolicy(retries=0))
    result = asyncio.run(guard.arun(procedure, INPUTS))
    assert {attempt.backend for attempt in result.attempts} == {None, "answer"}


def test_a_fallback_over_real_sockets(chat_server: ChatServer) -> None:
    """An endpoint that refuses every key, and one that answers."""
    chat_server.play(
        lambda received: Reply(completion_body(GOOD)) if "right" in received.body["model"] else Reply({}, 401)
    )
    wrong, right = (OpenAIBackend(name, base_url=chat_server.url, api_key="k") for name in ("wrong", "right"))
    result = run(Guard(wrong, fallback=right), "arun")
    assert (result.status, [attempt.backend for attempt in result.attempts]) == ("verified", [None, "right"])


class Sized(ScriptedBackend):
    """A model that has a length, as a recording has."""

    name = "sized"

    def __len__(self) -> int:
        return 0


@DRIVERS
def test_a_model_is_asked_whatever_its_length(driver: str) -> None:
    """A fallback, or another model of the ladder, that is empty by its length is asked all the same."""
    for options in ({"fallback": Sized(GOOD)}, {"repair": Ladder([another_model(Sized(GOOD))])}):
        result = run(Guard(Down(), retry=AT_ONCE, **options), driver)
        assert (result.status, result.attempts[-1].backend) == ("verified", "sized")


def test_a_fallback_that_cannot_work_is_refused_at_once() -> None:
    """It is named when the guard is made, or when it is run in a way that it does not know."""

    class Awaited:
        async def acomplete(self, _: Request) -> Completion:
            return Completion(GOOD)

    assert isinstance(Awaited(), AsyncBackend)
    with pytest.raises(ConfigError):
        Guard(Down(), fallback=5)
    with pytest.raises(ConfigError, match="can only be awaited"):
        run(Guard(Down(), fallback=Awaited()))


WAYS = {
    "outage": Reply({"error": {"message": "no such key"}}, 401),
    "refusal": Reply(completion_body(None, refusal="I cannot help with that.")),
    "give-up": Reply(completion_body('{"t1": "6 * 7 = 41"}')),
}


@pytest.fixture(params=WAYS)
def failing(request: pytest.FixtureRequest, chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> ChatServer:
    """An endpoint whose model fails in one way, and that has another one, which does not."""

    def answer(received: Received) -> Reply:
        if received.body["model"] != "second":
            return WAYS[request.param]
        return Reply(completion_body('{"t1": "6 * 7 = 42"}'))

    chat_server.play(answer)
    monkeypatch.setenv("OPENAI_BASE_URL", chat_server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    return chat_server


@pytest.mark.parametrize("rows", [False, True])
def test_the_command_has_fallbacks(
    failing: ChatServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, rows: bool
) -> None:
    """`stepguard run --fallback` takes over in each way, also for rows, and the JSON says who was asked."""
    (tmp_path / "steps.txt").write_text("inputs: x, y\nt1 = x * y\n", encoding="utf-8")
    command = ["run", str(tmp_path / "steps.txt"), "--model", "openai/first", "--fallback", "openai/second"]
    command += ["--retries", "0", "--json"]
    if rows:
        (tmp_path / "rows.jsonl").write_text('{"x": 6, "y": 7}\n', encoding="utf-8")
        out = tmp_path / "out.jsonl"
        command += ["--inputs", str(tmp_path / "rows.jsonl"), "--out", str(out), "--details"]
        assert main(command) == 0
        result = json.loads(out.read_text(encoding="utf-8"))
    else:
        assert main([*command, "--input", "x=6", "--input", "y=7"]) == 0
        result = json.loads(capsys.readouterr().out)
    assert [attempt["backend"] for attempt in result["attempts"]] == [None, "second"]
    assert result["answer"] == 42
    assert [received.body["model"] for received in failing.requests] == ["first", "second"]


def test_the_server_has_fallbacks(failing: ChatServer) -> None:
    """A served procedure goes to the fallback in each way, with one client for all requests."""
    pytest.importorskip("uvicorn")
    from serve_harness import serving

    procedure = Procedure.parse("name: sums\ninputs: x, y\nt1 = x * y")
    options = {"fallback": "openai/second", "repair": 0}
    with serving(failing.url, procedures={"sums": procedure}, guard=options) as served:
        for _ in range(2):
            answer = served.chat('{"x": 6, "y": 7}', model="sums@first")
            assert answer.status == 200
            assert answer.json["choices"][0]["message"]["content"].endswith("answer: 42")
    assert [received.body["model"] for received in failing.requests] == ["first", "second"] * 2


def test_what_fallbacks_cost_in_a_batch_is_counted_and_paid_once(tmp_path: Path) -> None:
    """A limit of money holds for all models together, and a batch that goes on has the replies of each."""
    asked: list[str] = []

    def second(messages: list[dict[str, str]]) -> Completion:
        asked.append(messages[-1]["content"])
        if len(asked) == 2:
            raise BackendRejected("interrupted")
        text = '{"t1": "6 * 7 = 42"}' if "t1 = 6 * 7" in asked[-1] else AFTER
        return Completion(text, usage=Usage(1, 1000, 0))

    options: dict[str, Any] = {"fallback": second, "segment": 1, "key": None}
    first = run_batch(PROCEDURE, declining("first"), [INPUTS], tmp_path / "out.jsonl", **options)
    assert first.counts == {("failed", "proved"): 1}
    again = run_batch(PROCEDURE, declining("first"), [INPUTS], tmp_path / "out.jsonl", resume=True, **options)
    assert (again.counts, len(asked)) == ({("verified", "proved"): 1}, 3)
    assert (again.spent.input_tokens, again.replayed.input_tokens) == (1000, 1000)
    rows = [{"x": number, "y": 7} for number in range(60)]
    limit = CostLimit(Decimal("0.002"), Price(input="1", output="1"))
    right = SimulatedModel(slips=Slips.none())
    limited = run_batch(
        PROCEDURE, Down(), rows, tmp_path / "dear.jsonl", fallback=right, limit=limit, concurrency=1, retry=AT_ONCE
    )
    assert limited.stopped
    assert limited.rows < len(rows)
