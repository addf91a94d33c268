"""Clients that instructor has wrapped, as they come, in whatever mode of its own, and what they bring."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from typing import Any

import openai
import pytest
from conftest import ChatServer, Reply, completion_body
from openai_harness import GOOD, INPUTS, KEY, MESSAGES, PROCEDURE, REQUEST, Ask, failure
from responses_harness import response
from vendor_harness import PLAYED, give_aws_credentials, installed

from stepguard import Guard, Input, Procedure, Step, Usage
from stepguard.backends import Request
from stepguard.backends.instructor import InstructorBackend
from stepguard.backends.making import as_backend
from stepguard.backends.openai import OpenAIBackend
from stepguard.errors import ConfigError, MissingExtraError, RateLimited

ANTHROPIC = next(each for each in PLAYED if each.name == "anthropic")
with_anthropic = pytest.mark.skipif(not installed("anthropic"), reason="anthropic is not installed")


def instructor() -> Any:
    return import_module("instructor")


def over_openai(server: ChatServer, **options: Any) -> Any:
    """A client of instructor's as it is by default: its mode is one of tools, and the SDK tries three times."""
    return instructor().from_openai(openai.OpenAI(base_url=server.url, api_key=KEY), **options)


def test_client_over_openai(chat_server: ChatServer) -> None:
    """A wrapped client is a backend: one request a call, for JSON, the messages as they are, and its defaults."""
    chat_server.play([Reply(completion_body("nope")), Reply(completion_body(GOOD))])
    client = over_openai(chat_server, model="some-model", top_p=0.5)
    before = dict(vars(client))
    result = Guard(client).run(PROCEDURE, INPUTS)
    assert (result.status, result.answer, result.usage.calls) == ("verified", 57, 2)
    body = chat_server.requests[0].body
    assert (body["model"], body["top_p"]) == ("some-model", 0.5)
    assert body["response_format"]["json_schema"]["strict"] is True
    assert "tools" not in body
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "user"]
    assert vars(client) == before
    assert client.client.max_retries == openai.DEFAULT_MAX_RETRIES


def test_refusals_of_a_client(chat_server: ChatServer) -> None:
    """The SDK's retries are off: one call is one request, and the delay that is asked for is known."""
    chat_server.play(Reply({"error": {"message": "slow down"}}, 429, {"Retry-After": "3"}))
    error = failure(
        lambda backend, asked: backend.complete(asked), InstructorBackend("m", client=over_openai(chat_server))
    )
    assert isinstance(error, RateLimited)
    assert error.retry_after == 3
    assert len(chat_server.requests) == 1


def test_async_client(chat_server: ChatServer) -> None:
    """A wrapped async client is awaited; run says what to do instead."""
    chat_server.play(Reply(completion_body(GOOD)))

    async def main() -> None:
        async with openai.AsyncOpenAI(base_url=chat_server.url, api_key=KEY) as inner:
            guard = Guard(instructor().from_openai(inner), model="some-model")
            assert (await guard.arun(PROCEDURE, INPUTS)).status == "verified"
            assert not inner.is_closed()
            with pytest.raises(ConfigError, match="arun"):
                guard.run(PROCEDURE, INPUTS)

    asyncio.run(main())
    assert len(chat_server.requests) == 1


def test_hooks(chat_server: ChatServer) -> None:
    """Hooks of the client are called with what is sent, what comes back and what goes wrong."""
    chat_server.play([Reply({"error": {"message": "busy"}}, 500), Reply(completion_body(GOOD))])
    client, told = over_openai(chat_server, model="m"), []
    client.on("completion:kwargs", lambda **sent: told.append(sent["model"]))
    client.on("completion:response", lambda reply: told.append(reply.choices[0].message.content))
    client.on("completion:error", lambda error, **more: told.append(error.status_code))
    backend = InstructorBackend(client=client)
    failure(lambda backend, asked: backend.complete(asked), backend)
    backend.complete(REQUEST)
    assert told == ["m", 500, "m", GOOD]


def test_cache_of_the_client(chat_server: ChatServer) -> None:
    """A cache of instructor's answers nothing: a slip would come again and again."""
    from instructor.cache import AutoCache

    chat_server.play([Reply(completion_body("nope")), Reply(completion_body(GOOD))])
    result = Guard(over_openai(chat_server, model="m", cache=AutoCache())).run(PROCEDURE, INPUTS)
    assert (result.status, len(chat_server.requests)) == ("verified", 2)


def test_client_over_responses(chat_server: ChatServer) -> None:
    """A client in the mode of the Responses API asks that."""
    chat_server.play(Reply(response(GOOD)))
    mode = instructor().Mode.RESPONSES_TOOLS
    client = over_openai(chat_server, model="m", mode=mode)
    with client.client:
        result = Guard(client).run(PROCEDURE, INPUTS)
    assert (result.status, chat_server.requests[0].path) == ("verified", "/v1/responses")


def test_free_text(chat_server: ChatServer) -> None:
    """Without a reply format nothing is bound."""
    chat_server.play(Reply(completion_body("19, I think")))
    backend = as_backend(over_openai(chat_server), model="m")
    assert isinstance(backend, InstructorBackend)
    assert backend.complete(Request(MESSAGES)).text == "19, I think"
    assert chat_server.requests[0].body == {"model": "m", "messages": Request(MESSAGES).chat()}


def test_method_of_ones_own() -> None:
    """A client over a plain function is one, too."""
    module = instructor()
    create = module.patch(create=lambda **sent: completion_body(GOOD), mode=module.Mode.TOOLS)
    client = module.Instructor(client=None, create=create, mode=module.Mode.TOOLS)
    assert Guard(client, model="m").run(PROCEDURE, INPUTS).status == "verified"


def test_threads(chat_server: ChatServer) -> None:
    """Threads share a backend, and each gets its own reply."""
    chat_server.play(lambda received: Reply(completion_body(received.body["messages"][-1]["content"])))
    backend = InstructorBackend("m", client=over_openai(chat_server))

    def ask(number: int) -> str | None:
        return backend.complete(Request((MESSAGES[0], type(MESSAGES[0])("user", str(number))))).text

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(24))) == [str(number) for number in range(24)]


def test_client_of_from_provider(chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What instructor makes of a name is accepted with the model that it names."""
    chat_server.play(Reply(completion_body(GOOD)))
    client = instructor().from_provider("ollama/qwen2.5", base_url=chat_server.url)
    assert Guard(client).run(PROCEDURE, INPUTS).status == "verified"
    assert chat_server.requests[0].body["model"] == "qwen2.5"


@with_anthropic
def test_anthropic_from_provider(chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anthropic's client, as instructor makes it, sync and async, is asked once and for text."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", chat_server.url.removesuffix("/v1"))
    chat_server.play([Reply({"error": {"message": "busy"}}, 529), ANTHROPIC.reply(GOOD)])
    client = instructor().from_provider("anthropic/claude-x", api_key=KEY)
    backend = as_backend(client)
    with client.client:
        assert failure(lambda backend, asked: backend.complete(asked), backend).status == 529  # type: ignore[arg-type]
        assert len(chat_server.requests) == 1
        assert Guard(client).run(PROCEDURE, INPUTS).status == "verified"
    body = chat_server.requests[1].body
    assert body["model"] == "claude-x"
    assert "tools" not in body
    assert len(body["system"]) == 1

    async def main() -> str:
        made = instructor().from_provider("anthropic/claude-x", api_key=KEY, async_client=True)
        async with made.client:
            return (await Guard(made).arun(PROCEDURE, INPUTS)).status

    assert asyncio.run(main()) == "verified"


@with_anthropic
def test_names(chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard made of a name alone asks the vendor, with the key of its variable."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", chat_server.url.removesuffix("/v1"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", f" {KEY}\n")
    chat_server.play(ANTHROPIC.reply(GOOD))
    result = Guard("anthropic/claude-x").run(PROCEDURE, INPUTS)
    assert result.status == "verified"
    assert KEY in str(chat_server.requests[0].headers)


@with_anthropic
def test_schema_of_anthropic(chat_server: ChatServer, ask: Ask) -> None:
    """Anthropic binds a reply to a schema where it is told to."""
    chat_server.play(ANTHROPIC.reply(GOOD))
    ask(ANTHROPIC.backend(chat_server, mode="json_schema"), REQUEST)
    form = chat_server.requests[0].body["output_config"]["format"]
    assert (form["type"], list(form["schema"]["properties"])) == ("json_schema", ["t2", "t1"])


@pytest.mark.skipif(not installed("litellm"), reason="litellm is not installed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_litellm(chat_server: ChatServer, ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    """LiteLLM is asked once, takes a model of another vendor's, and prints nothing where a call fails."""
    import_module("litellm")
    chat_server.play([Reply({"error": {"message": "slow down"}}, 429), Reply(completion_body(GOOD))])
    backend = InstructorBackend("openai/some-model", provider="litellm", base_url=chat_server.url, api_key=KEY)
    assert isinstance(failure(ask, backend), RateLimited)
    assert ask(backend, REQUEST).text == GOOD
    assert [each.body["model"] for each in chat_server.requests] == ["some-model"] * 2
    assert capsys.readouterr().out == ""


@pytest.mark.skipif(not installed("google.genai"), reason="google.genai is not installed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_vertex_ai(chat_server: ChatServer) -> None:
    """A client over Vertex AI is asked at its own address, and answers as Gemini does."""
    genai, oauth = import_module("google.genai"), import_module("google.oauth2.credentials")
    google = next(each for each in PLAYED if each.name == "google")
    chat_server.play(google.reply(GOOD))
    inner = genai.Client(
        vertexai=True,
        project="p",
        location="us-central1",
        credentials=oauth.Credentials(KEY),
        http_options=genai.types.HttpOptions(base_url=chat_server.url.removesuffix("/v1")),
    )
    result = Guard(instructor().from_genai(inner, model="gemini-x")).run(PROCEDURE, INPUTS)
    inner.close()
    assert (result.status, result.usage) == ("verified", google.counts)
    place = "/v1beta1/projects/p/locations/us-central1/publishers/google/models/gemini-x:generateContent"
    assert chat_server.requests[0].path == place


@pytest.mark.skipif(not installed("boto3"), reason="boto3 is not installed")
def test_requests_that_boto3_repeats(chat_server: ChatServer) -> None:
    """A client of boto3 that repeats requests by itself does so in front of the budget: every one counts as a call."""
    boto3, bedrock = import_module("boto3"), next(each for each in PLAYED if each.name == "bedrock")
    chat_server.play([Reply(bedrock.error("busy"), 503), bedrock.reply(GOOD)])
    keys = {"aws_access_key_id": KEY, "aws_secret_access_key": KEY, "region_name": "us-east-1"}
    inner = boto3.client("bedrock-runtime", endpoint_url=chat_server.url.removesuffix("/v1"), **keys)
    result = Guard(instructor().from_bedrock(inner, model=bedrock.model, async_client=True)).run(PROCEDURE, INPUTS)
    inner.close()
    assert (result.status, result.usage) == ("verified", replace(bedrock.counts, calls=2))
    assert len(chat_server.requests) == 2


# Prompt caches

SENDER = Step("t2", instruction="Name the sender.", type="text", reads=["letter"], checks=[lambda *_: True])
READING = Procedure([Step("t1", "x + 1"), SENDER, Step("t3", "t1 * 2")], inputs=[Input("letter", "text"), "x"])
LETTER = "Dear Bob, " + "all is well here. " * 300 + "Yours, Ada"


def marked(body: dict[str, Any]) -> list[str]:
    """The texts that end what a cache is to keep."""
    blocks = [block for message in body["messages"] for block in message["content"] if isinstance(block, dict)]
    if any("cachePoint" in block for block in blocks):
        return [before["text"] for before, block in pairwise(blocks) if "cachePoint" in block]
    return [block["text"] for block in blocks if "cache_control" in block]


@with_anthropic
def test_marks_of_a_cache(chat_server: ChatServer) -> None:
    """A long document, and all in front of it, is marked to be kept, and is the same in every request that reads it."""
    chat_server.play(ANTHROPIC.reply("nope"))
    Guard(ANTHROPIC.backend(chat_server), repair=2).run(READING, {"letter": LETTER, "x": 4})
    first, second = (each.body for each in chat_server.requests[:2])
    assert len(chat_server.requests) >= 2
    (text,) = marked(first)
    assert LETTER in text
    assert text.endswith("End of the documents.\n")
    assert marked(second) == [text]
    assert "cache_control" not in str(first["system"])


@pytest.mark.skipif(not installed("boto3"), reason="boto3 is not installed")
@pytest.mark.parametrize(("model", "count"), [("anthropic.claude-x", 1), ("meta.llama-x", 0)])
def test_marks_on_bedrock(chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch, model: str, count: int) -> None:
    """Bedrock is told what to keep for models that can, and for no others, which would refuse it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    bedrock = replace(next(each for each in PLAYED if each.name == "bedrock"), model=model)
    chat_server.play(bedrock.reply("nope"))
    Guard(bedrock.backend(chat_server), repair=0).run(READING, {"letter": LETTER, "x": 4})
    assert len(marked(chat_server.requests[0].body)) == count


@with_anthropic
def test_short_prompts_are_not_marked(chat_server: ChatServer) -> None:
    """What no vendor keeps is not marked, and nothing is where the marks are switched off."""
    chat_server.play(ANTHROPIC.reply(GOOD))
    Guard(ANTHROPIC.backend(chat_server)).run(PROCEDURE, INPUTS)
    Guard(ANTHROPIC.backend(chat_server, prompt_cache=False), repair=0).run(READING, {"letter": LETTER, "x": 4})
    assert not any("cache_control" in str(each.body) for each in chat_server.requests)


# What cannot work


def test_missing_sdk(monkeypatch: pytest.MonkeyPatch, ask: Ask) -> None:
    """Where the SDK of a vendor is missing, the extra that brings it is named."""
    monkeypatch.setitem(__import__("sys").modules, "cohere", None)
    with pytest.raises(MissingExtraError, match=r'pip install "stepguard\[cohere\]"'):
        ask(InstructorBackend("m", provider="cohere", api_key=KEY), REQUEST)


@with_anthropic
def test_missing_key(ask: Ask) -> None:
    """Without a key the first use says what to set."""
    with pytest.raises(ConfigError, match="set ANTHROPIC_API_KEY"):
        ask(InstructorBackend("m", provider="anthropic"), REQUEST)


def test_client_without_a_model(chat_server: ChatServer) -> None:
    """A client that was made for no model needs one."""
    with pytest.raises(ConfigError, match="pass model="):
        Guard(over_openai(chat_server))


def test_signature(chat_server: ChatServer) -> None:
    """What shapes a reply is known to a recording, without what may be secret."""
    backend = InstructorBackend("m", client=over_openai(chat_server), extra={"user": KEY})
    assert KEY not in str(backend.signature)
    assert backend.signature != InstructorBackend("m", client=over_openai(chat_server)).signature
    assert repr(backend) == "InstructorBackend('m', provider='openai', mode='json_schema')"
    assert OpenAIBackend("m").signature["model"] == backend.signature["model"]


# Streams


def anthropic_events(text: str, *, finish: str = "end_turn") -> list[object]:
    """The events of a message, as Anthropic sends them."""
    usage = {"input_tokens": 8, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 30, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "served", "content": [], "usage": usage}
    pieces = [text[at : at + 6] for at in range(0, len(text), 6)]
    return [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": each}}
            for each in pieces
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": finish}, "usage": {"output_tokens": 25}},
        {"type": "message_stop"},
    ]


def watched(request: Request = REQUEST) -> Request:
    return replace(request, stop=lambda text: "99" in text)


def over_anthropic(server: ChatServer) -> InstructorBackend:
    return InstructorBackend("m", provider="anthropic", base_url=server.url.removesuffix("/v1"), api_key=KEY)


@with_anthropic
@pytest.mark.parametrize("finish", ["end_turn", "max_tokens", "refusal"])
def test_a_stream_of_anthropic_is_its_message(chat_server: ChatServer, ask: Ask, finish: str) -> None:
    """Text, end and counts are those of the message in one piece, to the token."""
    chat_server.play(Reply(events=anthropic_events(GOOD, finish=finish)))
    completion = ask(over_anthropic(chat_server), watched())
    assert (completion.text, completion.finish_reason, completion.model) == (GOOD, finish, "served")
    assert completion.usage == Usage(1, 40, 25, 30, 0)
    assert bool(completion.refusal) == (finish == "refusal")
    assert chat_server.requests[0].body["stream"] is True


@with_anthropic
def test_a_stream_of_anthropic_is_stopped(chat_server: ChatServer, ask: Ask) -> None:
    """The prompt is counted to the token, what was written of the reply is estimated."""
    chat_server.play(Reply(events=anthropic_events("12345678 99 " + "never read " * 100), pause=0.005))
    completion = ask(over_anthropic(chat_server), watched())
    assert (completion.text, completion.finish_reason) == ("12345678 99 ", "stopped_early")
    assert completion.usage == Usage(1, 40, 3, 30, 0)


BROKEN_STREAMS: dict[str, list[object]] = {
    "cut": anthropic_events(GOOD)[:6],
    "an error": [
        *anthropic_events(GOOD)[:6],
        {"type": "error", "error": {"type": "overloaded_error", "message": "no"}},
    ],
    "no JSON": [*anthropic_events(GOOD)[:6], "{"],
}


@with_anthropic
@pytest.mark.parametrize("name", list(BROKEN_STREAMS))
def test_a_broken_stream_of_anthropic_is_no_answer(chat_server: ChatServer, ask: Ask, name: str) -> None:
    """What had come is paid for."""
    chat_server.play(Reply(events=BROKEN_STREAMS[name]))
    error = failure(ask, over_anthropic(chat_server), watched())
    assert error.retryable
    assert error.usage is not None
    assert error.usage.input_tokens == 40
    assert error.usage.output_tokens > 0


def test_a_wrapped_client_of_chat_completions_is_streamed(chat_server: ChatServer) -> None:
    """A client over openai's SDK stops a reply at its first wrong step."""
    wrong = GOOD.replace("= 19", "= 18")
    chat_server.play([Reply(events=chat_events(wrong + " " * 900), pause=0.002), *[Reply(completion_body(GOOD))] * 3])
    result = Guard(over_openai(chat_server, model="m"), stop_early=True).run(PROCEDURE, INPUTS)
    assert (result.status, result.attempts[0].finish_reason) == ("verified", "stopped_early")
    assert chat_server.requests[0].body["stream_options"] == {"include_usage": True}


def chat_events(text: str) -> list[object]:
    pieces = [text[at : at + 6] for at in range(0, len(text), 6)]
    return [{"choices": [{"index": 0, "delta": {"content": each}, "finish_reason": None}]} for each in pieces]


@with_anthropic
@pytest.mark.parametrize("kind", ["mistral", "google", "bedrock", "cohere"])
def test_who_cannot_be_stopped_is_named(kind: str) -> None:
    """A guard that is to stop replies refuses a vendor whose streams come by another method."""
    backend = InstructorBackend("m", provider=kind)
    assert not backend.can_stop
    with pytest.raises(ConfigError, match="this InstructorBackend cannot stop a reply"):
        Guard(backend, stop_early=True)


@pytest.mark.parametrize("name", [each.name for each in PLAYED])
def test_a_fallback_that_cannot_be_stopped_gives_the_whole(
    chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A guard that stops the replies of its own model asks another vendor for whole ones, or streams them, too."""
    played = next(each for each in PLAYED if each.name == name)
    if not installed(played.module):
        pytest.skip(f"{played.module} is not installed")
    give_aws_credentials(monkeypatch)
    backend = played.backend(chat_server)
    request = watched()
    chat_server.play(Reply(events=anthropic_events(GOOD)) if name == "anthropic" else played.reply(GOOD))
    assert backend.complete(request).text == GOOD
