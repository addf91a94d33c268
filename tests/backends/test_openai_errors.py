"""OpenAIBackend against a real HTTP server on loopback: errors, retries and secrets."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import socket
import sys
import time
import traceback
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

import openai
import pytest
from conftest import ChatServer, Reply, completion_body
from openai_harness import GOOD, INPUTS, KEY, MESSAGES, PROCEDURE, REQUEST, Ask, backend_at, failure

from stepguard import Guard, RetryPolicy
from stepguard.backends import Message, Request
from stepguard.backends.openai import OpenAIBackend
from stepguard.errors import BackendError, BackendRejected, BackendTimeout, ConfigError, RateLimited

# Errors


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        *((400, BackendRejected, False), (401, BackendRejected, False), (403, BackendRejected, False)),
        *((404, BackendRejected, False), (422, BackendRejected, False), (413, BackendRejected, False)),
        *((408, BackendError, True), (409, BackendError, True), (429, RateLimited, True), (500, BackendError, True)),
        (503, BackendError, True),
    ],
)
def test_status_errors(
    chat_server: ChatServer, ask: Ask, status: int, kind: type[BackendError], retryable: bool
) -> None:
    """Every status becomes its own error after one request, with the server's words and the SDK's error as cause."""
    chat_server.play(Reply({"error": {"message": "these words", "type": "t"}}, status))
    error = failure(ask, backend_at(chat_server))
    assert (type(error), error.status, error.retryable) == (kind, status, retryable)
    assert str(error) == f"some-model: HTTP {status}: these words"
    assert isinstance(error.__cause__, openai.APIStatusError)
    assert len(chat_server.requests) == 1
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.status, again.retryable) == (str(error), status, retryable)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        *(({"Retry-After": "2"}, 2.0), ({"Retry-After": "0.25"}, 0.25), ({"Retry-After": "-3"}, 0.0)),
        ({"Retry-After": "3", "Retry-After-Ms": "1500"}, 1.5),
        *(({"Retry-After": formatdate(time.time() - 100, usegmt=True)}, 0.0), ({"Retry-After": "2, 2"}, 2.0)),
        *(({"Retry-After": "1,3"}, 3.0), ({"Retry-After": "soon"}, None), ({"Retry-After": "nan"}, None), ({}, None)),
    ],
)
def test_retry_after(chat_server: ChatServer, headers: dict[str, str], expected: float | None) -> None:
    """The wait that the endpoint asks for is read from seconds, milliseconds or a date, and never guessed."""
    chat_server.play(Reply({"error": {"message": "slow"}}, 429, headers))
    error = failure(OpenAIBackend.complete, backend_at(chat_server))
    assert isinstance(error, RateLimited)
    assert error.retry_after == expected


def test_retry_after_date(chat_server: ChatServer) -> None:
    """A date is turned into the seconds until then; a 503 that names one is a rate limit, too."""
    chat_server.play(Reply({}, 503, {"Retry-After": formatdate(time.time() + 100, usegmt=True)}))
    error = failure(OpenAIBackend.complete, backend_at(chat_server))
    assert isinstance(error, RateLimited)
    assert error.retry_after is not None
    assert 90 < error.retry_after <= 100


@pytest.mark.parametrize(
    "body",
    [
        {"code": "insufficient_quota"},
        {"type": "insufficient_quota", "code": None},
        {"type": "insufficient_quota", "code": "429"},
        {"code": "billing_hard_limit_reached"},
    ],
)
@pytest.mark.parametrize("status", [429, 200])
def test_spent_quota_is_not_retried(chat_server: ChatServer, body: dict[str, object], status: int) -> None:
    """An error that says the account is out of money cannot be waited out, whatever its status."""
    chat_server.play(Reply({"error": {"message": "pay", **body}}, status))
    error = failure(OpenAIBackend.complete, backend_at(chat_server))
    assert isinstance(error, RateLimited) or status == 200
    assert not error.retryable


@pytest.mark.parametrize("status", [409, 429, 500, 503])
@pytest.mark.parametrize(("word", "retryable"), [("false", False), ("true", True)])
def test_the_word_of_the_endpoint_on_retries(chat_server: ChatServer, status: int, word: str, retryable: bool) -> None:
    """An endpoint that says not to try again is not asked again."""
    chat_server.play(Reply({"error": {"message": "no"}}, status, {"x-should-retry": word}))
    assert failure(OpenAIBackend.complete, backend_at(chat_server)).retryable is retryable


@pytest.mark.parametrize(
    "options", [{"base_url": "127.0.0.1:1/v1"}, {"default_headers": {"X-Ours": "a\nb"}}], ids=["address", "header"]
)
def test_a_request_that_cannot_be_sent_is_not_retried(chat_server: ChatServer, options: dict[str, Any]) -> None:
    """What the HTTP library refuses to send with a client of the user's it would refuse again."""
    with openai.OpenAI(**{"base_url": chat_server.url, "api_key": KEY, **options}) as client:
        result = Guard(client, model="some-model", retry=RetryPolicy(first_wait=0.01)).run(PROCEDURE, INPUTS)
    assert (result.status, result.usage.calls) == ("failed", 1)


@pytest.mark.parametrize(
    ("variable", "value", "address"),
    [
        ("ALL_PROXY", "foo://user:SECRET@127.0.0.1:9", "http://127.0.0.1:9/v1"),
        ("HTTP_PROXY", "foo://x", "http://127.0.0.1:9/v1"),
        ("SSL_CERT_FILE", "/nowhere/at/all.pem", "https://127.0.0.1:9/v1"),
        *(("OPENAI_BASE_URL", "127.0.0.1:9/v1", None), ("UNUSED", "", "http://[::1")),
        *(("UNUSED", "", "127.0.0.1:9/v1"), ("UNUSED", "", "")),
    ],
)
@pytest.mark.parametrize("driver", ["run", "arun"])
def test_a_client_that_cannot_be_made(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, address: str | None, driver: str
) -> None:
    """A proxy, a certificate or an address that cannot work is named as the caller's to mend, by both drivers."""
    monkeypatch.setenv(variable, value)
    guard = Guard(OpenAIBackend("m", base_url=address, api_key=KEY))
    with pytest.raises(ConfigError) as refused:
        guard.run(PROCEDURE, INPUTS) if driver == "run" else asyncio.run(guard.arun(PROCEDURE, INPUTS))
    assert "SECRET" not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize("seconds", [1e10, float(sys.maxsize)])
def test_a_timeout_longer_than_any_socket_takes(chat_server: ChatServer, ask: Ask, seconds: float) -> None:
    """A time-out of centuries is none."""
    chat_server.play(Reply(completion_body(GOOD)))
    assert ask(backend_at(chat_server), Request(MESSAGES, timeout=seconds)).text == GOOD


@pytest.mark.parametrize(
    ("code", "written", "status", "kind"),
    [
        ("json_validate_failed", '{"t2": "12 + 7 = 19", "t1": "19 *', "abstained", "malformed"),
        ("tool_use_failed", f"<function=Steps>{GOOD}</function>", "verified", None),
        *(("json_validate_failed", "", "abstained", "empty"), ("tool_use_failed", None, "abstained", "empty")),
    ],
)
def test_reply_that_the_endpoint_refuses(
    chat_server: ChatServer, code: str, written: str | None, status: str, kind: str | None
) -> None:
    """Where an endpoint answers 400 because of what the model wrote, that is judged like any other reply."""
    error = {"message": "Failed to generate", "code": code, "failed_generation": written}
    chat_server.play(Reply({"error": error}, 400))
    result = Guard(backend_at(chat_server), repair=0).run(PROCEDURE, INPUTS)
    assert result.status == status
    assert [deviation.kind for deviation in result.attempts[0].deviations] == ([kind] if kind else [])
    told = GOOD if written and GOOD in written else written
    assert (result.attempts[0].text, result.attempts[0].finish_reason) == (told, code)


def test_schema_that_is_ignored(chat_server: ChatServer) -> None:
    """A run against an endpoint that answers a schema with prose says that it may ignore the response format."""
    chat_server.play(Reply(completion_body("First I add, then I multiply.")))
    result = Guard(backend_at(chat_server), repair=1).run(PROCEDURE, INPUTS)
    assert chat_server.requests[0].body["response_format"]["type"] == "json_schema"
    assert result.status == "abstained"
    assert "the endpoint may ignore the response format" in str(result.problem)


def test_an_answer_that_never_ends_is_a_timeout(chat_server: ChatServer, ask: Ask) -> None:
    """An endpoint that sends byte after byte but no answer is given up when the time is over."""
    chat_server.play(Reply(" " * 100_000, headers={"Content-Type": "application/json"}, drip=0.02))
    error = failure(ask, backend_at(chat_server), Request(MESSAGES, timeout=0.3))
    assert isinstance(error, BackendTimeout)


def test_timeout(chat_server: ChatServer, ask: Ask) -> None:
    """An endpoint that does not answer in time is a time-out, after one request and soon."""
    chat_server.play([Reply(completion_body(GOOD)), Reply(completion_body(GOOD), delay=30)])
    backend = backend_at(chat_server)
    ask(backend, Request(MESSAGES))  # what the first call prepares counts for the time-out, too
    request = Request(MESSAGES, timeout=0.2)
    started = time.perf_counter()
    error = failure(ask, backend, request)
    assert isinstance(error, BackendTimeout)
    assert error.retryable
    assert time.perf_counter() - started < 5
    assert len(chat_server.requests) <= 2


def test_no_connection(ask: Ask) -> None:
    """A port where nobody listens is an error that may pass, and says what the system said."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = failure(ask, OpenAIBackend("m", base_url=f"http://127.0.0.1:{port}/v1"))
    assert type(error) is BackendError
    assert error.retryable
    assert error.status is None
    assert str(error).startswith("m: no connection: ")


def test_unknown_parameter(chat_server: ChatServer, ask: Ask) -> None:
    """A parameter that the SDK does not take is an error that is not retried and names it; nothing is sent."""
    error = failure(ask, backend_at(chat_server, extra={"top_q": 1}))
    assert not error.retryable
    assert "top_q" in str(error)
    assert chat_server.requests == []


def test_message_that_cannot_be_encoded(chat_server: ChatServer, ask: Ask) -> None:
    """A message that no request can carry is an error that is not retried; nothing is sent."""
    error = failure(ask, backend_at(chat_server), Request((Message("user", "half a character: \ud83d"),)))
    assert not error.retryable
    assert chat_server.requests == []


def test_body_that_is_no_json(chat_server: ChatServer, ask: Ask) -> None:
    """A body that claims to be JSON and is not is an error that may pass."""
    chat_server.play(Reply("{", headers={"Content-Type": "application/json"}))
    assert failure(ask, backend_at(chat_server)).retryable


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=latin-1", "text/plain"])
@pytest.mark.parametrize("cut", ["caf\udce9", "\udcc3", "a\udcff b"])
def test_bytes_that_are_no_text_are_no_answer(chat_server: ChatServer, ask: Ask, kind: str, cut: str) -> None:
    """Nothing stands in for characters that cannot be read: it is an error that may pass."""
    body = json.dumps(completion_body("TEXT")).replace("TEXT", cut)
    chat_server.play(Reply(body, headers={"Content-Type": kind}))
    error = failure(ask, backend_at(chat_server))
    assert error.retryable
    assert "UnicodeDecodeError" in str(error)


@pytest.mark.parametrize("words", ["x" * 5000, "a-" * 5000], ids=["one-word", "hyphens"])
def test_long_messages_are_cut(chat_server: ChatServer, ask: Ask, words: str) -> None:
    """A message of the server is cut to 500 characters, in an error status and in a body with status 200 alike."""
    chat_server.play([Reply({"error": {"message": words}}, 500), Reply({"error": {"message": words}})])
    for _ in range(2):
        assert len(str(failure(ask, backend_at(chat_server)))) == 500


# Retries


@pytest.mark.parametrize("driver", ["run", "arun"])
@pytest.mark.parametrize(("status", "requests"), [(429, 3), (500, 3), (401, 1), (404, 1)])
@pytest.mark.parametrize("own_client", [True, False])
def test_one_layer_retries(chat_server: ChatServer, driver: str, status: int, requests: int, own_client: bool) -> None:
    """Two retries make three requests, whatever retries a client brings; a refusal makes one."""
    chat_server.play(Reply({"error": {"message": "no"}}, status))
    retry = RetryPolicy(retries=2, first_wait=0.01)
    with openai.OpenAI(base_url=chat_server.url, api_key=KEY, max_retries=2) as client:
        if own_client:
            guard = Guard(backend_at(chat_server), retry=retry)
        else:
            guard = Guard(client, model="some-model", retry=retry)
        result = guard.run(PROCEDURE, INPUTS) if driver == "run" else asyncio.run(guard.arun(PROCEDURE, INPUTS))
        assert client.max_retries == 2
    assert result.status == "failed"
    assert len(chat_server.requests) == requests
    assert result.usage.calls == requests


# Secrets


def secrets_in(error: BaseException, backend: OpenAIBackend) -> list[str]:
    texts = [str(error), repr(error), "".join(traceback.format_exception(error)), repr(vars(error)), repr(backend)]
    texts += [repr(error.__cause__), repr(error.__context__), repr(vars(backend)), repr(pickle.dumps(error))]
    return [text for text in texts for secret in ("SECRET", "AIzaXYZ") if secret in text]


ECHOES = [
    *(f"Incorrect API key provided: {KEY}", "Authorization: Bearer sk-SECRET123"),
    *("{'authorization': 'Bearer eySECRET.abc'}", '{"Authorization": "Basic SECRET=="}'),
    *("got bearer hf_SECRET123 from you", "POST https://host/v1?alt=1&key=AIzaXYZ12345&b=2 failed"),
    *("api_key='SECRET' is wrong", "x-api-key: SECRET", '{"access_token": "SECRET", "client_secret":"SECRET"}'),
    *("Cookie: a=SECRET; session=SECRET", "GET https://user:SECRET@host/v1 failed"),
    *("GET https://SECRET@host/v1 failed", "OPENAI_API_KEY: SECRET", "X-API-Token: SECRET"),
    *("Ocp-Apim-Subscription-Key: SECRET", "{'api_token': 'SECRET'}", "token: SECRETabc0123456789"),
    *('{"key": "SECRETabc0123456789"}', "[(b'accept', b'*/*'), (b'x-api-key', b'SECRET')]"),
    *("[('Authorization', 'Bearer SECRET')]", "token: SECRET01", "GET https://host/v1?b=2&auth=SECRET failed"),
    *("GET https://host/back?code=SECRET&b=2 failed", "GET https://host/?to=%3Fcode%3DSECRET failed"),
    *("GET https://host/v1?pwd=SECRET&b=2 failed", "passwd=SECRET", "GET https://host/?to=%3Fkey%3DSECRET failed"),
    *(
        f"with {prefix}SECRET0123456789abc"
        for prefix in ("csk-", "pplx-", "nvapi-", "r8_", "ghp_", "AKIA", "dapi", "tgp_")
    ),
    "with eyJhbGciOiJIUzI1NiJ9.SECRET.x",
]


@pytest.mark.parametrize(
    "words",
    [
        "unexpected token: the value of key: price is no number",
        "token: 151643 is none, status code=400 at https://host/v1?decode=plain",
        *("unknown key: max_completion_tokens", "the key takes 3 tokens, ('model', 'gpt-4.1-mini') and r8 of them"),
    ],
)
def test_words_that_only_resemble_a_secret_stay(chat_server: ChatServer, words: str) -> None:
    """What a server says of keys and tokens without telling one is told as it is."""
    chat_server.play(Reply({"error": {"message": words}}, 400))
    assert str(failure(OpenAIBackend.complete, backend_at(chat_server))).endswith(words)


@pytest.mark.slow
@pytest.mark.parametrize("status", [401, 500, 200])
def test_secrets_of_a_server(chat_server: ChatServer, ask: Ask, status: int, caplog: pytest.LogCaptureFixture) -> None:
    """A key that a server echoes is in no text, cause, context or attribute of an error, and in no log record."""
    caplog.set_level(logging.DEBUG)
    chat_server.play([Reply({"error": {"message": words}}, status) for words in ECHOES])
    backend = backend_at(chat_server)
    for _ in ECHOES:
        error = failure(ask, backend)
        assert secrets_in(error, backend) == []
        assert "[redacted]" in str(error)
        assert error.__cause__ is None
        assert error.__context__ is None
    assert "SECRET" not in caplog.text


def test_key_in_a_refused_reply(chat_server: ChatServer, ask: Ask) -> None:
    """What an endpoint quotes of a reply that it refused is handed on without the key."""
    error = {"message": "no", "code": "json_validate_failed", "failed_generation": f"with {KEY}: nope"}
    chat_server.play(Reply({"error": error}, 400))
    assert ask(backend_at(chat_server), REQUEST).text == "with [redacted]: nope"


@pytest.mark.parametrize("key", ["sk-SEC\nRET", "SECRET\x00", "SECR\u00c9T", "\ud800SECRET"])
def test_key_that_cannot_be_sent(chat_server: ChatServer, ask: Ask, key: str) -> None:
    """A key that no header can carry is refused before anything is sent, without being shown."""
    with pytest.raises(ConfigError, match="API key") as refused:
        ask(OpenAIBackend("m", base_url=chat_server.url, api_key=key), REQUEST)
    assert "SEC" not in "".join(traceback.format_exception(refused.value))
    assert chat_server.requests == []


def test_key_with_a_line_break_behind(chat_server: ChatServer, ask: Ask) -> None:
    """A key as it comes out of a file is sent without its line break."""
    chat_server.play(Reply(completion_body(GOOD)))
    ask(OpenAIBackend("m", base_url=chat_server.url, api_key=f"{KEY}\n"), REQUEST)
    assert chat_server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_key_of_any_shape(chat_server: ChatServer, ask: Ask) -> None:
    """The client's own key is hidden whatever it looks like."""
    chat_server.play(Reply({"error": {"message": "who is 0123SECRET4567?"}}, 403))
    backend = OpenAIBackend("m", base_url=chat_server.url, api_key="0123SECRET4567")
    error = failure(ask, backend)
    assert str(error) == "m: HTTP 403: who is [redacted]?"
    assert secrets_in(error, backend) == []


ODD = "0123SECRET4567abc"


@pytest.mark.parametrize("status", [401, 500, 200])
@pytest.mark.parametrize(
    "options",
    [
        {"api_key": lambda: ODD},
        {"api_key": lambda: ODD, "max_retries": 0},
        {"api_key": "-", "default_headers": {"X-Api-Key": ODD}},
        {"api_key": "-", "default_headers": {"Authorization": f"Basic {ODD}"}},
    ],
    ids=["callable", "callable-without-retries", "header", "authorization"],
)
def test_secrets_that_only_the_client_knows(chat_server: ChatServer, options: dict[str, Any], status: int) -> None:
    """A key that is made for each request, or stands in a header of the client, is hidden as the client's own is."""
    chat_server.play(Reply({"error": {"message": f"who is {ODD}?"}}, status))
    with openai.OpenAI(base_url=chat_server.url, **options) as client:
        result = Guard(client, model="m", retry=RetryPolicy(retries=0)).run(PROCEDURE, INPUTS)
    assert result.status == "failed"
    assert "who is [redacted]?" in str(result.problem)
    assert ODD not in f"{result.to_json()}{result!r}{result.error!r}{result.error.__cause__!r}"  # type: ignore[union-attr]


@pytest.mark.parametrize("status", [401, 200])
def test_a_token_of_azure_is_hidden(chat_server: ChatServer, status: int) -> None:
    """It is known from the client, or from the request of the error, whatever the status."""
    chat_server.play(Reply({"error": {"message": f"who is {ODD}?"}}, status))
    with openai.AzureOpenAI(azure_ad_token=ODD, azure_endpoint=chat_server.url, api_version="2026-01-01") as client:
        result = Guard(client, model="m", retry=RetryPolicy(retries=0)).run(PROCEDURE, INPUTS)
    assert "who is [redacted]?" in str(result.problem)
    assert ODD not in result.to_json()


def test_nothing_is_logged_at_warning_or_above(
    chat_server: ChatServer, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    """Bad replies and errors make no noise in the log: both are the caller's to see, in the result."""
    chat_server.play([Reply(completion_body("nope")), Reply({"error": {"message": "no"}}, 500)])
    backend = backend_at(chat_server)
    ask(backend, REQUEST)
    failure(ask, backend)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("variable", ["SOME_VENDOR_API_KEY", "AWS_SECRET_ACCESS_KEY", "X_AUTH_TOKEN"])
def test_keys_that_an_sdk_reads_by_itself_stay_out_of_errors(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in the environment that no client shows is struck from what an SDK says, and so is its cause."""
    monkeypatch.setenv(variable, "nobody-knows-this-1234")

    def create(**_: object) -> None:
        raise RuntimeError("401: the key nobody-knows-this-1234 is not valid")

    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    backend = OpenAIBackend("m", client=client)
    with pytest.raises(BackendError, match="is not valid") as caught:
        backend.complete(Request(messages=(Message("user", "hello"),)))
    assert "nobody-knows" not in "".join(traceback.format_exception(caught.value))
