"""The benchmark as a task of Inspect AI: the same judgement as our own runner's, whatever the endpoint does."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import math
import tomllib
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

import pytest
from conftest import ChatServer, Received, Reply, completion_body

from stepguard.backends.base import Completion, Request
from stepguard.errors import ConfigError
from stepguard.evaluation.arms import ArmOptions, TaskOutcome
from stepguard.evaluation.families import family_named
from stepguard.evaluation.runner import Plan, run_plan
from stepguard.testing import SimulatedModel, Slips

# What inspect_ai itself does: it leaves streams of anyio's to the garbage collector, and calls tenacity as of old.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Unclosed <MemoryObject:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning"),
]

MODULES = [f"stepguard.evaluation.inspect.{name}" for name in ("registry", "task", "model")]
TABLE = Mapping[tuple[object, ...], Completion]


def test_the_entry_point_is_declared() -> None:
    """Inspect looks for its group; the name is the prefix of stepguard/bench."""
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text)["project"]["entry-points"]["inspect_ai"] == {"stepguard": MODULES[0]}


@pytest.fixture
def inspect_ai(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """The library, keeping its files in a folder of the test's."""
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "INSPECT_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    found = pytest.importorskip("inspect_ai")
    importlib.import_module(MODULES[0])
    yield found
    gc.collect()  # or its streams are found in the tests of another module, which do not expect them


Run = Callable[..., Any]


@pytest.fixture
def run(inspect_ai: Any, chat_server: ChatServer, tmp_path: Path) -> Run:
    """Runs the benchmark through Inspect at the loopback server, and gives back the log."""

    def evaluate(*, model_args: Mapping[str, Any] | None = None, name: str | None = None, **options: Any) -> Any:
        from stepguard.evaluation.inspect.task import bench

        about = {key: options.pop(key) for key in ("task", "lengths", "n", "arm", "retries") if key in options}
        (log,) = inspect_ai.eval(
            bench(**about) if name is None else name,
            task_args=about if name is not None else {},
            model="stepguard/some-model",
            model_base_url=chat_server.url,
            model_args=dict(model_args or {}),
            log_dir=str(tmp_path / "logs"),
            display="none",
            log_realtime=False,
            ctl_server=False,
            **{"max_retries": 0, **options},
        )
        return log

    return evaluate


class Heard:
    """A simulated model, and what it said to what would have gone over the wire."""

    def __init__(self, slips: Slips) -> None:
        self._model = SimulatedModel(slips=slips)
        self.said: dict[tuple[object, ...], Completion] = {}

    def complete(self, request: Request) -> Completion:
        completion = replace(self._model.complete(request), fingerprint="fp_7")
        self.said[_key(request.chat(), request.temperature, request.seed, request.max_tokens)] = completion
        return completion


def _key(messages: Any, temperature: Any, seed: Any, max_tokens: Any) -> tuple[object, ...]:
    # Equal greedy requests are asked once by our runner, whatever their seeds.
    return json.dumps(messages), temperature, seed if temperature else None, max_tokens


def own(arm: str, heard: Heard, *, lengths: tuple[int, ...], n: int) -> list[TaskOutcome]:
    """What our own runner makes of it."""
    plan = Plan(
        family=family_named("arithmetic"), cells=dict.fromkeys(lengths, n), arms=(arm,), seed=0, options=ArmOptions()
    )
    return asyncio.run(run_plan(plan, heard, configuration={}, concurrency=2))


def answering(said: TABLE) -> Callable[[Received], Reply]:
    """A server that says what was said before, and nothing to anything else."""

    def answer(received: Received) -> Reply:
        body = received.body
        known = said.get(_key(body["messages"], body["temperature"], body["seed"], body["max_tokens"]))
        if known is None:
            return Reply({"error": {"message": "another request than our runner's"}}, status=400)
        told = completion_body(known.text, **({} if known.refusal is None else {"refusal": known.refusal}))
        told["choices"][0]["finish_reason"] = known.finish_reason
        spent = known.usage
        told |= {"model": known.model, "system_fingerprint": known.fingerprint}
        told["usage"] = {"prompt_tokens": spent.input_tokens, "completion_tokens": spent.output_tokens}
        return Reply(told)

    return answer


def metrics(log: Any) -> dict[str, float]:
    return {each.name: each.metrics["accuracy"].value for each in log.results.scores}


def always(text: str) -> Reply:
    return Reply(completion_body(text))


# The same as our own runner


@pytest.mark.parametrize("arm", ["cot", "trace", "guard", "resample(k=3)", "blind"])
def test_outcomes_are_those_of_our_own_runner(run: Run, chat_server: ChatServer, arm: str) -> None:
    """For the same replies every outcome is the same, and the metrics are its shares."""
    heard = Heard(Slips.all(0.03))
    expected = own(arm, heard, lengths=(3, 12), n=6)
    chat_server.play(answering(heard.said))
    log = run(arm=arm, lengths="3,12", n=6)
    assert log.status == "success"
    found = {sample.id: sample.store["stepguard"] for sample in log.samples}
    for outcome in expected:
        made = {**outcome.to_dict(), "seconds": found[f"{outcome.length}-{outcome.seed}"]["seconds"]}
        del made["texts"]
        assert found[f"{outcome.length}-{outcome.seed}"] == json.loads(json.dumps(made))
    shares = metrics(log)
    assert 0 < shares["right"] < 1
    assert shares["right"] == pytest.approx(sum(each.right for each in expected) / 12)
    assert shares["right_lenient"] == pytest.approx(sum(each.right_lenient for each in expected) / 12)
    assert shares["every_step_right"] == pytest.approx(sum(each.trace_right for each in expected) / 12)
    assert shares["abstained"] == pytest.approx(sum(each.abstained for each in expected) / 12)
    assert shares["error"] == 0
    usage = log.stats.model_usage["stepguard/some-model"]
    if arm != "blind":  # what it runs to find its schedule is not counted as its own
        assert usage.output_tokens == sum(each.output_tokens for each in expected)


def test_abstention_is_neither_right_nor_silently_wrong(run: Run, chat_server: ChatServer) -> None:
    """A guard over a model that never gets a step right abstains; a chain of thought vouches for nothing."""
    chat_server.play(always('{"t1": "1 + 1 = 3"}'))
    shares = metrics(run(lengths=2, n=2, retries=1))
    assert (shares["right"], shares["abstained"], shares["silent_error"]) == (0, 1, 0)
    chat_server.play(always("Answer: 999999"))
    shares = metrics(run(lengths=2, n=2, arm="cot"))
    assert (shares["right"], shares["abstained"]) == (0, 0)
    assert math.isnan(shares["silent_error"])


# What goes wrong


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("arm", ["cot", "guard"])
def test_errors_of_the_endpoint_count_as_wrong(run: Run, chat_server: ChatServer, arm: str, status: int) -> None:
    """A failed call is said to be one, once, and its sample stays in the denominator."""
    heard = Heard(Slips.none())
    own(arm, heard, lengths=(3,), n=4)
    answer = answering(heard.said)
    first = iter([True])
    chat_server.play(
        lambda received: Reply({"error": {"message": "no"}}, status=status) if next(first, False) else answer(received)
    )
    log = run(arm=arm, lengths=3, n=4, max_samples=1)
    assert log.status == "success"
    assert len(log.samples) == 4
    shares = metrics(log)
    assert (shares["right"], shares["error"], shares["abstained"]) == (0.75, 0.25, 0)
    assert all(each.scored_samples == 4 for each in log.results.scores if each.name != "silent_error")
    (failed,) = [each for each in log.samples if each.store["stepguard"]["error"] is not None]
    assert f"HTTP {status}" in failed.scores["judged"].explanation
    assert failed.store["stepguard"]["calls"] == 1


def test_a_limit_ends_the_sample_and_counts_as_wrong(run: Run, chat_server: ChatServer) -> None:
    """Inspect's token limit is met by the calls of the guard, and named in its log."""
    chat_server.play(always('{"t1": "1 + 1 = 3"}'))
    log = run(lengths=3, n=2, token_limit=20)
    assert [sample.limit.type for sample in log.samples] == ["token", "token"]
    assert metrics(log)["right"] == 0
    assert metrics(log)["error"] == 1
    assert len(chat_server.requests) == 4


def test_a_sample_that_is_ended_from_outside_counts_as_wrong(run: Run, chat_server: ChatServer) -> None:
    """Inspect's time limit leaves no outcome behind; the sample is scored for all that."""
    chat_server.play(Reply(completion_body("Answer: 1"), delay=30))
    log = run(arm="cot", lengths=3, n=1, time_limit=1)
    (sample,) = log.samples
    assert sample.limit.type == "time"
    assert sample.store["stepguard"] == {"arm": "cot", "status": "unfinished"}
    assert (metrics(log)["right"], metrics(log)["error"]) == (0, 1)


def test_an_option_that_would_not_be_sent_is_an_error(run: Run, chat_server: ChatServer) -> None:
    """Neither Inspect's options nor the model's are dropped in silence."""
    log = run(arm="cot", lengths=3, n=1, top_p=0.9)
    assert log.status == "error"
    assert "not sent 'top_p'" in log.error.message
    with pytest.raises(ConfigError, match="no_such"):
        run(arm="cot", lengths=3, n=1, model_args={"no_such": 1})
    assert not chat_server.requests


def test_a_solver_that_runs_no_arm_is_an_error(run: Run, chat_server: ChatServer, inspect_ai: Any) -> None:
    """Where another solver answers there is no outcome to judge, and the log says what to use."""
    chat_server.play(always("Answer: 1"))
    log = run(lengths=3, n=1, solver=inspect_ai.solver.generate())
    assert log.status == "error"
    assert "use stepguard/run_arm" in log.error.message


def test_an_event_loop_that_is_not_asyncio_is_an_error(inspect_ai: Any) -> None:
    """On trio every call would fail, and every sample count as wrong."""
    from stepguard.evaluation.inspect.task import run_arm

    unused: Any = None
    with pytest.raises(ConfigError, match="INSPECT_ASYNC_BACKEND"):
        cast(Coroutine[Any, Any, Any], run_arm()(unused, unused)).send(None)


# What Inspect does for every model


def test_the_cache_of_inspect_answers_what_was_asked_before(run: Run, chat_server: ChatServer) -> None:
    """A second run with the same cache asks the endpoint nothing, and comes to the same."""
    heard = Heard(Slips.all(0.03))
    own("guard", heard, lengths=(5,), n=3)
    chat_server.play(answering(heard.said))
    first = run(lengths=5, n=3, cache=True)
    asked = len(chat_server.requests)
    second = run(lengths=5, n=3, cache=True)
    assert asked == len(chat_server.requests) > 0
    assert metrics(first).items() == metrics(second).items()


def test_every_call_stands_in_the_transcript(run: Run, chat_server: ChatServer) -> None:
    """The log holds each request and reply, and the reply that came last is the sample's output."""
    chat_server.play(always('{"t1": "1 + 1 = 3"}'))
    (sample,) = run(lengths=2, n=1, retries=2).samples
    events = [each for each in sample.events if each.event == "model"]
    assert len(events) == len(chat_server.requests) == 3
    assert sample.output.completion == '{"t1": "1 + 1 = 3"}'


@pytest.mark.parametrize("mode", ["json_schema", "tools", "json"])
def test_a_structured_reply_is_asked_for_as_the_endpoint_wants_it(run: Run, chat_server: ChatServer, mode: str) -> None:
    """The schema that Inspect hands on names the asked steps in order, in every mode of the backend."""
    heard = Heard(Slips.none())
    own("guard", heard, lengths=(3,), n=1)
    answer = answering(heard.said)

    def as_asked(received: Received) -> Reply:
        reply = answer(received)
        if "tools" in received.body and isinstance(reply.body, dict):
            message = reply.body["choices"][0]["message"]
            function = {"name": "Steps", "arguments": message["content"]}
            message |= {"content": None, "tool_calls": [{"id": "1", "type": "function", "function": function}]}
        return reply

    chat_server.play(as_asked)
    log = run(lengths=3, n=1, model_args={"mode": mode})
    assert metrics(log)["right"] == 1
    body = chat_server.requests[0].body
    if mode == "json":
        assert body["response_format"] == {"type": "json_object"}
        return
    if mode == "tools":
        schema = body["tools"][0]["function"]["parameters"]
    else:
        assert body["response_format"]["json_schema"]["name"] == "Steps"
        assert body["response_format"]["json_schema"]["strict"] is True
        schema = body["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == schema["required"] == ["t1", "t2", "t3"]
    assert schema["additionalProperties"] is False


def test_refusals_and_reasoning_arrive_as_such(run: Run, chat_server: ChatServer) -> None:
    """A refusal is a deviation of its own, and an answer in the reasoning is none."""
    chat_server.play(Reply(completion_body(None, refusal="I would rather not.")))
    (sample,) = run(lengths=2, n=1, retries=0).samples
    assert sample.store["stepguard"]["deviations"] == {"refused": 1}
    chat_server.play(Reply(completion_body("I do not know.", reasoning_content="Answer: 1")))
    (sample,) = run(lengths=2, n=1, arm="cot").samples
    assert sample.store["stepguard"]["status"] == "no_answer"


def test_a_log_can_be_judged_again(run: Run, chat_server: ChatServer, inspect_ai: Any) -> None:
    """The outcome in the log is all that the scorer needs: no model is asked."""
    from stepguard.evaluation.inspect.task import judged

    chat_server.play(always('{"t1": "1 + 1 = 3"}'))
    log = run(lengths=2, n=1, retries=0)
    asked = len(chat_server.requests)
    again = inspect_ai.score(log, judged(), action="overwrite", display="none")
    assert metrics(again) == metrics(log)
    assert len(chat_server.requests) == asked


# Names and arguments


def test_the_task_is_found_by_its_name(run: Run, chat_server: ChatServer) -> None:
    """What the README says works: stepguard/bench, with arguments as Inspect's command line makes them."""
    if not [each for each in entry_points(group="inspect_ai") if each.name == "stepguard"]:
        pytest.skip("stepguard is not installed, only imported")
    chat_server.play(always("Answer: 1"))
    knobs = ["arithmetic(look_back=1", " form=sentence)"]
    log = run(name="stepguard/bench", task=knobs, lengths=["2", "3"], n=1, arm="cot")
    assert log.status == "success"
    assert [sample.id for sample in log.samples] == ["2-0", "3-0"]
    assert {sample.metadata["family"] for sample in log.samples} == {"arithmetic(look_back=1, form=sentence)"}


def test_samples_are_the_instances_of_the_benchmark(inspect_ai: Any) -> None:
    """A sample is the statement of an instance, and its target the right answer as text."""
    from stepguard.evaluation.inspect.task import bench

    samples: list[Any] = list(bench(task="returns_desk", lengths=5, n=2, seed=7).dataset)
    tasks = [family_named("returns_desk").make(seed, 5) for seed in (7, 8)]
    assert [sample.input for sample in samples] == [task.statement for task in tasks]
    assert [sample.metadata["seed"] for sample in samples] == [7, 8]
    for sample, task in zip(samples, tasks, strict=True):
        (step,) = [step for step in task.procedure.steps if step.id == task.procedure.answer]
        assert step.type.read(sample.target) == task.answer


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        *(({"lengths": "5,x"}, "lengths takes whole numbers"), ({"lengths": "5,5"}, "stands once")),
        *(({"n": 0}, "n takes whole numbers"), ({"n": [1, 2, 3]}, "3 numbers for 2 lengths")),
        *(({"arm": "gaurd"}, "unknown arm 'gaurd'"), ({"task": "arithmetik"}, "unknown task 'arithmetik'")),
        *(({"seed": "x"}, "seed is a whole number"), ({"segment": 0}, "segment")),
    ],
)
def test_arguments_that_cannot_work_are_refused(inspect_ai: Any, wrong: dict[str, Any], says: str) -> None:
    """The error says what was found and what is taken, before a model is asked."""
    from stepguard.evaluation.inspect.task import bench

    with pytest.raises(ConfigError, match=says):
        bench(**wrong)
