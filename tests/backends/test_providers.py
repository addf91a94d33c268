"""Providers by name: where a name leads, with which key and in which form, and why other names are refused."""

from __future__ import annotations

import asyncio
import logging
import sys
import traceback
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from conftest import ChatServer, Reply, completion_body
from openai_harness import GOOD, INPUTS, PROCEDURE, REQUEST, Ask, failure
from tables import all_rows

from stepguard import Guard
from stepguard.backends.openai import OpenAIBackend
from stepguard.backends.providers import PROVIDERS
from stepguard.backends.vendors import VENDORS
from stepguard.cli import main
from stepguard.errors import ConfigError

SECRET = "0123SECRET4567"

SCHEMA = {"type": "json_schema", "strict": True}
LOOSE_SCHEMA = {"type": "json_schema", "strict": None}
OBJECT = {"type": "json_object", "strict": None}
KEYS = [
    *(("openai", "OPENAI_API_KEY", SCHEMA), ("anyscale", "ANYSCALE_API_KEY", OBJECT)),
    *(("azure_openai", "AZURE_OPENAI_API_KEY", SCHEMA), ("cerebras", "CEREBRAS_API_KEY", SCHEMA)),
    *(("databricks", "DATABRICKS_TOKEN", SCHEMA), ("databricks", "DATABRICKS_API_KEY", SCHEMA)),
    *(("deepseek", "DEEPSEEK_API_KEY", OBJECT), ("fireworks", "FIREWORKS_API_KEY", LOOSE_SCHEMA)),
    *(("groq", "GROQ_API_KEY", OBJECT), ("openrouter", "OPENROUTER_API_KEY", SCHEMA)),
    *(("perplexity", "PERPLEXITY_API_KEY", LOOSE_SCHEMA), ("together", "TOGETHER_API_KEY", LOOSE_SCHEMA)),
]
OWN = [
    ("ollama/qwen2.5", "OLLAMA_HOST", "/v1"),
    ("azure_openai/my-deployment", "AZURE_OPENAI_ENDPOINT", "/openai/v1"),
    ("databricks/databricks-claude", "DATABRICKS_HOST", "/serving-endpoints"),
]


def endpoint(backend: OpenAIBackend) -> str:
    """The address that the client of a backend asks."""

    async def look() -> str:
        async with backend.session():
            return str((await backend._async_client()).base_url).rstrip("/")

    return asyncio.run(look())


def root(server: ChatServer) -> str:
    return server.url.removesuffix("/v1")


# What is sent, and where


@pytest.mark.parametrize(("provider", "variable", "form"), KEYS)
def test_key_and_form(
    chat_server: ChatServer,
    monkeypatch: pytest.MonkeyPatch,
    ask: Ask,
    provider: str,
    variable: str,
    form: dict[str, object],
) -> None:
    """A request carries the key of the provider's own variable, the rest of the name as model, and its default form."""
    monkeypatch.setenv(variable, f" {SECRET}\n")
    chat_server.play(Reply(completion_body(GOOD)))
    backend = OpenAIBackend.from_name(f"{provider}/org/some-model", base_url=chat_server.url)
    assert ask(backend, REQUEST).text == GOOD
    (received,) = chat_server.requests
    assert received.headers["authorization"] == f"Bearer {SECRET}"
    assert received.body["model"] == "org/some-model"
    asked = received.body["response_format"]
    assert {"type": asked["type"], "strict": asked.get("json_schema", {}).get("strict")} == form
    assert "tools" not in received.body


@pytest.mark.parametrize(
    ("provider", "url"),
    [
        *(("openai", "https://api.openai.com/v1"), ("anyscale", "https://api.endpoints.anyscale.com/v1")),
        *(("cerebras", "https://api.cerebras.ai/v1"), ("deepseek", "https://api.deepseek.com")),
        *(("fireworks", "https://api.fireworks.ai/inference/v1"), ("groq", "https://api.groq.com/openai/v1")),
        *(("ollama", "http://127.0.0.1:11434/v1"), ("openrouter", "https://openrouter.ai/api/v1")),
        *(("perplexity", "https://api.perplexity.ai"), ("together", "https://api.together.xyz/v1")),
    ],
)
def test_endpoints(monkeypatch: pytest.MonkeyPatch, provider: str, url: str) -> None:
    """A name leads to the provider's documented endpoint; what is set for OpenAI's own leads no other name astray."""
    if provider != "openai":
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert endpoint(OpenAIBackend.from_name(f"{provider}/m", api_key=SECRET)) == url


@pytest.mark.parametrize("driver", ["run", "arun"])
@pytest.mark.parametrize(("name", "variable", "path"), OWN)
def test_endpoints_of_the_environment(
    chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch, driver: str, name: str, variable: str, path: str
) -> None:
    """A guard made of a name alone runs against the endpoint that the provider's variable names."""
    monkeypatch.setenv(variable, root(chat_server))
    for key in PROVIDERS[name.partition("/")[0]].keys:
        monkeypatch.setenv(key, SECRET)
    chat_server.play(Reply(completion_body(GOOD)))
    guard = Guard(name)
    result = guard.run(PROCEDURE, INPUTS) if driver == "run" else asyncio.run(guard.arun(PROCEDURE, INPUTS))
    assert result.status == "verified"
    (received,) = chat_server.requests
    assert received.path == f"{path}/chat/completions"
    assert received.body["model"] == name.partition("/")[2]


@pytest.mark.parametrize(
    ("provider", "variable", "address", "url"),
    [
        ("ollama", "OLLAMA_HOST", "0.0.0.0", "http://0.0.0.0:11434/v1"),
        ("ollama", "OLLAMA_HOST", "box:8000", "http://box:8000/v1"),
        ("ollama", "OLLAMA_HOST", ":8000", "http://127.0.0.1:8000/v1"),
        ("ollama", "OLLAMA_HOST", "[::1]", "http://[::1]:11434/v1"),
        ("ollama", "OLLAMA_HOST", "::1", "http://[::1]:11434/v1"),
        ("ollama", "OLLAMA_HOST", "[::1]:8000", "http://[::1]:8000/v1"),
        ("openai", "OPENAI_BASE_URL", "", "https://api.openai.com/v1"),
        ("openai", "OPENAI_BASE_URL", "  ", "https://api.openai.com/v1"),
        ("openai", "OPENAI_BASE_URL", " http://box:8000/api \n", "http://box:8000/api"),
        ("ollama", "OLLAMA_HOST", "https://box/", "https://box/v1"),
        ("ollama", "OLLAMA_HOST", "https://box/ollama/v1/", "https://box/ollama/v1"),
        (
            "azure_openai",
            "AZURE_OPENAI_ENDPOINT",
            "https://r.openai.azure.com/",
            "https://r.openai.azure.com/openai/v1",
        ),
        ("databricks", "DATABRICKS_HOST", "w.databricks.com", "https://w.databricks.com/serving-endpoints"),
        ("databricks", "DATABRICKS_WORKSPACE_URL", "https://w", "https://w/serving-endpoints"),
        ("databricks", "DATABRICKS_BASE_URL", "https://w/serving-endpoints", "https://w/serving-endpoints"),
    ],
)
def test_forms_of_an_address(
    monkeypatch: pytest.MonkeyPatch, provider: str, variable: str, address: str, url: str
) -> None:
    """What an address in the environment leaves out, scheme, port or path, is the provider's usual one."""
    monkeypatch.setenv(variable, address)
    assert endpoint(OpenAIBackend.from_name(f"{provider}/m", api_key=SECRET)) == url


def test_settings_for_openai_go_to_openai_alone(
    chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    """Keys, organisation, project and headers that the environment holds for OpenAI are sent to no other provider."""
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID"):
        monkeypatch.setenv(f"OPENAI_{name}", SECRET)
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"X-Mine: {SECRET}\nAuthorization: Bearer {SECRET}")
    chat_server.play(Reply(completion_body(GOOD)))
    ask(OpenAIBackend.from_name("ollama/m", base_url=chat_server.url), REQUEST)
    assert SECRET not in str(chat_server.requests[0].headers)


def test_options_win(chat_server: ChatServer, ask: Ask) -> None:
    """Every default of a provider can be replaced by an option, and its modes are free to choose."""
    chat_server.play(Reply(completion_body(GOOD)))
    backend = OpenAIBackend.from_name(
        "groq/m",
        base_url=chat_server.url,
        api_key=SECRET,
        mode="tools",
        strict=False,
        extra={"top_p": 0.5},
        max_tokens_parameter="max_completion_tokens",
    )
    assert repr(backend) == "OpenAIBackend('m', provider='groq', mode='tools')"
    ask(backend, REQUEST)
    body = chat_server.requests[0].body
    assert "strict" not in body["tools"][0]["function"]
    assert body["top_p"] == 0.5
    assert "response_format" not in body


def test_provider_without_a_name(chat_server: ChatServer, ask: Ask) -> None:
    """The provider may be given apart from the model, and brings the same defaults."""
    chat_server.play(Reply(completion_body(GOOD)))
    ask(OpenAIBackend("m", provider="deepseek", base_url=chat_server.url), REQUEST)
    assert chat_server.requests[0].body["response_format"] == {"type": "json_object"}


def test_command_line(
    chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line takes the same names, and names the model in what it prints."""
    monkeypatch.setenv("OLLAMA_HOST", root(chat_server))
    chat_server.play(Reply(completion_body('{"t": "4 + 1 = 5"}')))
    file = tmp_path / "one.txt"
    file.write_text("inputs: x\nt = x + 1\n", encoding="utf-8")
    assert main(["run", str(file), "--input", "x=4", "--model", "ollama/qwen2.5"]) == 0
    assert chat_server.requests[0].body["model"] == "qwen2.5"
    assert "ollama/qwen2.5" in capsys.readouterr().out
    assert main(["run", str(file), "--input", "x=4", "--model", "antropic/claude"]) == 2
    assert "did you mean 'anthropic'?" in capsys.readouterr().err


# What cannot work


def test_every_name_of_instructor_is_answered() -> None:
    """Each provider that instructor knows can be named, and is asked in one way."""
    known = """openai azure_openai databricks anthropic google generative-ai gemini vertexai mistral cohere perplexity
        groq writer bedrock cerebras deepseek fireworks ollama openrouter xai litellm anyscale together"""
    assert set(known.split()) == PROVIDERS.keys() | VENDORS.keys()
    assert not PROVIDERS.keys() & VENDORS.keys()


@all_rows("vendor", sorted(VENDORS))
def test_vendors_with_a_backend_of_their_own(vendor: str) -> None:
    """A vendor whose answers are not chat completions is no provider of OpenAIBackend, which says what is."""
    with pytest.raises(ConfigError, match=f"'{vendor}' is asked through its own SDK: name '{vendor}/MODEL'"):
        OpenAIBackend("m", provider=vendor)


@pytest.mark.parametrize(
    ("provider", "words"),
    [
        ("Groq", r"did you mean 'groq'\?"),
        ("azure", r"did you mean 'azure_openai'\?"),
        ("togetherai", r"did you mean 'together'\?"),
        ("meta-llama", "'meta-llama' is not known: write one of anthropic, anyscale, .*, xai, or OpenAIBackend"),
    ],
)
def test_unknown_providers(provider: str, words: str) -> None:
    """An unknown provider is refused with the known ones, and with the nearest where one is near."""
    with pytest.raises(ConfigError, match=words) as caught:
        Guard(f"{provider}/some-model")
    assert caught.value.option == "provider"


@all_rows("name", ["groq", "groq/", "groq/ ", "cohere", "cohere/"])
def test_name_without_a_model(name: str) -> None:
    """A provider alone is no name."""
    with pytest.raises(ConfigError, match=f"names no model: write '{name.partition('/')[0]}/'"):
        Guard(name)


@pytest.mark.parametrize("driver", ["run", "arun"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("groq/m", "set GROQ_API_KEY, or pass api_key"),
        ("databricks/m", "set DATABRICKS_TOKEN or DATABRICKS_API_KEY, or pass"),
    ],
)
def test_missing_key(monkeypatch: pytest.MonkeyPatch, driver: str, name: str, words: str) -> None:
    """Without its own key a provider is not asked, whatever keys of others there are, and the variable is named."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("DATABRICKS_HOST", "http://127.0.0.1:9")
    guard = Guard(name)
    with pytest.raises(ConfigError, match=words) as caught:
        guard.run(PROCEDURE, INPUTS) if driver == "run" else asyncio.run(guard.arun(PROCEDURE, INPUTS))
    assert caught.value.option == "api_key"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("azure_openai/m", "set AZURE_OPENAI_ENDPOINT, or pass base_url='https://RESOURCE.openai.azure.com/openai/v1'"),
        ("databricks/m", "set DATABRICKS_BASE_URL or DATABRICKS_HOST or DATABRICKS_WORKSPACE_URL, or pass base_url="),
    ],
)
def test_missing_endpoint(ask: Ask, name: str, words: str) -> None:
    """A provider without a common endpoint says which variable names one's own."""
    with pytest.raises(ConfigError, match=words):
        ask(OpenAIBackend.from_name(name, api_key=SECRET), REQUEST)


def test_missing_package(monkeypatch: pytest.MonkeyPatch, ask: Ask) -> None:
    """Where the SDK is missing the package to install is named."""
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ConfigError, match="asking groq needs the package 'openai': pip install openai"):
        ask(OpenAIBackend.from_name("groq/m", api_key=SECRET), REQUEST)


@pytest.mark.parametrize("options", [{"provider": "groq"}, {"provider": "groq", "base_url": "http://127.0.0.1:9"}])
def test_provider_and_client(options: dict[str, Any]) -> None:
    """A client has its endpoint already: a provider beside it is refused."""
    with pytest.raises(ConfigError, match="leave them and the provider out"):
        OpenAIBackend("m", client=MagicMock(), **options)


# Secrets


def test_key_stays_secret(
    chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    """A key of the environment is in no attribute, error or log record, and errors name provider and model."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("TOGETHER_API_KEY", SECRET)
    chat_server.play(Reply({"error": {"message": f"who is {SECRET}?"}}, 401))
    backend = OpenAIBackend.from_name("together/org/m", base_url=chat_server.url)
    error = failure(ask, backend)
    assert str(error) == "together/org/m: HTTP 401: who is [redacted]?"
    shown = [repr(vars(backend)), repr(error), "".join(traceback.format_exception(error)), repr(vars(error))]
    assert [text for text in [*shown, caplog.text] if SECRET in text] == []


@all_rows("url", ["http://127.0.0.1:9/v1/chat/completions", "http://127.0.0.1:9/v1/chat/completions/"])
def test_an_endpoint_with_the_path_of_a_request(url: str) -> None:
    """What each request adds to its endpoint is refused in it, instead of failing as an address that is not there."""
    guard = Guard(OpenAIBackend("m", base_url=url, api_key=SECRET))
    with pytest.raises(ConfigError, match="leave /chat/completions off") as caught:
        guard.run(PROCEDURE, INPUTS)
    assert caught.value.option == "base_url"
