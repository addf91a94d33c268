"""Vendors through their own SDKs and instructor, against a server that speaks each one's wire."""

from __future__ import annotations

import asyncio
import logging
import traceback
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from conftest import ChatServer, Reply
from openai_harness import GOOD, INPUTS, PROCEDURE, REQUEST, Ask, failure
from vendor_harness import KEY, PLAYED, Played, give_aws_credentials, needs, parameters_of

from stepguard import Guard, RetryPolicy, Usage
from stepguard.errors import BackendError, BackendRejected, BackendTimeout, RateLimited

pytestmark = [
    pytest.mark.parametrize("vendor", [needs(each) for each in PLAYED]),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:google"),
    pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning"),
]

WRONG = GOOD.replace("= 19", "= 18")


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch, vendor: Played) -> None:
    """Amazon's SDK finds a key, and looks for none on the network; no import counts towards a time-out."""
    import_module(vendor.module)
    give_aws_credentials(monkeypatch)


def test_request(chat_server: ChatServer, ask: Ask, vendor: Played) -> None:
    """One request goes out, with the messages as they are and the parameters that the vendor takes."""
    chat_server.play(vendor.reply(GOOD))
    request = replace(REQUEST, temperature=0.0, max_tokens=99, seed=7)
    completion = ask(vendor.backend(chat_server), request)
    assert completion.text == GOOD
    assert completion.usage == vendor.counts
    assert completion.reasoning == ("add, then multiply" if vendor.name in ("anthropic", "google", "bedrock") else None)
    (received,) = chat_server.requests
    # Google's SDK has asked for `v1beta` and for `v1`, by its version.
    assert received.path.replace("/v1/models/", "/v1beta/models/") == vendor.path.replace(
        "/v1/models/", "/v1beta/models/"
    )
    assert vendor.prompt(received.body) == [message.content for message in request.messages]
    sent = parameters_of(received.body)
    given = {name: sent[name] for name in ("temperature", "seed", "random_seed") if name in sent}
    assert given.keys() == set(vendor.takes)
    assert 99 in (sent.get("max_tokens"), sent.get("maxOutputTokens"), sent.get("maxTokens"))


def test_run(chat_server: ChatServer, vendor: Played) -> None:
    """A slip is asked again, and every token is counted."""
    chat_server.play([vendor.reply(WRONG), vendor.reply(GOOD)])
    result = Guard(vendor.backend(chat_server)).run(PROCEDURE, INPUTS)
    assert (result.status, result.answer) == ("verified", 57)
    assert result.usage == vendor.counts + vendor.counts + vendor.counts
    assert result.usage.cached_share == 0.75


def test_async_run(chat_server: ChatServer, vendor: Played) -> None:
    """A run that is awaited ends the same, and leaves no client behind."""
    chat_server.play([vendor.reply("nineteen"), vendor.reply(GOOD)])
    backend = vendor.backend(chat_server)
    result = asyncio.run(Guard(backend).arun(PROCEDURE, INPUTS))
    assert (result.status, result.answer) == ("verified", 57)
    assert result.attempts[0].deviations[0].kind == "malformed"
    assert backend._lent == {}


@pytest.mark.parametrize(
    ("text", "end", "kind"),
    [
        ('{"t2": ', 1, "truncated"),
        (None, 2, "refused"),
        ("", 0, "empty"),
        ("no JSON", 0, "malformed"),
        (f"```json\n{GOOD.replace('t1', 't2')}\n```", 0, "duplicate_step"),
    ],
)
def test_replies_that_are_no_answer(
    chat_server: ChatServer, vendor: Played, text: str | None, end: int, kind: str
) -> None:
    """A reply that is cut, refused, empty or no JSON is a deviation; a key that stands twice is never taken once."""
    chat_server.play([vendor.reply(text, vendor.ends[end]), vendor.reply(GOOD)])
    result = Guard(vendor.backend(chat_server)).run(PROCEDURE, INPUTS)
    assert result.attempts[0].deviations[0].kind == kind
    assert result.status == ("abstained" if kind == "refused" else "verified")
    assert result.usage == sum([vendor.counts] * len(chat_server.requests), Usage())  # whatever came of a reply


def test_refused_requests(chat_server: ChatServer, ask: Ask, vendor: Played) -> None:
    """A request that is refused is sent once; a rate limit brings its delay, and whether asking again helps."""
    error = vendor.error("slow down")
    chat_server.play(
        [
            Reply(error, 429, {"Retry-After": "0.2"}),
            Reply(error, 503),
            Reply(error, 500),
            Reply(vendor.error(f"who is {KEY}?"), 401),
            Reply(error, 400),
        ]
    )
    backend = vendor.backend(chat_server)
    raised = [failure(ask, backend) for _ in range(5)]
    assert len(chat_server.requests) == 5
    assert [each.status for each in raised] == [429, 503, 500, 401, 400]
    assert [each.retryable for each in raised] == [True, True, True, False, False]
    assert isinstance(raised[0], RateLimited)
    assert raised[0].retry_after == 0.2
    assert isinstance(raised[4], BackendRejected)
    assert "slow down" in str(raised[0])


def test_limits_are_waited_for(chat_server: ChatServer, vendor: Played) -> None:
    """A run waits as long as the vendor asks, and is then answered."""
    chat_server.play([Reply(vendor.error("slow down"), 429, {"Retry-After": "0.05"}), vendor.reply(GOOD)])
    result = Guard(vendor.backend(chat_server)).run(PROCEDURE, INPUTS)
    assert (result.status, len(chat_server.requests)) == ("verified", 2)


def test_keys_stay_secret(chat_server: ChatServer, ask: Ask, vendor: Played, caplog: pytest.LogCaptureFixture) -> None:
    """A key is in no error, no log record and no attribute, also where the vendor quotes it."""
    caplog.set_level(logging.DEBUG, logger="instructor")
    chat_server.play(Reply(vendor.error(f"who is {KEY}?"), 401))
    backend = vendor.backend(chat_server)
    error = failure(ask, backend)
    shown = [repr(vars(backend)), repr(error), "".join(traceback.format_exception(error)), repr(vars(error))]
    ours = [record.getMessage() for record in caplog.records if record.name.partition(".")[0] == "instructor"]
    assert [text for text in [*shown, *ours] if KEY in text] == []


def test_broken_bodies(chat_server: ChatServer, ask: Ask, vendor: Played) -> None:
    """A body that is no JSON, or that breaks off, is a failure of the server's that may pass, and is asked once."""
    whole = vendor.body(GOOD, vendor.ends[0])
    chat_server.play([Reply("<html>", headers={"Content-Type": "application/json"}), Reply(whole, cut=40)])
    backend = vendor.backend(chat_server)
    for _ in range(2):
        error = failure(ask, backend)
        assert error.retryable, error
    assert len(chat_server.requests) == 2


def test_a_run_goes_on_behind_broken_bodies(chat_server: ChatServer, vendor: Played) -> None:
    """What was cut off on its way, or is no reply of the vendor's, is asked for again, and is held against no step."""
    whole = vendor.body(GOOD, vendor.ends[0])
    html = Reply("<html>", headers={"Content-Type": "application/json"})
    chat_server.play([Reply(whole, cut=40), html, vendor.reply(GOOD)])
    result = Guard(vendor.backend(chat_server), retry=RetryPolicy(first_wait=0.0)).run(PROCEDURE, INPUTS)
    assert [each.outcome for each in result.attempts] == ["error", "error", "accepted"]
    assert (result.status, result.usage.calls, len(chat_server.requests)) == ("verified", 3, 3)


def test_time_is_up(chat_server: ChatServer, ask: Ask, vendor: Played) -> None:
    """A reply that comes too late is given up, and its prompt is counted."""
    chat_server.play(replace(vendor.reply(GOOD), delay=20))
    error = failure(ask, vendor.backend(chat_server), replace(REQUEST, timeout=1.0))
    assert isinstance(error, BackendTimeout)
    assert error.usage is not None
    assert error.usage.input_tokens > 10


def test_nobody_there(ask: Ask, vendor: Played) -> None:
    """A server that cannot be reached costs nothing, and may be back."""
    server = ChatServer()
    backend = vendor.backend(server)
    server.close()
    error: BackendError = failure(ask, backend)
    assert error.retryable
    assert error.usage is None or error.usage.input_tokens == 0


def test_extra_parameters(chat_server: ChatServer, ask: Ask, vendor: Played) -> None:
    """An extra parameter wins; None drops one of ours."""
    chat_server.play(vendor.reply(GOOD))
    names: dict[str, dict[str, Any]] = {
        "google": {"config": {"temperature": None, "top_p": 0.5}},
        "bedrock": {"temperature": None, "top_p": 0.5},
        "cohere": {"temperature": None, "p": 0.5},
        "anthropic": {"stop_sequences": ["END"]},
    }
    extra = names.get(vendor.name, {"temperature": None, "top_p": 0.5})
    ask(vendor.backend(chat_server, extra=extra), replace(REQUEST, temperature=0.5))
    sent = parameters_of(chat_server.requests[0].body)
    assert "temperature" not in sent
    assert {"topP", "top_p", "p", "stop_sequences"} & sent.keys()
