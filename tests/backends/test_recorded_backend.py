"""Recordings: replies that are asked once, kept whole, and replayed without a model."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from harness import GOOD, P2, without_time

from stepguard import Guard, Procedure, Usage
from stepguard.backends import Completion, Message, Request
from stepguard.backends.base import ToolCall
from stepguard.backends.openai import OpenAIBackend
from stepguard.backends.recorded import RecordedBackend
from stepguard.errors import BackendError, ConfigError, ReplyMissing
from stepguard.evaluation.families import Arithmetic
from stepguard.replies.formats import EquationFormat
from stepguard.testing import ScriptedBackend, SimulatedModel, Slips

ASKED = Request(
    messages=(Message("system", "Work it out."), Message("user", "a = 2 * 3")),
    steps=tuple(P2.steps),
    reply_format=EquationFormat(),
    temperature=0.0,
    max_tokens=100,
    seed=1,
)
FULL = Completion(
    "text \u00e9 \U0001f600 \ud800",
    "tool_calls",
    refusal="no",
    reasoning="because",
    tool_calls=(ToolCall("Steps", '{"a": "1"}'),),
    usage=Usage(1, 10, 5, 3, 2),
    model="served",
    fingerprint="fp",
)


class Counting:
    """Answers every request with its number."""

    name = "counting"

    def __init__(self) -> None:
        self.calls = 0

    def complete(self, request: Request) -> Completion:
        self.calls += 1
        return Completion(str(self.calls), usage=Usage(calls=1, input_tokens=10, output_tokens=1))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a recording is to be made."""
    return tmp_path / "replies.sqlite"


def test_what_was_asked_once_is_not_asked_again(file: Path) -> None:
    """A reply is kept across programs: the second one replays it, whole, and spends nothing."""
    with RecordedBackend(file, ScriptedBackend(FULL)) as first:
        assert first.complete(ASKED) == FULL
        assert (first.spent, first.replayed) == (FULL.usage, Usage())
    with RecordedBackend(file, ScriptedBackend()) as second:
        assert second.complete(ASKED) == FULL
        assert second.reply(ASKED).replayed
        assert (second.spent, second.replayed) == (Usage(), FULL.usage + FULL.usage)


def test_a_run_is_replayed_without_a_model(file: Path) -> None:
    """A whole run, retries included, comes out the same from the recording alone."""
    task = Arithmetic().make(3, 30)
    options: dict[str, Any] = {"segment": 5, "seed": 7, "repair": 8}
    model = SimulatedModel(5, slips=Slips(wrong_value=0.2, systematic=0.0))
    with RecordedBackend(file, model) as recording:
        made = Guard(recording, **options).run(task.procedure, task.inputs)
        assert len(recording) == made.usage.calls > 7
    with RecordedBackend(file) as replay:
        assert without_time(Guard(replay, **options).run(task.procedure, task.inputs)) == without_time(made)
        again = asyncio.run(Guard(replay, **options).arun(task.procedure, task.inputs))
        assert without_time(again) == without_time(made)


def test_a_recording_can_be_shipped_as_text(file: Path, tmp_path: Path) -> None:
    """The exported file replays the same without the requests, and holds JSON lines in a stable order."""
    text = tmp_path / "replies.jsonl"
    with RecordedBackend(file, ScriptedBackend(FULL, GOOD)) as recording:
        recording.complete(ASKED)
        recording.complete(replace(ASKED, max_tokens=200))
        recording.export(text)
    content = text.read_text(encoding="utf-8")
    assert "Work it out" not in content
    assert len([json.loads(line) for line in content.splitlines()]) == 3
    with RecordedBackend(text) as replay:
        assert replay.complete(ASKED) == FULL
        assert len(replay) == 2
        replay.export(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text(encoding="utf-8") == content


@pytest.mark.parametrize(
    "change",
    [
        {"messages": (Message("system", "Work it out!"), ASKED.messages[1])},
        {"messages": (Message("user", "Work it out."), ASKED.messages[1])},
        {"steps": tuple(P2.steps)[:1]},
        {"reply_format": None},
        {"temperature": 0.8},
        {"temperature": None},
        {"max_tokens": 101},
    ],
)
def test_everything_that_shapes_a_reply_is_part_of_the_question(file: Path, change: dict[str, Any]) -> None:
    """Another prompt, form, temperature or limit is another question: asked anew, or a clear miss."""
    model = Counting()
    with RecordedBackend(file, model) as recording:
        recording.complete(ASKED)
        recording.complete(replace(ASKED, **change))
        assert model.calls == 2
    missing = pytest.raises(ReplyMissing, match=r"no reply to the request for .* prompt or settings")
    with RecordedBackend(file) as replay, missing:
        replay.complete(replace(ASKED, **{**change, "max_tokens": 7}))


def test_greedy_questions_are_the_same_whatever_their_seed_and_time_out(file: Path) -> None:
    """What does not shape a greedy reply is no part of the question; at another temperature the seed is."""
    model = Counting()
    with RecordedBackend(file, model) as recording:
        recording.complete(ASKED)
        recording.complete(replace(ASKED, seed=2, timeout=5.0, attempt=2))
        assert model.calls == 1
        hot = replace(ASKED, temperature=0.8)
        texts = [recording.complete(each).text for each in (hot, replace(hot, seed=2), hot)]
        assert texts == ["2", "3", "2"]


def test_what_has_no_seed_is_asked_each_time(file: Path) -> None:
    """Sampling without a seed is never answered twice by the same reply, and cannot be replayed."""
    model = Counting()
    free = replace(ASKED, temperature=0.8, seed=None)
    with RecordedBackend(file, model) as recording:
        assert [recording.complete(free).text for _ in range(2)] == ["1", "2"]
        assert len(recording) == 0
    with RecordedBackend(file) as replay, pytest.raises(ReplyMissing, match="no seed"):
        replay.complete(free)


def test_errors_are_not_kept(file: Path) -> None:
    """A call that failed is made again."""
    with RecordedBackend(file, ScriptedBackend(BackendError("503"), GOOD)) as recording:
        with pytest.raises(BackendError, match="503"):
            recording.complete(ASKED)
        assert recording.complete(ASKED).text == json.dumps(GOOD)


def test_a_missing_reply_ends_a_run_with_what_it_had(file: Path) -> None:
    """A run whose recording ends early has failed, says which step, and keeps what was verified."""
    with RecordedBackend(file, SimulatedModel(slips=Slips.none())) as recording:
        Guard(recording, segment=1).run(Procedure.parse("a = 2 * 3"))
    with RecordedBackend(file) as replay:
        result = Guard(replay, segment=1).run(P2)
    assert result.status == "failed"
    assert isinstance(result.error, ReplyMissing)
    assert dict(result.values) == {"a": 6}
    assert str(result.problem).startswith("step b: ReplyMissing: no reply to the request for b")


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (SimulatedModel(2), "seed was 1 and is 2"),
        (SimulatedModel(1, slips=Slips.none()), "slips was"),
        (Counting(), "model was 'simulated' and is 'counting'"),
    ],
)
def test_replies_of_different_models_are_not_mixed(file: Path, other: Any, says: str) -> None:
    """A file is added to only by the model, and with the settings, that it was made with."""
    with RecordedBackend(file, SimulatedModel(1)) as recording:
        recording.complete(ASKED)
    with pytest.raises(ConfigError, match=says):
        RecordedBackend(file, other)
    with RecordedBackend(file) as replay:
        assert replay.name == "simulated"


def test_what_shapes_a_hosted_reply_is_known_without_its_secrets() -> None:
    """The signature of a backend tells models and options apart, and shows no value of an extra parameter."""
    plain = OpenAIBackend("m", api_key="k" * 20)
    secret = OpenAIBackend("m", api_key="k" * 20, extra={"extra_headers": {"x-key": "hush-hush"}})
    assert plain.signature != secret.signature != OpenAIBackend("m", mode="tools").signature
    assert "hush" not in repr(secret.signature)


def test_equal_questions_at_the_same_time_are_asked_once(file: Path) -> None:
    """Threads, or tasks of a loop, that ask the same greedy question at once wait for one reply."""
    asked = threading.Barrier(1)

    class Slow(Counting):
        def complete(self, request: Request) -> Completion:
            asked.wait()
            threading.Event().wait(0.02)
            return super().complete(request)

    model = Slow()
    with RecordedBackend(file, model) as recording, ThreadPoolExecutor(8) as pool:
        assert {each.text for each in pool.map(recording.complete, [ASKED] * 8)} == {"1"}

        async def many() -> list[Completion]:
            other = replace(ASKED, max_tokens=9)
            return list(await asyncio.gather(*(recording.acomplete(other) for _ in range(8))))

        assert {each.text for each in asyncio.run(many())} == {"2"}
    assert model.calls == 2


@pytest.mark.slow
def test_a_killed_program_loses_no_reply(file: Path) -> None:
    """What was answered before a kill is there afterwards."""
    code = f"""
import os
from stepguard import Guard, Procedure
from stepguard.backends.recorded import RecordedBackend
from stepguard.testing import SimulatedModel, Slips

model = SimulatedModel(slips=Slips.none())
class Killed:
    name, signature = model.name, model.signature
    calls = 0
    def complete(self, request):
        Killed.calls += 1
        if Killed.calls == 3:
            os._exit(9)
        return model.complete(request)
Guard(RecordedBackend({str(file)!r}, Killed()), segment=1).run(Procedure.parse("a = 1 + 1\\nb = a + 1\\nc = b + 1"))
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert done.returncode == 9
    with RecordedBackend(file) as replay:
        result = Guard(replay, segment=1).run(Procedure.parse("a = 1 + 1\nb = a + 1\nc = b + 1"))
        assert (result.completed, result.values["b"]) == (2, 3)


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    """A missing, foreign or damaged file is named, with what is wrong."""
    with pytest.raises(ConfigError, match="no recording at"):
        RecordedBackend(tmp_path / "none.sqlite")
    assert not (tmp_path / "none.sqlite").exists()
    foreign = tmp_path / "foreign.sqlite"
    foreign.write_text("this is no database, but long enough to be looked at as one" * 20, encoding="utf-8")
    with pytest.raises(ConfigError, match="is no recording"):
        RecordedBackend(foreign)
    text = tmp_path / "damaged.jsonl"
    text.write_text('{"format": "stepguard recording 1", "signature": {}}\n{"key": \n', encoding="utf-8")
    with pytest.raises(ConfigError, match="line 2"):
        RecordedBackend(text)
    text.write_text('{"format": "something else"}\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="line 1: another format"):
        RecordedBackend(text)
    with pytest.raises(ConfigError, match="only be replayed"):
        RecordedBackend(text, Counting())
    later = tmp_path / "later.sqlite"
    with RecordedBackend(later, Counting()) as recording, pytest.raises(ConfigError, match=r"NAME\.jsonl"):
        recording.export(tmp_path / "x.txt")
    with sqlite3.connect(later) as connection:
        connection.execute("update about set value = '2' where name = 'format'")
    connection.close()
    with pytest.raises(ConfigError, match="format 2"):
        RecordedBackend(later)
    with pytest.raises(FileNotFoundError, match="no folder"):
        RecordedBackend(tmp_path / "nowhere" / "x.sqlite", Counting())


def foreign(path: Path, *statements: str) -> Path:
    """A database that is somebody else's."""
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


@pytest.mark.parametrize("model", [None, Counting()])
@pytest.mark.parametrize(
    "content",
    [
        *(b"x", b"my notes\n" * 200, b"SQLite format 3\0 and no more"),
        *(("create table t (x)", "insert into t values (1)"), ("create table about (id int, txt text)",)),
        ("create table about (name text primary key, value text)", "create table replies (x)"),
        ("create table about (name text, value text)", "insert into about values ('format', '1')"),
    ],
)
def test_a_file_of_somebody_else_is_refused_and_left_as_it_is(
    tmp_path: Path, content: bytes | tuple[str, ...], model: Any
) -> None:
    """What is no recording is neither read as an empty one nor written into, with a model or without."""
    path = tmp_path / "notes.db"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        foreign(path, *content)
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="is no recording"):
        RecordedBackend(path, model)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["notes.db"]


def test_an_empty_file_is_no_recording_but_can_become_one(tmp_path: Path) -> None:
    """Without a model there is nothing to replay; with one it is filled."""
    path = tmp_path / "new.sqlite"
    path.touch()
    with pytest.raises(ConfigError, match="it is empty"):
        RecordedBackend(path)
    assert path.read_bytes() == b""
    with RecordedBackend(path, Counting()) as recording:
        assert recording.complete(ASKED).text == "1"


def test_a_replay_writes_nothing(file: Path) -> None:
    """Neither into the recording nor beside it, so that it may lie in a folder that cannot be written to."""
    with RecordedBackend(file, Counting()) as recording:
        recording.complete(ASKED)
    before = file.read_bytes()
    with RecordedBackend(file) as replay:
        assert replay.complete(ASKED).text == "1"
        assert [each.name for each in file.parent.iterdir()] == [file.name]
    assert file.read_bytes() == before


def test_a_recording_is_replayed_while_it_is_made(file: Path) -> None:
    """The newest replies stand in a log beside the file, and are found there."""
    with RecordedBackend(file, Counting()) as recording:
        recording.complete(ASKED)
        with RecordedBackend(file) as replay:
            assert replay.complete(ASKED).text == "1"
        recording.complete(replace(ASKED, max_tokens=9))
        with RecordedBackend(file) as replay:
            assert len(replay) == 2


def test_a_model_that_can_only_be_awaited_is_replayed_anywhere(file: Path) -> None:
    """`run` needs no model for what is recorded; for the rest it says that the model can only be awaited."""

    class Awaited:
        name = "awaited"

        async def acomplete(self, request: Request) -> Completion:
            return Completion("1")

    with RecordedBackend(file, Awaited()) as recording:
        with pytest.raises(ConfigError, match="arun"):
            recording.complete(ASKED)
        assert asyncio.run(recording.acomplete(ASKED)).text == "1"
        assert recording.complete(ASKED).text == "1"


def test_a_session_of_the_model_is_passed_on() -> None:
    """Where the model keeps a connection for a run, so does its recording; a replay needs none."""
    events: list[str] = []

    class WithSession(Counting):
        def session(self) -> WithSession:
            return self

        async def __aenter__(self) -> None:
            events.append("open")

        async def __aexit__(self, *_: object) -> None:
            events.append("close")

    with RecordedBackend(":memory:", WithSession()) as recording:
        asyncio.run(Guard(recording, repair=0).arun(P2))
    assert events == ["open", "close"]
